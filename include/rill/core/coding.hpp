#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rill { inline namespace RILL_ABI {

/// How the values of a frame are written; the numbers are part of the wire format. `own`: by a type of the user's
/// (`ValueCoding`), which all ranks have bound alike.
enum class value_coding : std::uint8_t { raw = 0, bf16 = 1, qsgd2 = 2, qsgd4 = 4, qsgd8 = 8, own = 255 };

/// The coding's name; empty if `coding` is no enumerator.
constexpr std::string_view name_of(value_coding coding) {
    switch (coding) {
        case value_coding::raw: return "raw";
        case value_coding::bf16: return "bf16";
        case value_coding::qsgd2: return "qsgd2";
        case value_coding::qsgd4: return "qsgd4";
        case value_coding::qsgd8: return "qsgd8";
        case value_coding::own: return "own";
    }
    return {};
}

/// How the indices of a frame are written; the numbers are part of the wire format. `whole_rows` needs entries that
/// come in whole rows of `coding::row` adjacent coordinates. `smallest` chooses among the others but `whole_rows`, for
/// every message, and never appears in a frame; `dense` means that there are no indices, because the frame has every
/// coordinate.
enum class index_coding : std::uint8_t {
    dense = 0,
    raw = 1,
    packed_gaps = 2,
    bitmap = 3,
    elias_fano = 4,
    huffman = 5,
    whole_rows = 6,
    smallest = 255
};

/// The coding's name; empty if `coding` is no enumerator. Every list of all codings derives from it.
constexpr std::string_view name_of(index_coding coding) {
    switch (coding) {
        case index_coding::dense: return "dense";
        case index_coding::raw: return "raw";
        case index_coding::packed_gaps: return "packed_gaps";
        case index_coding::bitmap: return "bitmap";
        case index_coding::elias_fano: return "elias_fano";
        case index_coding::huffman: return "huffman";
        case index_coding::whole_rows: return "whole_rows";
        case index_coding::smallest: return "smallest";
    }
    return {};
}

/// Whether frames can have this coding; `dense` is one of these, `smallest` is not.
constexpr bool is_in_frames(index_coding coding) {
    return !name_of(coding).empty() && coding != index_coding::smallest;
}

/// All codings that write indices, in the order of their numbers.
inline constexpr auto index_codings = [] {
    constexpr auto visit = [](auto take) {
        for (unsigned number = 1; number < 256; ++number)
            if (const auto coding = static_cast<index_coding>(number); is_in_frames(coding)) take(coding);
    };
    constexpr std::size_t count = [=] {
        std::size_t found = 0;
        visit([&](index_coding) { ++found; });
        return found;
    }();
    std::array<index_coding, count> all{};
    visit([&, at = std::size_t{0}](index_coding coding) mutable { all[at++] = coding; });
    return all;
}();

/// Whether decoding surely gives back every value bit for bit.
constexpr bool is_lossless(value_coding coding) { return coding == value_coding::raw; }

/// Whether `coding` is QSGD, which quantises values by buckets to 2, 4 or 8 bits.
constexpr bool is_qsgd(value_coding coding) {
    return coding == value_coding::qsgd2 || coding == value_coding::qsgd4 || coding == value_coding::qsgd8;
}

/// Bits per value of a QSGD coding.
constexpr int qsgd_bits(value_coding coding) { return static_cast<int>(coding); }

/// A `ValueCoding` of the user's without its type: its members and functions that know the type.
/// `compress::own_values` makes it.
struct own_coding {
    using memory = std::array<std::byte, 16>;

    /// For elements of type T.
    template <class T>
    struct functions {
        void (*encode)(const memory& self, std::span<const T> values, random_key key, std::uint64_t first,
                       byte_span out);
        void (*decode)(const memory& self, byte_view bytes, std::span<T> values);
    };
    struct table {
        bool is_lossless;
        bool is_unbiased;
        bool is_contractive;
        std::size_t (*size)(const memory& self, std::size_t count, std::size_t element_bytes);
        std::uint64_t (*fingerprint)(const memory& self);  ///< of name and options
        functions<float> of_floats;
        functions<double> of_doubles;

        template <std::floating_point T>
        const functions<T>& of() const {
            if constexpr (std::same_as<T, float>)
                return of_floats;
            else
                return of_doubles;
        }
    };

    const table* does = nullptr;  ///< nullptr: there is none
    alignas(8) memory self{};

    constexpr std::uint64_t fingerprint() const { return does == nullptr ? 0 : does->fingerprint(self); }
    friend constexpr bool operator==(const own_coding& a, const own_coding& b) {
        return a.fingerprint() == b.fingerprint();
    }
};

/// How a stream is written into a frame.
struct coding {
    value_coding values = value_coding::raw;
    index_coding indices = index_coding::raw;
    /// Consecutive entries that share a scale; QSGD only. In the header of a frame with `own` values: their bytes.
    std::uint32_t bucket = 1024;
    std::uint16_t row = 1;  ///< adjacent entries that share an index, at least 1; `whole_rows` only
    own_coding own{};       ///< where `values` is `own`; not part of a header

    /// Whether a frame of this coding is sent from the stream's own arrays, without a copy.
    constexpr bool is_view() const { return values == value_coding::raw && indices == index_coding::raw; }
    constexpr bool is_lossless() const {
        if (values == value_coding::own) return own.does != nullptr && own.does->is_lossless;
        return rill::is_lossless(values);
    }
    /// Whether the expectation of a decoded value is the one that was coded.
    constexpr bool is_unbiased() const {
        if (values == value_coding::own) return own.does != nullptr && own.does->is_unbiased;
        return values != value_coding::bf16;
    }
    /// Whether the error of rounding is smaller than the values, as error feedback needs.
    constexpr bool is_contractive() const {
        return values != value_coding::own || (own.does != nullptr && own.does->is_contractive);
    }
    [[gnu::noinline]] constexpr std::uint64_t fingerprint() const {
        const std::uint64_t fields = (static_cast<std::uint64_t>(static_cast<std::uint16_t>(row - 1)) << 48) |
                                     (static_cast<std::uint64_t>(values) << 40) |
                                     (static_cast<std::uint64_t>(indices) << 32) | bucket;
        return values == value_coding::own ? mix64(fields, own.fingerprint()) : fields;
    }
    friend constexpr bool operator==(const coding&, const coding&) = default;
};

/// Which codings the frames of a call may have, as far as types tell. What cannot come is not compiled, and refused.
struct coding_set {
    bool rounds = true;                             ///< value codings other than raw
    index_coding indices = index_coding::smallest;  ///< this one besides raw and dense; `smallest`: every one

    /// Whether all frames are sent from the stream's own arrays.
    constexpr bool has_only_views() const { return !rounds && indices == index_coding::raw; }
    constexpr bool has(index_coding coding) const {
        return coding == index_coding::raw || indices == index_coding::smallest || coding == indices;
    }
};

}}  // namespace rill::RILL_ABI
