#include <rill/collective/all_reduce.hpp>
#include <rill/collective/barrier.hpp>
#include <rill/collective/start.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/transport/subgroup.hpp>

#include "cases.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace cases;

namespace {

/// Runs `body(net, fail)` on four ranks of both transports; returns what failed.
template <class Body>
std::string on_four_ranks(Body body) {
    failures all;
    const auto on_rank = [&](const char* transport) {
        return [&, transport](auto& net) {
            body(net, [&](const std::string& what) {
                all.add(std::string(transport) + " rank " + std::to_string(net.rank()) + ": " + what);
            });
        };
    };
    rill::in_process::run(4, on_rank("in_process"));
    rill::simulated::run(4, {}, on_rank("simulated"));
    return all.text();
}

template <class Net>
rill::group_options runs_out(const Net&) {
    return {.timeout = short_timeout<Net>};
}

struct broken_sum : rill::aggregate::sum {
    static constexpr const char* name = "broken_sum";
    bool breaks = false;
    template <class T>
    T fold(T a, T b) const {
        if (breaks) throw std::domain_error("this fold is broken");
        return a + b;
    }
    constexpr std::uint64_t fingerprint() const { return 1; }
};

/// Returns when all ranks have arrived, without using the group: afterwards no rank is still inside an earlier call.
template <class Net>
void meet(Net& net) {
    const rill::channel on{.context = 4711, .tag = 1};
    for (int r = 0; r < net.size(); ++r) net.post(r, on, rill::buffer());
    for (int r = 0; r < net.size(); ++r) net.receive(r, on, rill::deadline::never);
}

using vectors = std::vector<std::vector<float>>;
vectors some_vectors(std::size_t count) { return vectors(count, std::vector<float>(500, 1)); }

}  // namespace

TEST_CASE("request: the failure of one operation is that of all in flight and of the next, with the same culprit") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              rill::group workers{net, rill::topology::split_allgather{}};
              vectors data = some_vectors(6);
              std::vector<float> long_data(20, 1);
              std::vector<rill::request> requests;
              for (auto& each : data) {
                  broken_sum fold;
                  fold.breaks = workers.rank() == 2 && &each == &data[3];
                  requests.push_back(rill::start_all_reduce(workers, each, each, fold));
              }
              // The last operation waits for a rank that does not come before the failure: it cannot be done.
              rill::request stuck;
              if (workers.rank() != 1) stuck = rill::start_all_reduce(workers, long_data, long_data);
              if (workers.rank() == 1) {
                  requests[3].wait();
                  stuck = rill::start_all_reduce(workers, long_data, long_data);
              }
              const std::string text = "all_reduce (operation 4): rank 2: this fold is broken";
              if (workers.rank() == 2) {
                  try {
                      requests[3].get();
                      fail("no error");
                  } catch (const std::domain_error&) {
                  }
              } else {
                  expect_error([&] { requests[3].get(); }, 2, text, fail);
              }
              expect_error([&] { stuck.get(); }, 2, text, fail);
              expect_error([&] { rill::barrier(workers); }, 2, text, fail);
              expect_error([&] { rill::start_barrier(workers).get(); }, 2, text, fail);
              for (std::size_t i : {0U, 1U, 2U, 4U, 5U}) try {
                      if (requests[i].get().contributors != 4) fail("an incomplete result");
                  } catch (const rill::peer_failure& e) {
                      if (e.culprit() != 2) fail(e.what());
                  }
          }) == "");
}

