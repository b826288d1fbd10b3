#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/replica.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/protocol/detail/machine_host.hpp>
#include <rill/protocol/detail/model_shelf.hpp>
#include <rill/protocol/detail/pair_kind.hpp>
#include <rill/protocol/detail/pair_service.hpp>
#include <rill/protocol/detail/policy_state.hpp>
#include <rill/protocol/detail/push_queue.hpp>
#include <rill/protocol/detail/require_replica.hpp>
#include <rill/protocol/detail/service_run.hpp>
#include <rill/session/session.hpp>
#include <rill/topology/tree.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI {

/// A replica of which each rank has a model of its own, and averages it with that of one other rank at a time.
///
///     rill::pair_averaging replica{net, topology::bipartite{}, descent, model};
///     while (const auto held = replica.pull(model)) {
///         gradient_at(model, gradient);
///         replica.push(gradient, *held);
///     }
///
/// A second activity of each rank holds the model. It applies a gradient at once, to this rank's model alone. Then, if
/// the *pairing* lets this rank ask, it asks a partner, drawn at random, for an exchange: each tells the other its
/// model and goes half of the way to what the other has told. So the sum of all models stays, while gradients arrive.
/// Computing never stops for it. Gradients that arrive during an exchange are applied too, and one more exchange
/// follows for all of them. A partner that takes part in another exchange refuses, and the rank draws another, of
/// those that have not refused yet; if all have, it asks again after its next gradient. Models `Replica`, without one
/// model for all: see `newest`.
///
/// - *Update*: how a gradient moves this rank's model, to which it is a fold of weight 1.
/// - *Versions and rounds* count the moves of this rank's model: gradients and exchanges. Ages do so too.
/// - `pull` waits until this rank's own pushes have moved its model or were refused, and after `retire` or `end` until
///   the run has ended.
/// - *Retired* ranks answer, but are drawn no more by ranks that have heard of it. Once all have, their models stay as
///   they are.
/// - *The end*: a rank that has called `end` or has heard of it begins no more exchanges, and once all have retired
///   nobody does. Those under way are completed before `pull` returns nothing. The final model of a rank is its own;
///   the mean of all is what the ranks have found together.
///
/// A gradient with a NaN is refused, and its rank goes on. A rank that has died or was destroyed early is drawn no
/// more, and the others go on. So do two ranks of which one has waited `timeout` for the other in vain; the exchange
/// may then have moved one of the two models only, and the sum has changed. A rank that has lost at least half of the
/// ranks that live in this way, counting itself among these, is cut off: it alone throws `timeout`, which names one of
/// the links. Every other failure ends the run on all ranks. So does a model that is not finite: `invalid_value` names
/// its rank and the coordinate, before another rank has averaged with it.
///
/// Making it is collective; `net` must outlive it. A rank answers from its first `pull` on. One activity calls its
/// members. Cost of an exchange: two messages of N elements; where the partner may ask too, two short ones, and two
/// more for each refusal, of which there are at most P - 1. At the end: two short messages of each rank to each, and
/// two more where `end` follows on retired ranks. Memory: six models, and one gradient for each push that waits.
/// Deterministic where the order of arrival is. Source: AD-PSGD (Lian et al. 2018).
template <class Net, Element T, class Who, class Move>
class pair_averaging : detail::pair_requirements<Net, Who, Move, T> {
  public:
    using element_type = T;

    /// `first`: the model to begin with, equal on all ranks. `options`: of the session; timeout, seed of the draws.
    /// Errors: `mismatch` if policies or models differ.
    template <class Model>
    pair_averaging(Net& net, const Who& who, const Move& move, const Model& first, const group_options& options = {})
        : group_(net, topology::tree{}, named(options, net)),
          session_(net, name, options.timeout, session_kind::open, group_.context()),
          update_(move.template bind<T>(detail::size_of(first))),
          shelf_(net),
          pushes_(net),
          applied_(net),
          run_(net) {
        held_.values.resize(detail::size_of(first));
        detail::read_tensor(first, std::span<T>(held_.values));
        agree_on(who, move);
        service_.emplace(session_, who, random_key{options.seed}.derive(fingerprint(name)), *this,
                         std::span<const T>(held_.values));
    }
    pair_averaging(const pair_averaging&) = delete;
    pair_averaging& operator=(const pair_averaging&) = delete;
    ~pair_averaging() {
        try {
            begin_to_serve();
            detail::notify(session_, detail::pair_kind::leaves, detail::pair_kind::is_destroyed);
        } catch (...) {  // this rank has ended, or the run could not begin
        }
        run_.join();
    }

