#pragma once

#include <rill/concept/compressor.hpp>
#include <rill/core/config.hpp>

#include <utility>

namespace rill { inline namespace RILL_ABI { namespace detail {

/// What a codec contributes to one operation: committed when it is in the result, returned to the codec when not, also
/// where the operation fails before it has come to encode.
template <class Codec, class Encode>
class transaction {
  public:
    /// `encode()` lets the codec encode its input; `contributes`: this rank has one.
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
    /// What the receivers decode of the next coordinates given.
    template <class View>
    void take_received(const View& piece) {
        if constexpr (LearnsReceived<Codec, View>) codec_.take_received(piece);
    }
    void commit() {
        codec_.commit();
        release();
    }
    /// Leaves it to others to commit it or to contributors it back.
    void release() { released_ = true; }

  private:
    /// By error feedback; in other codecs encoding changes nothing.
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
