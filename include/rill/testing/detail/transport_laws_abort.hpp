#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/law.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

inline abort_notice law_notice(std::uint64_t context, rank_t culprit) {
    return {.context = context,
            .operation = 4,
            .kind = failure::invalid_value,
            .culprit = culprit,
            .other = 0,
            .reason = "rank " + std::to_string(culprit) + " has had enough"};
}

/// Checks that `wait()` throws the error of `notice`.
template <class Wait>
void expect_ended(const abort_notice& notice, const char* kind, Wait wait) {
    try {
        wait();
    } catch (const invalid_value& thrown) {
        expect(thrown.notice() == notice, kind);
        return;
    }
    expect(false, kind);
}

/// The last rank aborts after all others have said that they are about to wait. They already wait, or find the notice
/// when they begin.
template <class Net, class Wait>
void ends_waits(Net& net, std::uint64_t context, const char* kind, Wait wait) {
    const channel ready{.context = law_context + 1, .tag = 40};
    const rank_t culprit = net.size() - 1;
    const abort_notice notice = law_notice(context, culprit);
    if (net.rank() != culprit) {
        post_number(net, culprit, ready, 0);
        expect_ended(notice, kind, wait);
        expect_ended(notice, kind, wait);  // a wait that begins after the abort
    } else {
        for (rank_t peer = 0; peer < culprit; ++peer) receive_number(net, peer, ready);
        net.sleep_until(net.now() + microseconds(300));  // so that they probably wait already; not needed
        expect(net.abort(notice) == notice, "abort returns another notice than the only one");
        expect_ended(notice, kind, wait);
    }
    expect(net.aborted(context) == notice, "aborted() returns another notice");
    if (context != every_context) {
        expect(!net.aborted(context + 7), "an abort reaches another context");
        meet(net, 1);
    } else {
        expect(net.aborted(law_context) == notice, "an abort of every context misses one");
    }
}

template <class Net>
void ends_receives(Net& net, std::uint64_t aborted, channel on) {
    ends_waits(net, aborted, "receive() survives an abort", [&] { net.receive(net.rank(), on, deadline::never); });
}

template <class Net>
void ends_all_kinds(Net& net) {
    const rank_t self = net.rank();
    std::uint64_t context = law_context + 10;
    const auto each = [&](const char* kind, auto wait) {
        context += 20;
        ends_waits(net, context, kind, [&] { wait(channel{.context = context, .tag = 0}); });
    };
    const std::span<const rank_t> set(&self, 1);
    each("any-of-set survives an abort", [&](channel on) { net.receive(set, on, deadline::never); });
    each("receive_latest survives an abort", [&](channel on) { net.receive_latest(set, on, deadline::never); });
    each("receive_into survives an abort", [&](channel on) { net.receive_into(self, on, {}, deadline::never); });
    each("inquire survives an abort", [&](channel on) { net.inquire(self, on.context, 1, deadline::never); });
    each("a polling receive survives an abort", [&](channel on) {
        while (true) {
            net.receive(self, on, deadline::immediate);
            net.sleep_until(net.now() + microseconds(50));
        }
    });
}

template <class Net>
void ends_sends(Net& net, std::size_t size) {
    const buffer lent = pattern(size, 1);
    auto sent = net.post(net.rank(), {law_context, 0}, byte_view(lent));
    ends_waits(net, law_context, "a send survives an abort", [&] { sent.wait(deadline::never); });
    sent.settle();
    expect(sent.done(), "a send cannot be settled after an abort");
}

template <class Net>
void ends_posts(Net& net, std::size_t bound) {
    const std::size_t left = 64;  // for the messages with which the ranks meet
    expect(net.post(net.rank(), {law_context, 0}, pattern(bound - left, 1)), "a mailbox with room refuses a message");
    ends_waits(net, law_context, "a post that waits for room survives an abort", [&] {
        net.post(net.rank(), {law_context, 1}, pattern(left + 1, 1), deadline::never);
    });
}

/// All ranks abort at once: one notice wins and stays, the `same` on all ranks.
template <class Net>
void agrees_on_first(Net& net, bool same) {
    const abort_notice won = net.abort(law_notice(law_context, net.rank()));
    expect(won.culprit >= 0 && won == law_notice(law_context, won.culprit), "abort returns a notice that nobody sent");
    expect(net.abort(law_notice(law_context, 77)) == won, "a second abort wins");
    expect(net.aborted(law_context) == won, "aborted() returns another notice than abort()");
    const channel on{.context = law_context + 1, .tag = 41};
    for (rank_t peer = 0; peer < net.size(); ++peer)
        post_number(net, peer, on, static_cast<std::uint32_t>(won.culprit));
    for (rank_t peer = 0; peer < net.size(); ++peer)
        if (const auto there = receive_number(net, peer, on); same)
            expect_equal(there, static_cast<std::uint32_t>(won.culprit), "culprit on another rank");
    expect(net.aborted(law_context) == won, "a later notice replaces the first");
}

