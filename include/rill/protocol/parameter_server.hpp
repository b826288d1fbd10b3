#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/detail/tensor_access.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/replica.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/concept/update.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/protocol/detail/policy_state.hpp>
#include <rill/protocol/detail/require_replica.hpp>
#include <rill/protocol/detail/server_kind.hpp>
#include <rill/protocol/detail/server_worker.hpp>
#include <rill/protocol/detail/shard_service.hpp>
#include <rill/protocol/server_options.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>
#include <rill/topology/tree.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// A replica whose model lies in parts on some ranks, the servers, and moves with every push of every worker.
///
///     rill::parameter_server replica{net, {.servers = 2}, bounded{3}, descent, model};
///     while (const auto held = replica.pull(model)) {  // a dedicated server's serves until the run is over
///         gradient_at(model, gradient);
///         replica.push(gradient, *held);
///     }
///
/// The servers are the last ranks; server i of S holds part `split(N, S, i)`. Dedicated ones do nothing else: their
/// first `pull` serves until the run is over. Others serve in a second activity beside their work. Each push is applied
/// once on each server, the pushes of one worker in its order; between workers arrival decides. A worker sees its own
/// pushes. Models `Replica`.
///
/// - *Staleness*: a worker's clock is the number of its pushes. `pull` waits until `may_lead` lets it lead the slowest
///   worker: with `bounded{s}` at clock c until all other clocks are at least c - s (SSP); with `unbounded` never
///   (BAP).
/// - *Update*: how one push moves the model: an `Update`, to which it is a fold of weight 1, or a `RankedUpdate`.
/// - *Versions and rounds* count the pushes that have moved the first server's part; so do the ages of fates.
/// - *Keys*: `pull(keys, values)` and `push(stream, held)` send only these coordinates.
/// - *The end*: once one rank has called `end`, or all have retired, `pull` returns nothing, and the model that it
///   writes is the same on all workers: all that was pushed is in it.
///
/// A push with a NaN counts as nothing but moves the clock. A worker that is destroyed early retires: its destructor
/// waits, until the timeout at most, until the servers' mailboxes have room for what it has pushed. If a worker dies,
/// nobody waits for it under `unbounded`; where the staleness makes a `pull` wait for it, that throws and names it: at
/// the timeout, or at once on a `MonitoredTransport`. After `give_up(rank)` the others go on. Only for these errors
/// `pull` may be called again. Every other failure, the end of a server among them, ends the run on all ranks with one
/// culprit. Of a worker that has died or been given up, the last pushes may be on some servers only.
///
/// Making it is collective. One activity calls its members; `net` must outlive it. `push` copies; what finds no room in
/// a server's mailbox is sent by the next call. Cost of a pull or push: a message to each server, of a frame and its
/// part of the N values or of the keys; a pull has as many answers. Memory: the model once on the servers and twice on
/// each worker, once more during a call and after the end. Deterministic where the order of arrival is: the simulator
/// replays bit for bit. Source: Ho et al. 2013 (SSP); Li et al. 2014 (parts, keys).
template <class Net, Element T, class Age, class Move>
class parameter_server : detail::server_requirements<Net, Age, Move, T> {
  public:
    using element_type = T;
    using update_type = Move;

    /// `first`: the model to begin with, equal on all ranks. Errors: `contract_violation` if the options do not suit
    /// this many ranks; `mismatch` if options, policies or models differ.
    template <class Model>
    parameter_server(Net& net, const server_options& options, const Age& age, const Move& move, const Model& first)
        : options_(checked(net, options)),
          group_(net, topology::tree{}, {.timeout = options.timeout, .name = name}),
          session_(net, name, options.timeout, session_kind::closed, group_.context()),
          worker_(session_, options.servers, detail::size_of(first)),
          dimension_(detail::size_of(first)) {
        const std::span<const T> model = detail::elements_of_input(first, stage_);
        agree_on(age, move, model);
        worker_.links().join(works());
        if (!serves()) return;
        const segment part = own_part();
        service_.emplace(session_, workers(), options.patience, age, move, model.subspan(part.begin, part.size()));
        if (works()) activity_.emplace(net.spawn([this] { serve_beside(); }));
    }
    parameter_server(const parameter_server&) = delete;
    parameter_server& operator=(const parameter_server&) = delete;
    ~parameter_server() {
        if (!is_over()) leave();
        activity_.reset();
    }

