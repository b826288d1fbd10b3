#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/detail/loans.hpp>
#include <rill/collective/detail/tensor_access.hpp>
#include <rill/collective/detail/transaction.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/concept/compressor.hpp>
#include <rill/concept/mixing.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/text.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/coordinator_machine.hpp>
#include <rill/protocol/detail/coordinator_service.hpp>
#include <rill/protocol/detail/exchange_links.hpp>
#include <rill/protocol/detail/exchanged_model.hpp>
#include <rill/protocol/detail/gossip_frames.hpp>
#include <rill/protocol/detail/gossip_requirements.hpp>
#include <rill/protocol/detail/model_memory.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/protocol/detail/service_run.hpp>
#include <rill/protocol/gossip.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Rank 0 coordinates a gossip: see `gossip` with a third argument.
struct coordinated {
    std::uint64_t rounds = 0;  ///< 0: until no worker takes part
    duration patience{};       ///< how long a worker may take for a round; 0: four times the group's timeout
    bool trains = true;        ///< whether rank 0 is a worker too
    /// How much the speed of an exchange counts in that of its link, from 0 to 1; 0: links stay as they were given.
    double link_weight = 0;

    friend bool operator==(const coordinated&, const coordinated&) = default;
};

/// A gossip with a coordinator, rank 0, which tells each worker in each round with whom to exchange. It goes on without
/// workers that fail, and mixes both models of a pair or none.
///
///     rill::gossip saps{workers, fast_links, rill::coordinated{}};
///     auto mask = rill::compress::random_mask{.density = 0.01}.bind(model.size());
///     while (saps.next()) {
///         descend(model);
///         saps.mix(model, mask);
///     }
///
/// The mixing must be one of pairs that exchange half and half (`topology::bandwidth_matching`, `random_matching`).
/// Only rank 0 asks it, so that only rank 0 needs its matcher; what other ranks pass is not looked at. Where its bound
/// object has `attend(rank, bool)`, ranks that do not take part are matched with nobody; else the one that is matched
/// with them keeps its model.
///
/// - *Both or none.* What a peer has sent waits; both ends report that they have it; the coordinator's next message,
///   which begins the next round, says whether both did. Only then the models are mixed. An exchange whose values do
///   not come within the group's timeout is skipped: `receipt.missing` names the peer. So while all ranks live and take
///   part, the sum of all models stays, whatever happens to messages.
/// - *Out.* A worker that has ended, or has not reported a round within `patience`, is out, and the others go on. If it
///   lives, its next call throws `timeout`, which names it. So does one that hears nothing of the coordinator for
///   `patience` and a timeout more. It has not heard whether its last exchange counts, and keeps its model; its peer
///   may have mixed. The same holds for workers that have not heard it when rank 0 ends.
/// - *Coming and going.* `leave` ends this rank's part between two rounds; `join` begins it anew, with the model of a
///   worker that the coordinator names.
/// - *The end* comes after `rounds` rounds, or when no worker takes part. Then `next` returns false; on rank 0 when all
///   workers have heard it, or have not said so within `patience`. If rank 0 ends, or destroys its gossip earlier, all
///   workers get an error that names it.
///
/// - *Links* stay as they were given, or follow what exchanges take: with a `link_weight` of w the speed of a link is
///   (1-w) times what it was and w times the bytes of both messages over the time of both. Latency is in it, and two
///   ways of a link that differ count by their mean. An exchange that was overdue at an end has taken the timeout
///   there. One does not count if an end found the values of the other waiting for it, which then was the slower one,
///   or has not reported. Where links are measured, pairs depend on times; in the simulator they are the same in each
///   run.
/// - *Going on.* `resume_at` begins with the round after so many, as saved with the models. Pairs are then those of a
///   run in which all have taken part and links were as they are given: `links()` are those that were measured.
///
/// The coordinator never sees a model. It and each worker exchange two headers per round, 192 bytes; what was lost is
/// repeated once in each timeout. It runs in a second activity of rank 0, or in the calling one's stead where rank 0
/// does not train: then `next` returns false at the end. Making it is collective; `workers` must outlive it. One
/// activity of a rank calls its members. Memory: the chosen values four times, and all of the model where a newcomer
/// gets it. A steady `mix` allocates nothing, but for the matcher of rank 0. Deterministic while nothing is skipped.
/// Source: SAPS-PSGD (Tang et al. 2020), algorithms 1 and 2; the mean of both replaces the peer's values of line 10,
/// and workers get their peer instead of the matrix.
template <class Net, class Mix>
class gossip<Net, detail::with_coordinator<Mix>> : detail::coordinated_requirements<Net, Mix> {
    static constexpr const char* name = "coordinated gossip";
    using bound = decltype(std::declval<const Mix&>().bind(1, random_key{}));
    static constexpr bool has_links = requires(bound& mixing) { mixing.observe(0, 0, 1.0, 1.0); };

