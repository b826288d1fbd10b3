#pragma once

#include <rill/core/config.hpp>
#include <rill/core/plain_vector.hpp>

#include <cstddef>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace kernel::detail {

/// Scratch memory for each task of an executor. A copy begins without any.
template <class Scratch>
class task_scratch {
  public:
    task_scratch() = default;
    task_scratch(const task_scratch&) {}
    task_scratch(task_scratch&&) noexcept = default;
    task_scratch& operator=(task_scratch other) noexcept {
        each_ = std::move(other.each_);
        return *this;
    }
    [[gnu::noinline]] ~task_scratch() = default;

    void provide(std::size_t tasks) {
        while (each_.size() < tasks) each_.add(Scratch());
    }
    Scratch& operator[](std::size_t task) { return each_[task]; }

  private:
    plain_vector<Scratch> each_;
};

}}}  // namespace rill::RILL_ABI::kernel::detail
