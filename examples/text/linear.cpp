// Trains a logistic model on sparse samples with one or more ways to exchange gradients, and compares accuracy, traffic
// and time.
#include "../shared/text_file.hpp"
#include "arguments.hpp"
#include "report.hpp"
#include "training.hpp"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    const text::arguments chosen = text::read_arguments(argc, argv);
    try {
        const text::samples data = text::read_samples(chosen);
        text::print_samples(chosen, data);
        std::vector<text::outcome> runs;
        for (const std::string& run : chosen.runs) runs.push_back(text::fit(run, chosen, data));
        text::print_table(runs);
        shared::write_text(chosen.json, text::to_json(chosen, data, runs));
        shared::write_text(chosen.picture, text::draw(runs));
        std::printf("figures: %s\npicture: %s\n", chosen.json.c_str(), chosen.picture.c_str());
        return 0;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "rill_linear: %s\n", problem.what());
    }
    return 1;
}
