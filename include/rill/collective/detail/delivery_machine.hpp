#pragma once

#include <rill/collective/detail/quiet_time.hpp>
#include <rill/concept/detouring_topology.hpp>
#include <rill/core/aligned_vector.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The messages of a delivery.
struct delivery_kind {
    static constexpr message_kind data{"delivery", 1};      ///< of `origin` for `target`
    static constexpr message_kind received{"delivery", 2};  ///< from `target` to `origin`: the message has come
    static constexpr message_kind complete{"delivery", 3};  ///< all ranks below `origin` have all that is theirs
    static constexpr message_kind over{"delivery", 4};      ///< all ranks have: the operation is over
    static constexpr message_kind ask{"delivery", 5};       ///< whether the operation is over
    static constexpr message_kind probe{"delivery", 6};     ///< whether the link works again
    static constexpr message_kind echo{"delivery", 7};      ///< it does
    static constexpr message_kind seek{"delivery", 8};      ///< whether `target` hears the rank `sequence`
    static constexpr message_kind miss{"delivery", 9};      ///< `origin` does not hear the rank `sequence`

    static constexpr bool is_known(message_kind kind) {
        return kind.protocol == data.protocol && data.number <= kind.number && kind.number <= miss.number;
    }
    /// Whether the message is for its `origin`: it answers one that came from there.
    static constexpr bool answers(message_kind kind) { return kind == received || kind == echo; }
};

/// What every message of a delivery says of itself. `origin`, `target` and `sequence` are its key within an operation:
/// whatever its way, it is counted once.
struct delivery_note {
    message_kind kind{};
    rank_t origin = no_rank;
    rank_t target = no_rank;
    std::uint32_t sequence = 0;
    std::uint64_t number = 0;  ///< of the operation

    constexpr rank_t destination() const { return delivery_kind::answers(kind) ? origin : target; }
    friend constexpr bool operator==(const delivery_note&, const delivery_note&) = default;
};

/// Delivers the messages of an operation to their targets, by whatever way, exactly once. A state machine without I/O
/// and without a clock: its host tells it what is posted, what arrives and what time it is, and sends what is in
/// `outbox()`.
///
/// - A message goes over the link to its target, or, if that is known to be silent, by way of another rank, which
///   forwards it and remembers nothing.
/// - The target acknowledges each copy on the way by which it came. What is not acknowledged in time goes by the next
///   way: the detours of the topology in their order, then the link itself again, each turn with twice the patience.
/// - The way that worked is remembered beyond the operation. A probe, at intervals, or an acknowledgement that comes
///   over the link itself brings a link back.
/// - Where the transport tells of silence, a rank that waits for a silent one asks the others whether they hear it. If
///   none does that this rank hears, no way is left (see `is_out_of_reach`).
/// - No rank leaves an operation before all have all that is theirs, because it may be another one's way. Ranks say so
///   up the tree, and the root ends the operation. That it is over goes over more links than those of the tree. A rank
///   that waits for it asks the others, and those in a later operation know.
///
/// Source: Padrão 2020, Algorithms 1 and 2. There the ranks of the backup links are told of each message (`sent`,
/// `received`) and ask for what is missing (`request`). Here the sender sees that itself and sends it again unasked,
/// so that a message costs one acknowledgement.
template <class Ways>
class delivery_machine {
  public:
    struct letter {
        delivery_note note{};
        rank_t to = no_rank;     ///< the next rank on the way
        std::size_t handle = 0;  ///< of the content of `data`
    };
    /// What becomes of a message that has arrived.
    enum class verdict : unsigned char {
        done,     ///< nothing more
        forward,  ///< it is to be sent on to its destination
        deliver,  ///< it is this rank's, and new
        look,     ///< the transport is to be asked for a sign of the rank `sequence`
        later     ///< it is of the next operation: to be told again when that has begun
    };

    delivery_machine() = default;
    delivery_machine(const Ways& ways, int size, rank_t self)
        : ways_(ways),
          size_(size),
          self_(self),
          parent_(ways.parent(size, self)),
          children_(ways.children(size, self)),
          quiet_(ways.detect),
          links_(static_cast<std::size_t>(size)) {
        for (rank_t rank = 1; rank < size; ++rank) {
            const rank_t above = ways_.parent(size, rank);
            const rank_t beside = size > 2 ? ways_.detour(size, rank, above, 0) : no_rank;
            if (rank == self) at(above).is_told = true;
            if (above == self || beside == self) at(rank).is_told = true;
        }
    }

