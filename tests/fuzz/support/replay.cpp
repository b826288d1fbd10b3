// Runs a fuzz target on files, or on all files of folders, without a fuzzer: `fuzz_replay TARGET FILE|FOLDER...`.
#include "target.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

constinit const rill::fuzz::target* targets = nullptr;

const rill::fuzz::target* named(std::string_view name) {
    const rill::fuzz::target* each = targets;
    while (each != nullptr && each->name != name) each = each->next;
    return each;
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
    if (!std::filesystem::is_directory(folder)) return {folder};
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

void replay(const rill::fuzz::target& target, const std::filesystem::path& file) {
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);  // the last line before a crash names the input
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());  // a sanitizer notices reads beyond its end
    std::copy(bytes.begin(), bytes.end(), exact.get());
    target.run(exact.get(), bytes.size());
}

}  // namespace

rill::fuzz::target::target(const char* its_name, int (*its_function)(const std::uint8_t*, std::size_t))
    : name(its_name), run(its_function), next(targets) {
    targets = this;
}

int main(int count, char** arguments) {
    const rill::fuzz::target* target = count > 1 ? named(arguments[1]) : nullptr;
    if (target == nullptr) {
        std::fprintf(stderr, "usage: fuzz_replay TARGET FILE|FOLDER...\n");
        return 2;
    }
    std::size_t files = 0;
    for (int i = 2; i < count; ++i)
        for (const auto& file : files_of(arguments[i])) {
            replay(*target, file);
            ++files;
        }
    std::printf("%zu inputs\n", files);
    return files > 0 ? 0 : 1;
}
