// Uses what the component `train` links, Eigen and zlib: reads a compressed file.
#include <rill/train/dense_product.hpp>
#include <rill/train/gzip_source.hpp>

#include <zlib.h>
#include <Eigen/Core>

#include <array>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string_view>

int main() {
    constexpr std::string_view text = "gradients travel as streams";
    const char* const path = "consumer_train.gz";
    gzFile file = gzopen(path, "wb");
    gzwrite(file, text.data(), text.size());
    gzclose(file);
    std::array<char, text.size()> back{};
    rill::train::gzip_source packed(path);
    packed.read(std::as_writable_bytes(std::span(back)));
    const bool same = std::string_view(back.data(), back.size()) == text;
    std::printf("read back %s, Eigen %d.%d\n", same ? "the same" : "something else", EIGEN_WORLD_VERSION,
                EIGEN_MAJOR_VERSION);
    return same ? 0 : 1;
}
