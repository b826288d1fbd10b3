#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mail_engine.hpp>
#include <rill/transport/detail/mail_port.hpp>
#include <rill/transport/detail/mpi_environment.hpp>
#include <rill/transport/detail/mpi_library.hpp>
#include <rill/transport/detail/mpi_options.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mpi::detail {

/// Two duplicates of a communicator. Notes travel on the first one. Parts of large messages travel on the second one,
/// each to a receive that is already posted. Construction is collective.
class port {
  public:
    struct request {
        MPI_Request handle = MPI_REQUEST_NULL;
        explicit operator bool() const { return handle != MPI_REQUEST_NULL; }
    };
    using place = MPI_Comm;
    using options = mpi::options;
    using library_error = mpi::library_error;
    static constexpr const char* name = "MPI";
    static constexpr const char* outlived =
        "the endpoint has outlived MPI, which has been finalised, or its communicator";
    static constexpr bool is_simulation = detail::is_simulation;
    static constexpr bool wakes = false;

    explicit port(MPI_Comm of) {
        require(MPI_Comm_rank(of, &rank_), "MPI_Comm_rank");
        require(MPI_Comm_size(of, &size_), "MPI_Comm_size");
        require(MPI_Comm_dup(of, &notes_), "MPI_Comm_dup");
        require(MPI_Comm_dup(of, &data_), "MPI_Comm_dup");
        require(MPI_Comm_set_errhandler(notes_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        require(MPI_Comm_set_errhandler(data_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        // NOLINTNEXTLINE(cppcoreguidelines-prefer-member-initializer): asks on the communicator made above
        neighbours_ = count_neighbours();
    }
    port(const port&) = delete;
    port& operator=(const port&) = delete;

    rank_t rank() const { return rank_; }
    int size() const { return size_; }
    /// The number of ranks that share memory with this one, including itself.
    int neighbours() const { return neighbours_; }
    static time_point now() { return wall_clock(); }

    void configure(const options& chosen) {
        level_ = granted_level();
        matched_probes_ = chosen.matched_probes;
    }
    thread_level level() const { return level_; }
    bool is_concurrent() const { return level_ == thread_level::multiple; }

    /// Throws when an MPI call has failed.
    void require(int code, const char* call) const { check(code, call, rank_); }

    /// Collective; replaces `bits` by the bitwise and over all ranks.
    void agree(std::vector<std::uint64_t>& bits) const {
        require(MPI_Allreduce(MPI_IN_PLACE, bits.data(), static_cast<int>(bits.size()), MPI_UINT64_T, MPI_BAND, notes_),
                "MPI_Allreduce");
    }

    bool is_complete(request& of) const {
        int flag = 0;
        require(MPI_Test(&of.handle, &flag, MPI_STATUS_IGNORE), "MPI_Test");
        return flag != 0;
    }
    std::optional<mail::part_end> look(request& of) const {
        int flag = 0, cancelled = 0;
        MPI_Status status;
        require(MPI_Test(&of.handle, &flag, &status), "MPI_Test");
        if (flag == 0) return std::nullopt;
        require(MPI_Test_cancelled(&status, &cancelled), "MPI_Test_cancelled");
        return mail::part_end{.size = cancelled != 0 ? 0 : bytes_of(status), .cancelled = cancelled != 0};
    }
    void cancel(request& of) const noexcept { MPI_Cancel(&of.handle); }
    bool abandon(request& of) const noexcept {
        if (!of) return true;
        int flag = 0;
        MPI_Test(&of.handle, &flag, MPI_STATUS_IGNORE);
        if (flag == 0) MPI_Request_free(&of.handle);
        return flag != 0;
    }

    /// Ends all processes.
    [[noreturn]] void end_job() const noexcept {
        MPI_Abort(notes_, 1);
        std::abort();
    }

    /// Collective.
    void free() {
        MPI_Comm_free(&notes_);
        MPI_Comm_free(&data_);
    }

    request send_note(const std::byte* bytes, std::size_t size, rank_t peer) const {
        request begun;
        require(MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, peer, note_tag, notes_, &begun.handle), "MPI_Isend");
        return begun;
    }

    /// The caller must hold off all other threads.
    mail::received_note receive_note(std::byte* into, std::size_t capacity) const {
        int found = 0;
        MPI_Status status;
        const int count = static_cast<int>(capacity);
#if RILL_DETAIL_MPI_MATCHED_PROBES
        if (matched_probes_) {
            MPI_Message message = MPI_MESSAGE_NULL;
            require(MPI_Improbe(MPI_ANY_SOURCE, note_tag, notes_, &found, &message, &status), "MPI_Improbe");
            if (found == 0) return {};
            require(MPI_Mrecv(into, count, MPI_BYTE, &message, &status), "MPI_Mrecv");
            return received(status);
        }
#endif
        require(MPI_Iprobe(MPI_ANY_SOURCE, note_tag, notes_, &found, &status), "MPI_Iprobe");
        if (found == 0) return {};
        require(MPI_Recv(into, count, MPI_BYTE, status.MPI_SOURCE, note_tag, notes_, &status), "MPI_Recv");
        return received(status);
    }

    /// Blocks until there is a note.
    template <class Lock>
    void await_note(Lock&, deadline) const {
        MPI_Status status;
        require(MPI_Probe(MPI_ANY_SOURCE, note_tag, notes_, &status), "MPI_Probe");
    }

    /// MPI ends the job when a process ends early.
    static rank_t take_loss() { return no_rank; }
    static rank_t take_goodbye() { return no_rank; }
    static void watch(rank_t) {}

    request send_part(const std::byte* bytes, std::size_t size, rank_t peer, std::uint32_t tag) const {
        request begun;
        require(MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, peer, static_cast<int>(tag), data_, &begun.handle),
                "MPI_Isend");
        return begun;
    }
    request receive_part(std::byte* into, std::size_t size, rank_t peer, std::uint32_t tag) const {
        request begun;
        require(MPI_Irecv(into, static_cast<int>(size), MPI_BYTE, peer, static_cast<int>(tag), data_, &begun.handle),
                "MPI_Irecv");
        return begun;
    }

  private:
    static constexpr int note_tag = 1;

    std::size_t bytes_of(const MPI_Status& status) const {
        int size = 0;
        require(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
        return static_cast<std::size_t>(size);
    }
    mail::received_note received(const MPI_Status& status) const {
        return {.source = status.MPI_SOURCE, .size = bytes_of(status)};
    }

    /// Collective.
    int count_neighbours() const {
        if (is_simulation) return 1;
        MPI_Comm neighbours = MPI_COMM_NULL;
        int count = 0;
        require(MPI_Comm_split_type(notes_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours),
                "MPI_Comm_split_type");
        require(MPI_Comm_size(neighbours, &count), "MPI_Comm_size");
        require(MPI_Comm_free(&neighbours), "MPI_Comm_free");
        return count;
    }

    MPI_Comm notes_ = MPI_COMM_NULL;
    MPI_Comm data_ = MPI_COMM_NULL;
    rank_t rank_ = no_rank;
    int size_ = 0;
    int neighbours_ = 1;
    thread_level level_ = thread_level::single;
    bool matched_probes_ = has_matched_probes;
};

static_assert(mail::MailPort<port>);

using engine = mail::engine<port>;

}}}  // namespace rill::RILL_ABI::mpi::detail
