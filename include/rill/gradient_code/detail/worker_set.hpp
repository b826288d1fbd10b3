#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace gradient_code::detail {

/// A set of workers below `capacity`, as one bit for each.
class worker_set {
  public:
    static constexpr int capacity = 1024;
    static constexpr std::size_t words_for(int workers) { return (static_cast<std::size_t>(workers) + 63) / 64; }

    /// Makes the set of `members`: distinct workers below `workers`, in any order.
    worker_set(std::span<const int> members, int workers) : words_(words_for(workers)) {
        for (const int worker : members) {
            RILL_EXPECTS(0 <= worker && worker < workers, "gradient code: a survivor is not one of the workers");
            bits_[word(worker)] |= bit(worker);
        }
        RILL_EXPECTS(count() == members.size(), "gradient code: a worker appears twice among the survivors");
    }

    bool contains(int worker) const { return (bits_[word(worker)] & bit(worker)) != 0; }
    std::size_t count() const {
        int count = 0;
        for (const std::uint64_t bits : words()) count += std::popcount(bits);
        return static_cast<std::size_t>(count);
    }
    std::span<const std::uint64_t> words() const { return {bits_.data(), words_}; }
    std::uint64_t hash() const {
        std::uint64_t mixed = 0;
        for (const std::uint64_t bits : words()) mixed = mix64(mixed ^ bits);
        return mixed;
    }

  private:
    static constexpr std::size_t word(int worker) { return static_cast<std::size_t>(worker) / 64; }
    static constexpr std::uint64_t bit(int worker) { return std::uint64_t{1} << (static_cast<unsigned>(worker) % 64); }

    std::array<std::uint64_t, capacity / 64> bits_{};
    std::size_t words_;
};

}}}  // namespace rill::RILL_ABI::gradient_code::detail
