// The shipped states model their concepts, over the least transport.
#include <rill/aggregate/sum.hpp>
#include <rill/collective/dense_state.hpp>
#include <rill/collective/gather_state.hpp>
#include <rill/collective/schedule_state.hpp>
#include <rill/collective/stream_state.hpp>
#include <rill/testing/transport_archetypes.hpp>

#include <cstdint>

namespace { namespace schedule_states {

using rill::CuttingState, rill::PlacingState, rill::ScheduleState;
using rill::testing::archetype::transport;

using dense = rill::dense_state<transport, float, rill::aggregate::sum>;
using sparse = rill::stream_state<transport, float, std::uint32_t, rill::aggregate::sum>;
using gathered = rill::gather_state<transport, float, std::uint32_t>;

struct without_fold : gathered {
    void fold(int);
};

static_assert(PlacingState<dense, transport> && !dense::overwrites_nothing);
static_assert(ScheduleState<sparse, transport> && !PlacingState<sparse, transport> && sparse::overwrites_nothing);
static_assert(CuttingState<sparse, transport> && !CuttingState<dense, transport> && !CuttingState<gathered, transport>);
static_assert(ScheduleState<gathered, transport> && !PlacingState<gathered, transport> && gathered::overwrites_nothing);
static_assert(!ScheduleState<without_fold, transport>);

}}  // namespace ::schedule_states