  public:
    /// Errors: `mismatch` if the options differ; `contract_violation` from `mixing.bind` on rank 0, or if rank 0 trains
    /// and its transport's activities make no progress meanwhile (MPI below MPI_THREAD_MULTIPLE). The group's seed
    /// draws what is random.
    template <class Group>
    gossip(Group& workers, const Mix& mixing, const coordinated& options)
        : session_(workers.net(), name, workers.options().timeout, session_kind::open, workers.context()),
          options_(options),
          run_(workers.net()) {
        RILL_EXPECTS(!options.trains || std::as_const(workers.net()).activities_run_alone(),
                     "gossip: the transport's activities make no progress while rank 0 computes; a coordinator that "
                     "does not train can do without (coordinated{.trains = false})");
        const detail::coordinated_limits limits{
            .timeout = session_.timeout(),
            .patience = options.patience == duration{} ? session_.timeout() * 4 : options.patience,
            .rounds = options.rounds,
            .link_weight = detail::require_option(options.link_weight >= 0 && options.link_weight <= 1,
                                                  "gossip: link_weight", options.link_weight, "from 0 to 1"),
            .measures = options.link_weight > 0};
        RILL_EXPECTS(!limits.measures || has_links,
                     "gossip: the mixing has no links that exchanges could update; use "
                     "topology::bandwidth_matching, or a link_weight of 0");
        RILL_EXPECTS(limits.patience >= limits.timeout * 2,
                     "gossip: the coordinator's patience is at least twice the group's timeout");
        const random_key key = random_key{workers.options().seed}.derive(fingerprint("gossip"));
        const rank_t first = options.trains ? 0 : 1;
        if (session_.rank() >= first) links_.emplace(session_, limits);
        if (coordinates()) service_.emplace(session_, mixing.bind(session_.size(), key), first, key, limits);
        constexpr option_names names{
            {"number of rounds", "patience", "choice of whether rank 0 trains", "weight of an exchange's speed"}};
        agree(workers, names,
              {option_hash(options.rounds), option_hash(static_cast<std::uint64_t>(limits.patience.ns)),
               std::uint32_t{options.trains}, option_hash(std::bit_cast<std::uint64_t>(options.link_weight))});
    }
    gossip(const gossip&) = delete;
    gossip& operator=(const gossip&) = delete;
    ~gossip() {
        try {
            if (links_ && links_->machine().takes_part()) links_->leave();
        } catch (...) {  // the gossip has failed
        }
        try {
            if (coordinates() && run_.is_cut_short())
                session_.net().abort(service_->scene().of_self({", the coordinator, has left"}));
        } catch (...) {  // this rank has ended
        }
        run_.join();
    }

    /// Waits for this rank's next round. False: there is none.
    bool next() {
        session_.require_going();
        if (coordinates()) begin_to_serve();
        if (links_ && !has_joined_) {
            has_joined_ = true;
            session_.guarded(*links_, [&] { links_->join(false); });
        }
        if (links_) links_->require_part();
        if (links_ && links_->machine().takes_part()) return true;
        if (coordinates()) {
            run_.wait();
            run_.rethrow_failure();
        }
        return false;
    }

    /// Does the round with all of this rank's model. See `mix(model, codec)`.
    template <class Model>
    const round_receipt& mix(Model&& model) {
        static_assert(detail::require_gossip_model<Model>());
        auto all = compress::keep_all{}.template bind<tensor_element<Model>, std::uint64_t>(detail::size_of(model));
        return mix(model, all);
    }

    /// Does the round with what `codec` chooses of this rank's model, once after each `next`. Returns when this rank
    /// has its next order. The receipt lists whose models were mixed; or as `missing` the peer of an exchange that was
    /// skipped.
    ///
    /// Errors, after which the model is unchanged: `invalid_value` if a chosen value is not finite, which names rank
    /// and coordinate and is this rank's alone: it may mix again, or leave. `timeout`: this rank is out. `mismatch` if
    /// its peer has another dimension, element type or codec, which names both and ends the gossip; and whatever else
    /// has ended it.
    template <class Model, class Codec>
    const round_receipt& mix(Model&& model, Codec&& codec) {
        static_assert(detail::require_gossip_model<Model>());
        using T = tensor_element<Model>;
        if constexpr (detail::require_alike_codec<Codec&&, T>()) {
            RILL_EXPECTS(links_ && links_->machine().is_ordered(),
                         "gossip: call mix once after each next that is true");
            const auto loan =
                detail::lend(&codec, "gossip: the compressor is in another operation, which has not ended");
            session_.require_going();
            memory_.reset();
            const std::span<T> values = memory_.values_of(model);
            RILL_EXPECTS(values.size() == codec.dimension(), "gossip: the codec is bound to another dimension");
            exchange(values, codec);
            detail::deliver(std::span<const T>(values), model);
            links_->require_part();
        }
        return made_;
    }

