#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/random.hpp>
#include <rill/transport/detail/mpi_library.hpp>
#include <rill/transport/detail/mpi_options.hpp>
#include <rill/transport/detail/mpi_port.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace mpi::detail {

/// The engines of each communicator, stored in an attribute of it. They are kept because duplicating a communicator for
/// each endpoint would be slow, and because freeing a duplicate is collective, which a destructor must not be. They end
/// with the communicator or with MPI.
class registry {
  public:
    /// The one registry. It is never destroyed, because a static `environment` may end MPI after all other objects.
    static registry& instance() {
        static registry& only = *new registry;
        return only;
    }

    /// Opens an engine that no rank uses. Collective; all ranks make and destroy their endpoints in the same order.
    std::shared_ptr<engine> open(MPI_Comm of, const options& chosen) {
        engines& known = of_communicator(of);
        if (known.empty()) {
            known.push_back(std::make_shared<engine>(of));
            agree_on(*known.front(), {}, chosen);
        } else if (const auto free = agree_on(*known.front(), known, chosen)) {
            known[*free]->open(chosen);
            return known[*free];
        } else {
            known.push_back(std::make_shared<engine>(of));
        }
        known.back()->open(chosen);
        return known.back();
    }

  private:
    using engines = std::vector<std::shared_ptr<engine>>;

    registry() = default;

    /// Collective; the index of the first engine that is free on all ranks, if there is one. No rank returns before all
    /// have called. Throws `mismatch` where the ranks' builds or options differ.
    static std::optional<std::size_t> agree_on(engine& speaker, const engines& known, const options& chosen) {
        const std::uint64_t common[] = {mix64(RILL_VERSION_MAJOR, RILL_VERSION_MINOR), chosen.eager_bytes,
                                        chosen.chunk_bytes, chosen.mailbox_bytes};
        constexpr const char* names[] = {"of other versions of rill", "with other values of eager_bytes",
                                         "with other values of chunk_bytes", "with other values of mailbox_bytes"};
        constexpr std::size_t values = std::size(common);
        std::vector<std::uint64_t> bits(2 * values + (known.size() + 63) / 64);
        for (std::size_t i = 0; i < values; ++i) bits[values + i] = ~(bits[i] = common[i]);
        for (std::size_t i = 0; i < known.size(); ++i)
            if (!known[i]->is_in_use()) bits[2 * values + i / 64] |= std::uint64_t{1} << i % 64;
        speaker.through().agree(bits);
        for (std::size_t i = 0; i < values; ++i)
            if (bits[i] != common[i] || bits[values + i] != ~common[i])
                throw mismatch(abort_notice{.kind = failure::mismatch,
                                            .reason = std::string("the ranks make mpi endpoints ") + names[i]});
        for (std::size_t i = 0; i < known.size(); ++i)
            if ((bits[2 * values + i / 64] >> i % 64 & 1U) != 0) return i;
        return std::nullopt;
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

    /// Sets an attribute of MPI_COMM_SELF, because MPI_Finalize begins by deleting those.
    void watch_finalisation() {
        if (key_ != MPI_KEYVAL_INVALID) return;
        int self_key = MPI_KEYVAL_INVALID;
        check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &registry::communicator_ends, &key_, this),
              "MPI_Comm_create_keyval");
        check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &registry::library_ends, &self_key, this),
              "MPI_Comm_create_keyval");
        check(MPI_Comm_set_attr(MPI_COMM_SELF, self_key, this), "MPI_Comm_set_attr");
    }

    static int communicator_ends(MPI_Comm, int, void* value, void* self) {
        const auto ended = static_cast<registry*>(self)->take(static_cast<engines*>(value));
        for (const auto& each : *ended)
            if (each->end()) each->free();
        return MPI_SUCCESS;
    }
    static int library_ends(MPI_Comm, int, void* value, void*) {
        for (const auto& engines_of_one : static_cast<registry*>(value)->all_)
            for (const auto& each : *engines_of_one) each->end();
        return MPI_SUCCESS;
    }

    std::unique_ptr<engines> take(const engines* ended) {
        const std::lock_guard lock(mutex_);
        const auto is_it = [=](const auto& each) { return each.get() == ended; };
        const auto found = std::find_if(all_.begin(), all_.end(), is_it);
        std::unique_ptr<engines> taken = std::move(*found);
        all_.erase(found);
        return taken;
    }

    std::mutex mutex_;
    int key_ = MPI_KEYVAL_INVALID;
    std::vector<std::unique_ptr<engines>> all_;
};

}}}  // namespace rill::RILL_ABI::mpi::detail
