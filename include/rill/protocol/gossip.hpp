#pragma once

#include <rill/collective/agree.hpp>
#include <rill/collective/detail/loans.hpp>
#include <rill/collective/detail/tensor_access.hpp>
#include <rill/collective/group.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/concept/compressor.hpp>
#include <rill/concept/difference_compressor.hpp>
#include <rill/concept/mixing.hpp>
#include <rill/concept/tensor.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/random.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/text.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/add_scaled.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/protocol/detail/gossip_differences.hpp>
#include <rill/protocol/detail/gossip_frames.hpp>
#include <rill/protocol/detail/gossip_links.hpp>
#include <rill/protocol/detail/gossip_requirements.hpp>
#include <rill/protocol/detail/model_memory.hpp>
#include <rill/protocol/detail/part_frames.hpp>
#include <rill/protocol/detail/require_replica.hpp>
#include <rill/session/session.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Ranks that have a model each, and mix it with those of a few others, round after round: gossip.
///
///     rill::gossip ring{workers, rill::topology::ring_neighbours{}};  // D-PSGD
///     for (int step = 0; step < steps; ++step) {
///         descend(model);
///         ring.mix(model);
///     }
///
/// In a round the model of rank i becomes Σ w_ij · model j, where the `Mixing` gives the weights w of the round. With a
/// codec that chooses alike on all ranks (`AlikeCompressor`: `compress::random_mask`), only the entries that it chooses
/// are mixed and sent, without indices; all others stay as they are:
///
///     rill::gossip saps{workers, rill::topology::random_matching{}};
///     auto mask = rill::compress::random_mask{.density = 0.01}.bind(model.size());
///     while (descend(model)) saps.mix(model, mask);
///
/// A codec that chooses for itself on each rank goes into `compress::difference`, which mixes what all know of each
/// other's models: DCD-PSGD and CHOCO-SGD.
///
/// Where the mixing is only column stochastic (`topology::directed`), the sum of all models stays, and each rank has a
/// weight that is mixed like its model and travels in the same frame: push-sum. The model over its weight goes to the
/// mean; gradients are computed there, and move the model (SGP):
///
///     rill::gossip push{workers, rill::topology::directed{.edges = {{0, 1}, {1, 2}, {2, 0}, {0, 2}}}};
///     while (goes_on) {
///         push.debias(model, z);
///         descend(model, z);
///         push.mix(model);
///     }
///
/// The fold is in ascending order of ranks, so that two ranks which exchange with equal weights have equal bits in what
/// they have mixed. No rank waits for all others: two ranks may be a round apart for every two steps between them in
/// the graph of who waits for whom. Among the ranks the models come together as `topology::mixing_rate` says.
///
/// A failure ends the gossip on all ranks with one culprit. The model of each rank is then entirely that of before or
/// of after a round, and `round()` says how many rounds have mixed it; survivors form a group and a gossip of their
/// own. A rank that waits longer than the group's timeout finds by the chain of waits which rank does not mix. A
/// message that comes twice changes nothing; a rank that restarts has ended. Weights are rounded, so that a sum of
/// values near the largest number may become infinite: the next round refuses it.
///
/// Making it is collective; `workers` must outlive it. One activity calls its members, and all ranks call `mix` equally
/// often. Cost of a round: a message of the chosen values to each receiver. Memory: the chosen values twice at most,
/// and one message for each sender. Deterministic: bits depend on models, mixing and seed alone. Source: D-PSGD (Lian
/// et al. 2017); SAPS-PSGD (Tang et al. 2020), section 3.2, without its coordinator; SGP (Assran et al. 2019).
template <class Net, class Mix>
class gossip : detail::gossip_requirements<Mix> {
  public:
    /// Errors: `mismatch` if the mixings differ; what `mixing.bind` throws. The group's seed draws what is random.
    template <class Group>
    gossip(Group& workers, const Mix& mixing)
        : session_(workers.net(), name, workers.options().timeout, session_kind::closed, workers.context()),
          links_(session_),
          seed_(workers.options().seed),
          mixing_(mixing.bind(workers.size(), random_key{workers.options().seed}.derive(fingerprint(name)))) {
        constexpr option_names names{{"mixing"}};
        agree(workers, names, {option_hash(fingerprint(mixing))});
    }
    gossip(const gossip&) = delete;
    gossip& operator=(const gossip&) = delete;

