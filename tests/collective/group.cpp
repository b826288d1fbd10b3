#include <rill/aggregate/max.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/broadcast.hpp>
#include <rill/collective/group.hpp>
#include <rill/collective/reduce.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/regular_tree.hpp>
#include <rill/transport/subgroup.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using namespace cases;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Plays one rank's part in `attempt(group, fail)`.
template <class Attempt>
auto on_rank(const rill::topology::any& shape, rill::duration timeout, Attempt& attempt, failures& all) {
    return [=, &attempt, &all](auto& net) {
        rill::group workers{net, shape, {.timeout = timeout}};
        attempt(workers, [&](const std::string& what) {
            all.add(std::string(shape.shape_name()) + " P=" + std::to_string(net.size()) + " rank " +
                    std::to_string(net.rank()) + ": " + what);
        });
    };
}

/// Runs `attempt(group, fail)` for every topology at a few sizes on both transports. It is compiled once for all
/// topologies.
template <class Attempt>
std::string on_some_groups(Attempt attempt) {
    failures all;
    for_each_topology([&](const rill::topology::any& shape) {
        for (int ranks : {3, 4, 8}) {
            rill::in_process::run(ranks, on_rank(shape, rill::seconds(60), attempt, all));
            rill::simulated::run(ranks, {}, on_rank(shape, rill::seconds(60), attempt, all));
        }
    });
    return all.text();
}

/// Runs an attempt that may end only at its timeout: among threads only once.
template <class Attempt>
std::string until_time_is_up(Attempt attempt) {
    failures all;
    for_each_topology([&](const rill::topology::any& shape) {
        for (int ranks : {3, 4, 8})
            rill::simulated::run(ranks, {}, on_rank(shape, short_timeout<rill::simulated::endpoint>, attempt, all));
    });
    rill::in_process::run(
        4, on_rank(rill::topology::split_allgather{}, short_timeout<rill::in_process::endpoint>, attempt, all));
    return all.text();
}

/// Waits until all ranks have entered the current operation.
template <class Group>
void await_all(Group& workers) {
    for (int r = 0; r < workers.size(); ++r)
        workers.net().inquire(r, workers.context(), workers.operation_number(), rill::deadline::never);
}

struct explosive_sum : rill::aggregate::sum {
    static constexpr const char* name = "explosive_sum";
    template <class T>
    static T fold(T a, T b) {
        if (a + b > 1e6) throw std::domain_error("the sum explodes");
        return a + b;
    }
};

/// Enters no further operation and stays in its body until the others have given up.
template <class Group>
void stay_out(Group& workers) {
    auto& net = workers.net();
    while (!net.aborted(workers.context())) net.sleep_until(net.now() + rill::milliseconds(1));
}

}  // namespace

TEST_CASE("another dimension is a mismatch on every rank that names the odd one") {
    CHECK(on_some_groups([](auto& workers, auto fail) {
              const bool odd = workers.rank() == 2;
              std::vector<float> input(odd ? 65 : 64, 1), output(input.size());
              expect_error<rill::mismatch>([&] { rill::all_reduce(workers, input, output); }, 2,
                                           "rank 2 calls with dimension 65 where others have 64", fail);
              if (input != std::vector<float>(input.size(), 1)) fail("changed its input");
          }) == "");
}

