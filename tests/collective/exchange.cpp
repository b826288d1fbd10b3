#include <rill/collective/exchange.hpp>
#include <rill/transport/simulated.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace {

using session = rill::session<rill::simulated::endpoint>;
using exchange = rill::exchange<rill::simulated::endpoint>;

rill::call_signature call(std::uint64_t number, std::uint64_t dimension = 10) {
    return {.number = number, .kind = rill::operation::all_reduce, .dimension = dimension};
}

/// What `act(exchange)` throws.
template <class Act>
rill::abort_notice thrown_by(exchange& current, Act act) {
    try {
        act(current);
    } catch (const rill::error& e) {
        return e.notice();
    }
    return {};
}

rill::byte_view bytes_of(const std::vector<int>& values) { return std::as_bytes(std::span(values)); }

}  // namespace

TEST_CASE("exchange: await_readers waits for memory that is being read, and for no other") {
    rill::simulated::run(2, {}, [](auto& net) {
        const session own(net, "test", rill::seconds(1));
        exchange current(own);
        current.begin(call(1));
        std::vector<int> data(8, net.rank()), other(8);
        current.enter(1);
        current.send(1 - net.rank(), bytes_of(data));
        CHECK(current.sends_this_round(bytes_of(data).first(1)));
        CHECK(!current.sends_this_round(bytes_of(other)));
        const auto before = net.now();
        current.await_readers(bytes_of(other));
        CHECK(net.now() == before);
        {
            const auto received = current.receive(1 - net.rank());
            net.sleep_until(net.now() + rill::milliseconds(1));
            CHECK(received.pieces()[0].size() == 32);
        }
        current.await_readers(bytes_of(data).last(1));
        CHECK(net.now() >= before + rill::milliseconds(1));
        current.enter(2);
        CHECK(!current.sends_this_round(bytes_of(data)));
        current.finish();
        CHECK(current.counted() == net.counted());
    });
}

TEST_CASE("exchange: a rank that has not entered is blamed for a timeout; otherwise both ends of the link are") {
    rill::simulated::run(3, {}, [](auto& net) {
        const session own(net, "test", rill::seconds(1));
        exchange current(own);
        if (net.rank() == 2) return net.sleep_until(net.now() + rill::seconds(2));
        current.begin(call(1));
        if (net.rank() == 0) {
            const auto notice = thrown_by(current, [](auto& c) { c.receive(1); });
            CHECK(notice.kind == rill::failure::timeout);
            CHECK(notice.culprit == 2);
            CHECK(notice.other == 0);
            CHECK(notice.reason == "all_reduce (operation 1): rank 2 has not entered the operation within 1.000000 s");
        }
    });
    rill::simulated::run(3, {}, [](auto& net) {
        const session own(net, "test", rill::seconds(1));
        exchange current(own);
        current.begin(call(1));
        // Rank 2 is through already, and in the next operation, of another kind.
        if (net.rank() == 2) current.begin(call(2, 99));
        if (net.rank() == 0) {
            const auto notice = thrown_by(current, [](auto& c) { c.receive(1); });
            CHECK(notice.kind == rill::failure::timeout);
            CHECK(notice.culprit == 1);
            CHECK(notice.other == 0);
            CHECK(notice.reason.find("which has entered the operation") != std::string::npos);
        }
    });
}

TEST_CASE("exchange: the odd one among the ranks that have entered is blamed for a mismatch") {
    const auto blamed = [](std::vector<rill::call_signature> calls) {
        rill::abort_notice notice;
        rill::simulated::run(static_cast<int>(calls.size()), {}, [&](auto& net) {
            const session own(net, "test", rill::seconds(1));
            exchange current(own);
            const auto& mine = calls[static_cast<std::size_t>(net.rank())];
            if (mine.number == 0) return;  // does not come
            current.begin(mine);
            if (net.rank() == 0) notice = thrown_by(current, [](auto& c) { c.disagree(1); });
        });
        CHECK(notice.kind == rill::failure::mismatch);
        return notice.culprit;
    };
    CHECK(blamed({call(1), call(1, 11), call(1)}) == 1);
    CHECK(blamed({call(1, 11), call(1), call(1)}) == 0);
    CHECK(blamed({call(1), call(1, 11)}) == 1);
    CHECK(blamed({call(1), call(1, 11), call(1, 11), call(1)}) == 1);
    CHECK(blamed({call(1), call(5), call(1)}) == 1);
    CHECK(blamed({call(1), call(1, 11), call(1), {}}) ==
          1);  // rank 3 is late or lost, which is not the cause of the mismatch
}
