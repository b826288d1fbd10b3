// The results of every collective on one rank, for every dimension of the grid, dense and sparse: a digest of each.
#pragma once

#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/stream/stream.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace evidence {

/// The dimensions of the grid, and one whose messages are announced first.
inline constexpr std::size_t dimensions[] = {0, 1, 2, 63, 64, 65, 1000, 20'000};

using stream = rill::stream<float, std::uint32_t>;

/// Digests of results, in order, each with a label.
class record {
  public:
    void add(const std::string& what, std::span<const std::byte> bytes) {
        std::uint64_t digest = rill::mix64(bytes.size());
        for (std::size_t at = 0; at < bytes.size(); at += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
            digest = rill::mix64(digest, word);
        }
        digests_.push_back(digest);
        labels_.push_back(what);
    }
    void add(const std::string& what, const std::vector<float>& values) { add(what, std::as_bytes(std::span(values))); }
    void add(const std::string& what, const stream& values) {
        std::vector<float> dense(values.dimension());
        rill::copy_dense(values.view(), std::span<float>(dense), 0.0F);
        add(what, dense);
        add(what + " (its form)", std::vector<float>{values.view().is_dense() ? 1.0F : 0.0F});
    }

    const std::vector<std::uint64_t>& digests() const { return digests_; }
    const std::string& label(std::size_t i) const { return labels_[i]; }

  private:
    std::vector<std::uint64_t> digests_;
    std::vector<std::string> labels_;
};

/// Values whose sums round: another order of folding gives other bits.
inline std::vector<float> dense_input(int rank, std::size_t n) {
    const rill::counter_rng random(rill::random_key{7}.derive(rank));
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) values[i] = random.uniform(i) * 2 - 1;
    return values;
}
inline stream sparse_input(int rank, std::size_t n) {
    const std::vector<float> values = dense_input(rank, n);
    stream input(n);
    for (std::size_t i = 0; i < n; ++i)
        if ((i * 2654435761U + static_cast<std::size_t>(rank) * 97) % 5 == 0) input.push_back(i, values[i]);
    return input;
}

template <class Group>
void dense_collectives(Group& workers, std::size_t n, record& seen) {
    const int ranks = workers.size(), self = workers.rank();
    const std::string where = " of " + std::to_string(n) + " values";
    const std::vector<float> input = dense_input(self, n);
    const rill::segment mine = rill::split(n, static_cast<std::size_t>(ranks), static_cast<std::size_t>(self));
    const std::vector<float> own(input.begin() + static_cast<std::ptrdiff_t>(mine.begin),
                                 input.begin() + static_cast<std::ptrdiff_t>(mine.end));
    std::vector<float> output(n), part(mine.size());
    rill::all_reduce(workers, input, output);
    seen.add("all_reduce" + where, output);
    rill::reduce_scatter(workers, input, part);
    seen.add("reduce_scatter" + where, part);
    rill::all_gather(workers, own, output);
    seen.add("all_gather" + where, output);
    rill::reduce(workers, input, output, ranks - 1);
    if (self == ranks - 1) seen.add("reduce" + where, output);
    output = input;
    rill::broadcast(workers, output, ranks / 2);
    seen.add("broadcast" + where, output);
}

template <class Group>
void sparse_collectives(Group& workers, std::size_t n, record& seen) {
    const int ranks = workers.size();
    const std::string where = " of a stream of " + std::to_string(n);
    const stream input = sparse_input(workers.rank(), n);
    stream output;
    rill::all_reduce(workers, input, output);
    seen.add("all_reduce" + where, output);
    rill::reduce_scatter(workers, input, output);
    seen.add("reduce_scatter" + where,
             std::vector<float>(output.view().values().begin(), output.view().values().end()));
    rill::reduce(workers, input, output, ranks / 2);
    if (workers.rank() == ranks / 2) seen.add("reduce" + where, output);
    stream copy = input;
    rill::broadcast(workers, copy, ranks - 1);
    seen.add("broadcast" + where, copy);
    const rill::segment mine =
        rill::split(n, static_cast<std::size_t>(ranks), static_cast<std::size_t>(workers.rank()));
    stream own(n);
    for (std::size_t i = mine.begin; i < mine.end; ++i)
        if (i % 3 == 0) own.push_back(i, static_cast<float>(i));
    rill::all_gather(workers, own, output);
    seen.add("all_gather" + where, output);
}

template <class Group>
record of(Group& workers, std::span<const std::size_t> sizes = dimensions) {
    record seen;
    for (const std::size_t n : sizes) {
        dense_collectives(workers, n, seen);
        sparse_collectives(workers, n, seen);
    }
    rill::barrier(workers);
    return seen;
}

}  // namespace evidence
