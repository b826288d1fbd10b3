#pragma once

#include <rill/collective/frame_check.hpp>
#include <rill/collective/join_frames.hpp>
#include <rill/collective/run_schedule.hpp>
#include <rill/concept/aggregator.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/pool.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/kernel/copy.hpp>
#include <rill/session/contribution_sum.hpp>
#include <rill/stream/fold.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_codings.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// The data of a collective on sparse or adaptive streams: consecutive blocks of parts, each a view of the input, of a
/// folded stream, or of a message that is kept until the end. No block is overwritten before the result is written, so
/// no send is waited for before the last round.
///
/// A message is a sequence of frames, one for each block that it touches; a single frame in raw coding is sent from
/// where it lies. In copy rounds (in which finished parts are sent on unchanged) a frame is made once, by the owner of
/// the part, and forwarded as it is. If a coding is lossy, each part has a frame of its own, and the owner too goes on
/// with the values that the others will decode. A finished part that is not sent on is decoded where the result takes
/// it.
template <Transport Net, Element T, IndexType Index, class Fold, Executor Exec = serial>
class stream_state {
  public:
    using message = typename Net::message;
    using view = stream_view<T, Index>;

    static constexpr bool overwrites_nothing = true;

    void attach(exchange<Net>& call, const Exec& executor = {}) {
        call_ = &call;
        executor_ = executor;
    }

    void begin(const wire::header& head, int parts, const view& input, contribution_sum own, const Fold& fold,
               const stream_codings& codings, random_key key,
               const frame_coder<T, Index, Exec>& coder = coder_of<coding_set{}, T, Index, Exec>) {
        head_ = head;
        coder_ = &coder;
        fold_ = fold;
        codings_ = codings;
        key_ = key;
        dimension_ = input.range().size();
        blocks_.clear();
        block_of_.assign(static_cast<std::size_t>(parts), 0);
        streams_.reset();
        rooms_.reset();
        memory_.reset();
        // Checked at the start, so that no owner of a part is blamed for a sum that it cannot write.
        coder.require_input(input, codings, executor_);
        add({.parts = {0, parts}, .content = input, .what = own, .from = source::contribution});
        if (!codings.contribution.is_lossless()) code_parts({0, parts}, codings.contribution);
    }

    /// Calls `visit(view)` for the content of `parts`, in ascending order. Right after `begin`, that is the input as
    /// the receivers decode it.
    void for_each_piece(part_range parts, function_ref<void(const view&)> visit) {
        for_each_block(parts, [&](block& piece) {
            if (piece.is_coded) decode(piece);
            visit(piece.content);
        });
    }

    byte_pieces outgoing(part_range parts, action kind) {
        if (parts.count() == 0) return empty_frame();
        if constexpr (OwnerFinishingAggregator<Fold>)
            if (kind == action::copy) finish_parts(parts);
        if (kind == action::copy && !codings_.copy.is_lossless()) code_parts(parts, codings_.copy);
        if (block_at(parts.first).parts.last >= parts.last) return frame_of(parts, kind);
        return joined_frames(parts, kind);
    }

    /// A k-way fold: of all parts at once if each operand is one block, else part by part.
    void fold(std::span<arrival<message>> arrivals) {
        const part_range parts = arrivals.front().from.parts;
        collect_operands(arrivals, parts);
        bool whole = true;
        for (const block& operand : operands_) whole = whole && operand.parts == parts;
        if (whole) return fold_operands(parts);
        for (int p = parts.first; p < parts.last; ++p) fold_operands({p, p + 1});
    }

    void copy(std::span<arrival<message>> arrivals) {
        for (std::size_t i = 0; i < arrivals.size(); ++i) {
            read_frames(arrivals[i], codings_.copy, [this](block& b) {
                b.is_finished = true;
                add(b);
            });
            call_->keep(std::move(arrivals[i].message));
        }
    }

    contribution_sum total(int part) const { return block_at(part).what; }

