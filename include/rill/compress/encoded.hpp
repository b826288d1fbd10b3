#pragma once

#include <rill/compress/indices.hpp>
#include <rill/compress/values.hpp>
#include <rill/concept/compressor.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/serial.hpp>
#include <rill/stream/stream_codings.hpp>
#include <rill/stream/stream_view.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI {

namespace detail {
/// Whether rounding leaves a contractive sparsifier contractive. A coding that says nothing does, as shipped ones do.
template <class Values>
constexpr bool rounds_contractively = true;
template <class Values>
    requires requires { Values::is_contractive; }
constexpr bool rounds_contractively<Values> = Values::is_contractive;
}  // namespace detail

namespace compress {

/// A sparsifier with the codings of its values and indices, bound to a worker. Models `Compressor`.
template <class Sparsifier, class Values, class Indices, class CopyValues, Element T, IndexType Index>
class codec {
  public:
    using index_type = Index;
    using selector = typename Sparsifier::template selector<T, Index>;

    static constexpr bool is_lossless = Sparsifier::is_lossless && Values::is_lossless;
    static constexpr bool is_unbiased = Sparsifier::is_unbiased && Values::is_unbiased;
    static constexpr bool is_contractive = Sparsifier::is_contractive && detail::rounds_contractively<Values>;
    static constexpr bool has_lossless_copy = CopyValues::is_lossless;
    static constexpr bool is_coordinatewise = selector::is_coordinatewise;
    static constexpr bool chooses_alike = requires { requires selector::chooses_alike; };
    static constexpr coding_set possible_codings{
        .rounds = !(std::same_as<Values, raw> && std::same_as<CopyValues, raw>), .indices = Indices::coding};

    codec(const Sparsifier& sparsifier, std::size_t dimension, const stream_codings& codings)
        : selector_(sparsifier, dimension), codings_(codings) {}

    std::size_t dimension() const { return selector_.dimension(); }
    void begin(std::uint64_t number) { selector_.begin(number); }
    std::size_t coded_dimension() { return selector_.coded_dimension(); }
    const stream_codings& codings() const { return codings_; }

    template <Executor Exec = serial>
    stream_view<T, Index> encode(std::span<const T> input, const Exec& executor = {}) {
        RILL_EXPECTS(input.size() == dimension(),
                     "encode: the input must have the dimension that the codec is bound to");
        return selector_.select(input, executor);
    }
    void decode(std::span<const T> folded, std::span<T> output)
        requires(!is_coordinatewise)
    {
        selector_.expand(folded, output);
    }
    void write_back(std::span<const T> values, std::span<T> model) const
        requires chooses_alike
    {
        selector_.write_back(values, model);
    }
    void erase_sent(std::span<const T> received, std::span<T> values) const
        requires(!is_coordinatewise)
    {
        selector_.erase_sent(received, values);
    }
    /// Of what the ranks must choose alike: where each chooses for itself, nothing.
    std::uint64_t fingerprint() const {
        if constexpr (is_coordinatewise)
            return 0;
        else
            return selector_.fingerprint();
    }
    /// Where ranks choose alike: what the choice depends on.
    template <class Visit>
    void visit_options(Visit&& visit) const
        requires HasOptions<selector>
    {
        selector_.visit_options(visit);
    }
    void commit() {}
    void rollback() {}

  private:
    selector selector_;
    stream_codings codings_;
};

/// A sparsifier with the codings of values and indices at the source, and the coding of values in the copy phase (the
/// rounds in which finished parts are sent on unchanged), applied once by the owner of a part. Indices are coded alike
/// in all phases; partial sums are sent with raw values.
///
/// `bind` gives a model of `Compressor` for one worker. All ranks bind the same dimension and codings, and for
/// `random_mask` the same density and seed: each operation compares them. Where a sparsifier looks at its input
/// (`top_k`, `bucket_top_k`, `threshold`), ranks may bind it to different numbers of entries.
template <class Sparsifier, class Values = raw, class Indices = raw_indices, class CopyValues = raw>
struct encoded {
    Sparsifier sparsifier{};
    Values values{};
    Indices indices{};
    CopyValues copy_values{};

    static constexpr const char* name = "encoded";

    /// Binds the policy to a worker. Ranks may send different numbers of entries (density, count, magnitude), except
    /// with `random_mask`, which chooses the same entries on all ranks. `dimension`, element type, index type and
    /// codings must be the same on all ranks.
    template <Element T = float, IndexType Index = std::uint32_t>
    codec<Sparsifier, Values, Indices, CopyValues, T, Index> bind(std::size_t dimension) const {
        static_assert(std::floating_point<T> || (std::same_as<Values, raw> && std::same_as<CopyValues, raw>),
                      "rill::compress::encoded: lossy values need floating-point elements; use compress::raw, or float "
                      "or double");
        return {sparsifier, dimension, codings()};
    }

    constexpr stream_codings codings() const {
        return {.contribution = with_indices(values.coding()),
                .partial = with_indices(raw::coding()),
                .copy = with_indices(copy_values.coding())};
    }
    friend constexpr bool operator==(const encoded&, const encoded&) = default;

  private:
    constexpr rill::coding with_indices(rill::coding codes) const {
        codes.indices = Indices::coding;
        if constexpr (Indices::coding == index_coding::whole_rows) {
            rill::detail::require_option(indices.columns > 0 && indices.columns <= 65535,
                                         "compress::whole_rows: columns", indices.columns, "from 1 to 65535");
            codes.row = static_cast<std::uint16_t>(indices.columns);
        }
        return codes;
    }
};

template <class S>
encoded(S) -> encoded<S>;
template <class S, class V>
encoded(S, V) -> encoded<S, V>;
template <class S, class V, class I>
encoded(S, V, I) -> encoded<S, V, I>;
template <class S, class V, class I, class C>
encoded(S, V, I, C) -> encoded<S, V, I, C>;

}  // namespace compress

}}  // namespace rill::RILL_ABI
