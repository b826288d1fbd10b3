#include <rill/system/fed_avg.hpp>

#include <rill/aggregate/mean.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/topology/star.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace rill;

TEST_CASE("fed_avg: in each round so many workers upload, and the root applies the mean of their changes") {
    constexpr int rounds = 10;
    int uploads = 0;
    simulated::run(9, {}, [&](simulated::endpoint& net) {
        group workers{net, topology::star{}};
        auto fed = systems::fed_avg(workers, {.fraction = 0.25});
        auto codec = compress::keep_all{}.bind(3);
        std::vector<float> model(3), update(3);
        const std::vector<float> change(3, 2);
        while (fed.next(model)) {
            fed.reduce(change, update, codec, aggregate::mean{}, {});
            if (!fed.is_root()) {
                ++uploads;
                continue;
            }
            for (std::size_t i = 0; i < model.size(); ++i) model[i] += update[i];
            if (fed.number() == rounds) fed.end();
        }
        if (fed.is_root()) CHECK(model == std::vector<float>(3, 2 * rounds));
    });
    CHECK(uploads == 2 * rounds);
}
