#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/fifo.hpp>
#include <rill/core/error.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/machine_host.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/protocol/detail/server_kind.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A worker's links to the servers. Messages are handed over in order; what finds no room in a server's mailbox stays
/// here until the next one is sent.
template <Transport Net>
class server_links {
  public:
    using message = typename Net::message;

    /// The servers are the last ranks.
    server_links(const session<Net>& of, int servers) : session_(of), links_(static_cast<std::size_t>(servers)) {
        for (int i = 0; i < servers; ++i) servers_.push_back(of.size() - servers + i);
    }

    /// The ranks have agreed. A rank that works is told of the end of servers from now on.
    void join(bool works) {
        session_.net().announce(session_.context(), joined);
        if constexpr (MonitoredTransport<Net>)
            if (works) session_.net().monitor(session_.on(to_workers));
    }
    /// If a worker is late because it is still about to agree, that fails for some reason, which is thrown.
    void require_joined(const wire::header& late) {
        if (late.weight > 0) return;  // it had agreed before it began
        require_joined(static_cast<rank_t>(late.call), session_.timeout() / (late.contributors == 0 ? 8 : 2));
    }

    std::size_t count() const { return links_.size(); }
    wire::header stamped(message_kind kind, std::uint64_t number, double weight) const {
        return session_.stamped({.weight = weight, .contributors = 1}, kind, number);
    }

    /// Hands a message to a server, now or later. Waits for nobody.
    void hand(std::size_t server, buffer&& bytes) {
        links_[server].waiting.push_back(std::move(bytes));
        try {
            send(server);
        } catch (const error&) {  // the run has failed, which the next question finds
        }
    }
    /// Waits, until the timeout at most, for room for what has found none.
    void flush() {
        const time_point until = std::as_const(session_.net()).now() + session_.timeout();
        for (std::size_t i = 0; i < count(); ++i) send(i, until);
    }
    /// Hands the same message to all servers.
    void tell(const wire::header& head) {
        for (std::size_t i = 0; i < count(); ++i) hand(i, empty_frame(head));
    }

    /// Asks each server that has not given its final part: hands it `question(server, number)`.
    template <class Question>
    void ask(Question&& question) {
        ++number_;
        for (std::size_t i = 0; i < count(); ++i) {
            if (has_ended(i)) continue;
            links_[i].answer.reset();
            hand(i, question(i, number_));
        }
    }
    /// Waits for all answers to the latest question.
    void await() {
        const duration timeout = session_.timeout();
        const time_point until = std::as_const(session_.net()).now() + timeout + timeout / 4;
        while (const auto missing = first_missing()) hear(*missing, until);
    }

    /// This rank waits for a worker in vain, at the end or in between.
    [[noreturn, gnu::cold]] void throw_late(const wire::header& late, bool at_end) const {
        const auto rank = static_cast<rank_t>(late.call);
        const bool has_ended = late.contributors == 0;
        const std::string missing = at_end ? "it may still push" : text_of({"it is ", late.age, " pushes behind"});
        scene().fail(has_ended ? failure::exception : failure::timeout, rank, no_rank,
                     {"rank ", session_.rank(), " waits for rank ", rank, ", which ",
                      has_ended ? "has ended" : "has not come on within the timeout", "; ", missing, "; give_up(", rank,
                      ") lets the others go on"});
    }

    /// Throws a failure of another context as one of this one.
    [[noreturn, gnu::cold]] void throw_own(abort_notice notice) const {
        notice.context = session_.context();
        throw_error(notice);
    }

    /// Frees the memory of answers that have been read.
    void release() {
        for (link& each : links_) each.answer.reset();
    }
    /// Keeps what servers say once, when they end.
    void release_unless_final() {
        for (link& each : links_)
            if (each.head.kind != server_kind::final) each.answer.reset();
    }
    const wire::header& head(std::size_t server) const { return links_[server].head; }
    byte_pieces answer(std::size_t server) const { return links_[server].answer->pieces(); }
    bool has_ended(std::size_t server) const {
        return links_[server].answer && links_[server].head.kind == server_kind::final;
    }
    /// The first server that has answered so, or null.
    const wire::header* first_of(message_kind kind) const {
        for (const link& each : links_)
            if (each.answer && each.head.kind == kind) return &each.head;
        return nullptr;
    }
    rank_t rank_of(std::size_t server) const { return servers_[server]; }

