// Times steps of a linear model on sparse rows over the mpi transport, with gradients that travel by their entries and
// with dense ones (rill's ring, the library's own MPI_Allreduce), from the same batches and in turns; the exchanges of
// these steps alone; and what ranks exchange in a step of coordinate descent. Prints as JSON, for each contestant, the
// seconds of its samples on the slowest rank and the most bytes that a rank has sent in a call; then the accuracy on
// the rows that are held out.
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/libsvm.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/sparse_linear.hpp>
#include <rill/transport/mpi.hpp>

#include "../shared/expected.hpp"
#include "../shared/text_like.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace {

namespace train = rill::train;

struct job {
    std::string train{}, held_out{};  ///< files, or "generated"
    std::size_t columns = 0;          ///< of generated rows
    std::size_t rows = 0;             ///< of a rank
    std::size_t batch = 0;            ///< rows of a rank and step
    std::uint64_t sparse_steps = 0, dense_steps = 0;
    std::uint64_t more_steps = 0;  ///< that are not timed
};

struct record {
    std::vector<double> seconds{};
    std::uint64_t bytes = 0;
};

template <class T, class Operation>
T over_all_ranks(T own, MPI_Datatype type, Operation operation) {
    T all{};
    MPI_Allreduce(&own, &all, 1, type, operation, MPI_COMM_WORLD);
    return all;
}

/// So many of the rows, evenly spread, since neighbours in a file are alike.
train::sparse_dataset spread_over(const train::sparse_dataset& all, std::size_t rows) {
    bench::require(all.rows >= rows && all.values.empty(), "the file has too few rows, or values");
    train::sparse_dataset some{.rows = rows, .columns = all.columns};
    for (std::size_t r = 0; r < rows; ++r) {
        const std::size_t from = r * all.rows / rows;
        const train::sparse_row row = all.row(from);
        some.indices.insert(some.indices.end(), row.columns.begin(), row.columns.end());
        some.starts.push_back(some.indices.size());
        some.labels.push_back(all.labels[from]);
    }
    return some;
}

/// Numbers the columns anew, so that the frequent ones, which the file has in front, are owned by all ranks alike.
void scatter_columns(train::sparse_dataset& data) {
    constexpr std::uint64_t prime = 2'654'435'761;
    for (std::size_t r = 0; r < data.rows; ++r) {
        const auto row = std::span(data.indices).subspan(data.starts[r], data.starts[r + 1] - data.starts[r]);
        for (std::uint32_t& column : row) column = static_cast<std::uint32_t>(column * prime % data.columns);
        std::sort(row.begin(), row.end());
    }
}

struct samples {
    train::sparse_dataset mine{}, unseen{};

    samples(const job& todo, int rank, int ranks) {
        if (todo.train == "generated") {
            mine = bench::text_like(todo.rows, todo.columns, 1 + static_cast<std::uint64_t>(rank));
            unseen = bench::text_like(todo.batch, todo.columns, 1000 + static_cast<std::uint64_t>(rank));
            return;
        }
        mine = spread_over(train::read_libsvm(todo.train, rank, ranks), todo.rows);
        unseen = train::read_libsvm(todo.held_out, rank, ranks);
        mine.columns = unseen.columns =
            over_all_ranks(std::uint64_t{std::max(mine.columns, unseen.columns)}, MPI_UINT64_T, MPI_MAX);
        scatter_columns(mine);
        scatter_columns(unseen);
    }
};

class contest {
  public:
    contest(rill::mpi::endpoint& net, const job& todo, const samples& data)
        : todo_(todo),
          data_(data),
          split_(net),
          ring_(net),
          doubling_(net),
          rank_(net.rank()),
          ranks_(net.size()),
          model_(data.mine.columns),
          batches_(data.mine, {.batch = todo.batch, .key = rill::random_key{1}.derive(net.rank())}),
          optimizer_(train::sgd{}.bind<float>(model_.dimension())),
          parameters_(model_.dimension()),
          trial_(model_.dimension()),
          dense_(model_.dimension()),
          dense_sum_(model_.dimension()) {}

