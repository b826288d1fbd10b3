// What two ranks say on a new connection before its first frame. Needs OpenSSL's libcrypto.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_framing.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <openssl/crypto.h>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Whether a proof is right. The time depends on the length only, not on where the first difference is: libcrypto
/// promises that of CRYPTO_memcmp. So a stranger cannot guess a proof byte by byte.
inline bool equal_in_constant_time(byte_view expected, byte_view came) {
    return expected.size() == came.size() && CRYPTO_memcmp(expected.data(), came.data(), expected.size()) == 0;
}

/// What both ends of a handshake have in common. Four messages of fixed size, numbers little-endian:
///
///     dialer to acceptor   hello   magic, version, mode, identity, nonce
///     acceptor to dialer   hello   the same of the acceptor
///     dialer to acceptor   proof   bytes taken, proof of both hellos and that number
///     acceptor to dialer   answer  refusal, bytes taken, proof of all that was said
///
/// On an encrypted connection, what proofs cover begins with a value that only its two ends know.
///
/// Both ends compare the hellos. Where they cannot prove anything to each other, both end at once; any other refusal
/// waits for the proofs, so that a stranger cannot speak for a rank. But a dialer that hears of another rank or start
/// than it expects ends at once: its caller must not take that for proven (`is_proven`). Does no I/O: the caller reads
/// at most `wanted()` bytes, so that it never reads a frame that stands behind.
class handshake {
  public:
    static constexpr std::size_t greeting_bytes = 6, hello_bytes = 64, proof_bytes = 40, answer_bytes = 48;
    static constexpr std::uint16_t version = 1;

    enum class purpose : std::uint8_t {
        meeting = 1,
        mail,
        join  ///< to take a seat in a job whose ranks have met: who exchanges mail answers it, on any line
    };
    /// Why there is no connection.
    enum class refusal : std::uint8_t {
        none,
        foreign,      ///< the other end does not speak this protocol
        version,      ///< another version of it
        security,     ///< one end has a key, or encrypts, and the other does not
        job,          ///< another job
        build,        ///< another program
        ranks,        ///< another number of ranks
        rank,         ///< not a rank of the job, or not the one that was expected
        purpose,      ///< one end wants to meet, the other to exchange mail, or mail of another line
        key,          ///< the proof is wrong
        incarnation,  ///< another start of the rank than the one that was expected
        stale,        ///< a later dial of this rank is known
        crossed,      ///< the acceptor's own dial is preferred
        taken,        ///< the conversation cannot go on at this byte
        seated        ///< a process that has not ended sits on the seat of the one that wants to join
    };
    enum class state : std::uint8_t {
        needs_more,  ///< read `wanted()` bytes
        asks,        ///< dialer: call `prove`; acceptor: call `accept` or `refuse`
        agreed,
        refused
    };
    struct identity {
        purpose why = purpose::mail;
        std::uint64_t job = 0;
        std::uint64_t build = 0;
        rank_t ranks = 0;
        rank_t rank = 0;
        std::uint64_t incarnation = 0;
        std::uint64_t attempt = 0;  ///< counts the dials of a rank
        std::uint8_t line = 0;      ///< which one of the two ranks' lines the connection is for, below 16
        bool encrypts = false;      ///< all that it says
    };
    /// How a rank says that its connections are secured. Both ends must say the same.
    enum class mode : std::uint8_t {
        bare,       ///< it has no key
        proved,     ///< it has a key
        encrypted,  ///< it has a key, and encrypts
    };
    /// What the two ends of one encrypted connection share and nobody else knows: the proofs cover it.
    using binding = std::array<std::byte, 32>;
    using nonce = std::array<std::byte, 16>;
    using proof = std::array<std::byte, 32>;
    /// Proves that a rank has the job's key: a keyed digest of bytes. Without a function there is no key, and all
    /// proofs are 0. The key must outlive the handshake.
    struct prover {
        const void* key = nullptr;
        proof (*of)(const void* key, byte_view bytes) = nullptr;

        proof operator()(byte_view bytes) const { return of != nullptr ? of(key, bytes) : proof{}; }
    };

    state now() const { return state_; }
    /// Why it was refused.
    refusal why() const { return why_; }
    /// The other end, as it says; proven by the key once `is_proven()`. Its rank may be none of the job where it was
    /// refused.
    const identity& peer() const { return peer_; }
    /// How this end secures its connections.
    mode own_mode() const {
        if (key_.of == nullptr) return mode::bare;
        return own_.encrypts ? mode::encrypted : mode::proved;
    }
    /// How the other end does, as it says.
    mode peer_mode() const { return peer_mode_; }
    /// Whether the proof of the other end is right.
    bool is_proven() const { return is_proven_; }
    /// The bytes of the conversation that the other end has taken.
    std::uint64_t peer_taken() const { return peer_taken_; }
    /// How many bytes to read at most before the next call of `arrived`.
    std::size_t wanted() const { return state_ == state::needs_more ? goal_ - in_.size() : 0; }
    /// What is to be written, also after a refusal, before the connection is closed.
    byte_view outgoing() const { return byte_view(out_).subspan(written_); }
    void wrote(std::size_t count) {
        RILL_EXPECTS(count <= outgoing().size(), "tcp: more was written than there is");
        written_ += count;
    }
    /// The connection is encrypted; before anything arrives on it. Without this, an end that encrypts agrees to
    /// nothing.
    void bind(const binding& shared) { binding_.assign(shared.begin(), shared.end()); }
    bool is_bound() const { return !binding_.empty(); }
    /// The encryption of the connection has failed, for this reason.
    void fail(refusal reason) {
        out_.clear();
        written_ = 0;
        refuse_for(reason);
    }

