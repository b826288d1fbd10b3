// A job whose members hold the same state, and whose sums are whole numbers, so that each result can be checked.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

namespace elastic_bench {

/// Parameters and a velocity. Models `ElasticState`.
struct state {
    std::vector<float> parameters, velocity, latest;

    explicit state(std::size_t count) : parameters(count), velocity(count), latest(count) {}

    void step(std::span<const float> gradient) {
        latest.assign(gradient.begin(), gradient.end());
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            velocity[i] = 0.5F * velocity[i] + gradient[i];
            parameters[i] -= 0.001F * velocity[i];
        }
    }
    rill::buffer pack() const {
        rill::buffer bytes;
        for (const auto* part : {&parameters, &velocity}) {
            const auto all = std::as_bytes(std::span(*part));
            bytes.append(all.begin(), all.end());
        }
        return bytes;
    }
    rill::buffer changes() const {
        const auto all = std::as_bytes(std::span(latest));
        return {all.begin(), all.end()};
    }
    void unpack(rill::byte_view bytes) {
        if (bytes.size() != 2 * size_bytes()) throw std::runtime_error("a state of another size");
        std::memcpy(parameters.data(), bytes.data(), size_bytes());
        std::memcpy(velocity.data(), bytes.data() + size_bytes(), size_bytes());
    }
    void apply(rill::byte_view bytes) {
        if (bytes.size() != size_bytes()) throw std::runtime_error("an update of another size");
        std::vector<float> gradient(parameters.size());
        std::memcpy(gradient.data(), bytes.data(), bytes.size());
        step(gradient);
    }

  private:
    std::size_t size_bytes() const { return parameters.size() * sizeof(float); }
};

/// A rank's gradient in a step: whole numbers, of which sums are exact.
inline void fill(std::span<float> gradient, std::uint64_t step, rill::rank_t rank) {
    for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] = static_cast<float>((i * 7 + step * 13 + static_cast<std::size_t>(rank) * 29) % 101);
}

/// The parameters after steps of which each had these members.
inline std::vector<float> expected(std::size_t count, const std::vector<std::vector<rill::rank_t>>& members) {
    state all(count);
    std::vector<float> sum(count), own(count);
    for (std::uint64_t step = 0; step < members.size(); ++step) {
        sum.assign(count, 0);
        for (const rill::rank_t rank : members[step]) {
            fill(own, step, rank);
            for (std::size_t i = 0; i < count; ++i) sum[i] += own[i];
        }
        all.step(sum);
    }
    return all.parameters;
}

}  // namespace elastic_bench
