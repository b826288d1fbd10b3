#pragma once

#include <cstdint>
#include <string>

namespace demo {

/// How far a run is: one line that is rewritten, or now and then a line.
class progress {
  public:
    /// `rewrites`: only where somebody sees standard output as it is written.
    progress(std::string name, std::uint64_t steps, bool rewrites);

    /// Whether standard output is a terminal.
    static bool is_on_terminal();

    void step(std::uint64_t done, double loss);
    void evaluated(std::uint64_t done, double accuracy, double megabytes);
    /// A line of its own, which stays.
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
