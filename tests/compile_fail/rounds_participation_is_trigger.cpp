// expect: rill::rounds: the policy after the trigger does not model Participation, which says whom a round asks
#include <rill/collective/group.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/straggler.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/in_process.hpp>

void loop(rill::in_process::endpoint& net) {
    using namespace rill::straggler;
    rill::group workers{net, rill::topology::star{}};
#ifdef RILL_FIXED
    rill::rounds steps{workers, rill::topology::star{}, wait_all{}, fresh{}, solo{}, sampled{.fraction = 0.5}};
#else
    rill::rounds steps{workers, rill::topology::star{}, wait_all{}, fresh{}, solo{}, two_choices{2}};
#endif
}
