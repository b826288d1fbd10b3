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

/// "ragr" in eight bytes, and the version.
inline constexpr std::uint64_t agreement_magic = 0x0000000372676172U;

inline buffer to_message(const agreement_frame& frame) {
    const agreement_message& m = frame.message;
    agreement_writer to;
    for (const std::uint64_t number :
         {agreement_magic, frame.life, static_cast<std::uint64_t>(m.kind), std::uint64_t{m.epoch}, m.prepared,
          m.committed, std::uint64_t{m.leaves}, std::uint64_t{m.lacks}, m.build})
        to.put(number);
    to.put(m.at);
    to.put(m.accepted_at);
    to.put(std::uint64_t{m.value.next.epoch});
    to.put(m.value.step);
    to.put(std::uint64_t{m.value.is_fruitless});
    to.put(std::uint64_t{m.value.is_parted});
    to.put(m.value.next.members);
    to.put(m.value.next.incarnations);
    to.put(m.value.unheard);
    to.put(m.value.left);
    to.put(m.others);
    to.put(m.ended);
    to.put(m.joins);
    return to.take();
}

/// Throws `protocol_error` unless the bytes are a message that makes sense among `seats` ranks.
inline agreement_frame read_agreement_frame(byte_view bytes, int seats) {
    agreement_reader from(bytes);
    agreement_frame frame;
    agreement_message& m = frame.message;
    std::uint64_t magic = 0, kind = 0;
    from.get(magic);
    agreement_reader::require(magic == agreement_magic, "it is none, or of another version");
    from.get(frame.life), from.get(kind), from.get(m.epoch), from.get(m.prepared), from.get(m.committed);
    agreement_reader::require(1 <= kind && kind <= static_cast<std::uint64_t>(agreement_message::what::finished),
                              "unknown kind");
    m.kind = static_cast<agreement_message::what>(kind);
    from.get(m.leaves), from.get(m.lacks), from.get(m.build), from.get(m.at), from.get(m.accepted_at),
        from.get(m.value.next.epoch), from.get(m.value.step);
    from.get(m.value.is_fruitless), from.get(m.value.is_parted);
    from.get(m.value.next.members), from.get(m.value.next.incarnations);
    from.get(m.value.unheard), from.get(m.value.left), from.get(m.others), from.get(m.ended), from.get(m.joins);
    from.end();
    const auto& members = m.value.next.members;
    const auto is_rank = [&](rank_t rank) { return 0 <= rank && rank < seats; };
    agreement_reader::require(
        std::all_of(members.begin(), members.end(), is_rank) &&
            std::all_of(m.value.unheard.begin(), m.value.unheard.end(), is_rank) &&
            std::all_of(m.value.left.begin(), m.value.left.end(), is_rank) &&
            std::all_of(m.others.begin(), m.others.end(), is_rank) &&
            std::all_of(m.joins.begin(), m.joins.end(), [&](const agreement_seat& seat) { return is_rank(seat.rank); }),
        "a rank is out of range");
    agreement_reader::require(std::adjacent_find(members.begin(), members.end(),
                                                 [](rank_t a, rank_t b) { return a >= b; }) == members.end() &&
                                  members.size() == m.value.next.incarnations.size(),
                              "its view makes no sense");
    return frame;
}

}}}  // namespace rill::RILL_ABI::detail
