/// All collectives: every rank takes part, and one failure ends the operation on all ranks.
#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/bucket_exchange.hpp>
#include <rill/collective/bucket_plan.hpp>
#include <rill/collective/dense_state.hpp>
#include <rill/collective/exchange.hpp>
#include <rill/collective/frame_check.hpp>
#include <rill/collective/fusion.hpp>
#include <rill/collective/gather_state.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/group_options.hpp>
#include <rill/collective/is_silent.hpp>
#include <rill/collective/join_frames.hpp>
#include <rill/collective/lane.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/collective/request.hpp>
#include <rill/collective/run_schedule.hpp>
#include <rill/collective/schedule_state.hpp>
#include <rill/collective/start.hpp>
#include <rill/collective/stream_state.hpp>
#include <rill/collective/tensors.hpp>
