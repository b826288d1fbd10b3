#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI {

namespace detail {

/// Memory whose elements a step gives back in place: swapping a vector would move them, and spans of it dangle.
template <class R>
concept RangeInMemory = requires(R& range) {
    requires std::is_trivially_copyable_v<typename decltype(std::span(range))::value_type>;
    requires !std::is_const_v<typename decltype(std::span(range))::element_type>;
};

template <RangeInMemory R>
auto elements_in(R& range) {
    return std::span<typename decltype(std::span(range))::element_type>(range);
}

}  // namespace detail

/// What the calls of one step have changed on this rank, so that the step takes place as a whole or not at all.
///
/// A `step_group` keeps here a copy of each codec before the first call of the step that uses it. `commit()` ends the
/// step and forgets the copies. `abort()` ends the step and puts them back: the codecs are then as before the step, bit
/// for bit, though some calls had succeeded and others had failed. The next call begins the next step.
///
/// A call that fails on this rank may have succeeded on others, and they may count the step. So it leaves the codec as
/// a call that succeeds: without what was sent. After `abort()`, `redo(codec)` gives the codec this state again.
///
/// `keep(elements)` does the same for memory, a span, vector or array: call it before a call whose input is also its
/// output, if the input is to come back. The elements come back where they were, so a vector must not be resized before
/// the step ends. It is not done for all such calls, because that memory need not live as long as the step. What is
/// kept must live until the step ends, and no operation may be in flight then: destroy the requests, or the group,
/// first. Codecs must be copyable.
///
/// A group that is made anew after a failure may have the same scope. The number of operations that a group has counted
/// is the group's (`group::resume_at`). Cost: one copy of each codec and step. Memory: the copies, which are used
/// again, so that a step like the last one allocates nothing.
class step_scope {
  public:
    step_scope() = default;
    step_scope(const step_scope&) = delete;
    step_scope& operator=(const step_scope&) = delete;

    /// Keeps the object, or the elements of a range, as they are, unless this step has kept them already. Collectives
    /// call it.
    template <class Object>
    void keep(Object& object) {
        if constexpr (detail::RangeInMemory<Object>)
            keep(detail::elements_in(object));
        else if constexpr (std::copyable<Object>)
            keep_as<copy_of<Object>>(object);
        else
            RILL_EXPECTS(is_never<Object>, "a codec in a step that can be undone must be copyable");
    }
    /// Keeps the elements as they are, unless this step has kept them already.
    template <class T>
        requires std::is_trivially_copyable_v<T>
    void keep(std::span<T> elements) {
        if (!elements.empty()) keep_as<copy_of<std::span<T>>>(elements);
    }

    void commit() { end(); }
    void abort() {
        for (auto each = kept_.rbegin(); each != kept_.rend(); ++each)
            if ((*each)->is_of_this_step) (*each)->swap();
        end();
        is_undone_ = true;
    }
    /// The step that `abort` has ended counts all the same: an object that it has changed is again as that step has
    /// left it. To be called before the next call.
    template <std::copyable Object>
    void redo(Object& object) {
        if constexpr (detail::RangeInMemory<Object>)
            redo_as<copy_of<decltype(detail::elements_in(object))>>(detail::elements_in(object));
        else
            redo_as<copy_of<Object>>(object);
    }

  private:
    struct copy {
        const void* type;
        byte_view memory;
        bool is_of_this_step = true;

        copy(const void* type_tag, byte_view of) : type(type_tag), memory(of) {}
        bool is_of(const void* type_tag, byte_view other) const {
            return type == type_tag && memory.data() == other.data() && memory.size() == other.size();
        }
        copy(const copy&) = delete;
        copy& operator=(const copy&) = delete;
        virtual ~copy() = default;
        virtual void take() = 0;
        virtual void swap() = 0;
    };
    template <class Object>
    struct copy_of final : copy {
        Object& of;
        Object kept;

        explicit copy_of(Object& object) : copy(&tag<copy_of>, memory_of(object)), of(object), kept(object) {}
        static byte_view memory_of(Object& object) {
            return {reinterpret_cast<const std::byte*>(std::addressof(object)), sizeof object};
        }
        void take() override { kept = of; }
        void swap() override { std::ranges::swap(of, kept); }
    };
    template <class T>
    struct copy_of<std::span<T>> final : copy {
        std::span<T> of;
        aligned_vector<T> kept;

        explicit copy_of(std::span<T> elements)
            : copy(&tag<copy_of>, memory_of(elements)), of(elements), kept(elements.begin(), elements.end()) {}
        static byte_view memory_of(std::span<T> elements) { return std::as_bytes(elements); }
        void take() override { kept.assign(of.begin(), of.end()); }
        void swap() override { std::swap_ranges(of.begin(), of.end(), kept.begin()); }
    };
    template <class>
    static constexpr char tag = 0;
    template <class>
    static constexpr bool is_never = false;

    template <class Copy>
    auto find(byte_view memory) {
        return std::find_if(kept_.begin(), kept_.end(),
                            [&](const auto& each) { return each->is_of(&tag<Copy>, memory); });
    }
    /// Copies are in the order in which this step has made them, behind those of earlier steps: memory may overlap.
    template <class Copy, class Object>
    void keep_as(Object&& object) {
        is_undone_ = false;
        const auto known = find<Copy>(Copy::memory_of(object));
        if (known == kept_.end()) {
            kept_.push_back(std::make_unique<Copy>(object));
        } else if (!(*known)->is_of_this_step) {
            (*known)->take();
            (*known)->is_of_this_step = true;
            std::rotate(known, known + 1, kept_.end());
        }
    }

    template <class Copy, class Object>
    void redo_as(Object&& object) {
        const auto known = find<Copy>(Copy::memory_of(object));
        if (!is_undone_ || known == kept_.end()) return;
        (*known)->swap();
        kept_.erase(known);
    }

    /// Frees what this step has not used: its object may have gone.
    void end() {
        std::erase_if(kept_, [](const auto& each) { return !each->is_of_this_step; });
        for (const auto& each : kept_) each->is_of_this_step = false;
        is_undone_ = false;
    }

    std::vector<std::unique_ptr<copy>> kept_;
    bool is_undone_ = false;
};

}}  // namespace rill::RILL_ABI
