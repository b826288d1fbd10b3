// Provokes each error of rill::tcp whose message docs/errors.md shows, and compares the messages with the document.

#include "document.hpp"

#if __has_include(<openssl/ssl.h>)
#include <rill/core/bytes.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/tcp.hpp>

#include "../support/few_descriptors.hpp"
#include "../support/sanitized.hpp"
#include "../support/scratch.hpp"
#include "../tcp/impostors.hpp"
#include "../tcp/ranks.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace rill;

/// How long ranks wait for each other, also those that come in time on a busy machine.
constexpr duration limit = seconds(1);

/// The messages that the section on `rill::tcp` shows.
std::set<std::string> documented() {
    const std::string text = read_document("errors.md");
    const std::size_t first = text.find("## `tcp::library_error`"), last = text.find("\n## ", first);
    REQUIRE(last != std::string::npos);
    std::set<std::string> all;
    std::istringstream section(text.substr(first, last - first));
    for (std::string line; std::getline(section, line);)
        if (line.starts_with("rill: ")) all.insert(line);
    return all;
}
/// Replaces each `what`, and the characters of `more` behind it, by `by`.
std::string replaced(std::string text, std::string_view what, std::string_view by, const char* more = "") {
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
        text.replace(at, std::min(text.find_first_not_of(more, at + what.size()), text.size()) - at, by);
    return text;
}
/// Replaces the folders before a file's name by `by`.
std::string in_folder(std::string text, std::string_view file, std::string_view by) {
    const std::size_t end = text.find(file);
    if (end == std::string::npos) return text;
    const std::size_t word = text.rfind(' ', end);
    const std::size_t begin = text.find('/', word == std::string::npos ? 0 : word);
    return text.replace(begin, end - begin, by);
}
/// As the document shows it: with the time, the port and the files that stand there.
std::string as_shown(std::string text) {
    constexpr const char* digits = "0123456789";
    text = replaced(text, "within ", "within 60.000000", "0123456789.");
    text = replaced(text, "127.0.0.1:", "127.0.0.1:29400", digits);
    text = in_folder(text, "/job7", "/shared");
    text = replaced(text, "job7.", "job7.17", digits);
    text = in_folder(text, "/key", "/home/a/.config/rill");
    text = replaced(text, "192.0.2.1:29400", "h0:29400");
    text = replaced(text, "the interface 192.0.2.1", "the interface eth0");
    return replaced(text, "point :9 is", "point h0:29400 is");
}

/// What `act()` throws, as text.
template <class Act>
std::string said(Act&& act) {
    return ranks::text_of(ranks::thrown_by(act));
}
std::string said_of(const std::map<std::string, std::string>& variables) {
    return said([&] {
        tcp::options::from_variables([&](const char* name) {
            const auto found = variables.find(name);
            return found == variables.end() ? nullptr : found->second.c_str();
        });
    });
}
std::string said_alone(const tcp::options& own) {
    return said([&] { tcp::endpoint net(own); });
}
/// What `rank` is told where ranks meet whose options `change(options)` changes; one of 0 ranks does not come.
template <class Change>
std::string said_to(rank_t rank, int count, Change&& change) {
    const tcp::options chosen{.meeting = ranks::free_point(), .meeting_timeout = limit};
    const auto thrown = ranks::on_threads(count, chosen, [&](tcp::options own) {
        change(own);
        if (own.ranks != 0) tcp::endpoint net(own);
    });
    return ranks::text_of(thrown[static_cast<std::size_t>(rank)]);
}
/// The same where rank 1 has another value of one option.
template <class Value>
std::string said_to_other(Value tcp::options::*which, Value value) {
    return said_to(1, 2, [&](tcp::options& own) {
        if (own.rank == 1) own.*which = value;
    });
}

const tcp::key one = tcp::key::from_text("0123456789abcdefghijklmnopqrstuv"),
               other = tcp::key::from_text("0123456789abcdefghijklmnopqrstuV");

