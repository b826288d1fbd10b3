// What a rank makes of frames that are invalid.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/frame_check.hpp>
#include <rill/collective/stream_state.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/simulated.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

}}  // namespace ::stream_states
