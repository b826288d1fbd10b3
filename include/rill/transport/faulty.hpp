#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/peer_event.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/decorator.hpp>
#include <rill/transport/detail/fault_control.hpp>
#include <rill/transport/detail/fault_judge.hpp>
#include <rill/transport/detail/faulty_message.hpp>
#include <rill/transport/detail/faulty_waits.hpp>
#include <rill/transport/detail/lookout.hpp>
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
/// there can be seen among real threads. Models `ConcurrentTransport` and `MonitoredTransport` where the inner one
/// does. It never models `SharedMemoryTransport`, since a plan strikes messages and memory has none, nor
/// `ExpectingTransport`, since a message that is lost or comes twice would come to the wrong place.
///
/// Times of the plan count from `start`. A delayed message blocks its sender for the delay. A receive from several
/// ranks passes over a message that is to be overtaken until another has come. `slow` affects `compute`, where the
/// inner transport has it. A killed rank gets `rank_killed` from its next call or during a wait; `run_faulty` catches
/// it and restarts the rank where the plan says so. A restarted rank still finds the messages that were sent to it and
/// not taken before its end.
///
/// Control travels as `fault_scene` says. An exception that leaves a body ends other ranks at once, as on the inner
/// transport. Monitored channels also tell ends and arrivals of ranks that the plan kills and restarts; over an inner
/// transport on which messages take time, what a killed rank has sent may arrive after its end.
template <Transport Net>
class faulty : public detail::faulty_waits<faulty<Net>, Net> {
    using waits = detail::faulty_waits<faulty, Net>;

  public:
    using message = detail::faulty_message<Net>;
    using sending = detail::faulty_sending<faulty, Net>;

    /// All ranks must pass the same `scene`.
    faulty(Net& inner, fault_scene& scene, time_point start) : waits(inner, scene, start) {}

    using waits::now;
    using waits::rank;
    const fault_scene& scene() const { return *scene_; }

    /// How often this rank has been killed and begun anew.
    int restarts() const { return scene_->restarts(rank()); }

    void sleep_until(time_point instant) {
        alive_through({every_context}, instant, [&](deadline at) { return inner_->sleep_until(at.at), false; });
    }
    /// Computes on the inner transport, with the work multiplied by the factor of a slow rank.
    void compute(double work)
        requires ComputingTransport<Net>
    {
        live();
        inner_->compute(work * scene_->slowness(rank(), since()));
    }

