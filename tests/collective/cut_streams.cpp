// Streams whose parts are cut: a part of many entries travels in several messages.
#include <rill/aggregate/max.hpp>
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/sign_of_sum.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/own_values.hpp>
#include <rill/compress/signs.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/core/random.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/transport/fault_plan.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>
#include <rill/transport/traced.hpp>

#include "cases.hpp"
#include "foresight.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace { namespace cut_streams {

using rill::stream, rill::stream_codings;

constexpr std::size_t n = 400;

/// Other numbers of entries on each rank, so that each cuts its parts otherwise: nearly all, none, all in the dense
/// form, few. `real`: values whose sum depends on the order of the operands.
stream<float> input_of(int rank, bool real) {
    const auto value = [&](std::size_t i) {
        return real ? rill::counter_rng(rill::random_key{7}.derive(rank)).uniform(i) + 0.5F
                    : cases::value<float>(rank, i);
    };
    stream<float> made(n);
    if (rank % 4 == 2) {
        const std::span<float> values = made.make_dense({0, n});
        for (std::size_t i = 0; i < n; ++i) values[i] = value(i);
    } else if (rank % 4 != 1) {
        for (std::size_t i = 0; i < n; ++i)
            if (cases::is_present(rank, i, rank % 4 == 0 ? 2 : 40)) made.push_back(i, value(i));
    }
    return made;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// The sum of `input` over `net`, each of whose ranks must get the same.
template <class Net, class Fold>
stream<float> folded(Net& net, const stream<float>& input, const Fold& fold, const stream_codings& codings) {
    rill::group workers{net, rill::topology::split_allgather{}};
    stream<float> sum;
    rill::all_reduce(workers, input, sum, fold, codings);
    return sum;
}

/// The same form, coordinates and bits, of zeros too.
bool same(const stream<float>& a, const stream<float>& b) {
    return a.is_dense() == b.is_dense() && std::ranges::equal(a.indices(), b.indices()) &&
           same_bits(a.values(), b.values());
}

template <class Fold>
void compare(const Fold& fold, const std::vector<rill::coding>& codes) {
    cases::failures all;
    for (const int ranks : {2, 3, 5, 8})
        rill::in_process::run(ranks, [&](rill::in_process::endpoint& net) {
            foresight::choosy<rill::in_process::endpoint> cutting(net, 20);
            foresight::foreseeing<rill::in_process::endpoint> expecting(net, 20);
            const stream<float> input = input_of(net.rank(), true);
            const float neutral = fold.template identity<float>();
            for (const rill::coding& contribution : codes)
                for (const rill::coding& copy : codes)
                    for (const std::size_t entries : {1U, 6U, 40U}) {
                        const stream_codings codings{
                            .contribution = contribution, .copy = copy, .message_entries = entries};
                        const std::string where =
                            "P=" + std::to_string(ranks) + ", messages of " + std::to_string(entries) + " entries: ";
                        const stream<float> whole = folded(net, input, fold, codings);
                        if (!same(whole, folded(cutting, input, fold, codings))) all.add(where + "another sum");
                        if (!same(whole, folded(expecting, input, fold, codings)))
                            all.add(where + "another if expected");
                        if (!rill::is_lossless(contribution.values) || !rill::is_lossless(copy.values)) continue;
                        stream_codings uncut = codings;
                        uncut.message_entries = 0;
                        if (!same_bits(cases::dense_copy(whole, neutral),
                                       cases::dense_copy(folded(net, input, fold, uncut), neutral)))
                            all.add(where + "other values than without chunks");
                    }
        });
    CHECK(all.text() == "");
}

const rill::coding raw{}, gaps{.indices = rill::index_coding::elias_fano},
    half{.values = rill::value_coding::bf16, .indices = rill::index_coding::elias_fano},
    rounded{.values = rill::value_coding::qsgd4, .indices = rill::index_coding::elias_fano, .bucket = 16};

TEST_CASE("cut streams: pieces in messages of their own give the bits, and the forms, of parts that travel whole") {
    compare(rill::aggregate::sum{}, {raw, gaps, half, rounded});
    compare(rill::aggregate::mean{}, {gaps, rounded});
    compare(rill::aggregate::max{}, {raw, half});
}

TEST_CASE("cut streams: all transports give the same, by chance of the seed alone") {
    const stream_codings codings{.contribution = rounded, .copy = rounded, .message_entries = 6};
    std::vector<stream<float>> threads(5), fibers(5);
    const auto keep = [&](std::vector<stream<float>>& in) {
        return [&](auto& net) {
            in[static_cast<std::size_t>(net.rank())] =
                folded(net, input_of(net.rank(), true), rill::aggregate::sum{}, codings);
        };
    };
    rill::in_process::run(5, keep(threads));
    rill::simulated::run(5, {}, keep(fibers));
    for (std::size_t rank = 0; rank < 5; ++rank) {
        CHECK(same(threads[0], threads[rank]));
        CHECK(same(threads[0], fibers[rank]));
    }
}

TEST_CASE("cut streams: rounded sums are near the sum") {
    rill::simulated::run(5, {}, [&](auto& inner) {
        foresight::choosy net(inner, 20);
        const stream<float> input = input_of(inner.rank(), true);
        const auto exact = cases::dense_copy(folded(net, input, rill::aggregate::sum{}, {}), 0.0F);
        const auto got = cases::dense_copy(
            folded(net, input, rill::aggregate::sum{}, {.contribution = half, .copy = half, .message_entries = 6}),
            0.0F);
        int far = 0;
        for (std::size_t i = 0; i < n; ++i) far += std::abs(got[i] - exact[i]) > exact[i] / 64 ? 1 : 0;
        CHECK(far == 0);
    });
}

/// Two sums of what a codec sends, over `net`, and of what it keeps back; long enough to be cut.
template <class Net, class Policy, class Fold>
std::vector<float> trained(Net& net, const Policy& policy, const Fold& fold) {
    constexpr std::size_t dimension = 140'000;
    rill::group workers{net, rill::topology::split_allgather{}};
    auto codec = policy.template bind<float>(dimension);
    std::vector<float> gradient(dimension), sum(dimension), all;
    for (std::size_t i = 0; i < dimension; ++i)
        gradient[i] = rill::counter_rng(rill::random_key{9}.derive(net.rank())).uniform(i) - 0.5F;
    for (int step = 0; step < 2; ++step) {
        const rill::receipt done = rill::all_reduce(workers, gradient, sum, codec, fold);
        all.insert(all.end(), sum.begin(), sum.end());
        all.push_back(static_cast<float>(done.contributors));
    }
    return all;
}

template <class Policy, class Fold>
void compare_codec(const Policy& policy, const Fold& fold) {
    cases::failures all;
    rill::in_process::run(2, [&](rill::in_process::endpoint& net) {
        foresight::choosy<rill::in_process::endpoint> cutting(net, 20);
        const auto before = cutting.counted().messages_sent;
        if (!same_bits(trained(net, policy, fold), trained(cutting, policy, fold))) all.add("other bits");
        if (cutting.counted().messages_sent - before < 12) all.add("nothing was cut");
    });
    CHECK(all.text() == "");
}

TEST_CASE("cut streams: what codecs send, and keep back, is the same") {
    using namespace rill::compress;
    compare_codec(error_feedback{encoded{top_k{.density = 0.9}, qsgd{.bits = 4}, elias_fano{}}},
                  rill::aggregate::sum{});
    compare_codec(error_feedback{encoded{keep_all{}, bf16{}}}, rill::aggregate::mean{});
    SUBCASE("with votes, which the owner finishes") {
        compare_codec(encoded<keep_all, own_values<signs>, raw_indices, own_values<signs>>{},
                      rill::aggregate::sign_of_sum{});
    }
}

TEST_CASE("cut streams: the last pieces of one part are dense, those before sparse") {
    cases::failures all;
    rill::simulated::run(2, {}, [&](auto& net) {
        foresight::choosy cutting(net, 20);
        stream<float> input(n);
        for (std::size_t i = 0; i < n; ++i)
            if ((150 <= i && i < 200) || i % 10 == 0) input.push_back(i, static_cast<float>(net.rank() + 1));
        const stream_codings codings{.message_entries = 2};
        const stream<float> whole = folded(net, input, rill::aggregate::sum{}, codings);
        if (!whole.is_dense()) all.add("no dense piece");
        if (!same(whole, folded(cutting, input, rill::aggregate::sum{}, codings))) all.add("another sum");
    });
    CHECK(all.text() == "");
}

TEST_CASE("cut streams: one rank takes the result as a stream, the other as a tensor") {
    constexpr std::size_t dimension = 140'000;
    std::vector<std::vector<float>> results(2);
    rill::in_process::run(2, [&](rill::in_process::endpoint& inner) {
        foresight::choosy<rill::in_process::endpoint> net(inner, 20);
        rill::group workers{net, rill::topology::split_allgather{}};
        auto codec = rill::compress::encoded{rill::compress::top_k{.density = 0.9}, rill::compress::raw{},
                                             rill::compress::elias_fano{}}
                         .bind<float>(dimension);
        std::vector<float> gradient(dimension), tensor(dimension);
        for (std::size_t i = 0; i < dimension; ++i) gradient[i] = static_cast<float>(i % 1000 + 1);
        stream<float> sparse;
        net.rank() == 0 ? rill::all_reduce(workers, gradient, sparse, codec)
                        : rill::all_reduce(workers, gradient, tensor, codec);
        results[static_cast<std::size_t>(net.rank())] = net.rank() == 0 ? cases::dense_copy(sparse, 0.0F) : tensor;
    });
    CHECK(results[0][dimension - 1] == 2 * 1000);
    CHECK(results[0] == results[1]);
}

TEST_CASE("cut streams: pieces may cut rows") {
    const rill::coding rows{.indices = rill::index_coding::whole_rows, .row = 7};
    cases::failures all;
    rill::in_process::run(3, [&](rill::in_process::endpoint& net) {
        foresight::choosy<rill::in_process::endpoint> cutting(net, 20);
        stream<float> input(n);
        for (std::size_t i = 0; i < n; ++i)
            if (cases::is_present(net.rank(), i / 7, 2)) input.push_back(i, static_cast<float>(net.rank() + 1));
        const stream_codings by_rows{.contribution = rows, .partial = rows, .copy = rows, .message_entries = 5};
        const stream<float> whole = folded(net, input, rill::aggregate::sum{}, by_rows);
        if (!same(whole, folded(cutting, input, rill::aggregate::sum{}, by_rows))) all.add("another sum");
        if (cases::dense_copy(whole, 0.0F) != cases::dense_copy(folded(net, input, rill::aggregate::sum{}, {}), 0.0F))
            all.add("a wrong sum");
    });
    CHECK(all.text() == "");
}

/// The messages that each of two ranks sends over `split_allgather` if one contributes all coordinates.
std::vector<std::uint64_t> messages_of_two(std::size_t entries) {
    std::vector<std::uint64_t> sent(2);
    rill::simulated::run(2, {}, [&](auto& inner) {
        foresight::choosy net(inner, 20);
        rill::group workers{net, rill::topology::split_allgather{}};
        stream<float> input(n), sum;
        if (net.rank() == 0)
            for (std::size_t i = 0; i < n; ++i) input.push_back(i, 1);
        const rill::receipt done =
            rill::all_reduce(workers, input, sum, rill::aggregate::sum{}, {.message_entries = entries});
        CHECK(done.rounds == 2);
        sent[static_cast<std::size_t>(net.rank())] = done.wire.messages_sent;
    });
    return sent;
}

TEST_CASE("cut streams: a rank sends as many messages as its own entries need, up to 16 for a part") {
    CHECK(messages_of_two(0) == std::vector<std::uint64_t>{2, 2});
    CHECK(messages_of_two(400) == std::vector<std::uint64_t>{2, 2});
    CHECK(messages_of_two(50) == std::vector<std::uint64_t>{8, 5});
    CHECK(messages_of_two(20) == std::vector<std::uint64_t>{16, 9});
    CHECK(messages_of_two(1) == std::vector<std::uint64_t>{32, 17});
}

TEST_CASE("cut streams: finished chunks travel while contributions to others are still on their way") {
    const auto time_of = [](std::size_t entries) {
        rill::duration elapsed{};
        const rill::simulated::network links{.latency = rill::milliseconds(2), .bandwidth = 400'000};
        rill::simulated::run(2, links, [&](auto& inner) {
            foresight::choosy net(inner, 20);
            rill::group workers{net, rill::topology::split_allgather{}};
            const stream<float> input = input_of(2, false);  // 2 ms for each of its parts
            stream<float> sum;
            elapsed =
                rill::all_reduce(workers, input, sum, rill::aggregate::sum{}, {.message_entries = entries}).elapsed;
        });
        return elapsed;
    };
    CHECK(time_of(0) > rill::milliseconds(8));
    CHECK(time_of(50) < rill::milliseconds(8));  // a latency less, some headers more
}

TEST_CASE("cut streams: a sparse result is decoded where it belongs while pieces of it arrive") {
    std::vector<rill::trace_log> logs(3);
    rill::simulated::run(3, {.latency = rill::microseconds(10)}, [&](auto& inner) {
        foresight::choosy choosing(inner, 20);
        rill::traced net{choosing, logs[static_cast<std::size_t>(inner.rank())]};
        stream<float> input(n), expected(n), sum;
        for (std::size_t i = 0; i < n; i += 2) input.push_back(i, 1), expected.push_back(i, 3);
        rill::group workers{net, rill::topology::split_allgather{}};
        rill::all_reduce(workers, input, sum, rill::aggregate::sum{},
                         {.contribution = gaps, .partial = gaps, .copy = gaps, .message_entries = 3});
        CHECK(sum == expected);
    });
    for (const rill::trace_log& log : logs) {
        int decoded_since = 0, decoded = 0;  // since the last message; in all
        for (const rill::trace_event& each : log.events()) {
            if (each.kind == rill::trace_event::what::receive) decoded_since = 0;
            if (std::string(each.name) == "decode") ++decoded, ++decoded_since;
        }
        CHECK(decoded > 20);
        CHECK(decoded_since == 1);
    }
}

TEST_CASE("cut streams: ranks that cut otherwise learn that the coding differs") {
    std::vector<std::string> found(3);
    rill::simulated::run(3, {}, [&](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        const stream<float> input = input_of(0, false);
        stream<float> sum;
        try {
            rill::all_reduce(workers, input, sum, rill::aggregate::sum{},
                             {.message_entries = net.rank() == 1 ? 6U : 5U});
        } catch (const rill::mismatch& e) {
            found[static_cast<std::size_t>(net.rank())] = e.what();
        }
    });
    for (const std::string& each : found) {
        CAPTURE(each);
        CHECK(each.find("coding") != std::string::npos);
        CHECK(each.find("rank 1") != std::string::npos);
    }
}

/// What rank 0 of 3 has after a sum of empty streams in which rank 1 lies: the sum, or a complaint that names the liar.
struct heard {
    stream<float> sum{};
    std::string complaint{};
};

template <class Lie>
heard of_rank_0_beside(const Lie& lie) {
    heard found;
    rill::simulated::run(3, {}, [&](auto& inner) {
        foresight::choosy net(inner, 20);
        rill::group workers{net, rill::topology::split_allgather{}};
        const stream_codings codings{.message_entries = 4};
        stream<float> empty(96), sum;
        try {
            net.rank() == 1 ? lie(workers, codings)
                            : void(rill::all_reduce(workers, empty, sum, rill::aggregate::sum{}, codings));
            if (net.rank() == 0) found.sum = sum;
        } catch (const rill::error& failure) {
            if (net.rank() == 0)
                found.complaint = failure.notice().reason + " (rank " + std::to_string(failure.culprit()) + ")";
        }
    });
    return found;
}

/// Takes part in an all_reduce of empty streams whose parts have 8 chunks of 4 coordinates, but sends these ranges of
/// the receiver's part, one message for each.
template <class Group>
void lie(Group& workers, const stream_codings& codings, std::span<const rill::segment> ranges) {
    constexpr std::size_t dimension = 96;
    const auto signature = rill::detail::stream_signature<float, std::uint32_t>(
        dimension, rill::fingerprint(rill::aggregate::sum{}), codings, 0);
    std::vector<std::vector<std::byte>> heads(16, std::vector<std::byte>(rill::wire::header_bytes));
    workers.run(signature, [&](auto& call) {
        std::size_t used = 0;
        for (const rill::rank_t peer : {0, 2})
            for (const rill::segment& each : ranges) {
                const auto first = static_cast<std::size_t>(peer) * 32;
                rill::wire::header head = rill::detail::frame_header_of(call);
                rill::contribution_sum{}.describe(head);
                const rill::segment range{first + each.begin, first + each.end};
                call.send(peer, rill::view_frame(
                                    head, rill::stream_view<float>(range, rill::sparse_view<float, std::uint32_t>{}),
                                    heads[used++].data()));
            }
        for (int i = 0; i < 4; ++i) call.receive(i % 2 == 0 ? 0 : 2);
        return rill::receipt{};
    });
}

TEST_CASE("cut streams: a message that brings other chunks than are due is blamed on its sender") {
    const std::pair<std::vector<rill::segment>, const char*> cases[] = {
        {{{0, 6}}, "sent [0, 6) where [0, 8) was due"},
        {{{0, 40}}, "sent [0, 40) where [0, 32) was due"},
        {{{4, 32}}, "sent [4, 32) where [0, 32) was due"},
        {{{0, 8}, {4, 32}}, "sent [4, 32) where [8, 32) was due"},
        {{{0, 8}, {12, 32}}, "sent [12, 32) where [8, 32) was due"},
        {{{0, 0}}, "sent [0, 0) where [0, 4) was due"}};
    for (const auto& [ranges, complaint] : cases) {
        const std::span<const rill::segment> given(ranges);
        const std::string found = of_rank_0_beside([&](auto& workers, const stream_codings& codings) {
                                      lie(workers, codings, given);
                                  }).complaint;
        CAPTURE(found);
        CHECK(found.find(complaint) != std::string::npos);
        CHECK(found.find("(rank 1)") != std::string::npos);
    }
}

/// A piece of rank 1's sum of the coordinates [32, 64): which chunks of 4 it covers, how many entries it has, and how
/// many it tells that there are in all.
struct sum_piece {
    rill::segment chunks{};
    std::size_t entries = 0;
    std::optional<std::size_t> told{};
    std::size_t told_from = 32;
    bool is_dense = false;
    bool tells_entries = false;  ///< the frame that tells the total is not empty
};

/// Takes part as rank 1 of 3, as `lie` does, with honest contributions and these pieces of its sum.
template <class Group>
void lie_about_sum(Group& workers, const stream_codings& codings, std::span<const sum_piece> pieces) {
    constexpr std::size_t dimension = 96;
    const auto signature = rill::detail::stream_signature<float, std::uint32_t>(
        dimension, rill::fingerprint(rill::aggregate::sum{}), codings, 0);
    workers.run(signature, [&](auto& call) {
        rill::wire::header head = rill::detail::frame_header_of(call);
        rill::contribution_sum{}.describe(head);
        const auto append = [&](rill::buffer& message, const rill::stream_view<float>& content) {
            rill::wire::header_block block{};
            message.resize(rill::next_frame_at(message.size()), std::byte{0});
            for (const rill::byte_view piece : rill::view_frame(head, content, block.data()))
                message.append(piece.begin(), piece.end());
        };
        const auto empty = [](std::size_t begin, std::size_t size) {
            return rill::stream_view<float>({begin, begin + size}, rill::sparse_view<float, std::uint32_t>{});
        };
        std::vector<rill::buffer> messages(2);
        append(messages[0], empty(0, 32));
        append(messages[1], empty(64, 32));
        for (const sum_piece& each : pieces) {
            const rill::segment range{32 + 4 * each.chunks.begin, 32 + 4 * each.chunks.end};
            std::vector<std::uint32_t> indices(each.entries);
            std::iota(indices.begin(), indices.end(), static_cast<std::uint32_t>(range.begin));
            const std::vector<float> values(each.entries, 1);
            rill::buffer& message = messages.emplace_back();
            if (each.is_dense)
                append(message, {range, std::span<const float>(values)});
            else
                append(message, {range, rill::sparse_view<float, std::uint32_t>{indices, values}});
            const std::uint32_t first = 32;
            const float one = 1;
            if (each.tells_entries)
                append(message, {{32, 37}, rill::sparse_view<float, std::uint32_t>{{&first, 1}, {&one, 1}}});
            else if (each.told)
                append(message, empty(each.told_from, *each.told));
        }
        for (std::size_t i = 0; i < messages.size(); ++i)
            for (const rill::rank_t peer : {0, 2})
                if (i >= 2 || (i == 0) == (peer == 0)) call.send(peer, rill::byte_view(messages[i]));
        for (int i = 0; i < 4; ++i) call.receive(i % 2 == 0 ? 0 : 2);
        return rill::receipt{};
    });
}

TEST_CASE("cut streams: a rank that tells another total than its sum has is blamed, and its entries go nowhere else") {
    const char* const other = "sent another number of entries of [32, 64) than it had told";
    const char* const more = "sent more frames than were due";
    const std::pair<std::vector<sum_piece>, const char*> lies[] = {
        {{{{0, 4}, 3, 5}, {{4, 8}, 2}}, ""},
        {{{{0, 4}, 3}, {{4, 8}, 2}}, ""},
        {{{{0, 2}, 3, 5}, {{2, 4}, 0, 5}, {{4, 8}, 2}}, ""},
        {{{{0, 4}, 0, 0}, {{4, 8}, 0}}, ""},
        {{{{0, 4}, 16, {}, 32, true}, {{4, 8}, 2}}, ""},
        {{{{0, 4}, 3, 6}, {{4, 8}, 2}}, other},
        {{{{0, 4}, 3, 4}, {{4, 8}, 2}}, other},
        {{{{0, 4}, 3, 2}, {{4, 8}, 2}}, other},
        {{{{0, 2}, 3, 5}, {{2, 4}, 0, 4}, {{4, 8}, 2}}, other},
        {{{{0, 4}, 3, 0}, {{4, 8}, 0}}, other},
        {{{{0, 4}, 3, 33}, {{4, 8}, 2}}, more},
        {{{{0, 4}, 3, 5, 32, false, true}, {{4, 8}, 2}}, more},
        {{{{0, 4}, 3, 5, 33}, {{4, 8}, 2}}, more},
        {{{{0, 4}, 3, 5, 0}, {{4, 8}, 2}}, more},
        {{{{0, 4}, 3}, {{4, 8}, 2, 5}}, more}};
    for (const auto& [pieces, complaint] : lies) {
        const std::span<const sum_piece> given(pieces);
        const heard found = of_rank_0_beside(
            [&](auto& workers, const stream_codings& codings) { lie_about_sum(workers, codings, given); });
        CAPTURE(found.complaint);
        CHECK(found.complaint.find(complaint) != std::string::npos);
        if (*complaint != 0) {
            CHECK(found.complaint.find("(rank 1)") != std::string::npos);
            continue;
        }
        std::ptrdiff_t entries = 0;
        for (const sum_piece& each : given) entries += static_cast<std::ptrdiff_t>(each.entries);
        CHECK(found.complaint == "");
        CHECK(std::ranges::count(cases::dense_copy(found.sum, 0.0F), 1.0F) == entries);
    }
}

void kill_at_each_message(int ranks, rill::duration longest_delay) {
    const auto total = static_cast<float>(ranks * (ranks + 1) / 2);
    for (const int victim : {0, 2})
        for (std::uint64_t after = 0; after < 60; ++after) {
            std::string wrong;
            const rill::fault_plan faults{
                .faults = {rill::faults::kill(victim).after(after), rill::faults::delay_up_to(longest_delay)}};
            rill::simulated::run(ranks, {.faults = faults}, [&](auto& endpoint) {
                stream<float> input(128), sum;
                for (std::size_t i = 0; i < 128; ++i) input.push_back(i, static_cast<float>(endpoint.rank() + 1));
                try {
                    foresight::choosy through(endpoint, 20);
                    rill::group workers{through, rill::topology::split_allgather{}, {.timeout = rill::seconds(1)}};
                    for (int step = 0; step < 2; ++step) {
                        rill::all_reduce(workers, input, sum, rill::aggregate::sum{}, {.message_entries = 4});
                        if (cases::dense_copy(sum, 0.0F) != std::vector<float>(128, total)) wrong = "a wrong sum";
                    }
                } catch (const rill::error& e) {
                    if (e.culprit() != victim) wrong = e.what();
                }
            });
            CAPTURE(after);
            CHECK(wrong == "");
        }
}

TEST_CASE("cut streams: where a rank ends, whatever it has sent, the others name it or have the sum") {
    kill_at_each_message(3, {});
}

TEST_CASE("cut streams: who withdraws messages after an error leaves no gap before those that still arrive") {
    kill_at_each_message(5, rill::microseconds(40));
}

}}  // namespace ::cut_streams