  protected:
    handshake(const identity& own, prover key, const nonce& fresh) : own_(own), key_(key), own_hello_(hello_bytes) {
        std::byte* const at = own_hello_.data();
        put(at, magic, 4);
        put(at + 4, version, 2);
        put(at + 6, static_cast<std::uint64_t>(own_mode()), 1);
        put(at + 7, static_cast<std::uint64_t>(own.why) | std::uint64_t{own.line} << 4, 1);
        put(at + 8, own.job, 8);
        put(at + 16, own.build, 8);
        put(at + 24, static_cast<std::uint32_t>(own.ranks), 4);
        put(at + 28, static_cast<std::uint32_t>(own.rank), 4);
        put(at + 32, own.incarnation, 8);
        put(at + 40, own.attempt, 8);
        std::copy(fresh.begin(), fresh.end(), at + 48);
    }

    void refuse_for(refusal reason) {
        why_ = reason;
        state_ = state::refused;
    }
    void say(byte_view bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
    void say_hello() { say(own_hello_); }
    /// Says `content` and the proof of it and of all that was said before.
    void say_proven(byte_view content) {
        said_.insert(said_.end(), content.begin(), content.end());
        say(content);
        say(key_(said_));
    }
    /// Whether a message that came ends with the proof of its content and of all that was said before.
    bool ends_with_proof() {
        const byte_view content = byte_view(in_).first(in_.size() - sizeof(proof));
        said_.insert(said_.end(), content.begin(), content.end());
        return is_proven_ = equal_in_constant_time(key_(said_), byte_view(in_).last(sizeof(proof)));
    }
    /// Adds bytes that came; true where what was wanted is whole.
    bool collect(byte_view bytes) {
        RILL_EXPECTS(bytes.size() <= wanted(), "tcp: more bytes of a handshake than were wanted");
        in_.insert(in_.end(), bytes.begin(), bytes.end());
        return state_ == state::needs_more && in_.size() == goal_;
    }
    void expect(std::size_t bytes) {
        in_.clear();
        goal_ = bytes;
        state_ = state::needs_more;
    }

    refusal fault_of_greeting() {
        goal_ = hello_bytes;
        if (get(in_.data(), 2) == tls_greeting) {
            peer_mode_ = mode::encrypted;
            return refusal::security;
        }
        if (get(in_.data(), 4) != magic) return refusal::foreign;
        return get(in_.data() + 4, 2) != version ? refusal::version : refusal::none;
    }
    /// Reads the hello of the other end: false where the ends do not secure the connection in the same way.
    bool read_hello() {
        const std::byte* const at = in_.data();
        peer_.why = static_cast<purpose>(get(at + 7, 1) & 15);
        peer_.line = static_cast<std::uint8_t>(get(at + 7, 1) >> 4);
        peer_.job = get(at + 8, 8);
        peer_.build = get(at + 16, 8);
        peer_.ranks = static_cast<rank_t>(get(at + 24, 4));
        peer_.rank = static_cast<rank_t>(get(at + 28, 4));
        peer_.incarnation = get(at + 32, 8);
        peer_.attempt = get(at + 40, 8);
        peer_mode_ = static_cast<mode>(get(at + 6, 1));
        return peer_mode_ == own_mode() && is_bound() == (peer_mode_ == mode::encrypted);
    }
    /// Why the hellos do not fit.
    refusal fault_of_peer() const {
        if (peer_.job != own_.job) return refusal::job;
        if (peer_.build != own_.build) return refusal::build;
        if (peer_.ranks != own_.ranks) return refusal::ranks;
        if (peer_.rank < 0 || peer_.rank >= own_.ranks || peer_.rank == own_.rank) return refusal::rank;
        const auto may_join = [](purpose each) { return each == purpose::mail || each == purpose::join; };
        const bool is_to_join =
            (own_.why == purpose::join && may_join(peer_.why)) || (peer_.why == purpose::join && may_join(own_.why));
        const bool is_same = peer_.why == own_.why && peer_.line == own_.line;
        return is_to_join || is_same ? refusal::none : refusal::purpose;
    }
    /// Both hellos, the dialer's first. The answer proves more bytes than the proof, so neither stands for the other.
    void remember(byte_view dialer, byte_view acceptor) {
        said_ = binding_;
        said_.insert(said_.end(), dialer.begin(), dialer.end());
        said_.insert(said_.end(), acceptor.begin(), acceptor.end());
    }

    static constexpr std::uint64_t magic = 0x6c6c6972;     // "rill"
    static constexpr std::uint64_t tls_greeting = 0x0316;  // a record of TLS that holds a handshake

    identity own_, peer_{.rank = no_rank};
    prover key_;
    mode peer_mode_ = mode::bare;
    std::vector<std::byte> own_hello_, binding_, in_, out_, said_;
    std::size_t goal_ = greeting_bytes, written_ = 0;
    std::uint64_t peer_taken_ = 0;
    state state_ = state::needs_more;
    refusal why_ = refusal::none;
    bool is_proven_ = false;
};

/// The end that made the connection.
class dialer : public handshake {
  public:
    /// Whom it dials: `no_rank`, 0 where that is not known.
    struct expected {
        rank_t rank = no_rank;
        std::uint64_t incarnation = 0;
    };
    dialer(const identity& own, const expected& peer, prover key, const nonce& fresh)
        : handshake(own, key, fresh), expected_(peer) {
        say_hello();
    }

