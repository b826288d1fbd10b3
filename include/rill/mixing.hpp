/// All mixings, for gossip (`rill/protocol/gossip.hpp`), and the proof that a mixing mixes.
#pragma once

#include <rill/topology/exponential.hpp>
#include <rill/topology/metropolis.hpp>
#include <rill/topology/mixing_rate.hpp>
#include <rill/topology/random_matching.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/rotating.hpp>
#include <rill/topology/verify_mixing.hpp>
