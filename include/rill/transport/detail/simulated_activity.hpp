#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>
#include <rill/transport/detail/simulated_world.hpp>

#include <exception>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace simulated {

/// A fiber of one rank. `join()` waits for its end and rethrows its exception. The destructor joins and discards the
/// exception; if it runs during unwinding, the activity's waits throw `peer_failure`, so that it ends.
class activity {
  public:
    activity(activity&& other) noexcept
        : world_(other.world_), strand_(std::exchange(other.strand_, nullptr)), unwinding_(other.unwinding_) {}
    activity& operator=(activity&& other) noexcept {
        activity moved(std::move(other));
        std::swap(world_, moved.world_);
        std::swap(strand_, moved.strand_);
        std::swap(unwinding_, moved.unwinding_);
        return *this;
    }
    ~activity() {
        if (strand_ == nullptr) return;
        if (std::uncaught_exceptions() > unwinding_) world_->stop(*strand_);
        finish();
    }

    void join() {
        if (strand_ == nullptr) return;
        if (const std::exception_ptr thrown = finish()) std::rethrow_exception(thrown);
    }

  private:
    friend class endpoint;

    /// Moves `body` to the new fiber's own stack before it returns.
    template <class Body>
    activity(detail::world& world, rank_t rank, Body& body) : world_(&world) {
        struct start {
            detail::scheduler* activities;
            Body* body;
        } own{&world.activities(), &body};
        const auto run_one = [](void* context, detail::strand& self) {
            try {
                detail::scheduler& activities = *static_cast<start*>(context)->activities;
                Body moved(std::move(*static_cast<start*>(context)->body));
                activities.pass();
                moved();
            } catch (...) {
                self.thrown = std::current_exception();
            }
        };
        strand_ = &world.activities().start_now(rank, {run_one, &own});
    }

    std::exception_ptr finish() noexcept {
        detail::strand& ended = *std::exchange(strand_, nullptr);
        world_->wait_for_end(ended);
        std::exception_ptr thrown = std::exchange(ended.thrown, nullptr);
        world_->activities().reuse(ended);
        return thrown;
    }

    detail::world* world_;
    detail::strand* strand_ = nullptr;
    int unwinding_ = std::uncaught_exceptions();
};

}}}  // namespace rill::RILL_ABI::simulated
