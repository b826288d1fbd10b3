#pragma once

#include <rill/collective/frame_check.hpp>
#include <rill/collective/join_frames.hpp>
#include <rill/collective/run_schedule.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/random.hpp>
#include <rill/kernel/merge_k.hpp>
#include <rill/session/contribution_sum.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// The data of a concatenating gather of sparse streams: one frame per rank, made once and forwarded unchanged.
template <Transport Net, Element T, IndexType Index>
class gather_state {
  public:
    using message = typename Net::message;
    using view = stream_view<T, Index>;

    static constexpr bool overwrites_nothing = true;

    void attach(exchange<Net>& call, const Executor auto&) { call_ = &call; }

    void begin(wire::header head, const view& own, const coding& codes, random_key key) {
        whole_ = own.range();
        own_coding_ = codes.own;
        memory_.reset();
        const auto ranks = static_cast<std::size_t>(call_->net().size());
        frames_.assign(ranks, byte_pieces{});
        contents_.assign(ranks, sparse_view<T, Index>{});
        decoded_.resize(std::max(decoded_.size(), ranks));
        contribution_sum{}.describe(head);
        const rank_t self = call_->net().rank();
        head.call = detail::frame_place::of_rank(self).in(head.call, own.range());
        frame_at(self) = codes.is_view() ? view_frame(head, own, memory_.take(wire::header_bytes).data())
                                         : byte_pieces(coded_frame(head, own, codes, key, memory_));
        frame_reader reader(frame_at(self));
        take(self, reader.next<T, Index>());
    }

    byte_pieces outgoing(part_range ranks, action) {
        if (ranks.count() == 1) return frame_at(ranks.first);
        return join_frames(std::span<const byte_pieces>(frames_).subspan(static_cast<std::size_t>(ranks.first),
                                                                         static_cast<std::size_t>(ranks.count())),
                           memory_);
    }

    void fold(std::span<arrival<message>>) {}

    void copy(std::span<arrival<message>> arrivals) {
        for (auto& a : arrivals) {
            frame_reader reader(a.pieces());
            for (rank_t r = a.from.parts.first; r < a.from.parts.last; ++r) {
                const frame f = next_frame<T, Index>(*call_, a.from.peer, reader, detail::frame_place::of_rank(r));
                expect_range(*call_, a.from.peer, f.head.range, whole_);
                take(r, f);
            }
            expect_end(*call_, a.from.peer, reader);
            call_->keep(std::move(a.message));
        }
    }

    /// The union of all contributions; throws `invalid_value` where two ranks gave the same coordinate.
    void finish(stream<T, Index>& output) {
        std::size_t total = 0;
        for (const auto& content : contents_) total += content.count();
        const auto room = output.make_sparse(whole_, total);
        const std::size_t count = kernel::merge_k(
            std::span<const sparse_view<T, Index>>(contents_), room.indices, room.values, [](T a, T) { return a; },
            scratch_);
        if (count != total) refuse_duplicate();
    }

  private:
    byte_pieces& frame_at(rank_t rank) { return frames_[static_cast<std::size_t>(rank)]; }

    void take(rank_t rank, const frame& f) {
        const view content = read_from(
            *call_, rank, [&] { return content_of(f.with(own_coding_), decoded_[static_cast<std::size_t>(rank)]); });
        if (content.is_dense()) call_->refuse(rank, {"contributed a dense stream"});
        contents_[static_cast<std::size_t>(rank)] = content.pairs();
        frame_at(rank) = f.bytes;
    }

    [[noreturn]] void refuse_duplicate() const {
        for (std::size_t a = 0; a < contents_.size(); ++a)
            for (std::size_t b = a + 1; b < contents_.size(); ++b)
                for (Index i : contents_[a].indices)
                    if (std::binary_search(contents_[b].indices.begin(), contents_[b].indices.end(), i))
                        call_->scene().fail(failure::invalid_value, static_cast<rank_t>(b), static_cast<rank_t>(a),
                                            {"coordinate ", i, " is contributed by rank ", a, " and by rank ", b});
        throw protocol_error("all_gather: inconsistent union");
    }

    exchange<Net>* call_ = nullptr;
    segment whole_{};
    own_coding own_coding_{};
    std::vector<byte_pieces> frames_;
    std::vector<sparse_view<T, Index>> contents_;
    std::vector<frame_scratch<T, Index>> decoded_;
    kernel::merge_scratch scratch_;
    arena memory_;
};

}}  // namespace rill::RILL_ABI
