#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace testing {

/// Thrown where a law does not hold; the message says what was seen.
class law_failure : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

/// The outcome of checking one law.
struct law_outcome {
    bool held = true;
    std::string what;  ///< what was seen instead, if it does not hold
};

/// Properties of the groups that a runner makes, and limits on what the laws try.
struct transport_limits {
    /// The bound on handed-over bytes of the runner's mailboxes, at least 4096, because ranks post that much before
    /// they receive. 0: unknown; the laws about it are left out.
    std::size_t mailbox_bytes = 0;
    /// Whether the receiver reads a borrowed message in the sender's memory. If so, the send is done only after the
    /// receiver has released the message.
    bool lends = true;
    /// Borrowed messages up to this size are copied when they are posted, and their sends are done then. Laws about
    /// sends under way use larger messages.
    std::size_t copied_bytes = 0;
    /// Whether all ranks run in the checking process, not each in a process of its own.
    bool one_process = true;
    /// Whether the first notice of a context is the same on all ranks, also where notices race.
    bool same_first_notice = true;
    /// Size of a message in the exchange of all with all. It should be well above every size limit of the transport.
    std::size_t large_bytes = std::size_t{8} << 20;
    /// Size of the largest message of all laws.
    std::size_t largest_bytes = 100'000'000;
    /// Size of the largest group; laws that need more ranks are left out.
    int most_ranks = 64;
    /// If not empty, only the law of this name is checked.
    std::string_view only{};
};

/// Throws `law_failure` when `seen` is false.
inline void expect(bool seen, const char* what) {
    if (!seen) throw law_failure(what);
}
/// Throws `law_failure`, with both numbers, when they differ.
template <class Number>
void expect_equal(const Number& seen, const Number& wanted, const char* what) {
    if (seen == wanted) return;
    throw law_failure(std::string(what) + ": " + std::to_string(seen) + " instead of " + std::to_string(wanted));
}

/// Runs laws one by one and reports each outcome to a visitor.
template <class Runner, class Visit>
class law_list {
  public:
    law_list(Runner& runner, const transport_limits& limits, Visit& visit)
        : runner_(runner), limits_(limits), visit_(visit) {}

    const transport_limits& limits() const { return limits_; }

    /// Checks one law: runs `body(net)` on each of `ranks` ranks.
    template <class Body>
    void law(const char* name, int ranks, Body body) const {
        law_of_run(name, ranks, [&](auto& runner) { runner(ranks, body); });
    }

    /// Checks one law about whole runs of up to `ranks` ranks: calls `check(runner)`.
    template <class Check>
    void law_of_run(const char* name, int ranks, Check check) const {
        if (ranks > limits_.most_ranks || (!limits_.only.empty() && limits_.only != name)) return;
        law_outcome outcome;
        try {
            check(runner_);
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = failed.what()};
        }
        visit_(name, std::as_const(outcome));
    }

  private:
    Runner& runner_;
    const transport_limits& limits_;
    Visit& visit_;
};

namespace detail {

inline constexpr std::uint64_t law_context = 11;

/// The size of a borrowed message whose send is under way until it is received.
inline std::size_t lent_size(const transport_limits& limits) { return limits.copied_bytes + 1000; }

inline constexpr std::size_t pattern_period = 4093;

/// Returns `size` bytes that depend on `seed`: random bytes, repeated with a prime period, so that misplaced blocks are
/// detected. Repetitions are copied, so that 100 MB are cheap without optimisation too.
inline buffer pattern(std::size_t size, std::uint64_t seed) {
    buffer bytes(size);
    for (std::size_t i = 0; i < size && i < pattern_period; ++i)
        bytes[i] = static_cast<std::byte>(mix64(seed, i) & 0xFFU);
    for (std::size_t done = pattern_period; done < size; done *= 2)
        std::memcpy(bytes.data() + done, bytes.data(), std::min(done, size - done));
    return bytes;
}

/// Whether the pieces, joined, equal `wanted`.
inline bool same_bytes(const byte_pieces& pieces, byte_view wanted) {
    for (const byte_view piece : pieces) {
        if (piece.size() > wanted.size()) return false;
        if (!piece.empty() && std::memcmp(piece.data(), wanted.data(), piece.size()) != 0) return false;
        wanted = wanted.subspan(piece.size());
    }
    return wanted.empty();
}

/// Whether the pieces, joined, equal `pattern(size, seed)`, without making all of it.
inline bool is_pattern(const byte_pieces& pieces, std::size_t size, std::uint64_t seed) {
    const buffer block = pattern(std::min(size, pattern_period), seed);
    std::size_t seen = 0;
    for (byte_view piece : pieces)
        while (!piece.empty()) {
            const byte_view wanted = byte_view(block).subspan(seen % pattern_period);
            const std::size_t count = std::min(piece.size(), wanted.size());
            if (count == 0 || std::memcmp(piece.data(), wanted.data(), count) != 0) return false;
            piece = piece.subspan(count);
            seen += count;
        }
    return seen == size;
}

/// Returns a message that holds one number.
inline buffer number_message(std::uint32_t value) {
    buffer bytes(4);
    for (unsigned i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>((value >> (8 * i)) & 0xFFU);
    return bytes;
}
template <class Message>
std::uint32_t number_in(const Message& message) {
    std::uint32_t value = 0;
    unsigned shift = 0;
    for (const byte_view piece : message.pieces())
        for (const std::byte b : piece) {
            value |= std::to_integer<std::uint32_t>(b) << shift;
            shift += 8;
        }
    expect(shift == 32, "a message of 4 bytes arrives with another size");
    return value;
}

template <class Net>
void post_number(Net& net, rank_t peer, channel on, std::uint32_t value) {
    expect(net.post(peer, on, number_message(value), deadline::never), "a handed-over message is refused");
}
template <class Net>
std::uint32_t receive_number(Net& net, rank_t peer, channel on) {
    const auto message = net.receive(peer, on, deadline::never);
    expect(message.has_value(), "a receive without deadline comes back empty");
    expect_equal(message->source(), peer, "source of a message");
    return number_in(*message);
}

/// Returns on any rank when all ranks have called it; uses its own context.
template <class Net>
void meet(Net& net, std::uint32_t round) {
    const channel on{.context = law_context + 1, .tag = round};
    if (net.rank() == 0) {
        for (rank_t peer = 1; peer < net.size(); ++peer) receive_number(net, peer, on);
        for (rank_t peer = 1; peer < net.size(); ++peer) post_number(net, peer, on, round);
    } else {
        post_number(net, 0, on, round);
        receive_number(net, 0, on);
    }
}

}  // namespace detail
}}}  // namespace rill::RILL_ABI::testing
