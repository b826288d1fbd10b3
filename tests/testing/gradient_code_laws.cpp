#include <rill/testing/gradient_code_laws.hpp>

#include <rill/gradient_code/cyclic_mds.hpp>
#include <rill/gradient_code/dual_code.hpp>
#include <rill/gradient_code/fractional_repetition.hpp>
#include <rill/gradient_code/group_code.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

using rill::gradient_code::cyclic_mds;
using rill::gradient_code::dual_code;
using rill::testing::law_outcome;

namespace {

/// The names of the laws that do not hold.
template <class Code>
std::vector<std::string> broken_laws(const Code& code) {
    std::vector<std::string> broken;
    rill::testing::for_each_gradient_code_law(code, [&](const char* name, const law_outcome& outcome) {
        CHECK(outcome.held == outcome.what.empty());
        if (!outcome.held) broken.emplace_back(name);
    });
    return broken;
}

const dual_code& right() {
    static const dual_code code = cyclic_mds{}.bind(6, 2);
    return code;
}

/// A correct code; each of the following types breaks one promise.
struct six_workers {
    int workers() const { return right().workers(); }
    int partitions() const { return right().partitions(); }
    int stragglers() const { return right().stragglers(); }
    std::span<const int> partitions_of(int worker) const { return right().partitions_of(worker); }
    std::span<const double> coefficients_of(int worker) const { return right().coefficients_of(worker); }
    bool is_decodable(std::span<const int> survivors) const { return right().is_decodable(survivors); }
    void decoding_row(std::span<const int> survivors, std::span<double> row) const {
        right().decoding_row(survivors, row);
    }
    double approximate_row(std::span<const int> survivors, std::span<double> row) const {
        return right().approximate_row(survivors, row);
    }
};

struct promises_more : six_workers {
    int stragglers() const { return 3; }
};
struct decodes_badly : six_workers {
    void decoding_row(std::span<const int> survivors, std::span<double> row) const {
        right().decoding_row(survivors, row);
        for (double& each : row) each *= 1.01;
    }
};
struct follows_the_order : six_workers {
    void decoding_row(std::span<const int> survivors, std::span<double> row) const {
        right().decoding_row(survivors, row);
        if (survivors.front() > survivors.back()) row[0] += 1e-12;
    }
};
struct approximates_anything : six_workers {
    double approximate_row(std::span<const int>, std::span<double> row) const {
        std::ranges::fill(row, 0.0);
        return 2.449489742783178;  // √6: the error of the zero row, which is not the least error
    }
};
struct never_asks : six_workers {
    bool is_decodable(std::span<const int>) const { return true; }
    void decoding_row(std::span<const int> survivors, std::span<double> row) const {
        std::vector<int> once;
        for (const int worker : survivors)
            if (worker < 6 && std::ranges::find(once, worker) == once.end()) once.push_back(worker);
        std::vector<double> some(once.size());
        right().approximate_row(once, some);
        std::ranges::fill(row, 0.0);
        for (std::size_t i = 0; i < once.size(); ++i)
            row[static_cast<std::size_t>(std::ranges::find(survivors, once[i]) - survivors.begin())] = some[i];
    }
};

struct asks_for_too_many : rill::gradient_code::group_code {
    int least_survivors() const { return rill::gradient_code::group_code::least_survivors() + 1; }
};

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("gradient_code_laws: a right code breaks none") {
    CHECK(broken_laws(six_workers{}).empty());
    CHECK(broken_laws(rill::gradient_code::fractional_repetition{}.bind(6, 2)).empty());
}

TEST_CASE("gradient_code_laws: each broken promise is reported") {
    CHECK(broken_laws(promises_more{}) == names{"more workers than stragglers hold each partition",
                                                "any n-s survivors reach 1",
                                                "neither order nor history changes a row"});
    CHECK(broken_laws(decodes_badly{}) == names{"any n-s survivors reach 1", "more survivors reach 1 as well"});
    CHECK(broken_laws(follows_the_order{}) == names{"neither order nor history changes a row"});
    CHECK(broken_laws(approximates_anything{}) == names{"an approximate row is the closest"});
    const asks_for_too_many some{rill::gradient_code::fractional_repetition{}.bind(6, 2)};
    static_assert(rill::SmallSetCode<asks_for_too_many> && !rill::SmallSetCode<six_workers>);
    CHECK(broken_laws(some) == names{"fewer than least_survivors() are not decodable"});
    CHECK(broken_laws(never_asks{}) == names{"an approximate row is the closest",
                                             "an empty set of survivors is not decodable", "a worker survives once",
                                             "only workers survive"});
}
