// The collectives as protocols: what a campaign needs to know of them. One source for each topology has the rest.
#pragma once

#include <rill/testing/protocol_test.hpp>
#include <rill/transport/simulated.hpp>

#include <vector>

namespace protocols {

/// A collective and the kind of its stream.
enum class call : unsigned {
    all_reduce_dense,
    all_reduce_stream,
    all_reduce_codec,
    reduce_dense,
    reduce_stream,
    reduce_scatter_dense,
    reduce_scatter_stream,
    all_gather_dense,
    all_gather_stream,
    broadcast_dense,
    broadcast_stream,
    barrier
};
inline constexpr const char* call_names[] = {"all_reduce dense",      "all_reduce stream", "all_reduce codec",
                                             "reduce dense",          "reduce stream",     "reduce_scatter dense",
                                             "reduce_scatter stream", "all_gather dense",  "all_gather stream",
                                             "broadcast dense",       "broadcast stream",  "barrier"};

/// What the ranks of a run know of each other, besides the messages between them: nothing that they act upon.
struct common {
    /// Of each call: how many ranks have entered it.
    std::vector<int> entered = std::vector<int>(64);
    /// Of the calls with a codec: what all contributed, and what is left of it in the residuals and the results.
    std::vector<double> given = std::vector<double>(64), left = std::vector<double>(64);
    std::vector<int> settled = std::vector<int>(64);
};

/// What one rank does in a run of a call on a topology.
template <class Shape>
void play_member(rill::simulated::endpoint& net, const rill::testing::protocol_case& of,
                 const rill::testing::protocol_limits& limits, rill::testing::rank_record& mine, call which,
                 Shape shape, common& all);

}  // namespace protocols
