/// All topologies but `topology/any.hpp`, and the proof that a schedule computes its collective. Mixings, which only
/// gossip needs, come with `rill/mixing.hpp`.
#pragma once

#include <rill/topology/along.hpp>
#include <rill/topology/along_schedule.hpp>
#include <rill/topology/anyone.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/bipartite.hpp>
#include <rill/topology/butterfly.hpp>
#include <rill/topology/chunked.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/pairing.hpp>
#include <rill/topology/proof.hpp>
#include <rill/topology/rank_sets.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/subtree.hpp>
#include <rill/topology/trace_contributions.hpp>
#include <rill/topology/tree.hpp>
#include <rill/topology/tree_schedule.hpp>
