// rill 0.1.0: <rill/train.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_TRAIN_HPP
#define RILL_SINGLE_TRAIN_HPP

#include <rill/rill.hpp>

#if !defined(RILL_SINGLE_HEADER)
#error "rill: rill/train.hpp of single_include/ needs rill.hpp of that folder"
#endif

#if RILL_VERSION_MAJOR != 0 || RILL_VERSION_MINOR != 1 || RILL_VERSION_PATCH != 0
#error "rill: rill/train.hpp is of version 0.1.0, rill.hpp of another"
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// ===== rill/train/dataset.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Labelled samples: a row-major matrix of features and one class per row. The ranks of a process may share it.
struct dataset {
    std::size_t rows = 0;
    std::size_t columns = 0;
    int classes = 0;
    aligned_vector<float> features;    ///< rows × columns
    std::vector<std::int32_t> labels;  ///< rows, each in `[0, classes)`

    std::span<const float> row(std::size_t i) const { return std::span(features).subspan(i * columns, columns); }
};

/// The rows that belong to `rank` of `size`: consecutive ranges of nearly equal size. Copies nothing.
inline segment shard(const dataset& data, rank_t rank, int size) {
    RILL_EXPECTS(size > 0 && rank >= 0 && rank < size, "shard: a rank of the group");
    return split(data.rows, static_cast<std::size_t>(size), static_cast<std::size_t>(rank));
}

/// Some rows of a dataset, by number and in this order, and their weights. It refers to data that must outlive it.
template <class Data>
struct batch_of {
    const Data& data;
    std::span<const std::uint32_t> rows;
    /// One weight for each row, of any sign; if empty, each row has 1 / rows. Loss and gradient are the weighted sums
    /// of those of the rows. With the coefficients of a gradient code as weights the gradient is a worker's coded one.
    std::span<const double> weights{};

    /// The weight of the i-th of `rows`.
    template <std::floating_point T>
    T weight(std::size_t i) const {
        return weights.empty() ? T{1} / static_cast<T>(rows.size()) : static_cast<T>(weights[i]);
    }
};

/// Some rows of a `dataset`.
using batch = batch_of<dataset>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/accuracy.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A model that puts samples into classes, also one that says which class a label stands for.
template <class M>
concept PredictsClasses = requires(M& model, std::span<const typename M::scalar> parameters,
                                   const typename M::batch& samples, std::span<std::int32_t> classes) {
    { model.predict(parameters, samples, classes) };
};

/// How many of `rows` the model puts into their class. `data`: the dataset of the model's batches. Each rank can count
/// on its own shard; the sum over the ranks is then the count of all.
template <PredictsClasses Model, class Data>
std::size_t count_correct(Model& model, std::span<const typename Model::scalar> parameters, const Data& data,
                          segment rows) {
    RILL_EXPECTS(rows.begin <= rows.end && rows.end <= data.rows, "count_correct: rows of the dataset");
    constexpr std::size_t at_once = 128;
    std::vector<std::uint32_t> numbers(std::min(at_once, rows.size()));
    std::vector<std::int32_t> classes(numbers.size());
    std::size_t correct = 0;
    for (std::size_t first = rows.begin; first < rows.end; first += at_once) {
        const std::size_t count = std::min(at_once, rows.end - first);
        std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(first));
        model.predict(parameters, {data, std::span(numbers).first(count)}, std::span(classes).first(count));
        for (std::size_t i = 0; i < count; ++i) {
            if constexpr (requires { Model::class_of(data.labels[0]); })
                correct += classes[i] == Model::class_of(data.labels[first + i]) ? 1U : 0U;
            else
                correct += classes[i] == data.labels[first + i] ? 1U : 0U;
        }
    }
    return correct;
}

/// The share of all rows that the model puts into their class.
template <PredictsClasses Model, class Data>
double accuracy(Model& model, std::span<const typename Model::scalar> parameters, const Data& data) {
    RILL_EXPECTS(data.rows > 0, "accuracy: a dataset that is not empty");
    return static_cast<double>(count_correct(model, parameters, data, {0, data.rows})) / static_cast<double>(data.rows);
}

}}}  // namespace rill::RILL_ABI::train

#ifndef RILL_SINGLE_TRAIN_DATA_ERROR_HPP
#define RILL_SINGLE_TRAIN_DATA_ERROR_HPP

// ===== rill/train/data_error.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A file that cannot be used; the message names the file, what was expected, what was found, and where.
class data_error : public std::runtime_error {
  public:
    data_error(const std::string& file, const std::string& problem)
        : std::runtime_error("rill: " + file + ": " + problem), file_(file) {}
    data_error(const std::string& file, const std::string& where, const std::string& expected, const std::string& found)
        : data_error(file, where + ": expected " + expected + ", found " + found) {}
    data_error(const std::string& file, std::uint64_t offset, const std::string& expected, const std::string& found)
        : data_error(file, "at byte " + std::to_string(offset), expected, found) {}

    const std::string& file() const noexcept { return file_; }

  private:
    std::string file_;
};

}}}  // namespace rill::RILL_ABI::train

#endif  // RILL_SINGLE_TRAIN_DATA_ERROR_HPP

#ifndef RILL_SINGLE_TRAIN_FILE_HPP
#define RILL_SINGLE_TRAIN_FILE_HPP

// ===== rill/train/file.hpp

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

[[noreturn]] inline void file_failed(const std::string& path, const char* what) {
    throw data_error(path, std::string(what) + ": " + std::generic_category().message(errno));
}

/// An open file; closes itself.
class descriptor {
  public:
    descriptor(const std::string& path, int flags) : number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
    descriptor(descriptor&& from) noexcept : number_(std::exchange(from.number_, -1)) {}
    descriptor& operator=(descriptor&&) = delete;
    ~descriptor() { close(); }

    bool is_open() const { return number_ >= 0; }
    int get() const { return number_; }
    bool close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

  private:
    int number_;
};

/// How many bytes were written: all, or fewer if it failed, with the reason in `errno`.
inline std::size_t write_all(int file, byte_view bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = ::write(file, bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) break;
        done += static_cast<std::size_t>(count);
    }
    return done;
}

/// A new file whose name begins with `path`, and that name; no other process, of whichever host, writes it. Not open if
/// it failed, with the reason in `errno`.
inline std::pair<std::string, descriptor> make_partial(const std::string& path) {
    static std::atomic<unsigned> count{0};
    while (true) {
        std::string name =
            path + "." + std::to_string(::getpid()) + "-" + std::to_string(count.fetch_add(1)) + ".partial";
        descriptor made(name, O_WRONLY | O_CREAT | O_EXCL);
        if (made.is_open() || errno != EEXIST) return {std::move(name), std::move(made)};
    }
}

inline bool write_durably(descriptor& file, byte_view bytes) {
    return write_all(file.get(), bytes) == bytes.size() && ::fsync(file.get()) == 0 && file.close();
}

inline void sync_directory_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const descriptor opened(directory, O_RDONLY | O_DIRECTORY);
    if (opened.is_open()) ::fsync(opened.get());  // not all file systems can; the file is replaced anyway
}

}  // namespace detail

/// All bytes of a file. Throws `data_error`.
inline std::vector<std::byte> read_file(const std::string& path) {
    const detail::descriptor file(path, O_RDONLY);
    struct stat status {};
    if (!file.is_open() || ::fstat(file.get(), &status) != 0) detail::file_failed(path, "cannot be opened");
    std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t count = ::read(file.get(), bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) detail::file_failed(path, "cannot be read");
        if (count == 0) break;
        done += static_cast<std::size_t>(count);
    }
    bytes.resize(done);
    return bytes;
}

/// Replaces a file, or makes it, in one step: whoever opens `path`, even after a crash, finds the old contents or the
/// new. Throws `data_error`; the old file is then untouched and no temporary file is left.
inline void replace_file(const std::string& path, byte_view bytes) {
    auto [partial, file] = detail::make_partial(path);
    if (!file.is_open()) detail::file_failed(path, "cannot be written");
    if (!detail::write_durably(file, bytes) || std::rename(partial.c_str(), path.c_str()) != 0) {
        const int reason = errno;
        ::unlink(partial.c_str());
        errno = reason;
        detail::file_failed(path, "cannot be written");
    }
    detail::sync_directory_of(path);
}

}}}  // namespace rill::RILL_ABI::train

#endif  // RILL_SINGLE_TRAIN_FILE_HPP

#ifndef RILL_SINGLE_TRAIN_CHECKPOINT_HPP
#define RILL_SINGLE_TRAIN_CHECKPOINT_HPP

// ===== rill/train/checkpoint.hpp

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

#endif  // RILL_SINGLE_TRAIN_CHECKPOINT_HPP

#ifndef RILL_SINGLE_TRAIN_OPTIMIZER_HPP
#define RILL_SINGLE_TRAIN_OPTIMIZER_HPP

// ===== rill/train/optimizer.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A policy that binds to a number of parameters and then moves them along a gradient, in place.
///
/// `is_linear`: without weight decay, a step along `c·gradient` at rate 1 is one along `gradient` at rate c. Strategies
/// that send steps instead of gradients need it.
/// Laws (`testing::for_each_optimizer_law`): the same calls give the same bits; a copy goes on as its original; at
/// rate 0 nothing moves; an object that restores saved state goes on bit for bit, and a `restore` that throws changes
/// nothing; a `StreamOptimizer` moves along a stream as along the dense gradient, up to rounding.
template <class O, class T = float>
concept Optimizer = Regular<O> && std::floating_point<T> &&
                    requires(const O& policy, decltype(std::declval<const O&>().template bind<T>(std::size_t{}))& bound,
                             std::span<T> parameters, std::span<const T> gradient, double rate) {
                        { policy.template bind<T>(std::size_t{}) } -> std::copyable;
                        { policy.template bind<T>(std::size_t{}) } -> Persistent;
                        { bound.step(parameters, gradient, rate) };
                        requires std::same_as<decltype(O::is_linear), const bool>;
                    };

/// A bound optimizer that also takes a gradient as a `stream_view`, without a value for each parameter.
template <class Bound, class T, class View>
concept StreamOptimizer = requires(Bound& bound, std::span<T> parameters, const View& gradient, double rate) {
    bound.step(parameters, gradient, rate);
};

}}}  // namespace rill::RILL_ABI::train

#endif  // RILL_SINGLE_TRAIN_OPTIMIZER_HPP

// ===== rill/train/adam.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

template <std::floating_point T>
class bound_adam;

/// Adam: `m = beta1·m + (1 - beta1)·g; v = beta2·v + (1 - beta2)·g²; w -= rate·m̂ / (√v̂ + epsilon)`, where m̂ and v̂
/// are m and v divided by `1 - beta^t` in step t.
///
/// A gradient whose square overflows stops its parameter for good; `clip_value` before it keeps that from happening.
/// Models `Optimizer`. AdamW is `decoupled_decay{adam{}, decay}`. Memory: two values for each parameter. Source: Kingma
/// and Ba, Adam, ICLR 2015, Algorithm 1.
struct adam {
    static constexpr const char* name = "adam";
    static constexpr bool is_linear = false;

    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;

    template <std::floating_point T = float>
    bound_adam<T> bind(std::size_t dimension) const {
        rill::detail::require_option(beta1 >= 0 && static_cast<T>(beta1) < 1, "train::adam: beta1", beta1,
                                     "in [0, 1) in the type of the parameters");
        rill::detail::require_option(beta2 >= 0 && static_cast<T>(beta2) < 1, "train::adam: beta2", beta2,
                                     "in [0, 1) in the type of the parameters");
        rill::detail::require_option(static_cast<T>(epsilon) > 0 && std::isfinite(static_cast<T>(epsilon)),
                                     "train::adam: epsilon", epsilon,
                                     "above 0 and finite in the type of the parameters");
        return bound_adam<T>(*this, dimension);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("beta1", beta1);
        visit("beta2", beta2);
        visit("epsilon", epsilon);
    }
    friend constexpr bool operator==(const adam&, const adam&) = default;
};

/// One worker's `adam`: the policy and the moments of each parameter.
template <std::floating_point T>
class bound_adam {
  public:
    bound_adam(const adam& policy, std::size_t dimension)
        : policy_(policy), dimension_(dimension), moments_(2 * dimension, T{0}) {}

    const adam& policy() const { return policy_; }

    /// Coordinate-wise and in place; allocates nothing.
    void step(std::span<T> parameters, std::span<const T> gradient, double rate) {
        RILL_EXPECTS(parameters.size() == dimension_ && gradient.size() == dimension_, "adam: bound to this dimension");
        powers_[0] *= policy_.beta1;
        powers_[1] *= policy_.beta2;
        move(parameters.data(), gradient.data(), moments_.data(), moments_.data() + dimension_,
             static_cast<T>(rate / (1 - powers_[0])), static_cast<T>(1 / (1 - powers_[1])));
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "powers", powers_);
        out.add(std::string(prefix) + "moments", moments_);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        auto powers = powers_;
        in.read(std::string(prefix) + "powers", powers);
        in.read(std::string(prefix) + "moments", moments_);
        powers_ = powers;
    }

  private:
    /// No two of the arrays overlap.
    void move(T* __restrict parameters, const T* __restrict gradient, T* __restrict mean, T* __restrict square, T rate,
              T unbias) const {
        const T beta1 = static_cast<T>(policy_.beta1), beta2 = static_cast<T>(policy_.beta2),
                epsilon = static_cast<T>(policy_.epsilon);
        for (std::size_t i = 0; i < dimension_; ++i) {
            const T slope = gradient[i];
            mean[i] = beta1 * mean[i] + (1 - beta1) * slope;
            square[i] = beta2 * square[i] + (1 - beta2) * (slope * slope);
            parameters[i] -= rate * mean[i] / (std::sqrt(unbias * square[i]) + epsilon);
        }
    }

    adam policy_;
    std::size_t dimension_;
    std::array<double, 2> powers_{1, 1};  ///< beta1 and beta2 to the number of steps
    aligned_vector<T> moments_;           ///< the means of the gradients, then those of their squares
};

static_assert(Optimizer<adam>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/detail/same_place.hpp

namespace rill { inline namespace RILL_ABI { namespace train::detail {

/// Throws unless what a trainer's section `name` begins with fits this trainer: rank, number of ranks, seed.
inline void require_same_place(const std::string& path, const std::string& name, std::span<const std::uint64_t> saved,
                               std::span<const std::uint64_t> own) {
    constexpr const char* what[] = {"rank", "number of ranks", "seed of the group"};
    for (std::size_t i = 0; i < 3; ++i)
        if (saved[i] != own[i])
            throw data_error(path, "section \"" + name + "\", " + what[i], std::to_string(own[i]),
                             std::to_string(saved[i]));
}

/// Throws if a file's section names another strategy or plan than `own`, whose state may have the same sections and
/// means something else. An empty name, or a file without one, fits any.
template <class Reader>
void require_same_plan(const Reader& in, const std::string& section, std::string_view own) {
    std::string saved(in.count(section), ' ');
    if (own.empty() || saved.empty()) return;
    in.read(section, saved);
    if (saved != own) throw data_error(in.path(), "section \"" + section + "\"", std::string(own), saved);
}

/// What a rank has read of its file.
struct file_read {
    std::string path;
    rank_t rank = 0;
    int ranks = 1;
    std::exception_ptr refused;  ///< why it does not fit; null if it does
    std::uint64_t position = 0;  ///< where it goes on
    std::uint64_t sum = 0;       ///< of what must be alike on all ranks
};

/// Why a file is refused, without the library's name; empty if it is not.
inline std::string reason_of(const std::exception_ptr& refused) {
    if (refused == nullptr) return {};
    try {
        std::rethrow_exception(refused);
    } catch (const std::exception& thrown) {
        const std::string_view text = thrown.what(), name = "rill: ";
        return std::string(text.starts_with(name) ? text.substr(name.size()) : text);
    }
}

/// Collective: the text of rank `of`, which has `length` characters, on all ranks.
template <class AddUp>
std::string text_on(std::size_t of, std::size_t length, const file_read& own, AddUp&& add_up) {
    std::vector<std::int64_t> letters(length + 1);  // never empty: ranks that exchange nothing wait for nobody
    if (static_cast<std::size_t>(own.rank) == of) std::ranges::copy(reason_of(own.refused), letters.begin());
    add_up(std::span(letters));
    return {letters.begin(), letters.end() - 1};
}

/// Tells all ranks what this one has read, and throws on all of them unless all can go on from there. `position`: what
/// `file_read::position` counts; `add_up(table)`: the sum over all ranks, entry by entry.
///
/// Where a rank refuses its file, all throw its reason. A rank that leaves with what this throws may end the run while
/// others still exchange; so every rank knows the verdict before one throws.
template <class AddUp>
void require_common_files(const file_read& own, const std::string& position, AddUp&& add_up) {
    const auto size = static_cast<std::size_t>(own.ranks), rank = static_cast<std::size_t>(own.rank);
    std::vector<std::int64_t> told(3 * size);
    // A length counts one more than the reason has characters; 0: the file is not refused.
    const std::span lengths = std::span(told).first(size), positions = std::span(told).subspan(size, size),
                    sums = std::span(told).last(size);
    if (own.refused != nullptr) lengths[rank] = 1 + static_cast<std::int64_t>(reason_of(own.refused).size());
    positions[rank] = static_cast<std::int64_t>(own.position);
    sums[rank] = static_cast<std::int64_t>(own.sum);
    add_up(std::span(told));

    const auto first_other = [](std::span<const std::int64_t> of, std::int64_t than) {
        return static_cast<std::size_t>(std::ranges::find_if(of, [&](std::int64_t each) { return each != than; }) -
                                        of.begin());
    };
    const std::size_t refusing = first_other(lengths, 0), elsewhere = first_other(positions, positions[0]),
                      different = first_other(sums, sums[0]);
    if (std::min({refusing, elsewhere, different}) == size) return;

    std::string reason;
    try {
        const std::size_t length = refusing < size ? static_cast<std::size_t>(lengths[refusing]) - 1 : 0;
        reason = text_on(refusing, length, own, add_up);
    } catch (const error& ended) {  // by a rank that has thrown already
        reason = ended.what();
    }
    if (own.refused != nullptr) std::rethrow_exception(own.refused);
    const auto beside = [](std::size_t other) { return "compared with the file of rank " + std::to_string(other); };
    if (refusing < size)
        throw data_error(own.path, beside(refusing), "one that fits that rank", "another (" + reason + ")");
    if (elsewhere < size)
        throw data_error(own.path, beside(elsewhere), position + " " + std::to_string(positions[0]) + " as on rank 0",
                         std::to_string(positions[elsewhere]));
    throw data_error(own.path, beside(different), "the parameters that rank 0 has, after as many operations", "others");
}

}}}  // namespace rill::RILL_ABI::train::detail

// ===== rill/train/detail/shuffled_rows.hpp

namespace rill { inline namespace RILL_ABI { namespace train::detail {

/// Fills `order` with an epoch's permutation of its rows, a pure function of (key, epoch).
inline void shuffle_rows(std::vector<std::uint32_t>& order, random_key key, std::uint64_t epoch) {
    std::iota(order.begin(), order.end(), 0U);
    random_sequence random(key.derive(epoch));
    for (std::size_t left = order.size(); left > 1; --left)
        std::swap(order[left - 1], order[static_cast<std::size_t>(random.below(left))]);
}

}}}  // namespace rill::RILL_ABI::train::detail

// ===== rill/train/sampler.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Which rows a rank works on in each step.
///
/// Every epoch has its own permutation of the rows, a pure function of (key, epoch) and so the same on all ranks.
/// Each step takes the next `ranks * batch` entries as the global batch; rank r gets the r-th `batch` of them.
/// The rows that do not fill a last global batch are left out of that epoch. Memory: 4 bytes per row. Stepping does not
/// allocate.
class sampler {
  public:
    struct options {
        std::size_t rows = 0;
        std::size_t batch = 32;  ///< rows per rank and step
        rank_t rank = 0;
        int ranks = 1;
        random_key key{};
    };

    explicit sampler(const options& chosen) : options_(chosen) {
        RILL_EXPECTS(chosen.ranks > 0 && chosen.rank >= 0 && chosen.rank < chosen.ranks, "sampler: a rank of a group");
        const std::size_t most = chosen.rows / static_cast<std::size_t>(chosen.ranks);
        RILL_EXPECTS(most > 0, "sampler: fewer rows than ranks, so no batch has a row of each rank");
        if (chosen.batch == 0 || chosen.batch > most)
            rill::detail::refuse_option(
                "train::sampler: batch", rill::detail::spelled_value(chosen.batch),
                text_of({"from 1 to ", most, " (rows: ", chosen.rows, ", ranks: ", chosen.ranks, ")"}), no_rank);
        RILL_EXPECTS(chosen.rows <= 0xFFFFFFFFU, "sampler: rows that 32 bits can number");
        order_.resize(chosen.rows);
        shuffle();
    }

    std::size_t steps_per_epoch() const { return options_.rows / global_batch(); }
    /// The epoch of the next batch.
    std::uint64_t epoch() const { return epoch_; }
    /// The step of the next batch within its epoch.
    std::size_t step() const { return step_; }

    /// The rows of this rank's next batch; valid until the next call.
    std::span<const std::uint32_t> next() {
        if (is_epoch_over_) shuffle();
        const std::size_t first = step_ * global_batch() + static_cast<std::size_t>(options_.rank) * options_.batch;
        if (++step_ == steps_per_epoch()) {
            step_ = 0;
            ++epoch_;
            is_epoch_over_ = true;
        }
        return std::span(order_).subspan(first, options_.batch);
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "sampler", state());
    }
    /// Throws `data_error`, and changes nothing, if rows, global batch or key differ from those of this sampler.
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        const std::string name = std::string(prefix) + "sampler";
        saved_state saved{};
        in.read(name, saved);
        const saved_state own = state();
        constexpr const char* what[] = {"rows", "rows per global batch", "the random key"};
        for (std::size_t i = 0; i < 3; ++i)
            if (saved[i] != own[i])
                throw data_error(in.path(), "section \"" + name + "\", " + what[i], std::to_string(own[i]),
                                 std::to_string(saved[i]));
        if (saved[4] >= steps_per_epoch())
            throw data_error(in.path(), "section \"" + name + "\", step",
                             "less than " + std::to_string(steps_per_epoch()), std::to_string(saved[4]));
        epoch_ = saved[3];
        step_ = static_cast<std::size_t>(saved[4]);
        shuffle();
    }

  private:
    using saved_state = std::array<std::uint64_t, 5>;
    saved_state state() const { return {options_.rows, global_batch(), options_.key.value, epoch_, step_}; }

    std::size_t global_batch() const { return options_.batch * static_cast<std::size_t>(options_.ranks); }

    void shuffle() {
        detail::shuffle_rows(order_, options_.key, epoch_);
        is_epoch_over_ = false;
    }

    options options_;
    std::vector<std::uint32_t> order_;
    std::uint64_t epoch_ = 0;
    std::size_t step_ = 0;
    bool is_epoch_over_ = false;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/minibatches.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Gives a rank the batch of each step; its position can be saved.
template <class B, class Batch>
concept BatchSource = std::copyable<B> && Persistent<B> && requires(B& source) {
    { source.next() } -> std::convertible_to<Batch>;
};

/// The batches of a `dataset` or `sparse_dataset` in the order of a `sampler`. Models `BatchSource`. The dataset must
/// outlive it.
template <class Data>
class minibatches_of {
  public:
    /// If `order.rows` is 0, all rows of the dataset are used.
    minibatches_of(const Data& data, sampler::options order) : data_(&data), sampler_(complete(order, data)) {}

    const train::sampler& order() const { return sampler_; }

    /// Valid until the next call.
    batch_of<Data> next() { return {*data_, sampler_.next()}; }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        sampler_.save(out, prefix);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        sampler_.restore(in, prefix);
    }

  private:
    static sampler::options complete(sampler::options order, const Data& data) {
        if (order.rows == 0) order.rows = data.rows;
        RILL_EXPECTS(order.rows <= data.rows, "minibatches: rows of the dataset");
        return order;
    }

    const Data* data_;
    train::sampler sampler_;
};

/// The batches of a `dataset`.
using minibatches = minibatches_of<dataset>;

static_assert(BatchSource<minibatches, batch>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/replica_plan.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A system of training in which no rank waits for all others: a value that binds to one rank's end of a transport and
/// to the first model, equal on all ranks. Binding is collective; it makes the sessions, with the given timeout and
/// seed. The result models `Replica`; once the run has ended, `version()` is that of the final model. It is
/// `Persistent`: saved once the run has ended, restored before the first `pull`, on all ranks. A rank that works saves
/// the model as the section `model`.
template <class P, class Net, class T = float>
concept ReplicaPlan =
    std::copyable<P> && requires(const P& plan, Net& net, std::span<const T> first, const group_options& options) {
        { plan.template bind<T>(net, first, options) } -> Replica<T>;
        { plan.template bind<T>(net, first, options) } -> Persistent;
        { plan.template bind<T>(net, first, options).version() } -> std::same_as<std::uint64_t>;
    };

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/step_record.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A gradient that is not finite, and its first coordinate that is a NaN or infinite.
struct invalid_gradient {
    rank_t rank = no_rank;  ///< whose it is; `no_rank` if it is the sum of several
    std::size_t coordinate = 0;

    friend bool operator==(const invalid_gradient&, const invalid_gradient&) = default;
};

/// The times that the phases of a step took on one rank, on its transport's clock.
struct step_phases {
    duration compute{};
    duration exchange{};  ///< waiting for the exchange, without what overlapped with computing
    duration update{};

    friend constexpr bool operator==(const step_phases&, const step_phases&) = default;
};

/// What one step of training did, as one rank saw it.
struct step_record {
    std::uint64_t step = 0;  ///< its number, from 0; once the run has ended, how many steps that had
    double loss = 0;         ///< of this rank's batch, before the step
    receipt exchange{};      ///< its `wire`: all that this rank sent and received in the step
    duration elapsed{};      ///< time of the whole step
    step_phases phases{};
    /// Why the step was skipped; else empty. If the strategy keeps replicas equal, all ranks have the same list; else
    /// it tells of this rank alone, or of a sum that this rank has received.
    std::vector<invalid_gradient> invalid{};
    /// How gradients are exchanged, where the strategy has chosen that (`automatic`); else empty. Valid while the
    /// strategy lives.
    std::string_view choice{};
    bool is_over = false;  ///< the run has ended, and nothing was done

    bool skipped() const { return !invalid.empty(); }
    /// Whether a step was made: false once the run has ended.
    explicit operator bool() const { return !is_over; }
};

/// What a trainer calls with the record of each step, on its rank.
template <class H>
concept StepHook = std::move_constructible<H> && requires(H& hook, const step_record& record) { hook(record); };

/// Ignores the records of steps.
struct no_hook {
    void operator()(const step_record&) const {}
};

static_assert(StepHook<no_hook>);

/// A text such as "step 7 skipped: the gradient of rank 3 is not finite at coordinate 12", or for a sum of several "the
/// sum of the gradients is…".
inline std::string describe_skip(const step_record& record) {
    std::string text = "step " + std::to_string(record.step) + " skipped: ";
    for (const invalid_gradient& bad : record.invalid) {
        if (&bad != record.invalid.data()) text += ", ";
        text += bad.rank == no_rank ? "the sum of the gradients" : "the gradient of rank " + std::to_string(bad.rank);
        text += " is not finite at coordinate " + std::to_string(bad.coordinate);
    }
    return text;
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/stopwatch.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Times the phases of a step on a transport's clock.
template <class Net>
class stopwatch {
  public:
    explicit stopwatch(const Net& net) : net_(&net), begun_(net.now()), last_(begun_) {}

    /// The time since the last call, or since this was made.
    duration lap() {
        const time_point before = last_;
        last_ = net_->now();
        return last_ - before;
    }
    /// The time since this was made.
    duration total() const { return net_->now() - begun_; }

  private:
    const Net* net_;
    time_point begun_;
    time_point last_;
};

}}}  // namespace rill::RILL_ABI::train

#ifndef RILL_SINGLE_TRAIN_SPARSE_OBJECTIVE_HPP
#define RILL_SINGLE_TRAIN_SPARSE_OBJECTIVE_HPP

// ===== rill/train/sparse_objective.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A function to minimise whose gradient is 0 but for a few coordinates: the mean loss of a model over the samples of a
/// `batch`. It may be an `Objective` too, by an overload of `gradient` that takes a span.
///
/// - `gradient(parameters, batch, output)` overwrites the stream with a sparse one over `[0, dimension())`. That has an
///   entry for each coordinate on which the loss of the batch depends. Other derivatives are 0. It returns the loss.
/// - Nothing in it passes over all parameters: what it computes and allocates depends on the batch alone. After the
///   first call with a batch of this size it allocates nothing.
/// - Else as `Objective`: it owns its scratch, and `gradient` and `loss` are pure functions of parameters and batch.
///
/// Laws: `testing::for_each_sparse_objective_law`.
template <class O>
concept SparseObjective = std::floating_point<typename O::scalar> && std::movable<O> &&
                          requires(O& objective, const O& constant, std::span<typename O::scalar> room,
                                   std::span<const typename O::scalar> parameters, const typename O::batch& samples,
                                   random_key key, stream<typename O::scalar>& output) {
                              { constant.dimension() } -> std::same_as<std::size_t>;
                              { constant.layers() } -> std::same_as<std::span<const layer>>;
                              { constant.initialise(room, key) };
                              { objective.loss(parameters, samples) } -> std::same_as<double>;
                              { objective.gradient(parameters, samples, output) } -> std::same_as<double>;
                          };

/// What a trainer can train.
template <class O>
concept Trainable = Objective<O> || SparseObjective<O>;

}}}  // namespace rill::RILL_ABI::train

#endif  // RILL_SINGLE_TRAIN_SPARSE_OBJECTIVE_HPP

// ===== rill/train/strategy.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

/// What a strategy is handed to compute with.
struct any_computation {
    double operator()() const;
    double operator()(void (*ready)(std::size_t layer)) const;
};

}  // namespace detail

/// A strategy bound to one rank. It owns its groups or other sessions.
///
/// - `step(parameters, gradient, number, compute)`, collective, makes one step: it may replace the parameters by newer
///   ones, calls `compute` on ranks that contribute, exchanges the gradient, which is lost, and moves the parameters.
///   `compute()` writes the gradient at the parameters and returns the loss; `compute(ready)` also calls `ready(layer)`
///   as soon as that layer's part is final. Gradients that are not finite are left out and told in the record, whose
///   `step` is `number`, or a later one where this rank has missed steps. Once the run has ended the record `is_over`,
///   and its `step` is the number of steps that the run has had, or 0 on a rank that trains in none.
/// - `end()`: the run ends after the last step. All ranks call it after the same step; where a root begins the steps
///   (`partial_bsp`), its call counts and the other ranks learn of it in a later step.
/// - `contributes()`: whether this rank computes gradients. A master does not.
/// - `state()`: what the next step depends on, besides arguments and session; it can be copied, saved and restored.
/// - `position()`, `resume_at(position)`, collective between two steps: where the sessions stand in their numbers of
///   steps and in random numbers.
/// - `add_up(table)`, collective: the sum over all ranks, on all ranks. For the trainer's own agreements.
/// - `require_same_start(bytes)`, which may be left out, collective before the first step: throws on all ranks unless
///   all give the same bytes. A trainer calls it with the first parameters.
template <class B, class T, class Gradient = std::span<T>>
concept BoundStrategy =
    requires(B& bound, const B& constant, std::span<T> parameters, Gradient gradient, std::uint64_t number,
             const detail::any_computation& compute, std::span<std::int64_t> table) {
        { bound.step(parameters, gradient, number, compute) } -> std::same_as<step_record>;
        { bound.end() };
        { constant.contributes() } -> std::same_as<bool>;
        { bound.state() } -> Persistent;
        requires std::copyable<std::remove_reference_t<decltype(bound.state())>>;
        { constant.position() } -> std::same_as<std::uint64_t>;
        { bound.resume_at(number) };
        { bound.add_up(table) };
    };

/// Whether a strategy takes gradients as sparse streams.
template <class S>
concept SparseStrategy = requires { requires S::is_sparse; };

/// How a strategy takes a gradient.
template <class S, class T>
using gradient_of = std::conditional_t<SparseStrategy<S>, stream<T>&, std::span<T>>;

/// How the gradients of all ranks become steps: a value that binds to one rank's end of a transport and to the layers
/// of a model. Binding is collective: it makes the sessions, with the given timeout and seed.
///
/// `replicas_equal`: after each step the parameters are the same on all ranks, bit for bit, and a gradient that is not
/// finite skips the step of all ranks. Else it skips its own rank's contribution alone.
/// `is_layered`: `step` calls `compute(ready)`, else `compute()`.
/// `is_sparse`, which may be left out: the gradient is a `stream<T>&` instead of a span, of a `SparseObjective`.
/// `name`, which may be left out: a checkpoint that names its strategy is refused by a strategy of another name.
template <class S, class Net, class T = float>
concept Strategy = std::copyable<S> &&
                   requires(const S& policy, Net& net, std::span<const layer> layers, const group_options& options) {
                       requires std::same_as<decltype(S::replicas_equal), const bool>;
                       requires std::same_as<decltype(S::is_layered), const bool>;
                       { policy.template bind<T>(net, layers, options) } -> BoundStrategy<T, gradient_of<S, T>>;
                   };

/// The name of a strategy, or of the one that it makes (`automatic`); empty if it has none.
template <class S>
constexpr std::string_view name_of_strategy() {
    if constexpr (requires { S::name; })
        return S::name;
    else if constexpr (requires { typename S::strategy_type; })
        return name_of_strategy<typename S::strategy_type>();
    else
        return {};
}

/// How many parameters a model with these layers has.
inline std::size_t dimension_of(std::span<const layer> layers) { return layers.empty() ? 0 : layers.back().part.end; }

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/trainer.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Options of a trainer. They must be the same on all ranks.
struct trainer_options {
    random_key initial{};   ///< the key from which the first parameters are drawn
    group_options group{};  ///< timeout of each exchange, seed of the codecs' random numbers
};

