// usage: bench_gradient_code_rows mds|random N S SAMPLES
//
// The seconds that a decoding row takes, in turns, as {"qr": [...], "lu": [...], "cold": [...], "cached": [...]}:
// Eigen's ColPivHouseholderQR of the n x (n-s) system, its PartialPivLU of the dual s x s system, a row that the code
// has not yet solved for, and one that it has. Each row is multiplied by the code, which must give ones.
#include <rill/gradient_code/amplification.hpp>
#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/gradient_code/cyclic_repetition.hpp>
#include <rill/gradient_code/dual_code.hpp>

#include <Eigen/Dense>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using rill::gradient_code::dual_code;

dual_code bind(const std::string& kind, int n, int s) {
    if (kind == "mds") return rill::gradient_code::cyclic_mds{}.bind(n, s);
    if (kind == "random") return rill::gradient_code::cyclic_repetition{}.bind(n, s);
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

/// The set of all decoding rows: `base` plus any combination of the columns of `null`, which the code maps to zero.
struct dual_system {
    Eigen::MatrixXd null;
    Eigen::VectorXd base;

    dual_system(const Eigen::MatrixXd& all, int s)
        : null(Eigen::MatrixXd(all.transpose().colPivHouseholderQr().householderQ()).rightCols(s)),
          base(all.completeOrthogonalDecomposition().solve(Eigen::VectorXd::Ones(all.rows()))) {}

    /// The decoding row that is zero at the lost workers, without these entries.
    Eigen::VectorXd row(const std::vector<int>& lost, const std::vector<int>& survivors) const {
        const Eigen::VectorXd products = Eigen::MatrixXd(null(lost, Eigen::all)).partialPivLu().solve(-base(lost));
        return base(survivors) + null(survivors, Eigen::all) * products;
    }
};

/// Checks the definition: the row times the survivors' part of the code is 1 everywhere.
template <class Row>
void require_ones(const Eigen::MatrixXd& all, const std::vector<int>& survivors, const Row& row, const char* by) {
    Eigen::VectorXd product = Eigen::VectorXd::Constant(all.rows(), -1);
    for (std::size_t i = 0; i < survivors.size(); ++i)
        product += row[static_cast<Eigen::Index>(i)] * all.col(survivors[i]);
    if (!(product.norm() <= 1e-6 * std::sqrt(static_cast<double>(all.rows()))))
        throw std::runtime_error(std::string(by) + ": the row does not decode");
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

/// Random sets of survivors and of lost workers.
struct losses {
    std::vector<std::vector<int>> lost, survivors;

    losses(int n, int s, std::size_t sets, std::uint64_t seed) {
        rill::gradient_code::detail::for_some_subsets(n, s, static_cast<int>(sets), seed, [&](const auto& some) {
            if (lost.size() == sets) return;
            lost.emplace_back(some.begin(), some.end());
            survivors.emplace_back();
            rill::gradient_code::detail::complement(some, n, survivors.back());
        });
    }
};

void run(const std::string& kind, int n, int s, int samples) {
    constexpr std::size_t sets = 20, repeats = 1000;
    std::vector<double> qr, lu, cold, cached;
    const Eigen::MatrixXd all = transposed(bind(kind, n, s));
    const dual_system dual(all, s);
    for (int sample = 0; sample < samples; ++sample) {
        const dual_code code = bind(kind, n, s);
        const losses cases(n, s, sets, static_cast<std::uint64_t>(sample));
        std::vector<Eigen::VectorXd> rows(sets), dual_rows(sets);
        std::vector<Eigen::VectorXd> own(sets, Eigen::VectorXd(n - s));
        const auto decode = [&](std::size_t i) {
            code.decoding_row(cases.survivors[i], std::span(own[i].data(), static_cast<std::size_t>(n - s)));
        };
        const auto mean_seconds = [](std::size_t first, std::size_t last, auto&& work) {
            return seconds_of([&] {
                       for (std::size_t i = first; i < last; ++i) work(i);
                   }) /
                   static_cast<double>(last - first);
        };
        qr.push_back(mean_seconds(0, sets, [&](std::size_t i) { rows[i] = solve_by_qr(all, cases.survivors[i]); }));
        lu.push_back(
            mean_seconds(0, sets, [&](std::size_t i) { dual_rows[i] = dual.row(cases.lost[i], cases.survivors[i]); }));
        decode(0);  // a code allocates its table of rows at the first request
        cold.push_back(mean_seconds(1, sets, decode));
        for (std::size_t i = 0; i < sets; ++i) {
            require_ones(all, cases.survivors[i], rows[i], "Eigen's QR");
            require_ones(all, cases.survivors[i], dual_rows[i], "Eigen's LU");
            require_ones(all, cases.survivors[i], own[i], "rill");
            own[i].setZero();
        }
        cached.push_back(mean_seconds(0, repeats, [&](std::size_t i) { decode(i % 4); }));
        for (std::size_t i = 0; i < 4; ++i) require_ones(all, cases.survivors[i], own[i], "rill, again");
    }
    std::printf("{");
    print("qr", qr, ", ");
    print("lu", lu, ", ");
    print("cold", cold, ", ");
    print("cached", cached, "}\n");
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 5) throw std::invalid_argument("usage: bench_gradient_code_rows mds|random N S SAMPLES");
    run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
} catch (const std::exception& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return 1;
}