    /// Whether this rank holds a part of the model and does nothing else.
    bool is_server() const { return !works(); }
    /// The workers are the ranks below this number.
    int workers() const { return options_.workers(session_.size()); }

    /// Writes the newest model to `model` and returns its version; see `Replica`. A dedicated server's serves until the
    /// run is over, writes nothing, and returns nothing.
    template <class Model>
    std::optional<held_version> pull(Model&& model) {
        static_assert(detail::require_replica_tensor<Model, T>());
        return pull_whole(model, true);
    }

    /// Like `pull`, but where the run is ending it returns nothing at once and leaves `model` as it is: for a worker
    /// that others, who have not departed yet, wait for. The next `pull` waits for the end.
    template <class Model>
    std::optional<held_version> pull_if_going(Model&& model) {
        if (worker_.is_leaving()) return std::nullopt;
        return pull_whole(model, false);
    }

    /// Whether the model that this worker has pulled last is the first one: no push had moved any part of it.
    bool is_untouched() const { return worker_.is_untouched(); }

    /// Writes the newest values of the coordinates `keys`, strictly ascending, to `output` in that order. Returns the
    /// model's version. Only the keys and their values travel, but at the end of the run the whole model.
    template <IndexType Index, class Values>
    std::optional<held_version> pull(std::span<const Index> keys, Values&& output) {
        RILL_EXPECTS(detail::size_of(output) == keys.size(), "parameter_server: each key has one value");
        RILL_EXPECTS(detail::are_keys(keys, dimension_), "parameter_server: keys ascend and lie within the model");
        const auto question = [&](std::size_t server, std::uint64_t number) {
            return detail::keys_frame(worker_.head(detail::server_kind::pull_keys, number), keys,
                                      worker_.part_of(server));
        };
        const auto places = [&](std::size_t server) { return detail::places_of(keys, worker_.part_of(server)); };
        return fetch(output, question, places, [&](std::size_t i) { return static_cast<std::size_t>(keys[i]); });
    }
    template <IndexType Index, class Allocator, class Values>
    std::optional<held_version> pull(const std::vector<Index, Allocator>& keys, Values&& values) {
        return pull(std::span<const Index>(keys), values);
    }

    /// Hands over a gradient that was computed at the model of `held`; see `Replica`. Throws `contract_violation`,
    /// before anything is sent, if its size is another one, if its version is above the newest that this rank has
    /// pulled, on a dedicated server, or after `retire` or `end`.
    template <class Gradient>
    void push(const Gradient& gradient, const held_version& held) {
        static_assert(detail::require_replica_tensor<Gradient, T>());
        RILL_EXPECTS(detail::size_of(gradient) == dimension_, "parameter_server: the gradient has another size");
        push_view(detail::whole(detail::elements_of_input(gradient, stage_)), held);
    }

    /// Pushes a gradient that is 0 where the stream has no entry. Its range is the whole model.
    template <IndexType Index>
    void push(const stream<T, Index>& gradient, const held_version& held) {
        static_assert(!RankedUpdate<Move, T>,
                      "rill::parameter_server: the update takes whole models, but a stream is pushed; push a dense "
                      "model, or use train::descent or aggregate::add");
        RILL_EXPECTS(gradient.range() == (segment{0, dimension_}), "parameter_server: the stream has another range");
        RILL_EXPECTS(gradient.is_dense() || detail::are_keys(gradient.indices(), dimension_),
                     "parameter_server: keys ascend and lie within the model");
        push_view(gradient.view(), held);
    }

