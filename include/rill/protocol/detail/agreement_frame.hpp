#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/agreement_message.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A message of an agreement, and in which life its sender is.
struct agreement_frame {
    std::uint64_t life = 0;
    agreement_message message{};
};

/// Writes numbers of 8 bytes, little-endian, and lists of them with their lengths.
class agreement_writer {
  public:
    void put(std::uint64_t number) {
        for (unsigned i = 0; i < 8; ++i) bytes_.push_back(static_cast<std::byte>((number >> (8 * i)) & 0xFFU));
    }
    void put(rank_t rank) { put(static_cast<std::uint64_t>(static_cast<std::uint32_t>(rank))); }
    void put(const agreement_ballot& ballot) {
        put(std::uint64_t{ballot.attempt});
        put(ballot.rank);
    }
    void put(const agreement_seat& seat) {
        put(seat.rank);
        put(seat.incarnation);
    }
    template <class T>
    void put(const std::vector<T>& list) {
        put(std::uint64_t{list.size()});
        for (const T& each : list) put(each);
    }
    buffer take() { return std::move(bytes_); }

  private:
    buffer bytes_;
};

/// Reads what `agreement_writer` has written. Throws `protocol_error` where the bytes end too early.
class agreement_reader {
  public:
    explicit agreement_reader(byte_view bytes) : bytes_(bytes) {}

    void get(std::uint64_t& number) {
        require(bytes_.size() - at_ >= 8, "it is too short");
        number = 0;
        for (unsigned i = 0; i < 8; ++i) number |= std::to_integer<std::uint64_t>(bytes_[at_++]) << (8 * i);
    }
    void get(std::uint32_t& number) {
        std::uint64_t wide = 0;
        get(wide);
        require(wide <= 0xFFFFFFFFU, "a number is too large");
        number = static_cast<std::uint32_t>(wide);
    }
    void get(rank_t& rank) {
        std::uint32_t number = 0;
        get(number);
        rank = static_cast<rank_t>(number);
    }
    void get(bool& flag) {
        std::uint64_t number = 0;
        get(number);
        require(number <= 1, "a flag is neither 0 nor 1");
        flag = number == 1;
    }
    void get(agreement_ballot& ballot) {
        get(ballot.attempt);
        get(ballot.rank);
    }
    void get(agreement_seat& seat) {
        get(seat.rank);
        get(seat.incarnation);
    }
    template <class T>
    void get(std::vector<T>& list) {
        std::uint64_t size = 0;
        get(size);
        require(size <= (bytes_.size() - at_) / 8, "it is too short");
        list.resize(static_cast<std::size_t>(size));
        for (T& each : list) get(each);
    }
    void end() const { require(at_ == bytes_.size(), "it is too long"); }

    static void require(bool holds, const char* what) {
        if (!holds) throw protocol_error(std::string("a message of an agreement: ") + what);
    }

  private:
    byte_view bytes_;
    std::size_t at_ = 0;
};

/// A view as it travels: the difference from another one, which is empty where the receiver may know none.
struct agreement_difference {
    std::uint64_t base = 0;              ///< `key_of` the other view
    std::vector<rank_t> gone{};          ///< its members that are not in the view, or in another life; ascending
    std::vector<agreement_seat> come{};  ///< members of the view that are not in the other one; ascending

    static std::uint64_t key_of(const view& other) { return other.members.empty() ? 0 : other.key("agreement"); }

    static agreement_difference between(const view& other, const view& next) {
        agreement_difference made{.base = key_of(other)};
        for (const rank_t rank : other.members)
            if (!lists(next, rank, life_in(other, rank))) made.gone.push_back(rank);
        for (const rank_t rank : next.members)
            if (!lists(other, rank, life_in(next, rank))) made.come.push_back({rank, life_in(next, rank)});
        return made;
    }
    /// Makes `next` of `other`. Throws `protocol_error` unless `between` makes this of the two.
    void apply(const view& other, view& next) const {
        constexpr const char* nonsense = "its view makes no sense";
        agreement_reader::require(std::is_sorted(gone.begin(), gone.end()), nonsense);
        std::vector<agreement_seat> seats = come;
        for (const rank_t rank : other.members)
            if (!std::binary_search(gone.begin(), gone.end(), rank)) seats.push_back({rank, life_in(other, rank)});
        std::sort(seats.begin(), seats.end());
        for (const agreement_seat& seat : seats) {
            next.members.push_back(seat.rank);
            next.incarnations.push_back(seat.incarnation);
        }
        const auto is_twice = std::adjacent_find(next.members.begin(), next.members.end()) != next.members.end();
        const agreement_difference again = between(other, next);
        agreement_reader::require(!is_twice && again.gone == gone && again.come == come, nonsense);
    }
};

