#pragma once

#include <rill/concept/backlog.hpp>
#include <rill/concept/completion.hpp>
#include <rill/concept/participation.hpp>
#include <rill/concept/staleness.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/concept/trigger.hpp>
#include <rill/core/config.hpp>
#include <rill/core/detail/real.hpp>
#include <rill/core/random.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/law.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {

namespace detail {

inline constexpr unsigned most_in_law = 6;  // number of children or ranks up to which all subsets are checked

/// Returns the numbers of the bits that are set in `set`.
inline std::vector<int> members_of(unsigned set) {
    std::vector<int> members;
    for (int i = 0; (set >> i) != 0; ++i)
        if ((set >> i & 1U) != 0) members.push_back(i);
    return members;
}

template <class C>
bool is_complete(const C& completion, unsigned expected, unsigned set, bool time_is_up) {
    const std::vector<int> in = members_of(set);
    return completion.is_complete({.expected = static_cast<int>(expected), .in = in, .time_is_up = time_is_up});
}

template <class C>
bool takes_all(const C& completion) {
    for (unsigned n = 0; n <= most_in_law; ++n)
        for (const bool time_is_up : {false, true})
            if (!is_complete(completion, n, (1U << n) - 1, time_is_up)) return false;
    return true;
}

template <class C>
bool stays_complete(const C& completion) {
    for (unsigned n = 0; n <= most_in_law; ++n)
        for (unsigned set = 0; set < 1U << n; ++set) {
            if (is_complete(completion, n, set, false) && !is_complete(completion, n, set, true)) return false;
            for (const bool time_is_up : {false, true})
                for (unsigned i = 0; i < n; ++i)
                    if (is_complete(completion, n, set, time_is_up) &&
                        !is_complete(completion, n, set | 1U << i, time_is_up))
                        return false;
        }
    return true;
}

template <class C>
bool patience_grows(const C& completion) {
    for (int height = 0; height < 20; ++height)
        if (completion.patience(height).ns < 0 || completion.patience(height + 1) < completion.patience(height))
            return false;
    return true;
}

inline constexpr std::uint32_t most_rounds_in_law = 200;

template <class S, class Says>
bool falls(const S& staleness, Says says) {
    for (std::uint32_t rounds = 0; rounds < most_rounds_in_law; ++rounds)
        if (says(staleness, rounds + 1) && !says(staleness, rounds)) return false;
    return true;
}

template <class T>
bool starts(const T& trigger, unsigned set, unsigned size, random_key key) {
    const std::vector<int> ready = members_of(set);
    return trigger.starts(std::vector<rank_t>(ready.begin(), ready.end()), static_cast<int>(size), key);
}

template <class T>
bool starts_with_all(const T& trigger) {
    for (unsigned n = 1; n <= most_in_law; ++n)
        for (std::uint64_t round = 0; round < 20; ++round)
            if (!starts(trigger, (1U << n) - 1, n, random_key{round})) return false;
    return true;
}

template <class T>
bool stays_started(const T& trigger) {
    for (unsigned n = 1; n <= most_in_law; ++n)
        for (unsigned set = 0; set < 1U << n; ++set)
            for (std::uint64_t round = 0; round < 20; ++round)
                for (unsigned i = 0; i < n; ++i)
                    if (starts(trigger, set, n, random_key{round}) &&
                        !starts(trigger, set | 1U << i, n, random_key{round}))
                        return false;
    return true;
}

/// The places among `size` that the trigger asks, as a set of bits.
template <class T>
unsigned asked(const T& trigger, unsigned size, random_key key) {
    unsigned set = 0;
    for (unsigned i = 0; i < size; ++i)
        if (trigger.asks(static_cast<rank_t>(i), static_cast<int>(size), key)) set |= 1U << i;
    return set;
}

template <class T>
bool asks_somebody(const T& trigger) {
    for (unsigned n = 1; n <= most_in_law; ++n)
        for (std::uint64_t round = 0; round < 20; ++round)
            if (asked(trigger, n, random_key{round}) == 0) return false;
    return true;
}

template <class T>
bool only_asked_count(const T& trigger) {
    for (unsigned n = 1; n <= most_in_law; ++n)
        for (std::uint64_t round = 0; round < 20; ++round) {
            const unsigned counts = asked(trigger, n, random_key{round});
            for (unsigned set = 0; set < 1U << n; ++set)
                if (starts(trigger, set, n, random_key{round}) != starts(trigger, set & counts, n, random_key{round}))
                    return false;
        }
    return true;
}

template <class B>
bool shares_are_positive(const B& backlog) {
    for (std::size_t count = 1; count < most_rounds_in_law; ++count) {
        if (!(backlog.weight(count) > 0) || !rill::detail::is_finite(backlog.weight(count))) return false;
        for (std::size_t i = 0; i < count; ++i)
            if (!(backlog.share(i, count) > 0) || !rill::detail::is_finite(backlog.share(i, count))) return false;
    }
    return true;
}

template <class B>
bool equal_gradients_stay(const B& backlog) {
    for (std::size_t count = 1; count < most_rounds_in_law; ++count) {
        double sum = 0;
        for (std::size_t i = 0; i < count; ++i) sum += backlog.share(i, count);
        const double error = sum / backlog.weight(count) - 1;
        if (error > 1e-12 || error < -1e-12) return false;
    }
    return true;
}

/// Returns what is wrong with a tree of `size` ranks, or an empty string.
template <class Tree>
std::string defect_of(const Tree& tree, int size) {
    const auto at = [](rank_t rank, const char* what) { return "rank " + std::to_string(rank) + what; };
    if (tree.parent(size, 0) != no_rank) return at(0, " has a parent");
    for (rank_t rank = 0; rank < size; ++rank) {
        int height = 0;
        rank_t last = no_rank;
        for (int i = 0; i < tree.children(size, rank); ++i) {
            const rank_t child = tree.child(size, rank, i);
            if (child <= last || child >= size)
                return at(rank, " has children in another order, or that are not there");
            if (tree.parent(size, child) != rank) return at(child, " has another parent than that whose child it is");
            height = tree.height(size, child) >= height ? tree.height(size, child) + 1 : height;
            last = child;
        }
        if (tree.height(size, rank) != height) return at(rank, " has another height");
        if (rank == 0) continue;
        rank_t above = rank;
        for (int steps = 0; above > 0 && steps < size; ++steps) above = tree.parent(size, above);
        if (above != 0) return at(rank, " is not below rank 0");
        bool is_child = false;
        const rank_t parent = tree.parent(size, rank);
        for (int i = 0; i < tree.children(size, parent); ++i)
            is_child = is_child || tree.child(size, parent, i) == rank;
        if (!is_child) return at(rank, " is no child of its parent");
    }
    return {};
}

}  // namespace detail

