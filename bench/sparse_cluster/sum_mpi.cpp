// Times sums of sparse streams over the mpi transport, and dense sums of as many coordinates (rill's ring, the
// library's own MPI_Allreduce), in the same processes and in turns. Prints as JSON, for each contestant, the seconds of
// its samples on the slowest rank and the most bytes that a rank has sent in a call: {"split_allgather": {"seconds":
// [...], "bytes": 123}, ...}.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/values.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/mpi.hpp>

#include "../shared/expected.hpp"
#include "../shared/inputs.hpp"
#include "../shared/split_by_comma.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace {

/// Small integers, so that every order of summation gives the same sum, and no sum is 0.
float entry(int rank, std::size_t i) { return static_cast<float>(i % 1024 + static_cast<std::size_t>(rank) + 1); }

struct job {
    std::size_t dimension = 0;
    double density = 0;
    rill::index_coding indices = rill::index_coding::elias_fano;
    /// "mpi", "dense_ring"; names of topologies, with "_4bit" behind or not; "plain" or "plain_4bit" behind
    /// split_allgather, whose bytes it sends.
    std::vector<std::string> contestants{};
    int samples = 1;
    int dense_samples = 1;
};

struct record {
    std::vector<double> seconds;
    std::uint64_t bytes = 0;
};

/// Each coordinate with the given chance, others on each rank.
rill::stream<float> input_of(int rank, const job& todo) {
    const bench::sparse_input chosen =
        bench::random_sparse(todo.dimension, todo.density, static_cast<std::uint64_t>(rank));
    rill::stream<float> made(todo.dimension);
    for (const std::uint32_t each : chosen.indices) made.push_back(each, entry(rank, each));
    return made;
}

template <class T, class Operation>
T over_all_ranks(T own, MPI_Datatype type, Operation operation) {
    T all{};
    MPI_Allreduce(&own, &all, 1, type, operation, MPI_COMM_WORLD);
    return all;
}

class contest {
  public:
    contest(rill::mpi::endpoint& net, const job& todo)
        : todo_(todo), groups_(net, net, net), rank_(net.rank()), ranks_(net.size()), input_(input_of(rank_, todo)) {
        present_.resize(todo.dimension);
        expected_.resize(todo.dimension);
        for (int rank = 0; rank < ranks_; ++rank) {
            const rill::stream<float> each = input_of(rank, todo);
            for (const std::uint32_t i : each.indices()) ++present_[i];
            bench::add_entries(each.indices(), each.values(), expected_);
        }
    }

    /// Runs each contestant once per turn; the first turn is warm-up and is dropped.
    std::map<std::string, record> run() {
        for (int turn = -1; turn < std::max(todo_.samples, todo_.dense_samples); ++turn)
            for (const std::string& name : todo_.contestants) {
                const bool is_dense = name == "mpi" || name == "dense_ring";
                if (turn >= (is_dense ? todo_.dense_samples : todo_.samples)) continue;
                if (name.starts_with("plain"))
                    play_plain(name, turn);
                else
                    is_dense ? play_dense(name, turn) : play_sparse(name, turn);
            }
        return records_;
    }

  private:
    template <class Shape>
    using group_over = rill::group<rill::mpi::endpoint, Shape>;

    void play_dense(const std::string& name, int turn) {
        if (dense_input_.empty()) {
            dense_input_.resize(todo_.dimension);
            bench::add_entries(input_.indices(), input_.values(), dense_input_);
        }
        std::vector<float>& output = dense_output_;
        output.assign(todo_.dimension, -1.0F);
        std::uint64_t bytes = 0;
        const double seconds = time([&] {
            if (name == "mpi")
                MPI_Allreduce(dense_input_.data(), output.data(), static_cast<int>(output.size()), MPI_FLOAT, MPI_SUM,
                              MPI_COMM_WORLD);
            else
                bytes = rill::all_reduce(std::get<group_over<rill::topology::ring>>(groups_), dense_input_, output)
                            .wire.bytes_sent;
        });
        bench::require_equal(output, expected_, name);
        keep(name, turn, seconds, bytes);
    }

