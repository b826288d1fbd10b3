#pragma once

#include <rill/concept/mixing.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/topology/any_matcher.hpp>
#include <rill/topology/detail/disjoint_sets.hpp>
#include <rill/topology/detail/link_speeds.hpp>
#include <rill/topology/detail/mixing_rows.hpp>
#include <rill/topology/detail/shuffled_ranks.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace topology {

// GCC 12 says that the enumerator of a scoped enumeration shadows the type topology::any.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
/// Which links a round may take that brings together ranks which have not met for long.
enum class bridges : unsigned char {
    fastest,  ///< of those that join all of them, the fastest
    any       ///< as in the paper
};
#pragma GCC diagnostic pop

/// In each round all ranks form pairs over fast links, which exchange their models half and half. Over some rounds each
/// rank reaches each other. Models `Mixing`.
///
///     const topology::bandwidth_matching fast{
///         .links = speeds, .least = 3e6, .window = 5, .matcher = adapt::boost_matching{}};
///
/// A pair has *met* if it has exchanged in one of the last `window - 1` rounds. If the pairs that have met join all
/// ranks, a round matches over links of `least` or more. Otherwise it matches over links between ranks that are not
/// joined, of which it takes the fastest that join them all. Ranks that are left over match over links of `least` or
/// more, and then over any. Of an odd number one rests, in turn.
///
/// The rows of a round depend on the rounds before it. They are a function of links, options, key and round, given the
/// matcher; each bound object computes them from round 0 on. Memory: O(P²); a round costs O(P² log P) steps and three
/// matchings.
///
/// Errors: `contract_violation` from `bind` if there is no matcher, if `links` is not square or has an entry that is
/// negative or not finite off the diagonal, which is named by row and column; if `window` is less than ⌈log2 P⌉, since
/// matchings need that many rounds to bring all models together, and most rounds would ignore `least`.
///
/// Source: SAPS-PSGD, algorithm 3, with these deviations. Pairs that have never met count as met infinitely long ago. A
/// rank that is left over keeps its model. Bridges are the fastest ones, not any (`bridges::any`). Who is left over is
/// first matched over fast links.
struct bandwidth_matching {
    static constexpr const char* name = "bandwidth_matching";
    static constexpr bool is_doubly_stochastic = true;
    static constexpr bool is_symmetric = true;
    static constexpr bool keeps_neighbours = false;

    std::vector<double>
        links{};       ///< row by row, from row to column, in bytes per second; 0: none. The slower way counts
    double least = 0;  ///< bytes per second
    int window = 0;    ///< rounds; 0: ⌈log2 P⌉
    any_matcher matcher{};
    bridges bridge = bridges::fastest;

    class bound {
      public:
        bound(const bandwidth_matching& of, int size, random_key key)
            : speeds_(size, of.links),
              least_(rill::detail::require_option(of.least >= 0, "topology::bandwidth_matching: least", of.least,
                                                  "a speed, 0 or more")),
              window_(window_of(of, size)),
              matcher_(of.matcher),
              bridge_(of.bridge),
              key_(key),
              resting_(size, key.derive(fingerprint("rests"))),
              is_there_(static_cast<std::size_t>(size), true),
              partner_(is_there_.size(), no_rank),
              met_(is_there_.size() * is_there_.size(), 0) {
            if (!matcher_)
                throw contract_violation(
                    "rill: topology::bandwidth_matching: it has no matcher; use adapt::boost_matching{}");
        }

        void fill(std::uint64_t round, rank_t rank, mixing_row& row) {
            if (round + 1 < rounds_) forget();
            while (rounds_ <= round) draw();
            detail::clear(row);
            if (const rank_t other = partner(rank); other != no_rank) detail::halve(row, other, other);
        }
        /// Two ranks have exchanged at this speed. It counts with a `weight` of 0 to 1 in the speed of their link from
        /// the next round on, and what the link had with the rest.
        void observe(rank_t a, rank_t b, double bytes_per_second, double weight) {
            speeds_.set(a, b, (1 - weight) * speed(a, b) + weight * bytes_per_second);
        }
        /// The speeds of all links, as it matches by them; 0 on the diagonal where no speed was given.
        const std::vector<double>& links() const { return speeds_.all(); }
        /// From the next round on, the rank is matched or not.
        void attend(rank_t rank, bool is_there) { is_there_[index(rank)] = is_there; }

      private:
        static std::size_t index(rank_t rank) { return static_cast<std::size_t>(rank); }
        static std::uint64_t window_of(const bandwidth_matching& of, int size) {
            const int needed = static_cast<int>(std::bit_width(static_cast<unsigned>(size - 1)));
            if (of.window != 0 && of.window < needed)
                throw contract_violation(text_of({"rill: topology::bandwidth_matching: a window of ", of.window,
                                                  " rounds is too short for ", size, " ranks, which need ", needed}));
            return static_cast<std::uint64_t>(of.window == 0 ? needed : of.window);
        }

        int size() const { return resting_.size(); }
        rank_t& partner(rank_t rank) { return partner_[index(rank)]; }
        /// The number of the round in which they met last, counted from 1; 0 if they never did.
        std::uint64_t& met(rank_t a, rank_t b) {
            return met_[index(std::min(a, b)) * is_there_.size() + index(std::max(a, b))];
        }
        void forget() {
            rounds_ = 0;
            std::fill(met_.begin(), met_.end(), 0);
        }

