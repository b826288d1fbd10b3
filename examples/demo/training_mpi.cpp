#include "training_mpi.hpp"

#if RILL_EXAMPLE_HAS_MPI

#include "../shared/progress.hpp"
#include "plans.hpp"
#include "rank_training.hpp"

#include <rill/transport/mpi.hpp>

#include <utility>

namespace demo {

namespace {

template <class Plan>
outcome train_as_one(const char* name, const arguments& chosen, const images& data, const Plan& plan) {
    outcome result;
    rill::mpi::run([&](auto& net) {
        shared::progress shown(name, steps_of(chosen, data), false);  // mpirun gives a terminal and forwards lines
        result = train_rank(net, chosen, data, plan, shown);
        if (net.rank() == 0) shown.finish();
    });
    result.name = name;
    return result;
}

}  // namespace

struct mpi_session::state {
    rill::mpi::environment library;
};

mpi_session::mpi_session() : state_(std::make_unique<state>()) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
}
mpi_session::~mpi_session() = default;

outcome train_dense_over_mpi(const arguments& chosen, const images& data) {
    return train_as_one("dense", chosen, data, dense_plan(chosen, data));
}

outcome train_sparse_over_mpi(const arguments& chosen, const images& data) {
    return train_as_one("sparse", chosen, data, sparse_plan(chosen, data));
}

}  // namespace demo

#else

#include <stdexcept>

namespace demo {

namespace {

[[noreturn]] void refuse() { throw std::runtime_error("built without MPI: --transport mpi is not available"); }

}  // namespace

struct mpi_session::state {};
mpi_session::mpi_session() { refuse(); }
mpi_session::~mpi_session() = default;

outcome train_dense_over_mpi(const arguments&, const images&) { refuse(); }
outcome train_sparse_over_mpi(const arguments&, const images&) { refuse(); }

}  // namespace demo

#endif
