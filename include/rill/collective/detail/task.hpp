#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/receipt.hpp>

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Holds any callable `receipt(Argument&)`. Its memory is reused: it allocates only for a callable that is larger than
/// all before.
template <class Argument>
class task {
  public:
    task() = default;
    task(const task&) = delete;
    task& operator=(const task&) = delete;
    ~task() { reset(); }

    template <class Body>
    void emplace(Body&& body) {
        using stored = std::decay_t<Body>;
        static_assert(alignof(stored) <= buffer::alignment);
        reset();
        if (memory_.size() < sizeof(stored)) memory_.resize(sizeof(stored));
        ::new (static_cast<void*>(memory_.data())) stored(std::forward<Body>(body));
        run_ = [](void* at, Argument& argument) -> receipt { return (*static_cast<stored*>(at))(argument); };
        destroy_ = [](void* at) { static_cast<stored*>(at)->~stored(); };
    }

    receipt operator()(Argument& argument) { return run_(memory_.data(), argument); }

    void reset() noexcept {
        if (auto* const destroy = std::exchange(destroy_, nullptr)) destroy(memory_.data());
    }

  private:
    buffer memory_;
    receipt (*run_)(void*, Argument&) = nullptr;
    void (*destroy_)(void*) = nullptr;
};

}}}  // namespace rill::RILL_ABI::detail
