#include <rill/collective/all_reduce.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/step_group.hpp>
#include <rill/collective/step_scope.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/momentum_correction.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/core/view.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>

#include "../support/allocations.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace compress = rill::compress;
namespace faults = rill::faults;

namespace {

constexpr std::size_t n = 40;

using bits = std::vector<std::byte>;

/// Gathers all that codecs save.
struct saved_bits {
    bits all;
    template <class Range>
    void add(const std::string&, const Range& values) {
        const auto bytes = std::as_bytes(std::span(values));
        all.insert(all.end(), bytes.begin(), bytes.end());
    }
};

struct codecs {
    using rounding = compress::encoded<compress::top_k, compress::qsgd>;
    decltype(compress::error_feedback{compress::top_k{}}.bind(n)) sparse =
        compress::error_feedback{compress::top_k{.density = 0.2}}.bind(n);
    decltype(compress::error_feedback{rounding{}, true}.bind(n)) rounded =
        compress::error_feedback{rounding{.sparsifier = {.density = 0.2}, .values = {.bucket = 4}}, true}.bind(n);
    decltype(compress::error_feedback{compress::random_mask{}}.bind(n)) masked =
        compress::error_feedback{compress::random_mask{.density = 0.3}}.bind(n);
    decltype(compress::momentum_correction{compress::error_feedback{compress::top_k{}}}.bind(n)) momentum =
        compress::momentum_correction{compress::error_feedback{compress::top_k{.density = 0.2}}}.bind(n);

    bits state() const {
        saved_bits to;
        sparse.save(to, "sparse"), rounded.save(to, "rounded"), masked.save(to, "masked");
        momentum.save(to, "momentum");
        return to.all;
    }
};

struct results {
    std::vector<std::vector<float>> all;

    friend bool operator==(const results& a, const results& b) {
        for (std::size_t i = 0; i < a.all.size(); ++i)
            if (std::memcmp(a.all[i].data(), b.all[i].data(), n * sizeof(float)) != 0) return false;
        return a.all.size() == b.all.size();
    }
};

std::vector<float> gradient(int rank, int step) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i)
        values[i] = 0.1F * static_cast<float>((static_cast<int>(i) * (3 + rank) + 7 * step) % 13) - 0.55F;
    return values;
}

/// Several calls: two of one codec, two in flight at a time, one whose input is its output (`own`).
template <class Group>
results step_of(Group& workers, codecs& by, std::vector<float>& own, const std::vector<float>& given) {
    results made{std::vector<std::vector<float>>(7, std::vector<float>(n))};
    auto& out = made.all;
    rill::all_reduce(workers, given, out[0], by.sparse);
    rill::all_reduce(workers, given, out[1], by.rounded);
    rill::request first = rill::start_all_reduce(workers, given, out[2], by.masked);
    rill::request second = rill::start_all_reduce(workers, given, out[3], by.momentum);
    first.get(), second.get();
    rill::all_reduce(workers, given, out[4], by.sparse);
    workers.step().keep(std::span(own));
    rill::all_reduce(workers, own, own);
    rill::reduce(workers, own, own, 0);
    out[5] = own;
    rill::all_reduce(workers, out[0], out[6], by.sparse);
    return made;
}

}  // namespace

