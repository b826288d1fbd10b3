// The collectives as protocols: the declarations that a campaign needs. One source per topology has the definitions.
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

/// What the ranks of a run record together, apart from their messages.
struct common {
    /// Whether a call has failed on any rank. Notices can be lost, so the ranks learn from here whether they go on.
    bool has_failed = false;
    /// Per call: how many ranks have entered it.
    std::vector<int> entered = std::vector<int>(64);
    /// Per call with a codec: the sum of what all ranks contributed, and of what is left in the residuals.
    std::vector<double> given = std::vector<double>(64), left = std::vector<double>(64);
    std::vector<int> settled = std::vector<int>(64);
};

/// Plays one rank's part in a run of a call on a topology.
template <class Shape>
void play_member(rill::simulated::endpoint& net, const rill::testing::protocol_case& of,
                 const rill::testing::protocol_limits& limits, rill::testing::rank_record& mine, call which,
                 Shape shape, common& all);

}  // namespace protocols
