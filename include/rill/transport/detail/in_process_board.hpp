#pragma once

#include <rill/concept/shared_memory.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/chain.hpp>
#include <rill/core/config.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/types.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

/// What one rank exposes in one operation, and its progress in that operation. Its words hold numbers of operations,
/// which only rise. Only its rank writes to it, except to `claims`.
struct alignas(128) place {
    /// The number of the exposed operation; `what` stays unchanged until all ranks have left that operation.
    std::uint64_t exposed() const { return word.load(std::memory_order_seq_cst) / steps; }
    /// Packs `number` and its distance to `left_before`, the last operation left, into one word; a distance of `steps`
    /// or more is stored as 0.
    void expose(std::uint64_t number, std::uint64_t left_before) {
        const std::uint64_t ago = number - left_before;
        word.store(number * steps + (ago < steps ? ago : 0), std::memory_order_seq_cst);
    }
    /// The last operation that the rank had left when it exposed this one; 0 where the distance did not fit.
    std::uint64_t left_before() const {
        const std::uint64_t seen = word.load(std::memory_order_relaxed), ago = seen % steps;
        return ago == 0 ? 0 : seen / steps - ago;
    }

    static constexpr std::uint64_t steps = 256;
    std::atomic<std::uint64_t> word{0};
    exposure what{};  ///< the part that small operations need shares a cache line with `word`
    std::atomic<std::uint64_t> inside{0};
    std::atomic<std::uint64_t> withdrawn{0};
    alignas(128) std::atomic<std::uint64_t> claims{0};
};

/// What the ranks of one context share.
class board {
  public:
    static constexpr std::uint64_t places = calls_remembered;
    static constexpr std::size_t slot_bytes = std::size_t{1} << 14;

    board(int ranks, std::uint64_t of, board* following)
        : context(of), next(following), ranks_(static_cast<std::size_t>(ranks)) {}

    const std::uint64_t context;
    // Guarded by the mutex of `boards`.
    int handles = 0;
    board* next;

    int size() const { return static_cast<int>(ranks_.size()); }
    place& at(rank_t rank, std::uint64_t number) { return of(rank).exposed[index_of(number)]; }
    /// The last operation that the rank has left, among those that use the place of `number`.
    std::atomic<std::uint64_t>& left(rank_t rank, std::uint64_t number) { return of(rank).left[index_of(number)]; }

    /// Allocates memory for exposed copies, which lives as long as the board.
    std::byte* new_slot() {
        const std::lock_guard lock(mutex_);
        return slots_.add(buffer(slot_bytes)).data();
    }

    /// The call that a rank has exposed under `number`. Only for callers that have not left that call: until then the
    /// place is not reused. The handshake, number 0, is never exposed: 0 stands in places that were never used.
    /// `entered_later` gives the exposed call with the highest number beyond `number`.
    std::optional<call_signature> entered(rank_t rank, std::uint64_t number) {
        const place& due = at(rank, number);
        if (number == 0 || due.exposed() != number) return std::nullopt;
        return due.what.call;
    }
    std::optional<call_signature> entered_later(rank_t rank, std::uint64_t number) {
        std::optional<call_signature> latest;
        for (std::uint64_t i = 0; i < places; ++i) {
            const place& other = at(rank, i);
            const std::uint64_t its = other.exposed();
            if (its > number && (!latest || its > latest->number)) latest = other.what.call;
        }
        return latest;
    }

  private:
    struct of_rank {
        alignas(128) std::atomic<std::uint64_t> left[places]{};
        place exposed[places]{};
    };
    of_rank& of(rank_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }
    static std::size_t index_of(std::uint64_t number) { return static_cast<std::size_t>(number % places); }

    plain_vector<of_rank> ranks_;
    std::mutex mutex_;
    chain<buffer> slots_;
};

/// The boards of all contexts; a board lives as long as some rank has a handle to it.
class boards {
  public:
    /// A rank's handle to a board. It costs the compiler a small part of what a `std::shared_ptr` costs.
    class handle {
      public:
        handle(boards& all, std::uint64_t context, int ranks) : all_(&all), board_(all.open(context, ranks)) {}
        handle(const handle& other) : all_(other.all_), board_(other.board_) {
            if (board_ != nullptr) all_->keep(*board_);
        }
        handle(handle&& other) noexcept : all_(other.all_), board_(other.board_) { other.board_ = nullptr; }
        handle& operator=(handle other) noexcept {
            std::swap(all_, other.all_);
            std::swap(board_, other.board_);
            return *this;
        }
        ~handle() {
            if (board_ != nullptr) all_->leave(*board_);
        }
        board* operator->() const { return board_; }

      private:
        boards* all_;
        board* board_;
    };

    /// What `board::entered` says, and `board::entered_later`; nothing where the context has no board.
    [[gnu::noinline]] std::optional<call_signature> entered(std::uint64_t context, rank_t rank, std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        board* const shared = find(context);
        return shared == nullptr ? std::nullopt : shared->entered(rank, number);
    }
    [[gnu::cold, gnu::noinline]] std::optional<call_signature> entered_later(std::uint64_t context, rank_t rank,
                                                                             std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        board* const shared = find(context);
        return shared == nullptr ? std::nullopt : shared->entered_later(rank, number);
    }

  private:
    [[gnu::noinline]] board* open(std::uint64_t context, int ranks) {
        const std::lock_guard lock(mutex_);
        board* found = find(context);
        if (found == nullptr) first_ = found = new board(ranks, context, first_);
        ++found->handles;
        return found;
    }
    void keep(board& of) {
        const std::lock_guard lock(mutex_);
        ++of.handles;
    }
    [[gnu::noinline]] void leave(board& of) noexcept {
        const std::lock_guard lock(mutex_);
        if (--of.handles != 0) return;
        board** at = &first_;
        while (*at != &of) at = &(*at)->next;
        *at = of.next;
        delete &of;
    }
    board* find(std::uint64_t context) const {
        board* found = first_;
        while (found != nullptr && found->context != context) found = found->next;
        return found;
    }

    std::mutex mutex_;
    board* first_ = nullptr;
};

}}}  // namespace rill::RILL_ABI::in_process::detail
