#include <rill/aggregate/mean.hpp>
#include <rill/collective/reduce_scatter.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

using namespace cases;

namespace {
template <class T>
bool is_part(const std::vector<T>& part, const std::vector<T>& whole, rill::segment where) {
    return part.size() == where.size() &&
           std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(where.begin));
}

rill::segment part_of(std::size_t n, int ranks, int rank) {
    return rill::split(n, static_cast<std::size_t>(ranks), static_cast<std::size_t>(rank));
}
}  // namespace

TEST_CASE("reduce_scatter leaves each rank its part of the fold") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              for (std::size_t n : dimensions) {
                  const auto input = dense_input<double>(workers.rank(), n);
                  const rill::segment mine = part_of(n, workers.size(), workers.rank());
                  std::vector<double> output(mine.size());
                  const auto counted = workers.net().counted();
                  const auto receipt = rill::reduce_scatter(workers, input, output, rill::aggregate::mean{});
                  if (!is_part(output, oracle<double>(workers.size(), n, rill::aggregate::mean{}), mine))
                      fail("N=" + std::to_string(n) + " is wrong");
                  if (receipt.wire != workers.net().counted() - counted) fail("counted other bytes");
                  if (receipt.contributors != workers.size()) fail("lists too few contributors");
              }
          }) == "");
}

TEST_CASE("reduce_scatter of sparse streams") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              for (std::size_t n : dimensions) {
                  const auto input = sparse_input<std::int64_t, std::uint64_t>(workers.rank(), n, 5);
                  const rill::segment mine = part_of(n, workers.size(), workers.rank());
                  rill::stream<std::int64_t, std::uint64_t> output;
                  rill::reduce_scatter(workers, input, output);
                  if (output.range() != mine) fail("covers another range");
                  if (!is_part(dense_copy(output, std::int64_t{0}),
                               oracle<std::int64_t>(workers.size(), n, rill::aggregate::sum{}, 5), mine))
                      fail("sparse N=" + std::to_string(n) + " is wrong");
              }
          }) == "");
}
