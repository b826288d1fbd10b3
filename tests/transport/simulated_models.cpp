#include <rill/transport/read_compute_trace.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>
#include "../support/scratch.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim = rill::simulated;
using rill::deadline;
using rill::nanoseconds;

namespace {

constexpr rill::channel on{.context = 0, .tag = 7};

/// When rank `ranks - 1` has received a message of `bytes` from each other rank; all send at once.
std::vector<std::int64_t> arrivals_at_last(int ranks, const sim::network& net, std::size_t bytes) {
    std::vector<std::int64_t> times;
    sim::run(ranks, net, [&](sim::endpoint& self) {
        const rill::rank_t last = self.size() - 1;
        if (self.rank() != last) {
            self.post(last, on, rill::buffer(bytes));
            return;
        }
        std::vector<rill::rank_t> others;
        for (rill::rank_t r = 0; r < last; ++r) others.push_back(r);
        for (rill::rank_t r = 0; r < last; ++r) {
            REQUIRE(self.receive(others, on, deadline::never));
            times.push_back(self.now().ns);
        }
    });
    return times;
}

rill::byte_view bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string refusal_of(const std::string& text) {
    const scratch_directory folder;
    return message_of<std::runtime_error>([&] { rill::read_compute_trace(folder.write("times", bytes_of(text))); });
}

}  // namespace

