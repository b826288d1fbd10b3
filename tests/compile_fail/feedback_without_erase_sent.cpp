// expect: rill::compress::error_feedback: the compressor does not send coordinates of its input and has no
// erase_sent(received, values)
#include <rill/compress/error_feedback.hpp>
#include <rill/core/bytes.hpp>
#include <rill/stream/stream_codings.hpp>

/// Sends the mean of each pair of entries.
struct pairs {
    struct codec {
        using index_type = std::uint32_t;
        static constexpr bool is_coordinatewise = false, is_lossless = false, is_unbiased = false;
        static constexpr bool is_contractive = true, has_lossless_copy = true;

        std::size_t dimension() const { return 2 * means.size(); }
        std::size_t coded_dimension() const { return means.size(); }
        rill::stream_codings codings() const { return {}; }
        void begin(std::uint64_t) {}
        rill::stream_view<float> encode(std::span<const float> input) {
            for (std::size_t i = 0; i < means.size(); ++i) means[i] = (input[2 * i] + input[2 * i + 1]) / 2;
            return {{0, means.size()}, std::span<const float>(means)};
        }
        void decode(std::span<const float> folded, std::span<float> output) {
            for (std::size_t i = 0; i < output.size(); ++i) output[i] = folded[i / 2];
        }
#ifdef RILL_FIXED
        void erase_sent(std::span<const float> received, std::span<float> values) const {
            for (std::size_t i = 0; i < values.size(); ++i) values[i] -= received[i / 2];
        }
#endif
        void commit() {}
        void rollback() {}

        rill::aligned_vector<float> means;
    };
    template <class, class>
    codec bind(std::size_t dimension) const {
        return {rill::aligned_vector<float>(dimension / 2)};
    }
};

auto codec = rill::compress::error_feedback{pairs{}}.bind(100);
