#pragma once

#include <rill/coding/dual_code.hpp>
#include <rill/coding/group_code.hpp>
#include <rill/concept/gradient_code.hpp>

#include <span>
#include <utility>
#include <variant>

namespace rill::inline RILL_ABI::codes {

/// Any of the library's codes, for choices that are made at run time.
class any_code {
  public:
    any_code(group_code code) : code_(std::move(code)) {}
    any_code(dual_code code) : code_(std::move(code)) {}

    int workers() const {
        return std::visit([](const auto& code) { return code.workers(); }, code_);
    }
    int partitions() const {
        return std::visit([](const auto& code) { return code.partitions(); }, code_);
    }
    int stragglers() const {
        return std::visit([](const auto& code) { return code.stragglers(); }, code_);
    }
    std::span<const int> partitions_of(int worker) const {
        return std::visit([=](const auto& code) { return code.partitions_of(worker); }, code_);
    }
    std::span<const double> coefficients_of(int worker) const {
        return std::visit([=](const auto& code) { return code.coefficients_of(worker); }, code_);
    }
    bool is_decodable(std::span<const int> survivors) const {
        return std::visit([=](const auto& code) { return code.is_decodable(survivors); }, code_);
    }
    void decoding_row(std::span<const int> survivors, std::span<double> row) const {
        std::visit([=](const auto& code) { code.decoding_row(survivors, row); }, code_);
    }
    double approximate_row(std::span<const int> survivors, std::span<double> row) const {
        return std::visit([=](const auto& code) { return code.approximate_row(survivors, row); }, code_);
    }

  private:
    std::variant<group_code, dual_code> code_;
};

static_assert(GradientCode<any_code>);

}  // namespace rill::inline RILL_ABI::codes