    /// Mixes this rank's model in the next round. See `mix(model, codec)`.
    template <class Model>
    const round_receipt& mix(Model&& model) {
        static_assert(detail::require_gossip_model<Model>());
        auto all = compress::keep_all{}.template bind<tensor_element<Model>, std::uint64_t>(detail::size_of(model));
        return mix(model, all);
    }

    /// Mixes what `codec` chooses of this rank's model in the next round. `model`: a tensor of N floating-point
    /// numbers, N and the codec alike on all ranks. Returns what the round did: the models that were mixed, with their
    /// weights, and its traffic.
    ///
    /// Errors, after which the model is unchanged: `mismatch` if another rank has another dimension, element type or
    /// codec, which names both; `invalid_value` if a chosen value is not finite, before anything is sent, which names
    /// rank and coordinate; `timeout`; `peer_failure`.
    template <class Model, class Codec>
    const round_receipt& mix(Model&& model, Codec&& codec) {
        static_assert(detail::require_gossip_model<Model>());
        using T = tensor_element<Model>;
        if constexpr (detail::require_gossip_codec<Mix, Codec&&, T>()) {
            const auto loan =
                detail::lend(&codec, "gossip: the compressor is in another operation, which has not ended");
            session_.require_going();
            detail::undone_at_exit undone{&codec};
            const detail::settled_at_exit settled{links_};  // before `undone`: what is encoded is lent until then
            session_.guarded(links_, [&] {
                memory_.reset();
                const std::span<T> values = memory_.values_of(model);
                RILL_EXPECTS(values.size() == codec.dimension(), "gossip: the codec is bound to another dimension");
                if constexpr (DifferenceCompressor<std::remove_reference_t<Codec>, T>)
                    exchange_differences(values, codec);
                else
                    exchange(values, codec);
                undone.keep();
                detail::deliver(std::span<const T>(values), model);
            });
        }
        return made_;
    }

    /// How many rounds have mixed this rank's model.
    std::uint64_t round() const { return links_.round(); }
    /// This rank's weight in push-sum; 1 where the mixing is doubly stochastic.
    double weight() const { return weight_; }
    /// Goes on as after so many rounds: all ranks at the same. `weight`: the one that this rank had then.
    void resume_at(std::uint64_t round, double weight = 1) {
        RILL_EXPECTS(weight > 0 && weight < 1e300 && (!Mix::is_doubly_stochastic || weight == 1),
                     "gossip: a weight is a number above 0, and 1 where the mixing is doubly "
                     "stochastic");
        links_.resume_at(round);
        weight_ = weight;
    }

    /// Writes the model over this rank's weight to `z`, which has as many elements and may be the model: this rank's
    /// estimate of the mean of all models. Needs a weight above 0.
    template <class Model, class Out>
    void debias(const Model& model, Out&& z) {
        if constexpr (detail::require_estimate<Model, Out>()) {
            using T = tensor_element<Out>;
            RILL_EXPECTS(detail::size_of(model) == detail::size_of(z), "gossip: model and its estimate differ in size");
            RILL_EXPECTS(weight_ > 0, "gossip: this rank has given all of its weight away");
            memory_.reset();
            const std::span<T> values = memory_.under(z);
            detail::read_tensor(model, values);
            for (T& value : values) value = static_cast<T>(static_cast<double>(value) / weight_);
            detail::deliver(std::span<const T>(values), z);
        }
    }

  private:
    static constexpr const char* name = "gossip";