    void play_sparse(const std::string& name, int turn) {
        const std::size_t suffix = name.find("_4bit");
        const std::string shape = name.substr(0, suffix);
        const bool lossy = suffix != std::string::npos;
        rill::stream_codings codings;
        if (lossy) codings.contribution = codings.copy = rill::compress::qsgd{.bits = 4}.coding();
        for (rill::coding* each : {&codings.contribution, &codings.partial, &codings.copy})
            each->indices = todo_.indices;
        std::uint64_t bytes = 0;
        bool found = false;
        const auto play = [&](auto& workers) {
            if (shape != std::remove_reference_t<decltype(workers)>::topology_type::name) return;
            found = true;
            if (!std::remove_reference_t<decltype(workers)>::topology_type::has_copy_phase) codings.copy = {};
            const double seconds = time([&] {
                bytes = rill::all_reduce(workers, input_, output_, rill::aggregate::sum{}, codings).wire.bytes_sent;
            });
            lossy ? check_rounded(name) : check_exact(name);
            keep(name, turn, seconds, bytes);
            if (shape == rill::topology::split_allgather::name)
                split_bytes_[lossy] = over_all_ranks(bytes, MPI_UINT64_T, MPI_MAX);
        };
        std::apply([&](auto&... workers) { (play(workers), ...); }, groups_);
        bench::require(found, "no contestant is called " + name);
    }

    /// As many bytes as the last sum over split_allgather has sent, by plain MPI: in pieces that it sends at once, all
    /// of them posted beforehand, for each peer in turn.
    void play_plain(const std::string& name, int turn) {
        const std::uint64_t bytes = split_bytes_[name == "plain_4bit"];
        const auto split = over_all_ranks(static_cast<double>(input_.count()), MPI_DOUBLE, MPI_SUM) / ranks_;
        const auto gather = static_cast<double>(output_.count());
        const double share = static_cast<double>(bytes) / (ranks_ - 1) / (split + gather);
        const double seconds = time([&] {
            move_plainly(static_cast<std::size_t>(share * split));
            move_plainly(static_cast<std::size_t>(share * gather));
        });
        keep(name, turn, seconds, bytes);
    }

    void move_plainly(std::size_t to_each) {
        constexpr std::size_t piece = 65'000;
        plain_.resize(to_each * 2 * static_cast<std::size_t>(ranks_));
        std::vector<MPI_Request> requests;
        for (const bool sends : {false, true})
            for (std::size_t at = 0; at < to_each; at += piece)
                for (int i = 1; i < ranks_; ++i) {
                    const int peer = (rank_ + i) % ranks_, size = static_cast<int>(std::min(piece, to_each - at));
                    char* const from = plain_.data() + (static_cast<std::size_t>(peer) * 2 + sends) * to_each + at;
                    requests.push_back(MPI_REQUEST_NULL);
                    sends ? MPI_Isend(from, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests.back())
                          : MPI_Irecv(from, size, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests.back());
                }
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }

