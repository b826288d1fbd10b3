#pragma once

#include <rill/collective/bucket_plan.hpp>
#include <rill/collective/request.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/time.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

namespace detail {

/// What the group keeps for its exchange, so that one like the last one allocates nothing.
struct bucket_scratch {
    bool is_under_way = false;
    std::vector<std::size_t> missing;  ///< how many tensors of each bucket are not ready
    std::vector<request> requests;     ///< of the buckets that are under way
};

}  // namespace detail

/// Exchanges several tensors bucket by bucket: each bucket's operation starts as soon as its tensors are ready, and
/// goes on while the tensors of the next bucket are computed.
///
/// `start(i)` starts the operation of bucket i and returns its request. Buckets start in their order, whatever the
/// order in which tensors become ready, so that all ranks start the same operations. A group serves one exchange at a
/// time, and no other operation, from the first `ready` to `finish`; another exchange that begins meanwhile is a
/// contract violation. After `finish`, also one that has thrown, an exchange can be used again. Destroying it before
/// `finish` cancels the operations under way.
///
/// If the transport's activities do not run alone (`rill::mpi` below MPI_THREAD_MULTIPLE), each `ready` also lets the
/// operations under way progress. They then overlap with computation only as far as the library below sends and
/// receives by itself.
template <class Group, class Start>
class bucket_exchange {
  public:
    bucket_exchange(Group& group, const bucket_plan& plan, Start start)
        : group_(group),
          plan_(plan),
          start_(std::move(start)),
          scratch_(group.template workspace<detail::bucket_scratch>()) {}
    bucket_exchange(const bucket_exchange&) = delete;
    bucket_exchange& operator=(const bucket_exchange&) = delete;
    ~bucket_exchange() { end(); }

    /// Tells that a tensor is ready; once for each tensor.
    void ready(std::size_t tensor) {
        RILL_EXPECTS(tensor < plan_.tensors(), "bucket_exchange: the tensor must be one of the plan");
        if (!is_under_way_) begin();
        std::size_t& missing = scratch_.missing[plan_.bucket_of(tensor)];
        RILL_EXPECTS(missing > 0, "bucket_exchange: ready must be called once for each tensor");
        --missing;
        start_complete_ones();
        if (!group_.net().activities_run_alone()) let_go_on();
    }

    /// Waits for all buckets. The receipt describes all of them: the fewest contributors, the least weight and the
    /// highest age of any bucket, the sums of rounds and traffic, and the time since the first bucket started. Throws
    /// what the first failed bucket throws.
    receipt finish() {
        RILL_EXPECTS((is_under_way_ ? scratch_.requests.size() : 0) == plan_.buckets().size(),
                     "bucket_exchange: finish needs every tensor to be ready");
        receipt all{};
        if (!is_under_way_) return all;
        struct ending {
            bucket_exchange& of;
            ~ending() { of.end(); }
        } const at_the_end{*this};
        for (std::size_t i = 0; i < scratch_.requests.size(); ++i) {
            const receipt one = scratch_.requests[i].get();
            all = i == 0 ? one : joined(all, one);
        }
        all.elapsed = group_.net().now() - started_;
        return all;
    }

  private:
    void begin() {
        RILL_EXPECTS(!scratch_.is_under_way, "bucket_exchange: another exchange of this group is not finished");
        scratch_.missing.clear();
        for (const bucket& each : plan_.buckets()) scratch_.missing.push_back(each.tensors.size());
        scratch_.requests.reserve(plan_.buckets().size());
        is_under_way_ = scratch_.is_under_way = true;
    }
    void end() {
        if (!is_under_way_) return;
        scratch_.requests.clear();
        is_under_way_ = scratch_.is_under_way = false;
    }

    void start_complete_ones() {
        auto& requests = scratch_.requests;
        while (requests.size() < scratch_.missing.size() && scratch_.missing[requests.size()] == 0) {
            if (requests.empty()) started_ = group_.net().now();
            requests.push_back(start_(requests.size()));
        }
    }

    /// Testing one request that is not done lets all operations progress.
    void let_go_on() const {
        for (const request& each : scratch_.requests)
            if (!each.test()) return;
    }

    static receipt joined(receipt all, const receipt& one) {
        all.contributors = std::min(all.contributors, one.contributors);
        all.weight = std::min(all.weight, one.weight);
        all.age = std::max(all.age, one.age);
        all.rounds += one.rounds;
        all.wire += one.wire;
        return all;
    }

    Group& group_;
    const bucket_plan& plan_;
    Start start_;
    detail::bucket_scratch& scratch_;
    bool is_under_way_ = false;
    time_point started_{};
};

}}  // namespace rill::RILL_ABI
