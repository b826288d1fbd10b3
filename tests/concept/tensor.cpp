#include <rill/concept/tensor.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace {

/// Every other element of a vector: it has no view, so its values are copied in and out.
struct every_other {
    std::vector<float> values;
};

/// Contiguous unless elements have been removed.
struct sometimes {
    std::vector<float> values;
    bool whole = true;
};

struct unknown {};

}  // namespace

template <>
struct rill::tensor_traits<every_other> {
    using element_type = float;
    static std::size_t size(const every_other& x) { return x.values.size() / 2; }
    static void read(const every_other& x, std::span<float> to) {
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = x.values[2 * i];
    }
    static void write(std::span<const float> from, every_other& x) {
        for (std::size_t i = 0; i < from.size(); ++i) x.values[2 * i] = from[i];
    }
};

template <>
struct rill::tensor_traits<sometimes> {
    using element_type = float;
    static std::size_t size(const sometimes& x) { return x.values.size(); }
    static bool is_contiguous(const sometimes& x) { return x.whole; }
    static std::span<const float> view(const sometimes& x) { return x.values; }
    static std::span<float> view(sometimes& x) { return x.values; }
    static void read(const sometimes&, std::span<float> to) {
        for (float& value : to) value = -1;
    }
    static void write(std::span<const float>, sometimes& x) { x.values.assign(x.values.size(), -2); }
};

using namespace rill;

static_assert(OutputTensor<std::vector<float>> && OutputTensor<std::vector<float>&>);
static_assert(Tensor<const std::vector<float>&> && !OutputTensor<const std::vector<float>&>);
static_assert(OutputTensor<const std::span<double>> && !OutputTensor<std::span<const double>>);
static_assert(OutputTensor<std::array<int, 3>> && OutputTensor<float (&)[4]>);
static_assert(Tensor<std::string>, "what its elements are is for the collectives to judge");
static_assert(!Tensor<unknown> && !Tensor<int> && !Tensor<std::list<float>>);
static_assert(OutputTensor<every_other&> && Tensor<const every_other&> && !OutputTensor<const every_other&>);
static_assert(OutputTensor<sometimes&> && !OutputTensor<const sometimes&>);

TEST_CASE("a tensor is used in place where it has a view, and copied where it has none") {
    sometimes x{.values = {1, 2, 3}};
    std::vector<float> out(3);
    const std::vector<float> in{4, 5, 6};
    CHECK(detail::has_view<std::span<float>>(x));
    detail::read_tensor(x, out);
    CHECK(out == std::vector<float>{1, 2, 3});
    detail::write_tensor(std::span(in), x);
    CHECK(x.values == in);

    x.whole = false;
    CHECK_FALSE(detail::has_view<std::span<float>>(x));
    detail::read_tensor(x, out);
    CHECK(out == std::vector<float>{-1, -1, -1});
    detail::write_tensor(std::span(in), x);
    CHECK(x.values == std::vector<float>{-2, -2, -2});
}

TEST_CASE("a tensor needs no view") {
    every_other x{{1, 2, 3, 4}};
    std::vector<float> out(2);
    CHECK_FALSE(detail::has_view<std::span<const float>>(x));
    detail::read_tensor(x, out);
    CHECK(out == std::vector<float>{1, 3});
    const std::vector<float> in{7, 8};
    detail::write_tensor(std::span(in), x);
    CHECK(x.values == std::vector<float>{7, 2, 8, 4});
}

TEST_CASE("the order of a vector's coordinates is compatible with every other order") {
    struct rows : every_other {};
    CHECK(detail::order_of<std::vector<float>> == coordinate_order::any);
    CHECK(detail::same_order<std::vector<float>, every_other>);
}
