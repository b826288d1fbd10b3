#pragma once

#include <rill/concept/regular.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Another rank whose model counts in a round of gossip, and its weight.
struct mixing_end {
    rank_t peer = no_rank;
    double weight = 0;

    friend constexpr bool operator==(const mixing_end&, const mixing_end&) = default;
};

/// One rank's part in a round of gossip: to whom it sends its model, and of what its next model is the sum.
struct mixing_row {
    double own_weight = 1;
    std::vector<mixing_end> senders{};  ///< ascending by rank, without this one
    std::vector<rank_t> receivers{};    ///< ascending, without this one

    friend bool operator==(const mixing_row&, const mixing_row&) = default;
};

/// A mixing of a certain number of ranks: row i of the matrix W of each round, by which model i becomes Σ w_ij · model
/// j.
///
/// `fill(round, rank, row)` writes one row; it reuses the memory of `row`. It is asked for rounds that do not descend,
/// and may skip some; objects that were bound alike give the same rows whatever each has been asked before.
template <class B>
concept BoundMixing = requires(B& bound, std::uint64_t round, rank_t rank, mixing_row& row) {
    { bound.fill(round, rank, row) };
};

/// The policy that says who mixes its model with whom, and with which weights.
///
/// - `bind(size, key)`: for so many ranks; `key` draws what is random. Throws `contract_violation` if the policy does
///   not suit them.
/// - `is_doubly_stochastic`: all rows and columns of each W sum to 1, so that the mean of all models stays. Otherwise
///   columns do, which keeps the sum where it is divided by weights that are mixed too (push-sum).
/// - `is_symmetric`: w_ij and w_ji are the same number, so that two ranks exchange.
/// - `keeps_neighbours`: all rounds have the same W.
///
/// Proof: `topology::verify_mixing`. Laws: `testing::for_each_mixing_law`.
template <class M>
concept Mixing = Regular<M> && requires(const M& mixing, int size, random_key key) {
    { M::name } -> std::convertible_to<const char*>;
    { M::is_doubly_stochastic } -> std::convertible_to<bool>;
    { M::is_symmetric } -> std::convertible_to<bool>;
    { M::keeps_neighbours } -> std::convertible_to<bool>;
    requires BoundMixing<decltype(mixing.bind(size, key))>;
};

}}  // namespace rill::RILL_ABI
