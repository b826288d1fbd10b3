#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/session/detail/inquest.hpp>
#include <rill/session/detail/long_wait.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_other_epoch(std::uint32_t given, rank_t self,
                                                                     std::uint32_t own) {
    throw protocol_error(text_of({"it is of epoch ", given, ", rank ", self, " is in epoch ", own}));
}
}  // namespace detail

/// How a session ends. In a closed one each failure ends all ranks, with the same culprit. In an open one ranks go on
/// without some: a rank that has waited in vain leaves alone, and every other failure ends all.
enum class session_kind : bool { closed, open };

/// One context of a view, on one rank's endpoint: what everything that ranks do together stands on.
///
/// Its numbers are derived from the transport's view and from `name`. Sessions of one name are told apart by their
/// order, which begins anew with each view, so that a rank that enters a view later arrives at the same numbers. All
/// ranks of the transport make the same sessions of a name in the same order. `net` must outlive it.
template <Transport Net>
class session {
  public:
    /// `timeout`: how long this rank waits for others. `ground`: the context that the session stands on, for instance
    /// of the group in which the ranks have agreed to make it; itself by default.
    session(Net& net, std::string_view name, duration timeout, session_kind kind = session_kind::closed,
            std::uint64_t ground = every_context)
        : net_(&net),
          timeout_(timeout),
          kind_(kind),
          epoch_(epoch_of(net)),
          context_(net.next_context(mix64(fingerprint(name), epoch_))),
          waits_(mix64(context_, fingerprint("long waits"))),
          ground_(ground == every_context ? context_ : ground) {}
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    ~session() {
        net_->close(waits_);
        net_->close(context_);
    }

    Net& net() const { return *net_; }
    rank_t rank() const { return std::as_const(*net_).rank(); }
    int size() const { return std::as_const(*net_).size(); }
    duration timeout() const { return timeout_; }
    /// Of the view. All frames carry it.
    std::uint32_t epoch() const { return epoch_; }
    std::uint64_t context() const { return context_; }
    /// The context in which ranks announce long waits; see `detail::long_wait`.
    std::uint64_t waits() const { return waits_; }
    channel on(std::uint32_t tag) const { return {context_, tag}; }

    /// What becomes of the other ranks is told on `tag` from now on; see `MonitoredTransport`.
    [[gnu::noinline]] void monitor(std::uint32_t tag)
        requires MonitoredTransport<Net>
    {
        net_->monitor(on(tag));
    }

    /// A header with what all frames of the session share.
    wire::header stamped(wire::header head, message_kind kind, std::uint64_t number) const {
        head.kind = kind;
        head.epoch = epoch_;
        head.context = context_;
        head.number = number;
        return head;
    }
    /// Throws `protocol_error` if a frame is of another epoch.
    void require_epoch(const wire::header& head) const {
        if (head.epoch != epoch_) detail::throw_other_epoch(head.epoch, rank(), epoch_);
    }
    /// Throws `protocol_error` if a frame is of another epoch or another context.
    void require_own(const wire::header& head) const {
        require_epoch(head);
        wire::detail::require(head.context == context_, "its context is another one");
    }

    /// A place of this rank in the session, for notices. `operation`: its number; `what`: its name.
    detail::scene scene(std::uint64_t operation, std::uint32_t first_tag, std::string what) const {
        return {context_, operation, first_tag, rank(), std::move(what)};
    }

    /// Runs `body()`. If it throws, the other ranks are told what `place.scene()` makes of it. Throws what `body` has
    /// thrown, or the failure that came first.
    template <class Place, class Body>
    auto guarded(const Place& place, Body&& body) {
        try {
            return body();
        } catch (const std::exception& thrown) {
            tell(place, &thrown);
            throw;
        } catch (...) {
            tell(place, nullptr);
            throw;
        }
    }

    /// Throws what has ended the session, if it has ended.
    void require_going() {
        if (left_) throw_error(*left_);
        if (const auto notice = net_->aborted(context_)) throw_error(*notice);
    }

    /// What the others are told of the failure `own`: that of a later operation, if the session has failed there
    /// before, because it may be the cause.
    [[gnu::cold]] abort_notice or_before(const abort_notice& own) const {
        std::optional<abort_notice> before = net_->aborted(context_);
        if (!before) return own;
        before->context = own.context;
        before->first_tag = own.first_tag;
        return *before;
    }

    /// Something that this rank has waited for does not come: if what the session stands on has failed, throws that as
    /// a failure of this session. Asks `rank`, for `patience`. `from`: the first operation whose failure counts.
    [[gnu::cold]] void require_ground(rank_t rank, duration patience, std::uint64_t from = 0) const {
        detail::require_ground(witnesses(), ground_, rank, patience, context_, from);
    }

    detail::witnesses witnesses() const { return detail::witnesses(*net_); }
    /// Tells the others for whom this rank waits, in an operation, or that it waits for nobody any more.
    void announce(const detail::long_wait& wait, std::uint64_t operation = 1) const {
        net_->announce(waits_, wait.announced_in(operation));
    }
    /// Of an open session: this rank has waited for `peer` in vain. If the standstill begins here, the message says by
    /// `of_peer` what the peer did not do. `of_all` ends the message.
    [[gnu::cold]] abort_notice waited_in_vain(const detail::scene& where, rank_t peer, const std::string& of_peer,
                                              const std::string& of_all = {}) const {
        const auto last = detail::long_wait::of_any_order(peer);
        const detail::standstill origin = detail::origin_of(witnesses(), waits_, 1, rank(), last, timeout_ / 8);
        return where.notice(failure::timeout, origin.peer, origin.waiter,
                            {origin.text(timeout_), origin.waiter == where.self ? of_peer : "", of_all});
    }

  private:
    template <class Place>
    [[gnu::cold, gnu::noinline]] void tell(const Place& place, const std::exception* thrown) {
        const detail::scene where = place.scene();
        const auto* const failed = dynamic_cast<const error*>(thrown);
        if (kind_ == session_kind::open && failed != nullptr && where.is_own(failed->notice()) &&
            failed->notice().kind == failure::timeout) {
            if (!net_->aborted(context_)) left_.emplace(failed->notice());
            return;
        }
        const abort_notice notice = where.notice_of(thrown);
        const abort_notice first = net_->abort(or_before(notice));
        if (first != notice || notice.kind != failure::exception) throw_error(first);
    }

    Net* net_;
    duration timeout_;
    session_kind kind_;
    std::uint32_t epoch_;
    std::uint64_t context_;
    std::uint64_t waits_;
    std::uint64_t ground_;
    std::optional<abort_notice> left_{};  ///< why this rank has left alone
};

}}  // namespace rill::RILL_ABI
