/// What ranks of a view have in common: who is alive, and which step all have done.
#pragma once

#include <rill/session/contribution_sum.hpp>
#include <rill/session/session.hpp>
#include <rill/session/survivors.hpp>
