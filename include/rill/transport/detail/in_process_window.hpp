#pragma once

#include <rill/concept/shared_memory.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/in_process_board.hpp>
#include <rill/transport/detail/in_process_world.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace in_process {

/// One rank's handle to the memory that the ranks of a context share.
///
/// A waiting rank polls the word that it waits for, and counts itself as an inquirer only before it sleeps. Hence a
/// signal costs one store of a word and one load of that count.
class window {
  public:
    static constexpr std::uint64_t places = detail::board::places;
    static constexpr std::size_t slot_bytes = detail::board::slot_bytes;

    [[gnu::noinline]] window(detail::world& world, rank_t rank, std::uint64_t context)
        : world_(&world),
          board_(world.boards(), context, world.size()),
          context_(context),
          rank_(rank),
          left_by_(static_cast<std::size_t>(world.size())) {}
    /// Slots are not shared between handles.
    window(const window& other)
        : world_(other.world_),
          board_(other.board_),
          context_(other.context_),
          rank_(other.rank_),
          left_by_(other.left_by_.size()) {}
    window(window&&) = default;
    window& operator=(const window& other) { return *this = window(other); }
    window& operator=(window&&) = default;
    ~window() = default;

    bool has_room(rank_t peer, std::uint64_t number, deadline until) {
        if (number == room_for_) return true;
        const auto has = [&] { return offers_room(peer, number); };
        // Those who pass do not tell: this wait must not sleep. It is short, since nobody waits before it leaves.
        return has() || world_->watch_awake(rank_, on(number), until, has);
    }
    void expose(const exposure& what) {
        detail::place& own = board_->at(rank_, what.call.number);
        own.what.call = what.call;
        own.what.note = what.note;
        own.what.input = what.input;
        if (what.output != nullptr) {  // small operations do not write to these cache lines
            own.what.output = what.output;
            own.claims.store(0, std::memory_order_relaxed);
        }
        own.expose(what.call.number, left_last_);
        world_->tell_all();
    }

    /// Writes to every cache line of the next slot, so that the lines leave the caches of the ranks that read it last.
    /// In a loop that does nothing else, 256 floats among 2 ranks take 190 ns in place of 255.
    void prepare(std::uint64_t number) {
        if (!all_offer_room(number)) return;
        room_for_ = number;
        const slot_use& next = next_slot();
        if (next.memory == nullptr) return;
        for (std::size_t i = 0; i < last_slot().bytes; i += line) next.memory[i] = std::byte{};
    }

    const exposure* exposed(rank_t peer, const call_signature& call, deadline until) {
        detail::place& theirs = board_->at(peer, call.number);
        const auto is_there = [&] { return theirs.exposed() == call.number; };
        const auto is_refused = [&] {
            const auto announced = world_->announced(peer, context_, call.number);
            return announced && *announced != call;
        };
        if (!world_->watch(rank_, on(call.number), until, is_there, is_refused) || !is_there()) return nullptr;
        left_by_[static_cast<std::size_t>(peer)] = theirs.left_before();
        return &theirs.what;
    }

    bool enter(std::uint64_t number) {
        // Both sides are sequentially consistent: either this rank sees that the other has withdrawn, or the other sees
        // that this rank is inside.
        board_->at(rank_, number).inside.store(number, std::memory_order_seq_cst);
        for (rank_t peer = 0; peer < board_->size(); ++peer)
            if (board_->at(peer, number).withdrawn.load(std::memory_order_seq_cst) == number) {
                abandon(number);
                return false;
            }
        return true;
    }
    void leave(std::uint64_t number) noexcept {
        detail::place& own = board_->at(rank_, number);
        own.inside.store(0, std::memory_order_seq_cst);  // as `tell_all` requires: `withdraw` may sleep
        board_->left(rank_, number).store(number, std::memory_order_seq_cst);
        left_last_ = number;
        world_->tell_all();
    }
    void abandon(std::uint64_t number) noexcept {
        board_->at(rank_, number).inside.store(0, std::memory_order_seq_cst);
        world_->tell_all();
    }

    void pass(std::uint64_t number) noexcept {
        board_->left(rank_, number).store(number, std::memory_order_release);
        left_last_ = number;
    }

