// rill 0.1.0: <rill/transport/fault_plan_text.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRANSPORT_FAULT_PLAN_TEXT_HPP
#define RILL_SINGLE_TRANSPORT_FAULT_PLAN_TEXT_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/transport/fault_plan_text.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/transport/fault_plan_text.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#ifndef RILL_SINGLE_TRANSPORT_FAULT_PLAN_HPP
#define RILL_SINGLE_TRANSPORT_FAULT_PLAN_HPP

// ===== rill/transport/fault_plan.hpp

namespace rill::inline RILL_ABI {

/// Any rank, where a fault asks for one.
inline constexpr rank_t any_rank = -2;

/// One thing that goes wrong, or right again, in a network. Faults are of the messages between ranks: abort notices and
/// what ranks say of the calls that they have entered get through all but a killed rank.
struct fault {
    enum class what : std::uint8_t {
        loss,       ///< messages from `from` to `to` are lost, each with the probability `amount`
        duplicate,  ///< they arrive twice, each with the probability `amount`
        delay,      ///< they take up to `longest` longer, uniformly; a link still keeps their order
        reorder,    ///< each waits, with the probability `amount`, until one of another sender has overtaken it
        cut,        ///< the link from `from` to `to` loses everything
        heal,       ///< it works again
        kill,       ///< `from` ends without a word: see `rank_killed`
        restart,    ///< `from`, once killed, begins anew, `begins` after its end
        slow        ///< computing takes `from` `amount` times as long
    };

    what kind = what::loss;
    rank_t from = any_rank;
    rank_t to = any_rank;
    bool both_ways = false;     ///< and from `to` to `from`
    double amount = 0;          ///< a probability, or a factor
    duration longest{};         ///< of a delay; how long a message waits at most to be overtaken
    duration begins{};          ///< not before this time since the start of the run
    std::uint64_t skipped = 0;  ///< and not before so many messages: on the link; posted by the rank in this life

    /// The same at or after a time.
    constexpr fault at(duration time) const { return with(&fault::begins, time); }
    /// The same after so many messages of the link, in each direction; of `kill` and `slow`, posted by the rank.
    constexpr fault after(std::uint64_t messages) const { return with(&fault::skipped, messages); }
    /// The same between these two ranks alone, in this direction.
    constexpr fault on(rank_t source, rank_t receiver) const {
        return with(&fault::from, source).with(&fault::to, receiver);
    }
    /// The same between these two ranks alone, in both directions.
    constexpr fault between(rank_t one, rank_t other) const { return on(one, other).with(&fault::both_ways, true); }

    /// Whether it is of messages, rather than of a rank.
    constexpr bool is_of_messages() const { return kind < what::kill; }
    constexpr bool is_of_link(rank_t source, rank_t receiver) const {
        return leads(source, receiver) || (both_ways && leads(receiver, source));
    }
    /// At the `number`-th message from 1.
    constexpr bool has_begun(duration now, std::uint64_t number) const { return now >= begins && number > skipped; }

    friend bool operator==(const fault&, const fault&) = default;

  private:
    constexpr bool leads(rank_t one, rank_t other) const {
        return (from == any_rank || from == one) && (to == any_rank || to == other);
    }
    template <class T>
    constexpr fault with(T fault::*member, T value) const {
        fault changed = *this;
        changed.*member = value;
        return changed;
    }
};

/// The faults that a plan is made of.
namespace faults {

/// Each message is lost with this probability.
constexpr fault lose(double probability) { return {.kind = fault::what::loss, .amount = probability}; }
/// Each message arrives twice with this probability.
constexpr fault duplicate(double probability) { return {.kind = fault::what::duplicate, .amount = probability}; }
/// Each message takes longer, uniformly up to this.
constexpr fault delay_up_to(duration longest) { return {.kind = fault::what::delay, .longest = longest}; }
/// Each message waits with this probability until one of another sender has overtaken it, at most so long.
constexpr fault reorder(double probability, duration longest) {
    return {.kind = fault::what::reorder, .amount = probability, .longest = longest};
}
/// A directed link loses everything, until it is healed.
constexpr fault cut(rank_t from, rank_t to) { return {.kind = fault::what::cut, .from = from, .to = to}; }
/// Nothing gets through between two ranks, until it is healed.
constexpr fault cut_between(rank_t one, rank_t other) { return cut(one, other).between(one, other); }
/// A link that was cut works again.
constexpr fault heal(rank_t from, rank_t to) { return {.kind = fault::what::heal, .from = from, .to = to}; }
/// Both links between two ranks work again.
constexpr fault heal_between(rank_t one, rank_t other) { return heal(one, other).between(one, other); }
/// A rank ends without a word.
constexpr fault kill(rank_t rank) { return {.kind = fault::what::kill, .from = rank}; }
/// A killed rank begins anew, as long after its end as `at` says.
constexpr fault restart(rank_t rank) { return {.kind = fault::what::restart, .from = rank}; }
/// Computing takes a rank `factor` times as long.
constexpr fault slow(rank_t rank, double factor) { return {.kind = fault::what::slow, .from = rank, .amount = factor}; }

}  // namespace faults

/// What goes wrong in a run, in the order of the list: of a cut and a heal of one link, the later one that has begun
/// counts. A rank's first kill ends its first life, its second the life after its first restart, and so on. The same
/// plan in the same network makes the same run. `to_string` prints it, `parse_fault_plan` reads that.
struct fault_plan {
    std::vector<fault> faults;
    std::uint64_t seed = 0;  ///< of everything that has a probability

