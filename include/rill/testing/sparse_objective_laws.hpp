#pragma once

#include <rill/core/random.hpp>
#include <rill/stream/stream.hpp>
#include <rill/testing/law.hpp>
#include <rill/train/sparse_objective.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// A sparse objective, two batches of it, and parameters at which its loss has derivatives.
template <class O>
struct sparse_objective_in_law {
    using scalar = typename O::scalar;
    using batch = typename O::batch;

    O& objective;
    const batch& samples;
    const batch& others;
    std::vector<scalar> at;

    sparse_objective_in_law(O& model, const batch& one, const batch& other)
        : objective(model), samples(one), others(other), at(model.dimension()) {
        const counter_rng draw(random_key{11});
        for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<scalar>(draw.uniform(i)) - scalar{0.5};
    }
    /// The gradient, which is checked to be a sparse stream.
    stream<scalar> gradient_of(const batch& of) {
        stream<scalar> made;
        objective.gradient(at, of, made);
        expect(!made.is_dense() && made.range() == segment{0, objective.dimension()},
               "the gradient is not a sparse stream over all parameters");
        const auto indices = made.indices();
        for (std::size_t e = 0; e < indices.size(); ++e)
            expect(indices[e] < objective.dimension() && (e == 0 || indices[e - 1] < indices[e]),
                   "the entries do not ascend within the parameters");
        return made;
    }
    double loss_at(std::size_t coordinate, scalar moved_by) {
        std::vector<scalar> moved = at;
        moved[coordinate] += moved_by;
        return objective.loss(moved, samples);
    }
    void check_overwrites() {
        const auto expected = gradient_of(samples);
        stream<scalar> used;
        for (auto& value : used.make_dense({0, objective.dimension() + 3})) value = scalar{9};
        objective.gradient(at, samples, used);
        expect(used == expected, "what the stream held before is in the gradient");
        objective.gradient(at, others, used);
        objective.gradient(at, samples, used);
        expect(used == expected, "another batch before makes another gradient");
    }
    /// Compares with differences of the loss: `step` is small, and rounding is smaller than what it makes.
    void check_derivatives() {
        const auto made = gradient_of(samples);
        const auto step = std::cbrt(std::numeric_limits<scalar>::epsilon());
        std::size_t entry = 0;
        for (std::size_t i = 0; i < at.size(); ++i) {
            const bool has_entry = entry < made.count() && made.indices()[entry] == i;
            const double derivative = has_entry ? static_cast<double>(made.values()[entry++]) : 0.0;
            const double above = loss_at(i, step), below = loss_at(i, -step);
            if (!has_entry) expect(above == below, "the loss depends on a coordinate without an entry");
            const double seen = (above - below) / (2 * static_cast<double>(step));
            expect(std::abs(seen - derivative) <= 50 * static_cast<double>(step) * (1 + std::abs(derivative)),
                   "an entry is not the derivative of the loss");
        }
    }
    void check_dense() {
        if constexpr (Objective<O>) {
            const auto made = gradient_of(samples);
            std::vector<scalar> dense(at.size()), spread(at.size());
            const double loss = objective.gradient(at, samples, std::span<scalar>(dense));
            expect(loss == objective.loss(at, samples), "the dense gradient returns another loss");
            for (std::size_t e = 0; e < made.count(); ++e) spread[made.indices()[e]] = made.values()[e];
            expect(spread == dense, "the dense gradient has other bits");
        }
    }
};

}  // namespace detail

/// Checks a sparse objective against the laws of the concept, at parameters in [-½, ½). `samples`, `others`: two
/// batches. The loss must be differentiable there. Calls `visit(const char* name, const law_outcome&)` once per law.
template <train::SparseObjective O, class Visit>
void for_each_sparse_objective_law(O& objective, const typename O::batch& samples, const typename O::batch& others,
                                   Visit&& visit) {
    using scalar = typename O::scalar;
    detail::sparse_objective_in_law<O> of(objective, samples, others);
    const auto law = [&](const char* name, auto&& check) {
        law_outcome outcome;
        try {
            check();
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = failed.what()};
        }
        visit(name, outcome);
    };
    law("the first parameters depend on the key alone", [&] {
        std::vector<scalar> one(objective.dimension(), scalar{1}), two(objective.dimension(), scalar{2});
        objective.initialise(one, random_key{5});
        objective.initialise(two, random_key{5});
        expect(one == two, "equal keys give different parameters");
    });
    law("the gradient is a sparse stream whose entries ascend", [&] { of.gradient_of(samples); });
    law("the gradient returns the loss", [&] {
        stream<scalar> made;
        const double loss = objective.gradient(of.at, samples, made);
        expect(loss == objective.loss(of.at, samples), "gradient and loss return different losses");
    });
    law("the gradient depends on parameters and batch alone", [&] { of.check_overwrites(); });
    law("the entries are the derivatives that are not always 0", [&] { of.check_derivatives(); });
    law("the dense gradient is the same", [&] { of.check_dense(); });
}

}}}  // namespace rill::RILL_ABI::testing