    /// Enters the operation with this number.
    void begin(std::uint64_t number, time_point now) {
        number_ = number;
        waiting_.clear();
        outbox_.clear();
        came_.clear();
        reported_.clear();
        is_leaving_ = has_reported_ = is_over_ = false;
        detours_ = 0;
        turns_ = 0;
        sought_ = no_rank;
        quiet_.begin();
        for (rank_t peer = 0; peer < size_; ++peer) {
            link& to = at(peer);
            quiet_.learn(to.quiet);
            to.sent = to.taken = 0;
            to.is_carried_for = false;
            if (to.way == 0 || now < to.probe_at) continue;
            to.probe_at = now + probe_interval;
            send({delivery_kind::probe, self_, peer, 0, number_}, peer);
        }
    }

    /// Accepts a message for `target`. `handle` is what its content is known by until the operation is over.
    void post(rank_t target, std::size_t handle, std::size_t bytes, time_point now) {
        add({delivery_kind::data, self_, target, at(target).sent++, number_}, handle, bytes, now);
    }

    /// A message has come from `source`, the last rank on its way.
    verdict on(const delivery_note& note, rank_t source, time_point now) {
        const rank_t to = note.destination();
        if (to != self_) return to == source ? verdict::done : carry(note);
        if (note.number > number_) {
            conclude();  // nobody enters an operation before the last one is over
            return verdict::later;
        }
        const bool is_present = note.number == number_;
        const rank_t other = delivery_kind::answers(note.kind) ? note.target : note.origin;
        if (note.kind == delivery_kind::probe) {
            if (source == other) send({delivery_kind::echo, other, self_, 0, note.number}, other);
        } else if (note.kind == delivery_kind::echo) {
            if (source == other) works(other);
        } else if (note.kind == delivery_kind::received) {
            if (is_present) acknowledged(note, source, now);
        } else if (note.kind == delivery_kind::over) {
            if (is_present) conclude();
        } else if (note.kind == delivery_kind::seek || note.kind == delivery_kind::miss) {
            return look_for(note, source);
        } else if (note.kind == delivery_kind::ask) {
            if (!is_present || is_over_) say_over(other, source, note.number);
        } else {
            delivery_note answer = note;
            answer.kind = delivery_kind::received;
            send(answer, source);
            if (!is_present)
                say_over(other, source, note.number);
            else if (is_new(note)) {
                if (note.kind == delivery_kind::data) return verdict::deliver;
                reported_.push_back(note.origin);
                move_on(now);
            }
        }
        return verdict::done;
    }

    /// The transport tells whether it hears nothing of `peer`, at the end of the link to it.
    void lose(rank_t peer, bool is_lost) { at(peer).is_lost = is_lost; }
    /// This rank waits for `peer`. Whether no way leads to it: this rank does not hear it, and neither does any other
    /// that this rank hears. Asks those who have not said so in this operation. Who is not in the operation yet does
    /// not answer.
    bool is_out_of_reach(rank_t peer, time_point now) {
        if (peer == no_rank || !at(peer).is_lost) {
            sought_ = no_rank;
            return false;
        }
        if (sought_ != peer) {
            sought_ = peer;
            seeks_at_ = now;
            for (link& each : links_) each.misses = false;
        }
        bool is_asked = false;
        for (rank_t other = 0; other < size_; ++other) {
            if (other == self_ || at(other).is_lost || at(other).misses) continue;
            is_asked = true;
            if (now < seeks_at_) continue;
            send({delivery_kind::seek, self_, other, static_cast<std::uint32_t>(peer), number_}, other);
        }
        if (now >= seeks_at_) seeks_at_ = now + seek_interval;
        return !is_asked;
    }

    /// This rank has all that is its own. It stays until the operation `is_over()`.
    void leave(time_point now) {
        is_leaving_ = true;
        asks_at_ = now + patience_of_asking();
        move_on(now);
    }

    /// Sends anew what is overdue.
    void pass(time_point now) {
        for (std::size_t i = 0; i < waiting_.size(); ++i)
            if (waiting_[i].due <= now) overdue(waiting_[i], now);
        if (is_leaving_ && !is_over_ && now >= asks_at_) {
            asks_at_ = now + patience_of_asking();
            for (rank_t peer = 0; peer < size_; ++peer)
                if (peer != self_) send({delivery_kind::ask, self_, peer, 0, number_}, peer);
        }
    }
    /// When `pass` has something to do, unless something arrives before.
    time_point next_due() const {
        time_point first{std::numeric_limits<std::int64_t>::max()};
        for (const entry& each : waiting_) first = std::min(first, each.due);
        if (is_leaving_ && !is_over_) first = std::min(first, asks_at_);
        if (sought_ != no_rank && !is_over_) first = std::min(first, seeks_at_);
        return first;
    }

