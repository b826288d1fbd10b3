#pragma once

#include <rill/core/bytes.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

/// A temporary directory that is deleted at the end of a test.
class scratch_directory {
  public:
    scratch_directory() {
        std::string pattern = (std::filesystem::temp_directory_path() / "rill-test-XXXXXX").string();
        path_ = ::mkdtemp(pattern.data());
    }
    scratch_directory(const scratch_directory&) = delete;
    scratch_directory& operator=(const scratch_directory&) = delete;
    ~scratch_directory() { std::filesystem::remove_all(path_); }

    std::string operator/(const char* name) const { return (path_ / name).string(); }
    auto entries() const {
        return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator());
    }

    std::string write(const char* name, rill::byte_view bytes) const {
        std::ofstream file(*this / name, std::ios::binary);  // replace_file would wait for the disk
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return *this / name;
    }

  private:
    std::filesystem::path path_;
};

/// The text of the `Error` that `call` throws; empty if it throws none.
template <class Error, class Call>
std::string message_of(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
