// Random steps under random schedules: each run mixes collectives, sizes and folds, then one or two ranks fail. In
// every run all ranks end, blame the same rank and keep their inputs, and the others continue without it.
#include <rill/collective/all_gather.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/collective/reduce_scatter.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/transport/subgroup.hpp>

#include "../support/sanitized.hpp"
#include "cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace cases;

namespace {

/// More runs find rarer schedules: RILL_STRESS=20 plays twenty times as many.
const int factor = std::getenv("RILL_STRESS") == nullptr ? 1 : std::atoi(std::getenv("RILL_STRESS"));
#ifndef RILL_TEST_THREAD_SANITIZED
#ifdef RILL_TEST_SANITIZED  // five times slower
const auto simulated_runs = static_cast<std::uint64_t>(60 * factor);
#else
const auto simulated_runs = static_cast<std::uint64_t>(150 * factor);
#endif
#endif
const auto thread_runs = static_cast<std::uint64_t>(30 * factor);

enum class trouble { none, fold_throws, not_a_number, absent, wrong_size, number_of };

/// Throws on the ranks that are told to.
struct fragile_sum : rill::aggregate::sum {
    static constexpr const char* name = "fragile_sum";
    bool breaks = false;

    template <class T>
    T fold(T a, T b) const {
        if (breaks) throw std::domain_error("this fold is broken");
        return a + b;
    }
    constexpr std::uint64_t fingerprint() const { return 1; }
    [[maybe_unused]] friend bool operator==(const fragile_sum&, const fragile_sum&) = default;
};

/// What one run does: the same on all ranks.
struct scenario {
    std::uint64_t seed;
    int ranks;
    int steps;
    trouble kind;
    std::vector<int> culprits;

    explicit scenario(std::uint64_t number) : seed(number) {
        rill::random_sequence draw(rill::random_key{number});
        const auto below = [&](int n) { return static_cast<int>(draw.below(static_cast<std::uint64_t>(n))); };
        ranks = 2 + below(15);
        steps = 1 + below(12);
        kind = static_cast<trouble>(below(static_cast<int>(trouble::number_of)));
        if (kind == trouble::none) return;
        culprits.push_back(
            ranks == 2 && kind == trouble::wrong_size ? 1 : below(ranks));  // of two ranks, the second is the odd one
        if (ranks > 3 && kind != trouble::wrong_size && below(3) == 0)
            culprits.push_back((culprits[0] + 1 + below(ranks - 1)) % ranks);
    }
    bool is_culprit(int rank) const { return std::find(culprits.begin(), culprits.end(), rank) != culprits.end(); }
    std::string text() const {
        return "scenario " + std::to_string(seed) + " (trouble " + std::to_string(static_cast<int>(kind)) +
               ", P=" + std::to_string(ranks) + ")";
    }
};

/// One rank of a scenario.
template <class Group>
class actor {
  public:
    actor(Group& workers, const scenario& story, failures& all)
        : workers_(workers),
          story_(story),
          all_(all),
          draw_(rill::random_key{story.seed}.derive(1)),
          own_draw_(rill::random_key{story.seed}.derive(2, workers.rank())) {}

    void fail(const std::string& what) {
        all_.add(story_.text() + " " + Group::topology_type::name + " rank " + std::to_string(workers_.rank()) + ": " +
                 what);
    }

    /// A collective of any kind that succeeds; checks its result.
    void step() {
        const move next = pick_move();
        const auto before = workers_.net().counted();
        const rill::receipt done = play(workers_, next);
        if (workers_.net().counted() - before != done.wire) fail("the receipt counts other bytes than the transport");
    }

    /// Starts some collectives that succeed.
    void take_off() {
        const auto count = draw_.below(5);
        for (std::uint64_t i = 0; i < count; ++i)
            flying_.push_back(
                rill::start(workers_, [this, next = pick_move()](auto& lane) { return play(lane, next); }));
    }

    /// Waits for them in any order. If the group has ended they may have failed, but only with `blamed` as the culprit.
    void land(rill::rank_t blamed = rill::no_rank) {
        while (!flying_.empty()) {
            std::swap(flying_[own_draw_.below(flying_.size())], flying_.back());
            rill::request next = std::move(flying_.back());
            flying_.pop_back();
            try {
                next.get();
            } catch (const rill::error& e) {
                if (blamed == rill::no_rank) throw;
                if (e.culprit() != blamed) fail("blames rank " + std::to_string(e.culprit()) + " in flight");
            }
        }
    }

