// The archetype of a mail port: what the concept asks for and no more, in the memory of one thread. Its clock runs by
// itself, so that deadlines pass without time.
#pragma once

#include <rill/core/error.hpp>
#include <rill/transport/detail/mail_port.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace memory {

using namespace rill;

/// What is under way among the ranks. While `holds`, parts stay at their senders until `deliver()`.
struct network {
    struct end {
        bool done = false;
        mail::part_end how{};
    };
    struct note {
        rank_t source;
        std::vector<std::byte> bytes;
    };
    struct part {
        rank_t source, target;
        std::uint32_t tag;
        byte_span into;   ///< of a receive
        byte_view bytes;  ///< of a send
        std::shared_ptr<end> ends;
    };

    explicit network(int ranks)
        : notes(static_cast<std::size_t>(ranks)), losses(notes.size()), goodbyes(notes.size()) {}

    void deliver() {
        const bool held = std::exchange(holds, false);
        std::list<part> waiting = std::exchange(sends, {});
        for (part& each : waiting) send(std::move(each));
        holds = held;
    }
    void send(part sent) {
        const auto fits = [&](const part& r) {
            return r.source == sent.source && r.target == sent.target && r.tag == sent.tag;
        };
        const auto found = std::find_if(receives.begin(), receives.end(), fits);
        if (holds || found == receives.end()) return sends.push_back(std::move(sent));
        if (!sent.bytes.empty()) std::memcpy(found->into.data(), sent.bytes.data(), sent.bytes.size());
        *found->ends = {true, {.size = sent.bytes.size()}};
        sent.ends->done = true;
        receives.erase(found);
    }

    std::vector<std::deque<note>> notes;               ///< to each rank
    std::vector<std::deque<rank_t>> losses, goodbyes;  ///< that each rank has not been told
    std::list<part> sends, receives;
    bool holds = false;
    std::function<void(rank_t)> idle;  ///< what others do while this rank finds no note
    rank_t unreachable = no_rank;      ///< the next note to it is not sent: sending throws
};

class port {
  public:
    struct request {
        std::shared_ptr<network::end> ends{};
        explicit operator bool() const { return ends != nullptr; }
    };
    struct place {
        network& net;
        rank_t rank;
    };
    struct options {
        std::size_t mailbox_bytes = 1 << 20;
        std::size_t eager_bytes = 1024;
        std::optional<bool> sends_unasked{};
        std::size_t chunk_bytes = 0;
        int spins = 0;
        duration nap{};
        duration blocks_beyond{deadline::never.at.ns};
        duration abort_timeout = seconds(2);
        duration failure_timeout = seconds(30);
        std::size_t stack_bytes = std::size_t{256} << 10;
    };
    struct library_error : error {
        library_error(rank_t culprit, std::string reason)
            : error(abort_notice{.culprit = culprit, .reason = std::move(reason)}) {}
    };
    static constexpr const char* name = "memory";
    static constexpr const char* outlived = "the port has ended";
    static constexpr bool is_simulation = true;
    static constexpr bool wakes = false;

    explicit port(const place& at) : net_(at.net), rank_(at.rank) {}

    rank_t rank() const { return rank_; }
    int size() const { return static_cast<int>(net_.notes.size()); }
    int neighbours() const { return 1; }
    bool is_concurrent() const { return false; }
    static time_point now() { return {clock += 1'000'000}; }
    void configure(const options&) {}
    void free() {}

    request send_note(const std::byte* from, std::size_t bytes, rank_t peer) const {
        if (peer == net_.unreachable) {
            net_.unreachable = no_rank;
            throw library_error(rank_, "the network cannot be reached");
        }
        network::note sent{.source = rank_, .bytes = std::vector<std::byte>(bytes)};
        if (bytes != 0) std::memcpy(sent.bytes.data(), from, bytes);
        at(peer).push_back(std::move(sent));
        return {std::make_shared<network::end>(network::end{.done = true})};
    }
    mail::received_note receive_note(std::byte* into, std::size_t capacity) const {
        auto& waiting = at(rank_);
        if (waiting.empty() && net_.idle) net_.idle(rank_);
        if (waiting.empty()) return {};
        const network::note taken = std::move(waiting.front());
        waiting.pop_front();
        if (taken.bytes.size() > capacity) throw library_error(rank_, "a note is too long");
        if (!taken.bytes.empty()) std::memcpy(into, taken.bytes.data(), taken.bytes.size());
        return {.source = taken.source, .size = taken.bytes.size()};
    }
    template <class Lock>
    void await_note(Lock&, deadline) const {
        while (at(rank_).empty()) net_.idle(rank_);
    }

    rank_t take_loss() const { return take_first(net_.losses); }
    rank_t take_goodbye() const { return take_first(net_.goodbyes); }
    static void watch(rank_t) {}

    request send_part(const std::byte* from, std::size_t bytes, rank_t peer, std::uint32_t tag) const {
        const auto ends = std::make_shared<network::end>();
        net_.send({.source = rank_, .target = peer, .tag = tag, .into = {}, .bytes = {from, bytes}, .ends = ends});
        return {ends};
    }
    request receive_part(std::byte* into, std::size_t bytes, rank_t peer, std::uint32_t tag) const {
        const auto ends = std::make_shared<network::end>();
        net_.receives.push_back(
            {.source = peer, .target = rank_, .tag = tag, .into = {into, bytes}, .bytes = {}, .ends = ends});
        return {ends};
    }

    bool is_complete(request& of) const { return !of || look(of); }
    std::optional<mail::part_end> look(request& of) const {
        if (!of.ends->done) return std::nullopt;
        return std::exchange(of.ends, nullptr)->how;
    }
    void cancel(request& of) const noexcept {
        const auto found = std::find_if(net_.receives.begin(), net_.receives.end(),
                                        [&](const network::part& each) { return each.ends == of.ends; });
        if (found == net_.receives.end()) return;
        net_.receives.erase(found);
        *of.ends = {true, {.cancelled = true}};
    }
    bool abandon(request& of) const noexcept {
        const bool ended = !of || of.ends->done;
        of.ends = nullptr;
        return ended;
    }
    [[noreturn]] void end_job() const noexcept { std::abort(); }

  private:
    rank_t take_first(std::vector<std::deque<rank_t>>& told) const {
        auto& own = told[static_cast<std::size_t>(rank_)];
        if (own.empty()) return no_rank;
        const rank_t first = own.front();
        own.pop_front();
        return first;
    }
    std::deque<network::note>& at(rank_t peer) const { return net_.notes[static_cast<std::size_t>(peer)]; }

    static inline std::int64_t clock = 0;
    network& net_;
    rank_t rank_;
};

static_assert(mail::MailPort<port>);

}  // namespace memory
