#include <rill/train/coordinate_descent.hpp>

#include "../support/scratch.hpp"
#include "samples.hpp"
#include "sparse_samples.hpp"

#include <rill/train/checkpoint.hpp>
#include <rill/train/sparse_linear.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace rill;

namespace {

const train::sparse_dataset& rows_to_fit() {
    static const train::sparse_dataset made = random_sparse(150, 40, 5);
    return made;
}

/// Parameters and scores of each rank after some steps.
struct fitted_model {
    std::vector<double> parameters, scores;
    double loss = 0;

    friend bool operator==(const fitted_model&, const fitted_model&) = default;
};

template <class Policy>
std::vector<fitted_model> fit(const Policy& policy, int ranks, int steps) {
    const train::sparse_columns data = train::by_columns(rows_to_fit());
    std::vector<fitted_model> results(static_cast<std::size_t>(ranks));
    simulated::run(ranks, {}, [&](auto& net) {
        auto descent = policy.template bind<double>(net, data, {.timeout = seconds(20)});
        for (int step = 0; step < steps; ++step) descent.step();
        results[static_cast<std::size_t>(net.rank())] = {{descent.parameters().begin(), descent.parameters().end()},
                                                         {descent.scores().begin(), descent.scores().end()},
                                                         descent.loss()};
    });
    return results;
}

/// How far the gradient of all rows is from 0 at these parameters.
template <class Loss>
double largest_slope(const std::vector<double>& w, double l2) {
    train::sparse_linear<Loss, double> model(40);
    std::vector<double> g(w.size());
    model.gradient(w, {rows_to_fit(), first_rows(150)}, std::span(g));
    for (std::size_t c = 0; c < 40; ++c) g[c] += l2 * w[c];
    double most = 0;
    for (const double slope : g) most = std::max(most, std::abs(slope));
    return most;
}

}  // namespace

TEST_CASE("sparse_columns: the entries of a data set, by columns") {
    for (const bool has_values : {true, false}) {
        const train::sparse_dataset data = random_sparse(30, 20, 6, has_values);
        const train::sparse_columns made = train::by_columns(data);
        const train::dataset dense = densified(data);
        CHECK(made.values.empty() == !has_values);
        CHECK(made.labels == data.labels);
        std::size_t entries = 0;
        for (std::size_t c = 0; c < 20; ++c) {
            const auto column = made.column(c);
            CHECK(std::is_sorted(column.rows.begin(), column.rows.end()));
            for (std::size_t i = 0; i < column.size(); ++i) CHECK(column.value(i) == dense.row(column.rows[i])[c]);
            entries += column.size();
        }
        CHECK(entries == data.indices.size());
    }
    CHECK(train::by_columns({}).starts == std::vector<std::uint64_t>{0});
}

TEST_CASE_TEMPLATE("coordinate_descent: comes to the minimum, alike on all ranks", Loss, train::logistic,
                   train::squared) {
    const train::coordinate_descent<Loss> policy{.coordinates = 3, .l2 = 0.05};
    for (const int ranks : {1, 3, 4}) {
        const std::vector<fitted_model> results = fit(policy, ranks, 3000 / ranks);
        for (const fitted_model& result : results) CHECK(result == results[0]);
        CHECK(largest_slope<Loss>(results[0].parameters, 0.05) < 1e-6);
        train::sparse_linear<Loss, double> model(40);
        double penalty = 0;
        for (std::size_t c = 0; c < 40; ++c) penalty += 0.025 * results[0].parameters[c] * results[0].parameters[c];
        CHECK(results[0].loss ==
              doctest::Approx(model.loss(results[0].parameters, {rows_to_fit(), first_rows(150)}) + penalty));
    }
}

