#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>

#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI {

template <Transport Net>
class subgroup;

namespace detail {

/// Gives a subgroup events, queues and activities where its parent has them.
template <class Net>
struct subgroup_concurrency {};

template <ConcurrentTransport Net>
struct subgroup_concurrency<Net> {
    using activity = typename Net::activity;

    class event {
      public:
        explicit event(subgroup<Net>& group) : group_(&group), outer_(group.parent()) {}

        void set() { outer_.set(); }
        void reset() { outer_.reset(); }
        bool wait(deadline until) {
            return group_->guarded(every_context, [&] { return outer_.wait(until); });
        }

      private:
        subgroup<Net>* group_;
        typename Net::event outer_;
    };

    template <class T>
    class queue {
      public:
        explicit queue(subgroup<Net>& group) : group_(&group), outer_(group.parent()) {}

        void push(T value) { outer_.push(std::move(value)); }
        std::optional<T> pop(deadline until) {
            return group_->guarded(every_context, [&] { return outer_.pop(until); });
        }
        void close() { outer_.close(); }

      private:
        subgroup<Net>* group_;
        typename Net::template queue<T> outer_;
    };
};

}  // namespace detail
}}  // namespace rill::RILL_ABI
