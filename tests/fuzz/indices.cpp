// Index codings: arbitrary bytes through the decoders, compared with naive ones that read bit by bit; and every decoded
// result through all encoders and back.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/kernel/index_coding.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace {

using namespace rill;

bool bit_of(byte_view bytes, std::size_t i) { return (std::to_integer<unsigned>(bytes[i / 8]) >> (i % 8) & 1U) != 0; }

/// Indices as decoded, without any check.
using found = std::optional<std::vector<std::uint64_t>>;

template <class Index>
found read_raw(byte_view bytes, std::size_t count) {
    if (bytes.size() != count * sizeof(Index)) return std::nullopt;
    std::vector<std::uint64_t> indices(count);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t b = 0; b < sizeof(Index); ++b)
            indices[i] |= std::to_integer<std::uint64_t>(bytes[i * sizeof(Index) + b]) << (8 * b);
    return indices;
}

found read_bitmap(byte_view bytes, segment universe) {
    if (bytes.size() != universe.size() / 8 + (universe.size() % 8 != 0 ? 1 : 0)) return std::nullopt;
    std::vector<std::uint64_t> indices;
    for (std::size_t i = 0; i < 8 * bytes.size(); ++i)
        if (bit_of(bytes, i)) indices.push_back(universe.begin + i);
    return indices;
}

template <class Index>
found read_gaps(byte_view bytes, std::size_t count, segment universe) {
    std::vector<std::uint64_t> indices;
    std::uint64_t next = universe.begin;
    for (std::size_t first = 0; first < count; first += 128) {
        const std::size_t block = std::min<std::size_t>(128, count - first);
        if (bytes.empty()) return std::nullopt;
        const std::size_t width = std::to_integer<std::size_t>(bytes[0]), bits = block * width;
        if (width > 8 * sizeof(Index) || (bits + 7) / 8 > bytes.size() - 1) return std::nullopt;
        const byte_view packed = bytes.subspan(1, (bits + 7) / 8);
        for (std::size_t i = bits; i < 8 * packed.size(); ++i)
            if (bit_of(packed, i)) return std::nullopt;
        for (std::size_t i = 0; i < block; ++i) {
            std::uint64_t gap = 0;
            for (std::size_t b = 0; b < width; ++b) gap |= std::uint64_t{bit_of(packed, i * width + b)} << b;
            if (gap >= universe.end - next) return std::nullopt;
            indices.push_back(next + gap);
            next += gap + 1;
        }
        bytes = bytes.subspan(1 + packed.size());
    }
    return bytes.empty() ? found(indices) : std::nullopt;
}

/// The floor of the logarithm of (size - count) / count, by counting.
std::size_t low_width(std::size_t count, std::size_t size) {
    std::size_t width = 0;
    for (std::size_t ratio = (size - count) / count; ratio > 1; ratio /= 2) ++width;
    return width;
}

found read_elias_fano(byte_view bytes, std::size_t count, segment universe) {
    std::vector<std::uint64_t> indices;
    if (count == 0) return bytes.empty() ? found(indices) : std::nullopt;
    const std::size_t most = universe.size() - count, width = low_width(count, universe.size());
    const std::size_t low = (count * width + 7) / 8, upper = count + (most >> width);
    if (bytes.size() != low + upper / 8 + (upper % 8 != 0 ? 1 : 0)) return std::nullopt;
    for (std::size_t bit = count * width; bit < 8 * low; ++bit)
        if (bit_of(bytes, bit)) return std::nullopt;
    std::uint64_t before = 0;
    for (std::size_t place = 0; place < 8 * (bytes.size() - low); ++place) {
        if (!bit_of(bytes.subspan(low), place)) continue;
        const std::size_t i = indices.size();
        if (place >= upper || i == count) return std::nullopt;
        std::uint64_t v = std::uint64_t{place - i} << width;
        for (std::size_t b = 0; b < width; ++b) v |= std::uint64_t{bit_of(bytes, i * width + b)} << b;
        if (v < before || v > most) return std::nullopt;
        indices.push_back(universe.begin + v + i);
        before = v;
    }
    return indices;
}

