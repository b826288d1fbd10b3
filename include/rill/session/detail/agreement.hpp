#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// How an attempt ended on one rank.
enum class outcome : std::uint32_t { done = 1, failed = 2, left = 3 };

/// What all ranks agree on after an attempt.
struct verdict {
    bool is_done = false;        ///< all ranks that have answered have completed the attempt
    std::vector<rank_t> gone{};  ///< ranks without which it is repeated, ascending; empty if it is done

    /// The verdict as it travels: the ranks stand behind the last colon, as many as fit. The next verdict names the
    /// others.
    std::string text() const {
        constexpr std::size_t most = 800;  // no transport shortens a notice below that
        std::string all = is_done ? "survivors: done:" : "survivors: to be repeated without:";
        for (const rank_t rank : gone)
            if (all.size() < most) all += ' ' + std::to_string(rank);
        return all;
    }
    static verdict read(const std::string& text) {
        verdict told{.is_done = text.compare(0, 16, "survivors: done:") == 0};
        for (std::size_t at = text.rfind(':') + 1; at < text.size();) {
            rank_t rank = 0;
            for (++at; at < text.size() && text[at] != ' '; ++at) rank = 10 * rank + (text[at] - '0');
            told.gone.push_back(rank);
        }
        return told;
    }
};

/// One agreement among ranks of which some may have died, and others may die meanwhile.
///
/// Each rank says how its attempt ended and asks all others. A rank that hears "done" from everybody needs no more:
/// then nobody can have heard anything else. Any other rank proposes a verdict as the abort notice of the agreement's
/// context. The first proposal counts: every transport makes it the same for all ranks.
template <Transport Net>
class agreement {
  public:
    /// `session` and `number` give the context: they are equal on all ranks, and the pair is never used again.
    agreement(Net& net, std::uint64_t session, std::uint64_t number)
        : net_(&net), context_(mix64(session, number)), number_(number) {}
    agreement(const agreement&) = delete;
    agreement& operator=(const agreement&) = delete;
    ~agreement() { net_->close(context_); }

    /// Announces how this rank's attempt ended. Others can ask for it until long after this object has ended.
    void say(outcome own) {
        net_->announce(context_, {.number = asked,
                                  .kind = operation::handshake,
                                  .dimension = number_,
                                  .options = {.hashes = {static_cast<std::uint32_t>(own)}}});
    }

    /// Says that this rank leaves, and proposes to go on without it. So the others need no answer of a rank that may
    /// have ended by then.
    void leave() {
        say(outcome::left);
        try {
            propose({.gone = {net_->rank()}});
        } catch (const error&) {  // everything has ended
        }
    }

    /// Returns the verdict of all ranks. A rank that has said nothing when `timeout` is over counts as dead.
    verdict reach(std::span<const rank_t> members, duration timeout) {
        try {
            const std::optional<verdict> heard = hear(members, timeout);
            return heard ? propose(*heard) : verdict{.is_done = true};
        } catch (const error& ended) {
            if (ended.notice().context != context_) throw;
            return verdict::read(ended.notice().reason);
        }
    }

  private:
    static constexpr std::uint64_t asked = 1;  ///< the number of the only call

    /// Asks all members. Returns nothing if all have said that they are done.
    std::optional<verdict> hear(std::span<const rank_t> members, duration timeout) {
        const duration least = timeout / 16;  // for the answer of the rank that is asked last
        const time_point end = net_->now() + timeout;
        verdict heard{.is_done = true};
        bool is_unanimous = true;
        for (const rank_t member : members) {
            const auto said = net_->inquire(member, context_, asked, std::max(end, net_->now() + least));
            const bool is_done = said && outcome_of(*said) == outcome::done;
            is_unanimous &= is_done;
            heard.is_done &= is_done || !said;
            if (!said || outcome_of(*said) == outcome::left) heard.gone.push_back(member);
        }
        if (is_unanimous) return std::nullopt;
        if (heard.is_done) heard.gone.clear();
        return heard;
    }

    /// A rank whose body has returned has left.
    static outcome outcome_of(const call_signature& said) {
        return said.kind == operation::departure ? outcome::left : static_cast<outcome>(said.options.hashes[0]);
    }

    /// The verdict that counts. Throws what has ended everything.
    verdict propose(const verdict& heard) {
        const abort_notice first = net_->abort({.context = context_, .operation = asked, .reason = heard.text()});
        if (first.context != context_) throw_error(first);
        return verdict::read(first.reason);
    }

    Net* net_;
    std::uint64_t context_;
    std::uint64_t number_;
};

}}}  // namespace rill::RILL_ABI::detail
