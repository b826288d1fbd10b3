/// All mixings, for gossip (`rill/protocol/gossip.hpp`), and the proof that a mixing mixes.
#pragma once

#include <rill/topology/any_matcher.hpp>
#include <rill/topology/bandwidth_matching.hpp>
#include <rill/topology/directed.hpp>
#include <rill/topology/eigenvalues_above.hpp>
#include <rill/topology/exponential.hpp>
#include <rill/topology/metropolis.hpp>
#include <rill/topology/mixing_rate.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/rotating.hpp>
#include <rill/topology/verify_mixing.hpp>
