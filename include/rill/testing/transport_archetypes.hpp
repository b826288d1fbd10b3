#pragma once

#include <rill/concept/shared_memory.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

/// Types with what a concept of transports demands and nothing else, declared and not defined. Code that compiles with
/// them, in a `static_assert` or an uncalled function, asks for no more than the concept.
namespace rill { inline namespace RILL_ABI { namespace testing { namespace archetype {

/// Models `Transport`.
struct transport {
    struct message {
        rank_t source() const;
        byte_pieces pieces() const;
    };
    struct sending {
        bool done();
        bool wait(deadline until);
        void settle() noexcept;
    };

    rank_t rank() const;
    int size() const;
    time_point now() const;
    void sleep_until(time_point instant);
    traffic counted() const;

    sending post(rank_t peer, channel on, const byte_pieces& pieces);
    bool post(rank_t peer, channel on, buffer&& bytes, deadline until = deadline::immediate);
    std::optional<message> receive(rank_t peer, channel on, deadline until);
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until);
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until);
    bool receive_into(rank_t peer, channel on, std::span<const byte_span> targets, deadline until);

    void announce(std::uint64_t context, const call_signature& call);
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until);
    abort_notice abort(const abort_notice& notice);
    std::optional<abort_notice> aborted(std::uint64_t context);
    std::uint64_t next_context(std::uint64_t key);
    void close(std::uint64_t context);
};

/// Models `EpochTransport`.
struct epoch_transport : transport {
    std::uint32_t epoch() const;
};

/// Models `ExpectingTransport`.
struct expecting_transport : transport {
    void expect(rank_t peer, channel on, std::span<const byte_span> targets);
    void forget(channel on) noexcept;
};

/// Models `ChunkingTransport`.
struct chunking_transport : transport {
    std::size_t chunk_bytes() const;
};

/// Models `ComputingTransport`.
struct computing_transport : transport {
    void compute(double work);
};

/// Models `TracedTransport`.
struct traced_transport : transport {
    struct recording {};

    recording span(const char* name) const;
};

/// Models `ConcurrentTransport`.
struct concurrent_transport : transport {
    struct activity {
        void join();
    };
    struct event {
        explicit event(concurrent_transport& net);
        void set();
        void reset();
        bool wait(deadline until);
    };
    template <class T>
    struct queue {
        explicit queue(concurrent_transport& net);
        void push(T value);
        std::optional<T> pop(deadline until);
        void close();
    };

    const void* this_activity() const;
    bool activities_run_alone() const;
    template <class Body>
    activity spawn(Body body);
};

/// Models `MonitoredTransport`.
struct monitored_transport : transport {
    std::uint64_t incarnation(rank_t peer) const;
    void monitor(channel on);
    void fence(rank_t peer, std::uint64_t incarnation);
};

/// Models `SharedMemoryTransport`.
struct shared_memory_transport : transport {
    struct window {
        static constexpr std::uint64_t places = 2;
        static constexpr std::size_t slot_bytes = 64;

        bool has_room(rank_t peer, std::uint64_t number, deadline until);
        void expose(const exposure& what);
        const exposure* exposed(rank_t peer, const call_signature& call, deadline until);
        bool enter(std::uint64_t number);
        void leave(std::uint64_t number) noexcept;
        void abandon(std::uint64_t number) noexcept;
        void pass(std::uint64_t number) noexcept;
        bool has_left(rank_t peer, std::uint64_t number, deadline until);
        void withdraw(std::uint64_t number) noexcept;
        std::uint64_t claim(rank_t peer, std::uint64_t number);
        byte_span slot(std::uint64_t number, std::size_t bytes);
        void prepare(std::uint64_t number);
        void count(std::uint64_t messages, std::uint64_t bytes);
    };

    window share(std::uint64_t context);
};

}}}}  // namespace rill::RILL_ABI::testing::archetype
