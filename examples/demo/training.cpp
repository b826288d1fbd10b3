#include "training.hpp"

#include "../shared/progress.hpp"
#include "plans.hpp"
#include "rank_training.hpp"
#include "training_mpi.hpp"
#include "training_tcp.hpp"

#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include <utility>

namespace demo {

namespace {

template <class Plan>
outcome train_here(const char* name, const arguments& chosen, const images& data, const Plan& plan) {
    outcome result;
    shared::progress shown(name, steps_of(chosen, data), shared::progress::is_on_terminal());
    const auto body = [&](auto& net) {
        outcome done = train_rank(net, chosen, data, plan, shown);
        if (net.rank() == 0) result = std::move(done);
    };
    if (chosen.transport == "simulated")
        rill::simulated::run(chosen.ranks, {}, body);
    else
        rill::in_process::run(chosen.ranks, body);
    shown.finish();
    result.name = name;
    return result;
}

}  // namespace

outcome train_dense(const arguments& chosen, const images& data) {
    if (chosen.transport == "mpi") return train_dense_over_mpi(chosen, data);
    if (chosen.transport == "tcp") return train_dense_over_tcp(chosen, data);
    return train_here("dense", chosen, data, dense_plan(chosen, data));
}

outcome train_sparse(const arguments& chosen, const images& data) {
    if (chosen.transport == "mpi") return train_sparse_over_mpi(chosen, data);
    if (chosen.transport == "tcp") return train_sparse_over_tcp(chosen, data);
    return train_here("sparse", chosen, data, sparse_plan(chosen, data));
}

}  // namespace demo
