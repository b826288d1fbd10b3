#pragma once

#include "topologies.hpp"

#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/stream/stream_codings.hpp>

#include <array>
#include <string>

namespace plan {

enum class method { none, rounded_copies, top_k, top_k_packed, top_k_rounded_copies };

/// A way to send gradients.
struct compressor {
    const char* name = "";
    method how = method::none;
    bool sparse = false;
    rill::stream_codings codings{};

    bool is_plain() const { return how == method::none; }
    bool needs_copy_phase() const { return !codings.copy.is_lossless(); }
};

/// The policy of each method but `none`. `code_of` in code.cpp has the same in text; a test compiles that.
constexpr auto rounded_copies() {
    using namespace rill::compress;
    return encoded{keep_all{}, raw{}, raw_indices{}, qsgd{.bits = 8}};
}
constexpr auto packed(double density) {
    using namespace rill::compress;
    return encoded{rill::compress::top_k{.density = density}, raw{}, smallest{}};
}
constexpr auto packed_rounded_copies(double density) {
    using namespace rill::compress;
    return encoded{rill::compress::top_k{.density = density}, raw{}, smallest{}, qsgd{.bits = 4}};
}

constexpr std::array compressors = {
    compressor{.name = "none"},
    compressor{.name = "qsgd8 copies", .how = method::rounded_copies, .codings = rounded_copies().codings()},
    compressor{.name = "top_k", .how = method::top_k, .sparse = true},
    compressor{.name = "top_k packed", .how = method::top_k_packed, .sparse = true, .codings = packed(1).codings()},
    compressor{.name = "top_k packed, qsgd4 copies",
               .how = method::top_k_rounded_copies,
               .sparse = true,
               .codings = packed_rounded_copies(1).codings()}};

/// Calls `visit(policy)` with the policy of a compressor other than `none`; with one for a copy phase only where
/// `Shape` has one.
template <class Shape, class Visit>
void with_policy(const compressor& which, double density, Visit&& visit) {
    using rill::compress::error_feedback;
    if (which.how == method::top_k) return visit(error_feedback{rill::compress::top_k{.density = density}});
    if (which.how == method::top_k_packed) return visit(error_feedback{packed(density)});
    if constexpr (Shape::has_copy_phase) {
        if (which.how == method::rounded_copies) return visit(rounded_copies());
        visit(error_feedback{packed_rounded_copies(density)});
    }
}

/// Calls `visit(shape, compressor)` for each way to exchange gradients: the rows of the table, in their order.
template <class Visit>
void for_each_way(Visit&& visit) {
    for_each_topology([&](const auto& shape) {
        for (const compressor& how : compressors)
            if (shape.has_copy_phase || !how.needs_copy_phase()) visit(shape, how);
    });
}

}  // namespace plan
