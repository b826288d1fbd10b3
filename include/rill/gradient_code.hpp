/// All gradient codes: which worker computes on which data, so that the sum can be recovered without some workers.
#pragma once

#include <rill/gradient_code/amplification.hpp>
#include <rill/gradient_code/any_code.hpp>
#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/gradient_code/cyclic_repetition.hpp>
#include <rill/gradient_code/default_code.hpp>
#include <rill/gradient_code/dual_code.hpp>
#include <rill/gradient_code/fractional_repetition.hpp>
#include <rill/gradient_code/given_code.hpp>
#include <rill/gradient_code/group_code.hpp>
#include <rill/gradient_code/repetition_groups.hpp>
