#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/detail/call.hpp>
#include <rill/collective/detail/loans.hpp>
#include <rill/concept/completion.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/text.hpp>
#include <rill/protocol/detail/round_links.hpp>
#include <rill/session/detail/contributor_list.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A child's contribution is of other options, another type or another dimension than this rank's.
[[noreturn, gnu::cold]] inline void refuse_contribution(const scene& at, rank_t source, const wire::header& given,
                                                        const wire::header& own) {
    const std::uint32_t difference = given.call ^ own.call;
    const bool aggregator = difference >> 16U != 0, coding = (difference & 0xFFFFU) != 0;
    const std::string other = text_of({aggregator ? " with another aggregator" : "",
                                       coding ? (aggregator ? " and another coding" : " with another coding") : ""});
    if (given.element == own.element && given.dimension == own.dimension)
        at.fail(failure::mismatch, source, no_rank, {"rank ", source, " contributes", other, " than rank ", at.self});
    at.fail(failure::mismatch, source, no_rank,
            {"rank ", source, " contributes ", given.dimension, " elements of ", name(given.element), ", rank ",
             at.self, " ", own.dimension, " of ", name(own.element), other.empty() ? "" : ",", other});
}

/// This rank takes a state of another type or size than the root gives.
[[noreturn, gnu::cold]] inline void refuse_state(const scene& at, const wire::header& given, element_type element,
                                                 std::size_t count) {
    at.fail(failure::mismatch, at.self, no_rank,
            {"rank ", at.self, " takes a state of ", count, " elements of ", name(element), " where the root gives ",
             given.count, " of ", name(given.element)});
}

/// What all kinds of rounds have in common, whatever they do with contributions: states go down, rounds begin and end,
/// a failure reaches all ranks.
template <class Group, class Tree, class Policies>
class round_loop {
  public:
    round_loop(const round_loop&) = delete;
    round_loop& operator=(const round_loop&) = delete;
    /// At the root: ends the rounds and waits for nobody. If an exception is passing through, or this rank has failed
    /// before, the rounds end on all ranks by a failure.
    ~round_loop() {
        if (!is_root() || links_.machine().has_ended()) return;
        try {
            if (std::uncaught_exceptions() > unwinding_)
                links_.of().net().abort(links_.scene().of_self({": an exception has passed through its rounds"}));
            else
                end_unless_failed();
        } catch (...) {  // they have ended by a failure
        }
    }

    bool is_root() const { return links_.machine().is_root(); }
    /// The number of the round under way, from 1; of the last one, where `next` has told that they have ended. Rounds
    /// that this rank has missed are counted.
    std::uint64_t number() const { return links_.round(); }
    /// Goes on bit for bit after a run of so many rounds: codecs and stochastic rounding draw random numbers as if
    /// `number()` counted those rounds too, modulo 2^64. On all ranks alike, between two rounds.
    void draw_after(std::uint64_t rounds) { rounds_before_ = rounds; }
    /// Whether this rank's latest contribution is in a result, or bound to get into one. Known once `next` has
    /// returned; at the root once `reduce` has. False before the first `reduce`, and for one that has thrown.
    bool was_in() const { return has_contributed_ && links_.machine().was_in(); }

    /// Goes to the next round. At the root it begins the round, with `state` for all; elsewhere `state` becomes the
    /// newest one. Returns false when rounds have ended; `state` is unchanged then. Settles the codec of the latest
    /// `reduce`: commits its contribution if that was in a result, else rolls it back.
    template <class State>
    bool next(State&& state) {
        if constexpr (require_output<State&>()) {  // the root may begin with a temporary
            using T = tensor_element<State>;
            if (links_.machine().has_ended()) {
                settle(was_in());
                return false;
            }
            return guarded([&] {
                RILL_EXPECTS(number() == contributed_to_, "rounds: call reduce once in each round that next begins");
                const bool goes_on = is_root() ? begin<T>(elements_of_input(state, *group_))
                                               : take<T>(elements_of_output(state, *group_));
                if (!is_root() && goes_on) deliver(std::span<const T>(elements_of_output(state, *group_)), state);
                settle(was_in());
                return goes_on;
            });
        }
        return false;
    }

