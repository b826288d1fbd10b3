#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/config.hpp>
#include <rill/train/checkpoint.hpp>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// The part of a training's state that is alike on all members of a job, as one that joins gets it: parameters,
/// optimizer, step, generator. What a rank has for itself (the residual of error feedback) does not belong to it.
///
/// `changes`: returns the update of the latest step as bytes (`update_bytes`). `apply`: called with these bytes, does
/// what a member does with the update (`update_in`). `parts`: `Persistent` objects and contiguous ranges, which must
/// outlive this object; their order and sizes are the same on all members. Memory: a copy of the parts in `pack`, two
/// in `unpack`.
template <class Changes, class Apply, class... Parts>
class shared_state {
  public:
    shared_state(Changes changes, Apply apply, Parts&... parts)
        : changes_(std::move(changes)), apply_(std::move(apply)), parts_(parts...) {}

    buffer pack() const {
        checkpoint::writer out;
        for_each([&](const std::string& name, const auto& part) {
            if constexpr (requires { part.save(out, name); })
                part.save(out, name);
            else
                out.add(name, part);
        });
        return out.bytes();
    }
    /// Throws `data_error`, and changes nothing, if the bytes are damaged or of a state of other parts.
    void unpack(byte_view bytes) {
        const checkpoint in = checkpoint::of("the state of another rank", bytes);
        const checkpoint before = checkpoint::of("the state of this rank", pack());
        in.require_no_other("part ", before.names());
        try {
            restore(in);
        } catch (...) {
            restore(before);
            throw;
        }
    }
    buffer changes() const { return changes_(); }
    void apply(byte_view update) { apply_(update); }

  private:
    void restore(const checkpoint& in) {
        for_each([&](const std::string& name, auto& part) {
            if constexpr (requires { part.restore(in, name); })
                part.restore(in, name);
            else
                in.read(name, part);
        });
    }
    template <class Visit>
    void for_each(const Visit& visit) const {
        std::apply(
            [&](auto&... part) {
                std::size_t number = 0;
                (visit("part " + std::to_string(number++) + " ", part), ...);
            },
            parts_);
    }

    Changes changes_;
    Apply apply_;
    std::tuple<Parts&...> parts_;
};

}}}  // namespace rill::RILL_ABI::train