    bool empty() const { return faults.empty(); }
    friend bool operator==(const fault_plan&, const fault_plan&) = default;
};

/// Leaves the body of a rank whose end is planned, from its next call of the transport. Not derived from anything, so
/// that a body that handles errors does not take it for one; who catches it with `...` gets it again at the next call.
struct rank_killed {
    rank_t rank = no_rank;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_FAULT_PLAN_HPP

// ===== rill/transport/detail/fault_words.hpp

namespace rill::inline RILL_ABI::detail {

/// How a kind of fault is called in text, and what is always said of it.
struct fault_word {
    fault::what kind;
    std::string_view name;
    bool has_amount;
    bool has_longest;
};
inline constexpr fault_word fault_words[] = {
    {fault::what::loss, "lose", true, false},   {fault::what::duplicate, "duplicate", true, false},
    {fault::what::delay, "delay", false, true}, {fault::what::reorder, "reorder", true, true},
    {fault::what::cut, "cut", false, false},    {fault::what::heal, "heal", false, false},
    {fault::what::kill, "kill", false, false},  {fault::what::restart, "restart", false, false},
    {fault::what::slow, "slow", true, false},
};
inline const fault_word& word_of(fault::what kind) { return fault_words[static_cast<std::size_t>(kind)]; }

struct time_unit {
    std::string_view name;
    std::int64_t ns;
};
inline constexpr time_unit time_units[] = {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}};

/// The shortest decimal that reads as the same number.
inline std::string shortest(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
inline std::string spelled(rank_t rank) { return rank == any_rank ? "*" : std::to_string(rank); }
/// In the largest unit of which it is a whole number.
inline std::string spelled(duration time) {
    for (const time_unit& unit : time_units)
        if (time.ns % unit.ns == 0) return std::to_string(time.ns / unit.ns) + std::string(unit.name);
    return {};
}

/// Reads faults one after the other, and says where it could not.
class fault_reader {
  public:
    explicit fault_reader(std::string_view text) : text_(text) {}

    /// Whether something is left, besides separators.
    bool begins_another() {
        while (at_ < text_.size() && (is_blank() || is_separator())) ++at_;
        return at_ < text_.size();
    }
    /// What was read must end here.
    void end() {
        skip_blanks();
        if (at_ < text_.size() && !is_separator())
            refuse("'on', 'rank', 'up to', 'at', 'after', or ';' before the next fault");
    }

    fault one() {
        fault f = named();
        const fault_word& word = word_of(f.kind);
        if (word.has_amount) f.amount = amount(f.kind == fault::what::slow);
        if (word.has_longest) {
            if (!takes("up to")) refuse("'up to' and a time");
            f.longest = time();
        }
        while (!at_end()) {
            if (takes("on"))
                ends_of(f);
            else if (takes("rank"))
                f.from = rank();
            else if (takes("at"))
                f.begins = time();
            else if (takes("after"))
                f.skipped = number();
            else
                break;
        }
        if (!f.is_of_messages() && f.from == any_rank && f.kind != fault::what::slow) refuse("'rank' and a number");
        return f;
    }

    bool takes(std::string_view word) {
        skip_blanks();
        const std::string_view rest = text_.substr(at_);
        if (rest.substr(0, word.size()) != word) return false;
        if (word.size() < rest.size() && is_letter(word.back()) && is_letter(rest[word.size()])) return false;
        at_ += word.size();
        return true;
    }

    std::uint64_t number() { return whole<std::uint64_t>("a whole number"); }

  private:
    static bool is_letter(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_'; }
    bool is_blank() const { return text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r'; }
    bool is_separator() const { return text_[at_] == ';' || text_[at_] == '\n'; }
    void skip_blanks() {
        while (at_ < text_.size() && is_blank()) ++at_;
    }
    bool at_end() {
        skip_blanks();
        return at_ == text_.size() || is_separator();
    }

    fault named() {
        for (const fault_word& word : fault_words)
            if (takes(word.name)) return {.kind = word.kind};
        refuse("a fault (lose, duplicate, delay, reorder, cut, heal, kill, restart, slow) or 'seed'");
    }

    template <class Number>
    Number whole(const char* what) {
        skip_blanks();
        Number value{};
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (error != std::errc{}) refuse(what);
        at_ = static_cast<std::size_t>(end - text_.data());
        return value;
    }

    double amount(bool is_factor) {
        skip_blanks();
        double value = 0;
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (error != std::errc{} || !(value >= 0) || !std::isfinite(value) || (!is_factor && value > 1))
            refuse(is_factor ? "a factor, finite and not below 0" : "a probability between 0 and 1");
        at_ = static_cast<std::size_t>(end - text_.data());
        return value;
    }

    duration time() {
        constexpr const char* wanted = "a whole number of ns, us, ms or s";
        skip_blanks();
        const std::size_t begin = at_;
        const auto count = whole<std::int64_t>(wanted);
        for (const time_unit& unit : time_units)
            if (takes(unit.name) && count >= 0 && count <= INT64_MAX / unit.ns) return duration(count * unit.ns);
        at_ = begin;
        refuse(wanted);
    }

    rank_t rank() {
        if (takes("*")) return any_rank;
        const std::size_t begin = (skip_blanks(), at_);
        const auto value = whole<rank_t>("a rank, or *");
        if (value >= 0) return value;
        at_ = begin;
        refuse("a rank, or *");
    }
    void ends_of(fault& f) {
        f.from = rank();
        f.both_ways = takes("<>");
        if (!f.both_ways && !takes(">")) refuse("'>' or '<>'");
        f.to = rank();
    }

    [[noreturn]] void refuse(const std::string& expected) {
        skip_blanks();
        const std::string_view before = text_.substr(0, at_);
        const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
        const auto line = 1 + std::count(before.begin(), before.end(), '\n');
        const std::string_view rest = text_.substr(at_, text_.find_first_of(";\n", at_) - at_);
        throw std::runtime_error("rill: fault plan, line " + std::to_string(line) + ", column " +
                                 std::to_string(at_ - line_begin + 1) + ": expected " + expected +
                                 (rest.empty() ? std::string(", but it ends") : ", not '" + std::string(rest) + "'"));
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/transport/fault_plan_text.hpp

namespace rill::inline RILL_ABI {

/// As `parse_fault_plan` reads it: `lose 0.25 on 0>1 at 3us after 8`.
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

/// A plan in one line, of which `parse_fault_plan` makes an equal one: what a failing run prints, to be run again.
inline std::string to_string(const fault_plan& plan) {
    std::string text = "seed " + std::to_string(plan.seed);
    for (const fault& f : plan.faults) text += "; " + to_string(f);
    return text;
}

/// Reads a plan: its faults, and `seed` with a number, in any order, with `;` or an end of line between them:
///
///     lose 0.25                    each message, with this probability; `on 0>1`: those from rank 0 to rank 1 alone
///     duplicate 0.1 on *>3         * is any rank, <> is both ways
///     delay up to 1ms              whole numbers of ns, us, ms or s
///     reorder 0.5 up to 1ms
///     cut on 0<>1 at 3us           from that time on
///     heal on 0<>1 after 8         after so many messages
///     kill rank 2 after 3
///     restart rank 2 at 5ms        after its end
///     slow 2.5 rank 1
///
/// Throws `std::runtime_error`, which names line and column and what was expected there.
inline fault_plan parse_fault_plan(std::string_view text) {
    fault_plan plan;
    detail::fault_reader reader(text);
    while (reader.begins_another()) {
        if (reader.takes("seed"))
            plan.seed = reader.number();
        else
            plan.faults.push_back(reader.one());
        reader.end();
    }
    return plan;
}

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_TRANSPORT_FAULT_PLAN_TEXT_HPP
