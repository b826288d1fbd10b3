#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/train/detail/shuffled_rows.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Which rows a rank works on in each step of a job whose members change.
///
/// Step s works on `batch` rows, whoever the members are: all of them together take the next rows of the epoch's
/// permutation, as `sampler` does, and split them as evenly as they can. So the rows of a step are a pure function of
/// (key, step), and the share of a rank one of (key, step, view): each row goes to one member in every view, a step
/// that is repeated in another view works on the same rows, and who joins knows its rows without being told.
///
/// Shares differ by one row at most. For the mean over the step's rows a member contributes the sum over its own, with
/// their number as the weight (`contribution{.weight = …}` with `aggregate::mean`, which does not multiply the input).
/// As the number of rows stays, so may the rate; of a result to which fewer have contributed, the receipt's weight is
/// the number of rows in it. Memory: 4 bytes per row.
class shares {
  public:
    struct options {
        std::size_t rows = 0;
        std::size_t batch = 32;  ///< rows per step, of all members together
        rank_t rank = 0;         ///< this rank, as views name it
        random_key key{};
    };

    explicit shares(const options& chosen) : options_(chosen), order_(chosen.rows) {
        rill::detail::require_option(chosen.batch > 0 && chosen.batch <= chosen.rows, "train::shares: batch",
                                     chosen.batch, text_of({"from 1 to ", chosen.rows, ", the number of rows"}));
        RILL_EXPECTS(chosen.rows <= 0xFFFFFFFFU, "shares: rows that 32 bits can number");
        detail::shuffle_rows(order_, chosen.key, epoch_);
    }

    std::size_t steps_per_epoch() const { return options_.rows / options_.batch; }

    /// The rows of this rank in a step, counted from 0; valid until the next call. There are none where the members are
    /// more than the rows. This rank must be a member. Cost: where another epoch begins, a permutation of all rows.
    friend std::span<const std::uint32_t> share_of(shares& data, const view& crew, std::uint64_t step) {
        return data.rows_of(crew, step);
    }

  private:
    std::span<const std::uint32_t> rows_of(const view& crew, std::uint64_t step) {
        RILL_EXPECTS(crew.contains(options_.rank), "share_of: this rank must be a member");
        const std::uint64_t epoch = step / steps_per_epoch();
        if (epoch != epoch_) detail::shuffle_rows(order_, options_.key, epoch);
        epoch_ = epoch;
        const auto place = std::lower_bound(crew.members.begin(), crew.members.end(), options_.rank);
        const segment own =
            split(options_.batch, crew.members.size(), static_cast<std::size_t>(place - crew.members.begin()));
        const auto first = static_cast<std::size_t>(step % steps_per_epoch()) * options_.batch;
        return std::span<const std::uint32_t>(order_).subspan(first + own.begin, own.size());
    }

    options options_;
    std::vector<std::uint32_t> order_;
    std::uint64_t epoch_ = 0;  ///< of `order_`
};

}}}  // namespace rill::RILL_ABI::train