    /// Streams of other elements and views are refused at compile time.
    template <class Other, IndexType Index>
    void push(const stream<Other, Index>&, const held_version&) {
        static_assert(
            std::same_as<Other, T>,
            "rill::parameter_server: the stream has other elements than the model; make it of theirs, nothing "
            "is converted on the way");
    }
    template <class Other, IndexType Index>
    void push(const stream_view<Other, Index>&, const held_version&) {
        static_assert(!std::same_as<Other, Other>,
                      "rill::parameter_server: a stream_view is pushed; pass the rill::stream that it is a view of");
    }

    /// What has become of a push that has not been told yet, in the order of pushes; empty if there is none. `pull`
    /// learns it.
    std::optional<push_fate> fate() { return worker_.fate(); }

    /// This worker pushes no more, and nobody waits for it. `retire` and `end` throw `contract_violation` on a
    /// dedicated server, which serves until the workers end the run.
    void retire() { depart(detail::server_kind::retire); }
    /// Ends the run on all ranks. The other workers learn it by their next `pull`, for which this one's waits.
    void end() { depart(detail::server_kind::end); }

    /// No `pull` waits any more for a worker that has not kept up, also not at the end. If it lives, it may go on until
    /// the others' run is over. What it pushes about that time, or where a link is slow or cut, may move the model on
    /// some servers only: each counts what comes to it before its run is over. The fate of such a push is `run_over`.
    void give_up(rank_t worker) {
        RILL_EXPECTS(works(), "parameter_server: a dedicated server gives up nobody");
        RILL_EXPECTS(0 <= worker && worker < workers() && worker != session_.rank(),
                     "parameter_server: only another worker can be given up");
        worker_.links().tell(worker_.head(detail::server_kind::give_up, static_cast<std::uint64_t>(worker)));
    }

    /// The final model; on a dedicated server its part. Throws `contract_violation` before this rank's run has ended:
    /// until its `pull` has returned nothing.
    std::span<const T> newest() const {
        RILL_EXPECTS(is_over(), "parameter_server: newest is known once the run has ended");
        return works() ? worker_.final_model() : service_->shard().values();
    }
    /// How many pushes have moved the first server's part; on a dedicated server its own part. Throws as `newest` does.
    std::uint64_t version() const {
        RILL_EXPECTS(is_over(), "parameter_server: version is known once the run has ended");
        return works() ? worker_.version() : service_->shard().version();
    }