#ifdef RILL_TEST_SANITIZED
std::string without_descriptors() {  // sanitizers need descriptors themselves
    return "rill: rank 0: cannot connect to rank 1: Too many open files";
}
std::string without_descriptors_for_guests(const std::string&) {
    return "rill: rank 1 has not come to file:/shared/job7 within 60.000000 s: rank 0 cannot accept connections: Too "
           "many open files";
}
#else
std::string without_descriptors() {
    struct nobody final : tcp::detail::contacts::owner {
        std::uint64_t begin(rank_t) override { return 0; }
        void dialled(rank_t, tcp::detail::pending_connection&&) override {}
        void refused(rank_t, const tcp::detail::handshake&) override {}
        void decide(tcp::detail::pending_connection&) override {}
        void came(tcp::detail::pending_connection&&, bool) override {}
    } owner;
    tcp::detail::loop in(0);
    tcp::detail::contacts makes(in, {.ranks = 2, .rank = 0, .incarnation = 1}, {}, {});
    const auto where = tcp::detail::resolve("127.0.0.1:9", 0);
    return said([&] {
        const few_descriptors now;
        makes.dial(1, where, 0, tcp::detail::wall_clock(), owner);
    });
}
std::string without_descriptors_for_guests(const std::string& path) {
    return ranks::text_of(impostors::thrown_without_descriptors(path, limit, std::chrono::seconds(30)));
}
#endif
std::string gone() {
    const auto thrown = ranks::on_threads(3, {.meeting = ranks::free_point()}, [](const tcp::options& own) {
        if (own.rank == 2) return static_cast<void>(tcp::detail::meet(own));  // without a farewell
        tcp::endpoint net(own);
        net.receive(1 - own.rank, {.context = 1}, net.now() + seconds(30));
    });
    CHECK(ranks::text_of(thrown[1]) == ranks::text_of(thrown[0]));
    return ranks::text_of(thrown[0]);
}
std::string left() {
    return ranks::text_of(ranks::on_threads(2, {.meeting = ranks::free_point()}, [](const tcp::options& own) {
        tcp::endpoint net(own);
        if (own.rank == 0) net.receive(1, {.context = 1}, deadline::never);
    })[0]);
}
/// What a process is told that comes as rank 1 when ranks 0 and 1 have met. `joins`: it knows that they have.
std::string late(int seats, bool joins, duration timeout) {
    std::string text;
    const tcp::options chosen{.seats = seats, .meeting = ranks::free_point()};
    ranks::on_threads(2, chosen, [&](tcp::options own) {
        tcp::endpoint net(own);
        own.rank = 1;
        own.seats = joins ? 2 : 0;
        own.joins = joins;
        own.meeting_timeout = timeout;
        own.patience = milliseconds(100);
        if (net.rank() == 0) text = said_alone(own);
        net.post(1 - net.rank(), {.context = 1}, buffer(1));
        net.receive(1 - net.rank(), {.context = 1}, net.now() + seconds(30));
    });
    return text;
}
std::string on_taken_port() {
    const auto taken = tcp::detail::listen_at(tcp::detail::resolve("127.0.0.1:0", no_rank).front(), 1);
    return said_alone({.ranks = 2, .meeting = tcp::detail::socket_address::local_of(taken).text()});
}

}  // namespace

