// usage: bench_index_coding_index_coding ENTRIES DENSITY SAMPLES
//
// Prints the seconds of each way to write and read the indices of entries chosen at random, and its bytes.
#include "baseline.hpp"

#include <rill/kernel/index_coding.hpp>

#include "shared/inputs.hpp"
#include "shared/turns.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <string>

namespace {

using rill::index_coding;

struct method {
    const char* name;
    index_coding coding;
};
constexpr method methods[] = {{"packed_gaps", index_coding::packed_gaps},
                              {"bitmap", index_coding::bitmap},
                              {"elias_fano", index_coding::elias_fano},
                              {"huffman", index_coding::huffman}};

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "wrong: %s\n", what);
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const std::size_t n = std::strtoull(argv[1], nullptr, 10);
    const double density = std::strtod(argv[2], nullptr);
    const bench::index_list indices = bench::random_sparse(n, density, 1).indices;
    const rill::segment universe{0, n};
    const std::span<const std::uint32_t> all(indices);
    bench::index_list out(indices.size()), copied(indices.size());
    bench::turns turns;
    std::string sizes = "\"raw\": " + std::to_string(4 * indices.size());

    turns.add("copy", [&] {
        std::memcpy(copied.data(), indices.data(), 4 * indices.size());
        bench::keep(copied.data());
    });

    bench::byte_list varints(5 * indices.size());
    varints.resize(bench::leb128::encode(indices, varints));
    sizes += ", \"leb128\": " + std::to_string(varints.size());
    bench::leb128::decode(varints, out);
    require(out == indices, "leb128");
    turns.add("leb128_encode", [&] {
        bench::leb128::encode(indices, varints);
        bench::keep(varints.data());
    });
    turns.add("leb128_decode", [&] {
        bench::leb128::decode(varints, out);
        bench::keep(out.data());
    });

    const bench::scalar_elias_fano scalar(indices.size(), n);
    bench::byte_list scalar_bytes(scalar.bytes());
    scalar.encode(indices, scalar_bytes);
    out.assign(out.size(), 0);
    scalar.decode(scalar_bytes, out);
    require(out == indices, "scalar Elias-Fano");
    sizes += ", \"scalar_elias_fano\": " + std::to_string(scalar_bytes.size());
    turns.add("scalar_elias_fano_encode", [&] {
        scalar.encode(indices, scalar_bytes);
        bench::keep(scalar_bytes.data());
    });
    turns.add("scalar_elias_fano_decode", [&] {
        scalar.decode(scalar_bytes, out);
        bench::keep(out.data());
    });

    std::list<rill::buffer> buffers;
    for (const auto& [name, coding] : methods) {
        rill::buffer& bytes = buffers.emplace_back(rill::kernel::encoded_index_bytes(coding, all, universe));
        rill::kernel::encode_indices(coding, all, universe, bytes);
        out.assign(out.size(), 0);
        rill::kernel::decode_indices(coding, bytes, out.size(), universe, std::span<std::uint32_t>(out));
        require(out == indices, name);
        sizes += ", \"" + std::string(name) + "\": " + std::to_string(bytes.size());
        turns.add(name + std::string("_encode"), [&bytes, all, universe, coding = coding] {
            rill::kernel::encode_indices(coding, all, universe, bytes);
            bench::keep(bytes.data());
        });
        turns.add(name + std::string("_decode"), [&bytes, &out, universe, coding = coding] {
            rill::kernel::decode_indices(coding, bytes, out.size(), universe, std::span<std::uint32_t>(out));
            bench::keep(out.data());
        });
    }
    const index_coding smallest = rill::kernel::smallest_index_coding(all, universe);
    for (const auto& [name, coding] : methods)
        require(rill::kernel::encoded_index_bytes(smallest, all, universe) <=
                    rill::kernel::encoded_index_bytes(coding, all, universe),
                "the smallest coding");
    sizes += ", \"smallest\": " + std::to_string(rill::kernel::encoded_index_bytes(smallest, all, universe));
    turns.add("choose", [&] {
        const index_coding chosen = rill::kernel::smallest_index_coding(all, universe);
        bench::keep(&chosen);
    });

    turns.run(std::atoi(argv[3]));
    turns.print("{\"indices\": " + std::to_string(indices.size()) + ", \"bytes\": {" + sizes + "}, \"seconds\": ", "}");
    return 0;
}
