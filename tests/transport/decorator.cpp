// What each decorator of transports models, over archetypes and shipped transports.
#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/shared_memory.hpp>
#include <rill/concept/transport.hpp>
#include <rill/testing/transport_archetypes.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/delayed.hpp>
#include <rill/transport/faulty.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>
#include <rill/transport/traced.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace archetype = rill::testing::archetype;
using rill::delayed, rill::faulty, rill::subgroup, rill::traced;
using threads = rill::in_process::endpoint;
using simulated = rill::simulated::endpoint;

namespace {

template <class Net>
concept Identifying = requires(const Net& net) { net.this_activity(); };

/// What a transport models beyond `Transport`.
struct powers {
    bool concurrent = false, expects = false, chunks = false, computes = false, traces = false, shares = false;
    bool monitors = false;

    constexpr bool operator==(const powers&) const = default;
    constexpr powers without_shared_memory() const {
        powers left = *this;
        left.shares = false;
        return left;
    }
    constexpr powers computing() const {
        powers more = *this;
        more.computes = true;
        return more;
    }
    constexpr powers tracing() const {
        powers more = *this;
        more.traces = true;
        return more;
    }
    constexpr powers seeing_each_message() const {
        powers left = *this;
        left.expects = left.chunks = false;
        return left;
    }
};

template <rill::Transport Net>
constexpr powers of = {.concurrent = rill::ConcurrentTransport<Net>,
                       .expects = rill::ExpectingTransport<Net>,
                       .chunks = rill::ChunkingTransport<Net>,
                       .computes = rill::ComputingTransport<Net>,
                       .traces = rill::TracedTransport<Net>,
                       .shares = rill::SharedMemoryTransport<Net>,
                       .monitors = rill::MonitoredTransport<Net>};

template <class Net>
constexpr bool decorators_model_what_they_say() {
    static_assert(of<traced<Net>> == of<Net>.tracing());
    static_assert(of<subgroup<Net>> == of<Net>.without_shared_memory());
    static_assert(of<delayed<Net>> == of<Net>.without_shared_memory().computing());
    static_assert(of<faulty<Net>> == of<Net>.without_shared_memory().seeing_each_message());
    return true;
}

template <class... Nets>
constexpr bool over = (decorators_model_what_they_say<Nets>() && ...);

}  // namespace

static_assert(of<archetype::transport> == powers{});
static_assert(of<archetype::epoch_transport> == powers{});
static_assert(rill::EpochTransport<archetype::epoch_transport> && !rill::EpochTransport<archetype::transport>);
static_assert(of<archetype::concurrent_transport> == powers{.concurrent = true});
static_assert(of<archetype::expecting_transport> == powers{.expects = true});
static_assert(of<archetype::chunking_transport> == powers{.chunks = true});
static_assert(of<archetype::computing_transport> == powers{.computes = true});
static_assert(of<archetype::traced_transport> == powers{.traces = true});
static_assert(of<archetype::shared_memory_transport> == powers{.shares = true});
static_assert(of<archetype::monitored_transport> == powers{.monitors = true});
static_assert(over<archetype::transport, archetype::epoch_transport, archetype::concurrent_transport,
                   archetype::expecting_transport, archetype::chunking_transport, archetype::computing_transport,
                   archetype::traced_transport, archetype::shared_memory_transport, archetype::monitored_transport>);
// A transport without activities is traced all the same.
static_assert(!Identifying<traced<archetype::transport>> && Identifying<traced<archetype::concurrent_transport>>);
static_assert(over<threads, simulated>);
static_assert(over<traced<threads>, delayed<threads>, faulty<threads>, subgroup<threads>>);
static_assert(over<traced<simulated>, delayed<simulated>, faulty<simulated>, subgroup<simulated>>);

namespace {

/// How many messages of an all_reduce over `net` a trace holds.
template <class Net>
std::ptrdiff_t messages_of_all_reduce(Net& net) {
    rill::trace_log log;
    traced<Net> recorded{net, log};
    rill::group workers{recorded, rill::topology::split_allgather{}};
    std::vector<float> x(1000);
    std::iota(x.begin(), x.end(), static_cast<float>(net.rank()));
    const std::size_t before = log.events().size();
    rill::all_reduce(workers, std::span<const float>(x), std::span(x), rill::aggregate::sum{});
    const auto events = log.events().subspan(before);
    return std::count_if(events.begin(), events.end(),
                         [](const auto& event) { return event.kind == rill::trace_event::what::post; });
}

}  // namespace

TEST_CASE("a traced group of threads keeps the way through shared memory") {
    std::vector<std::ptrdiff_t> plain(3), by_messages(3);
    rill::in_process::run(3, [&](threads& net) {
        delayed<threads> without_shared_memory{net};
        plain[static_cast<std::size_t>(net.rank())] = messages_of_all_reduce(net);
        by_messages[static_cast<std::size_t>(net.rank())] = messages_of_all_reduce(without_shared_memory);
    });
    CHECK(plain == std::vector<std::ptrdiff_t>{0, 0, 0});
    CHECK(*std::min_element(by_messages.begin(), by_messages.end()) > 0);
}