    state arrived(byte_view bytes) {
        if (!collect(bytes)) return state_;
        if (goal_ == greeting_bytes) {
            if (const refusal fault = fault_of_greeting(); fault != refusal::none) refuse_for(fault);
        } else if (goal_ == hello_bytes) {
            remember(own_hello_, in_);
            if (!read_hello()) {
                refuse_for(refusal::security);
            } else if ((fault_ = fault_of_peer()) != refusal::none) {
                prove_taken(0);
            } else if (expected_.rank != no_rank && expected_.rank != peer_.rank) {
                refuse_for(refusal::rank);
            } else if (expected_.incarnation != 0 && expected_.incarnation != peer_.incarnation) {
                refuse_for(refusal::incarnation);
            } else {
                state_ = state::asks;
            }
        } else {
            end();
        }
        return state_;
    }
    /// Answers `asks`: how many bytes of the conversation this end has taken. The conversation must be detached, so
    /// that the number does not change any more.
    void prove(std::uint64_t taken) {
        RILL_EXPECTS(state_ == state::asks, "tcp: this handshake does not ask for a proof");
        prove_taken(taken);
    }

  private:
    void prove_taken(std::uint64_t taken) {
        std::byte content[8];
        put(content, taken, 8);
        say_proven(content);
        expect(answer_bytes);
    }
    void end() {
        const auto reason = static_cast<refusal>(get(in_.data(), 1));
        const bool is_zero = get(in_.data() + 1, 7) == 0;
        if (!ends_with_proof()) return refuse_for(refusal::key);
        if (reason > refusal::seated || !is_zero) return refuse_for(refusal::foreign);
        if (reason != refusal::none) return refuse_for(reason);
        if (fault_ != refusal::none) return refuse_for(fault_);
        peer_taken_ = get(in_.data() + 8, 8);
        state_ = state::agreed;
    }

    expected expected_;
    refusal fault_ = refusal::none;  ///< found in the hello of the acceptor
};

/// The end that was dialled.
class acceptor : public handshake {
  public:
    acceptor(const identity& own, prover key, const nonce& fresh) : handshake(own, key, fresh) {}

    state arrived(byte_view bytes) {
        if (!collect(bytes)) return state_;
        if (goal_ == greeting_bytes) {
            const refusal fault = fault_of_greeting();
            // One that does not speak the protocol learns nothing of this rank.
            if (fault != refusal::foreign) say_hello();
            if (fault != refusal::none) refuse_for(fault);
        } else if (goal_ == hello_bytes) {
            remember(in_, own_hello_);
            read_hello() ? expect(proof_bytes) : refuse_for(refusal::security);
        } else {
            peer_taken_ = get(in_.data(), 8);
            const refusal fault = ends_with_proof() ? fault_of_peer() : refusal::key;
            fault == refusal::none ? void(state_ = state::asks) : answer(fault, 0);
        }
        return state_;
    }
    /// Answers `asks`: agrees, and tells how many bytes of the conversation this end has taken.
    void accept(std::uint64_t taken) { settle(refusal::none, taken); }
    /// Answers `asks`: refuses, and says why.
    void refuse(refusal reason) {
        RILL_EXPECTS(reason != refusal::none, "tcp: a refusal has a reason");
        settle(reason, 0);
    }

  private:
    void settle(refusal reason, std::uint64_t taken) {
        RILL_EXPECTS(state_ == state::asks, "tcp: this handshake does not ask for a decision");
        answer(reason, taken);
    }
    void answer(refusal reason, std::uint64_t taken) {
        std::byte content[16]{};
        put(content, static_cast<std::uint64_t>(reason), 1);
        put(content + 8, taken, 8);
        say_proven(content);
        why_ = reason;
        state_ = reason == refusal::none ? state::agreed : state::refused;
    }
};

}}}  // namespace rill::RILL_ABI::tcp::detail
