#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/real.hpp>
#include <rill/core/error.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/span_of.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Who is behind a contribution, and who came late below it. It travels as the second frame of a message, as numbers.
struct contributor_list {
    std::vector<contributor> in;
    std::vector<latecomer> late;
    double error_bound = 0;
    double decoding_error = 0;

    double weight() const {
        double sum = 0;
        for (const contributor& each : in) sum += each.weight;
        return sum;
    }
    std::uint32_t age() const {
        std::uint32_t most = 0;
        for (const contributor& each : in) most = each.age > most ? each.age : most;
        return most;
    }

    /// Adds the entries of another list, whose contributions have become `rounds` rounds older.
    void add(const contributor_list& other, std::uint32_t rounds = 0) {
        decoding_error = std::max(decoding_error, other.decoding_error);
        for (contributor each : other.in) {
            each.age += rounds;
            in.push_back(each);
        }
        late.insert(late.end(), other.late.begin(), other.late.end());
    }

    std::vector<std::int64_t> numbers() const {
        std::vector<std::int64_t> out{std::bit_cast<std::int64_t>(error_bound),
                                      std::bit_cast<std::int64_t>(decoding_error),
                                      static_cast<std::int64_t>(in.size())};
        for (const contributor& each : in) put(out, each.rank, each.age, std::bit_cast<std::int64_t>(each.weight));
        for (const latecomer& each : late) put(out, each.rank, each.rounds, each.by.ns);
        return out;
    }

    /// Reads any numbers: gives a list of ranks below `size`, or throws `protocol_error`.
    static contributor_list from(std::span<const std::int64_t> numbers, int size) {
        wire::detail::require(numbers.size() >= first && (numbers.size() - first) % 2 == 0,
                              "a contributor list has pairs of numbers");
        contributor_list read;
        read.error_bound = std::bit_cast<double>(numbers[0]);
        read.decoding_error = std::bit_cast<double>(numbers[1]);
        for (const double error : {read.error_bound, read.decoding_error})
            wire::detail::require(is_finite(error) && error >= 0, "an error bound is not finite");
        const std::size_t entries = (numbers.size() - first) / 2;
        wire::detail::require(numbers[2] >= 0 && static_cast<std::uint64_t>(numbers[2]) <= entries,
                              "a contributor list is shorter than it says");
        const auto contributors = static_cast<std::size_t>(numbers[2]);
        for (std::size_t i = 0; i < entries; ++i) {
            const auto both = static_cast<std::uint64_t>(numbers[first + 2 * i]);
            const auto rank = static_cast<std::uint32_t>(both), rounds = static_cast<std::uint32_t>(both >> 32U);
            wire::detail::require(rank < static_cast<std::uint32_t>(size),
                                  "a contributor list names a rank outside the group");
            const std::int64_t other = numbers[first + 2 * i + 1];
            if (i < contributors) {
                const auto weight = std::bit_cast<double>(other);
                wire::detail::require(weight > 0 && weight <= 1e300, "a weight is not finite and positive");
                read.in.push_back({static_cast<rank_t>(rank), rounds, weight});
            } else {
                wire::detail::require(other >= 0, "a lateness is negative");
                read.late.push_back({static_cast<rank_t>(rank), rounds, duration(other)});
            }
        }
        return read;
    }

  private:
    static constexpr std::size_t first = 3;  // index of the first pair, after two errors and a count

    static void put(std::vector<std::int64_t>& out, rank_t rank, std::uint32_t rounds, std::int64_t other) {
        const std::uint64_t both = static_cast<std::uint64_t>(rounds) << 32U | static_cast<std::uint32_t>(rank);
        out.push_back(static_cast<std::int64_t>(both));
        out.push_back(other);
    }
};

/// Makes one message of a frame, followed by the contributor list.
inline buffer with_contributors(const byte_pieces& content, const wire::header& head,
                                const contributor_list& contributors) {
    const std::vector<std::int64_t> numbers = contributors.numbers();
    const stream_view<std::int64_t, std::uint32_t> list({0, numbers.size()}, span_of(numbers));
    buffer message;
    message.reserve(next_frame_at(content.size_bytes()) + wire::header_bytes + std::as_bytes(list.values()).size());
    for (const byte_view piece : content) message.append(piece.begin(), piece.end());
    append_frame(message, {.kind = head.kind, .epoch = head.epoch, .context = head.context, .number = head.number},
                 list);
    return message;
}

}}}  // namespace rill::RILL_ABI::detail
