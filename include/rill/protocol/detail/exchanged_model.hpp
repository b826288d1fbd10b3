#pragma once

#include <rill/collective/detail/tensor_access.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/random.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/add_scaled.hpp>
#include <rill/protocol/detail/gossip_frames.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/session/detail/scene.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What a worker of a gossip with a coordinator mixes in a round, whatever its elements.
template <Transport Net>
class exchanged_model {
  public:
    using message = typename Net::message;

    exchanged_model() = default;
    exchanged_model(const exchanged_model&) = delete;
    exchanged_model& operator=(const exchanged_model&) = delete;

    /// A message of the chosen values.
    virtual buffer values(const wire::header& head) = 0;
    /// A message of all of the model, as it is now.
    virtual buffer whole_model(const wire::header& head) = 0;
    /// Throws if the peer's values do not belong to this rank's.
    virtual void check(const message& of_peer) = 0;
    /// The model becomes the mean of both in the chosen values.
    virtual void mix(const message& of_peer) = 0;

  protected:
    ~exchanged_model() = default;
};

/// The model of one rank, and what its codec has chosen of it. `Links` has a `scene()`.
template <class Net, class T, class Codec, class Links>
class exchanged_values final : public exchanged_model<Net> {
  public:
    using index = typename Codec::index_type;
    using message = typename Net::message;

    exchanged_values(const session<Net>& of, const Links& links, Codec& codec, const stream_view<T, index>& chosen,
                     std::span<T> model, std::span<T> mixed)
        : session_(of), links_(links), codec_(codec), chosen_(chosen), model_(model), mixed_(mixed) {}

    buffer values(const wire::header& head) override {
        wire::header own = head;
        write_codec<T>(codec_, own);
        own.weight = static_cast<double>(model_.size());
        buffer bytes = kept_room(chosen_.values().size_bytes());
        append_frame(bytes, own, chosen_);
        return bytes;
    }
    buffer whole_model(const wire::header& head) override {
        buffer bytes;
        append_frame(bytes, head, whole(std::span<const T>(model_)));
        return bytes;
    }
    void check(const message& of_peer) override {
        read_from(links_, of_peer.source(), [&] { return values_in(of_peer); });
    }
    void mix(const message& of_peer) override {
        const std::span<const T> other = values_in(of_peer), own = chosen_.values();
        const bool is_first = session_.rank() < of_peer.source();
        const std::span<const T> first = is_first ? own : other, second = is_first ? other : own;
        for (std::size_t i = 0; i < mixed_.size(); ++i) mixed_[i] = first[i] / 2;
        kernel::add_scaled<T>(mixed_, second, T{1} / 2, mixed_);
        codec_.write_back(std::span<const T>(mixed_), model_);
    }

  private:
    std::span<const T> values_in(const message& got) const {
        frame_reader frames(got.pieces());
        const wire::header head = frames.peek();
        const auto differ = [&](const std::string& how) {
            links_.scene().fail(failure::mismatch, got.source(), session_.rank(),
                                {"rank ", got.source(), " mixes ", how});
        };
        if (head.weight != static_cast<double>(model_.size()))
            differ(text_of({"a model of ", static_cast<std::uint64_t>(head.weight), " values, rank ", session_.rank(),
                            " one of ", model_.size()}));
        if (const std::string other = codec_difference<T>(codec_, head); !other.empty())
            differ(text_of({"with ", other, " than rank ", session_.rank()}));
        const stream_view<T, index> content = raw_content<T, index>(frames.template next<T, index>());
        wire::detail::require(content.is_dense() && content.count() == mixed_.size(), "it is of another size");
        return content.values();
    }

    const session<Net>& session_;
    const Links& links_;
    Codec& codec_;
    stream_view<T, index> chosen_;
    std::span<T> model_;
    std::span<T> mixed_;
};

}}}  // namespace rill::RILL_ABI::detail
