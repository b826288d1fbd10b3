// expect: rill::rounds: the policy after the tree does not model Completion, which says when a gather has enough
// model Completion
#include <rill/collective/group.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler/tolerate.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/in_process.hpp>

void loop(rill::in_process::endpoint& net) {
    using namespace rill::straggler;
    rill::group workers{net, rill::topology::star{}};
#ifdef RILL_FIXED
    rill::rounds steps{workers, rill::topology::star{}, tolerate{1}, unbounded{}};
#else
    rill::rounds steps{workers, rill::topology::star{}, unbounded{}, tolerate{1}};
#endif
}
