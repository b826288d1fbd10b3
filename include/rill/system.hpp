/// All published systems that rill provides, as compositions of its policies; needs Eigen.
#pragma once

#include <rill/system/coded_reduce.hpp>
#include <rill/system/eager_sgd.hpp>
#include <rill/system/local_sgd.hpp>
#include <rill/system/master_worker.hpp>
#include <rill/system/psgd.hpp>
#include <rill/system/rna.hpp>
#include <rill/system/sparcml.hpp>
#include <rill/system/stale_synchronous.hpp>
