#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/service_run.hpp>
#include <rill/protocol/detail/state_note.hpp>
#include <rill/protocol/detail/state_transfer_machine.hpp>
#include <rill/session/session.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The machines of a state transfer on a transport: what a rank needs to give its state to others, and to get theirs.
///
/// Every rank makes it when it begins. A member calls `serve`; from then on an activity answers those that join, while
/// the rank trains. The rank tells it each committed step, and gives a snapshot where `wants_snapshot()` says so. A
/// rank that joins calls `fetch` until its state is ready.
///
/// A state has `unpack(bytes)`, which throws and changes nothing if they do not fit, and `apply(update)`.
template <class Net>
class state_exchange {
    static_assert(ConcurrentTransport<Net> && MonitoredTransport<Net>,
                  "rill: a state is handed on by an activity, on a transport that tells which ranks end");

  public:
    state_exchange(Net& net, const state_transfer_options& options)
        : session_(net, "state of an elastic job", options.patience, session_kind::open),
          options_(options),
          wanted_(net),
          news_(net),
          run_(net),
          everyone_(static_cast<std::size_t>(net.size())),
          provider_(options) {
        std::iota(everyone_.begin(), everyone_.end(), 0);
        net.monitor(to_fetch());
        net.monitor(to_serve());
    }
    state_exchange(const state_exchange&) = delete;
    state_exchange& operator=(const state_exchange&) = delete;
    ~state_exchange() {
        try {
            if (run_.has_begun()) tell({.kind = news::what::end});
        } catch (...) {  // this rank has ended
        }
        run_.join();
    }

    /// Serves from now on, as a member with the state at `step`. Later calls tell another view.
    void serve(const view& now, std::uint64_t step) {
        if (run_.has_begun()) return tell({.kind = news::what::view, .of = now});
        begin_to_serve(now, step);
    }
    /// As `serve`, of a rank that has got this state from others: what it has given before counts no more.
    void serve_anew(const view& now, std::uint64_t step) {
        if (run_.has_begun()) return tell({.kind = news::what::state, .step = step, .of = now});
        begin_to_serve(now, step);
    }
    /// This rank has committed a step, by `update`.
    void committed(std::uint64_t step, buffer update) {
        tell({.kind = news::what::step, .step = step, .bytes = std::move(update)});
    }
    /// Whether a copy of the state at this step is to be given to `take_snapshot`. Costs no message.
    bool wants_snapshot(std::uint64_t step) {
        return step % options_.snapshot_every == 0 && wanted_.wait(deadline::immediate);
    }
    /// A copy of the state at this step, which has been told before; also where nobody wants it yet. One that nobody
    /// asks for is kept until the next step.
    void take_snapshot(std::uint64_t step, buffer state) {
        wanted_.reset();
        tell({.kind = news::what::snapshot, .step = step, .bytes = std::move(state)});
    }

    /// Begins to get the state of `providers` (nearest first), in the view of `epoch` as far as this rank knows it.
    /// `have`: the step of this rank's own state, if it has one.
    void begin_fetch(std::uint32_t epoch, std::vector<rank_t> providers, std::optional<std::uint64_t> have) {
        fetcher_.emplace(options_, std::as_const(net()).incarnation(session_.rank()), epoch, std::move(providers),
                         have);
        obey(fetcher_->begin(std::as_const(net()).now()), nothing{});
    }
    /// Goes on until the state is ready (at most one step behind the members'), or until the deadline. Returns whether
    /// it is ready. Follows the members as long as it is called. Errors: `peer_failure` if no member answers or has a
    /// state of this kind, or if this rank's seat is taken.
    template <class State>
    bool fetch(State& state, deadline until) {
        return fetch_until(state, until, [&] { return fetcher_->is_ready(); });
    }
    /// As `fetch`, until the state is that of `step`.
    template <class State>
    bool fetch_step(State& state, std::uint64_t step, deadline until) {
        return fetch_until(state, until, [&] { return fetcher_->have() >= step; });
    }
    /// The step of the state that `fetch` has made.
    std::optional<std::uint64_t> have() const { return fetcher_->have(); }

  private:
    struct nothing {
        void unpack(byte_view) {}
        void apply(byte_view) {}
    };
    /// What the rank tells its activity.
    struct news {
        enum class what : unsigned char { view, state, step, snapshot, end };
        what kind = what::end;
        std::uint64_t step = 0;
        buffer bytes{};
        rill::view of{};
    };

    void begin_to_serve(const view& now, std::uint64_t step) {
        provider_.members_are(now);
        provider_.resume_at(step);
        run_.begin([this] { run(); }, [] {});
    }

    Net& net() { return session_.net(); }
    channel to_serve() const { return session_.on(0); }
    channel to_fetch() const { return session_.on(1); }

    /// The activity waits for messages, so a message of its own rank says that there are news.
    void tell(news told) {
        news_.push(std::move(told));
        net().post(session_.rank(), to_serve(), buffer(), deadline::never);
    }

