/// All published systems that rill provides, as compositions of its policies; needs Eigen.
#pragma once

#include <rill/system/ad_psgd.hpp>
#include <rill/system/choco_sgd.hpp>
#include <rill/system/coded_reduce.hpp>
#include <rill/system/d_psgd.hpp>
#include <rill/system/d_squared.hpp>
#include <rill/system/dcd_psgd.hpp>
#include <rill/system/eager_sgd.hpp>
#include <rill/system/fault_tolerant_tree.hpp>
#include <rill/system/fed_avg.hpp>
#include <rill/system/gossip_grad.hpp>
#include <rill/system/local_sgd.hpp>
#include <rill/system/master_worker.hpp>
#include <rill/system/psgd.hpp>
#include <rill/system/rna.hpp>
#include <rill/system/saps_psgd.hpp>
#include <rill/system/sgp.hpp>
#include <rill/system/sign_sgd.hpp>
#include <rill/system/sparcml.hpp>
#include <rill/system/stale_synchronous.hpp>