/// "ragr" in eight bytes, and the version.
inline constexpr std::uint64_t agreement_magic = 0x0000000472676172U;

/// `base`: the view that the decision in the message ends. A member that knows it needs only the difference.
inline buffer to_message(const agreement_frame& frame, const view* base = nullptr) {
    const agreement_message& m = frame.message;
    const bool is_whole = base == nullptr || m.view_is == agreement_message::form::whole;
    const view nothing{};
    const agreement_difference view_of_value = agreement_difference::between(is_whole ? nothing : *base, m.value.next);
    agreement_writer to;
    for (const std::uint64_t number :
         {agreement_magic, frame.life, static_cast<std::uint64_t>(m.kind), std::uint64_t{m.epoch}, m.prepared,
          m.committed, std::uint64_t{m.leaves}, std::uint64_t{m.lacks}, m.build, m.lives})
        to.put(number);
    to.put(m.at);
    to.put(m.accepted_at);
    to.put(std::uint64_t{m.value.next.epoch});
    to.put(m.value.step);
    to.put(std::uint64_t{m.value.is_fruitless});
    to.put(std::uint64_t{m.value.is_parted});
    to.put(view_of_value.base);
    to.put(view_of_value.gone);
    to.put(view_of_value.come);
    to.put(m.value.unheard);
    to.put(m.value.left);
    to.put(m.others);
    to.put(m.ended);
    to.put(m.joins);
    return to.take();
}

/// Throws `protocol_error` unless the bytes are a message that makes sense among `seats` ranks. `known`: the receiver's
/// view. What is a difference from another one is `unread`.
inline agreement_frame read_agreement_frame(byte_view bytes, int seats, const view& known = {}) {
    agreement_reader from(bytes);
    agreement_frame frame;
    agreement_difference view_of_value;
    agreement_message& m = frame.message;
    std::uint64_t magic = 0, kind = 0;
    from.get(magic);
    agreement_reader::require(magic == agreement_magic, "it is none, or of another version");
    from.get(frame.life), from.get(kind), from.get(m.epoch), from.get(m.prepared), from.get(m.committed);
    agreement_reader::require(1 <= kind && kind <= static_cast<std::uint64_t>(agreement_message::what::finished),
                              "unknown kind");
    m.kind = static_cast<agreement_message::what>(kind);
    from.get(m.leaves), from.get(m.lacks), from.get(m.build), from.get(m.lives), from.get(m.at),
        from.get(m.accepted_at), from.get(m.value.next.epoch), from.get(m.value.step);
    from.get(m.value.is_fruitless), from.get(m.value.is_parted);
    from.get(view_of_value.base), from.get(view_of_value.gone), from.get(view_of_value.come);
    from.get(m.value.unheard), from.get(m.value.left), from.get(m.others), from.get(m.ended), from.get(m.joins);
    from.end();
    const auto are_ranks = [&](const std::vector<rank_t>& ranks) {
        return std::all_of(ranks.begin(), ranks.end(), [&](rank_t rank) { return 0 <= rank && rank < seats; });
    };
    const auto are_seats = [&](const std::vector<agreement_seat>& all) {
        return std::all_of(all.begin(), all.end(),
                           [&](const agreement_seat& seat) { return 0 <= seat.rank && seat.rank < seats; });
    };
    agreement_reader::require(are_ranks(view_of_value.gone) && are_seats(view_of_value.come) &&
                                  are_ranks(m.value.unheard) && are_ranks(m.value.left) && are_ranks(m.others) &&
                                  are_seats(m.joins),
                              "a rank is out of range");
    if (view_of_value.base == 0) {
        m.view_is = agreement_message::form::whole;
        view_of_value.apply({}, m.value.next);
    } else if (view_of_value.base == agreement_difference::key_of(known)) {
        agreement_reader::require(m.value.next.epoch == known.epoch + 1, "it ends another view");
        view_of_value.apply(known, m.value.next);
    } else {
        m.view_is = agreement_message::form::unread;
    }
    return frame;
}

}}}  // namespace rill::RILL_ABI::detail
