/// All straggler policies: completions, stalenesses, triggers, participations, backlogs.
#pragma once

#include <rill/straggler/all_ready.hpp>
#include <rill/straggler/bounded.hpp>
#include <rill/straggler/everyone.hpp>
#include <rill/straggler/fastest.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/in_step.hpp>
#include <rill/straggler/linear_mean.hpp>
#include <rill/straggler/majority.hpp>
#include <rill/straggler/plain_sum.hpp>
#include <rill/straggler/sampled.hpp>
#include <rill/straggler/solo.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/two_choices.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/straggler/until.hpp>
#include <rill/straggler/wait_all.hpp>
