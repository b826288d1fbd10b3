/// All law suites and protocol tests, for policies and protocols of your own.
#pragma once

#include <rill/testing/aggregator_laws.hpp>
#include <rill/testing/compressor_laws.hpp>
#include <rill/testing/coverage.hpp>
#include <rill/testing/exact_or_named_fault.hpp>
#include <rill/testing/executor_laws.hpp>
#include <rill/testing/fault_kind.hpp>
#include <rill/testing/gradient_code_laws.hpp>
#include <rill/testing/joint_aggregator_laws.hpp>
#include <rill/testing/law.hpp>
#include <rill/testing/mixing_laws.hpp>
#include <rill/testing/optimizer_laws.hpp>
#include <rill/testing/protocol_case.hpp>
#include <rill/testing/protocol_record.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/testing/replica_laws.hpp>
#include <rill/testing/shrink.hpp>
#include <rill/testing/sparse_objective_laws.hpp>
#include <rill/testing/straggler_laws.hpp>
#include <rill/testing/transport_archetypes.hpp>
#include <rill/testing/transport_laws.hpp>
#include <rill/testing/value_coding_laws.hpp>
