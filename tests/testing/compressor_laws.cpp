#include <rill/testing/compressor_laws.hpp>

#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/momentum_correction.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/row_top_k.hpp>
#include <rill/compress/threshold.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/warming_top_k.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace rill;

template <class T, class Policy>
std::set<std::string> broken(const Policy& policy, std::size_t dimension) {
    std::set<std::string> names;
    testing::for_each_compressor_law<T>([&] { return policy.template bind<T>(dimension); },
                                        [&](const char* name, const testing::law_outcome& outcome) {
                                            CHECK(outcome.held == outcome.what.empty());
                                            if (!outcome.held) names.insert(std::string(name) + ": " + outcome.what);
                                        });
    return names;
}

template <class Policy>
void check_laws(const Policy& policy) {
    const std::set<std::string> none;
    for (const std::size_t dimension : {1U, 63U, 1000U}) {
        CHECK(broken<float>(policy, dimension) == none);
        CHECK(broken<float>(compress::error_feedback{policy}, dimension) == none);
    }
    CHECK(broken<double>(policy, 64) == none);
}

/// A policy whose codec says by its type that it sends exact values, and asks for a rounding of them.
struct untrue {
    static constexpr compress::top_k exact{.density = 0.5};

    struct codec : decltype(exact.bind<float>(8)) {
        stream_codings codings() const { return {.contribution = {.values = value_coding::bf16}}; }
    };

    template <class T>
    codec bind(std::size_t dimension) const {
        return codec{exact.bind<T>(dimension)};
    }
};

enum class fault { none, unsorted, out_of_range, lossy, swollen, forgets, biased, rounds_off };

/// A policy whose codec breaks one law at a time. Only that it rounds must be known to the compiler.
template <bool Lossless>
struct faulty {
    fault what = fault::none;

    template <class T = float, class Index = std::uint32_t>
    class codec {
      public:
        using index_type = Index;
        static constexpr bool is_coordinatewise = true, is_lossless = Lossless, is_unbiased = true;
        static constexpr bool is_contractive = true, has_lossless_copy = true;

        codec(std::size_t dimension, fault broken) : what_(broken), residual_(dimension) {}
        std::size_t dimension() const { return residual_.size(); }
        std::size_t coded_dimension() const { return dimension(); }
        stream_codings codings() const {
            return {.contribution = {.values = what_ == fault::rounds_off ? value_coding::bf16 : value_coding::raw}};
        }
        void begin(std::uint64_t number) {
            jitter_ = T(0.6) * static_cast<T>(counter_rng(random_key{number}).uniform(0));
        }
        stream_view<T, Index> encode(std::span<const T> input) {
            kept_.assign(input.begin(), input.end());
            indices_.clear();
            for (std::size_t i = 0; i < input.size(); ++i) indices_.push_back(static_cast<Index>(i));
            if (what_ == fault::unsorted) std::swap(indices_.front(), indices_.back());
            if (what_ == fault::out_of_range) indices_.back() += 1;
            if (what_ == fault::lossy) kept_.front() = 0;
            if (what_ == fault::swollen)
                for (T& x : kept_) x *= 3;
            if (what_ == fault::biased)  // rounds down more often than up
                for (T& x : kept_) x = T(100) * std::floor(x / 100 + jitter_);
            pending_.assign(input.begin(), input.end());
            return {{0, dimension()}, sparse_view<T, Index>{indices_, kept_}};
        }
        std::span<const T> residual() const { return residual_; }
        void commit() {}
        void rollback() {
            if (what_ != fault::forgets) std::swap(residual_, pending_);
        }

      private:
        fault what_;
        std::vector<T> residual_, kept_, pending_ = residual_;
        std::vector<Index> indices_;
        T jitter_{};
    };

    template <class T = float, class Index = std::uint32_t>
    codec<T, Index> bind(std::size_t dimension) const {
        return codec<T, Index>(dimension, what);
    }
};

/// A right codec; each of the following types breaks the law of one refinement.
using right_codec = decltype(compress::keep_all{}.bind<float>(1));

