#include <rill/compress/encoded.hpp>

#include <rill/compress/keep_all.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/top_k.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

using namespace rill;
using namespace rill::compress;

TEST_CASE("coded gives each phase its coding") {
    const encoded policy{top_k{.count = 3}, qsgd{.bits = 2, .bucket = 64}, packed_gaps{}, bf16{}};
    const stream_codings codings = policy.bind(100).codings();
    CHECK(codings == policy.codings());
    CHECK(codings.contribution ==
          coding{.values = value_coding::qsgd2, .indices = index_coding::packed_gaps, .bucket = 64});
    CHECK(codings.partial == coding{.indices = index_coding::packed_gaps});
    CHECK(codings.copy == coding{.values = value_coding::bf16, .indices = index_coding::packed_gaps});
    CHECK(encoded{keep_all{}}.codings() == stream_codings{});
    CHECK(encoded{keep_all{}, raw{}, bitmap{}}.codings().copy.indices == index_coding::bitmap);
    CHECK(encoded{keep_all{}, raw{}, elias_fano{}}.codings().copy.indices == index_coding::elias_fano);
    CHECK(encoded{keep_all{}, raw{}, huffman_bitmap{}}.codings().copy.indices == index_coding::huffman);
    CHECK(encoded{keep_all{}, raw{}, whole_rows{.columns = 12}}.codings().partial ==
          coding{.indices = index_coding::whole_rows, .row = 12});
    CHECK(encoded{keep_all{}, raw{}, smallest{}}.codings().copy.indices == index_coding::smallest);
    CHECK(encoded{keep_all{}, qsgd{.bits = 8}}.codings().contribution.values == value_coding::qsgd8);
}

TEST_CASE("the flags of an encoded codec follow from its parts") {
    using exact = decltype(encoded{keep_all{}}.bind(1));
    CHECK(exact::is_lossless);
    CHECK(exact::is_unbiased);
    CHECK(exact::has_lossless_copy);
    CHECK(exact::is_coordinatewise);
    using rounded = decltype(encoded{keep_all{}, qsgd{}, raw_indices{}, qsgd{}}.bind(1));
    CHECK_FALSE(rounded::is_lossless);
    CHECK(rounded::is_unbiased);
    CHECK_FALSE(rounded::has_lossless_copy);
    using chosen = decltype(encoded{top_k{.count = 1}, bf16{}}.bind(1));
    CHECK_FALSE(chosen::is_lossless);
    CHECK_FALSE(chosen::is_unbiased);
    CHECK(chosen::is_contractive);
    CHECK(chosen::has_lossless_copy);
    CHECK_FALSE(decltype(random_mask{}.bind(1))::is_coordinatewise);
    CHECK(Compressor<exact, float>);
    CHECK(Compressor<chosen, float>);
    CHECK_FALSE(Compressor<top_k, float>);  // a policy is not yet bound
}

TEST_CASE("whole_rows refuses rows that a header cannot tell") {
    for (const std::size_t columns : {std::size_t{0}, std::size_t{65536}})
        CHECK_THROWS_AS((encoded{keep_all{}, raw{}, whole_rows{columns}}.bind(100)), contract_violation);
}

TEST_CASE("qsgd refuses other widths and empty buckets") {
    CHECK_THROWS_AS(qsgd{.bits = 3}.coding(), contract_violation);
    CHECK_THROWS_AS(qsgd{.bits = 16}.coding(), contract_violation);
    CHECK_THROWS_AS((qsgd{.bits = 4, .bucket = 0}.coding()), contract_violation);
}
