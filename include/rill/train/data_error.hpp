#pragma once

#include <rill/core/config.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

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
