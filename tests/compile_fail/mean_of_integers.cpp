// expect: rill::Aggregator: finish\(values, weight\) is missing for this element type \(a mean of integers\?\)
// mentions: aggregate::mean
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <cstdint>
#include <vector>

#ifdef RILL_FIXED
using element = double;
#else
using element = std::int32_t;
#endif

void step(rill::in_process::endpoint& net, std::vector<element>& values) {
    rill::group workers{net, rill::topology::ring{}};
    rill::all_reduce(workers, values, values, rill::aggregate::mean{});
}
