#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include <unistd.h>

namespace shared {

/// Shows the progress of a run: in one line that is rewritten, or in a new line now and then.
class progress {
  public:
    /// `rewrites`: rewrites one line; for a terminal.
    progress(std::string name, std::uint64_t steps, bool rewrites);

    /// Whether standard output is a terminal.
    static bool is_on_terminal();

    void step(std::uint64_t done, double loss);
    void evaluated(std::uint64_t done, double accuracy, double megabytes);
    /// Prints a separate line, which is not rewritten.
    void note(const std::string& text);
    void finish();

  private:
    void show();

    std::string name_;
    std::uint64_t steps_;
    std::uint64_t done_ = 0;
    double loss_ = 0;  // smoothed
    double accuracy_ = 0;
    double megabytes_ = 0;
    bool rewrites_;
};

inline progress::progress(std::string name, std::uint64_t steps, bool rewrites)
    : name_(std::move(name)), steps_(steps), rewrites_(rewrites) {}

inline bool progress::is_on_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

inline void progress::step(std::uint64_t done, double loss) {
    done_ = done;
    loss_ = done == 1 ? loss : 0.95 * loss_ + 0.05 * loss;
    if (rewrites_ && done % 5 == 0) show();
}

inline void progress::evaluated(std::uint64_t done, double accuracy, double megabytes) {
    done_ = done;
    accuracy_ = accuracy;
    megabytes_ = megabytes;
    show();
}

inline void progress::note(const std::string& text) {
    std::printf("%s%s\n", rewrites_ ? "\r\033[K" : "", text.c_str());
    std::fflush(stdout);
}

inline void progress::finish() {
    if (rewrites_) std::printf("\n");
}

inline void progress::show() {
    std::printf("%s%-6s  step %4llu of %llu  loss %.3f  test accuracy %5.2f %%  %8.1f MB sent per rank%s",
                rewrites_ ? "\r\033[K" : "", name_.c_str(), static_cast<unsigned long long>(done_),
                static_cast<unsigned long long>(steps_), loss_, 100 * accuracy_, megabytes_, rewrites_ ? "" : "\n");
    std::fflush(stdout);
}

}  // namespace shared
