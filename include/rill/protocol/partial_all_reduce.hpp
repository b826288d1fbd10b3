#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/backlog.hpp>
#include <rill/concept/replica.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/protocol/detail/group_center.hpp>
#include <rill/protocol/detail/model_shelf.hpp>
#include <rill/protocol/detail/partial_table.hpp>
#include <rill/protocol/detail/piled_up.hpp>
#include <rill/protocol/detail/policy_state.hpp>
#include <rill/protocol/detail/push_queue.hpp>
#include <rill/protocol/detail/require_replica.hpp>
#include <rill/protocol/detail/round_starter.hpp>
#include <rill/protocol/detail/service_run.hpp>

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Gradients are sent as they are.
struct no_codec {
    static constexpr const char* name = "no_codec";

    template <class T>
    constexpr no_codec bind(std::size_t) const {
        return {};
    }
    friend constexpr bool operator==(no_codec, no_codec) = default;
};

/// `every`: after how many rounds a group meets the model that it shares with others.
struct through_options {
    std::uint64_t every = 1;
};

/// A replica whose ranks add their gradients up in rounds that do not wait for all of them.
///
///     rill::partial_all_reduce replica{workers, two_choices{2}, bounded{16}, linear_mean{}, descent, model};
///     while (const auto held = replica.pull(model)) {
///         gradient_at(model, gradient);
///         replica.push(gradient, *held);
///     }
///
/// Each rank computes in its own activity. Beside it a second activity of the rank exchanges, round after round: when
/// the *trigger* says so, all ranks join one `all_reduce` over the topology of `workers`, also those that have nothing
/// to contribute yet, with weight 0. The result moves the newest model (`Update`), by which all ranks have the same
/// model, bit for bit, after each round. Computing never stops for an exchange. Models `Replica`.
///
/// - *Trigger*: who must be ready for a round to start. A rank is ready when it has pushed something that no round has
///   taken. Ranks that the trigger asks tell the round's coordinator, which is drawn at random.
/// - *Staleness*: `accepts(age)`: whether a gradient still counts whose model is `age` rounds behind the newest; the
///   others are dropped. `may_lead(n)`: whether `pull` returns at once where this rank has pushed `n` gradients, at
///   least one, at the newest model; otherwise it waits for the next version.
/// - *Backlog*: how the gradients that a rank has pushed since its last contribution become one.
///
/// `through(center, …)` lets several such groups share one model: see there.
///
/// Gradients are never applied to the local model alone: that would count them twice. (RNA's workers do so.)
///
/// A gradient with a NaN counts with weight 0, and its rank goes on. Every other failure ends the run on all ranks with
/// one culprit: `pull` throws, and `newest()` gives the model of the last round that this rank has completed.
/// Destroying a replica before its run has ended ends the run on all ranks.
///
/// A codec (`compress`), given last, makes the exchange sparse or rounded; its residual stays with the rank.
///
/// Making it is collective; it makes a group of its own over the topology, options and executor of `workers`, which
/// may be used in between and must outlive it. A rank joins rounds from its first `pull` on. One activity calls its
/// members. It needs activities that make progress while the rank computes.
///
/// Cost of a round: an `all_reduce` of N elements, one of 2 P integers, and at most P - 1 + 2 q short messages, where q
/// ranks are asked. Between rounds no clock runs. Memory: six times the model, and one gradient for each push that
/// waits. Deterministic where the order of arrival is: the simulator replays bit for bit. Source: RNA (Yang et al.
/// 2020), section 3, and eager-SGD (Li et al. 2020) with the policies `majority` and `in_step`.
template <class Group, Element T, class Start, class Age, class Sum, class Move, class Codec = no_codec>
class partial_all_reduce
    : detail::partial_requirements<typename Group::transport_type, Start, Age, Sum, Move, T, Codec> {
    using Net = typename Group::transport_type;
    using group_type = group<Net, typename Group::topology_type, typename Group::executor_type>;

  public:
    using element_type = T;

    /// `first`: the model to begin with, equal on all ranks. Errors: `mismatch` if policies or models differ;
    /// `contract_violation` if a policy does not suit this many ranks.
    template <class Model>
    partial_all_reduce(Group& workers, const Start& start, const Age& age, const Sum& sum, const Move& move,
                       const Model& first, const Codec& codec = {})
        : group_(group_over(workers, start)),
          starter_(workers.net(), name, start, random_key{workers.options().seed}.derive(fingerprint(name)),
                   workers.options().timeout, workers.context(), group_.context()),
          piled_up_(sum, age),
          age_(age),
          update_(move.template bind<T>(detail::size_of(first))),
          codec_(codec.template bind<T>(detail::size_of(first))),
          model_(detail::size_of(first)),
          shelf_(workers.net()),
          pushes_(workers.net()),
          run_(workers.net()) {
        detail::read_tensor(first, std::span<T>(model_));
        own_.resize(model_.size());
        folded_.resize(model_.size());
        held_.values = model_;
        for (rank_t rank = 0; rank < workers.size(); ++rank) partakers_.push_back(rank);
        constexpr option_names names{{"trigger", "staleness", "backlog", "update", "first model"}};
        made_over(workers, [&] {
            return agree(
                group_, names,
                {option_hash(fingerprint(start)), option_hash(fingerprint(age)), option_hash(fingerprint(sum)),
                 option_hash(fingerprint_if_named(move)), option_hash(detail::hash_of(std::span<const T>(model_)))});
        });
    }
    partial_all_reduce(const partial_all_reduce&) = delete;
    partial_all_reduce& operator=(const partial_all_reduce&) = delete;
    ~partial_all_reduce() {
        if (run_.is_cut_short()) starter_.leave(" has destroyed its partial_all_reduce before the run had ended");
        run_.join();
    }

    /// Lets the group share a model with other groups, each of which runs rounds of its own: every `options.every`
    /// rounds, and after the last one, the rank that has started the round pushes to `center` what its group's rounds
    /// have changed since they met it last, pulls, and broadcasts the result, from which its group goes on. Computing
    /// goes on meanwhile.
    ///
    ///     rill::subgroup alike{net, rill::group_by_speed(net, step)};
    ///     rill::group workers{alike, topology::ring{}};
    ///     rill::partial_all_reduce replica{workers, two_choices{2}, bounded{16}, linear_mean{}, descent, model};
    ///     rill::parameter_server center{net, {.dedicated = false}, unbounded{}, aggregate::add{}, model};
    ///     replica.through(center, {.every = 4});
    ///     while (const auto held = replica.pull(model)) …
    ///     while (center.pull(model)) continue;  // the model of all groups, once all of them have ended
    ///
    /// `center`: a `Replica` of as many parameters, made of the same first model by all ranks of all groups, and by
    /// those that only serve it. Its update adds changes (`aggregate::add`); one that is a `RankedUpdate`, such as the
    /// paper's `aggregate::mean_of_latest`, is pushed models, always by the group's first rank. Its staleness is
    /// `unbounded`, since ranks that do not speak for their group push nothing. Until the run has ended it belongs to
    /// this replica, which then retires from it; once the center's run is ending, the group's ends too, at its next
    /// meeting, or without a round where it had ended before. The timeout of a parameter server must be longer than the
    /// ends of the groups are apart.
    ///
    /// Collective in the group, before the first `pull` and after `restore`. Cost of a meeting: a push and a pull of N
    /// elements on one rank, two broadcasts. Memory: two models more. Errors: `contract_violation` if `every` is 0, or
    /// if nobody has pushed to the center yet and its model is not the group's; `mismatch` if `every` differs. A group
    /// that fails leaves the others running: once its ranks have called `center.retire()`, they can pull the model of
    /// the others to the end. A group whose change is not finite fails so, with `invalid_value`, when it meets the
    /// center. If the center fails, each group does, and the error names the rank that met it. Source:
    /// RNA (Yang et al. 2020), section 4.
    template <class Center>
    void through(Center& center, const through_options& options) {
        static_assert(
            Replica<Center, T>,
            "rill::partial_all_reduce: what the groups share does not model Replica for the model's elements; "
            "use parameter_server (see rill/concept/replica.hpp)");
        RILL_EXPECTS(!run_.has_begun(), "partial_all_reduce: groups are joined before the first pull");
        detail::require_option(options.every >= 1, "partial_all_reduce: every", options.every, "at least 1",
                               group_.rank());
        constexpr option_names names{{"interval between meetings"}};
        agree(group_, names, {option_hash(options.every)});
        auto joined =
            std::make_unique<detail::group_center<group_type, Center, T>>(group_, center, std::span<const T>(model_));
        std::array<std::int32_t, 2> found{joined->began_elsewhere() ? 1 : 0, joined->is_over() ? 1 : 0};
        all_reduce(group_, found, found);
        RILL_EXPECTS(found[0] == 0, "partial_all_reduce: the center has another first model than the group");
        is_done_ = found[1] > 0;
        center_ = std::move(joined);
        every_ = options.every;
    }

    /// Writes the newest model to `model` and returns its version; see `Replica`.
    template <class Model>
    std::optional<held_version> pull(Model&& model) {
        static_assert(detail::require_replica_tensor<Model, T>());
        RILL_EXPECTS(detail::size_of(model) == model_.size(), "partial_all_reduce: the model has another size");
        begin_to_serve();
        adopt(deadline::immediate);
        while (must_wait() && adopt(deadline::never)) continue;
        const bool is_over = run_.is_over();
        if (is_over) run_.rethrow_failure();
        if (is_over) adopt(deadline::immediate);
        detail::write_tensor(std::span<const T>(held_.values), model);
        if (is_over) return std::nullopt;
        return held_version{held_.number};
    }

    /// Hands over a gradient that was computed at the model of `held`; see `Replica`. Copies it. Throws
    /// `contract_violation`, before anything is done, if its size is another one, if its version is above the newest
    /// that this rank has pulled, or after `retire` or `end`. Once the run has ended or failed, it counts nothing.
    template <class Gradient>
    void push(const Gradient& gradient, const held_version& held) {
        static_assert(detail::require_replica_tensor<Gradient, T>());
        RILL_EXPECTS(detail::size_of(gradient) == model_.size(), "partial_all_reduce: the gradient has another size");
        RILL_EXPECTS(run_.has_begun() && held.version <= held_.number,
                     "partial_all_reduce: this version has not been pulled");
        RILL_EXPECTS(!is_leaving_, "partial_all_reduce: a rank pushes nothing after retire or end");
        pushes_.push(gradient, held.version);
        if (held.version == held_.number) ++lead_;
        starter_.notify(detail::start_kind::pushed, pushes_.count() - 1, pushes_.room_for_note());
    }

    /// What has become of a push that has not been told yet, in any order; empty if there is none.
    std::optional<push_fate> fate() { return pushes_.fate(run_); }

    /// This rank pushes no more. Once all ranks have retired, the run ends.
    void retire() { depart(is_retiring_); }
    /// Ends the run on all ranks after the next round, which starts at once.
    void end() { depart(is_ending_); }

    /// What the round did that made the version which `pull` has given last: its contributors with weights and ages,
    /// its traffic and time. Empty before the first.
    const round_receipt& latest() const { return held_.made_by; }

    /// The newest model that this rank has, and its version: once the run has ended or failed. Not after a `restore`
    /// that has thrown, because then no run has begun.
    std::span<const T> newest() const {
        RILL_EXPECTS(run_.is_over(), "partial_all_reduce: newest is known once the run has ended");
        return model_;
    }
    /// How many rounds `newest()` has behind it, also those in which nobody contributed and which moved nothing. The
    /// last round often is such a one.
    std::uint64_t version() const {
        RILL_EXPECTS(run_.is_over(), "partial_all_reduce: version is known once the run has ended");
        return version_;
    }

    /// Saves what the next round depends on: the newest model, its version, the state of the update and of the codec.
    /// Only once the run has ended, because only then all ranks have the same version. Pushes that no round has taken
    /// are not saved; `fate` tells them.
    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        RILL_EXPECTS(run_.is_over(), "partial_all_reduce: it is saved once the run has ended");
        out.add(std::string(prefix) + "replica", std::array{version_, group_.operation_number()});
        out.add(std::string(prefix) + "model", model_);
        detail::save_part(out, std::string(prefix) + "update", update_);
        detail::save_part(out, std::string(prefix) + "codec", codec_);
    }

    /// Goes on where the saved run had ended, before the first `pull`. Collective. `also()` reads what else a rank
    /// resumes. Throws on all ranks, and the run cannot begin, if the state of a rank does not fit: on that rank what
    /// the reader or `also` throws, elsewhere `peer_failure` with its text. Where ranks have read states of different
    /// runs, all throw `mismatch`.
    template <class Reader, class Also = void (*)()>
    void restore(
        const Reader& in, std::string_view prefix, Also&& also = [] {}) {
        RILL_EXPECTS(!run_.has_begun() && !center_,
                     "partial_all_reduce: it is restored before the first pull and before through");
        run_.resume([&] { restore_from(in, prefix, also); });
    }

  private:
    static constexpr const char* name = "partial_all_reduce";

    template <class Reader, class Also>
    void restore_from(const Reader& in, std::string_view prefix, Also& also) {
        std::array<std::uint64_t, 2> saved{};
        auto model = model_;
        auto update = update_;
        const std::exception_ptr refused = detail::thrown_by([&] {
            also();
            in.read(std::string(prefix) + "replica", saved);
            in.read(std::string(prefix) + "model", model);
            detail::restore_part(in, std::string(prefix) + "update", update);
            detail::restore_part(in, std::string(prefix) + "codec", codec_);
        });
        detail::state_hash moves_alike;
        detail::save_part(moves_alike, "update", update);
        detail::agree_on_state(
            group_, refused,
            mix64(saved[0], saved[1], detail::hash_of(std::span<const T>(model)), moves_alike.value()));
        model_ = held_.values = std::move(model);
        update_ = std::move(update);
        version_ = held_.number = saved[0];
        group_.resume_at(saved[1]);
    }

    /// Runs `make()`. If it fails after `workers` has failed, the failure is that of `workers`, whose notice may still
    /// be on its way: the ranks that had noticed it are missing.
    template <class Make>
    static auto made_over(Group& workers, Make&& make) {
        try {
            return make();
        } catch (const error&) {
            detail::require_ground(detail::witnesses(workers.net()), workers.context(), workers.rank(),
                                   workers.options().timeout / 8, workers.context());
            throw;
        }
    }
    static group_type group_over(Group& workers, const Start& start) {
        return made_over(workers, [&] {
            return group_type(workers.net(), workers.shape(), options_of(workers, start), workers.executor());
        });
    }
    static group_options options_of(const Group& workers, const Start& start) {
        if constexpr (requires { start.require_options(1, rank_t{0}); })
            start.require_options(workers.size(), workers.rank());
        RILL_EXPECTS(std::as_const(workers.net()).activities_run_alone(),
                     "partial_all_reduce: the transport's activities make no progress while their rank computes (MPI "
                     "below MPI_THREAD_MULTIPLE)");
        group_options own = workers.options();
        own.name = name;
        return own;
    }

    // --- the activity that computes

    /// From the first `pull` on, so that a replica can be restored before.
    void begin_to_serve() {
        run_.begin([this] { serve(); }, [this] { shelf_.close(); });
    }

    /// Goes on to the newest version, for which it waits until `until`. False if there is none.
    bool adopt(deadline until) {
        const std::uint64_t before = held_.number;
        const bool is_new = shelf_.take(held_, until);
        if (held_.number != before) lead_ = 0;
        return is_new;
    }

    bool must_wait() const { return is_leaving_ || (lead_ > 0 && !age_.may_lead(lead_)); }

    void depart(std::atomic<bool>& how) {
        if (is_leaving_ && how) return;
        begin_to_serve();
        is_leaving_ = true;
        how = true;
        starter_.notify(detail::start_kind::urged, wish().count() - 1);
    }

    // --- the service

    void serve() {
        try {
            starter_.guarded([&] {
                while (!is_done_) round();
                if (center_) center_->leave();
            });
        } catch (...) {
            for (const push_fate& fate : told_) pushes_.tell({.push = fate.push, .what = push_fate::outcome::run_over});
            piled_up_.drop([&](const push_fate& fate) { pushes_.tell(fate); });
            throw;
        }
    }

    void round() {
        collect();
        starter_.await(version_, partakers_,
                       {.has_contribution = !piled_up_.empty(),
                        .is_urgent = wish().count() > told_wish_.count(),
                        .pushes_seen = pushes_seen_,
                        .urges_seen = told_wish_.count()},
                       group_.operation_number());
        told_wish_ = wish();  // before it looks: what was pushed before `retire` or `end` is in the round that tells it
        collect();
        const contribution own = piled_up_.take(
            version_, own_, [&](const push_fate& fate) { told_.push_back(fate); },
            [&](aligned_vector<T>&& room) { pushes_.release(std::move(room)); });
        exchange_with(own);
        ++version_;
        for (const push_fate& fate : told_) pushes_.tell(fate);
        told_.clear();
        if (center_ && (is_done_ || version_ % every_ == 0))
            is_done_ |= !center_->meet(starter_.coordinator(), std::span<T>(model_));
        shelf_.put(version_, model_, made_);
    }

    void exchange_with(const contribution& own) {
        table_.begin(group_.size(), group_.rank(), own, told_wish_);
        all_reduce(group_, table_.numbers(), table_.numbers());
        const receipt done = fold(own);
        if (done.weight > 0) update_.apply(std::span(model_), std::span<const T>(folded_), done.weight, version_);
        std::erase_if(partakers_, [&](rank_t rank) { return table_.retires(rank); });
        is_done_ = table_.has_end() || partakers_.empty();
        static_cast<receipt&>(made_) = done;
        table_.contributors(made_.in);
    }

    receipt fold(const contribution& own) {
        using fold_type = typename Move::fold_type;
        if constexpr (std::same_as<Codec, no_codec>)
            return all_reduce(group_, std::as_const(own_), folded_, fold_type{}, own);
        else
            return all_reduce(group_, std::as_const(own_), folded_, codec_, fold_type{}, own);
    }

    /// Takes over what has been pushed.
    void collect() {
        while (auto next = pushes_.next()) {
            pushes_seen_ = next->number + 1;
            piled_up_.add(std::move(*next));
        }
    }

    detail::departure_wish wish() const { return {.retires = is_retiring_, .ends = is_ending_}; }

    group_type group_;
    detail::round_starter<Net, Start> starter_;
    detail::piled_up<T, Sum, Age> piled_up_;
    Age age_;
    detail::bound_to<Move, T> update_;
    [[no_unique_address]] detail::bound_to<Codec, T> codec_;
    detail::partial_table table_;
    aligned_vector<T> model_;
    aligned_vector<T> own_;
    aligned_vector<T> folded_;
    std::vector<rank_t> partakers_;  ///< the ranks that have not retired, ascending
    std::vector<push_fate> told_;    ///< the fates of the round under way
    round_receipt made_{};           ///< what the latest round did
    std::uint64_t version_ = 0;      ///< how many rounds there were
    std::uint64_t pushes_seen_ = 0;
    detail::departure_wish told_wish_{};  ///< what the others know of this rank's wish to leave
    bool is_done_ = false;
    std::unique_ptr<detail::shared_center<T>> center_{};
    std::uint64_t every_ = 1;  ///< rounds between meetings at the center

    // Of the activity that computes.
    typename detail::model_shelf<Net, T>::version held_{};
    std::uint32_t lead_ = 0;  ///< pushes at the version held
    bool is_leaving_ = false;

    // What passes between the two.
    detail::model_shelf<Net, T> shelf_;
    detail::push_queue<Net, T> pushes_;
    std::atomic<bool> is_retiring_{false};
    std::atomic<bool> is_ending_{false};
    detail::service_run<Net> run_;
};