/// One rank of data-parallel training, with its replica of the model. Making one is collective, and so is each step.
///
/// Each rank derives the first parameters from the key. With a strategy whose `replicas_equal` they stay the same bits
/// on all ranks at all times, and a step in which any rank's gradient holds a NaN or an infinity moves none. With other
/// strategies such a gradient is left out of the step. If the strategy has `require_same_start`, as those in lockstep
/// have, making the trainer throws `mismatch` on all ranks where one starts with other parameters. Finite gradients can
/// still make parameters infinite, where their sum or the product with the rate is too large: only gradients and rates
/// are looked at, no parameters. A strategy with error feedback codes that product: one that is too large ends the
/// exchange with `invalid_value` instead.
///
/// After an error of the exchange the strategy's sessions have ended: restore a checkpoint into a new trainer. Do so
/// too after an exception of the model or the batches, on all ranks: let it leave the rank's body. A rank that catches
/// it and calls `step` again makes the same step with its next batch if nothing of it was sent (`overlapped_bsp` sends
/// buckets meanwhile, and has then ended), and the others have waited for it. What `mix_beside` has mixed meanwhile
/// counts: the step that is made again does not mix.
///
/// A strategy that is sparse takes the gradient of a `SparseObjective` as a stream. Memory: parameters and gradient,
/// besides what model, batches and strategy hold. A step that is not skipped allocates nothing once the first ones are
/// done, except with a strategy whose root begins the steps (`partial_bsp`, `coded_bsp`), which keeps lists of who has
/// contributed.
template <Transport Net, Trainable Model, BatchSource<typename Model::batch> Batches, class Plan,
          StepHook Hook = no_hook>
class trainer {
  public:
    using scalar = typename Model::scalar;

    trainer(Net& net, Model model, Batches batches, const Plan& strategy, const trainer_options& options = {},
            Hook hook = {})
        : net_(&net),
          seed_(options.group.seed),
          model_(std::move(model)),
          batches_(std::move(batches)),
          strategy_(strategy.template bind<scalar>(net, model_.layers(), options.group)),
          parameters_(model_.dimension()),
          gradient_(model_.dimension()),
          hook_(std::move(hook)) {
        model_.initialise(parameters_, options.initial);
        if constexpr (requires { strategy_.require_same_start(std::as_bytes(std::span(parameters_))); })
            strategy_.require_same_start(std::as_bytes(std::span(parameters_)));
    }

    auto& strategy() { return strategy_; }
    Model& model() { return model_; }
    const Batches& batches() const { return batches_; }
    std::span<const scalar> parameters() const { return parameters_; }
    /// The number of the next step. Skipped steps count.
    std::uint64_t step_number() const { return step_; }

    /// Computes the gradient of the next batch, exchanges it with those of the other ranks and moves the parameters.
    /// Once the run has ended it does nothing, and the record is false. Then calls the hook; an exception of the hook
    /// propagates, and the next call goes on with the next step.
    step_record step() {
        const auto compute = [this](auto&&... ready) {
            [[maybe_unused]] const auto computing = named_span(*net_, "compute");
            return model_.gradient(parameters_, batches_.next(), gradient_, ready...);
        };
        step_record record =
            strategy_.step(std::span(parameters_), gradient_of<Plan, scalar>(gradient_), step_, compute);
        if (record.is_over) {
            step_ = std::max(step_, record.step);  // it may have missed the last steps
            return record;
        }
        step_ = record.step + 1;
        hook_(std::as_const(record));
        return record;
    }

    /// Ends the run after the last step: `while (trainer.step()) if (is_good(trainer)) trainer.end();`. All ranks call
    /// it after the same step; where a root begins the steps, as in `partial_bsp`, its call counts.
    void end() { strategy_.end(); }

    /// Everything that the next step depends on, on this rank: each rank writes a file of its own.
    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        constexpr std::string_view strategy = name_of_strategy<Plan>();
        if constexpr (!strategy.empty()) out.add(std::string(prefix) + "strategy", strategy);
        out.add(std::string(prefix) + "trainer", state());
        out.add(std::string(prefix) + "parameters", parameters_);
        batches_.save(out, prefix);
        strategy_.state().save(out, prefix);
    }

    /// Continues bit for bit where the saved trainer stood; it had this rank, this number of ranks, this seed and a
    /// strategy of this name. A file that names no strategy, as one of a strategy without a name, is read.
    /// Collective, before the first step or between the same two steps of all ranks: throws `data_error` on all ranks,
    /// and changes nothing, where the file of any rank does not fit, or their files hold different steps, or other
    /// numbers of operations, or, where the strategy keeps replicas equal, other parameters. Where a rank's own file is
    /// refused, the error of each other rank tells the reason too. `in`: of `checkpoint::open`, so that a rank whose
    /// file is missing takes part too. A run that has ended goes on; where a root begins the steps, only a new trainer
    /// can.
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        saved_state saved{};
        auto parameters = parameters_;
        auto batches = batches_;
        auto state = strategy_.state();
        std::exception_ptr refused;
        try {
            detail::require_same_plan(in, std::string(prefix) + "strategy", name_of_strategy<Plan>());
            saved = read_state(in, std::string(prefix) + "trainer");
            in.read(std::string(prefix) + "parameters", parameters);
            batches.restore(in, prefix);
            state.restore(in, prefix);
        } catch (const std::exception&) {
            refused = std::current_exception();  // thrown after the other ranks have been told
        }
        const std::uint64_t sum =
            mix64(saved[4], Plan::replicas_equal ? checksum(std::as_bytes(std::span(parameters))) : 0);
        detail::require_common_files({in.path(), net_->rank(), net_->size(), refused, saved[3], sum}, "step",
                                     [&](std::span<std::int64_t> table) { strategy_.add_up(table); });
        strategy_.resume_at(saved[4]);
        parameters_.swap(parameters);
        batches_ = std::move(batches);
        strategy_.state() = std::move(state);
        step_ = saved[3];
    }

  private:
    static_assert(Strategy<Plan, Net, scalar>,
                  "rill::train::trainer: the strategy does not model Strategy for this scalar and transport; see "
                  "rill/train/strategy.hpp");
    static_assert(
        !Plan::is_layered || LayeredObjective<Model>,
        "rill::train::trainer: the strategy exchanges gradients layer by layer and the objective does not say "
        "when they are ready; give it gradient(parameters, batch, output, ready) or use train::bsp");

    static_assert(SparseStrategy<Plan> ? SparseObjective<Model> : Objective<Model>,
                  "rill::train::trainer: the strategy and the objective do not take the gradient in one form; give the "
                  "objective gradient(parameters, batch, stream) for sparse_bsp, and gradient(parameters, batch, span) "
                  "for the others");

    using bound_strategy = decltype(std::declval<const Plan&>().template bind<scalar>(
        std::declval<Net&>(), std::span<const layer>(), group_options{}));

    using saved_state = std::array<std::uint64_t, 5>;
    saved_state state() const {
        return {static_cast<std::uint64_t>(net_->rank()), static_cast<std::uint64_t>(net_->size()), seed_, step_,
                strategy_.position()};
    }

    template <class Reader>
    saved_state read_state(const Reader& in, const std::string& name) const {
        saved_state saved{};
        in.read(name, saved);
        detail::require_same_place(in.path(), name, saved, state());
        return saved;
    }

    Net* net_;
    std::uint64_t seed_;
    Model model_;
    Batches batches_;
    bound_strategy strategy_;
    aligned_vector<scalar> parameters_;
    std::conditional_t<SparseStrategy<Plan>, stream<scalar>, aligned_vector<scalar>> gradient_;
    Hook hook_;
    std::uint64_t step_ = 0;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/asynchronous_trainer.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// How many pushes of one rank have met each fate.
struct push_counts {
    std::uint64_t counted = 0;
    std::uint64_t too_old = 0;
    std::uint64_t not_finite = 0;
    std::uint64_t run_over = 0;

    friend constexpr bool operator==(const push_counts&, const push_counts&) = default;
};

/// One rank of training without a barrier: the loop of `Replica`, with batches and records.
///
///     train::asynchronous_trainer trainer{net, model, batches, systems::rna({}, optimizer, rate)};
///     while (trainer.step())
///         if (trainer.version() >= 1000) trainer.end();
///
/// Making one is collective. A step is not: each rank steps as fast as it computes, as far as the plan's staleness lets
/// it. Each rank derives the first parameters from the key. A gradient that holds a NaN or an infinity moves nothing.
/// An exception of the replica has ended the run, on all ranks unless its kind says otherwise. One of the model, the
/// batches or the hook leaves the run as it is: the next step goes on, with the next batch.
/// Memory: parameters and gradient, besides what model, batches and replica hold.
template <Transport Net, Objective Model, BatchSource<typename Model::batch> Batches, class Plan,
          StepHook Hook = no_hook>
class asynchronous_trainer {
  public:
    using scalar = typename Model::scalar;

    asynchronous_trainer(Net& net, Model model, Batches batches, const Plan& plan, const trainer_options& options = {},
                         Hook hook = {})
        : net_(&net),
          seed_(options.group.seed),
          model_(std::move(model)),
          batches_(std::move(batches)),
          parameters_(initial(model_, options.initial)),
          gradient_(parameters_.size()),
          replica_(plan.template bind<scalar>(net, std::span<const scalar>(parameters_), options.group)),
          hook_(std::move(hook)) {}

    /// The replica itself, for what only its kind has.
    auto& replica() { return replica_; }
    Model& model() { return model_; }
    const Batches& batches() const { return batches_; }
    /// Those that the latest step computed its gradient at; once the run has ended, the final ones; after `restore`,
    /// those that were saved. A rank that only serves computes at none, and they mean nothing there.
    std::span<const scalar> parameters() const { return parameters_; }
    /// By how many rounds `parameters()` had been moved. It goes on from that of the saved run.
    std::uint64_t version() const { return version_; }
    /// How many gradients this rank has computed.
    std::uint64_t step_number() const { return step_; }
    /// What has become of this rank's gradients, as far as it is known.
    const push_counts& counts() const { return counts_; }

    /// Takes the newest parameters, computes the gradient of the next batch at them and hands it over. Then calls the
    /// hook. Once the run has ended the record is false, and `parameters()` are the final ones. On a rank that only
    /// serves, the first step is over when the run is.
    ///
    /// In the record `phases.exchange` is the time that this rank waited for newer parameters, and `invalid` names
    /// gradients of this rank that were found not to be finite since its last step. `exchange` and `phases.update` stay
    /// empty: what is sent and folded belongs to no step. `replica()` and the transport know it. What has become of the
    /// last gradients is in `counts()`, but in no record that the hook gets.
    step_record step() {
        step_record record{.step = step_};
        stopwatch clock(*net_);
        const auto held = replica_.pull(parameters_);
        record.phases.exchange = clock.lap();
        record.is_over = !held;
        if (held) {
            version_ = held->version;
            [[maybe_unused]] const auto computing = named_span(*net_, "compute");
            record.loss = model_.gradient(parameters_, batches_.next(), gradient_);
            record.phases.compute = clock.lap();
            replica_.push(gradient_, *held);
            ++step_;
        } else {
            version_ = replica_.version();
        }
        take_fates(record);
        record.elapsed = clock.total();
        if (held) hook_(std::as_const(record));
        return record;
    }

    /// The run ends on all ranks, without waiting for further gradients. Throws `contract_violation` on a rank that
    /// only serves.
    void end() { replica_.end(); }
    /// This rank computes no more gradients, but serves the others: `step` waits for the end of the run. Throws
    /// `contract_violation` on a rank that only serves.
    void retire() { replica_.retire(); }

    /// Everything that the next step depends on, on this rank: each rank writes a file of its own. Only once the run
    /// has ended; a long run is saved by ending it and going on with a new trainer.
    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        replica_.save(out, prefix);
        constexpr std::string_view plan = name_of_strategy<Plan>();
        if constexpr (!plan.empty()) out.add(std::string(prefix) + "plan", plan);
        out.add(std::string(prefix) + "trainer", state());
        batches_.save(out, prefix);
    }

    /// Goes on where the saved trainer had ended; it had this rank, this number of ranks, this seed and a plan of this
    /// name. Only before the first step: from then on other ranks and activities move the model. Collective: throws on
    /// all ranks where the file of any rank does not fit or their files do not belong together, `data_error` on the
    /// rank whose file it is; the trainer cannot be used then. `in`: of `checkpoint::open`, so that a rank whose file
    /// is missing takes part too.
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        saved_state saved{};
        auto batches = batches_;
        replica_.restore(in, prefix, [&] {
            detail::require_same_plan(in, std::string(prefix) + "plan", name_of_strategy<Plan>());
            saved = read_state(in, std::string(prefix) + "trainer");
            batches.restore(in, prefix);
        });
        batches_ = std::move(batches);
        step_ = saved[3];
        version_ = saved[4];
        const std::string model = std::string(prefix) + "model";
        if (in.count(model) == parameters_.size()) in.read(model, parameters_);  // a server has its part only
    }

  private:
    static_assert(
        ReplicaPlan<Plan, Net, scalar>,
        "rill::train::asynchronous_trainer: the plan does not model ReplicaPlan for this scalar and transport; "
        "see rill/train/replica_plan.hpp (a strategy in lockstep, such as bsp, goes to train::trainer)");

    using bound_replica = decltype(std::declval<const Plan&>().template bind<scalar>(
        std::declval<Net&>(), std::span<const scalar>(), group_options{}));

    static aligned_vector<scalar> initial(Model& model, random_key key) {
        aligned_vector<scalar> parameters(model.dimension());
        model.initialise(parameters, key);
        return parameters;
    }

    using saved_state = std::array<std::uint64_t, 5>;
    saved_state state() const {
        return {std::uint64_t(net_->rank()), std::uint64_t(net_->size()), seed_, step_, version_};
    }

    template <class Reader>
    saved_state read_state(const Reader& in, const std::string& name) const {
        saved_state saved{};
        in.read(name, saved);
        detail::require_same_place(in.path(), name, saved, state());
        return saved;
    }

    void take_fates(step_record& record) {
        while (const auto fate = replica_.fate()) switch (fate->what) {
                case push_fate::outcome::counted: ++counts_.counted; break;
                case push_fate::outcome::too_old: ++counts_.too_old; break;
                case push_fate::outcome::run_over: ++counts_.run_over; break;
                case push_fate::outcome::not_finite:
                    ++counts_.not_finite;
                    record.invalid.push_back({net_->rank(), fate->coordinate});
            }
    }

    Net* net_;
    std::uint64_t seed_;
    Model model_;
    Batches batches_;
    aligned_vector<scalar> parameters_;
    aligned_vector<scalar> gradient_;
    bound_replica replica_;
    Hook hook_;
    push_counts counts_{};
    std::uint64_t step_ = 0;
    std::uint64_t version_ = 0;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/clip.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// The Euclidean norm, in double precision; summed as eight interleaved partial sums, so that the bits depend on the
/// values alone. If a value is NaN or infinite, so is the result.
template <std::floating_point T>
double norm(std::span<const T> values) {
    constexpr std::size_t lanes = 8;
    double sums[lanes]{};
    std::size_t i = 0;
    for (; i + lanes <= values.size(); i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const double x = values[i + lane];
            sums[lane] += x * x;
        }
    for (; i < values.size(); ++i) sums[i % lanes] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    double total = 0;
    for (double sum : sums) total += sum;
    return std::sqrt(total);
}

/// Scales a gradient down to the norm `most` if its norm is larger and finite; the direction stays.
struct clip_norm {
    static constexpr const char* name = "clip_norm";
    static constexpr bool is_coordinatewise = false;

    double most = std::numeric_limits<double>::infinity();

    /// Returns the norm before scaling. If that is not finite, the gradient stays unchanged.
    template <std::floating_point T>
    double apply(std::span<T> gradient) const {
        rill::detail::require_option(most >= 0, "train::clip_norm: most", most, "at least 0");
        const double length = norm(std::span<const T>(gradient));
        if (std::isfinite(length) && length > most) {
            const T scale = static_cast<T>(most / length);
            for (T& value : gradient) value *= scale;
        }
        return length;
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("most", most);
    }
    friend constexpr bool operator==(const clip_norm&, const clip_norm&) = default;
};

/// Limits each coordinate to `[-most, most]`; a NaN stays.
struct clip_value {
    static constexpr const char* name = "clip_value";
    static constexpr bool is_coordinatewise = true;

    double most = std::numeric_limits<double>::infinity();

    template <std::floating_point T>
    void apply(std::span<T> gradient) const {
        rill::detail::require_option(most >= 0, "train::clip_value: most", most, "at least 0");
        const T bound = static_cast<T>(most);
        for (T& value : gradient) value = std::clamp(value, -bound, bound);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("most", most);
    }
    friend constexpr bool operator==(const clip_value&, const clip_value&) = default;
};

/// Applies another clipping to each bucket of a gradient as if it were the whole gradient: `clip_norm` then limits the
/// norm of each bucket, and buckets may be scaled by different factors.
template <class Clip>
struct per_bucket {
    static constexpr const char* name = "per_bucket";
    static constexpr bool is_coordinatewise = true;  ///< each part is clipped by itself

    Clip clip{};

    template <std::floating_point T>
    void apply(std::span<T> part) const {
        clip.apply(part);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("clip", fingerprint_if_named(clip));
    }
    friend constexpr bool operator==(const per_bucket&, const per_bucket&) = default;
};

template <class C>
per_bucket(C) -> per_bucket<C>;

/// Leaves a gradient as it is.
struct no_clip {
    static constexpr const char* name = "no_clip";
    static constexpr bool is_coordinatewise = true;

    template <std::floating_point T>
    constexpr void apply(std::span<T>) const {}
    friend constexpr bool operator==(no_clip, no_clip) = default;
};

/// What a strategy does to each rank's own finite gradient before it is sent: a value, a pure function.
/// `is_coordinatewise`: it may be applied to the parts of a gradient one by one. Ranks compare their clippings that
/// have a name, and options (`HasOptions`). A strategy applies it to an empty gradient when it is bound: impossible
/// options must throw there.
template <class C>
concept Clipping = Regular<C> && requires(const C& clip, std::span<float> gradient) {
    clip.apply(gradient);
    requires std::same_as<decltype(C::is_coordinatewise), const bool>;
};

namespace detail {
/// Throws what `clip` throws if its options are impossible. Called where a strategy is bound. In a step it would throw
/// only on ranks whose gradient is finite, since the others do not clip.
template <Clipping Clip>
void require_clipping(const Clip& clip) {
    clip.apply(std::span<float>());
}
}  // namespace detail

static_assert(Clipping<clip_norm>);
static_assert(Clipping<clip_value>);
static_assert(Clipping<no_clip>);
static_assert(Clipping<per_bucket<clip_norm>>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/detail/without_number.hpp

namespace rill { inline namespace RILL_ABI { namespace train::detail {

/// Calls `work()`, a collective of `workers`, so that it takes no number of an operation: the random numbers of later
/// operations do not depend on it.
template <class Group, class Work>
void without_number(Group& workers, Work&& work) {
    const std::uint64_t before = workers.operation_number();
    work();
    workers.resume_at(before);
}

}}}  // namespace rill::RILL_ABI::train::detail

// ===== rill/train/schedule.hpp

// Learning rates as functions of the step, `0, 1, 2, …`.

namespace rill { inline namespace RILL_ABI { namespace train {

/// A learning rate for each step: a value, a pure function.
template <class S>
concept RateSchedule = Regular<S> && requires(const S& schedule, std::uint64_t step) {
    { schedule.rate(step) } -> std::same_as<double>;
};

/// The rate of a step. Throws `contract_violation` if it is not finite in `T`, the type of the parameters, before it
/// makes them so.
template <std::floating_point T = double, RateSchedule S>
double rate_at(const S& schedule, std::uint64_t step) {
    const double rate = schedule.rate(step);
    if (!std::isfinite(static_cast<T>(rate)))
        rill::detail::require_option(false, text_of({"train: the rate of step ", step}), rate,
                                     std::isfinite(rate) ? "finite in the type of the parameters" : "finite");
    return rate;
}

/// The same rate for every step.
struct constant_rate {
    static constexpr const char* name = "constant_rate";

    double value = 0.1;

    constexpr double rate(std::uint64_t) const { return value; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("value", value);
    }
    friend constexpr bool operator==(const constant_rate&, const constant_rate&) = default;
};

/// `initial · factor^⌊step / every⌋`.
struct step_decay {
    static constexpr const char* name = "step_decay";

    double initial = 0.1;
    double factor = 0.1;
    std::uint64_t every = 1;

    double rate(std::uint64_t step) const {
        rill::detail::require_option(every > 0, "train::step_decay: every", every, "at least 1");
        rill::detail::require_option(std::isfinite(factor), "train::step_decay: factor", factor, "finite");
        const std::uint64_t decays = step / every;
        return initial * std::pow(factor, static_cast<double>(decays));
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("initial", initial);
        visit("factor", factor);
        visit("every", every);
    }
    friend constexpr bool operator==(const step_decay&, const step_decay&) = default;
};

/// `c1 / (step + c2)`, the rate under which SGD converges on strongly convex objectives.
struct inverse_time {
    static constexpr const char* name = "inverse_time";

    double c1 = 1;
    double c2 = 10;

    constexpr double rate(std::uint64_t step) const { return c1 / (static_cast<double>(step) + c2); }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("c1", c1);
        visit("c2", c2);
    }
    friend constexpr bool operator==(const inverse_time&, const inverse_time&) = default;
};

/// Linear from `peak / warmup` to `peak` in the first `warmup` steps, then half a cosine down to `floor` at step
/// `total`, where it stays.
struct warmup_cosine {
    static constexpr const char* name = "warmup_cosine";

    double peak = 0.1;
    double floor = 0;
    std::uint64_t warmup = 0;
    std::uint64_t total = 1;

    double rate(std::uint64_t step) const {
        rill::detail::require_option(std::isfinite(floor), "train::warmup_cosine: floor", floor, "finite");
        if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
        if (step >= total) return floor;
        const double progress = static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
        return floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("peak", peak);
        visit("floor", floor);
        visit("warmup", warmup);
        visit("total", total);
    }
    friend constexpr bool operator==(const warmup_cosine&, const warmup_cosine&) = default;
};

static_assert(RateSchedule<constant_rate>);
static_assert(RateSchedule<step_decay>);
static_assert(RateSchedule<inverse_time>);
static_assert(RateSchedule<warmup_cosine>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/lockstep.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// What bound strategies have in common whose ranks all take part in each step and move alike: the group, the check
/// that they do move alike, and how a step is skipped.
///
/// Making it is collective. Errors: `mismatch` on all ranks if one has another strategy, optimizer, rate or clipping,
/// which names the odd rank and what differs. Policies are compared that have a name; of others the ranks must see to
/// it that they are alike.
///
/// A rank whose gradient holds a NaN or an infinity contributes with weight 0, by which all ranks see it at no cost;
/// only then do they tell each other where.
template <class Net, class Shape>
class lockstep {
  public:
    using group_type = group<Net, Shape>;

    /// `policy`: a strategy with `topology`. Its `optimizer`, `rate` and `clip` are compared, as far as it has them.
    template <class Policy>
    lockstep(Net& net, const Policy& policy, const group_options& options) : workers_(net, policy.topology, options) {
        std::uint64_t optimizer = 0, rate = 0, clip = 0;
        if constexpr (requires { policy.optimizer; }) optimizer = fingerprint_if_named(policy.optimizer);
        if constexpr (requires { policy.rate; }) rate = fingerprint_if_named(policy.rate);
        if constexpr (requires { policy.clip; }) clip = fingerprint_if_named(policy.clip);
        compare(
            option_names{{"strategy", "optimizer", "rate", "clipping"}},
            {option_hash(fingerprint_if_named(policy)), option_hash(optimizer), option_hash(rate), option_hash(clip)});
        if constexpr (requires { policy.clip; }) detail::require_clipping(policy.clip);
    }

    /// Collective, before the first step. Throws `mismatch` on all ranks, naming the odd one, unless they start with
    /// the same bits.
    void require_same_start(byte_view parameters) {
        compare(option_names{{"first model"}}, {option_hash(checksum(parameters))});
    }

    group_type& workers() { return workers_; }

    static constexpr bool contributes() { return true; }
    void end() { has_ended_ = true; }
    std::uint64_t position() const { return workers_.operation_number(); }
    void resume_at(std::uint64_t position) {
        workers_.resume_at(position);
        has_ended_ = false;
    }
    /// For the ranks' agreement on their files: one that is refused changes no random number.
    void add_up(std::span<std::int64_t> table) {
        detail::without_number(workers_, [&] { all_reduce(workers_, table, table); });
    }

  protected:
    bool has_ended() const { return has_ended_; }

    /// The rate of the step that begins, checked before anything is computed or sent. 0 after `end`. `T`: the type of
    /// the parameters.
    template <class T, RateSchedule Rate>
    double rate_of(const Rate& schedule, std::uint64_t number) const {
        return has_ended_ ? 0 : rate_at<T>(schedule, number);
    }

    /// Calls `agree`; the random numbers of the steps do not depend on it.
    void compare(const option_names& names, const option_hashes& hashes) {
        detail::without_number(workers_, [&] { agree(workers_, names, hashes); });
    }

    bool is_complete(const receipt& done) const { return done.contributors == workers_.size(); }

    /// The first coordinate of a gradient that is not finite.
    template <class T>
    static std::optional<std::size_t> first_invalid(std::span<T> gradient) {
        return kernel::find_non_finite(std::span<const T>(gradient));
    }
    template <class T>
    static std::optional<std::size_t> first_invalid(const stream<T>& gradient) {
        const auto entry = kernel::find_non_finite(gradient.values());
        return entry && !gradient.is_dense() ? gradient.indices()[*entry] : entry;
    }

    /// A step that computes `gradient`, a span or a stream, then calls `exchange(own)`, which returns the receipt, then
    /// `move()`.
    template <class Gradient, class Compute, class Exchange, class Move>
    step_record step_with(std::uint64_t number, const Gradient& gradient, Compute&& compute, Exchange&& exchange,
                          Move&& move) {
        step_record record{.step = number, .is_over = has_ended_};
        if (has_ended_) return record;
        stopwatch clock(workers_.net());
        record.loss = compute();
        const auto bad = first_invalid(gradient);
        record.phases.compute = clock.lap();
        record.exchange = exchange(contribution{.weight = bad ? 0.0 : 1.0});
        record.phases.exchange = clock.lap();
        complete(record, bad, clock, move);
        return record;
    }

    /// Moves after a complete exchange; else all ranks skip the step and learn why. `bad`: the first coordinate of this
    /// rank's gradient that is not finite.
    template <class Move>
    void complete(step_record& record, std::optional<std::size_t> bad, stopwatch<Net>& clock, Move&& move) {
        if (is_complete(record.exchange)) {
            [[maybe_unused]] const auto updating = named_span(workers_.net(), "update");
            move();
        } else {
            explain_skip(bad, record);
        }
        record.phases.update = clock.lap();
        record.elapsed = clock.total();
    }

  private:
    /// Every rank learns whose gradients cannot be used: coordinate + 1 at the place of each such rank.
    void explain_skip(std::optional<std::size_t> bad, step_record& record) {
        std::vector<std::int64_t> places(static_cast<std::size_t>(workers_.size()));
        if (bad) places[static_cast<std::size_t>(workers_.rank())] = static_cast<std::int64_t>(*bad) + 1;
        record.exchange.wire += all_reduce(workers_, places, places).wire;
        for (std::size_t rank = 0; rank < places.size(); ++rank)
            if (places[rank] != 0)
                record.invalid.push_back({static_cast<rank_t>(rank), static_cast<std::size_t>(places[rank] - 1)});
    }

    group_type workers_;
    bool has_ended_ = false;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/bsp.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_bsp : public lockstep<Net, decltype(Policy::topology)> {
  public:
    bound_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : bound_bsp::lockstep(net, policy, options),
          policy_(policy),
          optimizer_(policy.optimizer.template bind<T>(dimension)) {}

    auto& state() { return optimizer_; }
    const auto& state() const { return optimizer_; }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number, Compute&& compute) {
        const double rate = this->template rate_of<T>(policy_.rate, number);
        const auto exchange = [&](const contribution& own) {
            if (own.weight > 0) policy_.clip.apply(gradient);
            return all_reduce(this->workers(), gradient, gradient, aggregate::mean{}, own);
        };
        return this->step_with(number, gradient, compute, exchange,
                               [&] { optimizer_.step(parameters, std::span<const T>(gradient), rate); });
    }

  private:
    Policy policy_;
    decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{})) optimizer_;
};

/// Bulk-synchronous data-parallel descent: each step follows the mean of all ranks' gradients, sent in full.
///
/// Models `Strategy`. Cost per step: one dense all-reduce of the parameters' size over `topology`. Memory: the
/// optimizer's. Errors: `bind` throws `mismatch` on all ranks if one has another optimizer, rate or clipping
/// (`lockstep`).
template <Topology Shape, Optimizer Descent, RateSchedule Rate, Clipping Clip = no_clip>
struct bsp {
    static constexpr const char* name = "bsp";
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = false;

    Shape topology{};
    Descent optimizer{};
    Rate rate{};
    Clip clip{};  ///< of each rank's own gradient

    template <std::floating_point T = float, class Net>
    bound_bsp<Net, bsp, T> bind(Net& net, std::span<const layer> layers, const group_options& options = {}) const {
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const bsp&, const bsp&) = default;
};

template <class S, class D, class R>
bsp(S, D, R) -> bsp<S, D, R>;
template <class S, class D, class R, class C>
bsp(S, D, R, C) -> bsp<S, D, R, C>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/coded_batch.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// What one worker of a coded reduction computes on, in each step: the rows of a dataset that a `coded_allocation`
/// gives it, each with its coefficient as weight. Any objective whose batch has weights then computes the worker's
/// coded gradient, and the root decodes the gradient of the mean loss of all rows.
///
/// Models `BatchSource`. The dataset must outlive it and have as many rows as the allocation has points.
class coded_batch {
  public:
    coded_batch(const dataset& data, const coded_allocation& allocation, rank_t rank) : data_(&data) {
        RILL_EXPECTS(data.rows == allocation.points(), "coded_batch: a dataset with as many rows as were allocated");
        const double each = 1.0 / static_cast<double>(allocation.points());
        for (const data_share& share : allocation.shares_of(rank))
            for (std::size_t row = share.first; row < share.last; ++row) {
                rows_.push_back(static_cast<std::uint32_t>(row));
                weights_.push_back(share.coefficient * each);
            }
    }

    /// How many rows the worker reads for one gradient.
    std::size_t load() const { return rows_.size(); }

    /// Valid as long as this lives unchanged.
    batch next() const { return {*data_, rows_, weights_}; }

    /// The batch is the same in each step: there is nothing to save.
    template <class Writer>
    void save(Writer&, std::string_view) const {}
    template <class Reader>
    void restore(const Reader&, std::string_view) {}

  private:
    const dataset* data_;
    std::vector<std::uint32_t> rows_;
    std::vector<double> weights_;
};

static_assert(BatchSource<coded_batch, batch>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/rooted.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// The group of a strategy whose root gathers along a tree.
template <class Net, class Tree>
using group_on = decltype(group{std::declval<Net&>(), std::declval<Tree>(), group_options{}});

/// What bound strategies have in common whose root alone moves the parameters, in rounds: the group, the rounds and the
/// root's optimizer. `Steps`: `rill::rounds` or `rill::coded_reduce`.
///
/// In each step a rank gets the newest parameters, computes its gradient there and contributes it. A rank that is late
/// misses steps. The optimizer's state counts at the root.
template <class Net, class Tree, class Steps, class Bound>
class rooted {
  public:
    using group_type = group_on<Net, Tree>;

    /// `make(workers)` makes the rounds.
    template <class Make>
    rooted(Net& net, const Tree& tree, const group_options& options, Make&& make, Bound optimizer)
        : workers_(net, tree, options), steps_(make(workers_)), optimizer_(std::move(optimizer)) {}

    group_type& workers() { return workers_; }
    bool is_root() const { return steps_.is_root(); }
    /// What the last step's round did: who was in, who was late.
    const round_receipt& latest() const { return latest_; }

    /// Ends the run on all ranks; on others than the root it does nothing.
    void end() {
        if (!is_root()) return;
        steps_.end();
        has_begun_ = false;
    }
    Bound& state() { return optimizer_; }
    const Bound& state() const { return optimizer_; }
    /// The number of the next step.
    std::uint64_t position() const { return first_ + steps_.number(); }
    /// Collective, between two steps: the root's next round is step `position`. A step that an exception of the model
    /// has left is made again first.
    void resume_at(std::uint64_t position) {
        RILL_EXPECTS(!has_begun_, "train: go back between two steps; the one that an exception has left comes first");
        std::int64_t rounds = is_root() ? static_cast<std::int64_t>(steps_.number()) : 0;
        add_up({&rounds, 1});
        first_ = position - static_cast<std::uint64_t>(rounds);
        steps_.draw_after(first_);
    }
    void add_up(std::span<std::int64_t> table) { all_reduce(workers_, table, table); }

  protected:
    /// A round in which this rank computes if it `contributes`; then `reduce(bad)` hands in the gradient, of which
    /// `bad` is the first coordinate that is not finite, and `move(record, rate)` follows at the root if any came.
    template <RateSchedule Rate, class T, class Compute, class Reduce, class Move>
    step_record step_with(const Rate& schedule, std::span<T> parameters, std::span<T> gradient, bool contributes,
                          Compute&& compute, Reduce&& reduce, Move&& move) {
        stopwatch clock(workers_.net());
        step_record record{.is_over = !has_begun_ && !steps_.next(parameters)};
        if (record.is_over) {
            record.step = position();
            return record;
        }
        has_begun_ = true;
        record.step = position() - 1;
        const double rate = rate_at<T>(schedule, record.step);
        const duration waited = clock.lap();
        std::optional<std::size_t> bad;
        if (contributes) {
            record.loss = compute();
            bad = kernel::find_non_finite(std::span<const T>(gradient));
            if (bad) record.invalid.push_back({workers_.rank(), *bad});
        }
        record.phases.compute = clock.lap();
        has_begun_ = false;
        latest_ = reduce(bad.has_value());
        record.exchange = static_cast<const receipt&>(latest_);
        record.phases.exchange = waited + clock.lap();
        if (is_root() && latest_.contributors > 0) {
            [[maybe_unused]] const auto updating = named_span(workers_.net(), "update");
            move(record, rate);
        }
        record.phases.update = clock.lap();
        record.elapsed = clock.total();
        return record;
    }

    Steps& steps() { return steps_; }

  private:
    group_type workers_;
    Steps steps_;
    Bound optimizer_;
    round_receipt latest_;
    std::uint64_t first_ = 0;  ///< the step that the first round was, or would have been, modulo 2^64
    bool has_begun_ = false;   ///< the round under way, which an exception of `compute` has left without a gradient
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/coded_bsp.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

template <class Net, class Policy>
using coded_rounds =
    coded_reduce<group_on<Net, decltype(Policy::topology)>, decltype(Policy::topology), decltype(Policy::code)>;

}  // namespace detail

/// A `coded_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_coded_bsp
    : public rooted<Net, decltype(Policy::topology), detail::coded_rounds<Net, Policy>,
                    decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}))> {
    using steps_type = detail::coded_rounds<Net, Policy>;

  public:
    bound_coded_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : bound_coded_bsp::rooted(
              net, policy.topology, options,
              [&](auto& workers) { return steps_type(workers, policy.topology, policy.code, policy.options); },
              policy.optimizer.template bind<T>(dimension)),
          rate_(policy.rate) {}

    /// The root decodes and computes nothing.
    bool contributes() const { return !this->is_root(); }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t, Compute&& compute) {
        const auto reduce = [&](bool) { return this->steps().reduce(gradient, gradient); };
        const auto move = [&](step_record& record, double rate) {
            const auto bad = kernel::find_non_finite(std::span<const T>(gradient));
            if (bad)
                record.invalid.push_back({no_rank, *bad});
            else
                this->state().step(parameters, std::span<const T>(gradient), rate);
        };
        return this->step_with(rate_, parameters, gradient, contributes(), compute, reduce, move);
    }

  private:
    decltype(Policy::rate) rate_;
};

