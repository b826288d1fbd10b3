#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// A directed link between two ranks. n bytes occupy it for n / bandwidth and arrive `latency` later.
struct network_link {
    duration latency = microseconds(10);
    std::uint64_t bandwidth = 1'250'000'000;  ///< bytes per second; 0: without limit

    friend constexpr bool operator==(const network_link&, const network_link&) = default;
};

/// Says what link leads from one rank to another: `model(source, receiver)`. Any callable with this signature models
/// it. It is called once for each pair of ranks that exchange messages, and must give equal results for equal
/// arguments.
template <class M>
concept LinkModel = requires(const M& model, rank_t rank) {
    { model(rank, rank) } -> std::convertible_to<network_link>;
};

/// Gives every two ranks an equal link. Models `LinkModel`.
struct uniform_links {
    network_link each{};

    constexpr network_link operator()(rank_t, rank_t) const { return each; }
};

/// Groups of `group` consecutive ranks, with one kind of link inside a group and another between groups: racks, or
/// machines with several processes each. Models `LinkModel`.
struct grouped_links {
    int group = 1;
    network_link inside{};
    network_link between{};

    constexpr network_link operator()(rank_t source, rank_t receiver) const {
        RILL_EXPECTS(group >= 1, "grouped_links: a group has at least one rank");
        return source / group == receiver / group ? inside : between;
    }
};

/// A matrix of `ranks` x `ranks` links: row i holds the links that leave rank i. Models `LinkModel`.
class matrix_links {
  public:
    /// Copies the matrix, given row by row; the diagonal is ignored.
    matrix_links(int ranks, std::span<const network_link> rows) : ranks_(ranks), rows_(rows.begin(), rows.end()) {
        RILL_EXPECTS(ranks >= 0 && rows.size() == static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks),
                     "matrix_links: needs ranks x ranks links");
    }

    /// Both ranks must be less than `ranks`.
    network_link operator()(rank_t source, rank_t receiver) const {
        RILL_EXPECTS(0 <= source && source < ranks_ && 0 <= receiver && receiver < ranks_,
                     "matrix_links: no row or column for this rank");
        return rows_[static_cast<std::size_t>(source) * static_cast<std::size_t>(ranks_) +
                     static_cast<std::size_t>(receiver)];
    }

  private:
    int ranks_;
    std::vector<network_link> rows_;
};

}}  // namespace rill::RILL_ABI
