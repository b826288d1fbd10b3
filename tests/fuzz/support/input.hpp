#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rill::fuzz {

/// Takes an input apart from front to back; after its end it reads zeros.
class input {
  public:
    input(const std::uint8_t* data, std::size_t size) : rest_(std::as_bytes(std::span(data, size))) {}

    template <class N>
        requires std::is_arithmetic_v<N>
    N number() {
        N value{};
        const byte_view taken = bytes(sizeof(N));
        if (!taken.empty()) std::memcpy(&value, taken.data(), taken.size());
        return value;
    }
    /// A small number in [0, end), from one byte.
    unsigned below(unsigned end) { return number<std::uint8_t>() % end; }
    bool flag() { return below(2) != 0; }

    /// The next bytes: `count` of them, or as many as are left.
    byte_view bytes(std::size_t count) {
        const byte_view taken = rest_.first(std::min(count, rest_.size()));
        rest_ = rest_.subspan(taken.size());
        return taken;
    }
    byte_view rest() const { return rest_; }
    bool done() const { return rest_.empty(); }

  private:
    byte_view rest_;
};

/// How many codings of indices `chosen_index_coding` chooses among.
inline constexpr unsigned index_choices = static_cast<unsigned>(index_codings.size()) + 1;

/// All that a sender can ask for. A new coding comes last, so that the corpus keeps its meaning.
inline index_coding chosen_index_coding(unsigned choice) {
    constexpr unsigned smallest = 3;
    if (choice == smallest) return index_coding::smallest;
    return index_codings[choice < smallest ? choice : choice - 1];
}

/// A copy as a receiver has it: aligned, in an allocation of exactly its size, so that reading beyond it is noticed.
inline buffer copy_of(byte_view bytes) { return {bytes.begin(), bytes.end()}; }

}  // namespace rill::fuzz