TEST_CASE("coordinate_descent: all coordinates at once, and more ranks than coordinates") {
    const std::vector<fitted_model> all = fit(train::coordinate_descent<train::squared>{.l2 = 0.05}, 2, 1500);
    CHECK(largest_slope<train::squared>(all[0].parameters, 0.05) < 1e-4);
    const train::sparse_dataset two{
        .rows = 2, .columns = 1, .starts = {0, 1, 2}, .indices = {0, 0}, .values = {1, 2}, .labels = {3, 5}};
    const train::sparse_columns data = train::by_columns(two);
    simulated::run(5, {}, [&](auto& net) {
        auto descent = train::coordinate_descent<train::squared>{}.bind<double>(net, data, {.timeout = seconds(20)});
        for (int step = 0; step < 3000; ++step) descent.step();
        CHECK(descent.parameters()[0] == doctest::Approx(2));  // the line through both
        CHECK(descent.parameters()[1] == doctest::Approx(1));
        CHECK(descent.loss() < 1e-9);
    });
}

TEST_CASE("coordinate_descent: a step moves the coordinates that the ranks own, and sends no more") {
    const train::sparse_columns data = train::by_columns(rows_to_fit());
    in_process::run(3, [&](auto& net) {
        auto descent =
            train::coordinate_descent<train::squared>{.coordinates = 4}.bind(net, data, {.timeout = seconds(20)});
        const receipt done = descent.step();
        CHECK(done.contributors == 3);
        std::size_t moved = 0;
        for (std::size_t rank = 0; rank < 3; ++rank) {
            const segment part = split(41, 3, rank);
            const auto of_rank = descent.parameters().subspan(part.begin, part.size());
            const auto count =
                static_cast<std::size_t>(std::count_if(of_rank.begin(), of_rank.end(), [](float w) { return w != 0; }));
            CHECK(count <= 4);
            moved += count;
        }
        CHECK(moved > 6);
        CHECK(done.wire.bytes_sent < 1500);
    });
}

TEST_CASE("coordinate_descent: goes on from a checkpoint bit for bit") {
    const scratch_directory directory;
    const train::sparse_columns data = train::by_columns(rows_to_fit());
    const train::coordinate_descent<> policy{.coordinates = 4, .l2 = 0.01};
    std::vector<int> same(3);
    simulated::run(3, {}, [&](auto& net) {
        auto one = policy.template bind<double>(net, data, {.timeout = seconds(20)});
        for (int step = 0; step < 9; ++step) one.step();
        train::checkpoint::writer out;
        one.save(out, "scd.");
        const std::string path = directory / ("rank-" + std::to_string(net.rank())).c_str();
        out.save(path);
        auto other = policy.template bind<double>(net, data, {.timeout = seconds(20), .name = "other"});
        other.restore(train::checkpoint::load(path), "scd.");
        for (int step = 0; step < 9; ++step) {
            one.step();
            other.step();
        }
        same[static_cast<std::size_t>(net.rank())] = std::ranges::equal(one.parameters(), other.parameters()) ? 1 : 0;
    });
    CHECK(same == std::vector<int>(3, 1));
}

TEST_CASE("coordinate_descent: rounded moves go on from a checkpoint bit for bit, in the same operations") {
    const scratch_directory directory;
    const train::sparse_columns data = train::by_columns(rows_to_fit());
    const train::coordinate_descent<> policy{
        .coordinates = 4, .l2 = 0.01, .codes = {.values = value_coding::qsgd4, .bucket = 4}};
    const auto path = [&](rank_t rank) { return directory / ("rank-" + std::to_string(rank)).c_str(); };
    const auto run = [&](bool is_restored) {
        std::vector<fitted_model> results(3);
        simulated::run(3, {}, [&](auto& net) {
            auto descent = policy.template bind<double>(net, data, {.timeout = seconds(20)});
            if (is_restored) {
                descent.restore(train::checkpoint::load(path(net.rank())), "scd.");
            } else {
                for (int step = 0; step < 9; ++step) descent.step();
                train::checkpoint::writer out;
                descent.save(out, "scd.");
                out.save(path(net.rank()));
            }
            const receipt next = descent.step();
            CHECK(next.operation_number == 11);  // the first has compared the options
            for (int step = 0; step < 8; ++step) descent.step();
            results[static_cast<std::size_t>(net.rank())] = {{descent.parameters().begin(), descent.parameters().end()},
                                                             {descent.scores().begin(), descent.scores().end()},
                                                             descent.loss()};
        });
        return results;
    };
    const std::vector<fitted_model> one = run(false);
    CHECK(run(true) == one);
}

