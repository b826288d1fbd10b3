#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mpi_library.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mpi::detail {

/// Two duplicates of a communicator. Notes travel on the first one. Parts of large messages travel on the second one,
/// each to a receive that is already posted. Construction is collective.
class port {
  public:
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
    /// Whether all ranks share memory.
    bool shares_memory() const { return neighbours_ == size_; }

    /// Throws when an MPI call has failed.
    void require(int code, const char* call) const { check(code, call, rank_); }

    /// Collective; replaces `bits` by the bitwise and over all ranks.
    void agree(std::vector<std::uint64_t>& bits) const {
        require(MPI_Allreduce(MPI_IN_PLACE, bits.data(), static_cast<int>(bits.size()), MPI_UINT64_T, MPI_BAND, notes_),
                "MPI_Allreduce");
    }

    bool is_complete(MPI_Request& request) const {
        int flag = 0;
        require(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
        return flag != 0;
    }
    bool are_complete(std::vector<MPI_Request>& requests) const {
        int flag = 0;
        require(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE),
                "MPI_Testall");
        return flag != 0;
    }
    std::size_t bytes_of(const MPI_Status& status) const {
        int size = 0;
        require(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
        return static_cast<std::size_t>(size);
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

    MPI_Request send_note(const std::byte* bytes, std::size_t size, rank_t peer) const {
        MPI_Request request = MPI_REQUEST_NULL;
        require(MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, peer, note_tag, notes_, &request), "MPI_Isend");
        return request;
    }

    struct received_note {
        rank_t source = no_rank;
        std::size_t size = 0;
    };

    /// Receives a note; its source is `no_rank` if there is none. The caller must hold off all other threads.
    received_note receive_note(std::byte* into, std::size_t capacity, bool matched) const {
        int found = 0;
        MPI_Status status;
        const int count = static_cast<int>(capacity);
#if RILL_DETAIL_MPI_MATCHED_PROBES
        if (matched) {
            MPI_Message message = MPI_MESSAGE_NULL;
            require(MPI_Improbe(MPI_ANY_SOURCE, note_tag, notes_, &found, &message, &status), "MPI_Improbe");
            if (found == 0) return {};
            require(MPI_Mrecv(into, count, MPI_BYTE, &message, &status), "MPI_Mrecv");
            return received(status);
        }
#else
        static_cast<void>(matched);
#endif
        require(MPI_Iprobe(MPI_ANY_SOURCE, note_tag, notes_, &found, &status), "MPI_Iprobe");
        if (found == 0) return {};
        require(MPI_Recv(into, count, MPI_BYTE, status.MPI_SOURCE, note_tag, notes_, &status), "MPI_Recv");
        return received(status);
    }

    /// Blocks until there is a note.
    void await_note() const {
        MPI_Status status;
        require(MPI_Probe(MPI_ANY_SOURCE, note_tag, notes_, &status), "MPI_Probe");
    }

    MPI_Request send_part(const std::byte* bytes, std::size_t size, rank_t peer, std::uint32_t tag) const {
        MPI_Request request = MPI_REQUEST_NULL;
        require(MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, peer, static_cast<int>(tag), data_, &request),
                "MPI_Isend");
        return request;
    }
    MPI_Request receive_part(std::byte* into, std::size_t size, rank_t peer, std::uint32_t tag) const {
        MPI_Request request = MPI_REQUEST_NULL;
        require(MPI_Irecv(into, static_cast<int>(size), MPI_BYTE, peer, static_cast<int>(tag), data_, &request),
                "MPI_Irecv");
        return request;
    }

  private:
    static constexpr int note_tag = 1;

    received_note received(const MPI_Status& status) const {
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
};

}}}  // namespace rill::RILL_ABI::mpi::detail
