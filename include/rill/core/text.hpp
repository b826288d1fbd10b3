#pragma once

#include <rill/core/config.hpp>

#include <bit>
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
    constexpr text_piece(std::string_view text) : kind_(kind::characters), bits_(text.size()), text_(text.data()) {}
    text_piece(const std::string& text) : text_piece(std::string_view(text)) {}
    template <std::signed_integral Number>
    constexpr text_piece(Number number) : kind_(kind::with_sign), bits_(static_cast<std::uint64_t>(number)) {}
    template <std::unsigned_integral Number>
    constexpr text_piece(Number number) : kind_(kind::without_sign), bits_(number) {}
    constexpr text_piece(double number) : kind_(kind::real), bits_(std::bit_cast<std::uint64_t>(number)) {}
    text_piece(char) = delete;
    // NOLINTEND(google-explicit-constructor)

  private:
    friend std::string text_of(std::initializer_list<text_piece> pieces);
    enum class kind : unsigned char { characters, with_sign, without_sign, real };

    kind kind_;
    std::uint64_t bits_;  ///< the number, or how many characters
    const char* text_ = nullptr;
};

/// Composes a message: `text_of({"rank ", rank, " sent nothing"})`. It is compiled once; a chain of `+` would be
/// compiled anew wherever a message is made.
[[gnu::noinline]] inline std::string text_of(std::initializer_list<text_piece> pieces) {
    std::string all;
    char digits[512];  // room for the largest double
    for (const text_piece& each : pieces) {
        int size = 0;
        switch (each.kind_) {
            case text_piece::kind::characters: all.append(each.text_, static_cast<std::size_t>(each.bits_)); continue;
            case text_piece::kind::with_sign:
                size = std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(each.bits_));
                break;
            case text_piece::kind::without_sign:
                size = std::snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(each.bits_));
                break;
            case text_piece::kind::real:
                size = std::snprintf(digits, sizeof digits, "%f", std::bit_cast<double>(each.bits_));
                break;
        }
        all.append(digits, static_cast<std::size_t>(size));
    }
    return all;
}

}}  // namespace rill::RILL_ABI
