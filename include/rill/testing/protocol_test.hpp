#pragma once

#include <rill/core/config.hpp>
#include <rill/testing/exact_or_named_fault.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/testing/protocol_case.hpp>
#include <rill/testing/protocol_record.hpp>
#include <rill/testing/shrink.hpp>
#include <rill/transport/simulated.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {
/// Removes digits and dots. Two failures of one kind have the rest of their texts in common.
inline std::string without_numbers(std::string text) {
    std::erase_if(text, [](char c) { return ('0' <= c && c <= '9') || c == '.'; });
    return text;
}
}  // namespace detail

/// Plays a case in virtual time: runs `protocol(net, of, record)` on each rank, with the record of that rank. Equal
/// cases give equal records.
template <class Protocol>
run_record play(const protocol_case& of, Protocol&& protocol, const protocol_limits& limits = {}) {
    run_record seen;
    seen.same_first_notice = limits.control == simulated::control_plane::ideal;
    seen.ranks.resize(static_cast<std::size_t>(of.ranks));
    try {
        seen.report = simulated::run(of.ranks, network_of(of, limits), [&](auto& net) {
            rank_record& own = seen.ranks[static_cast<std::size_t>(net.rank())];
            protocol(net, of, own);
            own.has_ended = true;
        });
    } catch (const std::exception& e) {
        seen.ended_by = e.what();
    } catch (...) {
        seen.ended_by = "an exception that is no std::exception";
    }
    return seen;
}

/// Runs a protocol under random networks and faults and reports violations.
///
/// A report has the simplest case found that fails with the same text (numbers apart), and a line that replays it.
///
/// `protocol(net, of, record)` is the body of one rank on a `simulated::endpoint`: it computes on data of `of.size`,
/// draws what it needs from `of.key()`, makes each call through `record.attempt`, and lets no `rill::error` pass. All
/// that it does must depend on `of` alone: state that its ranks share must be made anew for each run, when rank 0
/// begins. `check(of, seen)` returns what is wrong with a run, or an empty string. Example:
///
///     testing::protocol_test test("my_sum");
///     for (testing::fault_kind kind : testing::every_fault_kind)
///         for (std::uint64_t seed = 0; seed < 100; ++seed)
///             CHECK(test.run(kind, seed, my_sum_on_one_rank) == "");
class protocol_test {
  public:
    /// `name` is unique in the program. A failing case is simplified in at most `most_reruns` runs.
    explicit protocol_test(std::string name, const protocol_limits& limits = {}, int most_reruns = 400)
        : name_(std::move(name)), limits_(limits), most_reruns_(most_reruns) {}

    /// The environment variable that names the case to replay. If it is set, nothing else is played.
    static constexpr const char* replay_variable = "RILL_REPLAY";
    static bool is_replay() { return std::getenv(replay_variable) != nullptr; }

    /// Plays the case that `draw_case(kind, seed)` draws. Returns the report of a failure, else an empty string.
    template <class Protocol, class Check = decltype(&exact_or_named_fault)>
    std::string run(fault_kind kind, std::uint64_t seed, Protocol&& protocol, Check&& check = &exact_or_named_fault) {
        return run(draw_case(kind, seed, limits_), protocol, check);
    }

    /// Plays the case `drawn`. Returns the report of a failure, else an empty string.
    template <class Protocol, class Check = decltype(&exact_or_named_fault)>
    std::string run(const protocol_case& drawn, Protocol&& protocol, Check&& check = &exact_or_named_fault) {
        const auto wrong_with = [&](const protocol_case& of) {
            last_ = play(of, protocol, limits_);
            return std::string(check(of, std::as_const(last_)));
        };
        if (is_replay()) return replayed(wrong_with);
        std::string wrong = wrong_with(drawn);
        if (wrong.empty()) return {};
        const auto fails = [&](const protocol_case& simpler) {
            return detail::without_numbers(wrong_with(simpler)) == detail::without_numbers(wrong);
        };
        const protocol_case simplest = shrink(drawn, most_reruns_, fails);
        return report(drawn, wrong) + "  simplest: " + report(simplest, wrong_with(simplest)) +
               "  replay:   " + replay_variable + "='" + name_ + ": " + to_string(simplest) + "' with this test\n";
    }

    /// The record of the case played last.
    const run_record& last() const { return last_; }
    const protocol_limits& limits() const { return limits_; }

  private:
    std::string report(const protocol_case& of, const std::string& wrong) const {
        return name_ + ": " + to_string(of) + "\n    " + wrong + "\n";
    }

    template <class WrongWith>
    std::string replayed(const WrongWith& wrong_with) {
        const std::string_view wanted = std::getenv(replay_variable);
        if (was_replayed_ || wanted.substr(0, name_.size() + 2) != name_ + ": ") return {};
        was_replayed_ = true;
        const protocol_case of = parse_protocol_case(wanted.substr(name_.size() + 2));
        const std::string wrong = wrong_with(of);
        return wrong.empty() ? wrong : report(of, wrong);
    }

    std::string name_;
    protocol_limits limits_;
    int most_reruns_;
    run_record last_{};
    bool was_replayed_ = false;
};

}}}  // namespace rill::RILL_ABI::testing