    /// Ends the rounds; called at the root. From then on `next` returns false on all ranks, on late ones once they call
    /// it. Waits only for room in full mailboxes.
    void end() {
        RILL_EXPECTS(is_root(), "rounds: only the root ends them");
        if (!links_.machine().has_ended()) guarded([&] { links_.end(links_.of().timeout()); });
    }

  protected:
    using links_type = round_links<typename Group::transport_type, Tree, Policies>;

    /// `hashes`: of all that the ranks must have alike.
    round_loop(Group& workers, const Tree& tree, const Policies& policies, const option_names& names,
               const option_hashes& hashes)
        : group_(&agreed(checked(workers, tree, policies), names, hashes)),
          links_(workers.net(), tree, policies, random_key{workers.options().seed}, workers.options().timeout,
                 workers.context()),
          unwinding_(std::uncaught_exceptions()) {}

    Group& workers() const { return *group_; }

    /// Checks this rank's own policies, before the ranks agree on them.
    static Group& checked(Group& workers, const Tree& tree, const Policies& policies) {
        if constexpr (CheckedCompletion<decltype(policies.enough)>) {
            int most = 0;
            for (rank_t rank = 0; rank < workers.size(); ++rank)
                most = std::max(most, tree.children(workers.size(), rank));
            policies.enough.require_options(most, workers.rank());
        }
        if constexpr (requires { policies.asked.require_options(1, rank_t{}); })
            policies.asked.require_options(tree.children(workers.size(), 0), workers.rank());
        return workers;
    }
    links_type& links() { return links_; }

    template <class T>
    wire::header frame_header_of(message_kind kind, std::size_t dimension) const {
        return links_.of().stamped({.element = element_type_of<T>, .dimension = dimension}, kind, number());
    }

    /// What `weighted` says, once it has been checked that a `reduce` may contribute it. If not, the rounds end on all
    /// ranks; if they had ended before, nothing changes.
    template <class In, class Out, class Own>
    contribution checked_contribution(const In& input, const Out& output, const Own& weighted) {
        RILL_EXPECTS(!links_.machine().has_ended(), "rounds: reduce belongs to a round that next has begun");
        return settled_if_thrown([&] {
            return links_.of().guarded(links_, [&] {
                const contribution own = weighted;
                require_weight(own);
                RILL_EXPECTS(number() != 0, "rounds: reduce belongs to a round that next has begun");
                RILL_EXPECTS(number() != contributed_to_, "rounds: reduce is called once in each round");
                RILL_EXPECTS(!is_root() || size_of(output) == size_of(input) || own.weight == 0,
                             "rounds: at the root input and output must be of one size");
                if (is_root() && own.weight != 0) require_in_place_or_apart(input, output);
                has_contributed_ = false;
                return own;
            });
        });
    }

    /// Adds the contribution of a child to `operands` and returns the bound of the rounding errors in it.
    template <class Operands>
    double add_child(Operands& operands, const round_arrival& from, const wire::header& own) {
        return read_from(links_, from.rank, [&] {
            const wire::header head = frame_reader(links_.content_of(from)).peek();
            if (head.call != own.call || head.element != own.element || head.dimension != own.dimension)
                refuse_contribution(links_.scene(), from.rank, head, own);
            return operands.add(links_.content_of(from), static_cast<std::size_t>(own.dimension), from.age,
                                group_->size(), group_->executor());
        });
    }

    /// What a contribution's frame says about its options: the aggregator, and the coding with all that it depends on.
    static std::uint32_t options_of_frame(std::uint64_t aggregator, std::uint64_t coding) {
        return option_hash(aggregator) << 16U | (option_hash(coding) & 0xFFFFU);
    }
    /// Answers a round that is over without a contribution.
    template <Element T, IndexType Index>
    round_receipt contribute_nothing(wire::header head) {
        contribution_sum{0, 0, 0}.describe(head);
        const stream_view<T, Index> nothing({0, static_cast<std::size_t>(head.dimension)}, sparse_view<T, Index>{});
        wire::header_block block;
        links_.hand_up(with_contributors(view_frame(head, nothing, block.data()), head, contributor_list{}));
        return describe({});
    }

