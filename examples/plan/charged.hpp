#pragma once

#include <rill/transport/simulated.hpp>

#include <time.h>

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <utility>

namespace plan {

/// What the calling thread has computed so far.
inline rill::duration processor_time() {
    timespec now{};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) throw std::runtime_error("no clock of processor time");
    return rill::nanoseconds(std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
}

/// A rank in a simulated network whose own computing takes virtual time, as long as it takes this machine's processor:
/// as if each rank had a core of its own. What the simulator itself computes is left out. Models `Transport`.
class charged {
    /// While one lives, the rank is in a call of the simulated network.
    class outside {
      public:
        explicit outside(const charged& net) : net_(net) { net_.pay(); }
        outside(const outside&) = delete;
        outside& operator=(const outside&) = delete;
        ~outside() { net_.since_ = processor_time(); }

      private:
        const charged& net_;
    };

  public:
    using message = rill::simulated::endpoint::message;

    class sending {
      public:
        sending() = default;
        sending(const charged& net, rill::simulated::sending&& inner) : net_(&net), inner_(std::move(inner)) {}

        bool done() {
            if (net_ == nullptr) return true;
            const outside call(*net_);
            return inner_.done();
        }
        bool wait(rill::deadline until) {
            if (net_ == nullptr) return true;
            const outside call(*net_);
            return inner_.wait(until);
        }
        void settle() noexcept { inner_.settle(); }

      private:
        const charged* net_ = nullptr;
        rill::simulated::sending inner_;
    };

    explicit charged(rill::simulated::endpoint& inner) : inner_(inner), since_(processor_time()) {}
    charged(const charged&) = delete;
    charged& operator=(const charged&) = delete;

    rill::rank_t rank() const { return inner_.rank(); }
    int size() const { return inner_.size(); }
    rill::traffic counted() const { return inner_.counted(); }
    rill::time_point now() const {
        const outside call(*this);
        return inner_.now();
    }
    void sleep_until(rill::time_point instant) {
        const outside call(*this);
        inner_.sleep_until(instant);
    }

    sending post(rill::rank_t peer, rill::channel on, const rill::byte_pieces& pieces) {
        const outside call(*this);
        return {*this, inner_.post(peer, on, pieces)};
    }
    bool post(rill::rank_t peer, rill::channel on, rill::buffer&& bytes,
              rill::deadline until = rill::deadline::immediate) {
        const outside call(*this);
        return inner_.post(peer, on, std::move(bytes), until);
    }
    std::optional<message> receive(rill::rank_t peer, rill::channel on, rill::deadline until) {
        const outside call(*this);
        return inner_.receive(peer, on, until);
    }
    std::optional<message> receive(std::span<const rill::rank_t> peers, rill::channel on, rill::deadline until) {
        const outside call(*this);
        return inner_.receive(peers, on, until);
    }
    std::optional<message> receive_latest(std::span<const rill::rank_t> peers, rill::channel on, rill::deadline until) {
        const outside call(*this);
        return inner_.receive_latest(peers, on, until);
    }
    bool receive_into(rill::rank_t peer, rill::channel on, std::span<const rill::byte_span> targets,
                      rill::deadline until) {
        std::optional<message> received = receive(peer, on, until);  // copying is this rank's own work
        if (received) rill::detail::copy_message(rank(), *received, on, targets);
        return received.has_value();
    }

    void announce(std::uint64_t context, const rill::call_signature& call) { inner_.announce(context, call); }
    std::optional<rill::call_signature> inquire(rill::rank_t peer, std::uint64_t context, std::uint64_t number,
                                                rill::deadline until) {
        const outside call(*this);
        return inner_.inquire(peer, context, number, until);
    }
    rill::abort_notice abort(const rill::abort_notice& notice) { return inner_.abort(notice); }
    std::optional<rill::abort_notice> aborted(std::uint64_t context) { return inner_.aborted(context); }
    std::uint64_t next_context(std::uint64_t key) { return inner_.next_context(key); }
    void close(std::uint64_t context) { inner_.close(context); }

  private:
    void pay() const { inner_.sleep_until(inner_.now() + (processor_time() - since_)); }

    rill::simulated::endpoint& inner_;
    mutable rill::duration since_;  ///< the processor's time at which the rank last went on computing
};

static_assert(rill::Transport<charged>);

}  // namespace plan
