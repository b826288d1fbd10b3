#include <rill/transport/detail/tcp_key.hpp>
#include <rill/transport/detail/tcp_socket.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace rill;
using namespace rill::tcp;
using rill::tcp::detail::acceptor;
using rill::tcp::detail::dialer;
using rill::tcp::detail::handshake;

template <class Bytes>
std::string hex(const Bytes& bytes) {
    std::string text;
    for (const std::byte each : bytes) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", std::to_integer<unsigned>(each));
        text += two;
    }
    return text;
}
byte_view view(const std::string& text) { return std::as_bytes(std::span(text)); }

handshake::identity identity_of(rank_t rank) {
    return {.ranks = 3, .rank = rank, .incarnation = 100 + static_cast<std::uint64_t>(rank)};
}
handshake::nonce fresh() {
    handshake::nonce made;
    rill::tcp::detail::fill_with_random(made);
    return made;
}

/// Moves what `from` says to `to`, as far as `to` wants it.
template <class From, class To>
std::vector<std::byte> say(From& from, To& to) {
    std::vector<std::byte> said;
    while (!from.outgoing().empty() && to.wanted() != 0) {
        const std::size_t count = std::min(from.outgoing().size(), to.wanted());
        const std::vector<std::byte> bytes(from.outgoing().begin(),
                                           from.outgoing().begin() + static_cast<std::ptrdiff_t>(count));
        from.wrote(count);
        to.arrived(bytes);
        said.insert(said.end(), bytes.begin(), bytes.end());
    }
    return said;
}

class key_file {
  public:
    key_file(const std::string& text, ::mode_t mode) {
        const int number = ::mkstemp(path_.data());
        REQUIRE(number >= 0);
        ::close(number);
        std::ofstream(path_) << text;
        REQUIRE(::chmod(path_.c_str(), mode) == 0);
    }
    key_file(const key_file&) = delete;
    key_file& operator=(const key_file&) = delete;
    ~key_file() { std::remove(path_.c_str()); }
    const std::string& path() const { return path_; }

  private:
    std::string path_ = "/tmp/rill-key-XXXXXX";
};

const std::string one_text = "0123456789abcdefghijklmnopqrstuv", other_text = "0123456789abcdefghijklmnopqrstuV";

std::string trouble_with(const std::string& path) {
    try {
        key::from_file(path);
    } catch (const library_error& error) {
        return error.what();
    }
    return "nothing";
}

}  // namespace