TEST_CASE("another element type, another operation, other options are mismatches") {
    CHECK(on_some_groups([](auto& workers, auto fail) {
              const auto call = [&]<class T>(T) {
                  std::vector<T> data(64, T{1});
                  rill::all_reduce(workers, data, data);
              };
              expect_error<rill::mismatch>([&] { workers.rank() == 1 ? call(1.0) : call(1.0F); }, 1,
                                           "rank 1 calls with element type float64 where others have float32", fail);
          }) == "");
    CHECK(until_time_is_up([](auto& workers, auto fail) {
              std::vector<float> data(64, 1);
              expect_error<rill::mismatch>(
                  [&] {
                      if (workers.rank() == 0)
                          rill::broadcast(workers, data, 0);
                      else
                          rill::all_reduce(workers, data, data);
                  },
                  0, "rank 0 calls broadcast where others call all_reduce", fail);
          }) == "");
    CHECK(on_some_groups([](auto& workers, auto fail) {
              std::vector<float> data(64, 1);
              expect_error<rill::mismatch>(
                  [&] {
                      if (workers.rank() == 1)
                          rill::all_reduce(workers, data, data, rill::aggregate::max{});
                      else
                          rill::all_reduce(workers, data, data);
                  },
                  1, "rank 1 calls with another aggregator than the others", fail);
          }) == "");
}

TEST_CASE("rooted operations with another dimension or root fail on every rank") {
    CHECK(on_some_groups([](auto& workers, auto fail) {
              std::vector<float> data(workers.rank() == 2 ? 10 : 9, 1);
              expect_error<rill::mismatch>([&] { rill::broadcast(workers, data, 0); }, 2, "dimension 10", fail);
          }) == "");
    CHECK(until_time_is_up([](auto& workers, auto fail) {
              std::vector<float> data(9, 1), output(9);
              expect_error<rill::mismatch>([&] { rill::reduce(workers, data, output, workers.rank() == 2 ? 1 : 0); }, 2,
                                           "rank 2 calls with another root than the others", fail);
          }) == "");
}

TEST_CASE("groups that were made with different arguments cannot be made") {
    failures all;
    const auto body = [&](auto& net) {
        const auto fail = [&](const std::string& what) { all.add(what); };
        expect_error<rill::mismatch>(
            [&] { rill::group workers(net, rill::topology::ring{}, {.seed = net.rank() == 3 ? 1U : 0U}); }, 3,
            "rank 3 calls with another seed than the others", fail);
        expect_error<rill::mismatch>(
            [&] {
                if (net.rank() == 1)
                    rill::group workers{net, rill::topology::star{}};
                else
                    rill::group workers{net, rill::topology::ring{}};
            },
            1, "rank 1 calls with another topology than the others", fail);
        expect_error<rill::mismatch>(
            [&] {
                rill::group workers(net, rill::topology::tree{.arity = net.rank() == 2 ? 3 : 2},
                                    {.timeout = rill::seconds(net.rank() == 2 ? 50 : 60)});
            },
            2, "rank 2 calls with another topology and another timeout than the others", fail);
    };
    rill::in_process::run(5, body);
    rill::simulated::run(5, {}, body);
    CHECK(all.text() == "");
}

TEST_CASE("a group that cannot be made closes its context") {
    failures all;
    const auto body = [&](auto& net) {
        std::uint64_t context = 0;
        try {
            rill::group workers(net, rill::topology::ring{}, {.seed = net.rank() == 1 ? 1U : 0U});
        } catch (const rill::mismatch& e) {
            context = e.notice().context;
        }
        // Messages that are handed over to an open context fill the mailbox.
        for (int i = 0; i < 2; ++i)
            if (!net.post(net.rank(), {context, 9}, rill::buffer(100))) all.add("the context is open");
    };
    rill::in_process::run(3, body, {.mailbox_bytes = 50});
    rill::simulated::run(3, {.mailbox_bytes = 50}, body);
    CHECK(all.text() == "");
}

TEST_CASE("an error of another group is this rank's failure") {
    CHECK(on_some_groups([](auto& workers, auto fail) {
              const rill::abort_notice foreign{
                  .context = 5, .kind = rill::failure::timeout, .culprit = 7, .reason = "late"};
              const auto call = [&] {
                  workers.run({.kind = rill::operation::barrier}, [&](auto& current) -> rill::receipt {
                      await_all(workers);
                      if (workers.rank() == 1) throw rill::timeout(foreign);
                      current.receive(1);
                      return {};
                  });
              };
              if (workers.rank() == 1)
                  expect_error<rill::timeout>(call, 7, "late", fail);
              else
                  expect_error<rill::peer_failure>(call, 1, "barrier (operation 1): rank 1: rill: late", fail);
          }) == "");
}

