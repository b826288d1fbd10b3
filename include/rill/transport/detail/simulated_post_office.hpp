#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/rank_list.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/simulated_agenda.hpp>
#include <rill/transport/detail/simulated_scheduler.hpp>
#include <rill/transport/detail/simulated_table.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace simulated::detail {

/// A message from its post until sender and receiver have released it.
struct parcel : appointment {
    enum class stage : std::uint8_t { on_the_way, held, arrived, taken, done, lost };
    enum list : std::uint8_t { of_source, of_channel, of_receiver, lists };

    parcel() : appointment(what::arrival) {}

    rank_t source = no_rank;
    rank_t receiver = no_rank;
    int life = 0;  ///< of its source
    channel on{};
    byte_pieces pieces{};
    buffer owned{};
    bool handed_over = false;
    bool sender_holds = false;  ///< a `sending` refers to it
    stage at = stage::on_the_way;
    time_point tail{};    ///< when its last byte arrives
    bool queues = false;  ///< its appointment is the arrival of its first byte; then it waits for the receiver's card
    duration holds{};     ///< how long at most it waits at its receiver to be overtaken
    wait_list reading;    ///< activities that wait until it has been read
    list_hook<parcel> hooks[lists]{};
};

template <parcel::list Which>
using parcel_list = linked_list<parcel, Which>;

using rill::detail::contains;

/// All messages of all ranks. It uses memory only for messages under way, none for idle pairs of ranks.
class post_office {
  public:
    parcel& accept(rank_t source, int life, rank_t receiver, channel on) {
        if (unused_.empty()) unused_.push_back(parcels_.emplace_back());
        parcel& p = *unused_.first();
        unused_.remove(p);
        p.source = source;
        p.life = life;
        p.receiver = receiver;
        p.on = on;
        p.at = parcel::stage::on_the_way;
        p.queues = false;
        return p;
    }
    void give_back(parcel& p) noexcept {
        buffer().swap(p.owned);
        unused_.push_back(p);
    }

    void store(parcel& p) {
        p.at = parcel::stage::arrived;
        by_source_[{p.receiver, p.source, p.on}].push_back(p);
        by_channel_[{p.receiver, no_rank, p.on}].push_back(p);
    }
    void remove(parcel& p) noexcept {
        remove_from(by_source_, {p.receiver, p.source, p.on}, p);
        remove_from(by_channel_, {p.receiver, no_rank, p.on}, p);
    }

    /// The earliest arrival from any of `peers`, or null.
    parcel* first(rank_t receiver, std::span<const rank_t> peers, channel on) {
        if (peers.size() == 1) {
            const auto* from_peer = by_source_.find({receiver, peers[0], on});
            return from_peer == nullptr ? nullptr : from_peer->first();
        }
        const auto* all = by_channel_.find({receiver, no_rank, on});
        return all == nullptr ? nullptr : skip(all->first(), peers);
    }
    /// The next message from any of `peers` that arrived after `p` on its channel, or null.
    static parcel* next(const parcel& p, std::span<const rank_t> peers) {
        return skip(parcel_list<parcel::of_channel>::after(p), peers);
    }

  private:
    struct address {
        rank_t receiver = no_rank;
        rank_t source = no_rank;
        channel on{};

        std::size_t hash() const {
            return mix64(static_cast<unsigned>(receiver), static_cast<unsigned>(source), on.context, on.tag);
        }
        friend bool operator==(const address&, const address&) = default;
    };

    static parcel* skip(parcel* p, std::span<const rank_t> peers) {
        while (p != nullptr && !contains(peers, p->source)) p = parcel_list<parcel::of_channel>::after(*p);
        return p;
    }

    template <class Lists>
    static void remove_from(Lists& lists, const address& key, parcel& p) noexcept {
        auto* list = lists.find(key);
        list->remove(p);
        if (list->empty()) lists.erase(key);
    }

    std::deque<parcel> parcels_;
    parcel_list<parcel::of_receiver> unused_;
    table<address, parcel_list<parcel::of_source>> by_source_;
    table<address, parcel_list<parcel::of_channel>> by_channel_;
};

}}}  // namespace rill::RILL_ABI::simulated::detail
