#pragma once

#include <rill/collective/detail/chunks.hpp>
#include <rill/collective/detail/early_result.hpp>
#include <rill/collective/detail/pieces.hpp>
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
#include <cstring>
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
///
/// Where parts are cut into chunks, each rank cuts its contribution into pieces of as many chunks as have about
/// `message_entries` entries, and then its sums into pieces of four times as many. Pieces that end elsewhere are folded
/// as far as all of them reach. A message brings one piece; or a whole part, where the transport asks for no chunks.
/// Then the sums have the same bits and the same forms all the same.
///
/// Where pieces travel by themselves and the result is a sparse stream, pieces are written where they belong as they
/// arrive (`early_result`), so that little is left to do after the last message. A rank that takes a stream tells how
/// many entries its part has when it has folded the whole part, and sends the second half of its sums after that. The
/// result is exchanged with the output at the end, and the state keeps memory for one result.
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

    /// `parts` counts chunks where parts are cut.
    void begin(const wire::header& head, int parts, const view& input, contribution_sum own, const Fold& fold,
               const stream_codings& codings, random_key key,
               const frame_coder<T, Index, Exec>& coder = coder_of<coding_set{}, T, Index, Exec>,
               const detail::pieces& pieces = {}) {
        head_ = head;
        coder_ = &coder;
        fold_ = fold;
        codings_ = codings;
        key_ = key;
        dimension_ = input.range().size();
        pieces_ = pieces;
        latest_.assign(static_cast<std::size_t>(call_->net().size()), part_range{});
        if constexpr (may_be_early) {
            const bool is_wanted = pieces_.travel_alone() && pieces_.into_stream;
            early_.begin(is_wanted ? static_cast<std::size_t>(parts / pieces_.chunks) : 0);
        }
        folded_ = {};
        operands_.clear();
        blocks_.clear();
        block_of_.assign(static_cast<std::size_t>(parts), 0);
        streams_.reset();
        rooms_.reset();
        memory_.reset();
        // Checked at the start, so that no owner of a part is blamed for a sum that it cannot write.
        coder.require_input(input, codings, executor_);
        add({.parts = {0, parts}, .content = input, .what = own, .from = source::contribution});
        if (pieces_.travel_alone() || !codings.contribution.is_lossless()) cut_blocks({0, parts}, pieces_.entries);
    }

    /// Right after `begin`: calls `visit(view)` for each part of the input as the receivers decode it, in ascending
    /// order. The coding of contributions is lossy.
    void for_each_contributed(function_ref<void(const view&)> visit) {
        const part_range all{0, static_cast<int>(block_of_.size())};
        round_contribution(all);
        for_each_block(all, [&](block& part) { visit(part.content); });
    }

    byte_pieces outgoing(part_range scheduled, action kind) {
        if (scheduled.count() == 0) return empty_frame();
        part_range parts = pieces_.chunks_of(scheduled);
        if (pieces_.travel_alone()) {
            const part_range whole = block_at(parts.first).parts;
            if (whole.first != parts.first) return {};
            parts = whole;
        }
        round_contribution(parts);
        if constexpr (OwnerFinishingAggregator<Fold>)
            if (kind == action::copy) finish_parts(parts);
        if (kind == action::copy && !codings_.copy.is_lossless()) code_parts(parts, codings_.copy);
        if (block_at(parts.first).parts.last < parts.last) return joined_frames(parts, kind);
        byte_pieces frames = frame_of(parts, kind);
        if constexpr (may_be_early)
            if (kind == action::copy && early_.is_wanted()) tell_total(parts, frames);
        return frames;
    }

    bool may_send(part_range scheduled, action kind) const {
        if constexpr (may_be_early)
            if (kind == action::copy && early_.is_wanted() && !block_at(scheduled.first).is_finished) {
                const part_range part = pieces_.part_of(scheduled.first);
                return scheduled.first < part.first + pieces_.chunks / 2 || is_folded(part);
            }
        return true;
    }

    bool awaits(const transfer& from) const {
        const part_range latest = latest_[static_cast<std::size_t>(from.peer)];
        return !pieces_.travel_alone() || from.parts.first <= latest.first || latest.last <= from.parts.first;
    }

    /// Decodes operands of the next fold.
    void fold(std::span<arrival<message>> arrivals) {
        for (std::size_t i = 0; i < arrivals.size(); ++i) {
            const part_range brought = read_frames(arrivals[i], action::fold, [this](block& b) {
                decode(b);
                operands_.add(b);
            });
            if (brought.count() != 0)
                call_->operands().add({{arrivals[i].from.peer, brought}, std::move(arrivals[i].message)});
        }
    }

    /// A k-way fold of the operands that have arrived and this rank's own: of all parts at once if each operand is one
    /// block, else part by part; of chunks as far as the pieces of all operands reach.
    void close(part_range scheduled) {
        part_range parts = pieces_.chunks_of(scheduled);
        if (parts.count() == 0) return;
        round_contribution(parts);
        if (pieces_.travel_alone()) {
            if (folded_.first < parts.first && parts.first < folded_.last) return;
            folded_ = parts = {parts.first, reach_of_all(parts.first)};
        }
        if (pieces_.at_once > 1)
            fold_as_cut(parts);
        else
            fold_blocks(parts);
        release_operands(parts);
        if (pieces_.travel_alone()) cut_blocks(parts, pieces_.sum_entries());
    }

    void copy(std::span<arrival<message>> arrivals) {
        for (std::size_t i = 0; i < arrivals.size(); ++i) {
            [[maybe_unused]] const part_range brought = read_frames(arrivals[i], action::copy, [this](block& b) {
                b.is_finished = true;
                if constexpr (may_be_early) count_early(b);
                add(b);
            });
            call_->keep(std::move(arrivals[i].message));
            if constexpr (may_be_early) write_early(brought);
        }
    }

    contribution_sum total(int part) const { return block_at(part).what; }

    /// Writes the finished content of `parts` as a dense vector. `output` may be the input's memory: waits until nobody
    /// reads it.
    [[gnu::noinline]] void finish(part_range parts, std::span<T> output) {
        call_->await_readers(std::as_bytes(output));
        round_contribution(parts);
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
        round_contribution(parts);
        if constexpr (may_be_early)
            if (early_.take(output)) return finish_values(parts, output.values());
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
    /// Whether a sparse result may be written while its pieces arrive.
    static constexpr bool may_be_early = ChunkingTransport<Net> && !OwnerFinishingAggregator<Fold>;

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
        std::size_t before = 0;    // entries of its part before it, if the result is written early
        bool tells_total = false;  // a message that brings it also tells how many entries its part has

        std::size_t count() const { return is_coded ? static_cast<std::size_t>(coded.head.count) : content.count(); }
        bool is_dense() const { return is_coded ? coded.is_dense() : content.is_dense(); }
    };

    static bool overlap(part_range a, part_range b) { return a.first < b.last && b.first < a.last; }
    /// Where the piece of an operand ends that has this chunk.
    int reach(const block& operand, int chunk) const {
        const part_range part = pieces_.part_of(chunk);
        if (operand.parts.first > part.first || operand.parts.last < part.last) return operand.parts.last;
        const int each = pieces_.size(pieces_.chunks, clipped(operand, part).content.count(), pieces_.entries);
        return chunk - chunk % each + each;
    }
    int reach_of_all(int chunk) {
        int end = reach(decoded(chunk), chunk);
        for (const block& operand : operands_)
            if (operand.parts.contains(chunk)) end = std::min(end, reach(operand, chunk));
        return end;
    }

    segment range(part_range parts) const {
        return detail::range_of_chunks(dimension_, block_of_.size(), static_cast<std::size_t>(pieces_.chunks), parts);
    }
    const block& block_at(int part) const { return blocks_[block_of_[static_cast<std::size_t>(part)]]; }
    block& block_at(int part) { return blocks_[block_of_[static_cast<std::size_t>(part)]]; }

    [[gnu::noinline]] void add(const block& b) {
        for (int p = b.parts.first; p < b.parts.last; ++p) block_of_[static_cast<std::size_t>(p)] = blocks_.size();
        blocks_.add(b);
    }

    /// Cuts what this rank has of each part in `parts` into pieces of equally many chunks and about `entries` entries.
    [[gnu::noinline]] void cut_blocks(part_range parts, std::size_t entries) {
        if (!pieces_.any()) return;
        for (int p = parts.first, end = 0; p < parts.last; p = end) {
            end = std::min(pieces_.part_of(p).last, parts.last);
            const block whole = clipped(block_at(p), {p, end});
            const int each = pieces_.size(end - p, whole.content.count(), entries);
            for (; p < end; p += each) add(clipped(whole, {p, std::min(p + each, end)}));
        }
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

    /// Where the coding of contributions is lossy: encodes those of `parts` that are this rank's contribution. A part
    /// is encoded when it is sent or folded, so that the first ones travel meanwhile.
    void round_contribution(part_range parts) {
        if (!codings_.contribution.is_lossless()) code_parts(parts, codings_.contribution, true);
    }

    /// Encodes each of `parts`, or each block where they are cut, that has no frame yet, as a frame of its own, and
    /// takes the decoded values as its content. `contributed`: only parts of this rank's contribution.
    [[gnu::noinline]] void code_parts(part_range parts, const coding& codes, bool contributed = false) {
        for (int p = parts.first, next = 0; p < parts.last; p = next) {
            next = pieces_.any() ? block_at(p).parts.last : p + 1;
            if (block_at(p).coded.bytes.count() != 0) continue;
            if (contributed && block_at(p).from != source::contribution) continue;
            block b = clipped(block_at(p), {p, next});
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

    /// Calls `take(block)` for each frame of a message, not decoded, and returns which parts it brings: where they are
    /// cut, all that its frame covers. Values in a coding of the user's are in the one that is due.
    [[gnu::noinline]] part_range read_frames(const arrival<message>& a, action kind, function_ref<void(block&)> take) {
        const coding& due = kind == action::fold ? codings_.contribution : codings_.copy;
        frame_reader reader(a.pieces());
        const part_range asked = pieces_.chunks_of(a.from.parts);
        const bool may_bring_more = pieces_.travel_alone() && asked.count() != 0;
        int p = asked.first;
        int end = may_bring_more ? pieces_.part_of(p).last : asked.last;
        do {
            const auto place = p == asked.first ? detail::frame_place::of_part(p) : detail::frame_place::unknown();
            const frame f = next_frame<T, Index>(*call_, a.from.peer, reader, place);
            const part_range parts = covered(f.head.range, reader.done() && !may_bring_more, {p, end});
            expect_range(*call_, a.from.peer, f.head.range, range(parts));
            block read{.parts = parts,
                       .what = contribution_sum::of(f.head),
                       .coded = frame_in(f, due),
                       .sender = a.from.peer,
                       .is_coded = true};
            if (p < end) take(read);
            p = parts.last;
            if (may_bring_more) end = p;
        } while (p < end);
        if constexpr (may_be_early)
            if (may_bring_more && kind == action::copy) read_total(a.from.peer, reader, {asked.first, end});
        expect_end(*call_, a.from.peer, reader);
        return latest_[static_cast<std::size_t>(a.from.peer)] = {asked.first, end};
    }

    /// The number of the part to which a chunk belongs.
    std::size_t part_index(int chunk) const { return static_cast<std::size_t>(chunk / pieces_.chunks); }

    bool is_folded(part_range part) const {
        for (int p = part.first; p < part.last; p = block_at(p).parts.last)
            if (block_at(p).from == source::contribution) return false;
        return true;
    }

    /// Adds to the first piece that is sent after this rank has folded the whole part how many entries the part has:
    /// an empty frame that covers so many coordinates from the first one of the part.
    [[gnu::noinline]] void tell_total(part_range piece, byte_pieces& frames) {
        if (block_at(piece.first).is_dense()) return early_.give_up();
        const part_range part = pieces_.part_of(piece.first);
        const std::size_t index = part_index(piece.first);
        if (!early_.knows(index)) {
            if (!is_folded(part)) return;
            for (int p = part.first; p < part.last; p = block_at(p).parts.last) count_early(block_at(p));
            if (!early_.is_wanted()) return;
            early_.tell(index, early_.counted(index));
            block_at(piece.first).tells_total = piece.last < part.last;
        }
        if (!block_at(piece.first).tells_total) return;
        contribution_sum{0, 0, 0}.describe(head_);
        head_.call = call_->signature().hash();
        const std::size_t first = range(part).begin, size = frames.size_bytes(), gap = next_frame_at(size) - size;
        const byte_span told = memory_.take(gap + wire::header_bytes);
        std::memset(told.data(), 0, gap);
        view_frame(head_, view(segment{first, first + early_.counted(index)}, sparse_view<T, Index>{}),
                   told.data() + gap);
        frames.push(told);  // the last of `byte_pieces::most`: a frame has three pieces
    }

    /// Reads the total of a part if the message that has brought these chunks tells it, and compares it with what has
    /// come.
    [[gnu::noinline]] void read_total(rank_t sender, frame_reader& reader, part_range brought) {
        const part_range part = pieces_.part_of(brought.first);
        const std::size_t index = part_index(brought.first);
        const segment all = range(part);
        bool agrees = true;
        if (!reader.done()) {
            const wire::header total =
                next_frame<T, Index>(*call_, sender, reader, detail::frame_place::unknown()).head;
            const segment told = total.range;
            if (total.count != 0 || told.begin != all.begin || told.end > all.end || brought.last == part.last)
                call_->refuse(sender, {"sent more frames than were due"});
            agrees = early_.tell(index, told.size());
        }
        if (brought.last == part.last) agrees = early_.tell(index, early_.counted(index)) && agrees;
        if (!agrees || early_.exceeds_total(index))
            call_->refuse(sender,
                          {"sent another number of entries of [", all.begin, ", ", all.end, ") than it had told"});
    }

    /// Which of the `due` parts a frame over `given` covers: as few as reach its end, but all of them if it is the last
    /// frame.
    part_range covered(segment given, bool last_frame, part_range due) const {
        if (last_frame || due.count() == 0) return due;
        int last = due.first + 1;
        while (last < due.last && range({due.first, last}).end < given.end) ++last;
        return {due.first, last};
    }

    /// Counts a finished block. A result with a dense block is dense, and is not written early.
    void count_early(block& b) {
        if (b.is_dense()) return early_.give_up();
        b.before = early_.count(part_index(b.parts.first), b.count());
    }
    /// Writes the chunks that have arrived last where the result takes them; where that was not known before, all that
    /// have arrived. This rank's own sums have been sent before a finished piece is received, so they are rounded here.
    [[gnu::noinline]] void write_early(part_range brought) {
        const part_range all{0, static_cast<int>(block_of_.size())};
        const bool had_room = early_.has_room();
        if (!early_.make_room(range(all))) return;
        const part_range due = had_room ? brought : all;
        for (int p = due.first; p < due.last; p = block_at(p).parts.last) {
            block& b = block_at(p);
            if (b.from == source::contribution) continue;
            const stream_room<T, Index> here = early_.place(part_index(p), b.before, b.count());
            if (b.is_coded) decode(b, here);
            move_to(here.indices, b.content.indices());
            move_to(here.values, b.content.values());
        }
    }

    /// Collects the blocks of `parts` to be folded in ascending order of ranks, with this rank's own among them.
    /// Returns whether each operand is one block.
    bool collect_operands(part_range parts) {
        folding_.clear();
        for (const block& operand : operands_)
            if (overlap(operand.parts, parts)) add_in_order(clipped(operand, parts));
        for (int p = parts.first; p < parts.last;) {
            block own = clipped(decoded(p), {p, parts.last});
            p = own.parts.last;
            own.sender = call_->net().rank();
            add_in_order(own);
        }
        bool whole = true;
        for (const block& operand : folding_) whole = whole && operand.parts == parts;
        return whole;
    }
    void add_in_order(const block& operand) {
        folding_.add(operand);
        for (std::size_t i = folding_.size(); --i != 0 && folding_[i - 1].sender > operand.sender;)
            std::swap(folding_[i - 1], folding_[i]);
    }
    /// Drops the operands that end in `parts`, and their messages.
    void release_operands(part_range parts) {
        const auto drop = [parts](auto& from, auto parts_of) {
            for (std::size_t i = 0; i < from.size();) {
                const part_range each = parts_of(from[i]);
                if (!overlap(each, parts) || each.last > parts.last) {
                    ++i;
                    continue;
                }
                std::swap(from[i], from.back());
                from.pop_back();
            }
        };
        drop(operands_, [](const block& b) { return b.parts; });
        drop(call_->operands(), [](const arrival<message>& a) { return a.from.parts; });
    }

    void fold_blocks(part_range parts) {
        if (collect_operands(parts)) return fold_operands(parts, when());
        for (int p = parts.first; p < parts.last; ++p) fold_operands({p, p + 1}, when());
    }
    /// Folds a whole part in the forms that its chunks would have if they travelled by themselves: in as few folds as
    /// there are stretches of one form.
    void fold_as_cut(part_range part) {
        regions_.clear();
        std::size_t first = 0;
        bool is_dense = false;
        for (int p = part.first; p < part.last; p = regions_.back().last) {
            const part_range region{p, reach_of_all(p)};
            collect_operands(region);
            views_.clear();
            for (const block& operand : folding_) views_.add(operand.content);
            const bool wants_dense = detail::folds_to_dense(std::as_const(views_).all(), when(), codings_.of_sums());
            if (wants_dense != is_dense) {
                fold_regions(std::as_const(regions_).all().subspan(first), is_dense);
                first = regions_.size();
            }
            is_dense = wants_dense;
            regions_.add(region);
        }
        fold_regions(std::as_const(regions_).all().subspan(first), is_dense);
        if (!codings_.copy.is_lossless())
            for (const part_range& region : regions_) cut_blocks(region, pieces_.sum_entries());
    }
    /// Folds consecutive regions: at once if each operand is one block.
    void fold_regions(std::span<const part_range> regions, bool is_dense) {
        if (regions.empty()) return;
        const dense_switch form{is_dense ? 0.0 : std::numeric_limits<double>::infinity()};
        const part_range all{regions.front().first, regions.back().last};
        if (collect_operands(all)) return fold_operands(all, form);
        for (const part_range& region : regions) {
            collect_operands(region);
            fold_operands(region, form);
        }
    }

    /// A coding that rounds cannot write the infinite identity of `max` and `min`, so their sums stay sparse.
    dense_switch when() const {
        if constexpr (std::floating_point<T>)
            if (!codings_.copy.is_lossless() && !std::isfinite(fold_.template identity<T>()))
                return {std::numeric_limits<double>::infinity()};
        return codings_.when;
    }

    void fold_operands(part_range parts, dense_switch when) {
        views_.clear();
        contribution_sum total{0, 0, 0};
        for (const block& operand : folding_) {
            if (!operand.parts.contains(parts.first)) continue;
            views_.add(clipped(operand, parts).content);
            total = total + operand.what;
        }
        stream<T, Index>& result = streams_.take();
        [[maybe_unused]] const auto folding = named_span(call_->net(), "fold");
        fold_streams(std::as_const(views_).all(), result, fold_of(fold_), fold_.template identity<T>(), when, scratch_,
                     executor_, codings_.of_sums());
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
    detail::pieces pieces_{};
    plain_vector<part_range> regions_;  ///< of a part: its chunks as far as the pieces of all operands reach
    plain_vector<part_range> latest_;   ///< of each rank: which parts its latest message has brought
    detail::early_result<T, Index> early_;
    plain_vector<block> operands_;  ///< have arrived and are not folded whole
    part_range folded_{};           ///< the latest chunks that were folded
    plain_vector<block> folding_;
    plain_vector<view> views_;
    pool<stream<T, Index>> streams_;
    pool<frame_scratch<T, Index>> rooms_;
    plain_vector<byte_pieces> frames_;
    fold_scratch<T, Index> scratch_;
    arena memory_;
};

}}  // namespace rill::RILL_ABI