    /// Writes this rank's newest model to `model` and returns its version; see `Replica`.
    template <class Model>
    std::optional<held_version> pull(Model&& model) {
        static_assert(detail::require_replica_tensor<Model, T>());
        RILL_EXPECTS(detail::size_of(model) == held_.values.size(), "pair_averaging: the model has another size");
        begin_to_serve();
        while (known_ < pushes_.count() && applied_.pop(deadline::never)) ++known_;
        if (is_leaving()) run_.wait();
        const bool is_over = run_.is_over();
        if (is_over) run_.rethrow_failure();
        shelf_.take(held_, deadline::immediate);
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
        RILL_EXPECTS(detail::size_of(gradient) == held_.values.size(), "pair_averaging: the gradient has another size");
        RILL_EXPECTS(run_.has_begun() && held.version <= held_.number,
                     "pair_averaging: this version has not been pulled");
        RILL_EXPECTS(!is_leaving(), "pair_averaging: a rank pushes nothing after retire or end");
        pushes_.push(gradient, held.version);
        detail::notify(session_, detail::pair_kind::pushed, 0, pushes_.room_for_note());
    }

    /// What has become of a push that has not been told yet, in the order of pushes; empty if there is none.
    std::optional<push_fate> fate() { return pushes_.fate(run_); }

    /// This rank pushes no more, and answers the others. Once all ranks have retired, the run ends.
    void retire() { depart(detail::pair_kind::retires); }
    /// Ends the run on all ranks.
    void end() { depart(detail::pair_kind::ends); }

    /// This rank's final model: once the run has ended or failed.
    std::span<const T> newest() const {
        RILL_EXPECTS(run_.is_over(), "pair_averaging: newest is known once the run has ended");
        return std::as_const(*service_).model();
    }
    /// How often `newest()` has been moved.
    std::uint64_t version() const {
        RILL_EXPECTS(run_.is_over(), "pair_averaging: version is known once the run has ended");
        return version_;
    }

