// expect: constraint.*stream_of|constraint
#include <rill/core/types.hpp>

template <rill::Element T>
struct stream_of {};

#ifdef RILL_FIXED
using sample = stream_of<float>;
#else
using sample = stream_of<unsigned char>;
#endif

sample value;
