#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/transport/detail/mpi_engine.hpp>
#include <rill/transport/detail/mpi_library.hpp>
#include <rill/transport/detail/mpi_options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace rill::inline RILL_ABI::mpi::detail {

/// The engines of each communicator, kept with it as an attribute: to duplicate it again for each endpoint would be
/// slow, and freeing a duplicate is collective, which no destructor may be. They end with the communicator, or with
/// MPI.
class registry {
  public:
    static registry& instance() {
        static registry only;
        return only;
    }

    /// An engine that no rank uses. Collective; opened endpoints are made and destroyed in the same order on all ranks.
    std::shared_ptr<engine> open(MPI_Comm of, const options& chosen) {
        engines& known = of_communicator(of);
        std::uint64_t free = 0;
        if (!known.empty()) free = agree_on(*known.front(), known, chosen);
        std::size_t first = 0;
        while (first < known.size() && (first >= 64 || (free >> first & 1U) == 0)) ++first;
        if (first == known.size()) {
            known.push_back(std::make_shared<engine>(of));
            if (known.size() == 1) agree_on(*known.front(), known, chosen);
        }
        known[first]->open(chosen);
        return known[first];
    }

  private:
    using engines = std::vector<std::shared_ptr<engine>>;

    registry() = default;

    /// Which engines are free everywhere. Nobody returns before all have called.
    static std::uint64_t agree_on(const engine& speaker, const engines& known, const options& chosen) {
        const std::uint64_t common = mix64(RILL_VERSION_MAJOR, RILL_VERSION_MINOR, chosen.eager_bytes);
        std::uint64_t bits[] = {0, common, ~common};
        for (std::size_t i = 0; i < known.size() && i < 64; ++i)
            if (!known[i]->is_in_use()) bits[0] |= std::uint64_t{1} << i;
        speaker.through().agree(bits);
        if (bits[1] != common || bits[2] != ~common)
            throw mismatch(abort_notice{.kind = failure::mismatch,
                                        .reason = "the ranks make mpi endpoints with other values of eager_bytes, or "
                                                  "with other versions of rill"});
        return bits[0];
    }

    engines& of_communicator(MPI_Comm of) {
        const std::lock_guard lock(mutex_);
        watch_finalisation();
        void* found = nullptr;
        int flag = 0;
        check(MPI_Comm_get_attr(of, key_, static_cast<void*>(&found), &flag), "MPI_Comm_get_attr");
        if (flag != 0) return *static_cast<engines*>(found);
        all_.push_back(std::make_unique<engines>());
        check(MPI_Comm_set_attr(of, key_, all_.back().get()), "MPI_Comm_set_attr");
        return *all_.back();
    }

    /// MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF.
    void watch_finalisation() {
        if (key_ != MPI_KEYVAL_INVALID) return;
        int self_key = MPI_KEYVAL_INVALID;
        check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &registry::communicator_ends, &key_, this),
              "MPI_Comm_create_keyval");
        check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &registry::library_ends, &self_key, this),
              "MPI_Comm_create_keyval");
        check(MPI_Comm_set_attr(MPI_COMM_SELF, self_key, this), "MPI_Comm_set_attr");
    }

    static int communicator_ends(MPI_Comm, int, void* value, void*) {
        for (const auto& each : *static_cast<engines*>(value))
            if (each->end()) each->free();
        return MPI_SUCCESS;
    }
    static int library_ends(MPI_Comm, int, void* value, void*) {
        for (const auto& engines_of_one : static_cast<registry*>(value)->all_)
            for (const auto& each : *engines_of_one) each->end();
        return MPI_SUCCESS;
    }

    std::mutex mutex_;
    int key_ = MPI_KEYVAL_INVALID;
    std::vector<std::unique_ptr<engines>> all_;
};

}  // namespace rill::inline RILL_ABI::mpi::detail
