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

/// Two of three ranks.
rill::view scattered(int size) {
    rill::view some{.epoch = 7};
    for (rank_t i = 0; i < size; ++i) some.members.push_back(3 * i / 2 + 1);
    return some;
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

/// Runs a body on a subgroup; its errors leave in ranks of the parent.
void on_members(auto& net, const rill::view& members, auto&& body) {
    rill::subgroup group{net, members};
    try {
        body(group);
    } catch (const rill::error& thrown) {
        throw_error(group.outward(thrown.notice()));
    }
}

/// What `run()` throws, in ranks of the members.
void in_their_ranks(const rill::view& of, auto&& run) {
    try {
        run();
    } catch (const rill::error& thrown) {
        rill::abort_notice notice = thrown.notice();
        notice.culprit = rill::no_rank;
        for (std::size_t i = 0; i < of.members.size(); ++i)
            if (of.members[i] == thrown.culprit()) notice.culprit = static_cast<rank_t>(i);
        throw_error(notice);
    }
}

/// Runs a body on a subgroup of some ranks of a larger group; the others end at once.
auto within(auto run) {
    return [run](int ranks, auto&& body) {
        const rill::view members = scattered(ranks);
        const auto take_part = [&](auto& net) {
            if (members.contains(net.rank())) on_members(net, members, body);
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

TEST_CASE("a subgroup of some ranks of a subgroup of some keeps the laws of a transport") {
    auto of_simulated = limits;
    of_simulated.same_first_notice = false;
    check_laws(within(within(simulated)), of_simulated);
}

TEST_CASE("ranks are numbered by their position among the members") {
    simulate(4, [](auto& net) {
        if (net.rank() == 1) return;
        const rill::view members{.members = {0, 2, 3}};
        rill::subgroup group{net, members};
        CHECK(group.size() == 3);
        CHECK(group.view() == members);
        CHECK(members.members[static_cast<std::size_t>(group.rank())] == net.rank());
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
            rill::subgroup group{net, {.members = {2, 3}}};
            throw_error(group.abort({.context = 9, .operation = 4, .culprit = 1, .reason = "rank 1 has had enough"}));
        };
    };
    std::vector<rank_t> simulated_ones(2, rill::no_rank), threads(2, rill::no_rank);
    CHECK_THROWS_AS(simulate(4, body(simulated_ones)), rill::peer_failure);
    CHECK_THROWS_AS(use_threads(4, body(threads)), rill::peer_failure);
    CHECK(simulated_ones == std::vector<rank_t>{3, 3});
    CHECK(threads == std::vector<rank_t>{3, 3});
}

TEST_CASE("subgroups of other members, another epoch or another name do not collide, those of one view are one") {
    simulate(3, [](auto& net) {
        const rill::view all{.members = {0, 1, 2}}, next{.epoch = 1, .members = {0, 1, 2}}, two{.members = {0, 1}};
        if (net.rank() == 2) return;
        rill::subgroup first{net, all}, again{net, all}, later{net, next}, fewer{net, two}, named{net, all, "spare"};
        const auto post = [](auto& through, std::size_t size) { CHECK(through.post(1, on, rill::buffer(size))); };
        const auto size = [](auto& through) { return through.receive(0, on, deadline::never)->pieces().size_bytes(); };
        if (net.rank() == 0) {
            post(net, 1);
            post(first, 2);
            post(later, 3);
            post(fewer, 4);
            post(named, 5);
        } else {
            CHECK(size(named) == 5);
            CHECK(size(fewer) == 4);
            CHECK(size(later) == 3);
            CHECK(size(again) == 2);
            CHECK(size(net) == 1);
        }
        CHECK(first.next_context(0) != again.next_context(0));
    });
}

TEST_CASE("errors name ranks of the subgroup, and no_rank for a rank outside") {
    int told = 0;
    const auto body = [&](auto& net) {
        if (net.rank() == 0) {
            net.sleep_until({1'000'000});
            throw std::runtime_error("outside");
        }
        rill::subgroup group{net, {.members = {1, 2, 3}}};
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
            group.sleep_until({9'999'999});
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
                rill::subgroup group{net, {.members = members}};
            } catch (const rill::contract_violation& thrown) {
                text = thrown.what();
            }
        });
        return text;
    };
    CHECK(refused({0, 1}).find("member 1 is no rank of the parent, which has 1") != std::string::npos);
    CHECK(refused({-1, 0}).find("member -1 is no rank") != std::string::npos);
    CHECK(refused({0, 0}).find("rank 0 is not above the member before it") != std::string::npos);
    CHECK(refused({}).find("rank 0 is not among the members") != std::string::npos);
    CHECK(refused({0}).empty());
}

TEST_CASE("a peer outside the subgroup is refused") {
    simulate(2, [](auto& net) {
        rill::subgroup group{net, {.members = {net.rank()}}};
        CHECK_THROWS_AS(group.post(1, on, rill::buffer(1)), rill::contract_violation);
        CHECK_THROWS_AS(group.receive(1, on, deadline::immediate), rill::contract_violation);
    });
}

TEST_CASE("members of one epoch meet, whatever each has made in another, and those of two never do") {
    rill::simulated::run(2, {}, [](auto& net) {
        const auto heard = [&](std::uint32_t epoch) {
            rill::subgroup both{net, {.epoch = epoch, .members = {0, 1}}};
            const rill::channel channel{both.next_context(0), 0};
            both.post(1 - net.rank(), channel, rill::buffer(3));
            return both.receive(1 - net.rank(), channel, net.now() + rill::seconds(1)).has_value();
        };
        if (net.rank() == 0) rill::subgroup{net, {.members = {0, 1}}}.next_context(0);
        CHECK(heard(7));
        CHECK(!heard(net.rank() == 0 ? 8 : 9));
    });
}
