#pragma once

#include <rill/core/contract.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/train/data_error.hpp>
#include <rill/train/detail/shuffled_rows.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Which rows a rank works on in each step.
///
/// Every epoch has its own permutation of the rows, a pure function of (key, epoch) and so the same on all ranks.
/// Each step takes the next `ranks * batch` entries as the global batch; rank r gets the r-th `batch` of them.
/// The rows that do not fill a last global batch are left out of that epoch. Memory: 4 bytes per row. Stepping does not
/// allocate.
class sampler {
  public:
    struct options {
        std::size_t rows = 0;
        std::size_t batch = 32;  ///< rows per rank and step
        rank_t rank = 0;
        int ranks = 1;
        random_key key{};
    };

    explicit sampler(const options& chosen) : options_(chosen) {
        RILL_EXPECTS(chosen.ranks > 0 && chosen.rank >= 0 && chosen.rank < chosen.ranks, "sampler: a rank of a group");
        const std::size_t most = chosen.rows / static_cast<std::size_t>(chosen.ranks);
        RILL_EXPECTS(most > 0, "sampler: fewer rows than ranks, so no batch has a row of each rank");
        if (chosen.batch == 0 || chosen.batch > most)
            rill::detail::refuse_option(
                "train::sampler: batch", rill::detail::spelled_value(chosen.batch),
                text_of({"from 1 to ", most, " (rows: ", chosen.rows, ", ranks: ", chosen.ranks, ")"}), no_rank);
        RILL_EXPECTS(chosen.rows <= 0xFFFFFFFFU, "sampler: rows that 32 bits can number");
        order_.resize(chosen.rows);
        shuffle();
    }

    std::size_t steps_per_epoch() const { return options_.rows / global_batch(); }
    /// The epoch of the next batch.
    std::uint64_t epoch() const { return epoch_; }
    /// The step of the next batch within its epoch.
    std::size_t step() const { return step_; }

    /// The rows of this rank's next batch; valid until the next call.
    std::span<const std::uint32_t> next() {
        if (is_epoch_over_) shuffle();
        const std::size_t first = step_ * global_batch() + static_cast<std::size_t>(options_.rank) * options_.batch;
        if (++step_ == steps_per_epoch()) {
            step_ = 0;
            ++epoch_;
            is_epoch_over_ = true;
        }
        return std::span(order_).subspan(first, options_.batch);
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "sampler", state());
    }
    /// Throws `data_error`, and changes nothing, if rows, global batch or key differ from those of this sampler.
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        const std::string name = std::string(prefix) + "sampler";
        saved_state saved{};
        in.read(name, saved);
        const saved_state own = state();
        constexpr const char* what[] = {"rows", "rows per global batch", "the random key"};
        for (std::size_t i = 0; i < 3; ++i)
            if (saved[i] != own[i])
                throw data_error(in.path(), "section \"" + name + "\", " + what[i], std::to_string(own[i]),
                                 std::to_string(saved[i]));
        if (saved[4] >= steps_per_epoch())
            throw data_error(in.path(), "section \"" + name + "\", step",
                             "less than " + std::to_string(steps_per_epoch()), std::to_string(saved[4]));
        epoch_ = saved[3];
        step_ = static_cast<std::size_t>(saved[4]);
        shuffle();
    }

  private:
    using saved_state = std::array<std::uint64_t, 5>;
    saved_state state() const { return {options_.rows, global_batch(), options_.key.value, epoch_, step_}; }

    std::size_t global_batch() const { return options_.batch * static_cast<std::size_t>(options_.ranks); }

    void shuffle() {
        detail::shuffle_rows(order_, options_.key, epoch_);
        is_epoch_over_ = false;
    }

    options options_;
    std::vector<std::uint32_t> order_;
    std::uint64_t epoch_ = 0;
    std::size_t step_ = 0;
    bool is_epoch_over_ = false;
};

}}}  // namespace rill::RILL_ABI::train
