/// What every program needs. It uses only the standard library and no threads. In addition, include the transport that
/// you use (`transport/in_process.hpp`, …), and what you need of `gradient_code/`, `protocol/`, `cost/`, `train/`,
/// `adapt/` and `testing/`: single headers, or a whole folder (`rill/train.hpp`). For gossip, `rill/mixing.hpp`.
#pragma once

#include <rill/aggregate.hpp>
#include <rill/collective.hpp>
#include <rill/compress.hpp>
#include <rill/concept.hpp>
#include <rill/core.hpp>
#include <rill/kernel.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler.hpp>
#include <rill/stream.hpp>
#include <rill/topology.hpp>

#if defined(RILL_COMPILED)
#include <rill/compiled.hpp>
#endif