TEST_CASE("request: calls that do not match are an error on every rank and name the odd one") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              rill::group workers{net, rill::topology::ring{}};
              vectors data = some_vectors(5);
              if (workers.rank() == 3) data[2].resize(499);
              std::vector<rill::request> requests;
              for (auto& each : data) requests.push_back(rill::start_all_reduce(workers, each, each));
              expect_error([&] { requests[2].get(); }, 3, "rank 3 calls with dimension 499 where others have 500",
                           fail);
          }) == "");
    CHECK(on_four_ranks([](auto& net, auto fail) {
              rill::group workers{net, rill::topology::split_allgather{}, runs_out(net)};
              vectors data = some_vectors(3);
              std::vector<rill::request> requests;
              for (auto& each : data) {  // rank 1 swaps two of them
                  const bool swapped = workers.rank() == 1 && &each != &data[0];
                  if ((&each == &data[1]) != swapped)
                      requests.push_back(rill::start_barrier(workers));
                  else
                      requests.push_back(rill::start_all_reduce(workers, each, each));
              }
              expect_error([&] { requests[2].get(); }, 1, "rank 1 calls ", fail);
              expect_error([&] { rill::barrier(workers); }, 1, "rank 1 calls ", fail);
          }) == "");
}

TEST_CASE("request: a rank that does not come is named by a timeout, whatever else is in flight") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              rill::group workers{net, rill::topology::ring{}, runs_out(net)};
              vectors data = some_vectors(4);
              std::vector<rill::request> requests;
              for (auto& each : data) {
                  if (workers.rank() == 1 && &each == &data[2]) break;
                  requests.push_back(rill::start_all_reduce(workers, each, each));
              }
              for (std::size_t i : {1U, 0U})
                  if (requests[i].get().contributors != 4) fail("an incomplete result");
              for (std::size_t i : {3U, 2U})
                  if (workers.rank() != 1)
                      expect_error([&] { requests[i].get(); }, 1, "rank 1 has not entered the operation", fail);
              meet(net);
          }) == "");
}

TEST_CASE("request: a rank whose body has returned is named at once, and only by those who wait for it") {
    const auto text = "rank 2 has returned from its body without entering the operation";
    for (const bool starts : {false, true})
        CHECK(on_four_ranks([&](auto& net, auto fail) {
                  const rill::group_options options = runs_out(net);
                  rill::group workers{net, rill::topology::split_allgather{}, options};
                  const std::size_t n = starts ? 100 : 100'000;
                  std::vector<float> data(n, 1), more(n, 1);
                  rill::all_reduce(workers, data, data);
                  if (data != std::vector<float>(n, 4)) fail("another sum");
                  if (net.rank() == 2) return;
                  const auto begun = net.now();
                  const auto next = [&] {
                      if (starts)
                          rill::start_all_reduce(workers, more, more).get();
                      else
                          rill::all_reduce(workers, more, more);
                  };
                  expect_error<rill::peer_failure>(next, 2, text, fail);
                  constexpr bool is_virtual = std::is_same_v<decltype(net), rill::simulated::endpoint&>;
                  if (is_virtual && net.now() >= begun + options.timeout) fail("it took all of the timeout");
                  expect_error<rill::peer_failure>([&] { rill::barrier(workers); }, 2, text, fail);
              }) == "");
}

TEST_CASE("request: cancelling ends the operation everywhere, naming who did it") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              rill::group workers{net, rill::topology::split_allgather{}};
              std::vector<float> data(100, 1), more(100, 1);
              const auto done = rill::start_all_reduce(workers, data, data);
              done.wait();
              done.cancel();  // too late
              meet(net);
              const std::string text = "operation 2: rank 1 has cancelled it";
              if (workers.rank() == 1) {
                  // No rank can have finished: this rank starts its part only after the cancellation.
                  typename std::remove_reference_t<decltype(net)>::event never{net};
                  auto request = rill::start(workers, [&](auto& lane) {
                      while (!net.aborted(lane.context())) never.wait(net.now() + rill::microseconds(10));
                      return rill::all_reduce(lane, more, more);
                  });
                  if (request.test()) fail("done before it has begun");
                  request.cancel();
                  expect_error([&] { request.get(); }, 1, text, fail);
              } else {
                  expect_error([&] { rill::start_all_reduce(workers, more, more).get(); }, 1, text, fail);
              }
              if (data != std::vector<float>(100, 4)) fail("what was done is undone");
              expect_error([&] { rill::barrier(workers); }, 1, text, fail);
          }) == "");
}

