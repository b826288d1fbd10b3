#include <rill/core/fingerprint.hpp>

#include <doctest/doctest.h>

using namespace rill;

namespace {
struct plain {
    static constexpr const char* name = "plain";
};
struct with_options {
    int arity = 2;
    double factor = 0.5;
    static constexpr const char* name = "with_options";
    template <class Visit>
    constexpr void visit_options(Visit visit) const {
        visit("arity", arity);
        visit("factor", factor);
    }
};
static_assert(HasOptions<with_options> && !HasOptions<plain>);
}  // namespace

TEST_CASE("golden fingerprints of names, which are FNV-1a") {
    static_assert(fingerprint("") == 0xCBF29CE484222325U);
    static_assert(fingerprint("a") == 0xAF63DC4C8601EC8CU);
    static_assert(fingerprint("foobar") == 0x85944171F73967E8U);
    CHECK(fingerprint("\xff") != fingerprint("\x7f"));
}

TEST_CASE("a policy's fingerprint depends on its name and each of its options") {
    CHECK(fingerprint(plain{}) == fingerprint("plain"));
    const with_options policy{};
    CHECK(fingerprint(policy) == fingerprint(with_options{}));
    CHECK(fingerprint(policy) != fingerprint(plain{}));
    CHECK(fingerprint(policy) != fingerprint("with_options"));
    CHECK(fingerprint(policy) != fingerprint(with_options{.arity = 3}));
    CHECK(fingerprint(policy) != fingerprint(with_options{.factor = 0.25}));
    CHECK(fingerprint(with_options{.arity = -1}) != fingerprint(with_options{.arity = 1}));
}

TEST_CASE("a policy without a name has the fingerprint 0, where it needs none") {
    struct nameless {};
    CHECK(fingerprint_if_named(nameless{}) == 0);
    CHECK(fingerprint_if_named(plain{}) == fingerprint(plain{}));
}
