// Runs the same cases on all ranks, with one verdict. A rank reports its failure at once; the others may then wait for
// it until the timeout. RILL_TEST_THREAD_LEVEL (single, funneled, serialized, multiple) is the thread level that is
// requested and must be granted.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <rill/transport/mpi.hpp>

#include "processes.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

using rill::mpi::thread_level;

thread_level wanted_level() {
    const char* const asked = std::getenv("RILL_TEST_THREAD_LEVEL");
    for (const thread_level level : {thread_level::single, thread_level::serialized, thread_level::multiple})
        if (asked != nullptr && std::string(asked) == name(level)) return level;
    return thread_level::funneled;
}

/// Whether `here` is true on any rank.
bool any_rank(bool here) {
    int mine = here ? 1 : 0, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return all != 0;
}

class says_what_fails : public doctest::IReporter {
  public:
    explicit says_what_fails(const doctest::ContextOptions&) {}

    void test_case_start(const doctest::TestCaseData& begun) override { case_ = begun.m_name; }
    void log_assert(const doctest::AssertData& seen) override {
        if (!seen.m_failed) return;
        std::string context;
        for (int i = 0; i < get_num_active_contexts(); ++i) {
            std::ostringstream text;
            get_active_contexts()[i]->stringify(&text);
            context += "; " + text.str();
        }
        say(std::string(seen.m_file) + ":" + std::to_string(seen.m_line) + ": " + seen.m_expr + " -> " +
            seen.m_decomp.c_str() + seen.m_exception.c_str() + context);
    }
    void log_message(const doctest::MessageData& seen) override { say(seen.m_string.c_str()); }
    void test_case_exception(const doctest::TestCaseException& thrown) override {
        say(std::string("throws ") + thrown.error_string.c_str());
    }
    void report_query(const doctest::QueryData&) override {}
    void test_run_start() override {}
    void test_run_end(const doctest::TestRunStats&) override {}
    void test_case_reenter(const doctest::TestCaseData&) override {}
    void test_case_end(const doctest::CurrentTestCaseStats&) override {}
    void subcase_start(const doctest::SubcaseSignature&) override {}
    void subcase_end() override {}
    void test_case_skipped(const doctest::TestCaseData&) override {}

  private:
    void say(const std::string& what) const {
        std::fprintf(stderr, "rank %d of %d: %s: %s\n", processes::rank(), processes::count(), case_, what.c_str());
    }

    const char* case_ = "";
};

}  // namespace

REGISTER_LISTENER("ranks", 1, says_what_fails);

int main(int argc, char** argv) {
    const rill::mpi::environment library(wanted_level());
    if (library.provided() != wanted_level()) {
        std::fprintf(stderr, "MPI grants the thread level %s where %s was asked for\n", name(library.provided()),
                     name(wanted_level()));
        return 1;
    }
    std::ostringstream said;
    doctest::Context context(argc, argv);
    context.setOption("no-colors", true);
    context.setCout(&said);
    const bool failed = any_rank(context.run() != 0);
    if (processes::rank() == 0)
        std::printf("%d ranks, thread level %s:\n%s", processes::count(), name(library.provided()), said.str().c_str());
    return failed ? 1 : 0;
}
