// What the models of all ranks are worth at certain steps of a training: each one by itself, and their mean.
#pragma once

#include "job.hpp"

#include <rill/train/accuracy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gossip_bench {

inline constexpr double target = 0.83;  ///< of the mean worker's accuracy

/// All ranks after one step.
struct milestone {
    double step = 0, megabytes = 0, seconds = 0;  ///< sent and received by a rank on average; of the slowest rank
    double accuracy = 0, worst = 0, of_mean = 0;  ///< of the mean worker, the worst one, and the mean of all models
    double distance = 0;                          ///< root of the mean squared distance of the models from their mean
};

/// Collects the models of all ranks, which run in one thread, and judges them as soon as all have come.
class judge {
  public:
    explicit judge(job& of) : of_(&of) {}

    /// `bytes`: what the rank has sent and received since the training began, without headers.
    void see(std::uint64_t step, std::span<const float> model, double bytes, double seconds) {
        seen& at = open_[step];
        at.models.emplace_back(model.begin(), model.end());
        at.bytes += bytes;
        at.seconds = std::max(at.seconds, seconds);
        if (at.models.size() < ranks) return;
        milestones_.push_back(judged(step, at));
        open_.erase(step);
    }
    /// Where all ranks have one model. `bytes`: of all ranks.
    void see_shared(std::uint64_t step, std::span<const float> model, double bytes, double seconds) {
        const double right = accuracy(model);
        milestones_.push_back({.step = static_cast<double>(step),
                               .megabytes = bytes / ranks / 1e6,
                               .seconds = seconds,
                               .accuracy = right,
                               .worst = right,
                               .of_mean = right});
    }
    const std::vector<milestone>& milestones() const { return milestones_; }

  private:
    struct seen {
        std::vector<std::vector<float>> models{};
        double bytes = 0, seconds = 0;
    };

    milestone judged(std::uint64_t step, const seen& at) const {
        constexpr double share = 1.0 / ranks;
        milestone found{.step = static_cast<double>(step), .megabytes = at.bytes * share / 1e6, .seconds = at.seconds};
        found.worst = 1;
        std::vector<double> sum(of_->model.dimension());
        for (const auto& each : at.models) {
            const double right = accuracy(each);
            found.accuracy += right * share;
            found.worst = std::min(found.worst, right);
            for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(each[i]);
        }
        std::vector<float> mean(sum.size());
        double apart = 0;
        for (std::size_t i = 0; i < sum.size(); ++i) {
            mean[i] = static_cast<float>(sum[i] * share);
            for (const auto& each : at.models) apart += std::pow(static_cast<double>(each[i]) - sum[i] * share, 2);
        }
        found.distance = std::sqrt(apart * share);
        found.of_mean = accuracy(mean);
        return found;
    }

    double accuracy(std::span<const float> model) const {
        return static_cast<double>(rill::train::count_correct(of_->model, model, of_->test, {0, judged_images})) /
               static_cast<double>(judged_images);
    }

    job* of_;
    std::map<std::uint64_t, seen> open_{};  // ranks are some steps apart
    std::vector<milestone> milestones_{};
};

/// The last milestone, what it took until the mean worker had the target's accuracy (or -1), and the way there, as
/// JSON.
inline void print(const std::string& name, const std::vector<milestone>& all, const char* before) {
    const milestone& last = all.back();
    const auto reached = std::find_if(all.begin(), all.end(), [](const milestone& m) { return m.accuracy >= target; });
    const bool never = reached == all.end();
    std::printf("%s\"%s\": {\"accuracy\": %.6g, \"worst\": %.6g, \"of_mean\": %.6g, \"distance\": %.6g, ", before,
                name.c_str(), 100 * last.accuracy, 100 * last.worst, 100 * last.of_mean, last.distance);
    std::printf("\"megabytes\": %.8g, \"seconds\": %.6g, \"steps_to_target\": %.6g, \"megabytes_to_target\": %.6g, ",
                last.megabytes, last.seconds, never ? -1 : reached->step, never ? -1 : reached->megabytes);
    std::printf("\"seconds_to_target\": %.6g, \"curve\": {", never ? -1 : reached->seconds);
    const auto curve = [&](const char* key, double milestone::*of, const char* then) {
        std::printf("\"%s\": [", key);
        for (const milestone& each : all) std::printf("%s%.6g", &each == all.data() ? "" : ", ", each.*of);
        std::printf("]%s", then);
    };
    curve("step", &milestone::step, ", ");
    curve("megabytes", &milestone::megabytes, ", ");
    curve("seconds", &milestone::seconds, ", ");
    curve("accuracy", &milestone::accuracy, "}}");
}

}  // namespace gossip_bench
