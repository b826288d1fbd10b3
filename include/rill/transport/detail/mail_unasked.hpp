#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/transport/detail/mail_inbox.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// Copies the bytes of `pieces` from byte `at` on.
inline void copy_from(const byte_pieces& pieces, std::size_t at, byte_span to) {
    for (const byte_view piece : pieces) {
        if (at >= piece.size()) {
            at -= piece.size();
            continue;
        }
        const std::size_t size = std::min(piece.size() - at, to.size());
        if (size == 0) return;
        std::memcpy(to.data(), piece.data() + at, size);
        to = to.subspan(size);
        at = 0;
    }
}

/// A message that comes unasked and is not here whole.
template <class Request>
struct unasked_arrival {
    std::uint64_t id = 0;
    std::size_t left = 0;                 ///< bytes that are to come
    mail::node<Request>* into = nullptr;  ///< null: the message has been dropped
};

}}}  // namespace rill::RILL_ABI::mail
