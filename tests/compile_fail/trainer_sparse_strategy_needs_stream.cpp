// expect: rill::train::trainer: the strategy and the objective do not take the gradient in one form; give the objective
#include <rill/stream/stream.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/sparse_bsp.hpp>
#include <rill/train/trainer.hpp>
#include <rill/transport/in_process.hpp>

struct model {
    using scalar = float;
    using batch = rill::train::batch;

    std::size_t dimension() const { return 0; }
    std::span<const rill::layer> layers() const { return {}; }
    void initialise(std::span<float>, rill::random_key) const {}
    double loss(std::span<const float>, const batch&) { return 0; }
    double gradient(std::span<const float>, const batch&, std::span<float>) { return 0; }
#ifdef RILL_FIXED
    double gradient(std::span<const float>, const batch&, rill::stream<float>&) { return 0; }
#endif
};

void train(rill::in_process::endpoint& net, rill::train::minibatches batches) {
    rill::train::trainer trainer{net, model{}, batches,
                                 rill::train::sparse_bsp{rill::topology::split_allgather{}, rill::stream_codings{},
                                                         rill::train::sgd{}, rill::train::constant_rate{0.1}}};
}
