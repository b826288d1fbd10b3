#include <rill/core/view.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>

using rill::view;

namespace {

struct three_ranks {
    int size() const { return 3; }
};
struct three_ranks_later : three_ranks {
    std::uint32_t epoch() const { return 5; }
};

static_assert(rill::EpochTransport<three_ranks_later> && !rill::EpochTransport<three_ranks>);

}  // namespace

TEST_CASE("a view of all ranks is of the transport's epoch") {
    CHECK(view::all(three_ranks{}) == view{.members = {0, 1, 2}});
    CHECK(view::all(three_ranks_later{}) == view{.epoch = 5, .members = {0, 1, 2}});
    CHECK(view::all(three_ranks{}).contains(2));
    CHECK_FALSE(view::all(three_ranks{}).contains(3));
}

TEST_CASE("views that differ in anything have different keys, equal ones the same") {
    const view base{.epoch = 3, .members = {0, 2, 5}, .incarnations = {0, 0, 1}};
    std::set<std::uint64_t> keys{base.key("group")};
    const auto add = [&](auto change) {
        view other = base;
        change(other);
        CHECK(other != base);
        keys.insert(other.key("group"));
    };
    add([](view& v) { v.epoch = 4; });
    add([](view& v) { v.members = {0, 2, 6}; });
    add([](view& v) { v.members = {0, 2, 5, 6}; });
    add([](view& v) { v.incarnations = {0, 1, 1}; });
    add([](view& v) { v.incarnations = {}; });
    keys.insert(base.key("rounds"));
    CHECK(keys.size() == 7);
    CHECK(view(base).key("group") == base.key("group"));
}

TEST_CASE("a view has a text for messages") {
    CHECK(view{.members = {4}}.text() == "epoch 0 of ranks 4");
    CHECK(view{.epoch = 3, .members = {0, 1, 2, 4, 6, 7}}.text() == "epoch 3 of ranks 0-2, 4, 6-7");
    CHECK(view{.epoch = 1, .members = {0, 1, 2}, .incarnations = {0, 2, 0}}.text() ==
          "epoch 1 of ranks 0, 1 (start 2), 2");
}
