// What the members of an elastic job compare, and how a residual is handed on.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/momentum_correction.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/error.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/compare_states.hpp>
#include <rill/protocol/residuals.hpp>
#include <rill/protocol/update_bytes.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace compress = rill::compress;

namespace {

const rill::view crew{.epoch = 2, .members = {0, 1, 3, 4, 5}};

/// What `compare_states` makes of these checksums, one for each member: its ranks, or its error; the same on all
/// members.
std::string compared(const std::vector<std::uint64_t>& sums, rill::on_difference how) {
    std::vector<std::string> made(sums.size());
    rill::simulated::run(6, {}, [&](auto& net) {
        if (net.rank() == 2) return;
        rill::subgroup<std::remove_reference_t<decltype(net)>> members(net, crew);
        rill::group workers{members, rill::topology::recursive_doubling{}};
        const auto self = static_cast<std::size_t>(workers.rank());
        try {
            const rill::state_comparison result =
                rill::compare_states(workers, crew, sums[self], 0.5 * static_cast<double>(self), how);
            for (const rill::rank_t odd : result.odd) made[self] += std::to_string(odd) + " ";
            for (std::size_t i = 0; i < sums.size(); ++i)
                CHECK(result.residual_norms[i] == 0.5 * static_cast<double>(i));
        } catch (const rill::mismatch& e) {
            made[self] = e.what();
        }
    });
    for (const std::string& each : made) CHECK(each == made[0]);
    return made[0];
}

constexpr auto end = rill::on_difference::end, mend = rill::on_difference::mend;

auto codec_of(std::size_t n) { return compress::error_feedback{compress::top_k{.density = 0.1}}.bind(n); }

}  // namespace

TEST_CASE("compare_states: who differs from the majority is named") {
    const std::uint64_t large = ~std::uint64_t{0};
    CHECK(compared({7, 7, 7, 7, 7}, end) == "");
    CHECK(compared({large, large, large, large, large}, end) == "");
    CHECK(compared({7, 8, 7, 7, 9}, mend) == "1 5 ");
    CHECK(compared({7, 8, 7, 7, 9}, end) ==
          "rill: in epoch 2 of ranks 0-1, 3-5: the state of rank 1, of rank 5 is not that of the others");
}

TEST_CASE("compare_states: without a majority training ends") {
    for (const auto how : {end, mend})
        CHECK(compared({7, 7, 8, 8, 9}, how) ==
              "rill: in epoch 2 of ranks 0-1, 3-5: no state is that of more than half of the members");
}

TEST_CASE("residuals: a rank that leaves hands its residual to another, and nothing is lost") {
    rill::simulated::run(2, {}, [](auto& net) {
        const std::size_t n = 50;
        const rill::channel on{.context = 99, .tag = 1};
        auto codec =
            compress::momentum_correction{compress::error_feedback{compress::top_k{.density = 0.1}}, 0.5}.bind(n);
        rill::group workers{net, rill::topology::recursive_doubling{}};
        std::vector<float> gradient(n), update(n);
        for (std::size_t i = 0; i < n; ++i)
            gradient[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(net.rank())) % 16);
        rill::all_reduce(workers, gradient, update, codec);
        std::vector<float> both(n);
        rill::all_reduce(workers, codec.inner().residual(), both);
        CHECK(rill::residual_norm(codec) > 1);
        if (net.rank() == 1) {
            CHECK(rill::give_residual(net, 0, on, codec, rill::deadline::never));
            return;
        }
        CHECK(rill::take_residual(net, 1, on, codec, rill::deadline::never));
        for (std::size_t i = 0; i < n; ++i) CHECK(codec.inner().residual()[i] == both[i]);  // whole numbers
    });
}

TEST_CASE("residuals: what does not fit changes nothing") {
    rill::simulated::run(2, {}, [](auto& net) {
        const rill::channel on{.context = 99, .tag = 1};
        auto codec = codec_of(10);
        const auto other = codec_of(11);
        if (net.rank() == 1) {
            rill::give_residual(net, 0, on, other, rill::deadline::never);
            net.post(0, on, rill::buffer(20), rill::deadline::never);
            return;
        }
        codec.add_to_residual(std::vector<float>(10, 3.0F));
        CHECK_THROWS_AS(rill::take_residual(net, 1, on, codec, rill::deadline::never), rill::protocol_error);
        CHECK_THROWS_AS(rill::take_residual(net, 1, on, codec, rill::deadline::never), rill::protocol_error);
        CHECK(!rill::take_residual(net, 1, on, codec, net.now() + rill::milliseconds(1)));
        std::vector<float> bad(10, 1.0F);
        bad[4] = std::numeric_limits<float>::infinity();
        CHECK_THROWS_WITH_AS(codec.add_to_residual(bad), "rill: the residual is not finite at coordinate 4",
                             rill::invalid_value);
        for (const float value : codec.residual()) CHECK(value == 3.0F);
        CHECK(rill::residual_norm(codec) == std::sqrt(90.0));
    });
}

TEST_CASE("update_bytes: sparse and dense updates come back bit for bit, and other bytes are refused") {
    rill::stream<float> sparse(1000);
    for (std::uint32_t i = 3; i < 1000; i += 97) sparse.push_back(i, 1.0F / static_cast<float>(i));
    const std::vector<float> values(1000, 0.7F);
    rill::stream<float> dense;
    dense.assign(rill::stream_view<float>({0, 1000}, std::span<const float>(values)));
    for (const rill::stream<float>* each : {&sparse, &dense}) {
        rill::buffer bytes = rill::update_bytes(each->view());
        rill::frame_scratch<float, std::uint32_t> room;
        const auto read = rill::update_in(bytes, room);
        REQUIRE(read.is_dense() == each->is_dense());
        CHECK(std::equal(read.values().begin(), read.values().end(), each->values().begin(), each->values().end()));
        CHECK(std::equal(read.indices().begin(), read.indices().end(), each->indices().begin(), each->indices().end()));
        bytes.resize(bytes.size() - 1);
        CHECK_THROWS_AS(rill::update_in(bytes, room), rill::protocol_error);
    }
    CHECK(rill::update_bytes(sparse.view()).size() < 96 + sparse.count() * 6);
}
