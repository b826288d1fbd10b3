// usage: bench_tbb_kernels KERNEL ENTRIES SAMPLES
//
// The seconds of a kernel alone and on two threads of oneTBB, in turns, as {"serial": [...], "tbb": [...]}. The results
// are compared bit for bit, and with what is due.
#include <rill/adapt/tbb.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/random.hpp>
#include <rill/kernel/bucket_select.hpp>
#include <rill/kernel/fold.hpp>
#include <rill/kernel/quantize.hpp>
#include <rill/kernel/select.hpp>
#include <rill/kernel/tasks.hpp>
#include <rill/stream/fold.hpp>
#include <rill/stream/stream.hpp>

#include "../shared/expected.hpp"
#include "../shared/inputs.hpp"

#include <tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using bench::values;

/// Normally distributed.
values noise(std::size_t n, int seed) { return bench::dense_input("gaussian", n, static_cast<std::uint64_t>(seed)); }

/// One coordinate of `gap`, at random.
rill::stream<float> sparse_noise(std::size_t n, std::uint64_t gap, int seed) {
    rill::random_sequence random{rill::random_key{2}.derive(seed)};
    rill::stream<float> x(n);
    for (std::size_t i = random.below(2 * gap); i < n; i += 1 + random.below(2 * gap))
        x.push_back(i, static_cast<float>(random.bits()) * 0x1p-32F - 0.5F);
    return x;
}

constexpr auto add = [](float a, float b) { return a + b; };

/// The entries of top_k with a density of 1 %.
struct selection {
    values x;
    std::vector<std::uint32_t> indices;
    values chosen;
    rill::kernel::select_scratch scratch;

    explicit selection(std::size_t n) : x(noise(n, 0)), indices(n / 100), chosen(n / 100) {}
    template <class Executor>
    void run(const Executor& executor) {
        rill::kernel::top_k(std::span<const float>(x), indices.size(), std::span(indices), scratch, executor);
        rill::kernel::gather(std::span<const float>(x), std::span<const std::uint32_t>(indices),
                             std::span<float>(chosen), executor);
    }
    std::span<const std::byte> result() const { return std::as_bytes(std::span(chosen)); }
    void check() const {
        bench::require_largest(indices, x, 0, "top_k");
        for (std::size_t k = 0; k < indices.size(); ++k) bench::require(chosen[k] == x[indices[k]], "gather");
    }
};

/// The 4 largest of each 512 entries.
struct bucket_selection {
    values x;
    std::vector<std::uint32_t> indices;
    rill::kernel::select_scratch scratch;

    explicit bucket_selection(std::size_t n) : x(noise(n, 0)), indices(rill::kernel::bucket_top_k_count(n, 512, 4)) {}
    template <class Executor>
    void run(const Executor& executor) {
        rill::kernel::bucket_top_k(std::span<const float>(x), 512, 4, std::span(indices), scratch, executor);
    }
    std::span<const std::byte> result() const { return std::as_bytes(std::span(indices)); }
    void check() const {
        for (std::size_t b = 0, i = 0; i < x.size(); ++b, i += 512)
            bench::require_largest(std::span(indices).subspan(4 * b, 4),
                                   std::span(x).subspan(i, std::min<std::size_t>(512, x.size() - i)),
                                   static_cast<std::uint32_t>(i), "bucket_top_k");
    }
};

/// QSGD of 4 bits in buckets of 1024.
struct quantisation {
    values x;
    values scales;
    rill::buffer codes;

    explicit quantisation(std::size_t n)
        : x(noise(n, 0)),
          scales(rill::kernel::quantize_buckets(n, 1024)),
          codes(rill::kernel::quantized_bytes(n, 4, 1024)) {}
    template <class Executor>
    void run(const Executor& executor) {
        rill::kernel::quantize(std::span<const float>(x), 4, 1024, rill::random_key{3}, 0, std::span<float>(scales),
                               codes, executor);
    }
    std::span<const std::byte> result() const { return codes; }
    void check() const {
        values made(x.size());
        rill::kernel::dequantize<float>(codes, scales, 4, 1024, made);
        bench::require_rounded(made, x, scales, 1024, 4, "quantize");
    }
};

