#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/printable.hpp>
#include <rill/transport/fault_plan.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The name of a kind of fault in text, and the values that always follow it.
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
    {fault::what::slow, "slow", true, false},   {fault::what::start, "start", false, false},
};
inline const fault_word& word_of(fault::what kind) { return fault_words[static_cast<std::size_t>(kind)]; }

struct time_unit {
    std::string_view name;
    std::int64_t ns;
};
inline constexpr time_unit time_units[] = {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}};

/// Prints the shortest decimal that reads back as the same number.
inline std::string shortest(double value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}
inline std::string spelled(rank_t rank) { return rank == any_rank ? "*" : std::to_string(rank); }
/// Prints a time in the largest unit of which it is a whole number.
inline std::string spelled(duration time) {
    for (const time_unit& unit : time_units)
        if (time.ns % unit.ns == 0) return std::to_string(time.ns / unit.ns) + std::string(unit.name);
    return {};
}

/// Reads faults one after the other; its errors name line and column.
class fault_reader {
  public:
    explicit fault_reader(std::string_view text) : text_(text) {}

    /// Skips blanks and separators; true when text is left.
    bool begins_another() {
        while (at_ < text_.size() && (is_blank() || is_separator())) ++at_;
        return at_ < text_.size();
    }
    /// Requires a separator or the end of the text here.
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
        for (unsigned given = 0; !at_end();) {
            const std::size_t begin = at_;
            const unsigned clause = read_clause(f);
            if (clause == 0) break;
            if ((given & clause) != 0) refuse_from(begin, "each of 'on', 'rank', 'at' and 'after' once");
            given |= clause;
        }
        if (!f.is_of_messages() && f.from == any_rank && f.kind != fault::what::slow) refuse("'rank' and a number");
        return f;
    }

    bool takes(std::string_view word) {
        skip_blanks();
        const std::string_view rest = text_.substr(at_);
        if (rest.substr(0, word.size()) != word) return false;
        if (word.size() < rest.size() && is_letter(word.back()) && is_of_word(rest[word.size()])) return false;
        at_ += word.size();
        return true;
    }

    std::uint64_t number() { return whole<std::uint64_t>("a whole number"); }

    [[noreturn]] void refuse(const std::string& expected) {
        skip_blanks();
        const std::string_view before = text_.substr(0, at_);
        const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
        const auto line = 1 + std::count(before.begin(), before.end(), '\n');
        const std::string_view rest = text_.substr(at_, text_.find_first_of(";\n", at_) - at_);
        throw std::runtime_error("rill: fault plan, line " + std::to_string(line) + ", column " +
                                 std::to_string(at_ - line_begin + 1) + ": expected " + expected +
                                 (rest.empty() ? std::string(", but it ends") : ", not '" + printable(rest) + "'"));
    }

  private:
    static bool is_letter(char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '_'; }
    static bool is_of_word(char c) { return is_letter(c) || ('0' <= c && c <= '9'); }
    bool is_blank() const { return text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r'; }
    bool is_separator() const { return text_[at_] == ';' || text_[at_] == '\n'; }
    void skip_blanks() {
        while (at_ < text_.size() && is_blank()) ++at_;
    }
    bool at_end() {
        skip_blanks();
        return at_ == text_.size() || is_separator();
    }

    /// Reads one clause into `f` and returns the bit of its kind; 0 where there is no clause.
    unsigned read_clause(fault& f) {
        const std::size_t begin = (skip_blanks(), at_);
        if (takes("on")) {
            if (!f.is_of_messages()) refuse_from(begin, "'rank' and a number");
            ends_of(f);
            return 1;
        }
        if (takes("rank")) {
            if (f.is_of_messages()) refuse_from(begin, "'on' and two ranks");
            f.from = rank();
            return 1;
        }
        if (takes("at")) {
            f.begins = time();
            return 2;
        }
        if (!takes("after")) return 0;
        f.skipped = number();
        return 4;
    }

    fault named() {
        for (const fault_word& word : fault_words)
            if (takes(word.name)) return {.kind = word.kind};
        refuse("a fault (lose, duplicate, delay, reorder, cut, heal, kill, start, restart, slow) or 'seed'");
    }

    template <class Number>
    Number whole(const char* what) {
        skip_blanks();
        if (at_ < text_.size() && text_[at_] == '-') refuse(what);
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
        if (error != std::errc{} || !(value >= 0) || std::signbit(value) || !std::isfinite(value) ||
            (!is_factor && value > 1))
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

    [[noreturn]] void refuse_from(std::size_t begin, const std::string& expected) {
        at_ = begin;
        refuse(expected);
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}}}  // namespace rill::RILL_ABI::detail
