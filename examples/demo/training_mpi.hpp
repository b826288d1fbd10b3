// Training as one of the processes that mpirun has started. In a build without MPI, everything here throws.
#pragma once

#include "arguments.hpp"
#include "images.hpp"
#include "outcome.hpp"

#include <memory>

namespace demo {

/// Keeps MPI running while it lives.
class mpi_session {
  public:
    mpi_session();
    ~mpi_session();

    int rank() const { return rank_; }
    int size() const { return size_; }

  private:
    struct state;
    std::unique_ptr<state> state_;
    int rank_ = 0;
    int size_ = 1;
};

outcome train_dense_over_mpi(const arguments& chosen, const images& data);
outcome train_sparse_over_mpi(const arguments& chosen, const images& data);

}  // namespace demo