    /// What is to be sent now, in this order. The host clears it.
    aligned_vector<letter>& outbox() { return outbox_; }
    bool is_leaving() const { return is_leaving_; }
    bool is_over() const { return is_over_; }
    /// For whom this rank waits once it has all that is its own; `no_rank` if for nobody.
    rank_t waits_for() const {
        if (is_over_) return no_rank;
        if (!waiting_.empty()) return waiting_[0].note.target;
        for (int i = 0; i < children_; ++i)
            if (const rank_t child = ways_.child(size_, self_, i); !has_reported(child)) return child;
        return parent_;
    }

    /// How many messages of the operation this rank has sent by way of another.
    int detours() const { return detours_; }
    /// Whether messages to `peer` take a detour at present.
    bool is_silent(rank_t peer) const { return at(peer).way != 0; }

    template <class Mix>
    void visit_state(Mix&& mix) const {
        mix(number_), mix(is_leaving_), mix(has_reported_), mix(is_over_), mix(reported_.size()), mix(turns_);
        mix(asks_at_.ns), mix(sought_), mix(seeks_at_.ns);
        for (const link& each : links_)
            mix(each.way), mix(each.sent), mix(each.taken), mix(each.probe_at.ns), mix(each.is_lost), mix(each.misses);
        for (const entry& each : waiting_)
            mix(each.note.kind.number), mix(each.note.target), mix(each.note.sequence), mix(each.way), mix(each.due.ns),
                mix(each.turns);
        for (const delivery_note& each : came_) mix(each.origin), mix(each.sequence);
    }

  private:
    static constexpr duration probe_interval = seconds(1);
    static constexpr duration seek_interval = milliseconds(20);

    struct link {
        bool is_told = false;  ///< hears from this rank that an operation is over: parent, children, ranks beside it
        bool is_carried_for = false;  ///< is an end of a way on which this rank is, in this operation
        bool is_lost = false;         ///< the transport hears nothing of the peer
        bool misses = false;          ///< the peer has said that it does not hear `sought_`
        int way = 0;                  ///< 0: over the link itself; i: by way of detour i - 1
        std::uint32_t sent = 0;       ///< messages for the peer, in this operation
        std::uint32_t taken = 0;      ///< those of the peer that have come without a gap
        time_point probe_at{};
        link_quiet quiet{};
    };
    struct entry {
        delivery_note note{};
        std::size_t handle = 0;
        std::size_t bytes = 0;
        std::size_t in_flight = 0;  ///< bytes that this rank had on the way when this was sent, its own among them
        time_point sent_at{};
        time_point due{};
        int way = 0;
        int turns = 0;  ///< how often it has been sent again
    };

    link& at(rank_t peer) { return links_[static_cast<std::size_t>(peer)]; }
    const link& at(rank_t peer) const { return links_[static_cast<std::size_t>(peer)]; }
    int count_of_ways() const { return size_ < 2 ? 1 : size_ - 1; }
    rank_t by(rank_t target, int way) const { return way == 0 ? target : ways_.detour(size_, self_, target, way - 1); }

    void send(const delivery_note& note, rank_t to, std::size_t handle = 0) { outbox_.push_back({note, to, handle}); }
    void say_over(rank_t target, rank_t by_way_of, std::uint64_t number) {
        send({delivery_kind::over, self_, target, 0, number}, by_way_of);
    }

    verdict look_for(const delivery_note& note, rank_t source) {
        const auto whom = static_cast<rank_t>(note.sequence);
        if (note.sequence >= static_cast<std::uint32_t>(size_) || whom == self_) return verdict::done;
        if (note.kind == delivery_kind::miss) {
            at(source).misses |= whom == sought_;
            return verdict::done;
        }
        if (!at(whom).is_lost) return verdict::look;
        send({delivery_kind::miss, self_, source, note.sequence, note.number}, source);
        return verdict::done;
    }

    void add(const delivery_note& note, std::size_t handle, std::size_t bytes, time_point now) {
        waiting_.push_back({.note = note, .handle = handle, .bytes = bytes});
        dispatch(waiting_[waiting_.size() - 1], now);
    }
    /// Sends an entry by the way that its target is known to be reached.
    void dispatch(entry& each, time_point now) {
        each.way = at(each.note.target).way;
        each.sent_at = now;
        each.in_flight = 0;
        for (const entry& other : waiting_) each.in_flight += other.bytes;
        each.due = now + patience(each);
        if (each.way != 0)
            ++detours_;
        else
            at(each.note.target).quiet.sent(now);
        send(each.note, by(each.note.target, each.way), each.handle);
    }
    void overdue(entry& each, time_point now) {
        link& to = at(each.note.target);
        if (each.way == to.way) {
            if (to.way == 0) {
                to.probe_at = now + probe_interval;
                // What went by way of this target may be lost too.
                for (entry& other : waiting_)
                    if (other.way != 0 && by(other.note.target, other.way) == each.note.target) other.due = now;
            }
            to.way = next_way(each, to.way);
        }
        ++each.turns;
        dispatch(each, now);
    }
    /// The way after `way`; in the first turn without ranks to which the link itself is silent.
    int next_way(const entry& each, int way) const {
        const bool tries_all = each.turns >= count_of_ways();
        for (++way; way < count_of_ways(); ++way)
            if (tries_all || !is_silent(by(each.note.target, way))) return way;
        return 0;
    }

