#pragma once

#include <rill/compress/encoded.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/stream_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// Keeps all entries. It serves dense contributions with lossy values (QSGD), or with a coding of the copy phase only
/// (the rounds in which finished parts are sent on unchanged). `bind` gives a model of `Compressor`.
struct keep_all {
    static constexpr const char* name = "keep_all";
    static constexpr bool is_lossless = true;
    static constexpr bool is_unbiased = true;
    static constexpr bool is_contractive = true;

    template <Element T, IndexType Index>
    class selector {
      public:
        static constexpr bool is_coordinatewise = true;
        static constexpr bool chooses_alike = true;

        selector(const keep_all&, std::size_t dimension) : dimension_(dimension) {}

        std::size_t dimension() const { return dimension_; }
        std::size_t coded_dimension() const { return dimension_; }
        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec&) {
            return {{0, input.size()}, input};
        }
        static void write_back(std::span<const T> values, std::span<T> model) {
            std::copy(values.begin(), values.end(), model.begin());
        }
        void begin(std::uint64_t) {}

      private:
        std::size_t dimension_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return encoded<keep_all>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(keep_all, keep_all) = default;
};

}}}  // namespace rill::RILL_ABI::compress