TEST_CASE("request: an unfinished request that is destroyed releases its memory and ends the group") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              rill::group workers{net, rill::topology::ring{}};
              meet(net);
              const auto start_and_forget = [&] {
                  std::vector<float> data(10'000, 1);
                  const auto request = rill::start_all_reduce(workers, data, data);
              };
              const std::string text = "operation 1: rank 0 abandoned it: its request was destroyed";
              if (workers.rank() == 0) {
                  start_and_forget();
              } else {
                  std::vector<float> data(10'000, 1);
                  while (!net.aborted(workers.context())) net.sleep_until(net.now() + rill::microseconds(10));
                  expect_error([&] { rill::start_all_reduce(workers, data, data).get(); }, 0, text, fail);
              }
              expect_error([&] { rill::barrier(workers); }, 0, text, fail);
          }) == "");
}

TEST_CASE("request: one that is destroyed because a later operation has failed does not blame its rank") {
    std::vector<std::string> said(3);
    rill::simulated::run(3, {}, [&](auto& net) {
        rill::group workers{net, rill::topology::ring{}};
        std::vector<float> early(100, 1), late(100, 1);
        broken_sum fold;
        fold.breaks = net.rank() == 2;
        try {
            rill::request first = rill::start(workers, [&](auto& lane) {
                if (net.rank() == 2) net.sleep_until(net.now() + rill::seconds(1));
                return rill::all_reduce(lane, early, early);
            });
            rill::request second = rill::start_all_reduce(workers, late, late, fold);
            try {
                if (net.rank() != 1) second.get();  // rank 0 unwinds past its first request
            } catch (const std::domain_error&) {
            }
            first.get();
        } catch (const rill::error& failed) {
            said[static_cast<std::size_t>(net.rank())] = failed.what();
        }
    });
    for (const std::string& each : said) CHECK(each == "rill: all_reduce (operation 2): rank 2: this fold is broken");
}

TEST_CASE("request: one that fails after a later one names the same rank, whatever it waits for") {
    std::vector<std::string> said(3);
    rill::simulated::run(3, {}, [&](auto& net) {
        const rill::group_options options = runs_out(net);
        rill::group workers{net, rill::topology::ring{}, options};
        std::vector<float> early(100, 1), late(100, 1);
        broken_sum fold;
        fold.breaks = net.rank() == 1;
        rill::request first = rill::start(workers, [&](auto& lane) {
            if (net.rank() == 2) net.sleep_until(net.now() + options.timeout * 2);
            return rill::all_reduce(lane, early, early);
        });
        rill::request second = rill::start_all_reduce(workers, late, late, fold);
        second.wait();
        try {
            first.get();
        } catch (const rill::error& failed) {
            said[static_cast<std::size_t>(net.rank())] = failed.what();
        }
    });
    for (const std::string& each : said) CHECK(each == "rill: all_reduce (operation 2): rank 1: this fold is broken");
}

TEST_CASE("request: assigning to an unfinished request abandons it, assigning to a finished one does not") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              rill::group workers{net, rill::topology::ring{}};
              std::vector<float> data(100, 1), more(100, 1);
              rill::request request = rill::start_all_reduce(workers, data, data);
              request.wait();
              request = rill::start_all_reduce(workers, more, more);
              rill::request moved = std::move(request);
              if (request.is_valid() || !moved.is_valid()) fail("moving copies");
              if (moved.get().operation_number != 2) fail("another operation");
              meet(net);
              if (workers.rank() != 3) request = rill::start_barrier(workers);
              if (workers.rank() == 2) request = {};
              expect_error([&] { rill::barrier(workers); }, 2, "rank 2 abandoned it", fail);
          }) == "");
}

