#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/gradient_code/amplification.hpp>
#include <rill/gradient_code/any_code.hpp>
#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/gradient_code/cyclic_repetition.hpp>
#include <rill/gradient_code/fractional_repetition.hpp>
#include <rill/gradient_code/repetition_groups.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace gradient_code {

/// A code, and why it was chosen.
struct code_choice {
    any_code code;
    const char* policy;                  ///< the name of the policy that made it
    double load;                         ///< the largest part of the data that a worker computes on
    amplification_report amplification;  ///< of the errors of its messages
    std::string reason;                  ///< one text: the policy, the load and what decided
};

/// The precision of the messages, and the error that decoding may add.
struct code_needs {
    double roundoff;   ///< relative rounding error of a value in a message
    double tolerance;  ///< bound on the error of the decoded gradient, relative to Σ‖gradient of a partition‖
};

/// Returns the needs of an element type: tolerance 1e-5 for float and 1e-7 for double. Integer types are refused.
inline code_needs needs_of(element_type type) {
    RILL_EXPECTS(type == element_type::float32 || type == element_type::float64,
                 "gradient code: decoding coefficients are real numbers; use float or double");
    return type == element_type::float64 ? code_needs{0x1p-53, 1e-7} : code_needs{0x1p-24, 1e-5};
}

namespace detail {

template <class Code>
double load_of(const Code& code) {
    std::size_t most = 0;
    for (int worker = 0; worker < code.workers(); ++worker) most = std::max(most, code.partitions_of(worker).size());
    return static_cast<double>(most) / code.partitions();
}

inline std::string short_number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

inline std::string describe(const char* policy, double load, const amplification_report& report) {
    return std::string(policy) + ": load " + short_number(load) + ", errors grow at worst " +
           short_number(report.worst) + "-fold" +
           (report.is_exact ? "" : " in the " + std::to_string(report.sets) + " sets sampled");
}

inline code_choice chosen(any_code code, const char* policy, const amplification_report& report,
                          const std::string& why) {
    const double load = load_of(code);
    return {std::move(code), policy, load, report, describe(policy, load, report) + "; " + why};
}

/// Measures codes of the least load one after the other, and remembers why it refused earlier ones.
class code_search {
  public:
    code_search(int workers, int stragglers, code_needs needs)
        : workers_(workers), stragglers_(stragglers), bearable_(needs.tolerance / (2 * needs.roundoff)) {}

    template <class Policy>
    std::optional<code_choice> offer(const Policy& policy, double load_of_groups) {
        dual_code code = policy.bind(workers_, stragglers_);
        const amplification_report report = amplification(code, {.samples = 300});
        if (report.worst <= (report.is_exact ? bearable_ : bearable_ / 100))
            return chosen(std::move(code), Policy::name, report,
                          findings() + "; groups have load " + short_number(load_of_groups));
        refused_ += "; not " + describe(Policy::name, load_of(code), report);
        return std::nullopt;
    }
    std::string findings() const { return short_number(bearable_) + "-fold is bearable" + refused_; }

  private:
    int workers_, stragglers_;
    double bearable_;
    std::string refused_;
};

}  // namespace detail

/// Chooses a code for n workers and s stragglers.
///
/// It takes the first that fits: `fractional_repetition` if s+1 divides n; `repetition_groups` if their load is within
/// 5 % of the least (neither amplifies errors); `cyclic_mds`, then `cyclic_repetition`, if 2 · roundoff · worst
/// amplification is at most the tolerance, or a hundredth of it if not all sets were evaluated; else
/// `repetition_groups`.
///
/// Cost: up to 2·20,000 decoding rows; if a code has more than 20,000 sets of survivors, at most 2·(300 + n).
inline code_choice default_code(int workers, int stragglers, code_needs needs) {
    RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                 "gradient code: stragglers are at least 0 and fewer than the workers");
    if (fractional_repetition::exists(workers, stragglers))
        return detail::chosen(fractional_repetition{}.bind(workers, stragglers), fractional_repetition::name, {},
                              std::to_string(stragglers + 1) + " divides " + std::to_string(workers) +
                                  ", so nothing has less load or less error");
    const group_code groups = repetition_groups{}.bind(workers, stragglers);
    const double load = detail::load_of(groups), least = (stragglers + 1.0) / workers;
    if (load <= 1.05 * least)
        return detail::chosen(groups, repetition_groups::name, {},
                              "the least load is " + detail::short_number(least) + ", hardly less");
    detail::code_search search(workers, stragglers, needs);
    if (std::optional<code_choice> mds = search.offer(cyclic_mds{}, load)) return *std::move(mds);
    if (std::optional<code_choice> random = search.offer(cyclic_repetition{}, load)) return *std::move(random);
    return detail::chosen(groups, repetition_groups::name, {}, search.findings());
}

/// Chooses a code for messages of element type `type`, with the tolerance that `needs_of(type)` gives.
inline code_choice default_code(int workers, int stragglers, element_type type) {
    return default_code(workers, stragglers, needs_of(type));
}

}}}  // namespace rill::RILL_ABI::gradient_code