    /// Writes the finished content of `parts` as a dense vector. `output` may be the input's memory: waits until nobody
    /// reads it.
    [[gnu::noinline]] void finish(part_range parts, std::span<T> output) {
        call_->await_readers(std::as_bytes(output));
        if constexpr (OwnerFinishingAggregator<Fold>) finish_parts(parts);
        [[maybe_unused]] const auto unpacking = named_span(call_->net(), "unpack");
        const std::size_t first = range(parts).begin;
        frame_scratch<T, Index>& scratch = rooms_.take();  // one for all blocks, so that it stays in the cache
        for_each_block(parts, [&](block& piece) {
            if (piece.is_coded) decode(piece, room_for(piece.coded, scratch));
            const segment here = piece.content.range();
            copy_dense(piece.content, output.subspan(here.begin - first, here.size()), fold_.template identity<T>(),
                       executor_);
        });
        finish_values(parts, output);
    }

    /// Writes the finished content of `parts` as a stream, which is dense if any block of it is.
    void finish(part_range parts, stream<T, Index>& output) {
        if constexpr (OwnerFinishingAggregator<Fold>) return finish(parts, output.make_dense(range(parts)));
        std::size_t count = 0;
        bool dense = false;
        for_each_block(parts, [&](const block& piece) {
            count += piece.count();
            dense = dense || piece.is_dense();
        });
        if (dense) return finish(parts, output.make_dense(range(parts)));
        [[maybe_unused]] const auto unpacking = named_span(call_->net(), "unpack");
        const auto room = output.make_sparse(range(parts), count);
        std::size_t at = 0;
        for_each_block(parts, [&](block& piece) {
            const std::size_t entries = piece.count();
            const stream_room<T, Index> here{room.indices.subspan(at, entries), room.values.subspan(at, entries)};
            if (piece.is_coded) decode(piece, here);
            move_to(here.indices, piece.content.indices());
            move_to(here.values, piece.content.values());
            at += entries;
        });
        finish_values(parts, room.values);
    }

  private:
    enum class source : unsigned char { contribution, fold };

    struct block {
        part_range parts{};
        view content{};  // unless the block is coded
        contribution_sum what{};
        source from = source::fold;
        frame coded{};             // its bytes: of the whole block, if they have been made
        rank_t sender = no_rank;   // of the frame
        bool is_coded = false;     // the frame has not been decoded
        bool is_finished = false;  // at its owner

        std::size_t count() const { return is_coded ? static_cast<std::size_t>(coded.head.count) : content.count(); }
        bool is_dense() const { return is_coded ? coded.is_dense() : content.is_dense(); }
    };

    [[gnu::noinline]] segment range(part_range parts) const {
        return split(dimension_, block_of_.size(), static_cast<std::size_t>(parts.first),
                     static_cast<std::size_t>(parts.last));
    }
    const block& block_at(int part) const { return blocks_[block_of_[static_cast<std::size_t>(part)]]; }
    block& block_at(int part) { return blocks_[block_of_[static_cast<std::size_t>(part)]]; }

    [[gnu::noinline]] void add(const block& b) {
        for (int p = b.parts.first; p < b.parts.last; ++p) block_of_[static_cast<std::size_t>(p)] = blocks_.size();
        blocks_.add(b);
    }

    [[gnu::noinline]] block clipped(block b, part_range parts) const {
        const part_range common{std::max(b.parts.first, parts.first), std::min(b.parts.last, parts.last)};
        if (common == b.parts) return b;
        b.content = b.content.slice(range(common));
        b.parts = common;
        b.coded = {};
        return b;
    }

    /// Decodes a block that is coded.
    [[gnu::noinline]] void decode(block& b, const stream_room<T, Index>& room) {
        b.content = read_from(*call_, b.sender, [&] { return content_of(b.coded, room); });
        b.is_coded = false;
    }
    void decode(block& b) { decode(b, room_for(b.coded, rooms_.take())); }

    /// The block of a part, decoded.
    block& decoded(int part) {
        block& b = block_at(part);
        if (b.is_coded) decode(b);
        return b;
    }

    /// Calls `visit(block)` for the blocks of `parts`, in ascending order. Those that reach beyond are decoded and
    /// clipped.
    void for_each_block(part_range parts, function_ref<void(block&)> visit) {
        for (int p = parts.first; p < parts.last;) {
            const bool is_within = p == block_at(p).parts.first && block_at(p).parts.last <= parts.last;
            block piece = is_within ? block_at(p) : clipped(decoded(p), {p, parts.last});
            p = piece.parts.last;
            visit(piece);
        }
    }

