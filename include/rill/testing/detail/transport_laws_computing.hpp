#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/testing/law.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

template <class Net>
void agrees_on_chunks(Net& net) {
    const std::size_t own = net.chunk_bytes();
    expect(own > 0, "chunks are empty");
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    // A number of the laws has 32 bits.
    post_number(net, next, {law_context, 0}, static_cast<std::uint32_t>(own));
    post_number(net, next, {law_context, 1}, static_cast<std::uint32_t>(std::uint64_t{own} >> 32U));
    expect_equal(receive_number(net, previous, {law_context, 0}), static_cast<std::uint32_t>(own),
                 "the low half of a peer's chunk_bytes()");
    expect_equal(receive_number(net, previous, {law_context, 1}), static_cast<std::uint32_t>(std::uint64_t{own} >> 32U),
                 "the high half of a peer's chunk_bytes()");
    expect_equal(net.chunk_bytes(), own, "chunk_bytes() after messages");
}

template <class Net>
void receives_what_came_while_computing(Net& net) {
    const channel on{.context = law_context, .tag = 0};
    const rank_t next = (net.rank() + 1) % net.size();
    const rank_t previous = (net.rank() + net.size() - 1) % net.size();
    for (std::uint32_t i = 0; i < 5; ++i) {
        post_number(net, next, on, i);
        const time_point before = net.now();
        net.compute(static_cast<double>(i));
        expect(before <= net.now(), "computing takes less than no time");
        expect_equal(receive_number(net, previous, on), i, "a message that came while a rank computed");
    }
}

}  // namespace detail

/// Laws of `ChunkingTransport` and `ComputingTransport`; they hold trivially for a transport that is neither.
template <class Laws>
void computing_laws(const Laws& all) {
    all.law("ranks agree on the size of chunks", 3, [](auto& net) {
        if constexpr (ChunkingTransport<std::remove_reference_t<decltype(net)>>) detail::agrees_on_chunks(net);
    });
    all.law("messages travel while a rank computes", 3, [](auto& net) {
        if constexpr (ComputingTransport<std::remove_reference_t<decltype(net)>>)
            detail::receives_what_came_while_computing(net);
    });
}

}}}  // namespace rill::RILL_ABI::testing
