#include <rill/collective.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/session/session.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

using endpoint = rill::simulated::endpoint;

constexpr std::size_t npos = std::string::npos;

namespace {

/// A transport that can be made to say that it is of another epoch.
struct misled : rill::subgroup<endpoint> {
    explicit misled(endpoint& net) : rill::subgroup<endpoint>(net, {.epoch = 4, .members = {0, 1, 2}}) {}
    std::uint32_t epoch() const { return shown; }
    std::uint64_t next_context(std::uint64_t) { return ++made; }

    std::uint32_t shown = 4;
    std::uint64_t made = 0;
};

/// What each of three ranks throws.
template <class Body>
std::vector<std::string> thrown_by(Body body) {
    std::vector<std::string> said(3);
    rill::simulated::run(3, {}, [&](endpoint& net) {
        misled through(net);
        try {
            body(through);
        } catch (const rill::protocol_error& e) {
            said[static_cast<std::size_t>(net.rank())] = e.what();
        }
    });
    return said;
}

std::uint64_t context_of(auto& net, const char* name) { return rill::session(net, name, rill::seconds(1)).context(); }

}  // namespace

TEST_CASE("session: contexts follow from the view and the name, whatever this rank has made in other views") {
    std::vector<std::vector<std::uint64_t>> made(2);
    rill::simulated::run(2, {}, [&](endpoint& net) {
        auto& own = made[static_cast<std::size_t>(net.rank())];
        const auto make = [&](std::uint32_t epoch, const char* name) {
            rill::subgroup both{net, {.epoch = epoch, .members = {0, 1}}};
            return context_of(both, name);
        };
        if (net.rank() == 1)  // has lived through more
            for (int i = 0; i < 5; ++i) {
                make(0, "group");
                make(1, "rounds");
                context_of(net, "group");
            }
        own = {make(1, "group"), make(1, "group"), make(2, "group"), make(2, "rounds"), context_of(net, "rounds")};
    });
    CHECK(made[0] == made[1]);
    for (std::size_t i = 0; i < made[0].size(); ++i)
        for (std::size_t j = 0; j < i; ++j) CHECK(made[0][i] != made[0][j]);
}

TEST_CASE("session: a frame of another epoch is refused, and the message names its rank and both epochs") {
    const auto in_group = thrown_by([](misled& net) {
        if (net.rank() == 1) net.shown = 9;
        rill::group workers{net, rill::topology::ring{}, {.timeout = rill::seconds(10)}};
    });
    const auto in_rounds = thrown_by([](misled& net) {
        rill::group workers{net, rill::topology::star{}, {.timeout = rill::seconds(10)}};
        if (net.rank() == 1) net.shown = 9;
        rill::rounds steps{workers, rill::topology::star{}};
        std::vector<float> model(10), sum(10);
        while (steps.next(model)) steps.reduce(model, sum);
    });
    CHECK(in_group[0].find("rank 1 sent bytes that are no valid frame: it is of epoch 9, rank 0 is in epoch 4") !=
          npos);
    CHECK(in_rounds[0].find("rank 0 sent bytes that are no valid frame: it is of epoch 4, rank 1 is in epoch 9") !=
          npos);
    for (const auto& said : {in_group, in_rounds}) CHECK(said == std::vector<std::string>(3, said[0]));
}

namespace {

struct step {
    const rill::session<endpoint>& of;
    rill::detail::scene scene() const { return of.scene(5, 0, "step 5"); }
};

/// Three ranks run `body(session, step)` in the guard of a session, and then ask whether it goes on: what each throws,
/// first and then.
template <class Body>
std::vector<std::string> ends_of(rill::session_kind kind, Body body) {
    std::vector<std::string> said(3);
    rill::simulated::run(3, {}, [&](endpoint& net) {
        rill::session<endpoint> own(net, "test", rill::seconds(8), kind);
        const step here{own};
        std::string& all = said[static_cast<std::size_t>(net.rank())];
        const auto attempt = [&](auto act) {
            try {
                act();
                all += "goes on; ";
            } catch (const rill::error& e) {
                all += std::string(e.what()) + "; ";
            } catch (const std::exception& e) {
                all += std::string("own ") + e.what() + "; ";
            }
        };
        attempt([&] { own.guarded(here, [&] { body(own, here); }); });
        net.sleep_until(net.now() + rill::seconds(3));
        attempt([&] { own.require_going(); });
    });
    return said;
}

}  // namespace

TEST_CASE("session: an exception of one rank ends all, and the rank keeps its own") {
    const auto fail = [](auto& own, const step&) {
        if (own.rank() == 1) throw std::runtime_error("no more images");
    };
    const std::string told = "rill: step 5: rank 1: no more images; ";
    for (const auto kind : {rill::session_kind::closed, rill::session_kind::open}) {
        const auto said = ends_of(kind, fail);
        CHECK(said[0] == "goes on; " + told);
        CHECK(said[1] == "own no more images; " + told);
        CHECK(said[2] == said[0]);
    }
}

TEST_CASE("session: who has waited in vain leaves an open session alone, and ends a closed one") {
    const auto wait = [](auto& own, const step& here) {
        if (own.rank() == 1) throw_error(own.waited_in_vain(here.scene(), 2, ", which sends nothing"));
    };
    const std::string told = "rill: step 5: rank 1 waited 8.000000 s for rank 2, which sends nothing; ";
    CHECK(ends_of(rill::session_kind::open, wait) ==
          std::vector<std::string>{"goes on; goes on; ", told + told, "goes on; goes on; "});
    CHECK(ends_of(rill::session_kind::closed, wait) ==
          std::vector<std::string>{"goes on; " + told, told + told, "goes on; " + told});
}

TEST_CASE("session: a wait in vain is followed to where the standstill begins") {
    std::string said;
    rill::simulated::run(3, {}, [&](endpoint& net) {
        const rill::session<endpoint> own(net, "test", rill::seconds(8), rill::session_kind::open);
        if (net.rank() == 1) own.announce(rill::detail::long_wait::of_any_order(2));
        net.sleep_until(net.now() + rill::seconds(1));
        if (net.rank() == 0) {
            const rill::abort_notice found = own.waited_in_vain(step{own}.scene(), 1, ", which sends nothing", "; all");
            CHECK(found.culprit == 2);
            CHECK(found.other == 1);
            said = found.reason;
        }
        net.sleep_until(net.now() + rill::seconds(9));
    });
    CHECK(said == "step 5: rank 1 waited 8.000000 s for rank 2; all");
}
