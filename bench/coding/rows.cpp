// usage: bench_coding_rows mds|random N S SAMPLES
//
// The seconds that a decoding row takes, in turns, as {"eigen": [...], "cold": [...], "cached": [...]}: Eigen's
// ColPivHouseholderQR of the n x (n-s) system, a row that the code has not yet solved for, and one that it has. Rows
// are compared.
#include <rill/coding/amplification.hpp>
#include <rill/coding/cyclic_mds.hpp>
#include <rill/coding/cyclic_repetition.hpp>
#include <rill/coding/dual_code.hpp>

#include <Eigen/Dense>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using rill::codes::dual_code;

dual_code bind(const std::string& kind, int n, int s) {
    if (kind == "mds") return rill::codes::cyclic_mds{}.bind(n, s);
    if (kind == "random") return rill::codes::cyclic_repetition{}.bind(n, s);
    throw std::invalid_argument("no code " + kind);
}

/// The rows of a code as columns.
Eigen::MatrixXd transposed(const dual_code& code) {
    Eigen::MatrixXd all = Eigen::MatrixXd::Zero(code.partitions(), code.workers());
    for (int worker = 0; worker < code.workers(); ++worker)
        for (std::size_t j = 0; j < code.partitions_of(worker).size(); ++j)
            all(code.partitions_of(worker)[j], worker) = code.coefficients_of(worker)[j];
    return all;
}

Eigen::VectorXd solve_by_qr(const Eigen::MatrixXd& all, const std::vector<int>& survivors) {
    Eigen::MatrixXd some(all.rows(), static_cast<Eigen::Index>(survivors.size()));
    for (std::size_t i = 0; i < survivors.size(); ++i) some.col(static_cast<Eigen::Index>(i)) = all.col(survivors[i]);
    return some.colPivHouseholderQr().solve(Eigen::VectorXd::Ones(all.rows()));
}

template <class Work>
double seconds_of(Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print(const char* name, const std::vector<double>& samples, const char* after) {
    std::printf("\"%s\": [", name);
    for (std::size_t i = 0; i < samples.size(); ++i) std::printf("%s%.9g", i == 0 ? "" : ", ", samples[i]);
    std::printf("]%s", after);
}

void run(const std::string& kind, int n, int s, int samples) {
    constexpr int sets = 20, repeats = 1000;
    std::vector<double> eigen, cold, cached, row(static_cast<std::size_t>(n - s));
    const Eigen::MatrixXd all = transposed(bind(kind, n, s));
    for (int sample = 0; sample < samples; ++sample) {
        const dual_code code = bind(kind, n, s);
        std::vector<std::vector<int>> survivors;
        rill::codes::detail::for_some_subsets(n, s, sets, static_cast<std::uint64_t>(sample), [&](const auto& lost) {
            if (survivors.size() == sets) return;
            survivors.emplace_back();
            rill::codes::detail::complement(lost, n, survivors.back());
        });
        double sink = 0;
        eigen.push_back(seconds_of([&] {
                            for (const std::vector<int>& each : survivors) sink += solve_by_qr(all, each)[0];
                        }) /
                        sets);
        code.decoding_row(survivors.back(), row);  // the memory of the table of rows, which a code asks for once
        survivors.pop_back();
        cold.push_back(seconds_of([&] {
                           for (const std::vector<int>& each : survivors) code.decoding_row(each, row);
                       }) /
                       (sets - 1));
        cached.push_back(seconds_of([&] {
                             for (int i = 0; i < repeats; ++i) {
                                 code.decoding_row(survivors[static_cast<std::size_t>(i) % 4], row);
                                 sink += row[0];
                             }
                         }) /
                         repeats);
        const Eigen::VectorXd wanted = solve_by_qr(all, survivors[0]);
        code.decoding_row(survivors[0], row);
        for (std::size_t i = 0; i < row.size(); ++i)
            if (!(std::abs(wanted[static_cast<Eigen::Index>(i)] - row[i]) <= 1e-6 * (1 + wanted.cwiseAbs().maxCoeff())))
                throw std::runtime_error("the rows differ");
        if (!std::isfinite(sink)) throw std::runtime_error("a row is not finite");
    }
    std::printf("{");
    print("eigen", eigen, ", ");
    print("cold", cold, ", ");
    print("cached", cached, "}\n");
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 5) throw std::invalid_argument("usage: bench_coding_rows mds|random N S SAMPLES");
    run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
} catch (const std::exception& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return 1;
}
