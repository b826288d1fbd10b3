#include <rill/aggregate/max.hpp>
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/min.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/keep_all.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

using namespace cases;

namespace {

template <class T, class Group, class Fail, class Fold>
void check_dense(Group& workers, Fail fail, const Fold& fold) {
    for (std::size_t n : dimensions) {
        const auto input = dense_input<T>(workers.rank(), n);
        const auto before = input;
        std::vector<T> output(n, T{99});
        const auto counted = workers.net().counted();
        const rill::receipt receipt = rill::all_reduce(workers, input, output, fold);
        const std::string where = std::string(Fold::name) + " N=" + std::to_string(n);
        if (output != oracle<T>(workers.size(), n, fold)) fail(where + " is wrong");
        if (input != before) fail(where + " changed its input");
        if (receipt.wire != workers.net().counted() - counted) fail(where + " counted other bytes than the transport");
        if (receipt.contributors != workers.size()) fail(where + " lists too few contributors");
        auto in_place = input;
        rill::all_reduce(workers, in_place, in_place, fold);
        if (in_place != output) fail(where + " in place is wrong");
    }
}

template <class T, class Index, class Group, class Fail, class Fold>
void check_sparse(Group& workers, Fail fail, const Fold& fold, const rill::stream_codings& codings = {}) {
    for (std::size_t n : dimensions)
        for (std::size_t gap : {std::size_t{2}, std::size_t{7}, std::size_t{40}}) {
            const auto input = sparse_input<T, Index>(workers.rank(), n, gap);
            const auto before = input;
            rill::stream<T, Index> output;
            const auto counted = workers.net().counted();
            const rill::receipt receipt = rill::all_reduce(workers, input, output, fold, codings);
            const std::string where =
                std::string("sparse ") + Fold::name + " N=" + std::to_string(n) + " gap=" + std::to_string(gap);
            if (dense_copy(output, fold.template identity<T>()) != oracle<T>(workers.size(), n, fold, gap))
                fail(where + " is wrong");
            if (!(input == before)) fail(where + " changed its input");
            if (receipt.wire != workers.net().counted() - counted) fail(where + " counted other bytes");
            if (receipt.contributors != workers.size()) fail(where + " lists too few contributors");
        }
}

float noise(int rank, std::size_t i) { return rill::counter_rng(rill::random_key{7}.derive(rank)).uniform(i) * 2 - 1; }

}  // namespace

TEST_CASE("all_reduce of dense vectors equals the oracle") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              check_dense<float>(workers, fail, rill::aggregate::sum{});
              check_dense<std::int64_t>(workers, fail, rill::aggregate::sum{});
          }) == "");
    CHECK(on_every_group([](auto& workers, auto fail) {
              check_dense<std::int32_t>(workers, fail, rill::aggregate::min{});
              check_dense<double>(workers, fail, rill::aggregate::mean{});
          }) == "");
}

TEST_CASE("all_reduce of sparse streams equals the oracle") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              check_sparse<float, std::uint32_t>(workers, fail, rill::aggregate::sum{});
              check_sparse<std::int32_t, std::uint64_t>(workers, fail, rill::aggregate::max{});
          }) == "");
}

TEST_CASE("the dense switch changes the form, not the values") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              check_sparse<float, std::uint32_t>(workers, fail, rill::aggregate::sum{}, {.when = {.factor = 0}});
              check_sparse<float, std::uint32_t>(workers, fail, rill::aggregate::sum{}, {.when = {.factor = 1e9}});
          }) == "");
}

TEST_CASE("lossless index codings change nothing") {
    for (auto indices : {rill::index_coding::packed_gaps, rill::index_coding::bitmap, rill::index_coding::smallest}) {
        const rill::coding codes{.indices = indices};
        const rill::stream_codings codings{.contribution = codes, .partial = codes, .copy = codes};
        CHECK(on_every_group([&](auto& workers, auto fail) {
                  check_sparse<float, std::uint32_t>(workers, fail, rill::aggregate::sum{}, codings);
              }) == "");
    }
}

