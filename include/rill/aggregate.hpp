/// All aggregators: how contributions are folded.
#pragma once

#include <rill/aggregate/max.hpp>
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/min.hpp>
#include <rill/aggregate/sum.hpp>
