#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/contract.hpp>
#include <rill/train/data_error.hpp>
#include <rill/train/file.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

static_assert(std::endian::native == std::endian::little,
              "rill::checkpoint: files are little-endian, this host is not");

/// What a section can hold: integers, floating-point numbers, bytes.
template <class T>
concept Storable = (std::is_arithmetic_v<T> && !std::same_as<T, bool>) || std::same_as<T, std::byte>;

namespace detail {

/// How a section's elements are named in the file, and in messages.
template <Storable T>
constexpr std::uint32_t storage_code() {
    constexpr bool is_signed = std::is_signed_v<T> || std::same_as<T, char>;  // also where char has no sign
    const char kind = std::is_floating_point_v<T> ? 'f' : is_signed ? 'i' : 'u';
    return static_cast<std::uint32_t>(kind) << 8 | static_cast<std::uint32_t>(sizeof(T));
}
inline std::string storage_name(std::uint32_t code, std::uint64_t bytes) {
    const char* kind = code >> 8 == 'f' ? "float" : code >> 8 == 'i' ? "int" : "uint";
    const std::uint32_t size = code & 0xFF;
    return std::to_string(bytes / size) + " × " + kind + std::to_string(size * 8);
}

}  // namespace detail

/// A file of named arrays from which training resumes bit for bit.
///
/// Layout, version 1, little-endian: `"rillckpt"`, version (4 bytes), number of sections (4), size of the file (8); per
/// section: element code (4), length of its name (4), bytes of its values (8), name, values; last, a checksum of all
/// bytes before it (8). `load` and `open` validate everything.
class checkpoint {
  public:
    static constexpr std::uint32_t version = 1;

    /// Gathers copies of what is to be saved.
    class writer {
      public:
        writer() { clear(); }

        /// Forgets all sections and keeps the memory.
        void clear() {
            image_.clear();
            names_.clear();
            append(std::as_bytes(std::span(magic, magic_size)));
            image_.resize(header_size);
        }

        template <class Range>
            requires requires(const Range& values) { std::span(values); }
        void add(std::string_view name, const Range& values) {
            const std::span all(values);
            add_bytes(name, detail::storage_code<std::remove_cvref_t<decltype(all[0])>>(), std::as_bytes(all));
        }
        template <Storable T>
        void add(std::string_view name, const T& value) {
            add(name, std::span(&value, 1));
        }

        /// The bytes of the file.
        buffer bytes() const {
            buffer sealed = image_;
            put(sealed, 8, version);
            put(sealed, 12, static_cast<std::uint32_t>(names_.size()));
            put(sealed, 16, std::uint64_t{image_.size() + checksum_size});
            sealed.resize(image_.size() + checksum_size);
            put(sealed, image_.size(), checksum(byte_view(sealed).first(image_.size())));
            return sealed;
        }
        /// Writes a file in one step and durably. Throws `data_error`; what was at `path` is then untouched.
        void save(const std::string& path) const { replace_file(path, bytes()); }

      private:
        void add_bytes(std::string_view name, std::uint32_t code, byte_view values) {
            RILL_EXPECTS(std::find(names_.begin(), names_.end(), name) == names_.end(), "checkpoint: a new name");
            names_.emplace_back(name);
            append_value(code);
            append_value(static_cast<std::uint32_t>(name.size()));
            append_value(std::uint64_t{values.size()});
            append(std::as_bytes(std::span(name)));
            append(values);
        }
        void append(byte_view bytes) {
            const std::size_t at = image_.size();
            image_.resize(at + bytes.size());
            if (!bytes.empty()) std::memcpy(image_.data() + at, bytes.data(), bytes.size());
        }
        template <class T>
        void append_value(T value) {
            append(std::as_bytes(std::span(&value, 1)));
        }
        template <class T>
        static void put(buffer& image, std::size_t at, T value) {
            std::memcpy(image.data() + at, &value, sizeof value);
        }

        buffer image_;
        std::vector<std::string> names_;
    };

    checkpoint(checkpoint&&) = default;  // sections are views of the image: no copies
    checkpoint& operator=(checkpoint&&) = default;

    /// Reads a file. Throws `data_error` where it is missing or damaged.
    static checkpoint load(const std::string& path) { return checkpoint(path, read_file(path)); }

    /// Reads what `writer::bytes` has made. `name` stands for the path in errors. Throws `data_error` where it is
    /// damaged.
    static checkpoint of(std::string name, byte_view bytes) {
        return checkpoint(std::move(name), std::vector<std::byte>(bytes.begin(), bytes.end()));
    }

    /// As `load`, but what `load` would throw is thrown by whoever reads the result. For a `restore` that is
    /// collective: a rank whose file is missing or damaged takes part, so that all ranks throw at once, and none waits
    /// for it.
    static checkpoint open(const std::string& path) {
        try {
            return load(path);
        } catch (const std::exception&) {
            return checkpoint(path, std::current_exception());
        }
    }

    const std::string& path() const { return path_; }
    std::size_t sections() const {
        require_readable();
        return sections_.size();
    }
    /// The names of all sections, in the order in which they were written.
    std::vector<std::string> names() const {
        require_readable();
        std::vector<std::string> all;
        all.reserve(sections_.size());
        for (const section& one : sections_) all.emplace_back(one.name);
        return all;
    }
    bool contains(std::string_view name) const { return find(name) != nullptr; }
    /// Throws `data_error` if the name of a section begins with `prefix` and is none of `names`: who restores what
    /// these hold would lose what is in the other.
    void require_no_other(std::string_view prefix, std::span<const std::string> names) const {
        require_readable();
        for (const section& one : sections_)
            if (std::string_view(one.name).starts_with(prefix) &&
                std::find(names.begin(), names.end(), one.name) == names.end())
                throw data_error(path_, "section \"" + one.name + "\"", "nothing of this name",
                                 "state that would be lost");
    }
    /// How many values a section has; 0 if there is no such section.
    std::size_t count(std::string_view name) const {
        const section* const found = find(name);
        return found == nullptr ? 0 : found->values.size() / (found->code & 0xFF);
    }

