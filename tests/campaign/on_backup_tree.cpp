#include <rill/topology/backup_tree.hpp>

#include "collectives.hpp"

template void protocols::play_member(rill::simulated::endpoint&, const rill::testing::protocol_case&,
                                     const rill::testing::protocol_limits&, rill::testing::rank_record&,
                                     protocols::call, rill::topology::backup_tree, protocols::common&);
