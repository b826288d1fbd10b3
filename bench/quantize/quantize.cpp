// usage: quantize gaussian|laplace|tied|zero N SAMPLES; prints the seconds of each method, turn by turn
#include <rill/kernel/quantize.hpp>

#include "../shared/expected.hpp"
#include "../shared/inputs.hpp"
#include "../shared/turns.hpp"
#include "baseline.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

namespace {

namespace kernel = rill::kernel;

constexpr std::size_t bucket = kernel::quantize_bucket;
constexpr rill::random_key key{7};

class comparison {
  public:
    comparison(const std::string& distribution, std::size_t n)
        : x_(bench::dense_input(distribution, n)), y_(n, 0.0F), scales_(kernel::quantize_buckets(n, bucket)) {
        turns_.add("copy", [this] {
            std::memcpy(y_.data(), x_.data(), x_.size() * sizeof(float));
            bench::keep(y_.data());
        });
    }

    void width(unsigned bits) {
        std::string of("_");
        of += std::to_string(bits);
        const std::vector<std::byte> room(kernel::quantized_bytes(x_.size(), bits, bucket));
        turns_.add("quantize" + of, [this, bits, codes = room]() mutable {
            kernel::quantize<float>(x_, bits, bucket, key, 0, scales_, codes);
            bench::keep(codes.data());
        });
        std::vector<std::byte> codes = room;
        kernel::quantize<float>(x_, bits, bucket, key, 0, scales_, codes);
        check(bits, codes);
        turns_.add("dequantize" + of, [this, bits, codes] {
            kernel::dequantize<float>(codes, scales_, bits, bucket, y_);
            bench::keep(y_.data());
        });
        turns_.add("accumulate" + of, [this, bits, codes] {
            kernel::dequantize_fold<float>(codes, scales_, bits, bucket, y_, [](float a, float b) { return a + b; });
            bench::keep(y_.data());
        });
        turns_.add("naive" + of, [this, bits, room = std::vector<std::uint8_t>(room.size())]() mutable {
            bench::quantize_naive(x_, bits, bucket, random_, scales_, room.data());
            bench::keep(room.data());
        });
    }

    void run(int samples) {
        turns_.run(samples);
        turns_.print();
    }

  private:
    /// Checks what `codes` and `scales_` decode to, read and added, and the result of the textbook's loop.
    void check(unsigned bits, const std::vector<std::byte>& codes) {
        const std::string width = " to " + std::to_string(bits) + " bits";
        kernel::dequantize<float>(codes, scales_, bits, bucket, y_);
        bench::require_rounded(y_, x_, scales_, bucket, bits, "quantize" + width);
        bench::values sum(x_.size(), 1.0F);
        kernel::dequantize_fold<float>(codes, scales_, bits, bucket, sum, [](float a, float b) { return a + b; });
        for (std::size_t i = 0; i < sum.size(); ++i)
            bench::require(sum[i] == 1.0F + y_[i], "dequantize_fold" + width + " at entry " + std::to_string(i));
        std::vector<float> scales(scales_.size());
        std::vector<std::uint8_t> naive(codes.size());
        bench::quantize_naive(x_, bits, bucket, random_, scales, naive.data());
        bench::dequantize_naive(naive.data(), scales, bits, bucket, y_);
        bench::require_rounded(y_, x_, scales, bucket, bits, "the textbook's loop" + width);
    }

    bench::values x_, y_;
    std::vector<float> scales_;
    std::mt19937 random_;
    bench::turns turns_;
};

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 4) return std::fprintf(stderr, "usage: %s gaussian|laplace|tied|zero N SAMPLES\n", argv[0]), 1;
    comparison all(argv[1], std::strtoull(argv[2], nullptr, 10));
    for (unsigned bits : {8U, 4U, 2U}) all.width(bits);
    all.run(std::atoi(argv[3]));
} catch (const std::exception& failed) {
    std::fprintf(stderr, "%s: %s\n", argv[0], failed.what());
    return 1;
}