TEST_CASE("request: a request that is assigned to itself goes on") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              rill::group workers{net, rill::topology::ring{}};
              std::vector<float> data(100, 1);
              rill::request request = rill::start_all_reduce(workers, data, data);
              rill::request& same = request;
              request = std::move(same);
              if (!request.is_valid()) return fail("it stands for no operation any more");
              request.get();
              if (data != std::vector<float>(100, 4)) fail("another sum");
              rill::barrier(workers);
          }) == "");
}

TEST_CASE("request: an exception that unwinds past requests ends all ranks with its own text") {
    const auto body = [](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        vectors data = some_vectors(4);
        std::vector<rill::request> requests;
        for (auto& each : data) requests.push_back(rill::start_all_reduce(workers, each, each));
        if (net.rank() == 1) throw std::out_of_range("nothing to do with it");
        for (auto& each : requests) each.wait();
        rill::barrier(workers);
    };
    CHECK_THROWS_AS(rill::in_process::run(4, body), std::out_of_range);
    CHECK_THROWS_AS(rill::simulated::run(4, {}, body), std::out_of_range);
}

TEST_CASE("request: may outlive its group, which cancels operations in flight") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              std::vector<float> data(100, 1), more(100, 1);
              rill::request done, cut;
              {
                  rill::group workers{net, rill::topology::ring{}};
                  done = rill::start_all_reduce(workers, data, data);
                  rill::barrier(workers);  // done on all ranks, though no rank has waited for it
                  done.wait();
                  meet(net);
                  if (net.rank() != 2) cut = rill::start_all_reduce(workers, more, more);
              }
              if (!done.test() || !done.wait_for(rill::milliseconds(1))) fail("no longer done");
              if (done.get().contributors != 4) fail("an incomplete result");
              if (net.rank() == 2) return;
              if (!cut.wait_for(rill::milliseconds(1))) fail("not done, but its group has gone");
              try {
                  cut.get();
                  fail("done without rank 2");
              } catch (const rill::peer_failure& e) {
                  if (std::string(e.what()).find("its group was destroyed") == std::string::npos) fail(e.what());
              }
          }) == "");
}

TEST_CASE("request: an operation that never began returns borrowed memory before its group is destroyed") {
    using rill::compress::error_feedback, rill::compress::top_k;
    const auto on_rank = [](auto& net) {
        auto codec = error_feedback{top_k{.density = 0.1}}.bind(100);
        std::vector<float> data(100, 1);
        rill::request never;
        {
            // On the heap, where the address sanitizer still notices a later use: exceptions make it forget a stack.
            using group = rill::group<std::remove_reference_t<decltype(net)>, rill::topology::ring>;
            const auto workers = std::make_unique<group>(net);
            never = rill::start_all_reduce(*workers, data, data, codec);
            net.abort({.context = rill::every_context, .culprit = net.rank(), .reason = "all ends"});
        }
        CHECK_THROWS_AS(never.get(), rill::error);
    };
    rill::simulated::run(2, {}, on_rank);
}

TEST_CASE("request: survivors continue in a new group") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              {
                  rill::group workers{net, rill::topology::ring{}, runs_out(net)};
                  if (net.rank() == 2) return;
                  std::vector<float> data(100, 1);
                  expect_error([&] { rill::start_all_reduce(workers, data, data).get(); }, 2, "rank 2", fail);
              }
              rill::subgroup survivors{net, rill::view{.epoch = 1, .members = {0, 1, 3}}};
              rill::group workers{survivors, rill::topology::ring{}};
              std::vector<float> data(100, 1), more(100, 2);
              auto first = rill::start_all_reduce(workers, data, data);
              auto second = rill::start_all_reduce(workers, more, more);
              second.get();
              first.get();
              if (data != std::vector<float>(100, 3) || more != std::vector<float>(100, 6)) fail("a wrong sum");
          }) == "");
}

