// Counts what a schedule sends, in parts.
#pragma once

#include <rill/concept/topology.hpp>

namespace topology_test {

template <rill::Schedule S>
int parts_sent(const S& schedule) {
    int sum = 0;
    for (int k = 0; k < schedule.rounds(); ++k)
        for (int i = 0; i < schedule.sends(k); ++i) sum += schedule.send(k, i).parts.count();
    return sum;
}

template <rill::Schedule S>
int messages_sent(const S& schedule) {
    int sum = 0;
    for (int k = 0; k < schedule.rounds(); ++k) sum += schedule.sends(k);
    return sum;
}

}  // namespace topology_test
