// Every collective as a protocol: what one rank does in a run, and how it checks its result.
#pragma once

#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/concept/detouring_topology.hpp>
#include <rill/core/bytes.hpp>
#include <rill/testing/protocol_test.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/subgroup.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bodies.hpp"

namespace protocols {

/// Whole numbers, so that every order of folding gives the same sum.
inline float value(int rank, std::size_t i, std::uint64_t salt) {
    return static_cast<float>((rill::mix64(salt, i) + static_cast<std::uint64_t>(rank) * 7) % 199) - 99.0F;
}
inline bool is_present(int rank, std::size_t i, std::uint64_t salt) {
    return rill::mix64(salt, i, static_cast<std::uint64_t>(rank)) % 5 == 0;
}

inline std::uint64_t hash_of(std::span<const float> values) {
    std::uint64_t hash = values.size();
    for (const float each : values) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &each, sizeof bits);
        hash = rill::mix64(hash, bits);
    }
    return hash | 1U;
}

/// One call on one rank, with its data.
class job {
  public:
    using index = std::uint32_t;

    job(call which, int ranks, int self, std::size_t n, std::uint64_t salt)
        : which_(which),
          ranks_(ranks),
          self_(self),
          root_(static_cast<int>(rill::mix64(salt, 3) % static_cast<std::uint64_t>(ranks))),
          n_(n),
          salt_(salt),
          part_(rill::split(n, static_cast<std::size_t>(ranks), static_cast<std::size_t>(self))),
          sparse_input_(n),
          sparse_output_(n) {
        if (is_sparse()) {
            for (std::size_t i = 0; i < n; ++i)
                if (contributes(self, i)) sparse_input_.push_back(i, value(self, i, salt));
        } else if (which == call::all_gather_dense) {
            input_ = part_of(wanted());
        } else {
            input_.resize(n);
            for (std::size_t i = 0; i < n; ++i) input_[i] = value(self, i, salt);
        }
        output_.assign(which == call::reduce_scatter_dense ? part_.size() : n, -1.0F);
        if (which == call::all_reduce_codec) codec_.emplace(policy().bind(n));
        if (which == call::broadcast_dense && self == root_) output_ = input_;
        if (which == call::broadcast_stream && self == root_) sparse_output_ = sparse_input_;
    }

