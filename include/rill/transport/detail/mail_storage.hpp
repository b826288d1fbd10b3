#pragma once

#include <rill/core/config.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Uninitialised bytes, aligned to cache lines.
class storage {
  public:
    static constexpr std::size_t alignment = 64;

    storage() = default;
    explicit storage(std::size_t size)
        : data_(static_cast<std::byte*>(::operator new(size, std::align_val_t(alignment)))), size_(size) {}

    std::byte* data() const { return data_.get(); }
    std::size_t size() const { return size_; }
    explicit operator bool() const { return data_ != nullptr; }

    /// Gives the memory up without freeing it, because the port may still write to it.
    void leak() noexcept { (void)data_.release(); }

  private:
    struct freer {
        void operator()(std::byte* data) const noexcept { ::operator delete(data, std::align_val_t(alignment)); }
    };

    std::unique_ptr<std::byte, freer> data_;
    std::size_t size_ = 0;
};

/// Keeps the memory of messages for later ones, so that a steady state allocates nothing.
class storage_pool {
  public:
    /// Returns at least `size` bytes, and not much more than four times as many.
    storage take(std::size_t size) {
        std::size_t best = spare_.size();
        for (std::size_t i = 0; i < spare_.size(); ++i)
            if (fits(spare_[i].size(), size) && (best == spare_.size() || spare_[i].size() < spare_[best].size()))
                best = i;
        if (best == spare_.size()) return storage(size);
        std::swap(spare_[best], spare_.back());
        storage taken = std::move(spare_.back());
        spare_.pop_back();
        bytes_ -= taken.size();
        return taken;
    }

    void put(storage&& unused) noexcept {
        storage given = std::move(unused);
        if (!given || given.size() > most_bytes) return;
        while (spare_.size() == most || bytes_ + given.size() > most_bytes) drop_oldest();
        if (spare_.capacity() < most) spare_.reserve(most);
        bytes_ += given.size();
        spare_.push_back(std::move(given));
    }

    void clear() noexcept {
        spare_.clear();
        bytes_ = 0;
    }

  private:
    static constexpr std::size_t most = 32;
    static constexpr std::size_t most_bytes = std::size_t{256} << 20;
    static bool fits(std::size_t has, std::size_t wanted) { return has >= wanted && has / 4 <= wanted + 4096; }

    void drop_oldest() noexcept {
        bytes_ -= spare_.front().size();
        spare_.erase(spare_.begin());
    }

    std::vector<storage> spare_;
    std::size_t bytes_ = 0;
};

}}}  // namespace rill::RILL_ABI::mail
