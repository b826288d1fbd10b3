#pragma once

#include <rill/core/config.hpp>
#include <rill/transport/detail/mpi_library.hpp>

#include <cstddef>
#include <cstdint>

namespace rill { inline namespace RILL_ABI { namespace mpi {

/// How many threads may call the MPI library: MPI's four levels.
enum class thread_level : std::uint8_t { single, funneled, serialized, multiple };

/// For messages: "funneled".
constexpr const char* name(thread_level level) {
    constexpr const char* names[] = {"single", "funneled", "serialized", "multiple"};
    return names[static_cast<std::size_t>(level)];
}

namespace detail {

/// Compares, because the MPI standard orders the constants but does not fix their values.
inline thread_level level_of(int provided) {
    if (provided >= MPI_THREAD_MULTIPLE) return thread_level::multiple;
    if (provided >= MPI_THREAD_SERIALIZED) return thread_level::serialized;
    return provided >= MPI_THREAD_FUNNELED ? thread_level::funneled : thread_level::single;
}
inline int constant_of(thread_level level) {
    const int constants[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    return constants[static_cast<std::size_t>(level)];
}
inline thread_level granted_level() {
    int provided = MPI_THREAD_SINGLE;
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
    return level_of(provided);
}

}  // namespace detail

/// Initialises MPI unless it is initialised, and in that case finalises it on destruction unless it has been finalised.
/// Collective over all processes, as MPI_Init is.
///
/// It accepts a thread level other than the wanted one; `provided()` says which. With `multiple`, activities are
/// threads and run while the rank computes, but every small message costs more. Throws `library_error` when MPI has
/// been finalised: it cannot start again.
class environment {
  public:
    explicit environment(thread_level wanted = thread_level::funneled) {
        if (detail::is_finalised()) throw library_error(no_rank, "MPI has been finalised and cannot start again");
        if (!detail::is_initialised()) {
            int provided = 0;
            detail::check(MPI_Init_thread(nullptr, nullptr, detail::constant_of(wanted), &provided), "MPI_Init_thread");
            owns_ = true;
        }
        provided_ = detail::granted_level();
    }
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;
    ~environment() {
        if (owns_ && !detail::is_finalised()) MPI_Finalize();
    }

    thread_level provided() const { return provided_; }
    /// Whether this object has initialised MPI, so that its destructor finalises it.
    bool owns() const { return owns_; }

  private:
    thread_level provided_ = thread_level::single;
    bool owns_ = false;
};

}}}  // namespace rill::RILL_ABI::mpi