TEST_CASE("step_scope: whatever message a rank's end cuts off, all codecs and inputs of the step come back") {
    int aborted = 0, failed = 0;
    bool is_over = false;
    for (std::uint64_t after = 0; !is_over; ++after) {
        CAPTURE(after);
        REQUIRE(after < 1000);
        is_over = false;
        rill::simulated::run(4, {.faults = {{faults::kill(2).after(after)}}}, [&](auto& net) {
            codecs by;
            rill::step_scope scope;
            std::vector<float> own = gradient(net.rank(), 0), own_before = own;
            codecs before = by;
            try {
                rill::step_group workers{scope, net, rill::topology::split_allgather{}};
                step_of(workers, by, own, gradient(net.rank(), 1));
                scope.commit();
                before = by, own_before = own;
                step_of(workers, by, own, gradient(net.rank(), 2));
            } catch (const rill::error&) {
                ++failed;
            }
            if (net.rank() == 2) {
                is_over = true;
                return;
            }
            const bool has_changed = by.state() != before.state();  // calls of the step had succeeded or failed
            scope.abort();
            if (has_changed) ++aborted;
            CHECK(by.state() == before.state());
            CHECK(own == own_before);

            // The step is repeated without rank 2, once with what came back and once with what never was in an attempt.
            const auto repeat = [&](std::uint32_t epoch, codecs& with, std::vector<float> given) {
                rill::subgroup<std::remove_reference_t<decltype(net)>> alive(net,
                                                                             {.epoch = epoch, .members = {0, 1, 3}});
                rill::step_group workers{scope, alive, rill::topology::split_allgather{}};
                workers.resume_at(77);
                const results made = step_of(workers, with, given, gradient(net.rank(), 2));
                scope.commit();
                return made;
            };
            CHECK(repeat(1, by, own) == repeat(2, before, own_before));
            CHECK(by.state() == before.state());
        });
    }
    CHECK(aborted > 50);
    CHECK(failed > 50);
}

TEST_CASE("step_scope: the next step begins with what the last one committed") {
    rill::simulated::run(2, {}, [](auto& net) {
        rill::step_scope scope;
        rill::step_group workers{scope, net, rill::topology::split_allgather{}};
        codecs by;
        std::vector<float> own = gradient(net.rank(), 0);
        for (int step = 0; step < 3; ++step) {
            step_of(workers, by, own, gradient(net.rank(), step));
            scope.commit();
            const bits committed = by.state();
            const std::vector<float> own_committed = own;
            step_of(workers, by, own, gradient(net.rank(), step + 1));
            CHECK(by.state() != committed);
            scope.abort();
            CHECK(by.state() == committed);
            CHECK(own == own_committed);
            scope.abort();  // an empty step
            CHECK(by.state() == committed);
        }
    });
}

TEST_CASE("step_scope: memory that overlaps comes back in the reverse order") {
    std::vector<int> values{1, 2, 3, 4};
    const std::span<int> all(values), half = all.first(2);
    rill::step_scope scope;
    scope.keep(all), scope.keep(half);
    scope.commit();
    scope.keep(half);
    values[0] = 10;
    scope.keep(all);
    values[0] = values[3] = 20;
    scope.abort();
    CHECK(values == std::vector{1, 2, 3, 4});
}

TEST_CASE("step_scope: the elements of a vector or an array come back where they were") {
    std::vector<float> values{1, 2};
    std::array<int, 2> numbers{1, 2};
    const std::span<const float> layer(values);
    rill::step_scope scope;
    scope.keep(values), scope.keep(numbers);
    values[1] = 3, numbers[1] = 3;
    scope.abort();
    CHECK(layer[1] == 2);
    CHECK(numbers[1] == 2);
    scope.redo(values), scope.redo(numbers);
    CHECK(layer[1] == 3);
    CHECK(numbers[1] == 3);
    CHECK(values.data() == layer.data());
}

TEST_CASE("step_scope: a step that is aborted can be done again, until the next one begins") {
    std::vector<float> values(100, 1.0F);
    auto codec = compress::error_feedback{compress::top_k{.density = 0.1}}.bind(values.size());
    const auto residual = [&] { return std::vector<float>(codec.residual().begin(), codec.residual().end()); };
    rill::step_scope scope;
    const auto encode = [&] {
        scope.keep(codec), scope.keep(std::span(values));
        values[0] = 2;
        codec.begin(1);
        codec.encode(values);
        codec.commit();
    };
    const std::vector<float> before = residual();
    encode();
    const std::vector<float> after = residual();
    CHECK(after != before);
    scope.abort();
    CHECK(residual() == before);
    CHECK(values[0] == 1);
    scope.redo(codec);
    CHECK(residual() == after);
    encode();
    const std::vector<float> later = residual();
    scope.abort();
    CHECK(residual() == after);
    scope.keep(std::span(values));
    scope.redo(codec);
    CHECK(residual() == after);
    scope.commit();
    scope.redo(codec);
    CHECK(residual() == after);
    CHECK(later != after);
}

