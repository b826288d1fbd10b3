/// All of rill that needs the standard library alone, but for the transports and the gradient codes: include those that
/// you use by their names (`transport/in_process.hpp`, …), and so what you need of `train/`, `adapt/` and `testing/`.
#pragma once

#include <rill/core/arena.hpp>
#include <rill/core/buffer_shelf.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <rill/concept/aggregator.hpp>
#include <rill/concept/completion.hpp>
#include <rill/concept/compressor.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/objective.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/concept/trigger.hpp>

#include <rill/kernel/bf16.hpp>
#include <rill/kernel/bucket_select.hpp>
#include <rill/kernel/combine.hpp>
#include <rill/kernel/copy.hpp>
#include <rill/kernel/fold.hpp>
#include <rill/kernel/index_bitmap.hpp>
#include <rill/kernel/index_coding.hpp>
#include <rill/kernel/index_elias_fano.hpp>
#include <rill/kernel/index_gaps.hpp>
#include <rill/kernel/index_huffman.hpp>
#include <rill/kernel/index_raw.hpp>
#include <rill/kernel/mask.hpp>
#include <rill/kernel/merge.hpp>
#include <rill/kernel/merge_k.hpp>
#include <rill/kernel/quantize.hpp>
#include <rill/kernel/scatter.hpp>
#include <rill/kernel/select.hpp>
#include <rill/kernel/tasks.hpp>
#include <rill/kernel/threshold.hpp>

#include <rill/stream/dense_switch.hpp>
#include <rill/stream/detail/payload.hpp>
#include <rill/stream/fold.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_codings.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/proof.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/star.hpp>
#include <rill/topology/tree.hpp>

#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/threshold.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>

#include <rill/aggregate/max.hpp>
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/min.hpp>
#include <rill/aggregate/sum.hpp>

#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/straggler/until.hpp>
#include <rill/straggler/wait_all.hpp>

#include <rill/collective/agree.hpp>
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/bucket_exchange.hpp>
#include <rill/collective/bucket_plan.hpp>
#include <rill/collective/detail/tensor_access.hpp>
#include <rill/collective/fusion.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/collective/lane.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/collective/request.hpp>
#include <rill/collective/start.hpp>
#include <rill/collective/tensors.hpp>
#include <rill/protocol/rounds.hpp>
