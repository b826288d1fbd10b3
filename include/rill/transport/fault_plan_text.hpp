#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/fault_words.hpp>
#include <rill/transport/fault_plan.hpp>

#include <string>
#include <string_view>

namespace rill { inline namespace RILL_ABI {

/// Prints a fault in the form that `parse_fault_plan` reads, for example `lose 0.25 on 0>1 at 3us after 8`.
inline std::string to_string(const fault& f) {
    const detail::fault_word& word = detail::word_of(f.kind);
    std::string text(word.name);
    if (word.has_amount) text += ' ' + detail::shortest(f.amount);
    if (word.has_longest) text += " up to " + detail::spelled(f.longest);
    if (!f.is_of_messages() && f.to == any_rank && !f.both_ways)
        text += " rank " + detail::spelled(f.from);
    else if (f.from != any_rank || f.to != any_rank || f.both_ways)
        text += " on " + detail::spelled(f.from) + (f.both_ways ? "<>" : ">") + detail::spelled(f.to);
    if (f.begins.ns != 0) text += " at " + detail::spelled(f.begins);
    if (f.skipped != 0) text += " after " + std::to_string(f.skipped);
    return text;
}

/// Prints a plan in one line, from which `parse_fault_plan` makes an equal plan: a failing run prints it, so that it
/// can be repeated.
inline std::string to_string(const fault_plan& plan) {
    std::string text = "seed " + std::to_string(plan.seed);
    for (const fault& f : plan.faults) text += "; " + to_string(f);
    return text;
}

/// Reads a plan: faults and at most one `seed` with a number, separated by `;` or ends of lines:
///
///     lose 0.25                    each message with this probability; `on 0>1` restricts it to rank 0 to rank 1
///     duplicate 0.1 on *>3         `*` is any rank, `<>` is both ways
///     delay up to 1ms              whole numbers of ns, us, ms or s
///     reorder 0.5 up to 1ms
///     cut on 0<>1 at 3us           begins 3 us after the start of the run
///     heal on 0<>1 after 8         begins after 8 messages
///     kill rank 2 after 3
///     restart rank 2 at 5ms        5 ms after its end
///     start rank 3 at 5ms          takes a free seat 5 ms after the start of the run
///     slow 2.5 rank 1
///
/// Throws `std::runtime_error` that names the line, the column and what was expected there.
inline fault_plan parse_fault_plan(std::string_view text) {
    fault_plan plan;
    detail::fault_reader reader(text);
    for (bool has_seed = false; reader.begins_another();) {
        if (reader.takes("seed")) {
            if (has_seed) reader.refuse("one 'seed'");
            plan.seed = reader.number();
            has_seed = true;
        } else {
            plan.faults.push_back(reader.one());
        }
        reader.end();
    }
    return plan;
}

}}  // namespace rill::RILL_ABI
