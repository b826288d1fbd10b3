#include "../support/file_limit.hpp"
#include "../support/scratch.hpp"

#include <rill/train/checkpoint.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace rill;
using namespace rill::train;

namespace {

const std::vector<float> three_parameters{1.5F, -2.0F, 3.25F};

checkpoint::writer sample() {
    checkpoint::writer out;
    out.add("parameters", three_parameters);
    out.add("step", std::uint64_t{42});
    out.add("empty", std::span<const double>{});
    return out;
}

std::string error_of(const scratch_directory& here, const std::vector<std::byte>& image) {
    const std::string path = here.write("broken", image);
    const std::string message = message_of<data_error>([&] { checkpoint::load(path); });
    CHECK_MESSAGE(has(message, path), message);
    return message;
}

}  // namespace

TEST_CASE("checkpoint: restores what was saved") {
    const scratch_directory here;
    sample().save(here / "saved");
    const checkpoint in = checkpoint::load(here / "saved");
    CHECK(in.sections() == 3);
    CHECK(in.contains("step"));
    CHECK_FALSE(in.contains("steps"));
    std::vector<float> read(3);
    in.read("parameters", read);
    CHECK(read == three_parameters);
    CHECK(in.read<std::uint64_t>("step") == 42);
    in.read("empty", std::span<double>{});
}

TEST_CASE("checkpoint: a writer can be saved repeatedly, and cleared") {
    const scratch_directory here;
    checkpoint::writer out = sample();
    out.save(here / "first");
    out.add("more", std::array<std::int32_t, 2>{1, 2});
    out.save(here / "second");
    CHECK(checkpoint::load(here / "first").sections() == 3);
    CHECK(checkpoint::load(here / "second").sections() == 4);
    CHECK_THROWS_AS(out.add("step", 1), contract_violation);
    out.clear();
    out.add("step", 7);
    out.save(here / "first");
    CHECK(checkpoint::load(here / "first").read<int>("step") == 7);
    CHECK(here.entries() == 2);
}

TEST_CASE("checkpoint: the bytes of version 1") {
    const scratch_directory here;
    checkpoint::writer out;
    out.add("n", std::uint16_t{0x0102});
    out.save(here / "saved");
    const std::vector<std::byte> image = read_file(here / "saved");
    const unsigned char expected[] = {
        // clang-format off
        'r', 'i', 'l', 'l', 'c', 'k', 'p', 't',
        1, 0, 0, 0, 1, 0, 0, 0,         // version, sections
        51, 0, 0, 0, 0, 0, 0, 0,        // size of the file
        2, 'u', 0, 0, 1, 0, 0, 0,       // unsigned of two bytes; length of the name
        2, 0, 0, 0, 0, 0, 0, 0,         // bytes of values
        'n', 2, 1,
        0x1E, 0x53, 0x7A, 0xD7, 0x66, 0x8E, 0x3C, 0xFA
        // clang-format on
    };
    CHECK(image == std::vector(reinterpret_cast<const std::byte*>(std::begin(expected)),
                               reinterpret_cast<const std::byte*>(std::end(expected))));
}

TEST_CASE("checkpoint: a text has one type in the file, whether characters are signed or not") {
    CHECK(rill::train::detail::storage_code<char>() == rill::train::detail::storage_code<signed char>());
}

TEST_CASE("checkpoint: what is opened throws where it is read, as load does") {
    const scratch_directory here;
    sample().save(here / "saved");
    const checkpoint usable = checkpoint::open(here / "saved");
    CHECK(usable.sections() == 3);
    CHECK(usable.read<std::uint64_t>("step") == 42);
    for (const std::string& path : {here / "missing", here.write("damaged", std::vector<std::byte>(40))}) {
        const std::string message = message_of<data_error>([&] { checkpoint::load(path); });
        const checkpoint refused = checkpoint::open(path);
        CHECK(refused.path() == path);
        std::vector<float> parameters = three_parameters;
        CHECK(message_of<data_error>([&] { refused.read("parameters", parameters); }) == message);
        CHECK(parameters == three_parameters);
        CHECK(message_of<data_error>([&] { refused.contains("step"); }) == message);
        CHECK(message_of<data_error>([&] { refused.count("step"); }) == message);
        CHECK(message_of<data_error>([&] { refused.sections(); }) == message);
    }
}

