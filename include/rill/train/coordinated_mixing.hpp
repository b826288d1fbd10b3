#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/coordinated.hpp>
#include <rill/train/decentralized.hpp>

#include <cstdint>
#include <memory>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A mixing that rank 0 coordinates, for `decentralized`: training goes on without workers that fail, and both models
/// of a pair are mixed or none.
///
///     train::decentralized{train::coordinated_mixing{fast, coordinated{.rounds = 1000}}, sgd, rate, mask}
///
/// A step that exchanges is a round of `gossip` with a coordinator. The run is over after the step of the last round,
/// or after the step after which all ranks call `end`. On a rank that is out a step throws `timeout`; the others go on.
/// A rank 0 that does not train makes no step of its own: its first one ends with the run. A record's traffic leaves
/// out the joining, which happens in the first step, and on rank 0 what it sends and receives as the coordinator.
///
/// Checkpoints: all ranks save between the same two steps, so rank 0 trains. `restore` ends the gossip that has begun,
/// if any, and begins another one, collectively: so all ranks live. Ranks that were out take part again. Pairs are then
/// those of a run in which all have taken part; links that exchanges have updated (`coordinated::link_weight`) begin as
/// they were given.
template <Mixing Mix>
struct coordinated_mixing {
    static constexpr const char* name = "coordinated_mixing";
    static constexpr bool is_doubly_stochastic = Mix::is_doubly_stochastic;
    static constexpr bool is_symmetric = Mix::is_symmetric;
    static constexpr bool keeps_neighbours = Mix::keeps_neighbours;

    Mix mixing{};
    coordinated by{};

    auto bind(int size, random_key key) const { return mixing.bind(size, key); }
    friend bool operator==(const coordinated_mixing&, const coordinated_mixing&) = default;
};

template <class M>
coordinated_mixing(M, coordinated) -> coordinated_mixing<M>;

namespace detail {

template <class Net, class Mix>
class mixing_session<Net, coordinated_mixing<Mix>> {
    using gossip_type = gossip<Net, rill::detail::with_coordinator<Mix>>;

  public:
    template <class Group>
    mixing_session(Group& workers, const coordinated_mixing<Mix>& mixing)
        : made_(make(workers, mixing)), contributes_(mixing.by.trains || workers.rank() != 0) {}

    gossip_type& models() { return *made_; }
    const gossip_type& models() const { return *made_; }

    bool contributes() const { return contributes_; }
    bool next() {
        has_begun_ = true;
        return made_->next();
    }
    /// All ranks call it between the same two rounds.
    void end() {
        made_->leave();
        while (has_begun_ && made_->next()) continue;
    }
    template <class Group>
    void resume_at(Group& workers, const coordinated_mixing<Mix>& mixing, std::uint64_t round) {
        if (has_begun_) {
            end();
            made_ = make(workers, mixing);
            has_begun_ = false;
        }
        made_->resume_at(round);
    }

  private:
    template <class Group>
    static std::unique_ptr<gossip_type> make(Group& workers, const coordinated_mixing<Mix>& mixing) {
        return std::make_unique<gossip_type>(workers, mixing.mixing, mixing.by);
    }

    std::unique_ptr<gossip_type> made_;
    bool contributes_;
    bool has_begun_ = false;
};

}  // namespace detail

}}}  // namespace rill::RILL_ABI::train