std::uint64_t number_at(byte_view bytes, std::size_t at) {
    std::uint64_t number = 0;
    for (std::size_t b = 0; b < 8; ++b) number |= std::to_integer<std::uint64_t>(bytes[at + b]) << (8 * b);
    return number;
}

found read_huffman(byte_view bytes, std::size_t count, segment universe) {
    if (count == 0) return bytes.empty() ? found(std::in_place) : std::nullopt;
    const std::size_t size = universe.size() / 8 + (universe.size() % 8 != 0 ? 1 : 0);
    if (bytes.size() < 24 || size / 8 > bytes.size()) return std::nullopt;
    byte_view streams[4], rest = bytes.subspan(24);
    for (std::size_t s = 0; s < 4; ++s) {
        const std::uint64_t length = s < 3 ? number_at(bytes, 8 * s) : rest.size();
        if (length > rest.size()) return std::nullopt;
        streams[s] = rest.first(static_cast<std::size_t>(length));
        rest = rest.subspan(static_cast<std::size_t>(length));
    }
    const kernel::detail::byte_code code(count, universe.size());
    std::map<std::pair<unsigned, unsigned>, std::byte> bytes_of;  // by bits and code
    for (unsigned b = 0; b < 256; ++b) bytes_of[{code.length(std::byte(b)), code.code(std::byte(b))}] = std::byte(b);
    buffer bitmap(size);
    std::size_t used[4] = {};
    for (std::size_t b = 0; b < size; ++b) {
        unsigned word = 0;
        auto at = bytes_of.end();
        for (unsigned bits = 0; at == bytes_of.end(); at = bytes_of.find({bits, word})) {
            if (used[b % 4] == 8 * streams[b % 4].size()) return std::nullopt;
            word |= static_cast<unsigned>(bit_of(streams[b % 4], used[b % 4]++)) << bits++;
        }
        bitmap[b] = at->second;
    }
    for (std::size_t s = 0; s < 4; ++s) {
        if (streams[s].size() != (used[s] + 7) / 8) return std::nullopt;
        for (std::size_t bit = used[s]; bit < 8 * streams[s].size(); ++bit)
            if (bit_of(streams[s], bit)) return std::nullopt;
    }
    return read_bitmap(bitmap, universe);
}

bool is_sound(const std::vector<std::uint64_t>& indices, std::size_t count, segment universe) {
    if (indices.size() != count) return false;
    for (std::size_t i = 0; i < count; ++i)
        if (!universe.contains(indices[i]) || (i > 0 && indices[i - 1] >= indices[i])) return false;
    return true;
}

/// Of rows of one column.
found read_rows(byte_view bytes, std::size_t count, segment universe) {
    if (count == 0) return bytes.empty() ? found(std::in_place) : std::nullopt;
    if (bytes.size() < 8 || number_at(bytes, 0) != count) return std::nullopt;
    return read_elias_fano(bytes.subspan(8), count, universe);
}

template <class Index>
found read_coded(index_coding coding, byte_view bytes, std::size_t count, segment universe) {
    switch (coding) {
        case index_coding::raw: return read_raw<Index>(bytes, count);
        case index_coding::packed_gaps: return read_gaps<Index>(bytes, count, universe);
        case index_coding::bitmap: return read_bitmap(bytes, universe);
        case index_coding::elias_fano: return read_elias_fano(bytes, count, universe);
        case index_coding::huffman: return read_huffman(bytes, count, universe);
        case index_coding::whole_rows: return read_rows(bytes, count, universe);
        case index_coding::dense:
        case index_coding::smallest: break;
    }
    return std::nullopt;
}

template <class Index>
found expected(index_coding coding, byte_view bytes, std::size_t count, segment universe) {
    if (count > universe.size()) return std::nullopt;
    const found read = read_coded<Index>(coding, bytes, count, universe);
    return read && is_sound(*read, count, universe) ? read : std::nullopt;
}

