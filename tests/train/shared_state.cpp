#include <rill/core/bytes.hpp>
#include <rill/train/data_error.hpp>
#include <rill/train/sampler.hpp>
#include <rill/train/shared_state.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

using namespace rill;
using namespace rill::train;

namespace {

struct training {
    std::vector<float> parameters;
    sampler samples;
    std::vector<std::uint64_t> step{0};
    int applied = 0;

    explicit training(std::size_t n = 10, std::size_t rows = 50)
        : parameters(n, 1.0F), samples({.rows = rows, .batch = 5, .key = {1}}) {}
    auto shared() {
        return shared_state([] { return buffer(3); }, [this](byte_view) { ++applied; }, parameters, samples, step);
    }
};

}  // namespace

TEST_CASE("shared_state: what one rank packs, another one has after unpack") {
    training a, b;
    a.parameters[3] = 0.25F;
    a.step[0] = 7;
    for (int i = 0; i < 13; ++i) a.samples.next();
    b.shared().unpack(a.shared().pack());
    CHECK(b.parameters == a.parameters);
    CHECK(b.step == a.step);
    CHECK(b.samples.epoch() == 1);
    CHECK(b.samples.step() == 3);
    b.shared().apply({});
    CHECK(b.applied == 1);
    CHECK(b.shared().changes().size() == 3);
    CHECK(a.shared().pack() == b.shared().pack());
}

TEST_CASE("shared_state: a state that does not fit changes nothing, whatever part it is that does not") {
    training mine;
    mine.parameters[0] = 3.0F;
    const buffer before = mine.shared().pack();
    training longer(11), others(10, 60);  // the second part of the latter does not fit
    others.parameters[0] = 4.0F;
    CHECK_THROWS_AS(mine.shared().unpack(longer.shared().pack()), data_error);
    CHECK(mine.shared().pack() == before);
    CHECK_THROWS_WITH_AS(mine.shared().unpack(others.shared().pack()), doctest::Contains("the state of another rank"),
                         data_error);
    CHECK(mine.shared().pack() == before);
    auto fewer = shared_state([] { return buffer(); }, [](byte_view) {}, mine.parameters, mine.samples);
    CHECK_THROWS_WITH_AS(fewer.unpack(before), doctest::Contains("state that would be lost"), data_error);
    CHECK_THROWS_AS(mine.shared().unpack(fewer.pack()), data_error);
    CHECK(mine.shared().pack() == before);
    buffer damaged = before;
    damaged[40] ^= std::byte{1};
    CHECK_THROWS_AS(mine.shared().unpack(damaged), data_error);
    CHECK(mine.shared().pack() == before);
}
