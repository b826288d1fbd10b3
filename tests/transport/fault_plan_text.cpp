#include <rill/transport/fault_plan_text.hpp>

#include <rill/core/random.hpp>

#include <doctest/doctest.h>
#include "../support/scratch.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace faults = rill::faults;
using rill::fault_plan;
using rill::microseconds;
using rill::milliseconds;
using rill::nanoseconds;

namespace {

std::string refusal_of(const std::string& text) {
    return message_of<std::runtime_error>([&] { rill::parse_fault_plan(text); });
}

/// A number with or without an exponent, of few or many digits.
double some_amount(rill::random_sequence& draw) {
    const double u = static_cast<double>(draw.below(std::uint64_t{1} << 53U)) * 0x1p-53;
    switch (draw.below(4)) {
        case 0: return 0;
        case 1: return 0.25;
        case 2: return u;
        default: return u * 1e-12;
    }
}

rill::fault some_fault(rill::random_sequence& draw) {
    const auto rank = [&] { return draw.below(4) == 0 ? rill::any_rank : static_cast<rill::rank_t>(draw.below(20)); };
    constexpr std::int64_t units[] = {1, 1'000, 1'000'000, 1'000'000'000};
    const auto time = [&] { return nanoseconds(static_cast<std::int64_t>(draw.below(2000)) * units[draw.below(4)]); };
    rill::fault f{.kind = static_cast<rill::fault::what>(draw.below(9))};
    if (f.is_of_messages()) {
        if (draw.below(2) == 0) f = draw.below(2) == 0 ? f.on(rank(), rank()) : f.between(rank(), rank());
    } else {
        f.from = static_cast<rill::rank_t>(draw.below(20));
    }
    const rill::detail::fault_word& word = rill::detail::word_of(f.kind);
    if (word.has_amount) f.amount = some_amount(draw);
    if (word.has_longest) f.longest = time();
    if (draw.below(2) == 0) f = f.at(time());
    if (draw.below(2) == 0) f = f.after(draw.below(100));
    return f;
}

}  // namespace

TEST_CASE("a plan is printed as it is written") {
    const fault_plan plan{.faults = {faults::lose(0.25), faults::duplicate(0.1).on(rill::any_rank, 3),
                                     faults::delay_up_to(milliseconds(1)), faults::reorder(0.5, microseconds(1500)),
                                     faults::cut(0, 1).at(microseconds(3)), faults::cut_between(2, 1),
                                     faults::heal_between(0, 1).after(8), faults::kill(2).at(nanoseconds(5)).after(3),
                                     faults::restart(2).at(rill::seconds(2)), faults::slow(1, 2.5)},
                          .seed = 7};
    const std::string text =
        "seed 7; lose 0.25; duplicate 0.1 on *>3; delay up to 1ms; reorder 0.5 up to 1500us; cut on 0>1 at 3us; "
        "cut on 2<>1; heal on 0<>1 after 8; kill rank 2 at 5ns after 3; restart rank 2 at 2s; slow 2.5 rank 1";
    CHECK(rill::to_string(plan) == text);
    CHECK(rill::parse_fault_plan(text) == plan);
    CHECK(rill::to_string(fault_plan{}) == "seed 0");
    CHECK(rill::parse_fault_plan("") == fault_plan{});
}

TEST_CASE("any plan that is printed is read back unchanged") {
    rill::random_sequence draw(rill::random_key{11});
    for (int i = 0; i < 2000; ++i) {
        fault_plan plan{.faults = {}, .seed = draw.below(3) == 0 ? ~draw.below(1000) : draw.below(1000)};
        for (std::uint64_t count = draw.below(6); count > 0; --count) plan.faults.push_back(some_fault(draw));
        const std::string text = rill::to_string(plan);
        INFO(text);
        REQUIRE(rill::parse_fault_plan(text) == plan);
        REQUIRE(rill::to_string(rill::parse_fault_plan(text)) == text);
    }
}

TEST_CASE("a plan may have several lines, blanks, and another order") {
    const fault_plan plan = rill::parse_fault_plan("\n cut  on 0 > 1 after 2 at 3 us ;;\r\n\tkill rank 1\n\nseed 4");
    CHECK(plan == fault_plan{.faults = {faults::cut(0, 1).at(microseconds(3)).after(2), faults::kill(1)}, .seed = 4});
}

