// Folds many inputs into many outputs, in one pass over all of them.
#pragma once

#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/kernel/copy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace rill { inline namespace RILL_ABI { namespace kernel {

namespace detail {

/// Entries of a cache line, which is the width of a tile: each line of each input and output is touched once. Wider
/// tiles are slower: large vectors begin at equal offsets in their pages, so that their lines evict each other from the
/// L1 cache (8 vectors of 16M floats, 2 threads: tiles of 64 entries take 1.3 times as long, of 256 entries 1.2 to 1.6
/// times).
template <Element T>
inline constexpr std::size_t line = 64 / sizeof(T);

/// At most this many inputs are folded in straight-line code. Further inputs are folded into the result so far, this
/// many at a time.
inline constexpr std::size_t inputs_at_once = 8;

/// With more inputs than `streams_unasked`, their lines are prefetched `asked_ahead` bytes ahead (8 inputs: 0.65 to 0.8
/// of the time without).
inline constexpr std::size_t streams_unasked = 4;
inline constexpr std::size_t asked_ahead = 4096;

template <class T>
void ask_for(const T* first) {
#if defined(__GNUC__)
    __builtin_prefetch(reinterpret_cast<const char*>(first) + asked_ahead);
#else
    static_cast<void>(first);
#endif
}

/// Folds into `acc` the line at entry i of each of the first sizeof...(K) inputs. If `Fresh`, the fold begins with the
/// first input and ignores what `acc` held.
template <bool Fresh, Element T, class Fold, std::size_t... K>
inline void fold_lines(const T* const* inputs, std::size_t i, T* acc, Fold& fold, std::index_sequence<K...>) {
    const T* const x[] = {inputs[K] + i...};
    if constexpr (!Fresh || sizeof...(K) > streams_unasked) (ask_for(x[K]), ...);
    T made[line<T>];  // a local array: the compiler knows that no input aliases it
    for (std::size_t j = 0; j < line<T>; ++j) {
        T value = Fresh ? x[0][j] : fold(acc[j], x[0][j]);
        ((value = K == 0 ? value : fold(value, x[K][j])), ...);
        made[j] = value;
    }
    rill::detail::copy_elements(made, line<T>, acc);
}

/// Calls `run` with an index sequence of length min(count, inputs_at_once).
template <class Run>
void with_indices(std::size_t count, Run&& run) {
    switch (count) {
        case 1: return run(std::make_index_sequence<1>{});
        case 2: return run(std::make_index_sequence<2>{});
        case 3: return run(std::make_index_sequence<3>{});
        case 4: return run(std::make_index_sequence<4>{});
        case 5: return run(std::make_index_sequence<5>{});
        case 6: return run(std::make_index_sequence<6>{});
        case 7: return run(std::make_index_sequence<7>{});
        default: return run(std::make_index_sequence<inputs_at_once>{});
    }
}

/// Folds in the inputs beyond `inputs_at_once`, those that are left one by one.
template <Element T, class Fold>
void fold_further_lines(std::span<const T* const> inputs, std::size_t i, T (&acc)[line<T>], Fold& fold) {
    constexpr std::make_index_sequence<inputs_at_once> all;
    std::size_t k = inputs_at_once;
    for (; k + inputs_at_once <= inputs.size(); k += inputs_at_once)
        fold_lines<false>(inputs.data() + k, i, acc, fold, all);
    for (; k < inputs.size(); ++k) fold_lines<false>(inputs.data() + k, i, acc, fold, std::index_sequence<0>{});
}

template <Element T, class Fold>
T fold_entry(std::span<const T* const> inputs, std::size_t i, Fold& fold) {
    T value = inputs[0][i];
    for (std::size_t k = 1; k < inputs.size(); ++k) value = fold(value, inputs[k][i]);
    return value;
}

/// Returns how many entries of `x` lie before the first cache line boundary, at most `most`; zero if an entry straddles
/// two lines.
template <Element T>
std::size_t entries_before_line(const T* x, std::size_t most) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(x) % 64;
    return past % sizeof(T) != 0 ? 0 : std::min((64 - past) % 64 / sizeof(T), most);
}

