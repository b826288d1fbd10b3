#pragma once

#include <rill/collective/all_gather.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Gives all ranks the model of the rank whose `version` is the highest, of several the lowest one's, and returns that
/// version: what a new replica of the survivors begins with after an earlier one has failed.
///
/// `model`: a tensor of N elements on each rank, which becomes the same on all bit for bit; in a partial all-reduce it
/// is `newest()`, and `version` is `version()`, in addition to what the run began with. Collective in `workers`. Cost:
/// an `all_gather` of one number and a `broadcast` of N elements. Errors: those of these; `model` is then unspecified.
template <class Group, class Model>
std::uint64_t take_newest(Group& workers, Model&& model, std::uint64_t version) {
    const std::array own{static_cast<std::int64_t>(version)};
    std::vector<std::int64_t> versions(static_cast<std::size_t>(workers.size()));
    all_gather(workers, own, versions);
    const auto is_lower = [](std::int64_t a, std::int64_t b) {
        return static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b);
    };
    const auto highest = std::max_element(versions.begin(), versions.end(), is_lower);
    broadcast(workers, model, static_cast<rank_t>(highest - versions.begin()));
    return static_cast<std::uint64_t>(*highest);
}

}}  // namespace rill::RILL_ABI
