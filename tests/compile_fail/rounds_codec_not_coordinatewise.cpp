// expect: rill::rounds: the compressor makes its output from the fold of all ranks
#include <rill/collective/group.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/in_process.hpp>

#include <algorithm>
#include <span>
#include <vector>

using shipped = decltype(rill::compress::keep_all{}.bind<float>(1));

/// Sends coordinates of its own.
struct own_coordinates : shipped {
    using shipped::shipped;
#ifndef RILL_FIXED
    static constexpr bool is_coordinatewise = false;
    static constexpr bool chooses_alike = false;
#endif
    void decode(std::span<const float> folded, std::span<float> output) {
        std::copy(folded.begin(), folded.end(), output.begin());
    }
};

void step(rill::in_process::endpoint& net, std::vector<float>& values, own_coordinates& codec) {
    rill::group workers{net, rill::topology::star{}};
    rill::rounds steps{workers, rill::topology::star{}};
    steps.reduce(values, values, codec);
}