TEST_CASE("links by function: fast inside a group, slow between") {
    const rill::grouped_links racks{.group = 2,
                                    .inside = {.latency = nanoseconds(10), .bandwidth = 1'000'000'000},
                                    .between = {.latency = nanoseconds(500), .bandwidth = 100'000'000}};
    CHECK(arrivals_at_last(4, {.links = racks}, 100) == std::vector<std::int64_t>{110, 1500, 1500});
}

TEST_CASE("links from a matrix, each direction its own") {
    std::vector<rill::network_link> rows(4);
    rows[0 * 2 + 1] = {.latency = nanoseconds(7), .bandwidth = 0};
    rows[1 * 2 + 0] = {.latency = nanoseconds(90), .bandwidth = 1'000'000'000};
    const rill::matrix_links links(2, rows);
    CHECK(arrivals_at_last(2, {.links = links}, 50) == std::vector<std::int64_t>{7});
    sim::run(2, {.links = links}, [](sim::endpoint& net) {
        if (net.rank() == 1) net.post(0, on, rill::buffer(50));
        if (net.rank() == 0) {
            net.receive(1, on, deadline::never);
            CHECK(net.now().ns == 140);
        }
    });
}

TEST_CASE("a model is asked once for each link that is used") {
    int asked = 0;
    const auto model = [&](rill::rank_t, rill::rank_t) {
        ++asked;
        return rill::network_link{.latency = nanoseconds(1), .bandwidth = 0};
    };
    sim::run(3, {.links = model}, [](sim::endpoint& net) {
        for (int i = 0; i < 5; ++i)
            if (net.rank() == 0)
                net.post(2, on, rill::buffer(1));
            else if (net.rank() == 2)
                net.receive(0, on, deadline::never);
    });
    CHECK(asked == 1);
}

TEST_CASE("a card that receives from one sender at a time") {
    const sim::network free{.latency = nanoseconds(10), .bandwidth = 0};
    CHECK(arrivals_at_last(4, free, 100) == std::vector<std::int64_t>{10, 10, 10});
    sim::network single = free;
    single.cards = [](rill::rank_t) { return rill::network_card::single_receive(1'000'000'000); };
    CHECK(arrivals_at_last(4, single, 100) == std::vector<std::int64_t>{110, 210, 310});
    sim::network slow_links = single;
    slow_links.bandwidth = 500'000'000;  // while one message arrives slowly, no other is received
    CHECK(arrivals_at_last(3, slow_links, 100) == std::vector<std::int64_t>{210, 310});
}

TEST_CASE("a full duplex card sends one message after the other, and forwards one without delay") {
    const sim::network net{.latency = nanoseconds(10), .bandwidth = 0, .cards = [](rill::rank_t) {
                               return rill::network_card::full_duplex(1'000'000'000);
                           }};
    CHECK(arrivals_at_last(2, net, 100) == std::vector<std::int64_t>{110});
    std::vector<std::int64_t> times(3);
    sim::run(3, net, [&](sim::endpoint& self) {
        if (self.rank() == 0) {
            self.post(1, on, rill::buffer(100));
            self.post(2, on, rill::buffer(100));
        } else {
            self.receive(0, on, deadline::never);
            times[static_cast<std::size_t>(self.rank())] = self.now().ns;
        }
    });
    CHECK(times == std::vector<std::int64_t>{0, 110, 210});
}

TEST_CASE("compute takes the time of its model, and no time without one") {
    const auto elapsed = [](const rill::compute_model& model, double work, int times = 1) {
        return sim::run(1, {.computing = model},
                        [&](sim::endpoint& net) {
                            for (int i = 0; i < times; ++i) rill::compute(net, work);
                        })
            .elapsed.ns;
    };
    CHECK(elapsed({}, 10) == 0);
    CHECK(elapsed(rill::constant_compute{nanoseconds(3)}, 10, 2) == 60);
    CHECK(elapsed(rill::slowed_ranks{rill::constant_compute{nanoseconds(3)}, {2.5}}, 10) == 75);
    CHECK(elapsed(rill::compute_trace({{nanoseconds(5), nanoseconds(8)}}), 1, 3) == 18);
    const rill::uniform_compute uniform{.least = nanoseconds(100), .most = nanoseconds(200), .seed = 4};
    CHECK(elapsed(uniform, 1) == uniform(0, 0, 1).ns);
    double sum = 0;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        const auto drawn = uniform(3, i, 1).ns;
        REQUIRE((100 <= drawn && drawn <= 200));
        sum += static_cast<double>(drawn);
    }
    CHECK(sum / 10'000 == doctest::Approx(150).epsilon(0.02));
    CHECK_THROWS_AS(rill::slowed_ranks{}(0, 0, 1), rill::contract_violation);
    CHECK_THROWS_AS(rill::compute_trace({{nanoseconds(5), nanoseconds(-1)}}), rill::contract_violation);
}

TEST_CASE("shifted exponential times have their shift, mean and spread") {
    const rill::shifted_exponential model{.shift = nanoseconds(50'000), .tail = nanoseconds(20'000), .seed = 9};
    double sum = 0, squares = 0;
    constexpr int count = 20'000;
    for (std::uint64_t i = 0; i < count; ++i) {
        const double t = model(1, i, 4).seconds() * 1e9;
        REQUIRE(t >= 200'000);
        sum += t;
        squares += t * t;
    }
    const double mean = sum / count;
    CHECK(mean == doctest::Approx(280'000).epsilon(0.01));
    CHECK(std::sqrt(squares / count - mean * mean) == doctest::Approx(80'000).epsilon(0.03));
    CHECK(model(1, 7, 4) == model(1, 7, 4));
    CHECK(model(1, 7, 4) != model(2, 7, 4));
}

TEST_CASE("a trace of compute times from a file") {
    const scratch_directory folder;
    const std::string text = "# seconds\n0.5, 1e-3\n\n2 3 # of rank 1\n";
    const rill::compute_trace trace = rill::read_compute_trace(folder.write("times", bytes_of(text)));
    CHECK(trace(0, 0, 1).ns == 500'000'000);
    CHECK(trace(0, 3, 1).ns == 1'000'000);
    CHECK(trace(1, 1, 1).ns == 3'000'000'000);
    CHECK(trace(2, 0, 1).ns == 500'000'000);
    CHECK(has(refusal_of("1\n2 x\n"), "line 2: 'x' is no number"));
    CHECK(has(refusal_of("1 -2\n"), "line 1: '-2' is not a time, which must be finite and not negative"));
    CHECK(has(refusal_of("1 inf\n"), "line 1: 'inf' is not a time, which must be finite and not negative"));
    CHECK(has(refusal_of("nan\n"), "line 1: 'nan' is not a time, which must be finite and not negative"));
    CHECK(has(refusal_of("1\n1e999\n"), "line 2: '1e999' is beyond the numbers that can be read"));
    CHECK(has(refusal_of("0x10\n"), "line 1: '0x10' is no number"));
    CHECK(has(refusal_of("+1\n"), "line 1: '+1' is no number"));
    CHECK(has(refusal_of("1;2\n"), "line 1: '1;2' is no number"));
    CHECK(has(refusal_of(std::string("1 \0 2\n", 6)), "line 1: '?' is no number"));
    CHECK(has(refusal_of(std::string("1\0002\n", 4)), "line 1: '1?2' is no number"));
    CHECK(has(refusal_of("# none\n"), "holds no times"));
    CHECK_THROWS_WITH_AS(rill::read_compute_trace("/nonexistent"), "rill: /nonexistent: cannot be read",
                         std::runtime_error);
}

TEST_CASE("the report lists how each rank spent its time and what each link carried") {
    const sim::network net{.latency = nanoseconds(100),
                           .bandwidth = 1'000'000'000,
                           .computing = rill::constant_compute{nanoseconds(1000)}};
    const sim::report all = sim::run(3, net, [](sim::endpoint& self) {
        if (self.rank() == 0) {
            self.compute(2);
            self.post(1, on, rill::buffer(50));
            self.post(1, on, rill::buffer(10));
        } else if (self.rank() == 1) {
            self.receive(0, on, deadline::never);
            self.receive(0, on, deadline::never);
        }
    });
    CHECK(all.elapsed.ns == 2160);
    REQUIRE(all.ranks.size() == 3);
    CHECK(all.ranks[0] == sim::rank_report{.computing = nanoseconds(2000), .ended = nanoseconds(2000)});
    CHECK(all.ranks[1] == sim::rank_report{.waiting = nanoseconds(2160), .ended = nanoseconds(2160)});
    CHECK(all.ranks[2] == sim::rank_report{});
    CHECK(all.links == std::vector<sim::link_report>{{.source = 0, .receiver = 1, .messages = 2, .bytes = 60}});
}
