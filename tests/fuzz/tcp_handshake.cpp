// The handshake of TCP: what the other end sends, to a dialer or an acceptor, with a key or without, in pieces of any
// size. A naive reader says how it must end. With a key, it agrees only where the proof was mended here: a peer that
// has not got the key cannot make it.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/transport/detail/tcp_handshake.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace {

using namespace rill;
using namespace rill::tcp::detail;
using state = handshake::state;
using refusal = handshake::refusal;

const std::uint64_t key = 7;

/// Stands for a keyed digest.
handshake::proof digest(const void* with, byte_view of) {
    std::uint64_t sum = *static_cast<const std::uint64_t*>(with);
    for (const std::byte each : of) sum = (sum ^ std::to_integer<std::uint64_t>(each)) * 0x100000001b3;
    handshake::proof made{};
    for (std::size_t i = 0; i < made.size(); i += 8) put(made.data() + i, sum * (i + 1), 8);
    return made;
}

const handshake::identity own{.job = 11, .build = 12, .ranks = 4, .rank = 1, .incarnation = 101, .attempt = 3};
constexpr dialer::expected wanted_peer{.rank = 2, .incarnation = 102};

template <class N>
N at(byte_view bytes, std::size_t offset) {
    N value{};
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
}

/// Why a hello must be refused, and whether only after the proofs.
struct verdict {
    refusal why = refusal::none;
    bool after_proofs = true;
};

/// Nothing where the hello has not come whole.
std::optional<verdict> expected_of_hello(byte_view hello, bool has_key, bool dials) {
    if (hello.size() < 6) return std::nullopt;
    if (std::memcmp(hello.data(), "\x16\x03", 2) == 0) return verdict{refusal::security, false};
    if (std::memcmp(hello.data(), "rill", 4) != 0) return verdict{refusal::foreign, false};
    if (at<std::uint16_t>(hello, 4) != 1) return verdict{refusal::version, false};
    if (hello.size() < 64) return std::nullopt;
    if (at<std::uint8_t>(hello, 6) != (has_key ? 1 : 0)) return verdict{refusal::security, false};
    if (at<std::uint64_t>(hello, 8) != 11) return verdict{refusal::job};
    if (at<std::uint64_t>(hello, 16) != 12) return verdict{refusal::build};
    if (at<std::uint32_t>(hello, 24) != 4) return verdict{refusal::ranks};
    const auto rank = at<std::uint32_t>(hello, 28);
    if (rank > 3 || rank == 1) return verdict{refusal::rank};
    const unsigned why = at<std::uint8_t>(hello, 7);  // the line stands in the upper half
    if (why != 2 && why % 16 != 3) return verdict{refusal::purpose};
    if (dials && rank != 2) return verdict{refusal::rank, false};
    if (dials && at<std::uint64_t>(hello, 32) != 102) return verdict{refusal::incarnation, false};
    return verdict{};
}

void require_refused(const handshake& tried, refusal why) {
    RILL_FUZZ_REQUIRE(tried.now() == state::refused && tried.why() == why, "refused, for this reason");
    RILL_FUZZ_REQUIRE(tried.wanted() == 0, "nothing more is read");
}

/// Hands over bytes in pieces until no more is wanted; returns those that were taken.
template <class End>
buffer feed(End& to, rill::fuzz::input& in, std::size_t piece) {
    buffer taken;
    while (to.wanted() != 0 && !in.done()) {
        RILL_FUZZ_REQUIRE(to.wanted() <= handshake::hello_bytes, "a small message");
        const buffer bytes = rill::fuzz::copy_of(in.bytes(std::min(piece, to.wanted())));
        to.arrived(bytes);
        taken.append(bytes.begin(), bytes.end());
    }
    return taken;
}

template <class End>
buffer feed_hello(End& to, rill::fuzz::input& in, std::size_t piece) {
    rill::fuzz::input hello(reinterpret_cast<const std::uint8_t*>(in.rest().data()),
                            std::min(in.rest().size(), handshake::hello_bytes));
    const buffer taken = feed(to, hello, piece);
    in.bytes(taken.size());
    return taken;
}

/// Takes a proven message of `size` bytes of `in`; where `mends` is set, its proof becomes the right one.
buffer proven(rill::fuzz::input& in, std::size_t size, bool mends, const buffer& said, handshake::prover prove,
              bool& is_right) {
    buffer message = rill::fuzz::copy_of(in.bytes(size));
    if (message.size() < size) return message;
    const std::size_t content = size - sizeof(handshake::proof);
    buffer all = said;
    all.append(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(content));
    const handshake::proof right = prove(all);
    if (mends) std::copy(right.begin(), right.end(), message.begin() + static_cast<std::ptrdiff_t>(content));
    is_right = std::equal(right.begin(), right.end(), message.begin() + static_cast<std::ptrdiff_t>(content));
    RILL_FUZZ_REQUIRE(prove.of == nullptr || mends || !is_right, "a proof that a peer without the key cannot make");
    return message;
}

