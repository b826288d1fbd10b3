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

/// A directed link between two ranks: n bytes occupy it for n / bandwidth and arrive `latency` later.
struct network_link {
    duration latency = microseconds(10);
    std::uint64_t bandwidth = 1'250'000'000;  ///< bytes per second; 0: without limit

    friend constexpr bool operator==(const network_link&, const network_link&) = default;
};

/// Says what link leads from one rank to another. Any function of that shape is one; it is asked once for each pair of
/// ranks that ever send, and must give the same answer each time.
template <class M>
concept LinkModel = requires(const M& model, rank_t rank) {
    { model(rank, rank) } -> std::convertible_to<network_link>;
};

/// The same link between every two ranks.
struct uniform_links {
    network_link each{};

    constexpr network_link operator()(rank_t, rank_t) const { return each; }
};

/// Groups of `group` consecutive ranks: one link inside a group, another between groups. Racks, or machines with
/// several processes each.
struct grouped_links {
    int group = 1;
    network_link inside{};
    network_link between{};

    constexpr network_link operator()(rank_t source, rank_t receiver) const {
        RILL_EXPECTS(group >= 1, "grouped_links: a group has at least one rank");
        return source / group == receiver / group ? inside : between;
    }
};

/// Links row by row: `ranks` x `ranks`, those that leave a rank in its row.
class matrix_links {
  public:
    /// Copies the matrix, whose diagonal is not looked at.
    matrix_links(int ranks, std::span<const network_link> rows) : ranks_(ranks), rows_(rows.begin(), rows.end()) {
        RILL_EXPECTS(ranks >= 0 && rows.size() == static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks),
                     "matrix_links: needs ranks x ranks links");
    }

    /// Both ranks must be of the matrix.
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