TEST_CASE("bytes that are no frame are blamed on their sender") {
    CHECK(on_some_groups([](auto& workers, auto fail) {
              const std::vector<float> data(64, 1);
              rill::stream<float> sparse(64), sum;  // of which frames are read on any transport
              const auto send_rubbish = [&](auto& current) {
                  await_all(workers);
                  for (int r = 0; r < workers.size(); ++r)
                      if (r != 1) current.send(r, std::as_bytes(std::span(data)));
                  for (;;) current.receive(0);
                  return rill::receipt{};
              };
              const auto call = [&] {
                  if (workers.rank() == 1)
                      workers.run({.kind = rill::operation::all_reduce}, send_rubbish);
                  else
                      rill::all_reduce(workers, sparse, sum);
              };
              expect_error<rill::protocol_error>(call, 1, "rank 1 sent bytes that are no valid frame", fail);
          }) == "");
}

TEST_CASE("a rank that never comes is named by a timeout, and later calls fail alike") {
    CHECK(until_time_is_up([](auto& workers, auto fail) {
              std::vector<float> data(64, 1), output(64);
              if (workers.rank() == 1) return stay_out(workers);
              const auto call = [&] { rill::all_reduce(workers, data, output); };
              expect_error<rill::timeout>(call, 1, "rank 1 has not entered the operation", fail);
              expect_error<rill::timeout>(call, 1, "rank 1 has not entered the operation", fail);
          }) == "");
}

TEST_CASE("a rank that never enters is not mistaken for one that entered before the operation number was set back") {
    CHECK(until_time_is_up([](auto& workers, auto fail) {
              std::vector<float> data(64, 1), output(64);
              for (int i = 0; i < 5; ++i) rill::all_reduce(workers, data, output);
              workers.resume_at(1);
              if (rill::all_reduce(workers, data, output).operation_number != 2) fail("another number");
              if (workers.operation_number() != 2) fail("another count");
              if (workers.rank() == 1) return stay_out(workers);
              expect_error<rill::timeout>([&] { rill::all_reduce(workers, data, output); }, 1,
                                          "rank 1 has not entered the operation", fail);
          }) == "");
}

TEST_CASE("a group that goes on at a later operation number counts from there, in errors too") {
    CHECK(until_time_is_up([](auto& workers, auto fail) {
              std::vector<float> data(64, 1), output(64);
              workers.resume_at(1000);
              if (rill::all_reduce(workers, data, output).operation_number != 1001) fail("another number");
              if (workers.rank() == 1) return stay_out(workers);
              expect_error<rill::timeout>([&] { rill::all_reduce(workers, data, output); }, 1,
                                          "all_reduce (operation 1002)", fail);
          }) == "");
}

TEST_CASE("a fold that throws ends the operation everywhere with its rank as the culprit") {
    CHECK(on_some_groups([](auto& workers, auto fail) {
              // Only one coordinate makes the fold throw, and only when all contributions are folded.
              std::vector<double> data(1, 1e6 / workers.size() + 1), output(1);
              try {
                  rill::all_reduce(workers, data, output, explosive_sum{});
                  fail("no error");
              } catch (const std::domain_error&) {
              } catch (const rill::peer_failure& e) {
                  if (e.culprit() == workers.rank()) fail("a bystander blames itself");
                  if (!contains(e.what(), "the sum explodes")) fail(e.what());
              }
          }) == "");
}