TEST_CASE("HMAC-SHA-256 of the cases 1, 2 and 6 of RFC 4231") {
    CHECK(hex(rill::tcp::detail::hmac_sha256(view(std::string(20, '\x0b')), view("Hi There"))) ==
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    CHECK(hex(rill::tcp::detail::hmac_sha256(view("Jefe"), view("what do ya want for nothing?"))) ==
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    CHECK(hex(rill::tcp::detail::hmac_sha256(view(std::string(131, '\xaa')),
                                             view("Test Using Larger Than Block-Size Key - Hash Key First"))) ==
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("HKDF-SHA-256 of the cases 1 and 3 of RFC 5869") {
    std::string salt, info;
    for (char each = 0; each <= 12; ++each) salt += each;
    for (int each = 0xf0; each <= 0xf9; ++each) info += static_cast<char>(each);
    std::vector<std::byte> made(42);
    rill::tcp::detail::hkdf_sha256(view(std::string(22, '\x0b')), view(salt), view(info), made);
    CHECK(hex(made) == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    rill::tcp::detail::hkdf_sha256(view(std::string(22, '\x0b')), {}, {}, made);
    CHECK(hex(made) == "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

TEST_CASE("a key file that others can use is refused") {
    CHECK(key::from_file(key_file(one_text + "\n", 0600).path()));
    for (const ::mode_t mode : {0644U, 0640U, 0604U, 0620U}) {
        CAPTURE(mode);
        const key_file file(one_text, mode);
        CHECK(trouble_with(file.path()) ==
              "rill: the key file " + file.path() + " can be used by others than its owner: chmod 600 it");
    }
    CHECK(trouble_with("/tmp").find("is no file") != std::string::npos);
    CHECK(trouble_with("/no/such/file").find("cannot be opened") != std::string::npos);
    const key_file weak("short\n", 0600), large(std::string(5000, 'a'), 0600);
    CHECK(trouble_with(weak.path()).find("has no key") != std::string::npos);
    CHECK(trouble_with(weak.path()).find("short") == std::string::npos);
    CHECK(trouble_with(large.path()).find("longer than 4096") != std::string::npos);
}

TEST_CASE("a text that is too short is no key") {
    CHECK_NOTHROW(key::from_text(one_text.substr(0, 22)));
    CHECK_THROWS_WITH_AS(key::from_text(one_text.substr(0, 21)), doctest::Contains("at least 22 characters"),
                         library_error);
    CHECK_THROWS_AS(key::from_text(std::string(40, ' ')), library_error);
    CHECK(key::from_text(one_text) == key::from_text(one_text + "\n"));
    CHECK(key::from_text(one_text) != key::from_text(other_text));
    CHECK(key::from_text(one_text) != key());
}

TEST_CASE("both ends of a handshake agree with one key, also from a file with white space around it") {
    const key_file file(" " + one_text + "\r\n", 0600);
    const key one = key::from_text(one_text), same = key::from_file(file.path());
    dialer d(identity_of(1), {.rank = 2}, one.prover(), fresh());
    acceptor a(identity_of(2), same.prover(), fresh());
    say(d, a);
    say(a, d);
    d.prove(5);
    say(d, a);
    REQUIRE(a.now() == handshake::state::asks);
    a.accept(6);
    say(a, d);
    CHECK(d.now() == handshake::state::agreed);
    CHECK(d.peer_taken() == 6);
    CHECK(a.peer_taken() == 5);
}

TEST_CASE("a wrong key is refused by the acceptor, and by the dialer even where the acceptor agrees") {
    const key one = key::from_text(one_text), other = key::from_text(other_text);
    dialer d(identity_of(1), {.rank = 2}, one.prover(), fresh());
    acceptor a(identity_of(2), other.prover(), fresh());
    say(d, a);
    say(a, d);
    d.prove(0);
    say(d, a);
    CHECK(a.why() == handshake::refusal::key);
    say(a, d);
    CHECK(d.why() == handshake::refusal::key);

    dialer e(identity_of(1), {.rank = 2}, one.prover(), fresh());
    acceptor b(identity_of(2), one.prover(), fresh());
    say(e, b);
    say(b, e);
    e.prove(0);
    std::vector<std::byte> answer(handshake::answer_bytes);
    SUBCASE("no proof") {}
    SUBCASE("a proof with another key") {
        const auto made = other.prover()(byte_view(answer).first(16));
        std::copy(made.begin(), made.end(), answer.begin() + 16);
    }
    SUBCASE("the dialer's own proof, reflected") {
        std::copy(e.outgoing().begin() + 8, e.outgoing().end(), answer.begin() + 16);
    }
    e.arrived(answer);
    CHECK(e.why() == handshake::refusal::key);
}

TEST_CASE("a recorded proof is refused by both ends") {
    const key one = key::from_text(one_text);
    dialer d(identity_of(1), {.rank = 2}, one.prover(), fresh());
    acceptor a(identity_of(2), one.prover(), fresh());
    std::vector<std::byte> to_a = say(d, a), to_d = say(a, d);
    d.prove(0);
    const auto proof = say(d, a);
    a.accept(0);
    const auto answer = say(a, d);
    REQUIRE(d.now() == handshake::state::agreed);

    acceptor again(identity_of(2), one.prover(), fresh());
    again.arrived(byte_view(to_a).first(handshake::greeting_bytes));
    again.arrived(byte_view(to_a).subspan(handshake::greeting_bytes));
    again.arrived(proof);
    CHECK(again.why() == handshake::refusal::key);

    dialer anew(identity_of(1), {.rank = 2}, one.prover(), fresh());
    anew.arrived(byte_view(to_d).first(handshake::greeting_bytes));
    anew.arrived(byte_view(to_d).subspan(handshake::greeting_bytes));
    anew.prove(0);
    anew.arrived(answer);
    CHECK(anew.why() == handshake::refusal::key);
}

TEST_CASE("one end with a key and one without are told apart") {
    const key one = key::from_text(one_text), none = key();
    dialer d(identity_of(1), {.rank = 2}, one.prover(), fresh());
    acceptor a(identity_of(2), none.prover(), fresh());
    say(d, a);
    say(a, d);
    CHECK(a.why() == handshake::refusal::security);
    CHECK(d.why() == handshake::refusal::security);
}
