#include "progress.hpp"

#include <cstdio>
#include <utility>

#include <unistd.h>

namespace demo {

progress::progress(std::string name, std::uint64_t steps, bool rewrites)
    : name_(std::move(name)), steps_(steps), rewrites_(rewrites) {}

bool progress::is_on_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

void progress::step(std::uint64_t done, double loss) {
    done_ = done;
    loss_ = done == 1 ? loss : 0.95 * loss_ + 0.05 * loss;
    if (rewrites_ && done % 5 == 0) show();
}

void progress::evaluated(std::uint64_t done, double accuracy, double megabytes) {
    done_ = done;
    accuracy_ = accuracy;
    megabytes_ = megabytes;
    show();
}

void progress::note(const std::string& text) {
    std::printf("%s%s\n", rewrites_ ? "\r\033[K" : "", text.c_str());
    std::fflush(stdout);
}

void progress::finish() {
    if (rewrites_) std::printf("\n");
}

void progress::show() {
    std::printf("%s%-6s  step %4llu of %llu  loss %.3f  test accuracy %5.2f %%  %8.1f MB sent per rank%s",
                rewrites_ ? "\r\033[K" : "", name_.c_str(), static_cast<unsigned long long>(done_),
                static_cast<unsigned long long>(steps_), loss_, 100 * accuracy_, megabytes_, rewrites_ ? "" : "\n");
    std::fflush(stdout);
}

}  // namespace demo
