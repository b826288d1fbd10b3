#include <rill/collective/bucket_exchange.hpp>

#include <rill/aggregate/mean.hpp>
#include <rill/collective/agree.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/fusion.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

using namespace rill;

namespace {

const std::vector<std::size_t> sizes{5, 3, 6, 2};
const bucket_plan plan = fusion{.bytes = 32}.bind(sizes, sizeof(float));  // {2, 3}, {0, 1}

/// Exchanges `values` bucket by bucket and records the order of the starts; rank `silent` contributes nothing to bucket
/// 0.
template <class Group>
auto exchange_of(Group& workers, std::span<float> values, std::vector<std::size_t>& started, rank_t silent = no_rank) {
    return bucket_exchange(workers, plan, [&workers, &started, values, silent](std::size_t i) {
        started.push_back(i);
        const bool gives = i != 0 || workers.rank() != silent;
        const auto part = values.subspan(plan.buckets()[i].elements.begin, plan.buckets()[i].elements.size());
        return start(workers, [part, gives](auto& lane) {
            return all_reduce(lane, part, part, aggregate::mean{}, contribution{.weight = gives ? 1.0 : 0.0});
        });
    });
}

}  // namespace

TEST_CASE("bucket_exchange: buckets start in their order as soon as all before are complete") {
    simulated::run(3, {}, [](auto& net) {
        group workers{net, topology::split_allgather{}};
        std::vector<float> values(16, static_cast<float>(net.rank()));
        std::vector<std::size_t> started;
        auto exchange = exchange_of(workers, values, started);
        for (const std::size_t tensor : {0U, 1U, 3U}) exchange.ready(tensor);
        CHECK(started.empty());
        exchange.ready(2);
        CHECK(started == std::vector<std::size_t>{0, 1});
        const receipt done = exchange.finish();
        CHECK(values == std::vector<float>(16, 1.0F));
        CHECK(done.contributors == 3);
        CHECK(done.wire.messages_sent == 8);
        CHECK(done.rounds == 4);
    });
}

TEST_CASE("bucket_exchange: the receipt is that of the bucket with the fewest contributors") {
    simulated::run(3, {}, [](auto& net) {
        group workers{net, topology::split_allgather{}};
        std::vector<float> values(16, static_cast<float>(net.rank()));
        std::vector<std::size_t> started;
        auto exchange = exchange_of(workers, values, started, 2);
        for (std::size_t tensor = 0; tensor < 4; ++tensor) exchange.ready(tensor);
        const receipt done = exchange.finish();
        CHECK(done.contributors == 2);
        CHECK(done.weight == 2);
        CHECK(values[0] == 1.0F);
        CHECK(values[15] == 0.5F);
    });
}

TEST_CASE("bucket_exchange: each tensor becomes ready once") {
    simulated::run(1, {}, [](auto& net) {
        group workers{net, topology::split_allgather{}};
        std::vector<float> values(16);
        std::vector<std::size_t> started;
        auto exchange = exchange_of(workers, values, started);
        exchange.ready(3);
        CHECK_THROWS_AS(exchange.finish(), contract_violation);
        exchange.ready(2);
        CHECK_THROWS_AS(exchange.ready(2), contract_violation);
        CHECK_THROWS_AS(exchange.ready(4), contract_violation);
    });
}

TEST_CASE("bucket_exchange: exchanges of a group take turns, and one that ends leaves the others alone") {
    simulated::run(2, {}, [](auto& net) {
        group workers{net, topology::split_allgather{}};
        std::vector<float> values(16, static_cast<float>(net.rank()));
        std::vector<std::size_t> started;
        const auto all_ready = [](auto& exchange) {
            for (std::size_t tensor = 0; tensor < 4; ++tensor) exchange.ready(tensor);
        };
        auto first = exchange_of(workers, values, started);
        auto second = exchange_of(workers, values, started);
        all_ready(first);
        CHECK(first.finish().contributors == 2);
        {
            auto third = exchange_of(workers, values, started);
            all_ready(second);
            CHECK_THROWS_AS(third.ready(0), contract_violation);
            CHECK_THROWS_AS(third.finish(), contract_violation);
        }
        CHECK(second.finish().contributors == 2);
        all_ready(first);
        CHECK(first.finish().contributors == 2);
        CHECK(started == std::vector<std::size_t>{0, 1, 0, 1, 0, 1});
        CHECK(values == std::vector<float>(16, 0.5F));
    });
}

TEST_CASE("bucket_exchange: after one that has failed, the next one gets the error of the group") {
    simulated::run(2, {}, [](auto& net) {
        group workers{net, topology::split_allgather{}};
        if (net.rank() == 1) return;
        std::vector<float> values(16);
        std::vector<std::size_t> started;
        auto first = exchange_of(workers, values, started);
        auto second = exchange_of(workers, values, started);
        const auto exchange_all = [](auto& exchange) {
            for (std::size_t tensor = 0; tensor < 4; ++tensor) exchange.ready(tensor);
            exchange.finish();
        };
        CHECK_THROWS_AS(exchange_all(first), peer_failure);
        CHECK_THROWS_AS(exchange_all(second), peer_failure);
    });
}

TEST_CASE("agree: passes if all ranks have the same value, otherwise names the rank that differs") {
    simulated::run(5, {}, [](auto& net) {
        group workers{net, topology::split_allgather{}};
        constexpr option_names names{{"breadth", "depth"}};
        CHECK(agree(workers, names, {7}).rounds > 0);
        std::string said;
        try {
            agree(workers, names, {5, net.rank() == 3 ? 8U : 7U});
        } catch (const mismatch& thrown) {
            said = thrown.what();
        }
        CHECK(said == "rill: handshake (operation 2): rank 3 calls with another depth than the others");
    });
}
