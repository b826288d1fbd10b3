#pragma once

#include <rill/core/config.hpp>
#include <rill/train/data_error.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rill { inline namespace RILL_ABI { namespace train::detail {

/// Throws unless what a trainer's section `name` begins with fits this trainer: rank, number of ranks, seed.
inline void require_same_place(const std::string& path, const std::string& name, std::span<const std::uint64_t> saved,
                               std::span<const std::uint64_t> own) {
    constexpr const char* what[] = {"rank", "number of ranks", "seed of the group"};
    for (std::size_t i = 0; i < 3; ++i)
        if (saved[i] != own[i])
            throw data_error(path, "section \"" + name + "\", " + what[i], std::to_string(own[i]),
                             std::to_string(saved[i]));
}

/// Throws if a file's section names another strategy or plan than `own`, whose state may have the same sections and
/// means something else. An empty name, or a file without one, fits any.
template <class Reader>
void require_same_plan(const Reader& in, const std::string& section, std::string_view own) {
    std::string saved(in.count(section), ' ');
    if (own.empty() || saved.empty()) return;
    in.read(section, saved);
    if (saved != own) throw data_error(in.path(), "section \"" + section + "\"", std::string(own), saved);
}

}}}  // namespace rill::RILL_ABI::train::detail
