#pragma once

#include <rill/compress/encoded.hpp>
#include <rill/compress/indices.hpp>
#include <rill/core/coding.hpp>
#include <rill/stream/stream_codings.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace compress {

/// A sparsifier whose codings are values of the run, such as those that `cost::choose` returns. Otherwise as `encoded`.
///
/// All codings are compiled, which costs a translation unit more than the few that `encoded` names. The copy coding may
/// be lossy: over a topology whose type has no copy phase use `encoded`. `bind` throws `contract_violation` where the
/// values of partial sums are not raw.
template <class Sparsifier>
struct with_codings {
    Sparsifier sparsifier{};
    stream_codings codings{};

    static constexpr const char* name = "with_codings";

    /// What a coding that is known when the program runs promises.
    struct any_values {
        static constexpr bool is_lossless = false;
        static constexpr bool is_unbiased = false;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    codec<Sparsifier, any_values, smallest, any_values, T, Index> bind(std::size_t dimension) const {
        rill::detail::require_raw_sums(codings);
        return {sparsifier, dimension, codings};
    }
    friend constexpr bool operator==(const with_codings&, const with_codings&) = default;
};

template <class S>
with_codings(S, stream_codings) -> with_codings<S>;

}}}  // namespace rill::RILL_ABI::compress