    duration patience(const entry& each) const {
        constexpr int most_doublings = 6;
        const int doublings = std::min(each.turns / count_of_ways(), most_doublings);
        const bool is_detour = each.way != 0;
        const link& over = at(by(each.note.target, each.way));
        const duration once = quiet_.patience(over.quiet, is_detour, each.bytes, each.in_flight);
        return once * (std::int64_t{1} << doublings);
    }
    duration patience_of_asking() {
        constexpr int most_doublings = 10;
        return ways_.detect.first * (std::int64_t{1} << std::min(turns_++, most_doublings));
    }

    void acknowledged(const delivery_note& note, rank_t source, time_point now) {
        const bool is_direct = source == note.target;
        if (is_direct) {
            quiet_.hear(at(source).quiet, at(source).way != 0, now);
            works(source);
        }
        for (std::size_t i = 0; i < waiting_.size();) {
            entry& each = waiting_[i];
            if (each.note.target == note.target && each.note.sequence == note.sequence) {
                if (is_direct && each.turns == 0 && each.way == 0) quiet_.measure(each.in_flight, now - each.sent_at);
                each = waiting_[waiting_.size() - 1];
                waiting_.resize(waiting_.size() - 1);
                continue;
            }
            // What was sent after it by the same way has still to come.
            if (each.note.target == note.target && by(note.target, each.way) == source) each.due = now + patience(each);
            ++i;
        }
        move_on(now);
    }
    void works(rank_t peer) { at(peer).way = 0; }

    /// Counts a message that came, and returns whether it is the first copy.
    bool is_new(const delivery_note& note) {
        link& from = at(note.origin);
        if (note.sequence < from.taken) return false;
        for (const delivery_note& each : came_)
            if (each.origin == note.origin && each.sequence == note.sequence) return false;
        came_.push_back(note);
        for (std::size_t i = 0; i < came_.size();) {  // what closes a gap is remembered by the count alone
            if (came_[i].origin != note.origin || came_[i].sequence != from.taken) {
                ++i;
                continue;
            }
            ++from.taken;
            came_[i] = came_[came_.size() - 1];
            came_.resize(came_.size() - 1);
            i = 0;
        }
        return true;
    }
    bool has_reported(rank_t child) const {
        return std::find(reported_.begin(), reported_.end(), child) != reported_.end();
    }

    bool all_reported() const { return reported_.size() == static_cast<std::size_t>(children_); }

    void move_on(time_point now) {
        if (!is_leaving_ || is_over_ || has_reported_ || !waiting_.empty() || !all_reported()) return;
        if (parent_ == no_rank) return conclude();
        has_reported_ = true;
        add({delivery_kind::complete, self_, parent_, at(parent_).sent++, number_}, 0, wire::header_bytes, now);
    }
    verdict carry(const delivery_note& note) {
        at(note.origin).is_carried_for = at(note.target).is_carried_for = true;
        return verdict::forward;
    }
    /// The operation is over: tells those around in the tree, for which this rank is the first detour, or for which it
    /// has been one. Since these may leave before they carry anything more, what goes by detour goes over the link too.
    void conclude() {
        if (is_over_) return;
        is_over_ = true;
        waiting_.clear();
        for (rank_t peer = 0; peer < size_; ++peer) {
            const link& to = at(peer);
            if (!to.is_told && !to.is_carried_for) continue;
            if (to.way != 0) say_over(peer, by(peer, to.way), number_);
            say_over(peer, peer, number_);
        }
    }

    Ways ways_{};
    int size_ = 1;
    rank_t self_ = 0;
    rank_t parent_ = no_rank;
    int children_ = 0;
    std::uint64_t number_ = 0;
    quiet_time quiet_{};
    aligned_vector<link> links_;
    aligned_vector<entry> waiting_;  ///< what is not acknowledged
    aligned_vector<letter> outbox_;
    aligned_vector<delivery_note> came_;  ///< what came before something that was sent earlier
    aligned_vector<rank_t> reported_;     ///< children that have said that all below them is complete
    bool is_leaving_ = false, has_reported_ = false, is_over_ = false;
    int detours_ = 0;
    int turns_ = 0;
    time_point asks_at_{};
    rank_t sought_ = no_rank;  ///< whom this rank waits for and does not hear
    time_point seeks_at_{};    ///< when it asks the others again
};

}}}  // namespace rill::RILL_ABI::detail
