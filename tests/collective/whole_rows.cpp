// Streams whose entries come in whole rows, coded by rows: the same bits as in other codings, from fewer bytes.
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

using namespace rill;

namespace {

constexpr std::size_t n = 500;
constexpr std::uint16_t columns = 7;  // the last row is shorter, and parts of ranks cut rows

stream<float> rows_of(int rank) {
    stream<float> made(n);
    for (std::size_t i = 0; i < n; ++i)
        if (cases::is_present(rank, i / columns, 6))
            made.push_back(i, 1.0F / static_cast<float>(i + 1) + 0.1F * static_cast<float>(rank));
    return made;
}

stream_codings in_all_phases(const coding& codes) { return {.contribution = codes, .partial = codes, .copy = codes}; }

const stream_codings by_entries = in_all_phases({.indices = index_coding::elias_fano});
const stream_codings by_rows = in_all_phases({.indices = index_coding::whole_rows, .row = columns});

/// Both codings with a switch that keeps everything sparse, and with one that a fold of few ranks reaches.
template <class Check>
void with_each_switch(Check check) {
    for (const double factor : {1e9, 0.3}) {
        stream_codings entries = by_entries, rows = by_rows;
        entries.when = rows.when = dense_switch{factor};
        check(entries, rows);
    }
}

}  // namespace

TEST_CASE("collectives on whole rows give the bits of other codings") {
    CHECK(cases::on_every_group([](auto& workers, auto fail) {
              const stream<float> mine = rows_of(workers.rank());
              with_each_switch([&](const stream_codings& entries, const stream_codings& rows) {
                  stream<float> a, b;
                  const auto compare = [&](const char* what) {
                      const auto x = cases::dense_copy(a, 0.0F), y = cases::dense_copy(b, 0.0F);
                      if (std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0) fail(what);
                      if (rows.when.factor > 1 && !(a == b)) fail(std::string(what) + " in another form");
                  };
                  all_reduce(workers, mine, a, aggregate::mean{}, entries);
                  all_reduce(workers, mine, b, aggregate::mean{}, rows);
                  compare("all_reduce");
                  reduce_scatter(workers, mine, a, aggregate::sum{}, entries);
                  reduce_scatter(workers, mine, b, aggregate::sum{}, rows);
                  compare("reduce_scatter");
                  reduce(workers, mine, a, 0, aggregate::sum{}, entries);
                  reduce(workers, mine, b, 0, aggregate::sum{}, rows);
                  if (workers.rank() == 0) compare("reduce");
              });
              stream_codings entries = by_entries, rows = by_rows;
              entries.contribution.values = rows.contribution.values = value_coding::qsgd4;
              if constexpr (std::remove_reference_t<decltype(workers)>::topology_type::has_copy_phase)
                  entries.copy.values = rows.copy.values = value_coding::bf16;
              stream<float> ones = mine, a, b;
              for (float& value : ones.values()) value = 1;  // which any rounding keeps
              all_reduce(workers, ones, a, aggregate::sum{}, entries);
              all_reduce(workers, ones, b, aggregate::sum{}, rows);
              if (!(a == b)) fail("all_reduce of rounded values");
              a = b = rows_of(0);
              if (workers.rank() != 0) a = b = stream<float>(n);
              broadcast(workers, a, 0, by_entries.copy);
              broadcast(workers, b, 0, by_rows.copy);
              if (!(a == b)) fail("broadcast");
          }) == "");
}

TEST_CASE("a stream of which a row is not whole is refused on all ranks, and its rank blamed") {
    CHECK(cases::on_every_group([](auto& workers, auto fail) {
              const int culprit = workers.size() - 1;
              stream<float> mine = rows_of(workers.rank()), sum;
              if (workers.rank() == culprit) {
                  mine = stream<float>(n);
                  for (const std::size_t i : {140U, 141U, 142U, 143U, 145U, 146U}) mine.push_back(i, 1.0F);
              }
              const stream<float> before = mine;
              cases::expect_error<invalid_value>(
                  [&] { all_reduce(workers, mine, sum, aggregate::sum{}, by_rows); }, culprit,
                  "coordinate 140 has an entry and coordinate 144 of the same row of 7 has none", fail);
              if (!(mine == before)) fail("changed the input");
          }) == "");
}

TEST_CASE("ranks whose rows differ are told so") {
    simulated::run(2, {}, [](auto& net) {
        group workers{net, topology::recursive_doubling{}};
        stream<float> mine = rows_of(net.rank()), sum;
        const coding codes{.indices = index_coding::whole_rows,
                           .row = static_cast<std::uint16_t>(columns + net.rank())};
        CHECK_THROWS_AS(all_reduce(workers, mine, sum, aggregate::sum{}, {.contribution = codes}), error);
    });
}

TEST_CASE("an index travels for each row") {
    simulated::run(2, {}, [](auto& net) {
        group workers{net, topology::recursive_doubling{}};
        const stream<float> mine = rows_of(net.rank());
        stream<float> sum;
        const receipt done = all_reduce(workers, mine, sum, aggregate::sum{}, by_rows);
        const std::size_t all = (n + columns - 1) / columns, rows = (mine.count() + columns - 1) / columns;
        CHECK(done.wire.bytes_sent ==
              wire::header_bytes + mine.count() * sizeof(float) + 8 + kernel::elias_fano::size_of(rows, {0, all}));
    });
}
