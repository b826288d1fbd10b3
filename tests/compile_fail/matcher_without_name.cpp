// expect: rill::Matcher: name or match is missing
#include <rill/topology/bandwidth_matching.hpp>

#include <array>
#include <span>
#include <vector>

struct greedy {
#ifdef RILL_FIXED
    static constexpr const char* name = "greedy";
#endif
    static std::vector<rill::rank_t> match(int ranks, std::span<const std::array<rill::rank_t, 2>>) {
        return std::vector<rill::rank_t>(static_cast<std::size_t>(ranks), rill::no_rank);
    }
    friend bool operator==(const greedy&, const greedy&) = default;
};

rill::topology::bandwidth_matching over(const std::vector<double>& links) {
    return {.links = links, .least = 1, .matcher = greedy{}};
}
