#include <rill/aggregate/add.hpp>
#include <rill/collective/group.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/protocol/take_newest.hpp>
#include <rill/session/survivors.hpp>
#include <rill/straggler.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include "../support/sanitized.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace survival {

using namespace rill::straggler;
using vector = std::vector<double>;

/// What one rank saw of a training that others left.
struct account {
    std::map<std::uint64_t, vector> begins;  ///< the first model of each run, by how many ranks it has
    std::uint64_t begun_at = 0;              ///< the version with which the last run began
    std::uint64_t version = 0;
    std::uint64_t pushes = 0, counted = 0;
    vector model;
    bool has_ended = false;
};

/// Counts pushes, each of which adds 1 at the coordinate of its rank, until round `last`; dead ranks are survived.
template <class Trigger, class Net>
void count(Net& net, const Trigger& trigger, std::uint64_t last, account& seen) {
    const auto rank = static_cast<std::size_t>(net.rank());
    seen.model.assign(static_cast<std::size_t>(net.size()), 0);
    vector one(seen.model.size());
    one[rank] = 1;
    rill::survivors alive{net, rill::seconds(2)};
    alive.run([&](auto& members) {
        rill::group workers{members, rill::topology::ring{}, {.timeout = rill::seconds(2)}};
        const std::uint64_t before = rill::take_newest(workers, seen.model, seen.version);
        CHECK(before >= seen.version);
        seen.begun_at = before;
        seen.begins[static_cast<std::uint64_t>(members.size())] = seen.model;
        rill::partial_all_reduce replica{workers, trigger, bounded{8}, plain_sum{}, rill::aggregate::add{}, seen.model};
        const auto keep = [&] {
            while (const auto fate = replica.fate())
                seen.counted += fate->what == rill::push_fate::outcome::counted ? 1 : 0;
            seen.model.assign(replica.newest().begin(), replica.newest().end());
            seen.version = before + replica.version();
        };
        vector model(seen.model.size());
        try {
            while (const auto held = replica.pull(model)) {
                if (before + held->version >= last) {
                    replica.end();
                    continue;
                }
                net.compute(1);
                replica.push(one, *held);
                ++seen.pushes;
            }
        } catch (const rill::error&) {
            keep();
            throw;
        }
        keep();
    });
    seen.has_ended = true;
}

/// Rank `killed` ends after it has sent so many messages.
template <class Trigger>
void check_killed(const Trigger& trigger, int ranks, rill::rank_t killed, std::uint64_t messages) {
    const std::uint64_t last = 12;
    rill::simulated::network net{
        .latency = rill::microseconds(100),
        .computing = [](rill::rank_t rank, std::uint64_t, double) { return rill::milliseconds(3 + 2 * rank); },
        .faults = {.faults = {rill::faults::kill(killed).after(messages)}}};
    std::vector<account> all(static_cast<std::size_t>(ranks));
    rill::simulated::run(ranks, net,
                         [&](auto& own) { count(own, trigger, last, all[static_cast<std::size_t>(own.rank())]); });
    const account* first = nullptr;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const account& seen = all[rank];
        CAPTURE(rank);
        CHECK((seen.has_ended || static_cast<rill::rank_t>(rank) == killed));
        if (!seen.has_ended) continue;
        if (first == nullptr) first = &seen;
        CHECK(seen.version >= last);
        CHECK(seen.version == first->version);
        CHECK(seen.model == first->model);
        CHECK(seen.begins.rbegin()->second == first->begins.rbegin()->second);
        CHECK(seen.begins.begin()->second == first->begins.begin()->second);
        CHECK(seen.begun_at == first->begun_at);
        // A round that others completed may count a push that this rank was not told of.
        CHECK(seen.model[rank] >= static_cast<double>(seen.counted));
        CHECK(seen.model[rank] <= static_cast<double>(seen.pushes));
    }
    REQUIRE(first != nullptr);
}

}  // namespace survival

TEST_CASE("take_newest: survivors of a rank that dies after any message begin anew with one newest model") {
#ifdef RILL_TEST_SANITIZED
    constexpr unsigned stride = 37;
#else
    constexpr unsigned stride = 3;
#endif
    for (const rill::rank_t killed : {0, 1, 3})
        for (std::uint64_t messages = 0; messages < 220; messages += stride) {
            CAPTURE(killed);
            CAPTURE(messages);
            survival::check_killed(rill::straggler::two_choices{2}, 4, killed, messages);
            survival::check_killed(rill::straggler::majority{}, 4, killed, messages);
            survival::check_killed(rill::straggler::all_ready{}, 5, killed, messages);
        }
}

TEST_CASE("take_newest: gives all ranks the model of the lowest rank with the highest version") {
    rill::in_process::run(5, [](auto& net) {
        rill::group workers{net, rill::topology::tree{}};
        for (const std::vector<std::uint64_t>& versions : {std::vector<std::uint64_t>{0, 0, 0, 0, 0},
                                                           {3, 7, 7, 1, 7},
                                                           {1, 2, 3, 4, 5},
                                                           {9, 8, 9, 9, 9},
                                                           {7, 0, (std::uint64_t{1} << 63U) + 5, 1, 7}}) {
            std::vector<float> model(17, static_cast<float>(net.rank()));
            const auto own = static_cast<std::size_t>(net.rank());
            const auto highest = std::max_element(versions.begin(), versions.end());
            CHECK(rill::take_newest(workers, model, versions[own]) == *highest);
            CHECK(model == std::vector<float>(17, static_cast<float>(highest - versions.begin())));
        }
    });
}
