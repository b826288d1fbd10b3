// A rank joins a job whose members train on, in virtual time.
#include <rill/collective/group.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/compare_states.hpp>
#include <rill/protocol/detail/state_exchange.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace faults = rill::faults;
using rill::buffer;
using rill::duration;
using rill::rank_t;

namespace {

using endpoint = rill::simulated::endpoint;
using exchange = rill::detail::state_exchange<endpoint>;

/// A model that each update changes everywhere.
struct model {
    std::vector<std::uint64_t> values;
    int unpacked = 0, applied = 0;

    explicit model(std::size_t n) : values(n, 1) {}
    static buffer update_of(std::uint64_t step) {
        const std::uint64_t value = rill::mix64(100, step);
        buffer bytes(sizeof value);
        std::memcpy(bytes.data(), &value, sizeof value);
        return bytes;
    }
    buffer pack() const {
        const auto bytes = std::as_bytes(std::span(values));
        return {bytes.begin(), bytes.end()};
    }
    void unpack(rill::byte_view bytes) {
        if (bytes.size() != values.size() * sizeof values[0]) throw std::runtime_error("a model of another size");
        std::memcpy(values.data(), bytes.data(), bytes.size());
        ++unpacked;
    }
    void apply(rill::byte_view update) {
        std::uint64_t value = 0;
        std::memcpy(&value, update.data(), sizeof value);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = rill::mix64(values[i] + i, value);
        ++applied;
    }
    static model at(std::size_t n, std::uint64_t step) {
        model made(n);
        for (std::uint64_t i = 1; i <= step; ++i) made.apply(update_of(i));
        return made;
    }
};

struct job {
    std::size_t n = 1000;
    std::uint64_t steps = 40;
    duration step_time = rill::milliseconds(2);
    rill::detail::state_transfer_options options{
        .build = 3, .piece_bytes = 1000, .window = 4, .patience = rill::milliseconds(100)};
    std::optional<std::uint64_t> have{};  ///< the step of the state that the joiner comes with

    static constexpr int members = 3;
    static constexpr rank_t joiner = members;
    static constexpr rill::channel done{.context = 4711, .tag = 1};
};

/// Trains, and then answers until the joiner has all.
template <class Net>
void be_member(Net& net, const job& of) {
    rill::detail::state_exchange<Net> with(net, of.options);
    with.serve({.epoch = 1, .members = {0, 1, 2}}, 0);
    model own(of.n);
    const auto offer = [&](std::uint64_t step) {
        if (with.wants_snapshot(step)) with.take_snapshot(step, own.pack());
    };
    for (std::uint64_t step = 1; step <= of.steps; ++step) {
        net.sleep_until(net.now() + of.step_time);
        own.apply(model::update_of(step));
        with.committed(step, model::update_of(step));
        offer(step);
    }
    const rill::time_point end = net.now() + rill::seconds(3);  // a fault may lose what the joiner says at last
    while (net.now() < end && !net.receive(job::joiner, job::done, net.now() + of.step_time)) offer(of.steps);
}

/// Joins; returns its state at the last step.
template <class Net>
model join(Net& net, const job& of, std::vector<rank_t> from = {0, 1, 2}) {
    rill::detail::state_exchange<Net> with(net, of.options);
    model own = of.have ? model::at(of.n, *of.have) : model(of.n);
    with.begin_fetch(0, std::move(from), of.have);
    with.fetch(own, rill::deadline::never);
    CHECK(own.values == model::at(of.n, *with.have()).values);
    with.fetch_step(own, of.steps, rill::deadline::never);
    CHECK(own.values == model::at(of.n, of.steps).values);
    for (rank_t member = 0; member < job::members; ++member)
        net.post(member, job::done, buffer(), rill::deadline::never);
    return own;
}

rill::simulated::network network_with(std::vector<rill::fault> plan, std::uint64_t seed = 0) {
    return {.latency = rill::microseconds(50),
            .bandwidth = 25'000'000,
            .faults = {.faults = std::move(plan), .seed = seed},
            .seed = seed,
            .longest = rill::seconds(1000)};
}

}  // namespace

TEST_CASE("state exchange: a rank joins while the members train on") {
    const job of;
    std::optional<model> made;
    rill::simulated::run(4, network_with({faults::start(3).at(rill::milliseconds(21))}), [&](auto& net) {
        if (net.rank() != job::joiner) return be_member(net, of);
        made = join(net, of);
    });
    CHECK(made->unpacked == 1);
    CHECK(made->applied >= 20);
}

TEST_CASE("state exchange: who comes back with a state of few steps ago gets those steps only") {
    job of;
    of.have = 6;
    std::optional<model> made;
    rill::simulated::run(4, network_with({faults::start(3).at(rill::milliseconds(21))}), [&](auto& net) {
        if (net.rank() != job::joiner) return be_member(net, of);
        made = join(net, of);
    });
    CHECK(made->unpacked == 0);
    CHECK(made->applied == 6 + 34);
}

TEST_CASE("state exchange: a state that does not fit replaces nothing, and the error says whose it was") {
    job of;
    rill::simulated::run(4, network_with({}), [&](auto& net) {
        if (net.rank() != job::joiner) return be_member(net, of);
        {
            exchange with(net, of.options);
            model other(of.n + 1);
            with.begin_fetch(0, {1, 2, 0}, std::nullopt);
            CHECK_THROWS_WITH_AS(with.fetch(other, rill::deadline::never),
                                 "rill: rank 3 gets no state: that of rank 1 does not fit: a model of another size",
                                 rill::peer_failure);
            CHECK(other.values == model(of.n + 1).values);
        }
        for (rank_t member = 0; member < job::members; ++member)
            net.post(member, job::done, buffer(), rill::deadline::never);
    });
}

