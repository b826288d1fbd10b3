// Trains one model twice on the same data, with dense and with sparse gradients, and compares accuracy and traffic; or
// once, with processes that are killed.
#include "../shared/text_file.hpp"
#include "arguments.hpp"
#include "elastic.hpp"
#include "images.hpp"
#include "picture.hpp"
#include "report.hpp"
#include "training.hpp"
#include "training_mpi.hpp"
#include "training_tcp.hpp"

#include <rill/train/data_error.hpp>

#include <cstdio>
#include <exception>
#include <optional>

namespace {

constexpr double has_learnt = 0.75;  // required accuracy of `--quick`, whose runs reach 84 % and more

int show(const demo::arguments& chosen, const demo::outcome& dense, const demo::outcome& sparse) {
    demo::print_table(dense, sparse);
    shared::write_text(chosen.json, demo::to_json(chosen, dense, sparse));
    shared::write_text(chosen.picture, demo::draw({dense, sparse}));
    std::printf("figures: %s\npicture: %s\n", chosen.json.c_str(), chosen.picture.c_str());
    if (chosen.quick && (dense.accuracy() < has_learnt || sparse.accuracy() < has_learnt)) {
        std::fprintf(stderr, "rill_demo: expected both accuracies to be above %.0f %%\n", 100 * has_learnt);
        return 1;
    }
    return 0;
}

int run(demo::arguments chosen) {
    if (chosen.elastic) return demo::show_elastic(chosen, demo::read_images(chosen.data));
    std::optional<demo::mpi_session> session;
    int rank = 0;
    if (chosen.transport == "mpi") {
        session.emplace();
        rank = session->rank();
        chosen.ranks = session->size();
    } else if (chosen.transport == "tcp") {
        const demo::tcp_process own = demo::this_tcp_process();
        rank = own.rank;
        chosen.ranks = own.ranks;
    }
    const demo::images data = demo::read_images(chosen.data);
    const demo::outcome dense = demo::train_dense(chosen, data);
    const demo::outcome sparse = demo::train_sparse(chosen, data);
    return rank != 0 ? 0 : show(chosen, dense, sparse);
}

}  // namespace

int main(int argc, char** argv) {
    const demo::arguments chosen = demo::read_arguments(argc, argv);
    try {
        return run(chosen);
    } catch (const rill::train::data_error& problem) {
        std::fprintf(stderr,
                     "rill_demo: %s\n(the Debian package dataset-fashion-mnist brings the data; --data, --json "
                     "and --picture name other places)\n",
                     problem.what());
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "rill_demo: %s\n", problem.what());
    }
    return 1;
}
