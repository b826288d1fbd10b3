#include <rill/compress/difference.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/concept/difference_compressor.hpp>
#include <rill/core/error.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using rill::compress::difference;
using rill::compress::top_k;

namespace {

using codec = decltype(difference{top_k{}}.bind<float>(1));
static_assert(rill::DifferenceCompressor<codec, float>);

codec with(std::optional<double> step) { return difference{top_k{.count = 1}, step}.bind<float>(3); }

/// A round of a rank that mixes with itself alone.
void round_alone(codec& of, std::vector<float>& model) {
    of.begin(0);
    of.collect(of.encode(model), 1, true);
    of.apply(model);
}

std::vector<float> copy(std::span<const float> of) { return {of.begin(), of.end()}; }

/// The sections of a checkpoint.
struct sections {
    std::map<std::string, std::vector<double>> all;

    template <class T>
    void add(const std::string& name, std::span<const T> values) {
        all[name] = {values.begin(), values.end()};
    }
    template <class T>
    void read(const std::string& name, std::span<T> values) const {
        const auto found = all.find(name);
        if (found == all.end() || found->second.size() != values.size()) throw std::out_of_range(name);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(found->second[i]);
    }
};

}  // namespace

TEST_CASE("difference: the replica goes to the model by what is sent, and the model to its neighbours by the step") {
    codec of = with(0.5);
    std::vector<float> model{1, -4, 2};
    round_alone(of, model);
    CHECK(copy(of.replica()) == std::vector<float>{0, -4, 0});
    CHECK(model == std::vector<float>{1, -4, 2});  // alone: its neighbours' sum is its replica
    of.begin(1);
    of.collect(of.encode(model), 0.5, true);
    of.apply(model);
    CHECK(copy(of.replica()) == std::vector<float>{0, -4, 2});
    CHECK(copy(of.neighbours()) == std::vector<float>{0, -4, 1});
    CHECK(model == std::vector<float>{1, -4, 1.5});
}

TEST_CASE("difference: without a step the model is its replica") {
    codec of = with({});
    of.start_at(std::vector<float>{1, 1, 1});
    std::vector<float> model{2, 4, 1};
    round_alone(of, model);
    CHECK(model == std::vector<float>{1, 4, 1});
    CHECK(copy(of.replica()) == model);
}

TEST_CASE("difference: a round that is rolled back has not been") {
    codec of = with(0.5);
    std::vector<float> model{1, -4, 2};
    of.begin(0);
    of.collect(of.encode(model), 1, true);
    of.rollback();
    CHECK(copy(of.replica()) == std::vector<float>(3));
    round_alone(of, model);
    CHECK(copy(of.replica()) == std::vector<float>{0, -4, 0});
}

TEST_CASE("difference: goes on from what was saved, and a restore that throws changes nothing") {
    codec of = with(0.5), other = with(0.5);
    of.start_at(std::vector<float>{3, 2, 1});
    std::vector<float> model{1, -4, 2};
    round_alone(of, model);
    sections saved;
    of.save(saved, "codec");
    sections spoilt = saved;
    spoilt.all.erase("codec.neighbours");
    CHECK_THROWS_AS(other.restore(spoilt, "codec"), std::out_of_range);
    CHECK(copy(other.replica()) == std::vector<float>(3));
    CHECK(other.fingerprint() != of.fingerprint());
    other.restore(saved, "codec");
    CHECK(copy(other.replica()) == copy(of.replica()));
    CHECK(copy(other.neighbours()) == copy(of.neighbours()));
}

TEST_CASE("difference: goes back to a time before its first round") {
    codec of = with(0.5);
    sections saved;
    of.save(saved, "codec");
    of.start_at(std::vector<float>{3, 2, 1});
    std::vector<float> model{1, -4, 2};
    round_alone(of, model);
    of.restore(saved, "codec");
    of.start_at(std::vector<float>{5, 6, 7});
    CHECK(copy(of.replica()) == std::vector<float>{5, 6, 7});
}

TEST_CASE("difference: a step that leads nowhere is refused") {
    for (const double step : {0.0, -0.1, 1.5})
        CHECK_THROWS_WITH_AS(with(step), doctest::Contains("difference: step is"), rill::contract_violation);
    CHECK_NOTHROW(with(1.0));
}
