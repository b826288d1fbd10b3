#pragma once

#include <rill/gradient_code/detail/worker_set.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace gradient_code::detail {

/// A cache of the rows of recent survivor sets: at most 256 rows and 1 MiB, in buckets of four, from which the least
/// recently used row is evicted. Several threads may use it; they block each other for the time of a copy.
class row_cache {
  public:
    explicit row_cache(int workers)
        : workers_(static_cast<std::size_t>(workers)), words_(worker_set::words_for(workers)) {
        while (buckets_ > 1 && buckets_ * ways * workers_ * sizeof(double) > most_bytes) buckets_ /= 2;
    }

    /// Returns the error of the row of `set` and writes its coefficients for `survivors` to `row`; returns nothing if
    /// the row is not cached.
    std::optional<double> find(const worker_set& set, std::span<const int> survivors, std::span<double> row) {
        const std::size_t bucket = set.hash() & (buckets_ - 1);
        const lock held(busy_);
        if (entries_.empty()) return std::nullopt;
        for (std::size_t slot = bucket * ways; slot < (bucket + 1) * ways; ++slot) {
            if (entries_[slot].used == 0 ||
                !std::equal(set.words().begin(), set.words().end(), keys_.data() + slot * words_))
                continue;
            entries_[slot].used = ++now_;
            const double* values = rows_.data() + slot * workers_;
            for (std::size_t i = 0; i < survivors.size(); ++i) row[i] = values[survivors[i]];
            return entries_[slot].error;
        }
        return std::nullopt;
    }

    /// Caches a row with an element for each worker.
    void keep(const worker_set& set, std::span<const double> row, double error) {
        const std::size_t bucket = set.hash() & (buckets_ - 1);
        const lock held(busy_);
        if (entries_.empty()) {
            keys_.resize(buckets_ * ways * words_);
            rows_.resize(buckets_ * ways * workers_);
            entries_.resize(buckets_ * ways);
        }
        std::size_t oldest = bucket * ways;
        for (std::size_t slot = oldest + 1; slot < (bucket + 1) * ways; ++slot)
            if (entries_[slot].used < entries_[oldest].used) oldest = slot;
        std::copy(set.words().begin(), set.words().end(), keys_.data() + oldest * words_);
        std::copy(row.begin(), row.end(), rows_.data() + oldest * workers_);
        entries_[oldest] = {.used = ++now_, .error = error};
    }

  private:
    static constexpr std::size_t ways = 4;
    static constexpr std::size_t most_bytes = std::size_t{1} << 20;

    struct entry {
        std::uint64_t used = 0;  ///< when it was used last; 0: empty
        double error = 0;
    };

    class lock {
      public:
        explicit lock(std::atomic_flag& flag) : flag_(flag) {
            while (flag_.test_and_set(std::memory_order_acquire)) flag_.wait(true, std::memory_order_relaxed);
        }
        ~lock() {
            flag_.clear(std::memory_order_release);
            flag_.notify_one();
        }
        lock(const lock&) = delete;
        lock& operator=(const lock&) = delete;

      private:
        std::atomic_flag& flag_;
    };

    std::size_t workers_;
    std::size_t words_;
    std::size_t buckets_ = 64;
    std::vector<std::uint64_t> keys_;
    std::vector<double> rows_;
    std::vector<entry> entries_;
    std::uint64_t now_ = 0;
    std::atomic_flag busy_;
};

}}}  // namespace rill::RILL_ABI::gradient_code::detail