/// Operations with lower tags than the failed one go on. If one of them fails later, all operations from its tag on
/// end.
template <class Net>
void spares_lower_tags(Net& net) {
    const rank_t self = net.rank();
    const channel earlier{law_context, 3}, failed{law_context, 4}, meeting{law_context + 1, 42};
    const auto meet_all = [&](std::uint32_t number) {
        for (rank_t peer = 0; peer < net.size(); ++peer) post_number(net, peer, meeting, number);
        for (rank_t peer = 0; peer < net.size(); ++peer) receive_number(net, peer, meeting);
    };
    abort_notice later = law_notice(law_context, 0);
    later.first_tag = 4;
    if (self == 0) expect(net.abort(later) == later, "abort returns another notice than the only one");
    meet_all(1);
    expect_ended(later, "a wait survives an abort of its tag", [&] { net.receive(self, failed, deadline::never); });
    net.announce(law_context, {.number = 3});
    expect(net.inquire(self, law_context, 3, deadline::never).has_value(), "an abort ends an earlier inquiry");
    expect_ended(later, "an inquiry survives", [&] { net.inquire(self, law_context, 4, deadline::never); });
    post_number(net, (self + 1) % net.size(), earlier, 9);
    expect_equal(receive_number(net, (self + net.size() - 1) % net.size(), earlier), 9U, "a message of a lower tag");
    expect(net.aborted(law_context) == later, "aborted() returns another notice");
    meet_all(2);
    abort_notice sooner = law_notice(law_context, 1);
    sooner.first_tag = 3;
    sooner.reason = "an earlier one has failed as well";
    if (self == 1) expect(net.abort(sooner) == sooner, "an abort of lower tags does not count");
    meet_all(3);
    expect_ended(sooner, "a wait survives the second abort", [&] { net.receive(self, earlier, deadline::never); });
    expect(net.aborted(law_context) == later, "a second abort replaces the first");
}

template <class Net>
void keeps_first_of_context(Net& net) {
    const abort_notice narrow = law_notice(law_context, 0);
    const abort_notice wide = law_notice(every_context, 0);
    expect(!net.aborted(law_context), "a fresh context is aborted");
    net.abort(narrow);
    net.abort(wide);
    expect(net.aborted(law_context) == narrow, "a later abort of every context replaces the first notice of one");
    expect(net.aborted(law_context + 5) == wide, "an abort of every context misses one");
    expect(net.abort(law_notice(law_context + 6, 2)) == wide, "a context ends twice");
}

/// What the ranks of a run have seen. Each rank has its own slot, because all ranks may be threads of this process, or
/// only one may be in it.
class run_witness {
  public:
    explicit run_witness(int ranks) : ran_(static_cast<std::size_t>(ranks)), informed_(ran_.size()) {}

    void runs(rank_t rank) { ran_[static_cast<std::size_t>(rank)] = 1; }
    void is_informed(rank_t rank) { informed_[static_cast<std::size_t>(rank)] = 1; }
    bool has_run(rank_t rank) const { return ran_[static_cast<std::size_t>(rank)] != 0; }
    bool has_any() const { return std::count(ran_.begin(), ran_.end(), 1) > 0; }

    void expect_all_informed(rank_t but, bool one_process) const {
        if (one_process)
            expect_equal(std::count(ran_.begin(), ran_.end(), 1), std::ssize(ran_), "ranks that ran in this process");
        for (std::size_t rank = 0; rank < ran_.size(); ++rank)
            expect(ran_[rank] == informed_[rank] || static_cast<rank_t>(rank) == but,
                   "a rank does not hear who threw, and why");
    }

  private:
    std::vector<int> ran_, informed_;
};

inline bool tells_of(const error& heard, rank_t culprit, const char* reason) {
    return heard.culprit() == culprit && heard.notice().reason.find(reason) != std::string::npos;
}

