// Prints the results of collectives among threads; simulated.cpp has to print the same.
#include <rill/transport/in_process.hpp>

#include "digests.hpp"

int main() {
    digests::print([](auto shape) {
        std::vector<std::uint64_t> each(digests::ranks);
        rill::in_process::run(digests::ranks, [&](rill::in_process::endpoint& net) {
            each[static_cast<std::size_t>(net.rank())] = digests::of(net, shape);
        });
        return each;
    });
}
