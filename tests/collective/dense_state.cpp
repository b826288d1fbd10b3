#include "../support/scripted.hpp"

#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/topology/split_allgather.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace rill;
using rill::testing_support::scripted;

namespace {

constexpr std::size_t dimension = 96;

/// A frame of part `part` of three, all of whose values are `value`.
buffer frame_of(int part, float value, const coding& codes, std::uint32_t contributors) {
    stream<float> s;
    const segment range = split(dimension, 3, static_cast<std::size_t>(part));
    for (float& x : s.make_dense(range)) x = value;
    const wire::header head{
        .kind = operation::all_reduce, .dimension = dimension, .weight = 1, .contributors = contributors};
    arena memory;
    const byte_view bytes = coded_frame(head, s.view(), codes, random_key{1}, memory);
    return {bytes.begin(), bytes.end()};
}

/// What rank 0 of three computes from the others' messages: their contributions to its part, then their own finished
/// parts.
std::string outcome(const coding& codes, std::uint32_t contributors) {
    scripted net(0, 3);
    net.expect(frame_of(0, 2, codes, contributors), {}, true);
    net.expect(frame_of(0, 4, codes, contributors), {}, true);
    net.expect(frame_of(1, 7, {}, 3), {}, true);
    net.expect(frame_of(2, 7, {}, 3), {}, true);
    std::vector<float> values(dimension, 1);
    group workers{net, topology::split_allgather{}};
    try {
        all_reduce(workers, values, values);
    } catch (const protocol_error& e) {
        return e.what();
    }
    return values == std::vector<float>(dimension, 7) ? "7 everywhere" : std::to_string(values[0]);
}

}  // namespace

TEST_CASE("a dense fold takes raw frames, and refuses coded ones") {
    CHECK(outcome({}, 1) == "7 everywhere");
    for (const value_coding lossy : {value_coding::bf16, value_coding::qsgd4})
        CHECK(outcome({.values = lossy}, 1) ==
              "rill: all_reduce (operation 1): rank 1 sent rounded values where exact ones were due");
}

TEST_CASE("a dense fold refuses a sparse frame") {
    stream<float> sparse;
    sparse.clear(split(dimension, 3, 0));
    sparse.push_back(0, 5);
    const wire::header head{.kind = operation::all_reduce, .dimension = dimension, .weight = 1, .contributors = 1};
    for (const index_coding indices : {index_coding::raw, index_coding::huffman}) {
        arena memory;
        const byte_view bytes = coded_frame(head, sparse.view(), {.indices = indices}, random_key{1}, memory);
        scripted net(0, 3);
        net.expect({bytes.begin(), bytes.end()}, {}, true);
        net.expect(frame_of(0, 4, {}, 1), {}, true);
        std::vector<float> values(dimension, 1);
        group workers{net, topology::split_allgather{}};
        CHECK_THROWS_WITH_AS(all_reduce(workers, values, values),
                             "rill: all_reduce (operation 1): rank 1 sent a sparse stream where a dense one was due",
                             protocol_error);
    }
}

TEST_CASE("a frame cannot stand for more contributions than there are ranks") {
    CHECK(outcome({}, 3) == "7 everywhere");
    CHECK(outcome({}, 4) == "rill: all_reduce (operation 1): rank 1 claims 4 contributors among 3 ranks");
}
