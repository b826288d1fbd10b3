#pragma once

#include <rill/concept/update.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/scatter.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/protocol/detail/policy_state.hpp>
#include <rill/protocol/detail/server_kind.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// The part of a model that one server holds: what pushes do to it, and what pulls are answered. Coordinates count from
/// the beginning of the part. What it cannot read throws `protocol_error`.
template <Element T, class Move>
class model_shard {
  public:
    model_shard(const Move& move, std::span<const T> first, int workers)
        : values_(first.begin(), first.end()),
          update_(move.template bind<T>(first.size())),
          told_(static_cast<std::size_t>(workers)) {}

    /// Moves the model by a push, unless its weight is 0.
    void take_push(rank_t from, const wire::header& head, const byte_pieces& message) {
        told(from).rounds.push_back(static_cast<std::int64_t>(version_));
        if (head.weight == 0) return;
        if (head.index_bytes == 4)
            move<std::uint32_t>(from, message);
        else
            move<std::uint64_t>(from, message);
        ++version_;
    }

    /// Keeps what a worker asks for.
    void take_question(rank_t from, const wire::header& head, const byte_pieces& message) {
        told(from).keys.clear();
        told(from).by_keys = head.kind == server_kind::pull_keys;
        if (!told(from).by_keys) return;
        if (head.element == element_type::int32)
            keep_keys<std::int32_t>(from, message);
        else
            keep_keys<std::int64_t>(from, message);
    }

    /// What a worker is told: the version, the rounds of its pushes since the last answer, and the values that it has
    /// asked for, or all.
    buffer answer(const wire::header& head, rank_t to) {
        told_to& worker = told(to);
        if (worker.question != head.number) worker.forget();
        worker.question = head.number;
        worker.of_question = worker.rounds.size();
        const bool by_keys = worker.by_keys && head.kind == server_kind::answer;
        const std::span<const T> values = by_keys ? chosen(worker.keys) : std::span<const T>(values_);
        buffer message = room_for_part(values);
        numbers_ = {static_cast<std::int64_t>(version_), static_cast<std::int64_t>(worker.first)};
        numbers_.insert(numbers_.end(), worker.rounds.begin(), worker.rounds.end());
        append_frame(message, head, whole(std::span<const std::int64_t>(numbers_)));
        append_frame(message, head, whole(values));
        return message;
    }

    std::span<const T> values() const { return values_; }
    /// How many pushes have moved the values.
    std::uint64_t version() const { return version_; }

    /// All that the next push depends on, but the values.
    template <class Writer>
    void save(Writer& out, const std::string& name) const {
        out.add(name + "version", std::array{version_});
        save_part(out, name + "update", update_);
    }
    /// Goes on from these values, and from what was saved beside them.
    template <class Reader>
    void restore(const Reader& in, const std::string& name, std::span<const T> values) {
        std::array<std::uint64_t, 1> version{};
        auto update = update_;
        in.read(name + "version", version);
        restore_part(in, name + "update", update);
        values_.assign(values.begin(), values.end());
        update_ = std::move(update);
        version_ = version[0];
    }

  private:
    struct told_to {
        std::vector<std::int64_t> rounds;  ///< of its pushes from number `first` on
        std::uint64_t first = 0;
        std::uint64_t question = 0;   ///< that was answered last
        std::size_t of_question = 0;  ///< how many of `rounds` that answer told
        bool by_keys = false;
        std::vector<std::uint64_t> keys;

        /// The worker asks again, so it has read the last answer.
        void forget() {
            rounds.erase(rounds.begin(), rounds.begin() + static_cast<std::ptrdiff_t>(of_question));
            first += std::exchange(of_question, 0);
        }
    };
    told_to& told(rank_t rank) { return told_[static_cast<std::size_t>(rank)]; }

    template <IndexType Index>
    void move(rank_t from, const byte_pieces& message) {
        const frame pushed = frame_reader(message).template next<T, Index>();
        wire::detail::require(pushed.head.range == segment{0, values_.size()}, "it is of another range");
        const stream_view<T, Index> content = raw_content<T, Index>(pushed);
        if constexpr (RankedUpdate<Move, T>) {
            wire::detail::require(content.is_dense(), "this update takes whole models");
            update_.apply_of(from, std::span(values_), content.values(), version_);
        } else if constexpr (requires { update_.apply(std::span(values_), content, 1.0, version_); }) {
            if (content.is_dense())
                update_.apply(std::span(values_), content.values(), 1.0, version_);
            else
                update_.apply(std::span(values_), content, 1.0, version_);
        } else {
            update_.apply(std::span(values_), spread(content), 1.0, version_);
        }
    }
    template <IndexType Index>
    std::span<const T> spread(const stream_view<T, Index>& content) {
        if (content.is_dense()) return content.values();
        spread_.assign(values_.size(), T{});
        kernel::scatter_assign(content.pairs(), 0, std::span<T>(spread_));
        return spread_;
    }

    /// Keys travel as the integers of their width.
    template <class Key>
    void keep_keys(rank_t from, const byte_pieces& message) {
        frame_reader asked(message);
        std::vector<std::uint64_t>& keys = told(from).keys;
        for (const Key key : next_values<Key>(asked)) {
            keys.push_back(static_cast<std::make_unsigned_t<Key>>(key));
            const bool ascends = keys.size() == 1 || keys[keys.size() - 2] < keys.back();
            wire::detail::require(ascends && keys.back() < values_.size(), "it asks for what this server has not");
        }
    }
    std::span<const T> chosen(std::span<const std::uint64_t> keys) {
        chosen_.resize(keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i) chosen_[i] = values_[static_cast<std::size_t>(keys[i])];
        return chosen_;
    }

    aligned_vector<T> values_;
    bound_to<Move, T> update_;
    std::uint64_t version_ = 0;
    std::vector<told_to> told_;
    std::vector<std::int64_t> numbers_;
    aligned_vector<T> chosen_;
    aligned_vector<T> spread_;
};

}}}  // namespace rill::RILL_ABI::detail