TEST_CASE("coordinate_descent: a file that does not fit on one rank is refused on all, which then go on alike") {
    const scratch_directory directory;
    const auto path = [&](const char* of, rank_t rank) { return directory / (of + std::to_string(rank)).c_str(); };
    const train::sparse_columns data = train::by_columns(rows_to_fit()),
                                others = train::by_columns(random_sparse(150, 40, 5, true, 9));
    const train::coordinate_descent<> policy{.coordinates = 4, .l2 = 0.01};
    const auto save = [&](const char* name, const train::sparse_columns& samples, int steps) {
        simulated::run(3, {}, [&](auto& net) {
            auto descent = policy.template bind<double>(net, samples, {.timeout = seconds(20)});
            for (int step = 0; step < steps; ++step) descent.step();
            train::checkpoint::writer out;
            descent.save(out, "scd.");
            out.save(path(name, net.rank()));
        });
    };
    save("own", data, 3);
    save("early", data, 2);
    save("others", others, 3);
    const auto told = [&](auto file_of) {
        std::vector<std::string> messages(3);
        std::vector<std::vector<double>> reached(3);
        simulated::run(3, {}, [&](auto& net) {
            const auto rank = static_cast<std::size_t>(net.rank());
            auto descent = policy.template bind<double>(net, data, {.timeout = seconds(20)});
            const std::uint64_t operation = descent.workers().operation_number();
            messages[rank] = message_of<train::data_error>(
                [&] { descent.restore(train::checkpoint::open(file_of(net.rank())), "scd."); });
            if (!messages[rank].empty()) CHECK(descent.workers().operation_number() == operation);
            descent.step();
            reached[rank] = {descent.parameters().begin(), descent.parameters().end()};
        });
        for (const auto& each : reached) CHECK(each == reached[0]);
        return messages;
    };
    const auto with = [&](const char* odd) {
        return told([=](rank_t rank) { return path(rank == 1 ? odd : "own", rank); });
    };
    const char* const elsewhere = "compared with the file of rank 1: expected one that fits that rank, found another";
    for (const auto& [odd, what] : {std::pair("others", "section \"scd.samples\": expected the samples of this run"),
                                    std::pair("none", "cannot be opened")}) {
        const auto messages = with(odd);
        CHECK_MESSAGE(has(messages[1], what), messages[1]);
        for (const std::size_t rank : {0U, 2U}) CHECK_MESSAGE(has(messages[rank], elsewhere), messages[rank]);
    }
    for (const auto& message : with("early")) CHECK_MESSAGE(has(message, "expected operation 4 as on rank 0"), message);
    for (const auto& message : with("own")) CHECK(message.empty());
    const auto swapped = told([&](rank_t rank) { return path("own", rank == 2 ? 2 : 1 - rank); });
    for (const auto& message : swapped) CHECK_FALSE(message.empty());
}

TEST_CASE("coordinate_descent: options that cannot be") {
    const train::sparse_columns data = train::by_columns(rows_to_fit());
    simulated::run(1, {}, [&](auto& net) {
        CHECK_THROWS_AS(train::coordinate_descent<>{.coordinates = 0}.bind(net, data), contract_violation);
        CHECK_THROWS_AS(train::coordinate_descent<>{.l2 = -1}.bind(net, data), contract_violation);
        const double infinite = std::numeric_limits<double>::infinity();
        CHECK_THROWS_AS(train::coordinate_descent<>{.l2 = infinite}.bind(net, data), contract_violation);
        train::sparse_columns odd = data;
        odd.labels[3] = std::numeric_limits<float>::quiet_NaN();
        CHECK_THROWS_AS(train::coordinate_descent<>{}.bind(net, odd), contract_violation);
        odd = data;
        odd.values.assign(odd.indices.size(), std::numeric_limits<float>::infinity());
        CHECK_THROWS_AS(train::coordinate_descent<>{}.bind(net, odd), contract_violation);
    });
}