    sending post(rank_t peer, channel on, const byte_pieces& pieces) {
        const auto fate = fate_of_message(peer);
        if (fate.lost) return sending(*this, on);
        const channel here = in_this_life(on);
        sending posted(*this, on, inner_->post(peer, here, pieces));
        if (fate.twice) inner_->post(peer, here, joined(pieces));
        return posted;
    }
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate) {
        const auto fate = fate_of_message(peer);
        if (fate.lost) return buffer().swap(bytes), true;
        buffer copy = fate.twice ? bytes : buffer();
        const channel here = in_this_life(on);
        bool taken = inner_->post(peer, here, std::move(bytes));
        if (!taken && !until.is_immediate())
            taken =
                alive_through(on, until, [&](deadline at) { return inner_->post(peer, here, std::move(bytes), at); });
        if (taken && fate.twice) inner_->post(peer, here, std::move(copy));
        return taken;
    }

    std::optional<message> receive(rank_t peer, channel on, deadline until) {
        return receive_by({&peer, 1}, on, until);
    }
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until) {
        if (scene_->reorders() && peers.size() > 1)
            if (auto overtaking = receive_overtaking(peers, on, until)) return overtaking;
        return receive_by(peers, on, until);
    }
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        auto newest = receive_by(peers, on, until, true);
        while (newest && scene_->has_restarts()) {  // each life has its own channels
            auto newer = receive_by(peers, on, deadline::immediate, true);
            if (!newer) break;
            newest = std::move(newer);
        }
        return newest;
    }
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until) {
        const auto into = [&](std::span<const rank_t>, channel in_life, deadline at) {
            return inner_->receive_into(peer, in_life, targets, at);
        };
        const bool came = alive_through(on, until, [&](deadline at) { return in_all_lives({&peer, 1}, on, at, into); });
        if (came) scene_->taken(peer, rank());
        return came;
    }

    std::uint64_t incarnation(rank_t peer) const
        requires MonitoredTransport<Net>
    {
        return incarnation_of(peer, news_.is_monitored() ? news_.life(peer) : scene_->state_of(peer).first);
    }
    void monitor(channel on)
        requires MonitoredTransport<Net>
    {
        live();
        if (!news_.is_monitored()) inner_->monitor(of_news);
        news_.monitor(on, [&](rank_t peer) { return scene_->state_of(peer).first; });
    }
    void fence(rank_t peer, std::uint64_t incarnation)
        requires MonitoredTransport<Net>
    {
        live();
        for (std::uint64_t life = 0; life <= scene_->state_of(peer).first; ++life) {
            if (incarnation == 0 || incarnation != incarnation_of(peer, life)) continue;
            news_.fence(peer, life);
            if (!scene_->has_restarts()) inner_->fence(peer, std::as_const(*inner_).incarnation(peer));
        }
    }

    void announce(std::uint64_t context, const call_signature& call) {
        live();
        inner_->announce(context, call);
    }
    /// An inquiry about a dead rank gets no answer and waits until the deadline.
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        const channel on{.context = context, .tag = tag_of(number)};
        detail::fault_letter question(rank(), peer, since()), answer;
        std::optional<call_signature> said;
        return alive_through(on, until, [&](deadline at) -> std::optional<call_signature> {
            if (!has_arrived(question, peer)) return idle_until(at), std::nullopt;
            if (travels()) scene_->notices().forward(peer, rank(), on, since());
            if (!said) {
                said = inner_->inquire(peer, context, number, at);
                if (said && !scene_->is_alive(peer)) wait_in_vain(on, at), said.reset();
                if (said && said->number != number && at < until) said.reset();  // a later call, until the time is up
                if (!said) return std::nullopt;
                answer = detail::fault_letter(peer, rank(), since());
            }
            if (has_arrived(answer, peer)) return said;
            return idle_until(at), std::nullopt;
        });
    }
    /// A dead rank's abort is not passed on.
    abort_notice abort(const abort_notice& notice) {
        if (!scene_->is_alive(rank())) return notice;
        return travels() ? scene_->notices().abort(rank(), notice, since()) : inner_->abort(notice);
    }
    std::optional<abort_notice> aborted(std::uint64_t context) {
        if (auto known = notice_for({.context = context, .tag = last_tag})) return known;
        return inner_->aborted(context);
    }
    std::uint64_t next_context(std::uint64_t key) {
        live();
        return inner_->next_context(key);
    }
    void close(std::uint64_t context) {
        news_.close(context);
        inner_->close(context);
        for (std::uint64_t life = 1; life <= scene_->restarts_planned(); ++life) inner_->close(of_life(context, life));
    }

    /// The plan strikes whole messages.
    std::size_t chunk_bytes() const = delete;

  private:
    friend detail::decorator_concurrency<faulty, Net>;
    friend sending;
    using waits::alive_through, waits::has_arrived, waits::idle_until, waits::inner_, waits::judge, waits::live;
    using waits::news_, waits::notice_for, waits::scene_, waits::since, waits::travels, waits::wait_in_vain;
    using waits::waited;

    detail::fault_judge::verdict fate_of_message(rank_t peer) {
        live();
        if (scene_->is_dead_before_post(rank(), since())) throw rank_killed{rank()};
        if (peer == rank()) return {};
        const auto fate = scene_->judge(rank(), peer, since());
        if (fate.late.ns > 0) sleep_until(now() + fate.late);
        return fate;
    }

    /// Receives from the peers whose next message is not to be overtaken, for as long as the others may be held back.
    /// Where all are to be overtaken, the last peer is received from.
    std::optional<message> receive_overtaking(std::span<const rank_t> peers, channel on, deadline until) {
        std::vector<rank_t> faster;
        duration longest{};
        for (const rank_t peer : peers) {
            const duration held = scene_->holds(peer, rank(), since());
            const bool is_last_hope = faster.empty() && peer == peers.back();
            if (held.ns == 0 || is_last_hope) faster.push_back(peer);
            longest = std::max(longest, held);
        }
        if (longest.ns == 0) return std::nullopt;
        const deadline limit = std::min(until, deadline(now() + longest));
        return receive_by(faster, on, limit);
    }

    /// Where ranks are restarted, each life sends in contexts of its own, so that what it has sent can be fenced.
    static std::uint64_t of_life(std::uint64_t context, std::uint64_t life) {
        return life == 0 ? context : mix64(context, of_news.context, life);
    }
    channel in_this_life(channel on) const {
        return {.context = of_life(on.context, scene_->state_of(rank()).first), .tag = on.tag};
    }
    /// Receives what the lives of the peers have sent, the first ones first, and waits for the last.
    template <class Receive>
    auto in_all_lives(std::span<const rank_t> peers, channel on, deadline until, Receive&& receive)
        -> decltype(receive(peers, on, until)) {
        if (!scene_->has_restarts()) return receive(peers, on, until);
        std::uint64_t last = 0;
        for (const rank_t peer : peers) last = std::max(last, scene_->state_of(peer).first);
        for (std::uint64_t life = 0; life <= last; ++life) {
            std::vector<rank_t> open;
            for (const rank_t peer : peers)
                if (!news_.is_fenced(peer, life)) open.push_back(peer);
            const channel here{.context = of_life(on.context, life), .tag = on.tag};
            if (auto got = receive(open, here, life < last ? deadline::immediate : until)) return got;
        }
        return {};
    }
    std::optional<message> receive_by(std::span<const rank_t> peers, channel on, deadline until, bool latest = false) {
        const auto receive = [&](std::span<const rank_t> open, channel here, deadline at) {
            return latest ? inner_->receive_latest(open, here, at) : inner_->receive(open, here, at);
        };
        return alive_through(on, until, [&](deadline at) -> std::optional<message> {
            if (!news_.is_monitored()) return took(in_all_lives(peers, on, at, receive));
            if (auto got = took(in_open_context(peers, on, deadline::immediate, receive))) return got;
            hear_news();
            if (auto told = told_of(peers, on)) return told;
            if (news_.waits_in_vain(peers, on)) throw_error(detail::notice_of_ends(rank(), peers, on));
            return at.is_immediate() ? std::nullopt : took(in_open_context(peers, on, at, receive));
        });
    }
    /// The inner transport does not know which contexts are monitored here: it throws where all peers have thrown.
    template <class Receive>
    auto in_open_context(std::span<const rank_t> peers, channel on, deadline until, Receive&& receive)
        -> decltype(receive(peers, on, until)) {
        try {
            return in_all_lives(peers, on, until, receive);
        } catch (const error&) {
            if (!news_.is_of_context(on.context) || inner_->aborted(on.context)) throw;
        }
        idle_until(until);
        return {};
    }
    std::optional<message> took(std::optional<typename Net::message>&& received) {
        if (!received) return std::nullopt;
        const rank_t source = received->source();
        scene_->taken(source, rank());
        if (news_.is_monitored() && source != rank()) {
            hear_news();
            news_.hear(source);
        }
        return message(std::move(*received));
    }

    /// Learns what has become of the peers: of the ends and restarts that the plan makes from the scene, of the rest
    /// from the inner transport.
    void hear_news() {
        if constexpr (MonitoredTransport<Net>) {
            for (rank_t peer = 0; peer < this->size(); ++peer) {
                const auto [life, is_dead] = scene_->state_of(peer);
                if (peer != rank()) news_.learn(peer, life, is_dead, since());
                while (const auto told = inner_->receive(peer, of_news, deadline::immediate))
                    news_.learn(peer, read_peer_event(*told).kind, since());
            }
            news_.review(since(), judge());
        }
    }
    std::optional<message> told_of([[maybe_unused]] std::span<const rank_t> peers, [[maybe_unused]] channel on) {
        if constexpr (MonitoredTransport<Net>)
            if (const auto told = news_.take(peers, on))
                return message(told->peer, {told->kind, incarnation_of(told->peer, told->life)});
        return std::nullopt;
    }
    std::uint64_t incarnation_of(rank_t peer, std::uint64_t life) const {
        const std::uint64_t inner = std::as_const(*inner_).incarnation(peer);
        return inner == 0 ? 0 : inner + (life << 48U);
    }

    static buffer joined(const byte_pieces& pieces) {
        buffer all;
        for (const byte_view piece : pieces) all.append(piece.begin(), piece.end());
        return all;
    }

    /// Where the inner transport tells what becomes of peers.
    static constexpr channel of_news{.context = 0x6E65'7773'6F66'7065, .tag = 0};
};

}}  // namespace rill::RILL_ABI
