#pragma once

#include <rill/concept/replica.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/protocol/detail/service_run.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A gradient on its way from the activity that computes to the one that serves.
template <class T>
struct pushed_gradient {
    std::uint64_t number = 0;
    std::uint64_t version = 0;                ///< of the model that it was computed at
    std::optional<std::size_t> not_finite{};  ///< the first coordinate that is none
    aligned_vector<T> values{};
};

/// Passes gradients from the activity that computes to the one that serves, and their fates back. Neither waits for the
/// other.
template <class Net, class T>
class push_queue {
  public:
    explicit push_queue(Net& net) : pushed_(net), spent_(net), fates_(net) {}

    /// How many have been pushed: the number of the next one.
    std::uint64_t count() const { return count_; }

    /// Copies a gradient that was computed at `version`.
    template <class Gradient>
    void push(const Gradient& gradient, std::uint64_t version) {
        pushed_gradient<T> next{.number = count_, .version = version};
        if (auto room = look(spent_)) {
            next.values = std::move(room->values);
            note_ = std::move(room->note);
        }
        next.values.resize(size_of(gradient));
        read_tensor(gradient, std::span<T>(next.values));
        next.not_finite = kernel::find_non_finite(std::span<const T>(next.values));
        pushed_.push(std::move(next));
        ++count_;
    }
    /// Room for the message that tells of a push.
    buffer room_for_note() { return note_.capacity() == 0 ? kept_room(0) : std::exchange(note_, {}); }

    /// A fate that has not been told yet. What is left once `run` is over has not counted.
    std::optional<push_fate> fate(const service_run<Net>& run) {
        if (auto told = look(fates_)) return told;
        if (!run.is_over()) return std::nullopt;
        if (auto told = look(fates_)) return told;
        const auto left = look(pushed_);
        if (!left) return std::nullopt;
        return push_fate{.push = left->number, .what = push_fate::outcome::run_over};
    }

    /// The next gradient, if there is one. Called by the activity that serves, as are the following.
    std::optional<pushed_gradient<T>> next() { return pushed_.pop(deadline::immediate); }
    void tell(const push_fate& fate) { fates_.push(fate); }
    /// Gives the memory of a gradient back, and that of the message that has told of it.
    void release(aligned_vector<T>&& values) { spent_.push({.values = std::move(values), .note = kept_room(0)}); }

  private:
    struct spent {
        aligned_vector<T> values{};
        buffer note{};
    };

    /// What is there, also after an abort of all contexts.
    template <class Queue>
    static auto look(Queue& at) -> decltype(at.pop(deadline::immediate)) {
        try {
            return at.pop(deadline::immediate);
        } catch (const error&) {  // it is empty
            return {};
        }
    }

    typename Net::template queue<pushed_gradient<T>> pushed_;
    typename Net::template queue<spent> spent_;
    typename Net::template queue<push_fate> fates_;
    buffer note_{};
    std::uint64_t count_ = 0;
};

}}}  // namespace rill::RILL_ABI::detail
