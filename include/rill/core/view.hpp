#pragma once

#include <rill/core/config.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// A transport of a view: `epoch()` is the view's. It is the same on all ranks and never changes; frames carry it.
template <class Net>
concept EpochTransport = requires(const Net& net) {
    { net.epoch() } -> std::convertible_to<std::uint32_t>;
};

/// The epoch of a transport: of the view that it was made of, or 0 if it is a whole run.
template <class Net>
std::uint32_t epoch_of([[maybe_unused]] const Net& net) {
    if constexpr (EpochTransport<Net>)
        return net.epoch();
    else
        return 0;
}

/// Which ranks of a transport work together, and in which epoch. Ranks that hold equal views derive equal contexts from
/// them, whatever each has done before; ranks that hold different ones never meet.
///
/// A new epoch begins with each change of the members, and with each new attempt of the same ones. `subgroup` is the
/// transport of a view.
struct view {
    std::uint32_t epoch = 0;
    std::vector<rank_t> members{};  ///< ranks in the transport, ascending
    /// Which start of its rank each member is, in the order of `members`; empty where the transport does not tell.
    std::vector<std::uint64_t> incarnations{};

    /// All ranks of a transport, in its epoch.
    template <class Net>
    static view all(const Net& net) {
        view of_all{.epoch = epoch_of(net)};
        for (rank_t rank = 0; rank < net.size(); ++rank) of_all.members.push_back(rank);
        return of_all;
    }

    bool contains(rank_t rank) const { return std::binary_search(members.begin(), members.end(), rank); }

    /// A number for what these members do in this epoch under `name`.
    std::uint64_t key(std::string_view name) const {
        std::uint64_t hash = mix64(fingerprint(name), epoch, members.size());
        for (const rank_t member : members) hash = mix64(hash, static_cast<std::uint32_t>(member));
        for (const std::uint64_t incarnation : incarnations) hash = mix64(hash, incarnation);
        return hash;
    }

    /// For messages: "epoch 3 of ranks 0-4, 6 (start 2)".
    std::string text() const {
        std::string all = text_of({"epoch ", epoch, " of ranks "});
        for (std::size_t i = 0, last = 0; i < members.size(); i = last + 1) {
            last = last_in_row(i);
            if (i != 0) all += ", ";
            all += text_of({members[i]});
            if (last != i) all += text_of({"-", members[last]});
            if (start_of(i) != 0) all += text_of({" (start ", start_of(i), ")"});
        }
        return all;
    }
    friend bool operator==(const view&, const view&) = default;

  private:
    std::uint64_t start_of(std::size_t i) const { return i < incarnations.size() ? incarnations[i] : 0; }
    /// The end of the row of consecutive ranks, in the same incarnation, that begins at member `first`.
    std::size_t last_in_row(std::size_t first) const {
        std::size_t i = first;
        while (i + 1 < members.size() && members[i + 1] == members[i] + 1 && start_of(i + 1) == start_of(first)) ++i;
        return i;
    }
};

}}  // namespace rill::RILL_ABI
