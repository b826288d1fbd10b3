#include "progress.hpp"

#include <cstdio>
#include <utility>

#include <unistd.h>

namespace demo {

progress::progress(std::string name, std::uint64_t steps)
    : name_(std::move(name)), steps_(steps), is_terminal_(::isatty(STDOUT_FILENO) == 1) {}

void progress::step(std::uint64_t done, double loss) {
    done_ = done;
    loss_ = done == 1 ? loss : 0.95 * loss_ + 0.05 * loss;
    if (is_terminal_ && done % 5 == 0) show();
}

void progress::evaluated(std::uint64_t done, double accuracy, double megabytes) {
    done_ = done;
    accuracy_ = accuracy;
    megabytes_ = megabytes;
    show();
}

void progress::note(const std::string& text) {
    std::printf("%s%s\n", is_terminal_ ? "\r\033[K" : "", text.c_str());
    std::fflush(stdout);
}

void progress::finish() {
    if (is_terminal_) std::printf("\n");
}

void progress::show() {
    std::printf("%s%-6s  step %4llu of %llu  loss %.3f  test accuracy %5.2f %%  %8.1f MB sent per rank%s",
                is_terminal_ ? "\r\033[K" : "", name_.c_str(), static_cast<unsigned long long>(done_),
                static_cast<unsigned long long>(steps_), loss_, 100 * accuracy_, megabytes_, is_terminal_ ? "" : "\n");
    std::fflush(stdout);
}

}  // namespace demo
