#include <rill/concept/shared_memory.hpp>
#include <rill/testing/transport_laws.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

using rill::deadline;
using rill::rank_t;

namespace {

constexpr std::size_t mailbox_bytes = 4096;
constexpr rill::channel on{.context = 0, .tag = 1};

void simulate(int ranks, auto&& body) { rill::simulated::run(ranks, {.mailbox_bytes = mailbox_bytes}, body); }
void use_threads(int ranks, auto&& body) { rill::in_process::run(ranks, body, {.mailbox_bytes = mailbox_bytes}); }

std::vector<rank_t> reversed(int size) {
    std::vector<rank_t> members;
    for (rank_t rank = size; rank-- > 0;) members.push_back(rank);
    return members;
}

/// Two of three ranks, out of order.
std::vector<rank_t> scattered(int size) {
    std::vector<rank_t> members;
    for (rank_t i = 0; i < size; ++i) members.push_back(3 * ((i + 1) % size) / 2 + 1);
    return members;
}

void check_laws(auto&& runner, const rill::testing::transport_limits& limits) {
    int laws = 0;
    rill::testing::for_each_law(runner, limits, [&](const char* name, const rill::testing::law_outcome& outcome) {
        ++laws;
        CHECK_MESSAGE(outcome.held, std::string(name) << ": " << outcome.what);
    });
    CHECK(laws > 40);
}

constexpr rill::testing::transport_limits limits{
    .mailbox_bytes = mailbox_bytes, .large_bytes = 100'000, .largest_bytes = 1'000'000, .most_ranks = 16};

/// Runs a body on a subgroup; its errors leave it in ranks of the parent.
void on_members(auto& net, const std::vector<rank_t>& members, auto&& body) {
    rill::subgroup group{net, members};
    try {
        body(group);
    } catch (const rill::error& thrown) {
        throw_error(group.outward(thrown.notice()));
    }
}

/// Rethrows what `run()` throws, in ranks of the members.
void in_their_ranks(const std::vector<rank_t>& members, auto&& run) {
    try {
        run();
    } catch (const rill::error& thrown) {
        rill::abort_notice notice = thrown.notice();
        notice.culprit = rill::no_rank;
        for (std::size_t i = 0; i < members.size(); ++i)
            if (members[i] == thrown.culprit()) notice.culprit = static_cast<rank_t>(i);
        throw_error(notice);
    }
}

/// Runs a body on a subgroup of all ranks in reverse order.
auto backwards(auto run) {
    return [run](int ranks, auto&& body) {
        const std::vector<rank_t> members = reversed(ranks);
        in_their_ranks(members, [&] { run(ranks, [&](auto& net) { on_members(net, members, body); }); });
    };
}

/// Runs a body on a subgroup of some ranks of a larger group; the others end at once.
auto within(auto run) {
    return [run](int ranks, auto&& body) {
        const std::vector<rank_t> members = scattered(ranks);
        const auto take_part = [&](auto& net) {
            for (const rank_t member : members)
                if (member == net.rank()) on_members(net, members, body);
        };
        in_their_ranks(members, [&] { run(3 * ranks / 2 + 2, take_part); });
    };
}

constexpr auto simulated = [](int ranks, auto&& body) { simulate(ranks, body); };
constexpr auto in_process = [](int ranks, auto&& body) { use_threads(ranks, body); };

}  // namespace

static_assert(rill::ConcurrentTransport<rill::subgroup<rill::simulated::endpoint>>);
static_assert(!rill::SharedMemoryTransport<rill::subgroup<rill::in_process::endpoint>>);
static_assert(rill::ConcurrentTransport<rill::subgroup<rill::subgroup<rill::in_process::endpoint>>>);

TEST_CASE("a subgroup of some ranks keeps the laws of a transport") { check_laws(within(in_process), limits); }

TEST_CASE("a subgroup of some ranks of a reversed subgroup of all keeps the laws of a transport") {
    check_laws(within(backwards(simulated)), limits);
}

TEST_CASE("ranks are numbered by their position among the members") {
    simulate(4, [](auto& net) {
        if (net.rank() == 1) return;
        const rank_t members[] = {2, 0, 3};
        rill::subgroup group{net, members};
        CHECK(group.size() == 3);
        CHECK(members[group.rank()] == net.rank());
        if (group.rank() == 0) {
            const rill::buffer lent(3);
            auto sent = group.post(2, on, rill::byte_view(lent));
            sent.wait(deadline::never);
            CHECK(group.counted() == rill::traffic{.messages_sent = 1, .bytes_sent = 3});
        } else if (group.rank() == 2) {
            CHECK(net.rank() == 3);
            CHECK(group.receive(0, on, deadline::never)->source() == 0);
        }
    });
}

TEST_CASE("an error that leaves the scope of a subgroup names the same rank in ranks of the parent") {
    const auto body = [](std::vector<rank_t>& blamed) {
        return [&blamed](auto& net) {
            const auto self = static_cast<std::size_t>(net.rank());
            if (self < 2) {
                try {
                    net.receive(3, on, deadline::never);
                } catch (const rill::error& thrown) {
                    blamed[self] = thrown.culprit();
                }
                return;
            }
            const rank_t members[] = {2, 3};
            rill::subgroup group{net, members};
            throw_error(group.abort({.context = 9, .operation = 4, .culprit = 1, .reason = "rank 1 has had enough"}));
        };
    };
    std::vector<rank_t> simulated_ones(2, rill::no_rank), threads(2, rill::no_rank);
    CHECK_THROWS_AS(simulate(4, body(simulated_ones)), rill::peer_failure);
    CHECK_THROWS_AS(use_threads(4, body(threads)), rill::peer_failure);
    CHECK(simulated_ones == std::vector<rank_t>{3, 3});
    CHECK(threads == std::vector<rank_t>{3, 3});
}

TEST_CASE("groups of overlapping or equal members do not interfere") {
    simulate(3, [](auto& net) {
        const rank_t all[] = {0, 1, 2};
        const rank_t rotated[] = {1, 2, 0};
        rill::subgroup first{net, all}, second{net, all}, third{net, rotated};
        const auto post = [](auto& through, rank_t peer, std::size_t size) {
            CHECK(through.post(peer, on, rill::buffer(size)));
        };
        if (net.rank() == 0) {
            post(net, 1, 1);
            post(first, 1, 2);
            post(second, 1, 3);
            post(third, 0, 4);
        } else if (net.rank() == 1) {
            const auto size = [](auto& through, rank_t peer) {
                return through.receive(peer, on, deadline::never)->pieces().size_bytes();
            };
            CHECK(size(third, 2) == 4);
            CHECK(size(second, 0) == 3);
            CHECK(size(first, 0) == 2);
            CHECK(size(net, 0) == 1);
        }
    });
}

TEST_CASE("errors name ranks of the subgroup, and no_rank for a rank outside") {
    int told = 0;
    const auto body = [&](auto& net) {
        if (net.rank() == 0) {
            net.sleep_until({1000});
            throw std::runtime_error("outside");
        }
        const rank_t members[] = {3, 2, 1};
        rill::subgroup group{net, members};
        if (group.rank() == 0) {
            const rill::abort_notice notice{.context = 8, .culprit = 2, .other = 1, .reason = "rank 2 is odd"};
            CHECK(group.abort(notice) == notice);
            CHECK(net.aborted(8) == std::nullopt);
        }
        try {
            group.receive(0, {8, 1}, deadline::never);
        } catch (const rill::peer_failure& thrown) {
            CHECK(thrown.notice() ==
                  rill::abort_notice{.context = 8, .culprit = 2, .other = 1, .reason = "rank 2 is odd"});
            ++told;
        }
        try {
            group.sleep_until({9999});
        } catch (const rill::peer_failure& thrown) {
            CHECK(thrown.culprit() == rill::no_rank);
            CHECK(std::string(thrown.what()) == "rill: rank 0 failed: outside");
            ++told;
        }
    };
    CHECK_THROWS_WITH(simulate(4, body), "outside");
    CHECK(told == 6);
}

TEST_CASE("wrong members are refused") {
    const auto refused = [](std::vector<rank_t> members) {
        std::string text;
        simulate(1, [&](auto& net) {
            try {
                rill::subgroup group{net, members};
            } catch (const rill::contract_violation& thrown) {
                text = thrown.what();
            }
        });
        return text;
    };
    CHECK(refused({0, 1}).find("member 1 is no rank of the parent, which has 1") != std::string::npos);
    CHECK(refused({-1, 0}).find("member -1 is no rank") != std::string::npos);
    CHECK(refused({0, 0}).find("rank 0 is a member twice") != std::string::npos);
    CHECK(refused({}).find("rank 0 is not among the members") != std::string::npos);
    CHECK(refused({0}).empty());
}

TEST_CASE("a peer outside the subgroup is refused") {
    simulate(2, [](auto& net) {
        const rank_t members[] = {net.rank()};
        rill::subgroup group{net, members};
        CHECK_THROWS_AS(group.post(1, on, rill::buffer(1)), rill::contract_violation);
        CHECK_THROWS_AS(group.receive(1, on, deadline::immediate), rill::contract_violation);
    });
}

TEST_CASE("members with different session numbers never meet, however many groups each has made before") {
    rill::simulated::run(2, {}, [](auto& net) {
        const std::vector<rill::rank_t> members{0, 1};
        const auto heard = [&](std::uint64_t session) {
            rill::subgroup both{net, members, session};
            const rill::channel channel{both.next_context(0), 0};
            both.post(1 - net.rank(), channel, rill::buffer(3));
            return both.receive(1 - net.rank(), channel, net.now() + rill::seconds(1)).has_value();
        };
        if (net.rank() == 0) rill::subgroup unpaired{net, members};
        CHECK(heard(7));
        CHECK(!heard(net.rank() == 0 ? 8 : 9));
    });
}
