// Times the dense all_reduce of rill among threads, and the limits of the machine, in turns. Prints the seconds per
// call of each sample on the slowest rank, by name, as JSON.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/subgroup.hpp>

#include "foundation/workload.hpp"
#include "fused/baseline.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>

namespace {

using foundation::repetition;
using endpoint = rill::in_process::endpoint;

struct job {
    bool in_place = false;
    bool is_large = false;
    int ranks = 1;
    std::size_t size = 0;
    repetition times{};
};

/// Seconds by name and sample, of the slowest rank.
class table {
  public:
    void add(const std::string& name, int sample, double seconds) {
        const std::lock_guard lock(mutex_);
        auto& row = rows_[name];
        row.resize(std::max(row.size(), static_cast<std::size_t>(sample) + 1));
        row[static_cast<std::size_t>(sample)] = std::max(row[static_cast<std::size_t>(sample)], seconds);
    }
    void print() const {
        const char* separator = "{";
        for (const auto& [name, row] : rows_) {
            std::printf("%s\"%s\": ", separator, name.c_str());
            foundation::print_as_json(row);
            separator = ", ";
        }
        std::printf("}\n");
    }

  private:
    std::mutex mutex_;
    std::map<std::string, std::vector<double>> rows_;
};

/// What all ranks share, apart from rill's own memory.
struct common {
    explicit common(const job& todo) : passes(todo.ranks) {
        if (todo.is_large)
            for (auto& each : vectors) each.assign(todo.size, 1.0F);
    }
    std::vector<float> vectors[3];
    fused::ping_pong turns;
    fused::pass_by_pass passes;
    table seconds;
};

/// `step` is one of so many calls. The first one warms the caches and is not timed.
template <class Step>
void time_one(auto& workers, common& all, const std::string& name, int sample, int batch, Step step) {
    step();
    rill::barrier(workers);
    const rill::time_point start = workers.net().now();
    for (int call = 0; call < batch; ++call) step();
    const double taken = (workers.net().now() - start).seconds() / batch;
    all.seconds.add(name, sample, taken);
}

/// Two threads measure the limits; the others wait.
void time_limits(auto& workers, common& all, const job& todo, int sample) {
    const int rank = workers.rank();
    if (!todo.is_large) {
        if (todo.ranks == 2)
            time_one(workers, all, "round_trip", sample, todo.times.batch, [&] { all.turns.play(rank); });
        return;
    }
    const auto by_two = [&](const std::string& name, auto body) {
        time_one(workers, all, name, sample, 1, [&] {
            if (rank < 2) body(fused::part(todo.size, 2, rank));
        });
    };
    float* const x[] = {all.vectors[0].data(), all.vectors[1].data(), all.vectors[2].data()};
    by_two("triad", [&](fused::part of) { fused::triad(x[0], x[1], x[2], of); });
    by_two("scale", [&](fused::part of) { fused::scale(x[0], of); });
    by_two("read", [&](fused::part of) {
        if (fused::read(x[1], of) != static_cast<float>(of.end - of.begin)) throw std::runtime_error("a sum of ones");
    });
    if (rank >= 2) return;
    const fused::part own(todo.size, 2, rank);  // 1 + 3, and each of the other two passes has been made twice
    if (std::any_of(x[0] + own.begin, x[0] + own.end, [](float each) { return each != 16.0F; }))
        throw std::runtime_error("wrong triad, or wrong scale");
}

void time_all(endpoint& net, common& all, const job& todo) {
    rill::group workers{net, rill::topology::split_allgather{}};
    rill::subgroup plain(net, rill::view::all(net));  // models no shared memory
    rill::group by_messages{plain, rill::topology::split_allgather{}};
    std::vector<float> input(todo.size), output(todo.size);
    foundation::fill(input, net.rank());
    // In place the values grow, which costs no time, and are no numbers in the end: `verify` calls once more.
    const auto reduce = [&](auto& through) { rill::all_reduce(through, todo.in_place ? output : input, output); };
    // Turn by turn where memory is the limit. Smaller vectors shall lie in the caches as they do when nothing else is
    // done.
    const auto each_sample = [&](auto body) {
        for (int sample = 0; sample < todo.times.samples; ++sample) body(sample);
    };
    const auto verify = [&](auto step) {
        if (todo.in_place)
            foundation::fill(output, net.rank());
        else
            std::fill(output.begin(), output.end(), 0.0F);
        step();
        foundation::require_sum(output, todo.ranks);
    };
    const auto time_fused = [&](int sample) {
        time_one(workers, all, "fused", sample, todo.times.batch, [&] { reduce(workers); });
    };
    each_sample([&](int sample) {
        time_limits(workers, all, todo, sample);
        if (todo.times.batch == 1) time_fused(sample);
    });
    if (todo.times.batch != 1) each_sample(time_fused);
    verify([&] { reduce(workers); });
    each_sample([&](int sample) {
        time_one(workers, all, "messages", sample, todo.times.batch, [&] { reduce(by_messages); });
    });
    verify([&] { reduce(by_messages); });
    if (todo.in_place) return;
    const auto by_passes = [&] { all.passes.all_reduce(net.rank(), input.data(), output.data(), todo.size); };
    each_sample([&](int sample) { time_one(workers, all, "pass_by_pass", sample, todo.times.batch, by_passes); });
    verify(by_passes);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: %s out_of_place|in_place RANKS ENTRIES SAMPLES BATCH\n", argv[0]);
        return 2;
    }
    try {
        job todo{.in_place = std::string_view(argv[1]) == "in_place",
                 .ranks = std::atoi(argv[2]),
                 .size = static_cast<std::size_t>(std::atoll(argv[3])),
                 .times = {.samples = std::atoi(argv[4]), .batch = std::atoi(argv[5])}};
        todo.is_large = todo.size > 100'000;
        common all(todo);
        rill::in_process::run(todo.ranks, [&](endpoint& net) { time_all(net, all, todo); });
        all.seconds.print();
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
