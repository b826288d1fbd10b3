// The grid on which every collective is compared with a naive oracle.
#pragma once

#include <rill/collective/group.hpp>
#include <rill/core/error.hpp>
#include <rill/core/function_ref.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/stream/stream.hpp>
#include <rill/topology/any.hpp>
#include <rill/transport/in_process.hpp>
#include <rill/transport/simulated.hpp>

#include "../support/sanitized.hpp"
#include "topologies.hpp"

#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

namespace cases {

#ifdef RILL_TEST_SANITIZED  // two and a half times fewer: sanitizers make each as much slower
inline constexpr int rank_counts[] = {1, 2, 3, 5, 8};
inline constexpr std::size_t dimensions[] = {0, 1, 65, 1000};
#else
inline constexpr int rank_counts[] = {1, 2, 3, 4, 5, 7, 8};
inline constexpr std::size_t dimensions[] = {0, 1, 2, 63, 64, 65, 1000};
#endif

/// Collects failures of all ranks. (Assertions inside a rank's body would be reported thread by thread.)
class failures {
  public:
    void add(const std::string& what) {
        const std::lock_guard lock(mutex_);
        if (text_.size() < 2000) text_ += what + "\n";
    }
    std::string text() const { return text_; }

  private:
    std::mutex mutex_;
    std::string text_;
};

/// Expects `call()` to throw `Error` on this rank, with `culprit` and with `what` in its text.
template <class Error = rill::error>
void expect_error(rill::function_ref<void()> call, rill::rank_t culprit, const std::string& what,
                  rill::function_ref<void(const std::string&)> fail) {
    try {
        call();
        fail("no error, where one was due that says " + what);
    } catch (const Error& e) {
        if (e.culprit() != culprit) fail("blamed rank " + std::to_string(e.culprit()) + ": " + e.what());
        if (std::string(e.what()).find(what) == std::string::npos) fail(std::string("says only: ") + e.what());
    } catch (const std::exception& e) {
        fail(std::string("another kind of error: ") + e.what());
    }
}

/// The timeout of an operation that is meant to time out. In virtual time it costs nothing; among threads it must be
/// long enough that no rank on a busy machine is mistaken for one that never enters.
#ifdef RILL_TEST_SANITIZED
template <class Net>
constexpr rill::duration short_timeout = rill::seconds(4);
#else
template <class Net>
constexpr rill::duration short_timeout = rill::seconds(2);
#endif
template <>
inline constexpr rill::duration short_timeout<rill::simulated::endpoint> = rill::milliseconds(200);

/// Runs `body(group, fail)` on every rank, for every number of ranks and transport.
template <class Shape, class Body>
void on_groups_over(const Shape& shape, const char* name, failures& all, Body& body) {
    for (int ranks : rank_counts) {
        const auto on_rank = [&](const char* transport) {
            return [&, transport](auto& net) {
                rill::group workers{net, shape};
                body(workers, [&](const std::string& what) {
                    all.add(std::string(transport) + " " + name + " P=" + std::to_string(ranks) + " rank " +
                            std::to_string(net.rank()) + ": " + what);
                });
            };
        };
        rill::in_process::run(ranks, on_rank("in_process"));
#ifndef RILL_TEST_THREAD_SANITIZED
        rill::simulated::run(ranks, {}, on_rank("simulated"));
#endif
    }
}

/// Runs `body(group, fail)` on every rank, for every topology, number of ranks and transport; returns what failed.
/// Under the thread sanitizer on threads only.
template <class Body>
std::string on_every_group(Body body) {
    failures all;
    for_each_topology([&](auto shape) { on_groups_over(shape, shape.name, all, body); });
    return all.text();
}

/// As `on_every_group`, by groups over `topology::any`: the body is compiled once for all topologies.
template <class Body>
std::string on_every_group_of_any(Body body) {
    failures all;
    for_each_topology([&](const rill::topology::any& shape) { on_groups_over(shape, shape.shape_name(), all, body); });
    return all.text();
}

/// Rank r's value at coordinate i. Whole numbers, so that every order of folding gives the same sum.
template <class T>
T value(int rank, std::size_t i) {
    return static_cast<T>((rank + 1) * static_cast<int>(i % 11) - static_cast<int>(i % 5) * 3 + rank % 3);
}

template <class T>
std::vector<T> dense_input(int rank, std::size_t n) {
    std::vector<T> input(n);
    for (std::size_t i = 0; i < n; ++i) input[i] = value<T>(rank, i);
    return input;
}

/// Whether rank r's sparse contribution has coordinate i: about one coordinate in `gap`, different ones on every rank.
inline bool is_present(int rank, std::size_t i, std::size_t gap) {
    return (i * 2654435761U + static_cast<std::size_t>(rank) * 97) % gap == 0;
}

template <class T, class Index>
rill::stream<T, Index> sparse_input(int rank, std::size_t n, std::size_t gap) {
    rill::stream<T, Index> input(n);
    for (std::size_t i = 0; i < n; ++i)
        if (is_present(rank, i, gap)) input.push_back(i, value<T>(rank, i));
    return input;
}

/// The left fold over all ranks in ascending order, of a sparse contribution only at the coordinates that it has.
template <class T, class Fold>
std::vector<T> oracle(int ranks, std::size_t n, const Fold& fold, std::size_t gap = 1) {
    std::vector<T> result(n, fold.template identity<T>());
    for (std::size_t i = 0; i < n; ++i) {
        bool first = true;
        for (int r = 0; r < ranks; ++r) {
            if (gap != 1 && !is_present(r, i, gap)) continue;
            result[i] = first ? value<T>(r, i) : fold.fold(result[i], value<T>(r, i));
            first = false;
        }
    }
    fold.finish(std::span<T>(result), static_cast<double>(ranks));
    return result;
}

template <class T, class Index>
std::vector<T> dense_copy(const rill::stream<T, Index>& s, T neutral) {
    std::vector<T> copy(s.dimension());
    rill::copy_dense(s.view(), std::span<T>(copy), neutral);
    return copy;
}

}  // namespace cases
