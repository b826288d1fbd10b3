// Value codings of the user's.
#include <rill/compress/own_values.hpp>

#include <rill/aggregate/sign_of_sum.hpp>
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/compress/difference.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/signs.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/protocol/rounds.hpp>
#include <rill/stream/frame.hpp>
#include <rill/testing/compressor_laws.hpp>
#include <rill/testing/value_coding_laws.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/ring_neighbours.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace own {

/// Multiples of `step`, from -127 to 127 times: a byte each.
struct steps {
    float step = 0.25F;

    static constexpr const char* name = "steps";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;

    static constexpr std::size_t size(std::size_t count, std::size_t) { return count; }
    template <class T>
    void encode(std::span<const T> values, rill::random_key, std::uint64_t, rill::byte_span out) const {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const double times = std::round(static_cast<double>(values[i]) / static_cast<double>(step));
            out[i] = static_cast<std::byte>(static_cast<std::int8_t>(std::clamp(times, -127.0, 127.0)));
        }
    }
    template <class T>
    void decode(rill::byte_view bytes, std::span<T> values) const {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<T>(static_cast<std::int8_t>(bytes[i])) * static_cast<T>(step);
    }
    template <class Visit>
    void visit_options(Visit&& visit) const {
        visit("step", step);
    }
    friend bool operator==(const steps&, const steps&) = default;
};

/// The bytes of each value in the opposite order: lossless.
struct turned {
    static constexpr const char* name = "turned";
    static constexpr bool is_lossless = true;
    static constexpr bool is_unbiased = true;

    static constexpr std::size_t size(std::size_t count, std::size_t element_bytes) { return count * element_bytes; }
    template <class T>
    static void encode(std::span<const T> values, rill::random_key, std::uint64_t, rill::byte_span out) {
        const rill::byte_view bytes = std::as_bytes(values);
        for (std::size_t i = 0; i < bytes.size(); ++i)
            out[i] = bytes[i / sizeof(T) * sizeof(T) + sizeof(T) - 1 - i % sizeof(T)];
    }
    template <class T>
    static void decode(rill::byte_view bytes, std::span<T> values) {
        encode(std::span<const std::byte>(bytes), std::as_writable_bytes(values), sizeof(T));
    }
    friend bool operator==(turned, turned) = default;

  private:
    static void encode(std::span<const std::byte> bytes, std::span<std::byte> out, std::size_t width) {
        for (std::size_t i = 0; i < bytes.size(); ++i) out[i] = bytes[i / width * width + width - 1 - i % width];
    }
};

template <class T, class V>
void check_laws(const V& coding) {
    rill::testing::for_each_value_coding_law<T>(coding,
                                                [](const char* name, const rill::testing::law_outcome& outcome) {
                                                    INFO(std::string(name));
                                                    CHECK_MESSAGE(outcome.held, outcome.what);
                                                });
}

template <class Body>
void on_transports(int ranks, Body body) {
    rill::in_process::run(ranks, body);
    rill::simulated::run(ranks, {}, body);
}

float vote(int rank, std::size_t i) { return (i * 7 + static_cast<std::size_t>(rank) * 5) % 3 == 0 ? 0.5F : -2.0F; }

}  // namespace own

using namespace rill;
using namespace own;

TEST_CASE_TEMPLATE("own_values: codings that keep the laws", T, float, double) {
    check_laws<T>(compress::signs{});
    check_laws<T>(steps{.step = 0.125F});
    check_laws<T>(turned{});
}

TEST_CASE("own_values: compressors with a coding of the user's keep the laws of compressors") {
    const auto check = [](const auto& policy) {
        testing::for_each_compressor_law<float>([&] { return policy.bind(1000); },
                                                [](const char* name, const testing::law_outcome& outcome) {
                                                    INFO(std::string(name));
                                                    CHECK_MESSAGE(outcome.held, outcome.what);
                                                });
    };
    using namespace compress;
    check(encoded{top_k{.density = 0.05}, own_values{steps{}}, packed_gaps{}});
    check(encoded{keep_all{}, own_values{turned{}}});
    check(error_feedback{encoded{top_k{.density = 0.05}, own_values{steps{}}, packed_gaps{}}});
    static_assert(!decltype(encoded{keep_all{}, own_values{signs{}}}.bind(1))::is_contractive);
}

