// Encryption of a connection by TLS 1.3, below the handshake of two ranks. No I/O. Needs OpenSSL's libssl.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// What the encrypted connections of a rank have in common: TLS 1.3 (RFC 8446) with a secret of 32 bytes as external
/// pre-shared key, TLS_AES_128_GCM_SHA256, and X25519, so that who learns the secret later cannot read what was said
/// before. There are no certificates: who does not have the secret completes no handshake. Throws `library_error` where
/// libssl refuses.
class tls_context {
  public:
    explicit tls_context(byte_view secret) : all_(SSL_CTX_new(TLS_method())), known_(SSL_SESSION_new()) {
        RILL_EXPECTS(secret.size() == secret_bytes, "tcp: the secret of TLS has 32 bytes");
        SSL_CTX* const all = all_.get();
        require(all != nullptr && known_ != nullptr);
        require(SSL_CTX_set_min_proto_version(all, TLS1_3_VERSION) == 1 &&
                SSL_CTX_set_max_proto_version(all, TLS1_3_VERSION) == 1 &&
                SSL_CTX_set_ciphersuites(all, "TLS_AES_128_GCM_SHA256") == 1 &&
                SSL_CTX_set1_groups_list(all, "X25519") == 1 && SSL_CTX_set_num_tickets(all, 0) == 1);
        SSL_CTX_set_session_cache_mode(all, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_mode(all, SSL_MODE_RELEASE_BUFFERS);
        static constexpr unsigned char suite[] = {0x13, 0x01};
        const std::unique_ptr<SSL, freed> any(SSL_new(all));
        require(any != nullptr && SSL_SESSION_set_protocol_version(known_.get(), TLS1_3_VERSION) == 1 &&
                SSL_SESSION_set_cipher(known_.get(), SSL_CIPHER_find(any.get(), suite)) == 1 &&
                SSL_SESSION_set1_master_key(known_.get(), reinterpret_cast<const unsigned char*>(secret.data()),
                                            secret.size()) == 1 &&
                SSL_CTX_set_app_data(all, known_.get()) == 1);
        SSL_SESSION_set_time(known_.get(), 1);  // expired on purpose: each handshake needs a fresh copy
        SSL_CTX_set_psk_use_session_callback(all, offer);
        SSL_CTX_set_psk_find_session_callback(all, find);
    }

  private:
    friend class tls;
    struct freed {
        void operator()(SSL_CTX* of) const noexcept { SSL_CTX_free(of); }
        void operator()(SSL_SESSION* of) const noexcept { SSL_SESSION_free(of); }
        void operator()(SSL* of) const noexcept { SSL_free(of); }
    };
    static constexpr std::size_t secret_bytes = 32;
    static constexpr unsigned char identity[] = {'r', 'i', 'l', 'l'};

    static void require(bool done) {
        if (!done) throw library_error(no_rank, "libssl cannot encrypt: " + error_text());
    }
    static std::string error_text() {
        char text[256] = "";
        ERR_error_string_n(ERR_get_error(), text, sizeof text);
        ERR_clear_error();
        return text;
    }
    /// For one handshake. The dialer's connection changes what it is given, and libssl lets a session expire after some
    /// minutes, which a secret does not.
    static SSL_SESSION* copy_of_known(SSL* of) {
        SSL_SESSION* const made = SSL_SESSION_dup(static_cast<SSL_SESSION*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(of))));
        if (made != nullptr) SSL_SESSION_set_time(made, static_cast<long>(std::time(nullptr)));
        return made;
    }
    static int offer(SSL* of, const EVP_MD*, const unsigned char** name, std::size_t* size, SSL_SESSION** session) {
        *name = identity;
        *size = sizeof identity;
        *session = copy_of_known(of);
        return *session != nullptr;
    }
    static int find(SSL* of, const unsigned char* name, std::size_t size, SSL_SESSION** session) {
        const bool is_known = size == sizeof identity && std::memcmp(name, identity, size) == 0;
        *session = is_known ? copy_of_known(of) : nullptr;
        return !is_known || *session != nullptr;
    }

    std::unique_ptr<SSL_CTX, freed> all_;
    std::unique_ptr<SSL_SESSION, freed> known_;
};

