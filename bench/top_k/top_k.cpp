// usage: top_k gaussian|laplace|tied|zero N SAMPLES; prints the seconds of each method, turn by turn
#include <rill/kernel/bucket_select.hpp>
#include <rill/kernel/select.hpp>

#include "../shared/expected.hpp"
#include "../shared/inputs.hpp"
#include "../shared/turns.hpp"
#include "baseline.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using indices = std::vector<std::uint32_t>;

constexpr std::size_t bucket = 512;

class comparison {
  public:
    comparison(const std::string& distribution, std::size_t n) : x_(bench::dense_input(distribution, n)), keys_(n) {
        turns_.add("read",
                   [this] { bench::keep(reinterpret_cast<const void*>(std::uintptr_t{bench::read_pass(x_)})); });
    }

    void global(const std::string& name, std::size_t k) {
        add(
            name, x_.size(), k,
            [this, k](auto& out) { rill::kernel::top_k<float, std::uint32_t>(x_, k, out, scratch_); },
            [this, k](auto& out) { bench::top_k_nth_element(x_, 0, k, keys_.data(), out.data()); });
    }

    void of_each_bucket(const std::string& name, std::size_t k) {
        add(
            name, bucket, k,
            [this, k](auto& out) { rill::kernel::bucket_top_k<float, std::uint32_t>(x_, bucket, k, out, scratch_); },
            [this, k](auto& out) { bench::bucket_top_k_nth_element(x_, bucket, k, keys_.data(), out.data()); });
    }

    void run(int samples) {
        for (auto& [name, work] : baselines_) turns_.add(name, work);  // last: they leave the caches dirty
        turns_.run(samples);
        turns_.print();
    }

  private:
    /// `k` of each `part` entries.
    template <class Ours, class Theirs>
    void add(const std::string& name, std::size_t part, std::size_t k, Ours ours, Theirs theirs) {
        indices out(x_.size() / part * k), expected(out.size());
        ours(out);
        theirs(expected);
        for (std::size_t b = 0; (b + 1) * part <= x_.size(); ++b)
            for (const auto& [found, by] : {std::pair(&out, name), std::pair(&expected, name + " by nth_element")})
                bench::require_largest(std::span(*found).subspan(b * k, k), std::span(x_).subspan(b * part, part),
                                       static_cast<std::uint32_t>(b * part), by);
        turns_.add(name, [out, ours]() mutable {
            ours(out);
            bench::keep(out.data());
        });
        baselines_.emplace_back(name + "_nth_element", [expected, theirs]() mutable {
            theirs(expected);
            bench::keep(expected.data());
        });
    }

    bench::values x_;
    rill::aligned_vector<std::uint32_t> keys_;
    rill::kernel::select_scratch scratch_;
    bench::turns turns_;
    std::vector<std::pair<std::string, std::function<void()>>> baselines_;
};

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 4) return std::fprintf(stderr, "usage: %s gaussian|laplace|tied|zero N SAMPLES\n", argv[0]), 1;
    const std::size_t n = std::strtoull(argv[2], nullptr, 10);
    comparison all(argv[1], n);
    all.global("global_0p1", n / 1000);
    all.global("global_1", n / 100);
    all.global("global_10", n / 10);
    all.of_each_bucket("bucket_1", 1);
    all.of_each_bucket("bucket_5", 5);
    all.of_each_bucket("bucket_51", 51);
    all.run(std::atoi(argv[3]));
} catch (const std::exception& failed) {
    std::fprintf(stderr, "%s: %s\n", argv[0], failed.what());
    return 1;
}
