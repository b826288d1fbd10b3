#include <rill/transport/tcp.hpp>

#include "../support/scratch.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

using namespace rill;

namespace {

tcp::options read(const std::map<std::string, std::string>& variables) {
    return tcp::options::from_variables([&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    });
}

}  // namespace

TEST_CASE("without variables there is one rank") {
    CHECK(read({}) == tcp::options{});
    CHECK(tcp::options{}.ranks == 1);
}

TEST_CASE("a rank beyond those that start has a seat, and joins") {
    const std::map<std::string, std::string> four{{"RILL_RANK", "5"}, {"RILL_RANKS", "4"}, {"RILL_SEATS", "6"}};
    CHECK(read(four).seats == 6);
    CHECK(read(four).comes_late());
    CHECK_FALSE(read({{"RILL_RANK", "1"}, {"RILL_RANKS", "4"}}).comes_late());
    CHECK(read({{"RILL_RANK", "1"}, {"RILL_RANKS", "4"}, {"RILL_SEATS", "4"}, {"RILL_JOINS", "1"}}).comes_late());
    CHECK_THROWS_AS(read({{"RILL_JOINS", "yes"}}), tcp::library_error);
}

TEST_CASE("each launcher's variables say who and where") {
    const char* const names[][2] = {{"RILL_RANK", "RILL_RANKS"},
                                    {"RANK", "WORLD_SIZE"},
                                    {"SLURM_PROCID", "SLURM_NTASKS"},
                                    {"PMI_RANK", "PMI_SIZE"},
                                    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}};
    for (const auto& [rank, ranks] : names) {
        const tcp::options got = read({{rank, "3"}, {ranks, "8"}, {"MASTER_ADDR", "h0"}, {"MASTER_PORT", "1234"}});
        CHECK(got.rank == 3);
        CHECK(got.ranks == 8);
        CHECK(got.meeting == "h0:1234");
    }
    const tcp::options own = read({{"RILL_RANK", "0"},
                                   {"RILL_RANKS", "2"},
                                   {"RANK", "1"},
                                   {"WORLD_SIZE", "9"},
                                   {"RILL_MEETING", "[::1]:5"},
                                   {"RILL_JOB", "j"},
                                   {"RILL_INTERFACES", "eth0,eth1"},
                                   {"RILL_SECURITY", "open"}});
    CHECK(own.ranks == 2);
    CHECK(own.meeting == "[::1]:5");
    CHECK(own.job == "j");
    CHECK(own.interfaces == "eth0,eth1");
    CHECK(own.security == tcp::security::open);
    for (const char* const host : {"fe80::1", "[fe80::1]"})
        CHECK(read({{"MASTER_ADDR", host}, {"MASTER_PORT", "5"}}).meeting == "[fe80::1]:5");
}

TEST_CASE("a launcher inside a job of Slurm says who, not Slurm") {
    const std::map<std::string, std::string> slurm{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}};
    for (auto inner : {std::map<std::string, std::string>{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}},
                       std::map<std::string, std::string>{{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}}}) {
        inner.insert(slurm.begin(), slurm.end());
        CHECK(read(inner).rank == 3);
        CHECK(read(inner).ranks == 8);
    }
}

TEST_CASE("the key is in a variable or in a file") {
    const scratch_directory place;
    const std::string text = "0123456789abcdefghijklmnopqrstuv", path = place / "key", home = place / "";
    std::ofstream(path) << text << "\n";
    const std::map<std::string, std::string> two{{"RILL_RANK", "0"}, {"RILL_RANKS", "2"}};
    const auto with = [&](std::map<std::string, std::string> more) {
        more.insert(two.begin(), two.end());
        return more;
    };
    std::filesystem::permissions(path, std::filesystem::perms::owner_read);
    CHECK(read(with({{"RILL_KEY", text}})).key == tcp::key::from_text(text));
    CHECK(read(with({{"RILL_KEY_FILE", path}})).key == tcp::key::from_text(text));
    CHECK_FALSE(read(with({{"HOME", place / "nobody"}})).key);
    std::filesystem::create_directories(place / ".config/rill");
    std::filesystem::copy_file(path, place / ".config/rill/key");
    CHECK(read(with({{"HOME", home}})).key == tcp::key::from_text(text));
    CHECK_FALSE(read({{"HOME", home}}).key);
    std::map<std::string, std::string> first{
        {"HOME", home}, {"RILL_RANK", "0"}, {"RILL_RANKS", "1"}, {"RILL_SEATS", "2"}};
    CHECK(read(first).key == tcp::key::from_text(text));  // others may join it
    first["HOME"] = place / "nobody";
    first["RILL_SECURITY"] = "encrypted";
    CHECK_THROWS_WITH_AS(read(first), doctest::Contains("is encrypted, but there is no key"), tcp::library_error);
    CHECK_FALSE(read(with({{"HOME", home}, {"RILL_SECURITY", "open"}})).key);
    const tcp::options encrypted = read(with({{"HOME", home}, {"RILL_SECURITY", "encrypted"}}));
    CHECK(encrypted.key == tcp::key::from_text(text));
    CHECK(encrypted.security == tcp::security::encrypted);
    CHECK(read({{"RILL_SECURITY", "encrypted"}}).ranks == 1);
    CHECK_THROWS_WITH_AS(read(with({{"HOME", place / "nobody"}, {"RILL_SECURITY", "encrypted"}})),
                         doctest::Contains("the variable RILL_SECURITY is encrypted, but there is no key"),
                         tcp::library_error);
    std::filesystem::permissions(path, std::filesystem::perms::group_read, std::filesystem::perm_options::add);
    CHECK_THROWS_WITH_AS(read(with({{"RILL_KEY_FILE", path}})), doctest::Contains("can be used by others"),
                         tcp::library_error);
}

