// Operations of every kind, each with its own data, in their blocking and in their non-blocking form.
#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/stream/stream.hpp>

#include "cases.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace cases {

using job_stream = rill::stream<float, std::uint32_t>;
inline constexpr int job_kinds = 13;

inline auto make_codec(std::size_t n) {
    using namespace rill::compress;
    return error_feedback{encoded{top_k{.density = 0.1}, qsgd{.bits = 4}, packed_gaps{}}}.bind(n);
}

/// One operation of any kind with its own data. The kind and sizes are the same on all ranks; the values are not.
class job {
  public:
    job(int kind, std::size_t n, int root, int ranks, int rank, std::uint64_t seed)
        : kind_(kind), root_(root), input_(n), output_(n, -1), sparse_(n), result_(n), codec_(make_codec(n)) {
        rill::random_sequence draw(rill::random_key{seed}.derive(rank));
        for (float& x : input_) x = draw.uniform() - 0.5F;  // sums depend on the order of folding
        const bool disjoint = kind == 8;
        for (std::size_t i = 0; i < n; ++i)
            if (disjoint ? i % static_cast<std::size_t>(ranks) == static_cast<std::size_t>(rank) : draw.below(5) == 0)
                sparse_.push_back(i, draw.uniform());
        const rill::segment own = rill::split(n, static_cast<std::size_t>(ranks), static_cast<std::size_t>(rank));
        if (kind == 5) output_.resize(own.size());
        if (kind == 7) input_.resize(own.size());
    }

    template <class Group>
    rill::request start(Group& workers) {
        switch (kind_) {
            case 0: return rill::start_all_reduce(workers, input_, output_);
            case 1: return rill::start_all_reduce(workers, input_, input_, rill::aggregate::sum{}, {.weight = 0.5});
            case 2: return rill::start_all_reduce(workers, sparse_, result_);
            case 3: return rill::start_all_reduce(workers, std::span<const float>(input_), output_, codec_);
            case 4: return rill::start_all_reduce(workers, sparse_, result_, rill::aggregate::sum{}, quantised());
            case 5: return rill::start_reduce_scatter(workers, input_, output_);
            case 6: return rill::start_reduce_scatter(workers, sparse_, result_);
            case 7: return rill::start_all_gather(workers, input_, std::span<float>(output_));
            case 8: return rill::start_all_gather(workers, sparse_, result_);
            case 9: return rill::start_reduce(workers, input_, output_, root_);
            case 10: return rill::start_reduce(workers, sparse_, result_, root_);
            case 11: return rill::start_broadcast(workers, sparse_, root_);
            default: return rill::start_barrier(workers);
        }
    }
    template <class Group>
    rill::receipt call(Group& workers) {
        switch (kind_) {
            case 0: return rill::all_reduce(workers, input_, output_);
            case 1: return rill::all_reduce(workers, input_, input_, rill::aggregate::sum{}, {.weight = 0.5});
            case 2: return rill::all_reduce(workers, sparse_, result_);
            case 3: return rill::all_reduce(workers, std::span<const float>(input_), output_, codec_);
            case 4: return rill::all_reduce(workers, sparse_, result_, rill::aggregate::sum{}, quantised());
            case 5: return rill::reduce_scatter(workers, input_, output_);
            case 6: return rill::reduce_scatter(workers, sparse_, result_);
            case 7: return rill::all_gather(workers, input_, std::span<float>(output_));
            case 8: return rill::all_gather(workers, sparse_, result_);
            case 9: return rill::reduce(workers, input_, output_, root_);
            case 10: return rill::reduce(workers, sparse_, result_, root_);
            case 11: return rill::broadcast(workers, sparse_, root_);
            default: return rill::barrier(workers);
        }
    }

    /// A digest of the bits of its results.
    std::uint64_t digest() const {
        std::uint64_t digest = 0;
        for (const auto* part : {&input_, &output_}) {
            digest = rill::mix64(digest, part->size());
            for (const float x : *part) digest = rill::mix64(digest, std::bit_cast<std::uint32_t>(x));
        }
        for (const float x : values()) digest = rill::mix64(digest, std::bit_cast<std::uint32_t>(x));
        return digest;
    }

    /// Whether the results of two jobs are the same, bit for bit.
    friend bool operator==(const job& a, const job& b) {
        const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
            return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
        };
        return same(a.input_, b.input_) && same(a.output_, b.output_) && a.values() == b.values();
    }

  private:
    static rill::stream_codings quantised() { return {.contribution = {.values = rill::value_coding::qsgd4}}; }
    std::vector<float> values() const {
        std::vector<float> all = dense_copy(result_, 0.0F);
        const std::vector<float> more = dense_copy(sparse_, 0.0F);
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }

    int kind_;
    int root_;
    std::vector<float> input_, output_;
    job_stream sparse_, result_;
    decltype(make_codec(0)) codec_;
};

}  // namespace cases
