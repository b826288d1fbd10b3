// Turns lists of the files of Debian's packages into samples: a row for each path, whose features are the path's
// sequences of 4 and 5 bytes, all with value 1, and whose label is +1 for packages of section doc and -1 for others.
//
// Columns are numbered from 1 in the order in which their sequences first occur. Packages are divided by a hash of
// their names: a tenth of them is held out. One pass; memory: 32 bytes for each distinct sequence, at most twice as
// many.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

/// The number of each sequence of bytes: a hash table with open addressing.
class gram_table {
  public:
    gram_table() : slots_(std::size_t{1} << 16) {}

    std::uint32_t count() const { return count_; }

    /// Replaces `columns` by the numbers of all sequences of `path`, each once, unordered.
    void number(std::string_view path, std::vector<std::uint32_t>& columns) {
        collect(path);
        while (count_ + keys_.size() > slots_.size() / 2) grow();
        for (const std::uint64_t key : keys_) __builtin_prefetch(&slots_[place(key)]);
        columns.clear();
        ++row_;
        for (const std::uint64_t key : keys_) {
            slot& found = find(key);
            if (found.key == 0) found = {.key = key, .number = ++count_};
            if (std::exchange(found.last_row, row_) != row_) columns.push_back(found.number);
        }
    }

  private:
    struct slot {
        std::uint64_t key = 0;  ///< 0: free
        std::uint32_t number = 0;
        std::uint32_t last_row = 0;
    };

    /// The sequences as numbers above 0, by which they differ.
    void collect(std::string_view path) {
        keys_.clear();
        std::uint64_t last = 0;  // 5 bytes
        for (std::size_t i = 0; i < path.size(); ++i) {
            last = (last << 8U | static_cast<unsigned char>(path[i])) & 0xFF'FFFF'FFFFU;
            if (i >= 3) keys_.push_back(std::uint64_t{1} << 40U | (last & 0xFFFF'FFFFU));
            if (i >= 4) keys_.push_back(std::uint64_t{1} << 41U | last);
        }
    }

    std::size_t place(std::uint64_t key) const {
        const std::uint64_t mixed = key * 0x9E37'79B9'7F4A'7C15U;
        return static_cast<std::size_t>(mixed >> 20U) & (slots_.size() - 1);
    }

    slot& find(std::uint64_t key) {
        std::size_t at = place(key);
        while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }

    void grow() {
        const std::vector<slot> old = std::exchange(slots_, std::vector<slot>(2 * slots_.size()));
        for (const slot& each : old)
            if (each.key != 0) find(each.key) = each;
    }

    std::vector<slot> slots_;
    std::vector<std::uint64_t> keys_{};
    std::uint32_t count_ = 0, row_ = 0;
};

/// A file of samples in LIBSVM's format. Throws where it cannot be written.
class sample_file {
  public:
    explicit sample_file(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wb")) {
        if (file_ == nullptr) fail("be opened");
    }
    sample_file(const sample_file&) = delete;
    sample_file& operator=(const sample_file&) = delete;
    ~sample_file() {
        if (file_ != nullptr) std::fclose(file_);
    }

    std::uint64_t rows() const { return rows_; }

    /// Sorts `columns`.
    void write(bool is_positive, std::vector<std::uint32_t>& columns) {
        std::sort(columns.begin(), columns.end());
        line_.resize(4 + 11 * columns.size());
        char* end = std::copy_n(is_positive ? "+1" : "-1", 2, line_.data());
        for (const std::uint32_t column : columns) {
            *end++ = ' ';
            end = std::to_chars(end, line_.data() + line_.size(), column).ptr;
        }
        *end++ = '\n';
        const auto size = static_cast<std::size_t>(end - line_.data());
        if (std::fwrite(line_.data(), 1, size, file_) != size) fail("be written");
        ++rows_;
    }

    void close() {
        if (std::fclose(std::exchange(file_, nullptr)) != 0) fail("be written");
    }

  private:
    [[noreturn]] void fail(const char* what) const {
        throw std::system_error(errno, std::generic_category(), path_ + " cannot " + what);
    }

    std::string path_;
    std::FILE* file_;
    std::string line_{};
    std::uint64_t rows_ = 0;
};

/// A line of a list: a path, spaces, and the packages that have it, as `section/package,section/package`.
struct entry {
    std::string_view path{};
    std::string_view package{};  ///< the first
    bool is_doc = false;         ///< whether one of them is of section doc
};

entry read(std::string_view line) {
    const std::size_t last = line.find_last_of(" \t");
    if (last == std::string_view::npos) return {};
    const std::size_t end = line.find_last_not_of(" \t", last);
    if (end == std::string_view::npos) return {};
    entry found{.path = line.substr(0, end + 1)};
    for (std::string_view rest = line.substr(last + 1); !rest.empty();) {
        const std::string_view each = rest.substr(0, rest.find(','));
        const std::size_t slash = each.rfind('/');
        if (slash == std::string_view::npos) return {};
        if (found.package.empty()) found.package = each.substr(slash + 1);
        found.is_doc = found.is_doc || each.substr(0, slash) == "doc";
        rest.remove_prefix(std::min(rest.size(), each.size() + 1));
    }
    return found;
}

bool is_held_out(std::string_view package) {
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325U;  // FNV-1a
    for (const char c : package) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01B3U;
    return (hash >> 32U) % 10 == 0;
}

int run(const std::string& train_path, const std::string& held_out_path, std::uint64_t every,
        const std::vector<std::string>& lists) {
    sample_file train(train_path), held_out(held_out_path);
    gram_table grams;
    std::vector<std::uint32_t> columns;
    std::uint64_t rows = 0, entries = 0;
    for (const std::string& path : lists) {
        std::ifstream list(path, std::ios::binary);
        if (!list) throw std::runtime_error(path + " cannot be opened");
        std::string line;
        for (std::uint64_t number = 1; std::getline(list, line); ++number) {
            const entry found = read(line);
            if (found.package.empty())
                throw std::runtime_error(path + ", line " + std::to_string(number) + ": no path and packages");
            grams.number(found.path, columns);
            entries += columns.size();
            if (rows++ % every == 0) (is_held_out(found.package) ? held_out : train).write(found.is_doc, columns);
        }
        if (list.bad()) throw std::runtime_error(path + " cannot be read");
    }
    train.close();
    held_out.close();
    std::printf("%llu rows, %u distinct grams, %.1f per row\n", static_cast<unsigned long long>(rows), grams.count(),
                rows == 0 ? 0.0 : static_cast<double>(entries) / static_cast<double>(rows));
    std::printf("written: %llu rows to train on, %llu rows held out\n", static_cast<unsigned long long>(train.rows()),
                static_cast<unsigned long long>(held_out.rows()));
    return EXIT_SUCCESS;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string every = count > 3 ? arguments[3] : "";
    std::uint64_t step = 0;
    const auto [end, error] = std::from_chars(every.data(), every.data() + every.size(), step);
    if (count < 5 || error != std::errc() || end != every.data() + every.size() || step == 0) {
        std::fprintf(stderr,
                     "usage: %s TRAIN HELD_OUT EVERY LIST...\n"
                     "Writes each EVERY-th path of the lists as a row of one of the files.\n",
                     arguments[0]);
        return 2;
    }
    try {
        return run(arguments[1], arguments[2], step, {arguments + 4, arguments + count});
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s: %s\n", arguments[0], problem.what());
        return EXIT_FAILURE;
    }
}