/// Descent along the whole gradient without the slowest ranks: each worker computes on its `coded_batch`, and parents
/// decode what is missing (CodedReduce; on a tree of depth 1, gradient coding).
///
/// Models `Strategy`. The root, rank 0, moves the parameters and sends them to all; replicas are not equal. A message
/// that holds a value that is not finite cannot be taken out of a decoded sum: the root then skips the step. Its record
/// tells so without naming a rank; that of the rank whose gradient it was names this rank. Records of others tell
/// nothing.
/// Cost per step: the parameters down and a gradient up on each edge of `topology`. Memory: the optimizer's at each
/// rank, and that of `coded_reduce`.
template <TreeTopology Tree, GradientCode Code, Optimizer Descent, RateSchedule Rate>
struct coded_bsp {
    static constexpr const char* name = "coded_bsp";
    static constexpr bool replicas_equal = false;
    static constexpr bool is_layered = false;

    Tree topology;
    Code code;
    Descent optimizer{};
    Rate rate{};
    coded_options options{};

    template <std::floating_point T = float, class Net>
    bound_coded_bsp<Net, coded_bsp, T> bind(Net& net, std::span<const layer> layers,
                                            const group_options& group = {}) const {
        return {net, *this, dimension_of(layers), group};
    }
};

template <class S, class C, class D, class R>
coded_bsp(S, C, D, R) -> coded_bsp<S, C, D, R>;
template <class S, class C, class D, class R>
coded_bsp(S, C, D, R, coded_options) -> coded_bsp<S, C, D, R>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/compressed_state.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A codec with state to save, as error feedback has its residual. `save` writes sections of the same names whatever
/// the codec holds. A `restore` that throws changes nothing.
template <class C>
concept PersistentCodec =
    requires(const C& constant, C& codec, checkpoint::writer& out, const checkpoint& in, const std::string& name) {
        constant.save(out, name);
        codec.restore(in, name);
    };

namespace detail {

/// Makes `codec` send `gradient` times `rate`. Codecs that can scale do so in the pass that they make anyway.
template <class Codec, std::floating_point T>
void scale_contribution(Codec& codec, std::span<T> gradient, T rate) {
    if constexpr (ScalingCompressor<Codec, T>)
        codec.scale_inputs(rate);
    else
        for (T& slope : gradient) slope *= rate;
}

}  // namespace detail