    template <class Each>
    static void move_to(std::span<Each> place, std::span<const Each> from) {
        if (from.data() != place.data()) kernel::copy(from, place);
    }

    void finish_values(part_range parts, std::span<T> values) const {
        if constexpr (!Fold::finish_is_trivial && !OwnerFinishingAggregator<Fold>)
            fold_.finish(values, total(parts.first).weight);
    }

    /// Finishes those of `parts` that have not arrived finished, as dense blocks.
    void finish_parts(part_range parts) {
        for (int p = parts.first; p < parts.last;) {
            if (block_at(p).is_finished) {
                p = block_at(p).parts.last;
                continue;
            }
            const block b = clipped(decoded(p), {p, parts.last});
            p = b.parts.last;
            [[maybe_unused]] const auto finishing = named_span(call_->net(), "fold");
            stream<T, Index>& finished = streams_.take();
            const std::span<T> values = finished.make_dense(range(b.parts));
            copy_dense(b.content, values, fold_.template identity<T>(), executor_);
            fold_.finish(values, b.what.weight);
            add({.parts = b.parts, .content = finished.view(), .what = b.what, .is_finished = true});
        }
    }

    view content_of(const frame& f, const stream_room<T, Index>& room) {
        [[maybe_unused]] const auto decoding = named_span(call_->net(), "decode");
        return coder_->decode(f, room, executor_);
    }

    /// Values in a coding of the user's are in the one of `due`.
    static frame frame_in(const frame& f, const coding& due) {
        return f.head.codes.values == value_coding::own ? f.with(due.own) : f;
    }

    byte_pieces empty_frame() {
        contribution_sum{0, 0, 0}.describe(head_);
        head_.call = call_->signature().hash();
        return view_frame(head_, view(segment{}, sparse_view<T, Index>{}), memory_.take(wire::header_bytes).data());
    }

    byte_pieces new_frame(const block& b, const coding& codes) {
        b.what.describe(head_);
        head_.call = detail::frame_place::of_part(b.parts.first).in(call_->signature().hash(), b.content.range());
        if (codes.is_view()) return view_frame(head_, b.content, memory_.take(wire::header_bytes).data());
        [[maybe_unused]] const auto encoding = named_span(call_->net(), "encode");
        const random_key key = key_.derive(static_cast<std::uint64_t>(b.from), b.parts.first);
        return coder_->encode(head_, b.content, codes, key, memory_, executor_);
    }

    /// The frame of the block at `parts.first`, clipped to `parts`. In copy rounds the frame of the whole block is made
    /// once. What came from another rank is decoded before it is sent on, so that its sender is blamed if it is
    /// invalid.
    byte_pieces frame_of(part_range parts, action kind) {
        block& whole = decoded(parts.first);
        if (kind == action::copy && whole.coded.bytes.count() == 0) whole.coded.bytes = new_frame(whole, codings_.copy);
        const block b = clipped(whole, parts);
        if (b.coded.bytes.count() != 0) return b.coded.bytes;
        if (kind == action::copy) return new_frame(b, codings_.copy);
        return new_frame(b, b.from == source::contribution ? codings_.contribution : codings_.partial);
    }

    byte_pieces joined_frames(part_range parts, action kind) {
        frames_.clear();
        for (int p = parts.first; p < parts.last; p = block_at(p).parts.last)
            frames_.add(frame_of({p, parts.last}, kind));
        return join_frames(frames_.all(), memory_);
    }

    /// Encodes each of `parts` that has no frame yet, as a frame of its own, and takes the decoded values as its
    /// content.
    void code_parts(part_range parts, const coding& codes) {
        for (int p = parts.first; p < parts.last; ++p) {
            if (block_at(p).coded.bytes.count() != 0) continue;
            block b = clipped(block_at(p), {p, p + 1});
            b.coded.bytes = new_frame(b, codes);
            round_values(b, codes);
            add(b);
        }
    }

