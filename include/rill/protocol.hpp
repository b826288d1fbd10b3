/// All protocols that continue when some ranks are missing: rounds, CodedReduce, partial all-reduce.
#pragma once

#include <rill/protocol/coded_allocation.hpp>
#include <rill/protocol/coded_reduce.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/protocol/rounds.hpp>