TEST_CASE("survivors go on in a new group") {
    failures all;
    const auto body = [&](auto& net) {
        {
            rill::group workers{
                net, rill::topology::ring{}, {.timeout = short_timeout<std::remove_reference_t<decltype(net)>>}};
            if (net.rank() == 2) return;
            std::vector<float> data(100, 1);
            expect_error<rill::peer_failure>([&] { rill::all_reduce(workers, data, data); }, 2, "rank 2",
                                             [&](const std::string& what) { all.add(what); });
        }
        rill::subgroup survivors{net, rill::view{.epoch = 1, .members = {0, 1, 3, 4}}};
        rill::group workers{survivors, rill::topology::ring{}};
        std::vector<float> data(100, 1);
        rill::all_reduce(workers, data, data);
        if (data != std::vector<float>(100, 4)) all.add("the survivors' sum is wrong");
    };
    rill::in_process::run(5, body);
    rill::simulated::run(5, {}, body);
    CHECK(all.text() == "");
}

TEST_CASE("two groups on one transport do not disturb each other") {
    failures all;
    const auto body = [&](auto& net) {
        rill::group first{net, rill::topology::ring{}};
        rill::group second{net, rill::topology::tree{}};
        for (int step = 0; step < 3; ++step) {
            std::vector<int> a(10, 1), b(10, 2);
            rill::all_reduce(second, b, b);
            rill::all_reduce(first, a, a);
            if (a != std::vector<int>(10, 4) || b != std::vector<int>(10, 8)) all.add("mixed up");
        }
    };
    rill::in_process::run(4, body);
    rill::simulated::run(4, {}, body);
    CHECK(all.text() == "");
}

TEST_CASE("wrong arguments are refused before anything is sent") {
    rill::in_process::run(2, [](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        std::vector<float> data(8), other(9);
        const auto counted = net.counted();
        CHECK_THROWS_AS(rill::all_reduce(workers, data, other), rill::contract_violation);
        CHECK_THROWS_AS(rill::reduce(workers, data, data, 2), rill::contract_violation);
        CHECK_THROWS_AS(rill::broadcast(workers, data, -1), rill::contract_violation);
        CHECK(net.counted() == counted);
        rill::barrier(workers);
    });
}

TEST_CASE(
    "a rank that is still in an operation, or makes the group, completes it though another rank failed in the next") {
    // Rank 3 is far away: the others are ahead of it as far as a schedule allows.
    const auto far = [](rill::rank_t a, rill::rank_t b) {
        return rill::network_link{rill::milliseconds(a == 3 || b == 3 ? 200 : 1), 0};
    };
    for_each_topology([&](auto shape) {
        int completed = 0;
        rill::simulated::run(4, {.links = far}, [&](auto& net) {
            rill::group workers{net, shape};
            for (int calls = 0; calls < 3; ++calls) {
                std::vector<float> data(64, 1);
                try {
                    rill::all_reduce(workers, data, data);
                    ++completed;
                } catch (const rill::error& failed) {
                    FAIL("operation " << calls + 1 << " ends by: " << std::string(failed.what()));
                }
            }
            const auto fails = [&] {
                workers.run({.kind = rill::operation::barrier}, [&](auto&) -> rill::receipt {
                    if (net.rank() == 0) throw std::domain_error("no");
                    return net.receive(0, {workers.context(), 4}, rill::deadline::never), rill::receipt{};
                });
            };
            if (net.rank() == 0)
                CHECK_THROWS_AS(fails(), std::domain_error);
            else
                CHECK_THROWS_AS(fails(), rill::peer_failure);
        });
        CHECK(completed == 12);
    });
}

TEST_CASE("a topology with invalid options is refused when the group is made") {
    rill::simulated::run(3, {}, [](auto& net) {
        const auto make = [&](auto shape) { rill::group{net, shape}; };
        CHECK_THROWS_WITH_AS(make(rill::topology::tree{.arity = 0}), doctest::Contains("arity is 0"),
                             rill::contract_violation);
        CHECK_THROWS_AS(make(rill::topology::regular_tree{.width = 2, .depth = 2}), rill::contract_violation);
    });
}
