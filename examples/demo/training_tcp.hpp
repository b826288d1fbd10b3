// Training as one of the processes that a launcher of TCP programs has started. In a build without the component tcp,
// everything here throws.
#pragma once

#include "arguments.hpp"
#include "images.hpp"
#include "outcome.hpp"

namespace demo {

/// Who this process is.
struct tcp_process {
    int rank = 0;
    int ranks = 1;
};
tcp_process this_tcp_process();

outcome train_dense_over_tcp(const arguments& chosen, const images& data);
outcome train_sparse_over_tcp(const arguments& chosen, const images& data);

}  // namespace demo