TEST_CASE("request: a body that throws before its collective fails on all ranks; after it, only on its own") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              rill::group workers{net, rill::topology::ring{}};
              std::vector<float> data(100, 1);
              auto after = rill::start(workers, [&](auto& lane) -> rill::receipt {
                  rill::all_reduce(lane, data, data);
                  if (lane.rank() == 1) throw std::domain_error("after");
                  return {.contributors = 77};
              });
              if (workers.rank() == 1)
                  CHECK_THROWS_AS(after.get(), std::domain_error);
              else if (after.get().contributors != 77)
                  fail("another receipt than its body's");
              meet(net);
              auto before = rill::start(workers, [&](auto& lane) -> rill::receipt {
                  if (lane.rank() == 2) throw std::domain_error("before");
                  return rill::all_reduce(lane, data, data);
              });
              if (workers.rank() == 2)
                  CHECK_THROWS_AS(before.get(), std::domain_error);
              else
                  expect_error([&] { before.get(); }, 2, "operation 2: rank 2 did not enter it: before", fail);
          }) == "");
}

TEST_CASE("request: a body runs exactly one operation") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              {
                  rill::group workers{net, rill::topology::ring{}};
                  auto two = rill::start(workers, [](auto& lane) {
                      rill::barrier(lane);
                      return rill::barrier(lane);
                  });
                  CHECK_THROWS_AS(two.get(), rill::contract_violation);
                  rill::barrier(workers);
              }
              rill::group workers{net, rill::topology::ring{}};
              meet(net);
              auto none = rill::start(workers, [](auto&) { return rill::receipt{}; });
              try {
                  none.get();
                  fail("no error");
              } catch (const rill::contract_violation&) {
              }
              // The first error decides who is blamed.
              CHECK_THROWS_AS(rill::barrier(workers), rill::peer_failure);
          }) == "");
}

TEST_CASE("request: broken contracts throw at the start, before anything is sent") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              rill::group workers{net, rill::topology::ring{}};
              std::vector<float> data(100, 1), output(100), odd(99);
              const auto counted = net.counted();
              const auto refused = [&](auto call) {
                  try {
                      call();
                      fail("not refused");
                  } catch (const rill::contract_violation&) {
                  }
              };
              refused([&] { rill::request().test(); });
              refused([&] { rill::request().get(); });
              refused([&] { rill::request().cancel(); });
              refused([&] { rill::start_all_reduce(workers, data, odd).get(); });
              auto codec = rill::compress::error_feedback{rill::compress::top_k{.density = 0.1}}.bind(100);
              if (workers.operation_number() != 0 || net.counted() != counted) fail("something has happened");
              // While an operation has the codec, no other can have it.
              bool may_go_on = false;
              typename std::remove_reference_t<decltype(net)>::event go{net};
              auto first = rill::start_all_reduce(
                  workers, data, output, codec, rill::aggregate::sum{}, {},
                  [&](const rill::receipt&) { return may_go_on = go.wait(rill::deadline::never); });
              refused([&] { rill::start_all_reduce(workers, data, data, codec).get(); });
              refused([&] { rill::all_reduce(workers, data, data, codec); });
              go.set();
              first.wait();
              if (!may_go_on) fail("not accepted");
              rill::all_reduce(workers, data, output, codec);
              first.get();
              rill::start_all_reduce(workers, data, output, codec).get();
          }) == "");
}

TEST_CASE("group: ranks whose bodies have returned before they make it are named, not who waits for them") {
    CHECK(on_four_ranks([](auto& net, auto fail) {
              if (net.rank() == 1 || net.rank() == 2) return;
              expect_error<rill::peer_failure>(
                  [&] {
                      rill::group{net, rill::topology::split_allgather{}, runs_out(net)};
                  },
                  1, "rank 1 has returned from its body without entering the operation", fail);
          }) == "");
}
