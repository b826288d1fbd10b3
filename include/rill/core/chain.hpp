#pragma once

#include <rill/core/config.hpp>

#include <cstddef>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A list of few objects, in the order in which they were added, at addresses that stay. It costs the compiler a small
/// part of what `std::vector` costs for each type of element.
template <class T>
class chain {
    struct link {
        T value;
        link* next = nullptr;
    };

  public:
    struct iterator {
        link* at;

        T& operator*() const { return at->value; }
        iterator& operator++() {
            at = at->next;
            return *this;
        }
        bool operator!=(std::nullptr_t) const { return at != nullptr; }
    };

    chain() = default;
    chain(chain&& other) noexcept : first_(other.first_), last_(other.last_) { other.first_ = other.last_ = nullptr; }
    chain& operator=(chain other) noexcept {
        std::swap(first_, other.first_);
        std::swap(last_, other.last_);
        return *this;
    }
    ~chain() {
        for (link* next = nullptr; first_ != nullptr; first_ = next) {
            next = first_->next;
            delete first_;
        }
    }

    T& add(T value) {
        link*& next = last_ == nullptr ? first_ : last_->next;
        last_ = next = new link{std::move(value)};
        return last_->value;
    }

    iterator begin() const { return {first_}; }
    static std::nullptr_t end() { return nullptr; }

  private:
    link* first_ = nullptr;
    link* last_ = nullptr;
};

}}  // namespace rill::RILL_ABI