/// Decodes as a receiver does: allocates room for the announced count only if the bytes can hold it.
template <class Index>
std::optional<aligned_vector<Index>> decoded(index_coding coding, byte_view bytes, std::size_t count,
                                             segment universe) {
    const rill::fuzz::allocation_budget at_most(128 * sizeof(Index) * bytes.size() + rill::fuzz::error_texts);
    try {
        kernel::check_index_count<Index>(coding, bytes, count, universe);
        aligned_vector<Index> indices(count);
        kernel::decode_indices(coding, bytes, count, universe, std::span<Index>(indices));
        return indices;
    } catch (const protocol_error&) {
        return std::nullopt;
    }
}

template <class Index>
buffer encoded(index_coding coding, const aligned_vector<Index>& indices, segment universe) {
    const std::span<const Index> all(indices);
    buffer bytes(kernel::encoded_index_bytes(coding, all, universe));
    RILL_FUZZ_REQUIRE(kernel::encode_indices(coding, all, universe, bytes) == bytes.size(), "the size as announced");
    return bytes;
}

/// `bytes` are what the indices were decoded from in the coding `source`; only packed gaps can be written in several
/// ways.
template <class Index>
void check_encoders(index_coding source, byte_view bytes, const aligned_vector<Index>& indices, segment universe) {
    constexpr std::size_t widest_bitmap = 1 << 16;
    const index_coding smallest = kernel::smallest_index_coding(std::span<const Index>(indices), universe);
    const std::size_t least = kernel::encoded_index_bytes(smallest, std::span<const Index>(indices), universe);
    for (const index_coding coding : index_codings) {
        RILL_FUZZ_REQUIRE(kernel::encoded_index_bytes(coding, std::span<const Index>(indices), universe) >= least,
                          "no coding below the smallest");
        const bool is_wide = coding == index_coding::bitmap || coding == index_coding::huffman;
        if (is_wide && universe.size() > widest_bitmap) continue;
        const buffer again = encoded(coding, indices, universe);
        RILL_FUZZ_REQUIRE(decoded<Index>(coding, again, indices.size(), universe) == indices, "indices as written");
        if (coding != source) continue;
        const bool is_same = std::equal(again.begin(), again.end(), bytes.begin(), bytes.end());
        RILL_FUZZ_REQUIRE(is_same || (source == index_coding::packed_gaps && again.size() <= bytes.size()),
                          "the bytes that were read, or fewer");
    }
}

template <class Index>
void check(rill::fuzz::input in, index_coding coding) {
    constexpr std::size_t end = sizeof(Index) == 4 ? std::size_t{1} << 32 : std::numeric_limits<std::size_t>::max();
    const std::size_t size = in.flag() ? in.number<std::uint64_t>() % end : in.number<std::uint16_t>();
    const std::size_t begin = in.flag() ? end - size : in.number<Index>() % (end - size);
    const segment universe{begin, begin + size};
    const std::size_t count = in.flag() ? in.number<std::uint64_t>() : in.number<std::uint16_t>();
    const buffer bytes = rill::fuzz::copy_of(in.rest());

    const auto indices = decoded<Index>(coding, bytes, count, universe);
    const found naive = expected<Index>(coding, bytes, count, universe);
    RILL_FUZZ_REQUIRE(indices.has_value() == naive.has_value(), "both decoders accept, or none");
    if (!indices) return;
    RILL_FUZZ_REQUIRE(std::equal(indices->begin(), indices->end(), naive->begin(), naive->end()), "the same indices");
    check_encoders(coding, bytes, *indices, universe);
}

}  // namespace

RILL_FUZZ_TARGET(indices)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const auto coding = static_cast<index_coding>(in.number<std::uint8_t>());
    if (in.flag())
        check<std::uint32_t>(in, coding);
    else
        check<std::uint64_t>(in, coding);
    return 0;
}
