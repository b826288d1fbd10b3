#pragma once

#include <rill/collective/detail/chunks.hpp>
#include <rill/collective/detail/joint_fold.hpp>
#include <rill/collective/frame_check.hpp>
#include <rill/collective/run_schedule.hpp>
#include <rill/concept/aggregator.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/concept/topology.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/detail/elements.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/span_of.hpp>
#include <rill/kernel/combine_columns.hpp>
#include <rill/kernel/copy.hpp>
#include <rill/kernel/fold.hpp>
#include <rill/kernel/tasks.hpp>
#include <rill/session/contribution_sum.hpp>
#include <rill/stream/frame.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// The data of a dense collective. A part lies in the input (until it is first folded), in the output, or, while the
/// output is being sent in the same round, in scratch. Values are copied only in copy rounds (which bring finished
/// parts) and where a part has to be moved to the output.
template <Transport Net, Element T, class Fold, Executor Exec = serial>
class dense_state {
  public:
    using message = typename Net::message;

    static constexpr bool overwrites_nothing = false;

    void attach(exchange<Net>& call, const Exec& executor = {}) {
        call_ = &call;
        executor_ = executor;
    }

    /// `input` and `output` cover `[0, N)`; they are the same memory or do not overlap. A rank that contributes nothing
    /// takes part with the neutral element. `parts` counts chunks where each part is cut into `chunks` of them.
    void begin(const wire::header& head, int parts, std::span<const T> input, std::span<T> output, contribution_sum own,
               const Fold& fold, int chunks = 1) {
        head_ = head;
        chunks_ = static_cast<std::size_t>(chunks);
        fold_ = fold;
        input_ = input;
        output_ = output;
        parts_.assign(static_cast<std::size_t>(parts),
                      {input.data() == output.data() ? place::output : place::input, own, false});
        headers_.reset();
        if (own.contributors == 0) {
            detail::fill_elements(output.data(), output.size(), fold.template identity<T>());
            set({0, parts}, place::output, own);
        }
    }

    byte_pieces outgoing(part_range parts, [[maybe_unused]] action kind) {
        if constexpr (OwnerFinishingAggregator<Fold>)
            if (kind == action::copy) finish_parts(parts);
        unite(parts);
        head_.range = range(parts);
        head_.call = detail::frame_place::of_part(parts.first).in(call_->signature().hash(), head_.range);
        contribution_sum_of(parts).describe(head_);
        const std::span<const T> values = parts.count() == 0 ? std::span<const T>{} : at(place_of(parts), parts);
        return view_frame(head_, stream_view<T>(head_.range, values), headers_.take(wire::header_bytes).data());
    }

    /// One k-way fold of operands in ascending order of ranks, with this rank's own value among them.
    void fold(std::span<arrival<message>> arrivals) {
        const part_range parts = arrivals.front().from.parts;
        unite(parts);
        const place from = place_of(parts);
        const rank_t self = call_->net().rank();
        contribution_sum total{0, 0, 0};
        operands_.clear();
        const std::span<const T> own = at(from, parts);
        std::size_t before = 0;
        while (before < arrivals.size() && arrivals[before].from.peer < self) ++before;
        for (std::size_t i = 0; i <= arrivals.size(); ++i) {
            const values_from given = i == before ? values_from{own, contribution_sum_of(parts)}
                                                  : expect_dense(arrivals[i < before ? i : i - 1]);
            if (!detail::JointFold<Fold> || given.what.contributors != 0) operands_.add(given.values);
            total = total + given.what;
        }
        const place to = target_of_fold(from, parts);
        const std::span<T> target = writable(to, parts);
        call_->await_readers(std::as_bytes(target));
        [[maybe_unused]] const auto folding = named_span(call_->net(), "fold");
        fold_operands(target);
        set(parts, to, total);
    }

    void copy(std::span<arrival<message>> arrivals) {
        for (std::size_t i = 0; i < arrivals.size(); ++i) {
            const part_range parts = arrivals[i].from.parts;
            const values_from given = expect_dense(arrivals[i]);
            if (parts.count() == 0) continue;
            if (const std::span<T> target = writable(place::output, parts); target.data() != given.values.data()) {
                call_->await_readers(std::as_bytes(target));
                [[maybe_unused]] const auto copying = named_span(call_->net(), "copy");
                kernel::copy<T>(given.values, target);
            }
            set(parts, place::output, given.what, true);
        }
    }

    /// Whether nobody reads the memory where finished `parts` belong.
    bool has_free_place(part_range parts) {
        const byte_view target = bytes_of_place(parts);
        return target.empty() || !call_->is_read(target);
    }
    void await_place(part_range parts) { call_->await_readers(bytes_of_place(parts)); }

    /// Where a message with finished `parts` may be received directly, once the place is free: header and values. Valid
    /// until the next call.
    std::span<const byte_span> place_for(part_range parts) {
        const byte_span values = bytes_of_place(parts);
        if (values.empty()) return {};
        places_for_one_ = {headers_.take(wire::header_bytes), values};
        return places_for_one_;
    }

    /// Brings `parts` into the output, finishes the fold there, and returns that part of the output.
    std::span<T> finish(part_range parts) {
        for (int p = parts.first; p < parts.last; ++p) move_to_output({p, p + 1});
        const std::span<T> values = writable(place::output, parts);
        if constexpr (OwnerFinishingAggregator<Fold>) {
            finish_parts(parts);
        } else if constexpr (!Fold::finish_is_trivial) {
            finish_values(values, parts.first);
        }
        return values;
    }

