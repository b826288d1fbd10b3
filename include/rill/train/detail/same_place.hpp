#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/train/data_error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// What a rank has read of its file.
struct file_read {
    std::string path;
    rank_t rank = 0;
    int ranks = 1;
    std::exception_ptr refused;  ///< why it does not fit; null if it does
    std::uint64_t position = 0;  ///< where it goes on
    std::uint64_t sum = 0;       ///< of what must be alike on all ranks
};

/// Why a file is refused, without the library's name; empty if it is not.
inline std::string reason_of(const std::exception_ptr& refused) {
    if (refused == nullptr) return {};
    try {
        std::rethrow_exception(refused);
    } catch (const std::exception& thrown) {
        const std::string_view text = thrown.what(), name = "rill: ";
        return std::string(text.starts_with(name) ? text.substr(name.size()) : text);
    }
}

/// Collective: the text of rank `of`, which has `length` characters, on all ranks.
template <class AddUp>
std::string text_on(std::size_t of, std::size_t length, const file_read& own, AddUp&& add_up) {
    std::vector<std::int64_t> letters(length + 1);  // never empty: ranks that exchange nothing wait for nobody
    if (static_cast<std::size_t>(own.rank) == of) std::ranges::copy(reason_of(own.refused), letters.begin());
    add_up(std::span(letters));
    return {letters.begin(), letters.end() - 1};
}

/// Tells all ranks what this one has read, and throws on all of them unless all can go on from there. `position`: what
/// `file_read::position` counts; `add_up(table)`: the sum over all ranks, entry by entry.
///
/// Where a rank refuses its file, all throw its reason. A rank that leaves with what this throws may end the run while
/// others still exchange; so every rank knows the verdict before one throws.
template <class AddUp>
void require_common_files(const file_read& own, const std::string& position, AddUp&& add_up) {
    const auto size = static_cast<std::size_t>(own.ranks), rank = static_cast<std::size_t>(own.rank);
    std::vector<std::int64_t> told(3 * size);
    // A length counts one more than the reason has characters; 0: the file is not refused.
    const std::span lengths = std::span(told).first(size), positions = std::span(told).subspan(size, size),
                    sums = std::span(told).last(size);
    if (own.refused != nullptr) lengths[rank] = 1 + static_cast<std::int64_t>(reason_of(own.refused).size());
    positions[rank] = static_cast<std::int64_t>(own.position);
    sums[rank] = static_cast<std::int64_t>(own.sum);
    add_up(std::span(told));

    const auto first_other = [](std::span<const std::int64_t> of, std::int64_t than) {
        return static_cast<std::size_t>(std::ranges::find_if(of, [&](std::int64_t each) { return each != than; }) -
                                        of.begin());
    };
    const std::size_t refusing = first_other(lengths, 0), elsewhere = first_other(positions, positions[0]),
                      different = first_other(sums, sums[0]);
    if (std::min({refusing, elsewhere, different}) == size) return;

    std::string reason;
    try {
        const std::size_t length = refusing < size ? static_cast<std::size_t>(lengths[refusing]) - 1 : 0;
        reason = text_on(refusing, length, own, add_up);
    } catch (const error& ended) {  // by a rank that has thrown already
        reason = ended.what();
    }
    if (own.refused != nullptr) std::rethrow_exception(own.refused);
    const auto beside = [](std::size_t other) { return "compared with the file of rank " + std::to_string(other); };
    if (refusing < size)
        throw data_error(own.path, beside(refusing), "one that fits that rank", "another (" + reason + ")");
    if (elsewhere < size)
        throw data_error(own.path, beside(elsewhere), position + " " + std::to_string(positions[0]) + " as on rank 0",
                         std::to_string(positions[elsewhere]));
    throw data_error(own.path, beside(different), "the parameters that rank 0 has, after as many operations", "others");
}

}}}  // namespace rill::RILL_ABI::train::detail
