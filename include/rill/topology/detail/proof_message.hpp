// Makes compilers print the first defect of a topology as a sentence, in the name of a type.
#pragma once

#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/trace_contributions.hpp>

#include <cstddef>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace topology::detail {

/// A text of at most 240 characters that is built at compile time.
struct text_builder {
    static constexpr std::size_t room = 240;
    char text[room + 1]{};
    std::size_t size = 0;

    constexpr void add(const char* more) {
        for (; *more != '\0' && size < room; ++more) text[size++] = *more;
    }
    constexpr void add(int number) {
        if (number >= 10) add(number / 10);
        const char digit[2] = {static_cast<char>('0' + number % 10), '\0'};
        add(digit);
    }
};

/// A text in pieces of at most `most` characters, divided between words: compilers truncate longer pieces.
struct parted_text {
    static constexpr std::size_t most = 30, room = 10;
    char text[text_builder::room + 1]{};
    std::size_t begin[room + 1]{};  ///< where each piece begins; after the last one, where the text ends
    std::size_t count = 0;

    explicit constexpr parted_text(const text_builder& made) {
        for (std::size_t i = 0; i < made.size; ++i) text[i] = made.text[i];
        while (begin[count] < made.size && count < room) {
            std::size_t end = made.size;
            if (end - begin[count] > most)
                for (end = begin[count] + most; made.text[end - 1] != ' ';) --end;
            begin[++count] = end;
        }
    }
    constexpr std::size_t size(std::size_t piece) const { return begin[piece + 1] - begin[piece]; }
};

/// A piece of a text as a template argument. The array has exactly the size of the piece, so that compilers print it as
/// text.
template <std::size_t size>
struct words {
    char text[size + 1]{};

    constexpr words(const parted_text& of, std::size_t piece) {
        for (std::size_t i = 0; i < size; ++i) text[i] = of.text[of.begin[piece] + i];
    }
};

/// Describes a defect, for example "rill::topology: all_reduce of 8 ranks, round 0, rank 3: a receive has no send in
/// its round; …".
constexpr parted_text describe(const obligation& aim, const verdict& found) {
    text_builder made;
    made.add("rill::topology: ");
    made.add(name(aim.what));
    made.add(" of ");
    made.add(aim.size);
    made.add(" ranks");
    if (found.round >= 0) {
        made.add(", round ");
        made.add(found.round);
    }
    if (found.rank >= 0) {
        made.add(", rank ");
        made.add(found.rank);
    }
    made.add(": ");
    made.add(found.what);
    made.add("; mend the schedule");
    return parted_text(made);
}

/// Never defined: the compiler's error contains its name, and with it the defect.
template <words... defect>
struct proof_failed;

/// Returns true if `ok`. Otherwise it does not compile, and the compiler's error contains the text of `made`.
template <bool ok, parted_text made>
consteval bool require_no_defect() {
    if constexpr (!ok)
        return []<std::size_t... i>(std::index_sequence<i...>) {
            return sizeof(proof_failed<words<made.size(i)>(made, i)...>) != 0;
        }(std::make_index_sequence<made.count>{});
    return ok;
}

}}}  // namespace rill::RILL_ABI::topology::detail
