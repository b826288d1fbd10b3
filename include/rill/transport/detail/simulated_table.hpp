#pragma once

#include <rill/core/config.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// A hash table; its values move when others are inserted or erased. Open addressing without tombstones: a table whose
/// entries come and go allocates nothing once it has grown.
template <class Key, class Value>
class table {
  public:
    Value* find(const Key& key) {
        if (slots_.empty()) return nullptr;
        slot& s = slots_[place_of(key)];
        return s.used ? &s.value : nullptr;
    }

    /// The value of `key`; inserts one where there is none.
    Value& operator[](const Key& key) {
        if (4 * (count_ + 1) > 3 * slots_.size()) grow();
        slot& s = slots_[place_of(key)];
        if (!s.used) {
            s = slot{key, Value{}, true};
            ++count_;
        }
        return s.value;
    }

    void erase(const Key& key) noexcept {
        if (slots_.empty()) return;
        std::size_t hole = place_of(key);
        if (!slots_[hole].used) return;
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t i = (hole + 1) & mask; slots_[i].used; i = (i + 1) & mask) {
            const std::size_t home = slots_[i].key.hash() & mask;
            if (((i - home) & mask) < ((i - hole) & mask)) continue;
            slots_[hole] = std::move(slots_[i]);
            hole = i;
        }
        slots_[hole] = slot{};
        --count_;
    }

    /// Erases entries; costs a pass over the whole table.
    template <class Predicate>
    void erase_if(Predicate&& is_meant) {
        std::vector<slot> old(slots_.size());
        old.swap(slots_);
        count_ = 0;
        for (slot& s : old)
            if (s.used && !is_meant(s.key)) {
                slots_[place_of(s.key)] = std::move(s);
                ++count_;
            }
    }

    std::size_t size() const { return count_; }

    /// Visits all entries, in no particular order.
    template <class Visit>
    void for_each(Visit&& visit) const {
        for (const slot& s : slots_)
            if (s.used) visit(s.key, s.value);
    }

  private:
    struct slot {
        Key key{};
        Value value{};
        bool used = false;
    };

    /// The place of `key`, or the place where it would be inserted.
    std::size_t place_of(const Key& key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t i = key.hash() & mask;
        while (slots_[i].used && !(slots_[i].key == key)) i = (i + 1) & mask;
        return i;
    }

    void grow() {
        std::vector<slot> old(slots_.empty() ? 16 : 2 * slots_.size());
        old.swap(slots_);
        for (slot& s : old)
            if (s.used) slots_[place_of(s.key)] = std::move(s);
    }

    std::vector<slot> slots_;
    std::size_t count_ = 0;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
