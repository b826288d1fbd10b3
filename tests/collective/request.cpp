#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/compress/coded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace cases;

namespace {

using stream = rill::stream<float, std::uint32_t>;
constexpr int kinds = 13;

auto make_codec(std::size_t n) {
    using namespace rill::compress;
    return error_feedback{coded{top_k{.density = 0.1}, qsgd{.bits = 4}, packed_gaps{}}}.bind(n);
}

/// One operation of any kind with its own data: the same on all ranks but for the values.
class job {
  public:
    job(int kind, std::size_t n, int root, int ranks, int rank, std::uint64_t seed)
        : kind_(kind), root_(root), input_(n), output_(n, -1), sparse_(n), result_(n), codec_(make_codec(n)) {
        rill::random_sequence draw(rill::random_key{seed}.derive(rank));
        for (float& x : input_) x = draw.uniform() - 0.5F;  // sums depend on the order of folding
        const bool disjoint = kind == 8;
        for (std::size_t i = 0; i < n; ++i)
            if (disjoint ? i % static_cast<std::size_t>(ranks) == static_cast<std::size_t>(rank) : draw.below(5) == 0)
                sparse_.push_back(i, draw.uniform());
        const rill::segment own = rill::split(n, static_cast<std::size_t>(ranks), static_cast<std::size_t>(rank));
        if (kind == 5) output_.resize(own.size());
        if (kind == 7) input_.resize(own.size());
    }

    /// Either form of the operation: `act(blocking, non-blocking)` chooses.
    template <class Group>
    rill::request start(Group& workers) {
        switch (kind_) {
            case 0: return rill::start_all_reduce(workers, input_, output_);
            case 1: return rill::start_all_reduce(workers, input_, input_, rill::aggregate::sum{}, {.weight = 0.5});
            case 2: return rill::start_all_reduce(workers, sparse_, result_);
            case 3: return rill::start_all_reduce(workers, std::span<const float>(input_), output_, codec_);
            case 4: return rill::start_all_reduce(workers, sparse_, result_, rill::aggregate::sum{}, quantised());
            case 5: return rill::start_reduce_scatter(workers, input_, output_);
            case 6: return rill::start_reduce_scatter(workers, sparse_, result_);
            case 7: return rill::start_all_gather(workers, input_, std::span<float>(output_));
            case 8: return rill::start_all_gather(workers, sparse_, result_);
            case 9: return rill::start_reduce(workers, input_, output_, root_);
            case 10: return rill::start_reduce(workers, sparse_, result_, root_);
            case 11: return rill::start_broadcast(workers, sparse_, root_);
            default: return rill::start_barrier(workers);
        }
    }
    template <class Group>
    rill::receipt call(Group& workers) {
        switch (kind_) {
            case 0: return rill::all_reduce(workers, input_, output_);
            case 1: return rill::all_reduce(workers, input_, input_, rill::aggregate::sum{}, {.weight = 0.5});
            case 2: return rill::all_reduce(workers, sparse_, result_);
            case 3: return rill::all_reduce(workers, std::span<const float>(input_), output_, codec_);
            case 4: return rill::all_reduce(workers, sparse_, result_, rill::aggregate::sum{}, quantised());
            case 5: return rill::reduce_scatter(workers, input_, output_);
            case 6: return rill::reduce_scatter(workers, sparse_, result_);
            case 7: return rill::all_gather(workers, input_, std::span<float>(output_));
            case 8: return rill::all_gather(workers, sparse_, result_);
            case 9: return rill::reduce(workers, input_, output_, root_);
            case 10: return rill::reduce(workers, sparse_, result_, root_);
            case 11: return rill::broadcast(workers, sparse_, root_);
            default: return rill::barrier(workers);
        }
    }

    /// Whether two jobs have come to the same, bit for bit.
    friend bool operator==(const job& a, const job& b) {
        const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
            return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
        };
        return same(a.input_, b.input_) && same(a.output_, b.output_) && a.values() == b.values();
    }

  private:
    static rill::stream_codings quantised() { return {.contribution = {.values = rill::value_coding::qsgd4}}; }
    std::vector<float> values() const {
        std::vector<float> all = dense_copy(result_, 0.0F);
        const std::vector<float> more = dense_copy(sparse_, 0.0F);
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }

    int kind_;
    int root_;
    std::vector<float> input_, output_;
    stream sparse_, result_;
    decltype(make_codec(0)) codec_;
};

/// Runs `body(group, fail)` on every rank of groups of 1 to 5, on both transports; returns what failed.
template <class Shape, class Body>
std::string on_groups(Shape shape, Body body, rill::group_options options = {}) {
    failures all;
    for (int ranks : {1, 2, 3, 5}) {
        const auto on_rank = [&](auto& net) {
            rill::group workers{net, shape, options};
            body(workers, [&](const std::string& what) {
                all.add("P=" + std::to_string(ranks) + " rank " + std::to_string(net.rank()) + ": " + what);
            });
        };
        rill::in_process::run(ranks, on_rank);
        rill::simulated::run(ranks, {.jitter = rill::microseconds(20)}, on_rank);
    }
    return all.text();
}