/// Returns how many outputs, counted from the first, are aligned to a cache line at entry i.
template <Element T>
std::size_t outputs_on_lines(std::span<T* const> outputs, std::size_t i) {
    std::size_t count = 0;
    while (count < outputs.size() && reinterpret_cast<std::uintptr_t>(outputs[count] + i) % 64 == 0) ++count;
    return count;
}

/// Folds the whole lines of `part` and returns where they end. The first `streamed` outputs are written past the
/// caches. The input pointers are copied to a local array, which no output can alias, and a single output is folded in
/// place: 16 lines of 2 inputs take 100 ns less.
template <Element T, class Fold, class Finish, std::size_t... K>
std::size_t fold_whole_lines(std::span<const T* const> inputs, std::span<T* const> outputs, segment part,
                             std::size_t streamed, Fold fold, Finish& finish, std::index_sequence<K...> indices) {
    const T* const first[] = {inputs[K]...};
    const bool is_single = outputs.size() == 1 && streamed == 0 && inputs.size() <= inputs_at_once;
    std::size_t i = part.begin;
    for (; i + line<T> <= part.end; i += line<T>) {
        alignas(64) T acc[line<T>];
        T* const made = is_single ? outputs[0] + i : acc;
        fold_lines<true>(first, i, made, fold, indices);
        // Also where there are fewer: without this call g++ 12 makes other code, in which a pass over two inputs of 16M
        // floats takes 1.5 times as long.
        if (inputs.size() > inputs_at_once) fold_further_lines(inputs, i, acc, fold);
        finish(std::span<T>(made, line<T>));
        if (is_single) continue;
        const auto* const bytes = reinterpret_cast<const unsigned char*>(acc);
        for (std::size_t k = 0; k < streamed; ++k) stream_line(bytes, reinterpret_cast<unsigned char*>(outputs[k] + i));
        for (std::size_t k = streamed; k < outputs.size(); ++k)
            rill::detail::copy_elements(acc, line<T>, outputs[k] + i);
    }
    return i;
}

/// Folds the entries of `part`, fewer than a cache line has.
template <Element T, class Fold, class Finish>
void fold_rest(std::span<const T* const> inputs, std::span<T* const> outputs, segment part, Fold& fold,
               Finish& finish) {
    T rest[line<T>];
    for (std::size_t j = 0; j < part.size(); ++j) rest[j] = fold_entry(inputs, part.begin + j, fold);
    finish(std::span<T>(rest, part.size()));
    for (T* const out : outputs) rill::detail::copy_elements(rest, part.size(), out + part.begin);
}

}  // namespace detail

/// Folds the inputs' entries i of `part` in the order of the inputs, and writes the result to entry i of every output.
///
/// Entry i is `inputs[k][i]` and `outputs[k][i]`. `finish(std::span<T>)` is called on pieces of the result before they
/// are written, and may change them. An output may be one of the inputs; it may not overlap one otherwise. The first
/// `past_caches` outputs bypass the caches where they are aligned alike: pass those that no cache holds. Cost: one pass
/// over each input and each output.
template <Element T, class Fold, class Finish>
void fold_tiles(std::span<const T* const> inputs, std::span<T* const> outputs, segment part, Fold&& fold,
                Finish&& finish, std::size_t past_caches = 0) {
    using detail::line;
    RILL_EXPECTS(!inputs.empty() && past_caches <= outputs.size(), "fold_tiles: there is nothing to fold");
    std::size_t i = part.begin;
    if (past_caches != 0) i += detail::entries_before_line(outputs[0] + i, part.size());
    detail::fold_rest(inputs, outputs, {part.begin, i}, fold, finish);
    const std::size_t streamed = detail::outputs_on_lines(outputs.first(past_caches), i);
    detail::with_indices(inputs.size(), [&](auto indices) {
        i = detail::fold_whole_lines(inputs, outputs, {i, part.end}, streamed, fold, finish, indices);
    });
    detail::fold_rest(inputs, outputs, {i, part.end}, fold, finish);
    if (streamed != 0) detail::end_streaming();
}

}}}  // namespace rill::RILL_ABI::kernel
