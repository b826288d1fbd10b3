// What tests/tcp/netlab_test.py and tests/tcp/netlab_elastic_test.py run on the hosts of an emulated cluster.
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/group.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/error.hpp>
#include <rill/core/time.hpp>
#include <rill/core/view.hpp>
#include <rill/protocol/elastic.hpp>
#include <rill/topology/backup_tree.hpp>
#include <rill/topology/ring.hpp>
#include <rill/transport/tcp.hpp>

#include <doctest/doctest.h>

#include <unistd.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

using namespace rill;

TEST_CASE("sums of the ranks that a launcher has started are exact" * doctest::skip()) {
    constexpr int rounds = 40;
    constexpr std::size_t size = std::size_t{1} << 18;
    tcp::run([](auto& net) {
        group workers{net, topology::ring{}};
        const int ranks = net.size();
        std::vector<float> values(size), sum(size);
        for (int round = 1; round <= rounds; ++round) {
            for (std::size_t i = 0; i < size; ++i)
                values[i] = static_cast<float>((net.rank() + 1) * (round + static_cast<int>(i % 1000)));
            all_reduce(workers, values, sum);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < size; ++i)
                wrong += sum[i] != static_cast<float>(ranks * (ranks + 1) / 2 * (round + static_cast<int>(i % 1000)))
                             ? 1
                             : 0;
            CHECK(wrong == 0);
            if (net.rank() != 0) continue;
            std::printf("round %d\n", round);
            std::fflush(stdout);
        }
    });
}

namespace {

/// Depends on the order of all updates. The last number counts the ranks that have asked for the end.
struct model {
    std::vector<double> values = std::vector<double>(20'001, 0.0), latest = values;

    void add(const std::vector<double>& update) {
        latest = update;
        for (std::size_t i = 0; i + 1 < values.size(); ++i) values[i] = values[i] * 0.5 + update[i];
        values.back() += update.back();
    }
    bool is_last() const { return values.back() > 0; }
    std::uint64_t sum() const { return checksum(std::as_bytes(std::span(values))); }

    buffer pack() const { return bytes_of(values); }
    buffer changes() const { return bytes_of(latest); }
    void unpack(byte_view bytes) { values = doubles_of(bytes); }
    void apply(byte_view bytes) { add(doubles_of(bytes)); }

  private:
    static buffer bytes_of(const std::vector<double>& of) {
        buffer bytes(of.size() * sizeof(double));
        std::memcpy(bytes.data(), of.data(), bytes.size());
        return bytes;
    }
    std::vector<double> doubles_of(byte_view bytes) const {
        std::vector<double> all(values.size());
        if (bytes.size() != all.size() * sizeof(double)) throw std::runtime_error("a model of another size");
        std::memcpy(all.data(), bytes.data(), bytes.size());
        return all;
    }
};

void say(const std::string& where, std::uint64_t step, const model& state) {
    std::printf("%s: step %llu, %016llx\n", where.c_str(), static_cast<unsigned long long>(step),
                static_cast<unsigned long long>(state.sum()));
    std::fflush(stdout);
}

}  // namespace

TEST_CASE("members of an elastic team say in each step what they hold, until they are told to end" * doctest::skip()) {
    const char* const file = std::getenv("END_FILE");
    REQUIRE(file != nullptr);
    tcp::options chosen = tcp::options::from_environment();
    chosen.patience = seconds(1);
    tcp::run(
        [&](auto& net) {
            elastic team{net, topology::backup_tree{2}, {.timeout = seconds(30), .patience = seconds(3)}};
            model state;
            std::vector<double> own(state.values.size()), sum(own.size());
            while (!state.is_last()) {
                try {
                    const view& crew = team.settle(state);
                    if (state.is_last()) break;
                    say("epoch " + std::to_string(crew.epoch) + ", " + std::to_string(crew.members.size()) + " members",
                        team.step(), state);
                    net.sleep_until(net.now() + milliseconds(20));
                    std::fill(own.begin(), own.end(), net.rank() + 0.25 * static_cast<double>(team.step()));
                    own.back() = ::access(file, F_OK) == 0 ? 1.0 : 0.0;
                    if (team.attempt([&](auto& workers) { all_reduce(workers, own, sum); })) state.add(sum);
                } catch (const peer_failure& thrown) {
                    std::puts(thrown.what());
                } catch (
                    const no_quorum& thrown) {  // until it is heard again, and is told what the others have decided
                    std::puts(thrown.what());
                }
            }
            team.finish();
            say("end", team.step(), state);
        },
        chosen);
}
