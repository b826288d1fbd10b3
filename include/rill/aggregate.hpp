/// All aggregators: how contributions are folded. Updates that add or average what was pushed.
#pragma once

#include <rill/aggregate/add.hpp>
#include <rill/aggregate/max.hpp>
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/mean_of_latest.hpp>
#include <rill/aggregate/median.hpp>
#include <rill/aggregate/min.hpp>
#include <rill/aggregate/sign_of_sum.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/aggregate/trimmed_mean.hpp>
