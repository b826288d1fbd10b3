#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/mpi_library.hpp>

#include <cstddef>

namespace rill { inline namespace RILL_ABI { namespace mpi {

/// How an endpoint uses the library. `eager_bytes` and `chunk_bytes` must be the same on all ranks; where they are not,
/// making the endpoints throws `mismatch`.
struct options {
    /// Bound of the bytes that one rank has handed over to another and that have not been taken.
    std::size_t mailbox_bytes = std::size_t{64} << 20;
    /// Up to this size a message is copied when it is posted and travels at once; a larger one waits at its sender
    /// until somebody receives it. At least 1024. (What Open MPI sends at once over TCP is 64 KiB with its own head.)
    std::size_t eager_bytes = (std::size_t{64} << 10) - 512;
    /// all_reduce of a dense vector cuts each part of it into chunks of so many bytes, rounded up to elements, so that
    /// one is on the wire while another is folded: into 1024 at most, and into none where the topology sends several
    /// parts in one message (halving_doubling). No other collective is cut. 0: where all ranks share memory nothing is
    /// cut; else a chunk and its head are about as large as `eager_bytes`.
    std::size_t chunk_bytes = 0;
    /// Receives by MPI_Improbe and MPI_Mrecv; otherwise, and where the library lacks them, by MPI_Iprobe and MPI_Recv.
    bool matched_probes = detail::has_matched_probes;
    /// A wait looks this often if there are at least as many cores as ranks, then gives its core away every few looks;
    /// the waits of activities that are threads sleep for `nap` instead after as many times again.
    int spins = 2000;
    duration nap = microseconds(20);
    /// A wait whose deadline is farther away than this may block in the library, and then notices the deadline only
    /// when something arrives. Only where no activity and no transfer is under way.
    duration blocks_beyond = detail::is_simulation ? seconds(1) : duration(detail::forever_ns);
    /// How long `abort` waits for rank 0 to say whose notice was first, before it decides without it and tells all.
    duration abort_timeout = seconds(2);
    /// How long ranks are waited for that go on as if nothing had failed: by `run`, which then throws without them, and
    /// by this rank's own memory, of which MPI has begun to send, or to which it receives. That cannot be given back:
    /// the job ends, with a word on stderr about the rank in question.
    duration failure_timeout = seconds(30);
    /// Of the stack of an activity that shares its rank's thread.
    std::size_t stack_bytes = std::size_t{256} << 10;

    friend bool operator==(const options&, const options&) = default;
};

}}}  // namespace rill::RILL_ABI::mpi
