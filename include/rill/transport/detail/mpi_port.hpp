#pragma once

#include <rill/core/config.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/mpi_library.hpp>

#include <cstddef>
#include <cstdint>

namespace rill::inline RILL_ABI::mpi::detail {

/// Two communicators of our own over the processes of another one: on the first travel notes, on the second the parts
/// of large messages, each of which has a receive that waits for it. Making one is collective.
class port {
  public:
    explicit port(MPI_Comm of) {
        check(MPI_Comm_dup(of, &notes_), "MPI_Comm_dup");
        check(MPI_Comm_dup(of, &data_), "MPI_Comm_dup");
        check(MPI_Comm_set_errhandler(notes_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        check(MPI_Comm_set_errhandler(data_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        check(MPI_Comm_rank(notes_, &rank_), "MPI_Comm_rank");
        check(MPI_Comm_size(notes_, &size_), "MPI_Comm_size");
        // NOLINTNEXTLINE(cppcoreguidelines-prefer-member-initializer): asks on the communicator made above
        shares_memory_ = find_out_whether_all_share_memory();
    }
    port(const port&) = delete;
    port& operator=(const port&) = delete;

    rank_t rank() const { return rank_; }
    int size() const { return size_; }
    /// All ranks with all others.
    bool shares_memory() const { return shares_memory_; }

    /// Collective; every rank gets the bitwise and of what all have given.
    template <std::size_t count>
    void agree(std::uint64_t (&bits)[count]) const {
        std::uint64_t all[count];
        check(MPI_Allreduce(bits, all, static_cast<int>(count), MPI_UINT64_T, MPI_BAND, notes_), "MPI_Allreduce");
        for (std::size_t i = 0; i < count; ++i) bits[i] = all[i];
    }

    /// Collective.
    void free() {
        MPI_Comm_free(&notes_);
        MPI_Comm_free(&data_);
    }

    MPI_Request send_note(const std::byte* bytes, std::size_t size, rank_t peer) const {
        MPI_Request request = MPI_REQUEST_NULL;
        check(MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, peer, note_tag, notes_, &request), "MPI_Isend");
        return request;
    }

    struct arrival {
        rank_t source = no_rank;
        std::size_t size = 0;
    };

    /// Receives a note if there is one; from `no_rank` if there is none. The caller lets no other thread in.
    arrival receive_note(std::byte* into, std::size_t capacity, bool matched) const {
        int found = 0;
        MPI_Status status;
        const int count = static_cast<int>(capacity);
#if RILL_DETAIL_MPI_MATCHED_PROBES
        if (matched) {
            MPI_Message message = MPI_MESSAGE_NULL;
            check(MPI_Improbe(MPI_ANY_SOURCE, note_tag, notes_, &found, &message, &status), "MPI_Improbe");
            if (found == 0) return {};
            check(MPI_Mrecv(into, count, MPI_BYTE, &message, &status), "MPI_Mrecv");
            return arrived(status);
        }
#else
        static_cast<void>(matched);
#endif
        check(MPI_Iprobe(MPI_ANY_SOURCE, note_tag, notes_, &found, &status), "MPI_Iprobe");
        if (found == 0) return {};
        check(MPI_Recv(into, count, MPI_BYTE, status.MPI_SOURCE, note_tag, notes_, &status), "MPI_Recv");
        return arrived(status);
    }

    /// Blocks until there is a note.
    void await_note() const {
        MPI_Status status;
        check(MPI_Probe(MPI_ANY_SOURCE, note_tag, notes_, &status), "MPI_Probe");
    }

    MPI_Request send_part(const std::byte* bytes, std::size_t size, rank_t peer, std::uint32_t tag) const {
        MPI_Request request = MPI_REQUEST_NULL;
        check(MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, peer, static_cast<int>(tag), data_, &request),
              "MPI_Isend");
        return request;
    }
    MPI_Request receive_part(std::byte* into, std::size_t size, rank_t peer, std::uint32_t tag) const {
        MPI_Request request = MPI_REQUEST_NULL;
        check(MPI_Irecv(into, static_cast<int>(size), MPI_BYTE, peer, static_cast<int>(tag), data_, &request),
              "MPI_Irecv");
        return request;
    }

  private:
    static constexpr int note_tag = 1;

    static arrival arrived(const MPI_Status& status) {
        int size = 0;
        check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
        return {.source = status.MPI_SOURCE, .size = static_cast<std::size_t>(size)};
    }

    /// Collective.
    bool find_out_whether_all_share_memory() const {
        if (is_simulation) return false;
        MPI_Comm neighbours = MPI_COMM_NULL;
        int count = 0;
        check(MPI_Comm_split_type(notes_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours), "MPI_Comm_split_type");
        check(MPI_Comm_size(neighbours, &count), "MPI_Comm_size");
        check(MPI_Comm_free(&neighbours), "MPI_Comm_free");
        return count == size_;
    }

    MPI_Comm notes_ = MPI_COMM_NULL;
    MPI_Comm data_ = MPI_COMM_NULL;
    rank_t rank_ = no_rank;
    int size_ = 0;
    bool shares_memory_ = false;
};

inline bool is_complete(MPI_Request& request) {
    int flag = 0;
    check(MPI_Test(&request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
    return flag != 0;
}

}  // namespace rill::inline RILL_ABI::mpi::detail
