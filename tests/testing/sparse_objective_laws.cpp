#include <rill/testing/sparse_objective_laws.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace rill;

namespace {

enum class fault {
    none,
    keyless_start,
    dense_form,
    other_loss,
    keeps_output,
    missing_entry,
    wrong_derivative,
    other_dense
};

/// ½ Σ (w[c] - 1)² over the coordinates of a batch, and one fault.
template <fault broken>
struct faulty_sparse_objective {
    using scalar = double;
    using batch = std::vector<std::uint32_t>;
    static constexpr std::size_t size = 9;

    static std::size_t dimension() { return size; }
    static std::span<const layer> layers() {
        static const std::vector<layer> one{{"w", {0, size}}};
        return one;
    }
    void initialise(std::span<double> parameters, random_key) const {
        for (double& each : parameters) each = broken == fault::keyless_start ? each : 0;
    }
    static double loss(std::span<const double> w, const batch& samples) {
        double sum = 0;
        for (const std::uint32_t c : samples) sum += 0.5 * (w[c] - 1) * (w[c] - 1);
        return sum;
    }
    double gradient(std::span<const double> w, const batch& samples, stream<double>& output) const {
        if (broken != fault::keeps_output || output.dimension() == 0) output.clear({0, size});
        for (const std::uint32_t c : samples) {
            if (broken == fault::missing_entry && c == samples.back()) break;
            if (broken != fault::keeps_output || output.count() < samples.size())
                output.push_back(c, w[c] - (broken == fault::wrong_derivative ? 2 : 1));
        }
        if (broken == fault::dense_form) output.make_dense({0, size});
        return loss(w, samples) + (broken == fault::other_loss ? 1 : 0);
    }
    double gradient(std::span<const double> w, const batch& samples, std::span<double> output) const {
        for (double& each : output) each = 0;
        for (const std::uint32_t c : samples) output[c] = w[c] - 1 + (broken == fault::other_dense ? 1e-15 : 0);
        return loss(w, samples);
    }
};

template <fault broken>
std::string first_broken_law() {
    faulty_sparse_objective<broken> model;
    std::string first;
    testing::for_each_sparse_objective_law(model, {1, 4, 8}, {0, 4}, [&](const char* name, const auto& outcome) {
        if (!outcome.held && first.empty()) first = name;
    });
    return first;
}

}  // namespace

TEST_CASE("sparse_objective_laws: each promise that is broken is told") {
    CHECK(first_broken_law<fault::none>().empty());
    CHECK(first_broken_law<fault::keyless_start>() == "the first parameters depend on the key alone");
    CHECK(first_broken_law<fault::dense_form>() == "the gradient is a sparse stream whose entries ascend");
    CHECK(first_broken_law<fault::other_loss>() == "the gradient returns the loss");
    CHECK(first_broken_law<fault::keeps_output>() == "the gradient depends on parameters and batch alone");
    CHECK(first_broken_law<fault::missing_entry>() == "the entries are the derivatives that are not always 0");
    CHECK(first_broken_law<fault::wrong_derivative>() == "the entries are the derivatives that are not always 0");
    CHECK(first_broken_law<fault::other_dense>() == "the dense gradient is the same");
}
