/// All concepts: what a policy, a transport or a type of yours has to offer.
#pragma once

#include <rill/concept/aggregator.hpp>
#include <rill/concept/backlog.hpp>
#include <rill/concept/completion.hpp>
#include <rill/concept/compressor.hpp>
#include <rill/concept/difference_compressor.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/gradient_code.hpp>
#include <rill/concept/matcher.hpp>
#include <rill/concept/mixing.hpp>
#include <rill/concept/monitored_transport.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/concept/objective.hpp>
#include <rill/concept/pairing.hpp>
#include <rill/concept/participation.hpp>
#include <rill/concept/peer_event.hpp>
#include <rill/concept/regular.hpp>
#include <rill/concept/replica.hpp>
#include <rill/concept/shared_memory.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/concept/update.hpp>