TEST_CASE("own_values: a majority vote travels as one bit for each value, in both phases") {
    for (const int ranks : {1, 2, 3, 5, 8})
        for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{65}, std::size_t{1000}})
            on_transports(ranks, [&](auto& net) {
                using namespace compress;
                group workers{net, topology::split_allgather{}};
                auto codec = encoded{keep_all{}, own_values{signs{}}, raw_indices{}, own_values{signs{}}}.bind(n);
                std::vector<float> votes(n);
                for (std::size_t i = 0; i < n; ++i) votes[i] = vote(net.rank(), i);
                const receipt done = all_reduce(workers, votes, votes, codec, aggregate::sign_of_sum{});
                std::vector<float> expected(n);
                for (std::size_t i = 0; i < n; ++i) {
                    int balance = 0;
                    for (int r = 0; r < ranks; ++r) balance += vote(r, i) > 0 ? 1 : -1;
                    expected[i] = balance >= 0 ? 1.0F : -1.0F;
                }
                CHECK(votes == expected);
                const auto p = static_cast<std::size_t>(ranks), own = static_cast<std::size_t>(net.rank());
                const auto frame_of = [&](std::size_t part) {
                    return wire::header_bytes + (split(n, p, part).size() + 7) / 8;
                };
                std::size_t bytes = (p - 1) * frame_of(own);
                for (std::size_t part = 0; part < p; ++part)
                    if (part != own) bytes += frame_of(part);
                CHECK(done.wire.bytes_sent == bytes);
            });
}

TEST_CASE("own_values: sparse sums over every phase, with two codings of the user's") {
    for (const int ranks : {2, 3, 5}) {
        const auto check = [&](auto shape) {
            on_transports(ranks, [&](auto& net) {
                using namespace compress;
                const std::size_t n = 200;
                group workers{net, shape};
                auto codec =
                    encoded{top_k{.density = 0.1}, own_values{turned{}}, packed_gaps{}, own_values{steps{.step = 0.5F}}}
                        .bind(n);
                std::vector<float> input(n, 0), output(n), expected(n, 0);
                for (int r = 0; r < ranks; ++r)
                    for (std::size_t i = 0; i < 20; ++i) {
                        const std::size_t at = i * 9 + static_cast<std::size_t>(r);
                        const float value = static_cast<float>(i) / 4 + 1;
                        expected[at] += value;
                        if (r == net.rank()) input[at] = value;
                    }
                all_reduce(workers, input, output, codec);
                for (std::size_t i = 0; i < n; ++i) CHECK(std::abs(output[i] - expected[i]) <= 0.25F);
            });
        };
        check(topology::split_allgather{});
        check(topology::ring{});
        check(topology::tree{});
    }
}

TEST_CASE("own_values: in rounds and in gossip by differences") {
    simulated::run(5, {}, [](simulated::endpoint& net) {
        using namespace compress;
        group workers{net, topology::split_allgather{}};
        rounds steps_of{workers, topology::tree{2}};
        auto codec = encoded{keep_all{}, own_values{steps{.step = 0.5F}}}.bind(3);
        std::vector<float> model(1), update(3);
        while (steps_of.next(model)) {
            const auto r =
                steps_of.reduce(std::vector<float>(3, static_cast<float>(net.rank()) + 0.25F), update, codec);
            if (!steps_of.is_root()) continue;
            CHECK(update == std::vector<float>(3, 12.5F));  // each rank's value is rounded by 0.25, away from zero
            CHECK(r.error_bound >= 5 * 0.25);
            steps_of.end();
        }
        gossip replica{workers, topology::ring_neighbours{}};
        auto differences = difference{encoded{keep_all{}, own_values{steps{.step = 0.125F}}}, 0.5}.bind<double>(3);
        std::vector<double> mixed(3, net.rank());
        for (int round = 0; round < 40; ++round) replica.mix(mixed, differences);
        for (const double value : mixed) CHECK(std::abs(value - 2) < 0.5);
    });
}

TEST_CASE("own_values: a lossless coding changes no bit, with raw values or itself in the copy phase") {
    on_transports(3, [](auto& net) {
        using namespace compress;
        group workers{net, topology::split_allgather{}};
        std::vector<float> input(100), exact(100), output(100);
        for (std::size_t i = 0; i < 100; ++i)
            input[i] = std::sin(static_cast<float>(i) + static_cast<float>(net.rank()));
        all_reduce(workers, input, exact);
        auto at_source = encoded{keep_all{}, own_values{turned{}}}.bind(100);
        all_reduce(workers, input, output, at_source);
        CHECK(output == exact);
        auto in_both = encoded{keep_all{}, own_values{turned{}}, raw_indices{}, own_values{turned{}}}.bind(100);
        all_reduce(workers, input, output, in_both);
        CHECK(output == exact);
    });
}