    /// Each contestant once per turn; the first turn is warm-up and is dropped. Only the sparse step moves the model.
    std::map<std::string, record> run() {
        const std::uint64_t timed = 1 + todo_.sparse_steps;
        for (step_ = 0; step_ < timed + todo_.more_steps; ++step_) {
            const train::sparse_batch batch = batches_.next();
            if (step_ <= todo_.dense_steps) {
                trial_ = parameters_;
                play_dense(batch);
            }
            if (step_ < timed) {
                model_.gradient(parameters_, batch, gradient_);
                play("sparse_exchange", [&] { return exchange_sparse(); });
                if (step_ <= todo_.dense_steps) {
                    check_dense();
                    play_slices();
                }
                play_moves();
            }
            play("sparse", [&] {
                model_.gradient(parameters_, batch, gradient_);
                const std::uint64_t bytes = exchange_sparse();
                optimizer_.step(parameters_, mean_.view(), rate());
                return bytes;
            });
        }
        return records_;
    }

    /// The share of all ranks' rows that are held out whose class is found.
    double accuracy() {
        const std::uint64_t found =
            train::count_correct(model_, std::span<const float>(parameters_), data_.unseen, {0, data_.unseen.rows});
        return static_cast<double>(over_all_ranks(found, MPI_UINT64_T, MPI_SUM)) /
               static_cast<double>(over_all_ranks(std::uint64_t{data_.unseen.rows}, MPI_UINT64_T, MPI_SUM));
    }

  private:
    static constexpr std::size_t moved_by_a_rank = 100;  // coordinates, as in train::coordinate_descent

    double rate() const {
        const std::uint64_t total = 1 + todo_.sparse_steps + todo_.more_steps;
        return train::warmup_cosine{.peak = 0.5, .warmup = total / 20, .total = total}.rate(step_);
    }

    std::uint64_t exchange_sparse() {
        const rill::coding codes{.indices = rill::index_coding::elias_fano};
        return rill::all_reduce(split_, gradient_, mean_, rill::aggregate::mean{}, {codes, codes, codes})
            .wire.bytes_sent;
    }

    void play_dense(const train::sparse_batch& batch) {
        for (const std::string name : {"dense_ring", "mpi"}) {
            const auto exchange = [&]() -> std::uint64_t {
                if (name == "dense_ring") return rill::all_reduce(ring_, dense_, dense_sum_).wire.bytes_sent;
                MPI_Allreduce(dense_.data(), dense_sum_.data(), static_cast<int>(dense_.size()), MPI_FLOAT, MPI_SUM,
                              MPI_COMM_WORLD);
                return 0;
            };
            play(name, [&] {
                model_.gradient(parameters_, batch, std::span<float>(dense_));
                const std::uint64_t bytes = exchange();
                optimizer_.step(trial_, dense_sum_, rate() / ranks_);
                return bytes;
            });
            play(name + "_exchange", exchange);
        }
    }

    /// The mean of the sparse gradients is that of the dense ones, on all ranks in the same bits.
    void check_dense() {
        std::uint64_t bits = 0;
        std::vector<float> spread(model_.dimension());
        for (std::size_t e = 0; e < mean_.count(); ++e) {
            const std::size_t i = mean_.is_dense() ? e : mean_.indices()[e];
            spread[i] = mean_.values()[e];
            bits = rill::mix64(bits, i, std::bit_cast<std::uint32_t>(spread[i]));
        }
        bench::require(over_all_ranks(bits, MPI_UINT64_T, MPI_MIN) == over_all_ranks(bits, MPI_UINT64_T, MPI_MAX),
                       "the ranks have different means");
        for (std::size_t i = 0; i < spread.size(); ++i)
            if (!(std::abs(spread[i] - dense_sum_[i] / static_cast<float>(ranks_)) < 1e-5F))
                bench::require(false, "the mean at entry " + std::to_string(i));
    }

    /// The coordinates that a rank owns.
    rill::segment part_of(int rank) const {
        return rill::split(dense_.size(), static_cast<std::size_t>(ranks_), static_cast<std::size_t>(rank));
    }

