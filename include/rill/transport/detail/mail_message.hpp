#pragma once

#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/mail_engine.hpp>
#include <rill/transport/detail/received_message.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// A received message, in memory that the endpoint reuses after its release. A small message is one piece; a large one
/// has the pieces that were sent.
template <class Port>
using message = rill::detail::received_message<std::shared_ptr<engine<Port>>, typename engine<Port>::node>;

/// A borrowed send in progress. A message of up to `eager_bytes` is done when it is posted; a larger one when the
/// receiver has asked for it and the port has sent it, or when the receiver has dropped it.
template <class Port>
class sending {
  public:
    sending() = default;
    sending(sending&& other) noexcept
        : engine_(std::move(other.engine_)), id_(std::exchange(other.id_, 0)), on_(other.on_) {}
    sending& operator=(sending&& other) noexcept {
        sending moved(std::move(other));
        std::swap(engine_, moved.engine_);
        std::swap(id_, moved.id_);
        std::swap(on_, moved.on_);
        return *this;
    }
    ~sending() {
        if (id_ != 0) engine_->withdraw(id_);
    }

    /// Throws the port's `library_error` when the port has ended.
    bool done() {
        if (id_ != 0 && engine_->is_done(id_)) id_ = 0;
        return id_ == 0;
    }

    /// True when done, false when `until` has passed; throws the failure that ended the context.
    bool wait(deadline until) {
        if (id_ != 0 && engine_->await(id_, on_, until)) id_ = 0;
        return id_ == 0;
    }

    /// Withdraws the message if nobody has asked for it, otherwise waits until the port has sent it, at most for
    /// `options::failure_timeout`; then it ends the job.
    void settle() noexcept {
        if (id_ != 0) engine_->settle_sent(std::exchange(id_, 0), on_.context);
    }

    sending(std::shared_ptr<engine<Port>> by, std::uint64_t id, channel on)
        : engine_(std::move(by)), id_(id), on_(on) {}

  private:
    std::shared_ptr<engine<Port>> engine_;
    std::uint64_t id_ = 0;  // 0: done
    channel on_{};
};

}}}  // namespace rill::RILL_ABI::mail
