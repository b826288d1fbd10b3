#pragma once

#include <rill/concept/transport.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/testing/detail/transport_laws_messages.hpp>
#include <rill/testing/law.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rill { inline namespace RILL_ABI { namespace testing {
namespace detail {

/// A message of a head and a body, or memory into which one may be received.
struct framed_message {
    explicit framed_message(std::size_t size, std::uint64_t seed)
        : head(pattern(40, seed)), body(pattern(size, seed)) {}

    byte_pieces pieces() const {
        byte_pieces both{byte_view(head)};
        both.push(body);
        return both;
    }

    buffer head;
    buffer body;
};

template <class Net>
void expect_into(Net& net, channel on, framed_message& place) {
    const byte_span targets[] = {place.head, place.body};
    net.expect(0, on, targets);
}

template <class Message>
void expect_same(const Message& received, const framed_message& sent) {
    buffer joined = sent.head;
    joined.append(sent.body.begin(), sent.body.end());
    expect(received && same_bytes(received->pieces(), joined), "an expected message arrives with other bytes");
}

/// Rank 0 sends three messages to rank 1, which expects them before or after they are sent: the first into memory of
/// its size, the second without memory, the third into memory of another size.
template <class Net>
void receives_what_it_expects(Net& net, std::size_t size, bool beforehand) {
    const channel on{.context = law_context, .tag = 60};
    const framed_message messages[] = {framed_message(size, 1), framed_message(size, 2), framed_message(size, 3)};
    if (net.rank() == 0) {
        if (beforehand) meet(net, 1);
        sending_of<Net> sends[3];
        for (std::size_t i = 0; i < 3; ++i) sends[i] = net.post(1, on, messages[i].pieces());
        if (!beforehand) meet(net, 1);
        for (auto& each : sends) expect(each.wait(deadline::never), "a send that was received is not done");
    } else {
        if (!beforehand) meet(net, 1);
        framed_message place(size, 0), other_place(size + 1, 0);
        expect_into(net, on, place);
        net.expect(0, on, {});
        expect_into(net, on, other_place);
        if (beforehand) meet(net, 1);
        for (const framed_message& sent : messages) expect_same(net.receive(0, on, deadline::never), sent);
        expect(is_pattern(byte_pieces(byte_view(other_place.body)), size + 1, 0),
               "a message is put in a place of another size");
    }
}

/// After `forget` the memory belongs to the receiver again, whether the message is on its way or never comes.
template <class Net>
void forgets_what_it_expected(Net& net, std::size_t size, bool is_sent) {
    const channel on{.context = law_context, .tag = 61}, other{.context = law_context, .tag = 62};
    const framed_message message(size, 1), own(size, 5);
    sending_of<Net> sent;
    if (net.rank() == 0) {
        if (is_sent) sent = net.post(1, on, message.pieces());
        post_number(net, 1, other, 6);
        receive_number(net, 1, other);
        sent.settle();
        post_number(net, 1, other, 8);
    } else {
        framed_message place(size, 0);
        receive_number(net, 0, other);  // the message sent before has been noticed by now
        expect_into(net, on, place);
        net.forget(on);
        std::copy(own.body.begin(), own.body.end(), place.body.begin());
        post_number(net, 0, other, 7);
        receive_number(net, 0, other);
        expect(place.body == own.body, "a place that was forgotten is written to");
    }
}

}  // namespace detail

/// Checks the laws of messages that are expected before a receive waits for them.
template <class Laws>
void expectation_laws(const Laws& all) {
    const std::size_t sizes[] = {100, detail::lent_size(all.limits()), 4'000'000};
    const auto where_known = [](auto check) {
        return [check](auto& net) {
            if constexpr (ExpectingTransport<std::remove_reference_t<decltype(net)>>) check(net);
        };
    };
    for (const std::size_t size : sizes)
        for (const bool first : {false, true}) {
            all.law("what is expected is received, whole and in order", 2,
                    where_known([=](auto& net) { detail::receives_what_it_expects(net, size, first); }));
            all.law("what is forgotten leaves its place alone", 2,
                    where_known([=](auto& net) { detail::forgets_what_it_expected(net, size, first); }));
        }
}

}}}  // namespace rill::RILL_ABI::testing
