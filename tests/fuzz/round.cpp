// Arbitrary bytes as a child's message in a round: a contribution with its contributor list, or a `protocol_error`.
// What was read can be folded and sent to the parent, and reads the same again.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/aggregate/sum.hpp>
#include <rill/core/serial.hpp>
#include <rill/protocol/detail/round_fold.hpp>
#include <rill/protocol/detail/round_machine.hpp>

#include <cmath>
#include <vector>

namespace {

using namespace rill;
using rill::detail::contributor_list;
using rill::detail::round_operands;

constexpr int ranks = 5;

void require_valid(const contributor_list& contributors) {
    for (const contributor& each : contributors.in) {
        RILL_FUZZ_REQUIRE(0 <= each.rank && each.rank < ranks, "a rank that is there");
        RILL_FUZZ_REQUIRE(std::isfinite(each.weight) && each.weight > 0, "a weight that can be summed");
    }
    for (const latecomer& each : contributors.late) {
        RILL_FUZZ_REQUIRE(0 <= each.rank && each.rank < ranks, "a rank that is there");
        RILL_FUZZ_REQUIRE(each.by.ns >= 0, "a time that has passed");
    }
}

template <class T>
void check(rill::fuzz::input in) {
    const std::size_t dimension = in.number<std::uint16_t>() % 1024;
    const buffer message = rill::fuzz::copy_of(in.rest());
    round_operands<T, std::uint32_t> read;
    read.clear();
    const wire::header head{
        .kind = rill::detail::round_kind::contribute, .element = element_type_of<T>, .dimension = dimension};
    const stream_view<T, std::uint32_t> nothing({0, dimension}, sparse_view<T, std::uint32_t>{});
    read.add_own(head, nothing, coding{}, random_key{}, contribution{.weight = 0}, 0, serial{});
    try {
        const rill::fuzz::allocation_budget at_most(128 * message.size() + 4 * rill::fuzz::error_texts);
        const double error = read.add(byte_view(message), dimension, 0, ranks, serial{});
        RILL_FUZZ_REQUIRE(std::isfinite(error) && error >= 0, "an error bound");
    } catch (const protocol_error&) {
        return;
    }
    require_valid(read.contributors);
    RILL_FUZZ_REQUIRE(read.views().size() == (read.contributors.in.empty() ? 0 : 1),
                      "content where somebody contributes");
    std::vector<T> sum(dimension);
    read.fold(std::span<T>(sum), aggregate::sum{}, serial{});
    if (!std::isfinite(read.contributors.weight())) return;

    const buffer again = read.message(head, aggregate::sum{}, stream_codings{}, serial{});
    round_operands<T, std::uint32_t> other;
    other.clear();
    try {
        other.add(byte_view(again), dimension, 0, ranks, serial{});
    } catch (const protocol_error&) {
        RILL_FUZZ_REQUIRE(false, "what is written can be read");
    }
    RILL_FUZZ_REQUIRE(
        other.contributors.in == read.contributors.in && other.contributors.late == read.contributors.late,
        "the same contributor list");
}

/// Arbitrary numbers are a contributor list or a `protocol_error`; a list that is written again has the same numbers.
void check_contributors(rill::fuzz::input in) {
    std::vector<std::int64_t> numbers;
    while (!in.done()) numbers.push_back(in.number<std::int64_t>());
    try {
        const contributor_list contributors = contributor_list::from(numbers, ranks);
        require_valid(contributors);
        RILL_FUZZ_REQUIRE(contributors.numbers() == numbers, "the same numbers");
    } catch (const protocol_error&) {
    }
}

}  // namespace

RILL_FUZZ_TARGET(round)(const std::uint8_t* data, std::size_t size) {
    rill::fuzz::input in(data, size);
    switch (in.below(3)) {
        case 0: check<float>(in); break;
        case 1: check<std::int64_t>(in); break;
        default: check_contributors(in);
    }
    return 0;
}
