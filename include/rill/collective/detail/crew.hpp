#pragma once

#include <rill/collective/detail/membership.hpp>
#include <rill/collective/detail/pending.hpp>
#include <rill/collective/detail/worker.hpp>
#include <rill/collective/request.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The workers of a group: as many as operations have ever been in flight at once.
template <ConcurrentTransport Net, Topology Shape, Executor Exec>
class crew {
  public:
    explicit crew(membership<Net, Shape, Exec>& of) : of_(&of) {
        of.crew = this;
        of.wait_for_room = [](void* self, std::uint64_t number) { static_cast<crew*>(self)->make_room(number); };
    }
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;
    ~crew() {
        for (const auto& each : workers_) each->end();
    }

    template <class Body>
    request start(Body&& body) {
        const operation_numbers next = of_->last.next();
        of_->make_room(next.in_context);
        const shared<member>& chosen = idle_member();
        chosen->start(next, std::forward<Body>(body));
        of_->last = next;
        return request(chosen);
    }

  private:
    using member = worker<Net, Shape, Exec>;

    void make_room(std::uint64_t number) {
        for (const auto& each : workers_)
            if (each->number() + calls_remembered / 2 <= number) each->await(deadline::never);
    }

    /// The first worker without a request. The first ones are reused most, so their scratch already has the right size.
    const shared<member>& idle_member() {
        for (const auto& each : workers_)
            if (each.is_only_owner() && each->is_usable()) return each;
        return workers_.emplace_back(new member(*of_));
    }

    membership<Net, Shape, Exec>* of_;
    std::vector<shared<member>> workers_;
};

}}}  // namespace rill::RILL_ABI::detail
