#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/train/dataset.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A model that puts samples into classes, also one that says which class a label stands for.
template <class M>
concept PredictsClasses = requires(M& model, std::span<const typename M::scalar> parameters,
                                   const typename M::batch& samples, std::span<std::int32_t> classes) {
    { model.predict(parameters, samples, classes) };
};

/// How many of `rows` the model puts into their class. `data`: the dataset of the model's batches. Each rank can count
/// on its own shard; the sum over the ranks is then the count of all.
template <PredictsClasses Model, class Data>
std::size_t count_correct(Model& model, std::span<const typename Model::scalar> parameters, const Data& data,
                          segment rows) {
    RILL_EXPECTS(rows.begin <= rows.end && rows.end <= data.rows, "count_correct: rows of the dataset");
    constexpr std::size_t at_once = 128;
    std::vector<std::uint32_t> numbers(std::min(at_once, rows.size()));
    std::vector<std::int32_t> classes(numbers.size());
    std::size_t correct = 0;
    for (std::size_t first = rows.begin; first < rows.end; first += at_once) {
        const std::size_t count = std::min(at_once, rows.end - first);
        std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(first));
        model.predict(parameters, {data, std::span(numbers).first(count)}, std::span(classes).first(count));
        for (std::size_t i = 0; i < count; ++i) {
            if constexpr (requires { Model::class_of(data.labels[0]); })
                correct += classes[i] == Model::class_of(data.labels[first + i]) ? 1U : 0U;
            else
                correct += classes[i] == data.labels[first + i] ? 1U : 0U;
        }
    }
    return correct;
}

/// The share of all rows that the model puts into their class.
template <PredictsClasses Model, class Data>
double accuracy(Model& model, std::span<const typename Model::scalar> parameters, const Data& data) {
    RILL_EXPECTS(data.rows > 0, "accuracy: a dataset that is not empty");
    return static_cast<double>(count_correct(model, parameters, data, {0, data.rows})) / static_cast<double>(data.rows);
}

}}}  // namespace rill::RILL_ABI::train