TEST_CASE("gaps and contradictions name the variable") {
    const std::pair<std::map<std::string, std::string>, const char*> wrong[] = {
        {{{"RILL_RANK", "1"}}, "the variable RILL_RANK is set, but RILL_RANKS is not"},
        {{{"RANK", "1"}}, "the variable RANK is set, but WORLD_SIZE is not"},
        {{{"WORLD_SIZE", "1"}}, "the variable WORLD_SIZE is set, but RANK is not"},
        {{{"RANK", "4"}, {"WORLD_SIZE", "4"}}, "the variable RANK is 4, but WORLD_SIZE is only 4"},
        {{{"RANK", "5"}, {"WORLD_SIZE", "4"}, {"RILL_SEATS", "5"}},
         "the variable RANK is 5, but WORLD_SIZE is only 4, and RILL_SEATS 5"},
        {{{"RANK", "x"}, {"WORLD_SIZE", "4"}}, "the variable RANK is \"x\", which is no number from 0 to 65535"},
        {{{"RANK", "-0"}, {"WORLD_SIZE", "4"}}, "the variable RANK is \"-0\", which is no number from 0 to 65535"},
        {{{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "the variable WORLD_SIZE is \"0\", which is no number from 1 to 65535"},
        {{{"RANK", " 0"}, {"WORLD_SIZE", "4"}}, "the variable RANK is \" 0\", which is no number from 0 to 65535"},
        {{{"RANK", "0"}, {"WORLD_SIZE", ""}}, "the variable WORLD_SIZE is \"\", which is no number from 1 to 65535"},
        {{{"RANK", "0"}, {"WORLD_SIZE", "99999999999999999999"}},
         "the variable WORLD_SIZE is \"99999999999999999999\""},
        {{{"MASTER_ADDR", "h"}}, "the variable MASTER_ADDR is set, but MASTER_PORT is not"},
        {{{"MASTER_PORT", "1"}}, "the variable MASTER_PORT is set, but MASTER_ADDR is not"},
        {{{"MASTER_ADDR", "h"}, {"MASTER_PORT", "65536"}}, "the variable MASTER_PORT is \"65536\""},
        {{{"RILL_JOINS", "1"}}, "the variable RILL_JOINS is 1, but RILL_SEATS is not set"},
        {{{"RILL_RANK", "1"}, {"RILL_RANKS", "4"}, {"RILL_JOINS", "1"}, {"RILL_SEATS", "0"}},
         "the variable RILL_JOINS is 1, but RILL_SEATS is 0"},
        {{{"RILL_KEY", "short"}}, "the variable RILL_KEY has no key of at least 22 characters"},
        {{{"RILL_KEY", " 0123456789012345678 \n "}}, "the variable RILL_KEY has no key of at least 22 characters"},
        {{{"RILL_KEY", "k"}, {"RILL_KEY_FILE", "f"}}, "the variables RILL_KEY and RILL_KEY_FILE are both set"},
        {{{"RILL_KEY", "k"}, {"RILL_SECURITY", "open"}}, "the variable RILL_SECURITY is open, but RILL_KEY is set"},
        {{{"RILL_KEY_FILE", "/no/such/file"}}, "the key file /no/such/file cannot be opened"},
        {{{"RILL_SECURITY", "no"}},
         "the variable RILL_SECURITY is \"no\", which is none of keyed, open and encrypted"}};
    for (const auto& [variables, text] : wrong)
        CHECK_THROWS_WITH_AS(read(variables), doctest::Contains(text), tcp::library_error);
}
