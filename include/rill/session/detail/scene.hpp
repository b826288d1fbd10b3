#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <string>

namespace rill { inline namespace RILL_ABI {
namespace detail {

/// Where on this rank something fails: what a notice of it says besides the reason. Made only when something fails, so
/// that all that is told about failures is written here, once for all transports.
struct scene {
    std::uint64_t context = 0;
    std::uint64_t operation = 0;
    std::uint32_t first_tag = 0;  ///< see `abort_notice`
    rank_t self = no_rank;
    std::string what;  ///< "all_reduce (operation 7)"

    [[gnu::cold, gnu::noinline]] abort_notice notice(failure kind, rank_t culprit, rank_t other,
                                                     std::initializer_list<text_piece> why) const {
        return {.context = context,
                .operation = operation,
                .kind = kind,
                .culprit = culprit,
                .other = other,
                .reason = text_of({what, ": ", text_of(why)}),
                .first_tag = first_tag};
    }

    /// This rank is to blame: it `does` (", which …", ": a NaN").
    [[gnu::cold, gnu::noinline]] abort_notice of_self(std::initializer_list<text_piece> does,
                                                      failure kind = failure::exception) const {
        return notice(kind, self, no_rank, {"rank ", self, text_of(does)});
    }

    [[noreturn, gnu::cold, gnu::noinline]] void fail(failure kind, rank_t culprit, rank_t other,
                                                     std::initializer_list<text_piece> why) const {
        throw_error(notice(kind, culprit, other, why));
    }

    /// Ends the operation with `source` as the culprit, which sent what was not due. The error names both ends of the
    /// link, which may have lost or repeated a message.
    [[noreturn, gnu::cold, gnu::noinline]] void refuse(rank_t source, std::initializer_list<text_piece> sent) const {
        fail(failure::protocol, source, self, {"rank ", source, " ", text_of(sent)});
    }
    /// What `source` sent could not be read.
    [[noreturn, gnu::cold, gnu::noinline]] void refuse(rank_t source, const protocol_error& wrong) const {
        if (wrong.culprit() != no_rank) throw_error(wrong.notice());
        refuse(source, {"sent bytes that are no valid frame: ", wrong.notice().reason});
    }

    /// Whether an error is of this very context.
    bool is_own(const abort_notice& thrown) const { return thrown.context == context; }

    /// What the others are told of an exception that passes here; null stands for one that is no `std::exception`.
    /// Whatever names no culprit is this rank's own failure, and so is the failure of another group, whose ranks have
    /// other numbers.
    [[gnu::cold, gnu::noinline]] abort_notice notice_of(const std::exception* thrown) const {
        if (thrown == nullptr) return of_self({": an exception of unknown type"});
        const auto* const failed = dynamic_cast<const error*>(thrown);
        if (failed == nullptr) return of_self({": ", thrown->what()});
        abort_notice known = failed->notice();
        if (known.culprit == no_rank && known.kind != failure::deadlock)
            return of_self({": ", known.reason}, known.kind);
        if (known.culprit != no_rank && !is_own(known) && known.context != every_context)
            return of_self({": ", thrown->what()});
        known.context = context;
        known.operation = operation;
        known.first_tag = first_tag;
        return known;
    }
};

template <class Place>
[[noreturn, gnu::cold, gnu::noinline]] void refuse_frame(const Place& place, rank_t source,
                                                         const protocol_error& wrong) {
    place.scene().refuse(source, wrong);
}
}  // namespace detail

/// Runs `read()`, which reads what `source` sent to `place.scene()`, and blames `source` for what is wrong there.
template <class Place, class Read>
auto read_from(const Place& place, rank_t source, Read&& read) {
    try {
        return read();
    } catch (const protocol_error& wrong) {
        detail::refuse_frame(place, source, wrong);
    }
}

}}  // namespace rill::RILL_ABI
