// Rounded values through whole collectives, on both transports.
#include <rill/collective/all_reduce.hpp>

#include <rill/aggregate/max.hpp>
#include <rill/aggregate/min.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/top_k.hpp>

#include "../collective/cases.hpp"
#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

using namespace rill;
using namespace cases;
using compress_tests::gradient;

namespace {

constexpr std::size_t n = 500;

/// The largest entries of any one contribution and of the sum of all.
constexpr float largest_entry = 1;

/// Checks a lossy codec: the same bits on every rank, and an error within `bound`.
template <class Policy, class Group, class Fail>
std::vector<float> check_lossy(Group& workers, Fail fail, const std::string& what, const Policy& policy, float bound) {
    std::vector<double> exact(n, 0.0);
    for (int r = 0; r < workers.size(); ++r) {
        const auto one = gradient<float>(n, static_cast<std::uint64_t>(r));
        for (std::size_t i = 0; i < n; ++i) exact[i] += one[i];
    }
    std::vector<float> output(n);
    auto codec = policy.template bind<float>(n);
    all_reduce(workers, gradient<float>(n, static_cast<std::uint64_t>(workers.rank())), output, codec);
    for (std::size_t i = 0; i < n; ++i)
        if (!(std::abs(output[i] - exact[i]) <= bound)) {
            fail(what + " is too far off at " + std::to_string(i) + ": " + std::to_string(output[i] - exact[i]));
            break;
        }
    return output;
}

/// Compares results between ranks and transports.
class agreement {
  public:
    template <class Group, class Fail>
    void expect(const Group& workers, Fail fail, const std::vector<float>& result) {
        const std::string key = std::string(workers.shape().shape_name()) +
                                std::to_string(fingerprint(workers.shape())) + "/" + std::to_string(workers.size());
        const std::lock_guard lock(mutex_);
        const auto [known, fresh] = results_.try_emplace(key, result);
        if (!fresh && !compress_tests::same_bits<float>(known->second, result)) fail("other bits than elsewhere");
    }

  private:
    std::map<std::string, std::vector<float>> results_;
    std::mutex mutex_;
};

/// Checks a rounded copy phase of streams of which few coordinates have an entry, where each fold would be dense.
template <class Group, class Fail, class Fold>
void check_few_entries(Group& workers, Fail fail, const Fold& fold) {
    stream<float> input(n), output;
    for (std::size_t i = static_cast<std::size_t>(workers.rank()); i < n; i += 50) input.push_back(i, -1);
    all_reduce(workers, input, output, fold, {.copy = compress::qsgd{.bits = 4}.coding(), .when = {.factor = 0}});
    std::size_t at = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (i % 50 >= static_cast<std::size_t>(workers.size())) continue;
        if (output.is_dense() || at >= output.count() || output.indices()[at] != i || output.values()[at] != -1)
            return fail(std::string(Fold::name) + " is wrong at " + std::to_string(i));
        ++at;
    }
    if (at != output.count()) fail(std::string(Fold::name) + " has more entries");
}

}  // namespace

TEST_CASE("a rounded copy phase of max and min: no absent coordinate is written as an infinite value") {
    CHECK(on_every_group_of_any([](auto& workers, auto fail) {
              if (!workers.shape().holds_copy_phase()) return;
              check_few_entries(workers, fail, aggregate::max{});
              check_few_entries(workers, fail, aggregate::min{});
          }) == "");
}

TEST_CASE("rounded contributions: the same bits on all ranks, within the sum of each rank's rounding error") {
    using namespace rill::compress;
    agreement bits;
    CHECK(on_every_group_of_any([&](auto& workers, auto fail) {
              const auto ranks = static_cast<float>(workers.size());
              const float level = largest_entry / 7;
              auto all = check_lossy(workers, fail, "qsgd", encoded{keep_all{}, qsgd{.bits = 4}}, ranks * level);
              const auto sparse =
                  check_lossy(workers, fail, "top_k",
                              encoded{top_k{.count = n}, qsgd{.bits = 4, .bucket = 65}, packed_gaps{}}, ranks * level);
              const auto half = check_lossy(workers, fail, "bf16", encoded{top_k{.count = n}, bf16{}, raw_indices{}},
                                            ranks * largest_entry / 256);
              all.insert(all.end(), sparse.begin(), sparse.end());
              all.insert(all.end(), half.begin(), half.end());
              bits.expect(workers, fail, all);
          }) == "");
}

TEST_CASE("a rounded copy phase: the same bits on all ranks, within the error of one more rounding") {
    using namespace rill::compress;
    agreement bits;
    CHECK(on_every_group_of_any([&](auto& workers, auto fail) {
              if (workers.shape().holds_copy_phase()) {
                  const auto ranks = static_cast<float>(workers.size());
                  auto all =
                      check_lossy(workers, fail, "copy", encoded{keep_all{}, raw{}, raw_indices{}, qsgd{.bits = 8}},
                                  ranks * largest_entry / 127);
                  const float once = ranks * largest_entry / 7;
                  const auto both =
                      check_lossy(workers, fail, "both", encoded{keep_all{}, qsgd{}, raw_indices{}, qsgd{}},
                                  once + (ranks * largest_entry + once) / 7);
                  all.insert(all.end(), both.begin(), both.end());
                  bits.expect(workers, fail, all);
              }
          }) == "");
}

TEST_CASE("qsgd is unbiased, at the source and in the copy phase") {
    using namespace rill::compress;
    simulated::run(2, {}, [](auto& net) {
        group workers{net, topology::split_allgather{}};
        constexpr std::size_t few = 64;
        constexpr int steps = 400;
        const auto input = gradient<float>(few, 7);  // the same on both ranks: the sum is twice the input
        auto codec = encoded{keep_all{}, qsgd{.bits = 2}, raw_indices{}, qsgd{.bits = 4}}.bind(few);
        std::vector<float> output(few);
        std::vector<double> mean(few, 0.0);
        for (int step = 0; step < steps; ++step) {
            all_reduce(workers, input, output, codec);
            for (std::size_t i = 0; i < few; ++i) mean[i] += output[i] / steps;
        }
        // Rounding to one of two levels has a variance of at most a quarter of the squared distance between them.
        const double source = largest_entry, copy = 2 * largest_entry / 7.0;
        const double sigma = std::sqrt((2 * source * source + copy * copy) / 4 / steps);
        int wrong = 0;
        for (std::size_t i = 0; i < few; ++i) wrong += std::abs(mean[i] - 2 * double{input[i]}) > 5 * sigma ? 1 : 0;
        if (wrong != 0) throw std::runtime_error(std::to_string(wrong) + " means are off");
    });
}
