#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/decorator.hpp>
#include <rill/transport/detail/fault_judge.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/fault_scene.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// A transport among threads on which things go wrong as planned, as they do in a simulated network: what is tested
/// there can be seen among real threads. Models `ConcurrentTransport` where the inner one does. It never models
/// `SharedMemoryTransport`, since a plan strikes messages and memory has none, nor `ExpectingTransport`, since a
/// message that is lost or comes twice would come to the wrong place.
///
/// Times of the plan count from `start`. A delayed message blocks its sender for the delay. A receive from several
/// ranks passes over a message that is to be overtaken until another has come. `slow` affects `compute`, where the
/// inner transport has it. A killed rank gets `rank_killed` from its next call or during a wait; `run_faulty` catches
/// it and restarts the rank where the plan says so. A restarted rank still finds the messages that were sent to it and
/// not taken before its end.
template <Transport Net>
class faulty : public detail::decorator<faulty<Net>, Net> {
    using forwarding = detail::decorator<faulty, Net>;

  public:
    using message = typename Net::message;
    class sending;

    /// All ranks must pass the same `scene`.
    faulty(Net& inner, fault_scene& scene, time_point start) : forwarding(inner), scene_(&scene), start_(start) {
        RILL_EXPECTS(scene.size() == inner.size(), "faulty: the scene is for another number of ranks");
    }

    using forwarding::now;
    using forwarding::rank;
    const fault_scene& scene() const { return *scene_; }

    /// How often this rank has been killed and begun anew.
    int restarts() const { return scene_->restarts(rank()); }

    void sleep_until(time_point instant) {
        alive_through(instant, [&](deadline at) { return inner_->sleep_until(at.at), false; });
    }
    /// Computes on the inner transport, with the work multiplied by the factor of a slow rank.
    void compute(double work)
        requires ComputingTransport<Net>
    {
        live();
        inner_->compute(work * scene_->slowness(rank(), now() - start_));
    }