    /// Fills `values`, a contiguous range. Throws `data_error`, and changes nothing, unless the section has this type
    /// and size.
    template <class Range>
        requires requires(Range& values) { std::as_writable_bytes(std::span(values)); }
    void read(std::string_view name, Range&& values) const {
        const std::span all(values);
        const byte_view stored =
            require(name, detail::storage_code<std::remove_cvref_t<decltype(all[0])>>(), all.size_bytes());
        if (!stored.empty()) std::memcpy(all.data(), stored.data(), stored.size());
    }
    template <Storable T>
    T read(std::string_view name) const {
        T value{};
        read(name, std::span(&value, 1));
        return value;
    }

  private:
    static constexpr char magic[] = "rillckpt";
    static constexpr std::size_t magic_size = 8;
    static constexpr std::size_t header_size = 24;
    static constexpr std::size_t checksum_size = 8;

    struct section {
        std::string name;
        std::uint32_t code = 0;
        byte_view values{};
    };

    checkpoint(std::string path, std::vector<std::byte> image) : path_(std::move(path)), image_(std::move(image)) {
        check_header();
        std::size_t at = header_size;
        for (std::uint32_t left = get<std::uint32_t>(12); left > 0; --left) at = take_section(at);
        if (at != end()) fail(at, "the end of the sections", "more bytes");
    }

    checkpoint(std::string path, std::exception_ptr refused) : path_(std::move(path)), refused_(std::move(refused)) {}

    std::size_t end() const { return image_.size() - checksum_size; }

    void check_header() const {
        if (image_.size() < header_size + checksum_size)
            fail(image_.size(), "a checkpoint's header", "the end of the file");
        if (std::memcmp(image_.data(), magic, magic_size) != 0) fail(0, "\"rillckpt\"", "other bytes");
        const auto found = get<std::uint32_t>(8);
        if (found != version) fail(8, "version " + std::to_string(version), std::to_string(found));
        const auto size = get<std::uint64_t>(16);
        if (size != image_.size())
            throw data_error(path_, "size", std::to_string(size) + " bytes, as its header says",
                             std::to_string(image_.size()));
        if (get<std::uint64_t>(end()) != checksum(byte_view(image_).first(end())))
            fail(end(), "the checksum of the contents", "another: the file is damaged");
    }

    // The checksum was right, so only a faulty writer can have made a wrong size. It is still checked before use.
    std::size_t take_section(std::size_t at) {
        constexpr std::size_t fixed = 16;
        if (end() - at < fixed) fail(at, "a section", "the end of the sections");
        const auto code = get<std::uint32_t>(at);
        const std::size_t name_size = get<std::uint32_t>(at + 4), size = get<std::uint64_t>(at + 8);
        const std::size_t width = code & 0xFF, room = end() - at - fixed;
        if (width == 0 || size % width != 0) fail(at, "an element type that divides the section's size", "another");
        if (name_size > room || size > room - name_size)
            fail(at, "a section of at most " + std::to_string(room) + " bytes", "a longer one");
        const std::size_t name_at = at + fixed, values_at = name_at + name_size;
        std::string name(reinterpret_cast<const char*>(image_.data()) + name_at, name_size);
        if (contains(name)) fail(at, "each section once", "\"" + name + "\" again");
        sections_.push_back({std::move(name), code, byte_view(image_).subspan(values_at, size)});
        return values_at + size;
    }

    void require_readable() const {
        if (refused_ != nullptr) std::rethrow_exception(refused_);
    }
    const section* find(std::string_view name) const {
        require_readable();
        for (const section& one : sections_)
            if (one.name == name) return &one;
        return nullptr;
    }

    byte_view require(std::string_view name, std::uint32_t code, std::size_t bytes) const {
        const section* found = find(name);
        const std::string where = "section \"" + std::string(name) + "\"";
        if (found == nullptr) throw data_error(path_, where, detail::storage_name(code, bytes), "no such section");
        if (found->code != code || found->values.size() != bytes)
            throw data_error(path_, where, detail::storage_name(code, bytes),
                             detail::storage_name(found->code, found->values.size()));
        return found->values;
    }

    template <class T>
    T get(std::size_t at) const {
        T value{};
        std::memcpy(&value, image_.data() + at, sizeof value);
        return value;
    }
    [[noreturn]] void fail(std::size_t at, const std::string& expected, const std::string& found) const {
        throw data_error(path_, std::uint64_t{at}, expected, found);
    }

    std::string path_;
    std::exception_ptr refused_{};  ///< why there is nothing to read
    std::vector<std::byte> image_;
    std::vector<section> sections_;
};

/// An object whose state can be saved in a checkpoint and restored. The names of its sections begin with `prefix`.
/// `save` and `restore` are templates over writer and reader, so that types of lower layers can have them too. A
/// `restore` that throws leaves the object as it was.
template <class S>
concept Persistent =
    requires(const S& constant, S& object, checkpoint::writer& out, const checkpoint& in, std::string_view prefix) {
        { constant.save(out, prefix) };
        { object.restore(in, prefix) };
    };

}}}  // namespace rill::RILL_ABI::train
