// Where the ranks of a job meet: addresses, or a file on a shared disk that tells them.
#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/tcp_error.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <istream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace tcp::detail {

/// Whether a meeting point, `file:/path`, is a file.
inline bool is_file(const std::string& point) { return point.starts_with("file:"); }
inline std::string path_of(const std::string& file) { return file.substr(std::strlen("file:")); }

/// The parts of a text between commas, without spaces.
inline std::vector<std::string> parts_of(const std::string& list) {
    std::vector<std::string> parts;
    std::string each;
    for (std::istringstream from(list); std::getline(from >> std::ws, each, ',');)
        parts.push_back(each.substr(0, each.find_last_not_of(' ') + 1));
    return parts;
}

/// Whether there are several meeting points. At one of them another job may listen, whose refusal means nothing.
inline bool is_list(const std::string& meeting) { return !is_file(meeting) && parts_of(meeting).size() > 1; }

/// All addresses of meeting points that are separated by commas. A name that is unknown is passed over where another
/// one is known.
inline std::vector<socket_address> resolve_all(const std::string& points, rank_t rank) {
    std::vector<socket_address> all;
    std::exception_ptr unknown;
    for (const std::string& each : parts_of(points)) {
        port_of(each, rank, 1);
        try {
            const std::vector<socket_address> some = resolve(each, rank);
            all.insert(all.end(), some.begin(), some.end());
        } catch (const library_error&) {
            if (unknown == nullptr) unknown = std::current_exception();
        }
    }
    if (all.empty() && unknown != nullptr) std::rethrow_exception(unknown);
    return all.empty() ? resolve(points, rank) : all;
}

/// The addresses of this host's interfaces that are up, with port 0, and the names of the interfaces.
inline std::vector<std::pair<std::string, socket_address>> interface_addresses() {
    std::vector<std::pair<std::string, socket_address>> found;
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return {};
    for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
        if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
        const auto family = each->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        socket_address made;
        made.size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        std::memcpy(&made.bytes, each->ifa_addr, made.size);
        found.emplace_back(each->ifa_name, made);
    }
    ::freeifaddrs(all);
    return found;
}

/// The addresses of this host's interfaces, with port 0: of the loopback interface, or of all others. Link-local ones
/// are left out, since no other host knows their scope. Of a host with no other address than loopback ones, these.
inline std::vector<socket_address> own_addresses(bool only_loopback) {
    std::vector<socket_address> loopback, others;
    for (const auto& [name, address] : interface_addresses())
        if (!address.is_link_local()) (address.is_loopback() ? loopback : others).push_back(address);
    return only_loopback || others.empty() ? loopback : others;
}

/// The addresses of one network card of this host, with port 0: those of the interface that has this name, or the
/// address that the text is. Link-local ones count where the interface has no others. Throws `library_error` where
/// there is none.
inline std::vector<socket_address> card_addresses(const std::string& card, rank_t rank) {
    std::vector<socket_address> found, link_local;
    for (const auto& [name, address] : interface_addresses())
        if (name == card) (address.is_link_local() ? link_local : found).push_back(address);
    if (found.empty()) found = link_local;
    if (found.empty()) look_up(card, 0, AI_NUMERICHOST, found);
    if (found.empty()) throw library_error(rank, "this host has no network interface " + card + " with an address");
    return found;
}

/// What the file of a meeting point tells: of which job it is, and where rank 0 listens; of a job with seats whose
/// ranks have met, where those listen that the writer knows.
struct meeting_file {
    static constexpr std::size_t most_addresses = 256;

    std::uint64_t job = 0, incarnation = 0;  ///< of the writer
    std::vector<std::string> addresses{};

    /// Replaces the file in one step: nobody reads a part of it. Throws `library_error` where that fails.
    void write(const std::string& path, rank_t rank) const {
        const std::string beside = path + "." + std::to_string(incarnation);
        {
            std::ofstream to(beside);
            to << "rill " << job << ' ' << incarnation << '\n';
            for (const std::string& each : addresses) to << each << '\n';
            to << "end\n";
            if (!to.flush())
                throw library_error(rank, "cannot write the meeting file " + beside + ": " + system_text());
        }
        if (std::rename(beside.c_str(), path.c_str()) == 0) return;
        const std::string why = system_text();
        ::unlink(beside.c_str());
        throw library_error(rank, "cannot write the meeting file " + path + ": " + why);
    }
    /// Without addresses where there is no such file, or where it is no meeting file.
    static meeting_file read(const std::string& path) {
        meeting_file made;
        std::ifstream from(path);
        std::string word;
        if (!(from >> word >> made.job >> made.incarnation) || word != "rill") return {};
        while (from >> word && word != "end" && made.addresses.size() < most_addresses) made.addresses.push_back(word);
        return word == "end" ? made : meeting_file{};
    }

    friend bool operator==(const meeting_file&, const meeting_file&) = default;
};

}}}  // namespace rill::RILL_ABI::tcp::detail
