#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>

#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI {

template <Transport Net>
class traced;

namespace detail {

/// Gives a traced transport events, queues and activities where the inner transport has them.
template <class Net>
struct traced_concurrency {};

template <ConcurrentTransport Net>
struct traced_concurrency<Net> {
    using activity = typename Net::activity;

    class event {
      public:
        explicit event(traced<Net>& net) : net_(&net), inner_(net.inner()) {}

        void set() { inner_.set(); }
        void reset() { inner_.reset(); }
        bool wait(deadline until) {
            const auto waiting = net_->waiting("wait for event");
            return inner_.wait(until);
        }

      private:
        traced<Net>* net_;
        typename Net::event inner_;
    };

    template <class T>
    class queue {
      public:
        explicit queue(traced<Net>& net) : net_(&net), inner_(net.inner()) {}

        void push(T value) { inner_.push(std::move(value)); }
        std::optional<T> pop(deadline until) {
            const auto waiting = net_->waiting("wait for queue");
            return inner_.pop(until);
        }
        void close() { inner_.close(); }

      private:
        traced<Net>* net_;
        typename Net::template queue<T> inner_;
    };
};

}  // namespace detail
}}  // namespace rill::RILL_ABI
