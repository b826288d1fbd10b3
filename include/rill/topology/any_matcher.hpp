#pragma once

#include <rill/concept/matcher.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <array>
#include <concepts>
#include <span>
#include <type_traits>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology {

/// Any `Matcher`, or none: a value that forgets its type, so that a mixing which uses one is no template.
class any_matcher {
  public:
    any_matcher() = default;
    template <class M>
        requires(!std::same_as<M, any_matcher>)
    any_matcher(M) {  // NOLINT(google-explicit-constructor)
        static_assert(std::is_empty_v<M>,
                      "rill::Matcher: it has state, and a matching must be a function of the graph alone; pass what it "
                      "needs as template arguments");
        static_assert(!std::is_empty_v<M> || Matcher<M>,
                      "rill::Matcher: name or match is missing; add `static constexpr const char* name`, `static "
                      "std::vector<rank_t> match(int, std::span<const std::array<rank_t, 2>>)` and operator== (see "
                      "rill/concept/matcher.hpp)");
        if constexpr (Matcher<M>) {
            name_ = M::name;
            match_ = &M::match;
        }
    }

    explicit operator bool() const { return match_ != nullptr; }
    const char* name() const { return name_; }
    /// There must be one.
    std::vector<rank_t> match(int ranks, std::span<const std::array<rank_t, 2>> edges) const {
        return match_(ranks, edges);
    }

    friend bool operator==(const any_matcher&, const any_matcher&) = default;

  private:
    const char* name_ = "none";
    std::vector<rank_t> (*match_)(int, std::span<const std::array<rank_t, 2>>) = nullptr;
};

}}}  // namespace rill::RILL_ABI::topology
