// The baseline: times MPI_Allreduce. Prints the seconds per call of each sample on the slowest rank as JSON.
#include <mpi.h>

#include "workload.hpp"

namespace {

using namespace foundation;

/// Seconds per call on the slowest rank, returned on rank 0 only.
double time_batch(bool in_place, const std::vector<float>& input, std::vector<float>& output, int batch) {
    const auto count = static_cast<int>(output.size());
    const void* const from = in_place ? MPI_IN_PLACE : static_cast<const void*>(input.data());
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int call = 0; call < batch; ++call)
        MPI_Allreduce(from, output.data(), count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double taken = (MPI_Wtime() - start) / batch;
    double slowest = 0;
    MPI_Reduce(&taken, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
}

/// The first sample is warm-up and is dropped.
std::vector<double> time_samples(bool in_place, std::size_t size, repetition times, int rank, int ranks) {
    std::vector<float> input(in_place ? 0 : size), output(size);
    fill(input, rank);
    std::vector<double> seconds;
    for (int sample = -1; sample < times.samples; ++sample) {
        in_place ? fill(output, rank) : output.assign(size, 0.0F);
        const double taken = time_batch(in_place, input, output, times.batch);
        if (sample >= 0) seconds.push_back(taken);
    }
    if (!in_place || times.batch == 1) require_sum(output, ranks);
    return seconds;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    if (argc != 5) {
        std::fprintf(stderr, "usage: mpirun -np RANKS %s out_of_place|in_place ENTRIES SAMPLES BATCH\n", argv[0]);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const bool in_place = std::string(argv[1]) == "in_place";
    const repetition times{.samples = std::atoi(argv[3]), .batch = std::atoi(argv[4])};
    try {
        const auto seconds = time_samples(in_place, static_cast<std::size_t>(std::atoll(argv[2])), times, rank, ranks);
        if (rank == 0) print_as_json(seconds);
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
}
