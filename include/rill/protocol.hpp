/// All protocols that continue when some ranks are missing: rounds and CodedReduce.
#pragma once

#include <rill/protocol/coded_allocation.hpp>
#include <rill/protocol/coded_reduce.hpp>
#include <rill/protocol/rounds.hpp>