    template <class Call>
    double time(Call call) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        call();
        return over_all_ranks(MPI_Wtime() - start, MPI_DOUBLE, MPI_MAX);
    }

    void keep(const std::string& name, int turn, double seconds, std::uint64_t bytes) {
        const std::uint64_t most = over_all_ranks(bytes, MPI_UINT64_T, MPI_MAX);
        if (turn < 0) return;
        records_[name].seconds.push_back(seconds);
        records_[name].bytes = most;
    }

    /// Calls `check(coordinate, value)` for every coordinate that the result has; requires the same bits on all ranks.
    template <class Check>
    void for_each_entry(const std::string& what, Check check) {
        std::uint64_t bits = output_.is_dense();
        for (std::size_t k = 0; k < output_.count(); ++k) {
            const std::size_t i = output_.is_dense() ? k : output_.indices()[k];
            const float value = output_.values()[k];
            bits = rill::mix64(bits, i, std::bit_cast<std::uint32_t>(value));
            check(i, value);
        }
        bench::require(over_all_ranks(bits, MPI_UINT64_T, MPI_MIN) == over_all_ranks(bits, MPI_UINT64_T, MPI_MAX),
                       what + ": the ranks have different results");
    }

    void check_exact(const std::string& what) {
        if (output_.is_dense()) {
            bench::require_equal(output_.values(), expected_, what);
        } else {
            std::size_t due = 0;
            for (const float each : expected_) due += each != 0;
            bench::require(output_.count() == due, what + ": the number of entries");
        }
        for_each_entry(what, [&](std::size_t i, float value) {
            if (value != expected_[i]) bench::require(false, what + " at entry " + std::to_string(i));
        });
    }

    /// Each contribution is rounded to one of 7 levels either way, of the largest of its bucket, and so is their sum.
    void check_rounded(const std::string& what) {
        constexpr double levels = 7 * 0.9999;
        const double largest = *std::max_element(expected_.begin(), expected_.end());
        const double most = 1024 + ranks_;
        double sum = 0, off = 0;
        for_each_entry(what, [&](std::size_t i, float value) {
            const double bound = present_[i] == 0 ? 0 : present_[i] * most / levels + (largest + most) / levels;
            const double error = double{value} - double{expected_[i]};
            if (!(std::abs(error) <= bound)) bench::require(false, what + " at entry " + std::to_string(i));
            sum += double{expected_[i]};
            off += error;
        });
        const double chance = 4 * std::sqrt(static_cast<double>(output_.count())) * largest / levels;
        bench::require(std::abs(off) < 0.02 * sum + chance, what + ": the mean");
    }

    const job& todo_;
    std::tuple<group_over<rill::topology::ring>, group_over<rill::topology::split_allgather>,
               group_over<rill::topology::recursive_doubling>>
        groups_;
    int rank_;
    int ranks_;
    rill::stream<float> input_, output_;
    std::vector<float> expected_, dense_input_, dense_output_;
    std::vector<std::uint8_t> present_;
    std::map<std::string, record> records_;
    std::uint64_t split_bytes_[2]{};
    std::vector<char> plain_;
};

void print(const std::map<std::string, record>& records) {
    std::ostringstream out;
    out.precision(9);
    const char* comma = "{";
    for (const auto& [name, each] : records) {
        out << comma << '"' << name << "\": {\"seconds\": [";
        for (std::size_t i = 0; i < each.seconds.size(); ++i) out << (i == 0 ? "" : ", ") << each.seconds[i];
        out << "], \"bytes\": " << each.bytes << '}';
        comma = ", ";
    }
    std::printf("%s}\n", out.str().c_str());
}

}  // namespace

int main(int argc, char** argv) {
    const rill::mpi::environment library;
    if (argc < 6) {
        std::fprintf(stderr,
                     "usage: mpirun -np RANKS %s DIMENSION DENSITY CONTESTANT,... SAMPLES DENSE_SAMPLES [smallest]\n",
                     argv[0]);
        return 2;
    }
    const job todo{.dimension = static_cast<std::size_t>(std::atoll(argv[1])),
                   .density = std::atof(argv[2]),
                   .indices = argc > 6 ? rill::index_coding::smallest : rill::index_coding::elias_fano,
                   .contestants = bench::split_by_comma(argv[3]),
                   .samples = std::atoi(argv[4]),
                   .dense_samples = std::atoi(argv[5])};
    try {
        rill::mpi::run([&](rill::mpi::endpoint& net) {
            const auto records = contest(net, todo).run();
            if (net.rank() == 0) print(records);
        });
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
