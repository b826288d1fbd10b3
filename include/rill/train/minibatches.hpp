#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/dataset.hpp>
#include <rill/train/sampler.hpp>

#include <concepts>
#include <string_view>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Gives a rank the batch of each step; its position can be saved.
template <class B, class Batch>
concept BatchSource = std::copyable<B> && Persistent<B> && requires(B& source) {
    { source.next() } -> std::convertible_to<Batch>;
};

/// The batches of a `dataset` or `sparse_dataset` in the order of a `sampler`. Models `BatchSource`. The dataset must
/// outlive it.
template <class Data>
class minibatches_of {
  public:
    /// If `order.rows` is 0, all rows of the dataset are used.
    minibatches_of(const Data& data, sampler::options order) : data_(&data), sampler_(complete(order, data)) {}

    const train::sampler& order() const { return sampler_; }

    /// Valid until the next call.
    batch_of<Data> next() { return {*data_, sampler_.next()}; }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        sampler_.save(out, prefix);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        sampler_.restore(in, prefix);
    }

  private:
    static sampler::options complete(sampler::options order, const Data& data) {
        if (order.rows == 0) order.rows = data.rows;
        RILL_EXPECTS(order.rows <= data.rows, "minibatches: rows of the dataset");
        return order;
    }

    const Data* data_;
    train::sampler sampler_;
};

/// The batches of a `dataset`.
using minibatches = minibatches_of<dataset>;

static_assert(BatchSource<minibatches, batch>);

}}}  // namespace rill::RILL_ABI::train
