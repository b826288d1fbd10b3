#include <rill/aggregate/mean_of_latest.hpp>
#include <rill/concept/update.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using rill::aggregate::mean_of_latest;
static_assert(rill::RankedUpdate<mean_of_latest, double>);
static_assert(!rill::Update<mean_of_latest, double>);

namespace {

/// The sections of a checkpoint. A reader throws where a section has another size, as `checkpoint::reader` does.
struct sections {
    std::map<std::string, std::vector<double>> all;

    void add(const std::string& name, const auto& values) { all[name] = {values.begin(), values.end()}; }
    template <class Values>
    void read(const std::string& name, Values&& values) const {
        const std::vector<double>& found = all.at(name);
        if (found.size() != values.size()) throw std::out_of_range(name);
        std::transform(found.begin(), found.end(), values.begin(),
                       [](double value) { return static_cast<std::remove_cvref_t<decltype(values[0])>>(value); });
    }
};

}  // namespace

TEST_CASE("mean_of_latest: goes on from what was saved, and refuses models of another size") {
    auto update = mean_of_latest{}.bind<double>(2), same = mean_of_latest{}.bind<double>(2),
         larger = mean_of_latest{}.bind<double>(3);
    std::vector<double> model(2), again(2);
    const std::vector<double> first{1, 2}, second{3, 6};
    update.apply_of(2, model, first, 0);
    sections saved;
    update.save(saved, "at.");
    same.restore(saved, "at.");
    update.apply_of(0, model, second, 1);
    same.apply_of(0, again, second, 1);
    CHECK(again == model);
    CHECK(again == std::vector<double>{2, 4});
    CHECK_THROWS_AS(larger.restore(saved, "at."), std::out_of_range);
}

TEST_CASE("mean_of_latest: each rank counts once, with what it pushed last; others do not count yet") {
    auto update = mean_of_latest{}.bind<double>(2);
    std::vector<double> model{100, 100};
    const auto push = [&](int rank, std::vector<double> of_rank) {
        update.apply_of(rank, std::span(model), std::span<const double>(of_rank), 0);
        return model;
    };
    CHECK(push(3, {1, 2}) == std::vector<double>{1, 2});
    CHECK(push(0, {3, 6}) == std::vector<double>{2, 4});
    CHECK(push(3, {5, 0}) == std::vector<double>{4, 3});
    CHECK(push(1, {4, 3}) == std::vector<double>{4, 3});
    CHECK(push(0, {0, 0}) == std::vector<double>{3, 1});
}