// Arguments that it does not take.
template <detail::WrongCall Why, class T>
class partial_all_reduce<Why, T, T, T, T, T, no_codec> {
    static_assert(!std::same_as<Why, detail::wrong_arguments>,
                  "rill::partial_all_reduce: takes a group, a trigger, a staleness, a backlog, an update and the first "
                  "model, and a compressor if the exchange is to be sparse or rounded");
    static_assert(!std::same_as<Why, detail::wrong_first>,
                  "rill::partial_all_reduce: the first argument is not a group; make one of transport and topology, as "
                  "in `rill::group workers{net, rill::topology::ring{}};`, and pass that");

  public:
    template <class... Any>
    explicit partial_all_reduce(Any&&...) {}
};

template <detail::MeantAsGroup Group, class Start, class Age, class Sum, class Move, class Model>
partial_all_reduce(Group&, Start, Age, Sum, Move, const Model&)
    -> partial_all_reduce<Group, tensor_element<Model>, Start, Age, Sum, Move>;
template <detail::MeantAsGroup Group, class Start, class Age, class Sum, class Move, class Model, class Codec>
partial_all_reduce(Group&, Start, Age, Sum, Move, const Model&, Codec)
    -> partial_all_reduce<Group, tensor_element<Model>, Start, Age, Sum, Move, Codec>;
template <class Net, class... Policies>
    requires(!detail::MeantAsGroup<Net>)
partial_all_reduce(Net&, const Policies&...)
    -> partial_all_reduce<detail::wrong_first, float, float, float, float, float>;
template <detail::MeantAsGroup Group, class... Policies>
    requires(sizeof...(Policies) != 5 && sizeof...(Policies) != 6)
partial_all_reduce(Group&, const Policies&...)
    -> partial_all_reduce<detail::wrong_arguments, float, float, float, float, float>;

}}  // namespace rill::RILL_ABI
