#include <rill/core/random.hpp>
#include <rill/gradient_code/amplification.hpp>
#include <rill/gradient_code/default_code.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

using rill::element_type;
using rill::gradient_code::default_code;

namespace {

/// Gradients of all partitions, messages of all workers and the decoded gradient, all in single precision.
template <class Code>
class float_run {
  public:
    static constexpr std::size_t dimension = 4;

    explicit float_run(const Code& code) : code_(code) {
        rill::random_sequence random(rill::random_key{7});
        for (int p = 0; p < code.partitions(); ++p) {
            float squares = 0;
            for (double& sum : sum_) {
                gradients_.push_back(2 * random.uniform() - 1);
                sum += static_cast<double>(gradients_.back());
                squares += gradients_.back() * gradients_.back();
            }
            lengths_ += std::sqrt(static_cast<double>(squares));
        }
        for (int worker = 0; worker < code.workers(); ++worker) {
            std::vector<float> message(dimension);
            for (std::size_t j = 0; j < code.partitions_of(worker).size(); ++j)
                for (std::size_t c = 0; c < dimension; ++c)
                    message[c] += static_cast<float>(code.coefficients_of(worker)[j]) *
                                  gradients_[static_cast<std::size_t>(code.partitions_of(worker)[j]) * dimension + c];
            messages_.push_back(message);
        }
    }

    /// ‖decoded − Σ gradients‖ / Σ ‖gradient‖
    double error(const std::vector<int>& survivors) const {
        std::vector<double> row(survivors.size());
        code_.decoding_row(survivors, row);
        float decoded[dimension] = {};
        for (std::size_t i = 0; i < survivors.size(); ++i)
            for (std::size_t c = 0; c < dimension; ++c)
                decoded[c] += static_cast<float>(row[i]) * messages_[static_cast<std::size_t>(survivors[i])][c];
        double squares = 0;
        for (std::size_t c = 0; c < dimension; ++c) {
            const double off = static_cast<double>(decoded[c]) - sum_[c];
            squares += off * off;
        }
        return std::sqrt(squares) / lengths_;
    }

  private:
    const Code& code_;
    std::vector<float> gradients_;
    double sum_[dimension] = {};
    double lengths_ = 0;
    std::vector<std::vector<float>> messages_;
};

double worst_error(int n, int s) {
    const auto code = default_code(n, s, element_type::float32).code;
    const float_run run(code);
    double worst = 0;
    std::vector<int> left;
    const auto look = [&](const std::vector<int>& lost) {
        rill::gradient_code::detail::complement(lost, n, left);
        worst = std::max(worst, run.error(left));
    };
    if (n <= 12)
        rill::gradient_code::detail::for_each_subset(n, s, look);
    else
        rill::gradient_code::detail::for_some_subsets(n, s, 1000, 3, look);
    return worst;
}

std::string policy(int n, int s, element_type type) { return default_code(n, s, type).policy; }

}  // namespace

TEST_CASE("default_code: float messages lose at most 1e-5, whichever s of up to 12 workers are lost") {
    for (int n = 1; n <= 12; ++n)
        for (int s = 0; s < n && s <= 5; ++s) {
            CAPTURE(n);
            CAPTURE(s);
            CHECK(worst_error(n, s) <= 1e-5);
        }
}

TEST_CASE("default_code: float messages lose at most 1e-5 in the large groups of CodedReduce") {
    CHECK(worst_error(84, 21) <= 1e-5);
    CHECK(worst_error(156, 39) <= 1e-5);
}

TEST_CASE("default_code: the chosen code, by size and element type") {
    CHECK(policy(12, 3, element_type::float32) == "fractional_repetition");
    CHECK(policy(12, 4, element_type::float32) == "cyclic_mds");
    CHECK(policy(11, 5, element_type::float64) == "cyclic_mds");
    CHECK(policy(84, 21, element_type::float32) == "repetition_groups");
    CHECK(policy(156, 38, element_type::float64) == "fractional_repetition");
    CHECK(policy(156, 39, element_type::float32) == "repetition_groups");
    CHECK(policy(156, 39, element_type::float64) == "cyclic_repetition");
    CHECK(policy(156, 13, element_type::float64) == "repetition_groups");
    // The bound is twice its roundoff times the sampled amplification, which is within this tolerance, but not by far.
    CHECK(std::string(
              default_code(84, 21, rill::gradient_code::code_needs{.roundoff = 0x1p-53, .tolerance = 1e-9}).policy) ==
          "repetition_groups");
    CHECK(std::string(
              default_code(12, 4, rill::gradient_code::code_needs{.roundoff = 0x1p-8, .tolerance = 0.01}).policy) ==
          "repetition_groups");
}

TEST_CASE("default_code: the choice comes with its reason") {
    const auto few = default_code(12, 4, element_type::float32);
    CHECK(few.load == doctest::Approx(5.0 / 12));
    CHECK(few.amplification.is_exact);
    CHECK(few.reason ==
          "cyclic_mds: load 0.417, errors grow at worst 37.7-fold; 83.9-fold is bearable; groups have load 0.5");
    const auto many = default_code(84, 21, element_type::float32);
    CHECK(many.load == doctest::Approx(1.0 / 3));
    CHECK(many.amplification.worst == 1);
    CHECK(many.reason.find("not cyclic_mds: load 0.262") != std::string::npos);
    CHECK(many.reason.find("sets sampled") != std::string::npos);
    CHECK(default_code(12, 3, element_type::float32).reason ==
          "fractional_repetition: load 0.333, errors grow at worst 1-fold; 4 divides 12, so nothing has less load or "
          "less "
          "error");
}

TEST_CASE("default_code: integer types and impossible sizes are refused") {
    CHECK_THROWS_WITH_AS(default_code(12, 3, element_type::int32), doctest::Contains("real numbers"),
                         rill::contract_violation);
    CHECK_THROWS_AS(default_code(12, 12, element_type::float32), rill::contract_violation);
    CHECK_THROWS_AS(default_code(12, -1, element_type::float32), rill::contract_violation);
}
