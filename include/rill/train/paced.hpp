#pragma once

#include <rill/concept/named_span.hpp>
#include <rill/concept/objective.hpp>
#include <rill/concept/transport.hpp>
#include <rill/core/config.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/random.hpp>
#include <rill/core/time.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace train {

/// How long a rank computes in each step, on its transport's clock.
struct pace {
    duration forward{};
    duration backward{};  ///< divided between the layers by their numbers of parameters

    friend constexpr bool operator==(const pace&, const pace&) = default;
};

/// An objective that computes what its model does and also sleeps, to take the time of a larger model or of another
/// machine. Models `LayeredObjective` if its model does.
/// In a simulated network computing takes no time, and the sleep is the length of a step. Among threads, more ranks
/// than cores can then "compute" at once. On a `traced` transport both passes are spans.
///
/// `net` must outlive it. `loss` takes the forward time. Gradients are the model's, bit for bit.
template <Transport Net, LayeredObjective Model>
class paced {
  public:
    using scalar = typename Model::scalar;
    using batch = typename Model::batch;

    /// Throws `contract_violation` if a time is below 0.
    paced(Net& net, Model model, const pace& chosen) : net_(&net), model_(std::move(model)), pace_(chosen) {
        rill::detail::require_option(chosen.forward.ns >= 0, "train::pace: forward", chosen.forward.ns,
                                     "at least 0 ns");
        rill::detail::require_option(chosen.backward.ns >= 0, "train::pace: backward", chosen.backward.ns,
                                     "at least 0 ns");
    }

    Model& model() { return model_; }

    std::size_t dimension() const { return model_.dimension(); }
    std::span<const layer> layers() const { return model_.layers(); }
    void initialise(std::span<scalar> parameters, random_key key) const { model_.initialise(parameters, key); }

    double loss(std::span<const scalar> parameters, const batch& samples) {
        sleep("forward", pace_.forward);
        return model_.loss(parameters, samples);
    }
    double gradient(std::span<const scalar> parameters, const batch& samples, std::span<scalar> output) {
        return gradient(parameters, samples, output, [](std::size_t) {});
    }
    template <class Ready>
    double gradient(std::span<const scalar> parameters, const batch& samples, std::span<scalar> output, Ready&& ready) {
        sleep("forward", pace_.forward);
        return model_.gradient(parameters, samples, output, [&](std::size_t i) {
            sleep("backward", share_of(layers()[i].part.size()));
            ready(i);
        });
    }

  private:
    duration share_of(std::size_t parameters) const {
        const double share = static_cast<double>(parameters) / static_cast<double>(dimension());
        return duration(static_cast<std::int64_t>(share * static_cast<double>(pace_.backward.ns)));
    }

    void sleep(const char* name, duration length) {
        const time_point until = std::as_const(*net_).now() + length;
        [[maybe_unused]] const auto computing = named_span(*net_, name);
        net_->sleep_until(until);
    }

    Net* net_;
    Model model_;
    pace pace_;
};

template <class Net, class Model>
paced(Net&, Model, pace) -> paced<Net, Model>;

}}}  // namespace rill::RILL_ABI::train
