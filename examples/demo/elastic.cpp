#include "elastic.hpp"

#if RILL_EXAMPLE_HAS_TCP

#include "elastic_rank.hpp"
#include "rank_training.hpp"

#include <rill/core/segment.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
#include <rill/train/accuracy.hpp>
#include <rill/train/perceptron.hpp>
#include <rill/transport/tcp.hpp>

#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace demo {

namespace {

using rill::rank_t;

constexpr double has_learnt = 0.75;  // required accuracy of `--quick`

[[noreturn]] void fail(const char* call) { throw std::system_error(errno, std::generic_category(), call); }

/// What a member tells the process that has started it. Written to a pipe as a whole.
struct news {
    rank_t rank = rill::no_rank;
    bool is_end = false;
    std::uint32_t epoch = 0;
    std::uint64_t step = 0;
    std::uint64_t members = 0;   ///< a bit for each
    double accuracy = -1;        ///< on the test images; below 0 where it was not measured
    std::uint64_t checksum = 0;  ///< of the final parameters
};

std::string text_of(std::uint64_t members) {
    std::string text;
    for (int rank = 0; rank < 64; ++rank)
        if ((members >> rank & 1U) != 0) text += (text.empty() ? "" : ", ") + std::to_string(rank);
    return text;
}
std::uint64_t bits_of(const rill::view& crew) {
    std::uint64_t bits = 0;
    for (const rank_t rank : crew.members) bits |= std::uint64_t{1} << rank;
    return bits;
}

/// A port of this machine that nobody listens at.
std::string free_point() {
    const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (probe < 0 || ::bind(probe, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
        ::getsockname(probe, reinterpret_cast<sockaddr*>(&at), &size) != 0)
        fail("socket");
    ::close(probe);
    return "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
}

/// One rank, in a process of its own.
class member {
  public:
    member(const arguments& chosen, const images& data, int pipe) : chosen_(&chosen), data_(&data), pipe_(pipe) {}

    void run(const rill::tcp::options& where) {
        rill::tcp::run(
            [&](auto& net) {
                const std::uint64_t every = std::max<std::uint64_t>(1, steps_of(*chosen_, *data_) / 12);
                const auto parameters = train_elastic(
                    net, *chosen_, *data_, {.least = 2, .timeout = rill::seconds(10), .patience = rill::seconds(3)},
                    [&](const elastic_moment& now) {
                        last_ = {.rank = net.rank(),
                                 .epoch = now.crew.epoch,
                                 .step = now.step,
                                 .members = bits_of(now.crew)};
                        const bool is_first = now.crew.members.front() == net.rank();
                        if (is_first && now.step % every == 0) last_.accuracy = accuracy(now.parameters, 2000);
                        tell();
                    });
                last_.is_end = true;
                last_.step = steps_of(*chosen_, *data_);
                last_.accuracy = accuracy(parameters, data_->test.rows);
                last_.checksum = checksum(parameters);
                tell();
            },
            where);
    }

  private:
    double accuracy(std::span<const float> parameters, std::size_t rows) {
        rows = std::min(rows, data_->test.rows);
        return static_cast<double>(train::count_correct(model_, parameters, data_->test, {0, rows})) /
               static_cast<double>(rows);
    }
    void tell() const {
        if (::write(pipe_, &last_, sizeof last_) != sizeof last_) fail("write");
    }

    const arguments* chosen_;
    const images* data_;
    int pipe_;
    train::perceptron<float> model_{{784, 512, 10}};
    news last_{};
};

/// Starts the ranks, listens to them, kills and revives.
class director {
  public:
    director(const arguments& chosen, const images& data)
        : chosen_(&chosen), data_(&data), processes_(static_cast<std::size_t>(chosen.ranks)) {
        if (::pipe(pipe_) != 0) fail("pipe");
        where_.ranks = where_.seats = chosen.ranks;
        where_.meeting = free_point();
        where_.patience = rill::seconds(3);
        where_.failure_timeout = rill::seconds(5);
    }
    director(const director&) = delete;
    director& operator=(const director&) = delete;
    ~director() {
        for (rank_t rank = 0; rank < chosen_->ranks; ++rank) {
            if (!lives(rank)) continue;
            ::kill(process(rank), SIGKILL);
            ::waitpid(process(rank), nullptr, 0);
        }
        ::close(pipe_[0]);
        ::close(pipe_[1]);
    }

    int run() {
        std::printf("%d processes begin\n", chosen_->ranks);
        for (rank_t rank = 0; rank < chosen_->ranks; ++rank) start(rank, false);
        bool any = true;
        while (any) {
            listen();
            any = false;
            for (rank_t rank = 0; rank < chosen_->ranks; ++rank) any |= lives(rank) && !has_ended(rank);
        }
        return verdict();
    }

  private:
    /// The first to be killed, which comes back, and the one that is killed then, which does not.
    static constexpr rank_t first_victim = 1, second_victim = 0;

    pid_t& process(rank_t rank) { return processes_[static_cast<std::size_t>(rank)]; }
    bool lives(rank_t rank) { return process(rank) != 0; }

    void start(rank_t rank, bool joins) {
        std::fflush(stdout);
        const pid_t child = ::fork();
        if (child < 0) fail("fork");
        if (child != 0) {
            process(rank) = child;
            return;
        }
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        int status = 0;
        try {
            where_.rank = rank;
            where_.joins = joins;
            member(*chosen_, *data_, pipe_[1]).run(where_);
        } catch (const std::exception& problem) {
            std::fprintf(stderr, "rank %d: %s\n", rank, problem.what());
            status = 1;
        }
        ::_exit(status);
    }
    bool has_ended(rank_t rank) {
        int status = 0;
        if (::waitpid(process(rank), &status, WNOHANG) == 0) return false;
        if (status != 0) failed_.push_back(rank);
        process(rank) = 0;
        return true;
    }

    /// Takes the news of a tenth of a second.
    void listen() {
        pollfd ready{.fd = pipe_[0], .events = POLLIN, .revents = 0};
        for (news told; ::poll(&ready, 1, 100) > 0;) {
            if (::read(pipe_[0], &told, sizeof told) != sizeof told) fail("read");
            hear(told);
        }
    }
    void hear(const news& told) {
        if (told.is_end) return ends_.push_back(told);
        if (told.epoch > known_.epoch || known_.members == 0) show_view(told);
        if (told.accuracy >= 0)
            std::printf("step %4llu: %d members, test accuracy %.1f %%\n", number(told.step), members(),
                        100 * told.accuracy);
        std::fflush(stdout);
        act(told.step);
    }
    void show_view(const news& told) {
        const std::uint64_t gone = known_.members & ~told.members, came = told.members & ~known_.members;
        std::string what;
        if (gone != 0) what += "; rank " + text_of(gone) + " has gone" + after();
        if (came != 0 && known_.members != 0) what += "; rank " + text_of(came) + " has the state and is in" + after();
        known_ = told;
        std::printf("step %4llu: epoch %u has %d members%s\n", number(told.step), told.epoch, members(), what.c_str());
    }
    /// What the plan does when this step has come.
    void act(std::uint64_t step) {
        const std::uint64_t steps = steps_of(*chosen_, *data_);
        if (done_ == 0 && step >= steps / 5) return kill_rank(step, first_victim);
        if (done_ == 1 && step >= 2 * steps / 5) {
            acted();
            start(first_victim, true);
            std::printf("step %4llu: rank %d begins anew, as process %d\n", number(step), first_victim,
                        process(first_victim));
        }
        const bool is_back = (known_.members >> first_victim & 1U) != 0;
        if (done_ == 2 && is_back && step >= 3 * steps / 5) kill_rank(step, second_victim);
    }
    void kill_rank(std::uint64_t step, rank_t rank) {
        const pid_t victim = process(rank);
        std::printf("step %4llu: kill -9 %d, which is rank %d\n", number(step), victim, rank);
        acted();
        ::kill(victim, SIGKILL);
        ::waitpid(victim, nullptr, 0);
        process(rank) = 0;
    }
    void acted() {
        ++done_;
        when_ = seconds_now();
    }
    std::string after() const {
        char text[40];
        std::snprintf(text, sizeof text, ", after %.2f s", seconds_now() - when_);
        return text;
    }

    int verdict() const {
        bool are_equal = true;
        for (const news& each : ends_) {
            std::printf("rank %d ends: test accuracy %.2f %%, checksum of the parameters %016llx\n", each.rank,
                        100 * each.accuracy, number(each.checksum));
            are_equal &= each.checksum == ends_.front().checksum;
        }
        const auto wanted = static_cast<std::size_t>(chosen_->ranks - 1);
        const bool is_whole = done_ == 3 && ends_.size() == wanted && failed_.empty();
        std::printf("%zu members have ended, with %s parameters\n", ends_.size(), are_equal ? "the same" : "OTHER");
        if (!is_whole) std::fprintf(stderr, "rill_demo: expected %zu members to end\n", wanted);
        const bool is_bad = chosen_->quick && !ends_.empty() && ends_.front().accuracy < has_learnt;
        if (is_bad) std::fprintf(stderr, "rill_demo: expected an accuracy above %.0f %%\n", 100 * has_learnt);
        return is_whole && are_equal && !is_bad ? 0 : 1;
    }
    int members() const { return static_cast<int>(std::popcount(known_.members)); }
    static unsigned long long number(std::uint64_t of) { return of; }

    const arguments* chosen_;
    const images* data_;
    std::vector<pid_t> processes_;  ///< by rank; 0 where there is none
    int pipe_[2]{};
    rill::tcp::options where_{};
    news known_{};  ///< of the latest view
    std::vector<news> ends_{};
    std::vector<rank_t> failed_{};
    int done_ = 0;     ///< what the plan has done so far
    double when_ = 0;  ///< it did so last
};

}  // namespace

int show_elastic(const arguments& chosen, const images& data) { return director(chosen, data).run(); }

}  // namespace demo

#else

#include <stdexcept>

namespace demo {

int show_elastic(const arguments&, const images&) {
    throw std::runtime_error("built without TCP: --elastic is not available");
}

}  // namespace demo

#endif
