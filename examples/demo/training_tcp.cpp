#include "training_tcp.hpp"

#if RILL_EXAMPLE_HAS_TCP

#include "../shared/progress.hpp"
#include "plans.hpp"
#include "rank_training.hpp"

#include <rill/transport/tcp.hpp>

namespace demo {

namespace {

template <class Plan>
outcome train_as_one(const char* name, const arguments& chosen, const images& data, const Plan& plan) {
    outcome result;
    rill::tcp::run([&](auto& net) {
        shared::progress shown(name, steps_of(chosen, data), false);  // the launcher forwards lines
        result = train_rank(net, chosen, data, plan, shown);
        if (net.rank() == 0) shown.finish();
    });
    result.name = name;
    return result;
}

}  // namespace

tcp_process this_tcp_process() {
    const auto chosen = rill::tcp::options::from_environment();
    return {.rank = chosen.rank, .ranks = chosen.ranks};
}

outcome train_dense_over_tcp(const arguments& chosen, const images& data) {
    return train_as_one("dense", chosen, data, dense_plan(chosen, data));
}

outcome train_sparse_over_tcp(const arguments& chosen, const images& data) {
    return train_as_one("sparse", chosen, data, sparse_plan(chosen, data));
}

}  // namespace demo

#else

#include <stdexcept>

namespace demo {

namespace {

[[noreturn]] void refuse() { throw std::runtime_error("built without TCP: --transport tcp is not available"); }

}  // namespace

tcp_process this_tcp_process() { refuse(); }
outcome train_dense_over_tcp(const arguments&, const images&) { refuse(); }
outcome train_sparse_over_tcp(const arguments&, const images&) { refuse(); }

}  // namespace demo

#endif
