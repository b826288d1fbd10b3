#pragma once

#include <rill/core/config.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// A writer that keeps no values: the names of the sections that a part saves.
struct section_names {
    std::vector<std::string> names;

    template <class Values>
    void add(std::string_view name, const Values&) {
        names.emplace_back(name);
    }
};

/// A part of what is saved that may have state of its own, as error feedback has its residual. A `restore` that throws
/// changes nothing.
template <class Part, class Writer>
concept SavedBy = requires(const Part& part, Writer& out, const std::string& name) { part.save(out, name); };

template <class Part, class Writer>
void save_part(Writer& out, const std::string& name, const Part& part) {
    if constexpr (SavedBy<Part, Writer>) part.save(out, name);
}

/// Reads a part's state. Throws what the reader throws, and changes nothing, if a section `name.…` is in the file that
/// the part would not have saved: what it holds would be lost. A part that saves to one type of writer only is not
/// asked.
template <class Part, class Reader>
void restore_part(const Reader& in, const std::string& name, Part& part) {
    constexpr bool is_saved = requires { part.restore(in, name); };
    if constexpr (requires(std::span<const std::string> own) { in.require_no_other(name, own); } &&
                  (!is_saved || SavedBy<Part, section_names>)) {
        section_names own;
        save_part(own, name, part);
        in.require_no_other(name + ".", own.names);
    }
    if constexpr (is_saved) part.restore(in, name);
}

}}}  // namespace rill::RILL_ABI::detail
