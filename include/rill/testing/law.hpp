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

/// A law does not hold; the message says what was seen.
class law_failure : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

/// What became of a law.
struct law_outcome {
    bool held = true;
    std::string what;  ///< what was seen instead, where it does not hold
};

/// What the laws need to know about the group that a runner makes, and how far they shall go.
struct transport_limits {
    /// The bound of handed-over bytes with which the runner makes mailboxes, at least 4096 (ranks post that much before
    /// they receive); 0: unknown, its laws are left out.
    std::size_t mailbox_bytes = 0;
    /// Whether a borrowed message is read in the sender's memory: then it is done only after the receiver has released
    /// it.
    bool lends = true;
    /// Borrowed messages up to this size are copied when they are posted, and are done then: what the laws say of
    /// sends under way is checked with larger ones.
    std::size_t copied_bytes = 0;
    /// Whether all ranks run in the process that checks, not each in one of its own.
    bool one_process = true;
    /// Whether the first notice of a context is the same on all ranks, also where notices race.
    bool same_first_notice = true;
    /// Of a message in the exchange of all with all; well above every limit of the library below.
    std::size_t large_bytes = std::size_t{8} << 20;
    /// Of the one largest message.
    std::size_t largest_bytes = 100'000'000;
    /// Of the one largest group; laws that need more ranks than that are left out.
    int most_ranks = 64;
    /// Checks only the law of this name, where it is not empty.
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

/// Runs laws one by one and tells a visitor how each went.
template <class Runner, class Visit>
class law_list {
  public:
    law_list(Runner& runner, const transport_limits& limits, Visit& visit)
        : runner_(runner), limits_(limits), visit_(visit) {}

    const transport_limits& limits() const { return limits_; }

    /// One law: `body(net)` on each of `ranks` ranks.
    template <class Body>
    void law(const char* name, int ranks, Body body) const {
        law_of_run(name, ranks, [&](auto& runner) { runner(ranks, body); });
    }

    /// One law about whole runs of up to `ranks` ranks: `check(runner)`.
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

/// `size` bytes that depend on `seed`: random ones, then the same again and again. The period is prime, so that blocks
/// which end up in wrong places show. Copied, not computed: 100 MB must be cheap without optimisation too.
inline buffer pattern(std::size_t size, std::uint64_t seed) {
    buffer bytes(size);
    for (std::size_t i = 0; i < size && i < pattern_period; ++i)
        bytes[i] = static_cast<std::byte>(mix64(seed, i) & 0xFFU);
    for (std::size_t done = pattern_period; done < size; done *= 2)
        std::memcpy(bytes.data() + done, bytes.data(), std::min(done, size - done));
    return bytes;
}

/// Whether the pieces joined are `wanted`.
inline bool same_bytes(const byte_pieces& pieces, byte_view wanted) {
    for (const byte_view piece : pieces) {
        if (piece.size() > wanted.size()) return false;
        if (!piece.empty() && std::memcmp(piece.data(), wanted.data(), piece.size()) != 0) return false;
        wanted = wanted.subspan(piece.size());
    }
    return wanted.empty();
}

/// Whether the pieces joined are `pattern(size, seed)`, which is not made for that.
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

/// A message that is one small number.
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
