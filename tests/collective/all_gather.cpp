#include <rill/collective/all_gather.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using namespace cases;

TEST_CASE("all_gather puts every rank's part in its place") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              for (std::size_t n : dimensions) {
                  const auto whole = dense_input<float>(0, n);
                  const auto mine = rill::split(n, static_cast<std::size_t>(workers.size()),
                                                static_cast<std::size_t>(workers.rank()));
                  const std::vector<float> input(whole.begin() + static_cast<std::ptrdiff_t>(mine.begin),
                                                 whole.begin() + static_cast<std::ptrdiff_t>(mine.end));
                  std::vector<float> output(n, -1);
                  const auto counted = workers.net().counted();
                  const auto receipt = rill::all_gather(workers, input, output);
                  if (output != whole) fail("N=" + std::to_string(n) + " is wrong");
                  if (receipt.wire != workers.net().counted() - counted) fail("counted other bytes");
                  if (receipt.contributors != workers.size()) fail("lists too few contributors");
              }
          }) == "");
}

TEST_CASE("all_gather concatenates sparse streams") {
    for (auto indices : {rill::index_coding::raw, rill::index_coding::smallest})
        CHECK(on_every_group([&](auto& workers, auto fail) {
                  for (std::size_t n : dimensions) {
                      rill::stream<double> input(n), expected(n), output;
                      for (std::size_t i = 0; i < n; ++i) {
                          const bool mine = i % 7 == static_cast<std::size_t>(workers.rank());
                          if (mine) input.push_back(i, static_cast<double>(i) + 0.5);
                          if (i % 7 < static_cast<std::size_t>(workers.size()))
                              expected.push_back(i, static_cast<double>(i) + 0.5);
                      }
                      rill::all_gather(workers, input, output, {.indices = indices});
                      if (!(output == expected)) fail("N=" + std::to_string(n) + " is wrong");
                  }
              }) == "");
}

TEST_CASE("a coordinate from two ranks is an error on every rank") {
    CHECK(on_every_group([](auto& workers, auto fail) {
              if (workers.size() < 3) return;
              rill::stream<float> input(100), output;
              const bool guilty = workers.rank() == 1 || workers.rank() == 2;
              input.push_back(static_cast<std::size_t>(workers.rank()), 1);
              if (guilty) input.push_back(42, 1);
              try {
                  rill::all_gather(workers, input, output);
                  fail("accepted the same coordinate twice");
              } catch (const rill::invalid_value& e) {
                  const std::string what = e.what();
                  if (what.find("coordinate 42 is contributed by rank 1 and by rank 2") == std::string::npos)
                      fail(what);
              }
          }) == "");
}
