#pragma once

#include <rill/collective/detail/membership.hpp>
#include <rill/collective/detail/owned.hpp>
#include <rill/collective/detail/task.hpp>
#include <rill/collective/exchange.hpp>
#include <rill/concept/executor.hpp>
#include <rill/concept/named_span.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/call.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/random.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/text.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI {

namespace detail {
template <ConcurrentTransport Net, Topology Shape, Executor Exec>
class worker;

/// What all ranks must have alike in a call of a collective.
inline constexpr option_names collective_options{
    .names = {"aggregator", "coding", "compressor", "root", "number of chunks"}, .decides_shape = 2};
}  // namespace detail

/// Runs operations of a group, one at a time: an exchange with scratch of its own. A group is the lane of its blocking
/// calls; each started operation runs on another one.
template <Transport Net, Topology Shape, Executor Exec = serial>
class lane {
  public:
    using transport_type = Net;
    using topology_type = Shape;
    using executor_type = Exec;
    using lane_type = lane;

    [[gnu::noinline]] explicit lane(detail::membership<Net, Shape, Exec>& of)
        : of_(&of), window_(of.window), exchange_(of.session) {}
    lane(const lane&) = delete;
    lane& operator=(const lane&) = delete;

    Net& net() const { return of_->session.net(); }
    const Shape& shape() const { return of_->shape; }
    const group_options& options() const { return of_->options; }
    const Exec& executor() const { return of_->executor; }
    rank_t rank() const { return net().rank(); }
    int size() const { return net().size(); }
    std::uint64_t context() const { return of_->session.context(); }
    /// The window that the ranks share if dense all_reduces are fused; an empty type otherwise.
    auto& window() { return window_; }

    /// The number that the next `run` gives to its operation.
    std::uint64_t next_number() const { return waits_to_run_ ? numbers_.counted : of_->last.next().counted; }

    /// The key of the random numbers that this rank draws in the operation at hand.
    [[gnu::noinline]] random_key key() const { return random_key{options().seed}.derive(numbers_.counted, rank()); }

    /// Runs `body(exchange)` as the next operation. If it throws, all ranks of the group end with this rank as the
    /// culprit (or with the one whose failure came first), and this and every later call throws. `names`: of the
    /// call's options. `is_exposed`: `body` exposes memory, and so announces the call.
    [[gnu::noinline]] receipt run(call_signature signature, function_ref<receipt(exchange<Net>&)> body,
                                  const option_names& names = detail::collective_options, bool is_exposed = false) {
        RILL_EXPECTS(!started_ || waits_to_run_, "start: its body runs one operation; start another for the next");
        if (const auto notice = net().aborted(context()); notice && !precedes(*notice)) throw_error(*notice);
        if (!started_) {
            numbers_ = of_->last.next();
            of_->make_room(numbers_.in_context);
            of_->last = numbers_;
        }
        waits_to_run_ = false;
        signature.number = numbers_.in_context;
        [[maybe_unused]] const auto recorded = named_span(net(), name(signature.kind));
        return guarded(signature, body, names, is_exposed);
    }

    /// Scratch of one type, made on first use and kept: a steady-state operation allocates nothing.
    template <class State>
    State& workspace() {
        return workspaces_.get<State>();
    }

  protected:
    /// Runs `body(exchange)` as the call `signature`, and tells all ranks when it fails.
    [[gnu::noinline]] receipt guarded(const call_signature& signature, function_ref<receipt(exchange<Net>&)> body,
                                      const option_names& names, bool is_exposed = false) {
        const settlement last{exchange_};
        return of_->session.guarded(exchange_, [&] {
            exchange_.begin(signature, names, is_exposed);
            receipt result = body(exchange_);
            exchange_.finish();
            result.operation_number = numbers_.counted;
            result.wire = exchange_.counted();
            result.elapsed = exchange_.elapsed();
            return result;
        });
    }

  private:
    template <ConcurrentTransport, Topology, Executor>
    friend class detail::worker;

    /// Runs `body(*this)`, which calls `run` once, as the operation with these numbers. If `body` ends before it calls
    /// `run`, this rank has failed in the operation that the others wait for.
    receipt run_started(const detail::operation_numbers& numbers, detail::task<lane>& body) {
        numbers_ = numbers;
        started_ = waits_to_run_ = true;
        try {
            const receipt result = body(*this);
            RILL_EXPECTS(!waits_to_run_, "start: its body runs no operation");
            return result;
        } catch (const std::exception& e) {
            if (waits_to_run_) abandon(numbers, text_of({"did not enter it: ", e.what()}));
            throw;
        } catch (...) {
            if (waits_to_run_) abandon(numbers, "did not enter it: an exception of unknown type");
            throw;
        }
    }

    /// Releases all that a peer reads: on an error after all ranks have been told, even if telling them fails too.
    struct settlement {
        exchange<Net>& call;
        ~settlement() { call.settle(); }
    };

    /// Whether the next operation was started before the one that failed.
    bool precedes(const abort_notice& notice) const {
        return waits_to_run_ && !notice.ends(tag_of(numbers_.in_context));
    }

    /// Tells all ranks that this one `does` not complete the operation with these numbers.
    [[gnu::cold]] void abandon(const detail::operation_numbers& numbers, const std::string& does) {
        const std::uint64_t number = numbers.in_context;
        const auto where = of_->session.scene(number, tag_of(number), text_of({"operation ", number}));
        net().abort(of_->session.or_before(where.of_self({" ", does})));
    }

    detail::membership<Net, Shape, Exec>* of_;
    [[no_unique_address]] detail::fused_window<Net, Shape> window_;
    exchange<Net> exchange_;
    detail::workshop workspaces_;
    detail::operation_numbers numbers_{};
    bool started_ = false;       ///< this lane runs started operations, whose numbers are given
    bool waits_to_run_ = false;  ///< a started operation has not been run yet
};

}}  // namespace rill::RILL_ABI