// Each function below calls `visit(const char* name, const law_outcome&)` once per law.

/// Checks a completion against the laws of the concept.
template <Completion C, class Visit>
void for_each_completion_law(const C& completion, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(C::name) + ": " + otherwise});
    };
    law("all are enough", detail::takes_all(completion), "a gather from which nothing is missing is not complete");
    law("what is complete stays so", detail::stays_complete(completion),
        "a complete gather is not complete when more has come, or when time is up");
    law("patience does not fall with height", detail::patience_grows(completion),
        "patience is negative, or less further up");
}

/// Checks a staleness against the laws of the concept.
template <Staleness S, class Visit>
void for_each_staleness_law(const S& staleness, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(S::name) + ": " + otherwise});
    };
    law("what is on time counts", staleness.accepts(0), "accepts(0) is false");
    law("the older, the less it counts",
        detail::falls(staleness, [](const S& s, std::uint32_t age) { return s.accepts(age); }),
        "an age is accepted, and a smaller one is not");
    law("the further ahead, the sooner a rank waits",
        detail::falls(staleness, [](const S& s, std::uint32_t lag) { return s.may_lead(lag); }),
        "a rank may lead by some rounds, and not by fewer");
    if constexpr (OwnRoundStaleness<S>)
        law("own_round_only is true", !staleness.accepts(1) && staleness.may_lead(detail::most_rounds_in_law),
            "a contribution counts in another round than its own, though it says own_round_only");
}

/// Checks a trigger against the laws of the concept.
template <Trigger T, class Visit>
void for_each_trigger_law(const T& trigger, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(T::name) + ": " + otherwise});
    };
    law("all ranks start a round", detail::starts_with_all(trigger), "a round does not start though all are ready");
    law("what has started a round goes on to do so", detail::stays_started(trigger),
        "a round starts, and does not when one more is ready");
    law("somebody is asked", detail::asks_somebody(trigger), "no rank is asked");
    law("only those count that are asked", detail::only_asked_count(trigger),
        "whether a round starts depends on a rank that is not asked");
}

/// Checks a participation against the laws of the concept.
template <Participation P, class Visit>
void for_each_participation_law(const P& participation, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(P::name) + ": " + otherwise});
    };
    bool asks = true, ascends = true, repeats = true;
    for (int size = 0; size <= 20; ++size)
        for (std::uint64_t round = 0; round < 50; ++round) {
            std::vector<int> first{7, 7}, second;
            participation.choose(size, random_key{round}, first);
            participation.choose(size, random_key{round}, second);
            asks = asks && first.empty() == (size == 0);
            repeats = repeats && first == second;
            int before = -1;
            for (const int place : first) {
                ascends = ascends && before < place && place < size;
                before = place;
            }
        }
    law("somebody is asked", asks, "nobody is asked");
    law("places ascend and are those that there are", ascends, "places do not ascend, or are none");
    law("equal keys ask the same", repeats, "the same round asks others when it is asked again");
}

/// Checks a backlog against the laws of the concept.
template <Backlog B, class Visit>
void for_each_backlog_law(const B& backlog, Visit&& visit) {
    const auto law = [&](const char* name, bool held, const char* otherwise) {
        visit(name, law_outcome{.held = held, .what = held ? "" : std::string(B::name) + ": " + otherwise});
    };
    law("one gradient is sent as it is", backlog.share(0, 1) == 1 && backlog.weight(1) == 1,
        "one gradient alone has another share or weight than 1");
    law("shares and weights are positive", detail::shares_are_positive(backlog),
        "a share or a weight is not finite, or not above 0");
    law("equal gradients are their own mean", detail::equal_gradients_stay(backlog),
        "the shares do not add up to the weight");
}

/// Checks a tree of `size` ranks against the laws of the concept.
template <TreeTopology Tree, class Visit>
void for_each_tree_law(const Tree& tree, int size, Visit&& visit) {
    const std::string defect = detail::defect_of(tree, size);
    visit("parents, children and heights agree, and all stand below rank 0",
          law_outcome{.held = defect.empty(), .what = defect.empty() ? "" : std::string(Tree::name) + ": " + defect});
}

}}}  // namespace rill::RILL_ABI::testing
