#pragma once

#include <rill/concept/monitored_transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/protocol/detail/machine_host.hpp>
#include <rill/protocol/detail/machine_loop.hpp>
#include <rill/protocol/detail/pair_kind.hpp>
#include <rill/protocol/detail/pair_machine.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/wire.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// One rank's model in a pair averaging, and what moves it: a `pair_machine` on a transport. `owner.take(model)`
/// applies the gradients that have been pushed; `owner.moved(model)` is told that an exchange has moved it. What the
/// policies must be, `pair_averaging` requires.
template <class Net, class T, class Who, class Owner>
class pair_service {
  public:
    pair_service(const session<Net>& of, const Who& who, random_key key, Owner& owner, std::span<const T> first)
        : session_(of),
          machine_(who, of.size(), of.rank(), key, of.timeout()),
          owner_(owner),
          model_(first.begin(), first.end()) {
        if constexpr (MonitoredTransport<Net>) of.net().monitor(of.on(0));
    }

    std::span<T> model() { return model_; }
    std::span<const T> model() const { return model_; }
    std::uint64_t draws() const { return machine_.draws(); }
    /// Goes on from a saved state, before it runs.
    void resume(const aligned_vector<T>& model, std::uint64_t draws) {
        model_ = model;
        machine_.resume_after(draws);
    }

    /// Serves until the run is over. A failure is not told to the others yet.
    void run() {
        run_machine(session_, session_.on(0), machine_, machine_.begin(std::as_const(session_.net()).now()), *this);
    }

    [[gnu::cold]] detail::scene scene() const { return session_.scene(0, 0, "pair_averaging"); }

  private:
    template <class Session, class Machine, class Host>
    friend void run_machine(const Session&, machine_channels, Machine&, machine_action, Host&);
    using message = typename Net::message;

    buffer frame(const machine_action& asked) {
        const wire::header head = session_.stamped({}, asked.kind, asked.number);
        if (asked.kind == pair_kind::request) {
            require_finite();
            sent_ = model_;
        }
        if (!pair_kind::has_model(asked.kind)) return empty_frame(head);
        buffer bytes = kept_room(model_.size() * sizeof(T));
        append_frame(bytes, head, whole(std::span<const T>(asked.kind == pair_kind::request ? sent_ : before_)));
        return bytes;
    }

    wire::header head_of(const message& got) {
        const wire::header head = head_of_message(session_, got, *this, &pair_kind::of, [&](const wire::header& read) {
            wire::detail::require(read.kind.protocol == pair_kind::pushed.protocol, "it is of another protocol");
            wire::detail::require(!pair_kind::is_own(read.kind) || got.source() == session_.rank(),
                                  "only its own rank sends it");
            wire::detail::require(!pair_kind::has_model(read.kind) || read.dimension == model_.size(),
                                  "its model has another size");
        });
        if (head.kind == pair_kind::pushed) owner_.take(std::span<T>(model_));
        return head;
    }

    /// Goes half of the way from what this rank has told to what the other has told. Both do, so that the sum of their
    /// models stays.
    void keep(message&& got, const wire::header& head) {
        const bool answers = head.kind == pair_kind::answer || machine_.has_crossed();
        if (!answers) {
            require_finite();
            before_ = model_;
        }
        read_from(*this, got.source(), [&] {
            frame_reader frames(got.pieces());
            const std::span<const T> other = next_values<T>(frames);
            const aligned_vector<T>& own = answers ? sent_ : before_;
            for (std::size_t i = 0; i < model_.size(); ++i) model_[i] += (other[i] - own[i]) / 2;
        });
        owner_.moved(std::span<const T>(model_));
    }

    /// What is not finite would spread to the models of all ranks.
    void require_finite() const {
        if (const auto coordinate = kernel::find_non_finite(std::span<const T>(model_)))
            throw_error(scene().of_self({" has a model that is not finite at coordinate ", *coordinate},
                                        failure::invalid_value));
    }

    /// A rank that has never begun has failed before, and tells it.
    [[noreturn, gnu::cold]] void fail(const machine_action& asked) {
        session_.require_ground(asked.peer, session_.timeout() / 8);
        scene().fail(failure::timeout, asked.peer, session_.rank(),
                     {"rank ", session_.rank(), " is cut off from half of the ranks that live: rank ", asked.peer,
                      " and it have waited for each other in vain"});
    }

    const session<Net>& session_;
    pair_machine<Who> machine_;
    Owner& owner_;
    aligned_vector<T> model_;
    aligned_vector<T> sent_;    ///< with this rank's request
    aligned_vector<T> before_;  ///< before it averaged with who has asked
};

}}}  // namespace rill::RILL_ABI::detail
