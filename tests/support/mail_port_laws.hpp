// The laws of mail ports, of one port that sends to itself.
#pragma once

#include <rill/transport/detail/mail_port.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <vector>

template <rill::mail::MailPort Port>
class mail_port_laws {
  public:
    explicit mail_port_laws(const Port& of) : port_(of) {}

    void check() const {
        notes_come_in_order();
        parts_come_to_their_receives();
        a_cancelled_receive_takes_nothing();
    }

  private:
    using bytes = std::vector<std::byte>;
    using request = typename Port::request;

    static bytes filled(std::size_t size, int value) { return bytes(size, static_cast<std::byte>(value)); }

    rill::mail::received_note await(bytes& into) const {
        for (;;)
            if (const auto got = port_.receive_note(into.data(), into.size()); got.source != rill::no_rank) return got;
    }
    rill::mail::part_end finish(request& of) const {
        for (;;)
            if (const auto end = port_.look(of)) return *end;
    }
    void complete(request& of) const {
        while (!port_.is_complete(of)) {
        }
        CHECK_FALSE(static_cast<bool>(of));
        CHECK(port_.is_complete(of));
    }

    void notes_come_in_order() const {
        bytes into(64);
        CHECK(port_.receive_note(into.data(), into.size()).source == rill::no_rank);
        std::vector<bytes> sent;
        for (int i = 0; i < 4; ++i) sent.push_back(filled(static_cast<std::size_t>(i) * 16, i));
        std::vector<request> begun;
        for (const bytes& note : sent) begun.push_back(port_.send_note(note.data(), note.size(), port_.rank()));
        for (const bytes& note : sent) {
            const auto got = await(into);
            CHECK(got.source == port_.rank());
            CHECK(got.size == note.size());
            CHECK(bytes(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(got.size)) == note);
        }
        for (request& each : begun) complete(each);
        CHECK(port_.receive_note(into.data(), into.size()).source == rill::no_rank);
    }

    void parts_come_to_their_receives() const {
        bytes other(8), first(8), second(8);
        request receives[] = {receive(other, 2), receive(first, 1), receive(second, 1)};
        const bytes one = filled(8, 1), two = filled(3, 2), three = filled(8, 3);
        request sends[] = {send(one, 1), send(two, 1), send(three, 2)};
        CHECK(finish(receives[1]).size == 8);
        CHECK(finish(receives[2]).size == 3);
        CHECK(finish(receives[0]).size == 8);
        for (request& each : sends) complete(each);
        CHECK(first == one);
        CHECK(bytes(second.begin(), second.begin() + 3) == two);
        CHECK(other == three);
    }

    void a_cancelled_receive_takes_nothing() const {
        bytes given_up(8), wanted(8);
        request cancelled = receive(given_up, 3);
        CHECK_FALSE(port_.look(cancelled).has_value());
        port_.cancel(cancelled);
        CHECK(finish(cancelled).cancelled);
        CHECK_FALSE(static_cast<bool>(cancelled));
        const bytes content = filled(8, 4);
        request next = receive(wanted, 3), sent = send(content, 3);
        CHECK_FALSE(finish(next).cancelled);
        complete(sent);
        CHECK(wanted == content);
        CHECK(given_up == bytes(8));
    }

    request receive(bytes& into, std::uint32_t tag) const {
        return port_.receive_part(into.data(), into.size(), port_.rank(), tag);
    }
    request send(const bytes& from, std::uint32_t tag) const {
        return port_.send_part(from.data(), from.size(), port_.rank(), tag);
    }

    const Port& port_;
};