TEST_CASE("state exchange: a rank of another build is refused") {
    job of;
    rill::simulated::run(4, network_with({}), [&](auto& net) {
        if (net.rank() != job::joiner) return be_member(net, of);
        job other = of;
        other.options.build = 4;
        CHECK_THROWS_WITH_AS(join(net, other, {2, 0, 1}),
                             "rill: rank 3 gets no state: rank 2 has a state of another kind, or other options",
                             rill::peer_failure);
        for (rank_t member = 0; member < job::members; ++member)
            net.post(member, job::done, buffer(), rill::deadline::never);
    });
}

TEST_CASE("state exchange: whatever message ends the nearest member, the next one goes on") {
    const job of;
    int killed = 0;
    for (std::uint64_t after = 0; after < 60; ++after) {
        CAPTURE(after);
        bool is_dead = true;
        std::optional<model> made;
        rill::simulated::run(4,
                             network_with({faults::kill(0).after(after), faults::start(3).at(rill::milliseconds(9))}),
                             [&](auto& net) {
                                 if (net.rank() == job::joiner) {
                                     made = join(net, of);
                                     return;
                                 }
                                 be_member(net, of);
                                 if (net.rank() == 0) is_dead = false;
                             });
        REQUIRE(made);
        killed += is_dead ? 1 : 0;
    }
    CHECK(killed > 40);
}

TEST_CASE("state exchange: random faults, also of the joiner itself") {
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        CAPTURE(seed);
        rill::random_sequence draw(rill::random_key{seed}.derive(9));
        const auto time = [&] { return rill::microseconds(static_cast<std::int64_t>(draw.below(90'000))); };
        std::vector<rill::fault> plan{faults::start(3).at(time())};
        const auto kinds = draw.below(16);
        if ((kinds & 1) != 0) plan.push_back(faults::kill(static_cast<rank_t>(draw.below(2))).at(time()));
        if ((kinds & 2) != 0) plan.push_back(faults::lose(0.02).between(1, 3).at(time()));
        if ((kinds & 4) != 0) {
            plan.push_back(faults::cut_between(0, 3).at(time()));
            plan.push_back(faults::heal_between(0, 3).at(time() + rill::milliseconds(100)));
        }
        if ((kinds & 8) != 0) {
            plan.push_back(faults::kill(3).at(plan[0].begins + time()));
            plan.push_back(faults::restart(3).at(rill::milliseconds(5)));
        }
        job of;
        of.options.catch_up_bytes = draw.below(2) == 0 ? 1U << 20 : 100;
        bool is_whole = false;
        rill::simulated::run(4, network_with(std::move(plan), seed), [&](auto& net) {
            if (net.rank() != job::joiner) return be_member(net, of);
            join(net, of);
            is_whole = true;
        });
        CHECK(is_whole);
    }
}

TEST_CASE("state exchange: among threads") {
    job of;
    of.step_time = {};
    for (int run = 0; run < 10; ++run) {
        bool is_alike = false;
        rill::in_process::run(4, [&](auto& net) {
            if (net.rank() != job::joiner) return be_member(net, of);
            is_alike = join(net, of).values == model::at(of.n, of.steps).values;
        });
        CHECK(is_alike);
    }
}

TEST_CASE("state exchange: a member whose state is not that of the majority is named, and gets that of the majority") {
    const job of;
    const rill::view crew{.epoch = 1, .members = {0, 1, 2}};
    rill::simulated::run(3, network_with({}), [&](auto& net) {
        using net_type = std::remove_reference_t<decltype(net)>;
        exchange with(net, of.options);
        with.serve(crew, 5);
        rill::subgroup<net_type> members(net, crew);
        rill::group workers{members, rill::topology::recursive_doubling{}};
        model own = model::at(of.n, 5);
        if (net.rank() == 1) ++own.values[77];
        const auto compared = [&] {
            return rill::compare_states(workers, crew, rill::checksum(own.pack()), 0, rill::on_difference::mend).odd;
        };
        const std::vector<rank_t> odd = compared();
        CHECK(odd == std::vector<rank_t>{1});
        if (net.rank() == 1) {
            with.begin_fetch(1, {0, 2}, std::nullopt);
            CHECK(with.fetch_step(own, 5, rill::deadline::never));
            for (const rank_t other : {0, 2}) net.post(other, job::done, buffer(), rill::deadline::never);
        } else {
            while (!net.receive(1, job::done, net.now() + of.step_time))
                if (with.wants_snapshot(5)) with.take_snapshot(5, own.pack());
        }
        CHECK(own.values == model::at(of.n, 5).values);
        CHECK(compared().empty());
    });
}

TEST_CASE("state exchange: who serves anew gives nothing of the state that it had before") {
    rill::simulated::run(2, network_with({}), [](auto& net) {
        const job of;
        exchange with(net, of.options);
        if (net.rank() == 0) {
            const rill::view both{.epoch = 1, .members = {0, 1}};
            with.serve(both, 5);
            with.take_snapshot(5, model::at(of.n, 4).pack());  // a wrong one
            with.serve_anew(both, 5);
            with.take_snapshot(5, model::at(of.n, 5).pack());
            CHECK(net.receive(1, job::done, net.now() + rill::seconds(5)));
            return;
        }
        net.sleep_until(net.now() + rill::milliseconds(1));
        model own(of.n);
        with.begin_fetch(1, {0}, std::nullopt);
        CHECK(with.fetch_step(own, 5, net.now() + rill::seconds(5)));
        CHECK(own.values == model::at(of.n, 5).values);
        net.post(0, job::done, buffer(), rill::deadline::never);
    });
}