    /// This rank takes part no more, until it joins again. Waits for nobody. After it a rank that was out has left:
    /// `next` returns false.
    void leave() {
        if (!links_ || !(links_->machine().takes_part() || links_->machine().is_out())) return;
        session_.guarded(*links_, [&] { links_->leave(); });
        has_joined_ = true;
    }
    /// After `leave`, or when this rank is out: takes part again from the next round on, with the model of another
    /// worker, which it writes to `model`. Returns whose model that is, or `no_rank` if the run is over.
    ///
    /// Errors: `mismatch` if the model has another size, which names both ranks and ends the gossip; `timeout` if no
    /// worker gives its model; `peer_failure` if rank 0 has ended, or `timeout` if it goes on with something else,
    /// after the run.
    template <class Model>
    rank_t join(Model&& model) {
        static_assert(detail::require_gossip_model<Model>());
        using T = tensor_element<Model>;
        RILL_EXPECTS(links_ && !links_->machine().takes_part(), "gossip: a rank joins once it has left or is out");
        session_.require_going();
        has_joined_ = true;
        if (coordinates()) {
            begin_to_serve();
            if (run_.is_over()) return run_.rethrow_failure(), no_rank;
        }
        session_.guarded(*links_, [&] { links_->join(true); });
        links_->require_part();
        if (links_->machine().is_over()) return no_rank;
        return session_.guarded(*links_, [&] {
            const auto given = links_->take_given();
            read_from(*links_, given.source(), [&] {
                frame_reader frames(given.pieces());
                const std::span<const T> values = detail::next_values<T>(frames);
                if (values.size() != detail::size_of(model))
                    links_->scene().fail(
                        failure::mismatch, session_.rank(), given.source(),
                        {"rank ", session_.rank(), " joins with a model of ", detail::size_of(model),
                         " values, and rank ", given.source(), ", which gives it its own, has ", values.size()});
                detail::write_tensor(values, model);
            });
            return given.source();
        });
    }

    /// Goes on as after so many rounds: all ranks at the same, before the first `next` or `join`. `rounds` counts from
    /// the very first round on.
    void resume_at(std::uint64_t round) {
        RILL_EXPECTS(!has_joined_ && !run_.has_begun(), "gossip: a rank resumes before its first round");
        if (links_) links_->resume_at(round);
        if (coordinates()) service_->resume_at(round);
    }
    /// On rank 0: the speeds of all links as it knows them, row by row, for `bandwidth_matching::links` of a later run.
    /// Between two rounds, or where rank 0 does not train, after the run.
    const std::vector<double>& links() const
        requires has_links
    {
        RILL_EXPECTS(coordinates(), "gossip: only rank 0, the coordinator, knows the links");
        return service_->mixing().links();
    }
    /// The number of the round that this rank is in.
    std::uint64_t round() const { return links_ ? links_->machine().order().round : 0; }
    /// What this rank and the coordinator have exchanged so far.
    traffic with_coordinator() const { return links_ ? links_->with_coordinator() : traffic{}; }

  private:
    bool coordinates() const { return session_.rank() == 0; }
    void begin_to_serve() {
        run_.begin([this] { session_.guarded(*service_, [&] { service_->run(); }); }, [] {});
    }

    template <class T, class Codec>
    void exchange(std::span<T> values, Codec& codec) {
        const detail::round_order order = links_->machine().order();
        detail::transaction attempt(
            codec,
            [&] {
                codec.begin(order.seed);
                return codec.encode(std::span<const T>(values));
            },
            true);
        const auto chosen = attempt.give();
        detail::require_finite(*links_, chosen.values(), std::span<const T>(values));
        detail::exchanged_values<Net, T, Codec, detail::exchange_links<Net>> exchanged(
            session_, *links_, codec, chosen, values, memory_.room<T>(chosen.count()));
        const time_point start = links_->now();
        const traffic before = links_->counted();
        session_.guarded(*links_, [&] { links_->exchange(exchanged); });
        if (links_->machine().has_mixed()) attempt.commit();
        write_receipt(order);
        made_.wire = links_->counted() - before;
        made_.elapsed = links_->now() - start;
    }
    void write_receipt(const detail::round_order& order) {
        const rank_t self = session_.rank();
        const bool has_mixed = links_->machine().has_mixed();
        made_.operation_number = order.round;
        made_.in.clear();
        made_.missing.clear();
        made_.in.push_back({.rank = self, .weight = has_mixed ? 0.5 : 1.0});
        if (has_mixed)
            made_.in.insert(order.peer < self ? made_.in.begin() : made_.in.end(), {.rank = order.peer, .weight = 0.5});
        if (!has_mixed && order.peer != no_rank) made_.missing.push_back(order.peer);
        made_.contributors = static_cast<int>(made_.in.size());
        made_.weight = 1;
        made_.rounds = 1;
    }

    session<Net> session_;
    coordinated options_;
    std::optional<detail::exchange_links<Net>> links_{};                ///< of a worker
    std::optional<detail::coordinator_service<Net, bound>> service_{};  ///< of rank 0
    detail::service_run<Net> run_;
    detail::model_memory memory_{};
    round_receipt made_{};
    bool has_joined_ = false;  ///< at some time
};

template <detail::MeantAsGroup Group, class Mix>
gossip(Group&, Mix, coordinated) -> gossip<typename Group::transport_type, detail::with_coordinator<Mix>>;
template <class Net, class Mix>
    requires(!detail::MeantAsGroup<Net>)
gossip(Net&, Mix, coordinated) -> gossip<detail::wrong_first, Mix>;

}}  // namespace rill::RILL_ABI
