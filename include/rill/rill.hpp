/// All of rill that needs the standard library alone. Left to be included by name: the transports that bring threads or
/// a third party (`transport/in_process.hpp`, `transport/simulated.hpp`), and everything in `train/`, `adapt/` and
/// `testing/`.
#pragma once

#include <rill/concept/aggregator.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
