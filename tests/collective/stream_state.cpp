// What a rank makes of frames that are invalid, and when it encodes its contribution.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/frame_check.hpp>
#include <rill/collective/stream_state.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/values.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/traced.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace { namespace stream_states {

constexpr std::size_t n = 96;
constexpr int ranks = 3;
constexpr rill::rank_t liar = 1;

/// Takes part in an all_reduce of empty streams, but says of each finished part that its indices descend.
template <class Group>
void lie(Group& workers) {
    const auto signature = rill::detail::stream_signature<float, std::uint32_t>(
        n, rill::fingerprint(rill::aggregate::sum{}), rill::stream_codings{}, 0);
    const std::vector<float> values{1, 2};  // others read what is sent until the operation ends
    std::vector<std::vector<std::uint32_t>> indices(ranks);
    std::vector<std::vector<std::byte>> heads;
    heads.reserve(64);
    workers.run(signature, [&](auto& call) {
        const auto plan = workers.shape().all_reduce(ranks, liar);
        for (int round = 0; round < plan.rounds(); ++round) {
            call.enter(round);
            for (int i = 0; i < plan.sends(round); ++i) {
                const rill::transfer to = plan.send(round, i);
                const auto part = static_cast<std::size_t>(to.parts.first);
                const rill::segment range = rill::split(n, ranks, part);
                rill::sparse_view<float, std::uint32_t> content;
                if (plan.kind(round) == rill::action::copy) {
                    const auto first = static_cast<std::uint32_t>(range.begin);
                    indices[part] = {first + 1, first};
                    content = {indices[part], values};
                }
                rill::wire::header head = rill::detail::frame_header_of(call);
                rill::contribution_sum{}.describe(head);
                head.call = rill::detail::frame_place::of_part(to.parts.first).in(call.signature().hash(), range);
                heads.emplace_back(rill::wire::header_bytes);
                call.send(to.peer,
                          rill::view_frame(head, rill::stream_view<float>(range, content), heads.back().data()));
            }
            for (int i = 0; i < plan.receives(round); ++i) call.receive(plan.receive(round, i).peer);
        }
        return rill::receipt{};
    });
}

TEST_CASE_TEMPLATE("an invalid finished part is blamed on its sender by all others", Shape, rill::topology::ring,
                   rill::topology::split_allgather) {
    std::vector<std::string> found(ranks);
    rill::simulated::run(ranks, {}, [&](auto& net) {
        rill::group workers{net, Shape{}};
        std::string& mine = found[static_cast<std::size_t>(net.rank())];
        rill::stream<float> empty(n), sum;
        try {
            net.rank() == liar ? lie(workers) : void(rill::all_reduce(workers, empty, sum));
        } catch (const rill::error& failure) {
            mine = failure.notice().reason + " (rank " + std::to_string(failure.culprit()) + ")";
        }
    });
    for (const int rank : {0, 2}) {
        const std::string& each = found[static_cast<std::size_t>(rank)];
        INFO(each);
        CHECK(each.find("rank 1 sent bytes that are no valid frame: invalid frame: indices are not ascending") !=
              std::string::npos);
        CHECK(each.find("(rank 1)") != std::string::npos);
    }
}

/// What rank 0 of three does in an all_reduce with `policy`, in order: e(ncodes a part), p(osts a message).
template <class Policy>
std::string order_of_work(const Policy& policy) {
    rill::trace_log log;
    rill::simulated::run(ranks, {}, [&](auto& inner) {
        rill::trace_log unused(0);
        rill::traced net{inner, inner.rank() == 0 ? log : unused};
        rill::group workers{net, rill::topology::split_allgather{}};
        auto codec = policy.template bind<float>(n);
        const std::vector<float> gradient(n, 1.0F);
        std::vector<float> sum(n);
        if (net.rank() == 0) log.clear();  // of the meeting of the group
        rill::all_reduce(workers, gradient, sum, codec);
    });
    std::string order;
    for (const rill::trace_event& event : log.events()) {
        if (event.kind == rill::trace_event::what::post) order += 'p';
        if (std::string_view(event.name) == "encode") order += 'e';
    }
    return order;
}

TEST_CASE("a part of a rounded contribution travels while the next ones are encoded") {
    using namespace rill::compress;
    CHECK(order_of_work(encoded{keep_all{}, bf16{}}) == "epepepp");
    SUBCASE("also with error feedback that does not feed the rounding back") {
        CHECK(order_of_work(error_feedback{encoded{keep_all{}, qsgd{.bits = 8}}}) == "epepepp");
    }
    SUBCASE("but not if error feedback learns what was rounded off") {
        CHECK(order_of_work(error_feedback{encoded{keep_all{}, bf16{}}}) == "eeepppp");
    }
}

}}  // namespace ::stream_states
