#pragma once

#include <rill/collective/group_options.hpp>
#include <rill/collective/step_group.hpp>
#include <rill/collective/step_scope.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/elastic_options.hpp>
#include <rill/session/session.hpp>
#include <rill/topology/along.hpp>
#include <rill/transport/subgroup.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The groups of an elastic team: one for each view, made where it is first used.
template <class Net, class Shape>
class elastic_groups {
  public:
    using group_type = step_group<subgroup<Net>, typename topology::with_collectives<Shape>::type>;

    elastic_groups(Net& net, Shape shape, const elastic_options& options)
        : net_(&net), shape_(std::move(shape)), options_(options) {}

    /// The group of a view, where the next step is the one after `step`. Collective where it is made.
    group_type& of(const view& now, std::uint64_t step) {
        crew& own = crew_of(now);
        if (!own.workers) own.workers.emplace(scope_, own.net, shape_, of_group());
        own.workers->resume_at(step << 20U);
        return *own.workers;
    }
    /// Whoever uses the group of this view, or makes it, leaves it. What `why` says of ranks holds only if it is a
    /// notice of this group.
    void abort(const view& now, abort_notice why) {
        crew& own = crew_of(now);
        if (!own.workers && !own.unmade) own.unmade.emplace(own.net, of_group().name, options_.timeout);
        const std::uint64_t context = own.workers ? own.workers->context() : own.unmade->context();
        if (why.context != context) why = {.operation = why.operation, .reason = std::move(why.reason)};
        if (why.culprit == no_rank) why.culprit = own.net.rank();
        why.context = context;
        why.first_tag = 0;
        own.net.abort(why);
    }
    /// Why the group of this view has ended.
    std::optional<abort_notice> aborted(const view& now) {
        crew& own = crew_of(now);
        return own.net.aborted(own.workers->context());
    }
    /// What the calls of the present step have changed.
    step_scope& step() { return scope_; }

  private:
    struct crew {
        subgroup<Net> net;
        std::optional<group_type> workers{};
        /// Has the context of `workers`, where a rank ends the view before it has made them.
        std::optional<session<subgroup<Net>>> unmade{};

        crew(Net& parent, const view& of) : net(parent, of, "elastic") {}
    };

    crew& crew_of(const view& now) {
        if (crews_.empty() || crews_.back()->net.epoch() != now.epoch) {
            // Others may still be in the attempt before.
            if (crews_.size() > 1) crews_.erase(crews_.begin());
            crews_.push_back(std::make_unique<crew>(*net_, now));
        }
        return *crews_.back();
    }
    group_options of_group() const { return {.timeout = options_.timeout, .seed = options_.seed, .monitors = true}; }

    Net* net_;
    Shape shape_;
    elastic_options options_;
    step_scope scope_{};
    std::vector<std::unique_ptr<crew>> crews_{};
};

}}}  // namespace rill::RILL_ABI::detail