/// One end of an encrypted connection: the caller carries `outgoing` to the other end and reads what comes into `room`;
/// `say` encrypts and `take` decrypts. Until `trust`, an end takes at most 2 KiB from the connection. An end that hears
/// no TLS at all becomes `clear`: it takes and says bytes as they are, so that a handshake can tell the other end why
/// it is refused; nothing else may be said then.
///
/// Records hold 16 KiB where that much is said. Bytes are copied once more than TLS itself does when they are said in
/// shorter pieces. Memory: about 45 KiB, and up to 200 KiB once it is trusted.
class tls {
  public:
    enum class state {
        greets,  ///< the TLS handshake is under way
        ready,
        clear,  ///< the other end does not encrypt
        failed  ///< nothing more can be taken or said; what is outgoing can still be written
    };
    using binding = std::array<std::byte, 32>;
    static constexpr std::size_t most_untrusted = 2048;  ///< bytes from the connection
    static constexpr std::size_t record_bytes = 16384;
    static constexpr std::size_t most_said = 8 * record_bytes;  ///< by one call of `say`
    /// Said by one key; 2^24.5 records are allowed.
    static constexpr std::uint64_t rekey_bytes = std::uint64_t{1} << 36;

    tls(const tls_context& with, bool dials, std::uint64_t most_by_key = rekey_bytes)
        : ssl_(SSL_new(with.all_.get())), most_by_key_(most_by_key) {
        BIO* const carries = BIO_new(method());
        tls_context::require(ssl_ != nullptr && carries != nullptr);
        BIO_set_data(carries, this);
        BIO_set_init(carries, 1);
        SSL_set_bio(ssl_.get(), carries, carries);
        if (!dials) {
            SSL_set_accept_state(ssl_.get());
            return;
        }
        SSL_set_connect_state(ssl_.get());
        // No certificate is known, so an acceptor that shows one instead of having the secret is refused.
        SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
        greet();
    }
    tls(const tls&) = delete;
    tls& operator=(const tls&) = delete;

    state now() const { return state_; }
    /// Whether it failed because the ends have different secrets, as far as it is known.
    bool has_other_secret() const { return has_other_secret_; }
    /// A value that both ends of this connection share and nobody else knows, once it is ready.
    binding exported() const {
        RILL_EXPECTS(state_ == state::ready, "tcp: TLS exports nothing before its handshake has ended");
        static constexpr char label[] = "EXPORTER-rill-tcp-1";
        binding made;
        tls_context::require(SSL_export_keying_material(ssl_.get(), reinterpret_cast<unsigned char*>(made.data()),
                                                        made.size(), label, sizeof label - 1, nullptr, 0, 0) == 1);
        return made;
    }
    /// The other end has proved who it is: from now on any number of bytes may come.
    void trust() {
        is_trusted_ = true;
        SSL_clear_mode(ssl_.get(), SSL_MODE_RELEASE_BUFFERS);
    }

    // Towards the connection.

    /// Where to read to; empty where no more may come. Valid until the next call of anything.
    byte_span room() {
        if (state_ == state::failed) return {};
        std::copy(in_.begin() + offset(in_at_), in_.begin() + offset(in_end_), in_.begin());
        in_end_ -= in_at_;
        in_at_ = 0;
        const std::size_t most = is_trusted_ ? buffer_bytes : in_end_ + most_untrusted - came_;
        if (in_.size() != most) in_.resize(most);
        return byte_span(in_).subspan(in_end_);
    }
    /// The first `count` bytes of the room have been filled.
    void arrived(std::size_t count) {
        RILL_EXPECTS(count <= in_.size() - in_end_, "tcp: more arrived than there was room for");
        constexpr auto first = std::byte{20}, last = std::byte{23};  // the types of records
        if (count != 0 && came_ == 0 && (in_[0] < first || in_[0] > last)) state_ = state::clear;
        if (!is_trusted_) came_ += count;
        in_end_ += count;
        if (state_ == state::greets) greet();
    }
    byte_view outgoing() const { return byte_view(out_).subspan(written_); }
    void wrote(std::size_t count) {
        RILL_EXPECTS(count <= outgoing().size(), "tcp: more was written than there is");
        written_ += count;
        if (written_ != out_.size()) return;
        out_.clear();
        written_ = 0;
    }

    // Towards the rank.

