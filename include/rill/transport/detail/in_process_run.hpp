#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/plain_vector.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/failures.hpp>
#include <rill/transport/detail/in_process_world.hpp>

#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

/// The threads of the ranks, and the exceptions that end them.
class rank_threads {
  public:
    using rank_body = void (*)(void* context, world& shared, rank_t rank);

    [[gnu::noinline]] rank_threads(world& shared, rank_body body, void* context)
        : world_(shared), body_(body), context_(context), thrown_(static_cast<std::size_t>(shared.size())) {
        world_.set_starter(
            {[](void* self, rank_t rank) { return static_cast<rank_threads*>(self)->start(rank); }, this});
    }

    /// Runs the ranks below `ranks`, and those that they start, until they have ended; rethrows the exception of the
    /// culprit, or else of the first rank that threw.
    [[gnu::noinline]] void run(int ranks) {
        std::exception_ptr not_started;
        for (rank_t rank = 0; rank < ranks; ++rank) world_.take_seat(rank);
        rank_t rank = 0;
        try {
            for (; rank < ranks; ++rank) begin(rank);
        } catch (const std::exception& reason) {
            not_started = std::current_exception();
            for (rank_t missing = rank; missing < ranks; ++missing)
                world_.fail(missing, {.context = every_context,
                                      .culprit = rank,
                                      .reason = text_of({"no thread for rank ", rank, ": ", reason.what()})});
        }
        for (std::thread next = unjoined(); next.joinable(); next = unjoined()) next.join();
        if (not_started) std::rethrow_exception(not_started);
        rethrow();
    }

  private:
    /// Starts a rank on a free seat; false where it is not free.
    [[gnu::noinline]] bool start(rank_t rank) {
        if (!world_.take_seat(rank)) return false;
        world_.threads_changed(1);
        begin(rank);
        return true;
    }
    [[gnu::noinline]] void begin(rank_t rank) {
        const std::lock_guard lock(mutex_);
        threads_.reserve(threads_.size() + 1);  // a thread that could not be kept would end the program
        threads_.add(std::thread([this, rank] { run_one(rank); }));
    }
    /// A thread that runs, or has run; none when all are joined. A running rank may start others until it is joined.
    [[gnu::noinline]] std::thread unjoined() {
        const std::lock_guard lock(mutex_);
        return joined_ == threads_.size() ? std::thread() : std::move(threads_[joined_++]);
    }

    [[gnu::noinline]] void run_one(rank_t rank) noexcept {
        try {
            body_(context_, world_, rank);
            world_.end(rank);
        } catch (...) {
            fail(rank);
        }
    }

    [[gnu::cold, gnu::noinline]] void fail(rank_t rank) {
        thrown_[static_cast<std::size_t>(rank)] = std::current_exception();
        abort_notice notice =
            rill::detail::notice_of_thrown(rank, [this](const abort_notice& told) { return world_.origin_of(told); });
        if (notice.culprit == no_rank) notice.culprit = rank;
        {
            const std::lock_guard lock(mutex_);
            if (first_ == no_rank) first_ = rank;
        }
        world_.fail(rank, notice);
    }

    [[gnu::noinline]] void rethrow() {
        if (first_ == no_rank) return;
        const rank_t culprit = world_.first_failure()->culprit;
        if (0 <= culprit && culprit < world_.size())
            if (const std::exception_ptr own = thrown_[static_cast<std::size_t>(culprit)]) std::rethrow_exception(own);
        std::rethrow_exception(thrown_[static_cast<std::size_t>(first_)]);
    }

    world& world_;
    rank_body body_;
    void* context_;
    plain_vector<std::exception_ptr> thrown_;
    std::mutex mutex_;  ///< guards what follows
    plain_vector<std::thread> threads_;
    std::size_t joined_ = 0;
    rank_t first_ = no_rank;
};

}}}  // namespace rill::RILL_ABI::in_process::detail
