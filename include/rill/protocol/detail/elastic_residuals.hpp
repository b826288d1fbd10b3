#pragma once

#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/detail/agreement_message.hpp>
#include <rill/protocol/detail/elastic_mail.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/protocol/elastic_options.hpp>
#include <rill/protocol/residuals.hpp>
#include <rill/session/session.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// The residual of a rank that is no member any more, and that no member has taken over.
struct lost_residual {
    rank_t rank = no_rank;
    /// Its Euclidean norm after the last step of which the members have been told it; of several codecs, that of their
    /// residuals together.
    double norm = 0;

    friend bool operator==(const lost_residual&, const lost_residual&) = default;
};

namespace detail {

/// A sum that no body of an attempt asks for, so that no call of a body is taken for the end of the step.
struct end_of_step : aggregate::sum {
    static constexpr const char* name = "the end of a step";
};

/// Residuals of error feedback in an elastic team: a rank that leaves hands its own to the next member, and all members
/// know the norms of each other's, to say what is lost when a rank dies. Ranks name their codecs in the same order.
template <class Net>
class elastic_residuals {
  public:
    elastic_residuals(Net& net, const elastic_options& options)
        : session_(net, "elastic residuals", options.timeout, session_kind::open),
          patience_(options.patience),
          taken_(static_cast<std::size_t>(net.size())) {}

    /// The codecs whose residuals are told to the others at the end of the next step.
    template <class... Codecs>
    void use(const Codecs&... codecs) {
        codecs_ = {{&codecs, norm_of<Codecs>}...};
    }

    /// Of a rank that has left. Returns whether the transport has taken the residuals. They come with the numbers of
    /// the ranks whose residuals this one has taken, so that the next member tells the others of these too.
    template <class... Codecs>
    bool give(const agreement_decision& last, const Codecs&... codecs) {
        if (!std::binary_search(last.left.begin(), last.left.end(), session_.rank())) return false;
        const rank_t next = next_after(session_.rank(), last.next);
        if (next == no_rank) return false;
        const channel on = session_.on(last.next.epoch);
        std::vector<std::int64_t> ranks;
        for (std::size_t rank = 0; rank < taken_.size(); ++rank)
            if (taken_[rank]) ranks.push_back(static_cast<std::int64_t>(rank));
        buffer message = room_for_residuals(codecs...);
        append_frame(message, {.kind = residual_kind, .context = on.context},
                     whole(std::span<const std::int64_t>(ranks)));
        return session_.net().post(next, on, residual_message(std::move(message), on.context, codecs...),
                                   now() + patience_);
    }
    /// Adds the residuals of those who have left by these decisions, where this rank was the next member.
    template <class... Codecs>
    void take(const std::vector<agreement_decision>& decisions, Codecs&... codecs) {
        for (const agreement_decision& each : decisions)
            for (const rank_t rank : each.left)
                if (next_after(rank, each.next) == session_.rank()) owed_.push_back({rank, each.next.epoch});
        while (!owed_.empty()) {
            const owed next = owed_.front();
            owed_.erase(owed_.begin());
            const auto got = session_.net().receive(next.rank, session_.on(next.epoch), now() + patience_);
            taken_[static_cast<std::size_t>(next.rank)] = false;
            if (!got) continue;
            frame_reader frames(got->pieces());
            const std::span<const std::int64_t> ranks = next_values<std::int64_t>(frames);
            add_residuals(frames, next.rank, session_.rank(), codecs...);
            taken_[static_cast<std::size_t>(next.rank)] = true;
            for (std::size_t rank = 0; rank < taken_.size(); ++rank)
                if (std::ranges::count(ranks, static_cast<std::int64_t>(rank)) != 0) taken_[rank] = true;
        }
    }

    /// Returns when all members have called it. Tells them the norm of this rank's residual, and which it has taken.
    template <class Group>
    void end_step(Group& workers, const view& members) {
        const std::size_t size = members.members.size();
        std::vector<std::int64_t> own(size + taken_.size()), told(own.size());
        own[static_cast<std::size_t>(workers.rank())] = std::bit_cast<std::int64_t>(norm());
        for (std::size_t rank = 0; rank < taken_.size(); ++rank) own[size + rank] = taken_[rank] ? 1 : 0;
        all_reduce(workers, own, told, end_of_step{});

        lost_.clear();
        for (const known& each : known_)
            if (each.norm > 0 && !lists(members, each.seat.rank, each.seat.incarnation) &&
                told[size + static_cast<std::size_t>(each.seat.rank)] == 0)
                lost_.push_back({each.seat.rank, each.norm});
        known_.clear();
        for (std::size_t i = 0; i < size; ++i) {
            const rank_t rank = members.members[i];
            known_.push_back({{rank, members.incarnations[i]}, std::bit_cast<double>(told[i])});
            taken_[static_cast<std::size_t>(rank)] = false;  // of a life that has ended
        }
    }
    /// What the latest step that has ended so has declared.
    const std::vector<lost_residual>& lost() const { return lost_; }
    void forget_lost() { lost_.clear(); }

  private:
    struct known {
        agreement_seat seat{};
        double norm = 0;
    };
    struct owed {
        rank_t rank = no_rank;
        std::uint32_t epoch = 0;  ///< of the view after it has left
    };
    struct codec_in_use {
        const void* codec;
        double (*norm_of)(const void*);
    };
    template <class Codec>
    static double norm_of(const void* codec) {
        return residual_norm(*static_cast<const Codec*>(codec));
    }
    double norm() const {
        double all = 0;
        for (const codec_in_use& each : codecs_) all = std::hypot(all, each.norm_of(each.codec));
        return all;
    }
    time_point now() const { return session_.net().now(); }
    /// `no_rank` if there are no members.
    static rank_t next_after(rank_t rank, const view& in) {
        if (in.members.empty()) return no_rank;
        const auto next = std::upper_bound(in.members.begin(), in.members.end(), rank);
        return next == in.members.end() ? in.members.front() : *next;
    }

    session<Net> session_;
    duration patience_;
    std::vector<codec_in_use> codecs_{};
    std::vector<known> known_{};  ///< what the members have told at the end of the latest step
    std::vector<bool> taken_;     ///< by rank: this rank has taken its residual since it was last a member
    std::vector<lost_residual> lost_{};
    std::vector<owed> owed_{};  ///< residuals that this rank has not taken yet
};

}  // namespace detail

}}  // namespace rill::RILL_ABI
