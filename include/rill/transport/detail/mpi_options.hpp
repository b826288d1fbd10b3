#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/mpi_library.hpp>

#include <cstddef>

namespace rill::inline RILL_ABI::mpi {

/// How an endpoint uses the library. `eager_bytes` and `chunk_bytes` must be the same on all ranks.
struct options {
    /// Bound of the bytes that one rank has handed over to another and that have not been taken.
    std::size_t mailbox_bytes = std::size_t{64} << 20;
    /// Up to this size a message is copied when it is posted and travels at once; a larger one waits at its sender
    /// until somebody receives it. At least 1024. (What Open MPI sends at once over TCP is 64 KiB with its own head.)
    std::size_t eager_bytes = (std::size_t{64} << 10) - 512;
    /// Dense collectives send nothing larger, but cut it into chunks, so that one is on the wire while another is
    /// folded. 0: where all ranks share memory nothing is cut; else such that a chunk is not larger than `eager_bytes`.
    std::size_t chunk_bytes = 0;
    /// Receives by MPI_Improbe and MPI_Mrecv; otherwise, and where the library lacks them, by MPI_Iprobe and MPI_Recv.
    bool matched_probes = detail::has_matched_probes;
    /// A wait looks this often if there are at least as many cores as ranks, then gives its core away between looks;
    /// the waits of activities that are threads sleep for `nap` instead after as many times again.
    int spins = 2000;
    duration nap = microseconds(20);
    /// A wait whose deadline is farther away than this may block in the library, and then notices the deadline only
    /// when something arrives. Only where no activity and no transfer is under way.
    duration blocks_beyond = detail::is_simulation ? seconds(1) : duration(detail::forever_ns);
    /// How long `abort` waits for rank 0 to say whose notice was first, before it tells all ranks itself.
    duration abort_patience = seconds(2);
    /// Of the stack of an activity that shares its rank's thread.
    std::size_t stack_bytes = std::size_t{256} << 10;

    friend bool operator==(const options&, const options&) = default;
};

}  // namespace rill::inline RILL_ABI::mpi
