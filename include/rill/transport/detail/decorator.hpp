#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Gives a decorator events, queues and activities where the inner transport has them. Their waits go through the
/// decorator's `waited(name, until, wait)`, which calls `wait(deadline)`.
template <class Outer, class Net>
struct decorator_concurrency {};

template <class Outer, ConcurrentTransport Net>
struct decorator_concurrency<Outer, Net> {
    using activity = typename Net::activity;

    class event {
      public:
        explicit event(Outer& outer) : outer_(&outer), inner_(outer.inner()) {}

        void set() { inner_.set(); }
        void reset() { inner_.reset(); }
        bool wait(deadline until) {
            return outer_->waited("wait for event", until, [&](deadline at) { return inner_.wait(at); });
        }

      private:
        Outer* outer_;
        typename Net::event inner_;
    };

    template <class T>
    class queue {
      public:
        explicit queue(Outer& outer) : outer_(&outer), inner_(outer.inner()) {}

        void push(T value) { inner_.push(std::move(value)); }
        std::optional<T> pop(deadline until) {
            return outer_->waited("wait for queue", until, [&](deadline at) { return inner_.pop(at); });
        }
        void close() { inner_.close(); }

      private:
        Outer* outer_;
        typename Net::template queue<T> inner_;
    };
};

/// What decorators of a transport share: all members but those that move messages, passed to the inner transport
/// unchanged. `Outer`, which derives from it, hides what it changes and adds the messages.
template <class Outer, Transport Net>
class decorator : public decorator_concurrency<Outer, Net> {
  public:
    decorator(const decorator&) = delete;
    decorator& operator=(const decorator&) = delete;

    Net& inner() const { return *inner_; }

    rank_t rank() const { return std::as_const(*inner_).rank(); }
    int size() const { return std::as_const(*inner_).size(); }
    std::uint32_t epoch() const { return epoch_of(*inner_); }
    time_point now() const { return std::as_const(*inner_).now(); }
    traffic counted() const { return std::as_const(*inner_).counted(); }
    void sleep_until(time_point instant) { inner_->sleep_until(instant); }

    void announce(std::uint64_t context, const call_signature& call) { inner_->announce(context, call); }
    std::optional<call_signature> inquire(rank_t peer, std::uint64_t context, std::uint64_t number, deadline until) {
        return inner_->inquire(peer, context, number, until);
    }
    abort_notice abort(const abort_notice& notice) { return inner_->abort(notice); }
    std::optional<abort_notice> aborted(std::uint64_t context) { return inner_->aborted(context); }
    std::uint64_t next_context(std::uint64_t key) { return inner_->next_context(key); }
    void close(std::uint64_t context) { inner_->close(context); }

    std::uint64_t incarnation(rank_t peer) const
        requires MonitoredTransport<Net>
    {
        return std::as_const(*inner_).incarnation(peer);
    }
    void monitor(channel on)
        requires MonitoredTransport<Net>
    {
        inner_->monitor(on);
    }
    void fence(rank_t peer, std::uint64_t incarnation)
        requires MonitoredTransport<Net>
    {
        inner_->fence(peer, incarnation);
    }

    std::size_t chunk_bytes() const
        requires ChunkingTransport<Net>
    {
        return std::as_const(*inner_).chunk_bytes();
    }
    [[nodiscard]] auto span(const char* name) const
        requires TracedTransport<Net>
    {
        return std::as_const(*inner_).span(name);
    }
    const void* this_activity() const
        requires ConcurrentTransport<Net>
    {
        return std::as_const(*inner_).this_activity();
    }
    bool activities_run_alone() const
        requires ConcurrentTransport<Net>
    {
        return std::as_const(*inner_).activities_run_alone();
    }
    template <class Body>
    auto spawn(Body body)
        requires ConcurrentTransport<Net>
    {
        return inner_->spawn(std::move(body));
    }

  protected:
    explicit decorator(Net& inner) : inner_(&inner) {}
    ~decorator() = default;

    template <class Wait>
    auto waited(const char*, deadline until, Wait&& wait) {
        return wait(until);
    }

    Net* inner_;
};

}}}  // namespace rill::RILL_ABI::detail
