#pragma once

#include <rill/concept/aggregator.hpp>
#include <rill/concept/executor.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/real.hpp>
#include <rill/core/pool.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/session/contribution_sum.hpp>
#include <rill/session/detail/contributor_list.hpp>
#include <rill/stream/dense_switch.hpp>
#include <rill/stream/fold.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_codings.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The Euclidean distance between the values of two views of the same coordinates.
template <Element T, IndexType Index>
double distance(const stream_view<T, Index>& a, const stream_view<T, Index>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.count(); ++i) {
        const double difference = static_cast<double>(a.values()[i]) - static_cast<double>(b.values()[i]);
        sum += difference * difference;
    }
    return square_root(sum);
}

/// The decoded contributions that a rank has gathered, among them its own as the others would decode it.
template <Element T, IndexType Index>
class round_operands {
  public:
    using view = stream_view<T, Index>;

    void clear() {
        operands_.clear();
        has_own_ = false;
        rooms_.reset();
        memory_.reset();
        contributors = {};
    }

    std::span<const view> views() const { return operands_; }

    /// Adds what this rank contributes, if its weight is not 0. Must be called before `add`.
    template <Executor Exec>
    void add_own(wire::header head, const view& content, const coding& codes, random_key key, const contribution& own,
                 rank_t rank, const Exec& executor) {
        contribution_sum::of(own).describe(head);
        own_coding_ = codes.own;
        if (codes.is_view())
            own_frame_ = view_frame(head, content, memory_.take(wire::header_bytes).data());
        else
            own_frame_ = byte_pieces(coded_frame(head, content, codes, key, memory_, executor));
        if (own.weight == 0) return;
        has_own_ = true;
        contributors.in.push_back({rank, own.age, own.weight});
        operands_.push_back(
            codes.is_lossless()
                ? content
                : content_of(frame_reader(own_frame_).next<T, Index>().with(own_coding_), rooms_.take(), executor));
        if (!codes.is_lossless()) contributors.error_bound = distance(content, operands_.back());
    }

    /// Adds a child's message: its content, which must stay valid, and its contributor list, made `age` rounds older.
    /// Returns the error bound of the child.
    template <Executor Exec>
    double add(const byte_pieces& message, std::size_t dimension, std::uint32_t age, int ranks, const Exec& executor) {
        frame_reader reader(message);
        const frame content = reader.next<T, Index>();
        wire::detail::require(content.head.range == segment{0, dimension}, "its range is not the whole vector");
        const frame numbers = reader.next<std::int64_t, std::uint32_t>();
        wire::detail::require(reader.done() && numbers.head.codes.indices == index_coding::dense,
                              "it does not end with a contributor list");
        const auto of_child = contributor_list::from(content_of(numbers, contributors_room_).values(), ranks);
        contributors.add(of_child, age);
        if (!of_child.in.empty()) operands_.push_back(content_of(content.with(own_coding_), rooms_.take(), executor));
        return of_child.error_bound;
    }

    /// Writes the left fold of all contributions per coordinate, and neutral elements where there are no values.
    /// `target` may be the memory of this rank's own contribution.
    template <class Fold, Executor Exec>
    void fold(std::span<T> target, const Fold& with, const Exec& executor) {
        const T neutral = with.template identity<T>();
        if (operands_.empty())
            std::fill(target.begin(), target.end(), neutral);
        else
            fold_into_dense(std::span<const view>(operands_), target, fold_of(with), neutral, scratch_, executor);
    }

    /// Makes one contribution of all. What this rank alone contributes travels in its own coding, sums in
    /// `codings.partial`.
    template <class Fold, Executor Exec>
    buffer message(wire::header head, const Fold& with, const stream_codings& codings, const Exec& executor) {
        if (operands_.empty() || (operands_.size() == 1 && has_own_))
            return with_contributors(own_frame_, head, contributors);
        contribution_sum{contributors.weight(), static_cast<std::uint32_t>(contributors.in.size()), contributors.age()}
            .describe(head);
        fold_streams(std::span<const view>(operands_), folded_, fold_of(with), with.template identity<T>(),
                     codings.when, scratch_, executor, codings.partial);
        if (codings.partial.is_view())
            return with_contributors(view_frame(head, folded_.view(), memory_.take(wire::header_bytes).data()), head,
                                     contributors);
        return with_contributors(coded_frame(head, folded_.view(), codings.partial, {}, memory_, executor), head,
                                 contributors);
    }

    contributor_list contributors;

  private:
    std::vector<view> operands_;
    bool has_own_ = false;
    byte_pieces own_frame_{};
    arena memory_;
    pool<frame_scratch<T, Index>> rooms_;
    own_coding own_coding_{};
    frame_scratch<std::int64_t, std::uint32_t> contributors_room_;
    stream<T, Index> folded_;
    fold_scratch<T, Index> scratch_;
};

}}}  // namespace rill::RILL_ABI::detail