    /// The collective that fails: throws on every rank, and no input has changed.
    void failing_step() {
        const std::size_t n = 64 + pick_size();
        const bool mine = story_.is_culprit(workers_.rank());
        std::vector<float> input = dense_input<float>(workers_.rank(), n);
        if (story_.kind == trouble::wrong_size && mine) input.push_back(1);
        if (story_.kind == trouble::not_a_number && mine) input[17] = std::numeric_limits<float>::quiet_NaN();
        const std::vector<float> copy = input;
        std::vector<float> output(input.size());
        struct compare {
            actor& of;
            const std::vector<float>&a, &b;
            ~compare() {
                if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) of.fail("an input has changed");
            }
        } const unchanged{*this, input, copy};
        if (story_.kind == trouble::not_a_number) {
            auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.1}}.bind(n);
            rill::start_all_reduce(workers_, input, output, codec).get();
        } else {
            fragile_sum fold;
            fold.breaks = story_.kind == trouble::fold_throws && mine;
            if (story_.seed % 2 == 0)
                rill::all_reduce(workers_, input, output, fold);
            else
                rill::start_all_reduce(workers_, input, output, fold).get();
        }
    }

  private:
    std::size_t pick_size() {
        static constexpr std::size_t sizes[] = {0, 1, 5, 64, 333, 3000};
        return sizes[draw_.below(std::size(sizes))];
    }

    struct move {
        std::uint64_t kind;
        std::size_t n;
        int root;
    };
    move pick_move() {
        const auto kind = draw_.below(9);
        const std::size_t n = pick_size();
        return {kind, n, static_cast<int>(draw_.below(static_cast<std::uint64_t>(workers_.size())))};
    }

    rill::receipt play(typename Group::lane_type& lane, const move& next) {
        const auto [kind, n, root] = next;
        const int self = lane.rank();
        std::vector<float> input = dense_input<float>(self, n);
        const std::vector<float> sum = oracle<float>(lane.size(), n, rill::aggregate::sum{});
        const auto expect = [&](const std::vector<float>& given, const std::vector<float>& due, const char* what) {
            if (given != due) fail(std::string("a wrong result of ") + what);
        };
        const rill::segment own = rill::split(n, static_cast<std::size_t>(lane.size()), static_cast<std::size_t>(self));
        const auto part_of = [&](const std::vector<float>& all) {
            return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(own.begin),
                                      all.begin() + static_cast<std::ptrdiff_t>(own.end));
        };
        rill::receipt done;
        std::vector<float> output(n, -1);
        switch (kind) {
            case 0:
                done = rill::all_reduce(lane, input, output);
                expect(output, sum, "all_reduce");
                break;
            case 1:
                done = rill::all_reduce(lane, input, input);
                expect(input, sum, "all_reduce in place");
                break;
            case 2: {
                auto codec = rill::compress::keep_all{}.bind(n);
                done = rill::all_reduce(lane, input, input, codec);
                expect(input, sum, "all_reduce in place with a codec");
                break;
            }
            case 3: {
                const auto mine = sparse_input<float, std::uint32_t>(self, n, 7);
                rill::stream<float, std::uint32_t> all(n);
                done = rill::all_reduce(lane, mine, all);
                expect(dense_copy(all, 0.0F), oracle<float>(lane.size(), n, rill::aggregate::sum{}, 7), "streams");
                break;
            }
            case 4:
                output.resize(own.size());
                done = rill::reduce_scatter(lane, input, output);
                expect(output, part_of(sum), "reduce_scatter");
                break;
            case 5:
                done = rill::all_gather(lane, part_of(sum), output);
                expect(output, sum, "all_gather");
                break;
            case 6:
                done = rill::broadcast(lane, input, root);
                expect(input, dense_input<float>(root, n), "broadcast");
                break;
            case 7:
                done = rill::reduce(lane, input, output, root);
                if (self == root) expect(output, sum, "reduce");
                break;
            default: done = rill::barrier(lane);
        }
        return done;
    }

    Group& workers_;
    const scenario& story_;
    failures& all_;
    rill::random_sequence draw_;  // the same on all ranks
    rill::random_sequence own_draw_;
    std::vector<rill::request> flying_;
};

/// Whom each rank blames.
struct verdicts {
    explicit verdicts(int ranks) : blamed(static_cast<std::size_t>(ranks), rill::no_rank), said(blamed.size()) {}
    std::vector<rill::rank_t> blamed;
    std::vector<std::string> said;

