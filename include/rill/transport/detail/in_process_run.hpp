#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/in_process_world.hpp>

#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace in_process::detail {

/// The threads of the ranks, and the exceptions that end them.
class rank_threads {
  public:
    explicit rank_threads(world& shared) : world_(shared), thrown_(static_cast<std::size_t>(shared.size())) {}

    /// Runs all ranks until they have ended; rethrows the exception of the culprit, or else of the first rank that
    /// threw.
    void run(void (*body)(void*, world&, rank_t), void* context) {
        std::vector<std::thread> threads;
        std::exception_ptr not_started;
        try {
            threads.reserve(thrown_.size());
            for (rank_t rank = 0; rank < world_.size(); ++rank)
                threads.emplace_back([this, body, context, rank] { run_one(body, context, rank); });
        } catch (const std::exception& reason) {
            not_started = std::current_exception();
            const auto rank = static_cast<rank_t>(threads.size());
            world_.abort({.context = every_context,
                          .culprit = rank,
                          .reason = "no thread for rank " + std::to_string(rank) + ": " + reason.what()});
        }
        for (std::thread& each : threads) each.join();
        if (not_started) std::rethrow_exception(not_started);
        rethrow();
    }

  private:
    void run_one(void (*body)(void*, world&, rank_t), void* context, rank_t rank) noexcept {
        try {
            body(context, world_, rank);
            world_.depart(rank);
        } catch (const error& caught) {
            abort_notice notice = world_.origin_of(caught.notice()).value_or(caught.notice());
            if (notice.culprit == no_rank) notice.culprit = rank;
            fail(rank, std::move(notice));
        } catch (const std::exception& caught) {
            fail(rank, {.culprit = rank, .reason = "rank " + std::to_string(rank) + " failed: " + caught.what()});
        } catch (...) {
            fail(rank, {.culprit = rank,
                        .reason = "rank " + std::to_string(rank) + " failed: an exception that is no std::exception"});
        }
    }

    void fail(rank_t rank, abort_notice notice) {
        thrown_[static_cast<std::size_t>(rank)] = std::current_exception();
        notice.context = every_context;
        {
            const std::lock_guard lock(mutex_);
            if (first_ == no_rank) first_ = rank;
        }
        world_.abort(notice);
    }

    void rethrow() {
        if (first_ == no_rank) return;
        const rank_t culprit = world_.aborted(every_context)->culprit;
        if (0 <= culprit && culprit < world_.size())
            if (const std::exception_ptr own = thrown_[static_cast<std::size_t>(culprit)]) std::rethrow_exception(own);
        std::rethrow_exception(thrown_[static_cast<std::size_t>(first_)]);
    }

    world& world_;
    std::vector<std::exception_ptr> thrown_;
    std::mutex mutex_;
    rank_t first_ = no_rank;
};

}}}  // namespace rill::RILL_ABI::in_process::detail