/// Checks a run in which rank `thrower` throws std::out_of_range: the run rethrows it there; elsewhere it throws the
/// notice's error.
template <class Runner, class Body>
void expect_rethrown(Runner& runner, int ranks, rank_t thrower, const char* reason, run_witness& seen, Body body) {
    bool rethrown = false, told = false;
    try {
        runner(ranks, [&](auto& net) {
            seen.runs(net.rank());
            body(net);
        });
    } catch (const std::out_of_range& thrown) {
        rethrown = thrown.what() == std::string(reason);
    } catch (const peer_failure& heard) {
        told = tells_of(heard, thrower, reason);
    }
    if (seen.has_any()) expect(seen.has_run(thrower) ? rethrown : told, "a run does not rethrow what ended it");
}

/// Rank 1 throws. The others wait in `wait(net)`, which must end with the notice.
template <class Runner, class Wait>
void ends_with_exception(Runner& runner, bool one_process, Wait wait) {
    constexpr int ranks = 4;
    constexpr rank_t thrower = 1;
    const char* const reason = "index 7 is out of range";
    run_witness seen(ranks);
    expect_rethrown(runner, ranks, thrower, reason, seen, [&](auto& net) {
        if (net.rank() == thrower) throw std::out_of_range(reason);
        try {
            wait(net);
        } catch (const peer_failure& heard) {
            if (tells_of(heard, thrower, reason)) seen.is_informed(net.rank());
            throw;
        }
    });
    seen.expect_all_informed(thrower, one_process);
}

/// An error that names another rank as the culprit ends the run in that rank's name.
template <class Runner>
void ends_in_name_of_culprit(Runner& runner, bool one_process) {
    constexpr int ranks = 3;
    run_witness seen(ranks);
    rank_t blamed = no_rank;
    try {
        runner(ranks, [&](auto& net) {
            seen.runs(net.rank());
            if (net.rank() == 2) throw timeout(law_notice(law_context, 0));
            try {
                net.receive(net.rank(), {law_context + 3, 0}, deadline::never);
            } catch (const error& heard) {
                if (heard.culprit() == 0) seen.is_informed(net.rank());
                throw;
            }
        });
    } catch (const error& thrown) {
        blamed = thrown.culprit();
    }
    if (seen.has_any()) expect_equal(blamed, 0, "culprit of a run's error");
    seen.expect_all_informed(2, one_process);
}

}  // namespace detail

/// Checks the laws of aborts: which waits they end, on which ranks, and which culprit they name.
template <class Laws>
void abort_laws(const Laws& all) {
    using detail::law_context;
    for (const int ranks : {1, 2, 8})
        all.law("an abort ends a receive on every rank", ranks, [](auto& net) {
            detail::ends_receives(net, law_context, {law_context, 0});
        });
    all.law("an abort of every context ends a receive on every rank", 5, [](auto& net) {
        detail::ends_receives(net, every_context, {law_context, 0});
    });
    all.law("an abort ends every kind of wait", 3, [](auto& net) { detail::ends_all_kinds(net); });
    all.law("an abort spares the waits on lower tags", 3, [](auto& net) { detail::spares_lower_tags(net); });
    all.law("an abort ends the wait for a send", 3,
            [lent = detail::lent_size(all.limits())](auto& net) { detail::ends_sends(net, lent); });
    all.law("an abort of every context ends sleep_until", 3, [](auto& net) {
        detail::ends_waits(net, every_context, "sleep_until() survives an abort",
                           [&] { net.sleep_until(net.now() + seconds(3600)); });
    });
    if (const std::size_t bound = all.limits().mailbox_bytes; bound > 0)
        all.law("an abort ends the wait for room", 3, [bound](auto& net) { detail::ends_posts(net, bound); });
    for (const int ranks : {1, 2, 5})
        all.law("the first notice wins", ranks,
                [same = all.limits().same_first_notice](auto& net) { detail::agrees_on_first(net, same); });
    all.law("the first notice of a context stays", 1, [](auto& net) { detail::keeps_first_of_context(net); });
    const bool one_process = all.limits().one_process;
    all.law_of_run("an exception ends ranks that receive", 4, [one_process](auto& runner) {
        detail::ends_with_exception(runner, one_process, [](auto& net) {
            net.receive(net.rank(), {law_context, 0}, deadline::never);
        });
    });
    all.law_of_run("an exception ends ranks that sleep", 4, [one_process](auto& runner) {
        detail::ends_with_exception(runner, one_process, [](auto& net) { net.sleep_until(net.now() + seconds(3600)); });
    });
    all.law_of_run("an error ends the run in the name of its culprit", 3,
                   [one_process](auto& runner) { detail::ends_in_name_of_culprit(runner, one_process); });
}

}}}  // namespace rill::RILL_ABI::testing