    [[gnu::cold]] detail::scene scene() const {
        return session_.scene(number_, 0, text_of({"parameter_server (pull ", number_, ")"}));
    }

  private:
    struct link {
        fifo<buffer> waiting;  ///< messages that have found no room yet
        wire::header head{};
        std::optional<message> answer;
        bool has_answered = false;  ///< any question
    };

    /// Sends what there is room for. Each message waits for room until `until`.
    void send(std::size_t server, deadline until = deadline::immediate) {
        fifo<buffer>& waiting = links_[server].waiting;
        while (!waiting.empty() &&
               session_.net().post(servers_[server], session_.on(to_servers), std::move(waiting.front()), until))
            waiting.pop_front();
    }

    std::optional<std::size_t> first_missing() const {
        for (std::size_t i = 0; i < count(); ++i)
            if (!links_[i].answer) return i;
        return std::nullopt;
    }

    /// Takes the next message of any server, while the answer of `awaited` is due. What has found no room is tried
    /// again meanwhile: servers may need the room that an answer takes.
    void hear(std::size_t awaited, time_point until) {
        bool has_room = true;
        for (std::size_t i = 0; i < count(); ++i) {
            send(i);
            has_room = has_room && links_[i].waiting.empty();
        }
        const time_point now = std::as_const(session_.net()).now();
        auto got = session_.net().receive(servers_, session_.on(to_workers),
                                          has_room ? until : std::min(until, now + nap(session_.timeout())));
        if (!got && now >= until) silent(awaited);
        if (!got) return;
        const wire::header head =
            head_of_message(session_, *got, *this, &server_kind::of,
                            [](const wire::header& read) { require_due(server_kind::is_to_worker(read.kind)); });
        const auto from = static_cast<std::size_t>(got->source() - servers_.front());
        if (has_ended(from)) return;
        if (head.kind == server_kind::ended) gone(got->source());
        if (head.kind != server_kind::final && head.number != number_) return;  // of an earlier question
        links_[from].head = head;
        links_[from].answer = std::move(got);
        links_[from].has_answered = true;
    }

    [[noreturn, gnu::cold]] void silent(std::size_t server) {
        require_joined(servers_[server], session_.timeout() / 2);
        throw_error(session_.waited_in_vain(scene(), servers_[server],
                                            links_[server].waiting.empty() ? ", a server, which does not answer"
                                                                           : ", a server, whose mailbox is full"));
    }
    [[noreturn, gnu::cold]] void gone(rank_t server) {
        if (!links_[static_cast<std::size_t>(server - servers_.front())].has_answered)
            require_joined(server, session_.timeout() / 8);
        scene().fail(failure::exception, server, session_.rank(),
                     {"rank ", server, ", a server, has ended before it has answered rank ", session_.rank()});
    }

    /// Asks `rank`, which tells the failure that it has heard of, if any: that is thrown, and no other. If the ranks
    /// have not agreed, some have never begun.
    [[gnu::cold]] void require_joined(rank_t rank, duration patience) {
        Net& net = session_.net();
        const time_point until = std::as_const(net).now() + patience;
        const auto said = net.inquire(rank, session_.context(), joined.number, until);
        if (!said || has_departed(said)) session_.require_ground(rank, until - std::as_const(net).now());
    }
    static constexpr call_signature joined{.number = 1, .kind = operation::handshake};

    const session<Net>& session_;
    std::vector<rank_t> servers_;
    std::vector<link> links_;
    std::uint64_t number_ = 0;  ///< of the latest question
};

}}}  // namespace rill::RILL_ABI::detail
