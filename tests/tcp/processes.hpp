// Ranks that are processes and meet on the loopback interface.
#pragma once

#include <rill/core/time.hpp>
#include <rill/transport/tcp.hpp>

#include "ranks.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace processes {

/// Starts a process that exits with what `act(options)` returns.
template <class Act>
pid_t start_one(Act&& act, const rill::tcp::options& chosen) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::alarm(60);
    ::_exit(act(chosen));
}
/// Starts a process for each rank; `used`: the options that they got. They meet by the chosen file, or at a free port.
template <class Act>
std::vector<pid_t> start(int count, Act&& act, rill::tcp::options chosen = {.failure_timeout = rill::seconds(5)},
                         rill::tcp::options* used = nullptr) {
    chosen.ranks = count;
    if (!rill::tcp::detail::is_file(chosen.meeting)) chosen.meeting = ranks::free_point();
    if (used != nullptr) *used = chosen;
    std::vector<pid_t> started;
    for (chosen.rank = 0; chosen.rank < count; ++chosen.rank) started.push_back(start_one(act, chosen));
    return started;
}
/// Waits until a process stops, and returns whether it has: it may end before.
inline bool stops(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, WUNTRACED);
    return WIFSTOPPED(status);
}
inline int end_of(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace processes
