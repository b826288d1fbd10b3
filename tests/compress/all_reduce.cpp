// Compressed contributions through whole collectives, on both transports.
#include <rill/collective/all_reduce.hpp>

#include <rill/aggregate/mean.hpp>
#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/threshold.hpp>
#include <rill/compress/top_k.hpp>

#include "../collective/cases.hpp"
#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

using namespace rill;
using namespace cases;
using compress_tests::gradient;

namespace {

constexpr std::size_t n = 500;

/// What rank `rank` contributes to operation number `operation`, as a dense vector.
template <class Policy>
std::vector<float> contributed(const Policy& policy, int rank, std::uint64_t operation) {
    auto codec = policy.template bind<float>(n);
    codec.begin(operation);
    const auto input = dense_input<float>(rank, n);
    std::vector<float> dense(n);
    if constexpr (decltype(codec)::is_coordinatewise)
        copy_dense(codec.encode(input), std::span<float>(dense), 0.0F);
    else
        codec.decode(codec.encode(input).values(), dense);
    return dense;
}

/// A codec that sends its values as they are gives exactly the sum of what was chosen.
template <class Policy, class Group, class Fail>
void check_exact(Group& workers, Fail fail, const std::string& what, const Policy& policy) {
    std::vector<float> expected(n, 0.0F), output(n, 99.0F);
    for (int r = 0; r < workers.size(); ++r) {
        const auto one = contributed(policy, r, workers.operation_number() + 1);
        for (std::size_t i = 0; i < n; ++i) expected[i] += one[i];
    }
    auto codec = policy.template bind<float>(n);
    const auto counted = workers.net().counted();
    const receipt done = all_reduce(workers, dense_input<float>(workers.rank(), n), output, codec);
    if (output != expected) fail(what + " is wrong");
    if (done.wire != workers.net().counted() - counted) fail(what + " counted other bytes");
}

}  // namespace

TEST_CASE("codecs that round nothing give the sum of what was chosen") {
    using namespace rill::compress;
    CHECK(on_every_group([](auto& workers, auto fail) {
              check_exact(workers, fail, "keep_all", keep_all{});
              check_exact(workers, fail, "top_k", top_k{.density = 0.03});
              check_exact(workers, fail, "all of top_k", coded{top_k{.count = n}, raw{}, bitmap{}});
              check_exact(workers, fail, "bucket_top_k",
                          coded{bucket_top_k{.count = 2, .bucket = 64}, raw{}, packed_gaps{}});
              check_exact(workers, fail, "Elias and Fano", coded{top_k{.density = 0.1}, raw{}, elias_fano{}});
              check_exact(workers, fail, "threshold", coded{threshold{.limit = 15}, raw{}, smallest{}});
              check_exact(workers, fail, "random_mask", random_mask{.density = 0.2});
          }) == "");
}

TEST_CASE("random_mask sends values and headers, and no index") {
    simulated::run(2, {}, [](auto& net) {
        group workers{net, topology::recursive_doubling{}};
        auto codec = compress::random_mask{.density = 0.1}.bind(n);
        std::vector<float> output(n);
        const receipt done = all_reduce(workers, gradient<float>(n, 1), output, codec);
        const std::size_t chosen = codec.coded_dimension();
        if (done.wire.bytes_sent != wire::header_bytes + chosen * sizeof(float))
            throw std::runtime_error(std::to_string(done.wire.bytes_sent) + " bytes sent");
    });
}

