#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/transport/detail/decorator.hpp>
#include <rill/transport/detail/subgroup_members.hpp>
#include <rill/transport/detail/traffic_counter.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// The transport of a view: rank i is `members[i]` of the parent. Models `ConcurrentTransport`, `ExpectingTransport`
/// and `MonitoredTransport` where the parent does, and never `SharedMemoryTransport`: what ranks share in a context,
/// all ranks of the parent share.
///
/// Every member makes it of the same view. Subgroups of different views, or of different names, never meet; those of
/// one view and one name are one transport. After a failure its members may be at different steps: they go on in a new
/// epoch, on which they must agree (see `survivors`).
///
/// If the view lists incarnations, a wait for one peer throws `peer_failure` when another life has taken its seat.
///
/// Errors name ranks of the subgroup in `culprit()` and `notice().other` (`no_rank` for a rank outside); their text
/// stays as it was written. `outward` gives such a notice in ranks of the parent; for an error that leaves the body of
/// a run, the run does. What is counted is the subgroup's own traffic. An abort of every context is one of the whole
/// parent.
///
/// Memory: that of the view. A subgroup must outlive its messages and sendings. The constructor throws
/// `contract_violation` when members are out of range or not in ascending order, or when this rank is not a member.
template <Transport Net>
class subgroup : public detail::decorator<subgroup<Net>, Net> {
    using forwarding = detail::decorator<subgroup, Net>;

  public:
    class message;
    class sending;

    /// `name`: tells it from others of the same view.
    subgroup(Net& parent, rill::view of, std::string_view name = "subgroup")
        : forwarding(parent), members_(std::move(of), parent.rank(), parent.size()), base_(members_.view().key(name)) {}

    Net& parent() const { return *inner_; }
    /// Its members are ranks of the parent.
    const rill::view& view() const { return members_.view(); }
    std::uint32_t epoch() const { return view().epoch; }
    rank_t rank() const { return members_.rank(); }
    int size() const { return members_.size(); }
    traffic counted() const { return counted_.now(); }
    void sleep_until(time_point instant) {
        guarded(every_context, [&] { inner_->sleep_until(instant); });
    }
    void compute(double work)
        requires ComputingTransport<Net>
    {
        guarded(every_context, [&] { inner_->compute(work); });
    }

