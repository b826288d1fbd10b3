// expect: rill::Aggregator: identity<T>\(\) is missing; add
#include <rill/collective/all_reduce.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/in_process.hpp>

#include <span>
#include <vector>

struct my_sum {
    static constexpr const char* name = "my_sum";
    static constexpr bool is_commutative = true;
    static constexpr bool finish_is_trivial = true;
#ifdef RILL_FIXED
    template <class T>
    static constexpr T identity() {
        return T{};
    }
#endif
    template <class T>
    static constexpr T fold(T a, T b) {
        return a + b;
    }
    template <class T>
    static constexpr void finish(std::span<T>, double) {}
    friend constexpr bool operator==(my_sum, my_sum) = default;
};

void step(rill::in_process::endpoint& net, std::vector<float>& values) {
    rill::group workers{net, rill::topology::ring{}};
    rill::all_reduce(workers, values, values, my_sum{});
}
