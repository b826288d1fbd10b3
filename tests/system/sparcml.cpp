#include <rill/system/sparcml.hpp>

#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/transport/in_process.hpp>

#include <doctest/doctest.h>

using namespace rill;

TEST_CASE("sparcml: an alias for its composition, with the chosen options") {
    const auto plan = systems::sparcml({.density = 0.02, .bits = 8}, train::sgd{.momentum = 0.5},
                                       train::constant_rate{0.1}, train::clip_norm{.most = 3});
    static_assert(train::Strategy<std::remove_cv_t<decltype(plan)>, in_process::endpoint>);
    CHECK(plan.codec.compressor.sparsifier.density == 0.02);
    CHECK(plan.codec.compressor.copy_values.bits == 8);
    CHECK(plan.optimizer.momentum == 0.5);
    CHECK(plan.rate.value == 0.1);
    CHECK(plan.clip.most == 3);
    CHECK(plan.codec.compressor.codings().contribution.is_lossless());
}
