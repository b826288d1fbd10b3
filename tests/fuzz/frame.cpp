// Arbitrary bytes as a message of frames, read as the collectives read them: each frame is a valid stream or a
// `protocol_error`. What was read is forwarded, joined and written again, and reads the same again.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/collective/join_frames.hpp>
#include <rill/compress/own_values.hpp>
#include <rill/compress/signs.hpp>
#include <rill/stream/frame.hpp>

#include <cmath>
#include <vector>

namespace {

using namespace rill;

/// A value takes at least one bit and its index a 128th of a byte; each becomes at most eight bytes.
constexpr std::size_t bytes_per_byte = 128;
/// What a reader keeps in addition for each frame.
constexpr std::size_t bytes_per_frame = 512;

enum class layout { whole, pieces, shifted };

template <class T, class Index>
struct received {
    frame raw;
    frame_scratch<T, Index> room;
    stream_view<T, Index> content;
};

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

template <class T, class Index>
bool is_same(const stream_view<T, Index>& a, const stream_view<T, Index>& b) {
    return a.range() == b.range() && a.is_dense() == b.is_dense() && same_bits(a.indices(), b.indices()) &&
           same_bits(a.values(), b.values());
}

template <class T, class Index>
void require_valid(const stream_view<T, Index>& view, const frame& raw) {
    const wire::header& head = raw.head;
    const segment range = view.range();
    RILL_FUZZ_REQUIRE(range == head.range && range.begin <= range.end, "the range of the header");
    RILL_FUZZ_REQUIRE(range.end <= head.dimension, "a range inside the dimension");
    RILL_FUZZ_REQUIRE(view.count() == head.count, "as many values as announced");
    RILL_FUZZ_REQUIRE(view.is_dense() == (head.codes.indices == index_coding::dense), "the form of the header");
    RILL_FUZZ_REQUIRE(view.is_dense() ? view.count() == range.size() : view.indices().size() == view.count(),
                      "an index for each value");
    for (std::size_t i = 0; i < view.indices().size(); ++i) {
        RILL_FUZZ_REQUIRE(range.contains(static_cast<std::size_t>(view.indices()[i])), "an index inside the range");
        RILL_FUZZ_REQUIRE(i == 0 || view.indices()[i - 1] < view.indices()[i], "ascending indices");
    }
    if (is_qsgd(head.codes.values))
        for (const T value : view.values())
            RILL_FUZZ_REQUIRE(std::isfinite(static_cast<double>(value)), "finite quantised values");
    RILL_FUZZ_REQUIRE(std::isfinite(head.weight) && head.weight >= 0, "a weight that can be summed");
    RILL_FUZZ_REQUIRE(raw.bytes.size_bytes() == wire::header_bytes + raw.indices.size() + raw.values.size(),
                      "a frame is its header and its payload");
}

/// All frames of a message up to the first invalid one.
template <class T, class Index>
std::vector<received<T, Index>> read(const byte_pieces& message, bool& is_sound) {
    std::vector<received<T, Index>> frames;
    const std::size_t most_frames = message.size_bytes() / wire::header_bytes;
    frames.reserve(most_frames);
    const rill::fuzz::allocation_budget at_most(bytes_per_byte * message.size_bytes() + bytes_per_frame * most_frames +
                                                rill::fuzz::error_texts);
    const own_coding own = compress::own_values{compress::signs{}}.coding().own;
    std::size_t complete = 0;
    is_sound = true;
    try {
        for (frame_reader reader(message); !reader.done();) {
            const wire::header next = reader.peek();
            received<T, Index> one{reader.template next<T, Index>(), {}, {}};
            RILL_FUZZ_REQUIRE(one.raw.head == next, "the header that was shown");
            frames.push_back(std::move(one));
            frames.back().content = content_of(frames.back().raw.with(own), frames.back().room);
            ++complete;
        }
    } catch (const protocol_error&) {
        is_sound = false;
        if (frames.size() > complete) frames.pop_back();
    }
    return frames;
}

template <class T, class Index>
void require_equal(const byte_pieces& message, const std::vector<received<T, Index>>& due) {
    bool is_sound = false;
    const auto again = read<T, Index>(message, is_sound);
    RILL_FUZZ_REQUIRE(is_sound && again.size() == due.size(), "the same frames");
    for (std::size_t i = 0; i < due.size(); ++i)
        RILL_FUZZ_REQUIRE(is_same(again[i].content, due[i].content), "the same streams");
}

template <class T, class Index>
void check_forwarding(const std::vector<received<T, Index>>& frames) {
    arena memory;
    std::vector<byte_pieces> verbatim, views, coded;
    for (const auto& one : frames) {
        const wire::header& head = one.raw.head;
        verbatim.push_back(one.raw.bytes);
        views.push_back(view_frame(head, one.content, memory.take(wire::header_bytes).data()));
        // Values that no quantiser has made cannot be coded without loss; and a bitmap of a wide range need not fit
        // into memory.
        coding codes{.indices =
                         one.content.range().size() > (1U << 16) ? index_coding::packed_gaps : head.codes.indices};
        if (codes.indices == index_coding::dense) codes.indices = index_coding::smallest;
        coded.push_back(coded_frame(head, one.content, codes, random_key{}, memory));
    }
    if (frames.empty()) return;
    require_equal(byte_pieces(join_frames(verbatim, memory)), frames);
    require_equal(byte_pieces(join_frames(views, memory)), frames);
    require_equal(byte_pieces(join_frames(coded, memory)), frames);
    if (frames.size() == 1) require_equal(views.front(), frames);
}

/// Sets the lengths that the header needs, so that the fuzzer need not guess them.
template <class T>
void repair(buffer& message) {
    if (message.size() < wire::header_bytes) return;
    const std::size_t payload = message.size() - wire::header_bytes;
    try {
        const wire::header head = wire::decode(message.data());
        if (head.count > 4 * payload) return;
        const std::size_t values = detail::value_length(head, sizeof(T));
        const std::uint64_t indices = values <= payload ? payload - values : 0;
        std::memcpy(message.data() + 72, &indices, sizeof indices);
    } catch (const protocol_error&) {
    }
}

byte_pieces arranged(byte_view message, layout how, std::size_t cut) {
    if (how != layout::pieces || message.size() < wire::header_bytes + cut) return message;
    byte_pieces pieces(message.first(wire::header_bytes));
    pieces.push(message.subspan(wire::header_bytes, cut));
    pieces.push(message.subspan(wire::header_bytes + cut));
    return pieces;
}

template <class T, class Index>
void check(rill::fuzz::input in, layout how, bool is_repaired) {
    const std::size_t cut = in.number<std::uint16_t>();
    buffer content = rill::fuzz::copy_of(in.rest());
    if (is_repaired) repair<T>(content);
    const std::size_t shift = how == layout::shifted ? 1 + cut % 7 : 0;
    buffer message;
    message.reserve(shift + content.size());
    message.resize(shift, std::byte{0});
    message.append(content.begin(), content.end());

    bool is_sound = false;
    const auto frames = read<T, Index>(arranged(byte_view(message).subspan(shift), how, cut), is_sound);
    for (const auto& one : frames) require_valid(one.content, one.raw);
    if (is_sound) check_forwarding(frames);
}

template <class Index>
void check(rill::fuzz::input in, unsigned element, layout how, bool is_repaired) {
    switch (element) {
        case 0: return check<float, Index>(in, how, is_repaired);
        case 1: return check<double, Index>(in, how, is_repaired);
        case 2: return check<std::int32_t, Index>(in, how, is_repaired);
        default: return check<std::int64_t, Index>(in, how, is_repaired);
    }
}

}  // namespace

RILL_FUZZ_TARGET(frame)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    const unsigned chosen = in.number<std::uint8_t>();
    const auto how = static_cast<layout>(chosen / 16 % 4 % 3);
    const bool is_repaired = (chosen & 8U) != 0;
    if ((chosen & 4U) == 0)
        check<std::uint32_t>(in, chosen & 3U, how, is_repaired);
    else
        check<std::uint64_t>(in, chosen & 3U, how, is_repaired);
    return 0;
}
