// A value coding of your own: one bit for each value, with one scale for all values of a frame (Seide et al. 2014).
#include <rill/rill.hpp>
#include <rill/testing/value_coding_laws.hpp>
#include <rill/transport/simulated.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

/// Each value becomes the mean magnitude with the value's sign. The mean travels as a float, before the signs.
struct scaled_signs {
    static constexpr const char* name = "scaled_signs";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;    // so error feedback keeps what is rounded off
    static constexpr bool is_contractive = true;  // the error is smaller than the values

    static std::size_t size(std::size_t count, std::size_t) { return sizeof(float) + (count + 7) / 8; }

    template <class T>
    static void encode(std::span<const T> values, rill::random_key, std::uint64_t, rill::byte_span out) {
        double sum = 0;
        for (const T value : values) sum += std::abs(static_cast<double>(value));
        const auto scale = values.empty() ? 0.0F : static_cast<float>(sum / static_cast<double>(values.size()));
        std::memset(out.data(), 0, out.size());
        std::memcpy(out.data(), &scale, sizeof scale);
        for (std::size_t i = 0; i < values.size(); ++i)
            if (values[i] < 0) out[sizeof scale + i / 8] |= std::byte{1} << i % 8;
    }
    template <class T>
    static void decode(rill::byte_view bytes, std::span<T> values) {
        float scale = 0;
        std::memcpy(&scale, bytes.data(), sizeof scale);
        if (!std::isfinite(scale)) throw rill::protocol_error("scaled_signs: the scale is not finite");
        for (std::size_t i = 0; i < values.size(); ++i) {
            const bool is_negative = (bytes[sizeof scale + i / 8] >> i % 8 & std::byte{1}) != std::byte{0};
            values[i] = static_cast<T>(is_negative ? -scale : scale);
        }
    }
    friend bool operator==(scaled_signs, scaled_signs) = default;
};
static_assert(rill::ValueCoding<scaled_signs>);

int main() {
    int broken = 0;
    rill::testing::for_each_value_coding_law<float>(scaled_signs{},
                                                    [&](const char* law, const rill::testing::law_outcome& outcome) {
                                                        if (!outcome.held)
                                                            std::printf("%s: %s\n", law, outcome.what.c_str());
                                                        broken += outcome.held ? 0 : 1;
                                                    });
    std::printf("laws that do not hold: %d\n", broken);

    // Eight ranks look for the center of all their points: each sends one bit for each coordinate, 40 times.
    rill::simulated::run(8, {}, [](auto& net) {
        using namespace rill::compress;
        constexpr std::size_t n = 10'000;
        rill::group workers{net, rill::topology::split_allgather{}};
        auto codec = error_feedback{encoded{keep_all{}, own_values{scaled_signs{}}}}.bind(n);
        std::vector<float> model(n, 0), gradient(n), update(n);
        rill::receipt done;
        for (int step = 0; step < 40; ++step) {
            for (std::size_t i = 0; i < n; ++i)
                gradient[i] = 0.1F * (model[i] - static_cast<float>(net.rank()) - static_cast<float>(i % 5));
            done = rill::all_reduce(workers, gradient, update, codec, rill::aggregate::mean{});
            for (std::size_t i = 0; i < n; ++i) model[i] -= update[i];
        }
        double distance = 0;
        for (std::size_t i = 0; i < n; ++i) distance += std::pow(model[i] - 3.5F - static_cast<float>(i % 5), 2);
        if (net.rank() == 0)
            std::printf("distance from the center: %.2f of %.2f; a step sends %d bytes, not %d\n",
                        std::sqrt(distance / n), std::sqrt(3.5 * 3.5 + 2 * 3.5 * 2 + 6),
                        static_cast<int>(done.wire.bytes_sent), static_cast<int>(2 * 7 * (n / 8 * sizeof(float) + 96)));
    });
    return broken;
}
