#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_error.hpp>
#include <rill/transport/detail/tcp_key.hpp>

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace tcp {

/// Who may connect, and who can read and change what travels.
enum class security : std::uint8_t {
    keyed,     ///< processes that prove that they have the job's key; without a key, only processes of this host. Later
               ///< messages are neither encrypted nor authenticated
    open,      ///< whoever reaches the ports: only for a network in which every host is trusted
    encrypted  ///< processes that have the job's key; all messages are encrypted and authenticated by TLS 1.3
};

/// Which rank this process is, where the ranks meet, and how they exchange messages. `ranks`, `seats`, `meeting`,
/// `job`, `security`, `key`, `mailbox_bytes`, `eager_bytes`, `chunk_bytes` and `window_bytes` must be equal on all
/// ranks, and either all of them choose `interfaces` or none; where that is not so, the meeting fails. The other
/// options may differ between ranks.
struct options {
    rank_t rank = 0;
    /// How many ranks meet at the start.
    int ranks = 1;
    /// Not 0: processes can join the job when its ranks have met, on a free seat or on that of a process that has
    /// ended. There are this many seats, or `ranks` if that is more. Such a job sends as if each rank was on a host of
    /// its own. Each rank answers processes that join; see `meeting`.
    int seats = 0;
    /// This process joins a job whose ranks have met. A process whose `rank` is not below `ranks` always does.
    bool joins = false;
    /// Where rank 0 listens: `host:port` or `[address]:port`, or several of these, separated by commas, of which rank 0
    /// takes those that its host has. Or `file:` and the path of a file on a disk that all hosts share: rank 0 writes
    /// its addresses there. Each other rank listens at the address by which it reaches rank 0. Where `seats` is not 0,
    /// ranks listen for processes that join: at each `host:port` one of that host, and another one within a second of
    /// its end; the file then tells where all ranks listen.
    std::string meeting = "127.0.0.1:29400";
    /// Over which network interfaces the ranks exchange messages: up to 8 names of interfaces, or addresses of this
    /// host, separated by commas, such as `eth0,eth1`. Two ranks have a connection over the first interface of either,
    /// one over the second, and so on. A large message goes over all of them, over each as much as it carries; while
    /// one is silent or lost, the others carry all. Each rank reaches the others' addresses by the routes of its host.
    /// Empty: one connection, at the addresses of the meeting. Ranks may choose different interfaces, and different
    /// numbers of them.
    std::string interfaces{};
    std::string job{};  ///< ranks of other jobs are refused
    /// Equal on all ranks: others are refused.
    tcp::security security = tcp::security::keyed;
    /// Without a key, an address that is not a loopback address is refused, and nothing can be encrypted.
    /// `security::open` does not use it.
    tcp::key key{};
    /// How long the ranks wait for each other at the start.
    duration meeting_timeout = seconds(60);
    /// A peer that says nothing for this time counts as gone. A rank that computes is not silent, since a thread of its
    /// endpoint answers for it. A process that is stopped is silent.
    duration patience = seconds(10);
    /// Bound of the bytes that one rank has handed over to another and the other has not received. A second bound of
    /// the same size is that of the bytes in large messages that one rank has sent to another unasked.
    std::size_t mailbox_bytes = std::size_t{64} << 20;
    /// A message of up to this size is copied at its post and sent at once. A larger one that is sent unasked goes in
    /// pieces of this size. Any other waits at its sender until its receiver asks for it. At least 1024.
    std::size_t eager_bytes = (std::size_t{64} << 10) - 512;
    /// Whether a borrowed message above `eager_bytes` is sent before its receiver asks for it, if `mailbox_bytes` has
    /// room for it. Not set: yes if the ranks are on several hosts, no if all are on one.
    std::optional<bool> sends_unasked{};
    /// `all_reduce` of a dense vector cuts each part of it into chunks of this many bytes. 0: no cuts if all ranks are
    /// on one host; otherwise a chunk with its head is about as large as `eager_bytes`.
    std::size_t chunk_bytes = 0;
    /// Bytes that may be under way to one peer without its acknowledgement.
    std::size_t window_bytes = std::size_t{4} << 20;
    /// How long `abort` waits for rank 0 to say which notice was the first, before this rank decides and tells all.
    duration abort_timeout = seconds(2);
    /// How long this rank waits after a failure for ranks that have not noticed it.
    duration failure_timeout = seconds(30);
    /// How long an endpoint's destructor waits for peers to take what was sent to them.
    duration farewell_timeout = seconds(2);

    static constexpr int most_ranks = 65'535;  ///< and seats

    int size() const { return std::max(ranks, seats); }
    bool comes_late() const { return joins || rank >= ranks; }

    // What the mail engine asks of a port whose activities are threads.
    static constexpr duration blocks_beyond{deadline::never.at.ns};
    static constexpr std::size_t stack_bytes = 0;
    static constexpr int spins = 0;
    static constexpr duration nap{};

    /// Reads rank and number of ranks from the variables of the launcher. The first pair that is set counts: RILL_RANK
    /// and RILL_RANKS; RANK and WORLD_SIZE (torchrun); OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE; PMI_RANK and
    /// PMI_SIZE; SLURM_PROCID and SLURM_NTASKS. Slurm comes last, since another launcher inside its job leaves its
    /// variables as they are. RILL_SEATS is the number of seats, and RILL_JOINS is 1 where this process joins. The
    /// meeting point is RILL_MEETING, or MASTER_ADDR and MASTER_PORT, or the default. RILL_INTERFACES names the
    /// interfaces. RILL_JOB or SLURM_JOB_ID names the job. RILL_SECURITY is `keyed`, `open` or `encrypted`. The key is
    /// in RILL_KEY, or in the file that RILL_KEY_FILE names, or in `~/.config/rill/key`. Without any of them: one rank,
    /// no key. Throws `library_error` that names the variable which is missing or wrong, or the file.
    static options from_environment() {
        return from_variables([](const char* name) { return static_cast<const char*>(std::getenv(name)); });
    }
    /// Reads the variables by `get(name)`, which returns their text, or null where one is not set.
    template <class Get>
    static options from_variables(Get&& get);

    friend bool operator==(const options&, const options&) = default;
};

namespace detail {

[[noreturn]] inline void refuse_variable(const std::string& what) { throw library_error(no_rank, what); }

inline std::int64_t whole_number(const char* name, std::string_view text, std::int64_t least, std::int64_t most) {
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_signed = text.starts_with('-');  // as in "-0"
    if (is_signed || failed != std::errc{} || end != text.data() + text.size() || number < least || number > most)
        refuse_variable(std::string("the variable ") + name + " is \"" + std::string(text) +
                        "\", which is no number from " + std::to_string(least) + " to " + std::to_string(most));
    return number;
}

}  // namespace detail

template <class Get>
options options::from_variables(Get&& get) {
    constexpr std::pair<const char*, const char*> launchers[] = {{"RILL_RANK", "RILL_RANKS"},
                                                                 {"RANK", "WORLD_SIZE"},
                                                                 {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                                 {"PMI_RANK", "PMI_SIZE"},
                                                                 {"SLURM_PROCID", "SLURM_NTASKS"}};
    options read;
    if (const char* const seats = get("RILL_SEATS"))
        read.seats = static_cast<int>(detail::whole_number("RILL_SEATS", seats, 0, most_ranks));
    if (const char* const joins = get("RILL_JOINS")) read.joins = detail::whole_number("RILL_JOINS", joins, 0, 1) != 0;
    for (const auto& [rank, ranks] : launchers) {
        const char* const own = get(rank);
        const char* const all = get(ranks);
        if (own == nullptr && all == nullptr) continue;
        if (own == nullptr || all == nullptr)
            detail::refuse_variable(std::string("the variable ") + (own == nullptr ? ranks : rank) + " is set, but " +
                                    (own == nullptr ? rank : ranks) + " is not");
        read.ranks = static_cast<int>(detail::whole_number(ranks, all, 1, most_ranks));
        read.rank = static_cast<rank_t>(detail::whole_number(rank, own, 0, most_ranks));
        if (read.rank >= read.size())
            detail::refuse_variable(std::string("the variable ") + rank + " is " + own + ", but " + ranks +
                                    " is only " + all +
                                    (read.seats == 0 ? "" : ", and RILL_SEATS " + std::to_string(read.seats)));
        break;
    }
    if (read.joins && read.seats == 0)
        detail::refuse_variable(std::string("the variable RILL_JOINS is 1, but RILL_SEATS is ") +
                                (get("RILL_SEATS") == nullptr ? "not set" : "0"));
    if (const char* const meeting = get("RILL_MEETING")) {
        read.meeting = meeting;
    } else if (const char* const host = get("MASTER_ADDR")) {
        const char* const port = get("MASTER_PORT");
        if (port == nullptr) detail::refuse_variable("the variable MASTER_ADDR is set, but MASTER_PORT is not");
        const std::string text(host);
        const bool needs_brackets = text.find(':') != std::string::npos && text.front() != '[';
        read.meeting = (needs_brackets ? "[" + text + "]" : text) + ":" +
                       std::to_string(detail::whole_number("MASTER_PORT", port, 1, 65'535));
    } else if (get("MASTER_PORT") != nullptr) {
        detail::refuse_variable("the variable MASTER_PORT is set, but MASTER_ADDR is not");
    }
    if (const char* const interfaces = get("RILL_INTERFACES")) read.interfaces = interfaces;
    for (const char* const name : {"RILL_JOB", "SLURM_JOB_ID"})
        if (const char* const job = get(name); job != nullptr && read.job.empty()) read.job = job;
    if (const char* const chosen = get("RILL_SECURITY")) {
        const std::string_view text(chosen);
        if (text == "open")
            read.security = tcp::security::open;
        else if (text == "encrypted")
            read.security = tcp::security::encrypted;
        else if (text != "keyed")
            detail::refuse_variable("the variable RILL_SECURITY is \"" + std::string(text) +
                                    "\", which is none of keyed, open and encrypted");
    }
    const char* const key = get("RILL_KEY");
    const char* const file = get("RILL_KEY_FILE");
    if (key != nullptr && file != nullptr)
        detail::refuse_variable("the variables RILL_KEY and RILL_KEY_FILE are both set");
    if (read.security == tcp::security::open) {
        if (key != nullptr || file != nullptr)
            detail::refuse_variable(std::string("the variable RILL_SECURITY is open, but ") +
                                    (key != nullptr ? "RILL_KEY" : "RILL_KEY_FILE") + " is set");
    } else if (key != nullptr) {
        if (!tcp::key::is_long_enough(key))
            detail::refuse_variable("the variable RILL_KEY has no key of at least 22 characters");
        read.key = tcp::key::from_text(key);
    } else if (file != nullptr) {
        read.key = tcp::key::from_file(file);
    } else if (const char* const home = get("HOME"); home != nullptr && read.size() > 1) {
        const std::string own = std::string(home) + "/.config/rill/key";
        if (::access(own.c_str(), F_OK) == 0) read.key = tcp::key::from_file(own);
    }
    if (read.security == tcp::security::encrypted && !read.key && read.size() > 1)
        detail::refuse_variable(
            "the variable RILL_SECURITY is encrypted, but there is no key: tools/launch --make-key makes one");
    return read;
}

}}}  // namespace rill::RILL_ABI::tcp