    void run() {
        while (true) {
            auto got = net().receive(std::span<const rank_t>(everyone_), to_serve(), deadline::never);
            if (!got) continue;
            const rank_t from = got->source();
            if (got->pieces().size_bytes() == 0) {
                if (from != session_.rank()) continue;
                auto told = news_.pop(deadline::immediate);
                if (told && !take(std::move(*told))) return;
            } else if (got->pieces().size_bytes() == peer_event_bytes) {
                if (read_peer_event(*got).kind == peer_change::ended) provider_.lost(from);
            } else if (const auto message = message_of(*got, served_)) {
                provider_.on(from, message->note, std::as_const(net()).incarnation(from));
            }
            if (provider_.is_snapshot_wanted()) wanted_.set();
            post(provider_, to_fetch());
        }
    }
    /// Whether the activity goes on.
    bool take(news told) {
        using what = typename news::what;
        if (told.kind == what::view || told.kind == what::state) provider_.members_are(told.of);
        if (told.kind == what::state) provider_.resume_at(told.step);
        if (told.kind == what::step) provider_.committed(told.step, std::move(told.bytes));
        if (told.kind == what::snapshot) provider_.take_snapshot(told.step, std::move(told.bytes));
        return told.kind != what::end;
    }

    /// What is no note of this protocol counts for nothing: who has sent it waits in vain.
    template <class Message>
    static std::optional<state_message> message_of(const Message& got, buffer& room) {
        try {
            room.clear();
            for (const byte_view piece : got.pieces()) room.append(piece.begin(), piece.end());
            return read_state_message(room);
        } catch (const protocol_error&) {
            return std::nullopt;
        }
    }
    template <class Machine>
    void post(Machine& of, channel on) {
        for (const state_letter& each : of.letters())
            net().post(each.to, on, to_message(each.note, each.bytes),
                       std::as_const(net()).now() + options_.patience / 4);
        of.clear_letters();
    }

    template <class State, class Done>
    bool fetch_until(State& state, deadline until, const Done& is_done) {
        while (!is_done()) {
            const deadline next = std::min(until, deadline(fetcher_->until()));
            auto got = net().receive(std::span<const rank_t>(everyone_), to_fetch(), next);
            const time_point now = std::as_const(net()).now();
            if (!got && next == until) return false;
            if (!got) {
                obey(fetcher_->tick(now), state);
            } else if (got->pieces().size_bytes() == peer_event_bytes) {
                if (read_peer_event(*got).kind == peer_change::ended) obey(fetcher_->lost(got->source(), now), state);
            } else if (const auto message = message_of(*got, fetched_)) {
                obey(fetcher_->on(got->source(), message->note, message->bytes, now), state);
            }
        }
        return true;
    }
    template <class State>
    void obey(state_fetcher::task asked, State&& state) {
        using task = state_fetcher::task;
        if (asked == task::replace) asked = unpack_into(state);
        if (asked == task::apply) {
            state.apply(fetcher_->item());
            asked = fetcher_->done(std::as_const(net()).now());
        }
        post(*fetcher_, to_serve());
        if (asked == task::fail) fail();
    }
    template <class State>
    state_fetcher::task unpack_into(State& state) {
        try {
            state.unpack(fetcher_->item());
        } catch (const std::exception& thrown) {
            why_not_ = thrown.what();
            return fetcher_->refused();
        }
        return fetcher_->done(std::as_const(net()).now());
    }

    [[noreturn, gnu::cold]] void fail() const {
        using why = state_note::why;
        const rank_t from = fetcher_->culprit(), self = session_.rank();
        std::string reason = text_of({"rank ", self, " gets no state: "});
        switch (fetcher_->reason()) {
            case why::other_build:
                reason += why_not_.empty() ? text_of({"rank ", from, " has a state of another kind, or other options"})
                                           : text_of({"that of rank ", from, " does not fit: ", why_not_});
                break;
            case why::old_life: reason += text_of({"rank ", from, " knows a later life of rank ", self}); break;
            case why::taken_seat: reason += text_of({"rank ", from, " says that its seat is taken"}); break;
            default: reason += text_of({"no member has answered, the last one asked was rank ", from});
        }
        throw peer_failure({.context = session_.context(), .culprit = from, .reason = std::move(reason)});
    }

    rill::session<Net> session_;
    state_transfer_options options_;
    typename Net::event wanted_;  ///< a snapshot
    typename Net::template queue<news> news_;
    service_run<Net> run_;
    std::vector<rank_t> everyone_;
    state_provider provider_;  ///< of the activity, once that runs
    std::optional<state_fetcher> fetcher_;
    buffer served_;   ///< the message that the activity reads
    buffer fetched_;  ///< the message that `fetch` reads
    std::string why_not_;
};

}}}  // namespace rill::RILL_ABI::detail
