#pragma once

#include <rill/collective/detail/long_wait.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Finds who is to blame for a call that does not go on, and throws. Asks every rank what it has entered.
template <Transport Net>
class inquest {
  public:
    /// `waits`: the context of long waits; `timeout`: of the call; `signature`: as this rank has made it.
    inquest(Net& net, std::uint64_t context, std::uint64_t waits, const call_signature& signature, duration timeout)
        : net_(&net), context_(context), waits_(waits), signature_(&signature), timeout_(timeout) {}

    /// `source` sent a frame of another call.
    [[noreturn]] void disagree(rank_t source) const {
        blame_odd_one(entrants(false));
        fail(failure::mismatch, source, no_rank, "rank " + std::to_string(source) + " sent a frame of another call");
    }

    /// Time is up, and this rank still waits.
    [[noreturn]] void nothing_came(const long_wait& own) const {
        blame_odd_one(entrants(true));
        const auto [waiter, peer] = origin_of(own);
        fail(failure::timeout, peer, waiter,
             "rank " + std::to_string(waiter) + " waited " + std::to_string(timeout_.seconds()) + " s for rank " +
                 std::to_string(peer) + ", which has entered the operation: slow, or the link between them is cut");
    }

    /// Throws `peer_failure` where the body of `peer` is known to have returned without entering the operation. Asks
    /// it, and waits for no answer.
    void require_presence(rank_t peer) const {
        if (has_departed(net_->inquire(peer, context_, signature_->number, deadline::immediate))) departed(peer);
    }

    [[noreturn]] void fail(failure kind, rank_t culprit, rank_t other, const std::string& what) const {
        throw_error({.context = context_,
                     .operation = signature_->number,
                     .kind = kind,
                     .culprit = culprit,
                     .other = other,
                     .reason = describe() + ": " + what});
    }

    /// For messages: "all_reduce (operation 7)".
    std::string describe() const {
        return std::string(name(signature_->kind)) + " (operation " + std::to_string(signature_->number) + ")";
    }

  private:
    static bool has_departed(const std::optional<call_signature>& entered) {
        return entered && entered->kind == operation::departure;
    }

    [[noreturn]] void departed(rank_t peer) const {
        fail(failure::exception, peer, no_rank,
             "rank " + std::to_string(peer) + " has left its body without entering the operation");
    }

    struct entrant {
        rank_t rank;
        call_signature call;
    };

    /// What the ranks have entered: this call as each of them made it, or a later one where it was left out. Where it
    /// matters, a rank that has not come is an error.
    std::vector<entrant> entrants(bool all_must_have_come) const {
        const time_point until = net_->now() + timeout_ / 8;
        std::vector<entrant> come;
        for (rank_t r = 0; r < net_->size(); ++r) {
            const auto entered = net_->inquire(r, context_, signature_->number, until);
            if (has_departed(entered)) {
                if (all_must_have_come) departed(r);
                continue;
            }
            if (entered)
                come.push_back({r, *entered});
            else if (all_must_have_come)
                fail(failure::timeout, r, no_rank,
                     "rank " + std::to_string(r) + " has not entered the operation within " +
                         std::to_string(timeout_.seconds()) + " s");
        }
        return come;
    }

    struct standstill {
        rank_t waiter;
        rank_t peer;
    };

    /// Where the standstill begins: whoever is waited for may itself be waiting, for what was due earlier.
    standstill origin_of(long_wait last) const {
        const time_point until = net_->now() + timeout_ / 8;
        rank_t waiter = net_->rank();
        for (int passed = 0; passed < net_->size(); ++passed) {
            const auto said = net_->inquire(last.peer, waits_, signature_->number, until);
            if (!said || has_departed(said) || said->number != signature_->number) break;
            const long_wait of_peer = long_wait::from(*said);
            if (!of_peer.explains(last)) break;
            waiter = std::exchange(last, of_peer).peer;
        }
        return {waiter, last.peer};
    }

    /// The odd one is the lowest rank outside the largest set of equal calls (of equally large sets: the one with the
    /// lowest rank).
    void blame_odd_one(const std::vector<entrant>& come) const {
        std::ptrdiff_t most = 0;
        call_signature usual{};
        for (const entrant& each : come) {
            const auto equal =
                std::count_if(come.begin(), come.end(), [&](const entrant& other) { return other.call == each.call; });
            if (equal <= most) continue;
            most = equal;
            usual = each.call;
        }
        for (const entrant& each : come)
            if (each.call != usual)
                fail(failure::mismatch, each.rank, no_rank,
                     "rank " + std::to_string(each.rank) + " " + difference(each.call, usual));
    }

    static std::string difference(const call_signature& odd, const call_signature& usual) {
        const auto differs = [](const char* what, const std::string& a, const std::string& b) {
            return std::string("calls with ") + what + " " + a + " where others have " + b;
        };
        if (odd.number != usual.number)
            return differs("operation number", std::to_string(odd.number), std::to_string(usual.number));
        if (odd.kind != usual.kind)
            return std::string("calls ") + name(odd.kind) + " where others call " + name(usual.kind);
        if (odd.element != usual.element) return differs("element type", name(odd.element), name(usual.element));
        if (odd.index_bytes != usual.index_bytes)
            return differs("index width", std::to_string(odd.index_bytes), std::to_string(usual.index_bytes));
        const auto compressor = [](const call_signature& call) { return call.options.hashes[compressor_option]; };
        if (odd.dimension != usual.dimension && compressor(odd) == compressor(usual))
            return differs("dimension", std::to_string(odd.dimension), std::to_string(usual.dimension));
        return "calls with " + difference(odd.options, usual.options) + " than the others";
    }

    static std::string difference(const call_options& odd, const call_options& usual) {
        if (odd.set != usual.set) return "options of another kind";
        std::string names;
        for (std::size_t i = 0; i < odd.hashes.size(); ++i)
            if (odd.hashes[i] != usual.hashes[i])
                names += (names.empty() ? "another " : " and another ") + std::string(option_name(odd.set, i));
        return names;
    }

    Net* net_;
    std::uint64_t context_;
    std::uint64_t waits_;
    const call_signature* signature_;
    duration timeout_;
};

}}}  // namespace rill::RILL_ABI::detail
