#include <rill/collective/reduce.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using namespace cases;

TEST_CASE("reduce leaves the fold at any root") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              for (std::size_t n : dimensions)
                  for (int root = 0; root < workers.size(); ++root) {
                      const auto input = dense_input<float>(workers.rank(), n);
                      std::vector<float> output(workers.rank() == root ? n : 0, -1);
                      const auto counted = workers.net().counted();
                      const auto receipt = rill::reduce(workers, input, output, root);
                      if (workers.rank() == root && output != oracle<float>(workers.size(), n, rill::aggregate::sum{}))
                          fail("N=" + std::to_string(n) + " root " + std::to_string(root) + " is wrong");
                      if (input != dense_input<float>(workers.rank(), n)) fail("changed its input");
                      if (receipt.wire != workers.net().counted() - counted) fail("counted other bytes");
                  }
          }) == "");
}

TEST_CASE("reduce of sparse streams") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              for (std::size_t n : dimensions)
                  for (int root = 0; root < workers.size(); ++root) {
                      const auto input = sparse_input<float, std::uint32_t>(workers.rank(), n, 6);
                      rill::stream<float> output;
                      rill::reduce(workers, input, output, root);
                      if (workers.rank() != root && output.count() != 0) fail("a result where none belongs");
                      if (workers.rank() == root &&
                          dense_copy(output, 0.0F) != oracle<float>(workers.size(), n, rill::aggregate::sum{}, 6))
                          fail("N=" + std::to_string(n) + " root " + std::to_string(root) + " is wrong");
                  }
          }) == "");
}
