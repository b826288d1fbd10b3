#pragma once

#include <rill/collective/detail/detours.hpp>
#include <rill/collective/detail/membership.hpp>
#include <rill/collective/detail/owned.hpp>
#include <rill/collective/detail/require_group.hpp>
#include <rill/collective/detail/synchronise.hpp>
#include <rill/collective/detail/worker.hpp>
#include <rill/collective/exchange.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/collective/lane.hpp>
#include <rill/collective/request.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/serial.hpp>
#include <rill/topology/along.hpp>
#include <rill/topology/tree.hpp>

#include <cstdint>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
/// A base class, so that it is made before the lane that refers to it.
template <Transport Net, Topology Shape, Executor Exec>
struct group_base {
    membership<Net, Shape, Exec> members;
};
}  // namespace detail

/// A group whose transport, topology or executor does not fit: it does not compile, and the message says which.
template <class Net, class Shape, class Exec = serial>
class group {
    static_assert(detail::require_parts_of_group<Net, Shape, Exec>());

  public:
    using refused_type = group;  ///< marks it, so that collectives report no further errors
    /// Accepts the arguments of any group.
    template <class... Arguments>
    explicit group(Arguments&&...) {}
};

/// All ranks of a transport, joined for collectives over one topology.
///
/// Making a group is itself collective: a handshake compares version, topology and options, so that ranks that were
/// built or configured differently learn it at once, with the odd rank's name. Collectives on one group must be called
/// and started in the same order on all its ranks. On one rank, one activity uses it at a time. Operations that are in
/// flight when it is destroyed are cancelled. `net` must outlive the group.
///
/// `executor` spreads this rank's own work (selection, quantisation, folds) over threads; it changes no result and may
/// differ from rank to rank.
///
/// Cost: 2 log2 P rounds for the handshake. Errors: after a failed operation every further one fails on all ranks with
/// the same culprit. A rank may have completed an operation that failed on others: see `survivors` for how the ranks go
/// on.
template <Transport Net, Topology Shape, Executor Exec>
class group<Net, Shape, Exec> : detail::group_base<Net, Shape, Exec>, public lane<Net, Shape, Exec> {
  public:
    [[gnu::noinline]] explicit group(Net& net, Shape shape = {}, group_options options = {}, Exec executor = {})
        : detail::group_base<Net, Shape, Exec>{{.session = session_of(net, shape, options),
                                                .shape = shape,
                                                .options = options,
                                                .executor = std::move(executor)}},
          lane<Net, Shape, Exec>(this->members) {
        if constexpr (MonitoredTransport<Net>)
            if (options.monitors) this->members.session.monitor(detail::shared_tag);
        shake_hands();
    }

    /// How many operations have been called or started. Receipts carry it and random numbers are derived from it: to
    /// resume bit for bit, save it and set it on all ranks alike, between two operations. It may go back. The numbers
    /// in errors never do: a rank that is missing in a repeated operation must not be mistaken for one that entered it
    /// the first time.
    std::uint64_t operation_number() const { return this->members.last.counted; }
    void resume_at(std::uint64_t number) { this->members.last = this->members.last.resumed_at(number); }

    /// See `rill::start`.
    template <class Body>
    request start(Body&& body)
        requires ConcurrentTransport<Net>
    {
        using workers = detail::crew<Net, Shape, Exec>;
        if (crew_.get() == nullptr) crew_ = detail::owned(new workers(this->members));
        return static_cast<workers*>(crew_.get())->start(std::forward<Body>(body));
    }

  private:
    /// Checks the options before it uses the transport.
    static session<Net> session_of(Net& net, const Shape& shape, const group_options& options) {
        options.require_options(net.rank());
        (void)shape.all_reduce(net.size(), net.rank());
        return {net, options.name, options.timeout};
    }

    [[gnu::noinline]] void shake_hands() {
        constexpr option_names names{{"version", "topology", "seed", "timeout"}};
        this->guarded(
            {.kind = operation::handshake,
             .options = names.with({RILL_VERSION_MAJOR * 1000 + RILL_VERSION_MINOR,
                                    option_hash(rill::fingerprint(this->shape())), option_hash(this->options().seed),
                                    option_hash(static_cast<std::uint64_t>(this->options().timeout.ns))})},
            [&](exchange<Net>& call) {
                return detail::synchronise(*this, call, topology::tree{}.all_reduce(this->size(), this->rank()));
            },
            names);
    }

    detail::owned crew_;  ///< made by the first `start`: other groups need not compile it
};

template <class Net>
group(Net&) -> group<Net, detail::no_topology>;
template <class Net, class Shape>
group(Net&, Shape) -> group<Net, typename topology::with_collectives<Shape>::type>;
template <class Net, class Shape>
group(Net&, Shape, group_options) -> group<Net, typename topology::with_collectives<Shape>::type>;
template <class Net, class Shape, class Exec>
group(Net&, Shape, group_options, Exec) -> group<Net, typename topology::with_collectives<Shape>::type, Exec>;

}}  // namespace rill::RILL_ABI