struct moody : right_codec {
    static inline std::uint64_t made = 0;
    std::uint64_t own = ++made;
    explicit moody(right_codec bound) : right_codec(std::move(bound)) {}
    std::uint64_t fingerprint() const { return own; }
};
struct drops_tasks : right_codec {
    explicit drops_tasks(right_codec bound) : right_codec(std::move(bound)) {}
    auto encode(std::span<const float> input) { return right_codec::encode(input); }
    template <Executor Exec>
    auto encode(std::span<const float> input, const Exec&) {
        half.assign(input.begin(), input.end());
        half.back() = 0;
        return right_codec::encode(std::span<const float>(half));
    }
    std::vector<float> half;
};
struct does_not_scale : right_codec {
    explicit does_not_scale(right_codec bound) : right_codec(std::move(bound)) {}
    void scale_inputs(float) {}
};

template <class Codec>
struct policy_of {
    template <class>
    Codec bind(std::size_t dimension) const {
        return Codec(compress::keep_all{}.bind<float>(dimension));
    }
};

template <class Policy>
bool finds(const Policy& policy, const std::string& expected) {
    const auto names = broken<float>(policy, 8);
    return std::any_of(names.begin(), names.end(), [&](const auto& name) { return name.find(expected) != name.npos; });
}

}  // namespace

TEST_CASE("the laws of refinements are checked") {
    using feedback = decltype(compress::error_feedback{compress::top_k{.density = 0.1}}.bind<float>(10));
    static_assert(ScalingCompressor<feedback, float> && ResidualCompressor<feedback>);
    static_assert(FingerprintedCompressor<feedback> && ParallelCompressor<feedback, float, serial>);
    CHECK(finds(policy_of<moody>{}, "the fingerprint of a codec that was bound alike"));
    CHECK(finds(policy_of<drops_tasks>{}, "with an executor, something else is encoded"));
    CHECK(finds(policy_of<does_not_scale>{}, "the inputs are not multiplied by the factor"));
}

TEST_CASE("the shipped compressors keep the laws") {
    check_laws(compress::top_k{.density = 0.1});
    check_laws(compress::warming_top_k{.density = 0.1, .operations = 3});
    check_laws(compress::bucket_top_k{.count = 3, .bucket = 16});
    check_laws(compress::threshold{.limit = 500});
    check_laws(compress::random_mask{.density = 0.2});
    check_laws(compress::keep_all{});
    check_laws(compress::encoded{compress::keep_all{}, compress::qsgd{.bits = 2}});
    check_laws(compress::encoded{compress::keep_all{}, compress::qsgd{.bits = 4, .bucket = 32}});
    check_laws(compress::encoded{compress::top_k{.density = 0.1}, compress::bf16{}});
    check_laws(compress::row_top_k{.columns = 6, .density = 0.2});
    check_laws(
        compress::encoded{compress::row_top_k{.columns = 6, .count = 4}, compress::qsgd{}, compress::whole_rows{6}});
    CHECK(
        broken<float>(compress::momentum_correction{compress::error_feedback{compress::top_k{.density = 0.1}}, 0.5}, 50)
            .empty());
}

TEST_CASE("a correct codec breaks no law") { CHECK(broken<float>(faulty<true>{}, 8).empty()); }

TEST_CASE("a codec that rounds, though its type excludes it, breaks a law") {
    CHECK(broken<float>(untrue{}, 8)
              .contains("values are rounded only where the type says so: codings() rounds contributions, which "
                        "possible_codings excludes"));
}

TEST_CASE("each fault breaks its law") {
    CHECK(finds(faulty<true>{fault::unsorted}, "indices are not strictly ascending"));
    CHECK(finds(faulty<true>{fault::out_of_range}, "an index lies outside the coded dimension"));
    CHECK(finds(faulty<true>{fault::lossy}, "the result is not the input"));
    CHECK(finds(faulty<true>{fault::swollen}, "what is left out is larger than the input"));
    CHECK(finds(faulty<true>{fault::lossy}, "sent and residual do not add up"));
    CHECK(finds(faulty<false>{fault::rounds_off}, "sent and residual do not add up"));
    CHECK(finds(faulty<true>{fault::forgets}, "the residual is not the input"));
    CHECK(finds(faulty<false>{fault::biased}, "the mean of many results is not the input"));
}
