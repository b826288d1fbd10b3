#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/protocol/detail/round_children.hpp>
#include <rill/protocol/detail/round_kind.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The state of the round under way, as a rank gives it to its children.
template <class Message>
class round_state {
  public:
    /// Refers to the caller's own values, which may change once `keep` has copied them.
    void borrow(const wire::header& head, byte_view values) {
        head_ = head;
        values_ = byte_pieces(values);
    }
    void keep() {
        const byte_pieces borrowed = values_;
        kept_.resize(borrowed.size_bytes());
        copy(borrowed, kept_.begin());
        values_ = byte_pieces(kept_);
    }
    /// Takes over the parent's message, which stays valid until the next one.
    void hold(const wire::header& head, Message&& from) {
        message_ = std::move(from);
        head_ = head;
        values_ = content_behind_header(message_->pieces());
    }
    const Message& held() const { return *message_; }

    /// The frame for a child: with the values if it begins a round for the child.
    template <class Session>
    buffer frame(message_kind kind, const Session& of, std::uint64_t round, const round_children::link& child) const {
        const bool has_values = kind == round_kind::next_round;
        wire::header head = has_values ? head_ : empty_head();
        head = of.stamped(head, kind, round);
        head.age = static_cast<std::uint32_t>(round - child.answered);
        head.contributors = child.latest == contribution_fate::out ? 0 : 1;
        const byte_pieces values = has_values ? values_ : byte_pieces{};
        buffer bytes(wire::header_bytes + values.size_bytes());
        wire::encode(head, bytes.data());
        copy(values, bytes.begin() + static_cast<std::ptrdiff_t>(wire::header_bytes));
        return bytes;
    }

  private:
    static wire::header empty_head() {
        return {.element = element_type::int32, .index_bytes = 4, .codes = {.indices = index_coding::dense}};
    }
    static byte_pieces content_behind_header(const byte_pieces& message) {
        byte_pieces content;
        std::size_t skip = wire::header_bytes;
        for (const byte_view piece : message) {
            const std::size_t skipped = std::min(skip, piece.size());
            skip -= skipped;
            if (skipped < piece.size()) content.push(piece.subspan(skipped));
        }
        return content;
    }
    static void copy(const byte_pieces& from, std::byte* to) {
        for (const byte_view piece : from) to = std::copy(piece.begin(), piece.end(), to);
    }

    wire::header head_{};
    byte_pieces values_;              ///< in the caller's memory, in `message_` or in `kept_`
    std::optional<Message> message_;  ///< from the parent: its values are passed on
    buffer kept_;                     ///< at the root: a copy for children that need the values later
};

}}}  // namespace rill::RILL_ABI::detail
