// A frame with any damage decodes to a valid stream or throws `protocol_error`.
#include <rill/stream/frame.hpp>

#include "frames.hpp"
#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

using namespace rill;
using namespace rill::stream_tests;

namespace {

template <class T, class Index>
std::string trouble(const stream_view<T, Index>& view, const wire::header& head) {
    const segment range = view.range();
    if (range.begin > range.end || range.end > head.dimension) return "a range outside the dimension";
    const std::size_t entries = view.is_dense() ? range.size() : view.indices().size();
    if (view.values().size() != entries) return "another number of values";
    for (std::size_t i = 0; i < view.indices().size(); ++i) {
        if (!range.contains(static_cast<std::size_t>(view.indices()[i]))) return "an index outside the range";
        if (i > 0 && view.indices()[i - 1] >= view.indices()[i]) return "indices that do not ascend";
    }
    bool finite = true;
    for (T value : view.values()) finite = std::isfinite(static_cast<double>(value)) && finite;
    if (!finite && is_qsgd(head.codes.values)) return "a quantised value that is not finite";
    return "";
}

/// What is wrong with the stream that `message` decodes to; empty where the message is refused.
template <class T, class Index>
std::string trouble(const buffer& message) {
    frame_scratch<T, Index> room;
    std::string found;
    try {
        for (frame_reader reader{byte_pieces(message)}; !reader.done() && found.empty();) {
            const frame f = reader.next<T, Index>();
            found = trouble(content_of(f, room), f.head);
        }
    } catch (const protocol_error&) {
    }
    if (room.indices.capacity() * sizeof(Index) + room.values.capacity() * sizeof(T) > 64 * message.size())
        found += " more memory than the frame can need";
    return found;
}

template <class T, class Index>
void check_mutations(const buffer& message) {
    std::string found;
    const auto expect = [&](const std::string& change, const buffer& changed) {
        const std::string wrong = trouble<T, Index>(changed);
        if (!wrong.empty() && found.size() < 500) found += change + ": " + wrong + "\n";
    };
    for (std::size_t length = 0; length < message.size(); ++length)
        expect("cut at " + std::to_string(length),
               buffer(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(length)));
    buffer changed = message;
    for (std::size_t at = 0; at < message.size(); ++at) {
        for (unsigned value = 0; value < 256; ++value) {
            changed[at] = static_cast<std::byte>(value);
            expect("byte " + std::to_string(at) + " as " + std::to_string(value), changed);
        }
        changed[at] = message[at];
    }
    CHECK(found == "");
    buffer longer(message.begin(), message.end());
    longer.push_back(std::byte{0});
    CHECK(trouble<T, Index>(longer) == "");
}

template <class T, class Index>
buffer coded_sample(segment range, float density, const coding& codes) {
    arena memory;
    const auto s = sample<T, Index>(range, density, 11);
    return joined({byte_pieces(coded_frame(frame_header_of(range.end), s.view(), codes, random_key{2}, memory))});
}

}  // namespace

TEST_CASE("mutations of raw frames") {
    check_mutations<float, std::uint32_t>(coded_sample<float, std::uint32_t>({0, 9}, 1, {}));
    check_mutations<float, std::uint64_t>(coded_sample<float, std::uint64_t>({30, 70}, 0.2F, {}));
    check_mutations<std::int64_t, std::uint32_t>(coded_sample<std::int64_t, std::uint32_t>({0, 40}, 0.2F, {}));
}

TEST_CASE("mutations of coded frames") {
    using enum value_coding;
    check_mutations<float, std::uint32_t>(coded_sample<float, std::uint32_t>(
        {0, 200}, 0.2F, {.values = qsgd4, .indices = index_coding::packed_gaps, .bucket = 16}));
    check_mutations<double, std::uint64_t>(
        coded_sample<double, std::uint64_t>({5, 150}, 0.2F, {.values = bf16, .indices = index_coding::bitmap}));
    check_mutations<float, std::uint32_t>(
        coded_sample<float, std::uint32_t>({0, 100}, 0.3F, {.values = qsgd2, .indices = index_coding::raw}));
    check_mutations<float, std::uint64_t>(
        coded_sample<float, std::uint64_t>({3, 180}, 0.1F, {.indices = index_coding::elias_fano}));
    check_mutations<float, std::uint32_t>(
        coded_sample<float, std::uint32_t>({3, 90}, 0.2F, {.values = qsgd2, .indices = index_coding::huffman}));
    check_mutations<double, std::uint32_t>(
        coded_sample<double, std::uint32_t>({0, 50}, 1, {.values = qsgd8, .bucket = 20}));
}

TEST_CASE("mutations of a message of two frames") {
    const auto a = sample<float, std::uint32_t>({0, 20}, 0.3F, 5);
    const auto b = sample<float, std::uint32_t>({20, 31}, 1, 6);
    wire::header_block block_a, block_b;
    check_mutations<float, std::uint32_t>(joined({view_frame(frame_header_of(31), a.view(), block_a.data()),
                                                  view_frame(frame_header_of(31), b.view(), block_b.data())}));
}
