#pragma once

#include <rill/concept/replica.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/protocol/detail/push_log.hpp>
#include <rill/protocol/detail/server_kind.hpp>
#include <rill/protocol/detail/server_links.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A worker's part in a run of a parameter server: what it asks and pushes, and what it has been told.
template <Transport Net, Element T>
class server_worker {
  public:
    server_worker(session<Net>& of, int servers, std::size_t dimension)
        : session_(of), links_(of, servers), dimension_(dimension), pushes_(links_.count()) {}

    server_links<Net>& links() { return links_; }
    const server_links<Net>& links() const { return links_; }
    segment part_of(std::size_t server) const { return split(dimension_, links_.count(), server); }

    bool has_begun() const { return pulled_ || is_leaving_; }
    bool has_pulled(const held_version& held) const { return pulled_ && held.version <= *pulled_; }
    bool is_leaving() const { return is_leaving_; }
    bool is_over() const { return is_over_; }
    /// As told last.
    std::uint64_t version() const { return version_; }
    /// Each server, when it answered last, had counted no push.
    bool is_untouched() const { return is_untouched_; }
    /// After the end.
    std::span<const T> final_model() const { return final_; }

    wire::header head(message_kind kind, std::uint64_t number) const {
        return links_.stamped(kind, number, static_cast<double>(pushes_.count()));
    }

    /// Asks the servers by `question(server, number)` and gives `take(server, values)` what they answer, or keeps what
    /// is final. Where the run is ending this worker departs; `waits`: for the end.
    template <class Question, class Take>
    void ask(Question&& question, Take&& take, bool waits = true) {
        using kinds = server_kind;
        session_.require_going();
        session_.guarded(links_, [&] {
            if (!is_leaving_) {
                links_.ask(question);
                links_.await();
                read_all(take);
                if (links_.first_of(kinds::over) != nullptr || links_.first_of(kinds::final) != nullptr)
                    depart(kinds::retire);
            }
            if (is_leaving_ && waits) {
                if (links_.first_of(kinds::late) != nullptr) ask_to_leave();  // again
                links_.await();
                read_all(take);
            }
            if (const wire::header* const late = links_.first_of(kinds::late)) links_.require_joined(*late);
        });
        if (const wire::header* const late = links_.first_of(kinds::late)) links_.throw_late(*late, is_leaving_);
        waits ? links_.release() : links_.release_unless_final();
        pulled_ = version_;
        is_over_ = is_leaving_ && waits;
    }

    template <IndexType Index>
    void push(const stream_view<T, Index>& gradient, const held_version& held) {
        std::optional<std::size_t> not_finite = kernel::find_non_finite(gradient.values());
        if (not_finite && !gradient.is_dense()) not_finite = static_cast<std::size_t>(gradient.indices()[*not_finite]);
        const wire::header head = links_.stamped(server_kind::push, pushes_.count(), not_finite ? 0.0 : 1.0);
        for (std::size_t i = 0; i < links_.count(); ++i)
            links_.hand(i, not_finite ? empty_frame(head) : part_frame(head, gradient.slice(part_of(i))));
        pushes_.add(held.version, not_finite);
    }

    std::optional<push_fate> fate() {
        return pushes_.next(is_over_ || session_.net().aborted(session_.context()).has_value());
    }

    void depart(message_kind how) {
        if (is_over_ || (is_leaving_ && departs_by_ == how)) return;
        is_leaving_ = true;
        departs_by_ = how;
        ask_to_leave();
    }
    /// Departs without an answer. All that it has pushed is on its way to the servers then.
    void leave() {
        if (!is_leaving_) links_.tell(head(server_kind::retire, 0));
        links_.flush();
    }

  private:
    void ask_to_leave() {
        links_.ask([&](std::size_t, std::uint64_t number) { return empty_frame(head(departs_by_, number)); });
    }

    template <class Take>
    void read_all(Take&& take) {
        for (std::size_t i = 0; i < links_.count(); ++i) read(i, take);
    }
    template <class Take>
    void read(std::size_t server, Take&& take) {
        const message_kind kind = links_.head(server).kind;
        if (kind != server_kind::answer && kind != server_kind::final) return;
        read_from(links_, links_.rank_of(server), [&] {
            frame_reader frames(links_.answer(server));
            const std::span<const std::int64_t> numbers = next_values<std::int64_t>(frames);
            wire::detail::require(numbers.size() >= 2, "it has no version");
            if (server == 0) version_ = static_cast<std::uint64_t>(numbers[0]);
            is_untouched_ &= numbers[0] == 0;
            pushes_.took(server, static_cast<std::uint64_t>(numbers[1]), numbers.subspan(2));
            const std::span<const T> values = next_values<T>(frames);
            if (kind == server_kind::answer) return take(server, values);
            const segment part = part_of(server);
            wire::detail::require(values.size() == part.size(), "it is of another size");
            final_.resize(dimension_);
            std::copy(values.begin(), values.end(), std::span(final_).subspan(part.begin).begin());
        });
    }

    session<Net>& session_;
    server_links<Net> links_;
    std::size_t dimension_;
    push_log pushes_;
    std::optional<std::uint64_t> pulled_{};  ///< the newest version that this worker has pulled
    std::uint64_t version_ = 0;
    bool is_untouched_ = true;
    aligned_vector<T> final_{};
    bool is_leaving_ = false;
    message_kind departs_by_ = server_kind::retire;
    bool is_over_ = false;
};

}}}  // namespace rill::RILL_ABI::detail
