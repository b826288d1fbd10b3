// The variables of a launcher, as lines NAME=value: options of one rank that agree with a naive reading of them, or a
// `library_error` that names the variable or the file.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/transport/detail/tcp_options.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace {

using namespace rill;

constexpr std::size_t hash_bytes = 16 << 10;  ///< what libcrypto needs to derive keys

using variables = std::map<std::string, std::string, std::less<>>;

variables read_lines(std::string_view text) {
    variables all;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        const std::size_t equals = line.find('=');
        if (equals == std::string_view::npos) continue;
        const std::string_view name = line.substr(0, equals);
        // Files of this host are not to be read.
        const bool is_path = name == "RILL_KEY_FILE" || name == "HOME";
        all[std::string(name)] = (is_path ? "/no such folder/" : "") + std::string(line.substr(equals + 1));
    }
    // A variable of the environment holds no zero.
    for (auto& [name, value] : all) value = value.c_str();
    return all;
}

/// The number that a text of digits is, if it is at most 65535.
std::optional<int> small_number(const std::string& text) {
    if (text.empty() || !std::all_of(text.begin(), text.end(), [](unsigned char each) { return std::isdigit(each); }))
        return std::nullopt;
    int number = 0;
    for (const char each : text)
        if ((number = 10 * number + (each - '0')) > 65'535) return std::nullopt;
    return number;
}

void check(const variables& all, const tcp::options& got) {
    const auto has = [&](const char* name) { return all.contains(name); };
    constexpr std::pair<const char*, const char*> launchers[] = {{"RILL_RANK", "RILL_RANKS"},
                                                                 {"RANK", "WORLD_SIZE"},
                                                                 {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                                                 {"PMI_RANK", "PMI_SIZE"},
                                                                 {"SLURM_PROCID", "SLURM_NTASKS"}};
    int rank = 0, ranks = 1;
    for (const auto& [own, size] : launchers) {
        if (!has(own) && !has(size)) continue;
        RILL_FUZZ_REQUIRE(has(own) && has(size), "both variables");
        const auto number = small_number(all.at(own)), numbers = small_number(all.at(size));
        RILL_FUZZ_REQUIRE(number && numbers, "two numbers");
        rank = *number;
        ranks = *numbers;
        break;
    }
    RILL_FUZZ_REQUIRE(got.rank == rank && got.ranks == ranks, "the rank that the variables name");
    const auto number_of = [&](const char* name) { return has(name) ? small_number(all.at(name)) : 0; };
    RILL_FUZZ_REQUIRE(number_of("RILL_SEATS") == got.seats, "the seats that are named");
    RILL_FUZZ_REQUIRE(number_of("RILL_JOINS") == int(got.joins), "whether the rank joins");
    const int places = std::max(ranks, got.seats);
    RILL_FUZZ_REQUIRE(rank < places, "a place for the rank");
    RILL_FUZZ_REQUIRE(!got.joins || got.seats > 0, "no rank joins a job without seats");
    if (has("RILL_MEETING"))
        RILL_FUZZ_REQUIRE(got.meeting == all.at("RILL_MEETING"), "the meeting point that is named");
    else
        RILL_FUZZ_REQUIRE(
            has("MASTER_ADDR") == has("MASTER_PORT") && (has("MASTER_ADDR") || got.meeting == tcp::options().meeting),
            "the default, or that of torchrun");
    const std::string security = has("RILL_SECURITY") ? all.at("RILL_SECURITY") : "keyed";
    RILL_FUZZ_REQUIRE(security == (got.security == tcp::security::open        ? "open"
                                   : got.security == tcp::security::encrypted ? "encrypted"
                                                                              : "keyed"),
                      "the security that is named");
    RILL_FUZZ_REQUIRE(bool(got.key) == has("RILL_KEY"), "a key where one is named");
    RILL_FUZZ_REQUIRE(!(has("RILL_KEY") && (has("RILL_KEY_FILE") || security == "open")), "no two ways to have a key");
    RILL_FUZZ_REQUIRE(security != "encrypted" || got.key || places == 1, "nothing is encrypted without a key");
}

}  // namespace

RILL_FUZZ_TARGET(tcp_variables)(const std::uint8_t* data, std::size_t size) {
    const variables all = read_lines({reinterpret_cast<const char*>(data), size});
    const auto value_of = [&](const char* name) -> const char* {
        const auto found = all.find(std::string_view(name));
        return found == all.end() ? nullptr : found->second.c_str();
    };
    // libcrypto makes its tables at the first call.
    static const tcp::key first = tcp::key::from_text("a key of at least 22 characters");
    const auto read = [&] {
        const rill::fuzz::allocation_budget at_most(32 * size + hash_bytes + rill::fuzz::error_texts);
        return tcp::options::from_variables(value_of);
    };
    try {
        check(all, read());
    } catch (const tcp::library_error& error) {
        const std::string_view text = error.what();
        RILL_FUZZ_REQUIRE(error.notice().culprit == no_rank, "no rank is blamed");
        RILL_FUZZ_REQUIRE(
            text.find("the variable") != std::string_view::npos || text.find("the key file") != std::string_view::npos,
            "the variable or the file is named");
    }
    return 0;
}
