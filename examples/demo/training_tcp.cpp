#include "training_tcp.hpp"

#if RILL_EXAMPLE_HAS_TCP

#include "plans.hpp"
#include "rank_training.hpp"

#include <rill/transport/tcp.hpp>

namespace demo {

namespace {

constexpr auto over_tcp = [](auto&& body) { rill::tcp::run(body); };

}  // namespace

tcp_process this_tcp_process() {
    const auto chosen = rill::tcp::options::from_environment();
    return {.rank = chosen.rank, .ranks = chosen.ranks};
}

outcome train_dense_over_tcp(const arguments& chosen, const images& data) {
    return train_as_one(over_tcp, "dense", chosen, data, dense_plan(chosen, data));
}

outcome train_sparse_over_tcp(const arguments& chosen, const images& data) {
    return train_as_one(over_tcp, "sparse", chosen, data, sparse_plan(chosen, data));
}

}  // namespace demo

#else

#include <stdexcept>

namespace demo {

namespace {

[[noreturn]] void refuse_tcp() { throw std::runtime_error("built without TCP: --transport tcp is not available"); }

}  // namespace

tcp_process this_tcp_process() { refuse_tcp(); }
outcome train_dense_over_tcp(const arguments&, const images&) { refuse_tcp(); }
outcome train_sparse_over_tcp(const arguments&, const images&) { refuse_tcp(); }

}  // namespace demo

#endif
