#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/transport/detail/mpi_library.hpp>

#include <cstddef>
#include <optional>

namespace rill { inline namespace RILL_ABI { namespace mpi {

/// How an endpoint uses the MPI library. `mailbox_bytes`, `eager_bytes` and `chunk_bytes` must be equal on all ranks;
/// otherwise the constructors of the endpoints throw `mismatch`.
struct options {
    /// Bound of the bytes that one rank has handed over to another and the other has not received. A second bound of
    /// the same size is that of the bytes in large messages that one rank has sent to another unasked.
    std::size_t mailbox_bytes = std::size_t{64} << 20;
    /// A message of up to this size is copied at its post and sent at once. A larger one that is sent unasked goes in
    /// pieces of this size. Any other waits at its sender until its receiver asks for it. At least 1024. (Over TCP,
    /// Open MPI sends at once up to 64 KiB including its own head.)
    std::size_t eager_bytes = (std::size_t{64} << 10) - 512;
    /// Whether a borrowed message above `eager_bytes` is sent before its receiver asks for it, if `mailbox_bytes` has
    /// room for it: one copy more at each end, and no round trip. Not set: no if all ranks share memory,
    /// otherwise yes.
    std::optional<bool> sends_unasked{};
    /// all_reduce of a dense vector cuts each part of it into chunks of this many bytes, rounded up to elements, so
    /// that one chunk travels while another is folded. A part is cut into at most 1024 chunks, and not at all where the
    /// topology sends several parts in one message (halving_doubling). No other collective is cut. 0: not cut where all
    /// ranks share memory; otherwise a chunk and its head are about as large as `eager_bytes`.
    std::size_t chunk_bytes = 0;
    /// True: receives by MPI_Improbe and MPI_Mrecv. False, or where the library lacks them: by MPI_Iprobe and MPI_Recv.
    bool matched_probes = detail::has_matched_probes;
    /// A wait polls this often if there are at least as many cores as ranks, and then gives its core away every few
    /// polls. In activities that are threads, a wait sleeps for `nap` per poll instead after `spins` more polls.
    int spins = 2000;
    duration nap = microseconds(20);
    /// A wait whose deadline is farther away than this may block in the MPI library, and then notices the deadline only
    /// when a message arrives. It blocks only where no activity and no transfer is in progress.
    duration blocks_beyond = detail::is_simulation ? seconds(1) : duration(detail::forever_ns);
    /// How long `abort` waits for rank 0 to say which notice was the first, before this rank decides and tells all.
    duration abort_timeout = seconds(2);
    /// How long this rank waits after a failure for ranks that have not noticed it. `run` then throws without them. If
    /// such a rank holds up a message that MPI has begun to send from, or receive into, the user's memory, the memory
    /// cannot be given back: the job ends with a line on stderr that names the rank.
    duration failure_timeout = seconds(30);
    /// The stack size of an activity that is a fiber.
    std::size_t stack_bytes = std::size_t{256} << 10;

    friend bool operator==(const options&, const options&) = default;
};

}}}  // namespace rill::RILL_ABI::mpi
