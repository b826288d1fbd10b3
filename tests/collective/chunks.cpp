#include <rill/collective/detail/chunks.hpp>

#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/delayed.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include "cases.hpp"
#include "foresight.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace rill;
using foresight::choosy, foresight::foreseeing;

static_assert(ExpectingTransport<foreseeing<in_process::endpoint>>);

/// Reals whose sum depends on the order of the operands.
std::vector<float> reals(int rank, std::size_t n) {
    std::vector<float> made(n);
    for (std::size_t i = 0; i < n; ++i)
        made[i] = 1.0F / static_cast<float>(3 + (i * 7 + 13 * static_cast<std::size_t>(rank)) % 101);
    return made;
}

/// The results of all_reduce, and of reduce_scatter followed by all_gather.
template <class Shape, class Net>
std::vector<float> sum_of_reals(Net& net, std::size_t n, bool in_place) {
    group workers{net, Shape{}};
    const std::vector<float> input = reals(net.rank(), n);
    std::vector<float> output = in_place ? input : std::vector<float>(n);
    if (in_place)
        all_reduce(workers, output, output);
    else
        all_reduce(workers, input, output);
    const auto ranks = static_cast<std::size_t>(net.size());
    std::vector<float> part(split(n, ranks, static_cast<std::size_t>(net.rank())).size()), gathered(n);
    if (reduce_scatter(workers, input, part).contributors != net.size()) return {};
    if (all_gather(workers, part, gathered).contributors != net.size()) return {};
    output.insert(output.end(), gathered.begin(), gathered.end());
    return output;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// Through `delayed`, which passes the chunk size on, but not the places for expected messages.
template <class Shape>
std::string difference_of_delayed(in_process::endpoint& net, std::size_t n, const std::vector<float>& whole) {
    foreseeing<in_process::endpoint> inner(net, 20);
    delayed late(inner);
    static_assert(ExpectingTransport<decltype(late)> && !ExpectingTransport<delayed<in_process::endpoint>>);
    if (late.chunk_bytes() != 20) return "other chunks";
    if (!same_bits(whole, sum_of_reals<Shape>(late, n, false))) return "other bits";
    if (inner.expected == 0 || inner.placed != 0 || inner.forgotten != 0) return "other expectations";
    return "";
}

template <class Shape>
void compare_with_whole() {
    cases::failures all;
    for (int ranks : {2, 3, 5, 8})
        for (std::size_t n : {0U, 1U, 65U, 1000U})
            in_process::run(ranks, [&](in_process::endpoint& net) {
                const std::vector<float> whole = sum_of_reals<Shape>(net, n, false);
                if (whole.size() != 2 * n) all.add("not every rank contributes");
                choosy<in_process::endpoint> picky(net, 20);
                foreseeing<in_process::endpoint> eager(net, 20);
                const std::string where = "P=" + std::to_string(ranks) + " N=" + std::to_string(n);
                for (bool in_place : {false, true}) {
                    if (!same_bits(whole, sum_of_reals<Shape>(picky, n, in_place))) all.add(where);
                    if (!same_bits(whole, sum_of_reals<Shape>(eager, n, in_place))) all.add(where + " expected");
                }
                if (eager.forgotten != 0) all.add(where + ": expected what did not come");
                if (Shape::has_copy_phase && n == 1000 && eager.placed == 0) all.add(where + ": no place was given");
            });
    CHECK_MESSAGE(all.text().empty(), std::string(Shape::name), ": ", all.text());
}

}  // namespace

TEST_CASE("chunks: a delayed transport asks for the chunk size of its inner one, and receives chunks early") {
    cases::failures all;
    in_process::run(3, [&](in_process::endpoint& net) {
        const std::string differs =
            difference_of_delayed<topology::ring>(net, 1000, sum_of_reals<topology::ring>(net, 1000, false));
        if (!differs.empty()) all.add(differs);
    });
    CHECK(all.text() == "");
}

TEST_CASE("chunks: the bits are those of messages that are not cut") {
    compare_with_whole<topology::ring>();
    compare_with_whole<topology::split_allgather>();
    compare_with_whole<topology::recursive_doubling>();
}

TEST_CASE("chunks: their number follows from the size that is asked for") {
    const auto ring_of_4 = topology::ring{}.all_reduce(4, 0);
    CHECK(detail::chunks_of(ring_of_4, 0, 100) == 1);
    CHECK(detail::chunks_of(ring_of_4, 4 * 100, 100) == 1);
    CHECK(detail::chunks_of(ring_of_4, 4 * 101, 100) == 2);
    CHECK(detail::chunks_of(ring_of_4, 4'000'000, 100) == 1024);
    CHECK(detail::chunks_of(ring_of_4, 4000, static_cast<std::size_t>(-1)) == 1);
    CHECK(detail::chunks_of(topology::halving_doubling{}.all_reduce(4, 0), 4'000'000, 100) == 1);
}

TEST_CASE("chunks: those of one round travel while those of another are on their way") {
    constexpr std::size_t n = 4000, frame = wire::header_bytes + n;  // a quarter of the floats
    const simulated::network links{.latency = microseconds(100), .bandwidth = 1'000'000'000};
    const auto time_of = [&](auto& net) {
        group workers{net, topology::ring{}};
        std::vector<float> data(n, 1), result(n);
        net.sleep_until({1'000'000'000});
        const receipt done = all_reduce(workers, data, result);
        CHECK(done.rounds == 6);
        return done.elapsed;
    };
    simulated::run(4, links, [&](simulated::endpoint& net) {
        CHECK(time_of(net).ns == ((links.latency + rill::transfer_time(frame, links.bandwidth)) * 6).ns);
    });
    simulated::run(4, links, [&](simulated::endpoint& net) {
        choosy<simulated::endpoint> picky(net, n / 4);
        // Only the last chunk of a round waits for the bytes before it; the earlier chunks are already on the link.
        const duration chunk = rill::transfer_time(wire::header_bytes + n / 4, links.bandwidth);
        CHECK(time_of(picky).ns == ((links.latency + chunk) * 6 + chunk * 3).ns);
    });
}

TEST_CASE("chunks: reduce_scatter and all_gather send chunks too") {
    constexpr std::size_t n = 4000;  // floats, of which a quarter goes in each of 3 rounds
    const simulated::network links{.latency = microseconds(100), .bandwidth = 1'000'000'000};
    simulated::run(4, links, [&](simulated::endpoint& net) {
        std::vector<float> all(n, 1), part(n / 4);
        const auto play = [&](auto& through) {
            group workers{through, topology::ring{}};
            return std::vector{reduce_scatter(workers, all, part), all_gather(workers, part, all)};
        };
        const auto whole = play(net);
        choosy<simulated::endpoint> picky(net, n / 4);
        const auto cut = play(picky);
        for (std::size_t i = 0; i < whole.size(); ++i) {
            CHECK(whole[i].wire.messages_sent == 3);
            CHECK(cut[i].wire.messages_sent == 12);
            CHECK(cut[i].contributors == 4);
            CHECK(cut[i].rounds == 3);
        }
    });
}
