// Notes that rill never writes, and errors of the MPI library, in the engine that endpoints share.
#include <rill/transport/mpi.hpp>

#include "../support/mail_port_laws.hpp"
#include "processes.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace rill;
using mail::announcement, mail::envelope, mail::note, mail::packed_notice;
using mpi::detail::engine, mpi::detail::port;

namespace {

using bytes = std::vector<std::byte>;

bytes written(envelope head, const bytes& content = {}) {
    head.incarnation = 1;
    head.size = static_cast<std::uint32_t>(content.size());
    bytes all(sizeof head + content.size());
    std::memcpy(all.data(), &head, sizeof head);
    if (!content.empty()) std::memcpy(all.data() + sizeof head, content.data(), content.size());
    return all;
}

bytes announcement_of(std::uint64_t first, std::uint64_t second) {
    bytes content(announcement::table);
    std::memcpy(content.data(), &first, sizeof first);
    std::memcpy(content.data() + sizeof first, &second, sizeof second);
    return content;
}

/// Rank 1 sends the note `sent` to rank 0, which must blame rank 1, in an error of every context. Collective over both.
void check_refused(engine& net, const bytes& sent) {
    if (net.rank() == 1) {
        port::request request = net.through().send_note(sent.data(), sent.size(), 0);
        MPI_Wait(&request.handle, MPI_STATUS_IGNORE);
        return;
    }
    try {
        net.wait({.context = 7}, net.now() + seconds(30), [] { return false; });
        FAIL("the note is not refused");
    } catch (const protocol_error& thrown) {
        CHECK(thrown.culprit() == 1);
        CHECK(thrown.notice().context == every_context);
        CHECK(std::string(thrown.what()).find("rank 1 sent rank 0 a note of kind") != std::string::npos);
    }
}

/// Runs `body` with an engine of the first two processes; does nothing on the other processes.
template <class Body>
void with_engine(Body body) {
    if (processes::count() < 2) return;
    const MPI_Comm both = processes::first(2);
    if (both == MPI_COMM_NULL) return;
    engine net(both);
    net.open({});
    body(net);
    MPI_Barrier(both);
    net.end();
    net.free();
}

}  // namespace

TEST_CASE("notes that this build does not write are refused, with the rank that sent them") {
    with_engine([](engine& net) {
        const bytes whole = written({.kind = note::credit});
        check_refused(net, {whole.begin(), whole.end() - 1});
        check_refused(net, {});
        check_refused(net, written({.kind = static_cast<note>(200)}));
        check_refused(net, written({.context = 1, .id = 5, .tag = 40'000, .kind = note::ask}));
        check_refused(net, written({.context = ~std::uint64_t{0}, .id = 5, .tag = 1, .kind = note::ask}));
        check_refused(net, written({.id = 1, .kind = note::credit}));
        check_refused(net, written({.id = 2 * 1, .kind = note::leave}));  // two ranks have one round
        check_refused(net, written({.context = 7, .kind = note::announce_lent, .pieces = 2},
                                   announcement_of(~std::uint64_t{0} - 5, 1'000'000)));
        bytes notice(packed_notice({.context = 7, .reason = "none"}).size);
        std::memcpy(notice.data(), packed_notice({.context = 7, .reason = "none"}).bytes, notice.size());
        notice[offsetof(packed_notice::fixed_part, kind)] = std::byte{77};
        check_refused(net, written({.kind = note::verdict}, notice));
    });
}

TEST_CASE("a request for other parts than a message has is refused") {
    with_engine([](engine& net) {
        if (net.rank() == 0) {
            const bytes large(1'000'000);
            const std::uint64_t id = net.post(1, {.context = 7, .tag = 1}, byte_view(large));
            MPI_Send(&id, 1, MPI_UINT64_T, 1, 7, processes::first(2));
            check_refused(net, {});
            CHECK_FALSE(net.is_done(id));
            CHECK(net.withdraw(id));
        } else {
            std::uint64_t id = 0;
            MPI_Recv(&id, 1, MPI_UINT64_T, 0, 7, processes::first(2), MPI_STATUS_IGNORE);
            check_refused(net, written({.context = 3, .id = id, .tag = 1, .kind = note::ask}));
        }
    });
}

TEST_CASE("an abort reaches all ranks, whatever notes arrive meanwhile") {
    with_engine([](engine& net) {
        const abort_notice notice{.context = 9, .culprit = net.rank(), .reason = "enough"};
        const bytes bad = written({.kind = static_cast<note>(200)});
        port::request request = net.through().send_note(bad.data(), bad.size(), 1 - net.rank());
        MPI_Barrier(processes::first(2));
        CHECK_NOTHROW(net.abort(notice));
        CHECK(net.aborted(9).has_value());
        MPI_Wait(&request.handle, MPI_STATUS_IGNORE);
    });
}

TEST_CASE("an error of the library names the rank of the endpoint") {
    MPI_Comm reversed = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -processes::rank(), &reversed);
    port own(reversed);
    CHECK(own.rank() == processes::count() - 1 - processes::rank());
    CHECK(own.neighbours() == processes::count());
    try {
        own.send_note(nullptr, 0, processes::count() + 3);
        FAIL("a message to nobody is sent");
    } catch (const mpi::library_error& thrown) {
        CHECK(thrown.culprit() == own.rank());
        CHECK(std::string(thrown.what()).find("rank " + std::to_string(own.rank()) + ": MPI_Isend") !=
              std::string::npos);
    }
    own.free();
    MPI_Comm_free(&reversed);
}

TEST_CASE("MPI keeps the laws of ports") {
    MPI_Comm alone = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    port own(alone);
    for (const bool matched : {true, false}) {
        own.configure({.matched_probes = matched});
        mail_port_laws(own).check();
    }
    own.free();
    MPI_Comm_free(&alone);
}
