#include <rill/core/light_atomic.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

#if defined(__x86_64__) && defined(__linux__)
#include <signal.h>
#include <ucontext.h>
#endif

TEST_CASE("light_atomic: threads that count together get each number once") {
    constexpr std::size_t threads = 4, each = 10'000;
    rill::light_atomic<std::size_t> shared;
    std::vector<std::vector<std::size_t>> taken(threads);
    std::vector<std::thread> takers;
    for (auto& mine : taken)
        takers.emplace_back([&] {
            for (std::size_t i = 0; i < each; ++i) mine.push_back(shared.fetch_add(1));
        });
    for (std::thread& taker : takers) taker.join();
    CHECK(shared.load() == threads * each);
    std::vector<bool> seen(threads * each);
    for (const auto& mine : taken)
        for (const std::size_t number : mine) seen[number] = true;
    CHECK(std::count(seen.begin(), seen.end(), true) == threads * each);
}

TEST_CASE("light_atomic: of threads that replace the same value one succeeds") {
    constexpr std::size_t threads = 4, each = 50'000;
    rill::light_atomic<std::size_t> shared;
    std::vector<std::thread> counters;
    for (std::size_t t = 0; t < threads; ++t)
        counters.emplace_back([&] {
            for (std::size_t i = 0; i < each; ++i)
                for (std::size_t seen = shared.load(); !shared.replace(seen, seen + 1);) seen = shared.load();
        });
    for (std::thread& counter : counters) counter.join();
    CHECK(shared.load() == threads * each);
}

TEST_CASE("light_atomic: is replaced only where it is what was expected") {
    const int a = 0, b = 0;
    rill::light_atomic<const void*> place;
    CHECK(place.load() == nullptr);
    CHECK(place.replace(nullptr, &a));
    CHECK(!place.replace(nullptr, &b));
    CHECK(place.load() == &a);
    place.store(&b);
    CHECK(place.replace(&b, nullptr));
}

// The thread sanitizer would hold the signals back: this folder is not built with it.
#if defined(__x86_64__) && defined(__linux__)

namespace {

rill::light_atomic<std::size_t> word;
void (*interruption)();
std::size_t instructions_before;
volatile bool has_ended, has_interrupted, came_after_the_end;

/// Asks the processor for another trap after the next instruction, until it is the interruption's turn.
void on_trap(int, siginfo_t*, void* context) {
    constexpr greg_t trap_flag = 0x100;
    greg_t& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
    flags |= trap_flag;
    if (instructions_before-- != 0) return;
    flags &= ~trap_flag;
    interruption();
    came_after_the_end = has_ended;
    has_interrupted = true;
}

/// Runs `first` anew for each of its instructions: after that one `second` comes in between. Unlike two threads, this
/// finds in every run what takes more than one instruction.
template <class Check>
void interrupt_everywhere(void (*first)(), void (*second)(), Check&& check) {
    struct sigaction on_traps = {}, before = {};
    on_traps.sa_sigaction = on_trap;
    on_traps.sa_flags = SA_SIGINFO;
    REQUIRE(sigaction(SIGTRAP, &on_traps, &before) == 0);
    interruption = second;
    came_after_the_end = false;
    for (std::size_t instructions = 0; !came_after_the_end; ++instructions) {
        word.store(0);
        instructions_before = instructions;
        has_ended = false;
        has_interrupted = false;
        raise(SIGTRAP);
        first();
        has_ended = true;
        for (int spins = 0; spins < 1'000'000 && !has_interrupted; ++spins) {
        }
        CAPTURE(instructions);
        REQUIRE_MESSAGE(has_interrupted, "this machine has no traps after single instructions");
        check();
    }
    sigaction(SIGTRAP, &before, nullptr);
}

}  // namespace

TEST_CASE("light_atomic: of two that replace the same value one succeeds, wherever the other interrupts it") {
    static volatile bool mine, others;
    interrupt_everywhere([] { mine = word.replace(0, 1); }, [] { others = word.replace(0, 2); },
                         [] {
                             CHECK(mine != others);
                             CHECK(word.load() == (mine ? 1 : 2));
                         });
}

TEST_CASE("light_atomic: of two that count each gets a number of its own, wherever the other interrupts it") {
    static volatile std::size_t mine, others;
    interrupt_everywhere([] { mine = word.fetch_add(1); }, [] { others = word.fetch_add(1); },
                         [] {
                             CHECK(mine + others == 1);
                             CHECK(word.load() == 2);
                         });
}

#endif
