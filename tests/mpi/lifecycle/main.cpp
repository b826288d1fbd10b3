// How rill starts and ends MPI, one program run per case: `main CASE`. Exit status 0 if the case went as it should.
#include <rill/testing/law.hpp>
#include <rill/transport/mpi.hpp>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <unistd.h>

using namespace rill;

namespace {

constexpr channel on{.context = 3, .tag = 1};

void expect(bool seen, const char* what) {
    if (!seen) throw std::logic_error(what);
}

template <class Call>
std::string library_says(Call call) {
    try {
        call();
    } catch (const mpi::library_error& thrown) {
        return thrown.what();
    }
    return "";
}

/// Writes at once, so that the text is seen however this process ends.
void say(const std::string& what) {
    std::puts(what.c_str());
    std::fflush(stdout);
}

bool is_finalised() {
    int flag = 0;
    MPI_Finalized(&flag);
    return flag != 0;
}

void rill_starts_mpi_and_ends_it() {
    expect(!library_says([] { mpi::endpoint net{MPI_COMM_WORLD}; }).empty(), "an endpoint is made before MPI runs");
    {
        const mpi::environment library;
        expect(library.owns(), "the environment says that MPI was running");
        mpi::run([](mpi::endpoint& net) {
            expect(net.post((net.rank() + 1) % net.size(), on, buffer(8)), "a message is refused");
            expect(net.receive((net.rank() + net.size() - 1) % net.size(), on, deadline::never).has_value(), "lost");
        });
        expect(!is_finalised(), "MPI is finalised too early");
    }
    expect(is_finalised(), "MPI is not finalised");
    expect(library_says([] { mpi::environment again; }).find("finalised") != std::string::npos, "MPI starts again");
}

void the_user_starts_mpi_and_ends_it() {
    MPI_Init(nullptr, nullptr);
    {
        const mpi::environment library(mpi::thread_level::multiple);
        expect(!library.owns(), "the environment says that it has started MPI");
        mpi::run([](mpi::endpoint& net) { net.sleep_until(net.now() + microseconds(10)); });
    }
    expect(!is_finalised(), "the environment has finalised what it did not start");
    MPI_Finalize();
}

/// Lets an endpoint outlive its library, with messages of every kind unfinished.
void outlives(void (*end)(MPI_Comm&)) {
    MPI_Init(nullptr, nullptr);
    MPI_Comm group = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &group);
    auto net = std::make_unique<mpi::endpoint>(group);
    const rank_t next = (net->rank() + 1) % net->size();
    const buffer lent(1'000'000), little(10);
    auto waiting = net->post(next, on, byte_view(lent));
    auto unseen = net->post(next, {on.context, 2}, byte_view(little));
    expect(net->post(next, on, buffer(1'000'000)), "a buffer is refused");
    auto arrived = net->receive((next + net->size() - 2) % net->size(), {on.context, 2}, deadline::never);
    end(group);
    const auto ended = [](const std::string& text) { return text.find("outlived MPI") != std::string::npos; };
    expect(ended(library_says([&] { net->post(next, on, byte_view(little)); })), "post");
    expect(ended(library_says([&] { net->post(next, on, buffer(3)); })), "post of a buffer");
    expect(ended(library_says([&] { net->receive(next, on, deadline::never); })), "receive");
    expect(ended(library_says([&] { net->sleep_until({}); })), "sleep_until");
    expect(ended(library_says([&] { net->inquire(next, 1, 1, deadline::immediate); })), "inquire");
    expect(ended(library_says([&] { waiting.wait(deadline::never); })), "wait");
    expect(ended(library_says([&] { waiting.done(); })), "done");
    expect(ended(library_says([&] { net->announce(1, {.number = 1}); })), "announce");
    expect(ended(library_says([&] { net->now(); })), "now");
    const abort_notice notice{.context = 9, .culprit = 0, .reason = "late"};
    expect(net->abort(notice) == notice, "abort");
    net->close(on.context);
    net.reset();
    expect(arrived->pieces().size_bytes() == little.size(), "a message does not outlive its endpoint");
    arrived.reset();
    waiting.settle();
}

void endpoints_outlive_mpi() {
    outlives([](MPI_Comm&) { MPI_Finalize(); });
}

void endpoints_outlive_their_communicator() {
    outlives([](MPI_Comm& group) { MPI_Comm_free(&group); });
    MPI_Finalize();
}

/// Rank 1 throws; every rank must throw an error of its own that names rank 1.
void an_exception_ends_all() {
    const mpi::environment library;
    int self = no_rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    std::string what;
    rank_t culprit = no_rank;
    try {
        mpi::run([](mpi::endpoint& net) {
            if (net.rank() == 1) throw std::runtime_error("the disk of rank 1 is full");
            net.receive(net.rank(), on, deadline::never);
        });
    } catch (const peer_failure& heard) {
        culprit = heard.culprit();
        what = heard.what();
    } catch (const std::runtime_error& own) {
        culprit = self;
        what = own.what();
    }
    expect(culprit == 1 && what.find("the disk of rank 1 is full") != std::string::npos, "another culprit");
}

