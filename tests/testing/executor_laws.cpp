#include <rill/core/serial.hpp>
#include <rill/testing/executor_laws.hpp>

#include "../support/same_bits.hpp"
#include "../support/threads.hpp"

#include <doctest/doctest.h>

#include <cfenv>
#include <cstddef>
#include <exception>
#include <string>

namespace {

using namespace rill;

enum class breach { none, leaves_out, calls_twice, wrong_failure, swallows, rounding, no_concurrency };

/// A minimal executor that runs tasks from the last to the first; with a fault, one that breaks a law.
struct faulty {
    static constexpr const char* name = "faulty";
    breach what = breach::none;

    int concurrency() const { return what == breach::no_concurrency ? 0 : 2; }

    void run(std::size_t tasks, const auto& body) const {
        if (what == breach::rounding) std::fesetround(FE_TONEAREST);
        std::exception_ptr failure;
        for (std::size_t i = tasks; i-- > (what == breach::leaves_out && tasks == 1000 ? 1U : 0U);) try {
                body(i);
                if (what == breach::calls_twice && i == 63) body(i);
            } catch (...) {
                if (what != breach::wrong_failure || !failure) failure = std::current_exception();
            }
        if (failure && what != breach::swallows) std::rethrow_exception(failure);
    }
    friend constexpr bool operator==(faulty, faulty) = default;
};
static_assert(Executor<faulty>);

template <Executor Exec>
std::string broken(const Exec& executor) {
    std::string names;
    testing::for_each_executor_law(executor, [&](const char* name, const testing::law_outcome& outcome) {
        CHECK(outcome.held == outcome.what.empty());
        if (!outcome.held) names += std::string(name) + "; ";
    });
    return names;
}

}  // namespace

TEST_CASE("lawful executors break no law") {
    CHECK(broken(serial{}) == "");
    CHECK(broken(faulty{breach::none}) == "");
    CHECK(broken(support::threads{2}) == "");
}

TEST_CASE("each breach of an executor breaks its law") {
    const std::string runs = "each task runs once and is over; ", fails = "the lowest failure is thrown; ";
    const std::string copies = "a copy is equal and does the same; ", shares = "threads may share it; ";
    CHECK(broken(faulty{breach::leaves_out}) == runs + fails + copies + shares);
    CHECK(broken(faulty{breach::calls_twice}) == runs + fails + copies + shares);
    CHECK(broken(faulty{breach::wrong_failure}) == fails);
    CHECK(broken(faulty{breach::swallows}) == fails);
    CHECK(broken(faulty{breach::rounding}) == "tasks round as their caller does; ");
    CHECK(broken(faulty{breach::no_concurrency}) == "something may run; ");
}

TEST_CASE("every kernel gives on threads the bits that it gives with serial") {
    support::check_same_bits(support::threads{8});
    support::check_same_bits_of<float>(support::threads{2});
}