struct dequantisation : quantisation {
    values made;

    explicit dequantisation(std::size_t n) : quantisation(n), made(n) { quantisation::run(rill::serial{}); }
    template <class Executor>
    void run(const Executor& executor) {
        rill::kernel::dequantize<float>(codes, scales, 4, 1024, made, executor);
    }
    std::span<const std::byte> result() const { return std::as_bytes(std::span(made)); }
    void check() const { bench::require_rounded(made, x, scales, 1024, 4, "dequantize"); }
};

/// `ways` dense vectors, out of place.
template <int Ways>
struct dense_fold {
    std::vector<values> x;
    std::vector<std::span<const float>> inputs;
    values made;

    explicit dense_fold(std::size_t n) : made(n) {
        for (int k = 0; k < Ways; ++k) x.push_back(noise(n, k));
        inputs.assign(x.begin(), x.end());
    }
    template <class Executor>
    void run(const Executor& executor) {
        rill::kernel::fold_dense_k(std::span<const std::span<const float>>(inputs), std::span<float>(made), add,
                                   executor);
    }
    std::span<const std::byte> result() const { return std::as_bytes(std::span(made)); }
    void check() const {
        std::vector<float> sum(x[0].begin(), x[0].end());
        for (std::size_t k = 1; k < x.size(); ++k)
            std::transform(sum.begin(), sum.end(), x[k].begin(), sum.begin(), add);
        bench::require_equal(made, sum, "dense fold");
    }
};

/// Eight sparse vectors of one entry in 128; the result is sparse, or dense where `Dense`.
template <bool Dense>
struct sparse_fold {
    std::vector<rill::stream<float>> x;
    std::vector<rill::stream_view<float>> operands;
    rill::stream<float> made;
    rill::fold_scratch<float, std::uint32_t> scratch;

    explicit sparse_fold(std::size_t n) {
        for (int k = 0; k < 8; ++k) x.push_back(sparse_noise(n, 128, k));
        for (const auto& each : x) operands.push_back(each.view());
    }
    template <class Executor>
    void run(const Executor& executor) {
        rill::fold_streams(std::span<const rill::stream_view<float>>(operands), made, add, 0.0F,
                           rill::dense_switch{Dense ? 0.0 : 1.0}, scratch, executor);
        if (made.is_dense() != Dense) throw std::runtime_error("the result has the wrong form");
    }
    std::span<const std::byte> result() const { return std::as_bytes(made.values()); }
    void check() const {
        bench::require_equal(
            made, bench::dense_sum(made.dimension(), 8, [&](int k) { return x[static_cast<std::size_t>(k)]; }),
            "sparse fold");
    }
};

/// What a rank computes in a sparse all_reduce of 8: its contribution, with error feedback and a density of 1 %, and
/// the dense result of as many.
struct compress_and_fold {
    values x, made;
    rill::stream<float> others[7];
    decltype(rill::compress::error_feedback{rill::compress::top_k{.density = 0.01}}.bind(0)) codec;
    rill::fold_scratch<float, std::uint32_t> scratch;

    explicit compress_and_fold(std::size_t n)
        : x(noise(n, 0)),
          made(n),
          codec(rill::compress::error_feedback{rill::compress::top_k{.density = 0.01}}.bind(n)) {
        for (int k = 0; k < 7; ++k) others[k] = sparse_noise(n, 100, k);
    }
    template <class Executor>
    void run(const Executor& executor) {
        std::vector<rill::stream_view<float>> operands{codec.encode(std::span<const float>(x), executor)};
        for (const auto& each : others) operands.push_back(each.view());
        rill::fold_into_dense(std::span<const rill::stream_view<float>>(operands), std::span<float>(made), add, 0.0F,
                              scratch, executor);
        codec.commit();
    }
    std::span<const std::byte> result() const { return std::as_bytes(std::span(made)); }
    /// Checks the first run, after which the residual holds exactly what is not sent.
    void check() const {
        std::vector<std::uint32_t> sent;
        std::vector<float> sum(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (codec.residual()[i] == x[i]) continue;
            sent.push_back(static_cast<std::uint32_t>(i));
            sum[i] = x[i];
            bench::require(codec.residual()[i] == 0, "what is sent leaves the residual");
        }
        bench::require(sent.size() == (x.size() + 99) / 100, "top_k");
        bench::require_largest(sent, x, 0, "top_k");
        for (const auto& each : others) bench::add_entries(each.indices(), each.values(), sum);
        bench::require_equal(made, sum, "fold of what is sent");
    }
};