TEST_CASE("own_values: all_gather of streams, of one rank too") {
    for (const int ranks : {1, 3})
        on_transports(ranks, [&](auto& net) {
            group workers{net, topology::split_allgather{}};
            stream<float> input(9), output(9);
            input.push_back(static_cast<std::uint32_t>(net.rank() * 2), -3.0F);
            all_gather(workers, input, output, compress::own_values{compress::signs{}}.coding());
            REQUIRE(output.count() == static_cast<std::size_t>(ranks));
            for (std::size_t i = 0; i < output.count(); ++i) {
                CHECK(output.indices()[i] == 2 * i);
                CHECK(output.values()[i] == -1);
            }
        });
}

TEST_CASE("own_values: codings of partial sums are raw, and a coding without functions is refused") {
    simulated::run(2, {}, [](simulated::endpoint& net) {
        group workers{net, topology::recursive_doubling{}};
        group halves{net, topology::split_allgather{}};
        stream<float> input(9), output(9);
        input.push_back(3, 1.5F);
        const stream_codings partial{.partial = compress::own_values{turned{}}.coding()};
        CHECK_THROWS_AS(all_reduce(workers, input, output, aggregate::sum{}, partial), contract_violation);
        CHECK_THROWS_AS(reduce(workers, input, output, 0, aggregate::sum{}, partial), contract_violation);
        CHECK_THROWS_AS(reduce_scatter(halves, input, output, aggregate::sum{}, partial), contract_violation);
    });
    const stream_codings without{.contribution = {}, .partial = {}, .copy = {.values = value_coding::own}};
    CHECK_THROWS_AS(simulated::run(3, {},
                                   [&](simulated::endpoint& net) {
                                       group workers{net, topology::ring{}};
                                       stream<float> input(9), output(9);
                                       input.push_back(3, 1.5F);
                                       all_reduce(workers, input, output, aggregate::sum{}, without);
                                   }),
                    contract_violation);
}

TEST_CASE("own_values: what a coding says of its own values does not count where the values are in another coding") {
    coding codes = compress::own_values{turned{}}.coding();
    CHECK(codes.is_lossless());
    codes.values = value_coding::bf16;
    CHECK_FALSE(codes.is_lossless());
    CHECK_FALSE(codes.is_unbiased());
}

TEST_CASE("own_values: ranks whose options differ all hear of it") {
    on_transports(3, [](auto& net) {
        using namespace compress;
        group workers{net, topology::split_allgather{}};
        auto codec = encoded{keep_all{}, own_values{steps{.step = net.rank() == 1 ? 0.5F : 0.25F}}}.bind(5);
        std::vector<float> values(5, 1);
        CHECK_THROWS_AS(all_reduce(workers, values, values, codec), mismatch);
    });
}

TEST_CASE("own_values: frames whose coding the reader does not know, or of another size, are refused") {
    arena memory;
    frame_scratch<float, std::uint32_t> room;
    const std::vector<float> values{1, -2, 3};
    const stream_view<float> view({0, 3}, std::span<const float>(values));
    const coding codes = compress::own_values{compress::signs{}}.coding();
    const wire::header head{.kind = operation::all_reduce, .dimension = 3, .weight = 1, .contributors = 1};
    const byte_view bytes = coded_frame(head, view, codes, random_key{}, memory);
    CHECK(bytes.size() == wire::header_bytes + 1);
    const frame read = frame_reader(byte_pieces(bytes)).next<float, std::uint32_t>();
    CHECK_THROWS_WITH_AS(content_of(read, room), doctest::Contains("values in a coding of another rank's own"),
                         protocol_error);
    CHECK_THROWS_WITH_AS(content_of(read.with(compress::own_values{steps{}}.coding().own), room),
                         doctest::Contains("too few or too many values"), protocol_error);
    const auto content = content_of(read.with(codes.own), room).values();
    CHECK(std::vector<float>(content.begin(), content.end()) == std::vector<float>{1, -1, 1});
}
