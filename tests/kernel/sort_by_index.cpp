#include <rill/kernel/sort_by_index.hpp>

#include <rill/core/random.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace rill;

namespace {

template <class Index>
struct numbered {
    Index index;
    std::size_t place;

    friend bool operator==(const numbered&, const numbered&) = default;
};

}  // namespace

TEST_CASE_TEMPLATE("sort_by_index: sorts, and keeps the order of equals", Index, std::uint32_t, std::uint64_t) {
    aligned_vector<numbered<Index>> scratch;
    for (const unsigned bits : {0U, 1U, 8U, 13U, 31U, unsigned{8 * sizeof(Index) - 1}})
        for (const std::size_t count : {0U, 1U, 2U, 1000U}) {
            CAPTURE(bits);
            CAPTURE(count);
            random_sequence random(random_key{bits});
            std::vector<numbered<Index>> entries;
            for (std::size_t i = 0; i < count; ++i)
                entries.push_back({static_cast<Index>(random.below(std::uint64_t{1} << bits)), i});
            auto expected = entries;
            std::ranges::stable_sort(expected, {}, &numbered<Index>::index);
            CHECK(std::ranges::equal(kernel::sort_by_index(std::span(entries), scratch), expected));
        }
}
