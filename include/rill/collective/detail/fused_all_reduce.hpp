// A dense all_reduce by one-sided access: one pass over memory replaces the two rounds of messages of a split schedule.
#pragma once

#include <rill/collective/detail/joint_fold.hpp>
#include <rill/collective/exchange.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/shared_memory.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/error.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/combine_columns.hpp>
#include <rill/kernel/fold_tiles.hpp>
#include <rill/session/contribution_sum.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Whether dense all_reduces may need no messages: the ranks reach each other's memory, and a topology of this type may
/// fold every part at once, at its owner, in ascending order of ranks (`folds_at_owners`).
template <class Net, class Shape>
constexpr bool may_be_fused = SharedMemoryTransport<Net> && may_fold_at_owners<Shape>;

template <class Net, class Shape>
using fused_window = typename window_of<Net, may_be_fused<Net, Shape>>::type;

/// Whether the fold or its `finish` may throw.
template <class Fold, class T>
consteval bool may_throw() {
    if constexpr (JointFold<Fold>)
        return !noexcept(std::declval<const Fold&>().aggregator.combine(std::span<T>()));
    else
        return !noexcept(std::declval<const Fold&>().fold(T{}, T{})) ||
               !(Fold::finish_is_trivial || noexcept(std::declval<const Fold&>().finish(std::span<T>(), 1.0)));
}

/// One dense all_reduce in progress on one rank. The result is bit for bit that of the split schedule: every coordinate
/// is the left fold of all ranks' values in ascending order of ranks, finished once.
///
/// Small vectors (at most `window::slot_bytes`): every rank copies its input into a slot, waits until all ranks have
/// done so, and folds all slots. A rank returns once all have entered. Others may still read its slot, which is not its
/// caller's memory. Only if the fold may throw does a rank wait until all have succeeded.
///
/// Large vectors: every rank exposes the addresses of its input and its output and waits until all have. Each tile is
/// folded, from all inputs into all outputs, by the rank that claims it. A rank claims the tiles of its own part first,
/// then unclaimed tiles of other parts. The first tile of each part is reserved for its owner, so that every rank folds
/// something. Finally each rank waits until all have left: no rank returns while another still reads or writes its
/// memory.
template <SharedMemoryTransport Net, Element T, class Fold, Executor Exec>
class fused_state {
  public:
    using window = typename Net::window;

    /// A rank that contributes nothing takes part with the neutral element; its input is not read.
    void begin(exchange<Net>& call, window& shared, std::span<const T> input, std::span<T> output,
               const contribution_sum& own, const Fold& fold) {
        call_ = &call;
        shared_ = &shared;
        input_ = input;
        output_ = output;
        own_ = own;
        fold_ = fold;
        if (own.contributors == 0) {
            fill_elements(output.data(), output.size(), fold.template identity<T>());
            input_ = output;
        }
    }

    /// Performs the operation and returns the contributors of the result, which is then in the output.
    contribution_sum run(const Exec& executor) {
        return output_.size_bytes() <= window::slot_bytes ? small() : large(executor);
    }

    /// Counts the traffic that the split schedule would have, headers included: each access counts as a message.
    void count() const {
        const std::size_t own = part_of(rank()).size(), peers = ranks() - 1;
        const std::size_t elements = output_.size() - own + own * peers;
        const std::size_t bytes = elements * sizeof(T) + 2 * peers * wire::header_bytes;
        shared_->count(2 * peers, bytes);
        call_->count({2 * peers, bytes, 2 * peers, bytes});
    }

  private:
    using note = std::array<std::byte, sizeof(contribution_sum)>;

    static constexpr bool can_fail = may_throw<Fold, T>();
    /// Bytes of all outputs together from which on the outputs bypass the caches. With 16M floats (above it) bypassing
    /// takes 0.5 to 0.7 of the time; with 1M floats and 2 ranks (below it) it would take up to 3 times as long.
    static constexpr std::size_t least_past_caches = std::size_t{1} << 24;
    static constexpr std::size_t tile = (std::size_t{1} << 16) / sizeof(T);

    contribution_sum small() {
        await_room();
        const byte_span slot = shared_->slot(number(), output_.size_bytes());
        if (!slot.empty()) std::memcpy(slot.data(), input_.data(), slot.size());
        expose(slot.data(), nullptr);
        shared_->prepare(number() + 1);
        const contribution_sum total = gather([](const exposure&) {});
        T* const output[] = {output_.data()};
        past_caches_ = 0;
        fold_range({0, output_.size()}, output, total);
        if constexpr (can_fail) {
            shared_->leave(number());
            await_all();
        } else {
            shared_->pass(number());
        }
        return total;
    }

    contribution_sum large(const Exec& executor) {
        await_room();
        call_->lend(*shared_);
        expose(reinterpret_cast<const std::byte*>(input_.data()), reinterpret_cast<std::byte*>(output_.data()));
        const contribution_sum total = gather_outputs();
        // If a rank has withdrawn, there is nothing to fold: its failure ends the wait below.
        if (shared_->enter(number())) fold_tiles(executor, total);
        await_all();
        return total;
    }

    /// Waits until all have entered and collects their outputs. Outputs that are not also inputs come first: if all
    /// outputs together are large, no cache holds them, and these are written without being read.
    contribution_sum gather_outputs() {
        outputs_.clear();
        past_caches_ = 0;
        const bool are_large = ranks() * output_.size_bytes() >= least_past_caches;
        return gather([&](const exposure& of) {
            outputs_.add(reinterpret_cast<T*>(of.output));
            if (are_large && of.output != of.input) std::swap(outputs_[past_caches_++], outputs_.back());
        });
    }