/// The limit of the memory: y = x + 3 y.
struct triad {
    values x, y;

    explicit triad(std::size_t n) : x(n, 1.0F), y(n, 1.0F) {}
    template <class Executor>
    void run(const Executor& executor) {
        rill::kernel::run_tasks(executor, rill::kernel::tasks_for(executor, x.size()), [&](rill::segment part) {
            const float* from = x.data();
            float* to = y.data();
            for (std::size_t i = part.begin; i < part.end; ++i) to[i] = from[i] + 3 * to[i];
        });
    }
    std::span<const std::byte> result() const { return std::as_bytes(std::span(y)); }
    void check() const { bench::require_equal(y, std::vector<float>(y.size(), 4.0F), "triad"); }
};

/// Two steps alone and by the executor: the same bits, and after the first one what is due. Each has a kernel of its
/// own, because some keep a state.
template <class Kernel, class Executor>
void require_same_bits(std::size_t n, const Executor& executor) {
    Kernel alone(n), spread(n);
    for (int step = 0; step < 2; ++step) {
        alone.run(rill::serial{});
        spread.run(executor);
        if (step == 0) spread.check();
        const auto due = alone.result(), made = spread.result();
        bench::require(due.size() == made.size() && std::memcmp(due.data(), made.data(), made.size()) == 0,
                       "the bits on two threads");
    }
}

template <class Run>
double seconds(Run run) {
    const auto start = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void print(const char* name, const std::vector<double>& samples, const char* end) {
    std::printf("\"%s\": ", name);
    const char* separator = "[";
    for (const double each : samples) {
        std::printf("%s%.9g", separator, each);
        separator = ", ";
    }
    std::printf("]%s", end);
}

template <class Kernel>
void measure(std::size_t n, int samples) {
    tbb::task_arena two(2);
    const rill::adapt::tbb_executor executor(two);
    require_same_bits<Kernel>(n, executor);
    Kernel kernel(n);
    kernel.run(executor);
    std::vector<double> alone, spread;
    for (int i = 0; i < samples; ++i) {
        alone.push_back(seconds([&] { kernel.run(rill::serial{}); }));
        spread.push_back(seconds([&] { kernel.run(executor); }));
    }
    std::printf("{");
    print("serial", alone, ", ");
    print("tbb", spread, "}\n");
}

void measure(std::string_view kernel, std::size_t n, int samples) {
    if (kernel == "selection") return measure<selection>(n, samples);
    if (kernel == "bucket_selection") return measure<bucket_selection>(n, samples);
    if (kernel == "quantisation") return measure<quantisation>(n, samples);
    if (kernel == "dequantisation") return measure<dequantisation>(n, samples);
    if (kernel == "dense_fold_2") return measure<dense_fold<2>>(n, samples);
    if (kernel == "dense_fold_8") return measure<dense_fold<8>>(n, samples);
    if (kernel == "sparse_fold") return measure<sparse_fold<false>>(n, samples);
    if (kernel == "sparse_to_dense") return measure<sparse_fold<true>>(n, samples);
    if (kernel == "compress_and_fold") return measure<compress_and_fold>(n, samples);
    if (kernel == "triad") return measure<triad>(n, samples);
    throw std::invalid_argument("no such kernel: " + std::string(kernel));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s KERNEL ENTRIES SAMPLES\n", argv[0]);
        return 2;
    }
    try {
        measure(argv[1], static_cast<std::size_t>(std::atoll(argv[2])), std::atoi(argv[3]));
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
        return 1;
    }
}
