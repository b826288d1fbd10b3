#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>

namespace rill { inline namespace RILL_ABI {

template <Transport Net>
class delayed;

namespace detail {

/// Gives a delayed transport events, queues and activities where the inner transport has them. They are not delayed.
template <class Net>
struct delayed_concurrency {};

template <ConcurrentTransport Net>
struct delayed_concurrency<Net> {
    using activity = typename Net::activity;

    class event : public Net::event {
      public:
        explicit event(delayed<Net>& net) : Net::event(net.inner()) {}
    };

    template <class T>
    class queue : public Net::template queue<T> {
      public:
        explicit queue(delayed<Net>& net) : Net::template queue<T>(net.inner()) {}
    };
};

}  // namespace detail
}}  // namespace rill::RILL_ABI