    contribution_sum total(int part) const { return parts_[static_cast<std::size_t>(part)].what; }

  private:
    void fold_operands(std::span<T> target) {
        const std::span<const std::span<const T>> operands = std::as_const(operands_).all();
        if constexpr (detail::JointFold<Fold>) {
            T* const outputs[] = {target.data()};
            const auto combine = [this](std::span<T> values) { return fold_.aggregator.combine(values); };
            kernel::run_tasks(executor_, kernel::tasks_for(executor_, target.size()), [&](segment part) {
                kernel::combine_columns<T>(operands, std::span<T* const>(outputs), part, combine);
            });
        } else {
            kernel::fold_dense_k(
                operands, target, [this](T a, T b) { return fold_.fold(a, b); }, executor_);
        }
    }

    enum class place : unsigned char { input, output, scratch };
    struct part_state {
        place where;
        contribution_sum what;
        bool is_finished = false;  // at its owner
    };

    segment range(part_range parts) const {
        return detail::range_of_chunks(output_.size(), parts_.size(), chunks_, parts);
    }
    place place_of(part_range parts) const { return parts_[static_cast<std::size_t>(parts.first)].where; }
    contribution_sum contribution_sum_of(part_range parts) const {
        return parts.count() == 0 ? contribution_sum{0, 0, 0} : parts_[static_cast<std::size_t>(parts.first)].what;
    }
    void set(part_range parts, place where, contribution_sum what, bool is_finished = false) {
        for (int p = parts.first; p < parts.last; ++p) parts_[static_cast<std::size_t>(p)] = {where, what, is_finished};
    }

    std::span<const T> at(place where, part_range parts) const {
        const segment s = range(parts);
        if (where == place::input) return input_.subspan(s.begin, s.size());
        if (where == place::output) return output_.subspan(s.begin, s.size());
        return span_of(scratch_).subspan(s.begin, s.size());
    }

    std::span<T> writable(place where, part_range parts) {
        const segment s = range(parts);
        if (where == place::output) return output_.subspan(s.begin, s.size());
        if (scratch_.size() != output_.size()) scratch_.resize(output_.size());
        return span_of(scratch_).subspan(s.begin, s.size());
    }

    byte_span bytes_of_place(part_range parts) { return std::as_writable_bytes(writable(place::output, parts)); }

    [[gnu::noinline]] void move_to_output(part_range parts) {
        if (place_of(parts) == place::output) return;
        const std::span<const T> source = at(place_of(parts), parts);
        const std::span<T> target = writable(place::output, parts);
        call_->await_readers(std::as_bytes(target));
        kernel::copy<T>(source, target);
        parts_[static_cast<std::size_t>(parts.first)].where = place::output;
    }

    void finish_values(std::span<T> values, int first) {
        call_->await_readers(std::as_bytes(values));
        [[maybe_unused]] const auto finishing = named_span(call_->net(), "fold");
        fold_.finish(values, total(first).weight);
    }

    /// Brings those of `parts` that have not arrived finished into the output and finishes them there.
    void finish_parts(part_range parts) {
        for (int p = parts.first; p < parts.last; ++p) {
            const part_range one{p, p + 1};
            if (parts_[static_cast<std::size_t>(p)].is_finished) continue;
            move_to_output(one);
            const std::span<T> values = writable(place::output, one);
            finish_values(values, p);
            parts_[static_cast<std::size_t>(p)].is_finished = true;
        }
    }

    /// Moves `parts` together if they lie in different places: a message is one frame, whose values lie in one place.
    [[gnu::noinline]] void unite(part_range parts) {
        const auto elsewhere = [&](int p) { return place_of({p, p + 1}) != place_of(parts); };
        for (int p = parts.first; p < parts.last; ++p)
            if (elsewhere(p)) {
                for (int q = parts.first; q < parts.last; ++q) move_to_output({q, q + 1});
                return;
            }
    }

    /// Where to write the fold of values in `from`: never over the input; else in place, unless that is being sent in
    /// this round.
    place target_of_fold(place from, part_range parts) const {
        if (from == place::input) return place::output;
        if (!call_->sends_this_round(std::as_bytes(at(from, parts)))) return from;
        return from == place::output ? place::scratch : place::output;
    }

    struct values_from {
        std::span<const T> values;
        contribution_sum what;
    };

    values_from expect_dense(const arrival<message>& a) {
        const rank_t source = a.from.peer;
        const segment due = range(a.from.parts);
        const frame f = only_frame<T, std::uint32_t>(*call_, source, a.pieces(), due,
                                                     detail::frame_place::of_part(a.from.parts.first));
        if (!f.head.codes.is_lossless())  // operands of a fold are read in place: there is no room to decode several
            call_->refuse(source, {"sent rounded values where exact ones were due"});
        if (f.head.codes.indices != index_coding::dense)
            call_->refuse(source, {"sent a sparse stream where a dense one was due"});
        const auto values = read_from(*call_, source, [&] { return detail::elements_of<T>(f.values); });
        return {values, contribution_sum::of(f.head)};
    }

    exchange<Net>* call_ = nullptr;
    [[no_unique_address]] Exec executor_{};
    wire::header head_{};
    Fold fold_{};
    std::span<const T> input_{};
    std::span<T> output_{};
    aligned_vector<T> scratch_;
    std::size_t chunks_ = 1;
    plain_vector<part_state> parts_;
    std::array<byte_span, 2> places_for_one_{};
    plain_vector<std::span<const T>> operands_;
    arena headers_;
};

}}  // namespace rill::RILL_ABI
