// Streams whose entries come in whole rows, coded by rows: the same bits as in other codings, from fewer bytes.
#include <rill/aggregate/mean.hpp>
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/row_top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/topology/any.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

using namespace rill;

namespace {

struct matrix {
    std::size_t n;
    std::uint16_t columns;

    std::string text() const { return " of " + std::to_string(n) + " in rows of " + std::to_string(columns); }
};

constexpr matrix usual{500, 7};  // the last row is shorter, and parts of ranks cut rows
/// Rows of one entry, rows longer than the stream, one row for each of few ranks, nothing at all.
constexpr matrix matrices[] = {usual, {65, 1}, {6, 9}, {1, 3}, {64, 16}, {300, 65535}, {0, 4}};

bool same_bits(std::span<const float> a, std::span<const float> b) {
    return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

/// Every third rank from the second on contributes nothing.
stream<float> rows_of(int rank, const matrix& of = usual) {
    stream<float> made(of.n);
    for (std::size_t i = 0; i < of.n && rank % 3 != 1; ++i)
        if (cases::is_present(rank, i / of.columns, of.n < 100 ? 2 : 6))
            made.push_back(i, 1.0F / static_cast<float>(i + 1) + 0.1F * static_cast<float>(rank));
    return made;
}

/// Rows that no other of `ranks` ranks has. Every third rank from the second on has none.
stream<float> own_rows_of(int rank, int ranks, const matrix& of) {
    stream<float> made(of.n);
    for (std::size_t i = 0; i < of.n; ++i)
        if (i / of.columns % static_cast<std::size_t>(ranks + 1) == static_cast<std::size_t>(rank) && rank % 3 != 1)
            made.push_back(i, static_cast<float>(i) + 0.5F);
    return made;
}

stream_codings in_all_phases(const coding& codes) { return {.contribution = codes, .partial = codes, .copy = codes}; }

const stream_codings by_entries = in_all_phases({.indices = index_coding::elias_fano});
stream_codings by_rows(const matrix& of = usual) {
    return in_all_phases({.indices = index_coding::whole_rows, .row = of.columns});
}

/// Both codings with a switch that keeps everything sparse, and with one that a fold of few ranks reaches.
template <class Check>
void with_each_switch(const matrix& of, Check check) {
    for (const double factor : {1e9, 0.3}) {
        stream_codings entries = by_entries, rows = by_rows(of);
        entries.when = rows.when = dense_switch{factor};
        check(entries, rows);
    }
}

/// `body(workers, matrix, fail)` for every group and matrix.
template <class Body>
std::string on_every_group_and_matrix(Body body) {
    return cases::on_every_group([&](auto& workers, auto fail) {
        for (const matrix& of : matrices) body(workers, of, [&](const std::string& what) { fail(what + of.text()); });
    });
}

}  // namespace

TEST_CASE("collectives on whole rows give the bits of other codings") {
    CHECK(on_every_group_and_matrix([](auto& workers, const matrix& of, auto fail) {
              const stream<float> mine = rows_of(workers.rank(), of);
              with_each_switch(of, [&](const stream_codings& entries, const stream_codings& rows) {
                  stream<float> a, b;
                  const auto compare = [&](const char* what) {
                      const auto x = cases::dense_copy(a, 0.0F), y = cases::dense_copy(b, 0.0F);
                      if (!same_bits(x, y)) fail(what);
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
              stream_codings entries = by_entries, rows = by_rows(of);
              entries.contribution.values = rows.contribution.values = value_coding::qsgd4;
              if constexpr (std::remove_reference_t<decltype(workers)>::topology_type::has_copy_phase)
                  entries.copy.values = rows.copy.values = value_coding::bf16;
              stream<float> ones = mine, a, b;
              for (float& value : ones.values()) value = 1;  // which any rounding keeps
              all_reduce(workers, ones, a, aggregate::sum{}, entries);
              all_reduce(workers, ones, b, aggregate::sum{}, rows);
              if (!same_bits(cases::dense_copy(a, 0.0F), cases::dense_copy(b, 0.0F)))
                  fail("all_reduce of rounded values");
              a = b = rows_of(0, of);
              if (workers.rank() != 0) a = b = stream<float>(of.n);
              broadcast(workers, a, 0, by_entries.copy);
              broadcast(workers, b, 0, by_rows(of).copy);
              if (!(a == b)) fail("broadcast");
          }) == "");
}

TEST_CASE("all_gather concatenates whole rows, raw and rounded") {
    CHECK(on_every_group_and_matrix([](auto& workers, const matrix& of, auto fail) {
              stream<float> expected(of.n), rows, entries;
              for (std::size_t i = 0; i < of.n; ++i) {
                  const auto owner = static_cast<int>(i / of.columns % static_cast<std::size_t>(workers.size() + 1));
                  if (owner < workers.size() && owner % 3 != 1) expected.push_back(i, static_cast<float>(i) + 0.5F);
              }
              const stream<float> mine = own_rows_of(workers.rank(), workers.size(), of);
              coding codes = by_rows(of).contribution;
              const receipt done = all_gather(workers, mine, rows, codes);
              if (!(rows == expected)) fail("all_gather");
              if (done.contributors != workers.size()) fail("all_gather lists too few contributors");
              // Groups of their own: random rounding depends on the number of the operation.
              group first{workers.net(), workers.shape()}, second{workers.net(), workers.shape()};
              for (const value_coding values : {value_coding::bf16, value_coding::qsgd2, value_coding::qsgd8}) {
                  coding other = by_entries.contribution;
                  codes.values = other.values = values;
                  all_gather(first, mine, rows, codes);
                  all_gather(second, mine, entries, other);
                  if (!(rows == entries)) fail("all_gather of rounded values");
              }
          }) == "");
}

TEST_CASE("error feedback over whole rows has the sums and residuals of other codings") {
    cases::failures all;
    const topology::any shapes[] = {topology::split_allgather{}, topology::ring{}, topology::recursive_doubling{},
                                    topology::tree{}};
    for (const topology::any& shape : shapes)
        for (const int ranks : {1, 3, 8})
            simulated::run(ranks, {}, [&](auto& net) {
                for (const matrix& of : matrices) {
                    const auto sums_and_residual = [&](const auto& indices) {
                        group workers{net, shape};
                        const compress::row_top_k kept{.columns = of.columns, .density = 0.3};
                        auto codec =
                            compress::error_feedback{compress::encoded{kept, compress::qsgd{}, indices}}.bind(of.n);
                        std::vector<float> gradient(of.n), sum(of.n), found;
                        for (int step = 0; step < 3; ++step) {
                            for (std::size_t i = 0; i < of.n; ++i)
                                gradient[i] = cases::value<float>(net.rank() + step, i) * 0.25F;
                            all_reduce(workers, gradient, sum, codec, aggregate::mean{});
                            found.insert(found.end(), sum.begin(), sum.end());
                        }
                        found.insert(found.end(), codec.residual().begin(), codec.residual().end());
                        return found;
                    };
                    if (!same_bits(sums_and_residual(compress::whole_rows{of.columns}),
                                   sums_and_residual(compress::elias_fano{})))
                        all.add(shape.shape_name() + of.text());
                }
            });
    CHECK(all.text() == "");
}

TEST_CASE("a stream of which a row is not whole is refused on all ranks, and its rank blamed") {
    CHECK(cases::on_every_group([](auto& workers, auto fail) {
              const int culprit = workers.size() - 1;
              stream<float> mine = rows_of(workers.rank()), sum;
              if (workers.rank() == culprit) {
                  mine = stream<float>(usual.n);
                  for (const std::size_t i : {140U, 141U, 142U, 143U, 145U, 146U}) mine.push_back(i, 1.0F);
              }
              const stream<float> before = mine;
              const auto refused = [&](auto call) {
                  group others{workers.net(), workers.shape()};
                  cases::expect_error<invalid_value>(
                      [&] { call(others); }, culprit,
                      "coordinate 140 has an entry and coordinate 144 of the same row of 7 has none", fail);
                  if (!(mine == before)) fail("changed the input");
              };
              refused([&](auto& on) { all_reduce(on, mine, sum, aggregate::sum{}, by_rows()); });
              refused([&](auto& on) { all_gather(on, mine, sum, by_rows().contribution); });
          }) == "");
}

TEST_CASE("ranks whose rows differ are told so, on every rank and in every collective") {
    CHECK(cases::on_every_group([](auto& workers, auto fail) {
              if (workers.size() == 1) return;
              const int odd = workers.size() / 2;
              const stream<float> mine(usual.n);  // empty, so that every row is whole
              stream<float> sum;
              const stream_codings codes = by_rows(workers.rank() == odd ? matrix{usual.n, usual.columns + 1} : usual);
              const auto refused = [&](const char* what, auto call) {
                  group others{workers.net(), workers.shape()};
                  try {
                      call(others);
                      fail(std::string(what) + " accepted another row");
                  } catch (const mismatch& e) {
                      if (e.culprit() != odd) fail(std::string(what) + " blamed another rank: " + e.what());
                  }
              };
              refused("all_reduce", [&](auto& on) { all_reduce(on, mine, sum, aggregate::sum{}, codes); });
              refused("reduce_scatter", [&](auto& on) { reduce_scatter(on, mine, sum, aggregate::sum{}, codes); });
              refused("reduce", [&](auto& on) { reduce(on, mine, sum, 0, aggregate::sum{}, codes); });
              refused("all_gather", [&](auto& on) { all_gather(on, mine, sum, codes.contribution); });
              refused("broadcast", [&](auto& on) {
                  stream<float> same = mine;
                  broadcast(on, same, 0, codes.copy);
              });
          }) == "");
}

TEST_CASE("an index travels for each row") {
    simulated::run(2, {}, [](auto& net) {
        group workers{net, topology::recursive_doubling{}};
        const auto wire_bytes = [&](std::size_t entries) {
            const std::size_t all = (usual.n + usual.columns - 1) / usual.columns,
                              rows = (entries + usual.columns - 1) / usual.columns;
            return wire::header_bytes + entries * sizeof(float) +
                   (rows == 0 ? 0 : 8 + kernel::elias_fano::size_of(rows, {0, all}));
        };
        stream<float> mine = rows_of(2 * net.rank()), sum;
        const receipt done = all_reduce(workers, mine, sum, aggregate::sum{}, by_rows());
        CHECK(done.wire.bytes_sent == wire_bytes(mine.count()));
        mine = own_rows_of(2 * net.rank(), 3, usual);
        const receipt gathered = all_gather(workers, mine, sum, by_rows().contribution);
        CHECK(gathered.wire.bytes_sent == wire_bytes(mine.count()));
    });
}
