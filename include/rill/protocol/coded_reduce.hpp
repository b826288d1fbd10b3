#pragma once

#include <rill/collective/detail/call.hpp>
#include <rill/concept/completion.hpp>
#include <rill/concept/gradient_code.hpp>
#include <rill/concept/tree_topology.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/error.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/time.hpp>
#include <rill/kernel/combine.hpp>
#include <rill/protocol/detail/round_fold.hpp>
#include <rill/protocol/detail/round_links.hpp>
#include <rill/protocol/detail/round_loop.hpp>
#include <rill/straggler/fresh.hpp>
#include <rill/straggler/solo.hpp>

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI {

/// Options of a coded reduction. They must be the same on all its ranks.
struct coded_options {
    /// The coding of the values of each message, at each rank that sends one: raw, bf16 or QSGD. Its index coding is
    /// ignored. A message with a value that cannot be rounded (not finite, or too large for bf16) travels raw.
    coding values{};
    /// How long a rank that cannot decode waits, for each edge between it and its deepest leaf, before it goes on with
    /// what it has, by least squares. By default it waits, and throws when the group's timeout has passed.
    duration approximate_after = endless_patience;

    friend constexpr bool operator==(const coded_options&, const coded_options&) = default;
};

namespace detail {

/// The fewest survivors with which a code can do: if it does not say, all workers but its stragglers.
template <GradientCode Code>
int least_survivors(const Code& code) {
    if constexpr (SmallSetCode<Code>)
        return code.least_survivors();
    else
        return code.workers() - code.stragglers();
}

/// Models `Completion`: a gather is complete when what has come can be decoded.
template <GradientCode Code>
struct decodable {
    std::shared_ptr<const Code> code;
    duration approximate_after = endless_patience;

    static constexpr const char* name = "decodable";

    bool is_complete(const gathering& g) const {
        if (g.missing() == 0 || g.time_is_up) return true;
        return static_cast<int>(g.in.size()) >= least_survivors(*code) && code->is_decodable(g.in);
    }
    duration patience(int height) const { return approximate_after * height; }
    friend bool operator==(const decodable&, const decodable&) = default;
};

template <GradientCode Code>
std::uint64_t fingerprint_of_code(const Code& code) {
    const auto unsigned_of = [](int number) { return static_cast<unsigned>(number); };
    std::uint64_t hash =
        mix64(unsigned_of(code.workers()), unsigned_of(code.partitions()), unsigned_of(code.stragglers()));
    for (int worker = 0; worker < code.workers(); ++worker) {
        for (const int partition : code.partitions_of(worker)) hash = mix64(hash, unsigned_of(partition));
        for (const double b : code.coefficients_of(worker)) hash = mix64(hash, std::bit_cast<std::uint64_t>(b));
    }
    return hash;
}

/// Scratch of a coded reduction.
template <std::floating_point T>
struct coded_scratch {
    std::vector<int> survivors;
    std::vector<double> row;
    std::vector<double> errors;  // of each survivor's message
    std::vector<std::span<const T>> inputs;
    std::vector<T> factors;
    aligned_vector<T> combined;
    arena memory;
    frame_scratch<T, std::uint32_t> room;
};

}  // namespace detail

/// Rounds in which each rank contributes a coded gradient, and each rank with children decodes what it needs from the
/// first messages that suffice: CR.Execute of CodedReduce on a `regular_tree`, gradient coding on a `star`.
///
/// The loop is that of `rounds`. In a round each rank but the root computes the gradient of the points that
/// `coded_allocation` gives it, each times its coefficient, and hands it in. A rank with children takes the first
/// messages that the code can decode, multiplies each by its entry of the decoding row, adds its own gradient and hands
/// up the sum. The root gets the sum of the gradients of all points, whichever children are missing, as long as no rank
/// misses more than the code's stragglers.
///
/// A rank that misses more cannot decode and is itself as good as lost; at the root that is an error that names who did
/// come. By choice (`coded_options::approximate_after`) the rank goes on with the closest sum that least squares gives.
///
/// - The receipt: who was in; `error_bound`, by which rounding to bf16 or QSGD may have moved the result, through all
///   decoding rows; `decoding_error`, 0 if all was decoded exactly.
/// - Determinism: a rank adds its own gradient first, then the children's by rank, each product and sum rounded to T.
///   The result depends on who was in (by rounding errors times the code's `amplification`); with a repetition code of
///   groups it does not.
/// - A late message is dropped. Deaths, failures and timeouts are handled as in `rounds`.
///
/// Cost of a round: N elements on each edge, down and up; for each rank with children a decoding row (O(s³ + n s) if it
/// is not in the code's cache) and one pass over the messages. Source: CodedReduce, section III-A, CR.Execute, and
/// Tandon et al. for one layer. Deviation: a parent takes what can be decoded, which for groups may be before n - s
/// messages have come.
template <class Group, TreeTopology Tree, GradientCode Code>
class coded_reduce
    : public detail::round_loop<Group, Tree,
                                detail::round_policies<detail::decodable<Code>, straggler::fresh, straggler::solo>> {
    using completion = detail::decodable<Code>;
    using loop = detail::round_loop<Group, Tree, detail::round_policies<completion, straggler::fresh, straggler::solo>>;

  public:
    /// Each rank of the tree that has children must have `code.workers()` of them.
    coded_reduce(Group& workers, const Tree& tree, Code code, const coded_options& options = {})
        : coded_reduce(workers, tree, std::make_shared<const Code>(std::move(code)), options) {}

    const Code& code() const { return *code_; }

    /// Contributes a coded gradient to the round under way; called once in each round. `coded`: N elements, unchanged;
    /// not looked at at the root. `output`: at the root N elements, where the gradient goes; not touched elsewhere.
    template <class In, class Out>
    round_receipt reduce(const In& coded, Out&& output) {
        if constexpr (detail::require_tensors<In, Out>()) {
            using T = tensor_element<Out>;
            static_assert(std::floating_point<T>, "rill::coded_reduce: decoding needs floating-point elements");
            this->checked_contribution(coded, output, contribution{.weight = this->is_root() ? 0.0 : 1.0});
            return this->guarded([&] { return contribute<T>(coded, output); });
        } else {
            return {};
        }
    }

  private:
    coded_reduce(Group& workers, const Tree& tree, std::shared_ptr<const Code> code, const coded_options& options)
        : loop(workers, fitting(workers, tree, *code),
               {completion{code, checked_options(workers, options).approximate_after}, {}, {}},
               {{"tree", "gradient code", "coding", "approximate_after"}},
               {option_hash(fingerprint(tree)), option_hash(detail::fingerprint_of_code(*code)),
                option_hash(options.values.fingerprint()),
                option_hash(static_cast<std::uint64_t>(options.approximate_after.ns))}),
          code_(std::move(code)),
          options_(options) {
        options_.values.indices = index_coding::dense;
    }

    static const coded_options& checked_options(const Group& workers, const coded_options& options) {
        detail::require_option(options.approximate_after.ns >= 0, "coded_options: approximate_after (ns)",
                               options.approximate_after.ns, "at least 0", workers.rank());
        RILL_EXPECTS(options.values.values != value_coding::own, "coded_options: values are raw, bf16 or qsgd");
        return options;
    }

    static const Tree& fitting(const Group& workers, const Tree& tree, [[maybe_unused]] const Code& code) {
        for (rank_t rank = 0; rank < workers.size(); ++rank) {
            [[maybe_unused]] const int children = tree.children(workers.size(), rank);
            RILL_EXPECTS(children == 0 || children == code.workers(),
                         "coded_reduce: a rank of the tree has not as many children as the code has workers");
        }
        return tree;
    }

    template <class T, class In, class Out>
    round_receipt contribute(const In& coded, Out& output) {
        auto& group = this->workers();
        auto& operands = group.template workspace<detail::round_operands<T, std::uint32_t>>();
        auto& scratch = group.template workspace<detail::coded_scratch<T>>();
        const bool is_root = this->is_root();
        const std::size_t size = is_root ? detail::size_of(output) : detail::size_of(coded);
        std::span<const T> own;
        if (!is_root) own = detail::elements_of_input(coded, group);

        wire::header head = this->template frame_header_of<T>(detail::round_kind::contribute, size);
        head.call = this->options_of_frame(0, options_.values.fingerprint());
        operands.clear();
        const auto arrivals = this->links().gather();
        if (this->links().is_over()) return this->template contribute_nothing<T, std::uint32_t>(head);
        read(arrivals, operands, scratch, head);
        if (!is_root) operands.contributors.in.insert(operands.contributors.in.begin(), {group.rank(), 0, 1.0});
        std::span<T> target;
        if (is_root)
            target = detail::elements_of_output(output, group);
        else if (!this->links().machine().is_leaf())
            target = (scratch.combined.resize(size), std::span<T>(scratch.combined));
        const std::span<const T> sum = combine(operands, scratch, own, target);
        if (is_root)
            detail::deliver(sum, output);
        else
            hand_up(operands.contributors, scratch, head, sum);
        return this->describe(std::move(operands.contributors));
    }

    /// Fills in who survives, what the survivors have sent, and how wrong that may be.
    template <class Arrivals, class Operands, class Scratch>
    void read(const Arrivals& arrivals, Operands& operands, Scratch& scratch, const wire::header& head) {
        scratch.survivors.clear();
        scratch.errors.clear();
        for (const auto& each : arrivals) {
            scratch.errors.push_back(this->add_child(operands, each, head));
            scratch.survivors.push_back(each.child);
            if (operands.views().size() != scratch.survivors.size() || !operands.views().back().is_dense())
                this->links().scene().refuse(each.rank, {"sent no coded gradient"});
        }
        const auto late = this->links().latecomers();
        operands.contributors.late.insert(operands.contributors.late.end(), late.begin(), late.end());
        scratch.row.assign(scratch.survivors.size(), 0.0);
        if (this->links().machine().is_leaf()) return;
        double missed = 0;
        if (scratch.survivors.empty())
            missed = std::sqrt(static_cast<double>(code_->partitions()));
        else if (code_->is_decodable(scratch.survivors))
            code_->decoding_row(scratch.survivors, scratch.row);
        else
            missed = code_->approximate_row(scratch.survivors, scratch.row);
        operands.contributors.decoding_error = std::max(operands.contributors.decoding_error, missed);
        for (std::size_t i = 0; i < scratch.row.size(); ++i)
            operands.contributors.error_bound += std::abs(scratch.row[i]) * scratch.errors[i];
    }

    /// The sum of `own` and of the messages times the decoding row; a leaf returns `own` itself.
    template <class Operands, class T>
    std::span<const T> combine(const Operands& operands, detail::coded_scratch<T>& scratch, std::span<const T> own,
                               std::span<T> target) {
        if (this->links().machine().is_leaf() && !this->is_root()) return own;
        scratch.inputs.clear();
        scratch.factors.clear();
        if (!this->is_root()) {
            scratch.inputs.push_back(own);
            scratch.factors.push_back(T{1});
        }
        for (std::size_t i = 0; i < scratch.row.size(); ++i) {
            if (scratch.row[i] == 0) continue;
            scratch.inputs.push_back(operands.views()[i].values());
            scratch.factors.push_back(static_cast<T>(scratch.row[i]));
        }
        kernel::combine_k<T>(scratch.inputs, scratch.factors, target, this->workers().executor());
        return target;
    }

    template <class T>
    void hand_up(detail::contributor_list& contributors, detail::coded_scratch<T>& scratch, wire::header head,
                 std::span<const T> sum) {
        contribution_sum{contributors.weight(), static_cast<std::uint32_t>(contributors.in.size()), 0}.describe(head);
        const stream_view<T, std::uint32_t> view({0, sum.size()}, sum);
        const byte_view rounded = rounded_frame(head, view, scratch);
        if (rounded.empty()) {
            wire::header_block block;
            this->links().hand_up(with_contributors(view_frame(head, view, block.data()), head, contributors));
            return;
        }
        const auto received = content_of(frame_reader(rounded).next<T, std::uint32_t>(), scratch.room);
        contributors.error_bound += detail::distance(view, received);
        this->links().hand_up(with_contributors(rounded, head, contributors));
    }

    /// A frame with rounded values; empty if they travel raw.
    template <class T>
    byte_view rounded_frame(const wire::header& head, const stream_view<T, std::uint32_t>& view,
                            detail::coded_scratch<T>& scratch) const {
        if (options_.values.is_lossless()) return {};
        scratch.memory.reset();
        try {
            return coded_frame(head, view, options_.values, this->own_key(), scratch.memory,
                               this->workers().executor());
        } catch (const invalid_value&) {
            return {};
        }
    }

    std::shared_ptr<const Code> code_;
    coded_options options_;
};

}}  // namespace rill::RILL_ABI
