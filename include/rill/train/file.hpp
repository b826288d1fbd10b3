#pragma once

#include <rill/core/bytes.hpp>
#include <rill/train/data_error.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

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
