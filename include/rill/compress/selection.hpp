#pragma once

#include <rill/concept/executor.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/select.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// The base of selectors that choose by looking at the input: holds the chosen entries.
template <Element T, IndexType Index>
class selection {
  public:
    static constexpr bool is_coordinatewise = true;

    explicit selection(std::size_t dimension) : chosen_(dimension), dimension_(dimension) {}

    std::size_t dimension() const { return dimension_; }
    std::size_t coded_dimension() const { return dimension_; }
    void begin(std::uint64_t) {}

  protected:
    std::span<Index> room(std::size_t most) { return chosen_.make_sparse({0, dimension_}, most).indices; }

    template <Executor Exec>
    stream_view<T, Index> take(std::size_t count, std::span<const T> input, const Exec& executor) {
        chosen_.shrink(count);
        const std::span<T> values = chosen_.values();
        const std::span<const Index> indices = chosen_.indices();
        kernel::gather(input, indices, values, executor);
        return chosen_.view();
    }

  private:
    stream<T, Index> chosen_;
    std::size_t dimension_;
};

}}}  // namespace rill::RILL_ABI::compress
