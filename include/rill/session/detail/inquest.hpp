#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/session/detail/long_wait.hpp>
#include <rill/session/detail/scene.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The ranks of a transport, to be asked what they have announced: one type for all transports.
class witnesses {
  public:
    template <Transport Net>
    explicit witnesses(Net& net)
        : net_(&net),
          self_(std::as_const(net).rank()),
          size_(std::as_const(net).size()),
          ask_(&ask_by<Net>),
          now_(&now_by<Net>) {}

    rank_t self() const { return self_; }
    int size() const { return size_; }
    time_point now() const { return now_(net_); }
    /// See `Transport::inquire`.
    std::optional<call_signature> ask(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) const {
        return ask_(net_, peer, context, number, until);
    }

  private:
    template <class Net>
    static std::optional<call_signature> ask_by(void* net, rank_t peer, std::uint64_t context, std::uint64_t number,
                                                deadline until) {
        return static_cast<Net*>(net)->inquire(peer, context, number, until);
    }
    template <class Net>
    static time_point now_by(const void* net) {
        return static_cast<const Net*>(net)->now();
    }

    void* net_;
    rank_t self_;
    int size_;
    std::optional<call_signature> (*ask_)(void*, rank_t, std::uint64_t, std::uint64_t, deadline);
    time_point (*now_)(const void*);
};

/// Where a standstill begins: `waiter` waits for `peer`, and nothing explains why `peer` does not do its part.
struct standstill {
    rank_t waiter;
    rank_t peer;

    [[gnu::cold, gnu::noinline]] std::string text(duration timeout) const {
        return text_of({"rank ", waiter, " waited ", timeout.seconds(), " s for rank ", peer});
    }
};

/// Whether a rank has answered that its body has returned.
inline bool has_departed(const std::optional<call_signature>& said) {
    return said && said->kind == operation::departure;
}

/// Follows the long waits that ranks have announced: the rank that is waited for may itself wait, for something that
/// was due earlier. `waits`, `number`: where they are announced; `last`: the wait of `waiter`.
[[gnu::cold, gnu::noinline]] inline standstill origin_of(const witnesses& all, std::uint64_t waits,
                                                         std::uint64_t number, rank_t waiter, long_wait last,
                                                         duration patience) {
    const time_point until = all.now() + patience;
    for (int passed = 0; passed < all.size(); ++passed) {
        const auto said = all.ask(last.peer, waits, number, until);
        if (!said || has_departed(said) || said->number != number) break;
        const long_wait of_peer = long_wait::from(*said);
        if (!of_peer.explains(last)) break;
        waiter = last.peer;
        last = of_peer;
    }
    return {waiter, last.peer};
}

/// Throws what has ended `context`, as a failure of context `own`, if `rank` tells it or it comes within `patience`.
/// For what stands on that context, for instance because the ranks have agreed there: if that has failed, some have
/// never begun, and no other reason counts. `from`: the first operation of that context whose failure counts.
[[gnu::cold, gnu::noinline]] inline void require_ground(const witnesses& all, std::uint64_t context, rank_t rank,
                                                        duration patience, std::uint64_t own, std::uint64_t from = 0) {
    try {
        all.ask(rank, context, ~std::uint64_t{0}, all.now() + patience);
    } catch (const error& thrown) {
        abort_notice failed = thrown.notice();
        if (failed.context == context && failed.operation < from) return;
        if (failed.context == context) {
            failed.context = own;
            failed.first_tag = 0;  // it ends all that stands on that context
        }
        throw_error(failed);
    }
}

/// Finds which rank is to blame for a call that makes no progress, and throws. Asks every rank what it has entered.
class inquest {
  public:
    /// `where`: in this rank's part of the call; `waits`: the context in which long waits are announced; `signature`:
    /// the call as this rank made it; `names`: of its options; `timeout`: of the call.
    inquest(const witnesses& all, scene where, std::uint64_t waits, const call_signature& signature,
            const option_names& names, duration timeout)
        : all_(all),
          where_(std::move(where)),
          waits_(waits),
          signature_(&signature),
          names_(&names),
          timeout_(timeout) {}

    /// `source` sent a frame of another call: blames the rank whose call differs from the others'.
    [[noreturn, gnu::cold, gnu::noinline]] void disagree(rank_t source) const {
        blame_odd_one(entrants(false));
        where_.fail(failure::mismatch, source, no_rank, {"rank ", source, " sent a frame of another call"});
    }

    /// The timeout has passed and this rank still waits. Blames a rank that made another call or has not come; else the
    /// rank where the standstill begins.
    [[noreturn, gnu::cold, gnu::noinline]] void nothing_came(const long_wait& own) const {
        blame_odd_one(entrants(true));
        const standstill origin = origin_of(all_, waits_, signature_->number, all_.self(), own, timeout_ / 8);
        where_.fail(
            failure::timeout, origin.peer, origin.waiter,
            {origin.text(timeout_), ", which has entered the operation: slow, or the link between them is cut"});
    }

    /// Throws `peer_failure` if the body of `peer` is known to have returned without entering the operation. Does not
    /// wait for the peer's answer.
    [[gnu::cold, gnu::noinline]] void require_presence(rank_t peer) const {
        if (has_departed(all_.ask(peer, where_.context, signature_->number, deadline::immediate))) departed(peer);
    }

  private:
    [[noreturn, gnu::cold, gnu::noinline]] void departed(rank_t peer) const {
        where_.fail(failure::exception, peer, no_rank,
                    {"rank ", peer, " has returned from its body without entering the operation"});
    }

