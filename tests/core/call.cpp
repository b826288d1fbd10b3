#include <rill/core/call.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <string>

using namespace rill;

TEST_CASE("calls that differ in any member differ in their hash") {
    const call_signature base{.number = 7,
                              .kind = operation::all_reduce,
                              .element = element_type::float32,
                              .index_bytes = 4,
                              .dimension = 100,
                              .options = {1, {1, 2, 3, 4, 5}}};
    std::set<std::uint32_t> hashes{base.hash()};
    const auto add = [&](auto change) {
        call_signature other = base;
        change(other);
        CHECK(other != base);
        hashes.insert(other.hash());
    };
    add([](auto& c) { c.number = 8; });
    add([](auto& c) { c.kind = operation::reduce; });
    add([](auto& c) { c.element = element_type::float64; });
    add([](auto& c) { c.index_bytes = 8; });
    add([](auto& c) { c.dimension = 101; });
    add([](auto& c) { c.options.set = 2; });
    for (std::size_t i = 0; i < base.options.hashes.size(); ++i) add([i](auto& c) { c.options.hashes[i] = 6; });
    CHECK(hashes.size() == 12);
    CHECK(call_signature(base).hash() == base.hash());
}

TEST_CASE("operations and element types have names") {
    CHECK(std::string(name(operation::reduce_scatter)) == "reduce_scatter");
    CHECK(std::string(name(static_cast<operation>(99))) == "none");
    CHECK(std::string(name(element_type_of<std::int64_t>)) == "int64");
    CHECK_FALSE(Element<char>);
    CHECK_FALSE(Element<long double>);
}
