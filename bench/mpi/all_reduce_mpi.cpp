// Times all_reduce over the mpi transport and the library's own MPI_Allreduce in the same processes, in turns. Prints
// the seconds per call of each sample on the slowest rank as JSON: {"mpi": [...], "ring": [...], ...}.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/mpi.hpp>

#include "../foundation/workload.hpp"
#include "../shared/split_by_comma.hpp"

#include <exception>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace {

using foundation::fill;
using foundation::require_sum;

struct job {
    bool in_place = false;
    std::vector<std::string> contestants{};  ///< "mpi", or names of topologies
    std::size_t entries = 0;
    int samples = 1;
    int batch = 1;  ///< calls in a row of which a sample is the mean

    bool has(const std::string& name) const {
        return std::find(contestants.begin(), contestants.end(), name) != contestants.end();
    }
};

using seconds_by_name = std::map<std::string, std::vector<double>>;

class contest {
  public:
    contest(rill::mpi::endpoint& net, const job& todo)
        : todo_(todo),
          groups_(net, net, net, net),
          rank_(net.rank()),
          ranks_(net.size()),
          input_(todo.in_place ? 0 : todo.entries),
          output_(todo.entries) {
        fill(input_, rank_);
    }

    /// Runs each contestant once per turn; the first turn is warm-up and is dropped.
    seconds_by_name run() {
        seconds_by_name samples;
        for (int turn = -1; turn < todo_.samples; ++turn) {
            const auto keep = [&](const std::string& name, double seconds) {
                if (turn >= 0) samples[name].push_back(seconds);
            };
            if (todo_.has("mpi")) keep("mpi", time([this] { call_mpi(); }));
            std::apply([&](auto&... group) { (play(group, keep), ...); }, groups_);
        }
        return samples;
    }

  private:
    template <class Shape>
    using group_over = rill::group<rill::mpi::endpoint, Shape>;

    template <class Shape, class Keep>
    void play(group_over<Shape>& workers, const Keep& keep) {
        if (todo_.has(Shape::name)) keep(Shape::name, time([&] { call_rill(workers); }));
    }

    void call_mpi() {
        const void* const from = todo_.in_place ? MPI_IN_PLACE : static_cast<const void*>(input_.data());
        const auto count = static_cast<int>(output_.size());
        MPI_Allreduce(from, output_.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    template <class Group>
    void call_rill(Group& workers) {
        if (todo_.in_place)
            rill::all_reduce(workers, output_, output_);
        else
            rill::all_reduce(workers, input_, output_);
    }

    /// Seconds per call on the slowest rank. In place, the results of all calls but the first of a batch are
    /// meaningless.
    template <class Call>
    double time(Call call) {
        todo_.in_place ? fill(output_, rank_) : output_.assign(todo_.entries, 0.0F);
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (int i = 0; i < todo_.batch; ++i) call();
        const double taken = (MPI_Wtime() - start) / todo_.batch;
        if (!todo_.in_place || todo_.batch == 1) require_sum(output_, ranks_);
        double slowest = 0;
        MPI_Allreduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return slowest;
    }

    const job& todo_;
    std::tuple<group_over<rill::topology::ring>, group_over<rill::topology::split_allgather>,
               group_over<rill::topology::halving_doubling>, group_over<rill::topology::recursive_doubling>>
        groups_;
    int rank_;
    int ranks_;
    std::vector<float> input_;
    std::vector<float> output_;
};

void print(const seconds_by_name& samples) {
    std::ostringstream out;
    out.precision(9);
    const char* comma = "{";
    for (const auto& [name, seconds] : samples) {
        out << comma << '"' << name << "\": [";
        for (std::size_t i = 0; i < seconds.size(); ++i) out << (i == 0 ? "" : ", ") << seconds[i];
        out << ']';
        comma = ", ";
    }
    std::printf("%s}\n", out.str().c_str());
}

}  // namespace

int main(int argc, char** argv) {
    const rill::mpi::environment library;
    if (argc < 6) {
        std::fprintf(stderr,
                     "usage: mpirun -np RANKS %s out_of_place|in_place mpi,TOPOLOGY,... ENTRIES SAMPLES BATCH "
                     "[CHUNK_BYTES]\n",
                     argv[0]);
        return 2;
    }
    const job todo{.in_place = std::string(argv[1]) == "in_place",
                   .contestants = bench::split_by_comma(argv[2]),
                   .entries = static_cast<std::size_t>(std::atoll(argv[3])),
                   .samples = std::atoi(argv[4]),
                   .batch = std::atoi(argv[5])};
    rill::mpi::options options;
    if (argc > 6) options.chunk_bytes = static_cast<std::size_t>(std::atoll(argv[6]));
    if (argc > 7) options.eager_bytes = static_cast<std::size_t>(std::atoll(argv[7]));
    try {
        rill::mpi::run(
            [&](rill::mpi::endpoint& net) {
                const seconds_by_name samples = contest(net, todo).run();
                if (net.rank() == 0) print(samples);
            },
            options);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
