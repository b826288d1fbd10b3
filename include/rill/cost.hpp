/// What a collective costs: predictions, measurements, simulations.
#pragma once

#include <rill/cost/choose.hpp>
#include <rill/cost/coded_tree_plan.hpp>
#include <rill/cost/dense_messages.hpp>
#include <rill/cost/frame_bytes.hpp>
#include <rill/cost/matching_plan.hpp>
#include <rill/cost/measure_costs.hpp>
#include <rill/cost/measure_link.hpp>
#include <rill/cost/measure_links.hpp>
#include <rill/cost/measured_link.hpp>
#include <rill/cost/predict.hpp>
#include <rill/cost/prediction.hpp>
#include <rill/cost/readable_seconds.hpp>
#include <rill/cost/selection_frequency.hpp>
#include <rill/cost/simulate_step.hpp>
#include <rill/cost/step_model.hpp>
#include <rill/cost/stream_messages.hpp>
#include <rill/cost/union_size.hpp>
