#include <rill/collective/broadcast.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace cases;

TEST_CASE("broadcast copies from any root") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              for (std::size_t n : dimensions)
                  for (int root = 0; root < workers.size(); ++root) {
                      auto data = workers.rank() == root ? dense_input<double>(root, n) : std::vector<double>(n, -1);
                      const auto counted = workers.net().counted();
                      const auto receipt = rill::broadcast(workers, data, root);
                      if (data != dense_input<double>(root, n))
                          fail("N=" + std::to_string(n) + " root " + std::to_string(root) + " is wrong");
                      if (receipt.wire != workers.net().counted() - counted) fail("counted other bytes");
                  }
          }) == "");
}

TEST_CASE("broadcast of streams, sparse, dense and rounded") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              const int root = workers.size() - 1;
              for (std::size_t n : dimensions) {
                  const auto sparse = sparse_input<float, std::uint32_t>(root, n, 4);
                  rill::stream<float> data(n);
                  if (workers.rank() == root) data = sparse;
                  rill::broadcast(workers, data, root);
                  if (!(data == sparse)) fail("sparse N=" + std::to_string(n) + " is wrong");

                  rill::stream<float> dense;
                  dense.make_dense({0, n});
                  for (std::size_t i = 0; i < n; ++i) dense.values()[i] = value<float>(root, i);
                  rill::stream<float> copy(n);
                  if (workers.rank() == root) copy = dense;
                  rill::broadcast(workers, copy, root, {.values = rill::value_coding::bf16});
                  if (!(copy == dense)) fail("small whole numbers are exact in bf16");
              }
          }) == "");
}
