#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/tcp_framing.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// What the conversations of one rank bring: notes wait here until they are taken, and parts go into the memory of
/// those who receive them.
class deliveries {
    struct sender;

  public:
    /// A receive of a part.
    struct receive {
        byte_span into;
        std::size_t room = 0;  ///< the size of the receive
        std::uint32_t tag = 0;
        bool begun = false, ended = false;
        bool is_given_up = false;  ///< cancelled; another one with its tag takes its place
        mail::part_end how{};
        std::vector<std::byte> own{};  ///< of a part whose receive was given up
    };
    using place_of_part = std::shared_ptr<receive>;

    deliveries(rank_t self, rank_t ranks) : self_(self), from_(static_cast<std::size_t>(ranks)) {}

    /// Of a peer that is gone, a receive ends at once.
    place_of_part receive_part(byte_span into, rank_t from, std::uint32_t tag, bool is_gone) {
        auto& receives = at(from).receives;
        const auto found = std::find_if(receives.begin(), receives.end(),
                                        [&](const auto& each) { return each->is_given_up && each->tag == tag; });
        if (found == receives.end()) {
            auto made = std::make_shared<receive>(receive{.into = into, .room = into.size(), .tag = tag});
            made->ended = is_gone;
            if (!made->ended) receives.push_back(made);
            return made;
        }
        const place_of_part here = *found;
        here->is_given_up = false;
        here->into = into;
        if (!here->begun) return here;
        receives.erase(found);
        if (here->ended) keep(*here);  // else when it ends
        return here;
    }
    void cancel(const place_of_part& given) {
        if (given->begun || given->ended) return;
        for (sender& each : from_) {
            const auto found = std::find(each.receives.begin(), each.receives.end(), given);
            if (found == each.receives.end()) continue;
            *found = std::make_shared<receive>(
                receive{.into = {}, .room = given->room, .tag = given->tag, .is_given_up = true});
        }
        given->ended = given->how.cancelled = true;
    }
    /// From whom the part is arriving, which goes on in other memory; `no_rank` where it is not arriving.
    rank_t move(const place_of_part& given, byte_span to) {
        const auto found = std::find_if(from_.begin(), from_.end(),
                                        [&](const sender& each) { return given != nullptr && each.arriving == given; });
        if (found == from_.end()) return no_rank;
        given->into = to;
        return static_cast<rank_t>(found - from_.begin());
    }

    mail::received_note take_note(std::byte* into, std::size_t capacity) {
        if (notes_.empty()) return {};
        note taken = std::move(notes_.front());
        notes_.pop_front();
        if (taken.bytes.size() > capacity) refuse_bytes(self_, taken.source, "a note that is too long");
        if (!taken.bytes.empty()) std::memcpy(into, taken.bytes.data(), taken.bytes.size());
        const mail::received_note told{.source = taken.source, .size = taken.bytes.size()};
        if (spare_.size() < most_spare) spare_.push_back(std::move(taken.bytes));
        return told;
    }
    void drop_notes() { notes_.clear(); }
    /// A peer that has said goodbye, once its notes have been taken; `no_rank` where there is none.
    rank_t take_goodbye() {
        if (!notes_.empty() || goodbyes_.empty()) return no_rank;
        const rank_t first = goodbyes_.front();
        goodbyes_.pop_front();
        return first;
    }
    bool has_said_goodbye(rank_t peer) const { return from_[static_cast<std::size_t>(peer)].said_goodbye; }
    /// Whether notes or the goodbye of a peer have not been taken yet.
    bool holds_words_of(rank_t peer) const {
        return std::any_of(notes_.begin(), notes_.end(), [&](const note& each) { return each.source == peer; }) ||
               std::find(goodbyes_.begin(), goodbyes_.end(), peer) != goodbyes_.end();
    }

    /// Nothing more comes from a peer: ends the receives of its parts.
    void end(rank_t peer) noexcept {
        sender& its = at(peer);
        const auto end_one = [](const place_of_part& each) {
            each->ended = true;
            each->how = {};
        };
        for (const place_of_part& each : its.receives) end_one(each);
        its.receives.clear();
        if (its.arriving != nullptr) end_one(its.arriving);
        its.arriving = nullptr;
    }
    /// Another life of a peer begins.
    void begin(rank_t peer) { at(peer) = {}; }

    /// Takes what a peer says: what its conversation calls.
    class sink {
      public:
        sink(deliveries& to, rank_t peer) : to_(to), peer_(peer), its_(to.at(peer)) {}

        byte_span begin_note(std::size_t size) {
            if (!to_.spare_.empty()) {
                its_.coming.bytes = std::move(to_.spare_.back());
                to_.spare_.pop_back();
            }
            its_.coming.bytes.resize(size);
            its_.coming.source = peer_;
            return its_.coming.bytes;
        }
        void end_note() { to_.notes_.push_back(std::exchange(its_.coming, {})); }
        byte_span begin_part(std::uint16_t tag, std::size_t size) {
            const auto fits = [&](const place_of_part& each) { return each->tag == tag && !each->begun; };
            const auto found = std::find_if(its_.receives.begin(), its_.receives.end(), fits);
            if (found == its_.receives.end()) refuse_bytes(to_.self_, peer_, "a part that was not asked for");
            its_.arriving = *found;
            receive& here = *its_.arriving;
            if (here.room < size) refuse_bytes(to_.self_, peer_, "a part that is too long");
            here.begun = true;
            here.how.size = size;
            if (!here.is_given_up) {
                its_.receives.erase(found);
                return here.into.first(size);
            }
            here.own.resize(size);
            return here.own;
        }
        void end_part(std::uint16_t) {
            const place_of_part done = std::exchange(its_.arriving, nullptr);
            if (!done->is_given_up) keep(*done);
            done->ended = true;
        }
        void goodbye() {
            its_.said_goodbye = true;
            to_.goodbyes_.push_back(peer_);
        }

      private:
        deliveries& to_;
        rank_t peer_;
        sender& its_;
    };

  private:
    static constexpr std::size_t most_spare = 64;

    struct note {
        rank_t source = no_rank;
        std::vector<std::byte> bytes{};
    };
    struct sender {
        std::list<place_of_part> receives{};
        place_of_part arriving{};
        note coming{};
        bool said_goodbye = false;
    };

    sender& at(rank_t peer) { return from_[static_cast<std::size_t>(peer)]; }
    /// Copies a part that came while its receive was given up.
    static void keep(receive& of) {
        if (!of.own.empty()) std::memcpy(of.into.data(), of.own.data(), of.own.size());
        of.own = {};
    }

    rank_t self_;
    std::vector<sender> from_;  ///< by rank
    std::deque<note> notes_{};
    std::vector<std::vector<std::byte>> spare_{};
    std::deque<rank_t> goodbyes_{};
};

}}}  // namespace rill::RILL_ABI::tcp::detail
