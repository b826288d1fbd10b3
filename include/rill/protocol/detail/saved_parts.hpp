#pragma once

#include <rill/core/config.hpp>

#include <exception>
#include <string>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A part of a protocol that has state to save, as error feedback has its residual. A `restore` that throws changes
/// nothing.
template <class Part, class Writer>
concept SavedBy = requires(const Part& part, Writer& out, const std::string& name) { part.save(out, name); };

template <class Part, class Writer>
void save_part(Writer& out, const std::string& name, const Part& part) {
    if constexpr (SavedBy<Part, Writer>) part.save(out, name);
}
template <class Part, class Reader>
void restore_part(const Reader& in, const std::string& name, Part& part) {
    if constexpr (requires { part.restore(in, name); }) part.restore(in, name);
}

/// The exception that leaves `work()`, or null.
template <class Work>
std::exception_ptr thrown_by(Work&& work) {
    try {
        work();
    } catch (const std::exception&) {
        return std::current_exception();
    }
    return nullptr;
}

}}}  // namespace rill::RILL_ABI::detail
