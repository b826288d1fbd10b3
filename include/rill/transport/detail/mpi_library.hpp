// The MPI library: its header without the C++ bindings, its errors as exceptions, and the features that it lacks.
#pragma once

#ifndef OMPI_SKIP_MPICXX
#define OMPI_SKIP_MPICXX 1  // the C++ bindings cost a second of compile time, and nothing here uses them
#endif
#ifndef MPICH_SKIP_MPICXX
#define MPICH_SKIP_MPICXX 1
#endif

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

/// SimGrid's SMPI declares matched probes and does not define them.
#if MPI_VERSION < 3 || defined(SMPI_H)
#define RILL_DETAIL_MPI_MATCHED_PROBES 0
#else
#define RILL_DETAIL_MPI_MATCHED_PROBES 1
#endif

namespace rill { inline namespace RILL_ABI { namespace mpi {

/// Thrown when an MPI call has failed (`what()` has MPI's text), or when MPI was finalised before an endpoint ended.
/// The culprit is the rank that reports it, in ranks of its endpoint; `no_rank` before there is an endpoint.
class library_error : public error {
  public:
    library_error(rank_t rank, std::string reason)
        : error(abort_notice{.culprit = rank,
                             .reason = rank == no_rank ? std::move(reason)
                                                       : "rank " + std::to_string(rank) + ": " + std::move(reason)}) {}
};

namespace detail {

#if defined(SMPI_H)
/// True under SimGrid's SMPI: every poll is an event of the simulation, and all processes are simulated in turn.
inline constexpr bool is_simulation = true;
#else
inline constexpr bool is_simulation = false;
#endif
inline constexpr std::int64_t forever_ns = deadline::never.at.ns;
inline constexpr bool has_matched_probes = RILL_DETAIL_MPI_MATCHED_PROBES != 0;

inline bool is_initialised() {
    int flag = 0;
    MPI_Initialized(&flag);
    return flag != 0;
}
inline bool is_finalised() {
    int flag = 0;
    MPI_Finalized(&flag);
    return flag != 0;
}
inline bool is_running() { return is_initialised() && !is_finalised(); }

[[noreturn]] inline void fail(int code, const char* call, rank_t rank) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw library_error(rank, std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

/// Throws when an MPI call has failed on `rank`.
inline void check(int code, const char* call, rank_t rank = no_rank) {
    if (code != MPI_SUCCESS) [[unlikely]]
        fail(code, call, rank);
}

inline time_point wall_clock() { return {static_cast<std::int64_t>(MPI_Wtime() * 1e9)}; }

}  // namespace detail
}}}  // namespace rill::RILL_ABI::mpi
