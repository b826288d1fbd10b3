// expect: rill::compress::error_feedback: the compressor already feeds back what it leaves out
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>

auto work() {
    using rill::compress::error_feedback;
    using rill::compress::top_k;
#ifdef RILL_FIXED
    return error_feedback{top_k{.count = 1}, true}.bind(100);
#else
    return error_feedback{error_feedback{top_k{.count = 1}}, true}.bind(100);
#endif
}