    /// The receipt of a `reduce` that is about to return and needs no arrivals any more.
    round_receipt describe(contributor_list&& contributors) {
        links_.forget_arrivals();
        contributed_to_ = number();
        has_contributed_ = true;
        round_receipt result;
        result.operation_number = number();
        result.contributors = static_cast<int>(contributors.in.size());
        result.weight = contributors.weight();
        result.age = contributors.age();
        result.rounds = 1;
        result.wire = links_.machine().counted();
        result.elapsed = std::as_const(group_->net()).now() - links_.machine().began();
        result.in = std::move(contributors.in);
        result.late = std::move(contributors.late);
        result.missing = links_.machine().children().at_work();
        result.error_bound = contributors.error_bound;
        result.decoding_error = contributors.decoding_error;
        return result;
    }

    /// What codecs and stochastic rounding draw random numbers by.
    std::uint64_t drawn_number() const { return rounds_before_ + number(); }
    random_key own_key() const {
        return random_key{group_->options().seed}.derive(fingerprint("rounds"), drawn_number(), group_->rank());
    }

    /// Until it is settled, the codec holds what this rank has contributed.
    template <class Codec>
    void hold(Codec& codec, loans::loan loan) {
        unsettled_ = {&codec,
                      [](void* of, bool is_in) {
                          is_in ? static_cast<Codec*>(of)->commit() : static_cast<Codec*>(of)->rollback();
                      },
                      std::move(loan)};
    }

    /// Runs `body`. If it fails, all ranks learn that, and a contribution that is not known to be in a result returns
    /// to its codec.
    template <class Body>
    auto guarded(Body&& body) {
        return settled_if_thrown([&] {
            links_.of().require_going();
            return links_.of().guarded(links_, std::forward<Body>(body));
        });
    }

  private:
    /// Ends the rounds, or if this rank has failed in them, tells the others that failure: an end would say to them
    /// that the result of the round under way has their contributions.
    void end_unless_failed() {
        try {
            links_.of().require_going();
        } catch (const error& failed) {
            links_.of().net().abort(failed.notice());
            return;
        }
        links_.end({});
    }

    static Group& agreed(Group& workers, const option_names& names, const option_hashes& hashes) {
        agree(workers, names, hashes);
        return workers;
    }

    template <class T>
    bool begin(std::span<const T> values) {
        wire::header head = frame_header_of<T>(round_kind::next_round, values.size());
        head.index_bytes = 4;
        head.codes.indices = index_coding::dense;
        head.range = {0, values.size()};
        head.count = values.size();
        links_.begin(head, std::as_bytes(values));
        return true;
    }

    template <class T>
    bool take(std::span<T> state) {
        const auto* const newest = links_.take_newest();
        if (newest == nullptr) return false;
        const wire::header given = frame_reader(newest->pieces()).peek();
        if (given.element != element_type_of<T> || given.count != state.size())
            refuse_state(links_.scene(), given, element_type_of<T>, state.size());
        read_from(links_, links_.machine().parent(), [&] {
            const frame values = frame_reader(newest->pieces()).template next<T, std::uint32_t>();
            frame_scratch<T, std::uint32_t> unused;
            copy_dense(content_of(values, unused), state, T{}, group_->executor());
        });
        return true;
    }

    template <class Body>
    auto settled_if_thrown(Body&& body) {
        try {
            return body();
        } catch (...) {
            settle(was_in());
            throw;
        }
    }
    /// Tells the codec of the latest contribution what became of that.
    void settle(bool is_in) {
        const unsettled_codec last = std::exchange(unsettled_, {});
        if (last.codec != nullptr) last.settle(last.codec, is_in);
    }

    struct unsettled_codec {
        void* codec = nullptr;
        void (*settle)(void*, bool) = nullptr;
        loans::loan loan{};
    };

    Group* group_;
    links_type links_;
    int unwinding_;
    std::uint64_t rounds_before_ = 0;
    std::uint64_t contributed_to_ = 0;
    bool has_contributed_ = false;  ///< the latest `reduce` has returned
    unsettled_codec unsettled_{};
};

}}}  // namespace rill::RILL_ABI::detail