/// Rank 1 exits without a message while all others wait for it. The launcher must end them.
void a_rank_dies() {
    const mpi::environment library;
    mpi::run([](mpi::endpoint& net) {
        const channel ready{.context = 3, .tag = 2};
        if (net.rank() != 1) {
            expect(net.post(1, ready, buffer(1)), "a message is refused");
            net.receive(1, on, deadline::never);
            return;
        }
        for (rank_t peer = 0; peer < net.size(); ++peer)
            if (peer != 1) net.receive(peer, ready, deadline::never);
        say("all ranks have started");
        std::raise(SIGKILL);
    });
}

/// Rank 2 computes for ever. The others fail and must be able to report it; MPI_Finalize would wait for rank 2.
void a_rank_goes_on_after_a_failure() {
    const mpi::environment library;
    const auto body = [](mpi::endpoint& net) {
        if (net.rank() == 2)
            for (;;) ::pause();
        if (!net.receive(2, on, net.now() + milliseconds(100)))
            throw_error({.kind = failure::timeout, .culprit = 2, .reason = "rank 2 has not entered"});
    };
    try {
        mpi::run(MPI_COMM_WORLD, body, {.abort_timeout = milliseconds(100), .failure_timeout = seconds(1)});
    } catch (const timeout& thrown) {
        say(thrown.what());
        std::_Exit(1);
    }
}

/// One of two ranks stops while a large message moves between them; `of_sender` tells which. The other rank must get
/// its memory back (MPICH can cancel a receive even then), or end the job with a message that names the stopped rank.
void a_rank_stops(bool of_sender) {
    const mpi::environment library;
    const channel word{.context = 3, .tag = 2};
    const auto body = [=](mpi::endpoint& net) {
        const rank_t other = 1 - net.rank();
        buffer whole(64'000'000);
        const byte_span target(whole);
        const auto stop = [] {
            say("process " + std::to_string(::getpid()) + " stops");
            std::raise(SIGSTOP);
        };
        if (net.rank() == 0) {
            auto sent = net.post(other, on, byte_view(whole));
            expect(net.post(other, word, buffer(1)), "a message is refused");
            net.receive(other, word,
                        deadline::never);  // the receiver has asked for the large message before it sent this word
            if (of_sender) stop();
            expect(!sent.wait(net.now() + milliseconds(300)), "all is sent to a process that has stopped");
            sent.settle();
        } else {
            net.expect(other, on, {&target, 1});
            net.receive(other, word,
                        deadline::never);  // the large message has been announced, and this rank has asked for it
            expect(net.post(other, word, buffer(1)), "a message is refused");
            if (!of_sender) stop();
            expect(!net.receive(other, on, net.now() + milliseconds(300)), "all comes from a process that has stopped");
            net.forget(on);
        }
        say("the memory is given back");
        std::_Exit(1);
    };
    mpi::run(MPI_COMM_WORLD, body, {.failure_timeout = seconds(1)});
}
void the_sender_stops() { a_rank_stops(true); }
void the_receiver_stops() { a_rank_stops(false); }

/// MPI is finalised by the destructor of an object of static storage duration that is among the first.
void a_static_environment_ends_mpi() {
    static const mpi::environment library;
    mpi::run([](mpi::endpoint& net) {
        expect(net.post((net.rank() + 1) % net.size(), on, buffer(8)), "a message is refused");
        expect(net.receive((net.rank() + net.size() - 1) % net.size(), on, deadline::never).has_value(), "lost");
    });
}

/// A message of one piece with more bytes than an int of MPI can count.
void a_message_of_more_than_two_gigabytes() {
    const mpi::environment library;
    mpi::run([](mpi::endpoint& net) {
        constexpr std::size_t size = (std::size_t{1} << 31) + 12'345;
        const rank_t other = 1 - net.rank();
        if (net.rank() == 0) {
            buffer whole = testing::detail::pattern(size, 1);
            auto sent = net.post(other, on, byte_view(whole));
            expect(sent.wait(deadline::never), "a wait without deadline gives up");
            expect(net.post(other, on, std::move(whole), deadline::never), "a buffer is refused");
        } else {
            {
                buffer into(size);
                const byte_span target(into);
                expect(net.receive_into(other, on, {&target, 1}, deadline::never), "nothing comes");
                expect(testing::detail::is_pattern(byte_view(into), size, 1), "other bytes come");
            }
            const auto message = net.receive(other, on, deadline::never);
            expect(testing::detail::is_pattern(message->pieces(), size, 1), "other bytes come");
        }
    });
}

const std::map<std::string, void (*)()> cases{
    {"starts", rill_starts_mpi_and_ends_it},
    {"joins", the_user_starts_mpi_and_ends_it},
    {"outlives", endpoints_outlive_mpi},
    {"freed", endpoints_outlive_their_communicator},
    {"throws", an_exception_ends_all},
    {"dies", a_rank_dies},
    {"loops", a_rank_goes_on_after_a_failure},
    {"sender_stops", the_sender_stops},
    {"receiver_stops", the_receiver_stops},
    {"static", a_static_environment_ends_mpi},
    {"large", a_message_of_more_than_two_gigabytes},
};

}  // namespace

int main(int argc, char** argv) {
    const auto found = cases.find(argc == 2 ? argv[1] : "");
    if (found == cases.end()) return 2;
    try {
        found->second();
    } catch (const std::exception& failed) {
        std::fprintf(stderr, "%s: %s\n", argv[1], failed.what());
        std::_Exit(1);
    }
    return 0;
}
