#include <doctest/doctest.h>

#include <rill/core/coding.hpp>

#include <cstddef>
#include <string>

using namespace rill;

TEST_CASE("the list of index codings has every number that has a name, but those that write no indices") {
    std::string names;
    std::size_t listed = 0;
    for (unsigned number = 0; number < 256; ++number) {
        const auto coding = static_cast<index_coding>(number);
        if (name_of(coding).empty()) CHECK_FALSE(is_in_frames(coding));
        if (listed < index_codings.size() && index_codings[listed] == coding) {
            names.append(name_of(coding)).append(" ");
            CHECK(is_in_frames(coding));
            ++listed;
        }
    }
    CHECK(names == "raw packed_gaps bitmap elias_fano huffman whole_rows ");
    CHECK(listed == index_codings.size());
    CHECK(is_in_frames(index_coding::dense));
    CHECK_FALSE(is_in_frames(index_coding::smallest));
}

TEST_CASE("value codings have names, and only they") {
    std::string names;
    for (unsigned number = 0; number < 256; ++number)
        if (const auto name = name_of(static_cast<value_coding>(number)); !name.empty()) names.append(name).append(" ");
    CHECK(names == "raw bf16 qsgd2 qsgd4 qsgd8 own ");
}
