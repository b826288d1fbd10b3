#include "training_mpi.hpp"

#if RILL_EXAMPLE_HAS_MPI

#include "plans.hpp"
#include "rank_training.hpp"

#include <rill/transport/mpi.hpp>

#include <utility>

namespace demo {

namespace {

constexpr auto over_mpi = [](auto&& body) { rill::mpi::run(body); };

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
    return train_as_one(over_mpi, "dense", chosen, data, dense_plan(chosen, data));
}

outcome train_sparse_over_mpi(const arguments& chosen, const images& data) {
    return train_as_one(over_mpi, "sparse", chosen, data, sparse_plan(chosen, data));
}

}  // namespace demo

#else

#include <stdexcept>

namespace demo {

namespace {

[[noreturn]] void refuse_mpi() { throw std::runtime_error("built without MPI: --transport mpi is not available"); }

}  // namespace

struct mpi_session::state {};
mpi_session::mpi_session() { refuse_mpi(); }
mpi_session::~mpi_session() = default;

outcome train_dense_over_mpi(const arguments&, const images&) { refuse_mpi(); }
outcome train_sparse_over_mpi(const arguments&, const images&) { refuse_mpi(); }

}  // namespace demo

#endif
