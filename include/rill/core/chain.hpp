#pragma once

#include <rill/core/config.hpp>

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
    class iterator {
      public:
        explicit iterator(link* at) : at_(at) {}
        T& operator*() const { return at_->value; }
        iterator& operator++() {
            at_ = at_->next;
            return *this;
        }
        friend bool operator==(iterator, iterator) = default;

      private:
        link* at_;
    };

    chain() = default;
    chain(const chain&) = delete;
    chain& operator=(const chain&) = delete;
    ~chain() {
        while (first_ != nullptr) delete std::exchange(first_, first_->next);
    }

    T& add(T value) {
        link* const made = new link{std::move(value)};
        *end_ = made;
        end_ = &made->next;
        return made->value;
    }

    iterator begin() const { return iterator(first_); }
    static iterator end() { return iterator(nullptr); }

  private:
    link* first_ = nullptr;
    link** end_ = &first_;
};

}}  // namespace rill::RILL_ABI