TEST_CASE("an invalid plan is refused with the place and what was expected there") {
    CHECK(refusal_of("seed 1; loose 0.1") ==
          "rill: fault plan, line 1, column 9: expected a fault (lose, duplicate, delay, reorder, cut, heal, kill, "
          "start, restart, slow) or 'seed', not 'loose 0.1'");
    CHECK(refusal_of("cut on 0>1\nlose 1.5") ==
          "rill: fault plan, line 2, column 6: expected a probability between 0 and 1, not '1.5'");
    CHECK(refusal_of("lose") ==
          "rill: fault plan, line 1, column 5: expected a probability between 0 and 1, but it ends");
    CHECK(has(refusal_of("seed -1"), "column 6: expected a whole number, not '-1'"));
    CHECK(has(refusal_of("seed 18446744073709551616"), "column 6: expected a whole number"));
    CHECK(has(refusal_of("slow nan rank 1"), "column 6: expected a factor, finite and not below 0"));
    CHECK(has(refusal_of("delay 1ms"), "column 7: expected 'up to' and a time, not '1ms'"));
    CHECK(has(refusal_of("delay up to 1.5ms"), "column 13: expected a whole number of ns, us, ms or s"));
    CHECK(has(refusal_of("cut on 0>1 at 5; heal on 0>1"), "column 15: expected a whole number of ns, us, ms or s"));
    CHECK(has(refusal_of("cut on 0>1 at 9999999999s"), "column 15: expected a whole number of ns, us, ms or s"));
    CHECK(has(refusal_of("cut on 0-1"), "column 9: expected '>' or '<>', not '-1'"));
    CHECK(has(refusal_of("cut on 0>-2"), "column 10: expected a rank, or *, not '-2'"));
    CHECK(has(refusal_of("kill"), "column 5: expected 'rank' and a number, but it ends"));
    CHECK(has(refusal_of("kill rank *"), "expected 'rank' and a number"));
    CHECK(has(refusal_of("kill rank 1 rank 2"),
              "column 13: expected each of 'on', 'rank', 'at' and 'after' once, not 'rank 2'"));
    CHECK(has(refusal_of("kill rank 1 at 1s after 2 at 2s"), "column 27: expected each of"));
    CHECK(has(refusal_of("cut on 0>1 after 1 after 1"), "column 20: expected each of"));
    CHECK(has(refusal_of("lose 0.1 on 0>1 on 1>0"), "column 17: expected each of"));
    CHECK(has(refusal_of("seed 1; lose 0.1; seed 2"), "column 24: expected one 'seed'"));
    CHECK(has(refusal_of("kill on 0>1"), "column 6: expected 'rank' and a number, not 'on 0>1'"));
    CHECK(has(refusal_of("slow 2 on 0>1"), "column 8: expected 'rank' and a number, not 'on 0>1'"));
    CHECK(has(refusal_of("cut rank 1"), "column 5: expected 'on' and two ranks, not 'rank 1'"));
    for (const char* text : {"lose0.25",
                             "lose -0",
                             "lose +0.1",
                             "lose 0x1",
                             "lose inf",
                             "lose nan",
                             "kill rank -0",
                             "kill rank1",
                             "kill rank +1",
                             "kill rank 0x1",
                             "kill rank 1x",
                             "kill rank 2147483648",
                             "cut on 0>1 at -0s",
                             "cut on 0>1 at5s",
                             "cut on 0>1 at 5s5",
                             "cut on 0>1 at 5 5s",
                             "cut on 0>1 after -0",
                             "seed7",
                             "seed +7",
                             "seed 7 8",
                             "slow 1e999 rank 1",
                             "slow inf"}) {
        INFO(text);
        CHECK(has(refusal_of(text), "rill: fault plan, line 1, column "));
    }
    CHECK(has(refusal_of(std::string("kill rank 1\0; kill rank 2", 26)), "column 12: expected 'on', 'rank', 'up to'"));
    CHECK(has(refusal_of(std::string("kill rank 1 \0\n", 15)), "not '?'"));
    CHECK(has(refusal_of("kill rank 2 soon"),
              "column 13: expected 'on', 'rank', 'up to', 'at', 'after', or ';' before the next fault, not 'soon'"));
}