    /// Saves what the next run depends on, once this one has ended: `newest()`, and on a server its version and the
    /// state of its update. Clocks are not saved: they begin anew, so that nobody waits for a worker that had retired.
    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        RILL_EXPECTS(is_over(), "parameter_server: it is saved once the run has ended");
        out.add(std::string(prefix) + "model", newest());
        if (serves()) service_->shard().save(out, std::string(prefix) + "server.");
    }

    /// Goes on where the saved run had ended, before the first `pull`. Collective, with as many servers. Another number
    /// is refused, unless servers that also work become fewer and the update keeps no state for each coordinate: then
    /// the run goes on too. `also()` reads what else a rank resumes. Throws on all ranks, and the run cannot begin, if
    /// the state of a rank does not fit: on that rank what the reader or `also` throws, elsewhere `peer_failure` with
    /// its text. Where ranks have read states of different runs, all throw `mismatch`.
    template <class Reader, class Also = void (*)()>
    void restore(
        const Reader& in, std::string_view prefix, Also&& also = [] {}) {
        RILL_EXPECTS(!worker_.has_begun() && !has_served_, "parameter_server: it is restored before the first pull");
        aligned_vector<T> model(works() ? dimension_ : own_part().size());
        const std::exception_ptr refused = detail::thrown_by([&] {
            also();
            in.read(std::string(prefix) + "model", model);
            if (serves()) service_->shard().restore(in, std::string(prefix) + "server.", own_part_of(model));
        });
        agree_on_state(model, refused);
    }

  private:
    static constexpr const char* name = "parameter_server";

    static const server_options& checked(const Net& net, const server_options& options) {
        options.require_options(net.size(), net.rank());
        RILL_EXPECTS(options.dedicated || net.activities_run_alone(),
                     "parameter_server: the transport's activities make no progress while their rank computes (MPI "
                     "below MPI_THREAD_MULTIPLE), so that its servers must be dedicated");
        return options;
    }
    void agree_on(const Age& age, const Move& move, std::span<const T> first) {
        constexpr option_names names{{"choice of servers", "patience", "staleness", "update", "first model"}};
        agree(group_, names,
              {option_hash(mix64(static_cast<std::uint64_t>(options_.servers), options_.dedicated ? 1U : 0U)),
               option_hash(static_cast<std::uint64_t>(options_.patience.ns)), option_hash(fingerprint(age)),
               option_hash(fingerprint_if_named(move)), option_hash(detail::hash_of(first))});
    }

    /// All ranks have restored their own state when it returns. If not, or if their states are not of one run, none
    /// goes on.
    void agree_on_state(std::span<const T> model, const std::exception_ptr& refused) {
        const std::exception_ptr differs = detail::thrown_by([&] {
            session_.guarded(worker_.links(), [&] {
                try {
                    detail::agree_on_state(group_, refused, state_of(model));
                } catch (const error& thrown) {
                    worker_.links().throw_own(thrown.notice());
                }
            });
        });
        for (const std::exception_ptr& thrown : {refused, differs})
            if (thrown != nullptr) std::rethrow_exception(thrown);
    }
    /// Servers say what their parts are. A worker compares what it holds.
    std::uint64_t state_of(std::span<const T> model) {
        std::vector<std::int64_t> parts(static_cast<std::size_t>(options_.servers));
        if (serves()) parts[own_server()] = static_cast<std::int64_t>(detail::hash_of(own_part_of(model)));
        all_reduce(group_, parts, parts);
        for (std::size_t i = 0; works() && i < parts.size(); ++i) {
            const segment part = worker_.part_of(i);
            parts[i] = static_cast<std::int64_t>(detail::hash_of(model.subspan(part.begin, part.size())));
        }
        return detail::hash_of(std::span<const std::int64_t>(parts));
    }

    bool works() const { return session_.rank() < workers(); }
    bool serves() const { return session_.rank() >= session_.size() - options_.servers; }
    std::size_t own_server() const {
        return static_cast<std::size_t>(session_.rank() - (session_.size() - options_.servers));
    }
    segment own_part() const { return worker_.part_of(own_server()); }
    /// Of what this rank holds of the model: all or its part.
    std::span<const T> own_part_of(std::span<const T> model) const {
        return works() ? model.subspan(own_part().begin, own_part().size()) : model;
    }
    bool is_over() const { return works() ? worker_.is_over() : has_served_; }

    template <class Model>
    std::optional<held_version> pull_whole(Model& model, bool waits) {
        RILL_EXPECTS(detail::size_of(model) == dimension_, "parameter_server: the model has another size");
        // In memory of its own: a server gets more messages than it sends, and its shelf would be full of questions.
        const auto question = [&](std::size_t, std::uint64_t number) {
            return detail::empty_frame(worker_.head(detail::server_kind::pull, number), {});
        };
        const auto part = [&](std::size_t server) { return worker_.part_of(server); };
        return fetch(
            model, question, part, [](std::size_t place) { return place; }, waits);
    }

    /// Asks the servers by `question(server, number)`, and writes `out`: the answer of a server has the places
    /// `places_of(server)` of it. Value `i` of `out` is that of coordinate `coordinate_of(i)`.
    template <class Out, class Question, class Places, class Coordinate>
    std::optional<held_version> fetch(Out& out, Question&& question, Places&& places_of, Coordinate&& coordinate_of,
                                      bool waits = true) {
        if (!works()) return serve();
        const std::span<T> values = stage_.room(detail::size_of(out));
        if (!is_over())
            worker_.ask(
                question,
                [&](std::size_t server, std::span<const T> from) {
                    const segment places = places_of(server);
                    wire::detail::require(from.size() == places.size(), "it is of another size");
                    std::copy(from.begin(), from.end(), values.subspan(places.begin).begin());
                },
                waits);
        if (worker_.is_leaving() && !is_over()) return std::nullopt;
        const std::span<const T> end = worker_.final_model();
        for (std::size_t i = 0; is_over() && i < values.size(); ++i) values[i] = end[coordinate_of(i)];
        detail::write_tensor(std::span<const T>(values), out);
        if (is_over()) return std::nullopt;
        return held_version{worker_.version()};
    }

    /// A dedicated server's part in the run.
    std::optional<held_version> serve() {
        if (has_served_) return std::nullopt;
        session_.require_going();
        session_.guarded(*service_, [&] { service_->run(); });
        has_served_ = true;
        return std::nullopt;
    }

    template <IndexType Index>
    void push_view(const stream_view<T, Index>& gradient, const held_version& held) {
        RILL_EXPECTS(works(), "parameter_server: a dedicated server pushes nothing");
        RILL_EXPECTS(worker_.has_pulled(held), "parameter_server: this version has not been pulled");
        RILL_EXPECTS(!worker_.is_leaving(), "parameter_server: a worker pushes nothing after retire or end");
        worker_.push(gradient, held);
    }

    void depart(message_kind how) {
        RILL_EXPECTS(works(), "parameter_server: a dedicated server serves until the workers end the run");
        worker_.depart(how);
    }

    /// This rank's part in the run is over before the run is.
    void leave() noexcept {
        try {
            if (serves())
                session_.net().abort(
                    worker_.links().scene().of_self({" has destroyed its parameter_server before the run had ended"}));
            else
                worker_.leave();
        } catch (...) {  // the run has failed
        }
    }

    /// The service of a rank that works too.
    void serve_beside() {
        try {
            session_.guarded(*service_, [&] { service_->run(); });
        } catch (...) {  // all ranks have been told, and this one's pull throws
        }
    }

    server_options options_;
    group<Net, topology::tree> group_;  ///< which the ranks agree in
    session<Net> session_;
    detail::server_worker<Net, T> worker_;
    detail::staging<T> stage_;  ///< values on their way to or from the worker
    std::size_t dimension_;
    bool has_served_ = false;  ///< a dedicated server: to the end
    std::optional<detail::shard_service<Net, T, Age, Move>> service_;
    std::optional<typename Net::activity> activity_;
};

