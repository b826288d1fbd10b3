#pragma once

#include <rill/aggregate/add.hpp>
#include <rill/collective/group.hpp>
#include <rill/concept/replica.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/parameter_server.hpp>
#include <rill/protocol/partial_all_reduce.hpp>
#include <rill/protocol/server_options.hpp>
#include <rill/straggler/unbounded.hpp>
#include <rill/train/replica_plan.hpp>
#include <rill/transport/subgroup.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Which ranks work together, and how the groups share a model.
struct grouping {
    view alike{};             ///< the ranks of this rank's group; see `group_by_speed`
    std::uint64_t every = 4;  ///< rounds of a group between its meetings with the shared model
    server_options servers{.servers = 1, .dedicated = false, .timeout = seconds(3600)};  ///< of the shared model
};

/// A `grouped_replica` bound to one rank.
template <class Net, class Within, class Shared, std::floating_point T>
class bound_grouped_replica {
    using replica_type = decltype(std::declval<const Within&>().template bind<T>(
        std::declval<subgroup<Net>&>(), std::span<const T>(), group_options{}));

  public:
    using element_type = T;

    bound_grouped_replica(Net& net, const Within& within, const grouping& groups, const Shared& shared,
                          std::span<const T> first, const group_options& options)
        : every_(groups.every), center_(net, groups.servers, straggler::unbounded{}, shared, first) {
        if (center_.is_server()) return;
        alike_.emplace(net, groups.alike);
        replica_ = std::unique_ptr<replica_type>(new replica_type(within.template bind<T>(*alike_, first, options)));
    }

    /// Once the group's run has ended, waits for the other groups; `model` is then that of all. Throws what has ended
    /// the group alone; the next call then serves and waits as after the end, so that the other groups go on.
    template <class Model>
    std::optional<held_version> pull(Model&& model) {
        if (replica_ != nullptr && !is_over_) {
            try {
                join();
                if (const auto held = replica_->pull(model)) return held;
            } catch (const error&) {  // a call that is refused ends nothing
                leave();
                throw;
            }
        }
        is_over_ = true;
        if (ends_all_) center_.end();
        while (center_.pull(model)) continue;
        return std::nullopt;
    }
    template <class Gradient>
    void push(const Gradient& gradient, const held_version& held) {
        worker().push(gradient, held);
    }
    std::optional<push_fate> fate() { return replica_ == nullptr ? std::nullopt : replica_->fate(); }
    /// Before the first `pull` it joins the groups, as `pull` and `end` do, which is collective in the group.
    void retire() {
        join();
        worker().retire();
    }
    /// Ends the run of this rank's group, and then those of the others, each at its next meeting with the shared model.
    void end() {
        join();
        worker().end();
        ends_all_ = true;
    }
    /// How many rounds this rank's group has made, 0 if it has failed before it joined the others; on a dedicated
    /// server how many pushes have moved its part.
    std::uint64_t version() const {
        if (replica_ == nullptr) return center_.version();
        return is_over_ && !has_joined_ ? 0 : replica_->version();
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        center_.save(out, prefix);
        if (replica_ != nullptr) replica_->save(out, std::string(prefix) + "group.");
    }
    template <class Reader, class Also = void (*)()>
    void restore(
        const Reader& in, std::string_view prefix, Also&& also = [] {}) {
        std::exception_ptr refused, refused_to_other;
        try {
            if (replica_ != nullptr) replica_->restore(in, std::string(prefix) + "group.");
        } catch (const error& failed) {
            // The culprit tells the ranks of other groups: numbers in this failure are those of the group.
            const bool is_own = failed.culprit() == no_rank || failed.culprit() == std::as_const(*alike_).rank();
            (is_own ? refused : refused_to_other) = std::current_exception();
        } catch (const std::exception&) {
            refused = std::current_exception();
        }
        center_.restore(in, prefix, [&] {
            also();
            if (refused != nullptr) std::rethrow_exception(refused);
        });
        if (refused_to_other != nullptr) std::rethrow_exception(refused_to_other);
    }

  private:
    /// After a failure of the group: this rank pushes no more to the center either.
    void leave() {
        is_over_ = true;
        try {
            center_.retire();
        } catch (const error&) {  // the center has failed, too; its next pull says so
        }
    }
    /// Not earlier, so that it can be restored before.
    void join() {
        if (replica_ == nullptr || has_joined_) return;
        replica_->through(center_, {.every = every_});
        has_joined_ = true;
    }
    replica_type& worker() {
        RILL_EXPECTS(replica_ != nullptr, "grouped_replica: a dedicated server pushes nothing and ends no run");
        return *replica_;
    }

    std::uint64_t every_;
    parameter_server<Net, T, straggler::unbounded, Shared> center_;
    std::optional<subgroup<Net>> alike_{};
    std::unique_ptr<replica_type> replica_{};  ///< null on a dedicated server
    bool has_joined_ = false;
    bool ends_all_ = false;
    bool is_over_ = false;  ///< the run of this rank's group
};

/// Training in groups, each by rounds of its own, that share a model on servers (`partial_all_reduce::through`).
///
/// `within`: the plan of each group, a `partial_replica`. `shared`: how a group's change moves the shared model. Models
/// `ReplicaPlan`. All ranks have the same model once all groups have ended.
template <class Within, class Shared = aggregate::add>
struct grouped_replica {
    static constexpr const char* name = "grouped_replica";

    Within within{};
    grouping groups{};
    Shared shared{};

    template <std::floating_point T = float, class Net>
    bound_grouped_replica<Net, Within, Shared, T> bind(Net& net, std::span<const T> first,
                                                       const group_options& options = {}) const {
        return {net, within, groups, shared, first, options};
    }
};

template <class W>
grouped_replica(W, grouping) -> grouped_replica<W>;
template <class W, class S>
grouped_replica(W, grouping, S) -> grouped_replica<W, S>;

}}}  // namespace rill::RILL_ABI::train
