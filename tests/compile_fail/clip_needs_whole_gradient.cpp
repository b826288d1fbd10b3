// expect: rill::train::overlapped_bsp: the clipping needs the whole gradient
#include <rill/topology/split_allgather.hpp>
#include <rill/train/clip.hpp>
#include <rill/train/overlapped_bsp.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>

#ifdef RILL_FIXED
using clipping = rill::train::per_bucket<rill::train::clip_norm>;
#else
using clipping = rill::train::clip_norm;
#endif

const rill::train::overlapped_bsp plan{rill::topology::split_allgather{}, rill::train::sgd{},
                                       rill::train::constant_rate{0.1}, clipping{}};