TEST_CASE("coordinate_descent: other options or samples on one rank are refused on all ranks") {
    const train::sparse_columns data = train::by_columns(rows_to_fit()),
                                fewer = train::by_columns(random_sparse(149, 40, 5));
    const auto refused = [](auto bind, const char* what) {
        simulated::run(3, {}, [&](auto& net) {
            const std::string message = message_of<mismatch>([&] { bind(net); });
            CHECK_MESSAGE(has(message, std::string("rank 1 calls with another ") + what), message);
        });
    };
    const auto own = [](auto& net, auto usual, auto odd) { return net.rank() == 1 ? odd : usual; };
    refused([&](auto& net) { train::coordinate_descent<>{.coordinates = own(net, 4U, 5U)}.bind(net, data); },
            "number of coordinates");
    refused([&](auto& net) { train::coordinate_descent<>{.l2 = own(net, 0.1, 0.2)}.bind(net, data); }, "l2");
    refused([&](auto& net) { train::coordinate_descent<>{}.bind(net, net.rank() == 1 ? fewer : data); },
            "number of samples");
    train::sparse_columns mislabelled = data;
    mislabelled.labels[7] = -mislabelled.labels[7];
    refused([&](auto& net) { train::coordinate_descent<>{}.bind(net, net.rank() == 1 ? mislabelled : data); },
            "samples");
    const coding rounded{.values = value_coding::qsgd4};
    refused([&](auto& net) { train::coordinate_descent<>{.codes = own(net, coding{}, rounded)}.bind(net, data); },
            "loss or coding of the moves");
    refused(
        [&](auto& net) {
            if (net.rank() == 1)
                train::coordinate_descent<train::squared>{}.bind(net, data);
            else
                train::coordinate_descent<train::logistic>{}.bind(net, data);
        },
        "loss or coding of the moves");
}

TEST_CASE("coordinate_descent: tiny values make no infinite moves") {
    for (const float tiny : {1e-18F, 1e-20F, 1e-38F}) {
        train::sparse_columns data = train::by_columns(rows_to_fit());
        data.values.assign(data.indices.size(), tiny);
        simulated::run(2, {}, [&](auto& net) {
            auto descent = train::coordinate_descent<>{.coordinates = 10}.bind(net, data);
            for (int step = 0; step < 40; ++step) descent.step();
            CHECK(std::isfinite(descent.loss()));
            CHECK(descent.loss() < 0.6932);
        });
    }
}

TEST_CASE("coordinate_descent: a move that is too large for the type is an error on all ranks, and nothing moves") {
    train::sparse_columns data = train::by_columns(rows_to_fit());
    data.values.assign(data.indices.size(), 1e-18F);
    data.labels.assign(data.rows, 1e30F);
    const train::coordinate_descent<train::squared> policy{.coordinates = 41};
    std::vector<std::string> messages(2);
    simulated::run(2, {}, [&](auto& net) {
        auto descent = policy.bind(net, data);
        const double before = descent.loss();
        for (int attempt = 0; attempt < 2; ++attempt)
            messages[static_cast<std::size_t>(net.rank())] = message_of<invalid_value>([&] { descent.step(); });
        CHECK(descent.loss() == before);
        CHECK(std::ranges::all_of(descent.parameters(), [](float each) { return each == 0; }));
    });
    for (const std::string& each : messages)
        CHECK(each == "rill: coordinate_descent: rank 0: the move of coordinate 0 is not finite");
}