    /// Takes the values of a block from its frame. Its indices are those that the frame would give.
    void round_values(block& b, const coding& codes) {
        frame_reader reader(b.coded.bytes);
        frame values = frame_in(reader.next<T, Index>(), codes);
        values.head.codes.indices = index_coding::dense;
        const std::span<const T> rounded = content_of(values, room_for(values, rooms_.take())).values();
        const segment here = b.content.range();
        b.content =
            b.is_dense() ? view(here, rounded) : view(here, sparse_view<T, Index>{b.content.indices(), rounded});
    }

    /// Calls `take(block)` for each frame of a message, not decoded. Values in a coding of the user's are in the one of
    /// `due`.
    [[gnu::noinline]] void read_frames(const arrival<message>& a, const coding& due, function_ref<void(block&)> take) {
        frame_reader reader(a.pieces());
        int p = a.from.parts.first;
        const int end = a.from.parts.last;
        do {
            const auto place =
                p == a.from.parts.first ? detail::frame_place::of_part(p) : detail::frame_place::unknown();
            const frame f = next_frame<T, Index>(*call_, a.from.peer, reader, place);
            const part_range parts = covered(f.head.range, reader.done(), {p, end});
            expect_range(*call_, a.from.peer, f.head.range, range(parts));
            block read{.parts = parts,
                       .what = contribution_sum::of(f.head),
                       .coded = frame_in(f, due),
                       .sender = a.from.peer,
                       .is_coded = true};
            if (p < end) take(read);
            p = parts.last;
        } while (p < end);
        expect_end(*call_, a.from.peer, reader);
    }

    /// Which of the `due` parts a frame over `given` covers: as few as reach its end, but all of them if it is the last
    /// frame.
    part_range covered(segment given, bool last_frame, part_range due) const {
        if (last_frame || due.count() == 0) return due;
        int last = due.first + 1;
        while (last < due.last && range({due.first, last}).end < given.end) ++last;
        return {due.first, last};
    }

    /// Collects the blocks to be folded in ascending order of ranks, with this rank's own among them.
    void collect_operands(std::span<arrival<message>> arrivals, part_range parts) {
        operands_.clear();
        const rank_t self = call_->net().rank();
        std::size_t before = 0;
        while (before < arrivals.size() && arrivals[before].from.peer < self) ++before;
        for (std::size_t i = 0; i <= arrivals.size(); ++i) {
            if (i == before)
                for (int p = parts.first; p < parts.last; p = operands_.back().parts.last)
                    operands_.add(clipped(decoded(p), {p, parts.last}));
            else
                read_frames(arrivals[i < before ? i : i - 1], codings_.contribution, [this](block& b) {
                    decode(b);
                    operands_.add(b);
                });
        }
    }

    /// A coding that rounds cannot write the infinite identity of `max` and `min`, so their sums stay sparse.
    dense_switch when() const {
        if constexpr (std::floating_point<T>)
            if (!codings_.copy.is_lossless() && !std::isfinite(fold_.template identity<T>()))
                return {std::numeric_limits<double>::infinity()};
        return codings_.when;
    }

    void fold_operands(part_range parts) {
        views_.clear();
        contribution_sum total{0, 0, 0};
        for (const block& operand : operands_) {
            if (!operand.parts.contains(parts.first)) continue;
            views_.add(clipped(operand, parts).content);
            total = total + operand.what;
        }
        stream<T, Index>& result = streams_.take();
        [[maybe_unused]] const auto folding = named_span(call_->net(), "fold");
        fold_streams(std::as_const(views_).all(), result, fold_of(fold_), fold_.template identity<T>(), when(),
                     scratch_, executor_, codings_.of_sums());
        add({.parts = parts, .content = result.view(), .what = total});
    }

    exchange<Net>* call_ = nullptr;
    [[no_unique_address]] Exec executor_{};
    wire::header head_{};
    Fold fold_{};
    stream_codings codings_{};
    random_key key_{};
    const frame_coder<T, Index, Exec>* coder_ = nullptr;
    std::size_t dimension_ = 0;
    plain_vector<block> blocks_;
    plain_vector<std::size_t> block_of_;
    plain_vector<block> operands_;
    plain_vector<view> views_;
    pool<stream<T, Index>> streams_;
    pool<frame_scratch<T, Index>> rooms_;
    plain_vector<byte_pieces> frames_;
    fold_scratch<T, Index> scratch_;
    arena memory_;
};

}}  // namespace rill::RILL_ABI
