// expect: rill::train::overlapped_bsp: the codecs are neither a codec nor a function
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/overlapped_bsp.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>

#include <cstddef>

#ifdef RILL_FIXED
constexpr auto codecs = [](std::size_t, const rill::bucket&) {
#else
constexpr auto codecs = [](std::size_t) {
#endif
    return rill::compress::error_feedback{rill::compress::top_k{.density = 0.01}};
};

const rill::train::overlapped_bsp plan{rill::topology::split_allgather{}, rill::train::sgd{},
                                       rill::train::constant_rate{0.1},   rill::train::no_clip{},
                                       rill::fusion{.bytes = 1 << 20},    codecs};
