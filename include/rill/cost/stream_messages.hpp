#pragma once

#include <rill/collective/join_frames.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/cost/dense_messages.hpp>
#include <rill/cost/detail/memo.hpp>
#include <rill/cost/frame_bytes.hpp>
#include <rill/cost/union_size.hpp>
#include <rill/stream/stream_codings.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost {

/// The messages of a collective on streams, by the expected number of entries. Models `MessageModel`.
///
/// A part that is the fold of k contributions has `entries(range, k)` entries, or all coordinates once a fold has
/// switched to the dense form.
///
/// Follows what each rank holds in the same blocks as `stream_state`, so that the frames are the same. Sizes are exact
/// if `entries` is, except for codings whose length depends on the coordinates (see `sparse_frame_bytes`). Each part is
/// one message: if it has more entries than `stream_codings::message_entries`, the collective sends it in pieces where
/// the transport asks for chunks, with a header more for each, and the time of a prediction is then an upper bound.
/// Memory: 16 bytes for each rank and part.
template <UnionModel Union, Element T = float, IndexType Index = std::uint32_t>
class stream_messages {
  public:
    /// `dense`: contributions are dense vectors, such as those of `compress::keep_all`.
    stream_messages(std::size_t dimension, Union entries, const stream_codings& codings = {}, bool dense = false)
        : dimension_(dimension), entries_(std::move(entries)), codings_(codings), starts_dense_(dense) {}

    void begin(int ranks, int parts) {
        parts_ = parts;
        block all{.first = 0, .last = parts, .contributors = 1, .dense = starts_dense_};
        has_.assign(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(parts), all);
        updates_.clear();
        if (codings_.contribution.is_lossless()) return;
        for (rank_t rank = 0; rank < ranks; ++rank)  // each part is coded by itself
            for (int p = 0; p < parts; ++p) at(rank, p).first = p, at(rank, p).last = p + 1;
    }

    std::uint64_t bytes(rank_t sender, part_range parts, action kind) {
        if (parts.count() == 0) return sparse_frame_bytes<T, Index>(0, {});
        std::uint64_t sum = 0;
        for_each_frame(sender, parts, kind, [&](part_range of, const block& b) {
            sum = next_frame_at(sum) + bytes_of(of, b, coding_of(b, kind));
        });
        return sum;
    }

    /// Takes what a rank receives in a round, in ascending order of the peers. It takes effect in `end_round()`.
    void receive(rank_t rank, std::span<const transfer> from, action kind) {
        if (kind == action::copy) return copy(rank, from);
        for (std::size_t first = 0, last = 0; first < from.size(); first = last) {
            while (last < from.size() && from[last].parts == from[first].parts) ++last;
            fold(rank, from.subspan(first, last - first));
        }
    }
    void end_round() {
        for (const update& u : updates_)
            for (int p = u.now.first; p < u.now.last; ++p) at(u.rank, p) = u.now;
        updates_.clear();
    }

  private:
    /// Consecutive parts that a rank holds as one stream.
    struct block {
        std::int32_t first = 0;
        std::int32_t last = 0;
        std::int32_t contributors = 1;
        bool dense = false;
    };
    struct update {
        rank_t rank = 0;
        block now{};
    };

    block& at(rank_t rank, int part) {
        return has_[static_cast<std::size_t>(rank) * static_cast<std::size_t>(parts_) + static_cast<std::size_t>(part)];
    }
    segment range(part_range parts) const {
        return split(dimension_, static_cast<std::size_t>(parts_), static_cast<std::size_t>(parts.first),
                     static_cast<std::size_t>(parts.last));
    }
    const coding& coding_of(const block& b, action kind) const {
        if (kind == action::copy) return codings_.copy;
        return b.contributors == 1 ? codings_.contribution : codings_.partial;
    }

    std::size_t count_of(part_range parts, const block& b) {
        const segment s = range(parts);
        if (b.dense) return s.size();
        return counts_.get(s.begin, s.end, static_cast<std::uint64_t>(b.contributors), [&] {
            const double expected = entries_(s, static_cast<int>(b.contributors));
            return static_cast<std::size_t>(std::llround(std::clamp(expected, 0.0, static_cast<double>(s.size()))));
        });
    }
    std::uint64_t bytes_of(part_range parts, const block& b, const coding& codes) {
        const segment s = range(parts);
        const std::size_t count = count_of(parts, b);
        if (b.dense) return dense_frame_bytes<T>(count, codes);
        return lengths_.get(count, s.size(), codes.fingerprint(), [&] {
            return sparse_frame_bytes<T, Index>(count, {0, s.size()}, codes);
        });
    }

    /// Calls `visit` for each frame of a message, with the block that it is cut from.
    template <class Visit>
    void for_each_frame(rank_t sender, part_range parts, action kind, Visit&& visit) {
        const bool by_part = kind == action::copy && !codings_.copy.is_lossless();
        for (int p = parts.first; p < parts.last;) {
            const block b = at(sender, p);
            const int end = by_part ? p + 1 : std::min(static_cast<int>(b.last), parts.last);
            visit({p, end}, b);
            p = end;
        }
    }

    void copy(rank_t rank, std::span<const transfer> from) {
        for (const transfer& t : from)
            for_each_frame(t.peer, t.parts, action::copy, [&](part_range of, block b) {
                b.first = of.first;
                b.last = of.last;
                updates_.push_back({rank, b});
            });
    }

    /// Folds whole blocks where each operand is one block, otherwise part by part.
    void fold(rank_t rank, std::span<const transfer> from) {
        const part_range parts = from.front().parts;
        bool whole = at(rank, parts.first).last >= parts.last;
        for (const transfer& t : from) whole = whole && at(t.peer, parts.first).last >= parts.last;
        if (whole) return fold_parts(rank, from, parts);
        for (int p = parts.first; p < parts.last; ++p) fold_parts(rank, from, {p, p + 1});
    }
    void fold_parts(rank_t rank, std::span<const transfer> from, part_range parts) {
        block result{.first = parts.first, .last = parts.last, .contributors = 0};
        expected_union joined(range(parts).size());
        const auto add = [&](const block& operand) {
            result.contributors += operand.contributors;
            result.dense = result.dense || operand.dense;
            joined.add(count_of(parts, operand));
        };
        add(at(rank, parts.first));
        for (const transfer& t : from) add(at(t.peer, parts.first));
        result.dense =
            result.dense || codings_.when.wants_dense<T, Index>(joined.count(), range(parts), codings_.of_sums());
        updates_.push_back({rank, result});
    }

    std::size_t dimension_;
    Union entries_;
    stream_codings codings_;
    bool starts_dense_;
    int parts_ = 1;
    std::vector<block> has_;
    std::vector<update> updates_;
    detail::memo<std::size_t> counts_;
    detail::memo<std::uint64_t> lengths_;
};

static_assert(MessageModel<stream_messages<uniform_density>>);

}}}  // namespace rill::RILL_ABI::cost