TEST_CASE("after a failed step all ranks have the same mask, and their contributions back") {
    failures all;
    const auto body = [&](auto& net) {
        const auto fail = [&](const std::string& what) { all.add("rank " + std::to_string(net.rank()) + " " + what); };
        auto codec = compress::error_feedback{compress::random_mask{.density = 0.2}}.bind(n);
        std::vector<float> input = dense_input<float>(net.rank(), n), output(n);
        {
            auto broken = input;
            if (net.rank() == 1) broken[123] = NAN;
            try {
                group workers{net, topology::ring{}};
                all_reduce(workers, broken, output, codec);
                fail("missed the NaN");
            } catch (const invalid_value& e) {
                if (e.culprit() != 1) fail("blames " + std::to_string(e.culprit()));
                if (std::string(e.what()).find("coordinate 123") == std::string::npos) fail(e.what());
            }
        }
        for (std::size_t i = 0; i < n; ++i) {
            // A rank that was stopped before it contributed keeps its residual; the caller repeats its gradient.
            const float left = codec.residual()[i];
            if (left != 0 && (net.rank() == 1 || left != input[i])) return fail("has another residual");
        }
        const bool returned = codec.residual()[7] == input[7];
        group workers{net, topology::ring{}};
        const std::vector<float> nothing(n, 0.0F);
        all_reduce(workers, returned ? nothing : input, output, codec);
        for (std::size_t i = 0; i < n; ++i) {
            float expected = 0;
            for (int r = 0; r < net.size(); ++r) expected += value<float>(r, i);
            if (output[i] != 0 && output[i] != expected) return fail("has another mask at " + std::to_string(i));
        }
    };
    in_process::run(3, body);
    simulated::run(3, {}, body);
    CHECK(all.text() == "");
}

TEST_CASE("a result that is refused returns the contribution") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              auto codec = compress::error_feedback{compress::top_k{.density = 0.05}}.bind(n);
              const auto input = dense_input<float>(workers.rank(), n);
              const std::vector<float> nothing(n, 0.0F);
              std::vector<float> refused(n), accepted(n);
              const auto refuse = [](const receipt&) { return false; };
              all_reduce(workers, input, refused, codec, aggregate::mean{}, {}, refuse);
              for (std::size_t i = 0; i < n; ++i)
                  if (codec.residual()[i] != input[i]) return fail("a refused contribution did not return");
              all_reduce(workers, nothing, accepted, codec, aggregate::mean{});
              if (accepted != refused) fail("the contribution that returned is not the one that was refused");
          }) == "");
}

TEST_CASE("a rank of weight zero keeps its residual") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              auto codec = compress::error_feedback{compress::top_k{.count = 9}}.bind(n);
              std::vector<float> output(n);
              const auto input = dense_input<float>(workers.rank(), n);
              all_reduce(workers, input, output, codec);
              const std::vector<float> before(codec.residual().begin(), codec.residual().end());
              const bool silent = workers.rank() == 0;
              const auto done =
                  all_reduce(workers, input, output, codec, aggregate::sum{}, {.weight = silent ? 0.0 : 1.0});
              const std::vector<float> after(codec.residual().begin(), codec.residual().end());
              if (silent && after != before) fail("a silent rank changed its residual");
              if (!silent && after == before) fail("a rank that contributed did not change its residual");
              if (done.contributors != workers.size() - 1) fail("counted a silent rank");
          }) == "");
}

TEST_CASE("a result into a stream holds what a dense one holds, and no more entries than were sent") {
    using namespace rill::compress;
    CHECK(on_every_group([](auto& workers, auto fail) {
              const auto check = [&](const std::string& what, const auto& policy) {
                  auto one = policy.template bind<float>(n), other = policy.template bind<float>(n);
                  const auto input = dense_input<float>(workers.rank(), n);
                  std::vector<float> dense(n), spread(n);
                  stream<float> sparse(7);
                  const std::uint64_t number = workers.operation_number();
                  all_reduce(workers, input, dense, one, aggregate::mean{});
                  workers.resume_at(number);  // for equal random numbers
                  const receipt done = all_reduce(workers, input, sparse, other, aggregate::mean{});
                  if (done.contributors != workers.size()) fail(what + " counts others");
                  if (sparse.range() != segment{0, n}) fail(what + " has another range");
                  copy_dense(sparse.view(), std::span<float>(spread), 0.0F);
                  if (spread != dense) fail(what + " is another result");
                  if (what == "top_k" && sparse.count() > 5U * static_cast<std::size_t>(workers.size()))
                      fail("has " + std::to_string(sparse.count()) + " entries");
              };
              check("top_k", error_feedback{top_k{.count = 5}});
              check("keep_all", keep_all{});
              check("qsgd", coded{top_k{.density = 0.2}, qsgd{.bits = 8}, packed_gaps{}});
          }) == "");
}
