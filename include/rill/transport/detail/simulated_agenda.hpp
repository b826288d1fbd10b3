#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// Something that happens at an instant; the base class of the objects to which it happens.
struct appointment {
    enum class what : std::uint8_t { expiry, arrival, letter, fault };
    static constexpr std::size_t nowhere = ~std::size_t{0};

    explicit appointment(what happens) : kind(happens) {}

    what kind;
    std::size_t place = nowhere;  ///< in the agenda's heap

    bool pending() const { return place != nowhere; }
};

/// The future appointments, in the order (time, sequence). Adding, removing and taking cost O(log n).
class agenda {
  public:
    struct entry {
        time_point at{};
        std::uint64_t sequence = 0;
        appointment* item = nullptr;

        friend bool operator<(const entry& a, const entry& b) {
            return a.at != b.at ? a.at < b.at : a.sequence < b.sequence;
        }
    };

    bool empty() const { return heap_.empty(); }

    void add(appointment& item, time_point at) {
        heap_.push_back({at, sequence_++, &item});
        rise(heap_.size() - 1, heap_.back());
    }

    void remove(appointment& item) noexcept {
        const std::size_t hole = item.place;
        item.place = appointment::nowhere;
        const entry last = heap_.back();
        heap_.pop_back();
        if (hole == heap_.size()) return;
        if (hole > 0 && last < heap_[(hole - 1) / 2])
            rise(hole, last);
        else
            sink(hole, last);
    }

    entry take_first() noexcept {
        const entry first = heap_.front();
        remove(*first.item);
        return first;
    }

  private:
    void put(std::size_t i, const entry& e) {
        heap_[i] = e;
        e.item->place = i;
    }
    void rise(std::size_t i, const entry& moving) {
        const entry e = moving;
        for (; i > 0 && e < heap_[(i - 1) / 2]; i = (i - 1) / 2) put(i, heap_[(i - 1) / 2]);
        put(i, e);
    }
    void sink(std::size_t i, const entry& moving) {
        const entry e = moving;
        for (std::size_t child = 2 * i + 1; child < heap_.size(); child = 2 * i + 1) {
            if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
            if (!(heap_[child] < e)) break;
            put(i, heap_[child]);
            i = child;
        }
        put(i, e);
    }

    std::vector<entry> heap_;
    std::uint64_t sequence_ = 0;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
