#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// Passes the newest version of a model from the activity that moves it to the one that works on it. Neither waits for
/// the other, and of versions that nobody has taken only the newest is kept: three copies of the model in all.
template <ConcurrentTransport Net, Element T>
class model_shelf {
  public:
    struct version {
        std::uint64_t number = 0;
        aligned_vector<T> values{};
        round_receipt made_by{};  ///< the round that has moved the model to this version
    };

    explicit model_shelf(Net& net) : newest_(net), returned_(net) {}

    /// Called by the activity that moves the model.
    void put(std::uint64_t number, std::span<const T> values, const round_receipt& made_by) {
        auto room = returned_.pop(deadline::immediate);
        if (!room) room = newest_.pop(deadline::immediate);  // a version that nobody has taken
        if (!room) room.emplace();
        room->number = number;
        room->values.assign(values.begin(), values.end());
        room->made_by = made_by;
        newest_.push(std::move(*room));
    }
    /// There will be no more versions.
    void close() { newest_.close(); }

    /// Replaces `held` by the newest version, if there is one. Waits for it until `until`. False if there is none.
    bool take(version& held, deadline until) {
        bool is_new = false;
        while (auto next = newest_.pop(is_new ? deadline::immediate : until)) {
            returned_.push(std::exchange(held, std::move(*next)));
            is_new = true;
        }
        return is_new;
    }

  private:
    typename Net::template queue<version> newest_;
    typename Net::template queue<version> returned_;
};

}}}  // namespace rill::RILL_ABI::detail