/// A permutation of `[0, n)` that differs from rank to rank.
std::vector<std::size_t> any_order(std::size_t n, rill::random_sequence& draw) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[draw.below(i)]);
    return order;
}

/// Starts up to eight operations at a time, waits for them in any order and in any manner, and compares with the
/// blocking calls in another group.
template <class Group, class Fail>
void mix(Group& workers, Fail fail) {
    rill::group others{workers.net(), workers.shape()};
    rill::random_sequence same(rill::random_key{7}), own(rill::random_key{8}.derive(workers.rank()));
    for (std::size_t count = 1; count <= 8; ++count) {
        std::deque<job> started, called;
        std::vector<rill::request> requests;
        std::vector<rill::receipt> due;
        for (std::size_t i = 0; i < count; ++i) {
            const int kind = static_cast<int>(same.below(kinds));
            const std::size_t n = same.below(300);
            const int root = static_cast<int>(same.below(static_cast<std::uint64_t>(workers.size())));
            for (auto* jobs : {&started, &called})
                jobs->emplace_back(kind, n, root, workers.size(), workers.rank(), 100 * count + i);
            requests.push_back(started.back().start(workers));
        }
        for (auto& each : called) due.push_back(each.call(others));
        job between(0, 100, 0, workers.size(), workers.rank(), count), alone = between;
        between.call(workers);  // while the others are in flight
        alone.call(others);
        if (!(between == alone)) fail("another result between operations in flight");
        for (const std::size_t i : any_order(count, own)) {
            switch (own.below(4)) {
                case 0: requests[i].wait(); break;
                case 1:
                    while (!requests[i].wait_for(rill::microseconds(1))) {
                    }
                    break;
                case 2:
                    while (!requests[i].test()) {
                    }
                    break;
                default: break;
            }
            const rill::receipt done = requests[i].get();
            if (requests[i].is_valid()) fail("a request is valid after get");
            if (!(started[i] == called[i])) fail("another result than the blocking call's");
            if (done.operation_number != due[i].operation_number || done.contributors != due[i].contributors ||
                done.weight != due[i].weight || done.rounds != due[i].rounds || done.wire != due[i].wire)
                fail("another receipt than the blocking call's");
        }
    }
}

}  // namespace

TEST_CASE("request: several in flight, got in any order, give what the blocking calls give") {
    CHECK(on_groups(rill::topology::split_allgather{}, [](auto& workers, auto fail) { mix(workers, fail); }) == "");
    CHECK(on_groups(rill::topology::ring{}, [](auto& workers, auto fail) { mix(workers, fail); }) == "");
}

TEST_CASE("request: an operation goes on without its caller") {
    rill::simulated::run(4, {.latency = rill::microseconds(100)}, [](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        std::vector<float> data(1000, 1), more(1000, 1);
        auto request = rill::start_all_reduce(workers, data, data);
        CHECK(!request.test());
        net.sleep_until(net.now() + rill::seconds(1));  // computes
        const auto before = net.now();
        CHECK(request.test());
        const rill::receipt done = request.get();
        CHECK(net.now() == before);
        CHECK(done.elapsed < rill::milliseconds(1));

        // Two at once take the time of one, where latency is all there is.
        auto first = rill::start_all_reduce(workers, data, data), second = rill::start_all_reduce(workers, more, more);
        CHECK(!second.wait_for(rill::nanoseconds(1)));
        first.get();
        second.get();
        CHECK(net.now() - before < done.elapsed + rill::microseconds(100));
    });
    rill::in_process::run(3, [](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        std::vector<float> data(1000, 1);
        typename std::remove_reference_t<decltype(net)>::event through{net};
        auto request = rill::start(workers, [&](auto& lane) {
            const rill::receipt done = rill::all_reduce(lane, data, data);
            through.set();
            return done;
        });
        CHECK(through.wait(rill::deadline::never));
        CHECK(data[999] == 3);
        request.get();
    });
}

TEST_CASE("request: more than the calls remembered, got backwards") {
    CHECK(on_groups(rill::topology::tree{}, [](auto& workers, auto fail) {
              constexpr std::size_t count = rill::calls_remembered + 10;
              std::vector<std::vector<int>> data(count, std::vector<int>(3, 1));
              std::vector<rill::request> requests;
              for (auto& each : data) requests.push_back(rill::start_all_reduce(workers, each, each));
              for (std::size_t i = count; i-- > 0;) {
                  if (requests[i].get().operation_number != i + 1) fail("another operation");
                  if (data[i] != std::vector<int>(3, workers.size())) fail("a wrong sum");
              }
          }) == "");
}
