#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/random.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/testing/law.hpp>
#include <rill/train/optimizer.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

/// Saved state in memory: a writer and a reader for `save` and `restore`. After `reads_left` reads each one throws.
class saved_in_memory {
  public:
    mutable int reads_left = -1;  ///< below 0: no limit

    template <class Values>
    void add(std::string_view name, const Values& values) {
        if constexpr (std::is_arithmetic_v<Values>) {
            add(name, std::span(&values, 1));
        } else {
            const byte_view bytes = std::as_bytes(std::span(values));
            if (!sections_.emplace(name, buffer(bytes.begin(), bytes.end())).second)
                throw law_failure("the section " + std::string(name) + " is saved twice");
        }
    }
    template <class Values>
    void read(std::string_view name, Values&& values) const {
        if (reads_left == 0) throw std::runtime_error("no more reads");
        --reads_left;
        const auto found = sections_.find(std::string(name));
        const auto room = std::as_writable_bytes(std::span(values));
        if (found == sections_.end() || found->second.size() != room.size())
            throw law_failure("the section " + std::string(name) + " is not restored as it was saved");
        if (!room.empty()) std::memcpy(room.data(), found->second.data(), room.size());
    }
    template <class T>
    T read(std::string_view name) const {
        T value{};
        read(name, std::span(&value, 1));
        return value;
    }
    const std::string& path() const { return path_; }
    std::size_t sections() const { return sections_.size(); }

  private:
    std::map<std::string, buffer> sections_;
    std::string path_ = "memory";
};

/// Parameters and an optimizer bound to them, which moves along random gradients.
template <class T, class Bound>
struct descent_in_law {
    Bound optimizer;
    std::vector<T> parameters;

    static std::vector<T> slope(std::size_t dimension, std::size_t step) {
        std::vector<T> made(dimension);
        const counter_rng draw(random_key{step});
        for (std::size_t i = 0; i < dimension; ++i) made[i] = static_cast<T>(draw.uniform(i)) - T{0.5};
        return made;
    }
    void go(std::size_t first, std::size_t last, double rate = 0.125) {
        for (std::size_t step = first; step < last; ++step) along(slope(parameters.size(), step), rate);
    }
    void along(const std::vector<T>& gradient, double rate) {
        optimizer.step(std::span<T>(parameters), std::span<const T>(gradient), rate);
    }
};

inline constexpr std::size_t optimizer_dimension = 77;  // blocks of any width, and a rest

template <class T, class O>
auto descent_of(const O& policy, std::size_t dimension = optimizer_dimension, T start = T{1}) {
    auto bound = policy.template bind<T>(dimension);
    return descent_in_law<T, decltype(bound)>{bound, std::vector<T>(dimension, start)};
}

template <class T, class O>
void check_saved_state(const O& policy) {
    auto original = descent_of<T>(policy);
    original.go(0, 5);
    saved_in_memory saved;
    original.optimizer.save(saved, "law.");
    auto resumed = descent_of<T>(policy);
    resumed.parameters = original.parameters;
    resumed.optimizer.restore(saved, "law.");
    original.go(5, 9);
    resumed.go(5, 9);
    expect(resumed.parameters == original.parameters, "other bits after a restore");
}

template <class T, class O>
void check_failing_restore(const O& policy) {
    auto other = descent_of<T>(policy);
    other.go(20, 23);
    saved_in_memory saved;
    other.optimizer.save(saved, "law.");
    for (int reads = 0; reads < static_cast<int>(saved.sections()); ++reads) {
        auto original = descent_of<T>(policy);
        original.go(0, 5);
        auto refused = original;
        saved.reads_left = reads;
        bool has_thrown = false;
        try {
            refused.optimizer.restore(saved, "law.");
        } catch (const std::runtime_error&) {
            has_thrown = true;
        }
        expect(has_thrown, "a restore reads less than was saved");
        original.go(5, 9);
        refused.go(5, 9);
        expect(refused.parameters == original.parameters, "a restore that throws has changed the state");
    }
}