// Arguments that it does not take.
template <detail::WrongCall Why, class T>
class parameter_server<Why, T, T, T> {
    static_assert(
        !std::same_as<Why, detail::wrong_arguments>,
        "rill::parameter_server: takes a transport, server_options, a staleness, an update and the first model");
    static_assert(!std::same_as<Why, detail::wrong_first>,
                  "rill::parameter_server: the first argument is a group; pass its transport, as in workers.net()");

  public:
    template <class... Any>
    explicit parameter_server(Any&&...) {}
};

template <class Net, class Age, class Move, class Model>
    requires(!detail::MeantAsGroup<Net>)
parameter_server(Net&, const server_options&, Age, Move, const Model&)
    -> parameter_server<Net, tensor_element<Model>, Age, Move>;
template <detail::MeantAsGroup Group, class... Policies>
parameter_server(Group&, const server_options&, const Policies&...)
    -> parameter_server<detail::wrong_first, float, float, float>;
template <class Net, class... Policies>
    requires(!detail::MeantAsGroup<Net> && sizeof...(Policies) != 3)
parameter_server(Net&, const server_options&, const Policies&...)
    -> parameter_server<detail::wrong_arguments, float, float, float>;
template <class Net, class... Policies>
    requires(sizeof...(Policies) != 4)
parameter_server(Net&, const Policies&...) -> parameter_server<detail::wrong_arguments, float, float, float>;

}}  // namespace rill::RILL_ABI
