#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/core/config.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What a codec contributes to one operation. It is committed if it is in the result and rolled back otherwise, also if
/// the operation fails before the codec has encoded anything.
template <class Codec, class Encode>
class transaction {
  public:
    /// `encode()` lets the codec encode its input. `contributes`: whether this rank contributes at all.
    transaction(Codec& codec, Encode encode, bool contributes)
        : codec_(codec), encode_(std::move(encode)), has_to_give_(contributes) {}
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction() {
        if (released_) return;
        if (has_to_give_) keep_input();
        codec_.rollback();
    }

    auto give() {
        has_to_give_ = false;
        return encode_();
    }
    /// Tells the codec what the receivers decode of the next piece of its contribution.
    template <class View>
    void take_received(const View& piece) {
        if constexpr (LearnsReceived<Codec, View>) codec_.take_received(piece);
    }
    void commit() {
        codec_.commit();
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
    bool released_ = false;
};

}}}  // namespace rill::RILL_ABI::detail