TEST_CASE("all ranks and both transports get the same bits") {
    // One schedule gives one order of folding, so rounding errors are the same on all ranks and transports.
    std::map<std::string, std::vector<float>> results;
    std::mutex mutex;
    const std::string failed = on_every_group([&](auto& workers, auto fail) {
        const std::size_t n = 1000;
        std::vector<float> input(n), output(n);
        for (std::size_t i = 0; i < n; ++i) input[i] = noise(workers.rank(), i);
        rill::all_reduce(workers, input, output);
        rill::stream<float> sparse(n), folded;
        for (std::size_t i = 0; i < n; ++i)
            if (is_present(workers.rank(), i, 3)) sparse.push_back(i, input[i]);
        const rill::coding lossy{.values = rill::value_coding::qsgd4, .indices = rill::index_coding::packed_gaps};
        using shape = typename std::remove_reference_t<decltype(workers)>::topology_type;
        rill::stream_codings codings{.contribution = lossy};
        if (shape::has_copy_phase) codings.copy = lossy;
        rill::all_reduce(workers, sparse, folded, rill::aggregate::sum{}, codings);
        const auto dense = dense_copy(folded, 0.0F);
        output.insert(output.end(), dense.begin(), dense.end());

        const std::lock_guard lock(mutex);
        const std::string key = std::string(shape::name) + std::to_string(rill::fingerprint(workers.shape())) + "/" +
                                std::to_string(workers.size());
        const auto [known, fresh] = results.try_emplace(key, output);
        if (!fresh && std::memcmp(known->second.data(), output.data(), output.size() * sizeof(float)) != 0)
            fail("other bits than elsewhere");
    });
    CHECK(failed == "");
    CHECK(results.size() == 7 * std::size(rank_counts));
}

TEST_CASE("all_reduce in place with a codec that sends its input without a copy") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              const std::size_t n = 1000;
              std::vector<float> data = dense_input<float>(workers.rank(), n);
              auto codec = rill::compress::keep_all{}.bind(n);
              rill::all_reduce(workers, data, data, codec);
              if (data != oracle<float>(workers.size(), n, rill::aggregate::sum{})) fail("a wrong sum");
          }) == "");
}

TEST_CASE("a rank of weight zero contributes nothing, and the mean takes that into account") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              if (workers.size() < 2) return;
              const std::size_t n = 65;
              const bool silent = workers.rank() == 1;
              std::vector<double> input(silent ? 0 : n, 6.0), output(n);
              const rill::contribution own{.weight = silent ? 0.0 : 1.0, .age = silent ? 9U : 3U};
              const auto receipt = rill::all_reduce(workers, input, output, rill::aggregate::mean{}, own);
              if (output != std::vector<double>(n, 6.0)) fail("the mean counted a silent rank");
              if (receipt.contributors != workers.size() - 1) fail("the receipt counted a silent rank");
              if (receipt.weight != workers.size() - 1) fail("the weight counts a silent rank");
              if (receipt.age != 3) fail("the oldest contribution is 3 steps old");
          }) == "");
}

TEST_CASE("all_reduce: max and min of NaN and signed zeros are the same on every topology") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              const float nan = std::numeric_limits<float>::quiet_NaN();
              const auto rank = workers.rank();
              // Rank 1 contributes NaN; all ranks but the last contribute negative zeros.
              std::vector<float> x(200, rank == 1 ? nan : static_cast<float>(rank));
              for (std::size_t i = 100; i < 200; ++i) x[i] = rank + 1 < workers.size() ? -0.0F : 0.0F;
              const auto check = [&](const auto& fold, bool is_minus) {
                  std::vector<float> y(x.size());
                  rill::all_reduce(workers, x, y, fold);
                  for (std::size_t i = 0; i < 100; ++i)
                      if (std::isnan(y[i]) != (workers.size() > 1)) return fail("NaN");
                  for (std::size_t i = 100; i < 200; ++i)
                      if (std::signbit(y[i]) != is_minus) return fail("signed zeros");
              };
              check(rill::aggregate::max{}, false);
              check(rill::aggregate::min{}, workers.size() > 1);
          }) == "");
}