    template <class Lane>
    rill::receipt run(Lane& lane) {
        switch (which_) {
            case call::all_reduce_dense: return rill::all_reduce(lane, input_, output_);
            case call::all_reduce_stream:
                return rill::all_reduce(lane, sparse_input_, sparse_output_, rill::aggregate::sum{},
                                        {.message_entries = salt_ % 2 == 0 ? 4U : 4'096U});
            case call::all_reduce_codec: return rill::all_reduce(lane, input_, output_, *codec_);
            case call::reduce_dense: return rill::reduce(lane, input_, output_, root_);
            case call::reduce_stream: return rill::reduce(lane, sparse_input_, sparse_output_, root_);
            case call::reduce_scatter_dense: return rill::reduce_scatter(lane, input_, output_);
            case call::reduce_scatter_stream: return rill::reduce_scatter(lane, sparse_input_, sparse_output_);
            case call::all_gather_dense: return rill::all_gather(lane, input_, output_);
            case call::all_gather_stream: return rill::all_gather(lane, sparse_input_, sparse_output_);
            case call::broadcast_dense: return rill::broadcast(lane, output_, root_);
            case call::broadcast_stream: return rill::broadcast(lane, sparse_output_, root_);
            case call::barrier: break;
        }
        return rill::barrier(lane);
    }

    /// Whether the result is right; to be called after `run` has returned.
    rill::testing::call_result result() const {
        if (which_ == call::barrier) return {.is_exact = true};
        if (which_ == call::all_reduce_codec) return {.is_exact = true, .bits = hash_of(output_)};
        const bool is_root_only = which_ == call::reduce_dense || which_ == call::reduce_stream;
        if (is_root_only && self_ != root_) return {.is_exact = !is_sparse() || sparse_output_.values().empty()};
        const bool is_part = which_ == call::reduce_scatter_dense || which_ == call::reduce_scatter_stream;
        const std::vector<float> given = is_sparse() ? dense_copy(sparse_output_) : output_;
        const bool is_exact = given == (is_part ? part_of(wanted()) : wanted());
        return {.is_exact = is_exact, .bits = is_part || is_root_only ? 0 : hash_of(given)};
    }

    /// Whether the inputs are unchanged.
    bool is_unchanged() const {
        if (is_sparse()) {
            rill::stream<float, index> again(n_);
            for (std::size_t i = 0; i < n_; ++i)
                if (contributes(self_, i)) again.push_back(i, value(self_, i, salt_));
            return again == sparse_input_;
        }
        if (which_ == call::all_gather_dense) return input_ == part_of(wanted());
        for (std::size_t i = 0; i < n_; ++i)
            if (input_[i] != value(self_, i, salt_)) return false;
        return true;
    }

    bool has_codec() const { return codec_.has_value(); }
    double given() const { return std::accumulate(input_.begin(), input_.end(), 0.0); }
    double residual() const {
        const auto rest = codec_->residual();
        return std::accumulate(rest.begin(), rest.end(), 0.0);
    }
    double received() const { return std::accumulate(output_.begin(), output_.end(), 0.0); }

  private:
    using top_k_with_memory = decltype(rill::compress::error_feedback{rill::compress::top_k{.density = 0.1}});
    static top_k_with_memory policy() { return rill::compress::error_feedback{rill::compress::top_k{.density = 0.1}}; }

    bool is_sparse() const {
        return which_ == call::all_reduce_stream || which_ == call::reduce_stream ||
               which_ == call::reduce_scatter_stream || which_ == call::all_gather_stream ||
               which_ == call::broadcast_stream;
    }
    bool contributes(int rank, std::size_t i) const {
        if (which_ == call::all_gather_stream)
            return i % static_cast<std::size_t>(ranks_) == static_cast<std::size_t>(rank) && is_present(rank, i, salt_);
        return is_present(rank, i, salt_);
    }

    /// The expected result, by a loop over all ranks.
    std::vector<float> wanted() const {
        std::vector<float> all(n_);
        const bool is_broadcast = which_ == call::broadcast_dense || which_ == call::broadcast_stream;
        for (int r = 0; r < ranks_; ++r)
            for (std::size_t i = 0; i < n_; ++i)
                if ((!is_broadcast || r == root_) && (!is_sparse() || contributes(r, i))) all[i] += value(r, i, salt_);
        return all;
    }
    std::vector<float> part_of(const std::vector<float>& all) const {
        return {all.begin() + static_cast<std::ptrdiff_t>(part_.begin),
                all.begin() + static_cast<std::ptrdiff_t>(part_.end)};
    }
    static std::vector<float> dense_copy(const rill::stream<float, index>& s) {
        std::vector<float> copy(s.range().size());
        rill::copy_dense(s.view(), std::span<float>(copy), 0.0F);
        return copy;
    }

    call which_;
    int ranks_;
    int self_;
    int root_;
    std::size_t n_;
    std::uint64_t salt_;
    rill::segment part_;
    std::vector<float> input_, output_;
    rill::stream<float, index> sparse_input_, sparse_output_;
    std::optional<decltype(policy().bind(1))> codec_;
};

/// One rank of a run. It makes some calls while faults strike, one more call when all faults are over, and then, if a
/// call failed, further calls in a new group of the ranks that can go on.
template <class Shape>
class member {
  public:
    using net_type = rill::subgroup<rill::simulated::endpoint>;
    using group_type = rill::group<net_type, Shape>;
    using end = rill::testing::call_record::end;
    static constexpr bool may_fly = !rill::DetouringTopology<Shape>;

    member(rill::simulated::endpoint& net, const rill::testing::protocol_case& of,
           const rill::testing::protocol_limits& limits, rill::testing::rank_record& mine, call which, Shape shape,
           common& all)
        : net_(&net), of_(&of), limits_(&limits), mine_(&mine), which_(which), shape_(shape), all_(&all) {}

    void play() {
        if (net_->restarts() > 0) return;  // the others do not wait for a rank that was restarted
        rill::random_sequence draw(of_->key());
        const int steps = 1 + static_cast<int>(draw.below(3));
        rill::view members = rill::view::all(*net_);
        const bool goes_on = play_in(members, {.group = 0}, steps, draw, true);
        if (!goes_on) return;
        const rill::rank_t out = left_out();
        std::erase(members.members, out);
        ++members.epoch;
        if (net_->rank() == out) return;
        play_in(members, {.group = 1, .is_spared = !may_strike_again()}, 2, draw, false);
    }

  private:
    /// Calls in a group of its own. Returns whether anything failed there, for any rank.
    bool play_in(const rill::view& members, const rill::testing::call_record& kind, int steps,
                 rill::random_sequence& draw, bool at_leisure) {
        net_type net(*net_, members);
        std::optional<group_type> workers;
        int step = 0;
        const auto named = [&](const char* name) {
            auto copy = kind;
            copy.name = name;
            copy.step = step;
            return copy;
        };
        const char* const name = call_names[static_cast<unsigned>(which_)];
        if (at_leisure) come_late();
        enter();
        mine_->attempt(named("handshake"), [&] {
            workers.emplace(net, shape_, rill::group_options{.timeout = limits_->timeout});
            return rill::testing::call_result{.is_exact = all_have_entered(net.size())};
        });
        for (int i = 0; i < steps; ++i) {
            const bool in_flight = draw.below(2) == 0 && may_fly;
            const std::uint64_t salts[] = {draw.below(1U << 30U), draw.below(1U << 30U)};
            if (at_leisure) come_late();
            if (!workers)
                mine_->calls.resize(mine_->calls.size() + 2);
            else if (++step; in_flight) {
                if constexpr (may_fly) fly(*workers, named(name), salts);
            } else
                for (const std::uint64_t salt : salts) {
                    walk(*workers, named(name), salt);
                    ++step;
                }
        }
        ++step;
        if (!at_leisure) return false;
        net_->sleep_until(rill::time_point{} + rill::nanoseconds(limits_->timeout.ns * (4 * steps + 8)));
        const bool knows_failure = workers && net.aborted(workers->context());
        all_->has_failed |= knows_failure || !workers;
        if (knows_failure)
            walk(*workers, named("the next call"), 1);
        else
            mine_->calls.resize(mine_->calls.size() + 1);
        net_->sleep_until(net_->now() + rill::seconds(1));  // every rank that knows of a failure has said so
        return all_->has_failed;
    }

    void walk(group_type& workers, const rill::testing::call_record& as, std::uint64_t salt) {
        job data(which_, workers.size(), workers.rank(), of_->size, salt);
        enter();
        const std::size_t number = mine_->calls.size();
        mine_->attempt(as, [&] {
            data.run(static_cast<typename group_type::lane_type&>(workers));
            return seen_from(number, workers.size(), data);
        });
        settle(number, workers.size(), data);
    }

    /// Two operations in flight at once, which may end in any order.
    void fly(group_type& workers, const rill::testing::call_record& as, const std::uint64_t (&salts)[2]) {
        std::vector<job> data;
        data.reserve(2);
        for (const std::uint64_t salt : salts)
            data.emplace_back(which_, workers.size(), workers.rank(), of_->size, salt);
        const std::size_t number = mine_->calls.size();
        std::vector<rill::request> requests;
        for (std::size_t i = 0; i < data.size(); ++i) {
            ++all_->entered[number + i];
            requests.push_back(rill::start(workers, [&, i](auto& lane) { return data[i].run(lane); }));
        }
        for (std::size_t i = 0; i < data.size(); ++i) {
            mine_->attempt(as, [&] {
                requests[i].get();
                return seen_from(number + i, workers.size(), data[i]);
            });
            settle(number + i, workers.size(), data[i]);
        }
    }

    void come_late() {
        const int step = ++moment_;
        net_->sleep_until(net_->now() + rill::testing::entry_delay(*of_, net_->rank(), step, *limits_));
        net_->compute(1);
    }

    void enter() { ++all_->entered[mine_->calls.size()]; }
    bool all_have_entered(int ranks, std::size_t number) const { return all_->entered[number] == ranks; }
    bool all_have_entered(int ranks) const { return all_have_entered(ranks, mine_->calls.size() - 1); }

    rill::testing::call_result seen_from(std::size_t number, int ranks, const job& data) {
        if (!all_have_entered(ranks, number)) mine_->complain("came out of a call before all had entered it");
        return data.result();
    }

    /// Checks what must hold whether the call failed or not: what of a gradient is not in the result is in a residual.
    void settle(std::size_t number, int ranks, const job& data) {
        if (!data.is_unchanged()) mine_->complain("an input has changed");
        if (!data.has_codec()) return;
        if (mine_->calls[number].came != end::exact) {
            if (data.residual() != data.given())
                mine_->complain("a part of the contribution to a failed call has left the residual");
            return;
        }
        all_->given[number] += data.given();
        all_->left[number] += data.residual();
        if (++all_->settled[number] == ranks && all_->given[number] != all_->left[number] + data.received())
            mine_->complain("the result and the residuals are not what was contributed");
    }

    /// Whether faults are still at work when the first group has ended.
    bool may_strike_again() const {
        return std::any_of(of_->faults.faults.begin(), of_->faults.faults.end(), [](const rill::fault& f) {
            return f.kind == rill::fault::what::loss || f.kind == rill::fault::what::duplicate;
        });
    }
    /// The rank that is left out of the next group: one that dies, or one end of a link that stays cut.
    rill::rank_t left_out() const {
        const auto find = [&](rill::fault::what kind) {
            return std::find_if(of_->faults.faults.begin(), of_->faults.faults.end(),
                                [&](const rill::fault& f) { return f.kind == kind; });
        };
        const auto none = of_->faults.faults.end();
        if (const auto kill = find(rill::fault::what::kill); kill != none) return kill->from;
        const auto cut = find(rill::fault::what::cut);
        return cut != none && find(rill::fault::what::heal) == none ? cut->to : rill::no_rank;
    }

    rill::simulated::endpoint* net_;
    const rill::testing::protocol_case* of_;
    const rill::testing::protocol_limits* limits_;
    rill::testing::rank_record* mine_;
    call which_;
    Shape shape_;
    common* all_;
    int moment_ = 0;
};

template <class Shape>
void play_member(rill::simulated::endpoint& net, const rill::testing::protocol_case& of,
                 const rill::testing::protocol_limits& limits, rill::testing::rank_record& mine, call which,
                 Shape shape, common& all) {
    member<Shape>(net, of, limits, mine, which, shape, all).play();
}

}  // namespace protocols
