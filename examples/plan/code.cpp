#include "code.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>

namespace plan {

namespace {

std::string policy_of(method how, double density) {
    char number[40];
    std::snprintf(number, sizeof number, "%.9g", density);
    const std::string top_k = std::string("rill::compress::top_k{.density = ") + number + "}";
    const std::string packed = top_k + ", rill::compress::raw{}, rill::compress::smallest{}";
    const auto with_feedback = [](const std::string& inner) { return "rill::compress::error_feedback{" + inner + "}"; };
    switch (how) {
        case method::none: return "";
        case method::rounded_copies:
            return "rill::compress::encoded{rill::compress::keep_all{}, rill::compress::raw{}, "
                   "rill::compress::raw_indices{}, rill::compress::qsgd{.bits = 8}}";
        case method::top_k: return with_feedback(top_k);
        case method::top_k_packed: return with_feedback("rill::compress::encoded{" + packed + "}");
        case method::top_k_rounded_copies:
            return with_feedback("rill::compress::encoded{" + packed + ", rill::compress::qsgd{.bits = 4}}");
    }
    return "";
}

/// A policy that is written `name` or `name:NUMBER`.
std::string policy_of(const std::string& written) {
    const std::size_t colon = std::min(written.size(), written.find(':'));
    return "rill::straggler::" + written.substr(0, colon) + "{" + written.substr(std::min(written.size(), colon + 1)) +
           "}";
}

}  // namespace

std::string code_of(const row& which, double density) {
    const std::string policy = policy_of(which.how.how, density);
    std::string text =
        "    // once: #include <rill/rill.hpp>; `net` is this rank's endpoint\n"
        "    rill::group workers{net, rill::topology::" +
        which.topology + "{}};\n";
    if (!policy.empty()) text += "    auto codec = " + policy + "\n                     .bind(gradient.size());\n";
    text +=
        "    // in each step: `update` becomes the mean of all ranks' gradients\n"
        "    rill::all_reduce(workers, gradient, update, ";
    return text + (policy.empty() ? "" : "codec, ") + "rill::aggregate::mean{});\n";
}

std::string code_of_rounds(int left_out) {
    return "    // #include <rill/rill.hpp> and <rill/train.hpp>\n"
           "    rill::train::partial_bsp strategy{rill::topology::star{}, rill::straggler::tolerate{" +
           std::to_string(left_out) +
           "},\n"
           "                                      rill::train::sgd{}, rill::train::constant_rate{0.1}};\n"
           "    strategy.root_contributes = true;\n"
           "    rill::train::trainer trainer{net, objective, batches, strategy};\n"
           "    while (trainer.step())\n"
           "        if (trainer.step_number() == 1000) trainer.end();\n";
}

std::string code_of_partial(const std::string& trigger, const std::string& staleness, const std::string& topology) {
    return "    // #include <rill/rill.hpp> and <rill/train.hpp>\n"
           "    const rill::train::descent move{rill::train::sgd{}, rill::train::constant_rate{0.01}};\n"
           "    const rill::train::partial_replica rounds{rill::topology::" +
           topology + "{}, " + policy_of(trigger) +
           ",\n"
           "                                              " +
           policy_of(staleness) +
           ", rill::straggler::plain_sum{}, move};\n"
           "    rill::train::asynchronous_trainer trainer{net, objective, batches, rounds};\n"
           "    while (trainer.step())\n"
           "        if (trainer.version() >= 1000) trainer.end();\n";
}

std::string code_of_coded(int width, int depth, int stragglers) {
    const std::string numbers = ".width = " + std::to_string(width) + ", .depth = " + std::to_string(depth) +
                                ", .stragglers = " + std::to_string(stragglers);
    return "    // on system.topology.size() ranks: #include <rill/train.hpp> and <rill/system.hpp>\n"
           "    const auto system = rill::systems::coded_reduce<float>({" +
           numbers +
           "},\n"
           "        rill::train::sgd{}, rill::train::constant_rate{0.1});\n"
           "    const rill::coded_allocation allocation(system.topology, system.code, data.rows);\n"
           "    rill::train::trainer trainer{net, objective,\n"
           "                                 rill::train::coded_batch(data, allocation, net.rank()), system};\n"
           "    while (trainer.step())\n"
           "        if (trainer.step_number() == 1000) trainer.end();\n";
}

std::string code_of_gossip(double least, double density) {
    char numbers[2][40];
    std::snprintf(numbers[0], sizeof numbers[0], "%.4g", least);
    std::snprintf(numbers[1], sizeof numbers[1], "%g", density);
    return "    // #include <rill/adapt/boost_matching.hpp>, <rill/cost/measure_links.hpp>, <rill/mixing.hpp>\n"
           "    // and <rill/protocol/coordinated.hpp>\n"
           "    rill::group workers{net, rill::topology::tree{}};\n"
           "    const auto links = rill::cost::bytes_per_second(rill::cost::measure_links(workers));\n"
           "    rill::gossip saps{workers,\n"
           "                      rill::topology::bandwidth_matching{.links = links, .least = " +
           std::string(numbers[0]) +
           ",\n"
           "                                                         .matcher = rill::adapt::boost_matching{}},\n"
           "                      rill::coordinated{.rounds = 1000}};\n"
           "    auto mask = rill::compress::random_mask{.density = " +
           numbers[1] +
           "}.bind(model.size());\n"
           "    while (saps.next()) {\n"
           "        descend(model);\n"
           "        saps.mix(model, mask);\n"
           "    }\n";
}

}  // namespace plan