/// What a bound strategy with a codec saves: the codec's residual, if it has one, and the optimizer's state.
template <class Codec, class Descent>
struct compressed_state {
    Codec codec;
    Descent optimizer;

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        optimizer.save(out, prefix);
        rill::detail::save_part(out, std::string(prefix) + "codec", codec);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        Descent restored = optimizer;
        restored.restore(in, prefix);
        rill::detail::restore_part(in, std::string(prefix) + "codec", codec);
        optimizer = std::move(restored);
    }
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/compressed_bsp.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `compressed_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_compressed_bsp : public lockstep<Net, decltype(Policy::topology)> {
  public:
    bound_compressed_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : bound_compressed_bsp::lockstep(net, policy, options),
          policy_(policy),
          state_{policy.codec.template bind<T>(dimension), policy.optimizer.template bind<T>(dimension)} {
        if constexpr (!moves_along_stream) update_.resize(dimension);
    }

    const auto& codec() const { return state_.codec; }
    auto& state() { return state_; }
    const auto& state() const { return state_; }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number, Compute&& compute) {
        const double rate = this->template rate_of<T>(policy_.rate, number);
        const auto exchange = [&](const contribution& own) {
            if (own.weight > 0) {
                policy_.clip.apply(gradient);
                detail::scale_contribution(state_.codec, gradient, static_cast<T>(rate));
            }
            const auto is_complete = [&](const receipt& done) { return this->is_complete(done); };
            return all_reduce(this->workers(), gradient, update_, state_.codec, aggregate::mean{}, own, is_complete);
        };
        return this->step_with(number, gradient, compute, exchange, [&] { move(parameters); });
    }

  private:
    using codec_type = decltype(std::declval<const Policy&>().codec.template bind<T>(std::size_t{}));
    using optimizer_type = decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}));
    using index_type = typename codec_type::index_type;

    /// Whether the optimizer takes the received stream as it is. Else the stream is spread over all coordinates first.
    static constexpr bool moves_along_stream =
        codec_type::is_coordinatewise && StreamOptimizer<optimizer_type, T, stream_view<T, index_type>>;
    using update_type = std::conditional_t<moves_along_stream, stream<T, index_type>, aligned_vector<T>>;

    void move(std::span<T> parameters) {
        if constexpr (moves_along_stream)
            state_.optimizer.step(parameters, update_.view(), 1);
        else
            state_.optimizer.step(parameters, std::span<const T>(update_), 1);
    }

    Policy policy_;
    compressed_state<codec_type, optimizer_type> state_;
    update_type update_;
};

/// Bulk-synchronous descent along compressed steps: each rank sends its gradient times the rate, through `codec`. So
/// the residual of error feedback holds steps, and stays right when the rate changes.
///
/// The optimizer moves along the mean of the received steps, at rate 1, so its momentum is the same on all ranks.
/// Entries that the codec leaves out do not enter the momentum until they are sent. Since they come late, less momentum
/// is needed: at a density of 1 %, 0.7 trains better than 0.9 with the same peak / (1 - momentum). An optimizer's
/// weight decay is not multiplied by `rate`. When a step is skipped, the contributions of the other ranks return to
/// their codecs. Models `Strategy`. Cost per step: one all-reduce of compressed streams over `topology`. Memory: the
/// optimizer's, the codec's, one update: of the entries that arrived, where the optimizer takes a stream. Errors:
/// `bind` throws `mismatch` on all ranks if one has another optimizer, rate or clipping (`lockstep`). Source: Renggli
/// et al., SparCML, SC 2019, Algorithm 1, with a mean for the sum.
template <Topology Shape, class Codec, Optimizer Descent, RateSchedule Rate, Clipping Clip = no_clip>
struct compressed_bsp {
    static constexpr const char* name = "compressed_bsp";
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = false;
    static_assert(
        Descent::is_linear,
        "rill::train::compressed_bsp: a step of the optimizer (adam) does not scale with the gradient, and what "
        "travels is the gradient times the rate; use train::sgd or train::bsp");

    Shape topology{};
    Codec codec{};
    Descent optimizer{};
    Rate rate{};
    Clip clip{};  ///< of each rank's own gradient

    template <std::floating_point T = float, class Net>
    bound_compressed_bsp<Net, compressed_bsp, T> bind(Net& net, std::span<const layer> layers,
                                                      const group_options& options = {}) const {
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const compressed_bsp&, const compressed_bsp&) = default;
};

template <class S, class C, class D, class R>
compressed_bsp(S, C, D, R) -> compressed_bsp<S, C, D, R>;
template <class S, class C, class D, class R, class P>
compressed_bsp(S, C, D, R, P) -> compressed_bsp<S, C, D, R, P>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/consensus_distance.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// How far the models of all ranks are apart: √(1/P Σ ‖x_i − x̄‖²), where x̄ is the mean of all models, which it writes
/// to `mean`. For systems in which each rank has a model of its own, as in gossip.
///
/// Collective. All ranks get the same bits. Cost: an all-reduce of the model and one of a number. Errors: as in
/// `all_reduce`.
template <class Group, std::floating_point T>
double consensus_distance(Group& workers, std::span<const T> model, std::span<T> mean) {
    RILL_EXPECTS(model.size() == mean.size(), "consensus_distance: room for the mean of all models");
    all_reduce(workers, model, mean, aggregate::mean{});
    double squares = 0;
    for (std::size_t i = 0; i < model.size(); ++i) {
        const double apart = static_cast<double>(model[i]) - static_cast<double>(mean[i]);
        squares += apart * apart;
    }
    const std::span<double> sum(&squares, 1);
    all_reduce(workers, sum, sum);
    return std::sqrt(squares / workers.size());
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/linear_loss.hpp

// Losses of a linear model: functions of its score and the sample's label.

namespace rill { inline namespace RILL_ABI { namespace train {

/// A convex function of a score: `value(score, label)`, and `slope(score, label)`, its derivative by the score, or one
/// of its derivatives where it has a kink.
///
/// `is_classifier`: a label says which of two classes a sample is of, and a score above 0 stands for the second.
template <class L>
concept LinearLoss = requires(double score, float label) {
    { L::value(score, label) } -> std::same_as<double>;
    { L::slope(score, label) } -> std::same_as<double>;
    { L::slope(float{}, label) } -> std::same_as<float>;
    requires std::same_as<decltype(L::is_classifier), const bool>;
    { L::name } -> std::convertible_to<const char*>;
};

/// A loss that has a slope everywhere. `curvature`: no second derivative is larger.
template <class L>
concept SmoothLoss = LinearLoss<L> && std::same_as<decltype(L::curvature), const double>;

namespace detail {
/// Labels of two classes are 1 and -1, or 1 and 0.
template <std::floating_point T>
constexpr T sign_of(float label) {
    return label > 0 ? T{1} : T{-1};
}
}  // namespace detail

/// `log(1 + exp(-y·score))`, where y is 1 for a label above 0, else -1.
struct logistic {
    static constexpr const char* name = "logistic";
    static constexpr bool is_classifier = true;
    static constexpr double curvature = 0.25;

    /// Without overflow of the exponential. A NaN gives NaN.
    template <std::floating_point T>
    static double value(T score, float label) {
        const double m = static_cast<double>(detail::sign_of<T>(label) * score);
        return (m < 0 ? -m : 0.0) + std::log1p(std::exp(-std::abs(m)));
    }
    template <std::floating_point T>
    static T slope(T score, float label) {
        const T y = detail::sign_of<T>(label);
        return -y / (T{1} + std::exp(y * score));
    }
};

/// `max(0, 1 - y·score)`, where y is 1 for a label above 0, else -1: the loss of a support vector machine. Samples
/// beyond the margin have slope 0.
struct hinge {
    static constexpr const char* name = "hinge";
    static constexpr bool is_classifier = true;

    template <std::floating_point T>
    static double value(T score, float label) {
        const T distance = T{1} - detail::sign_of<T>(label) * score;
        return distance <= 0 ? 0.0 : static_cast<double>(distance);  // a NaN stays
    }
    template <std::floating_point T>
    static T slope(T score, float label) {
        const T y = detail::sign_of<T>(label);
        return y * score >= T{1} ? T{0} : std::isnan(score) ? score : -y;
    }
};

/// `½ (score - label)²`.
struct squared {
    static constexpr const char* name = "squared";
    static constexpr bool is_classifier = false;
    static constexpr double curvature = 1;

    template <std::floating_point T>
    static double value(T score, float label) {
        const double distance = static_cast<double>(score) - static_cast<double>(label);
        return 0.5 * distance * distance;
    }
    template <std::floating_point T>
    static T slope(T score, float label) {
        return score - static_cast<T>(label);
    }
};

static_assert(SmoothLoss<logistic> && LinearLoss<hinge> && SmoothLoss<squared>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/sparse_dataset.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// One sample: strictly ascending columns and, in the same order, their values. Without values each of them is 1.
struct sparse_row {
    std::span<const std::uint32_t> columns{};
    std::span<const float> values{};

    std::size_t size() const { return columns.size(); }
    float value(std::size_t i) const { return values.empty() ? 1.0F : values[i]; }
};

/// Labelled samples of which most features are 0: compressed rows (CSR). Memory: 4 bytes per feature that is not 0, 4
/// more where values differ from 1, and 12 per row.
struct sparse_dataset {
    std::size_t rows = 0;
    std::size_t columns = 0;               ///< at most 2³² - 1
    std::vector<std::uint64_t> starts{0};  ///< rows + 1; row i holds the entries `[starts[i], starts[i + 1])`
    std::vector<std::uint32_t> indices{};  ///< of each entry, its column, ascending within a row
    std::vector<float> values{};           ///< of each entry; empty if all are 1
    std::vector<float> labels{};           ///< rows: a class, a sign or a number, as the objective takes it

    sparse_row row(std::size_t i) const {
        const auto begin = static_cast<std::size_t>(starts[i]);
        const std::size_t count = static_cast<std::size_t>(starts[i + 1]) - begin;
        return {std::span(indices).subspan(begin, count),
                values.empty() ? std::span<const float>() : std::span(values).subspan(begin, count)};
    }
};

/// Some rows of a `sparse_dataset`.
using sparse_batch = batch_of<sparse_dataset>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/sparse_columns.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// The samples of a `sparse_dataset` by columns (CSC). Memory: as the dataset, with 8 bytes per column.
struct sparse_columns {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<std::uint64_t> starts{0};  ///< columns + 1; column c holds the entries `[starts[c], starts[c + 1])`
    std::vector<std::uint32_t> indices{};  ///< of each entry, its row, ascending within a column
    std::vector<float> values{};           ///< of each entry; empty if all are 1
    std::vector<float> labels{};           ///< rows

    /// Whether the numbers of columns, entries and labels fit each other.
    bool is_consistent() const {
        return starts.size() == columns + 1 && starts.back() == indices.size() && labels.size() == rows &&
               (values.empty() || values.size() == indices.size());
    }
    /// Of the content. Cost: a pass over it.
    std::uint64_t fingerprint() const {
        const auto sum = [](const auto& all) { return checksum(std::as_bytes(std::span(all))); };
        return mix64(sum(starts), sum(indices), sum(values), sum(labels));
    }

    /// Strictly ascending rows and their values; without values each of them is 1.
    struct column_view {
        std::span<const std::uint32_t> rows{};
        std::span<const float> values{};

        std::size_t size() const { return rows.size(); }
        float value(std::size_t i) const { return values.empty() ? 1.0F : values[i]; }
    };
    column_view column(std::size_t c) const {
        const auto begin = static_cast<std::size_t>(starts[c]);
        const std::size_t count = static_cast<std::size_t>(starts[c + 1]) - begin;
        return {std::span(indices).subspan(begin, count),
                values.empty() ? std::span<const float>() : std::span(values).subspan(begin, count)};
    }
};

/// Sorts the entries by columns, in two passes.
inline sparse_columns by_columns(const sparse_dataset& data) {
    RILL_EXPECTS(data.rows <= std::numeric_limits<std::uint32_t>::max(), "by_columns: rows that 32 bits can number");
    sparse_columns made{.rows = data.rows,
                        .columns = data.columns,
                        .starts = std::vector<std::uint64_t>(data.columns + 1),
                        .indices = std::vector<std::uint32_t>(data.indices.size()),
                        .values = std::vector<float>(data.values.size()),
                        .labels = data.labels};
    for (const std::uint32_t c : data.indices) ++made.starts[c + 1];
    for (std::size_t c = 0; c < data.columns; ++c) made.starts[c + 1] += made.starts[c];
    std::vector<std::uint64_t> next(made.starts.begin(), made.starts.end() - 1);
    for (std::size_t r = 0; r < data.rows; ++r) {
        const sparse_row row = data.row(r);
        for (std::size_t i = 0; i < row.size(); ++i) {
            const auto at = static_cast<std::size_t>(next[row.columns[i]]++);
            made.indices[at] = static_cast<std::uint32_t>(r);
            if (!made.values.empty()) made.values[at] = row.value(i);
        }
    }
    return made;
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/coordinate_descent.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `coordinate_descent` bound to one rank: its replica of the model, and the score of each sample.
template <class Net, class Policy, std::floating_point T>
class bound_coordinate_descent {
    using loss_type = typename Policy::loss_type;

  public:
    /// `data` must outlive it.
    bound_coordinate_descent(Net& net, const Policy& policy, const sparse_columns& data, const group_options& options)
        : workers_(net, policy.topology, options),
          policy_(policy),
          data_(&data),
          own_(part_of(net.rank())),
          parameters_(data.columns + 1, T{0}),
          scores_(data.rows, T{0}),
          curvatures_(own_.size()),
          moved_(parameters_.size()),
          all_moved_(parameters_.size()) {
        rill::detail::require_option(policy.coordinates > 0, "train::coordinate_descent: coordinates",
                                     policy.coordinates, "at least 1", net.rank());
        rill::detail::require_option(policy.l2 >= 0 && std::isfinite(policy.l2), "train::coordinate_descent: l2",
                                     policy.l2, "at least 0 and finite", net.rank());
        RILL_EXPECTS(data.rows > 0, "coordinate_descent: a sample");
        RILL_EXPECTS(data.is_consistent(),
                     "coordinate_descent: columns, entries and labels as `by_columns` gives them");
        const auto are_finite = [](const std::vector<float>& all) {
            return !kernel::find_non_finite(std::span<const float>(all));
        };
        RILL_EXPECTS(are_finite(data.values) && are_finite(data.labels),
                     "coordinate_descent: values and labels that are finite");
        constexpr option_names names{
            {"number of coordinates in a step", "l2", "loss or coding of the moves", "number of samples", "samples"}};
        agree(workers_, names,
              {option_hash(policy.coordinates), option_hash(std::bit_cast<std::uint64_t>(policy.l2)),
               option_hash(mix64(fingerprint(loss_type::name), policy.codes.fingerprint())), option_hash(data.rows),
               option_hash(data.fingerprint())});
        if (!own_.empty())
            order_.emplace(sampler::options{.rows = own_.size(),
                                            .batch = std::min(policy.coordinates, own_.size()),
                                            .key = random_key{options.seed}.derive(net.rank())});
        measure();
    }

    auto& workers() { return workers_; }
    /// The weights of the columns, and the bias.
    std::span<const T> parameters() const { return span_of(parameters_); }
    /// Of each sample. They are kept up to date, the same bits on all ranks.
    std::span<const T> scores() const { return span_of(scores_); }

    /// The mean loss of all samples and the penalty; a pass over the samples and the parameters.
    double loss() const {
        double sum = 0, squares = 0;
        for (std::size_t i = 0; i < scores_.size(); ++i) sum += loss_type::value(scores_[i], data_->labels[i]);
        for (const T weight : parameters().first(data_->columns))
            squares += static_cast<double>(weight) * static_cast<double>(weight);
        return sum / static_cast<double>(data_->rows) + 0.5 * policy_.l2 * squares;
    }

    /// Moves the next coordinates of each rank. Collective.
    receipt step() {
        choose();
        moved_.clear({0, parameters_.size()});
        for (const std::uint32_t c : chosen_) moved_.push_back(c, step_of(c));
        const receipt done = all_gather(workers_, moved_, all_moved_, policy_.codes);
        if (const auto bad = kernel::find_non_finite<T>(all_moved_.values())) refuse(all_moved_.indices()[*bad]);
        for (std::size_t e = 0; e < all_moved_.count(); ++e) move(all_moved_.indices()[e], all_moved_.values()[e]);
        return done;
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "parameters", parameters_);
        out.add(std::string(prefix) + "scores", scores_);
        out.add(std::string(prefix) + "operation", workers_.operation_number());
        out.add(std::string(prefix) + "samples", data_->fingerprint());
        if (order_) order_->save(out, prefix);
    }
    /// Collective: all ranks restore what they saved after one step, and go on with the same coordinates and the same
    /// rounding if their group has the name and the seed of the saved one. Throws `data_error` on all ranks, and
    /// changes nothing, if the file of one does not fit its samples, its place or the files of the others. Pass what
    /// `checkpoint::open` returns.
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        auto parameters = parameters_;
        auto scores = scores_;
        auto order = order_;
        std::uint64_t operation = 0;
        std::exception_ptr refused;
        try {
            in.read(std::string(prefix) + "parameters", parameters);
            in.read(std::string(prefix) + "scores", scores);
            operation = in.template read<std::uint64_t>(std::string(prefix) + "operation");
            const std::string samples = std::string(prefix) + "samples";
            if (in.count(samples) != 0 && in.template read<std::uint64_t>(samples) != data_->fingerprint())
                throw data_error(in.path(), "section \"" + samples + "\"", "the samples of this run", "others");
            if (order) order->restore(in, prefix);
        } catch (const std::exception&) {
            refused = std::current_exception();  // thrown after the other ranks have been told
        }
        const std::uint64_t sum =
            mix64(checksum(std::as_bytes(std::span(parameters))), checksum(std::as_bytes(std::span(scores))));
        const auto add_up = [&](std::span<std::int64_t> table) {
            detail::without_number(workers_, [&] { all_reduce(workers_, table, table); });
        };
        detail::require_common_files({in.path(), workers_.rank(), workers_.size(), refused, operation, sum},
                                     "operation", add_up);
        parameters_.swap(parameters);
        scores_.swap(scores);
        order_ = std::move(order);
        workers_.resume_at(operation);
    }

  private:
    bool is_bias(std::size_t c) const { return c == data_->columns; }

    segment part_of(rank_t rank) const {
        return split(data_->columns + 1, static_cast<std::size_t>(workers_.size()), static_cast<std::size_t>(rank));
    }

    [[noreturn, gnu::cold, gnu::noinline]] void refuse(std::size_t c) const {
        rank_t owner = 0;
        while (part_of(owner).end <= c) ++owner;
        throw invalid_value(abort_notice{
            .kind = failure::invalid_value,
            .culprit = owner,
            .reason = text_of({"coordinate_descent: rank ", owner, ": the move of coordinate ", c, " is not finite"})});
    }

    /// Curvatures along the own coordinates, and by how much steps are shortened because many are made at once.
    void measure() {
        const auto rows = static_cast<double>(data_->rows);
        for (std::size_t c = own_.begin; c < own_.end; ++c) {
            double squares = is_bias(c) ? rows : 0;
            if (!is_bias(c)) {
                const auto column = data_->column(c);
                for (std::size_t i = 0; i < column.size(); ++i)
                    squares += static_cast<double>(column.value(i)) * static_cast<double>(column.value(i));
            }
            curvatures_[c - own_.begin] = loss_type::curvature * squares / rows + (is_bias(c) ? 0 : policy_.l2);
        }
        std::vector<std::uint32_t> entries(data_->rows, 1);  // the bias
        for (const std::uint32_t row : data_->indices) ++entries[row];
        const double most = *std::max_element(entries.begin(), entries.end()),
                     all = static_cast<double>(data_->columns) + 1;
        double at_once = 0;
        for (rank_t rank = 0; rank < workers_.size(); ++rank) {
            at_once += static_cast<double>(std::min(policy_.coordinates, part_of(rank).size()));
        }
        shortening_ = all > 1 ? 1 + (most - 1) * (at_once - 1) / (all - 1) : 1;
    }

    void choose() {
        chosen_.clear();
        if (!order_) return;
        for (const std::uint32_t each : order_->next())
            chosen_.push_back(static_cast<std::uint32_t>(own_.begin) + each);
        std::sort(chosen_.begin(), chosen_.end());
    }

    T step_of(std::uint32_t c) const {
        const double curvature = curvatures_[c - own_.begin];
        // No entries, or values near 0, and no penalty: a move could be infinite.
        if (curvature < static_cast<double>(std::numeric_limits<T>::min())) return T{0};
        double slope = 0;
        if (is_bias(c)) {
            for (std::size_t i = 0; i < scores_.size(); ++i)
                slope += static_cast<double>(loss_type::slope(scores_[i], data_->labels[i]));
        } else {
            const auto column = data_->column(c);
            for (std::size_t i = 0; i < column.size(); ++i) {
                const std::uint32_t row = column.rows[i];
                slope += static_cast<double>(loss_type::slope(scores_[row], data_->labels[row])) *
                         static_cast<double>(column.value(i));
            }
        }
        slope /= static_cast<double>(data_->rows);
        if (!is_bias(c)) slope += policy_.l2 * static_cast<double>(parameters_[c]);
        return static_cast<T>(-slope / (shortening_ * curvature));
    }

    void move(std::uint32_t c, T by) {
        if (by == T{0}) return;
        parameters_[c] += by;
        if (is_bias(c)) {
            for (T& score : scores_) score += by;
            return;
        }
        const auto column = data_->column(c);
        for (std::size_t i = 0; i < column.size(); ++i) scores_[column.rows[i]] += by * static_cast<T>(column.value(i));
    }

    group<Net, decltype(Policy::topology)> workers_;
    Policy policy_;
    const sparse_columns* data_;
    segment own_;
    aligned_vector<T> parameters_, scores_;
    std::vector<double> curvatures_;
    double shortening_ = 1;
    std::optional<sampler> order_;
    std::vector<std::uint32_t> chosen_;
    stream<T> moved_, all_moved_;
};

/// Stochastic coordinate descent of a linear model on sparse data: in each step every rank moves some of its own
/// coordinates, and all ranks learn of all moves.
///
/// Rank r owns the coordinates `split(columns + 1, P, r)`, the last of which is the bias, and takes them in random
/// order. It needs the samples of all ranks, by columns. A coordinate moves by its slope over (its curvature times β),
/// where β = 1 + (ω - 1)(τ - 1) / columns for τ coordinates at once and rows of at most ω entries; so the expected loss
/// falls although the ranks do not know of each other's moves. `codes` may round moves, which are then the same on all
/// ranks.
///
/// Cost per step: an `all_gather` of streams over `topology`; the entries of the own columns once, those of all moved
/// columns once. Memory: parameters, a score per sample, twice the moves. Deterministic: parameters and scores are the
/// same bits on all ranks. A column whose values T can hardly tell from 0 does not move. Errors: `bind` throws
/// `mismatch` if ranks differ in options, in the loss, or in the samples; `step` throws as `all_gather` does, and
/// `invalid_value` on all ranks, naming the owner, if a move is too large for T; the model is then as before the step.
/// Source: SparCML (Renggli et al., SC 2019), section 8.2, after Wright, Coordinate descent algorithms, Mathematical
/// Programming 2015; the length of a step: Richtárik and Takáč, Parallel coordinate descent methods for big data
/// optimization, Mathematical Programming 2016.
template <SmoothLoss Loss = logistic, Topology Shape = topology::recursive_doubling>
struct coordinate_descent {
    using loss_type = Loss;

    Shape topology{};
    std::size_t coordinates = 100;  ///< that each rank moves in a step
    double l2 = 0;                  ///< the penalty ½ l2 · |w|² of the weights without the bias
    coding codes{};                 ///< of the moves

    /// `data`: the same on all ranks; it must outlive what is bound. Collective.
    template <std::floating_point T = float, class Net>
    bound_coordinate_descent<Net, coordinate_descent, T> bind(Net& net, const sparse_columns& data,
                                                              const group_options& options = {}) const {
        return {net, *this, data, options};
    }
    friend constexpr bool operator==(const coordinate_descent&, const coordinate_descent&) = default;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/detail/beside.hpp

namespace rill { inline namespace RILL_ABI { namespace train::detail {

/// An activity of this rank that runs one job at a time beside the rank's own work.
template <ConcurrentTransport Net>
class beside {
  public:
    explicit beside(Net& net) : jobs_(net), done_(net), thread_(net.spawn([this] { serve(); })) {}
    beside(const beside&) = delete;
    beside& operator=(const beside&) = delete;
    ~beside() { jobs_.close(); }

    /// Runs `job()` beside `work()`, returns when both are over, and throws what either has thrown: of `work`, if both
    /// have. Once all contexts have ended, `job()` comes first, to throw why.
    template <class Job, class Work>
    void run(const Job& job, Work&& work) {
        if (has_ended_) {
            job();
            work();
            return;
        }
        call_ = [](const void* of) { (*static_cast<const Job*>(of))(); };
        job_ = &job;
        failure_ = nullptr;
        done_.reset();
        jobs_.push(0);
        try {
            work();
        } catch (...) {
            wait();
            throw;
        }
        wait();
        if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

  private:
    void serve() noexcept {
        try {
            while (jobs_.pop(deadline::never)) {
                try {
                    call_(job_);
                } catch (...) {
                    failure_ = std::current_exception();
                }
                done_.set();
            }
        } catch (...) {  // all contexts have ended
        }
    }
    void wait() {
        try {
            done_.wait(deadline::never);
        } catch (...) {  // all contexts have ended, and the job with them
            has_ended_ = true;
            jobs_.close();
            thread_.join();
            if (failure_ == nullptr) throw;
        }
    }

    void (*call_)(const void*) = nullptr;
    const void* job_ = nullptr;
    std::exception_ptr failure_{};
    bool has_ended_ = false;  ///< all contexts, and the activity with them
    typename Net::template queue<int> jobs_;
    typename Net::event done_;
    typename Net::activity thread_;
};

}}}  // namespace rill::RILL_ABI::train::detail

// ===== rill/train/every.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// One exchange for so many steps, at least one: after the last of them.
struct every {
    std::uint64_t steps = 1;

    static constexpr const char* name = "every";

    /// Whether models are exchanged in this step, from 0.
    constexpr bool exchanges(std::uint64_t step) const { return (step + 1) % steps == 0; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("steps", steps);
    }
    friend constexpr bool operator==(const every&, const every&) = default;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/step_order.hpp

// In which order a rank moves its model along its gradient and mixes it with those of others.

namespace rill { inline namespace RILL_ABI { namespace train {

/// A policy that binds to a number of parameters, and then makes steps of calls of `move()` and `mix()`, which change
/// the model in place. `move` goes along the gradient at the model as it was when the step began.
///
/// `is_beside`, which may be left out: it mixes before it moves, and the mixing may run while the gradient is computed.
/// `mixes_all`: it needs whole models mixed, in each step, over a symmetric mixing that keeps its neighbours; then
/// `require_mixing(mixing, size, rank)` throws `contract_violation` unless the mixing suits.
template <class O, class T = float>
concept StepOrder = Regular<O> && requires(const O& policy, std::span<T> model, void (*change)()) {
    { O::name } -> std::convertible_to<const char*>;
    { O::mixes_all } -> std::convertible_to<bool>;
    { policy.template bind<T>(std::size_t{}) } -> std::copyable;
    policy.template bind<T>(std::size_t{}).step(model, change, change);
};

/// Moves, then mixes: what is mixed has the newest gradient in it.
struct mix_after {
    static constexpr const char* name = "mix_after";
    static constexpr bool mixes_all = false;

    template <std::floating_point T>
    static mix_after bind(std::size_t) {
        return {};
    }
    template <class T, class Move, class Mix>
    static void step(std::span<T>, Move&& move, Mix&& mix) {
        move();
        mix();
    }
    friend constexpr bool operator==(mix_after, mix_after) = default;
};

/// Mixes, then moves along the gradient at the model before: the gradient depends on no message of the step. Source:
/// D-PSGD (Lian et al. 2017), algorithm 1.
struct mix_before {
    static constexpr const char* name = "mix_before";
    static constexpr bool mixes_all = false;

    template <std::floating_point T>
    static mix_before bind(std::size_t) {
        return {};
    }
    template <class T, class Move, class Mix>
    static void step(std::span<T>, Move&& move, Mix&& mix) {
        mix();
        move();
    }
    friend constexpr bool operator==(mix_before, mix_before) = default;
};

/// `mix_before`, whose messages travel while the gradient is computed: for a `ConcurrentTransport`. The same bits; a
/// model more of memory.
struct mix_beside : mix_before {
    static constexpr const char* name = "mix_beside";
    static constexpr bool is_beside = true;

    template <std::floating_point T>
    static mix_before bind(std::size_t) {
        return {};
    }
    friend constexpr bool operator==(mix_beside, mix_beside) = default;
};

/// A `d_squared` bound to one rank's model.
template <std::floating_point T>
class bound_d_squared {
  public:
    explicit bound_d_squared(std::size_t dimension) : before_(dimension) {}

    template <class Move, class Mix>
    void step(std::span<T> model, Move&& move, Mix&& mix) {
        for (std::size_t i = 0; i < model.size(); ++i) before_[i] = has_begun_ != 0 ? model[i] - before_[i] : T{};
        move();
        for (std::size_t i = 0; i < model.size(); ++i) {
            const T moved = model[i];
            model[i] = moved + before_[i];
            before_[i] = moved;
        }
        has_begun_ = 1;
        mix();
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "d_squared.before", span_of(before_));
        out.add(std::string(prefix) + "d_squared.has_begun", std::span<const std::uint8_t>(&has_begun_, 1));
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        auto before = before_;
        auto has_begun = has_begun_;
        in.read(std::string(prefix) + "d_squared.before", span_of(before));
        in.read(std::string(prefix) + "d_squared.has_begun", std::span<std::uint8_t>(&has_begun, 1));
        before_.swap(before);
        has_begun_ = has_begun;
    }

  private:
    aligned_vector<T> before_;  ///< the model of the step before, moved and not mixed
    std::uint8_t has_begun_ = 0;
};

/// x' = W (2x - x₋ - γ g + γ₋ g₋), where x₋, γ₋ and g₋ are those of the step before: ranks whose data differ come to
/// the minimum of all, as they do with the mean of all gradients. Each gradient has the rate of its own step, so that
/// the mean of all models moves by γ times the mean of all gradients where the rate falls, too (the paper's is
/// constant). The eigenvalues of W must be above -⅓, as with `topology::ring_neighbours{.own = 0.5}`. Memory: one
/// model. Source: D² (Tang et al. 2018), algorithm 1.
struct d_squared {
    static constexpr const char* name = "d_squared";
    static constexpr bool mixes_all = true;

    template <std::floating_point T>
    static bound_d_squared<T> bind(std::size_t dimension) {
        return bound_d_squared<T>(dimension);
    }
    template <Mixing M>
    static void require_mixing(const M& mixing, int size, rank_t rank) {
        rill::detail::require_option(topology::eigenvalues_above(mixing, size, -1.0 / 3),
                                     "train::d_squared: the mixing", std::string_view(M::name),
                                     "one whose eigenvalues are above -1/3, such as ring_neighbours{.own = 0.5}", rank);
    }
    friend constexpr bool operator==(d_squared, d_squared) = default;
};

static_assert(StepOrder<mix_after> && StepOrder<mix_before> && StepOrder<mix_beside> && StepOrder<d_squared>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/decentralized.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

/// The gossip of a `decentralized` strategy. `coordinated_mixing` has one of its own.
template <class Net, class Mix>
class mixing_session {
  public:
    template <class Group>
    mixing_session(Group& workers, const Mix& mixing) : models_(workers, mixing) {}

    gossip<Net, Mix>& models() { return models_; }
    const gossip<Net, Mix>& models() const { return models_; }

    static constexpr bool contributes() { return true; }
    /// Whether there is a next exchange. Asked in each step, also between exchanges.
    static constexpr bool next() { return true; }
    static void end() {}
    template <class Group>
    void resume_at(Group&, const Mix&, std::uint64_t round) {
        models_.resume_at(round);
    }

  private:
    gossip<Net, Mix> models_;
};

}  // namespace detail

/// What a bound `decentralized` saves. Of push-sum the model and its weight, of which the parameters are the quotient.
template <class Codec, class Descent, class Order, std::floating_point T>
struct decentralized_state {
    Codec codec;
    Descent optimizer;
    Order order;
    aligned_vector<T> pushed{};
    double weight = 1;

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        const std::string name(prefix);
        optimizer.save(out, prefix);
        rill::detail::save_part(out, name + "codec", codec);
        if constexpr (Persistent<Order>) order.save(out, prefix);
        out.add(name + "pushed", span_of(pushed));
        out.add(name + "weight", std::span<const double>(&weight, 1));
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        const std::string name(prefix);
        decentralized_state restored = *this;
        restored.optimizer.restore(in, prefix);
        rill::detail::restore_part(in, name + "codec", restored.codec);
        if constexpr (Persistent<Order>) restored.order.restore(in, prefix);
        in.read(name + "pushed", span_of(restored.pushed));
        in.read(name + "weight", std::span<double>(&restored.weight, 1));
        *this = std::move(restored);
    }
};

/// A `decentralized` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_decentralized {
    using mixing_type = decltype(Policy::mixing);
    using codec_type = decltype(std::declval<const Policy&>().codec.template bind<T>(std::size_t{}));
    using optimizer_type = decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}));
    using order_type = decltype(std::declval<const Policy&>().order.template bind<T>(std::size_t{}));
    static constexpr bool pushes = !mixing_type::is_doubly_stochastic;
    static constexpr bool is_beside = requires { requires decltype(Policy::order)::is_beside; };
    static_assert(!is_beside || ConcurrentTransport<Net>,
                  "rill::train::decentralized: mix_beside needs activities beside the caller, and the transport is no "
                  "ConcurrentTransport; use mix_before, which gives the same bits");

  public:
    bound_decentralized(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : policy_(checked(policy, net)),
          workers_(net, topology::recursive_doubling{}, options),
          gossip_(workers_, policy_.mixing),
          state_{policy.codec.template bind<T>(dimension), policy.optimizer.template bind<T>(dimension),
                 policy.order.template bind<T>(dimension), aligned_vector<T>(pushes ? dimension : 0)},
          mixed_(is_beside && !pushes ? dimension : 0),
          activity_(net) {}

    auto& workers() { return workers_; }
    /// What the last exchange did: whose models were mixed, with which weights.
    const round_receipt& latest() const { return latest_; }
    const codec_type& codec() const { return state_.codec; }

    bool contributes() const { return gossip_.contributes(); }
    /// All ranks call it after the same step.
    void end() { has_ended_ = true; }
    auto& state() { return state_; }
    const auto& state() const { return state_; }
    std::uint64_t position() const { return models().round(); }
    void resume_at(std::uint64_t position) {
        gossip_.resume_at(workers_, policy_.mixing, position);
        has_ended_ = false;
        has_mixed_ = false;
    }
    void add_up(std::span<std::int64_t> table) { all_reduce(workers_, table, table); }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number, Compute&& compute) {
        const bool exchanges = policy_.exchange.exchanges(number);
        stopwatch clock(workers_.net());
        if (has_ended_) gossip_.end();
        if (!has_ended_ && !has_mixed_) has_ended_ = !gossip_.next();
        step_record record{.step = number, .is_over = has_ended_};
        if (has_ended_) return record;
        const double rate = rate_at<T>(policy_.rate, number);
        if (!has_mixed_) begin_at(parameters, number);
        const duration waited = clock.lap();
        const std::span<T> model = pushes ? span_of(state_.pushed) : parameters;
        const auto move = [&] {
            [[maybe_unused]] const auto updating = named_span(workers_.net(), "update");
            clock.lap();
            if (record.invalid.empty()) {
                policy_.clip.apply(gradient);
                state_.optimizer.step(model, std::span<const T>(gradient), rate);
            }
            record.phases.update = clock.lap();
        };
        const auto descend = [&] {
            record.loss = compute();
            if (const auto bad = kernel::find_non_finite(std::span<const T>(gradient)))
                record.invalid.push_back({workers_.rank(), *bad});
            record.phases.compute = clock.lap();
        };
        if constexpr (is_beside) {
            mix_beside_of(model, exchanges, descend);
            record.phases.exchange = clock.lap();
            move();
        } else {
            descend();
            const auto mix = [&] {
                if (!exchanges) return;
                clock.lap();
                latest_ = models().mix(model, state_.codec);
                record.phases.exchange = clock.lap();
            };
            state_.order.step(model, move, mix);
        }
        if (exchanges) record.exchange = static_cast<const receipt&>(latest_);
        if constexpr (pushes) {
            state_.weight = models().weight();
            models().debias(model, parameters);
        }
        record.phases.exchange = record.phases.exchange + waited;
        record.elapsed = clock.total();
        return record;
    }

  private:
    auto& models() { return gossip_.models(); }
    const auto& models() const { return gossip_.models(); }
    static const Policy& checked(const Policy& policy, Net& net) {
        using order = decltype(Policy::order);
        rill::detail::require_option(policy.exchange.steps > 0, "train::every: steps", policy.exchange.steps,
                                     "at least 1", net.rank());
        detail::require_clipping(policy.clip);
        if constexpr (order::mixes_all) {
            order::require_mixing(policy.mixing, net.size(), net.rank());
            rill::detail::require_option(policy.exchange.steps == 1, "train::decentralized: steps of `every`",
                                         policy.exchange.steps, "1, as the order mixes in each step", net.rank());
        }
        return policy;
    }
    /// Mixes beside `descend`, which reads the parameters: so a copy of them is mixed. A step that an exception of
    /// `descend` has left has mixed: when it is made again it only descends.
    template <class Descend>
    void mix_beside_of(std::span<T> model, bool exchanges, Descend&& descend) {
        if (!exchanges) return descend();
        if (has_mixed_) {
            descend();
        } else {
            if constexpr (!pushes) std::copy(model.begin(), model.end(), mixed_.begin());
            const std::span<T> mixes = pushes ? model : span_of(mixed_);
            const auto mix = [&] {
                latest_ = models().mix(mixes, state_.codec);
                has_mixed_ = true;
            };
            activity_.run(mix, descend);
        }
        has_mixed_ = false;
        if constexpr (!pushes) std::copy(mixed_.begin(), mixed_.end(), model.begin());
    }
    /// The first step of a run begins with what all ranks have alike.
    void begin_at(std::span<const T> parameters, std::uint64_t number) {
        if constexpr (DifferenceCompressor<codec_type, T>)
            if (!state_.codec.has_started()) state_.codec.start_at(parameters);
        if constexpr (pushes) {
            models().resume_at(models().round(), state_.weight);  // it may have been restored
            if (number == 0 && !has_mixed_) std::copy(parameters.begin(), parameters.end(), state_.pushed.begin());
        }
    }

    struct no_activity {
        explicit no_activity(Net&) {}
    };
    template <class N, bool has>
    struct activity_of {
        using type = no_activity;
    };
    template <ConcurrentTransport N>
    struct activity_of<N, true> {
        using type = detail::beside<N>;
    };
    using activity_type = typename activity_of<Net, is_beside>::type;
    using group_type = decltype(group{std::declval<Net&>(), topology::recursive_doubling{}, group_options{}});

    Policy policy_;
    group_type workers_;
    detail::mixing_session<Net, mixing_type> gossip_;
    decentralized_state<codec_type, optimizer_type, order_type, T> state_;
    round_receipt latest_{};
    aligned_vector<T> mixed_;  ///< what is mixed beside the gradient
    [[no_unique_address]] activity_type activity_;
    bool has_ended_ = false;
    bool has_mixed_ = false;  ///< in the step under way, which an exception has left
};

/// Descent in which each rank has a model of its own, moves it along its own gradient, and mixes it with those of a few
/// others: decentralised descent by `gossip`.
///
///     train::decentralized{ring_neighbours{}, sgd, rate};                                       // D-PSGD
///     train::decentralized{random_matching{}, sgd, rate, random_mask{.density = 0.01}};         // as SAPS-PSGD
///     train::decentralized{ring_neighbours{}, sgd, rate, difference{top_k{.density = 0.01}, 0.05}};  // CHOCO-SGD
///     train::decentralized{ring_neighbours{.own = 0.5}, sgd, rate, keep_all{}, d_squared{}};    // D²
///     train::decentralized{coordinated_mixing{fast, coordinated{}}, sgd, rate, random_mask{}};  // SAPS-PSGD
///
/// `order`: whether a model is mixed after its step, before it, beside its gradient, or as D² says. `exchange`:
/// `every{k}` makes k local steps for one exchange. Over a mixing that is only column stochastic the parameters are the
/// estimates of push-sum (SGP).
///
/// Models `Strategy`. Replicas are not equal: each rank's parameters are its own, and a gradient that is not finite
/// skips its own rank's step alone; that rank mixes all the same. All ranks make equally many steps, and call `end`
/// after the same one. Differences and push-sum begin with the parameters of the first step, alike on all ranks.
/// Checkpoints: all ranks save between the same two steps. Cost per step: that of `gossip::mix`. Memory: that of the
/// optimizer, the codec and the order; a model more for push-sum.
template <Mixing Mix, Optimizer Descent, RateSchedule Rate, class Codec = compress::keep_all,
          StepOrder Order = mix_after, Clipping Clip = no_clip>
struct decentralized {
    static constexpr const char* name = "decentralized";
    static constexpr bool replicas_equal = false;
    static constexpr bool is_layered = false;

    Mix mixing{};
    Descent optimizer{};
    Rate rate{};
    Codec codec{};
    Order order{};
    every exchange{};
    Clip clip{};  ///< of each rank's own gradient

    template <std::floating_point T = float, class Net>
    bound_decentralized<Net, decentralized, T> bind(Net& net, std::span<const layer> layers,
                                                    const group_options& options = {}) const {
        static_assert(!Order::mixes_all || std::same_as<Codec, compress::keep_all>,
                      "rill::train::decentralized: the order needs whole models mixed, and the codec sends a part; use "
                      "compress::keep_all, or another order");
        static_assert(!Order::mixes_all || (Mix::is_symmetric && Mix::keeps_neighbours && Mix::is_doubly_stochastic),
                      "rill::train::decentralized: the order needs a symmetric mixing that keeps its neighbours; use "
                      "topology::ring_neighbours or metropolis");
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const decentralized&, const decentralized&) = default;
};

template <class M, class D, class R>
decentralized(M, D, R) -> decentralized<M, D, R>;
template <class M, class D, class R, class C>
decentralized(M, D, R, C) -> decentralized<M, D, R, C>;
template <class M, class D, class R, class C, class O>
decentralized(M, D, R, C, O) -> decentralized<M, D, R, C, O>;
template <class M, class D, class R, class C, class O>
decentralized(M, D, R, C, O, every) -> decentralized<M, D, R, C, O>;
template <class M, class D, class R, class C, class O, class L>
decentralized(M, D, R, C, O, every, L) -> decentralized<M, D, R, C, O, L>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/coordinated_mixing.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A mixing that rank 0 coordinates, for `decentralized`: training goes on without workers that fail, and both models
/// of a pair are mixed or none.
///
///     train::decentralized{train::coordinated_mixing{fast, coordinated{.rounds = 1000}}, sgd, rate, mask}
///
/// A step that exchanges is a round of `gossip` with a coordinator. The run is over after the step of the last round,
/// or after the step after which all ranks call `end`. On a rank that is out a step throws `timeout`; the others go on.
/// A rank 0 that does not train makes no step of its own: its first one ends with the run. A record's traffic leaves
/// out the joining, which happens in the first step, and on rank 0 what it sends and receives as the coordinator.
///
/// Checkpoints: all ranks save between the same two steps, so rank 0 trains. `restore` ends the gossip that has begun,
/// if any, and begins another one, collectively: so all ranks live. Ranks that were out take part again. Pairs are then
/// those of a run in which all have taken part; links that exchanges have updated (`coordinated::link_weight`) begin as
/// they were given.
template <Mixing Mix>
struct coordinated_mixing {
    static constexpr const char* name = "coordinated_mixing";
    static constexpr bool is_doubly_stochastic = Mix::is_doubly_stochastic;
    static constexpr bool is_symmetric = Mix::is_symmetric;
    static constexpr bool keeps_neighbours = Mix::keeps_neighbours;

    Mix mixing{};
    coordinated by{};

    auto bind(int size, random_key key) const { return mixing.bind(size, key); }
    friend bool operator==(const coordinated_mixing&, const coordinated_mixing&) = default;
};

template <class M>
coordinated_mixing(M, coordinated) -> coordinated_mixing<M>;

namespace detail {

template <class Net, class Mix>
class mixing_session<Net, coordinated_mixing<Mix>> {
    using gossip_type = gossip<Net, rill::detail::with_coordinator<Mix>>;

  public:
    template <class Group>
    mixing_session(Group& workers, const coordinated_mixing<Mix>& mixing)
        : made_(make(workers, mixing)), contributes_(mixing.by.trains || workers.rank() != 0) {}

    gossip_type& models() { return *made_; }
    const gossip_type& models() const { return *made_; }

    bool contributes() const { return contributes_; }
    bool next() {
        has_begun_ = true;
        return made_->next();
    }
    /// All ranks call it between the same two rounds.
    void end() {
        made_->leave();
        while (has_begun_ && made_->next()) continue;
    }
    template <class Group>
    void resume_at(Group& workers, const coordinated_mixing<Mix>& mixing, std::uint64_t round) {
        if (has_begun_) {
            end();
            made_ = make(workers, mixing);
            has_begun_ = false;
        }
        made_->resume_at(round);
    }

  private:
    template <class Group>
    static std::unique_ptr<gossip_type> make(Group& workers, const coordinated_mixing<Mix>& mixing) {
        return std::make_unique<gossip_type>(workers, mixing.mixing, mixing.by);
    }

    std::unique_ptr<gossip_type> made_;
    bool contributes_;
    bool has_begun_ = false;
};

}  // namespace detail

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/detail/metrics_file.hpp

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace rill { inline namespace RILL_ABI { namespace train { namespace detail {

/// A file to which each line is written as a whole, as soon as it is there. Of a line for which there is no room
/// nothing stays.
class metrics_file {
  public:
    metrics_file(std::string path, bool append)
        : path_(std::move(path)), file_(path_, O_WRONLY | O_CREAT | (append ? O_APPEND : O_TRUNC)) {
        if (!file_.is_open()) file_failed(path_, "cannot be opened");
    }

    bool is_empty() const {
        struct stat status {};
        return ::fstat(file_.get(), &status) == 0 && status.st_size == 0;
    }

    void write(std::string_view line) {
        const std::size_t done = write_all(file_.get(), std::as_bytes(std::span(line)));
        if (done == line.size()) return;
        const int reason = errno;
        if (done > 0) take_back(static_cast<off_t>(done));
        errno = reason;
        file_failed(path_, "cannot be written");
    }

  private:
    /// Removes a part of a line, behind which the next line would stand. A pipe or a device keeps it. Where a file is
    /// appended to, its position is unknown until something has been written.
    void take_back(off_t bytes) {
        const off_t end = ::lseek(file_.get(), 0, SEEK_CUR) - bytes;
        if (end >= 0 && ::ftruncate(file_.get(), end) == 0) ::lseek(file_.get(), end, SEEK_SET);
    }

    std::string path_;
    descriptor file_;
};

/// The shortest text from which the same number is read.
template <class Number>
void append_number(std::string& line, Number value) {
    char text[32];
    line.append(text, std::to_chars(std::begin(text), std::end(text), value).ptr);
}

/// Calls `visit(name, value)` for each metric of a step, in their order in a file: numbers, then texts.
template <class Visit>
void visit_metrics(const step_record& record, Visit&& visit) {
    const receipt& exchange = record.exchange;
    const auto seconds = [](duration d) { return static_cast<double>(d.ns) / 1e9; };  // rounded once
    visit("step", record.step);
    visit("loss", record.loss);
    visit("seconds", seconds(record.elapsed));
    visit("compute_seconds", seconds(record.phases.compute));
    visit("exchange_seconds", seconds(record.phases.exchange));
    visit("update_seconds", seconds(record.phases.update));
    visit("contributors", exchange.contributors);
    visit("weight", exchange.weight);
    visit("age", exchange.age);
    visit("rounds", exchange.rounds);
    visit("messages_sent", exchange.wire.messages_sent);
    visit("bytes_sent", exchange.wire.bytes_sent);
    visit("messages_received", exchange.wire.messages_received);
    visit("bytes_received", exchange.wire.bytes_received);
    visit("choice", record.choice);
    visit("skipped", record.skipped() ? describe_skip(record) : std::string());
}

}}}}  // namespace rill::RILL_ABI::train::detail

// ===== rill/train/metrics_options.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// How the metrics of steps are written to a file.
struct metrics_options {
    std::string label{};  ///< unless empty, the first column of each line: the name of the run, or the rank
    bool append = false;  ///< goes on behind what the file holds, as after a restored checkpoint

    friend bool operator==(const metrics_options&, const metrics_options&) = default;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/csv_metrics.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Writes the record of each step to a file as one line of comma-separated values, below a line of names.
///
/// A hook for `trainer`; each rank needs a file of its own. A line is in the file when the call returns. Texts that
/// hold commas, quotes or line breaks are quoted (RFC 4180, with `\n`). Throws `data_error` where the file cannot be
/// opened or written; no part of that line stays in the file. Cost: one write to the file for each step; it allocates
/// nothing but for a skipped step.
class csv_metrics {
  public:
    explicit csv_metrics(const std::string& path, metrics_options options = {})
        : file_(path, options.append), label_(std::move(options.label)) {
        if (file_.is_empty()) write_names();
    }

    void operator()(const step_record& record) {
        line_.clear();
        if (!label_.empty()) add(label_);
        detail::visit_metrics(record, [&](std::string_view, const auto& value) { add(value); });
        end_line();
    }

  private:
    void write_names() {
        if (!label_.empty()) add(std::string_view("label"));
        detail::visit_metrics({}, [&](std::string_view name, const auto&) { add(name); });
        end_line();
    }
    void end_line() {
        line_.back() = '\n';
        file_.write(line_);
    }

    template <class Number>
        requires std::is_arithmetic_v<Number>
    void add(Number value) {
        detail::append_number(line_, value);
        line_ += ',';
    }
    void add(std::string_view text) {
        if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
            line_.append(text);
        } else {
            line_ += '"';
            for (const char each : text) line_.append(each == '"' ? 2 : 1, each);
            line_ += '"';
        }
        line_ += ',';
    }

    detail::metrics_file file_;
    std::string label_;
    std::string line_;
};

static_assert(StepHook<csv_metrics>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/sgd.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

template <std::floating_point T>
class bound_sgd;

/// Stochastic gradient descent, with momentum where `momentum > 0`:
/// `g += weight_decay·w; v = momentum·v + g; w -= rate·v`, or `w -= rate·(g + momentum·v)` after Nesterov.
///
/// Models `Optimizer`. For weight decay that stays out of the velocity see `decoupled_decay`. Memory: one value for
/// each parameter, and none without momentum.
struct sgd {
    static constexpr const char* name = "sgd";
    static constexpr bool is_linear = true;

    double momentum = 0;
    double weight_decay = 0;
    bool nesterov = false;

    template <std::floating_point T = float>
    bound_sgd<T> bind(std::size_t dimension) const {
        rill::detail::require_option(momentum >= 0 && static_cast<T>(momentum) < 1, "train::sgd: momentum", momentum,
                                     "in [0, 1) in the type of the parameters");
        rill::detail::require_option(weight_decay >= 0 && std::isfinite(static_cast<T>(weight_decay)),
                                     "train::sgd: weight_decay", weight_decay,
                                     "at least 0 and finite in the type of the parameters");
        rill::detail::require_option(!nesterov || momentum > 0, "train::sgd: momentum", momentum,
                                     "above 0 where nesterov is set");
        return bound_sgd<T>(*this, dimension);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("momentum", momentum);
        visit("weight_decay", weight_decay);
        visit("nesterov", nesterov);
    }
    friend constexpr bool operator==(const sgd&, const sgd&) = default;
};

/// One worker's optimizer: the policy and the velocity of each parameter. Without momentum there is no velocity.
template <std::floating_point T>
class bound_sgd {
  public:
    bound_sgd(const sgd& policy, std::size_t dimension)
        : policy_(policy), dimension_(dimension), velocity_(policy.momentum > 0 ? dimension : 0, T{0}) {}

    const sgd& policy() const { return policy_; }
    std::span<const T> velocity() const { return velocity_; }

    /// Coordinate-wise and in place; allocates nothing.
    void step(std::span<T> parameters, std::span<const T> gradient, double rate) {
        RILL_EXPECTS(parameters.size() == dimension_ && gradient.size() == dimension_, "sgd: bound to this dimension");
        const scales by = scales_at(rate);
        std::size_t i = 0;
        for (; i + block <= dimension_; i += block) move<block>(&parameters[i], &gradient[i], i, by);
        for (; i < dimension_; ++i) move<1>(&parameters[i], &gradient[i], i, by);
    }

    /// A step along a gradient that is 0 where the stream has no entry. Without momentum and weight decay it touches
    /// only the parameters that have an entry.
    template <IndexType Index>
    void step(std::span<T> parameters, const stream_view<T, Index>& gradient, double rate) {
        if (gradient.is_dense()) return step(parameters, gradient.values(), rate);
        RILL_EXPECTS(parameters.size() == dimension_ && gradient.range().size() == dimension_,
                     "sgd: bound to this dimension");
        const scales by = scales_at(rate);
        if (by.momentum == 0 && by.decay == 0)
            for (std::size_t e = 0; e < gradient.count(); ++e)
                parameters[gradient.indices()[e]] -= by.rate * gradient.values()[e];
        else
            move_by_blocks(parameters, gradient, by);
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        out.add(std::string(prefix) + "velocity", velocity_);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        in.read(std::string(prefix) + "velocity", velocity_);
    }

  private:
    static constexpr std::size_t block = kernel::detail::block;

    struct scales {
        T rate, decay, momentum;
        bool nesterov;
    };
    scales scales_at(double rate) const {
        return {static_cast<T>(rate), static_cast<T>(policy_.weight_decay), static_cast<T>(policy_.momentum),
                policy_.nesterov};
    }

    /// Moves `Count` coordinates from `first` on. No two of the arrays overlap.
    template <std::size_t Count>
    void move(T* __restrict parameters, const T* __restrict gradient, std::size_t first, const scales& by) {
        if (by.momentum == 0)
            for (std::size_t j = 0; j < Count; ++j) parameters[j] -= by.rate * (gradient[j] + by.decay * parameters[j]);
        else if (by.nesterov)
            accelerate<Count, true>(parameters, gradient, &velocity_[first], by);
        else
            accelerate<Count, false>(parameters, gradient, &velocity_[first], by);
    }

    template <std::size_t Count, bool nesterov>
    static void accelerate(T* __restrict parameters, const T* __restrict gradient, T* __restrict velocity, scales by) {
        for (std::size_t j = 0; j < Count; ++j) {
            const T slope = gradient[j] + by.decay * parameters[j];
            velocity[j] = by.momentum * velocity[j] + slope;
            parameters[j] -= by.rate * (nesterov ? slope + by.momentum * velocity[j] : velocity[j]);
        }
    }

    /// Moves all coordinates block by block; the entries of the stream are first spread into a block of zeros.
    template <IndexType Index>
    void move_by_blocks(std::span<T> parameters, const stream_view<T, Index>& gradient, const scales& by) {
        T dense[block] = {};
        const auto indices = gradient.indices();
        std::size_t entry = 0;
        for (std::size_t i = 0; i < dimension_; i += block) {
            const std::size_t end = std::min(i + block, dimension_), first = entry;
            for (; entry < indices.size() && indices[entry] < end; ++entry)
                dense[indices[entry] - i] = gradient.values()[entry];
            if (end - i == block)
                move<block>(&parameters[i], dense, i, by);
            else
                for (std::size_t j = i; j < end; ++j) move<1>(&parameters[j], &dense[j - i], j, by);
            for (std::size_t e = first; e < entry; ++e) dense[indices[e] - i] = T{0};
        }
    }

    sgd policy_;
    std::size_t dimension_;
    aligned_vector<T> velocity_;
};

static_assert(Optimizer<sgd>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/decoupled_decay.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `decoupled_decay` bound to one worker.
template <class Inner, std::floating_point T>
class bound_decoupled_decay {
  public:
    bound_decoupled_decay(Inner inner, double decay) : inner_(std::move(inner)), decay_(decay) {}

    const Inner& inner() const { return inner_; }

    void step(std::span<T> parameters, std::span<const T> gradient, double rate) {
        shrink(parameters, rate);
        inner_.step(parameters, gradient, rate);
    }
    /// Shrinks all parameters, those without an entry too.
    template <IndexType Index>
    void step(std::span<T> parameters, const stream_view<T, Index>& gradient, double rate)
        requires StreamOptimizer<Inner, T, stream_view<T, Index>>
    {
        shrink(parameters, rate);
        inner_.step(parameters, gradient, rate);
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        inner_.save(out, prefix);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        inner_.restore(in, prefix);
    }

  private:
    void shrink(std::span<T> parameters, double rate) const {
        const T kept = static_cast<T>(1 - rate * decay_);
        for (T& each : parameters) each *= kept;
    }

    Inner inner_;
    double decay_;
};

/// Weight decay that does not pass through the optimizer's moments: `w -= rate·decay·w`, then the optimizer's step.
///
/// Models `Optimizer`; `decoupled_decay{adam{}, 0.01}` is AdamW. In `compressed_bsp` the optimizer runs at rate 1, so
/// `decay` is there what all rates times the decay would be. Source: Loshchilov and Hutter, Decoupled Weight Decay
/// Regularization, ICLR 2019, Algorithms 1 and 2.
template <Optimizer Inner>
struct decoupled_decay {
    static constexpr const char* name = "decoupled_decay";
    static constexpr bool is_linear = Inner::is_linear;

    Inner optimizer{};
    double decay = 0;

    template <std::floating_point T = float>
    auto bind(std::size_t dimension) const {
        rill::detail::require_option(decay >= 0 && std::isfinite(static_cast<T>(decay)),
                                     "train::decoupled_decay: decay", decay,
                                     "at least 0 and finite in the type of the parameters");
        auto inner = optimizer.template bind<T>(dimension);
        return bound_decoupled_decay<decltype(inner), T>(std::move(inner), decay);
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("optimizer", fingerprint_if_named(optimizer));
        visit("decay", decay);
    }
    friend constexpr bool operator==(const decoupled_decay&, const decoupled_decay&) = default;
};

template <class O>
decoupled_decay(O, double) -> decoupled_decay<O>;

static_assert(Optimizer<decoupled_decay<sgd>>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/dense_product.hpp

#include <Eigen/Core>

namespace rill { inline namespace RILL_ABI { namespace train {

/// A row-major matrix that somebody else owns, or its transpose.
template <class T>
struct matrix_view {
    T* data = nullptr;
    std::size_t rows = 0;
    std::size_t columns = 0;
    bool is_transposed = false;  ///< `data` holds the transpose: columns × rows

    constexpr matrix_view transposed() const { return {data, columns, rows, !is_transposed}; }
    constexpr std::size_t row_stride() const { return is_transposed ? 1 : columns; }
    constexpr std::size_t column_stride() const { return is_transposed ? rows : 1; }
};

namespace detail {

// Tiles whose size is bounded at compile time make Eigen keep its packing buffers (80 KiB of float) on the stack, leave
// OpenMP's threads alone, and ignore the cache sizes that it finds at run time. So a product allocates nothing, and one
// binary gives the same bits on every machine with the same instruction set. Measured for 32 × 784 × 512:
// 5 to 30 % slower than the unbounded product.
template <class T>
struct tile {
    static constexpr int rows = 32;
    static constexpr int columns = 128;
    static constexpr int depth = 512 / static_cast<int>(sizeof(T));
};

template <int Order, int MostRows, int MostColumns, class T>
auto tile_of(const matrix_view<T>& view, std::size_t row, std::size_t column) {
    using matrix = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Order, MostRows, MostColumns>;
    using mapped = std::conditional_t<std::is_const_v<T>, const matrix, matrix>;
    const auto index = [](std::size_t i) { return static_cast<Eigen::Index>(i); };
    return Eigen::Map<mapped, Eigen::Unaligned, Eigen::OuterStride<>>(
        view.data + row * view.row_stride() + column * view.column_stride(),
        index(std::min<std::size_t>(MostRows, view.rows - row)),
        index(std::min<std::size_t>(MostColumns, view.columns - column)),
        Eigen::OuterStride<>(index(view.is_transposed ? view.column_stride() : view.row_stride())));
}

template <int LeftOrder, int RightOrder, class T>
void multiply_tiles(matrix_view<const T> left, matrix_view<const T> right, matrix_view<T> product) {
    using t = tile<T>;
    for (std::size_t i = 0; i < product.rows; i += t::rows)
        for (std::size_t j = 0; j < product.columns; j += t::columns) {
            auto target = tile_of<Eigen::RowMajor, t::rows, t::columns>(product, i, j);
            for (std::size_t k = 0; k < left.columns; k += t::depth) {
                const auto a = tile_of<LeftOrder, t::rows, t::depth>(left, i, k);
                const auto b = tile_of<RightOrder, t::depth, t::columns>(right, k, j);
                if (k == 0)
                    target.noalias() = a * b;
                else
                    target.noalias() += a * b;
            }
        }
}

}  // namespace detail

/// `product = left · right`, where at most one factor is transposed. Allocates nothing, starts no thread; needs about
/// 100 KiB of stack.
template <std::floating_point T>
void multiply(matrix_view<const T> left, matrix_view<const T> right, matrix_view<T> product) {
    if (left.is_transposed)
        detail::multiply_tiles<Eigen::ColMajor, Eigen::RowMajor>(left, right, product);
    else if (right.is_transposed)
        detail::multiply_tiles<Eigen::RowMajor, Eigen::ColMajor>(left, right, product);
    else
        detail::multiply_tiles<Eigen::RowMajor, Eigen::RowMajor>(left, right, product);
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/descent.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `descent` bound to the parameters of one replica.
template <class Policy, std::floating_point T>
class bound_descent {
    using optimizer_type = decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}));

  public:
    bound_descent(const Policy& policy, std::size_t dimension)
        : optimizer_(policy.optimizer.template bind<T>(dimension)),
          rate_(policy.rate),
          scales_by_weight_(policy.scales_by_weight) {}

    void apply(std::span<T> model, std::span<const T> fold, double weight, std::uint64_t round) {
        optimizer_.step(model, fold, scaled_rate(round, weight));
    }
    /// By a fold that is 0 where the stream has no entry.
    template <IndexType Index>
    void apply(std::span<T> model, const stream_view<T, Index>& fold, double weight, std::uint64_t round)
        requires StreamOptimizer<optimizer_type, T, stream_view<T, Index>>
    {
        optimizer_.step(model, fold, scaled_rate(round, weight));
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        optimizer_.save(out, prefix);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        optimizer_.restore(in, prefix);
    }

  private:
    double scaled_rate(std::uint64_t round, double weight) const {
        return rate_at<T>(rate_, round) * (scales_by_weight_ ? weight : 1.0);
    }

    optimizer_type optimizer_;
    decltype(Policy::rate) rate_;
    bool scales_by_weight_;
};

/// Moves the model by a step of `optimizer` along the mean of the gradients, at the rate of the round times the weight
/// of all contributions: k gradients in one step move the model about as far as k steps of one gradient.
///
/// Models `Update`. Where all P ranks contribute with weight 1, a step is one of `bsp` at P times this rate. Memory:
/// that of the optimizer. Source: linear scaling of the rate (Goyal et al. 2017), as RNA uses it.
template <Optimizer Descent = sgd, RateSchedule Rate = constant_rate>
struct descent {
    static constexpr const char* name = "descent";

    using fold_type = aggregate::mean;

    Descent optimizer{};
    Rate rate{};
    bool scales_by_weight = true;  ///< else a step is one along the mean, however many contribute to it

    template <std::floating_point T>
    bound_descent<descent, T> bind(std::size_t dimension) const {
        return {*this, dimension};
    }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("optimizer", fingerprint_if_named(optimizer));
        visit("rate", fingerprint_if_named(rate));
        visit("scales_by_weight", scales_by_weight);
    }
    friend constexpr bool operator==(const descent&, const descent&) = default;
};

template <class D, class R>
descent(D, R) -> descent<D, R>;
template <class D, class R>
descent(D, R, bool) -> descent<D, R>;

static_assert(Update<descent<>, float>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/grouped_replica.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Which ranks work together, and how the groups share a model.
struct grouping {
    view alike{};             ///< the ranks of this rank's group; see `group_by_speed`
    std::uint64_t every = 4;  ///< rounds of a group between its meetings with the shared model
    server_options servers{.servers = 1, .dedicated = false, .timeout = seconds(3600)};  ///< of the shared model
};

/// A `grouped_replica` bound to one rank.
template <class Net, class Within, class Shared, std::floating_point T>
class bound_grouped_replica {
    using replica_type = decltype(std::declval<const Within&>().template bind<T>(
        std::declval<subgroup<Net>&>(), std::span<const T>(), group_options{}));

  public:
    using element_type = T;

    bound_grouped_replica(Net& net, const Within& within, const grouping& groups, const Shared& shared,
                          std::span<const T> first, const group_options& options)
        : every_(groups.every), center_(net, groups.servers, straggler::unbounded{}, shared, first) {
        if (center_.is_server()) return;
        alike_.emplace(net, groups.alike);
        replica_ = std::unique_ptr<replica_type>(new replica_type(within.template bind<T>(*alike_, first, options)));
    }

    /// Once the group's run has ended, waits for the other groups; `model` is then that of all. Throws what has ended
    /// the group alone; the next call then serves and waits as after the end, so that the other groups go on.
    template <class Model>
    std::optional<held_version> pull(Model&& model) {
        if (replica_ != nullptr && !is_over_) {
            try {
                join();
                if (const auto held = replica_->pull(model)) return held;
            } catch (const error&) {  // a call that is refused ends nothing
                leave();
                throw;
            }
        }
        is_over_ = true;
        if (ends_all_) center_.end();
        while (center_.pull(model)) continue;
        return std::nullopt;
    }
    template <class Gradient>
    void push(const Gradient& gradient, const held_version& held) {
        worker().push(gradient, held);
    }
    std::optional<push_fate> fate() { return replica_ == nullptr ? std::nullopt : replica_->fate(); }
    /// Before the first `pull` it joins the groups, as `pull` and `end` do, which is collective in the group.
    void retire() {
        join();
        worker().retire();
    }
    /// Ends the run of this rank's group, and then those of the others, each at its next meeting with the shared model.
    void end() {
        join();
        worker().end();
        ends_all_ = true;
    }
    /// How many rounds this rank's group has made, 0 if it has failed before it joined the others; on a dedicated
    /// server how many pushes have moved its part.
    std::uint64_t version() const {
        if (replica_ == nullptr) return center_.version();
        return is_over_ && !has_joined_ ? 0 : replica_->version();
    }

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        center_.save(out, prefix);
        if (replica_ != nullptr) replica_->save(out, std::string(prefix) + "group.");
    }
    template <class Reader, class Also = void (*)()>
    void restore(
        const Reader& in, std::string_view prefix, Also&& also = [] {}) {
        std::exception_ptr refused, refused_to_other;
        try {
            if (replica_ != nullptr) replica_->restore(in, std::string(prefix) + "group.");
        } catch (const error& failed) {
            // The culprit tells the ranks of other groups: numbers in this failure are those of the group.
            const bool is_own = failed.culprit() == no_rank || failed.culprit() == std::as_const(*alike_).rank();
            (is_own ? refused : refused_to_other) = std::current_exception();
        } catch (const std::exception&) {
            refused = std::current_exception();
        }
        center_.restore(in, prefix, [&] {
            also();
            if (refused != nullptr) std::rethrow_exception(refused);
        });
        if (refused_to_other != nullptr) std::rethrow_exception(refused_to_other);
    }

  private:
    /// After a failure of the group: this rank pushes no more to the center either.
    void leave() {
        is_over_ = true;
        try {
            center_.retire();
        } catch (const error&) {  // the center has failed, too; its next pull says so
        }
    }
    /// Not earlier, so that it can be restored before.
    void join() {
        if (replica_ == nullptr || has_joined_) return;
        replica_->through(center_, {.every = every_});
        has_joined_ = true;
    }
    replica_type& worker() {
        RILL_EXPECTS(replica_ != nullptr, "grouped_replica: a dedicated server pushes nothing and ends no run");
        return *replica_;
    }

    std::uint64_t every_;
    parameter_server<Net, T, straggler::unbounded, Shared> center_;
    std::optional<subgroup<Net>> alike_{};
    std::unique_ptr<replica_type> replica_{};  ///< null on a dedicated server
    bool has_joined_ = false;
    bool ends_all_ = false;
    bool is_over_ = false;  ///< the run of this rank's group
};

/// Training in groups, each by rounds of its own, that share a model on servers (`partial_all_reduce::through`).
///
/// `within`: the plan of each group, a `partial_replica`. `shared`: how a group's change moves the shared model. Models
/// `ReplicaPlan`. All ranks have the same model once all groups have ended.
template <class Within, class Shared = aggregate::add>
struct grouped_replica {
    static constexpr const char* name = "grouped_replica";

    Within within{};
    grouping groups{};
    Shared shared{};

    template <std::floating_point T = float, class Net>
    bound_grouped_replica<Net, Within, Shared, T> bind(Net& net, std::span<const T> first,
                                                       const group_options& options = {}) const {
        return {net, within, groups, shared, first, options};
    }
};

template <class W>
grouped_replica(W, grouping) -> grouped_replica<W>;
template <class W, class S>
grouped_replica(W, grouping, S) -> grouped_replica<W, S>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/gzip_source.hpp

#include <zlib.h>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Reads a file from its beginning, and unpacks it if its first two bytes are those of gzip.
///
/// Bytes after the compressed stream and a truncated stream are a `data_error` with the offset in the file. (zlib's own
/// gzread ignores the former and reports the latter late.)
class gzip_source {
  public:
    explicit gzip_source(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rb")) {
        if (!file_) throw data_error(path_, "cannot be opened: " + std::generic_category().message(errno));
        is_packed_ = fill() && stream_.avail_in >= 2 && input_[0] == 0x1F && input_[1] == 0x8B;
        if (is_packed_ && inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
    }
    gzip_source(const gzip_source&) = delete;
    gzip_source& operator=(const gzip_source&) = delete;
    ~gzip_source() {
        if (is_packed_) inflateEnd(&stream_);
    }

    const std::string& path() const { return path_; }
    bool is_packed() const { return is_packed_; }
    /// Unpacked bytes read or skipped so far.
    std::uint64_t offset() const { return offset_; }

    /// An upper bound of the unpacked size of the file: deflate packs at most 1032 to 1.
    std::uint64_t capacity() {
        const long here = std::ftell(file_.get());
        std::fseek(file_.get(), 0, SEEK_END);
        const auto size = static_cast<std::uint64_t>(std::max(std::ftell(file_.get()), 0L));
        std::fseek(file_.get(), here, SEEK_SET);
        return is_packed_ ? size * 1032 : size;
    }

    /// Fills `out`; returns fewer bytes only at the end of the file.
    std::size_t read(byte_span out) {
        std::size_t done = 0;
        while (done < out.size() && !ended_) done += is_packed_ ? unpack(out.subspan(done)) : copy(out.subspan(done));
        offset_ += done;
        return done;
    }

    /// Goes on `count` bytes later, or at the end of the file: at no cost in a plain file; a packed one must be
    /// unpacked up to there.
    void skip(std::uint64_t count) {
        if (!is_packed_) count -= skip_plain(count);
        std::vector<std::byte> scratch(static_cast<std::size_t>(std::min(count, std::uint64_t{1} << 16)));
        while (count > 0 && !ended_)
            count -= read(
                byte_span(scratch).first(static_cast<std::size_t>(std::min<std::uint64_t>(count, scratch.size()))));
    }

  private:
    struct closer {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };

    bool fill() {
        stream_.next_in = input_.data();
        stream_.avail_in = static_cast<uInt>(std::fread(input_.data(), 1, input_.size(), file_.get()));
        consumed_ += stream_.avail_in;
        if (std::ferror(file_.get()) != 0)
            throw data_error(path_, "cannot be read: " + std::generic_category().message(errno));
        return stream_.avail_in > 0;
    }
    std::uint64_t position() const { return consumed_ - stream_.avail_in; }

    std::size_t copy(byte_span out) {
        if (stream_.avail_in == 0 && !fill()) ended_ = true;
        const std::size_t count = std::min(out.size(), std::size_t{stream_.avail_in});
        if (count > 0) std::memcpy(out.data(), stream_.next_in, count);
        stream_.next_in += count;
        stream_.avail_in -= static_cast<uInt>(count);
        return count;
    }

    /// Skips what is read already, then seeks; returns how many bytes, fewer than `count` where the file cannot seek.
    std::uint64_t skip_plain(std::uint64_t count) {
        const std::uint64_t held = std::min<std::uint64_t>(count, stream_.avail_in);
        const std::uint64_t beyond = std::min(count - held, std::max(capacity(), consumed_) - consumed_);
        if (beyond > 0 && std::fseek(file_.get(), static_cast<long>(beyond), SEEK_CUR) != 0) return 0;
        stream_.next_in += held;
        stream_.avail_in -= static_cast<uInt>(held);
        consumed_ += beyond;
        offset_ += held + beyond;
        return held + beyond;
    }

    std::size_t unpack(byte_span out) {
        if (stream_.avail_in == 0 && !fill())
            throw data_error(path_, position(), "the rest of the gzip stream", "the end of the file");
        const std::size_t room = std::min(out.size(), std::size_t{1} << 30);
        stream_.next_out = reinterpret_cast<Bytef*>(out.data());
        stream_.avail_out = static_cast<uInt>(room);
        const int status = inflate(&stream_, Z_NO_FLUSH);
        if (status == Z_MEM_ERROR) throw std::bad_alloc();
        if (status != Z_OK && status != Z_BUF_ERROR && status != Z_STREAM_END)
            throw data_error(path_, position(), "a valid gzip stream",
                             stream_.msg != nullptr ? stream_.msg : "damaged bytes");
        if (status == Z_STREAM_END) next_member();
        return room - stream_.avail_out;
    }

    // A gzip file may be several streams, one after the other.
    void next_member() {
        if (stream_.avail_in == 0 && !fill())
            ended_ = true;
        else
            inflateReset(&stream_);
    }

    std::string path_;
    std::unique_ptr<std::FILE, closer> file_;
    std::vector<Bytef> input_ = std::vector<Bytef>(std::size_t{1} << 16);
    z_stream stream_{};
    std::uint64_t consumed_ = 0;
    std::uint64_t offset_ = 0;
    bool is_packed_ = false;
    bool ended_ = false;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/idx.hpp

// The IDX format of the MNIST family of data sets: two zero bytes, a type, the number of dimensions, the dimensions as
// big-endian 32-bit integers, then the values.

namespace rill { inline namespace RILL_ABI { namespace train {

/// The contents of an IDX file of unsigned bytes; the last dimension varies fastest.
struct idx_array {
    std::vector<std::size_t> dimensions;
    std::vector<std::uint8_t> values;
};

namespace detail {

inline void read_exactly(gzip_source& source, byte_span out, const char* what) {
    const std::uint64_t begin = source.offset();
    const std::size_t got = source.read(out);
    if (got < out.size())
        throw data_error(source.path(), begin + got, std::to_string(out.size() - got) + " more bytes of " + what,
                         "the end of the data");
}

inline void read_idx_magic(gzip_source& source, std::size_t rank) {
    std::uint8_t magic[4];
    read_exactly(source, std::as_writable_bytes(std::span(magic)), "the IDX magic number");
    const auto require = [&](std::uint64_t at, std::size_t expected, const char* what) {
        if (magic[at] != expected)
            throw data_error(source.path(), at, what + (" " + std::to_string(expected)), std::to_string(magic[at]));
    };
    require(0, 0, "an IDX magic number that starts with");
    require(1, 0, "an IDX magic number that goes on with");
    require(2, 8, "element type (8 is unsigned byte)");
    require(3, rank, "number of dimensions");
}

inline std::size_t read_idx_dimension(gzip_source& source, std::uint64_t most) {
    const std::uint64_t at = source.offset();
    std::uint8_t b[4];
    read_exactly(source, std::as_writable_bytes(std::span(b)), "a dimension");
    const std::size_t size = std::size_t{b[0]} << 24 | std::size_t{b[1]} << 16 | std::size_t{b[2]} << 8 | b[3];
    if (size == 0 || size > most)
        throw data_error(source.path(), at, "a dimension from 1 to " + std::to_string(most) + " (by the file's size)",
                         std::to_string(size));
    return size;
}

}  // namespace detail

/// Reads an IDX file of unsigned bytes with `rank` dimensions, plain or gzip, and validates all of it.
///
/// Memory is bounded by the unpacked size of the file, even if its header claims more. Throws `data_error`.
inline idx_array read_idx(const std::string& path, std::size_t rank) {
    gzip_source source(path);
    detail::read_idx_magic(source, rank);
    idx_array array;
    std::uint64_t total = 1;
    const std::uint64_t capacity = source.capacity();
    for (std::size_t d = 0; d < rank; ++d) {
        array.dimensions.push_back(detail::read_idx_dimension(source, capacity / total));
        total *= array.dimensions.back();
    }
    constexpr std::size_t least_room = std::size_t{1} << 16;
    while (array.values.size() < total) {
        const std::size_t done = array.values.size();
        const std::size_t room = std::min<std::size_t>(total, std::max(least_room, 2 * done));
        array.values.reserve(room);  // resize alone might reserve twice as much
        array.values.resize(room);
        detail::read_exactly(source, std::as_writable_bytes(std::span(array.values).subspan(done)), "values");
    }
    std::byte beyond{};
    const std::uint64_t end = source.offset();
    if (source.read({&beyond, 1}) != 0) throw data_error(path, end, "the end of the data", "more bytes");
    return array;
}

/// Images (rank 3, scaled to `[0, 1]`) with their labels (rank 1, each below `classes`). Throws `data_error`.
inline dataset read_idx_dataset(const std::string& images_path, const std::string& labels_path, int classes) {
    RILL_EXPECTS(classes > 0, "read_idx_dataset: at least one class");
    const idx_array labels = read_idx(labels_path, 1);
    const std::size_t rows = labels.dimensions[0];
    const auto wrong = std::find_if(labels.values.begin(), labels.values.end(), [&](int c) { return c >= classes; });
    if (wrong != labels.values.end())
        throw data_error(labels_path, 8 + static_cast<std::uint64_t>(wrong - labels.values.begin()),
                         "a label below " + std::to_string(classes), std::to_string(*wrong));
    const idx_array images = read_idx(images_path, 3);
    if (images.dimensions[0] != rows)
        throw data_error(images_path, 4, std::to_string(rows) + " images, as there are labels in " + labels_path,
                         std::to_string(images.dimensions[0]));

    dataset data{.rows = rows,
                 .columns = images.dimensions[1] * images.dimensions[2],
                 .classes = classes,
                 .features = aligned_vector<float>(images.values.size()),
                 .labels = {labels.values.begin(), labels.values.end()}};
    std::transform(images.values.begin(), images.values.end(), data.features.begin(),
                   [](std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0F; });
    return data;
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/json_metrics.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Writes the record of each step to a file as one JSON object on a line of its own.
///
/// A hook for `trainer`; each rank needs a file of its own. A line is in the file when the call returns. JSON has no
/// NaN and no infinity: they are `null`. Throws `data_error` where the file cannot be opened or written; no part of
/// that line stays in the file. Cost: one write to the file for each step; it allocates nothing but for a skipped step.
class json_metrics {
  public:
    explicit json_metrics(const std::string& path, metrics_options options = {})
        : file_(path, options.append), label_(std::move(options.label)) {}

    void operator()(const step_record& record) {
        line_ = "{";
        if (!label_.empty()) add("label", label_);
        detail::visit_metrics(record, [&](std::string_view name, const auto& value) { add(name, value); });
        line_.back() = '}';
        line_ += '\n';
        file_.write(line_);
    }

  private:
    template <class Value>
    void add(std::string_view name, const Value& value) {
        line_.append("\"").append(name).append("\":");
        if constexpr (std::is_floating_point_v<Value>) {
            if (std::isfinite(value))
                detail::append_number(line_, value);
            else
                line_ += "null";
        } else if constexpr (std::is_arithmetic_v<Value>) {
            detail::append_number(line_, value);
        } else {
            add_text(value);
        }
        line_ += ',';
    }

    void add_text(std::string_view text) {
        line_ += '"';
        for (const char each : text) {
            if (each == '"' || each == '\\') line_ += '\\';
            if (static_cast<unsigned char>(each) >= 0x20)
                line_ += each;
            else
                add_control(each);
        }
        line_ += '"';
    }
    void add_control(char character) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(character));
        line_ += escaped;
    }

    detail::metrics_file file_;
    std::string label_;
    std::string line_;
};

static_assert(StepHook<json_metrics>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/layer_sizes.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// How many parameters each layer has.
inline std::vector<std::size_t> layer_sizes(std::span<const layer> layers) {
    std::vector<std::size_t> sizes;
    sizes.reserve(layers.size());
    for (const layer& each : layers) sizes.push_back(each.part.size());
    return sizes;
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/lazy_l2.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Adds to `counts[c]` how many rows of the dataset have column c. The sum over the ranks is that of all data.
inline void count_columns(const sparse_dataset& data, std::span<std::int64_t> counts) {
    RILL_EXPECTS(counts.size() >= data.columns, "count_columns: a count for each column");
    for (const std::uint32_t column : data.indices) ++counts[column];
}

/// The penalty `½ strength · |w|²` of the weights, charged to the rows: each of the k rows that have a column pays for
/// its weight `½ strength · rows / k · w²`. So the mean over all rows is the whole penalty, and a batch pays for the
/// columns that it touches, without a pass over the others and without state.
///
/// A column of few rows pays much at once: a step is stable while rate · strength · rows / k, times the weight of a row
/// in the batch, stays below 2. Memory: 4 bytes per column. Source: Niu et al., Hogwild!, NIPS 2011, section 2.
class lazy_l2 {
  public:
    /// None.
    lazy_l2() = default;
    /// `counts`: how many of all `rows` have each column, the same on all ranks. Errors: `contract_violation` for a
    /// strength or a count that cannot be, which names the column.
    lazy_l2(double strength, std::span<const std::int64_t> counts, std::uint64_t rows) : factors_(counts.size()) {
        rill::detail::require_option(strength >= 0 && std::isfinite(strength), "train::lazy_l2: strength", strength,
                                     "at least 0 and finite");
        for (std::size_t c = 0; c < counts.size(); ++c) {
            if (counts[c] < 0 || static_cast<std::uint64_t>(counts[c]) > rows)
                rill::detail::refuse_option(text_of({"train::lazy_l2: the count of column ", c}),
                                            rill::detail::spelled_value(counts[c]),
                                            text_of({"from 0 to ", rows, ", the number of rows"}), no_rank);
            if (counts[c] > 0)
                factors_[c] = static_cast<float>(strength * static_cast<double>(rows) / static_cast<double>(counts[c]));
            if (!std::isfinite(factors_[c]))
                rill::detail::refuse_option("train::lazy_l2: strength", rill::detail::spelled_value(strength),
                                            text_of({"so small that its part for column ", c, " is finite"}), no_rank);
        }
    }

    bool is_none() const { return factors_.empty(); }
    std::size_t columns() const { return factors_.size(); }
    /// strength · rows / k
    float factor(std::size_t column) const { return factors_[column]; }

  private:
    std::vector<float> factors_;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/libsvm.hpp

// The text format of LIBSVM and svmlight: a sample per line, its label and its features that are not 0, such as
// "+1 3:0.5 17:1".

namespace rill { inline namespace RILL_ABI { namespace train {

/// The options of `read_libsvm`.
struct libsvm_options {
    std::size_t columns = 0;        ///< of all ranks' lines together; 0: as many as this rank's lines need
    std::uint32_t first_index = 1;  ///< how the file numbers the first column
};

namespace detail {

/// Reads a file, plain or gzip, line by line. Memory: twice the longest line, at least 128 KiB.
class line_source {
  public:
    explicit line_source(const std::string& path) : source_(path), buffer_(std::size_t{1} << 16) {}

    /// Starts at the first line that begins at `offset` or later; to be called first.
    void start_at(std::uint64_t offset) {
        if (offset == 0) return;
        source_.skip(offset - 1);
        next_ = source_.offset();
        std::string_view rest;
        next(rest);
    }

    /// The next line without its newline; valid until the next call. False at the end of the file.
    bool next(std::string_view& line) {
        begin_ = next_;
        for (std::size_t searched = 0;;) {
            const char* const from = buffer_.data() + at_;
            const void* const found = std::memchr(from + searched, '\n', end_ - at_ - searched);
            if (found != nullptr)
                return take(line, static_cast<std::size_t>(static_cast<const char*>(found) - from), 1);
            searched = end_ - at_;
            if (!fill()) return searched > 0 && take(line, searched, 0);
        }
    }

    /// Where the line that `next` has given begins, and where the next one does, in unpacked bytes.
    std::uint64_t begin() const { return begin_; }
    std::uint64_t next_begin() const { return next_; }

  private:
    bool take(std::string_view& line, std::size_t size, std::size_t newline) {
        line = {buffer_.data() + at_, size};
        at_ += size + newline;
        next_ += size + newline;
        return true;
    }

    bool fill() {
        std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
        end_ -= std::exchange(at_, 0);
        if (2 * end_ > buffer_.size()) buffer_.resize(2 * buffer_.size());
        const std::size_t got = source_.read(std::as_writable_bytes(std::span(buffer_).subspan(end_)));
        end_ += got;
        return got > 0;
    }

    gzip_source source_;
    std::vector<char> buffer_;
    std::size_t at_ = 0, end_ = 0;
    std::uint64_t begin_ = 0, next_ = 0;
};

/// Where the lines begin that belong to `rank`.
inline segment libsvm_range(const std::string& path, rank_t rank, int size) {
    if (size == 1) return {0, std::numeric_limits<std::size_t>::max()};
    gzip_source whole(path);
    whole.skip(std::numeric_limits<std::uint64_t>::max());
    return split(static_cast<std::size_t>(whole.offset()), static_cast<std::size_t>(size),
                 static_cast<std::size_t>(rank));
}

/// The number of the line that begins at `offset`, from 1.
inline std::uint64_t line_number(const std::string& path, std::uint64_t offset) {
    line_source lines(path);
    std::uint64_t number = 1;
    for (std::string_view line; lines.next_begin() < offset && lines.next(line);) ++number;
    return number;
}

/// Reads one line.
class libsvm_line {
  public:
    /// What is wrong with a line, and where.
    struct problem {
        std::size_t column;
        std::string expected, found;
    };

    libsvm_line(std::string_view text, const libsvm_options& options) : text_(text), options_(&options) {}

    /// Whether there is a sample on the line.
    bool has_sample() {
        skip_blanks();
        return !at_end();
    }

    /// Appends the sample. Throws `problem`.
    void read(sparse_dataset& to) {
        to.labels.push_back(number("a label"));
        require_blank("a blank behind the label");
        std::uint64_t least = 0;
        for (skip_blanks(); !at_end(); skip_blanks()) {
            const std::uint32_t column = read_column(least);
            least = std::uint64_t{column} + 1;
            to.columns = std::max(to.columns, static_cast<std::size_t>(least));
            to.indices.push_back(column);
            read_value(to);
        }
        to.starts.push_back(to.indices.size());
        ++to.rows;
    }

  private:
    static constexpr std::string_view blanks = " \t\r";

    bool at_end() const { return at_ == text_.size() || text_[at_] == '#'; }
    bool at_blank() const { return at_end() || blanks.find(text_[at_]) != blanks.npos; }
    void skip_blanks() {
        while (!at_end() && at_blank()) ++at_;
    }

    [[noreturn]] void fail(std::size_t at, std::string expected) const {
        std::string found;
        for (std::size_t i = at; i < text_.size() && blanks.find(text_[i]) == blanks.npos && found.size() < 40; ++i)
            found += text_[i] < ' ' || text_[i] > '~' ? '?' : text_[i];
        throw problem{at + 1, std::move(expected), found.empty() ? "the end of the line" : "\"" + found + "\""};
    }
    void require_blank(const char* expected) const {
        if (!at_blank()) fail(at_, expected);
    }

    template <class N>
    std::errc parse(N& value) {
        const char* const end = text_.data() + text_.size();
        const auto [stop, error] = std::from_chars(text_.data() + at_, end, value);
        at_ = static_cast<std::size_t>(stop - text_.data());
        return error;
    }

    /// Whether a number that no float holds is too large, not too small.
    static bool is_large(std::string_view number) {
        const std::size_t exponent_at = std::min(number.find_first_of("eE"), number.size());
        const std::string_view digits = number.substr(0, exponent_at);
        const auto point = static_cast<std::ptrdiff_t>(std::min(digits.find('.'), digits.size()));
        const auto first = static_cast<std::ptrdiff_t>(digits.find_first_of("123456789"));
        std::int32_t exponent = 0;
        std::string_view rest = number.substr(std::min(exponent_at + 1, number.size()));
        if (rest.starts_with('+')) rest.remove_prefix(1);
        if (std::from_chars(rest.data(), rest.data() + rest.size(), exponent).ec == std::errc::result_out_of_range)
            return !rest.starts_with('-');
        return point - first + exponent > 0;
    }

    /// `what`: "a label" or "a value".
    float number(const std::string& what) {
        const std::size_t begin = at_;
        if (!at_end() && text_[at_] == '+' && (at_ + 1 == text_.size() || text_[at_ + 1] != '-')) ++at_;
        const std::size_t first = at_;
        float value = 0;
        const std::errc error = parse(value);
        if (error == std::errc::result_out_of_range) {
            if (is_large(text_.substr(first, at_ - first)))
                fail(begin, what + " that a float holds (this one is too large)");
            return text_[first] == '-' ? -0.0F : 0.0F;
        }
        if (error != std::errc() || !std::isfinite(value)) fail(begin, what + " (a finite number)");
        return value;
    }

    std::uint32_t read_column(std::uint64_t least) {
        const std::size_t begin = at_;
        const std::uint64_t first = options_->first_index;
        const std::uint64_t most =
            options_->columns != 0 ? options_->columns : std::numeric_limits<std::uint32_t>::max();
        std::uint64_t index = 0;
        if (parse(index) != std::errc()) fail(begin, "the number of a column");
        if (index < first + least || index - first >= most)
            fail(begin, "a column from " + std::to_string(first + least) + " to " + std::to_string(first + most - 1) +
                            (least > 0 ? " (columns ascend)" : ""));
        return static_cast<std::uint32_t>(index - first);
    }

    void read_value(sparse_dataset& to) {
        float value = 1;
        if (at_ < text_.size() && text_[at_] == ':') {
            ++at_;
            value = number("a value");
        }
        require_blank("\":\" and a value, or a blank, behind the column");
        if (value != 1 && to.values.empty()) to.values.assign(to.indices.size() - 1, 1.0F);
        if (value != 1 || !to.values.empty()) to.values.push_back(value);
    }

    std::string_view text_;
    const libsvm_options* options_;
    std::size_t at_ = 0;
};

}  // namespace detail

/// Reads the share of `rank` of a text file in LIBSVM's format, plain or gzip.
///
/// A line holds a label and pairs `column:value` whose columns ascend; `column` alone stands for `column:1`. What
/// follows a `#` is a comment. A number too small for a float is 0; one that is too large is an error. A line belongs
/// to the rank in whose part `split(bytes, size, rank)` of the unpacked file it begins, so each line belongs to one
/// rank, and a packed file is divided as the plain one. If all values are 1, the dataset holds none. Where
/// `options.columns` is 0, ranks may find different numbers of columns: give all of them the largest (`all_reduce` with
/// `aggregate::max`).
///
/// Cost: a rank reads its own part of a plain file. A gzip file has no places to begin at: with several ranks, each of
/// them unpacks all of it to learn its size, and then again from the beginning to the end of its own part. Memory: the
/// dataset, while it grows up to three times as much, and the longest line.
/// Errors: `data_error`, which names the file, the line and the column; nothing is known of the lines of other ranks.
inline sparse_dataset read_libsvm(const std::string& path, rank_t rank = 0, int size = 1,
                                  const libsvm_options& options = {}) {
    RILL_EXPECTS(size > 0 && rank >= 0 && rank < size, "read_libsvm: a rank of the group");
    RILL_EXPECTS(options.columns <= std::numeric_limits<std::uint32_t>::max(), "read_libsvm: columns of 32 bits");
    const segment own = detail::libsvm_range(path, rank, size);
    detail::line_source lines(path);
    lines.start_at(own.begin);
    sparse_dataset data;
    for (std::string_view text; lines.next_begin() < own.end && lines.next(text);) {
        detail::libsvm_line line(text, options);
        if (!line.has_sample()) continue;
        try {
            line.read(data);
        } catch (const detail::libsvm_line::problem& wrong) {
            throw data_error(path,
                             "line " + std::to_string(detail::line_number(path, lines.begin())) + ", column " +
                                 std::to_string(wrong.column),
                             wrong.expected, wrong.found);
        }
    }
    if (options.columns != 0) data.columns = options.columns;
    return data;
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/local_replica.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

/// The replica that local steps are pushed to, which must outlive them.
template <class Net, class Policy, std::floating_point T>
struct outer_replica {
    using type = decltype(std::declval<const Policy&>().replica.template bind<T>(
        std::declval<Net&>(), std::span<const T>(), group_options{}));
    type outer;
};

template <class Net, class Policy, std::floating_point T>
using local_replica_of = local_steps<typename outer_replica<Net, Policy, T>::type, decltype(Policy::update)>;

}  // namespace detail

