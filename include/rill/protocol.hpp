/// All protocols in which a rank does not wait for all others: rounds, CodedReduce, gossip, partial all-reduce,
/// parameter server, pair averaging, local steps, groups by speed, elastic teams, what survivors begin anew with.
#pragma once

#include <rill/protocol/coded_allocation.hpp>
#include <rill/protocol/coded_reduce.hpp>
#include <rill/protocol/compare_states.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/protocol/elastic_errors.hpp>
#include <rill/protocol/elastic_options.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/protocol/group_by_speed.hpp>
#include <rill/protocol/local_steps.hpp>
#include <rill/protocol/on_difference.hpp>
#include <rill/protocol/pair_averaging.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/protocol/quorum.hpp>
#include <rill/protocol/residuals.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/protocol/server_options.hpp>
#include <rill/protocol/take_newest.hpp>
#include <rill/protocol/update_bytes.hpp>
