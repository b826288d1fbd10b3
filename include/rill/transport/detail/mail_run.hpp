#pragma once

#include <rill/core/config.hpp>
#include <rill/core/error.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/failures.hpp>
#include <rill/transport/detail/mail_engine.hpp>

#include <exception>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace mail {

/// One rank's part of a run: calls the body and tells all ranks how it ended. An exception ends the run on all ranks
/// but those that monitor: these are told that this rank has ended.
template <class Port>
class rank_run {
  public:
    explicit rank_run(engine<Port>& of) : engine_(of) {}

    /// Returns when all ranks have ended; rethrows the exception of this rank's body, or else throws what ended the
    /// run. After an exception it does not wait for ranks that go on.
    void run(void (*body)(void*), void* argument) {
        try {
            body(argument);
        } catch (const typename Port::library_error& caught) {
            tell_if_possible(caught.notice());
            throw;
        } catch (...) {
            abort_notice notice = rill::detail::notice_of_thrown(
                engine_.rank(), [this](const abort_notice& told) { return engine_.origin_of(told); });
            if (notice.culprit == no_rank) notice.culprit = engine_.rank();
            fail(std::move(notice));
        }
        engine_.leave();
        const auto failed = engine_.await_all_left();
        if (thrown_) std::rethrow_exception(thrown_);
        if (failed) throw_error(*failed);
    }

  private:
    /// Used when the port itself has failed: tries to tell the other ranks, and waits for nothing.
    void tell_if_possible(abort_notice notice) noexcept {
        notice.culprit = engine_.rank();
        try {
            fail(std::move(notice));
            engine_.leave();
        } catch (...) {
        }
    }
    void fail(abort_notice notice) {
        thrown_ = std::current_exception();
        notice.context = every_context;
        engine_.fail(notice);
    }

    engine<Port>& engine_;
    std::exception_ptr thrown_;
};

}}}  // namespace rill::RILL_ABI::mail
