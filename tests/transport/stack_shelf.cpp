#include <rill/transport/detail/fiber.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <thread>
#include <utility>
#include <vector>

using rill::detail::fiber_stack;
using rill::detail::stack_shelf;

namespace {

constexpr std::size_t bytes = std::size_t{64} << 10;

/// Runs on a thread whose shelf is empty.
template <class Body>
void on_new_thread(Body body) {
    std::thread(body).join();
}

}  // namespace

TEST_CASE("stack_shelf: a stack that was given back is taken again by who asks for as many bytes") {
    on_new_thread([] {
        fiber_stack first = stack_shelf::take(bytes);
        void* const place = first.memory.sp;
        stack_shelf::give_back(first, bytes);
        boost::context::protected_fixedsize_stack system(bytes);
        boost::context::stack_context fresh = system.allocate();  // takes the place of a stack that is not kept
        CHECK(fresh.sp != place);
        fiber_stack larger = stack_shelf::take(2 * bytes);
        CHECK(larger.memory.sp != place);
        CHECK(larger.memory.size >= 2 * bytes);
        fiber_stack again = stack_shelf::take(bytes);
        CHECK(again.memory.sp == place);
        stack_shelf::give_back(larger, 2 * bytes);
        stack_shelf::give_back(again, bytes);
        system.deallocate(fresh);
    });
}

TEST_CASE("stack_shelf: keeps as many stacks, or bytes, as it says, and no more") {
    constexpr std::size_t large = stack_shelf::most_bytes / 3;
    for (const auto& [size, kept] : {std::pair{bytes, stack_shelf::most}, {large, std::size_t{3}}})
        on_new_thread([size = size, kept = kept] {
            std::vector<fiber_stack> taken;
            for (std::size_t i = 0; i <= kept; ++i) taken.push_back(stack_shelf::take(size));
            std::set<void*> places;
            for (fiber_stack& each : taken) places.insert(each.memory.sp);
            CHECK(places.size() == taken.size());
            for (fiber_stack& each : taken) stack_shelf::give_back(each, size);
            boost::context::protected_fixedsize_stack system(size);
            std::vector<boost::context::stack_context> held;  // these take the places of stacks that are not kept
            for (std::size_t i = 0; i <= kept; ++i) held.push_back(system.allocate());
            std::size_t found = 0;
            for (std::size_t i = 0; i <= kept; ++i) {
                taken[i] = stack_shelf::take(size);
                found += places.count(taken[i].memory.sp);
            }
            CHECK(found == kept);
            for (fiber_stack& each : taken) stack_shelf::give_back(each, size);
            for (auto& each : held) system.deallocate(each);
        });
}