/// Whether two numbers are equal but for rounding.
template <class T>
bool are_close(T a, T b) {
    return std::abs(a - b) <= 64 * std::numeric_limits<T>::epsilon() * (1 + std::abs(b));
}

/// Of a step along entries among zeros and of one along the same gradient, spread out.
template <class T, class O>
void check_streams(const O& policy) {
    auto dense = descent_of<T>(policy), sparse = dense;
    for (std::size_t step = 0; step < 4; ++step) {
        stream<T> gradient(optimizer_dimension);
        std::vector<T> spread(optimizer_dimension);
        for (std::size_t i = step; i < optimizer_dimension; i += 1 + i % 7)
            gradient.push_back(i, spread[i] = static_cast<T>(i) - T{40.5});
        dense.along(spread, 0.125);
        sparse.optimizer.step(std::span<T>(sparse.parameters), gradient.view(), 0.125);
        for (std::size_t i = 0; i < optimizer_dimension; ++i)
            expect(are_close(sparse.parameters[i], dense.parameters[i]),
                   "a stream moves otherwise than the gradient that it stands for");
    }
}

}  // namespace detail

/// Checks an optimizer against the laws of the concept, on parameters of type T. Calls `visit(const char* name, const
/// law_outcome&)` once per law.
template <class T = float, train::Optimizer<T> O, class Visit>
void for_each_optimizer_law(const O& policy, Visit&& visit) {
    const auto law = [&](const char* name, auto&& check) {
        law_outcome outcome;
        try {
            check();
        } catch (const std::exception& failed) {
            outcome = {.held = false, .what = failed.what()};
        }
        visit(name, outcome);
    };
    law("equal calls give equal bits", [&] {
        auto one = detail::descent_of<T>(policy), other = detail::descent_of<T>(O(policy));
        one.go(0, 5);
        other.go(0, 5);
        expect(one.parameters == other.parameters, "two objects with equal calls end at different parameters");
        expect(one.parameters != detail::descent_of<T>(policy).parameters, "steps move nothing");
    });
    law("a copy goes on as its original", [&] {
        auto one = detail::descent_of<T>(policy);
        one.go(0, 5);
        auto copy = one;
        one.go(5, 9);
        copy.go(5, 9);
        expect(copy.parameters == one.parameters, "a copy goes on by different bits");
    });
    law("no parameters are enough", [&] { detail::descent_of<T>(policy, 0).go(0, 2); });
    law("at rate 0 nothing moves", [&] {
        auto one = detail::descent_of<T>(policy);
        one.go(0, 5);
        const auto before = one.parameters;
        one.go(5, 9, 0);
        expect(one.parameters == before, "a step at rate 0 moves");
    });
    law("saved state goes on bit for bit", [&] { detail::check_saved_state<T>(policy); });
    law("a restore that throws changes nothing", [&] { detail::check_failing_restore<T>(policy); });
    law("a linear step scales with the gradient", [&] {
        if constexpr (O::is_linear) {
            // Weight decay has no part in the first step from 0; a power of two keeps the bits.
            auto one = detail::descent_of<T>(policy, detail::optimizer_dimension, T{0}), other = one;
            auto gradient = one.slope(detail::optimizer_dimension, 0);
            one.along(gradient, 0.125);
            for (T& each : gradient) each *= T{0.125};
            other.along(gradient, 1);
            expect(one.parameters == other.parameters, "a smaller gradient moves otherwise than a smaller rate");
        }
    });
    law("a stream moves as the dense gradient", [&] {
        using bound = decltype(policy.template bind<T>(1));
        if constexpr (train::StreamOptimizer<bound, T, stream_view<T, std::uint32_t>>) detail::check_streams<T>(policy);
    });
}

}}}  // namespace rill::RILL_ABI::testing