TEST_CASE("checkpoint: a section of another type or size names both") {
    const scratch_directory here;
    sample().save(here / "saved");
    const checkpoint in = checkpoint::load(here / "saved");
    std::vector<float> four(4, 9.0F);
    const auto says = [&](auto call, const char* part) {
        const std::string message = message_of<data_error>(call);
        CHECK_MESSAGE(has(message, (here / "saved") + ": section " + part), message);
    };
    says([&] { in.read("parameters", four); }, "\"parameters\": expected 4 × float32, found 3 × float32");
    says([&] { in.read<std::int64_t>("step"); }, "\"step\": expected 1 × int64, found 1 × uint64");
    says([&] { in.read<double>("rate"); }, "\"rate\": expected 1 × float64, found no such section");
    CHECK(four == std::vector<float>(4, 9.0F));
}

TEST_CASE("checkpoint: a truncated or an overlong file is an error") {
    const scratch_directory here;
    sample().save(here / "saved");
    std::vector<std::byte> image = read_file(here / "saved");
    for (std::size_t size = 0; size < image.size(); ++size) {
        CAPTURE(size);
        CHECK_FALSE(error_of(here, {image.begin(), image.begin() + static_cast<long>(size)}).empty());
    }
    const std::string size = std::to_string(image.size()), longer = std::to_string(image.size() + 1);
    image.push_back(std::byte{0});
    CHECK(
        has(error_of(here, image), ("size: expected " + size + " bytes, as its header says, found " + longer).c_str()));
}

TEST_CASE("checkpoint: every flipped bit is an error") {
    const scratch_directory here;
    sample().save(here / "saved");
    std::vector<std::byte> image = read_file(here / "saved");
    for (std::size_t bit = 0; bit < 8 * image.size(); ++bit) {
        CAPTURE(bit);
        const std::byte mask{static_cast<unsigned char>(1U << bit % 8)};
        image[bit / 8] ^= mask;
        CHECK_FALSE(error_of(here, image).empty());
        image[bit / 8] ^= mask;
    }
    image[8] = std::byte{2};
    CHECK(has(error_of(here, image), "at byte 8: expected version 1, found 2"));
    image[0] = std::byte{'R'};
    CHECK(has(error_of(here, image), "at byte 0: expected \"rillckpt\""));
}

TEST_CASE("checkpoint: wrong sizes under a correct checksum are errors") {
    const scratch_directory here;
    sample().save(here / "saved");
    const std::vector<std::byte> image = read_file(here / "saved");
    const auto sealed = [&](std::size_t at, std::uint8_t to) {
        std::vector<std::byte> changed = image;
        changed[at] = std::byte{to};
        const std::uint64_t sum = rill::checksum(byte_view(changed).first(changed.size() - 8));
        std::memcpy(changed.data() + changed.size() - 8, &sum, 8);
        return changed;
    };
    CHECK(has(error_of(here, sealed(12, 4)), "expected a section, found the end of the sections"));
    CHECK(has(error_of(here, sealed(12, 2)), "expected the end of the sections, found more bytes"));
    CHECK(has(error_of(here, sealed(24, 0)), "at byte 24: expected an element type"));
    CHECK(has(error_of(here, sealed(24, 5)), "at byte 24: expected an element type"));
    CHECK(has(error_of(here, sealed(31, 0xFF)), "at byte 24: expected a section of at most"));
    CHECK(has(error_of(here, sealed(39, 0xFF)), "at byte 24: expected a section of at most"));
}

TEST_CASE("checkpoint: a failed save keeps the old file, and leaves no other") {
    const scratch_directory here;
    sample().save(here / "saved");
    checkpoint::writer large;
    large.add("parameters", std::vector<float>(100'000));

    std::string message;
    {
        const file_limit full(65'536);
        message = message_of<data_error>([&] { large.save(here / "saved"); });
    }

    CHECK_MESSAGE(has(message, (here / "saved") + ": cannot be written: File too large"), message);
    CHECK(checkpoint::load(here / "saved").read<std::uint64_t>("step") == 42);
    CHECK(here.entries() == 1);
    large.save(here / "saved");
    CHECK(checkpoint::load(here / "saved").sections() == 1);
    CHECK_THROWS_AS(large.save(here / "none/saved"), data_error);
    CHECK_THROWS_AS(checkpoint::load(here / "none"), data_error);
}
