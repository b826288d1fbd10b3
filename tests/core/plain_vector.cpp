#include <rill/core/plain_vector.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

using rill::plain_vector;

namespace {

std::string text_of(const plain_vector<std::string>& all) {
    std::string text;
    for (const std::string& each : all) text += each + ' ';
    return text;
}

/// Counts the objects that are alive; the construction of number `fails_at` throws.
struct counted {
    explicit counted(int fails_at) {
        if (alive == fails_at) throw std::runtime_error("full");
        ++alive;
    }
    counted(const counted&) = delete;
    counted& operator=(const counted&) = delete;
    ~counted() { --alive; }

    static inline int alive = 0;
};

struct alignas(128) wide {
    std::atomic<int> value{7};
};

}  // namespace

TEST_CASE("plain_vector: objects stay in their order while it grows, shrinks and is used again") {
    plain_vector<std::string> all;
    CHECK(all.empty());
    std::string expected;
    for (int i = 0; i < 20; ++i) {
        all.add("a text that is too long for its object, number " + std::to_string(i));
        expected += all.back() + ' ';
    }
    CHECK(text_of(all) == expected);
    CHECK(all.size() == 20);
    CHECK(all.all().size() == 20);
    CHECK(&all.all()[3] == &all[3]);
    all.pop_back();
    CHECK(all.size() == 19);
    all.clear();
    CHECK(all.empty());
    all.add("first");
    all.add(all[0]);
    CHECK(text_of(all) == "first first ");
    all.assign(3, "x");
    CHECK(text_of(all) == "x x x ");
}

TEST_CASE("plain_vector: an element of itself can be added when it is full") {
    plain_vector<std::string> all;
    all.add("the text of the first object, which moves");
    for (int i = 0; i < 100; ++i) all.add(all[0]);
    for (const std::string& each : all) CHECK(each == all[0]);
}

TEST_CASE("plain_vector: what has been reserved is not moved again") {
    plain_vector<std::string> all;
    all.add("first");
    all.reserve(40);
    const std::string* const place = all.begin();
    while (all.size() < 40) all.add("more");
    CHECK(all.begin() == place);
    CHECK(all[0] == "first");
    all.reserve(1);
    CHECK(all.begin() == place);
    CHECK(all.size() == 40);
}

TEST_CASE("plain_vector: bytes of trivial objects are kept") {
    plain_vector<std::uint64_t> all;
    for (std::uint64_t i = 0; i < 1000; ++i) all.add(i * i);
    for (std::uint64_t i = 0; i < 1000; ++i) REQUIRE(all[i] == i * i);
}

TEST_CASE("plain_vector: moves hand over the objects") {
    plain_vector<std::unique_ptr<int>> all;
    for (int i = 0; i < 9; ++i) all.add(std::make_unique<int>(i));
    plain_vector<std::unique_ptr<int>> other(std::move(all));
    CHECK(other.size() == 9);
    CHECK(*other[8] == 8);
    plain_vector<std::unique_ptr<int>> third;
    third = std::move(other);
    CHECK(*third[0] == 0);
    CHECK(third.size() == 9);
}

TEST_CASE("plain_vector: objects that cannot move are made in their places") {
    plain_vector<wide> all(5);
    CHECK(all.size() == 5);
    for (wide& each : all) {
        CHECK(each.value.load() == 7);
        CHECK(reinterpret_cast<std::uintptr_t>(&each) % 128 == 0);
    }
    {
        const plain_vector<counted> three(std::size_t{3}, 10);
        CHECK(counted::alive == 3);
    }
    CHECK(counted::alive == 0);
    CHECK_THROWS_AS(plain_vector<counted>(std::size_t{3}, 2), std::runtime_error);
    CHECK(counted::alive == 0);
}