TEST_CASE("errors.md shows the messages of tcp, each of which is provoked here") {
    using security = tcp::security;
    using tcp::options;
    const scratch_directory place;
    const std::string key = place / "key", weak = place / "weak/key", file = "file:" + (place / "job7"),
                      of_another = "file:" + (place / "other/job7"), nowhere = "file:" + (place / "nowhere/job7");
    for (const char* const each : {"weak", "other"}) std::filesystem::create_directory(place / each);
    std::ofstream(key) << "0123456789abcdefghijklmnopqrstuv";
    std::filesystem::permissions(key, std::filesystem::perms::owner_read | std::filesystem::perms::group_read);
    std::ofstream(weak) << "short";
    std::filesystem::permissions(weak, std::filesystem::perms::owner_read);
    tcp::detail::meeting_file{.job = 1, .incarnation = 5, .addresses = {"127.0.0.1:9"}}.write(place / "other/job7", 0);
    const auto guest_at = [](const std::string& point) {
        return said_alone({.rank = 1, .ranks = 2, .meeting = point, .meeting_timeout = limit});
    };
    const auto at_interfaces = [](const std::string& cards) {
        return said_to(1, 2, [&](options& own) {
            if (own.rank == 1) own.interfaces = cards;
        });
    };

    std::set<std::string> shown = documented();
    const auto compare = [&](const std::string& message) {
        const std::string line = as_shown(message);
        CHECK_MESSAGE(shown.erase(line) == 1, "errors.md should have, once, the line\n" << line);
    };
    compare(without_descriptors());
    compare(without_descriptors_for_guests(place / "job7"));
    std::filesystem::remove(place / "job7");

    // Most of them wait, so they are provoked side by side.
    const std::function<std::string()> all[] = {
        [&] {
            return said_of({{"RANK", "0"}});
        },
        [&] {
            return said_of({{"RANK", "4"}, {"WORLD_SIZE", "4"}});
        },
        [&] {
            return said_of({{"RANK", "x"}, {"WORLD_SIZE", "4"}});
        },
        [&] {
            return said_of({{"MASTER_PORT", "1"}});
        },
        [&] {
            return said_of({{"RILL_KEY", "short"}});
        },
        [&] {
            return said_of({{"RILL_KEY", "k"}, {"RILL_SECURITY", "open"}});
        },
        [&] {
            return said_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"RILL_SECURITY", "encrypted"}});
        },
        [&] {
            return said_of({{"RILL_KEY_FILE", key}});
        },
        [&] {
            return said_of({{"RILL_KEY_FILE", weak}});
        },
        [&] { return guest_at("h0"); },
        [&] { return guest_at(":9"); },
        [&] { return guest_at("192.0.2.1:29400"); },
        [&] { return guest_at(file); },
        [&] { return guest_at(of_another); },
        [&] { return said_alone({.ranks = 2, .meeting = nowhere}); },
        on_taken_port,
        [&] { return at_interfaces("eth7"); },
        [&] { return at_interfaces("192.0.2.1"); },
        [&] { return at_interfaces("lo,lo,lo,lo,lo,lo,lo,lo,lo"); },
        [&] {
            return impostors::told_at(
                [](auto came) {
                    impostors::agree(std::move(came));
                    return tcp::detail::socket();
                },
                limit);
        },
        [&] { return impostors::told_at([](auto came) { return impostors::agree(std::move(came)); }, limit); },
        [&] {
            return impostors::told_at([](auto came) { return impostors::say(std::move(came), "HTTP/1.1 400\r\n\r\n"); },
                                      limit);
        },
        [&] {
            return impostors::told_at(
                [](auto came) { return impostors::say(std::move(came), std::string("rill\x07\0", 6)); }, limit);
        },
        [&] {
            return said_to(0, 3, [](options& own) {
                if (own.rank == 2) own.ranks = 0;
            });
        },
        [&] {
            return said_to(0, 3, [](options& own) {
                if (own.rank != 2) return;
                impostors::come_with_another_version(own.meeting);
                own.ranks = 0;
            });
        },
        [&] { return said_to(0, 2, [](options& own) { own.key = own.rank == 0 ? one : other; }); },
        [&] { return said_to(1, 2, [](options& own) { own.key = own.rank == 0 ? one : tcp::key(); }); },
        [&] {
            return said_to(1, 2, [](options& own) {
                own.key = one;
                own.security = own.rank == 0 ? security::keyed : security::encrypted;
            });
        },
        [&] { return said_to_other<std::string>(&options::job, "other"); },
        [&] { return said_to_other(&options::ranks, 3); },
        [&] { return said_to_other<std::size_t>(&options::eager_bytes, 2048); },
        [&] {
            return said_to(0, 3, [](options& own) {
                if (own.rank == 2) own.rank = 1;
            });
        },
        [] { return late(0, false, limit); },
        [] { return late(0, true, limit); },
        [] { return late(2, true, seconds(30)); },
        [] {
            return said_alone({.rank = 1,
                               .ranks = 2,
                               .seats = 2,
                               .joins = true,
                               .meeting = ranks::free_point(),
                               .meeting_timeout = limit});
        },
        gone,
        left,
    };
    std::vector<std::future<std::string>> messages;
    for (const auto& each : all) messages.push_back(std::async(std::launch::async, each));
    for (auto& each : messages) compare(each.get());
    for (const std::string& each : shown) CHECK_MESSAGE(each.empty(), "nothing provokes the line\n" << each);
}
#endif
