// A cut link is named by both of its ends, on every rank, whichever timeout expires first.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

using namespace cases;
using rill::milliseconds;

namespace {

constexpr rill::duration longest_wait = milliseconds(200);

/// What one rank was told.
struct outcome {
    rill::rank_t culprit = rill::no_rank;
    rill::rank_t other = rill::no_rank;
    std::string said{};
    bool is_exact = false;

    bool blames(rill::rank_t a, rill::rank_t b) const { return std::minmax(culprit, other) == std::minmax(a, b); }
    friend bool operator==(const outcome&, const outcome&) = default;
};

/// Makes `call(group, in, out)` twice on every rank, with one link cut from the second call on, which each rank enters
/// at its own time. Returns the outcome of the second call: ranks that do not need the link may have got their result.
template <class Shape, class Call>
std::vector<outcome> with_cut_link(Shape shape, int ranks, rill::rank_t from, rill::rank_t to, Call call) {
    std::vector<outcome> all(static_cast<std::size_t>(ranks));
    const rill::fault_plan plan{.faults = {rill::faults::cut(from, to).at(milliseconds(10))}};
    rill::simulated::run(ranks, {.faults = plan}, [&](auto& net) {
        rill::group workers{net, shape, {.timeout = longest_wait}};
        const std::uint64_t late = rill::mix64(std::uint64_t{5}, static_cast<std::uint64_t>(net.rank())) % 90;
        net.sleep_until(rill::time_point{} + milliseconds(10 + static_cast<std::int64_t>(late)));
        std::vector<float> input = dense_input<float>(net.rank(), 1000), output(input.size());
        outcome& own = all[static_cast<std::size_t>(net.rank())];
        const auto attempt = [&] {
            try {
                call(workers, input, output);
            } catch (const rill::timeout& e) {
                return outcome{e.culprit(), e.notice().other, e.what()};
            }
            return outcome{.is_exact = output == oracle<float>(ranks, input.size(), rill::aggregate::sum{})};
        };
        const outcome first = attempt();
        own = attempt();
        if (!first.is_exact && first != own) own.said = first.said + " and then " + own.said;
        if (input != dense_input<float>(net.rank(), 1000)) own.said += " and an input has changed";
    });
    return all;
}

}  // namespace

TEST_CASE("a link that is cut is named by both ends on every rank, or nobody misses it") {
    failures wrong;
    int cuts_that_matter = 0;
    for_each_topology([&](auto shape) {
        for (const int ranks : {3, 8})
            for (rill::rank_t from = 0; from < ranks; ++from)
                for (rill::rank_t to = 0; to < ranks; ++to) {
                    if (from == to) continue;
                    const auto all = with_cut_link(
                        shape, ranks, from, to,
                        [](auto& workers, const auto& in, auto& out) { rill::all_reduce(workers, in, out); });
                    cuts_that_matter += all.front().is_exact ? 0 : 1;
                    for (std::size_t r = 0; r < all.size(); ++r)
                        if (all[r].is_exact != all.front().is_exact || !(all[r].is_exact || all[r].blames(from, to)))
                            wrong.add(std::string(shape.name) + " P=" + std::to_string(ranks) + " cut " +
                                      std::to_string(from) + "->" + std::to_string(to) + ": rank " + std::to_string(r) +
                                      ": " + all[r].said);
                }
    });
    CHECK(cuts_that_matter > 50);
    CHECK(wrong.text() == "");
}
