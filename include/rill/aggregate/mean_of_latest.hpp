#pragma once

#include <rill/concept/update.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace aggregate {

/// The model is the mean of the latest models that ranks have pushed, of those that have pushed one. Models
/// `RankedUpdate`: ranks push models, not gradients, and all of a model.
///
/// Cost of a push to a server that holds n coordinates, with P ranks: a pass over P n values, added in the order of
/// ranks. Memory: P n values. Source: RNA (Yang et al. 2020), between groups.
struct mean_of_latest {
    static constexpr const char* name = "mean_of_latest";

    template <std::floating_point T>
    class bound {
      public:
        explicit bound(std::size_t dimension) : dimension_(dimension) {}

        void apply_of(rank_t rank, std::span<T> model, std::span<const T> push, std::uint64_t) {
            const auto place = static_cast<std::size_t>(rank);
            if (latest_.size() <= place) latest_.resize(place + 1);
            latest_[place].assign(push.begin(), push.end());
            std::fill(model.begin(), model.end(), T{0});
            std::size_t models = 0;
            for (const auto& values : latest_) {
                if (values.empty()) continue;
                ++models;
                for (std::size_t i = 0; i < model.size(); ++i) model[i] += values[i];
            }
            for (T& value : model) value /= static_cast<T>(models);
        }

        template <class Writer>
        void save(Writer& out, std::string_view prefix) const {
            std::vector<std::uint64_t> sizes;
            for (const auto& values : latest_) sizes.push_back(values.size());
            out.add(std::string(prefix) + "ranks", std::array{std::uint64_t{sizes.size()}});
            out.add(std::string(prefix) + "sizes", sizes);
            for (std::size_t place = 0; place < latest_.size(); ++place)
                out.add(name_of(prefix, place), latest_[place]);
        }
        template <class Reader>
        void restore(const Reader& in, std::string_view prefix) {
            std::array<std::uint64_t, 1> ranks{};
            in.read(std::string(prefix) + "ranks", ranks);
            std::vector<std::uint64_t> sizes(ranks[0]);
            in.read(std::string(prefix) + "sizes", sizes);
            std::vector<aligned_vector<T>> latest(ranks[0]);
            for (std::size_t place = 0; place < latest.size(); ++place) {
                latest[place].resize(sizes[place] == 0 ? 0 : dimension_);  // the reader refuses another size
                in.read(name_of(prefix, place), latest[place]);
            }
            latest_ = std::move(latest);
        }

      private:
        static std::string name_of(std::string_view prefix, std::size_t place) {
            return std::string(prefix) + "latest." + std::to_string(place);
        }

        std::size_t dimension_;
        std::vector<aligned_vector<T>> latest_;  ///< by rank; empty where there is none
    };
    template <std::floating_point T>
    bound<T> bind(std::size_t dimension) const {
        return bound<T>(dimension);
    }
    friend constexpr bool operator==(mean_of_latest, mean_of_latest) = default;
};

static_assert(RankedUpdate<mean_of_latest, float>);

}}}  // namespace rill::RILL_ABI::aggregate