    /// Waits until all have left the operation.
    void await_all() {
        for (rank_t peer = 0; peer < size(); ++peer)
            call_->wait_for(peer, 1, [&](deadline until) { return shared_->has_left(peer, number(), until); });
    }

    /// Marks the time during which this rank accesses the others' memory: leaves on success, abandons on failure.
    class access {
      public:
        access(window& shared, std::uint64_t number) : shared_(shared), number_(number) {}
        access(const access&) = delete;
        access& operator=(const access&) = delete;
        ~access() { has_succeeded_ ? shared_.leave(number_) : shared_.abandon(number_); }
        void end() { has_succeeded_ = true; }

      private:
        window& shared_;
        std::uint64_t number_;
        bool has_succeeded_ = false;
    };

    void fold_tiles(const Exec& executor, const contribution_sum& total) {
        access inside(*shared_, number());
        fold_tile(rank(), 0, total);
        executor.run(static_cast<std::size_t>(executor.concurrency()), [&](std::size_t) {
            for (int i = 0; i < size(); ++i) fold_what_is_left((rank() + i) % size(), total);
        });
        inside.end();
    }

    /// Folds the unclaimed tiles of one rank's part, except for its first tile.
    void fold_what_is_left(rank_t owner, const contribution_sum& total) {
        const std::size_t tiles = (part_of(owner).size() + tile - 1) / tile;
        if (tiles < 2) return;
        for (std::uint64_t i = shared_->claim(owner, number()) + 1; i < tiles;
             i = shared_->claim(owner, number()) + 1) {
            if (const auto notice = call_->net().aborted(call_->context()); notice && notice->ends(tag_of(number())))
                throw_error(*notice);
            fold_tile(owner, static_cast<std::size_t>(i), total);
        }
    }

    void fold_tile(rank_t owner, std::size_t i, const contribution_sum& total) {
        const segment part = part_of(owner);
        const std::size_t begin = part.begin + i * tile;
        fold_range({std::min(begin, part.end), std::min(begin + tile, part.end)}, outputs_.all(), total);
    }

    [[gnu::noinline]] void fold_range(segment range, std::span<T* const> outputs, const contribution_sum& total) {
        if constexpr (JointFold<Fold>)
            return kernel::combine_columns<T>(std::as_const(inputs_).all(), outputs, range,
                                              [this](std::span<T> values) { return fold_.aggregator.combine(values); });
        else
            kernel::fold_tiles(
                std::as_const(inputs_).all(), outputs, range, [fold = fold_](T a, T b) { return fold.fold(a, b); },
                [&](std::span<T> values) {
                    if constexpr (!Fold::finish_is_trivial) fold_.finish(values, total.weight);
                },
                past_caches_);
    }

    [[gnu::noinline]] void await_room() {
        for (rank_t peer = 0; peer < size(); ++peer)
            call_->wait_for(peer, 0, [&](deadline until) { return shared_->has_room(peer, number(), until); });
    }

    void expose(const std::byte* input, std::byte* output) {
        shared_->expose(
            {.call = call_->signature(), .note = std::bit_cast<note>(own_), .input = input, .output = output});
    }

    /// Waits until all have entered the call, and visits what they expose.
    [[gnu::noinline]] contribution_sum gather(function_ref<void(const exposure&)> visit) {
        contribution_sum total{0, 0, 0};
        inputs_.clear();
        for (rank_t peer = 0; peer < size(); ++peer) {
            const exposure& given = exposed_by(peer);
            const auto what = std::bit_cast<contribution_sum>(given.note);
            if (!JointFold<Fold> || what.contributors != 0) inputs_.add(reinterpret_cast<const T*>(given.input));
            total = total + what;
            visit(given);
        }
        return total;
    }

    const exposure& exposed_by(rank_t peer) {
        const exposure* found = nullptr;
        call_->wait_for(peer, 0, [&](deadline until) {
            found = shared_->exposed(peer, call_->signature(), until);
            if (found == nullptr) refuse_other_call(peer);
            return found != nullptr;
        });
        if (found->call != call_->signature()) call_->disagree(peer);
        return *found;
    }

    void refuse_other_call(rank_t peer) const {
        const auto made = call_->net().inquire(peer, call_->context(), number(), deadline::immediate);
        if (made && made->kind != operation::departure && *made != call_->signature()) call_->disagree(peer);
    }

    std::uint64_t number() const { return call_->signature().number; }
    rank_t rank() const { return call_->net().rank(); }
    int size() const { return call_->net().size(); }
    std::size_t ranks() const { return static_cast<std::size_t>(size()); }
    segment part_of(rank_t owner) const { return split(output_.size(), ranks(), static_cast<std::size_t>(owner)); }

    exchange<Net>* call_ = nullptr;
    window* shared_ = nullptr;
    std::span<const T> input_{};
    std::span<T> output_{};
    contribution_sum own_{};
    Fold fold_{};
    plain_vector<const T*> inputs_;
    plain_vector<T*> outputs_;
    std::size_t past_caches_ = 0;  ///< how many of `outputs_`, from the first on, are written past the caches
};

}}}  // namespace rill::RILL_ABI::detail