void check_acceptor(rill::fuzz::input& in, handshake::prover prove, bool mends, std::size_t piece) {
    acceptor tried(own, prove, {});
    RILL_FUZZ_REQUIRE(tried.outgoing().empty(), "an acceptor that listens first");
    buffer said = feed_hello(tried, in, piece);
    const std::optional<verdict> of_hello = expected_of_hello(said, prove.of != nullptr, false);
    if (!of_hello) return RILL_FUZZ_REQUIRE(tried.now() == state::needs_more, "more is needed");
    RILL_FUZZ_REQUIRE(tried.outgoing().size() == (of_hello->why == refusal::foreign ? 0 : handshake::hello_bytes),
                      "its hello");
    if (!of_hello->after_proofs) return require_refused(tried, of_hello->why);

    said.append(tried.outgoing().begin(), tried.outgoing().end());
    tried.wrote(tried.outgoing().size());
    bool is_right = false;
    const buffer proof = proven(in, handshake::proof_bytes, mends, said, prove, is_right);
    rill::fuzz::input last(reinterpret_cast<const std::uint8_t*>(proof.data()), proof.size());
    feed(tried, last, piece);
    if (proof.size() < handshake::proof_bytes)
        return RILL_FUZZ_REQUIRE(tried.now() == state::needs_more && tried.outgoing().empty(), "more is needed");
    if (!is_right) {
        RILL_FUZZ_REQUIRE(tried.outgoing().size() == handshake::answer_bytes, "an answer");
        return require_refused(tried, refusal::key);
    }
    if (of_hello->why != refusal::none) {
        RILL_FUZZ_REQUIRE(tried.outgoing().size() == handshake::answer_bytes, "an answer");
        return require_refused(tried, of_hello->why);
    }
    RILL_FUZZ_REQUIRE(tried.now() == state::asks && tried.outgoing().empty(), "a proven dialer");
    RILL_FUZZ_REQUIRE(tried.peer_taken() == at<std::uint64_t>(proof, 0), "what it has taken");
    RILL_FUZZ_REQUIRE(tried.peer().incarnation == at<std::uint64_t>(said, 32), "its incarnation");
    RILL_FUZZ_REQUIRE(tried.peer().attempt == at<std::uint64_t>(said, 40), "its attempt");
    tried.accept(5);
    RILL_FUZZ_REQUIRE(tried.now() == state::agreed && tried.outgoing().size() == handshake::answer_bytes, "an answer");
}

void check_dialer(rill::fuzz::input& in, handshake::prover prove, bool mends, std::size_t piece) {
    dialer tried(own, wanted_peer, prove, {});
    buffer said(tried.outgoing().begin(), tried.outgoing().end());
    RILL_FUZZ_REQUIRE(said.size() == handshake::hello_bytes, "a dialer that speaks first");
    tried.wrote(said.size());
    const buffer hello = feed_hello(tried, in, piece);
    const std::optional<verdict> of_hello = expected_of_hello(hello, prove.of != nullptr, true);
    if (!of_hello) return RILL_FUZZ_REQUIRE(tried.now() == state::needs_more, "more is needed");
    if (!of_hello->after_proofs) return require_refused(tried, of_hello->why);

    said.append(hello.begin(), hello.end());
    if (of_hello->why == refusal::none) {
        RILL_FUZZ_REQUIRE(tried.now() == state::asks && tried.outgoing().empty(), "a proof is asked for");
        tried.prove(9);
    }
    RILL_FUZZ_REQUIRE(tried.outgoing().size() == handshake::proof_bytes, "a proof");
    said.append(tried.outgoing().begin(), tried.outgoing().begin() + 8);  // without the digest
    tried.wrote(handshake::proof_bytes);
    bool is_right = false;
    const buffer answer = proven(in, handshake::answer_bytes, mends, said, prove, is_right);
    rill::fuzz::input last(reinterpret_cast<const std::uint8_t*>(answer.data()), answer.size());
    feed(tried, last, piece);
    RILL_FUZZ_REQUIRE(tried.outgoing().empty(), "a dialer that has said all");
    if (answer.size() < handshake::answer_bytes)
        return RILL_FUZZ_REQUIRE(tried.now() == state::needs_more, "more is needed");
    const auto reason = at<std::uint64_t>(answer, 0);
    if (!is_right) return require_refused(tried, refusal::key);
    if (reason > static_cast<std::uint64_t>(refusal::seated)) return require_refused(tried, refusal::foreign);
    if (reason != 0) return require_refused(tried, static_cast<refusal>(reason));
    if (of_hello->why != refusal::none) return require_refused(tried, of_hello->why);
    RILL_FUZZ_REQUIRE(tried.now() == state::agreed, "agreed");
    RILL_FUZZ_REQUIRE(tried.peer_taken() == at<std::uint64_t>(answer, 8), "what the acceptor has taken");
}

}  // namespace

RILL_FUZZ_TARGET(tcp_handshake)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const unsigned chosen = in.below(8);
    const std::size_t piece = 1 + in.below(80);
    const handshake::prover prove = (chosen & 2) != 0 ? handshake::prover{&key, digest} : handshake::prover{};
    const bool mends = (chosen & 4) != 0;
    const rill::fuzz::allocation_budget at_most(8 * size + 4096);
    (chosen & 1) != 0 ? check_dialer(in, prove, mends, piece) : check_acceptor(in, prove, mends, piece);
    return 0;
}
