#include <rill/transport/detail/in_process_bell.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>

TEST_CASE("in_process: waits for different things use different bells") {
    rill::in_process::detail::bells all;
    std::set<const void*> distinct{&all.common()};
    for (std::uint32_t tag = 0; tag < 16; ++tag) distinct.insert(&all.of({.context = 77, .tag = tag}));
    for (int i = 0; i < 32; ++i) distinct.insert(&all.of_meeting());
    CHECK(distinct.size() == 49);
    CHECK(&all.of({.context = 77, .tag = 3}) == &all.of({.context = 77, .tag = 3}));
}

TEST_CASE("in_process: only its own bell wakes a waiting thread, and an abort wakes all") {
    rill::in_process::detail::bells all;
    auto& mine = all.of({.context = 1, .tag = 1});
    const auto seen = mine.strokes();
    all.common().ring();
    all.of({.context = 1, .tag = 2}).ring();
    CHECK(mine.strokes() == seen);
    mine.ring();
    CHECK(mine.strokes() != seen);
    const auto before = all.common().strokes();
    all.ring_all();
    CHECK(all.common().strokes() != before);
}