/// A `local_replica` bound to one rank: `local_steps` and the replica that they are pushed to, which is `replica()`.
template <class Net, class Policy, std::floating_point T>
class bound_local_replica : detail::outer_replica<Net, Policy, T>, public detail::local_replica_of<Net, Policy, T> {
    using holder = detail::outer_replica<Net, Policy, T>;

  public:
    bound_local_replica(Net& net, const Policy& policy, std::span<const T> first, const group_options& options)
        : holder{policy.replica.template bind<T>(net, first, options)},
          detail::local_replica_of<Net, Policy, T>(holder::outer, policy.steps, policy.update, first) {}
};

/// Training by steps that each rank makes by itself, and pushes to the replica of another plan (`local_steps`).
///
/// Models `ReplicaPlan`. `update`: how a gradient moves a rank's own model.
template <class Outer, class Move>
struct local_replica {
    static constexpr const char* name = "local_replica";

    Outer replica{};
    local_step_options steps{};
    Move update{};

    template <std::floating_point T = float, class Net>
    bound_local_replica<Net, local_replica, T> bind(Net& net, std::span<const T> first,
                                                    const group_options& options = {}) const {
        return {net, *this, first, options};
    }
};

template <class O, class M>
local_replica(O, local_step_options, M) -> local_replica<O, M>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/logistic_regression.hpp

#include <Eigen/Core>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Logistic regression of two classes: a weight for each column and a bias, half the parameters of a
/// `softmax_regression` of two classes, and the same loss. Labels are 0 and 1; a score above 0 means class 1.
///
/// Cost: `gradient` reads each row of the batch from memory once. Scratch memory: none.
template <std::floating_point T = float>
class logistic_regression {
  public:
    using scalar = T;
    using batch = train::batch;

    explicit logistic_regression(std::size_t columns)
        : layers_{layer{"weights", {0, columns}}, layer{"bias", {columns, columns + 1}}} {
        RILL_EXPECTS(columns > 0, "logistic_regression: at least one column");
    }

    std::size_t dimension() const { return columns() + 1; }
    std::span<const layer> layers() const { return layers_; }

    /// All zeros; the key is ignored, since a convex loss needs no random start.
    void initialise(std::span<T> parameters, random_key) const {
        RILL_EXPECTS(parameters.size() == dimension(), "logistic_regression: all parameters");
        std::fill(parameters.begin(), parameters.end(), T{0});
    }

    /// Mean loss of the batch, or the weighted sum where it has weights.
    double loss(std::span<const T> parameters, const batch& samples) {
        check(parameters, samples);
        double sum = 0;
        for (std::size_t r = 0; r < samples.rows.size(); ++r)
            sum += samples.template weight<double>(r) * loss_of(margin(parameters, samples, r));
        return sum;
    }

    /// Returns the loss of the samples, and writes its derivative by each parameter to `gradient`.
    double gradient(std::span<const T> parameters, const batch& samples, std::span<T> gradient) {
        check(parameters, samples);
        RILL_EXPECTS(gradient.size() == dimension(), "logistic_regression: room for a derivative by every parameter");
        std::fill(gradient.begin(), gradient.end(), T{0});
        Eigen::Map<vector> slopes(gradient.data(), static_cast<Eigen::Index>(columns()));
        double sum = 0;
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            const T m = margin(parameters, samples, r);
            sum += samples.template weight<double>(r) * loss_of(m);
            const T slope = samples.template weight<T>(r) * -sign(samples, r) / (T{1} + std::exp(m));
            slopes += slope * features(samples, r).template cast<T>();
            gradient.back() += slope;
        }
        return sum;
    }

    void predict(std::span<const T> parameters, const batch& samples, std::span<std::int32_t> classes) {
        check(parameters, samples);
        RILL_EXPECTS(classes.size() == samples.rows.size(), "logistic_regression: room for one class per row");
        for (std::size_t r = 0; r < classes.size(); ++r) classes[r] = score(parameters, samples, r) > 0 ? 1 : 0;
    }

  private:
    using vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
    using row = Eigen::Map<const Eigen::VectorXf>;

    std::size_t columns() const { return layers_[0].part.end; }

    void check(std::span<const T> parameters, const batch& samples) const {
        RILL_EXPECTS(parameters.size() == dimension(), "logistic_regression: all parameters");
        RILL_EXPECTS(!samples.rows.empty(), "logistic_regression: a batch of at least one row");
        RILL_EXPECTS(samples.weights.empty() || samples.weights.size() == samples.rows.size(),
                     "logistic_regression: a weight for each row, or none");
        RILL_EXPECTS(samples.data.columns == columns(), "logistic_regression: as many columns as weights");
    }

    row features(const batch& samples, std::size_t r) const {
        RILL_EXPECTS(samples.rows[r] < samples.data.rows, "logistic_regression: rows of the dataset");
        return {samples.data.row(samples.rows[r]).data(), static_cast<Eigen::Index>(columns())};
    }

    T score(std::span<const T> parameters, const batch& samples, std::size_t r) const {
        const Eigen::Map<const vector> weights(parameters.data(), static_cast<Eigen::Index>(columns()));
        return weights.dot(features(samples, r).template cast<T>()) + parameters.back();
    }

    static T sign(const batch& samples, std::size_t r) {
        const std::int32_t label = samples.data.labels[samples.rows[r]];
        RILL_EXPECTS(label == 0 || label == 1, "logistic_regression: labels are 0 and 1");
        return label == 1 ? T{1} : T{-1};
    }

    T margin(std::span<const T> parameters, const batch& samples, std::size_t r) const {
        return sign(samples, r) * score(parameters, samples, r);
    }

    /// log(1 + exp(-margin)), without overflow of the exponential. A NaN gives NaN.
    static double loss_of(T margin) {
        const double m = static_cast<double>(margin);
        return (m < 0 ? -m : 0.0) + std::log1p(std::exp(-std::abs(m)));
    }

    std::array<layer, 2> layers_;
};

