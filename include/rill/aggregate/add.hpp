#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/stream_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace aggregate {

/// Adds the sum of what ranks have pushed to the model: for changes of models, and for counts. Models `Update`.
struct add {
    using fold_type = sum;
    static constexpr const char* name = "add";

    template <Element T>
    struct bound {
        static void apply(std::span<T> model, std::span<const T> fold, double, std::uint64_t) {
            for (std::size_t i = 0; i < model.size(); ++i) model[i] = sum::fold(model[i], fold[i]);
        }
        template <IndexType Index>
        static void apply(std::span<T> model, const stream_view<T, Index>& fold, double, std::uint64_t round) {
            if (fold.is_dense()) return apply(model, fold.values(), 1.0, round);
            for (std::size_t e = 0; e < fold.count(); ++e) {
                T& each = model[static_cast<std::size_t>(fold.indices()[e])];
                each = sum::fold(each, fold.values()[e]);
            }
        }
    };
    template <Element T>
    bound<T> bind(std::size_t) const {
        return {};
    }
    friend constexpr bool operator==(add, add) = default;
};

static_assert(Update<add, float>);

}}}  // namespace rill::RILL_ABI::aggregate
