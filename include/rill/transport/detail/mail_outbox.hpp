#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/mail_storage.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// The memory where a note is composed, and stays until the port has sent it.
template <class Request>
struct parcel {
    explicit parcel(std::size_t payload) : bytes(lead + sizeof(envelope) + payload) {}

    std::byte* head() const { return bytes.data() + lead; }
    std::byte* payload() const { return head() + sizeof(envelope); }
    std::size_t capacity() const { return bytes.size() - lead - sizeof(envelope); }

    static constexpr std::size_t lead = storage::alignment - sizeof(envelope);  ///< so that payloads are aligned
    storage bytes;
    Request request{};
    rank_t peer = no_rank;
};

/// The notes that the port is sending. No endpoint owns them, because the port may need them longer than the endpoint
/// lives.
template <class Port>
class parcels {
  public:
    using parcel = mail::parcel<typename Port::request>;

    explicit parcels(Port& through) : through_(through), flying_to_(static_cast<std::size_t>(through.size())) {}

    /// Sets the largest payload from now on. Notes of an earlier endpoint may still be on their way.
    void set_capacity(std::size_t payload) {
        if (payload == capacity_) return;
        capacity_ = payload;
        large_.clear();
    }

    parcel& compose(std::size_t payload) {
        auto& spare = payload <= small ? small_ : large_;
        if (spare.empty()) spare.push_back(std::make_unique<parcel>(payload <= small ? small : capacity_));
        return *spare.back();
    }

    /// Sends the note that `compose(head.size)` returned last.
    void send(const envelope& head, rank_t peer) {
        auto& spare = head.size <= small ? small_ : large_;
        parcel& sent = *spare.back();
        std::memcpy(sent.head(), &head, sizeof head);
        sent.request = through_.send_note(sent.head(), sizeof head + head.size, peer);
        sent.peer = peer;
        if (through_.is_complete(sent.request)) return;
        ++count_to(peer);
        flying_.push_back(std::move(spare.back()));
        spare.pop_back();
    }

    bool any_flying() const { return !flying_.empty(); }
    int flying_to(rank_t peer) const { return flying_to_[static_cast<std::size_t>(peer)]; }

    /// Tests all notes; true when the port has finished sending one.
    bool progress() {
        const std::size_t before = flying_.size();
        for (std::size_t i = 0; i < flying_.size();) {
            if (!through_.is_complete(flying_[i]->request)) {
                ++i;
                continue;
            }
            --count_to(flying_[i]->peer);
            std::swap(flying_[i], flying_.back());
            keep(std::move(flying_.back()));
            flying_.pop_back();
        }
        return flying_.size() != before;
    }

    /// Called when the port ends: leaks the memory that it may still use.
    void abandon() noexcept {
        for (auto& each : flying_) {
            if (!through_.abandon(each->request)) each->bytes.leak();
        }
        flying_.clear();
    }

  private:
    static constexpr std::size_t small = 448;

    int& count_to(rank_t peer) { return flying_to_[static_cast<std::size_t>(peer)]; }

    void keep(std::unique_ptr<parcel> landed) {
        const std::size_t capacity = landed->capacity();
        if (capacity == small)
            small_.push_back(std::move(landed));
        else if (capacity == capacity_)
            large_.push_back(std::move(landed));
    }

    Port& through_;
    std::size_t capacity_ = 0;
    std::vector<std::unique_ptr<parcel>> small_, large_, flying_;
    std::vector<int> flying_to_;
};

/// A large message that waits at its sender, or is being sent. No later message has its id. Of a message that is sent
/// unasked, `begun` bytes have been copied into notes.
template <class Request>
struct outgoing {
    std::uint64_t id = 0;
    rank_t peer = no_rank;
    byte_pieces pieces{};
    buffer owned{};
    bool is_open = false;
    bool is_moving = false;
    bool is_unasked = false;
    std::size_t begun = 0;
    std::vector<Request> requests{};
};

/// What this rank sends and the library below still needs, with the messages that wait to be asked for.
template <class Request>
class outbox {
  public:
    using outgoing = mail::outgoing<Request>;

    outgoing& open(rank_t peer) {
        if (free_.empty()) {
            free_.push_back(records_.size());
            records_.push_back(std::make_unique<outgoing>());
            records_.back()->id = records_.size() - 1;
            free_.reserve(records_.size());
        }
        outgoing& opened = *records_[free_.back()];
        free_.pop_back();
        opened.id += std::uint64_t{1} << 32;
        opened.peer = peer;
        opened.is_open = true;
        opened.is_moving = opened.is_unasked = false;
        return opened;
    }

    /// The message with an id; null once it is done, withdrawn or dropped.
    outgoing* find(std::uint64_t id) const {
        const std::size_t index = id & 0xFFFF'FFFFU;
        if (index >= records_.size() || records_[index]->id != id || !records_[index]->is_open) return nullptr;
        return records_[index].get();
    }

    void close(outgoing& done) noexcept {
        done.is_open = false;
        done.requests.clear();
        buffer().swap(done.owned);
        free_.push_back(done.id & 0xFFFF'FFFFU);
    }

    template <class Visit>
    void for_each_open(Visit visit) {
        for (auto& each : records_)
            if (each->is_open) visit(*each);
    }

  private:
    std::vector<std::unique_ptr<outgoing>> records_;
    std::vector<std::size_t> free_;
};

}}}  // namespace rill::RILL_ABI::mail
