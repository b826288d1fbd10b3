#pragma once

#include <rill/collective/exchange.hpp>
#include <rill/collective/synchronise.hpp>
#include <rill/concept/topology.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/topology/tree.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rill::inline RILL_ABI {

/// How a group works; the same on all its ranks, which the handshake checks.
struct group_options {
    duration timeout = seconds(60);  ///< of each blocking call
    std::uint64_t seed = 0;          ///< of the random numbers that collectives use

    constexpr std::uint64_t fingerprint() const { return mix64(seed, static_cast<std::uint64_t>(timeout.ns)); }
    friend constexpr bool operator==(const group_options&, const group_options&) = default;
};

/// All ranks of a transport, joined for collectives over one topology. Making one is itself collective: a handshake of
/// 2 log2 P rounds compares version, topology and options, so that ranks that were built or configured differently
/// learn it at once, with the odd rank's name. Collectives on one group must be called in the same order on all its
/// ranks.
///
/// After a failed operation every further one fails on all ranks with the same culprit: make a new group, over a
/// `subgroup` of the survivors where ranks are lost. `net` must outlive the group.
template <Transport Net, Topology Shape>
class group {
  public:
    using transport_type = Net;
    using topology_type = Shape;

    explicit group(Net& net, Shape shape = {}, group_options options = {})
        : shape_(shape), options_(options), context_(net), exchange_(net, context_.number) {
        shake_hands();
    }
    group(const group&) = delete;
    group& operator=(const group&) = delete;

    Net& net() const { return context_.net; }
    const Shape& shape() const { return shape_; }
    const group_options& options() const { return options_; }
    rank_t rank() const { return net().rank(); }
    int size() const { return net().size(); }
    std::uint64_t context() const { return context_.number; }

    /// How many operations have been called. Random numbers are derived from it: to resume bit for bit, save it and set
    /// it on all ranks alike before the first operation.
    std::uint64_t operation_number() const { return number_; }
    void resume_at(std::uint64_t number) { number_ = number; }

    /// The key of the random numbers that this rank draws in the operation under way.
    random_key key() const { return random_key{options_.seed}.derive(number_, rank()); }

    /// Runs `body(exchange)` as the next operation. If it throws, all ranks of the group end with this rank as the
    /// culprit (or with the one whose failure came first), and this and every later call throws.
    template <class Body>
    receipt run(call_signature signature, Body&& body) {
        if (const auto notice = net().aborted(context())) throw_error(*notice);
        signature.number = ++number_;
        return guarded(signature, std::forward<Body>(body));
    }

    /// Scratch of one type, made on first use and kept: a steady-state operation allocates nothing.
    template <class State>
    State& workspace() {
        const void* const type = &type_tag<State>;
        for (auto& made : workspaces_)
            if (made.type == type) return *static_cast<State*>(made.object.get());
        workspaces_.push_back({type, {new State(), [](void* object) { delete static_cast<State*>(object); }}});
        return *static_cast<State*>(workspaces_.back().object.get());
    }

  private:
    struct slot {
        const void* type;
        std::unique_ptr<void, void (*)(void*)> object;
    };
    template <class State>
    static constexpr char type_tag = 0;

    /// Closed last, also when the handshake throws.
    struct open_context {
        explicit open_context(Net& of) : net(of), number(of.next_context(0)) {}
        open_context(const open_context&) = delete;
        open_context& operator=(const open_context&) = delete;
        ~open_context() { net.close(number); }

        Net& net;
        std::uint64_t number;
    };

    /// Leaves nothing behind that a peer reads: on an error after all ranks have been told, even if that fails too.
    struct settlement {
        exchange<Net>& call;
        ~settlement() { call.settle(); }
    };

    template <class Body>
    receipt guarded(const call_signature& signature, Body&& body) {
        const settlement last{exchange_};
        try {
            exchange_.begin(signature, options_.timeout);
            receipt result = body(exchange_);
            exchange_.finish();
            result.operation_number = signature.number;
            result.wire = exchange_.counted();
            result.elapsed = exchange_.elapsed();
            return result;
        } catch (const error& e) {
            fail(signature, is_foreign(e.notice()) ? abort_notice{.reason = e.what()} : e.notice());
            throw;
        } catch (const std::exception& e) {
            fail(signature, {.reason = e.what()});
            throw;
        } catch (...) {
            fail(signature, {.reason = "an exception of unknown type"});
            throw;
        }
    }

    /// Whether it comes from another group, whose ranks are numbered otherwise.
    bool is_foreign(const abort_notice& notice) const {
        return notice.culprit != no_rank && notice.context != context() && notice.context != every_context;
    }

    /// Tells all ranks; returns only when this rank's own failure is the one that counts. Who has no culprit is it.
    void fail(const call_signature& signature, abort_notice notice) {
        notice.context = context();
        notice.operation = signature.number;
        if (notice.culprit == no_rank && notice.kind != failure::deadlock) {
            notice.culprit = rank();
            notice.reason = exchange_.describe() + ": rank " + std::to_string(rank()) + ": " + notice.reason;
        }
        const abort_notice first = net().abort(notice);
        if (first != notice || notice.kind != failure::exception) throw_error(first);
    }

    void shake_hands() {
        guarded({.kind = operation::handshake,
                 .options = mix64(RILL_VERSION_MAJOR * 1000 + RILL_VERSION_MINOR, fingerprint_of(shape_),
                                  options_.fingerprint())},
                [&](exchange<Net>& call) {
                    return detail::synchronise(call, topology::tree{}.all_reduce(size(), rank()),
                                               workspace<detail::empty_state<Net>>());
                });
    }

    static std::uint64_t fingerprint_of(const Shape& shape) { return rill::fingerprint(shape); }

    Shape shape_;
    group_options options_;
    open_context context_;
    std::uint64_t number_ = 0;
    exchange<Net> exchange_;
    std::vector<slot> workspaces_;
};

template <class Net, class Shape>
group(Net&, Shape) -> group<Net, Shape>;
template <class Net, class Shape>
group(Net&, Shape, group_options) -> group<Net, Shape>;

}  // namespace rill::inline RILL_ABI
