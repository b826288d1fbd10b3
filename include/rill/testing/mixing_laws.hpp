#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/law.hpp>
#include <rill/topology/verify_mixing.hpp>

#include <cstdint>
#include <string>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

inline constexpr std::uint64_t mixing_rounds_in_law = 40;

/// Returns the first defect among `size` ranks under some keys, or an empty string.
template <class M>
std::string defect_of_mixing(const M& mixing, int size) {
    for (std::uint64_t key = 0; key < 4; ++key) {
        const topology::mixing_verdict found =
            topology::verify_mixing(mixing, size, {.count = mixing_rounds_in_law}, random_key{key});
        if (found.ok) continue;
        std::string what = std::to_string(size) + " ranks, round " + std::to_string(found.round) + ", rank " +
                           std::to_string(found.rank);
        if (found.peer != no_rank) what += " and rank " + std::to_string(found.peer);
        return what + ": " + found.what;
    }
    return {};
}

/// An object that skips rounds, or is asked twice, gives the rows of one that is asked for all rounds of all ranks.
template <class M>
bool rows_depend_on_round_alone(const M& mixing, int size) {
    const random_key key{7};
    auto every = mixing.bind(size, key);
    mixing_row wanted, seen;
    for (std::uint64_t stride = 1; stride < 6; ++stride) {
        auto some = mixing.bind(size, key);
        auto all = every;
        for (std::uint64_t round = 0; round < mixing_rounds_in_law; ++round)
            for (rank_t rank = 0; rank < size; ++rank) {
                all.fill(round, rank, wanted);
                if (round % stride != 0 || rank != static_cast<rank_t>(stride) % size) continue;
                for (int again = 0; again < 2; ++again) {
                    some.fill(round, rank, seen);
                    if (!(seen == wanted)) return false;
                }
            }
    }
    return true;
}

}  // namespace detail

/// Checks a mixing against the laws of the concept for each of these numbers of ranks. Calls
/// `visit(const char* name, const law_outcome&)` once per law.
template <Mixing M, class Sizes, class Visit>
void for_each_mixing_law(const M& mixing, const Sizes& sizes, Visit&& visit) {
    law_outcome keeps_promises, is_function;
    for (const int size : sizes) {
        const std::string defect = detail::defect_of_mixing(mixing, size);
        if (keeps_promises.held && !defect.empty())
            keeps_promises = {.held = false, .what = std::string(M::name) + ": " + defect};
        if (is_function.held && !detail::rows_depend_on_round_alone(mixing, size))
            is_function = {.held = false,
                           .what = std::string(M::name) + ": with " + std::to_string(size) +
                                   " ranks a row depends on what was asked before"};
    }
    visit("rows of all ranks belong together and keep what the flags promise", keeps_promises);
    visit("a row depends on size, key, round and rank alone", is_function);
}

}}}  // namespace rill::RILL_ABI::testing
