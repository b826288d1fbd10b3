#include <rill/testing/optimizer_laws.hpp>

#include <rill/train/adam.hpp>
#include <rill/train/decoupled_decay.hpp>
#include <rill/train/sgd.hpp>

#include <doctest/doctest.h>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace rill;

namespace {

enum class fault { none, static_state, unsaved, torn_restore, moves_at_rate_0, not_linear, copy_forgets };

/// Gradient descent with momentum, and one fault.
template <fault broken>
struct faulty_optimizer {
    static constexpr bool is_linear = true;

    template <std::floating_point T>
    struct bound {
        std::vector<T> velocity;
        double steps = 0;

        explicit bound(std::size_t dimension) : velocity(dimension) {}
        bound(const bound& b) : velocity(b.velocity), steps(b.steps) {
            if (broken == fault::copy_forgets && steps > 0) velocity.assign(velocity.size(), T{0});
        }
        bound& operator=(const bound&) = default;

        void step(std::span<T> parameters, std::span<const T> gradient, double rate) {
            static int calls = 0;
            ++calls;
            steps += 1;
            const T by = static_cast<T>(rate);
            for (std::size_t i = 0; i < parameters.size(); ++i) {
                velocity[i] = velocity[i] / 2 + gradient[i];
                parameters[i] -= by * velocity[i] / static_cast<T>(steps);
                if (broken == fault::static_state) parameters[i] -= by * static_cast<T>(calls);
                if (broken == fault::moves_at_rate_0) parameters[i] -= velocity[i];
                if (broken == fault::not_linear) parameters[i] -= by;
            }
        }
        template <class Writer>
        void save(Writer& out, std::string_view prefix) const {
            out.add(std::string(prefix) + "velocity", velocity);
            if (broken != fault::unsaved) out.add(std::string(prefix) + "steps", steps);
        }
        template <class Reader>
        void restore(const Reader& in, std::string_view prefix) {
            auto read = velocity;
            in.read(std::string(prefix) + "velocity", broken == fault::torn_restore ? velocity : read);
            if (broken != fault::unsaved) steps = in.template read<double>(std::string(prefix) + "steps");
            if (broken != fault::torn_restore) velocity = read;
        }
    };
    template <std::floating_point T = float>
    bound<T> bind(std::size_t dimension) const {
        return bound<T>(dimension);
    }
    friend bool operator==(const faulty_optimizer&, const faulty_optimizer&) = default;
};

template <fault broken>
std::vector<std::string> broken_laws() {
    std::vector<std::string> names;
    testing::for_each_optimizer_law(faulty_optimizer<broken>{}, [&](const char* name, const auto& outcome) {
        if (!outcome.held) names.emplace_back(name);
    });
    return names;
}

}  // namespace

TEST_CASE_TEMPLATE("optimizer_laws: the shipped optimizers break none", T, float, double) {
    int laws = 0;
    const auto check = [&](const auto& policy) {
        testing::for_each_optimizer_law<T>(policy, [&](const char* name, const testing::law_outcome& outcome) {
            ++laws;
            CHECK_MESSAGE(outcome.held, name << ": " << outcome.what);
        });
    };
    using namespace rill::train;
    check(sgd{});
    check(sgd{.momentum = 0.9});
    check(sgd{.momentum = 0.5, .weight_decay = 0.125, .nesterov = true});
    check(adam{});
    check(decoupled_decay{sgd{.momentum = 0.9}, 0.125});
    check(decoupled_decay{adam{}, 0.125});
    CHECK(laws == 6 * 8);
}

TEST_CASE("optimizer_laws: each promise that is broken is told") {
    using names = std::vector<std::string>;
    CHECK(broken_laws<fault::none>().empty());
    REQUIRE(!broken_laws<fault::static_state>().empty());
    CHECK(broken_laws<fault::static_state>().front() == "equal calls give equal bits");
    CHECK(broken_laws<fault::unsaved>() == names{"saved state goes on bit for bit"});
    CHECK(broken_laws<fault::torn_restore>() == names{"a restore that throws changes nothing"});
    CHECK(broken_laws<fault::moves_at_rate_0>() ==
          names{"at rate 0 nothing moves", "a linear step scales with the gradient"});
    CHECK(broken_laws<fault::not_linear>() == names{"a linear step scales with the gradient"});
    REQUIRE(!broken_laws<fault::copy_forgets>().empty());
    CHECK(broken_laws<fault::copy_forgets>().front() == "a copy goes on as its original");
}