    /// Saves what this rank goes on from: its model and version, the state of its update, and how many partners it has
    /// drawn. Only once the run has ended; each rank saves its own. Pushes that have not moved the model are not saved.
    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        RILL_EXPECTS(run_.is_over(), "pair_averaging: it is saved once the run has ended");
        out.add(std::string(prefix) + "replica", state());
        out.add(std::string(prefix) + "model", std::as_const(*service_).model());
        detail::save_part(out, std::string(prefix) + "update", update_);
    }

    /// Goes on where the saved run had ended on this rank, before the first `pull`. Collective. `also()` reads what
    /// else a rank resumes. Throws on all ranks, and the run cannot begin, if the state of a rank does not fit: is that
    /// of another rank, of another number of ranks, or of an earlier or later run than that of others. Where the reader
    /// or `also` throws, or the state is of another rank, the others get `peer_failure` with its text. Where ranks have
    /// read states of runs that were resumed differently often, all throw `mismatch`; the models of several first runs
    /// are not told apart.
    template <class Reader, class Also = void (*)()>
    void restore(
        const Reader& in, std::string_view prefix, Also&& also = [] {}) {
        RILL_EXPECTS(!run_.has_begun(), "pair_averaging: it is restored before the first pull");
        run_.resume([&] { restore_from(in, prefix, also); });
    }

  private:
    static constexpr const char* name = "pair_averaging";
    friend class detail::pair_service<Net, T, Who, pair_averaging>;

    template <class Reader, class Also>
    void restore_from(const Reader& in, std::string_view prefix, Also& also) {
        saved_state saved{};
        auto model = held_.values;
        auto update = update_;
        const std::exception_ptr refused = detail::thrown_by([&] {
            also();
            in.read(std::string(prefix) + "replica", saved);
            in.read(std::string(prefix) + "model", model);
            detail::restore_part(in, std::string(prefix) + "update", update);
            require_place(saved);
        });
        detail::agree_on_state(group_, refused, saved.back());
        service_->resume(model, saved[3]);
        held_.values = std::move(model);
        update_ = std::move(update);
        version_ = held_.number = saved[2];
        runs_ = saved.back();
    }

    static group_options named(group_options options, const Net& net) {
        RILL_EXPECTS(net.activities_run_alone(),
                     "pair_averaging: the transport's activities make no progress while their rank computes (MPI "
                     "below MPI_THREAD_MULTIPLE)");
        options.name = name;
        return options;
    }
    void agree_on(const Who& who, const Move& move) {
        constexpr option_names names{{"pairing", "update", "first model"}};
        agree(group_, names,
              {option_hash(fingerprint(who)), option_hash(fingerprint_if_named(move)),
               option_hash(detail::hash_of(std::span<const T>(held_.values)))});
    }

    /// From the first `pull` on, so that a replica can be restored before.
    void begin_to_serve() {
        run_.begin([this] { session_.guarded(*service_, [&] { service_->run(); }); },
                   [this] {
                       applied_.close();
                       shelf_.close();
                   });
    }
    bool is_leaving() const { return leaves_ != detail::pair_kind::stays; }
    void depart(std::uint64_t how) {
        if (how <= leaves_) return;
        begin_to_serve();
        leaves_ = how;
        detail::notify(session_, detail::pair_kind::leaves, how);
    }

    /// Rank, number of ranks, version, draws, and how many runs have led to it, this one too.
    using saved_state = std::array<std::uint64_t, 5>;
    saved_state state() const {
        return {std::uint64_t(session_.rank()), std::uint64_t(session_.size()), version_, service_->draws(), runs_ + 1};
    }
    void require_place(const saved_state& saved) const {
        if (saved[0] == state()[0] && saved[1] == state()[1]) return;
        throw_error({.kind = failure::mismatch,
                     .culprit = session_.rank(),
                     .reason = text_of({name, ": rank ", session_.rank(), " of ", session_.size(),
                                        " goes on from the state of rank ", saved[0], " of ", saved[1]})});
    }

    // --- the service

    /// Applies what has been pushed.
    void take(std::span<T> model) {
        while (auto next = pushes_.next()) {
            try {
                pushes_.tell(take(*next, model));
            } catch (...) {
                pushes_.tell({.push = next->number, .what = push_fate::outcome::run_over});
                throw;
            }
            pushes_.release(std::move(next->values));
            applied_.push(next->number);
        }
    }
    push_fate take(const detail::pushed_gradient<T>& next, std::span<T> model) {
        if (next.not_finite)
            return {.push = next.number,
                    .what = push_fate::outcome::not_finite,
                    .round = version_,
                    .coordinate = *next.not_finite};
        const push_fate counted{.push = next.number,
                                .round = version_,
                                .weight = 1,
                                .age = static_cast<std::uint32_t>(version_ - next.version)};
        update_.apply(model, std::span<const T>(next.values), 1.0, version_);
        moved(model);
        return counted;
    }
    void moved(std::span<const T> model) { shelf_.put(++version_, model, {}); }

    group<Net, topology::tree> group_;  ///< which the ranks agree in
    session<Net> session_;
    detail::bound_to<Move, T> update_;
    std::uint64_t version_ = 0;
    std::uint64_t runs_ = 0;  ///< that it goes on from

    // Of the activity that computes.
    typename detail::model_shelf<Net, T>::version held_{};
    std::uint64_t known_ = 0;  ///< pushes that are known to have moved the model
    std::uint64_t leaves_ = detail::pair_kind::stays;

    // What passes between the two.
    detail::model_shelf<Net, T> shelf_;
    detail::push_queue<Net, T> pushes_;
    typename Net::template queue<std::uint64_t> applied_;
    std::optional<detail::pair_service<Net, T, Who, pair_averaging>> service_;
    detail::service_run<Net> run_;
};

// Arguments that it does not take.
template <detail::WrongCall Why, class T>
class pair_averaging<Why, T, T, T> {
    static_assert(
        !std::same_as<Why, detail::wrong_arguments>,
        "rill::pair_averaging: takes a transport, a pairing, an update and the first model, and group_options");
    static_assert(!std::same_as<Why, detail::wrong_first>,
                  "rill::pair_averaging: the first argument is a group; pass its transport, as in workers.net()");

  public:
    template <class... Any>
    explicit pair_averaging(Any&&...) {}
};

template <class Net, class Who, class Move, class Model>
    requires(!detail::MeantAsGroup<Net>)
pair_averaging(Net&, Who, Move, const Model&) -> pair_averaging<Net, tensor_element<Model>, Who, Move>;
template <class Net, class Who, class Move, class Model>
    requires(!detail::MeantAsGroup<Net>)
pair_averaging(Net&, Who, Move, const Model&, group_options) -> pair_averaging<Net, tensor_element<Model>, Who, Move>;
template <detail::MeantAsGroup Group, class... Policies>
pair_averaging(Group&, const Policies&...) -> pair_averaging<detail::wrong_first, float, float, float>;
template <class Net, class... Policies>
    requires(!detail::MeantAsGroup<Net> && sizeof...(Policies) != 3 && sizeof...(Policies) != 4)
pair_averaging(Net&, const Policies&...) -> pair_averaging<detail::wrong_arguments, float, float, float>;

}}  // namespace rill::RILL_ABI
