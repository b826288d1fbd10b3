#pragma once

#include <rill/core/config.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/types.hpp>
#include <rill/session/contribution_sum.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Whether a rank leaves a run.
struct departure_wish {
    bool retires = false;
    bool ends = false;

    constexpr unsigned count() const { return unsigned{retires} + unsigned{ends}; }
};

/// What all ranks say of themselves in a round of a partial collective: two integers for each rank. A rank fills in its
/// own; the sum over all ranks is the table of all.
class partial_table {
  public:
    void begin(int ranks, rank_t self, const contribution& own, departure_wish wish) {
        numbers_.assign(2 * static_cast<std::size_t>(ranks), 0);
        numbers_[at(self)] = std::bit_cast<std::int64_t>(own.weight);
        numbers_[at(self) + 1] =
            static_cast<std::int64_t>(own.age) << 2U | (wish.ends ? 2 : 0) | (wish.retires ? 1 : 0);
    }
    std::span<std::int64_t> numbers() { return numbers_; }

    bool has_end() const {
        for (std::size_t i = 1; i < numbers_.size(); i += 2)
            if ((numbers_[i] & 2) != 0) return true;
        return false;
    }
    bool retires(rank_t rank) const { return (numbers_[at(rank) + 1] & 1) != 0; }

    /// The ranks whose weight is not 0, ascending.
    void contributors(std::vector<contributor>& in) const {
        in.clear();
        for (std::size_t i = 0; i < numbers_.size(); i += 2)
            if (const auto weight = std::bit_cast<double>(numbers_[i]); weight != 0)
                in.push_back({static_cast<rank_t>(i / 2), static_cast<std::uint32_t>(numbers_[i + 1] >> 2), weight});
    }

  private:
    static std::size_t at(rank_t rank) { return 2 * static_cast<std::size_t>(rank); }

    std::vector<std::int64_t> numbers_;
};

}}}  // namespace rill::RILL_ABI::detail
