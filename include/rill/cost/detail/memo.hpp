#pragma once

#include <rill/core/config.hpp>
#include <rill/core/random.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace cost::detail {

/// Remembers answers to questions of three numbers, a bounded number of them. It begins small: most models are asked
/// little.
template <class Answer>
class memo {
  public:
    /// Returns the remembered answer, or calls `compute()` for it.
    template <class Compute>
    Answer get(std::uint64_t a, std::uint64_t b, std::uint64_t c, Compute&& compute) {
        if (known_ > slots_.size() / 2 && slots_.size() < most) {
            slots_.assign(4 * slots_.size(), slot{});
            known_ = 0;
        }
        slot& s = slots_[mix64(a, b, c) % slots_.size()];
        if (!s.known || s.a != a || s.b != b || s.c != c) {
            const bool fresh = !s.known;
            s = {a, b, c, compute(), true};
            if (fresh) ++known_;
        }
        return s.answer;
    }

  private:
    struct slot {
        std::uint64_t a = 0, b = 0, c = 0;
        Answer answer{};
        bool known = false;
    };
    static constexpr std::size_t most = 4096;
    std::vector<slot> slots_ = std::vector<slot>(64);
    std::size_t known_ = 0;
};

}}}  // namespace rill::RILL_ABI::cost::detail