    sending post(rank_t peer, channel on, const byte_pieces& pieces) {
        check(peer);
        sending posted(*this, on.context, inner_->post(members_.outer(peer), inside(on), pieces));
        counted_.sent(pieces.size_bytes());
        return posted;
    }
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate) {
        check(peer);
        const std::size_t size = bytes.size();
        const bool taken = guarded(
            on.context, [&] { return inner_->post(members_.outer(peer), inside(on), std::move(bytes), until); });
        if (taken) counted_.sent(size);
        return taken;
    }

    std::optional<message> receive(rank_t peer, channel on, deadline until) {
        check(peer);
        return wrap(from_listed(peer, on, until,
                                [&](deadline due) { return inner_->receive(members_.outer(peer), inside(on), due); }));
    }
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until) {
        for (const rank_t peer : peers) check(peer);
        const auto outer = members_.outer(peers);
        return wrap(guarded(on.context, [&] { return inner_->receive(outer.ranks(), inside(on), until); }));
    }
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        for (const rank_t peer : peers) check(peer);
        const auto outer = members_.outer(peers);
        return wrap(guarded(on.context, [&] { return inner_->receive_latest(outer.ranks(), inside(on), until); }));
    }
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until) {
        check(peer);
        const bool received = from_listed(peer, on, until, [&](deadline due) {
            return inner_->receive_into(members_.outer(peer), inside(on), targets, due);
        });
        if (received) counted_.received(size_bytes(targets));
        return received;
    }

    void expect(rank_t peer, channel on, std::span<const byte_span> targets)
        requires ExpectingTransport<Net>
    {
        check(peer);
        inner_->expect(members_.outer(peer), inside(on), targets);
    }
    void forget(channel on) noexcept
        requires ExpectingTransport<Net>
    {
        inner_->forget(inside(on));
    }

    std::uint64_t incarnation(rank_t peer) const
        requires MonitoredTransport<Net>
    {
        check(peer);
        return std::as_const(*inner_).incarnation(members_.outer(peer));
    }
    void monitor(channel on)
        requires MonitoredTransport<Net>
    {
        guarded(on.context, [&] { inner_->monitor(inside(on)); });
    }
    void fence(rank_t peer, std::uint64_t incarnation)
        requires MonitoredTransport<Net>
    {
        check(peer);
        inner_->fence(members_.outer(peer), incarnation);
    }

    void announce(std::uint64_t context, const call_signature& call) { inner_->announce(inside(context), call); }
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        check(peer);
        return guarded(context, [&] { return inner_->inquire(members_.outer(peer), inside(context), number, until); });
    }
    abort_notice abort(const abort_notice& notice) {
        return translated(inner_->abort(outward(notice)), notice.context);
    }
    std::optional<abort_notice> aborted(std::uint64_t context) {
        const auto notice = inner_->aborted(inside(context));
        return notice ? std::optional(translated(*notice, context)) : std::nullopt;
    }
    std::uint64_t next_context(std::uint64_t key) { return inner_->next_context(mix64(base_, key)); }
    void close(std::uint64_t context) { inner_->close(inside(context)); }

    /// Translates a notice of the subgroup to ranks and contexts of the parent.
    abort_notice outward(abort_notice notice) const {
        notice.context = inside(notice.context);
        notice.culprit = members_.outer_or_none(notice.culprit);
        notice.other = members_.outer_or_none(notice.other);
        return notice;
    }

  private:
    friend detail::decorator_concurrency<subgroup, Net>;
    using forwarding::inner;
    using forwarding::inner_;

    std::uint64_t inside(std::uint64_t context) const {
        return context == every_context ? every_context : mix64(base_, context);
    }
    channel inside(channel on) const { return {.context = inside(on.context), .tag = on.tag}; }

    abort_notice translated(abort_notice notice, std::uint64_t context) const {
        if (notice.context == inside(context)) notice.context = context;
        notice.culprit = members_.inner_or_none(notice.culprit);
        notice.other = members_.inner_or_none(notice.other);
        return notice;
    }
    /// Runs a call of the parent on `context` and rethrows its errors in ranks of the subgroup.
    template <class Call>
    decltype(auto) guarded(std::uint64_t context, Call&& call) const {
        try {
            return call();
        } catch (const error& thrown) {
            throw_error(translated(thrown.notice(), context));
        }
    }

    /// Waits for a message of the life that the view lists. Once another life has begun nothing more comes of it, and
    /// the parent, which knows only the present one, would wait for that.
    template <class Receive>
    auto from_listed(rank_t peer, channel on, deadline until, Receive&& receive) const {
        return guarded(on.context, [&] {
            auto got = receive(is_replaced(peer) ? deadline::immediate : until);
            if (!got && is_replaced(peer)) throw_replaced(peer, on);
            return got;
        });
    }
    /// Whether the view lists lives, and another life has taken this peer's seat.
    bool is_replaced([[maybe_unused]] rank_t peer) const {
        if constexpr (MonitoredTransport<Net>) {
            const auto& listed = view().incarnations;
            return !listed.empty() && incarnation(peer) != listed[static_cast<std::size_t>(peer)];
        }
        return false;
    }
    [[noreturn, gnu::cold, gnu::noinline]] void throw_replaced(rank_t peer, channel on) const {
        const rank_t ended = members_.outer(peer);
        throw peer_failure({.context = inside(on.context),
                            .culprit = ended,
                            .reason = text_of({"rank ", ended, " has ended, and begun anew"})});
    }

    template <class Wait>
    auto waited(const char*, deadline until, Wait&& wait) const {
        return guarded(every_context, [&] { return wait(until); });
    }

    void check([[maybe_unused]] rank_t peer) const {
        RILL_EXPECTS(0 <= peer && peer < size(), "subgroup: no such peer rank");
    }

    std::optional<message> wrap(std::optional<typename Net::message>&& received) {
        if (!received) return std::nullopt;
        counted_.received(received->pieces().size_bytes());
        const rank_t source = members_.inner_or_none(received->source());
        return message(std::move(*received), source);
    }

    detail::subgroup_members members_;
    std::uint64_t base_;
    detail::traffic_counter counted_;
};

template <Transport Net>
class subgroup<Net>::message {
  public:
    rank_t source() const { return source_; }
    byte_pieces pieces() const { return received_.pieces(); }

  private:
    friend subgroup;
    message(typename Net::message&& received, rank_t source) : received_(std::move(received)), source_(source) {}

    typename Net::message received_;
    rank_t source_;
};

template <Transport Net>
class subgroup<Net>::sending {
  public:
    sending() = default;

    bool done() { return posted_.done(); }
    bool wait(deadline until) {
        if (group_ == nullptr) return true;
        return group_->guarded(context_, [&] { return posted_.wait(until); });
    }
    void settle() noexcept { posted_.settle(); }

  private:
    friend subgroup;
    sending(const subgroup& group, std::uint64_t context, typename Net::sending&& posted)
        : group_(&group), context_(context), posted_(std::move(posted)) {}

    const subgroup* group_ = nullptr;
    std::uint64_t context_ = 0;
    typename Net::sending posted_;
};

}}  // namespace rill::RILL_ABI
