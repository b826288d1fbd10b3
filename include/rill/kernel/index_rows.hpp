// Indices that come in whole rows: one number per row.
//
// Row r has the coordinates [r D, (r + 1) D), as far as they lie inside the universe; so a universe may begin and end
// within a row. First comes the number of rows, 8 bytes, then the Elias-Fano coding of the rows' numbers, in the
// universe of the rows that have a coordinate. Zero indices take zero bytes.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/detail/index_check.hpp>
#include <rill/kernel/detail/little_endian.hpp>
#include <rill/kernel/index_elias_fano.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace kernel {

/// Writes indices of which each has all others of its row beside it, by the numbers of the rows. A row has `columns`
/// adjacent coordinates, at least one.
struct whole_rows {
    std::size_t columns = 1;

    /// Returns the number of rows. Throws `invalid_value`, which names two coordinates, if a row has one of them and
    /// not the other. Cost: a step for each row.
    template <IndexType Index>
    std::size_t count_rows(std::span<const Index> indices, segment universe) const {
        RILL_EXPECTS(columns > 0, "whole_rows: rows of at least one coordinate");
        std::size_t rows = 0;
        for (std::size_t i = 0; i < indices.size(); ++rows) {
            const segment part = part_of(static_cast<std::size_t>(indices[i]) / columns, universe);
            // Indices ascend, so that a row is whole if its first and its last entry are where they should be.
            const bool is_whole = indices[i] == part.begin && part.size() <= indices.size() - i &&
                                  indices[i + part.size() - 1] == part.end - 1;
            if (!is_whole) refuse(indices.subspan(i), part);
            i += part.size();
        }
        return rows;
    }

    template <IndexType Index>
    std::size_t encoded_size(std::span<const Index> indices, segment universe) const {
        const std::size_t rows = count_rows(indices, universe);
        return rows == 0 ? 0 : header_bytes + elias_fano::size_of(rows, rows_of(universe));
    }

    /// Returns the bytes of `count` indices, if no row is cut by an end of the universe.
    std::size_t size_of(std::size_t count, segment universe) const {
        RILL_EXPECTS(columns > 0, "whole_rows: rows of at least one coordinate");
        const segment all = rows_of(universe);
        const std::size_t rows = std::min(least_rows(count), all.size());
        return rows == 0 ? 0 : header_bytes + elias_fano::size_of(rows, all);
    }

    template <IndexType Index>
    std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) const {
        detail::expect_encodable(indices, universe);
        RILL_EXPECTS(out.size() >= encoded_size(indices, universe), "whole_rows: too little room for the indices");
        const std::size_t rows = count_rows(indices, universe);
        if (rows == 0) return 0;
        detail::store_little(out.data(), std::uint64_t{rows});
        std::size_t at = 0;
        const auto next_rows = [&](Index* to, std::size_t, std::size_t count) {
            for (std::size_t j = 0; j < count; ++j) {
                to[j] = static_cast<Index>(static_cast<std::size_t>(indices[at]) / columns);
                at += part_of(to[j], universe).size();
            }
        };
        return header_bytes +
               elias_fano::encode_from<Index>(rows, rows_of(universe), out.subspan(header_bytes), next_rows);
    }

    /// Throws `protocol_error` unless `bytes` can hold `count` indices. Call it before allocating room for them. A byte
    /// can stand for eight rows.
    template <IndexType Index>
    void check_count(byte_view bytes, std::size_t count, segment universe) const {
        detail::check_count_in_universe(count, universe);
        if (count == 0 ? !bytes.empty() : bytes.size() < header_bytes)
            detail::bad_indices("whole-row", {bytes.size(), " bytes cannot hold ", count});
        if (count == 0) return;
        const auto rows = detail::load_little<std::uint64_t>(bytes.data());
        if (rows > count || rows < least_rows(count))
            detail::bad_indices("whole-row", {rows, " rows of ", columns, " cannot have ", count, " entries"});
        elias_fano::check_count<Index>(bytes.subspan(header_bytes), static_cast<std::size_t>(rows), rows_of(universe));
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) const {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        if (count == 0) return;
        const auto rows = static_cast<std::size_t>(detail::load_little<std::uint64_t>(bytes.data()));
        // The rows' numbers stand at the end of the room. No row is written over numbers that are still to be read,
        // since each of these stands for one entry at least.
        const std::span<Index> numbers = out.subspan(count - rows, rows);
        elias_fano::decode(bytes.subspan(header_bytes), rows, rows_of(universe), numbers);
        std::size_t entries = part_of(numbers.front(), universe).size();
        if (rows > 1) entries += (rows - 2) * columns + part_of(numbers.back(), universe).size();
        if (entries != count)
            detail::bad_indices("whole-row",
                                {rows, " rows of ", columns, " have ", entries, " entries, expected ", count});
        std::size_t at = 0;
        for (const Index& number : numbers) {
            const segment part = part_of(number, universe);
            for (std::size_t i = part.begin; i < part.end; ++i) out[at++] = static_cast<Index>(i);
        }
    }

  private:
    static constexpr std::size_t header_bytes = 8;

    std::size_t least_rows(std::size_t count) const { return count / columns + (count % columns != 0 ? 1 : 0); }

    /// The rows that have a coordinate of `universe`.
    segment rows_of(segment universe) const {
        const std::size_t end = least_rows(universe.end);
        return {std::min(universe.begin / columns, end), end};
    }

    /// What of a row of `rows_of(universe)` lies inside the universe.
    segment part_of(std::size_t row, segment universe) const {
        const std::size_t first = row * columns;
        return {std::max(first, universe.begin), universe.end - first <= columns ? universe.end : first + columns};
    }

    template <IndexType Index>
    [[noreturn, gnu::cold, gnu::noinline]] void refuse(std::span<const Index> indices, segment part) const {
        std::size_t present = 0;
        while (present < indices.size() && indices[present] == part.begin + present) ++present;
        throw invalid_value(
            text_of({"coordinate ", static_cast<std::size_t>(indices.front()), " has an entry and coordinate ",
                     part.begin + present, " of the same row of ", columns, " has none; whole_rows needs whole rows"}));
    }
};

}}}  // namespace rill::RILL_ABI::kernel
