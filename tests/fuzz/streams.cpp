// Streams of any content, written as frames in every coding, alone and one after another: they read as they were
// written, exactly where the coding is lossless.
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/collective/join_frames.hpp>
#include <rill/stream/frame.hpp>

#include <algorithm>
#include <deque>
#include <type_traits>
#include <vector>

namespace {

using namespace rill;

constexpr std::size_t most_coordinates = 2048;

/// A segment of up to 2048 coordinates, anywhere.
template <class Index>
segment any_range(rill::fuzz::input& in) {
    const std::size_t size = in.number<std::uint16_t>() % (most_coordinates + 1);
    const std::size_t begin = in.flag() ? in.number<Index>() >> 1 : in.number<std::uint8_t>();
    return {begin, begin + size};
}

/// Values from arbitrary bits, except those that a lossy coding refuses.
template <class T>
T any_value(rill::fuzz::input& in, bool is_lossless) {
    if constexpr (std::is_floating_point_v<T>)
        if (!is_lossless) return static_cast<T>(in.number<std::int16_t>()) / T{64};
    return in.number<T>();
}

/// Coordinates with gaps of up to 15, or in runs of neighbours; in whole rows of `row`.
template <class T, class Index>
stream<T, Index> any_stream(rill::fuzz::input& in, bool is_lossless, std::size_t row) {
    stream<T, Index> made;
    const segment range = any_range<Index>(in);
    if (in.flag()) {
        for (T& value : made.make_dense(range)) value = any_value<T>(in, is_lossless);
        return made;
    }
    made.clear(range);
    std::size_t at = range.begin;
    while (!in.done() && at < range.end) {
        const unsigned step = in.number<std::uint8_t>();
        at += step % 16;
        const std::size_t end = at + 1 + step / 16;  // of the run, before it grows to whole rows
        at = std::max(range.begin, at / row * row);
        for (; at < range.end && (at < end || at % row != 0); ++at) made.push_back(at, any_value<T>(in, is_lossless));
    }
    return made;
}

template <class T, class Index>
coding any_coding(rill::fuzz::input& in) {
    constexpr value_coding values[] = {value_coding::raw, value_coding::bf16, value_coding::qsgd2, value_coding::qsgd4,
                                       value_coding::qsgd8};
    coding codes{.values = values[in.below(5)],
                 .indices = rill::fuzz::chosen_index_coding(in.below(rill::fuzz::index_choices)),
                 .bucket = 1U + in.number<std::uint8_t>()};
    if (codes.indices == index_coding::whole_rows) codes.row = static_cast<std::uint16_t>(1 + in.below(20));
    if (!std::is_floating_point_v<T>) codes.values = value_coding::raw;
    return codes;
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

template <class T, class Index>
struct sent {
    stream<T, Index> content;
    coding codes;
    byte_pieces bytes;
};

template <class T, class Index>
void require_read(frame_reader& reader, const sent<T, Index>& due) {
    const stream_view<T, Index> view = due.content.view();
    frame_scratch<T, Index> room;
    const frame raw = reader.template next<T, Index>();
    const stream_view<T, Index> read = content_of(raw, room);
    RILL_FUZZ_REQUIRE(raw.head.weight == 2.5 && raw.head.age == 7 && raw.head.contributors == 3, "the header as given");
    RILL_FUZZ_REQUIRE(read.range() == view.range() && read.is_dense() == view.is_dense(), "the same range and form");
    RILL_FUZZ_REQUIRE(same_bits(read.indices(), view.indices()), "the same indices");
    RILL_FUZZ_REQUIRE(read.count() == view.count(), "as many values");
    if (due.codes.is_lossless()) RILL_FUZZ_REQUIRE(same_bits(read.values(), view.values()), "the same bits");
    if (due.codes.is_view() || (due.codes.is_lossless() && view.is_dense()))
        RILL_FUZZ_REQUIRE(room.values.empty() && room.indices.empty(), "raw frames are not copied");
}

template <class T, class Index>
void check(rill::fuzz::input in) {
    arena memory;
    std::deque<sent<T, Index>> all;
    std::vector<byte_pieces> frames;
    const unsigned count = 1 + in.below(3);
    for (unsigned i = 0; i < count; ++i) {
        const coding codes = any_coding<T, Index>(in);
        all.push_back({any_stream<T, Index>(in, codes.is_lossless(), codes.row), codes, {}});
        sent<T, Index>& one = all.back();
        const wire::header head{.kind = operation::all_reduce,
                                .age = 7,
                                .dimension = one.content.range().end,
                                .weight = 2.5,
                                .contributors = 3};
        const random_key key{in.number<std::uint64_t>()};
        one.bytes = codes.is_view() && in.flag()
                        ? view_frame(head, one.content.view(), memory.take(wire::header_bytes).data())
                        : byte_pieces(coded_frame(head, one.content.view(), codes, key, memory));
        frames.push_back(one.bytes);
        frame_reader alone(one.bytes);
        require_read(alone, one);
        RILL_FUZZ_REQUIRE(alone.done(), "one frame");
    }
    const buffer message = rill::fuzz::copy_of(join_frames(frames, memory));
    frame_reader reader{byte_pieces(message)};
    for (const auto& one : all) require_read(reader, one);
    RILL_FUZZ_REQUIRE(reader.done(), "as many frames as were joined");
}

}  // namespace

RILL_FUZZ_TARGET(streams)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    switch (in.below(6)) {
        case 0: check<float, std::uint32_t>(in); break;
        case 1: check<double, std::uint64_t>(in); break;
        case 2: check<std::int32_t, std::uint64_t>(in); break;
        case 3: check<std::int64_t, std::uint32_t>(in); break;
        case 4: check<double, std::uint32_t>(in); break;
        default: check<float, std::uint64_t>(in); break;
    }
    return 0;
}