    sending post(rank_t peer, channel on, const byte_pieces& pieces) {
        const auto fate = fate_of_message(peer);
        if (fate.lost) return sending(*this, on.context);
        sending posted(*this, inner_->post(peer, on, pieces));
        if (fate.twice) inner_->post(peer, on, joined(pieces));
        return posted;
    }
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate) {
        const auto fate = fate_of_message(peer);
        if (fate.lost) return buffer().swap(bytes), true;
        buffer copy = fate.twice ? bytes : buffer();
        const bool taken =
            alive_through(until, [&](deadline at) { return inner_->post(peer, on, std::move(bytes), at); });
        if (taken && fate.twice) inner_->post(peer, on, std::move(copy));
        return taken;
    }

    std::optional<message> receive(rank_t peer, channel on, deadline until) {
        return took(alive_through(until, [&](deadline at) { return inner_->receive(peer, on, at); }));
    }
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until) {
        if (scene_->reorders() && peers.size() > 1)
            if (auto overtaking = receive_overtaking(peers, on, until)) return took(std::move(overtaking));
        return took(alive_through(until, [&](deadline at) { return inner_->receive(peers, on, at); }));
    }
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        return took(alive_through(until, [&](deadline at) { return inner_->receive_latest(peers, on, at); }));
    }
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until) {
        const bool came =
            alive_through(until, [&](deadline at) { return inner_->receive_into(peer, on, targets, at); });
        if (came) scene_->taken(peer, rank());
        return came;
    }

    void announce(std::uint64_t context, const call_signature& call) {
        live();
        inner_->announce(context, call);
    }
    /// An inquiry about a dead rank gets no answer and waits until the deadline.
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        return alive_through(until, [&](deadline at) -> std::optional<call_signature> {
            auto entered = inner_->inquire(peer, context, number, at);
            if (entered && !scene_->is_alive(peer)) wait_in_vain(context, at), entered.reset();
            return entered;
        });
    }
    /// A dead rank's abort is not passed on.
    abort_notice abort(const abort_notice& notice) { return scene_->is_alive(rank()) ? inner_->abort(notice) : notice; }
    std::uint64_t next_context(std::uint64_t key) {
        live();
        return inner_->next_context(key);
    }

    /// The plan strikes whole messages.
    std::size_t chunk_bytes() const = delete;

  private:
    friend detail::decorator_concurrency<faulty, Net>;
    using forwarding::inner_;

    /// Throws when this rank is dead, or dies now.
    void live() const {
        if (now() >= scene_->end_of(rank(), start_).at) scene_->kill(rank());
        if (!scene_->is_alive(rank())) throw rank_killed{rank()};
    }

    /// Waits in slices of 2 ms, because this rank's end may come during the wait, by time or by another activity.
    template <class Wait>
    auto alive_through(deadline until, Wait&& wait) -> decltype(wait(until)) {
        live();
        if (until.is_immediate() || !scene_->is_mortal(rank())) return wait(until);
        while (true) {
            const deadline turn = std::min({until, scene_->end_of(rank(), start_), deadline(now() + milliseconds(2))});
            auto seen = wait(turn);
            live();
            if (seen || turn == until || now() < turn.at) return seen;  // a closed queue ends a wait early
        }
    }

    template <class Wait>
    auto waited(const char*, deadline until, Wait&& wait) {
        return alive_through(until, wait);
    }

    /// Waits until the deadline or until the context ends, by a receive on a channel that nobody uses.
    void wait_in_vain(std::uint64_t context, deadline until) const {
        constexpr std::uint32_t of_nobody = 0xFFFF'FFFE;
        inner_->receive(rank(), {.context = context, .tag = of_nobody}, until);
    }

    detail::fault_judge::verdict fate_of_message(rank_t peer) {
        live();
        const duration since = now() - start_;
        if (scene_->is_dead_before_post(rank(), since)) throw rank_killed{rank()};
        if (peer == rank()) return {};
        const auto fate = scene_->judge(rank(), peer, since);
        if (fate.late.ns > 0) sleep_until(now() + fate.late);
        return fate;
    }

    /// Receives from the peers whose next message is not to be overtaken, for as long as the others may be held back.
    /// Where all are to be overtaken, the last peer is received from.
    std::optional<message> receive_overtaking(std::span<const rank_t> peers, channel on, deadline until) {
        std::vector<rank_t> faster;
        duration longest{};
        for (const rank_t peer : peers) {
            const duration held = scene_->holds(peer, rank(), now() - start_);
            const bool is_last_hope = faster.empty() && peer == peers.back();
            if (held.ns == 0 || is_last_hope) faster.push_back(peer);
            longest = std::max(longest, held);
        }
        if (longest.ns == 0) return std::nullopt;
        const deadline limit = std::min(until, deadline(now() + longest));
        return alive_through(limit, [&](deadline at) { return inner_->receive(faster, on, at); });
    }

    std::optional<message> took(std::optional<message>&& received) {
        if (received) scene_->taken(received->source(), rank());
        return std::move(received);
    }

    static buffer joined(const byte_pieces& pieces) {
        buffer all;
        for (const byte_view piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
        return all;
    }

    fault_scene* scene_;
    time_point start_;
};

/// A borrowed send in progress. If its message was lost, it is never done.
template <Transport Net>
class faulty<Net>::sending {
  public:
    sending() = default;
    sending(sending&& other) noexcept
        : net_(std::exchange(other.net_, nullptr)),
          lost_in_(std::exchange(other.lost_in_, std::nullopt)),
          inner_(std::move(other.inner_)) {}
    sending& operator=(sending&& other) noexcept {
        sending moved(std::move(other));
        std::swap(net_, moved.net_);
        std::swap(lost_in_, moved.lost_in_);
        std::swap(inner_, moved.inner_);
        return *this;
    }

    bool done() { return !lost_in_ && inner_.done(); }
    bool wait(deadline until) {
        if (net_ == nullptr) return true;
        return net_->alive_through(until, [&](deadline at) {
            if (!lost_in_) return inner_.wait(at);
            net_->wait_in_vain(*lost_in_, at);
            return false;
        });
    }
    void settle() noexcept {
        if (!lost_in_) inner_.settle();
    }

  private:
    friend faulty;
    sending(faulty& net, typename Net::sending&& posted) : net_(&net), inner_(std::move(posted)) {}
    sending(faulty& net, std::uint64_t lost_in) : net_(&net), lost_in_(lost_in) {}

    faulty* net_ = nullptr;
    std::optional<std::uint64_t> lost_in_;
    typename Net::sending inner_;
};

}}  // namespace rill::RILL_ABI