static_assert(Classifier<logistic_regression<float>>);
static_assert(Classifier<logistic_regression<double>>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/overlapped_bsp.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// The codecs of an `overlapped_bsp` whose buckets travel as they are.
struct no_codecs {
    friend constexpr bool operator==(const no_codecs&, const no_codecs&) = default;
};

namespace detail {

/// A codec for each bucket: `codecs` itself, or what it returns for the bucket with this number.
template <class Codecs, class T>
decltype(auto) codec_of_bucket(const Codecs& codecs, std::size_t number, const bucket& of) {
    if constexpr (requires { codecs.template bind<T>(std::size_t{}); })
        return (codecs);
    else
        return codecs(number, of);
}

/// What `overlapped_bsp` takes as codecs.
template <class Codecs, class T = float>
concept BucketCodecs =
    std::same_as<Codecs, no_codecs> || requires(const Codecs& codecs, std::size_t number, const bucket& of) {
        codecs.template bind<T>(number);
    } || requires(const Codecs& codecs, std::size_t number, const bucket& of) {
        codecs(number, of).template bind<T>(number);
    };

/// The codec of a bucket. Whether its contribution counts is known at the end of the step, not of its operation.
template <class Codec>
struct bucket_codec : Codec {
    void commit() {}
    void rollback() {}
    void settle(bool is_in_step) {
        if (is_in_step)
            Codec::commit();
        else
            Codec::rollback();
    }
};

/// The codecs of all buckets, each with its own residual.
template <class Codec>
class bucket_codecs {
  public:
    template <class T, class Codecs>
    static bucket_codecs bound(const Codecs& codecs, const bucket_plan& plan) {
        bucket_codecs made;
        made.codecs_.reserve(plan.buckets().size());
        for (const bucket& each : plan.buckets())
            made.codecs_.push_back(
                {codec_of_bucket<Codecs, T>(codecs, made.codecs_.size(), each).template bind<T>(each.elements.size())});
        return made;
    }

    std::size_t size() const { return codecs_.size(); }
    auto& operator[](std::size_t bucket) { return codecs_[bucket]; }
    const Codec& operator[](std::size_t bucket) const { return codecs_[bucket]; }

    void settle(bool is_in_step) {
        for (auto& each : codecs_) each.settle(is_in_step);
    }
    /// A hash by which ranks compare what they must have alike.
    std::uint64_t fingerprint() const {
        std::uint64_t hash = mix64(codecs_.size());
        for (const Codec& each : codecs_) hash = mix64(hash, each.codings().fingerprint(), fingerprint_of(each));
        return hash;
    }

    template <class Writer>
    void save(Writer& out, const std::string& name) const
        requires PersistentCodec<Codec>
    {
        for (std::size_t i = 0; i < size(); ++i) codecs_[i].save(out, name + "." + std::to_string(i));
    }
    template <class Reader>
    void restore(const Reader& in, const std::string& name)
        requires PersistentCodec<Codec>
    {
        auto restored = codecs_;
        for (std::size_t i = 0; i < size(); ++i) restored[i].restore(in, name + "." + std::to_string(i));
        codecs_ = std::move(restored);
    }

  private:
    std::vector<bucket_codec<Codec>> codecs_;
};

}  // namespace detail

/// An `overlapped_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_overlapped_bsp : public lockstep<Net, decltype(Policy::topology)> {
  public:
    bound_overlapped_bsp(Net& net, const Policy& policy, std::span<const layer> layers, const group_options& options)
        : bound_overlapped_bsp::lockstep(net, policy, options),
          policy_(policy),
          plan_(policy.buckets.bind(layer_sizes(layers), sizeof(T))),
          state_(bound_state(policy, plan_)),
          invalid_(plan_.buckets().size()) {
        std::uint64_t codecs = 0;
        if constexpr (is_coded) codecs = state_.codec.fingerprint();
        this->compare({{"division into buckets", "codecs of the buckets"}},
                      {option_hash(plan_.fingerprint()), option_hash(codecs)});
    }

    const bucket_plan& plan() const { return plan_; }
    /// The codec of a bucket.
    const auto& codec(std::size_t bucket) const
        requires(Policy::is_coded)
    {
        return state_.codec[bucket];
    }
    auto& state() { return state_; }
    const auto& state() const { return state_; }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number, Compute&& compute) {
        step_record record{.step = number, .is_over = this->has_ended()};
        if (record.is_over) return record;
        const double rate = rate_at<T>(policy_.rate, number);
        stopwatch clock(this->workers().net());
        std::fill(invalid_.begin(), invalid_.end(), std::nullopt);
        settlement attempt{this};  // after the operations, which a failure cancels
        bucket_exchange buckets(this->workers(), plan_, starter{this, gradient, rate});
        record.loss = compute([&](std::size_t layer) { buckets.ready(layer); });
        record.phases.compute = clock.lap();
        record.exchange = buckets.finish();
        attempt.is_in_step = this->is_complete(record.exchange);
        record.phases.exchange = clock.lap();
        this->complete(record, first_invalid(), clock, [&] {
            const std::span<const T> slopes(gradient);
            state_.optimizer.step(parameters, slopes, is_coded ? 1 : rate);
        });
        return record;
    }

  private:
    static constexpr bool is_coded = Policy::is_coded;

    static auto bound_state(const Policy& policy, const bucket_plan& plan) {
        auto optimizer = policy.optimizer.template bind<T>(plan.dimension());
        if constexpr (is_coded) {
            using policy_type = decltype(policy.codecs);
            using codec_type = decltype(detail::codec_of_bucket<std::remove_const_t<policy_type>, T>(
                                            policy.codecs, std::size_t{}, std::declval<const bucket&>())
                                            .template bind<T>(std::size_t{}));
            using codecs_type = detail::bucket_codecs<codec_type>;
            return compressed_state<codecs_type, decltype(optimizer)>{
                codecs_type::template bound<T>(policy.codecs, plan), std::move(optimizer)};
        } else {
            return compressed_state<no_codecs, decltype(optimizer)>{{}, std::move(optimizer)};
        }
    }

    /// Tells the codecs at the end of a step whether their contributions are in it.
    struct settlement {
        bound_overlapped_bsp* of;
        bool is_in_step = false;

        ~settlement() {
            if constexpr (is_coded) of->state_.codec.settle(is_in_step);
        }
    };

    /// Starts the operation of a bucket.
    struct starter {
        bound_overlapped_bsp* of;
        std::span<T> gradient;
        double rate;

        request operator()(std::size_t i) const {
            return start(of->workers(),
                         [*this, i](auto& lane) { return of->exchange_bucket(lane, gradient, i, rate); });
        }
    };

    /// This rank's first coordinate that is not finite.
    std::optional<std::size_t> first_invalid() const {
        std::optional<std::size_t> first;
        for (const auto& each : invalid_)
            if (each && (!first || *each < *first)) first = each;
        return first;
    }

    /// Runs in the bucket's own activity; searching for values that are not finite does too.
    template <class Lane>
    receipt exchange_bucket(Lane& lane, std::span<T> gradient, std::size_t i, [[maybe_unused]] double rate) {
        const segment place = plan_.buckets()[i].elements;
        const std::span<T> part = gradient.subspan(place.begin, place.size());
        const auto bad = kernel::find_non_finite(std::span<const T>(part));
        if (bad)
            invalid_[i] = place.begin + *bad;
        else
            policy_.clip.apply(part);
        const contribution own{.weight = bad ? 0.0 : 1.0};
        if constexpr (is_coded) {
            auto& codec = state_.codec[i];
            if (!bad) detail::scale_contribution(codec, part, static_cast<T>(rate));
            return all_reduce(lane, part, part, codec, aggregate::mean{}, own);
        } else {
            return all_reduce(lane, part, part, aggregate::mean{}, own);
        }
    }

    Policy policy_;
    bucket_plan plan_;
    decltype(bound_state(std::declval<const Policy&>(), std::declval<const bucket_plan&>())) state_;
    std::vector<std::optional<std::size_t>> invalid_;  ///< of each bucket, this rank's first that is not finite
};

/// Bulk-synchronous data-parallel descent whose gradients travel while they are computed: neighbouring layers share
/// buckets, and a bucket's all-reduce starts as soon as the backward pass has left its layers.
///
/// Models `Strategy`. Needs a `LayeredObjective` and a `ConcurrentTransport`. Where activities do not run alone
/// (`rill::mpi` below MPI_THREAD_MULTIPLE) the exchanges progress only at the end of each layer's backward pass, not
/// during it.
///
/// Over a topology that preserves the order of ranks the parameters are those of `bsp`, bit for bit. Over others (a
/// ring) they are those of an exchange per bucket, because the order in which a coordinate is folded depends on its
/// place in the message. A step is skipped on all ranks as soon as any bucket of any rank is not finite. Clipping acts
/// on each rank's own gradient, bucket by bucket. A clipping that needs the whole gradient does not compile.
///
/// `codecs` compresses the buckets: a codec for all of them, or a function that returns the codec of a bucket:
///
///     [](std::size_t number, const bucket& of) { return error_feedback{top_k{.count = of.elements.size() / 100}}; }
///
/// Buckets are numbered as they are sent, those of the last layers first; `of` tells the numbers of its layers
/// (`tensors`) and its elements. All codecs are of one type, and each has its own residual. As in `compressed_bsp`,
/// what travels is the gradient times the rate. When a step is skipped, the finite buckets of all ranks return to their
/// codecs. The function must be copyable and assignable: a lambda with captures is not.
///
/// Cost per step: an all-reduce per bucket over `topology`, dense or of compressed streams. Memory: the optimizer's,
/// the codecs', and the activities and scratch of as many operations as there are buckets. Errors: `mismatch` when it
/// is bound, if a rank has another optimizer, rate or clipping (`lockstep`), other buckets, or codecs with other
/// codings or other options that must be alike. Source: Li et al., PyTorch Distributed, VLDB 2020, section 3.2.3; a
/// codec for each layer: Renggli et al., SparCML, SC 2019.
template <Topology Shape, Optimizer Descent, RateSchedule Rate, Clipping Clip = no_clip, class Codecs = no_codecs>
struct overlapped_bsp {
    static constexpr const char* name = "overlapped_bsp";
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = true;
    static_assert(
        Clip::is_coordinatewise,
        "rill::train::overlapped_bsp: the clipping needs the whole gradient (clip_norm), whose first buckets are "
        "under way before the last are computed; use clip_value, per_bucket{clip_norm{...}} or train::bsp");
    static constexpr bool is_coded = !std::same_as<Codecs, no_codecs>;
    static_assert(
        detail::BucketCodecs<Codecs> && std::copyable<Codecs>,
        "rill::train::overlapped_bsp: the codecs are neither a codec nor a function of a bucket's number and a "
        "const rill::bucket& that returns one, or cannot be assigned, as a lambda with captures; use a "
        "struct with operator()");
    static_assert(!is_coded || Descent::is_linear,
                  "rill::train::overlapped_bsp: a step of the optimizer (adam) does not scale with the gradient, and "
                  "what travels through codecs is the gradient times the rate; use train::sgd or leave out the codecs");

    Shape topology{};
    Descent optimizer{};
    Rate rate{};
    Clip clip{};
    fusion buckets{};
    Codecs codecs{};

    template <std::floating_point T = float, class Net>
    bound_overlapped_bsp<Net, overlapped_bsp, T> bind(Net& net, std::span<const layer> layers,
                                                      const group_options& options = {}) const {
        return {net, *this, layers, options};
    }
    friend constexpr bool operator==(const overlapped_bsp&, const overlapped_bsp&) = default;
};

template <class S, class D, class R>
overlapped_bsp(S, D, R) -> overlapped_bsp<S, D, R>;
template <class S, class D, class R, class C>
overlapped_bsp(S, D, R, C) -> overlapped_bsp<S, D, R, C>;
template <class S, class D, class R, class C>
overlapped_bsp(S, D, R, C, fusion) -> overlapped_bsp<S, D, R, C>;
template <class S, class D, class R, class C, class K>
overlapped_bsp(S, D, R, C, fusion, K) -> overlapped_bsp<S, D, R, C, K>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/paced.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// How long a rank computes in each step, on its transport's clock.
struct pace {
    duration forward{};
    duration backward{};  ///< divided between the layers by their numbers of parameters

    friend constexpr bool operator==(const pace&, const pace&) = default;
};

/// An objective that computes what its model does and also sleeps, to take the time of a larger model or of another
/// machine. Models `LayeredObjective` if its model does.
/// In a simulated network computing takes no time, and the sleep is the length of a step. Among threads, more ranks
/// than cores can then "compute" at once. On a `traced` transport both passes are spans.
///
/// `net` must outlive it. `loss` takes the forward time. Gradients are the model's, bit for bit.
template <Transport Net, LayeredObjective Model>
class paced {
  public:
    using scalar = typename Model::scalar;
    using batch = typename Model::batch;

    /// Throws `contract_violation` if a time is below 0.
    paced(Net& net, Model model, const pace& chosen) : net_(&net), model_(std::move(model)), pace_(chosen) {
        rill::detail::require_option(chosen.forward.ns >= 0, "train::pace: forward", chosen.forward.ns,
                                     "at least 0 ns");
        rill::detail::require_option(chosen.backward.ns >= 0, "train::pace: backward", chosen.backward.ns,
                                     "at least 0 ns");
    }

    Model& model() { return model_; }

    std::size_t dimension() const { return model_.dimension(); }
    std::span<const layer> layers() const { return model_.layers(); }
    void initialise(std::span<scalar> parameters, random_key key) const { model_.initialise(parameters, key); }

    double loss(std::span<const scalar> parameters, const batch& samples) {
        sleep("forward", pace_.forward);
        return model_.loss(parameters, samples);
    }
    double gradient(std::span<const scalar> parameters, const batch& samples, std::span<scalar> output) {
        return gradient(parameters, samples, output, [](std::size_t) {});
    }
    template <class Ready>
    double gradient(std::span<const scalar> parameters, const batch& samples, std::span<scalar> output, Ready&& ready) {
        sleep("forward", pace_.forward);
        return model_.gradient(parameters, samples, output, [&](std::size_t i) {
            sleep("backward", share_of(layers()[i].part.size()));
            ready(i);
        });
    }

  private:
    duration share_of(std::size_t parameters) const {
        const double share = static_cast<double>(parameters) / static_cast<double>(dimension());
        return duration(static_cast<std::int64_t>(share * static_cast<double>(pace_.backward.ns)));
    }

    void sleep(const char* name, duration length) {
        const time_point until = std::as_const(*net_).now() + length;
        [[maybe_unused]] const auto computing = named_span(*net_, name);
        net_->sleep_until(until);
    }

    Net* net_;
    Model model_;
    pace pace_;
};

template <class Net, class Model>
paced(Net&, Model, pace) -> paced<Net, Model>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/pair_replica.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Training by models that average in pairs (`pair_averaging`).
///
/// Models `ReplicaPlan`. Each rank has a model of its own, so that each has other parameters at the end.
template <class Who, class Move>
struct pair_replica {
    static constexpr const char* name = "pair_replica";

    Who pairing{};
    Move update{};

    template <std::floating_point T = float, class Net>
    pair_averaging<Net, T, Who, Move> bind(Net& net, std::span<const T> first,
                                           const group_options& options = {}) const {
        return {net, pairing, update, first, options};
    }
};

template <class W, class U>
pair_replica(W, U) -> pair_replica<W, U>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/partial_bsp.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

template <class Policy, std::floating_point T>
using bound_optimizer = decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}));

template <class Net, class Policy>
using partial_rounds = rounds<group_on<Net, decltype(Policy::topology)>, decltype(Policy::topology),
                              decltype(Policy::completion), decltype(Policy::staleness)>;

}  // namespace detail

/// A `partial_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_partial_bsp : public rooted<Net, decltype(Policy::topology), detail::partial_rounds<Net, Policy>,
                                        detail::bound_optimizer<Policy, T>> {
    using steps_type = detail::partial_rounds<Net, Policy>;

  public:
    bound_partial_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : bound_partial_bsp::rooted(
              net, policy.topology, options,
              [&](auto& workers) { return steps_type(workers, policy.topology, policy.completion, policy.staleness); },
              policy.optimizer.template bind<T>(dimension)),
          policy_(policy) {
        detail::require_clipping(policy.clip);
        const gathering nobody{.expected = policy.topology.children(net.size(), 0), .in = {}};
        RILL_EXPECTS(policy.root_contributes || !policy.completion.is_complete(nobody),
                     "train::partial_bsp: a round is complete before any child of rank 0 has contributed, and rank 0 "
                     "computes nothing, so nothing would be trained; let the completion wait for a child, or set "
                     "root_contributes");
    }

    bool contributes() const { return policy_.root_contributes || !this->is_root(); }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t, Compute&& compute) {
        const auto reduce = [&](bool bad) {
            const bool counts = contributes() && !bad;
            if (counts) policy_.clip.apply(gradient);
            return this->steps().reduce(gradient, gradient, aggregate::mean{},
                                        contribution{.weight = counts ? 1.0 : 0.0});
        };
        const auto move = [&](const step_record&, double rate) {
            this->state().step(parameters, std::span<const T>(gradient), rate);
        };
        return this->step_with(policy_.rate, parameters, gradient, contributes(), compute, reduce, move);
    }

  private:
    Policy policy_;
};

/// Descent along the mean of the gradients that come in time: the root waits until `completion` has enough of them (the
/// fastest k, all but s, those before a deadline), and late ones are dropped or count later (`staleness`).
///
/// Models `Strategy`. The root, rank 0, moves the parameters and sends them to all; replicas are not equal: a late rank
/// goes on from the newest ones. By default the root is a master that computes nothing; then
/// `bind` throws `contract_violation` if `completion` waits for none of its children (or it has none). A gradient that
/// is not finite is left out. `rounds` says what is guaranteed when ranks die. Checkpoints: all ranks save, and
/// restore, between the same two steps. What is late then and counts later by `staleness` is of the parameters before.
/// Cost per step: the parameters down and a gradient up on each edge of `topology`. Memory: the optimizer's at each
/// rank, and that of `rounds`.
template <TreeTopology Tree, Completion Enough, Optimizer Descent, RateSchedule Rate, Staleness Age = straggler::fresh,
          Clipping Clip = no_clip>
struct partial_bsp {
    static constexpr const char* name = "partial_bsp";
    static constexpr bool replicas_equal = false;
    static constexpr bool is_layered = false;

    Tree topology{};
    Enough completion{};
    Descent optimizer{};
    Rate rate{};
    Age staleness{};
    Clip clip{};  ///< of each rank's own gradient
    bool root_contributes = false;

    template <std::floating_point T = float, class Net>
    bound_partial_bsp<Net, partial_bsp, T> bind(Net& net, std::span<const layer> layers,
                                                const group_options& options = {}) const {
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const partial_bsp&, const partial_bsp&) = default;
};

template <class S, class E, class D, class R>
partial_bsp(S, E, D, R) -> partial_bsp<S, E, D, R>;
template <class S, class E, class D, class R, class A>
partial_bsp(S, E, D, R, A) -> partial_bsp<S, E, D, R, A>;
template <class S, class E, class D, class R, class A, class C>
partial_bsp(S, E, D, R, A, C) -> partial_bsp<S, E, D, R, A, C>;
template <class S, class E, class D, class R, class A, class C>
partial_bsp(S, E, D, R, A, C, bool) -> partial_bsp<S, E, D, R, A, C>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/partial_replica.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

/// The group of a replica, which must outlive it.
template <class Group>
struct replica_group {
    Group workers;
};

template <class Net, class Policy, std::floating_point T>
using partial_replica_of = partial_all_reduce<group<Net, decltype(Policy::topology)>, T, decltype(Policy::trigger),
                                              decltype(Policy::staleness), decltype(Policy::backlog),
                                              decltype(Policy::update), decltype(Policy::codec)>;

}  // namespace detail

/// A `partial_replica` bound to one rank: a `partial_all_reduce` and its group.
template <class Net, class Policy, std::floating_point T>
class bound_partial_replica : detail::replica_group<group<Net, decltype(Policy::topology)>>,
                              public detail::partial_replica_of<Net, Policy, T> {
    using holder = detail::replica_group<group<Net, decltype(Policy::topology)>>;

  public:
    bound_partial_replica(Net& net, const Policy& policy, std::span<const T> first, const group_options& options)
        : holder{group<Net, decltype(Policy::topology)>(net, policy.topology, options)},
          detail::partial_replica_of<Net, Policy, T>(holder::workers, policy.trigger, policy.staleness, policy.backlog,
                                                     policy.update, first, policy.codec) {}
};

/// Training by rounds that some ranks start and all join (`partial_all_reduce`).
///
/// Models `ReplicaPlan`. All ranks have the same model after each round.
template <class Shape, Trigger Start, Staleness Age, Backlog Sum, class Move, class Codec = no_codec>
struct partial_replica {
    static constexpr const char* name = "partial_replica";

    Shape topology{};
    Start trigger{};
    Age staleness{};
    Sum backlog{};
    Move update{};
    Codec codec{};

    template <std::floating_point T = float, class Net>
    bound_partial_replica<Net, partial_replica, T> bind(Net& net, std::span<const T> first,
                                                        const group_options& options = {}) const {
        return {net, *this, first, options};
    }
};

template <class S, class R, class A, class B, class U>
partial_replica(S, R, A, B, U) -> partial_replica<S, R, A, B, U>;
template <class S, class R, class A, class B, class U, class C>
partial_replica(S, R, A, B, U, C) -> partial_replica<S, R, A, B, U, C>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/softmax.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// The cross-entropy `-log softmax(scores)[label]`. A NaN or infinity among the scores gives NaN or infinity.
template <std::floating_point T>
double softmax_loss(std::span<const T> scores, std::size_t label) {
    const T highest = *std::max_element(scores.begin(), scores.end());
    T sum = 0;
    for (T score : scores) sum += std::exp(score - highest);
    return std::log(static_cast<double>(sum)) - static_cast<double>(scores[label] - highest);
}

/// Returns the loss that `softmax_loss` gives, and replaces the scores by `scale` times its derivatives by the scores.
template <std::floating_point T>
double softmax_gradient(std::span<T> scores, std::size_t label, T scale) {
    const T highest = *std::max_element(scores.begin(), scores.end());
    const double distance = static_cast<double>(scores[label] - highest);
    T sum = 0;
    for (T& score : scores) sum += score = std::exp(score - highest);
    for (T& score : scores) score *= scale / sum;
    scores[label] -= scale;
    return std::log(static_cast<double>(sum)) - distance;
}

/// The class with the highest score, the first of several.
template <std::floating_point T>
std::int32_t best_class(std::span<const T> scores) {
    return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/perceptron.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A fully connected network with ReLU between its layers, trained by softmax cross-entropy.
///
/// Parameters: for each layer its weights, row-major, one row per output; then its biases. Scratch memory: two floats
/// per unit and row of the largest batch so far.
template <std::floating_point T = float>
class perceptron {
  public:
    using scalar = T;
    using batch = train::batch;

    /// `widths`: columns of the data, hidden units of each layer, classes.
    explicit perceptron(std::vector<std::size_t> widths = {784, 512, 10}) : widths_(std::move(widths)) {
        RILL_EXPECTS(widths_.size() >= 2, "perceptron: at least the widths of input and output");
        RILL_EXPECTS(std::find(widths_.begin(), widths_.end(), 0U) == widths_.end(), "perceptron: no empty layer");
        for (std::size_t l = 0; l < depth(); ++l) {
            append("layer " + std::to_string(l + 1) + " weights", widths_[l] * widths_[l + 1]);
            append("layer " + std::to_string(l + 1) + " biases", widths_[l + 1]);
        }
        activations_.resize(widths_.size());
    }

    std::span<const std::size_t> widths() const { return widths_; }
    std::size_t dimension() const { return layers_.back().part.end; }
    std::span<const layer> layers() const { return layers_; }

    /// He's uniform distribution, `±√(6 / inputs)`, and zero biases; the same bits on every machine.
    void initialise(std::span<T> parameters, random_key key) const {
        RILL_EXPECTS(parameters.size() == dimension(), "perceptron: all parameters");
        std::fill(parameters.begin(), parameters.end(), T{0});
        for (std::size_t l = 0; l < depth(); ++l) {
            const counter_rng random(key.derive(l));
            const T bound = static_cast<T>(std::sqrt(6.0 / static_cast<double>(widths_[l])));
            const segment part = weights(l);
            for (std::size_t i = 0; i < part.size(); ++i)
                parameters[part.begin + i] = (2 * static_cast<T>(random.uniform(i)) - 1) * bound;
        }
    }

    /// Mean loss of the batch, or the weighted sum where it has weights.
    double loss(std::span<const T> parameters, const batch& samples) {
        forward(parameters, samples);
        double sum = 0;
        for (std::size_t r = 0; r < samples.rows.size(); ++r)
            sum += multiplicity(samples, r) * softmax_loss(std::span<const T>(scores(r)), label(samples, r));
        return sum / divisor(samples);
    }

    /// Returns the loss of the samples, and writes its derivative by each parameter to `gradient`.
    double gradient(std::span<const T> parameters, const batch& samples, std::span<T> gradient) {
        return this->gradient(parameters, samples, gradient, [](std::size_t) {});
    }

    /// Returns the loss and writes the gradient. Calls `ready(i)` for each of `layers()` as soon as its part of
    /// `gradient` is final, the last layer first.
    template <class Ready>
    double gradient(std::span<const T> parameters, const batch& samples, std::span<T> gradient, Ready&& ready) {
        RILL_EXPECTS(gradient.size() == dimension(), "perceptron: room for a derivative by every parameter");
        const std::size_t rows = samples.rows.size();
        forward(parameters, samples);
        double sum = 0;
        for (std::size_t r = 0; r < rows; ++r)
            sum += multiplicity(samples, r) *
                   softmax_gradient(scores(r), label(samples, r), samples.template weight<T>(r));
        for (std::size_t l = depth(); l-- > 0;) {
            differentiate(l, rows, gradient);
            ready(2 * l + 1);
            ready(2 * l);
            if (l > 0) propagate(l, rows, parameters);
        }
        return sum / divisor(samples);
    }

    void predict(std::span<const T> parameters, const batch& samples, std::span<std::int32_t> classes) {
        RILL_EXPECTS(classes.size() == samples.rows.size(), "perceptron: room for one class per row");
        forward(parameters, samples);
        for (std::size_t r = 0; r < classes.size(); ++r) classes[r] = best_class(std::span<const T>(scores(r)));
    }

  private:
    std::size_t depth() const { return widths_.size() - 1; }
    segment weights(std::size_t l) const { return layers_[2 * l].part; }
    segment biases(std::size_t l) const { return layers_[2 * l + 1].part; }
    matrix_view<T> activations(std::size_t l, std::size_t rows) { return {activations_[l].data(), rows, widths_[l]}; }
    matrix_view<const T> inputs(std::size_t l, std::size_t rows) { return {activations_[l].data(), rows, widths_[l]}; }
    matrix_view<const T> weight_matrix(std::size_t l, std::span<const T> parameters) const {
        return {parameters.data() + weights(l).begin, widths_[l + 1], widths_[l]};
    }
    std::span<T> scores(std::size_t row) {
        return std::span(activations_.back()).subspan(row * widths_.back(), widths_.back());
    }

    void append(std::string name, std::size_t size) {
        const std::size_t begin = layers_.empty() ? 0 : layers_.back().part.end;
        layers_.push_back({std::move(name), {begin, begin + size}});
    }

    std::size_t label(const batch& samples, std::size_t r) const {
        const auto found = static_cast<std::size_t>(samples.data.labels[samples.rows[r]]);
        RILL_EXPECTS(found < widths_.back(), "perceptron: a label for which there is an output");
        return found;
    }

    // For a mean, divides the sum once instead of each term.
    static double multiplicity(const batch& samples, std::size_t r) {
        return samples.weights.empty() ? 1.0 : static_cast<double>(samples.weights[r]);
    }
    static double divisor(const batch& samples) {
        return samples.weights.empty() ? static_cast<double>(samples.rows.size()) : 1.0;
    }

    void forward(std::span<const T> parameters, const batch& samples) {
        RILL_EXPECTS(parameters.size() == dimension(), "perceptron: all parameters");
        const std::size_t rows = samples.rows.size();
        gather(samples);
        for (std::size_t l = 0; l < depth(); ++l) {
            multiply(inputs(l, rows), weight_matrix(l, parameters).transposed(), activations(l + 1, rows));
            add_biases(parameters.subspan(biases(l).begin, biases(l).size()), activations(l + 1, rows),
                       l + 1 < depth());
        }
    }

    void gather(const batch& samples) {
        RILL_EXPECTS(!samples.rows.empty(), "perceptron: a batch of at least one row");
        RILL_EXPECTS(samples.weights.empty() || samples.weights.size() == samples.rows.size(),
                     "perceptron: a weight for each row, or none");
        RILL_EXPECTS(samples.data.columns == widths_.front(), "perceptron: as many columns as inputs");
        reserve(samples.rows.size());
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            RILL_EXPECTS(samples.rows[r] < samples.data.rows, "perceptron: rows of the dataset");
            const std::span<const float> row = samples.data.row(samples.rows[r]);
            std::copy(row.begin(), row.end(), activations_.front().data() + r * widths_.front());
        }
    }

    void reserve(std::size_t rows) {
        if (rows <= most_rows_) return;
        for (std::size_t l = 0; l < widths_.size(); ++l) activations_[l].resize(rows * widths_[l]);
        slopes_.resize(rows * *std::max_element(widths_.begin(), widths_.end()));
        most_rows_ = rows;
    }

    static void add_biases(std::span<const T> biases, matrix_view<T> values, bool rectify) {
        for (std::size_t r = 0; r < values.rows; ++r) {
            T* row = values.data + r * values.columns;
            for (std::size_t c = 0; c < values.columns; ++c) {
                const T value = row[c] + biases[c];
                row[c] = rectify && value < 0 ? T{0} : value;  // a NaN stays, so that the loss is NaN
            }
        }
    }

    // The activations of the layers above l have been replaced by the derivatives of the loss.
    void differentiate(std::size_t l, std::size_t rows, std::span<T> gradient) {
        const matrix_view<const T> above = inputs(l + 1, rows);
        multiply(above.transposed(), inputs(l, rows),
                 matrix_view<T>{gradient.data() + weights(l).begin, widths_[l + 1], widths_[l]});
        sum_rows(above, gradient.subspan(biases(l).begin, biases(l).size()));
    }

    // Replaces the inputs of the layer by the derivatives of the loss by them.
    void propagate(std::size_t l, std::size_t rows, std::span<const T> parameters) {
        const matrix_view<const T> above = inputs(l + 1, rows);
        multiply(above, weight_matrix(l, parameters), matrix_view<T>{slopes_.data(), rows, widths_[l]});
        T* below = activations_[l].data();
        for (std::size_t i = 0; i < rows * widths_[l]; ++i) below[i] = below[i] > 0 ? slopes_[i] : T{0};
    }

    static void sum_rows(matrix_view<const T> values, std::span<T> sums) {
        std::copy_n(values.data, values.columns, sums.begin());
        for (std::size_t r = 1; r < values.rows; ++r)
            for (std::size_t c = 0; c < values.columns; ++c) sums[c] += values.data[r * values.columns + c];
    }

    std::vector<std::size_t> widths_;
    std::vector<layer> layers_;
    std::vector<aligned_vector<T>> activations_;  // of each layer, rows × width; in `gradient`, derivatives
    aligned_vector<T> slopes_;
    std::size_t most_rows_ = 0;
};

