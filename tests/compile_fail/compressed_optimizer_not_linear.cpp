// expect: rill::train::compressed_bsp: a step of the optimizer \(adam\) does not scale with the gradient
#include <rill/compress/top_k.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/adam.hpp>
#include <rill/train/compressed_bsp.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>

#ifdef RILL_FIXED
using optimizer = rill::train::sgd;
#else
using optimizer = rill::train::adam;
#endif

const rill::train::compressed_bsp plan{rill::topology::split_allgather{}, rill::compress::top_k{}, optimizer{},
                                       rill::train::constant_rate{0.1}};
