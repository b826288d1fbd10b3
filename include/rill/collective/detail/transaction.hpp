#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/core/config.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What a codec contributes to one operation. It is committed if it is in the result and rolled back otherwise, also if
/// the operation fails before the codec has encoded anything.
///
/// A step that can be undone is another case: others may have the result of an operation that has failed on this rank,
/// and the step may count. So what has been encoded is committed when the operation fails, and an input that has not
/// been encoded is not kept. If the step does not count, its `step_scope` puts the codec back.
template <class Codec, class Encode>
class transaction {
  public:
    /// `encode()` lets the codec encode its input. `contributes`: whether this rank contributes at all.
    /// `can_be_undone`: a `step_scope` has a copy of the codec as it was before.
    transaction(Codec& codec, Encode encode, bool contributes, bool can_be_undone = false)
        : codec_(codec), encode_(std::move(encode)), has_to_give_(contributes), can_be_undone_(can_be_undone) {}
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction() {
        if (released_) return;
        if (can_be_undone_ && is_encoded_) {
            codec_.commit();
            return;
        }
        if (!can_be_undone_ && has_to_give_) keep_input();
        codec_.rollback();
    }

    auto give() {
        has_to_give_ = false;
        auto given = encode_();
        is_encoded_ = true;
        return given;
    }
    /// Tells the codec what the receivers decode of the next piece of its contribution.
    template <class View>
    void take_received(const View& piece) {
        if constexpr (LearnsReceived<Codec, View>) {
            is_encoded_ = false;
            codec_.take_received(piece);
            is_encoded_ = true;
        }
    }
    void commit() {
        codec_.commit();
        release();
    }
    /// The contribution is not in the result, and all ranks know it.
    void rollback() {
        codec_.rollback();
        release();
    }
    /// Leaves it to others to commit the contribution or to roll it back.
    void release() { released_ = true; }

  private:
    /// Encodes an input that was not sent, so that error feedback keeps it. In other codecs encoding changes nothing.
    void keep_input() noexcept {
        try {
            encode_();
        } catch (...) {  // an input that cannot be sent cannot be kept either
        }
    }

    Codec& codec_;
    Encode encode_;
    bool has_to_give_;
    bool can_be_undone_;
    bool is_encoded_ = false;  ///< as a whole: it may be under way
    bool released_ = false;
};

}}}  // namespace rill::RILL_ABI::detail
