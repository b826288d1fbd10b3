#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>

#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI {

template <Transport Net>
class faulty;

namespace detail {

/// Gives a faulty transport events, queues and activities where the inner transport has them. Their waits throw when
/// their rank is killed.
template <class Net>
struct faulty_concurrency {};

template <ConcurrentTransport Net>
struct faulty_concurrency<Net> {
    using activity = typename Net::activity;

    class event {
      public:
        explicit event(faulty<Net>& net) : net_(&net), inner_(net.inner()) {}

        void set() { inner_.set(); }
        void reset() { inner_.reset(); }
        bool wait(deadline until) {
            return net_->alive_through(until, [&](deadline at) { return inner_.wait(at); });
        }

      private:
        faulty<Net>* net_;
        typename Net::event inner_;
    };

    template <class T>
    class queue {
      public:
        explicit queue(faulty<Net>& net) : net_(&net), inner_(net.inner()) {}

        void push(T value) { inner_.push(std::move(value)); }
        std::optional<T> pop(deadline until) {
            return net_->alive_through(until, [&](deadline at) { return inner_.pop(at); });
        }
        void close() { inner_.close(); }

      private:
        faulty<Net>* net_;
        typename Net::template queue<T> inner_;
    };
};

}  // namespace detail
}}  // namespace rill::RILL_ABI
