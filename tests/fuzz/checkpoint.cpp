// Checkpoints: arbitrary bytes, and arbitrary sections under a correct checksum, compared with a naive reader; the
// state that training keeps in them; and arbitrary arrays written and read back.
#include "support/allocation_budget.hpp"
#include "support/input.hpp"
#include "support/memory_file.hpp"
#include "support/require.hpp"
#include "support/target.hpp"

#include <rill/train/checkpoint.hpp>
#include <rill/train/sampler.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace rill;
using rill::fuzz::memory_file;
using train::checkpoint;

constexpr std::size_t header_bytes = 24, checksum_bytes = 8, section_bytes = 16;

struct section {
    std::uint32_t code;
    byte_view values;
};
using sections = std::map<std::string, section>;

template <class N>
N number_at(byte_view bytes, std::size_t at) {
    N value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

template <class N>
void put(buffer& bytes, std::size_t at, N value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::optional<sections> naive(byte_view image) {
    constexpr char magic[] = "rillckpt";
    if (image.size() < header_bytes + checksum_bytes || std::memcmp(image.data(), magic, 8) != 0) return std::nullopt;
    if (number_at<std::uint32_t>(image, 8) != 1 || number_at<std::uint64_t>(image, 16) != image.size())
        return std::nullopt;
    const byte_view body = image.first(image.size() - checksum_bytes);
    if (rill::checksum(body) != number_at<std::uint64_t>(image, body.size())) return std::nullopt;
    sections found;
    byte_view rest = body.subspan(header_bytes);
    for (std::uint32_t left = number_at<std::uint32_t>(image, 12); left > 0; --left) {
        if (rest.size() < section_bytes) return std::nullopt;
        const auto code = number_at<std::uint32_t>(rest, 0), name_size = number_at<std::uint32_t>(rest, 4);
        const auto size = number_at<std::uint64_t>(rest, 8);
        const std::size_t width = code % 256;
        rest = rest.subspan(section_bytes);
        if (width == 0 || size % width != 0) return std::nullopt;
        if (name_size > rest.size() || size > rest.size() - name_size) return std::nullopt;
        const std::string name(reinterpret_cast<const char*>(rest.data()), name_size);
        if (!found.emplace(name, section{code, rest.subspan(name_size, size)}).second) return std::nullopt;
        rest = rest.subspan(name_size + size);
    }
    return rest.empty() ? std::optional(found) : std::nullopt;
}

template <class T>
void require_same(const checkpoint& in, const std::string& name, const section& due) {
    std::vector<T> values(due.values.size() / sizeof(T));
    const bool fits = due.code == train::detail::storage_code<T>();
    try {
        in.read(name, values);
        RILL_FUZZ_REQUIRE(fits, "a section has one type");
        RILL_FUZZ_REQUIRE(values.empty() || std::memcmp(values.data(), due.values.data(), due.values.size()) == 0,
                          "the section's values");
    } catch (const train::data_error&) {
        RILL_FUZZ_REQUIRE(!fits, "a section that is there can be read");
    }
}

/// A restored object takes the whole saved state, or nothing of it.
void restore_sampler(const checkpoint& in) {
    train::sampler rows({.rows = 40, .batch = 3, .ranks = 2});
    const std::size_t step = rows.step();
    try {
        rows.restore(in, "");
        RILL_FUZZ_REQUIRE(rows.step() < rows.steps_per_epoch(), "a step of the epoch");
        for (const std::uint32_t row : rows.next()) RILL_FUZZ_REQUIRE(row < 40, "rows of the data");
    } catch (const train::data_error&) {
        RILL_FUZZ_REQUIRE(rows.step() == step && rows.epoch() == 0, "a failed restore changes nothing");
    }
}

void check_image(memory_file& file, byte_view image) {
    file.write(image);
    const std::string path = file.path();
    const auto due = naive(image);
    std::optional<checkpoint> in;
    try {
        // Memory for the image; and for each section, which takes at least 16 bytes of it, 56 bytes and its name, in a
        // vector that grows by doubling.
        const rill::fuzz::allocation_budget at_most(10 * image.size() + 2 * rill::fuzz::error_texts);
        in.emplace(checkpoint::load(path));
    } catch (const train::data_error&) {
    }
    RILL_FUZZ_REQUIRE(in.has_value() == due.has_value(), "both readers accept, or none");
    if (!in) return;
    RILL_FUZZ_REQUIRE(in->sections() == due->size(), "as many sections");
    for (const auto& [name, values] : *due) {
        RILL_FUZZ_REQUIRE(in->contains(name), "the same names");
        require_same<float>(*in, name, values);
        require_same<std::uint64_t>(*in, name, values);
        require_same<std::int8_t>(*in, name, values);
        require_same<std::byte>(*in, name, values);
    }
    restore_sampler(*in);
}

/// Writes the correct size and checksum, so that the fuzzer need not guess them.
buffer sealed(byte_view body) {
    buffer image(header_bytes);
    std::memcpy(image.data(), "rillckpt", 8);
    put(image, 8, std::uint32_t{1});
    put(image, 12, std::uint32_t{body.empty() ? 0U : std::to_integer<std::uint32_t>(body[0])});
    image.append(body.begin() + (body.empty() ? 0 : 1), body.end());
    put(image, 16, std::uint64_t{image.size() + checksum_bytes});
    const std::uint64_t sum = rill::checksum(image);
    image.resize(image.size() + checksum_bytes);
    put(image, image.size() - checksum_bytes, sum);
    return image;
}

/// A directory in memory, where there is one: writing a checkpoint waits until the disk has it.
std::string scratch_path() {
    const std::filesystem::path memory = "/dev/shm";
    const auto folder = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    return (folder / ("rill-fuzz-" + std::to_string(::getpid()))).string();
}

void check_round_trip(rill::fuzz::input in) {
    static const std::string path = scratch_path();
    checkpoint::writer out;
    std::map<std::string, std::vector<std::uint16_t>> written;
    std::vector<std::uint16_t> sampler_state;
    while (!in.done() && written.size() < 8) {
        const byte_view text = in.bytes(in.below(8));
        std::string name(reinterpret_cast<const char*>(text.data()), text.size());
        const byte_view given = in.bytes(2 * in.below(32));
        std::vector<std::uint16_t> values(given.size() / 2);
        if (!values.empty()) std::memcpy(values.data(), given.data(), 2 * values.size());
        if (!written.emplace(name, values).second) continue;
        out.add(name, values);
    }
    out.save(path);
    const checkpoint saved = checkpoint::load(path);
    std::filesystem::remove(path);
    RILL_FUZZ_REQUIRE(saved.sections() == written.size(), "as many sections as written");
    for (const auto& [name, values] : written) {
        std::vector<std::uint16_t> read(values.size());
        saved.read(name, read);
        RILL_FUZZ_REQUIRE(read == values, "the values as written");
    }
}

/// The input is the state of a sampler as its owner saves it, with the changes that the fuzzer makes.
void check_sampler(memory_file& file, rill::fuzz::input in) {
    const std::uint64_t state[5] = {
        in.flag() ? in.number<std::uint64_t>() : 40, in.flag() ? in.number<std::uint64_t>() : 6,
        in.flag() ? in.number<std::uint64_t>() : 0, in.number<std::uint64_t>(), in.number<std::uint64_t>()};
    buffer body{std::byte{1}};
    const auto append = [&](const void* from, std::size_t size) {
        const auto* bytes = static_cast<const std::byte*>(from);
        body.append(bytes, bytes + size);
    };
    const std::uint32_t head[2] = {train::detail::storage_code<std::uint64_t>(), 7};
    const std::uint64_t size = sizeof state;
    append(head, sizeof head);
    append(&size, sizeof size);
    append("sampler", 7);
    append(state, sizeof state);
    check_image(file, sealed(body));
}

}  // namespace

RILL_FUZZ_TARGET(checkpoint)(const std::uint8_t* data, std::size_t size) {
    static memory_file file;
    rill::fuzz::input in(data, size);
    switch (in.below(4)) {
        case 0: check_image(file, rill::fuzz::copy_of(in.rest())); break;
        case 1: check_image(file, sealed(in.rest())); break;
        case 2: check_sampler(file, in); break;
        default: check_round_trip(in); break;
    }
    return 0;
}