static_assert(Classifier<perceptron<float>>);
static_assert(Classifier<perceptron<double>>);
static_assert(LayeredObjective<perceptron<float>>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/select_classes.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A copy of the rows of some classes, in their order; the i-th of the given classes becomes class i.
inline dataset select_classes(const dataset& data, std::initializer_list<std::int32_t> classes) {
    RILL_EXPECTS(classes.size() > 0, "select_classes: at least one class");
    dataset some{.columns = data.columns, .classes = static_cast<int>(classes.size()), .features = {}, .labels = {}};
    for (std::size_t row = 0; row < data.rows; ++row) {
        const auto* found = std::find(classes.begin(), classes.end(), data.labels[row]);
        if (found == classes.end()) continue;
        const auto features = data.row(row);
        some.features.append(features.begin(), features.end());
        some.labels.push_back(static_cast<std::int32_t>(found - classes.begin()));
    }
    some.rows = some.labels.size();
    return some;
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/server_replica.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Training with a model that lies in parts on servers (`parameter_server`), on dedicated ranks or on all.
///
/// Models `ReplicaPlan`. The timeout is that of the trainer's `group_options`, and `patience` at least twice as long.
/// The data belong to the workers, the first `servers.workers(net.size())` ranks. A dedicated server steps once: that
/// step is over when the run is, computes nothing, and leaves `parameters()` as they were at first.
template <Staleness Age, class Move>
struct server_replica {
    static constexpr const char* name = "server_replica";

    server_options servers{};
    Age staleness{};
    Move update{};

    template <std::floating_point T = float, class Net>
    parameter_server<Net, T, Age, Move> bind(Net& net, std::span<const T> first,
                                             const group_options& options = {}) const {
        server_options own = servers;
        own.timeout = options.timeout;
        own.patience = std::max(own.patience, own.timeout + own.timeout);
        return {net, own, staleness, update, first};
    }
};

template <class A, class M>
server_replica(server_options, A, M) -> server_replica<A, M>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/shared_state.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// The part of a training's state that is alike on all members of a job, as one that joins gets it: parameters,
/// optimizer, step, generator. What a rank has for itself (the residual of error feedback) does not belong to it.
///
/// `changes`: returns the update of the latest step as bytes (`update_bytes`). `apply`: called with these bytes, does
/// what a member does with the update (`update_in`). `parts`: `Persistent` objects and contiguous ranges, which must
/// outlive this object; their order and sizes are the same on all members. Memory: a copy of the parts in `pack`, two
/// in `unpack`.
template <class Changes, class Apply, class... Parts>
class shared_state {
  public:
    shared_state(Changes changes, Apply apply, Parts&... parts)
        : changes_(std::move(changes)), apply_(std::move(apply)), parts_(parts...) {}

    buffer pack() const {
        checkpoint::writer out;
        for_each([&](const std::string& name, const auto& part) {
            if constexpr (requires { part.save(out, name); })
                part.save(out, name);
            else
                out.add(name, part);
        });
        return out.bytes();
    }
    /// Throws `data_error`, and changes nothing, if the bytes are damaged or of a state of other parts.
    void unpack(byte_view bytes) {
        const checkpoint in = checkpoint::of("the state of another rank", bytes);
        const checkpoint before = checkpoint::of("the state of this rank", pack());
        in.require_no_other("part ", before.names());
        try {
            restore(in);
        } catch (...) {
            restore(before);
            throw;
        }
    }
    buffer changes() const { return changes_(); }
    void apply(byte_view update) { apply_(update); }

  private:
    void restore(const checkpoint& in) {
        for_each([&](const std::string& name, auto& part) {
            if constexpr (requires { part.restore(in, name); })
                part.restore(in, name);
            else
                in.read(name, part);
        });
    }
    template <class Visit>
    void for_each(const Visit& visit) const {
        std::apply(
            [&](auto&... part) {
                std::size_t number = 0;
                (visit("part " + std::to_string(number++) + " ", part), ...);
            },
            parts_);
    }

    Changes changes_;
    Apply apply_;
    std::tuple<Parts&...> parts_;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/shares.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Which rows a rank works on in each step of a job whose members change.
///
/// Step s works on `batch` rows, whoever the members are: all of them together take the next rows of the epoch's
/// permutation, as `sampler` does, and split them as evenly as they can. So the rows of a step are a pure function of
/// (key, step), and the share of a rank one of (key, step, view): each row goes to one member in every view, a step
/// that is repeated in another view works on the same rows, and who joins knows its rows without being told.
///
/// Shares differ by one row at most. For the mean over the step's rows a member contributes the sum over its own, with
/// their number as the weight (`contribution{.weight = …}` with `aggregate::mean`, which does not multiply the input).
/// As the number of rows stays, so may the rate; of a result to which fewer have contributed, the receipt's weight is
/// the number of rows in it. Memory: 4 bytes per row.
class shares {
  public:
    struct options {
        std::size_t rows = 0;
        std::size_t batch = 32;  ///< rows per step, of all members together
        rank_t rank = 0;         ///< this rank, as views name it
        random_key key{};
    };

    explicit shares(const options& chosen) : options_(chosen), order_(chosen.rows) {
        rill::detail::require_option(chosen.batch > 0 && chosen.batch <= chosen.rows, "train::shares: batch",
                                     chosen.batch, text_of({"from 1 to ", chosen.rows, ", the number of rows"}));
        RILL_EXPECTS(chosen.rows <= 0xFFFFFFFFU, "shares: rows that 32 bits can number");
        detail::shuffle_rows(order_, chosen.key, epoch_);
    }

    std::size_t steps_per_epoch() const { return options_.rows / options_.batch; }

    /// The rows of this rank in a step, counted from 0; valid until the next call. There are none where the members are
    /// more than the rows. This rank must be a member. Cost: where another epoch begins, a permutation of all rows.
    friend std::span<const std::uint32_t> share_of(shares& data, const view& crew, std::uint64_t step) {
        return data.rows_of(crew, step);
    }

  private:
    std::span<const std::uint32_t> rows_of(const view& crew, std::uint64_t step) {
        RILL_EXPECTS(crew.contains(options_.rank), "share_of: this rank must be a member");
        const std::uint64_t epoch = step / steps_per_epoch();
        if (epoch != epoch_) detail::shuffle_rows(order_, options_.key, epoch);
        epoch_ = epoch;
        const auto place = std::lower_bound(crew.members.begin(), crew.members.end(), options_.rank);
        const segment own =
            split(options_.batch, crew.members.size(), static_cast<std::size_t>(place - crew.members.begin()));
        const auto first = static_cast<std::size_t>(step % steps_per_epoch()) * options_.batch;
        return std::span<const std::uint32_t>(order_).subspan(first + own.begin, own.size());
    }

    options options_;
    std::vector<std::uint32_t> order_;
    std::uint64_t epoch_ = 0;  ///< of `order_`
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/sign_bsp.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A `sign_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_sign_bsp : public lockstep<Net, decltype(Policy::topology)> {
  public:
    bound_sign_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : bound_sign_bsp::lockstep(net, policy, options),
          policy_(policy),
          codec_(votes{}.template bind<T>(dimension)),
          optimizer_(policy.optimizer.template bind<T>(dimension)) {}

    auto& state() { return optimizer_; }
    const auto& state() const { return optimizer_; }

    template <class Compute>
    step_record step(std::span<T> parameters, std::span<T> gradient, std::uint64_t number, Compute&& compute) {
        const double rate = this->template rate_of<T>(policy_.rate, number);
        const auto exchange = [&](const contribution& own) {
            return all_reduce(this->workers(), gradient, gradient, codec_, aggregate::sign_of_sum{}, own);
        };
        return this->step_with(number, gradient, compute, exchange,
                               [&] { optimizer_.step(parameters, std::span<const T>(gradient), rate); });
    }

  private:
    using signs = compress::own_values<compress::signs>;
    using votes = compress::encoded<compress::keep_all, signs, compress::raw_indices, signs>;

    Policy policy_;
    decltype(votes{}.template bind<T>(std::size_t{})) codec_;
    decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{})) optimizer_;
};

/// Bulk-synchronous descent by majority vote: each rank votes with the signs of its gradient, and every parameter
/// follows the sign that most ranks vote for, +1 or -1. A gradient of 0 votes +1, and so does a tie.
///
/// Every coordinate moves by the rate in each step, so a suitable rate is far smaller than for `bsp`. One rank has one
/// vote in each coordinate, however large its gradient is. Models `Strategy`. Cost per step: one dense all-reduce of
/// the parameters' size over `topology`, which needs a copy phase. Memory: the optimizer's. Errors: `bind` throws
/// `mismatch` on all ranks if one has another optimizer or rate (`lockstep`). Source: Bernstein et al., signSGD, ICML
/// 2018, Algorithm 1 with majority vote.
template <Topology Shape, Optimizer Descent, RateSchedule Rate>
struct sign_bsp {
    static constexpr const char* name = "sign_bsp";
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = false;

    Shape topology{};
    Descent optimizer{};
    Rate rate{};

    template <std::floating_point T = float, class Net>
    bound_sign_bsp<Net, sign_bsp, T> bind(Net& net, std::span<const layer> layers,
                                          const group_options& options = {}) const {
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const sign_bsp&, const sign_bsp&) = default;
};

template <class S, class D, class R>
sign_bsp(S, D, R) -> sign_bsp<S, D, R>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/softmax_regression.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Multinomial logistic regression: a perceptron without hidden layers, whose loss is convex.
template <std::floating_point T = float>
class softmax_regression : public perceptron<T> {
  public:
    softmax_regression(std::size_t columns, std::size_t classes) : perceptron<T>({columns, classes}) {}

    /// All zeros; the key is ignored, since a convex loss needs no random start.
    void initialise(std::span<T> parameters, random_key) const {
        RILL_EXPECTS(parameters.size() == this->dimension(), "softmax_regression: all parameters");
        std::fill(parameters.begin(), parameters.end(), T{0});
    }
};

static_assert(Classifier<softmax_regression<float>>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/sparse_bsp.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// What a bound `sparse_bsp` saves: the optimizer's state and, with staleness 1, this rank's gradient whose exchange is
/// under way, which a restored strategy sends again.
template <class Descent, std::floating_point T>
struct sparse_state {
    Descent optimizer;
    stream<T> sent{};
    std::uint64_t step_sent = 0;           ///< the number of its step + 1; 0: nothing is under way
    std::optional<std::size_t> invalid{};  ///< its first coordinate that is not finite
    std::uint64_t operation = 0;           ///< how many operations the group had counted before it was sent

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        const std::string name = std::string(prefix) + "sparse_bsp.";
        optimizer.save(out, prefix);
        out.add(name + "sent", head());
        out.add(name + "sent.indices", step_sent != 0 ? sent.indices() : std::span<const std::uint32_t>());
        out.add(name + "sent.values", step_sent != 0 ? sent.values() : std::span<const T>());
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        const std::string name = std::string(prefix) + "sparse_bsp.";
        sparse_state read = *this;
        read.optimizer.restore(in, prefix);
        saved_head saved{};
        in.read(name + "sent", saved);
        const auto room = read.sent.make_sparse({0, sent.dimension()}, static_cast<std::size_t>(saved[2]));
        in.read(name + "sent.indices", room.indices);
        in.read(name + "sent.values", room.values);
        for (std::size_t e = 0; e < room.indices.size(); ++e)
            if (room.indices[e] >= sent.dimension() || (e > 0 && room.indices[e] <= room.indices[e - 1]))
                throw data_error(in.path(), "section \"" + name + "sent.indices\"",
                                 "ascending indices below " + std::to_string(sent.dimension()),
                                 std::to_string(room.indices[e]));
        read.step_sent = saved[0];
        read.invalid = saved[1] == 0 ? std::nullopt : std::optional<std::size_t>(saved[1] - 1);
        read.operation = saved[3];
        *this = std::move(read);
    }

  private:
    using saved_head = std::array<std::uint64_t, 4>;
    saved_head head() const {
        return {step_sent, invalid ? *invalid + 1 : 0, step_sent != 0 ? sent.count() : 0, operation};
    }
};

/// A `sparse_bsp` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_sparse_bsp : public lockstep<Net, decltype(Policy::topology)> {
    using base = lockstep<Net, decltype(Policy::topology)>;
    using optimizer_type = decltype(std::declval<const Policy&>().optimizer.template bind<T>(std::size_t{}));
    static_assert(StreamOptimizer<optimizer_type, T, stream_view<T>>,
                  "rill::train::sparse_bsp: the optimizer does not move along a stream; give it step(parameters, "
                  "stream_view, rate), as train::sgd has");

  public:
    bound_sparse_bsp(Net& net, const Policy& policy, std::size_t dimension, const group_options& options)
        : base(net, policy, options),
          policy_(policy),
          state_{.optimizer = policy.optimizer.template bind<T>(dimension), .sent = stream<T>(dimension)} {
        rill::detail::require_option(
            policy.staleness.rounds <= (ConcurrentTransport<Net> ? 1U : 0U), "train::sparse_bsp: staleness",
            policy.staleness.rounds,
            ConcurrentTransport<Net> ? "bounded{0} or bounded{1}" : "bounded{0}, since the transport is not concurrent",
            net.rank());
        this->compare({{"staleness"}}, {option_hash(fingerprint(policy_.staleness))});
    }
    bound_sparse_bsp(const bound_sparse_bsp&) = delete;
    bound_sparse_bsp& operator=(const bound_sparse_bsp&) = delete;
    /// Waits for the exchange under way, which other ranks need.
    ~bound_sparse_bsp() {
        if (under_way_.is_valid()) under_way_.wait();
    }

    auto& state() { return state_; }
    const auto& state() const { return state_; }

    void resume_at(std::uint64_t position) {
        if (under_way_.is_valid()) under_way_.get();
        base::resume_at(position);
    }

    template <class Compute>
    step_record step(std::span<T> parameters, stream<T>& gradient, std::uint64_t number, Compute&& compute) {
        if constexpr (ConcurrentTransport<Net>)
            if (policy_.staleness.rounds > 0) return step_beside(parameters, gradient, number, compute);
        RILL_EXPECTS(state_.step_sent == 0,
                     "train::sparse_bsp: the checkpoint holds a gradient that is still to be "
                     "exchanged; go on with staleness 1");
        const double rate = this->template rate_of<T>(policy_.rate, number);
        const auto exchange = [&](const contribution& own) {
            return all_reduce(this->workers(), gradient, mean_, aggregate::mean{}, policy_.codings, own);
        };
        return this->step_with(number, gradient, compute, exchange, [&] { move(parameters, rate); });
    }

  private:
    void move(std::span<T> parameters, double rate) { state_.optimizer.step(parameters, mean_.view(), rate); }

    /// Computes while the exchange of the step before runs, moves by that one, and starts its own.
    template <class Compute>
    step_record step_beside(std::span<T> parameters, stream<T>& gradient, std::uint64_t number, Compute&& compute) {
        // Checked before the gradient is sent; the next step moves by it.
        this->template rate_of<T>(policy_.rate, number);
        step_record record{.step = number, .is_over = this->has_ended()};
        stopwatch clock(this->workers().net());
        std::optional<std::size_t> bad;
        if (state_.step_sent != 0 && !under_way_.is_valid()) send_again();
        if (!record.is_over) {
            record.loss = compute();
            bad = this->first_invalid(gradient);
        }
        record.phases.compute = clock.lap();
        if (state_.step_sent != 0) {
            record.exchange = under_way_.get();
            record.phases.exchange = clock.lap();
            this->complete(record, state_.invalid, clock,
                           [&] { move(parameters, rate_at<T>(policy_.rate, state_.step_sent - 1)); });
            state_.step_sent = 0;
        }
        if (!record.is_over) {
            std::swap(state_.sent, gradient);
            state_.invalid = bad;
            state_.step_sent = number + 1;
            send();
        }
        record.elapsed = clock.total();
        return record;
    }

    void send() {
        state_.operation = base::position();
        under_way_ = start(this->workers(), [this](auto& lane) {
            return all_reduce(lane, state_.sent, mean_, aggregate::mean{}, policy_.codings,
                              contribution{.weight = state_.invalid ? 0.0 : 1.0});
        });
    }

    /// Sends what a checkpoint held, with the random numbers of the first time.
    void send_again() {
        const std::uint64_t next = base::position();
        this->workers().resume_at(state_.operation);
        send();
        this->workers().resume_at(next);
    }

    Policy policy_;
    sparse_state<optimizer_type, T> state_;
    stream<T> mean_;
    request under_way_;
};

/// Bulk-synchronous descent along gradients that are sparse by themselves: each step follows the mean of all ranks'
/// gradients, of which the entries travel. Nothing is selected and nothing is left out, so there is no residual.
///
/// Over a topology that preserves the order of ranks the parameters are those of `bsp` with the dense gradients, bit
/// for bit, if all codings are lossless. `codings.copy` may be lossy where it is unbiased (qsgd); a lossy coding of
/// contributions adds noise that nothing takes back.
///
/// With `.staleness = straggler::bounded{1}` the exchange of step t runs while the gradient of step t + 1 is computed.
/// So a gradient is computed at parameters that miss the newest step, a record tells of the exchange of the step
/// before, and the last exchange moves the parameters in the call of `step` after `end`. Needs a `ConcurrentTransport`.
/// A checkpoint of it goes on with staleness 1.
///
/// Models `Strategy`. Cost per step: one all-reduce of streams over `topology`, and a step of the optimizer; that of
/// `sgd` passes over all parameters if it has momentum or weight decay. Memory: the optimizer's and the mean's entries;
/// with staleness also a second gradient. Errors: `bind` throws `mismatch` on all ranks if one has another staleness,
/// optimizer or rate (`lockstep`). Source: MPI-OPT (Renggli et al., SparCML, SC
/// 2019, section 7).
template <Topology Shape, Optimizer Descent, RateSchedule Rate>
struct sparse_bsp {
    static constexpr const char* name = "sparse_bsp";
    static constexpr bool replicas_equal = true;
    static constexpr bool is_layered = false;
    static constexpr bool is_sparse = true;

    Shape topology{};
    stream_codings codings{};
    Descent optimizer{};
    Rate rate{};
    straggler::bounded staleness{0};

    template <std::floating_point T = float, class Net>
    bound_sparse_bsp<Net, sparse_bsp, T> bind(Net& net, std::span<const layer> layers,
                                              const group_options& options = {}) const {
        return {net, *this, dimension_of(layers), options};
    }
    friend constexpr bool operator==(const sparse_bsp&, const sparse_bsp&) = default;
};

template <class S, class D, class R>
sparse_bsp(S, stream_codings, D, R) -> sparse_bsp<S, D, R>;
template <class S, class D, class R>
sparse_bsp(S, stream_codings, D, R, straggler::bounded) -> sparse_bsp<S, D, R>;

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/sparse_linear.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// A linear model on sparse rows: a weight for each column and a bias, the last parameter. With `logistic` it is
/// logistic regression of two classes, with `hinge` a support vector machine, with `squared` linear regression.
///
/// Its gradient has entries for the bias and the columns of those rows whose loss has a slope that is not 0; with an L2
/// penalty, of all rows of the batch. Models `SparseObjective`, and `Objective` with the same bits.
/// Cost of `gradient`: one pass over the entries of the batch, and a radix sort of them. Scratch memory: 16 bytes for
/// each (24 of double).
template <LinearLoss Loss = logistic, std::floating_point T = float>
class sparse_linear {
  public:
    using scalar = T;
    using batch = sparse_batch;

    explicit sparse_linear(std::size_t columns, lazy_l2 penalty = {})
        : layers_{layer{"weights", {0, columns}}, layer{"bias", {columns, columns + 1}}}, penalty_(std::move(penalty)) {
        RILL_EXPECTS(columns > 0 && columns <= std::numeric_limits<std::uint32_t>::max(),
                     "sparse_linear: columns that 32 bits can number");
        RILL_EXPECTS(penalty_.is_none() || penalty_.columns() == columns, "sparse_linear: a penalty of all columns");
    }

    std::size_t dimension() const { return columns() + 1; }
    std::size_t columns() const { return layers_[0].part.end; }
    std::span<const layer> layers() const { return layers_; }

    /// All zeros; the key is ignored, since a convex loss needs no random start.
    void initialise(std::span<T> parameters, random_key) const {
        RILL_EXPECTS(parameters.size() == dimension(), "sparse_linear: all parameters");
        std::fill(parameters.begin(), parameters.end(), T{0});
    }

    /// Mean loss of the batch, or the weighted sum where it has weights.
    double loss(std::span<const T> parameters, const batch& samples) {
        return visit(parameters, samples, [](std::uint32_t, T) {}).loss;
    }

    /// Returns the loss of the samples, and writes its derivatives that are not always 0.
    double gradient(std::span<const T> parameters, const batch& samples, stream<T>& output) {
        entries_.clear();
        const totals sum = visit(parameters, samples, [&](std::uint32_t c, T slope) {
            entries_.push_back({c, slope});
        });
        const auto room = output.make_sparse({0, dimension()}, entries_.size() + 1);
        const std::size_t count = kernel::sum_by_index(span_of(entries_), scratch_, room.indices, room.values);
        room.indices[count] = static_cast<std::uint32_t>(columns());
        room.values[count] = sum.bias;
        output.shrink(count + 1);
        return sum.loss;
    }

    /// The same into a value for each parameter.
    double gradient(std::span<const T> parameters, const batch& samples, std::span<T> output) {
        RILL_EXPECTS(output.size() == dimension(), "sparse_linear: room for a derivative by every parameter");
        std::fill(output.begin(), output.end(), T{0});
        const totals sum = visit(parameters, samples, [&](std::uint32_t c, T slope) { output[c] += slope; });
        output.back() = sum.bias;
        return sum.loss;
    }

    /// 1 where the score is above 0, else 0.
    void predict(std::span<const T> parameters, const batch& samples, std::span<std::int32_t> classes)
        requires(Loss::is_classifier)
    {
        check(parameters, samples);
        RILL_EXPECTS(classes.size() == samples.rows.size(), "sparse_linear: room for one class per row");
        for (std::size_t r = 0; r < classes.size(); ++r)
            classes[r] = score(parameters, samples.data.row(samples.rows[r])) > 0 ? 1 : 0;
    }
    /// The class that a label stands for.
    static std::int32_t class_of(float label)
        requires(Loss::is_classifier)
    {
        return label > 0 ? 1 : 0;
    }

  private:
    struct totals {
        double loss = 0;
        T bias{};
    };

    void check(std::span<const T> parameters, const batch& samples) const {
        RILL_EXPECTS(parameters.size() == dimension(), "sparse_linear: all parameters");
        RILL_EXPECTS(!samples.rows.empty(), "sparse_linear: a batch of at least one row");
        RILL_EXPECTS(samples.weights.empty() || samples.weights.size() == samples.rows.size(),
                     "sparse_linear: a weight for each row, or none");
        RILL_EXPECTS(samples.data.columns <= columns(), "sparse_linear: a weight for each column");
    }

    T score(std::span<const T> parameters, const sparse_row& row) const {
        T sum = parameters.back();
        if (row.values.empty())
            for (const std::uint32_t column : row.columns) sum += parameters[column];
        else
            for (std::size_t i = 0; i < row.size(); ++i)
                sum += static_cast<T>(row.values[i]) * parameters[row.columns[i]];
        return sum;
    }

    /// Adds up the losses; calls `take(column, slope)` for each entry whose row has a slope.
    template <class Take>
    totals visit(std::span<const T> parameters, const batch& samples, Take&& take) const {
        check(parameters, samples);
        totals sum;
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            RILL_EXPECTS(samples.rows[r] < samples.data.rows, "sparse_linear: rows of the dataset");
            const sparse_row row = samples.data.row(samples.rows[r]);
            const float label = samples.data.labels[samples.rows[r]];
            const T weight = samples.template weight<T>(r), at = score(parameters, row);
            const T slope = weight * Loss::slope(at, label);
            sum.loss += samples.template weight<double>(r) * (Loss::value(at, label) + penalty(parameters, row));
            sum.bias += slope;
            if (penalty_.is_none() && slope == T{0}) continue;
            for (std::size_t i = 0; i < row.size(); ++i) {
                const std::uint32_t c = row.columns[i];
                T each = row.values.empty() ? slope : slope * static_cast<T>(row.values[i]);
                if (!penalty_.is_none()) each += weight * static_cast<T>(penalty_.factor(c)) * parameters[c];
                take(c, each);
            }
        }
        return sum;
    }

    double penalty(std::span<const T> parameters, const sparse_row& row) const {
        double sum = 0;
        if (!penalty_.is_none())
            for (const std::uint32_t c : row.columns)
                sum += 0.5 * static_cast<double>(penalty_.factor(c)) * static_cast<double>(parameters[c]) *
                       static_cast<double>(parameters[c]);
        return sum;
    }

    std::array<layer, 2> layers_;
    lazy_l2 penalty_;
    aligned_vector<kernel::index_value<T, std::uint32_t>> entries_, scratch_;
};

static_assert(SparseObjective<sparse_linear<logistic>> && Classifier<sparse_linear<logistic>>);
static_assert(SparseObjective<sparse_linear<squared, double>> && Objective<sparse_linear<squared, double>>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/sparse_softmax.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// Multinomial logistic regression on sparse rows. Labels are the numbers of the classes, from 0.
///
/// Parameters: for each column one weight per class, side by side, then the biases; so the gradient has a run of
/// `classes` entries for each column of the batch, and one for the biases: whole rows for the index coding
/// `whole_rows`. Models `SparseObjective`, and `Objective` with the same bits. Cost of `gradient`: two passes over the
/// entries of the batch for each class, and a radix sort of them. Scratch memory: 24 bytes for each entry, and a value
/// for each row and class.
template <std::floating_point T = float>
class sparse_softmax {
  public:
    using scalar = T;
    using batch = sparse_batch;

    sparse_softmax(std::size_t columns, std::size_t classes)
        : layers_{layer{"weights", {0, columns * classes}},
                  layer{"biases", {columns * classes, (columns + 1) * classes}}},
          classes_(classes) {
        constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
        RILL_EXPECTS(classes > 1 && columns > 0 && columns < most / classes,
                     "sparse_softmax: parameters that 32 bits can number, of at least two classes and a column");
    }

    std::size_t dimension() const { return layers_[1].part.end; }
    std::size_t columns() const { return layers_[0].part.end / classes_; }
    std::size_t classes() const { return classes_; }
    std::span<const layer> layers() const { return layers_; }

    /// All zeros; the key is ignored, since a convex loss needs no random start.
    void initialise(std::span<T> parameters, random_key) const {
        RILL_EXPECTS(parameters.size() == dimension(), "sparse_softmax: all parameters");
        std::fill(parameters.begin(), parameters.end(), T{0});
    }

    /// Mean loss of the batch, or the weighted sum where it has weights.
    double loss(std::span<const T> parameters, const batch& samples) {
        check(parameters, samples);
        double sum = 0;
        for (std::size_t r = 0; r < samples.rows.size(); ++r)
            sum += samples.template weight<double>(r) *
                   softmax_loss(scores_of(parameters, samples, r), label_of(samples, r));
        return sum;
    }

    /// Returns the loss of the samples, and writes its derivatives by the weights of their columns and by the biases.
    double gradient(std::span<const T> parameters, const batch& samples, stream<T>& output) {
        const double loss = find_slopes(parameters, samples);
        entries_.clear();
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            const sparse_row row = samples.data.row(samples.rows[r]);
            for (std::size_t i = 0; i < row.size(); ++i)
                entries_.push_back({row.columns[i], static_cast<std::uint32_t>(r), row.value(i)});
        }
        const auto sorted = kernel::sort_by_index(span_of(entries_), scratch_);
        std::size_t touched = 1;  // the biases
        for (std::size_t e = 0; e < sorted.size(); ++e)
            touched += e == 0 || sorted[e].index != sorted[e - 1].index ? 1 : 0;
        const auto room = output.make_sparse({0, dimension()}, touched * classes_);
        std::fill(room.values.begin(), room.values.end(), T{0});
        std::size_t at = 0;
        for (std::size_t e = 0; e < sorted.size(); ++e) {
            if (e > 0 && sorted[e].index != sorted[e - 1].index) at += classes_;
            if (e == 0 || sorted[e].index != sorted[e - 1].index)
                number(room.indices.subspan(at, classes_), sorted[e].index);
            add(room.values.subspan(at, classes_), static_cast<T>(sorted[e].value), sorted[e].row);
        }
        number(room.indices.last(classes_), columns());
        for (std::size_t r = 0; r < samples.rows.size(); ++r) add(room.values.last(classes_), T{1}, r);
        return loss;
    }

    /// The same into a value for each parameter.
    double gradient(std::span<const T> parameters, const batch& samples, std::span<T> output) {
        RILL_EXPECTS(output.size() == dimension(), "sparse_softmax: room for a derivative by every parameter");
        const double loss = find_slopes(parameters, samples);
        std::fill(output.begin(), output.end(), T{0});
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            const sparse_row row = samples.data.row(samples.rows[r]);
            for (std::size_t i = 0; i < row.size(); ++i)
                add(output.subspan(row.columns[i] * classes_, classes_), static_cast<T>(row.value(i)), r);
            add(output.last(classes_), T{1}, r);
        }
        return loss;
    }

    void predict(std::span<const T> parameters, const batch& samples, std::span<std::int32_t> classes) {
        check(parameters, samples);
        RILL_EXPECTS(classes.size() == samples.rows.size(), "sparse_softmax: room for one class per row");
        for (std::size_t r = 0; r < classes.size(); ++r) classes[r] = best_class(scores_of(parameters, samples, r));
    }
    /// The class that a label stands for.
    static std::int32_t class_of(float label) { return static_cast<std::int32_t>(label); }

  private:
    struct entry {
        std::uint32_t index;
        std::uint32_t row;  ///< of the batch
        float value;
    };

    void check(std::span<const T> parameters, const batch& samples) {
        RILL_EXPECTS(parameters.size() == dimension(), "sparse_softmax: all parameters");
        RILL_EXPECTS(!samples.rows.empty(), "sparse_softmax: a batch of at least one row");
        RILL_EXPECTS(samples.weights.empty() || samples.weights.size() == samples.rows.size(),
                     "sparse_softmax: a weight for each row, or none");
        RILL_EXPECTS(samples.data.columns <= columns(), "sparse_softmax: weights for each column");
        slopes_.resize(samples.rows.size() * classes_);
    }

    std::span<T> slopes_of(std::size_t r) { return span_of(slopes_).subspan(r * classes_, classes_); }

    /// The scores of the r-th row of the batch, in its place for slopes.
    std::span<const T> scores_of(std::span<const T> parameters, const batch& samples, std::size_t r) {
        RILL_EXPECTS(samples.rows[r] < samples.data.rows, "sparse_softmax: rows of the dataset");
        const sparse_row row = samples.data.row(samples.rows[r]);
        const std::span<T> scores = slopes_of(r);
        const auto biases = parameters.last(classes_);
        std::copy(biases.begin(), biases.end(), scores.begin());
        for (std::size_t i = 0; i < row.size(); ++i) {
            const auto weights = parameters.subspan(row.columns[i] * classes_, classes_);
            for (std::size_t k = 0; k < classes_; ++k) scores[k] += static_cast<T>(row.value(i)) * weights[k];
        }
        return scores;
    }

    std::size_t label_of(const batch& samples, std::size_t r) const {
        const float label = samples.data.labels[samples.rows[r]];
        RILL_EXPECTS(label >= 0 && label < static_cast<float>(classes_) && label == static_cast<float>(class_of(label)),
                     "sparse_softmax: labels are whole numbers from 0, below the number of classes");
        return static_cast<std::size_t>(label);
    }

    double find_slopes(std::span<const T> parameters, const batch& samples) {
        check(parameters, samples);
        double sum = 0;
        for (std::size_t r = 0; r < samples.rows.size(); ++r) {
            scores_of(parameters, samples, r);
            sum += samples.template weight<double>(r) *
                   softmax_gradient(slopes_of(r), label_of(samples, r), samples.template weight<T>(r));
        }
        return sum;
    }

    /// Adds `value` times the slopes of the r-th row.
    void add(std::span<T> to, T value, std::size_t r) {
        const std::span<const T> slopes = slopes_of(r);
        for (std::size_t k = 0; k < classes_; ++k) to[k] += value * slopes[k];
    }
    void number(std::span<std::uint32_t> indices, std::size_t column) const {
        for (std::size_t k = 0; k < classes_; ++k) indices[k] = static_cast<std::uint32_t>(column * classes_ + k);
    }

    std::array<layer, 2> layers_;
    std::size_t classes_;
    aligned_vector<T> slopes_;
    aligned_vector<entry> entries_, scratch_;
};

static_assert(SparseObjective<sparse_softmax<float>> && Classifier<sparse_softmax<double>>);

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/widen.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// How many columns to add to a dataset, and the key that they are drawn by.
struct widening {
    std::size_t products = 0;  ///< of two different columns
    std::size_t probes = 0;    ///< a column or a product whose rows are permuted: the same values, no information
    random_key key{};

    friend constexpr bool operator==(const widening&, const widening&) = default;
};

namespace detail {

inline void add_products(dataset& wide, std::size_t columns, const widening& how) {
    random_sequence random(how.key.derive(0));
    std::vector<std::pair<std::size_t, std::size_t>> pairs(how.products);
    for (auto& [left, right] : pairs) {
        left = random.below(columns);
        right = (left + 1 + random.below(columns - 1)) % columns;
    }
    for (std::size_t r = 0; r < wide.rows; ++r) {
        float* const row = wide.features.data() + r * wide.columns;
        for (std::size_t i = 0; i < pairs.size(); ++i) row[columns + i] = row[pairs[i].first] * row[pairs[i].second];
    }
}

// Copies a cache line of columns at a time, because the elements of a column are far apart in memory.
inline void add_probes(dataset& wide, std::size_t first, const widening& how) {
    constexpr std::size_t at_once = 16;
    std::array<std::vector<float>, at_once> columns;
    for (std::size_t done = 0; done < how.probes; done += at_once) {
        const std::size_t count = std::min(at_once, how.probes - done);
        for (std::size_t i = 0; i < count; ++i) {
            random_sequence random(how.key.derive(1, done + i));
            const std::size_t source = random.below(first);
            columns[i].resize(wide.rows);
            for (std::size_t r = 0; r < wide.rows; ++r) columns[i][r] = wide.features[r * wide.columns + source];
            for (std::size_t left = wide.rows; left > 1; --left)
                std::swap(columns[i][left - 1], columns[i][random.below(left)]);
        }
        for (std::size_t r = 0; r < wide.rows; ++r)
            for (std::size_t i = 0; i < count; ++i) wide.features[r * wide.columns + first + done + i] = columns[i][r];
    }
}

}  // namespace detail

/// A copy with more columns: those of `data`, then products, then probes. GISETTE was made in this way from images of
/// digits (Guyon et al., NIPS 2003).
///
/// Determinism: a pure function of data and widening. Memory: the copy, and 64 bytes for each row.
inline dataset widen(const dataset& data, const widening& how) {
    RILL_EXPECTS(how.products == 0 || data.columns >= 2, "widen: two columns to multiply");
    RILL_EXPECTS(how.probes == 0 || data.columns >= 1, "widen: a column to make probes of");
    dataset wide{.rows = data.rows,
                 .columns = data.columns + how.products + how.probes,
                 .classes = data.classes,
                 .features = {},
                 .labels = data.labels};
    wide.features.resize(wide.rows * wide.columns);
    for (std::size_t r = 0; r < wide.rows; ++r) {
        const auto row = data.row(r);
        std::copy(row.begin(), row.end(), wide.features.data() + r * wide.columns);
    }
    if (how.products > 0) detail::add_products(wide, data.columns, how);
    detail::add_probes(wide, data.columns + how.products, how);
    return wide;
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train/worker_range.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

/// What a number is on the ranks of a group: the accuracy of each rank's own model, say.
struct worker_range {
    double least = 0, mean = 0, greatest = 0;

    friend constexpr bool operator==(const worker_range&, const worker_range&) = default;
};

/// Collective. All ranks get the same bits. Cost: an all-reduce of two numbers and one of a number. A NaN of any rank
/// makes all three NaN. Errors: as in `all_reduce`.
template <class Group>
worker_range range_of(Group& workers, double value) {
    std::array<double, 2> ends{-value, value};
    all_reduce(workers, std::span(ends), std::span(ends), aggregate::max{});
    const std::span<double> sum(&value, 1);
    all_reduce(workers, sum, sum);
    return {.least = -ends[0], .mean = value / workers.size(), .greatest = ends[1]};
}

}}}  // namespace rill::RILL_ABI::train

// ===== rill/train.hpp

/// Objectives, data, optimizers, strategies and the training loop; needs Eigen and zlib.

// ===== rill/train/automatic.hpp

namespace rill { inline namespace RILL_ABI { namespace train {

namespace detail {

using saved_costs = std::array<std::uint64_t, cost::detail::measured_figures>;

inline saved_costs numbers_of(const cost::measured_costs& costs) {
    saved_costs numbers{};
    cost::detail::visit_figures(costs, [&, i = std::size_t{0}]<class Figure>(const Figure& figure) mutable {
        if constexpr (std::floating_point<Figure>)
            numbers[i++] = std::bit_cast<std::uint64_t>(figure);
        else
            numbers[i++] = static_cast<std::uint64_t>(figure);
    });
    return numbers;
}
inline cost::measured_costs costs_of(const saved_costs& numbers) {
    cost::measured_costs costs;
    cost::detail::visit_figures(costs, [&, i = std::size_t{0}]<class Figure>(Figure& figure) mutable {
        if constexpr (std::floating_point<Figure>)
            figure = std::bit_cast<Figure>(numbers[i++]);
        else
            figure = static_cast<Figure>(numbers[i++]);
    });
    return costs;
}

/// A callable that can be assigned, as a strategy must be. A lambda with captures cannot.
template <class Call>
class assignable {
  public:
    explicit assignable(Call call) : held_(std::move(call)) {}
    assignable(const assignable&) = default;
    assignable& operator=(const assignable& other) {
        if (this == &other) return *this;
        held_.reset();
        held_.emplace(*other.held_);
        return *this;
    }
    ~assignable() = default;

    const Call& operator*() const { return *held_; }

  private:
    std::optional<Call> held_;
};

}  // namespace detail

/// The state of the strategy that an `automatic` has made, and the choice that it was made for. A copy is a state of
/// its own.
template <class State>
class automatic_state {
  public:
    automatic_state(State& of, const cost::exchange_choice& choice) : of_(&of), choice_(&choice) {}
    automatic_state(const automatic_state& other) : own_(*other.of_), of_(&*own_), choice_(other.choice_) {}
    automatic_state& operator=(const automatic_state& other) {
        if (this != &other) *of_ = *other.of_;
        return *this;
    }
    automatic_state& operator=(automatic_state&& other) noexcept(std::is_nothrow_move_assignable_v<State>) {
        if (this != &other) *of_ = std::move(*other.of_);
        return *this;
    }
    ~automatic_state() = default;

    template <class Writer>
    void save(Writer& out, std::string_view prefix) const {
        const std::string name = std::string(prefix) + "automatic.", text = choice_->composition();
        out.add(name + "choice", text);
        out.add(name + "fingerprint", choice_->fingerprint());
        out.add(name + "costs", detail::numbers_of(choice_->costs));
        of_->save(out, prefix);
    }
    template <class Reader>
    void restore(const Reader& in, std::string_view prefix) {
        const std::string name = std::string(prefix) + "automatic.";
        std::string saved(in.count(name + "choice"), ' ');
        std::uint64_t fingerprint = 0;
        in.read(name + "choice", saved);
        in.read(name + "fingerprint", std::span(&fingerprint, 1));
        if (fingerprint != choice_->fingerprint())
            throw data_error(in.path(), "section \"" + name + "choice\"",
                             choice_->composition() + ", as this run has chosen (choose by cost::choose(" +
                                 "train::costs_in(checkpoint, prefix), gradient) to go on)",
                             saved);
        of_->restore(in, prefix);
    }

  private:
    std::optional<State> own_;
    State* of_;
    const cost::exchange_choice* choice_;
};

/// The figures by which the `automatic` strategy of a saved trainer chose. `cost::choose` makes the same choice from
/// them for the same gradients, dimension included.
template <class Reader>
cost::measured_costs costs_in(const Reader& in, std::string_view prefix) {
    detail::saved_costs numbers{};
    in.read(std::string(prefix) + "automatic.costs", numbers);
    return detail::costs_of(numbers);
}

/// An `automatic` bound to one rank.
template <class Net, class Policy, std::floating_point T>
class bound_automatic {
    using bound_type = decltype(std::declval<const typename Policy::strategy_type&>().template bind<T>(
        std::declval<Net&>(), std::span<const layer>(), group_options{}));

  public:
    bound_automatic(Net& net, const Policy& policy, std::span<const layer> layers, const group_options& options)
        : choice_(policy.choose(net, dimension_of(layers), options)),
          composition_(choice_.composition()),
          bound_(policy.make(choice_).template bind<T>(net, layers, options)) {}
    bound_automatic(const bound_automatic&) = delete;
    bound_automatic& operator=(const bound_automatic&) = delete;
    ~bound_automatic() = default;

    const cost::exchange_choice& choice() const { return choice_; }
    /// The strategy that was made for the choice, bound.
    auto& chosen() { return bound_; }
    const auto& chosen() const { return bound_; }
    auto& workers() { return bound_.workers(); }
    void require_same_start(byte_view parameters)
        requires requires(bound_type& bound) { bound.require_same_start(parameters); }
    {
        bound_.require_same_start(parameters);
    }

    template <class Gradient, class Compute>
    step_record step(std::span<T> parameters, Gradient&& gradient, std::uint64_t number, Compute&& compute) {
        step_record record = bound_.step(parameters, gradient, number, compute);
        record.choice = composition_;
        return record;
    }
    void end() { bound_.end(); }
    bool contributes() const { return bound_.contributes(); }
    auto& state() { return state_; }
    const auto& state() const { return state_; }
    std::uint64_t position() const { return bound_.position(); }
    void resume_at(std::uint64_t position) { bound_.resume_at(position); }
    void add_up(std::span<std::int64_t> table) { bound_.add_up(table); }

  private:
    cost::exchange_choice choice_;
    std::string composition_;
    bound_type bound_;
    automatic_state<std::remove_cvref_t<decltype(std::declval<bound_type&>().state())>> state_{bound_.state(), choice_};
};

/// A strategy whose exchange is chosen by measurement.
///
/// `make(choice)` returns the strategy for a `cost::exchange_choice`: one type for all choices, such as `bsp`,
/// `sparse_bsp` or `compressed_bsp` over `choice.topology`, with `choice.codings` (`compress::with_codings`). Binding
/// is collective: it measures once (`cost::choose`), for gradients of the model's dimension, so that all ranks make the
/// same strategy. With a choice that is given, nothing is measured.
///
/// The records of its steps tell the choice. A checkpoint goes on only under the choice under which it was saved; else
/// it is refused. Since another run may measure otherwise, give such a run `cost::choose(costs_in(checkpoint, prefix),
/// gradient)`, where `gradient.dimension` is the model's.
///
/// Models `Strategy`. Cost per step and determinism: those of the strategy that is made. Errors: those of
/// `cost::choose` when it is bound.
template <class Make>
class automatic {
  public:
    using strategy_type = std::remove_cvref_t<std::invoke_result_t<const Make&, const cost::exchange_choice&>>;

    static constexpr bool replicas_equal = strategy_type::replicas_equal;
    static constexpr bool is_layered = strategy_type::is_layered;
    static constexpr bool is_sparse = SparseStrategy<strategy_type>;

    /// `gradient.dimension` is not used: it is the model's.
    automatic(const cost::gradient_shape& gradient, Make make) : gradient_(gradient), make_(std::move(make)) {}
    automatic(const cost::exchange_choice& given, Make make) : given_(given), make_(std::move(make)) {}

    template <std::floating_point T = float, class Net>
    bound_automatic<Net, automatic, T> bind(Net& net, std::span<const layer> layers,
                                            const group_options& options = {}) const {
        return {net, *this, layers, options};
    }

    /// What `bind` does first.
    template <Transport Net>
    cost::exchange_choice choose(Net& net, std::size_t dimension, const group_options& options) const {
        if (given_) return *given_;
        cost::gradient_shape gradient = gradient_;
        gradient.dimension = dimension;
        return cost::choose(net, gradient, options.timeout);
    }
    strategy_type make(const cost::exchange_choice& choice) const { return (*make_)(choice); }

  private:
    cost::gradient_shape gradient_{};
    std::optional<cost::exchange_choice> given_;
    detail::assignable<Make> make_;
};

}}}  // namespace rill::RILL_ABI::train

// ===== rill/system/ad_psgd.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `ad_psgd` returns.
template <class Optimizer, class Rate, class Who>
using ad_psgd_plan = train::pair_replica<Who, train::descent<Optimizer, Rate>>;

/// AD-PSGD (Lian et al. 2018): a plan for `train::asynchronous_trainer`. Each rank steps by itself and averages its
/// model with that of one other rank at a time, drawn among those that `who` allows: as in the paper, ranks of even
/// number ask those of odd number. `rate` multiplies each gradient; its steps are the moves of the rank's own model,
/// exchanges among them. The mean of all ranks' final parameters is the result.
template <class Optimizer, class Rate, class Who = topology::bipartite>
constexpr ad_psgd_plan<Optimizer, Rate, Who> ad_psgd(const Optimizer& optimizer, const Rate& rate,
                                                     const Who& who = {}) {
    return {who, {optimizer, rate}};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/choco_sgd.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `density`: the share of the entries of the difference that a rank sends, in (0, 1]. `step`: how far a model moves
/// towards its neighbours', in (0, 1]: the fewer entries, the shorter.
struct choco_sgd_options {
    double density = 0.01;
    double step = 0.05;
};

/// What `choco_sgd` returns.
template <class Optimizer, class Rate, class Mix>
using choco_sgd_strategy = train::decentralized<Mix, Optimizer, Rate, compress::difference<compress::top_k>>;

/// CHOCO-SGD (Koloskova et al. 2019): a strategy for `train::trainer`. Each rank moves its model along its own
/// gradient, sends its neighbours in a ring the largest entries of what they do not know of it, and moves it towards
/// what it knows of theirs.
template <class Optimizer, class Rate, class Mix = topology::ring_neighbours>
constexpr choco_sgd_strategy<Optimizer, Rate, Mix> choco_sgd(const choco_sgd_options& chosen,
                                                             const Optimizer& optimizer, const Rate& rate,
                                                             const Mix& mixing = {}) {
    return {mixing, optimizer, rate, {{.density = chosen.density}, chosen.step}};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/coded_reduce.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// The (width, depth)-regular tree of workers, and how many missing children a parent tolerates.
struct coded_reduce_options {
    int width = 2;
    int depth = 1;
    int stragglers = 0;
};

/// What `coded_reduce` and `gradient_coding` return.
template <class Optimizer, class Rate>
using coded_reduce_strategy = train::coded_bsp<topology::regular_tree, gradient_code::any_code, Optimizer, Rate>;

/// CodedReduce (Reisizadeh et al. 2022), with messages of T: a strategy for `train::trainer` on `topology.size()`
/// ranks, whose batches are `train::coded_batch`. `rate` multiplies the gradient of the mean loss of all points.
/// Deviation: the code is `gradient_code::default_code` for its numbers and T, because a random one loses the digits of
/// floats.
template <std::floating_point T = float, class Optimizer, class Rate>
coded_reduce_strategy<Optimizer, Rate> coded_reduce(const coded_reduce_options& chosen, const Optimizer& optimizer,
                                                    const Rate& rate) {
    return {{chosen.width, chosen.depth},
            gradient_code::default_code(chosen.width, chosen.stragglers, element_type_of<T>).code,
            optimizer,
            rate};
}

/// Gradient coding at one master (Tandon et al. 2017): CodedReduce on a tree of depth 1.
template <std::floating_point T = float, class Optimizer, class Rate>
coded_reduce_strategy<Optimizer, Rate> gradient_coding(int workers, int stragglers, const Optimizer& optimizer,
                                                       const Rate& rate) {
    return coded_reduce<T>({.width = workers, .depth = 1, .stragglers = stragglers}, optimizer, rate);
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/d_psgd.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `d_psgd` returns.
template <class Optimizer, class Rate, class Mix>
using d_psgd_strategy = train::decentralized<Mix, Optimizer, Rate, compress::keep_all, train::mix_before>;

/// D-PSGD (Lian et al. 2017): a strategy for `train::trainer`. Each rank mixes its model with those of its neighbours
/// in a ring, or in a graph by `topology::metropolis`, and then moves it along its gradient at the model before. `rate`
/// multiplies each rank's own gradient.
template <class Optimizer, class Rate, class Mix = topology::ring_neighbours>
constexpr d_psgd_strategy<Optimizer, Rate, Mix> d_psgd(const Optimizer& optimizer, const Rate& rate,
                                                       const Mix& mixing = {}) {
    return {mixing, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/d_squared.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `d_squared` returns.
template <class Optimizer, class Rate, class Mix>
using d_squared_strategy = train::decentralized<Mix, Optimizer, Rate, compress::keep_all, train::d_squared>;

/// D² (Tang et al. 2018): a strategy for `train::trainer`. D-PSGD that takes the difference between the ranks'
/// gradients out, for ranks whose data differ. The mixing's eigenvalues must be above -⅓: a ring has them where a rank
/// keeps half of its own model.
template <class Optimizer, class Rate, class Mix = topology::ring_neighbours>
constexpr d_squared_strategy<Optimizer, Rate, Mix> d_squared(const Optimizer& optimizer, const Rate& rate,
                                                             const Mix& mixing = {.own = 0.5}) {
    return {mixing, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/dcd_psgd.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `density`: the share of the entries of the difference that a rank sends, in (0, 1]: 1/c in the paper.
struct dcd_psgd_options {
    double density = 0.25;
};

/// What `dcd_psgd` returns.
template <class Optimizer, class Rate, class Mix>
using dcd_psgd_strategy = train::decentralized<Mix, Optimizer, Rate, compress::difference<compress::top_k>>;

/// DCD-PSGD (Tang et al. 2018): a strategy for `train::trainer`. A rank's model is what its neighbours in a ring know
/// of it; each sends the largest entries of the difference between that and the model that it would have. Deviation:
/// the largest entries instead of random ones scaled by c, with which it diverges for c = 4.
template <class Optimizer, class Rate, class Mix = topology::ring_neighbours>
constexpr dcd_psgd_strategy<Optimizer, Rate, Mix> dcd_psgd(const dcd_psgd_options& chosen, const Optimizer& optimizer,
                                                           const Rate& rate, const Mix& mixing = {}) {
    return {mixing, optimizer, rate, {{.density = chosen.density}, {}}};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/eager_sgd.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `eager_sgd` returns.
template <class Start, class Optimizer, class Rate>
using eager_sgd_plan = train::partial_replica<topology::recursive_doubling, Start, straggler::in_step,
                                              straggler::plain_sum, train::descent<Optimizer, Rate>>;

/// Eager-SGD (Li et al. 2020): a plan for `train::asynchronous_trainer`. A round starts with one rank drawn at random
/// (`majority`: on average half of the ranks are ready) or with the first that is ready (`solo`); a late gradient
/// counts in the next round. `rate` multiplies the sum of the gradients of a round.
template <class Optimizer, class Rate, class Start = straggler::majority>
constexpr eager_sgd_plan<Start, Optimizer, Rate> eager_sgd(const Optimizer& optimizer, const Rate& rate,
                                                           const Start& start = {}) {
    return {{}, start, {}, {}, {optimizer, rate}, {}};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/fault_tolerant_tree.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// Parallel SGD over a tree that goes round links that fall silent (Padrão 2020, chapter 6).
///
/// Deviation from the source: silence is measured by default; `detect::fixed(milliseconds(500))` is the thesis.
template <class Optimizer, class Rate, class Clip = train::no_clip>
using fault_tolerant_tree_strategy = train::bsp<topology::backup_tree, Optimizer, Rate, Clip>;

/// Makes a strategy for `train::trainer`. `rate` multiplies the mean gradient in the optimizer; `tree` says the degree
/// and when a link is silent; `clip` acts on each rank's own gradient.
template <class Optimizer, class Rate, class Clip = train::no_clip>
constexpr fault_tolerant_tree_strategy<Optimizer, Rate, Clip> fault_tolerant_tree(
    const Optimizer& optimizer, const Rate& rate, const topology::backup_tree& tree = {}, const Clip& clip = {}) {
    return {tree, optimizer, rate, clip};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/fed_avg.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `fraction`: the share of the workers that the root asks in a round.
struct fed_avg_options {
    double fraction = 0.5;
};

/// FedAvg (McMahan et al. 2017): the rounds of a root, which has the model, and of workers. Returns `rounds` over a
/// star:
///
///     auto fed = systems::fed_avg(workers);
///     while (fed.next(model)) { ... fed.reduce(change, update, codec, aggregate::mean{}, {.weight = points}); }
///
/// Each worker that is asked descends from the model by itself and uploads by how much it has moved it. With
/// `compress::random_mask`, or `top_k` in `error_feedback`, as `codec` it is S-FedAvg. Collective; `workers` must
/// outlive what it returns.
template <class Group>
auto fed_avg(Group& workers, const fed_avg_options& chosen = {}) {
    return rounds{workers,
                  topology::star{},
                  straggler::wait_all{},
                  straggler::fresh{},
                  straggler::solo{},
                  straggler::sampled{.fraction = chosen.fraction}};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/gossip_grad.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `gossip_grad` returns.
template <class Optimizer, class Rate>
using gossip_grad_strategy = train::decentralized<topology::rotating, Optimizer, Rate>;

/// GossipGraD (Daily et al. 2018): a strategy for `train::trainer`. Each rank moves its model along its own gradient
/// and averages it with that of one other rank, which is 1, 2, 4, … further in an order that changes every log2 P
/// steps. Deviation: images are not passed on around a ring.
template <class Optimizer, class Rate>
constexpr gossip_grad_strategy<Optimizer, Rate> gossip_grad(const Optimizer& optimizer, const Rate& rate) {
    return {{}, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/local_sgd.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `every`: how many steps a rank makes by itself. `outer`, `outer_rate`: the step of the model that all share, along
/// the mean of what the ranks have moved theirs by; as they are, it goes to the mean of the ranks' models.
struct local_sgd_options {
    std::uint32_t every = 32;
    train::sgd outer{};
    double outer_rate = 1;
};

/// What `local_sgd` returns.
template <class Optimizer, class Rate>
using local_sgd_plan =
    train::local_replica<train::partial_replica<topology::ring, straggler::all_ready, straggler::in_step,
                                                straggler::plain_sum, train::descent<train::sgd, train::constant_rate>>,
                         train::descent<Optimizer, Rate>>;

/// Local SGD (Stich 2019), on one ring: a plan for `train::asynchronous_trainer`. `optimizer` and `rate` are those of a
/// rank's own steps, which `rate` counts; rounds are what versions count. All ranks take part in each round, so the
/// slowest one sets the pace. With `{.every = 500, .outer = {.momentum = 0.9, .nesterov = true}, .outer_rate = 0.7}`,
/// and AdamW for the own steps, it is DiLoCo (Douillard et al. 2023).
template <class Optimizer, class Rate>
constexpr local_sgd_plan<Optimizer, Rate> local_sgd(const local_sgd_options& chosen, const Optimizer& optimizer,
                                                    const Rate& rate) {
    return {{{}, {}, {}, {}, {chosen.outer, {chosen.outer_rate}, false}, {}}, {chosen.every}, {optimizer, rate}};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/master_worker.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `master_worker` and `sgd_ignoring_slowest` return.
template <class Completion, class Optimizer, class Rate>
using master_worker_strategy = train::partial_bsp<topology::star, Completion, Optimizer, Rate>;

/// A master that waits for every worker: the uncoded baseline of gradient coding. A strategy for `train::trainer`; rank
/// 0 is the master, `rate` multiplies the mean of the workers' gradients.
template <class Optimizer, class Rate>
constexpr master_worker_strategy<straggler::wait_all, Optimizer, Rate> master_worker(const Optimizer& optimizer,
                                                                                     const Rate& rate) {
    return {{}, {}, optimizer, rate};
}

/// A master that goes on without the `ignored` slowest workers and drops what comes later. A strategy for
/// `train::trainer`; rank 0 is the master, `rate` multiplies the mean of the gradients that came in time.
template <class Optimizer, class Rate>
constexpr master_worker_strategy<straggler::tolerate, Optimizer, Rate> sgd_ignoring_slowest(int ignored,
                                                                                            const Optimizer& optimizer,
                                                                                            const Rate& rate) {
    return {{}, {ignored}, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/psgd.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// Parallel SGD over a ring all-reduce (Patarasuk and Yuan 2009; Horovod): the dense baseline.
template <class Optimizer, class Rate, class Clip = train::no_clip>
using psgd_strategy = train::bsp<topology::ring, Optimizer, Rate, Clip>;

/// Makes a strategy for `train::trainer`. `rate` multiplies the mean gradient in the optimizer; `clip` acts on each
/// rank's own gradient.
template <class Optimizer, class Rate, class Clip = train::no_clip>
constexpr psgd_strategy<Optimizer, Rate, Clip> psgd(const Optimizer& optimizer, const Rate& rate,
                                                    const Clip& clip = {}) {
    return {{}, optimizer, rate, clip};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/rna.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `probes`: how many ranks are drawn in each round, of which the first that is ready starts it. `staleness`: how many
/// rounds may move the model between the pull of a gradient's model and the round in which the gradient counts.
struct rna_options {
    int probes = 2;
    std::uint32_t staleness = 16;
};

/// What `rna` returns.
template <class Optimizer, class Rate>
using rna_plan = train::partial_replica<topology::ring, straggler::two_choices, straggler::bounded,
                                        straggler::linear_mean, train::descent<Optimizer, Rate>>;

/// RNA (Yang et al. 2020), on one ring: a plan for `train::asynchronous_trainer`. `rate` multiplies the mean gradient
/// of a round times the number of ranks that contribute to it. Deviation: a rank does not apply its gradients to its
/// own model before the round, which would count them twice.
template <class Optimizer, class Rate>
constexpr rna_plan<Optimizer, Rate> rna(const rna_options& chosen, const Optimizer& optimizer, const Rate& rate) {
    return {{}, {chosen.probes}, {chosen.staleness}, {}, {optimizer, rate}, {}};
}

/// RNA with its hierarchy: each group of `groups` makes such rounds, and the groups share a model to which each adds
/// what it has changed (`shared`: or, as in the paper, `aggregate::mean_of_latest`). A group of fewer ranks than
/// `probes` asks all of its ranks.
template <class Optimizer, class Rate, class Shared = aggregate::add>
train::grouped_replica<rna_plan<Optimizer, Rate>, Shared> grouped_rna(const train::grouping& groups,
                                                                      const rna_options& chosen,
                                                                      const Optimizer& optimizer, const Rate& rate,
                                                                      const Shared& shared = {}) {
    rna_options own = chosen;
    own.probes = std::clamp(chosen.probes, 1, std::max(1, static_cast<int>(groups.alike.members.size())));
    return {rna(own, optimizer, rate), groups, shared};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/saps_psgd.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `density`: the share of the entries that are mixed in a step, 1/c in the paper; `seed` draws them.
struct saps_psgd_options {
    double density = 0.01;
    std::uint64_t seed = 0;
};

/// What `saps_psgd` returns.
template <class Optimizer, class Rate, class Mix>
using saps_psgd_strategy = train::decentralized<Mix, Optimizer, Rate, compress::random_mask>;

/// SAPS-PSGD (Tang et al. 2020): a strategy for `train::trainer`. Each rank moves its model along its own gradient, and
/// averages some of its entries, which are the same on all ranks, with those of one other rank over a fast link.
/// Deviations: those of `topology::bandwidth_matching`; and all ranks compute the pairs, so that no coordinator is
/// needed, and none keeps the others going where a rank fails: for that see `rill::coordinated`.
template <class Optimizer, class Rate, class Mix = topology::bandwidth_matching>
saps_psgd_strategy<Optimizer, Rate, Mix> saps_psgd(const saps_psgd_options& chosen, const Mix& mixing,
                                                   const Optimizer& optimizer, const Rate& rate) {
    return {mixing, optimizer, rate, {.density = chosen.density, .seed = chosen.seed}};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/sgp.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// What `sgp` returns.
template <class Optimizer, class Rate, class Mix>
using sgp_strategy = train::decentralized<Mix, Optimizer, Rate>;

/// Stochastic gradient push (Assran et al. 2019): a strategy for `train::trainer`. Each rank moves its model along its
/// own gradient and pushes it to one other rank: 1, 2, 4, … further. There all push-sum weights are 1 and none is sent;
/// over `topology::directed` models and weights are pushed, and gradients are those at their quotient.
template <class Optimizer, class Rate, class Mix = topology::exponential>
constexpr sgp_strategy<Optimizer, Rate, Mix> sgp(const Optimizer& optimizer, const Rate& rate, const Mix& mixing = {}) {
    return {mixing, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/sign_sgd.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// signSGD with majority vote (Bernstein et al., ICML 2018): ranks vote with the signs of their gradients.
/// A rank sends and receives one bit for each parameter twice. Deviations: the owners of parts count the votes, in
/// place of one server; a tie is +1.
template <class Optimizer, class Rate>
using sign_sgd_strategy = train::sign_bsp<topology::split_allgather, Optimizer, Rate>;

/// Makes a strategy for `train::trainer`. `rate` is how far each parameter moves in a step, if the optimizer is `sgd`
/// without momentum.
template <class Optimizer, class Rate>
constexpr sign_sgd_strategy<Optimizer, Rate> sign_sgd(const Optimizer& optimizer, const Rate& rate) {
    return {{}, optimizer, rate};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/sparcml.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// The options of SparCML's top-k SGD.
struct sparcml_options {
    double density = 0.01;   ///< the share of all entries that each rank sends, in (0, 1]; unused where `bucket` is set
    int bits = 4;            ///< of a value in the copy phase, in which the folded parts are sent on: 2, 4 or 8
    int source_bits = 0;     ///< of a value that a rank contributes: 2, 4 or 8; 0: sent as it is
    std::size_t bucket = 0;  ///< consecutive entries of which each rank sends `keep`; 0: the largest of all entries
    std::size_t keep = 0;    ///< at least 1 and at most `bucket`

    friend constexpr bool operator==(const sparcml_options&, const sparcml_options&) = default;
};

/// The sparsifier of `sparcml`: the largest entries, of all or of each bucket, as its options say. Cost, determinism
/// and errors are those of `compress::top_k` and `compress::bucket_top_k`.
struct sparcml_selection {
    sparcml_options options{};

    static constexpr const char* name = "sparcml_selection";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;

    template <Element T, IndexType Index>
    class selector : public compress::selection<T, Index> {
      public:
        selector(const sparcml_selection& policy, std::size_t dimension)
            : compress::selection<T, Index>(dimension),
              bucket_(policy.options.bucket),
              count_(bucket_ > 0 ? policy.kept() : compress::top_k{policy.options.density}.entries(dimension)) {}

        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            const std::size_t most = bucket_ > 0 ? kernel::bucket_top_k_count(input.size(), bucket_, count_) : count_;
            const std::span<Index> room = this->room(most);
            const std::size_t chosen = bucket_ > 0
                                           ? kernel::bucket_top_k(input, bucket_, count_, room, scratch_, executor)
                                           : kernel::top_k(input, count_, room, scratch_, executor);
            return this->take(chosen, input, executor);
        }

      private:
        std::size_t bucket_;
        std::size_t count_;
        kernel::select_scratch scratch_;
    };

    friend constexpr bool operator==(const sparcml_selection&, const sparcml_selection&) = default;

  private:
    std::size_t kept() const {
        rill::detail::require_option(options.keep > 0 && options.keep <= options.bucket, "systems::sparcml: keep",
                                     options.keep, "at least 1 and at most the bucket");
        return options.keep;
    }
};

/// The value coding of what a rank contributes to `sparcml`: QSGD, or raw where no bits are given.
struct sparcml_source {
    int bits = 0;

    static constexpr const char* name = "sparcml_source";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = true;

    constexpr rill::coding coding() const {
        return bits == 0 ? compress::raw::coding() : compress::qsgd{.bits = bits}.coding();
    }
    friend constexpr bool operator==(sparcml_source, sparcml_source) = default;
};

/// A rank sends its largest entries, quantised where that is chosen; folded parts have quantised values.
using sparcml_codec = compress::error_feedback<
    compress::encoded<sparcml_selection, sparcml_source, compress::packed_gaps, compress::qsgd>>;

/// Quantised top-k SGD with error feedback (Renggli et al., SparCML, SC 2019, Algorithm 1) over SSAR_Split_allgather.
/// What is not selected stays at its rank; the rounding of the quantiser, which is unbiased, averages out. Deviations:
/// indices are packed; the owner of a part quantises the folded sum once; contributions are quantised only where
/// `source_bits` says so.
template <class Optimizer, class Rate, class Clip = train::no_clip>
using sparcml_strategy = train::compressed_bsp<topology::split_allgather, sparcml_codec, Optimizer, Rate, Clip>;

/// Makes a strategy for `train::trainer`. `rate` multiplies each rank's gradient before it is compressed. Throws
/// `contract_violation` for options out of range, when the strategy is bound.
template <class Optimizer, class Rate, class Clip = train::no_clip>
constexpr sparcml_strategy<Optimizer, Rate, Clip> sparcml(const sparcml_options& chosen, const Optimizer& optimizer,
                                                          const Rate& rate, const Clip& clip = {}) {
    return {{}, {{{chosen}, {chosen.source_bits}, {}, {.bits = chosen.bits}}}, optimizer, rate, clip};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system/stale_synchronous.hpp

namespace rill { inline namespace RILL_ABI { namespace systems {

/// `servers`: the last ranks, each with a part of the model; `dedicated`: they do nothing else. `staleness`: by how
/// many gradients a worker may lead the slowest one.
struct stale_synchronous_options {
    int servers = 1;
    bool dedicated = true;
    std::uint32_t staleness = 3;
};

/// As a staleness: no worker waits for another one (BAP).
inline constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

/// What `stale_synchronous` returns.
template <class Optimizer, class Rate>
using stale_synchronous_plan = train::server_replica<straggler::bounded, train::descent<Optimizer, Rate>>;

/// Stale-synchronous parallel training on a parameter server (Ho et al. 2013): a plan for
/// `train::asynchronous_trainer`. `rate` multiplies each gradient, which moves the model as it arrives; where all W
/// workers take part, W of them make about one step of bulk-synchronous training at W times the rate.
template <class Optimizer, class Rate>
constexpr stale_synchronous_plan<Optimizer, Rate> stale_synchronous(const stale_synchronous_options& chosen,
                                                                    const Optimizer& optimizer, const Rate& rate) {
    return {{.servers = chosen.servers, .dedicated = chosen.dedicated}, {chosen.staleness}, {optimizer, rate}};
}

}}}  // namespace rill::RILL_ABI::systems

// ===== rill/system.hpp

/// All published systems that rill provides, as compositions of its policies; needs Eigen.

// ===== rill/adapt/eigen.hpp

#include <Eigen/Core>

namespace rill { inline namespace RILL_ABI {

namespace detail {

template <class Derived>
std::type_identity<Derived> eigen_type(const Eigen::DenseBase<Derived>&);

/// Whether a type is a `Ref` to const, which may have evaluated its argument into memory of its own.
template <class X>
constexpr bool is_eigen_const_ref = false;
template <class X, int options, class Stride>
constexpr bool is_eigen_const_ref<Eigen::Ref<const X, options, Stride>> = true;

/// A dense vector, matrix, array, map, block or expression of Eigen, or a class derived from one.
template <class X>
concept EigenDense = requires(const X& x) { eigen_type(x); };

}  // namespace detail

/// Makes Eigen's dense types tensors.
///
/// Coordinates are numbered as the type stores them: column by column, or row by row if it is `RowMajor` (a transposed
/// expression has the other order). Objects that lie in memory without gaps (vectors, matrices, maps, blocks of whole
/// columns) are used in place. Everything else is copied: a strided block element by element; an expression is
/// evaluated, a product without a temporary.
///
/// An operation in the background evaluates a temporary expression when it starts, and keeps a copy of a temporary map
/// or block. A block of a temporary matrix, `f().topRows(2)`, reads freed memory, because its type is that of any other
/// block. Store the matrix in a variable first.
template <detail::EigenDense X>
struct tensor_traits<X> {
    using element_type = typename X::Scalar;
    using dense = typename decltype(detail::eigen_type(std::declval<const X&>()))::type;
    using plain = typename X::PlainObject;

    static constexpr coordinate_order order = X::IsVectorAtCompileTime ? coordinate_order::any
                                              : X::IsRowMajor          ? coordinate_order::row_major
                                                                       : coordinate_order::column_major;
    static constexpr bool has_memory = (static_cast<unsigned>(X::Flags) & Eigen::DirectAccessBit) != 0;
    static constexpr bool is_writable = (static_cast<unsigned>(X::Flags) & Eigen::LvalueBit) != 0;

    static constexpr bool is_view = (has_memory || is_writable) && !detail::is_eigen_const_ref<dense> &&
                                    !std::derived_from<dense, Eigen::PlainObjectBase<dense>>;

    static std::size_t size(const X& x) { return static_cast<std::size_t>(x.size()); }

    static bool is_contiguous(const X& x)
        requires has_memory
    {
        return x.innerStride() == 1 && (x.outerSize() <= 1 || x.outerStride() == x.innerSize());
    }
    static memory_layout layout_in_memory(const X& x)
        requires has_memory
    {
        constexpr std::ptrdiff_t bytes = sizeof(element_type);
        if (is_contiguous(x)) return memory_layout::of(view(x));
        return {x.data(),
                bytes,
                x.innerStride() * bytes,
                static_cast<std::size_t>(x.innerSize()),
                x.outerStride() * bytes,
                static_cast<std::size_t>(x.outerSize())};
    }
    static std::span<const element_type> view(const X& x)
        requires has_memory
    {
        return {x.data(), size(x)};
    }
    static std::span<element_type> view(X& x)
        requires(has_memory && is_writable)
    {
        return {x.data(), size(x)};
    }

    static void read(const X& x, std::span<element_type> to) {
        Eigen::Map<plain> target(to.data(), x.rows(), x.cols());
        if constexpr (requires { target.noalias() = x; })
            target.noalias() = x;
        else
            target = x;
    }
    static void write(std::span<const element_type> from, X& x)
        requires is_writable
    {
        static_cast<dense&>(x) = Eigen::Map<const plain>(from.data(), x.rows(), x.cols());
    }
};

}}  // namespace rill::RILL_ABI

#endif  // RILL_SINGLE_TRAIN_HPP
