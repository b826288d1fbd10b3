// expect: rill::compress::difference: the compressor keeps what it has not sent
#include <rill/compress/difference.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>

auto work() {
#ifdef RILL_FIXED
    return rill::compress::difference{rill::compress::top_k{.density = 0.01}, 0.2}.bind(100);
#else
    return rill::compress::difference{rill::compress::error_feedback{rill::compress::top_k{.density = 0.01}}, 0.2}.bind(
        100);
#endif
}
