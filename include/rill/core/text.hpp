#pragma once

#include <rill/core/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

namespace rill { inline namespace RILL_ABI {

/// A piece of a message: characters, or a number in the notation of `std::to_string`. It refers to the characters.
class text_piece {
  public:
    // NOLINTBEGIN(google-explicit-constructor): a text is written as a list of what it consists of
    constexpr text_piece(const char* text) : text_piece(std::string_view(text)) {}
    constexpr text_piece(std::string_view text) : text_(text.data()), size_(text.size()) {}
    text_piece(const std::string& text) : text_piece(std::string_view(text)) {}
    template <std::signed_integral Number>
    constexpr text_piece(Number number) : bits_(static_cast<std::uint64_t>(number)), size_(with_sign) {}
    template <std::unsigned_integral Number>
    constexpr text_piece(Number number) : bits_(number), size_(without_sign) {}
    constexpr text_piece(double number) : real_(number), size_(real) {}
    text_piece(char) = delete;
    // NOLINTEND(google-explicit-constructor)

  private:
    friend std::string text_of(std::initializer_list<text_piece> pieces);
    // In place of a size; no text is as long.
    static constexpr std::uint64_t real = ~std::uint64_t{0}, without_sign = real - 1, with_sign = real - 2;

    union {
        const char* text_;
        std::uint64_t bits_;
        double real_;
    };
    std::uint64_t size_;  ///< how many characters, or the kind of the number
};

/// Composes a message: `text_of({"rank ", rank, " sent nothing"})`. It is compiled once; a chain of `+` would be
/// compiled anew wherever a message is made.
[[gnu::noinline]] inline std::string text_of(std::initializer_list<text_piece> pieces) {
    std::string all;
    char digits[512];  // room for the largest double
    for (const text_piece& each : pieces) {
        int size = 0;
        switch (each.size_) {
            case text_piece::with_sign:
                size = std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(each.bits_));
                break;
            case text_piece::without_sign:
                size = std::snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(each.bits_));
                break;
            case text_piece::real: size = std::snprintf(digits, sizeof digits, "%f", each.real_); break;
            default: all.append(each.text_, static_cast<std::size_t>(each.size_)); continue;
        }
        all.append(digits, static_cast<std::size_t>(size));
    }
    return all;
}

}}  // namespace rill::RILL_ABI
