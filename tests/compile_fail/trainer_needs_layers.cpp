// expect: rill::train::trainer: the strategy exchanges gradients layer by layer and the objective does not say when
#include <rill/topology/split_allgather.hpp>
#include <rill/train/minibatches.hpp>
#include <rill/train/overlapped_bsp.hpp>
#include <rill/train/schedule.hpp>
#include <rill/train/sgd.hpp>
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
    template <class Ready>
    double gradient(std::span<const float>, const batch&, std::span<float>, Ready&&) {
        return 0;
    }
#endif
};

void train(rill::in_process::endpoint& net, rill::train::minibatches batches) {
    rill::train::trainer trainer{net, model{}, batches,
                                 rill::train::overlapped_bsp{rill::topology::split_allgather{}, rill::train::sgd{},
                                                             rill::train::constant_rate{0.1}}};
}
