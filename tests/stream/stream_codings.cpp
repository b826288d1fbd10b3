#include <rill/stream/stream_codings.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>

using namespace rill;

TEST_CASE("different codings have different fingerprints") {
    const coding other{.values = value_coding::bf16};
    const stream_codings all[] = {{},
                                  {.contribution = other},
                                  {.partial = other},
                                  {.copy = other},
                                  {.copy = {.indices = index_coding::bitmap}},
                                  {.copy = {.bucket = 1023}},
                                  {.when = {.factor = 2}}};
    std::set<std::uint64_t> prints;
    for (const auto& codings : all) prints.insert(codings.fingerprint());
    CHECK(prints.size() == std::size(all));
}
