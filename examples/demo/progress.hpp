#pragma once

#include <cstdint>
#include <string>

namespace demo {

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

}  // namespace demo
