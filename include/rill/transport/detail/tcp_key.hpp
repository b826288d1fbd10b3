// The key of a job: with it, ranks prove to each other in the handshake that they belong together. Needs OpenSSL's
// libcrypto.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_error.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rill { inline namespace RILL_ABI { namespace tcp {

namespace detail {

using digest = std::array<std::byte, 32>;

/// HMAC with SHA-256 (RFC 2104), of any key.
inline digest hmac_sha256(byte_view key, byte_view bytes) {
    digest made;
    unsigned size = 0;
    // A null key means the key of the call before.
    static constexpr unsigned char none = 0;
    const void* const at = key.empty() ? static_cast<const void*>(&none) : key.data();
    if (HMAC(EVP_sha256(), at, static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(bytes.data()),
             bytes.size(), reinterpret_cast<unsigned char*>(made.data()), &size) == nullptr ||
        size != made.size())
        throw library_error(no_rank, "libcrypto cannot compute HMAC-SHA-256");
    return made;
}

/// HKDF with SHA-256 (RFC 5869): a secret of at most 255 · 32 bytes, for the use that `info` names. Keys of two uses
/// say nothing about each other.
inline void hkdf_sha256(byte_view secret, byte_view salt, byte_view info, byte_span made) {
    RILL_EXPECTS(made.size() <= 255 * sizeof(digest), "tcp: HKDF makes at most 8160 bytes");
    digest extracted = hmac_sha256(salt, secret), block{};
    buffer said;
    for (unsigned char i = 1; !made.empty(); ++i) {
        said.append(info.begin(), info.end());
        said.push_back(std::byte{i});
        block = hmac_sha256(extracted, said);
        const std::size_t count = std::min(block.size(), made.size());
        std::copy_n(block.begin(), count, made.begin());
        made = made.subspan(count);
        said.assign(block.begin(), block.end());
    }
    OPENSSL_cleanse(said.data(), said.size());
    OPENSSL_cleanse(block.data(), block.size());
    OPENSSL_cleanse(extracted.data(), extracted.size());
}

}  // namespace detail

/// A job's key, or none. All ranks need the same one. Its memory is overwritten when the object ends.
class key {
  public:
    static constexpr std::size_t least_text = 22;  ///< characters: 128 bits in base 64

    /// No key.
    key() = default;
    /// The key that a text stands for, such as `tools/launch --make-key` makes: at least 128 random bits. White space
    /// around it does not count. Throws `library_error` for a text that is too short.
    static key from_text(std::string_view text) {
        text = without_spaces(text);
        if (text.size() < least_text) throw library_error(no_rank, "a key has at least 22 characters");
        key made;
        made.exists_ = true;
        const auto derive = [&](std::string_view use, detail::digest& to) {
            detail::hkdf_sha256(std::as_bytes(std::span(text)), {}, std::as_bytes(std::span(use)), to);
        };
        derive("rill tcp handshake 1", made.proves_);
        derive("rill tcp tls 1", made.encrypts_);
        return made;
    }
    /// Whether `from_text` takes a text for a key.
    static bool is_long_enough(std::string_view text) { return without_spaces(text).size() >= least_text; }
    /// The key in a file, of at most 4096 bytes. Throws `library_error` that names the file, also where another user
    /// than its owner may read or write it.
    static key from_file(const std::string& path) {
        const auto refuse = [&](const std::string& why) {
            throw library_error(no_rank, "the key file " + path + ' ' + why);
        };
        const opened file(path);
        if (file.number < 0) refuse("cannot be opened: " + std::generic_category().message(errno));
        struct stat about {};
        if (::fstat(file.number, &about) != 0 || !S_ISREG(about.st_mode)) refuse("is no file");
        if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) refuse("can be used by others than its owner: chmod 600 it");
        struct erased {
            char text[4097];
            ~erased() { OPENSSL_cleanse(text, sizeof text); }
        } memory;
        auto& text = memory.text;
        std::size_t size = 0;
        ssize_t count = 0;
        do {
            count = ::read(file.number, text + size, sizeof text - size);
            if (count < 0 && errno != EINTR) refuse("cannot be read: " + std::generic_category().message(errno));
            if (count > 0) size += static_cast<std::size_t>(count);
        } while (count != 0 && size < sizeof text);
        if (size == sizeof text) refuse("is longer than 4096 bytes");
        if (!is_long_enough({text, size})) refuse("has no key of at least 22 characters");
        return from_text({text, size});
    }

    key(const key&) = default;
    key& operator=(const key&) = default;
    ~key() {
        OPENSSL_cleanse(proves_.data(), proves_.size());
        OPENSSL_cleanse(encrypts_.data(), encrypts_.size());
    }

    explicit operator bool() const { return exists_; }
    friend bool operator==(const key&, const key&) = default;
    /// What the handshake proves with; refers to this key.
    detail::handshake::prover prover() const& {
        if (!exists_) return {};
        return {this, [](const void* of, byte_view bytes) {
                    return detail::hmac_sha256(static_cast<const key*>(of)->proves_, bytes);
                }};
    }
    detail::handshake::prover prover() const&& = delete;
    /// The pre-shared key of TLS; refers to this key.
    byte_view tls_secret() const& { return encrypts_; }
    byte_view tls_secret() const&& = delete;

  private:
    static std::string_view without_spaces(std::string_view text) {
        const auto is_space = [](char each) { return each == ' ' || (each >= '\t' && each <= '\r'); };
        while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
        while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
        return text;
    }
    struct opened {
        explicit opened(const std::string& path) : number(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
        opened(const opened&) = delete;
        opened& operator=(const opened&) = delete;
        ~opened() {
            if (number >= 0) ::close(number);
        }
        int number;
    };

    detail::digest proves_{}, encrypts_{};
    bool exists_ = false;
};

}}}  // namespace rill::RILL_ABI::tcp
