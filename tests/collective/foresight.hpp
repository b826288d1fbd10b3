// Transports that ask for messages of a given size, and that receive expected messages into their places.
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/subgroup.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace foresight {

using namespace rill;

/// All ranks of a transport, as one that asks for messages of some size.
template <class Net>
class choosy : public subgroup<Net> {
  public:
    choosy(Net& net, std::size_t wanted) : subgroup<Net>(net, view::all(net)), wanted_(wanted) {}
    std::size_t chunk_bytes() const { return wanted_; }

  private:
    std::size_t wanted_;
};

/// A `choosy` transport that receives expected messages into the places given for them. One thread uses it at a time.
template <class Net>
class foreseeing : public choosy<Net> {
    using base = choosy<Net>;

  public:
    class message {
      public:
        message(typename base::message&& inner, const byte_pieces& pieces)
            : inner_(std::move(inner)), pieces_(pieces) {}
        rank_t source() const { return inner_.source(); }
        byte_pieces pieces() const { return pieces_; }

      private:
        typename base::message inner_;
        byte_pieces pieces_;
    };

    using base::base;

    void expect(rank_t peer, channel on, std::span<const byte_span> targets) {
        expected_.push_back({peer, on, {targets.begin(), targets.end()}});
        ++expected;
        if (!targets.empty()) ++placed;
    }
    void forget(channel) noexcept {
        forgotten += static_cast<int>(expected_.size());
        expected_.clear();
    }

    std::optional<message> receive(rank_t peer, channel on, deadline until) {
        return foresee(on, base::receive(peer, on, until));
    }
    std::optional<message> receive(std::span<const rank_t> peers, channel on, deadline until) {
        return foresee(on, base::receive(peers, on, until));
    }
    std::optional<message> receive_latest(std::span<const rank_t> peers, channel on, deadline until) {
        return foresee(on, base::receive_latest(peers, on, until));
    }

    int expected = 0;
    int placed = 0;     ///< messages for which there was a place
    int forgotten = 0;  ///< messages that were expected and not received

  private:
    struct expectation {
        rank_t peer;
        channel on;
        std::vector<byte_span> targets;
    };

    std::optional<message> foresee(channel on, std::optional<typename base::message> received) {
        if (!received) return std::nullopt;
        byte_pieces pieces = received->pieces();
        const auto found = std::find_if(expected_.begin(), expected_.end(), [&](const expectation& e) {
            return e.peer == received->source() && e.on == on;
        });
        if (found != expected_.end()) {
            if (!found->targets.empty()) pieces = put(pieces, found->targets);
            expected_.erase(found);
        }
        return message(std::move(*received), pieces);
    }

    static byte_pieces put(const byte_pieces& from, const std::vector<byte_span>& targets) {
        byte_pieces placed;
        REQUIRE(from.count() == targets.size());
        for (std::size_t i = 0; i < targets.size(); ++i) {
            REQUIRE(from[i].size() == targets[i].size());
            std::memcpy(targets[i].data(), from[i].data(), from[i].size());
            placed.push(targets[i]);
        }
        return placed;
    }

    std::vector<expectation> expected_;
};
}  // namespace foresight
