// usage: bench_coded_cluster_mpi ENTRIES STEPS
// Sums of gradients on hosts whose cards limit them: CodedReduce, with the paper's code and with groups of workers that
// hold the same points, gradient coding at one master, UMW, and a ring in which the master takes part with zeros; in
// turns in the same processes. Where all ranks begin at once, and where one child of each parent of CodedReduce's tree
// begins late. Steps of gathers follow each other at once, so that a late rank may miss several. Every sum is checked
// against that of all points. Prints {"cr": {"awake": [seconds, ...], "late": [...]}, ...}. 13 ranks are a
// (3,2)-regular tree with a straggler of each parent, others a star that waits for all. As in the paper's models, the
// model that goes down takes no time.
#include "protocols.hpp"

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/group.hpp>
#include <rill/gradient_code/cyclic_repetition.hpp>
#include <rill/gradient_code/repetition_groups.hpp>
#include <rill/protocol/coded_allocation.hpp>
#include <rill/protocol/coded_reduce.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/wait_all.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/mpi.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

namespace {

constexpr rill::duration late = rill::milliseconds(400);
constexpr std::size_t points = 1200;
constexpr int turns = 3;
constexpr std::array names{"cr", "groups", "gc", "umw", "rar"};

using samples = std::array<std::vector<double>, 2>;  // awake, late

template <class Net>
class contest {
  public:
    contest(Net& net, std::size_t entries, int steps)
        : net_(net), steps_(steps), control_(net, rill::topology::tree{}, {.name = "control"}), values_(entries) {}

    void run() {
        for (int turn = 0; turn < turns; ++turn)
            for (const bool some_are_late : {false, true}) {
                some_are_late_ = some_are_late;
                const int workers = net_.size() - 1;
                const rill::topology::regular_tree star{.width = workers, .depth = 1};
                coded(0, tree(), rill::gradient_code::cyclic_repetition{}, stragglers());
                coded(1, tree(), rill::gradient_code::repetition_groups{}, stragglers());
                coded(2, star, rill::gradient_code::cyclic_repetition{}, 4 * stragglers());
                gathered(3, {}, [&](auto& group) { return rill::rounds{group, star, rill::straggler::wait_all{}}; });
                ring();
            }
        if (net_.rank() == 0) print();
    }

  private:
    bool is_paper() const { return net_.size() == 13; }
    int stragglers() const { return is_paper() ? 1 : 0; }
    rill::topology::regular_tree tree() const {
        if (is_paper()) return {.width = 3, .depth = 2};
        return {.width = net_.size() - 1, .depth = 1};
    }
    /// The workers of a step take turns in being late: one child of each parent.
    void compute(int step) {
        if (!some_are_late_ || net_.rank() == 0) return;
        const int parent = tree().parent(net_.size(), net_.rank()), width = tree().width;
        if ((net_.rank() - 1) % width == (step + parent) % width) net_.sleep_until(net_.now() + late);
    }
    void add(std::size_t scheme, int step, rill::time_point begin) {
        if (step > 0)  // the first one warms up
            found_[scheme][some_are_late_ ? 1 : 0].push_back((net_.now() - begin).seconds());
    }

    template <class Code>
    void coded(std::size_t scheme, const rill::topology::regular_tree& over, const Code& policy, int lost) {
        const auto code = policy.bind(over.width, lost);
        const rill::coded_allocation allocation(over, code, points);
        gathered(scheme, coded_bench::contributions::of(allocation), [&](auto& group) {
            return rill::coded_reduce{group, over, code};
        });
    }
    /// Each step is timed from the end of the one before until the root has the sum.
    template <class Make>
    void gathered(std::size_t scheme, const coded_bench::contributions& what, Make&& make) {
        rill::group group{net_, rill::topology::star{}, {.name = names[scheme]}};
        auto rounds = make(group);
        std::vector<double> model(1), sum(values_.size());
        std::fill(values_.begin(), values_.end(), net_.rank() == 0 ? 0.0 : what.own(net_.rank()));
        rill::barrier(control_);
        rill::time_point begin = net_.now();
        for (int step = 0; rounds.next(model); ++step) {
            compute(step);
            const auto done = rounds.reduce(values_, sum);
            if (rounds.is_root()) {
                add(scheme, step, begin);
                coded_bench::require_all(sum, what.sum != 0 ? what.sum : static_cast<double>(done.contributors - 1));
                if (step == steps_) rounds.end();
            }
            begin = net_.now();
        }
    }
    void ring() {
        rill::group group{net_, rill::topology::ring{}, {.name = "rar"}};
        std::vector<double> sum(values_.size());
        std::fill(values_.begin(), values_.end(), net_.rank() == 0 ? 0.0 : 1.0);
        for (int step = 0; step <= steps_; ++step) {
            rill::barrier(control_);
            const rill::time_point begin = net_.now();
            compute(step);
            rill::all_reduce(group, values_, sum);
            if (net_.rank() == 0) add(4, step, begin);
            coded_bench::require_all(sum, net_.size() - 1);
        }
    }

    void print() const {
        const auto list = [](const std::vector<double>& seconds) {
            std::string text;
            for (const double each : seconds) text += (text.empty() ? "" : ", ") + std::to_string(each);
            return "[" + text + "]";
        };
        std::string text;
        for (std::size_t scheme = 0; scheme < names.size(); ++scheme)
            text += (scheme == 0 ? "{\"" : ", \"") + std::string(names[scheme]) +
                    "\": {\"awake\": " + list(found_[scheme][0]) + ", \"late\": " + list(found_[scheme][1]) + "}";
        std::printf("%s}\n", text.c_str());
    }

    Net& net_;
    int steps_;
    rill::group<Net, rill::topology::tree> control_;
    std::vector<double> values_;
    bool some_are_late_ = false;
    std::array<samples, names.size()> found_{};
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return std::fprintf(stderr, "usage: %s ENTRIES STEPS\n", argv[0]), 2;
    try {
        const rill::mpi::environment library;
        rill::mpi::run(
            [&](auto& net) { contest(net, static_cast<std::size_t>(std::atoll(argv[1])), std::atoi(argv[2])).run(); });
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "bench_coded_cluster_mpi: %s\n", failure.what());
        return 1;
    }
}