    /// Decrypts what has come, at most one record. Returns how many bytes; 0 where nothing is there.
    std::size_t take(byte_span into) {
        std::size_t count = 0;
        if (state_ == state::clear) {
            count = std::min(into.size(), in_end_ - in_at_);
            std::copy_n(in_.begin() + offset(in_at_), count, into.begin());
            in_at_ += count;
        } else if (state_ == state::ready && !into.empty()) {
            ERR_clear_error();
            if (SSL_read_ex(ssl_.get(), into.data(), into.size(), &count) != 1) {
                count = 0;
                if (SSL_get_error(ssl_.get(), 0) != SSL_ERROR_WANT_READ) state_ = state::failed;
            }
        }
        return count;
    }
    /// Whether bytes have come that may not have been taken.
    bool holds() const { return in_at_ != in_end_ || (state_ == state::ready && SSL_has_pending(ssl_.get()) == 1); }
    /// Encrypts the first bytes of the pieces, at most `most_said`. Returns how many; 0 while there is something
    /// outgoing, or the handshake is under way.
    std::size_t say(std::span<const byte_view> pieces) {
        if (written_ != out_.size()) return 0;
        std::size_t said = 0;
        staged_.clear();
        for (byte_view piece : pieces)
            while (!piece.empty() && said < most_said && (state_ == state::ready || state_ == state::clear)) {
                const bool is_whole = staged_.empty() && piece.size() >= record_bytes;
                const byte_view next = piece.first(std::min(piece.size(), record_bytes - staged_.size()));
                piece = piece.subspan(next.size());
                said += next.size();
                if (is_whole) {
                    seal(next);
                } else {
                    staged_.insert(staged_.end(), next.begin(), next.end());
                    if (staged_.size() == record_bytes) seal(staged_), staged_.clear();
                }
            }
        if (!staged_.empty()) seal(staged_);
        return state_ == state::failed ? 0 : said;
    }

  private:
    static constexpr std::size_t buffer_bytes = std::size_t{64} << 10;

    static std::ptrdiff_t offset(std::size_t of) { return static_cast<std::ptrdiff_t>(of); }

    void greet() {
        ERR_clear_error();
        const int done = SSL_do_handshake(ssl_.get());
        if (done == 1) {
            state_ = SSL_session_reused(ssl_.get()) == 1 ? state::ready : state::failed;
        } else if (SSL_get_error(ssl_.get(), done) != SSL_ERROR_WANT_READ) {
            state_ = state::failed;
            const int reason = ERR_GET_REASON(ERR_peek_error());
            has_other_secret_ = reason == SSL_R_BINDER_DOES_NOT_VERIFY || reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER;
        }
        ERR_clear_error();
    }
    void seal(byte_view bytes) {
        if (state_ == state::clear) {
            out_.insert(out_.end(), bytes.begin(), bytes.end());
            return;
        }
        if (by_this_key_ >= most_by_key_) {
            by_this_key_ = 0;
            if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) state_ = state::failed;
        }
        by_this_key_ += bytes.size();
        std::size_t count = 0;
        ERR_clear_error();
        if (SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count) != 1) state_ = state::failed;
    }

    // What libssl reads from and writes to. The text of a record goes from `in_` to the memory of libssl and is
    // decrypted there.
    static const BIO_METHOD* method() {
        static const std::unique_ptr<BIO_METHOD, void (*)(BIO_METHOD*)> made(
            BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rill"), BIO_meth_free);
        static const bool is_set = made != nullptr && BIO_meth_set_read_ex(made.get(), read) == 1 &&
                                   BIO_meth_set_write_ex(made.get(), write) == 1 &&
                                   BIO_meth_set_ctrl(made.get(), control) == 1;
        tls_context::require(is_set);
        return made.get();
    }
    static int read(BIO* by, char* to, std::size_t size, std::size_t* count) {
        tls& of = *static_cast<tls*>(BIO_get_data(by));
        *count = std::min(size, of.in_end_ - of.in_at_);
        BIO_clear_retry_flags(by);
        if (*count == 0) {
            BIO_set_retry_read(by);
            return 0;
        }
        std::memcpy(to, of.in_.data() + of.in_at_, *count);
        of.in_at_ += *count;
        return 1;
    }
    static int write(BIO* by, const char* from, std::size_t size, std::size_t* count) {
        tls& of = *static_cast<tls*>(BIO_get_data(by));
        const byte_view bytes = std::as_bytes(std::span(from, size));
        BIO_clear_retry_flags(by);
        try {
            of.out_.insert(of.out_.end(), bytes.begin(), bytes.end());
        } catch (const std::bad_alloc&) {
            return 0;
        }
        *count = size;
        return 1;
    }
    static long control(BIO*, int what, long, void*) { return what == BIO_CTRL_FLUSH ? 1 : 0; }

    std::unique_ptr<SSL, tls_context::freed> ssl_;
    state state_ = state::greets;
    bool has_other_secret_ = false, is_trusted_ = false;
    std::vector<std::byte> in_, out_, staged_;
    std::size_t in_at_ = 0, in_end_ = 0, written_ = 0;
    std::size_t came_ = 0;  ///< before it was trusted
    std::uint64_t by_this_key_ = 0, most_by_key_;
};

}}}  // namespace rill::RILL_ABI::tcp::detail
