// Gradients that come in rows: a model of several classes has a weight per class for each column of its sparse samples,
// so all weights of a column get an entry, or none. The index coding whole_rows sends one index for each column.
#include <rill/rill.hpp>
#include <rill/train.hpp>
#include <rill/transport/in_process.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace train = rill::train;

constexpr int ranks = 4, steps = 60;
constexpr std::size_t columns = 20'000, classes = 8;

/// Rows of 20 columns, of which half are drawn from the columns that tell their class.
train::sparse_dataset samples_of(std::size_t rows, std::uint64_t seed) {
    rill::random_sequence random(rill::random_key{seed});
    train::sparse_dataset data{.rows = rows, .columns = columns};
    for (std::size_t r = 0; r < rows; ++r) {
        const std::uint64_t label = random.below(classes);
        for (std::size_t i = 0; i < 20; ++i) {  // one of each thousand, so that columns ascend
            const std::uint64_t drawn = random.below(1000);
            data.indices.push_back(
                static_cast<std::uint32_t>(1000 * i + (i % 2 == 0 ? drawn : drawn / classes * classes + label)));
        }
        data.starts.push_back(data.indices.size());
        data.labels.push_back(static_cast<float>(label));
    }
    return data;
}

void fit(const char* name, const rill::coding& codes) {
    rill::in_process::run(ranks, [&](rill::in_process::endpoint& net) {
        const train::sparse_dataset mine = samples_of(2000, 1 + static_cast<std::uint64_t>(net.rank()));
        train::trainer trainer{
            net, train::sparse_softmax(columns, classes),
            train::minibatches_of<train::sparse_dataset>{mine, {.batch = 50}},
            train::sparse_bsp{rill::topology::split_allgather{}, rill::stream_codings{codes, codes, codes},
                              train::sgd{}, train::constant_rate{2}}};
        std::uint64_t bytes = 0;
        for (int step = 0; step < steps; ++step) bytes += trainer.step().exchange.wire.bytes_sent;
        if (net.rank() != 0) return;
        const train::sparse_dataset unseen = samples_of(2000, 99);
        std::printf("%-12s held-out accuracy %.3f, rank 0 sends %6.0f bytes a step\n", name,
                    train::accuracy(trainer.model(), trainer.parameters(), unseen), static_cast<double>(bytes) / steps);
    });
}

int main() {
    fit("raw", {});
    fit("elias_fano", {.indices = rill::index_coding::elias_fano});
    fit("whole_rows", {.indices = rill::index_coding::whole_rows, .row = classes});
}