        void draw() {
            std::fill(partner_.begin(), partner_.end(), no_rank);
            shuffle();
            detail::disjoint_sets joined = joined_lately();
            const auto is_fast = [&](rank_t a, rank_t b) { return speed(a, b) >= least_; };
            const double slowest_bridge = find_bridges(joined);
            if (slowest_bridge > 0)
                match(
                    [&](rank_t a, rank_t b) { return joined.of(a) != joined.of(b) && speed(a, b) >= slowest_bridge; });
            match(is_fast);
            match([](rank_t, rank_t) { return true; });
            ++rounds_;
            for (const rank_t rank : free_)
                if (partner(rank) != no_rank) met(rank, partner(rank)) = rounds_;
        }
        double speed(rank_t a, rank_t b) const { return speeds_.between(a, b); }

        /// Puts the ranks that take part into a random order.
        void shuffle() {
            detail::shuffled_ranks order(size(), key_.derive(rounds_));
            free_.clear();
            for (int place = 0; place < size(); ++place)
                if (is_there_[index(order.at(place))]) free_.push_back(order.at(place));
            if (free_.size() % 2 != 0) std::erase(free_, next_to_rest());
        }
        rank_t next_to_rest() {
            const auto turns = static_cast<std::uint64_t>(size());
            int place = static_cast<int>(rounds_ % turns);
            while (!is_there_[index(resting_.at(place))]) place = (place + 1) % size();
            return resting_.at(place);
        }
        detail::disjoint_sets joined_lately() {
            detail::disjoint_sets joined(size());
            for (const rank_t a : free_)
                for (const rank_t b : free_)
                    if (a < b && met(a, b) > 0 && met(a, b) + window_ > rounds_ + 1) joined.join(a, b);
            return joined;
        }

        /// The speed of the slowest link that is needed to join all ranks, or 0 if they are joined or no link joins
        /// them.
        double find_bridges(detail::disjoint_sets joined) {
            pairs_.clear();
            for (const rank_t a : free_)
                for (const rank_t b : free_)
                    if (a < b && speed(a, b) > 0 && joined.of(a) != joined.of(b)) pairs_.push_back({a, b});
            std::sort(pairs_.begin(), pairs_.end(), [&](const auto& one, const auto& other) {
                return speed(one[0], one[1]) > speed(other[0], other[1]);
            });
            double slowest = 0;
            for (const auto& [a, b] : pairs_)
                if (bridge_ == bridges::any || joined.join(a, b)) slowest = speed(a, b);
            return slowest;
        }

        /// Matches ranks that have no partner yet over the links that `may(a, b)` take.
        template <class May>
        void match(May&& may) {
            std::vector<rank_t> open;
            for (const rank_t rank : free_)
                if (partner(rank) == no_rank) open.push_back(rank);
            pairs_.clear();
            for (std::size_t i = 0; i < open.size(); ++i)
                for (std::size_t j = i + 1; j < open.size(); ++j)
                    if (speed(open[i], open[j]) > 0 && may(open[i], open[j]))
                        pairs_.push_back({static_cast<rank_t>(i), static_cast<rank_t>(j)});
            if (pairs_.empty()) return;
            const std::vector<rank_t> mates = matcher_.match(static_cast<int>(open.size()), pairs_);
            for (std::size_t i = 0; i < open.size(); ++i) {
                if (!is_matched(mates, i, open.size())) refuse_matcher();
                if (mates[i] == no_rank) continue;
                partner(open[i]) = open[index(mates[i])];
                if (!(speed(open[i], partner(open[i])) > 0 && may(open[i], partner(open[i])))) refuse_matcher();
            }
        }
        /// Whether the answer of a matcher gives one partner, who names it too, or none.
        static bool is_matched(const std::vector<rank_t>& mates, std::size_t i, std::size_t size) {
            if (mates.size() != size) return false;
            if (mates[i] == no_rank) return true;
            const bool is_other = mates[i] >= 0 && index(mates[i]) < size && index(mates[i]) != i;
            return is_other && mates[index(mates[i])] == static_cast<rank_t>(i);
        }
        [[noreturn, gnu::cold]] void refuse_matcher() const {
            throw contract_violation(text_of({"rill: topology::bandwidth_matching: the answer of the matcher ",
                                              matcher_.name(), " is no matching of the graph that it was given"}));
        }

        detail::link_speeds speeds_;
        double least_;
        std::uint64_t window_;
        any_matcher matcher_;
        bridges bridge_;
        random_key key_;
        detail::shuffled_ranks resting_;
        std::vector<bool> is_there_;
        std::vector<rank_t> partner_;  ///< in the round drawn last
        std::vector<std::uint64_t> met_;
        std::uint64_t rounds_ = 0;    ///< drawn so far
        std::vector<rank_t> free_{};  ///< who takes part, in random order
        std::vector<std::array<rank_t, 2>> pairs_{};
    };

    bound bind(int size, random_key key) const { return {*this, detail::checked_size(size), key}; }
    template <class Visit>
    void visit_options(Visit&& visit) const {
        for (const double each : links) visit("bytes per second of a link", each);
        visit("least bytes per second", least);
        visit("window", window);
        visit("matcher", fingerprint(matcher.name()));
        visit("bridges", static_cast<int>(bridge));
    }
    friend bool operator==(const bandwidth_matching&, const bandwidth_matching&) = default;
};

static_assert(Mixing<bandwidth_matching>);

}}}  // namespace rill::RILL_ABI::topology