TEST_CASE("step_scope: a call that fails after this rank has sent can be done again as if it had not failed") {
    const auto call = [](auto& net, rill::step_scope& scope, auto& codec) {
        const rill::group_options options{.timeout = rill::seconds(2)};
        rill::step_group workers{scope, net, rill::topology::split_allgather{}, options};
        std::vector<float> result(n);
        rill::all_reduce(workers, gradient(net.rank(), 1), result, codec);
    };
    const auto codec_of = [](rill::rank_t rank, auto which) {
        auto codec = codecs{}.*which;
        codec.begin(9), codec.encode(gradient(rank, 0)), codec.rollback();  // it has a residual
        return codec;
    };
    const auto state_of = [](const auto& codec) {
        saved_bits to;
        codec.save(to, "");
        return to.all;
    };
    const auto require_for = [&](auto which) {
        std::vector<bits> succeeded(4);
        rill::simulated::run(4, {}, [&](auto& net) {
            rill::step_scope scope;
            auto codec = codec_of(net.rank(), which);
            call(net, scope, codec);
            succeeded[static_cast<std::size_t>(net.rank())] = state_of(codec);
        });
        int redone = 0;
        for (std::int64_t at = 0; at < 400; at += 5) {
            CAPTURE(at);
            std::vector<rill::fault> plan;
            for (const rill::rank_t other : {0, 1, 3}) plan.push_back(faults::cut(other, 2).at(rill::microseconds(at)));
            rill::simulated::run(4, {.faults = {plan}}, [&](auto& net) {
                rill::step_scope scope;
                auto codec = codec_of(net.rank(), which);
                const bits before = state_of(codec);
                bool has_failed = false;
                try {
                    call(net, scope, codec);
                } catch (const rill::error&) {
                    has_failed = true;
                }
                scope.abort();
                CHECK(state_of(codec) == before);
                scope.redo(codec);
                if (has_failed && state_of(codec) == before) return;  // it had not sent anything
                CHECK(state_of(codec) == succeeded[static_cast<std::size_t>(net.rank())]);
                redone += has_failed ? 1 : 0;
            });
        }
        CHECK(redone > 0);
    };
    require_for(&codecs::sparse), require_for(&codecs::rounded), require_for(&codecs::masked);
    require_for(&codecs::momentum);
}

TEST_CASE("step_scope: a codec that ended with its step is forgotten") {
    rill::simulated::run(2, {}, [](auto& net) {
        rill::step_scope scope;
        rill::step_group workers{scope, net, rill::topology::split_allgather{}};
        std::vector<float> in = gradient(net.rank(), 0), out(n);
        for (int step = 0; step < 3; ++step) {
            const auto codec = std::make_unique<codecs>();
            rill::all_reduce(workers, in, out, codec->sparse);
            scope.commit();
        }
        scope.abort();
    });
}

#ifndef RILL_TEST_SANITIZED
TEST_CASE("step_scope: a step like the last one allocates nothing") {
    std::vector<float> values(1000, 1.0F);
    auto codec = compress::error_feedback{compress::top_k{.density = 0.01}}.bind(values.size());
    rill::step_scope scope;
    const auto step = [&](bool commits) {
        scope.keep(codec), scope.keep(std::span(values)), scope.keep(codec);
        codec.begin(1);
        codec.encode(values);
        codec.commit();
        commits ? scope.commit() : scope.abort();
    };
    for (int i = 0; i < 4; ++i) step(i % 2 == 0);
    const unsigned long before = all_allocations();
    for (int i = 0; i < 4; ++i) step(i % 2 == 0);
    CHECK(all_allocations() == before);
}
#endif
