// Runs a fuzz target on files, or on all files of folders, without a fuzzer: `fuzz_TARGET FILE|FOLDER...`.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
    if (!std::filesystem::is_directory(folder)) return {folder};
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

void replay(const std::filesystem::path& file) {
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);  // the last line before a crash names the input
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());  // a sanitizer notices reads beyond its end
    std::copy(bytes.begin(), bytes.end(), exact.get());
    LLVMFuzzerTestOneInput(exact.get(), bytes.size());
}

}  // namespace

int main(int count, char** arguments) {
    std::size_t files = 0;
    for (int i = 1; i < count; ++i)
        for (const auto& file : files_of(arguments[i])) {
            replay(file);
            ++files;
        }
    std::printf("%zu inputs\n", files);
    return files > 0 ? 0 : 1;
}
