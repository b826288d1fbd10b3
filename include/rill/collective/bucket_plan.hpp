#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/span_of.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Neighbouring tensors that are exchanged together.
struct bucket {
    segment tensors{};   ///< the numbers of its tensors
    segment elements{};  ///< its elements, counted through all tensors one after the other

    friend bool operator==(const bucket&, const bucket&) = default;
};

/// Which tensors share a bucket: made by `fusion`, or by hand from the last tensor to the first.
class bucket_plan {
  public:
    bucket_plan() = default;
    /// A plan for tensors of these sizes, in elements; none is in a bucket yet.
    explicit bucket_plan(std::span<const std::size_t> sizes) {
        begins_.reserve(sizes.size() + 1);
        for (const std::size_t size : sizes) begins_.push_back(begins_.back() + size);
    }

    void begin_bucket() { buckets_.push_back({{next(), next()}, {begins_[next()], begins_[next()]}}); }
    /// Adds a tensor to the last bucket. It must be the one just before those that are in buckets already.
    void put_before(std::size_t tensor) {
        RILL_EXPECTS(!buckets_.empty() && tensor + 1 == next(), "bucket_plan: from the last tensor to the first");
        buckets_.back().tensors.begin = tensor;
        buckets_.back().elements.begin = begins_[tensor];
        bucket_of_.push_back(buckets_.size() - 1);
    }

    /// The buckets in the order in which they are exchanged: those of the last tensors first.
    std::span<const bucket> buckets() const { return span_of(buckets_); }
    std::size_t tensors() const { return begins_.size() - 1; }
    /// The number of elements of all tensors.
    std::size_t dimension() const { return begins_.back(); }
    std::size_t bucket_of(std::size_t tensor) const { return bucket_of_[tensors() - 1 - tensor]; }

    /// A hash by which ranks compare their plans.
    std::uint64_t fingerprint() const {
        std::uint64_t hash = mix64(tensors(), buckets_.size());
        for (const bucket& each : buckets_)
            hash = mix64(hash, each.tensors.begin, each.elements.begin, each.elements.end);
        return hash;
    }
    friend bool operator==(const bucket_plan&, const bucket_plan&) = default;

  private:
    /// One above the highest tensor that is in no bucket.
    std::size_t next() const { return tensors() - bucket_of_.size(); }

    std::vector<std::size_t> begins_{0};
    std::vector<bucket> buckets_;
    std::vector<std::size_t> bucket_of_;  ///< from the last tensor to the first
};

}}  // namespace rill::RILL_ABI
