// Compressed contributions through whole collectives, on both transports.
#include <rill/collective/all_reduce.hpp>

#include <rill/aggregate/mean.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/threshold.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/topology/any.hpp>

#include "../collective/cases.hpp"
#include "samples.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using namespace rill;
using namespace cases;
using compress_tests::gradient;

namespace {

constexpr std::size_t n = 500;

/// Rank `rank`'s contribution to operation number `operation`, as a dense vector.
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

/// Checks that a codec that sends exact values gives exactly the sum of the chosen entries.
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

/// Runs `body(group, fail)` on three ranks, for every topology and transport; returns what failed.
template <class Body>
std::string on_three_ranks(Body body) {
    failures all;
    for_each_topology([&](const topology::any& shape) {
        const auto on_rank = [&](auto& net) {
            group workers{net, shape};
            body(workers, [&](const std::string& what) {
                all.add(std::string(shape.shape_name()) + " rank " + std::to_string(net.rank()) + ": " + what);
            });
        };
        in_process::run(3, on_rank);
        simulated::run(3, {}, on_rank);
    });
    return all.text();
}

}  // namespace

TEST_CASE("lossless codecs give the sum of the chosen entries") {
    using namespace rill::compress;
    CHECK(on_every_group_of_any([](auto& workers, auto fail) {
              check_exact(workers, fail, "keep_all", keep_all{});
              check_exact(workers, fail, "top_k", top_k{.density = 0.03});
              check_exact(workers, fail, "all of top_k", encoded{top_k{.count = n}, raw{}, bitmap{}});
              check_exact(workers, fail, "bucket_top_k",
                          encoded{bucket_top_k{.count = 2, .bucket = 64}, raw{}, packed_gaps{}});
              check_exact(workers, fail, "Elias and Fano", encoded{top_k{.density = 0.1}, raw{}, elias_fano{}});
              check_exact(workers, fail, "threshold", encoded{threshold{.limit = 15}, raw{}, smallest{}});
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

TEST_CASE("after a failed step all ranks draw the same mask again, and their contributions are in the residuals") {
    failures all;
    const auto body = [&](auto& net) {
        const auto fail = [&](const std::string& what) { all.add("rank " + std::to_string(net.rank()) + " " + what); };
        auto codec = compress::error_feedback{compress::random_mask{.density = 0.2}}.bind(n);
        std::vector<float> input = dense_input<float>(net.rank(), n), output(n);
        bool given = false;  // false if the failure arrived while the group was made
        {
            auto broken = input;
            if (net.rank() == 1) broken[123] = NAN;
            try {
                group workers{net, topology::ring{}};
                given = true;
                all_reduce(workers, broken, output, codec);
                fail("missed the NaN");
            } catch (const invalid_value& e) {
                if (e.culprit() != 1) fail("blames " + std::to_string(e.culprit()));
                if (std::string(e.what()).find("coordinate 123") == std::string::npos) fail(e.what());
            }
        }
        const bool returned = given && net.rank() != 1;  // rank 1's own contribution was refused
        for (std::size_t i = 0; i < n; ++i)
            if (codec.residual()[i] != (returned ? input[i] : 0)) return fail("has another residual");
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

TEST_CASE("a value that only its coding refuses stays in the residual, and the next call is refused too") {
    failures all;
    simulated::run(2, {}, [&](auto& net) {
        using namespace rill::compress;
        const auto fail = [&](const std::string& what) { all.add("rank " + std::to_string(net.rank()) + " " + what); };
        auto codec = error_feedback{encoded{top_k{.count = 1}, bf16{}}}.bind(4);
        std::vector<float> input(4, 0.0F), output(4);
        const float largest = std::numeric_limits<float>::max();
        if (net.rank() == 1) input[2] = largest;
        for (int step = 0; step < 2; ++step) {
            group workers{net, topology::split_allgather{}};
            expect_error<invalid_value>([&] { all_reduce(workers, input, output, codec); }, 1, "too large for bfloat16",
                                        fail);
            if (codec.residual()[2] != (net.rank() == 1 ? largest : 0)) fail("has another residual");
            input.assign(4, 0.0F);
        }
    });
    CHECK(all.text() == "");
}

TEST_CASE("a refused result returns the contribution to the residual") {
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

TEST_CASE("a stream result has the values of a dense one, and at most as many entries as were sent") {
    using namespace rill::compress;
    CHECK(on_every_group_of_any([](auto& workers, auto fail) {
              const auto check = [&](const std::string& what, const auto& policy) {
                  auto one = policy.template bind<float>(n), other = policy.template bind<float>(n);
                  const auto input = dense_input<float>(workers.rank(), n);
                  std::vector<float> dense(n), spread(n);
                  stream<float> sparse(7);
                  const std::uint64_t number = workers.operation_number();
                  all_reduce(workers, input, dense, one, aggregate::mean{});
                  workers.resume_at(number);  // draws the same random numbers
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
              check("qsgd", encoded{top_k{.density = 0.2}, qsgd{.bits = 8}, packed_gaps{}});
          }) == "");
}

TEST_CASE("ranks whose random masks differ get a mismatch, whatever the seeds: 40 of 40") {
    const auto refused = [](const compress::random_mask& usual, const compress::random_mask& odd) {
        failures all;
        simulated::run(3, {}, [&](auto& net) {
            group workers{net, topology::ring{}};
            auto codec = (net.rank() == 1 ? odd : usual).bind(12);
            std::vector<float> data(12, 1);
            expect_error<mismatch>([&] { all_reduce(workers, data, data, codec); }, 1, "rank 1 calls with",
                                   [&](const std::string& what) { all.add(what); });
        });
        return all.text() == "";
    };
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
        found += refused({.density = 0.5}, {.density = 0.5, .seed = seed}) ? 1 : 0;
    CHECK(found == 40);
    CHECK(refused({.density = 0.5}, {.density = 0.500001}));
}

TEST_CASE("the message of a mismatch says whether it is the compressor or its coding") {
    const auto differs = [](const std::string& what, const auto& usual, const auto& odd) {
        CAPTURE(what);
        CHECK(on_three_ranks([&](auto& workers, auto fail) {
                  std::vector<float> data(64, 1);
                  const auto call = [&](const auto& policy) {
                      auto codec = policy.template bind<float>(64);
                      all_reduce(workers, data, data, codec);
                  };
                  expect_error<mismatch>([&] { workers.rank() == 1 ? call(odd) : call(usual); }, 1,
                                         "rank 1 calls with another " + what + " than the others", fail);
              }) == "");
    };
    using namespace compress;
    differs("compressor", random_mask{.density = 0.5}, random_mask{.density = 0.5, .seed = 1});
    differs("compressor", random_mask{.density = 1}, random_mask{.density = 1, .seed = 1});
    differs("compressor", random_mask{.density = 1}, keep_all{});
    differs("coding", encoded{top_k{.count = 9}, qsgd{.bucket = 64}}, encoded{top_k{.count = 9}, qsgd{.bucket = 32}});
    differs("coding", keep_all{}, encoded{keep_all{}, bf16{}});
}

TEST_CASE("ranks may choose different numbers of entries") {
    CHECK(on_three_ranks([](auto& workers, auto fail) {
              auto codec = compress::top_k{.count = 1 + static_cast<std::size_t>(workers.rank())}.bind(64);
              std::vector<float> data(64, 1), output(64);
              all_reduce(workers, data, output, codec);
              if (output[0] != static_cast<float>(workers.size())) fail("has another sum");
          }) == "");
}

TEST_CASE("a contribution stays in the residual, however early the call fails") {
    const auto check = [](const auto& policy, bool in_background) {
        failures all;
        simulated::run(4, {}, [&](auto& net) {
            const auto fail = [&](const std::string& what) {
                all.add("rank " + std::to_string(net.rank()) + " " + what);
            };
            group workers{net, topology::ring{}};
            auto codec = policy.template bind<float>(16);
            std::vector<float> input(16), output(16);
            for (std::size_t i = 0; i < 16; ++i) input[i] = static_cast<float>(i + 1);
            const auto call = [&] {
                if (in_background)
                    start_all_reduce(workers, input, output, codec).get();
                else
                    all_reduce(workers, input, output, codec);
            };
            const auto left = [&] {
                float sum = 0;
                for (const float x : codec.residual()) sum += x;
                return sum;
            };
            if (net.rank() == 3) {
                net.sleep_until(net.now() + milliseconds(5));  // until all ranks have made the group
                try {
                    start(workers, [](auto&) -> receipt { throw std::runtime_error("no data"); }).get();
                } catch (const std::runtime_error&) {
                }
                return;
            }
            net.sleep_until(net.now() + milliseconds(10));  // the failure has arrived before
            expect_error<peer_failure>(call, 3, "", fail);
            if (left() != 136) fail("keeps " + std::to_string(left()) + " of 136");
            expect_error<peer_failure>(call, 3, "", fail);
            if (left() != 272) fail("keeps " + std::to_string(left()) + " of 272 after a call on an ended group");
        });
        return all.text();
    };
    for (const bool in_background : {false, true}) {
        CHECK(check(compress::error_feedback{compress::top_k{.count = 3}}, in_background) == "");
        CHECK(check(compress::error_feedback{compress::random_mask{.density = 0.3}}, in_background) == "");
    }
}

TEST_CASE("a codec serves one operation at a time, also of different groups") {
    failures all;
    const auto body = [&](auto& net) {
        const auto fail = [&](const std::string& what) { all.add(what); };
        group first{net, topology::ring{}}, second{net, topology::ring{}};
        auto codec = compress::top_k{.count = 3}.bind(64);
        std::vector<float> data(64, 1), one(64), other(64);
        {
            auto under_way = start_all_reduce(first, data, one, codec);
            try {
                all_reduce(second, data, other, codec);
                fail("lets one codec into two groups");
            } catch (const contract_violation&) {
            }
            under_way.get();
        }
        all_reduce(second, data, other, codec);
        if (one != other) fail("has another sum");
    };
    simulated::run(3, {}, body);
    in_process::run(3, body);
    CHECK(all.text() == "");
}

TEST_CASE("a rank that contributes a non-finite value is blamed, also where the owner of the part rounds the sum") {
    using namespace compress;
    const auto check_at = [](const auto& policy, float bad, std::size_t at) {
        CHECK(on_three_ranks([&](auto& workers, auto fail) {
                  if (workers.shape().holds_copy_phase()) {
                      auto codec = policy.template bind<float>(64);
                      std::vector<float> input(64, 1), output(64);
                      if (workers.rank() == 2) input[at] = bad;
                      const auto call = [&] {
                          barrier(workers);  // the failure may arrive before a rank has left the previous operation
                          all_reduce(workers, input, output, codec);
                      };
                      expect_error<invalid_value>(call, 2, "coordinate " + std::to_string(at), fail);
                  }
              }) == "");
    };
    const auto check = [&](const auto& policy, float bad) {
        for (const std::size_t at : {0U, 20U, 63U}) check_at(policy, bad, at);
    };
    check(encoded{keep_all{}, raw{}, raw_indices{}, qsgd{}}, NAN);
    check(encoded{keep_all{}, raw{}, raw_indices{}, qsgd{}}, INFINITY);
    check(encoded{keep_all{}, raw{}, raw_indices{}, bf16{}}, NAN);
    check(encoded{keep_all{}, raw{}, raw_indices{}, bf16{}}, std::numeric_limits<float>::max());
    check(encoded{keep_all{}, qsgd{}, raw_indices{}, qsgd{}}, -INFINITY);
    check(encoded{random_mask{.density = 1}, raw{}, raw_indices{}, qsgd{}}, NAN);
}

TEST_CASE("what value codings round off is sent later, and is never lost") {
    using namespace compress;
    // The input is the same in every step: the mean of the results is the input, apart from what one step may leave
    // out.
    const auto distance = [](const auto& policy) {
        failures all;
        double most = 0;
        constexpr int steps = 1000;
        simulated::run(2, {}, [&](auto& net) {
            group workers{net, topology::split_allgather{}};
            auto codec = policy.template bind<float>(64);
            std::vector<float> input(64), output(64);
            std::vector<double> sum(64);
            for (std::size_t i = 0; i < 64; ++i) input[i] = 1 + 0.0001F * static_cast<float>(i * 7 % 64);
            for (int step = 0; step < steps; ++step) {
                all_reduce(workers, input, output, codec, aggregate::mean{});
                for (std::size_t i = 0; i < 64; ++i) sum[i] += static_cast<double>(output[i]);
            }
            for (std::size_t i = 0; i < 64; ++i) {
                const double off = std::abs(sum[i] / steps - static_cast<double>(input[i]));
                if (net.rank() == 0 && off > most) most = off;
            }
        });
        return most;
    };
    CHECK(distance(encoded{keep_all{}, bf16{}}) > 0.002);  // without error feedback
    CHECK(distance(error_feedback{encoded{keep_all{}, bf16{}}}) < 1e-5);
    CHECK(distance(error_feedback{encoded{top_k{.count = 40}, bf16{}, packed_gaps{}}}) < 2e-3);
    CHECK(distance(error_feedback{encoded{random_mask{.density = 1}, bf16{}}}) < 1e-5);
    const double unbiased = distance(error_feedback{encoded{keep_all{}, qsgd{.bits = 8, .bucket = 32}}});
    const double fed_back = distance(error_feedback{encoded{keep_all{}, qsgd{.bits = 8, .bucket = 32}}, true});
    CHECK(unbiased > 1e-5);
    CHECK(fed_back < 1e-5);
}

TEST_CASE("what was rounded off returns to the residual if the step fails, alike on both transports") {
    using namespace compress;
    const auto residuals = [](auto run, const auto& policy) {
        std::vector<std::vector<float>> left(3);
        run(3, [&](auto& net) {
            group workers{net, topology::ring{}};
            auto codec = policy.template bind<float>(n);
            std::vector<float> output(n);
            const auto refuse = [](const receipt&) { return false; };
            for (std::uint64_t step = 0; step < 4; ++step) {
                all_reduce(workers, gradient<float>(n, step), output, codec, aggregate::mean{});
                all_reduce(workers, gradient<float>(n, step + 9), output, codec, aggregate::mean{}, {}, refuse);
            }
            left[static_cast<std::size_t>(net.rank())].assign(codec.residual().begin(), codec.residual().end());
        });
        return left;
    };
    const auto check = [&](const auto& policy) {
        const auto threads = [](int ranks, auto body) { in_process::run(ranks, body); };
        const auto fibers = [](int ranks, auto body) { simulated::run(ranks, {}, body); };
        CHECK(residuals(threads, policy) == residuals(fibers, policy));
    };
    check(error_feedback{encoded{keep_all{}, bf16{}}});
    check(error_feedback{encoded{top_k{.count = 50}, qsgd{}, packed_gaps{}}, true});
}
