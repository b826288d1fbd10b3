/// All transports and decorators that need no third-party library: threads, subgroups, faults, delays, traces. Include
/// `transport/simulated.hpp` (Boost.Context) and `transport/mpi.hpp` (MPI) by name.
#pragma once

#include <rill/transport/any_model.hpp>
#include <rill/transport/compute_times.hpp>
#include <rill/transport/control_plane.hpp>
#include <rill/transport/delayed.hpp>
#include <rill/transport/delays.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/fault_plan_text.hpp>
#include <rill/transport/fault_scene.hpp>
#include <rill/transport/faulty.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/links.hpp>
#include <rill/transport/network_card.hpp>
#include <rill/transport/read_compute_trace.hpp>
#include <rill/transport/run_faulty.hpp>
#include <rill/transport/subgroup.hpp>
#include <rill/transport/time_by_name.hpp>
#include <rill/transport/trace_log.hpp>
#include <rill/transport/traced.hpp>
#include <rill/transport/write_trace.hpp>