    /// `are_one`: whether of notices that race one wins on all ranks.
    void check(const scenario& story, failures& all, bool are_one) const {
        const int first = story.is_culprit(0) && story.kind == trouble::absent
                              ? static_cast<int>(std::find_if(blamed.begin(), blamed.end(),
                                                              [](int r) { return r != rill::no_rank; }) -
                                                 blamed.begin())
                              : 0;
        const auto at = [](int r) { return static_cast<std::size_t>(r); };
        for (int r = 0; r < story.ranks; ++r) {
            if (story.kind == trouble::absent && story.is_culprit(r)) continue;
            const bool none = story.kind == trouble::fold_throws && blamed[at(r)] == rill::no_rank;
            const bool differs = blamed[at(r)] != blamed[at(first)];
            if ((are_one && differs) || !(none || story.is_culprit(blamed[at(r)])))
                all.add(story.text() + ": rank " + std::to_string(r) + " blames " + std::to_string(blamed[at(r)]) +
                        " for " + said[at(r)] + "; rank " + std::to_string(first) + " blames " +
                        std::to_string(blamed[at(first)]));
        }
    }
};

template <class Shape>
auto body_of(const scenario& story, Shape shape, verdicts& verdict, failures& all) {
    return [&, shape](auto& net) {
        using Net = std::remove_reference_t<decltype(net)>;
        const rill::duration timeout = story.kind == trouble::absent ? short_timeout<Net> : rill::seconds(60);
        const auto self = static_cast<std::size_t>(net.rank());
        {
            rill::group workers(net, shape, {.timeout = timeout});
            actor player(workers, story, all);
            // A rank may still be in an earlier step when another fails.
            try {
                for (int i = 0; i < story.steps; ++i) {
                    if (i % 2 == 0) {
                        player.step();
                    } else {
                        player.take_off();
                        player.land();
                    }
                }
                player.take_off();
                if (story.kind == trouble::none) return player.land();
                if (story.kind == trouble::absent && story.is_culprit(net.rank())) return player.land(net.rank());
                player.failing_step();
                // A leaf folds nothing; and a rank that finished before another's fold threw learns of it in the next
                // call.
                if (story.kind != trouble::fold_throws) player.fail("nothing is thrown");
                rill::barrier(workers);
            } catch (const rill::error& e) {
                verdict.blamed[self] = e.culprit();
                verdict.said[self] = e.what();
            } catch (const std::domain_error&) {
                verdict.blamed[self] = net.rank();
            }
            player.land(verdict.blamed[self]);
        }
        if (story.is_culprit(net.rank())) return;
        std::vector<rill::rank_t> alive;
        for (int r = 0; r < net.size(); ++r)
            if (!story.is_culprit(r)) alive.push_back(r);
        rill::subgroup survivors(net, rill::view{.epoch = 1, .members = alive});
        rill::group workers(survivors, shape);
        actor player(workers, story, all);
        for (int i = 0; i < 3; ++i) player.step();
    };
}

/// Plays scenario `number` on one of the topologies; `run(ranks, body)` chooses the transport.
template <class Run>
void play(std::uint64_t number, failures& all, bool are_one, Run run) {
    const scenario story(number);
    verdicts verdict(story.ranks);
    const auto on = [&](auto shape) { run(story, body_of(story, shape, verdict, all)); };
    switch (number % 5) {
        case 0: on(rill::topology::ring{}); break;
        case 1: on(rill::topology::split_allgather{}); break;
        case 2: on(rill::topology::halving_doubling{}); break;
        case 3: on(rill::topology::tree{}); break;
        default: on(rill::topology::recursive_doubling{});
    }
    if (story.kind != trouble::none) verdict.check(story, all, are_one);
}

}  // namespace

#ifndef RILL_TEST_THREAD_SANITIZED
TEST_CASE("any mixture of steps and failures ends alike on every rank, in simulated networks") {
    failures all;
    for (std::uint64_t number = 0; number < simulated_runs; ++number)
        for (const auto control : {rill::simulated::control_plane::ideal, rill::simulated::control_plane::travelling}) {
            const bool are_one = control == rill::simulated::control_plane::ideal;
            play(number, all, are_one, [&](const scenario& story, auto body) {
                const rill::simulated::network links{
                    .control = control, .jitter = rill::microseconds(50), .seed = number};
                rill::simulated::run(story.ranks, links, body);
            });
        }
    CHECK(all.text() == "");
}
#endif

TEST_CASE("any mixture of steps and failures ends alike on every rank, on threads") {
    failures all;
    const auto on_threads = [&](std::uint64_t number) {
        play(number, all, true, [](const scenario& story, auto body) { rill::in_process::run(story.ranks, body); });
    };
    std::vector<std::jthread> at_once;  // scenarios that wait for a rank that never enters
    std::vector<std::uint64_t> in_turn;
    for (std::uint64_t number = 1'000'000; number < 1'000'000 + thread_runs; ++number) {
        if (scenario(number).kind == trouble::absent && at_once.size() < 8)
            at_once.emplace_back(on_threads, number);
        else
            in_turn.push_back(number);
    }
    at_once.clear();
    for (const std::uint64_t number : in_turn) on_threads(number);
    CHECK(all.text() == "");
}