    bool has_left(rank_t peer, std::uint64_t number, deadline until) {
        const auto has = [&] { return is_over(peer, number); };
        return world_->watch(rank_, on(number), until, has, [] { return false; });
    }

    void withdraw(std::uint64_t number) noexcept {
        board_->at(rank_, number).withdrawn.store(number, std::memory_order_seq_cst);
        world_->watch_regardless(rank_, [&] {
            for (rank_t peer = 0; peer < board_->size(); ++peer)
                if (peer != rank_ && board_->at(peer, number).inside.load(std::memory_order_seq_cst) == number)
                    return false;
            return true;
        });
    }

    std::uint64_t claim(rank_t peer, std::uint64_t number) {
        return board_->at(peer, number).claims.fetch_add(1, std::memory_order_relaxed);
    }

    byte_span slot(std::uint64_t number, std::size_t bytes) {
        RILL_EXPECTS(bytes <= slot_bytes, "in_process: more bytes than a slot has");
        slot_use& chosen = next_slot();
        if (chosen.memory == nullptr) chosen.memory = board_->new_slot();
        chosen.number = number;
        chosen.bytes = bytes;
        ++slots_used_;
        room_for_ = 0;
        return {chosen.memory, bytes};
    }

    void count(std::uint64_t messages, std::uint64_t bytes) { world_->count(rank_, messages, bytes); }

  private:
    channel on(std::uint64_t number) const { return {context_, tag_of(number)}; }

    static constexpr std::size_t line = 64;  ///< of the caches, in bytes

    struct slot_use {
        std::byte* memory = nullptr;
        std::uint64_t number = 0;  ///< of the last operation that used the slot
        std::size_t bytes = 0;     ///< used in that operation
    };

    /// Whether the peer has left operation `number`. A peer that has left a later operation of the same place has left
    /// this one too, by whichever handle: a rank begins no operation before it has left its own of `places` numbers
    /// before (concept/shared_memory.hpp).
    bool is_over(rank_t peer, std::uint64_t number) const {
        return peer == rank_ || board_->left(peer, number).load(std::memory_order_seq_cst) >= number;
    }
    /// Whether the peer has left the operations whose place and whose slot operation `number` reuses.
    bool offers_room(rank_t peer, std::uint64_t number) {
        return is_over(peer, board_->at(rank_, number).exposed()) && is_over(peer, next_slot().number);
    }
    /// Whether all peers have left the operations whose place and whose slot operation `number` reuses. Uses what was
    /// seen of the peers before, where that is enough: a fresh look costs a cache line per peer.
    bool all_offer_room(std::uint64_t number) {
        if (number >= free_below_ && !finds_free_places(number)) return false;
        for (rank_t peer = 0; peer < board_->size(); ++peer)
            if (left_by_[static_cast<std::size_t>(peer)] != next_slot().number && !is_over(peer, next_slot().number))
                return false;
        return true;
    }
    /// Extends `free_below_` by as many operations as one cache line of `left` words covers; false when the place of
    /// operation `number` is not free.
    bool finds_free_places(std::uint64_t number) {
        for (std::uint64_t i = number; i < number + line / sizeof(std::uint64_t); ++i) {
            for (rank_t peer = 0; peer < board_->size(); ++peer)
                if (!is_over(peer, board_->at(rank_, i).exposed())) return i != number;
            free_below_ = i + 1;
        }
        return true;
    }
    slot_use& next_slot() { return slots_[slots_used_ % slots_.size()]; }
    slot_use& last_slot() { return slots_[(slots_used_ + slots_.size() - 1) % slots_.size()]; }

    detail::world* world_;
    detail::boards::handle board_;
    std::uint64_t context_;
    rank_t rank_;
    std::array<slot_use, 3> slots_{};  ///< one that others still read, one that is filled, one that is prepared
    std::size_t slots_used_ = 0;
    plain_vector<std::uint64_t> left_by_;  ///< for each rank an operation that it has left
    std::uint64_t left_last_ = 0;          ///< the last operation left by this handle
    std::uint64_t free_below_ = 0;         ///< the places of all operations below this number are free
    std::uint64_t room_for_ = 0;           ///< an operation for which room was found; 0: none
};

}}}  // namespace rill::RILL_ABI::in_process