    /// The coordinates that each rank has moved: those of all ranks reach every rank.
    void play_moves() {
        const rill::segment own = part_of(rank_);
        rill::stream<float> moved(dense_.size()), all;
        const std::size_t count = std::min(moved_by_a_rank, own.size());
        for (std::size_t k = 0; k < count; ++k)
            moved.push_back(own.begin + k * own.size() / count, static_cast<float>(rank_ + 1));
        play("moves", [&] { return rill::all_gather(doubling_, moved, all).wire.bytes_sent; });
        bench::require(all.count() == over_all_ranks(std::uint64_t{count}, MPI_UINT64_T, MPI_SUM), "the moves of all");
    }

    /// The same as dense vectors: each rank's slice of the parameters.
    void play_slices() {
        const rill::segment own = part_of(rank_);
        const std::vector<float> slice(own.size(), static_cast<float>(rank_ + 1));
        play("slices", [&] { return rill::all_gather(ring_, slice, dense_sum_).wire.bytes_sent; });
        for (int r = 0; r < ranks_; ++r)
            if (const rill::segment part = part_of(r); !part.empty())
                bench::require(dense_sum_[part.end - 1] == static_cast<float>(r + 1), "the slices of all");
    }

    template <class Call>
    void play(const std::string& name, Call call) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        const std::uint64_t bytes = call();
        const double seconds = over_all_ranks(MPI_Wtime() - start, MPI_DOUBLE, MPI_MAX);
        const std::uint64_t most = over_all_ranks(bytes, MPI_UINT64_T, MPI_MAX);
        if (step_ == 0 || step_ > todo_.sparse_steps) return;
        records_[name].seconds.push_back(seconds);
        records_[name].bytes = most;
    }

    const job& todo_;
    const samples& data_;
    rill::group<rill::mpi::endpoint, rill::topology::split_allgather> split_;
    rill::group<rill::mpi::endpoint, rill::topology::ring> ring_;
    rill::group<rill::mpi::endpoint, rill::topology::recursive_doubling> doubling_;
    int rank_, ranks_;
    train::sparse_linear<train::logistic> model_;
    train::minibatches_of<train::sparse_dataset> batches_;
    decltype(train::sgd{}.bind<float>(0)) optimizer_;
    std::vector<float> parameters_, trial_, dense_, dense_sum_;
    rill::stream<float> gradient_, mean_;
    std::uint64_t step_ = 0;
    std::map<std::string, record> records_;
};

void print(const std::map<std::string, record>& records, double accuracy, std::size_t columns) {
    std::printf("{\"accuracy\": %.9g, \"columns\": %zu", accuracy, columns);
    for (const auto& [name, each] : records) {
        std::printf(", \"%s\": {\"bytes\": %llu, \"seconds\": [", name.c_str(),
                    static_cast<unsigned long long>(each.bytes));
        for (std::size_t i = 0; i < each.seconds.size(); ++i)
            std::printf("%s%.9g", i == 0 ? "" : ", ", each.seconds[i]);
        std::printf("]}");
    }
    std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
    const rill::mpi::environment library;
    if (argc != 9) {
        std::fprintf(stderr,
                     "usage: mpirun -np RANKS %s TRAIN|generated HELD_OUT COLUMNS ROWS BATCH SPARSE_STEPS DENSE_STEPS "
                     "MORE_STEPS\n",
                     argv[0]);
        return 2;
    }
    const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
    const job todo{.train = argv[1],
                   .held_out = argv[2],
                   .columns = number(3),
                   .rows = number(4),
                   .batch = number(5),
                   .sparse_steps = number(6),
                   .dense_steps = number(7),
                   .more_steps = number(8)};
    try {
        rill::mpi::run([&](rill::mpi::endpoint& net) {
            const samples data(todo, net.rank(), net.size());
            contest all(net, todo, data);
            const auto records = all.run();
            const double accuracy = all.accuracy();
            if (net.rank() == 0) print(records, accuracy, data.mine.columns);
        });
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
