// expect: rill::compress::momentum_correction: the compressor does not keep what it leaves out
#include <rill/compress/momentum_correction.hpp>
#ifdef RILL_FIXED
#include <rill/compress/error_feedback.hpp>
#endif
#include <rill/compress/top_k.hpp>

#include <cstddef>

std::size_t use() {
#ifdef RILL_FIXED
    return rill::compress::momentum_correction{rill::compress::error_feedback{rill::compress::top_k{.density = 0.01}}}
        .bind(100)
        .dimension();
#else
    return rill::compress::momentum_correction{rill::compress::top_k{.density = 0.01}}.bind(100).dimension();
#endif
}
