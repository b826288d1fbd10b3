#pragma once

#include <rill/coding/amplification.hpp>
#include <rill/coding/any_code.hpp>
#include <rill/coding/cyclic_mds.hpp>
#include <rill/coding/cyclic_repetition.hpp>
#include <rill/coding/fractional_repetition.hpp>
#include <rill/coding/repetition_groups.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

namespace rill::inline RILL_ABI::codes {

/// A code, and why it was taken.
struct code_choice {
    any_code code;
    const char* policy;                  ///< the name of the policy that made it
    double load;                         ///< the largest part of the data that a worker computes on
    amplification_report amplification;  ///< of the errors of its messages
    std::string reason;                  ///< complete in itself: names the policy, the load and what decided
};

/// What the messages are, and how much may be lost in decoding.
struct code_needs {
    double roundoff;   ///< relative error of a value of a message
    double tolerance;  ///< of the decoded gradient, relative to Σ‖gradient of a partition‖
};

/// 1e-5 for float and 1e-7 for double messages; whole numbers have no codes.
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

}  // namespace detail

/// The code of least load whose amplification the messages can bear: fractional repetition where s+1 divides n; else
/// `cyclic_mds`, else `cyclic_repetition`, where roundoff · 2 · amplification stays below the tolerance, a hundredth of
/// it where sets were only sampled; else groups.
///
/// Cost: up to 2·20,000 decoding rows, at most 2·(300 + n) of them where there are more sets than that.
inline code_choice default_code(int workers, int stragglers, code_needs needs) {
    RILL_EXPECTS(0 <= stragglers && stragglers < workers,
                 "gradient code: stragglers are at least 0 and fewer than the workers");
    if (fractional_repetition::exists(workers, stragglers)) {
        any_code code(fractional_repetition{}.bind(workers, stragglers));
        return detail::chosen(std::move(code), fractional_repetition::name, {},
                              std::to_string(stragglers + 1) + " divides " + std::to_string(workers) +
                                  ", so nothing has less load or less error");
    }
    any_code groups(repetition_groups{}.bind(workers, stragglers));
    const double bearable = needs.tolerance / (2 * needs.roundoff);
    std::string refused;
    const auto fits = [&](const dual_code& code, const char* policy, const amplification_report& report) {
        if (report.worst <= (report.is_exact ? bearable : bearable / 100)) return true;
        refused += "; not " + detail::describe(policy, detail::load_of(code), report);
        return false;
    };
    const auto offer = [&](const auto& policy) -> std::pair<dual_code, amplification_report> {
        dual_code code = policy.bind(workers, stragglers);
        const amplification_report report = amplification(code, {.samples = 300});
        return {std::move(code), report};
    };
    const std::string limit = detail::short_number(bearable) + "-fold is bearable";
    if (detail::load_of(groups) * workers > stragglers + 1) {
        auto [mds, mds_report] = offer(cyclic_mds{});
        if (fits(mds, cyclic_mds::name, mds_report))
            return detail::chosen(std::move(mds), cyclic_mds::name, mds_report,
                                  limit + "; groups have load " + detail::short_number(detail::load_of(groups)));
        auto [random, random_report] = offer(cyclic_repetition{});
        if (fits(random, cyclic_repetition::name, random_report))
            return detail::chosen(std::move(random), cyclic_repetition::name, random_report, limit + refused);
    }
    return detail::chosen(std::move(groups), repetition_groups::name, {}, limit + refused);
}

/// The same for messages of a type, with the tolerance of `needs_of`.
inline code_choice default_code(int workers, int stragglers, element_type type) {
    return default_code(workers, stragglers, needs_of(type));
}

}  // namespace rill::inline RILL_ABI::codes