    template <class T, class Codec>
    void exchange(std::span<T> values, Codec& codec) {
        using index = typename Codec::index_type;
        codec.begin(links_.round());
        const stream_view<T, index> chosen = codec.encode(std::span<const T>(values));
        detail::require_finite(links_, chosen.values(), std::span<const T>(values));
        fill_row();

        const wire::header head = head_for<T>(values.size(), codec);
        const byte_pieces frame = view_frame(head, chosen, links_.header_room());
        links_.begin();
        for (const rank_t peer : row_.receivers) links_.send(peer, frame);

        links_.receive(row_.senders);
        const std::span<T> mixed = memory_.room<T>(chosen.count());
        begin_receipt();
        const auto& got = links_.received();
        double weight = row_.own_weight * weight_;
        std::size_t next = 0;
        const auto add_received = [&] {
            const auto values_of_peer =
                read_from(links_, got[next].source(), [&] { return values_in<T>(got[next], head, chosen, codec); });
            weight += row_.senders[next].weight * frame_reader(got[next].pieces()).peek().weight;
            add(mixed, values_of_peer, got[next].source(), row_.senders[next].weight);
            ++next;
        };
        while (next < got.size() && got[next].source() < session_.rank()) add_received();
        add(mixed, chosen.values(), session_.rank(), row_.own_weight);
        while (next < got.size()) add_received();

        links_.release();
        links_.finish();
        codec.write_back(std::span<const T>(mixed), values);
        codec.commit();
        links_.advance();
        if constexpr (!Mix::is_doubly_stochastic) weight_ = weight;
        end_receipt();
    }

    /// The values of a message, which must be of this round, and of a model and a codec like this rank's.
    template <class T, class Index, class Codec>
    std::span<const T> values_in(const typename Net::message& got, const wire::header& own,
                                 const stream_view<T, Index>& chosen, const Codec& codec) const {
        frame_reader frames = detail::frames_of<T>(session_, links_, got, own, codec);
        const stream_view<T, Index> content = detail::raw_content<T, Index>(frames.template next<T, Index>());
        wire::detail::require(content.is_dense() && content.count() == chosen.count(), "it is of another size");
        return content.values();
    }

    template <class T, class Codec>
    wire::header head_for(std::size_t dimension, const Codec& codec) const {
        wire::header head = session_.stamped({}, detail::gossip_mixes, links_.round());
        head.dimension = dimension;
        head.weight = weight_;
        detail::write_codec<T>(codec, head);
        return head;
    }

    template <class T, class Codec>
    void exchange_differences(std::span<T> values, Codec& codec) {
        fill_row();
        begin_receipt();
        const wire::header head = head_for<T>(values.size(), codec);
        const random_key key = random_key{seed_}.derive(fingerprint(name), links_.round(), session_.rank());
        detail::mix_differences(session_, links_, row_, head, values, codec, key, memory_.bytes(),
                                [&](rank_t rank, double weight) { list(rank, weight); });
        links_.advance();
        end_receipt();
    }

    void fill_row() {
        mixing_.fill(links_.round(), session_.rank(), row_);
        detail::require_row(links_, row_, session_);
    }
    void begin_receipt() {
        made_.in.clear();
        made_.operation_number = links_.round();
        made_.contributors = 0;
        made_.weight = 0;
        made_.rounds = 1;
    }
    /// Adds the next term of the sum.
    template <class T>
    void add(std::span<T> mixed, std::span<const T> of, rank_t rank, double weight) {
        const T factor = static_cast<T>(weight);
        if (made_.contributors == 0)
            for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] = factor * of[i];
        else
            kernel::add_scaled<T>(mixed, of, factor, mixed);
        list(rank, weight);
    }
    void list(rank_t rank, double weight) {
        made_.in.push_back({.rank = rank, .weight = weight});
        ++made_.contributors;
        made_.weight += weight;
    }
    void end_receipt() {
        made_.wire = links_.counted();
        made_.elapsed = links_.elapsed();
    }

    session<Net> session_;
    detail::gossip_links<Net> links_;
    std::uint64_t seed_;
    decltype(std::declval<const Mix&>().bind(1, random_key{})) mixing_;
    mixing_row row_{};
    double weight_ = 1;
    detail::model_memory memory_{};
    round_receipt made_{};
};

// Arguments that it does not take.
template <class Mix>
class gossip<detail::wrong_first, Mix> {
    static_assert(!std::same_as<Mix, Mix>,
                  "rill::gossip: the first argument is not a group; make one of transport and topology, as in "
                  "`rill::group workers{net, rill::topology::ring{}};`, and pass that");

  public:
    template <class... Any>
    explicit gossip(Any&&...) {}
};

template <detail::MeantAsGroup Group, class Mix>
gossip(Group&, Mix) -> gossip<typename Group::transport_type, Mix>;
template <class Net, class Mix>
    requires(!detail::MeantAsGroup<Net>)
gossip(Net&, Mix) -> gossip<detail::wrong_first, Mix>;

}}  // namespace rill::RILL_ABI
