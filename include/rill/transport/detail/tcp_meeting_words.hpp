// What rank 0 and another rank tell each other while the ranks meet, once they have proved who they are. No I/O.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_framing.hpp>
#include <rill/transport/detail/tcp_roster.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// A word is a head of 8 bytes (its kind, three zeros, the size of its content) and its content.
struct meeting_word {
    enum class kind : std::uint8_t {
        entry = 1,  ///< to a host: options that must be equal, then a roster of the rank alone
        roster,     ///< from a host: of all ranks, or to one that joins, of those that are there
        refusal     ///< from a host: the kind of a failure, its culprit, then a text
    };
    /// The options whose values must be equal on all ranks, with their names.
    struct option {
        const char* name = "";
        std::uint64_t value = 0;
    };
    static constexpr std::size_t head_bytes = 8, refusal_bytes = 5, most_text = 4096;

    static std::vector<std::byte> of_entry(std::span<const option> options, const roster_entry& own) {
        std::vector<std::byte> content(8 * options.size());
        for (std::size_t i = 0; i < options.size(); ++i) put(content.data() + 8 * i, options[i].value, 8);
        const std::vector<std::byte> roster = encode_roster({&own, 1});
        content.insert(content.end(), roster.begin(), roster.end());
        return of(kind::entry, content);
    }
    static std::vector<std::byte> of_roster(std::span<const roster_entry> all) {
        return of(kind::roster, encode_roster(all));
    }
    /// What has ended the meeting. A text of more than `most_text` bytes is cut.
    static std::vector<std::byte> of_refusal(const abort_notice& why) {
        const byte_view said = std::as_bytes(std::span(std::string_view(why.reason).substr(0, most_text)));
        std::vector<std::byte> content(refusal_bytes);
        put(content.data(), static_cast<std::uint64_t>(why.kind), 1);
        put(content.data() + 1, static_cast<std::uint32_t>(why.culprit), 4);
        content.insert(content.end(), said.begin(), said.end());
        return of(kind::refusal, content);
    }

  private:
    static std::vector<std::byte> of(kind what, byte_view content) {
        std::vector<std::byte> made(head_bytes);
        put(made.data(), static_cast<std::uint64_t>(what), 1);
        put(made.data() + 4, content.size(), 4);
        made.insert(made.end(), content.begin(), content.end());
        return made;
    }
};

/// Reads one word that rank `peer` tells rank `self` of `ranks` ranks, as it arrives, and no byte behind it. One of
/// them is the *host*: rank 0, or where a rank joins, each one that has met the others. Throws `protocol_error` that
/// names the peer where the bytes are none that it may tell. Memory: what has arrived, and 64 KiB.
class meeting_reader {
  public:
    meeting_reader(rank_t ranks, rank_t self, rank_t peer) : meeting_reader(ranks, self, peer, self == 0) {}
    meeting_reader(rank_t ranks, rank_t self, rank_t peer, bool is_host)
        : ranks_(ranks), self_(self), peer_(peer), is_host_(is_host) {}

    /// Where to read to; empty where the word is whole. Valid until `arrived`.
    byte_span room() {
        bytes_.resize(std::min(goal_, filled_ + most_step));
        return byte_span(bytes_).subspan(filled_);
    }
    void arrived(std::size_t count) {
        RILL_EXPECTS(count <= bytes_.size() - filled_, "tcp: more arrived than there was room for");
        filled_ += count;
        if (filled_ != goal_ || goal_ != meeting_word::head_bytes) return;
        const auto size = static_cast<std::size_t>(get(bytes_.data() + 4, 4));
        if (get(bytes_.data() + 1, 3) != 0 || size == 0 || size > most_content()) refuse("a word that none may tell");
        goal_ += size;
    }
    bool is_whole() const { return filled_ == goal_; }

    // Of a whole word.

    meeting_word::kind kind() const { return static_cast<meeting_word::kind>(bytes_[0]); }
    /// The peer's own entry; its incarnation must be this one. `differs` becomes the name of the first option whose
    /// value is another one there, or null.
    roster_entry entry(std::span<const meeting_word::option> own, std::uint64_t incarnation,
                       const char*& differs) const {
        if (content().size() < 8 * own.size()) refuse("an entry that is cut off");
        differs = nullptr;
        for (std::size_t i = own.size(); i-- != 0;)
            if (get(content().data() + 8 * i, 8) != own[i].value) differs = own[i].name;
        auto alone = decode_roster(content().subspan(8 * own.size()), ranks_, self_, peer_);
        if (alone.size() != 1 || alone[0].rank != peer_ || alone[0].incarnation != incarnation)
            refuse("the entry of another rank");
        return std::move(alone[0]);
    }
    std::vector<roster_entry> roster() const {
        auto all = roster_of_some();
        if (all.size() != static_cast<std::size_t>(ranks_)) refuse("a roster without all ranks");
        return all;
    }
    std::vector<roster_entry> roster_of_some() const { return decode_roster(content(), ranks_, self_, peer_); }
    abort_notice refusal() const {
        if (content().size() < meeting_word::refusal_bytes) refuse("a refusal that is cut off");
        const auto kind = get(content().data(), 1);
        const auto culprit = static_cast<rank_t>(get(content().data() + 1, 4));
        if (kind > static_cast<std::uint64_t>(failure::deadlock)) refuse("a failure of an unknown kind");
        if (culprit != no_rank && (culprit < 0 || culprit >= ranks_)) refuse("a culprit that the job has not");
        const byte_view text = content().subspan(meeting_word::refusal_bytes);
        return {.context = every_context,
                .kind = static_cast<failure>(kind),
                .culprit = culprit,
                .reason = std::string(reinterpret_cast<const char*>(text.data()), text.size())};
    }

  private:
    static constexpr std::size_t most_step = std::size_t{64} << 10, most_options = 16;
    static constexpr std::size_t most_entry = 14 + roster_entry::most_host + 23 * roster_entry::most_addresses;

    byte_view content() const { return byte_view(bytes_).subspan(meeting_word::head_bytes); }
    /// 0 where the peer may not tell a word of this kind.
    std::size_t most_content() const {
        switch (kind()) {
            case meeting_word::kind::entry: return is_host_ ? 8 * most_options + 4 + most_entry : 0;
            case meeting_word::kind::roster: return is_host_ ? 0 : 4 + most_entry * static_cast<std::size_t>(ranks_);
            case meeting_word::kind::refusal:
                return is_host_ ? 0 : meeting_word::refusal_bytes + meeting_word::most_text;
        }
        return 0;
    }
    [[noreturn]] void refuse(const char* what) const { refuse_bytes(self_, peer_, what); }

    rank_t ranks_, self_, peer_;
    bool is_host_;
    std::vector<std::byte> bytes_;
    std::size_t filled_ = 0, goal_ = meeting_word::head_bytes;
};

}}}  // namespace rill::RILL_ABI::tcp::detail
