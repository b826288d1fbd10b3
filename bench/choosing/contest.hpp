// What `cost::choose` chooses, timed beside the other exchanges that it has compared.
#pragma once

#include <rill/aggregate/max.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/cost/choose.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/any.hpp>

#include "../shared/expected.hpp"
#include "../shared/inputs.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <list>
#include <string>
#include <vector>

namespace bench {

struct job {
    std::size_t dimension = 0;
    double density = 0;
    int samples = 1;
};

/// One rank's part. The contestants are the choice and, of each other shape and form, what is predicted to be the
/// fastest, up to five that are predicted to take at most three times as long.
template <class Net>
class contest {
  public:
    contest(Net& net, const job& todo)
        : net_(net),
          todo_(todo),
          control_(net, rill::topology::tree{}, {.name = "control"}),
          input_(input_of(net.rank())),
          dense_input_(todo.dimension),
          dense_sum_(todo.dimension) {
        add_entries(input_.indices(), input_.values(), dense_input_);
        expected_ = dense_sum(todo.dimension, net.size(), [&](int rank) { return input_of(rank); });
        // Last, as in a program that has its gradients: memory that comes later is slower.
        choice_ = rill::cost::choose(net, {.dimension = todo.dimension, .density = todo.density});
        for (const rill::cost::exchange_candidate& each : choice_.candidates) admit(each);
    }

    /// Runs each contestant once per turn, after one that warms up. Prints JSON on rank 0.
    void run() {
        for (int turn = -1; turn < todo_.samples; ++turn)
            for (contestant& each : contestants_) {
                const double seconds = sample(each);
                if (turn >= 0) each.seconds.push_back(seconds);
            }
        if (net_.rank() == 0) print();
    }

  private:
    struct contestant {
        contestant(Net& net, const rill::cost::exchange_candidate& given)
            : exchange(given), workers(net, given.topology) {}

        rill::cost::exchange_candidate exchange;
        rill::group<Net, rill::topology::any> workers;
        std::vector<double> seconds{};
    };

    /// Small integers, so that every order of summation gives the same sum, and no sum is 0.
    rill::stream<float> input_of(int rank) const {
        rill::stream<float> made(todo_.dimension);
        for (const std::uint32_t i :
             random_sparse(todo_.dimension, todo_.density, static_cast<std::uint64_t>(rank)).indices)
            made.push_back(i, static_cast<float>(i % 1024 + static_cast<std::uint32_t>(rank) + 1));
        return made;
    }

    void admit(const rill::cost::exchange_candidate& each) {
        const bool is_listed = std::any_of(contestants_.begin(), contestants_.end(), [&](const contestant& other) {
            return other.exchange.topology == each.topology && other.exchange.compress == each.compress;
        });
        if (is_listed || contestants_.size() == 6 || each.time().seconds() > 3 * choice_.expected.seconds()) return;
        contestants_.emplace_back(net_, each);
    }

    /// The seconds of a call on the slowest rank, on average over calls that together take some 20 ms, after one that
    /// the ranks may begin at different times.
    double sample(contestant& each) {
        const int calls = std::clamp(static_cast<int>(2e-2 / std::max(choice_.expected.seconds(), 1e-6)), 1, 10'000);
        const auto exchange = [&] {
            if (each.exchange.compress)
                rill::all_reduce(each.workers, input_, sum_, rill::aggregate::sum{}, each.exchange.codings);
            else
                rill::all_reduce(each.workers, dense_input_, dense_sum_);
        };
        dense_sum_.assign(todo_.dimension, -1.0F);
        rill::barrier(control_);
        exchange();
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < calls; ++i) exchange();
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
        rill::barrier(control_);  // no rank checks the sum while others, on the same cores, are still timed
        const std::string name = rill::cost::detail::composition_of(each.exchange);
        if (each.exchange.compress)
            require_equal(sum_, expected_, name);
        else
            require_equal(dense_sum_, expected_, name);
        std::vector<double> most{seconds};
        rill::all_reduce(control_, most, most, rill::aggregate::max{});
        return most[0];
    }

    void print() const {
        const char* separator = "{";
        for (const contestant& each : contestants_) {
            std::printf("%s\"%s\": {\"predicted\": %.9g, \"seconds\": [", separator,
                        rill::cost::detail::composition_of(each.exchange).c_str(), each.exchange.time().seconds());
            for (std::size_t i = 0; i < each.seconds.size(); ++i)
                std::printf("%s%.9g", i == 0 ? "" : ", ", each.seconds[i]);
            std::printf("]}");
            separator = ", ";
        }
        std::printf("}\n");
    }

    Net& net_;
    job todo_;
    rill::group<Net, rill::topology::tree> control_;
    rill::stream<float> input_, sum_;
    std::vector<float> dense_input_, dense_sum_, expected_;
    rill::cost::exchange_choice choice_;
    std::list<contestant> contestants_;
};

}  // namespace bench
