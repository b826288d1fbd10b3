#pragma once

#include <rill/train/file.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <system_error>

namespace shared {

/// Writes a file and creates its directory if there is none. Throws `rill::train::data_error`.
inline void write_text(const std::string& path, const std::string& text) {
    std::error_code ignored;  // the write below reports any error
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    rill::train::replace_file(path, std::as_bytes(std::span(text)));
}

}  // namespace shared