    /// What a rank said of its wait in the operation before. Where no answer has come, the wait is over.
    long_wait still_waits(rank_t rank) const {
        if (signature_->number == 0) return {};
        const auto said = all_.ask(rank, waits_, signature_->number - 1, deadline::immediate);
        if (!said || has_departed(said) || said->number != signature_->number - 1) return {};
        return long_wait::from(*said);
    }

    /// A rank that has not come may still wait in the operation before, which this rank has completed: then the
    /// standstill begins there.
    [[noreturn, gnu::cold, gnu::noinline]] void not_come(rank_t rank) const {
        if (const long_wait its = still_waits(rank); its.peer != no_rank) {
            const standstill origin = origin_of(all_, waits_, signature_->number - 1, rank, its, timeout_ / 8);
            where_.fail(failure::timeout, origin.peer, origin.waiter,
                        {origin.text(timeout_), " in the operation before: slow, or the link between them is cut"});
        }
        where_.fail(failure::timeout, rank, all_.self(),
                    {"rank ", rank, " has not entered the operation within ", timeout_.seconds(), " s"});
    }

    using answers = plain_vector<std::optional<call_signature>>;

    /// What each rank has entered, by rank: this call as that rank made it, or a later one if it left this one out;
    /// nothing where it has not come. With `all_must_have_come`, that is an error. Whoever lacks several answers may be
    /// cut off from a rank that has come, and lets those speak first that lack only one.
    [[gnu::cold, gnu::noinline]] answers entrants(bool all_must_have_come) const {
        time_point until = all_.now() + timeout_ / 8;
        for (rank_t r = 0; r < all_.size(); ++r) {  // the questions are under way
            all_.ask(r, where_.context, signature_->number, deadline::immediate);
            if (all_must_have_come) still_waits(r);
        }
        answers entered(static_cast<std::size_t>(all_.size()));
        plain_vector<rank_t> absent;
        const auto hear = [&](rank_t r) {
            const auto said = all_.ask(r, where_.context, signature_->number, until);
            if (has_departed(said) && all_must_have_come) departed(r);
            if (!has_departed(said)) entered[static_cast<std::size_t>(r)] = said;
            return said.has_value();
        };
        for (rank_t r = 0; r < all_.size(); ++r)
            if (!hear(r)) absent.add(r);
        if (!all_must_have_come) return entered;
        if (absent.size() > 1) until = all_.now() + timeout_ / 8;
        for (const rank_t r : absent)
            if (absent.size() == 1 || !hear(r)) not_come(r);
        return entered;
    }

    /// Throws `mismatch` unless all calls are equal. The culprit is the lowest rank outside the largest set of equal
    /// calls (of equally large sets: the one with the lowest rank).
    [[gnu::cold, gnu::noinline]] void blame_odd_one(const answers& entered) const {
        std::size_t most = 0;
        call_signature usual{};
        for (const auto& each : entered) {
            if (!each) continue;
            std::size_t equal = 0;
            for (const auto& other : entered) equal += other == each ? 1U : 0U;
            if (equal <= most) continue;
            most = equal;
            usual = *each;
        }
        for (rank_t r = 0; r < all_.size(); ++r)
            if (const auto& call = entered[static_cast<std::size_t>(r)]; call && *call != usual)
                where_.fail(failure::mismatch, r, no_rank, {"rank ", r, " ", difference(*call, usual)});
    }

    static std::string index_width(const call_signature& call) {
        return text_of({call.index_bytes, call.index_bytes == 0 ? " (dense)" : " (sparse)"});
    }
    [[gnu::cold, gnu::noinline]] std::string difference(const call_signature& odd, const call_signature& usual) const {
        const auto differs = [](const char* what, text_piece a, text_piece b) {
            return text_of({"calls with ", what, " ", a, " where others have ", b});
        };
        if (odd.number != usual.number) return differs("operation number", odd.number, usual.number);
        if (odd.kind != usual.kind) return text_of({"calls ", name(odd.kind), " where others call ", name(usual.kind)});
        if (odd.element != usual.element) return differs("element type", name(odd.element), name(usual.element));
        if (const std::size_t i = names_->decides_shape;
            i >= odd.options.hashes.size() || odd.options.hashes[i] == usual.options.hashes[i]) {
            if (odd.index_bytes != usual.index_bytes)
                return differs("index width", index_width(odd), index_width(usual));
            if (odd.dimension != usual.dimension) return differs("dimension", odd.dimension, usual.dimension);
        }
        return text_of({"calls with ", difference(odd.options, usual.options), " than the others"});
    }

    [[gnu::cold, gnu::noinline]] std::string difference(const call_options& odd, const call_options& usual) const {
        if (odd.set != usual.set) return "options of another kind";
        std::string names;
        for (std::size_t i = 0; i < odd.hashes.size(); ++i)
            if (odd.hashes[i] != usual.hashes[i])
                names += text_of({names.empty() ? "another " : " and another ", name_of(odd.set, i)});
        return names;
    }

    std::string_view name_of(std::uint32_t set, std::size_t i) const {
        const bool is_known = set == names_->id && !names_->names[i].empty();
        return is_known ? names_->names[i] : "option";
    }

    witnesses all_;
    scene where_;
    std::uint64_t waits_;
    const call_signature* signature_;
    const option_names* names_;
    duration timeout_;
};

}}}  // namespace rill::RILL_ABI::detail
