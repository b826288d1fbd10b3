#include <rill/testing/value_coding_laws.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>

namespace coding_laws {

using namespace rill;

enum class fault { none, size, writes, more, reads, values, expectation, contraction, bytes, options };

/// Values as they are, but it breaks one law at a time.
template <fault what>
struct faulty_coding {
    int option = 0;

    static constexpr const char* name = "faulty_coding";
    static constexpr bool is_lossless =
        what != fault::bytes && what != fault::expectation && what != fault::contraction;
    static constexpr bool is_unbiased = what != fault::contraction;
    static constexpr bool is_contractive = what != fault::expectation;

    static std::size_t size(std::size_t count, std::size_t element_bytes) {
        return what == fault::size && count > 100 ? count / 16 : count * element_bytes;
    }
    template <class T>
    void encode(std::span<const T> values, random_key, std::uint64_t, byte_span out) const {
        const std::size_t written = what == fault::writes && out.size() > 8 ? out.size() - 1 : out.size();
        if (what == fault::size && out.size() < values.size_bytes()) return;
        if (written > 0) std::memcpy(out.data(), values.data(), written);
        if (what == fault::more) out.data()[out.size()] = std::byte{7};
    }
    template <class T>
    void decode(byte_view bytes, std::span<T> values) const {
        if (what == fault::size && bytes.size() < values.size_bytes()) return;
        const std::size_t count = what == fault::reads && values.size() > 1 ? values.size() - 1 : values.size();
        if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(T));
        for (T& value : values) {
            if (what == fault::values && value > T{3}) value = T{3};
            if (what == fault::expectation) value = value > T{0} ? value * T{2} : value;
            if (what == fault::contraction) value = -value;
            if (what == fault::expectation || what == fault::contraction) value = value == value ? value : T{0};
            const T most = std::numeric_limits<T>::max();
            if (what == fault::expectation || what == fault::contraction)
                value = value > most ? most : value < -most ? -most : value;
        }
    }
    template <class Visit>
    void visit_options(Visit&& visit) const {
        if (what != fault::options) visit("option", option);
    }
    friend constexpr bool operator==(const faulty_coding&, const faulty_coding&) = default;
};

template <fault what, class T>
std::string broken() {
    std::string names;
    testing::for_each_value_coding_law<T>(faulty_coding<what>{.option = 3},
                                          [&](const char* name, const testing::law_outcome& outcome) {
                                              CHECK(outcome.held == outcome.what.empty());
                                              if (!outcome.held) names += std::string(name) + "; ";
                                          });
    return names;
}

}  // namespace coding_laws

using namespace coding_laws;

TEST_CASE_TEMPLATE("value coding laws: each fault breaks its law", T, float, double) {
    const auto begins = [](const std::string& names, const std::string& with) { return names.find(with) == 0; };
    CHECK(broken<fault::none, T>() == "");
    CHECK(begins(broken<fault::size, T>(), "a value takes a bit or more; "));
    CHECK(begins(broken<fault::writes, T>(), "encode writes its size, and the same bytes again; "));
    CHECK(broken<fault::more, T>().find("encode writes its size, and the same bytes again; ") == 0);
    CHECK(begins(broken<fault::reads, T>(), "decode reads all values, and the same again; "));
    CHECK(broken<fault::values, T>() ==
          "values come back exact where promised, and finite; " + std::string("rounding is unbiased where promised; "));
    CHECK(broken<fault::expectation, T>() == "rounding is unbiased where promised; ");
    CHECK(broken<fault::contraction, T>() == "rounding is contractive where promised; ");
    CHECK(broken<fault::bytes, T>() == "other bytes give finite values or protocol_error; ");
    CHECK(broken<fault::options, T>() == "options are told; ");
}
