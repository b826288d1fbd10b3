#include "report.hpp"

#include <cstdint>
#include <cstdio>
#include <sstream>

namespace demo {

namespace {

std::string hexadecimal(std::uint64_t number) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
    return text;
}

void print_row(const outcome& run) {
    std::printf("%-8s %10.2f %% %16.0f %16.0f %12.1f %9.1f\n", run.name.c_str(), 100 * run.accuracy(), run.mean_bytes,
                static_cast<double>(run.largest_bytes), run.total_bytes * 1e-6, run.seconds);
}

void write_run(std::ostream& out, const outcome& run) {
    out << "  \"" << run.name << "\": {\n"
        << "    \"accuracy\": " << run.accuracy() << ",\n"
        << "    \"mean_bytes\": " << run.mean_bytes << ",\n"
        << "    \"largest_bytes\": " << run.largest_bytes << ",\n"
        << "    \"total_bytes\": " << run.total_bytes << ",\n"
        << "    \"parameters\": \"" << hexadecimal(run.parameters) << "\",\n"
        << "    \"seconds\": " << run.seconds << ",\n"
        << "    \"steps\": " << run.steps << ",\n"
        << "    \"skipped\": " << run.skipped << ",\n"
        << "    \"curve\": [";
    const char* separator = "\n";
    for (const milestone& at : run.curve) {
        out << separator << "      {\"step\": " << at.step << ", \"megabytes\": " << at.megabytes
            << ", \"accuracy\": " << at.accuracy << "}";
        separator = ",\n";
    }
    out << "\n    ]\n  }";
}

}  // namespace

void print_table(const outcome& dense, const outcome& sparse) {
    std::printf("\n%-8s %12s %16s %16s %12s %9s\n", "", "test", "mean bytes per", "largest bytes", "total", "training");
    std::printf("%-8s %12s %16s %16s %12s %9s\n", "run", "accuracy", "rank and step", "rank and step", "MB", "seconds");
    print_row(dense);
    print_row(sparse);
    std::printf("\nsparse sends %.1f times fewer bytes, at %+.2f points of accuracy\n",
                dense.total_bytes / sparse.total_bytes, 100 * (sparse.accuracy() - dense.accuracy()));
    std::printf("checksums of the final parameters: dense %s, sparse %s\n", hexadecimal(dense.parameters).c_str(),
                hexadecimal(sparse.parameters).c_str());
}

std::string to_json(const arguments& chosen, const outcome& dense, const outcome& sparse) {
    std::ostringstream out;
    out.precision(12);
    out << "{\n  \"ranks\": " << chosen.ranks << ",\n  \"batch\": " << chosen.batch
        << ",\n  \"density\": " << chosen.density << ",\n  \"bits\": " << chosen.bits
        << ",\n  \"source_bits\": " << chosen.source_bits << ",\n  \"bucket\": " << chosen.bucket
        << ",\n  \"keep\": " << chosen.keep << ",\n  \"seed\": " << chosen.seed << ",\n  \"transport\": \""
        << chosen.transport << "\",\n";
    write_run(out, dense);
    out << ",\n";
    write_run(out, sparse);
    out << ",\n  \"ratio_bytes\": " << dense.total_bytes / sparse.total_bytes
        << ",\n  \"accuracy_points_lost\": " << 100 * (dense.accuracy() - sparse.accuracy())
        << ",\n  \"seconds\": " << dense.seconds + sparse.seconds << "\n}\n";
    return out.str();
}

}  // namespace demo
