// rill 0.1.0: <rill/rill.hpp> in one file. Gradient aggregation for distributed learning, C++20.
// SPDX-License-Identifier: Apache-2.0
// Made of the headers below include/ by tools/single_header.py: change those and make it anew.
#ifndef RILL_SINGLE_RILL_HPP
#define RILL_SINGLE_RILL_HPP

#if defined(RILL_VERSION_MAJOR)
#error "rill: a header of include/ stands before rill.hpp of single_include/; use one of the two folders"
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_CORE_BUFFER_SHELF_HPP
#define RILL_SINGLE_CORE_BUFFER_SHELF_HPP

// ===== rill/core/buffer_shelf.hpp

namespace rill::inline RILL_ABI {

/// Where a thread keeps the memory of large messages that it has done with, for those that it will send. The first
/// touch of fresh memory costs more than a copy; and whoever takes part in an exchange lets go of as much as it sends.
///
/// Memory comes in sizes of which there are eight between powers of two, from `least` bytes on; at most `places` pieces
/// and `most` bytes lie here, the rest goes back to the system. Never shared between threads; under the address
/// sanitizer nothing is kept, so that it sees what is used after it was freed.
class buffer_shelf {
  public:
    static constexpr std::size_t least = std::size_t{1} << 16;
    static constexpr std::size_t most = std::size_t{1} << 28;
    static constexpr std::size_t places = 64;
    static constexpr std::align_val_t alignment{64};
#if defined(__SANITIZE_ADDRESS__)
    static constexpr bool keeps = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    static constexpr bool keeps = false;
#else
    static constexpr bool keeps = true;
#endif
#else
    static constexpr bool keeps = true;
#endif

    /// The size of the memory in which `size` bytes lie.
    static constexpr std::size_t room_for(std::size_t size) {
        if (size < least) return size;
        const std::size_t step = std::bit_floor(size - 1) / 8;
        return (size + step - 1) / step * step;
    }

    static void* take(std::size_t size) {
        const std::size_t room = room_for(size);
        if (buffer_shelf* const own = of_this_thread(room))
            if (void* const kept = own->find(room)) return kept;
        return ::operator new(room, alignment);
    }
    /// Of as many bytes as were taken.
    static void give_back(void* memory, std::size_t size) noexcept {
        const std::size_t room = room_for(size);
        buffer_shelf* const own = of_this_thread(room);
        if (own == nullptr || !own->keep(memory, room)) ::operator delete(memory, alignment);
    }

    buffer_shelf() = default;
    buffer_shelf(const buffer_shelf&) = delete;
    buffer_shelf& operator=(const buffer_shelf&) = delete;
    ~buffer_shelf() {
        is_gone = true;
        for (std::size_t i = 0; i < count_; ++i) ::operator delete(kept_[i].memory, alignment);
    }

  private:
    struct piece {
        void* memory;
        std::size_t room;
    };

    /// None for what is small, and where the thread has ended but for what its last objects let go.
    static buffer_shelf* of_this_thread(std::size_t room) {
        if (!keeps || room < least || is_gone) return nullptr;
        thread_local buffer_shelf own;
        return &own;
    }

    void* find(std::size_t room) {
        for (std::size_t i = count_; i-- > 0;)
            if (kept_[i].room == room) {
                bytes_ -= room;
                return std::exchange(kept_[i], kept_[--count_]).memory;
            }
        return nullptr;
    }
    bool keep(void* memory, std::size_t room) {
        if (count_ == places || room > most - bytes_) return false;
        kept_[count_++] = {memory, room};
        bytes_ += room;
        return true;
    }

    static inline thread_local bool is_gone = false;

    std::array<piece, places> kept_{};
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_BUFFER_SHELF_HPP

#ifndef RILL_SINGLE_CORE_BYTES_HPP
#define RILL_SINGLE_CORE_BYTES_HPP

// ===== rill/core/bytes.hpp

namespace rill::inline RILL_ABI {

/// Bytes that are only read.
using byte_view = std::span<const std::byte>;
/// Bytes that are written.
using byte_span = std::span<std::byte>;

/// Allocates on cache lines and leaves new elements of trivial types uninitialised: growing a scratch buffer must not
/// touch its memory twice.
template <class T>
struct aligned_allocator {
    using value_type = T;
    static constexpr std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;

    aligned_allocator() = default;
    template <class U>
    aligned_allocator(const aligned_allocator<U>&) noexcept {}

    T* allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(alignment)));
    }
    void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, std::align_val_t(alignment)); }

    template <class U, class... Args>
    void construct(U* p, Args&&... args) {
        if constexpr (sizeof...(Args) == 0 && std::is_trivially_default_constructible_v<U>)
            ::new (static_cast<void*>(p)) U;
        else
            ::new (static_cast<void*>(p)) U(static_cast<Args&&>(args)...);
    }

    friend bool operator==(const aligned_allocator&, const aligned_allocator&) { return true; }
};

/// A vector whose memory begins on a cache line, and whose new elements are uninitialised where their type is trivial.
template <class T>
using aligned_vector = std::vector<T, aligned_allocator<T>>;

/// The same from the thread's `buffer_shelf`.
template <class T>
struct shelf_allocator : aligned_allocator<T> {
    static_assert(aligned_allocator<T>::alignment == static_cast<std::size_t>(buffer_shelf::alignment));

    shelf_allocator() = default;
    template <class U>
    shelf_allocator(const shelf_allocator<U>&) noexcept {}

    T* allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(buffer_shelf::take(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t n) noexcept { buffer_shelf::give_back(p, n * sizeof(T)); }
};

/// An owned message.
using buffer = std::vector<std::byte, shelf_allocator<std::byte>>;

/// A message as its parts, in order. The parts of a frame (header, indices, values) are sent from where they lie.
class byte_pieces {
  public:
    static constexpr std::size_t most = 4;

    constexpr byte_pieces() = default;
    constexpr byte_pieces(byte_view only) { push(only); }  // NOLINT(google-explicit-constructor)

    constexpr void push(byte_view piece) { pieces_[count_++] = piece; }
    constexpr std::size_t count() const { return count_; }
    constexpr byte_view operator[](std::size_t i) const { return pieces_[i]; }
    constexpr const byte_view* begin() const { return pieces_; }
    constexpr const byte_view* end() const { return pieces_ + count_; }
    constexpr std::size_t size_bytes() const {
        std::size_t sum = 0;
        for (byte_view piece : *this) sum += piece.size();
        return sum;
    }

  private:
    byte_view pieces_[most]{};
    std::size_t count_ = 0;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_BYTES_HPP

// ===== rill/core/arena.hpp

namespace rill::inline RILL_ABI {

/// Bytes whose addresses stay valid until `reset`. Blocks are kept, so that a repeated pattern of use allocates
/// nothing.
class arena {
  public:
    /// `size` uninitialised bytes on a cache line.
    byte_span take(std::size_t size) {
        while (block_ < blocks_.size() && blocks_[block_].size - used_ < size) {
            ++block_;
            used_ = 0;
        }
        if (block_ == blocks_.size()) add_block(size);
        const byte_span taken(blocks_[block_].bytes + used_, size);
        last_ = used_;
        advance(size);
        return taken;
    }
    /// Keeps only the first `size` bytes of what was taken last.
    void shrink_last(std::size_t size) {
        used_ = last_;
        advance(size);
    }
    void reset() { block_ = used_ = last_ = 0; }

  private:
    static constexpr std::size_t least_block = std::size_t{1} << 16;
    static constexpr std::size_t line = 64;
    using allocator = aligned_allocator<std::byte>;
    static_assert(allocator::alignment == line);

    /// No vector: without optimisation that would visit each byte of a block to make and to destroy it.
    struct block {
        explicit block(std::size_t length) : bytes(allocator().allocate(length)), size(length) {}
        block(block&& other) noexcept : bytes(std::exchange(other.bytes, nullptr)), size(other.size) {}
        block& operator=(block&&) = delete;
        ~block() {
            if (bytes != nullptr) allocator().deallocate(bytes, size);
        }
        std::byte* bytes;
        std::size_t size;
    };

    /// Each block is twice as long as the one before, so that a use that varies a little soon fits.
    void add_block(std::size_t size) {
        const std::size_t usual = blocks_.empty() ? least_block : 2 * blocks_.back().size;
        blocks_.emplace_back(size > usual ? size : usual);
    }

    void advance(std::size_t size) {
        const std::size_t end = used_ + (size + line - 1) / line * line;
        const std::size_t most = blocks_[block_].size;
        used_ = end < most ? end : most;
    }

    std::vector<block> blocks_;
    std::size_t block_ = 0;
    std::size_t used_ = 0;
    std::size_t last_ = 0;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/core/random.hpp

// Counter-based random numbers: a pure function of (key, index), so that the result depends on no thread, no order of
// arrival and no standard library.

namespace rill::inline RILL_ABI {

/// Finaliser of splitmix64: a bijection of 64 bits that mixes well.
constexpr std::uint64_t mix64(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
}

/// Hash of a sequence of integers; the order matters.
template <std::convertible_to<std::uint64_t>... Parts>
constexpr std::uint64_t mix64(std::uint64_t first, std::uint64_t second, Parts... rest) {
    const std::uint64_t joined = mix64(mix64(first) ^ second);
    if constexpr (sizeof...(rest) == 0)
        return joined;
    else
        return mix64(joined, static_cast<std::uint64_t>(rest)...);
}

/// The upper half of the product.
constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t a0 = a & 0xFFFFFFFFU, a1 = a >> 32, b0 = b & 0xFFFFFFFFU, b1 = b >> 32;
    const std::uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
    const std::uint64_t cross = a0 * b1 + (middle & 0xFFFFFFFFU);
    return a1 * b1 + (middle >> 32) + (cross >> 32);
}

/// The key of a family of random numbers, derived from what identifies it: seed, step, operation, owner, ….
struct random_key {
    std::uint64_t value = 0;

    template <std::convertible_to<std::uint64_t>... Parts>
    constexpr random_key derive(Parts... parts) const {
        return {mix64(value, static_cast<std::uint64_t>(parts)...)};
    }
    friend constexpr bool operator==(random_key, random_key) = default;
};

/// What `counter_bits` multiplies indices by: loops over consecutive ones add it instead.
inline constexpr std::uint32_t counter_step = 0x9E3779B1U;

/// As `counter_bits`, for the index whose product with `counter_step` is given.
constexpr std::uint32_t counter_bits_of(std::uint32_t key_low, std::uint32_t key_high, std::uint32_t product) {
    std::uint32_t h = product ^ key_low;
    h ^= h >> 16;
    h *= 0x7FEB352DU;
    h ^= h >> 15;
    h += key_high;
    h *= 0x846CA68BU;
    return h ^ (h >> 16);
}

/// 32 random bits for `index` under a key of two words. Three multiplications: vectorises.
constexpr std::uint32_t counter_bits(std::uint32_t key_low, std::uint32_t key_high, std::uint32_t index) {
    return counter_bits_of(key_low, key_high, index * counter_step);
}

/// The random bits of one key. Index words above 2^32 select a derived key.
class counter_rng {
  public:
    constexpr explicit counter_rng(random_key key) : key_(key) {}

    /// The key word that all indices with the same upper half share: loops hoist it.
    constexpr std::uint64_t word(std::uint64_t index) const {
        return (index >> 32) == 0 ? key_.value : mix64(key_.value, index >> 32);
    }
    constexpr std::uint32_t bits(std::uint64_t index) const {
        const std::uint64_t k = word(index);
        return counter_bits(static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32),
                            static_cast<std::uint32_t>(index));
    }
    /// Uniform in [0, 1), a multiple of 2^-24.
    constexpr float uniform(std::uint64_t index) const { return static_cast<float>(bits(index) >> 8) * 0x1p-24F; }

  private:
    random_key key_;
};

/// A sequence of random numbers: a counter and its key, both of which can be saved and restored.
class random_sequence {
  public:
    constexpr explicit random_sequence(random_key key, std::uint64_t position = 0) : rng_(key), position_(position) {}

    constexpr std::uint64_t position() const { return position_; }
    constexpr std::uint32_t bits() { return rng_.bits(position_++); }
    constexpr float uniform() { return rng_.uniform(position_++); }
    /// Uniform in `[0, bound)`; bound > 0. The bias is below bound / 2^64.
    constexpr std::uint64_t below(std::uint64_t bound) {
        const std::uint64_t high = bits();
        const std::uint64_t word = (high << 32) | bits();
        return multiply_high(word, bound);
    }

  private:
    counter_rng rng_;
    std::uint64_t position_;
};

}  // namespace rill::inline RILL_ABI

#ifndef RILL_SINGLE_CORE_TYPES_HPP
#define RILL_SINGLE_CORE_TYPES_HPP

// ===== rill/core/types.hpp

namespace rill::inline RILL_ABI {

/// A position in a group of ranks, `0 … size-1`.
using rank_t = int;

/// Stands for no rank at all, or for one outside the group.
inline constexpr rank_t no_rank = -1;

/// The element types that travel; the numbers are part of the wire format.
enum class element_type : std::uint8_t { none = 0, float32 = 1, float64 = 2, int32 = 3, int64 = 4 };

/// The element type that stands for `T` in frames; `none` where `T` cannot travel.
template <class T>
inline constexpr element_type element_type_of = element_type::none;
/// Four bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<float> = element_type::float32;
/// Eight bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<double> = element_type::float64;
/// Four bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int32_t> = element_type::int32;
/// Eight bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int64_t> = element_type::int64;

/// As it stands in messages: "float32".
constexpr const char* name(element_type type) {
    switch (type) {
        case element_type::float32: return "float32";
        case element_type::float64: return "float64";
        case element_type::int32: return "int32";
        case element_type::int64: return "int64";
        case element_type::none: break;
    }
    return "none";
}

/// A type whose streams can be folded and sent.
template <class T>
concept Element = element_type_of<T> != element_type::none;

/// A type that numbers the coordinates of a sparse stream.
template <class I>
concept IndexType = std::same_as<I, std::uint32_t> || std::same_as<I, std::uint64_t>;

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_TYPES_HPP

// ===== rill/core/call.hpp

namespace rill::inline RILL_ABI {

/// The collective operations; the numbers are part of the wire format.
enum class operation : std::uint8_t {
    none = 0,
    handshake = 1,
    all_reduce = 2,
    reduce_scatter = 3,
    all_gather = 4,
    reduce = 5,
    broadcast = 6,
    barrier = 7,
    next_round = 8,  ///< a state that begins a round
    contribute = 9,  ///< to a round
    end_rounds = 10,
    round_over = 11  ///< tells a rank that its contribution would come too late
};

/// As it stands in messages: "all_reduce".
constexpr const char* name(operation op) {
    switch (op) {
        case operation::handshake: return "handshake";
        case operation::all_reduce: return "all_reduce";
        case operation::reduce_scatter: return "reduce_scatter";
        case operation::all_gather: return "all_gather";
        case operation::reduce: return "reduce";
        case operation::broadcast: return "broadcast";
        case operation::barrier: return "barrier";
        case operation::next_round: return "next_round";
        case operation::contribute: return "contribute";
        case operation::end_rounds: return "end_rounds";
        case operation::round_over: return "round_over";
        case operation::none: break;
    }
    return "none";
}

/// What a rank calls: it must be the same on all ranks of a group, and is compared in every frame by its hash.
struct call_signature {
    std::uint64_t number = 0;  ///< how many operations this group has run before, plus one
    operation kind = operation::none;
    element_type element = element_type::none;
    std::uint8_t index_bytes = 0;  ///< 0 for dense streams
    std::uint64_t dimension = 0;
    std::uint64_t options = 0;  ///< hash of everything else: fold, codings, root

    constexpr std::uint32_t hash() const {
        return static_cast<std::uint32_t>(mix64(number, static_cast<std::uint64_t>(kind),
                                                static_cast<std::uint64_t>(element), std::uint64_t{index_bytes},
                                                dimension, options));
    }
    friend constexpr bool operator==(const call_signature&, const call_signature&) = default;
};

/// So many calls of a context are remembered by a transport: it can be asked for any of them.
inline constexpr std::size_t calls_remembered = 64;

}  // namespace rill::inline RILL_ABI

// ===== rill/core/channel.hpp

namespace rill::inline RILL_ABI {

/// What separates messages between the same two ranks: the group they belong to, and the operation inside it.
struct channel {
    std::uint64_t context = 0;
    std::uint32_t tag = 0;

    friend constexpr auto operator<=>(const channel&, const channel&) = default;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/core/coding.hpp

namespace rill::inline RILL_ABI {

/// How the values of a frame are written; the numbers are part of the wire format.
enum class value_coding : std::uint8_t { raw = 0, bf16 = 1, qsgd2 = 2, qsgd4 = 4, qsgd8 = 8 };

/// How the indices of a frame are written; the numbers are part of the wire format. `smallest` chooses among the others
/// for every message and never appears in a frame; `dense` is the absence of indices.
enum class index_coding : std::uint8_t {
    dense = 0,
    raw = 1,
    packed_gaps = 2,
    bitmap = 3,
    elias_fano = 4,
    huffman = 5,
    smallest = 255
};

/// Whether a decoded value has the bits of the one that was coded.
constexpr bool is_lossless(value_coding coding) { return coding == value_coding::raw; }

/// Whether it quantises by buckets, to 2, 4 or 8 bits.
constexpr bool is_qsgd(value_coding coding) {
    return coding == value_coding::qsgd2 || coding == value_coding::qsgd4 || coding == value_coding::qsgd8;
}

/// Bits per value of a QSGD coding.
constexpr int qsgd_bits(value_coding coding) { return static_cast<int>(coding); }

/// How a stream is written into a frame.
struct coding {
    value_coding values = value_coding::raw;
    index_coding indices = index_coding::raw;
    std::uint32_t bucket = 1024;  ///< consecutive entries that share a scale; QSGD only

    /// A frame of this coding is a view of the stream: nothing is written anew.
    constexpr bool is_view() const { return values == value_coding::raw && indices == index_coding::raw; }
    constexpr bool is_lossless() const { return rill::is_lossless(values); }
    constexpr std::uint64_t fingerprint() const {
        return (static_cast<std::uint64_t>(values) << 40) | (static_cast<std::uint64_t>(indices) << 32) | bucket;
    }
    friend constexpr bool operator==(const coding&, const coding&) = default;
};

}  // namespace rill::inline RILL_ABI

#ifndef RILL_SINGLE_CORE_CONTRACT_HPP
#define RILL_SINGLE_CORE_CONTRACT_HPP

// ===== rill/core/contract.hpp

namespace rill::inline RILL_ABI {

/// The caller broke a precondition. Nothing has been changed or sent.
class contract_violation : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] inline void contract_failed(const char* condition, const char* message, const char* file, int line) {
    throw contract_violation(std::string("rill: ") + message + " (expected: " + condition + ") at " + file + ":" +
                             std::to_string(line));
}
}  // namespace detail
}  // namespace rill::inline RILL_ABI

#define RILL_DETAIL_CHECK(condition, message) \
    ((condition) ? static_cast<void>(0) : ::rill::detail::contract_failed(#condition, message, __FILE__, __LINE__))

/// A precondition of constant cost.
#if RILL_CONTRACTS >= RILL_CONTRACTS_FAST
#define RILL_EXPECTS(condition, message) RILL_DETAIL_CHECK(condition, message)
#else
#define RILL_EXPECTS(condition, message) static_cast<void>(0)
#endif

/// A precondition whose check reads whole inputs.
#if RILL_CONTRACTS >= RILL_CONTRACTS_DEBUG
#define RILL_EXPECTS_DEBUG(condition, message) RILL_DETAIL_CHECK(condition, message)
#else
#define RILL_EXPECTS_DEBUG(condition, message) static_cast<void>(0)
#endif

#endif  // RILL_SINGLE_CORE_CONTRACT_HPP

// ===== rill/core/error.hpp

// Exceptions of the environment: they name the operation, the rank that failed, and the rank that reports it.

namespace rill::inline RILL_ABI {

/// Why an operation failed; `throw_error` throws the exception that belongs to it.
enum class failure : std::uint8_t { exception, mismatch, timeout, protocol, invalid_value, deadlock };

/// Why an operation ended, as it travels on the control channel: every rank of the context gets the same notice.
struct abort_notice {
    std::uint64_t context = 0;
    std::uint64_t operation = 0;
    failure kind = failure::exception;
    rank_t culprit = no_rank;  ///< the rank that failed, or that neither entered nor answered
    rank_t other = no_rank;    ///< the second end, where a link is at fault
    std::string reason;        ///< complete in itself: names what, where and which rank

    friend bool operator==(const abort_notice&, const abort_notice&) = default;
};

/// Matches every context: the whole group of ranks ends.
inline constexpr std::uint64_t every_context = ~std::uint64_t{0};

/// Base of all errors of the environment.
class error : public std::runtime_error {
  public:
    explicit error(abort_notice notice) : std::runtime_error("rill: " + notice.reason), notice_(std::move(notice)) {}

    const abort_notice& notice() const noexcept { return notice_; }
    rank_t culprit() const noexcept { return notice_.culprit; }

  private:
    abort_notice notice_;
};

/// Another rank failed while this one took part; `culprit()` says which, `what()` why.
class peer_failure : public error {
  public:
    using error::error;
};

/// The ranks called different operations, or the same one with different types, dimensions or options.
class mismatch : public error {
  public:
    using error::error;
};

/// A rank did not come, or did not answer, within the deadline of the operation.
class timeout : public error {
  public:
    using error::error;
};

/// Bytes that are no valid frame.
class protocol_error : public error {
  public:
    using error::error;
    explicit protocol_error(std::string reason)
        : error(abort_notice{.kind = failure::protocol, .reason = std::move(reason)}) {}
};

/// A value that cannot be aggregated (a NaN); the message names the coordinate.
class invalid_value : public error {
  public:
    using error::error;
    explicit invalid_value(std::string reason)
        : error(abort_notice{.kind = failure::invalid_value, .reason = std::move(reason)}) {}
};

/// Nothing can ever happen again: every rank waits. Only the simulator can know; the message says who waits for whom.
class deadlock : public error {
  public:
    using error::error;
};

/// Throws the exception that belongs to a notice.
[[noreturn]] inline void throw_error(const abort_notice& notice) {
    switch (notice.kind) {
        case failure::mismatch: throw mismatch(notice);
        case failure::timeout: throw timeout(notice);
        case failure::protocol: throw protocol_error(notice);
        case failure::invalid_value: throw invalid_value(notice);
        case failure::deadlock: throw deadlock(notice);
        case failure::exception: break;
    }
    throw peer_failure(notice);
}

}  // namespace rill::inline RILL_ABI

// ===== rill/core/fingerprint.hpp

namespace rill::inline RILL_ABI {

/// Hash of a policy's name; FNV-1a.
constexpr std::uint64_t fingerprint(const char* text) {
    std::uint64_t hash = 0xCBF29CE484222325U;
    for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001B3U;
    return hash;
}

/// Hash of a policy, by which ranks compare theirs: its name and, where it has options, those that
/// `visit_options(visit(name, number))` shows.
template <class Policy>
    requires requires { Policy::name; }
constexpr std::uint64_t fingerprint(const Policy& policy) {
    std::uint64_t hash = fingerprint(Policy::name);
    if constexpr (requires { policy.visit_options([](const char*, int) {}); })
        policy.visit_options([&](const char*, auto value) {
            if constexpr (std::is_floating_point_v<decltype(value)>)
                hash = mix64(hash, std::bit_cast<std::uint64_t>(static_cast<double>(value)));
            else
                hash = mix64(hash, static_cast<std::uint64_t>(value));
        });
    return hash;
}

}  // namespace rill::inline RILL_ABI

// ===== rill/core/time.hpp

// rill's own time: integer nanoseconds, because <chrono> costs more to include than the whole core.

namespace rill::inline RILL_ABI {

namespace detail {

constexpr std::int64_t least_ns = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most_ns = std::numeric_limits<std::int64_t>::max();

constexpr std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
    if (b > 0 && a > most_ns - b) return most_ns;
    if (b < 0 && a < least_ns - b) return least_ns;
    return a + b;
}
constexpr std::int64_t saturated_difference(std::int64_t a, std::int64_t b) {
    if (b < 0 && a > most_ns + b) return most_ns;
    if (b > 0 && a < least_ns + b) return least_ns;
    return a - b;
}
constexpr std::int64_t saturated_product(std::int64_t a, std::int64_t b) {
    if (a == 0 || b == 0) return 0;
    const bool negative = (a < 0) != (b < 0);
    const auto magnitude = [](std::int64_t x) {
        return x < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
    };
    const std::uint64_t most = static_cast<std::uint64_t>(most_ns) + (negative ? 1U : 0U);
    if (magnitude(a) > most / magnitude(b)) return negative ? least_ns : most_ns;
    const std::uint64_t product = magnitude(a) * magnitude(b);
    return static_cast<std::int64_t>(negative ? std::uint64_t{0} - product : product);
}

/// `count` periods of num / den seconds in nanoseconds, towards zero.
template <std::int64_t num, std::int64_t den, class Count>
constexpr std::int64_t to_nanoseconds(Count count) {
    constexpr std::int64_t per_second = 1'000'000'000;
    if constexpr (std::is_integral_v<Count>) {
        constexpr std::int64_t common = std::gcd(num * per_second, den);
        return saturated_product(count, num * per_second / common) / (den / common);
    } else {
        const long double ns = static_cast<long double>(count) * num * per_second / den;
        if (ns >= 0x1p63L) return most_ns;
        return ns > -0x1p63L ? static_cast<std::int64_t>(ns) : least_ns;
    }
}

}  // namespace detail

/// A span of time in nanoseconds. Converts from anything shaped like `std::chrono::duration`. Arithmetic stops at the
/// ends of the range, some 292 years.
struct duration {
    std::int64_t ns = 0;

    constexpr duration() = default;
    constexpr explicit duration(std::int64_t nanoseconds) : ns(nanoseconds) {}

    template <class D>
        requires requires(const D& d) {
            d.count();
            D::period::num;
            D::period::den;
        }
    constexpr duration(const D& d)  // NOLINT(google-explicit-constructor): a view of the same quantity
        : ns(detail::to_nanoseconds<D::period::num, D::period::den>(d.count())) {}

    constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }

    friend constexpr auto operator<=>(duration, duration) = default;
    friend constexpr duration operator+(duration a, duration b) { return duration(detail::saturated_sum(a.ns, b.ns)); }
    friend constexpr duration operator-(duration a, duration b) {
        return duration(detail::saturated_difference(a.ns, b.ns));
    }
    friend constexpr duration operator*(duration a, std::int64_t k) {
        return duration(detail::saturated_product(a.ns, k));
    }
    friend constexpr duration operator/(duration a, std::int64_t k) {
        return k == -1 ? a * -1 : duration(a.ns / k);  // the least is further from 0 than the most
    }
};

/// A number of nanoseconds as a span of time.
constexpr duration nanoseconds(std::int64_t n) { return duration(n); }
/// A number of microseconds; beyond the range its end, as of the others.
constexpr duration microseconds(std::int64_t n) { return duration(1'000) * n; }
/// A number of milliseconds.
constexpr duration milliseconds(std::int64_t n) { return duration(1'000'000) * n; }
/// A number of seconds.
constexpr duration seconds(std::int64_t n) { return duration(1'000'000'000) * n; }

/// How long `bytes` take at a bandwidth in bytes per second, rounded up; 0: without limit, hence no time.
constexpr duration transfer_time(std::uint64_t bytes, std::uint64_t bandwidth) {
    if (bandwidth == 0) return {};
    __extension__ using wide = unsigned __int128;
    const wide ns = (wide{bytes} * 1'000'000'000U + bandwidth - 1) / bandwidth;
    return duration(ns > static_cast<wide>(detail::most_ns) ? detail::most_ns : static_cast<std::int64_t>(ns));
}

/// An instant on a transport's clock. Instants of different transports do not compare.
struct time_point {
    std::int64_t ns = 0;

    friend constexpr auto operator<=>(time_point, time_point) = default;
    friend constexpr duration operator-(time_point a, time_point b) { return duration(a.ns) - duration(b.ns); }
    friend constexpr time_point operator+(time_point t, duration d) { return {detail::saturated_sum(t.ns, d.ns)}; }
};

/// When a wait gives up. A passed deadline is a value (an empty result), never an exception of the transport.
struct deadline {
    time_point at{};

    constexpr deadline() = default;
    constexpr deadline(time_point instant) : at(instant) {}  // NOLINT(google-explicit-constructor)

    /// Waits for ever.
    static const deadline never;
    /// Does not wait: takes what is there.
    static const deadline immediate;

    constexpr bool is_never() const { return at.ns == std::numeric_limits<std::int64_t>::max(); }
    constexpr bool is_immediate() const { return at.ns == std::numeric_limits<std::int64_t>::min(); }
    friend constexpr auto operator<=>(deadline, deadline) = default;
};

inline constexpr deadline deadline::never{time_point{std::numeric_limits<std::int64_t>::max()}};
inline constexpr deadline deadline::immediate{time_point{std::numeric_limits<std::int64_t>::min()}};

}  // namespace rill::inline RILL_ABI

// ===== rill/core/receipt.hpp

namespace rill::inline RILL_ABI {

/// Messages and bytes of one rank, as its transport counts them: payload and rill's headers, not what lies below.
struct traffic {
    std::uint64_t messages_sent = 0;
    std::uint64_t bytes_sent = 0;
    std::uint64_t messages_received = 0;
    std::uint64_t bytes_received = 0;

    friend constexpr bool operator==(const traffic&, const traffic&) = default;
    friend constexpr traffic operator-(const traffic& a, const traffic& b) {
        return {a.messages_sent - b.messages_sent, a.bytes_sent - b.bytes_sent,
                a.messages_received - b.messages_received, a.bytes_received - b.bytes_received};
    }
    constexpr traffic& operator+=(const traffic& b) {
        messages_sent += b.messages_sent;
        bytes_sent += b.bytes_sent;
        messages_received += b.messages_received;
        bytes_received += b.bytes_received;
        return *this;
    }
};

/// What a collective did, on this rank.
struct receipt {
    std::uint64_t operation_number = 0;
    int contributors = 0;   ///< ranks whose contribution is in the result
    double weight = 0;      ///< sum of their weights
    std::uint32_t age = 0;  ///< age of the oldest contribution, in steps
    int rounds = 0;
    traffic wire{};      ///< of this operation alone
    duration elapsed{};  ///< on the transport's clock
};

}  // namespace rill::inline RILL_ABI

// ===== rill/core/round_receipt.hpp

namespace rill::inline RILL_ABI {

/// A contribution that is in a result.
struct contributor {
    rank_t rank = no_rank;
    std::uint32_t age = 0;  ///< rounds by which it came late, and what its rank said itself
    double weight = 0;

    friend constexpr bool operator==(const contributor&, const contributor&) = default;
};

/// A contribution that came after its round had ended.
struct latecomer {
    rank_t rank = no_rank;     ///< who sent it: itself, or for the ranks below it
    std::uint32_t rounds = 0;  ///< how many rounds have begun since its own
    duration by{};             ///< since its own round ended, at its parent

    friend constexpr bool operator==(const latecomer&, const latecomer&) = default;
};

/// What a round that need not wait for everybody did. At the root of it, of the result; elsewhere, of what this rank
/// handed up, which may yet come too late.
struct round_receipt : receipt {
    std::vector<contributor> in;  ///< in the order of the fold: by rank within each level of the tree
    std::vector<latecomer> late;  ///< that were met since the round before; whoever counts all the same is also in `in`
    std::vector<rank_t> missing;  ///< children of this rank that it did not wait for
    double error_bound = 0;  ///< of rounding on the way, in the Euclidean norm of the fold, if anything was rounded
    double decoding_error = 0;  ///< of a coded one: the largest ‖a·B − 1‖₂ of any rank that had to do with too few
};

}  // namespace rill::inline RILL_ABI

// ===== rill/core/segment.hpp

namespace rill::inline RILL_ABI {

/// A half-open range `[begin, end)` of coordinates.
struct segment {
    std::size_t begin = 0;
    std::size_t end = 0;

    constexpr std::size_t size() const { return end - begin; }
    constexpr bool empty() const { return begin == end; }
    constexpr bool contains(std::size_t i) const { return begin <= i && i < end; }
    constexpr bool contains(segment other) const { return begin <= other.begin && other.end <= end; }
    constexpr bool overlaps(segment other) const { return begin < other.end && other.begin < end; }
    friend constexpr bool operator==(segment, segment) = default;
};

/// Part `i` of `parts` nearly equal consecutive parts of `[0, n)`; the first `n % parts` are one longer. Any `n`.
constexpr segment split(std::size_t n, std::size_t parts, std::size_t i) {
    const std::size_t each = n / parts;
    const std::size_t longer = n % parts;
    const std::size_t begin = i * each + (i < longer ? i : longer);
    return {begin, begin + each + (i < longer ? 1U : 0U)};
}

/// Parts `[first, last)` of `split(n, parts, ·)` as one segment.
constexpr segment split(std::size_t n, std::size_t parts, std::size_t first, std::size_t last) {
    if (first == last) return {split(n, parts, first).begin, split(n, parts, first).begin};
    return {split(n, parts, first).begin, split(n, parts, last - 1).end};
}

}  // namespace rill::inline RILL_ABI

// ===== rill/core/serial.hpp

namespace rill::inline RILL_ABI {

/// The executor of whoever names none: tasks run one after the other, where they are asked for, and work is not cut.
struct serial {
    static constexpr const char* name = "serial";

    static constexpr int concurrency() { return 1; }

    template <class Body>
    constexpr void run(std::size_t tasks, Body&& body) const {
        for (std::size_t i = 0; i < tasks; ++i) body(i);
    }
    friend constexpr bool operator==(serial, serial) = default;
};

}  // namespace rill::inline RILL_ABI

#ifndef RILL_SINGLE_CORE_SPARSE_VIEW_HPP
#define RILL_SINGLE_CORE_SPARSE_VIEW_HPP

// ===== rill/core/sparse_view.hpp

namespace rill::inline RILL_ABI {

/// A read-only sparse vector: strictly ascending indices and, in the same order, their values.
template <Element T, IndexType Index>
struct sparse_view {
    std::span<const Index> indices{};
    std::span<const T> values{};

    constexpr std::size_t count() const { return indices.size(); }
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_SPARSE_VIEW_HPP

// ===== rill/concept/aggregation_tree.hpp

namespace rill::inline RILL_ABI {

/// A tree over all ranks of a group, down which a state is handed and up which contributions are gathered. Its root is
/// rank 0.
///
/// - `parent(size, rank)`: `no_rank` for the root.
/// - `child(size, rank, i)`, for i below `children(size, rank)`: in ascending order of ranks.
/// - `height(size, rank)`: edges down to the deepest rank below; 0 for a leaf.
template <class T>
concept AggregationTree = std::regular<T> && requires(const T& tree, int size, rank_t rank, int i) {
    { tree.parent(size, rank) } -> std::same_as<rank_t>;
    { tree.children(size, rank) } -> std::same_as<int>;
    { tree.child(size, rank, i) } -> std::same_as<rank_t>;
    { tree.height(size, rank) } -> std::same_as<int>;
    { T::name } -> std::convertible_to<const char*>;
};

}  // namespace rill::inline RILL_ABI

#ifndef RILL_SINGLE_CORE_ADDITION_HPP
#define RILL_SINGLE_CORE_ADDITION_HPP

// ===== rill/core/addition.hpp

namespace rill::inline RILL_ABI {

/// Folds by adding. Kernels know this type: they may add many values at once, and add what they then drop, which is not
/// permitted with a fold of which nothing is known. The bits are those of `a + b`.
struct addition {
    template <class T>
    constexpr T operator()(T a, T b) const {
        return static_cast<T>(a + b);
    }

    friend constexpr bool operator==(addition, addition) = default;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_ADDITION_HPP

// ===== rill/concept/aggregator.hpp

namespace rill::inline RILL_ABI {

/// How contributions are folded, coordinate by coordinate.
///
/// Laws: `fold` is associative (floating-point rounding aside), `fold(identity, x) == x`, `is_commutative` says whether
/// `fold(x, y)` is always `fold(y, x)`; schedules that reorder ranks refuse folds that do not commute. `finish` is
/// applied once, on every rank alike, to the complete fold, whose contributions had the given sum of weights,
/// coordinate by coordinate too: it may be called on pieces; where `finish_is_trivial` it does nothing and is not
/// called. Both may throw; where they say `noexcept`, small operations among threads have one wait less. Where an
/// optional `is_addition` is true, `fold(x, y)` is `x + y`, which kernels know how to do fast.
template <class A, class T>
concept Aggregator = std::regular<A> && Element<T> && requires(const A& aggregator, T x, T y, std::span<T> values) {
    { aggregator.template identity<T>() } -> std::same_as<T>;
    { aggregator.fold(x, y) } -> std::same_as<T>;
    { aggregator.finish(values, 1.0) };
    { A::is_commutative } -> std::convertible_to<bool>;
    { A::finish_is_trivial } -> std::convertible_to<bool>;
    { A::name } -> std::convertible_to<const char*>;
};

/// The fold of an aggregator, which must stay, as kernels take it.
template <class A>
constexpr auto fold_of(const A& aggregator) {
    if constexpr (requires { requires A::is_addition; })
        return addition{};
    else
        return [&aggregator](auto x, auto y) { return aggregator.fold(x, y); };
}

}  // namespace rill::inline RILL_ABI

// ===== rill/concept/completion.hpp

namespace rill::inline RILL_ABI {

/// How far a gather has come.
struct gathering {
    int expected = 0;         ///< contributions that may come: one from each child
    std::span<const int> in;  ///< which have come: numbers of children, ascending
    bool time_is_up = false;  ///< since the round began more than the completion's `patience` has passed

    int missing() const { return expected - static_cast<int>(in.size()); }
};

/// Says when a gather has enough: the first of the straggler policies. Each parent of a tree asks it of its own
/// children.
///
/// `is_complete(g)` depends on `g` alone, holds when nothing is missing, and goes on to hold when more comes.
/// `patience(height)`: how long a rank that stands `height` edges above its deepest leaf waits before it says that time
/// is up; `endless_patience` for ever.
template <class C>
concept Completion = std::regular<C> && requires(const C& completion, const gathering& g, int height) {
    { completion.is_complete(g) } -> std::same_as<bool>;
    { completion.patience(height) } -> std::same_as<duration>;
    { C::name } -> std::convertible_to<const char*>;
};

/// Of a completion that does not look at the clock.
inline constexpr duration endless_patience{std::numeric_limits<std::int64_t>::max()};

}  // namespace rill::inline RILL_ABI

// ===== rill/concept/executor.hpp

namespace rill::inline RILL_ABI {

/// What runs the independent tasks of one rank's work: selection, quantisation, folds. The last argument of a group. It
/// changes how long an operation takes and nothing else: whatever the executor and its threads, results are the same,
/// bit for bit, and so are errors.
///
/// Laws:
/// - `run(n, body)` calls `body(i)` once for each i in [0, n), in any order, on any threads, and returns when all have
///   ended; what they wrote is then visible.
/// - If some throw, what the lowest of them threw is thrown; tasks above it may be left out.
/// - Tasks run with the caller's rounding mode, and do not wait for each other.
/// - `concurrency()` is how many may run at once, at least 1; where it is 1, work is not cut.
/// - Several threads may call `run` of one executor at once: each rank of a process does.
/// - Copies are equal and do the same.
///
/// `rill/testing/executor_laws.hpp` checks them.
template <class E>
concept Executor = std::regular<E> && requires(const E& executor, std::size_t tasks, void (*body)(std::size_t)) {
    { executor.run(tasks, body) } -> std::same_as<void>;
    { executor.concurrency() } -> std::same_as<int>;
    { E::name } -> std::convertible_to<const char*>;
};
static_assert(Executor<serial>);

}  // namespace rill::inline RILL_ABI

// ===== rill/concept/compressor.hpp

namespace rill::inline RILL_ABI {

/// What of a worker's contribution is sent, and how: a policy bound to one worker and one dimension.
///
/// - `begin(number)` comes first: the number of the operation, the same on all ranks, from which they draw what they
///   must choose alike (a mask).
/// - `encode(input)` gives a view of what is contributed (a `stream_view` over `[0, coded_dimension())`), valid until
///   the next call. The input is not changed. Throws `invalid_value` where an entry cannot be sent (a NaN), naming it.
/// - Where `is_coordinatewise`, coordinates of the view are coordinates of the input, and `coded_dimension()` is
///   `dimension()`; else `decode(folded, output)` makes the output from the fold of the views. Both dimensions must be
///   the same on all ranks.
/// - After each `encode` comes either `commit()`, when the contribution is in the result, or `rollback()`, when it is
///   not: then nothing must be lost. Both may also come without an `encode`, on a rank that contributes nothing.
/// - `codings()` gives the codings of frames (`stream_codings`).
/// - Flags: `is_lossless`: nothing is left out or rounded; `is_unbiased`: the expectation of what is sent is the input;
///   `is_contractive`: what is left out is smaller than the input by a constant factor, as error feedback needs;
///   `has_lossless_copy`: the copy phase sends the fold as it is.
template <class C, class T>
concept Compressor = Element<T> && IndexType<typename C::index_type> &&
                     requires(C& codec, const C& constant, std::span<const T> input, std::uint64_t number) {
                         { constant.dimension() } -> std::same_as<std::size_t>;
                         { codec.begin(number) };
                         { codec.coded_dimension() } -> std::same_as<std::size_t>;
                         { codec.encode(input).range() };
                         { codec.commit() };
                         { codec.rollback() };
                         { constant.codings() };
                         { C::is_coordinatewise } -> std::convertible_to<bool>;
                         { C::is_lossless } -> std::convertible_to<bool>;
                         { C::is_unbiased } -> std::convertible_to<bool>;
                         { C::is_contractive } -> std::convertible_to<bool>;
                         { C::has_lossless_copy } -> std::convertible_to<bool>;
                     };

/// `codec.encode(input, executor)` where the codec has that: it may spread its work then. Else `codec.encode(input)`.
template <class Codec, class T, Executor Exec>
auto encode_with(Codec& codec, std::span<const T> input, const Exec& executor) {
    if constexpr (requires { codec.encode(input, executor); })
        return codec.encode(input, executor);
    else
        return codec.encode(input);
}

}  // namespace rill::inline RILL_ABI

// ===== rill/concept/objective.hpp

namespace rill::inline RILL_ABI {

/// A named, consecutive part of a flat parameter vector, in the order of the forward pass.
struct layer {
    std::string name;
    segment part{};

    friend bool operator==(const layer&, const layer&) = default;
};

/// A function to minimise: the mean loss of a model over the samples of a `batch`.
///
/// Parameters and gradient are flat vectors of `dimension()` scalars that the caller owns; `layers()` divides them
/// without gaps. An objective owns its scratch memory: one object per rank, no sharing between threads. After the first
/// call with a batch size, `gradient` allocates nothing.
/// Laws: `initialise` is a pure function of the key; `gradient` and `loss` are pure functions of parameters and batch,
/// bit for bit within one binary; `gradient` returns what `loss` returns and overwrites all of its output.
template <class O>
concept Objective =
    std::floating_point<typename O::scalar> && std::movable<O> &&
    requires(O& objective, const O& constant, std::span<typename O::scalar> output,
             std::span<const typename O::scalar> parameters, const typename O::batch& samples, random_key key) {
        { constant.dimension() } -> std::same_as<std::size_t>;
        { constant.layers() } -> std::same_as<std::span<const layer>>;
        { constant.initialise(output, key) };
        { objective.loss(parameters, samples) } -> std::same_as<double>;
        { objective.gradient(parameters, samples, output) } -> std::same_as<double>;
    };

/// An objective that says which parts of its gradient are final while it computes the others:
/// `gradient(parameters, batch, output, ready)` calls `ready(i)` once for each of `layers()`, usually from the last to
/// the first.
///
/// Laws: it gives the same bits as `gradient` without `ready`; of a part that it has called ready it neither reads nor
/// writes anything more, so that the part may be sent, and overwritten, from then on. What `ready` throws passes.
template <class O>
concept LayeredObjective =
    Objective<O> &&
    requires(O& objective, std::span<typename O::scalar> output, std::span<const typename O::scalar> parameters,
             const typename O::batch& samples, void (*ready)(std::size_t layer)) {
        { objective.gradient(parameters, samples, output, ready) } -> std::same_as<double>;
    };

/// An objective whose model tells classes apart: `predict` writes one class per sample.
template <class O>
concept Classifier = Objective<O> && requires(O& objective, std::span<const typename O::scalar> parameters,
                                              const typename O::batch& samples, std::span<std::int32_t> classes) {
    { objective.predict(parameters, samples, classes) };
};

}  // namespace rill::inline RILL_ABI

// ===== rill/concept/staleness.hpp

namespace rill::inline RILL_ABI {

/// Says how old a contribution may be, in rounds, and when a fast rank must wait for a slow one.
///
/// `accepts(age)`: whether a contribution that comes `age` rounds late still counts; age 0 always does.
/// `may_lead(lag)`: whether a round may end while a rank is still at work on one that began `lag` rounds earlier. What
/// is waited for because it does not hold counts, however old; so nothing is ever dropped where each lag of which it
/// holds, and the next one, are accepted.
template <class S>
concept Staleness = std::regular<S> && requires(const S& staleness, std::uint32_t rounds) {
    { staleness.accepts(rounds) } -> std::same_as<bool>;
    { staleness.may_lead(rounds) } -> std::same_as<bool>;
    { S::name } -> std::convertible_to<const char*>;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/concept/tensor.hpp

namespace rill::inline RILL_ABI {

/// How the coordinates of a tensor are counted: the last index fastest, the first index fastest, or, with one index,
/// either.
enum class coordinate_order : unsigned char { any, row_major, column_major };

namespace detail {

template <class X>
concept ContiguousRange = requires(X& x) { std::span(x); };

struct no_tensor {};

template <class X>
struct contiguous_range {
    using element_type = typename decltype(std::span(std::declval<X&>()))::value_type;
    static std::size_t size(const X& x) { return std::span(x).size(); }
    static auto view(X& x) { return std::span<typename decltype(std::span(x))::element_type>(x); }
    static auto view(const X& x) { return std::span<typename decltype(std::span(x))::element_type>(x); }
    static constexpr bool is_view = std::ranges::enable_borrowed_range<X>;
};

}  // namespace detail

/// How rill reads and writes the elements of a type: the one place where another library's tensor, or a user's own,
/// meets the collectives. Contiguous ranges need nothing; everything else specialises this for its type `X`, without
/// `const` or reference.
///
/// - `element_type`, and `size(x)`, how many there are. Coordinates are numbered as `order` says (`any` where it is
///   absent).
/// - `view(x)`: the elements as `std::span`, where they lie one after the other in memory; a span of `const` elements
///   cannot be an output. Where that depends on the object, `is_contiguous(x)` tells, and `view` is called only if it
///   does.
/// - `read(x, span)` copies the elements out (or evaluates an expression), `write(span, x)` copies them in. They are
///   used where there is no view: that costs a pass and N elements of a group's memory. Without `write`, and a view of
///   elements that are not `const`, it is an input only.
/// - `is_view` (absent: false): a copy refers to the same elements, which outlive it. Of such a type a temporary may be
///   given to an operation in the background. (Where a type has no `view` at all, one may be an input all the same: the
///   start reads it.)
///
/// `x` arrives as `X&` or `const X&`, as the caller has it.
template <class X>
struct tensor_traits : std::conditional_t<detail::ContiguousRange<X>, detail::contiguous_range<X>, detail::no_tensor> {
};

namespace detail {

template <class X>
using traits_of = tensor_traits<std::remove_cvref_t<X>>;

template <class X, class To>
concept ViewableAs = requires(X& x) {
    { traits_of<X>::view(x) } -> std::convertible_to<To>;
};

}  // namespace detail

/// The type of a tensor's elements.
template <class X>
using tensor_element = typename detail::traits_of<X>::element_type;

/// A type whose elements can be read: an input of collectives. `X` may be `const` or a reference.
template <class X>
concept Tensor = requires(const std::remove_reference_t<X>& x, std::span<tensor_element<X>> to) {
    { detail::traits_of<X>::size(x) } -> std::convertible_to<std::size_t>;
    requires detail::ViewableAs<decltype(x), std::span<const tensor_element<X>>> ||
                 requires { detail::traits_of<X>::read(x, to); };
};

/// A tensor whose elements can be written too: an output of collectives.
template <class X>
concept OutputTensor = Tensor<X> && requires(X& x, std::span<const tensor_element<X>> from) {
    requires detail::ViewableAs<X, std::span<tensor_element<X>>> || requires { detail::traits_of<X>::write(from, x); };
};

namespace detail {

template <class X>
constexpr coordinate_order order_of = coordinate_order::any;
template <class X>
    requires requires { traits_of<X>::order; }
constexpr coordinate_order order_of<X> = traits_of<X>::order;

/// Whether two tensors number their coordinates alike.
template <class X, class Y>
constexpr bool same_order =
    // NOLINTNEXTLINE(misc-redundant-expression): is so only where X is Y
    order_of<X> == order_of<Y> || order_of<X> == coordinate_order::any || order_of<Y> == coordinate_order::any;

/// Whether what an argument refers to outlives the call that it is an argument of; true of what is no tensor at all.
template <class Argument>
constexpr bool is_lasting = std::is_lvalue_reference_v<Argument> || !Tensor<Argument>;
template <class Argument>
    requires requires { requires traits_of<Argument>::is_view; }
constexpr bool is_lasting<Argument> = true;

template <Tensor X>
std::size_t size_of(const X& x) {
    return traits_of<X>::size(x);
}

/// Whether `view(x)` may be called, and gives what a `To` is made of.
template <class To, class X>
bool has_view(X& x) {
    if constexpr (!ViewableAs<X, To>)
        return false;
    else if constexpr (requires { traits_of<X>::is_contiguous(x); })
        return traits_of<X>::is_contiguous(x);
    else
        return true;
}

/// Copies the elements of `x` to `to`, which is as long.
template <Tensor X>
void read_tensor(const X& x, std::span<tensor_element<X>> to) {
    using elements = std::span<const tensor_element<X>>;
    if constexpr (ViewableAs<const X, elements>)
        if (has_view<elements>(x)) {
            const elements from = traits_of<X>::view(x);
            std::copy(from.begin(), from.end(), to.begin());
            return;
        }
    if constexpr (requires { traits_of<X>::read(x, to); }) traits_of<X>::read(x, to);
}

/// Copies `from` to the elements of `x`, as many.
template <OutputTensor X>
void write_tensor(std::span<const tensor_element<X>> from, X& x) {
    using elements = std::span<tensor_element<X>>;
    if constexpr (ViewableAs<X, elements>)
        if (has_view<elements>(x)) {
            const elements to = traits_of<X>::view(x);
            std::copy(from.begin(), from.end(), to.begin());
            return;
        }
    if constexpr (requires { traits_of<X>::write(from, x); }) traits_of<X>::write(from, x);
}

}  // namespace detail

}  // namespace rill::inline RILL_ABI

// ===== rill/concept/topology.hpp

namespace rill::inline RILL_ABI {

/// Consecutive parts `[first, last)` of the `parts()` of a schedule.
struct part_range {
    int first = 0;
    int last = 0;

    constexpr int count() const { return last - first; }
    constexpr bool contains(int part) const { return first <= part && part < last; }
    friend constexpr bool operator==(part_range, part_range) = default;
};

/// One message of a round: to or from `peer`, carrying `parts`.
struct transfer {
    rank_t peer = no_rank;
    part_range parts{};

    friend constexpr bool operator==(transfer, transfer) = default;
};

/// What a rank does with what it receives in a round: fold it into the part it has, or replace that part by it.
enum class action : unsigned char { fold, copy };

/// One rank's view of a collective, computed on demand with O(1) state.
///
/// `[0, N)` is divided into `parts()` nearly equal parts. In round `k` a rank sends `send(k, 0 … sends(k)-1)`, all as
/// they were before the round, and receives `receive(k, 0 … receives(k)-1)`, in ascending order of peers. Rounds are
/// numbered alike on all ranks: what is sent in round k is received in round k. The parts that are received in one
/// round are either all the same range (a k-way fold) or disjoint. A fold round never follows a copy round of the same
/// part.
template <class S>
concept Schedule = std::regular<S> && requires(const S& schedule, int round, int i) {
    { schedule.parts() } -> std::same_as<int>;
    { schedule.rounds() } -> std::same_as<int>;
    { schedule.kind(round) } -> std::same_as<action>;
    { schedule.sends(round) } -> std::same_as<int>;
    { schedule.send(round, i) } -> std::same_as<transfer>;
    { schedule.receives(round) } -> std::same_as<int>;
    { schedule.receive(round, i) } -> std::same_as<transfer>;
};

/// Who talks to whom: a value that gives each rank of a group of `size` its schedule.
///
/// - `all_reduce`: every rank ends with every contribution exactly once in every part.
/// - `reduce_scatter`: `parts() == size`; rank r ends with every contribution in part r.
/// - `all_gather`: `parts() == size`; rank r starts with part r alone, every rank ends with all.
///
/// `topology/proof.hpp` checks each of these, at compile time for small groups.
/// `preserves_rank_order`: folds combine contributions in ascending order of ranks, as non-commutative folds need.
/// `has_copy_phase`: in `all_reduce` a finished part is copied from one owner, so that it can be coded once.
/// `folds_at_owners` (absent: false): in `all_reduce` rank r of P folds part r of P from all ranks at once, in
/// ascending order, and then all copy it from there. Where ranks reach each other's memory that is one pass over it.
template <class T>
concept Topology = std::regular<T> && requires(const T& topology, int size, rank_t rank) {
    { topology.all_reduce(size, rank) } -> Schedule;
    { topology.reduce_scatter(size, rank) } -> Schedule;
    { topology.all_gather(size, rank) } -> Schedule;
    { T::preserves_rank_order } -> std::convertible_to<bool>;
    { T::has_copy_phase } -> std::convertible_to<bool>;
    { T::name } -> std::convertible_to<const char*>;
};

/// A topology with a root: `reduce` leaves every contribution at `root` and then tells all ranks that it did (copy
/// rounds of no parts); `broadcast` first tells the root that all ranks have entered (copy rounds of no parts), then
/// copies from it. Hence no rank returns before all have entered the same call.
template <class T>
concept RootedTopology = Topology<T> && requires(const T& topology, int size, rank_t rank, rank_t root) {
    { topology.reduce(size, rank, root) } -> Schedule;
    { topology.broadcast(size, rank, root) } -> Schedule;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/concept/transport.hpp

namespace rill::inline RILL_ABI {

/// A received message: it keeps the bytes alive (in one address space: the sender's own) until it is destroyed.
template <class M>
concept Message = std::movable<M> && requires(const M& message) {
    { message.source() } -> std::same_as<rank_t>;
    /// In the order sent; a transport may have joined the parts into one.
    { message.pieces() } -> std::same_as<byte_pieces>;
};

/// A borrowed send under way. Its bytes must stay valid and unchanged until it is done. Destroying it earlier withdraws
/// a message that nobody has taken yet, and never waits.
template <class S>
concept Sending = std::movable<S> && std::default_initializable<S> && requires(S& sending, deadline until) {
    { sending.done() } -> std::same_as<bool>;
    /// True when done, false when `until` has passed; throws what ended the context. A default-constructed one is done.
    { sending.wait(until) } -> std::same_as<bool>;
    /// Waits, whatever has ended, only while a receiver reads: withdraws what nobody has taken. For unwinding.
    { sending.settle() } noexcept;
};

/// One rank's end of a group of ranks.
///
/// Laws (testing/transport_laws.hpp runs them over every model):
/// - Messages of one (sender, receiver, channel) arrive in the order sent. Channels never meet.
/// - Posting never waits for the receiver, so post-then-receive cannot deadlock at any message size. A rank may post to
///   itself. Messages may be empty.
/// - `post(peer, on, pieces)` borrows; allowed only where a receiver is certain.
/// - `post(peer, on, buffer&&, until)` hands over. Mailboxes are bounded in bytes: where the receiver's is full it
///   waits for room until `until`, then returns false with the buffer untouched; by default it does not wait. A
///   message larger than the bound is taken by an empty mailbox.
/// - A receive returns an empty result when its deadline has passed. `deadline::immediate` takes what is there.
/// - Every wait also watches the control channel: after `abort` on a context (or on `every_context`) waits on it throw
///   the error of the notice on every rank. The first notice of a context wins; `abort` returns the one that won.
/// - `announce` publishes which call this rank has entered in a context; calls of a context may be entered in any
///   order. `inquire` waits until `peer` has entered call `number` and returns what it entered. When the deadline has
///   passed before that, it returns the latest call that `peer` has entered, if its number is higher, or else nothing.
///   A transport remembers at least the `calls_remembered` highest numbers.
/// - `next_context(key)`: a fresh context, the same on all ranks that have made the same calls with the same key.
/// - `close(context)` forgets a context: its undelivered messages are dropped.
template <class N>
concept Transport =
    Message<typename N::message> && Sending<typename N::sending> &&
    requires(N& net, const N& constant, rank_t peer, std::span<const rank_t> peers, channel on, byte_pieces view,
             buffer&& bytes, std::span<const byte_span> targets, deadline until, time_point instant,
             const call_signature& call, const abort_notice& notice, std::uint64_t context, std::uint64_t number) {
        { constant.rank() } -> std::same_as<rank_t>;
        { constant.size() } -> std::same_as<int>;
        { constant.now() } -> std::same_as<time_point>;
        { net.sleep_until(instant) };
        { constant.counted() } -> std::same_as<traffic>;

        { net.post(peer, on, view) } -> std::same_as<typename N::sending>;
        { net.post(peer, on, std::move(bytes), until) } -> std::same_as<bool>;
        { net.post(peer, on, std::move(bytes)) } -> std::same_as<bool>;
        { net.receive(peer, on, until) } -> std::same_as<std::optional<typename N::message>>;
        /// The earliest arrival from any of `peers`.
        { net.receive(peers, on, until) } -> std::same_as<std::optional<typename N::message>>;
        /// The newest message from any of `peers`; older ones of that channel and those peers are dropped.
        { net.receive_latest(peers, on, until) } -> std::same_as<std::optional<typename N::message>>;
        /// Into consecutive `targets`, whose sizes must add up to the message's (else `protocol_error`, message lost).
        { net.receive_into(peer, on, targets, until) } -> std::same_as<bool>;

        { net.announce(context, call) };
        { net.inquire(peer, context, number, until) } -> std::same_as<std::optional<call_signature>>;
        { net.abort(notice) } -> std::same_as<abort_notice>;
        { net.aborted(context) } -> std::same_as<std::optional<abort_notice>>;
        { net.next_context(context) } -> std::same_as<std::uint64_t>;
        { net.close(context) };
    };

/// A transport on which one rank may run several activities at once; everything above may then be called by any of
/// them. `spawn` starts an activity; its handle's `join()` waits and rethrows what it threw, its destructor joins.
/// `event` (set, reset, wait until) and `queue<T>` (push, pop until, close) are the means by which activities meet.
/// They are made from the endpoint (`typename N::event e{net}`), so that a wait can switch fibers and watch aborts.
template <class N>
concept ConcurrentTransport =
    Transport<N> && requires(N& net, void (*body)(), typename N::event& event, typename N::template queue<int>& queue,
                             typename N::activity& activity, deadline until) {
        { net.spawn(body) } -> std::same_as<typename N::activity>;
        { activity.join() };
        { event.set() };
        { event.reset() };
        { event.wait(until) } -> std::same_as<bool>;
        { queue.push(1) };
        { queue.pop(until) } -> std::same_as<std::optional<int>>;
        { queue.close() };
    };

/// Whether the activities of a rank go on while it computes. A transport whose activities share the rank's thread says
/// no by a member of that name: there they go on where the rank waits or looks.
template <ConcurrentTransport N>
bool activities_run_alone([[maybe_unused]] const N& net) {
    if constexpr (requires { net.activities_run_alone(); })
        return net.activities_run_alone();
    else
        return true;
}

/// A transport that can begin to receive a message before its rank waits for it.
///
/// - `expect(peer, on, targets)`: the next message of that channel which is not yet expected will be received, and may
///   come at once. `targets` is memory for all of its bytes, consecutive, or nothing: where the sizes add up, the
///   transport may put the bytes there, and the pieces of the message that is received in due course lie there.
/// - `forget(on)`: nothing of that channel is expected any more; once it returns, no target is written to.
template <class N>
concept ExpectingTransport =
    Transport<N> && requires(N& net, rank_t peer, channel on, std::span<const byte_span> targets) {
        { net.expect(peer, on, targets) };
        { net.forget(on) } noexcept;
    };

}  // namespace rill::inline RILL_ABI

// ===== rill/concept/trigger.hpp

namespace rill::inline RILL_ABI {

/// Says who starts a round that all then join.
///
/// `starts(ready, size, key)`: whether the ranks that have nothing left to do, `ready` (ascending), among `size` are
/// enough. `key` is the round's own and the same on all ranks, for triggers that draw whom they ask. It goes on to hold
/// when more are ready, and holds when all are.
template <class T>
concept Trigger =
    std::regular<T> && requires(const T& trigger, std::span<const rank_t> ready, int size, random_key key) {
        { trigger.starts(ready, size, key) } -> std::same_as<bool>;
        { T::name } -> std::convertible_to<const char*>;
    };

}  // namespace rill::inline RILL_ABI

// ===== rill/kernel/little_endian.hpp

namespace rill::inline RILL_ABI::kernel::detail {

template <std::unsigned_integral U>
constexpr U little_endian(U value) {
    if constexpr (std::endian::native == std::endian::little || sizeof(U) == 1) return value;
    U swapped = 0;
    for (std::size_t i = 0; i < sizeof(U); ++i)
        swapped = static_cast<U>(swapped | (((value >> (8 * i)) & 0xFFU) << (8 * (sizeof(U) - 1 - i))));
    return swapped;
}

/// Reads an integer whose first byte counts least.
template <std::unsigned_integral U>
U load_little(const void* from) {
    U value;
    std::memcpy(&value, from, sizeof value);
    return little_endian(value);
}

/// Writes an integer, the byte that counts least first.
template <std::unsigned_integral U>
void store_little(void* to, U value) {
    value = little_endian(value);
    std::memcpy(to, &value, sizeof value);
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#ifndef RILL_SINGLE_KERNEL_LOOP_HPP
#define RILL_SINGLE_KERNEL_LOOP_HPP

// ===== rill/kernel/loop.hpp

namespace rill::inline RILL_ABI::kernel::detail {

/// Trip count of inner loops: a constant, because compilers vectorise no other at -O2.
inline constexpr std::size_t block = 64;

/// Asks for the cache line of `address` ahead of its use: to the second cache, since the first has too few requests
/// under way at a time to keep the memory busy.
inline void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address, 0, 1);
#else
    static_cast<void>(address);
#endif
}

/// Whether a compiler can make a product and a sum one operation, which rounds once.
#if defined(__x86_64__) && !defined(__FMA__)
inline constexpr bool fuses_products = false;
#else
inline constexpr bool fuses_products = true;
#endif

/// Ends what the optimiser knows about the values: a product that passes through here is rounded, and never becomes
/// half of a fused multiply-add.
template <class T, std::size_t Count>
void round_here(T (&values)[Count]) {
#if defined(__GNUC__)
    asm volatile("" : "+m"(values));  // an operand, not a clobber: the array must not count as escaped
#else
    static_cast<void>(values);
#endif
}

/// Ends what the optimiser knows about a value: a loop whose loads pass through here does not become one of gathers,
/// which AVX2 makes slower than the loads one by one.
template <class T>
void load_alone(T& value) {
#if defined(__GNUC__)
    asm("" : "+r"(value));
#else
    static_cast<void>(value);
#endif
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_LOOP_HPP

// ===== rill/kernel/tasks.hpp

namespace rill::inline RILL_ABI::kernel {

/// [0, n) cut into tasks, by n alone: nearly equal, with borders at multiples of `unit`, not many of them, and none so
/// small that handing it to another thread costs more than it saves.
class tasks {
  public:
    static constexpr std::size_t most = 64;
    static constexpr std::size_t least = 32768;

    constexpr explicit tasks(std::size_t n, std::size_t unit = 1, std::size_t smallest = least)
        : n_(n),
          unit_(unit),
          units_(n / unit + (n % unit != 0 ? 1U : 0U)),
          count_(std::clamp<std::size_t>(std::min(n / smallest, units_), n == 0 ? 0 : 1, most)) {}

    /// In one piece.
    static constexpr tasks whole(std::size_t n) { return tasks(n, n, 1, n == 0 ? 0 : 1); }

    constexpr std::size_t total() const { return n_; }
    constexpr std::size_t count() const { return count_; }
    constexpr segment operator[](std::size_t i) const {
        if (count_ == 1) return {0, n_};
        const segment s = split(units_, count_, i);
        return {s.begin * unit_, std::min(s.end * unit_, n_)};
    }

  private:
    constexpr tasks(std::size_t n, std::size_t unit, std::size_t units, std::size_t count)
        : n_(n), unit_(unit), units_(units), count_(count) {}

    std::size_t n_;
    std::size_t unit_;
    std::size_t units_;
    std::size_t count_;
};

/// How an executor cuts work on [0, n): not at all where it runs one task at a time.
template <Executor Exec>
constexpr tasks tasks_for(const Exec& executor, std::size_t n, std::size_t unit = 1,
                          std::size_t smallest = tasks::least) {
    return executor.concurrency() == 1 ? tasks::whole(n) : tasks(n, unit, smallest);
}

/// Calls `body(segment)`, or `body(segment, number)`, for every task.
template <Executor Exec, class Body>
void run_tasks(const Exec& executor, const tasks& all, Body&& body) {
    const auto one = [&](std::size_t i) {
        if constexpr (requires { body(segment{}, i); })
            body(all[i], i);
        else
            body(all[i]);
    };
    if constexpr (!std::same_as<Exec, serial>)  // in whose loop `one` is inlined, once
        if (all.count() == 1) return one(0);
    executor.run(all.count(), one);
}

/// A number per task.
using task_counts = std::array<std::size_t, tasks::most>;

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/magnitude.hpp

// Magnitudes as unsigned integers: they order all element types alike, INT_MIN and NaN included.

namespace rill::inline RILL_ABI::kernel {

/// An unsigned integer of the size of `T`, in which magnitudes are compared.
template <Element T>
using magnitude_key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// |x| as an integer of the same order; a NaN is above infinity.
template <Element T>
constexpr magnitude_key<T> magnitude(T x) {
    using key = magnitude_key<T>;
    if constexpr (std::floating_point<T>)
        return std::bit_cast<key>(x) & (static_cast<key>(-1) >> 1);
    else
        return x < 0 ? key{0} - static_cast<key>(x) : static_cast<key>(x);
}

/// The largest magnitude that is no NaN.
template <Element T>
inline constexpr magnitude_key<T> largest_magnitude =
    std::floating_point<T> ? magnitude(std::numeric_limits<T>::infinity()) : magnitude(std::numeric_limits<T>::min());

namespace detail {

template <std::size_t Count, Element T>
magnitude_key<T> largest_of(const T* x) {
    magnitude_key<T> most = 0;
    for (std::size_t j = 0; j < Count; ++j) most = std::max(most, magnitude(x[j]));
    return most;
}

template <Element T>
magnitude_key<T> largest_of(std::span<const T> x) {
    magnitude_key<T> most = 0;
    std::size_t i = 0;
    for (; i + block <= x.size(); i += block) most = std::max(most, largest_of<block>(&x[i]));
    for (; i < x.size(); ++i) most = std::max(most, magnitude(x[i]));
    return most;
}

/// Whether any of `Count` magnitudes reaches `bound`.
template <std::size_t Count, Element T>
bool any_at_least(const T* x, magnitude_key<T> bound) {
    return largest_of<Count>(x) >= bound;
}

/// The largest of what `body(segment)` returns for each task.
template <class Key, Executor Exec, class Body>
Key largest_of_tasks(const Exec& executor, const tasks& all, Body&& body) {
    std::array<Key, tasks::most> found{};
    run_tasks(executor, all, [&](segment part, std::size_t task) { found[task] = body(part); });
    return *std::max_element(found.begin(), found.end());
}

/// The first coordinate whose magnitude reaches `bound`, or `x.size()`.
template <Element T>
std::size_t find_at_least(std::span<const T> x, magnitude_key<T> bound) {
    std::size_t i = 0;
    while (i + block <= x.size() && !any_at_least<block>(x.data() + i, bound)) i += block;
    while (i < x.size() && magnitude(x[i]) < bound) ++i;
    return i;
}

template <Element T, Executor Exec>
std::optional<std::size_t> find_at_least(std::span<const T> x, magnitude_key<T> bound, const Exec& executor) {
    const tasks all = tasks_for(executor, x.size(), block);
    task_counts found;
    run_tasks(executor, all, [&](segment part, std::size_t task) {
        found[task] = find_at_least(x.subspan(part.begin, part.size()), bound);
    });
    for (std::size_t task = 0; task < all.count(); ++task)
        if (found[task] < all[task].size()) return all[task].begin + found[task];
    return std::nullopt;
}

}  // namespace detail

/// The first coordinate that is infinite or NaN.
template <Element T, Executor Exec = serial>
std::optional<std::size_t> find_non_finite(std::span<const T> x, const Exec& executor = {}) {
    if constexpr (std::floating_point<T>)
        return detail::find_at_least(x, largest_magnitude<T>, executor);
    else
        return std::nullopt;
}

/// The largest magnitude; zero where there is none.
template <Element T, Executor Exec = serial>
magnitude_key<T> largest(std::span<const T> x, const Exec& executor = {}) {
    return detail::largest_of_tasks<magnitude_key<T>>(
        executor, tasks_for(executor, x.size(), detail::block),
        [&](segment part) { return detail::largest_of(x.subspan(part.begin, part.size())); });
}

/// The first coordinate that is NaN.
template <Element T>
std::optional<std::size_t> find_nan(std::span<const T> x) {
    if constexpr (std::floating_point<T>)
        return detail::find_at_least(x, largest_magnitude<T> + 1, serial{});
    else
        return std::nullopt;
}

/// Throws `invalid_value` naming the lowest NaN, if there is one. `first` is the coordinate of `x[0]`.
template <Element T>
void refuse_nan(std::span<const T> x, std::size_t first = 0) {
    if (const auto i = find_nan(x)) throw invalid_value("coordinate " + std::to_string(first + *i) + " is NaN");
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/bf16.hpp

// bfloat16: the upper half of a float.

namespace rill::inline RILL_ABI::kernel {

/// Rounds to nearest, ties to even; a NaN stays one.
constexpr std::uint16_t to_bf16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
    const std::uint32_t quiet = (bits >> 16) | 0x40U;
    return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet : rounded);
}

/// Exact.
constexpr float from_bf16(std::uint16_t half) { return std::bit_cast<float>(std::uint32_t{half} << 16); }

/// The least magnitude that rounds to infinity; a double by way of float.
template <std::floating_point T>
inline constexpr T least_beyond_bf16 = static_cast<T>(sizeof(T) == sizeof(float) ? 0x1.FFp127 : 0x1.FFp127 - 0x1p103);

/// The first coordinate that bfloat16 cannot hold: infinite, NaN, or so large that it would become infinite.
template <std::floating_point T, Executor Exec = serial>
std::optional<std::size_t> find_beyond_bf16(std::span<const T> x, const Exec& executor = {}) {
    return detail::find_at_least(x, magnitude(least_beyond_bf16<T>), executor);
}

namespace detail {

template <std::floating_point T>
void encode_bf16_in_turn(std::span<const T> x, byte_span out) {
    std::uint16_t halves[block];
    std::size_t i = 0;
    for (; i + block <= x.size(); i += block) {
        for (std::size_t j = 0; j < block; ++j) halves[j] = little_endian(to_bf16(static_cast<float>(x[i + j])));
        std::memcpy(out.data() + 2 * i, halves, sizeof halves);
    }
    for (; i < x.size(); ++i) store_little(out.data() + 2 * i, to_bf16(static_cast<float>(x[i])));
}

template <std::floating_point T>
void decode_bf16_in_turn(byte_view bytes, std::span<T> out) {
    const auto value = [&](std::size_t i) {
        return static_cast<T>(from_bf16(load_little<std::uint16_t>(bytes.data() + 2 * i)));
    };
    std::size_t i = 0;
    for (; i + block <= out.size(); i += block)
        for (std::size_t j = 0; j < block; ++j) out[i + j] = value(i + j);
    for (; i < out.size(); ++i) out[i] = value(i);
}

}  // namespace detail

/// Writes `x` as little-endian bfloat16, 2 bytes each. A double is rounded to float first.
template <std::floating_point T, Executor Exec = serial>
void encode_bf16(std::span<const T> x, byte_span out, const Exec& executor = {}) {
    RILL_EXPECTS(out.size() == 2 * x.size(), "encode_bf16: two bytes for each value");
    run_tasks(executor, tasks_for(executor, x.size(), detail::block), [&](segment part) {
        detail::encode_bf16_in_turn(x.subspan(part.begin, part.size()), out.subspan(2 * part.begin, 2 * part.size()));
    });
}

/// Reads what `encode_bf16` wrote. Any bytes are valid.
template <std::floating_point T, Executor Exec = serial>
void decode_bf16(byte_view bytes, std::span<T> out, const Exec& executor = {}) {
    RILL_EXPECTS(bytes.size() == 2 * out.size(), "decode_bf16: two bytes for each value");
    run_tasks(executor, tasks_for(executor, out.size(), detail::block), [&](segment part) {
        detail::decode_bf16_in_turn(bytes.subspan(2 * part.begin, 2 * part.size()),
                                    out.subspan(part.begin, part.size()));
    });
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/detail/compact_avx512.hpp

// Compaction of 32-bit lanes with AVX-512. A register is compressed and stored whole, and what lies behind the result
// is overwritten: compressing straight to memory is microcoded on Zen 4.

#if defined(RILL_DETAIL_AVX512)

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

// ===== rill/kernel/detail/avx512.hpp

// <immintrin.h>, and what surrounds the code that uses it.

#if defined(RILL_DETAIL_AVX512)

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own intrinsics, wherever they are inlined: they pass registers that hold nothing in particular.
#define RILL_DETAIL_AVX512_BEGIN                                                         \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
        _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define RILL_DETAIL_AVX512_END _Pragma("GCC diagnostic pop")
#else
#define RILL_DETAIL_AVX512_BEGIN
#define RILL_DETAIL_AVX512_END
#endif

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

#include <bit>
#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill::inline RILL_ABI::kernel::detail {

/// As `portable_steps`, for floats under 32-bit coordinates.
class avx512_steps {
  public:
    static bool any_at_least(const float* x, std::uint32_t bound) { return mask_at_least(x, bound) != 0; }

    static std::uint64_t mask_at_least(const float* x, std::uint32_t bound) {
        const __m512i limit = _mm512_set1_epi32(static_cast<int>(bound));
        std::uint64_t mask = 0;
        for (std::size_t j = 0; j < 64; j += lanes)
            mask |= static_cast<std::uint64_t>(_mm512_cmpge_epu32_mask(magnitudes(x + j), limit)) << j;
        return mask;
    }

    static std::uint64_t glance(const float* x, std::uint32_t bound) { return mask_at_least(x, bound); }
    static std::uint64_t mask_after(std::uint64_t mask, const float*, std::uint32_t) { return mask; }

    static void append(std::uint64_t mask, const float* x, std::size_t first, std::uint32_t* indices,
                       std::uint32_t* keys) {
        const __m512i each = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        std::size_t count = 0;
        for (std::size_t j = 0; j < 64; j += lanes) {
            const auto chosen = static_cast<__mmask16>(mask >> j);
            compress(chosen, _mm512_add_epi32(_mm512_set1_epi32(static_cast<int>(first + j)), each), indices + count);
            compress(chosen, magnitudes(x + j), keys + count);
            count += number_of(chosen);
        }
    }

    static std::size_t keep_at_most(const std::uint32_t* keys, std::uint32_t high, std::uint32_t* to) {
        const __m512i limit = _mm512_set1_epi32(static_cast<int>(high));
        std::size_t count = 0;
        for (std::size_t j = 0; j < 64; j += lanes) {
            const __m512i each = _mm512_loadu_si512(keys + j);
            const __mmask16 chosen = _mm512_cmple_epu32_mask(each, limit);
            compress(chosen, each, to + count);
            count += number_of(chosen);
        }
        return count;
    }

    static std::size_t keep_at_least(const std::uint32_t* indices, const std::uint32_t* keys, std::uint32_t bound,
                                     std::uint32_t* to) {
        const __m512i limit = _mm512_set1_epi32(static_cast<int>(bound));
        std::size_t count = 0;
        for (std::size_t j = 0; j < 64; j += lanes) {
            const __mmask16 chosen = _mm512_cmpge_epu32_mask(_mm512_loadu_si512(keys + j), limit);
            compress(chosen, _mm512_loadu_si512(indices + j), to + count);
            count += number_of(chosen);
        }
        return count;
    }

  private:
    static constexpr std::size_t lanes = 16;

    static __m512i magnitudes(const float* x) {
        return _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(0x7FFFFFFF));
    }
    static void compress(__mmask16 chosen, __m512i from, std::uint32_t* to) {
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(chosen, from));
    }
    static std::size_t number_of(__mmask16 chosen) {
        return static_cast<std::size_t>(std::popcount(static_cast<std::uint32_t>(chosen)));
    }
};

}  // namespace rill::inline RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif

// ===== rill/kernel/collect.hpp

// One pass that keeps the few coordinates above a bound: the inner step of every selection.

namespace rill::inline RILL_ABI::kernel::detail {

/// Coordinates in ascending order, with their magnitudes. The arrays end `block` entries behind `capacity`, so that
/// appending needs no branch.
template <Element T, IndexType Index>
struct candidates {
    Index* indices = nullptr;
    magnitude_key<T>* keys = nullptr;
    std::size_t capacity = 0;
    std::size_t count = 0;

    void append(std::size_t i, magnitude_key<T> key) {
        indices[count] = static_cast<Index>(i);
        keys[count++] = key;
    }
};

/// The first coordinates whose magnitude equals a bound; same room behind `capacity`.
template <IndexType Index>
struct tied {
    Index* indices = nullptr;
    std::size_t capacity = 0;
    std::size_t count = 0;

    bool wanted() const { return count < capacity; }
};

/// What selections do with blocks of 64 entries. Where a step writes entries one after the other, as many places as the
/// block has may be overwritten.
class portable_steps {
  public:
    template <Element T>
    static bool any_at_least(const T* x, magnitude_key<T> bound) {
        return detail::any_at_least<block>(x, bound);
    }

    /// Bit j: whether the magnitude of x[j] reaches `bound`.
    template <Element T>
    static std::uint64_t mask_at_least(const T* x, magnitude_key<T> bound) {
        alignas(64) std::uint8_t hits[block];  // one byte each: comparing and narrowing vectorises
        for (std::size_t j = 0; j < block; ++j) hits[j] = magnitude(x[j]) >= bound ? 1 : 0;
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return ((lowest_bits(hits + 8 * I) << (8 * I)) | ...);
        }(std::make_index_sequence<block / 8>());
    }

    /// Not zero where any magnitude reaches `bound`; and from that the mask, for which a block is read twice: a mask of
    /// each block would cost more than it saves where most hold no large entry.
    template <Element T>
    static std::uint64_t glance(const T* x, magnitude_key<T> bound) {
        return any_at_least(x, bound) ? 1U : 0U;
    }
    template <Element T>
    static std::uint64_t mask_after(std::uint64_t, const T* x, magnitude_key<T> bound) {
        return mask_at_least(x, bound);
    }

    /// Writes the coordinates of the bits of `mask`, counted from `first`, and their magnitudes.
    template <Element T, IndexType Index>
    static void append(std::uint64_t mask, const T* x, std::size_t first, Index* indices, magnitude_key<T>* keys) {
        if (mask == ~std::uint64_t{0}) return append_all(x, first, indices, keys);
        constexpr std::uint64_t last = std::uint64_t{1} << (block - 1);
        while (mask != 0) {
            unrolled([&](std::size_t i) {
                const auto j = static_cast<std::size_t>(std::countr_zero(mask | last));
                indices[i] = static_cast<Index>(first + j);
                keys[i] = magnitude(x[j]);
                mask &= mask - 1;
            });
            indices += at_once;
            keys += at_once;
        }
    }

    /// Writes those of 64 keys that are at most `high`, and returns their number.
    template <class Key>
    static std::size_t keep_at_most(const Key* keys, Key high, Key* to) {
        std::size_t count = 0;
        for (std::size_t j = 0; j < block; j += at_once)
            unrolled([&](std::size_t i) {
                to[count] = keys[j + i];
                count += keys[j + i] <= high ? 1U : 0U;
            });
        return count;
    }

    /// Writes those of 64 indices whose keys reach `bound`, and returns their number.
    template <IndexType Index, class Key>
    static std::size_t keep_at_least(const Index* indices, const Key* keys, Key bound, Index* to) {
        std::size_t count = 0;
        for (std::size_t j = 0; j < block; j += at_once)
            unrolled([&](std::size_t i) {
                to[count] = indices[j + i];
                count += keys[j + i] >= bound ? 1U : 0U;
            });
        return count;
    }

    /// Entries that `append` writes at a time. For 8, 1 % of 16M floats take 1.1 times as long, and 10 % no less; one
    /// such step is faster than a compaction of the block by AVX-512.
    static constexpr std::size_t at_once = 4;

  private:
    template <Element T, IndexType Index>
    static void append_all(const T* x, std::size_t first, Index* indices, magnitude_key<T>* keys) {
        for (std::size_t j = 0; j < block; ++j) indices[j] = static_cast<Index>(first + j);
        for (std::size_t j = 0; j < block; ++j) keys[j] = magnitude(x[j]);
    }

    /// Compilers unroll no loop at -O2.
    template <class Step>
    static void unrolled(Step&& step) {
        [&]<std::size_t... I>(std::index_sequence<I...>) { (step(I), ...); }(std::make_index_sequence<at_once>());
    }

    /// Bit i: the lowest bit of byte i of eight. No other bit of a byte is set.
    static std::uint64_t lowest_bits(const std::uint8_t* eight) {
        return (load_little<std::uint64_t>(eight) * 0x0102040810204080U) >> 56;
    }
};

#if defined(RILL_DETAIL_AVX512)
template <Element T, IndexType Index>
using selection_steps =
    std::conditional_t<std::same_as<T, float> && std::same_as<Index, std::uint32_t>, avx512_steps, portable_steps>;
#else
template <Element T, IndexType Index>
using selection_steps = portable_steps;
#endif

/// Entries that are looked at before some are kept: few enough that they stay in the first cache.
inline constexpr std::size_t collected_at_once = 16 * block;

template <Element T, IndexType Index>
void append(magnitude_key<T> key, std::size_t i, magnitude_key<T> bound, candidates<T, Index>& above,
            tied<Index>& ties) {
    if (key > bound) {
        above.append(i, key);
    } else if (key == bound && ties.wanted()) {
        ties.indices[ties.count++] = static_cast<Index>(i);
    }
}

template <IndexType Index>
void append_ties(std::uint64_t mask, std::size_t first, tied<Index>& ties) {
    for (; mask != 0 && ties.wanted(); mask &= mask - 1)
        ties.indices[ties.count++] = static_cast<Index>(first + static_cast<std::size_t>(std::countr_zero(mask)));
}

template <Element T, IndexType Index, class Steps>
void append_hits(std::uint64_t hits, const T* x, std::size_t first, candidates<T, Index>& to) {
    Steps::append(hits, x, first, to.indices + to.count, to.keys + to.count);
    to.count += static_cast<std::size_t>(std::popcount(hits));
}

/// Collects those of 64 coordinates whose magnitudes reach `bound`.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
void collect_reaching(const T* x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& to) {
    if (Steps::any_at_least(x, bound)) append_hits<T, Index, Steps>(Steps::mask_at_least(x, bound), x, first, to);
}

/// Collects those of 64 coordinates above `bound` and the first ties with it.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
void collect_block(const T* x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& above,
                   tied<Index>& ties) {
    if (!ties.wanted()) return collect_reaching<T, Index, Steps>(x, first, bound + 1, above);
    if (!Steps::any_at_least(x, bound)) return;
    const std::uint64_t larger = Steps::mask_at_least(x, bound + 1);
    append_ties(Steps::mask_at_least(x, bound) & ~larger, first, ties);
    append_hits<T, Index, Steps>(larger, x, first, above);
}

/// Collects those of 16 blocks whose magnitudes reach `bound`, where few do; less than all of them where `to` is full.
/// Which blocks hold some is then as random as the data: a branch for each costs more than a list, which needs none.
template <Element T, IndexType Index, class Steps>
void collect_stretch(const T* x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& to) {
    constexpr std::size_t blocks = collected_at_once / block;
    std::uint64_t glances[blocks];
    std::size_t hit[blocks], hits = 0;
    for (std::size_t b = 0; b < blocks; ++b) glances[b] = Steps::glance(x + b * block, bound);
    for (std::size_t b = 0; b < blocks; ++b) {
        hit[hits] = b;
        hits += glances[b] != 0 ? 1U : 0U;
    }
    for (std::size_t h = 0; h < hits && to.count <= to.capacity; ++h) {
        const std::size_t i = hit[h] * block;
        append_hits<T, Index, portable_steps>(Steps::mask_after(glances[hit[h]], x + i, bound), x + i, first + i, to);
    }
}

/// Collects the coordinates of `x` above `bound` and the first ties with it. False when `above` has no room for them.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
bool collect(std::span<const T> x, std::size_t first, magnitude_key<T> bound, candidates<T, Index>& above,
             tied<Index>& ties) {
    const T* const at = x.data();
    const auto has_room = [&] { return above.count <= above.capacity; };
    const bool few_of_each = above.capacity < x.size() / block * portable_steps::at_once;
    std::size_t i = 0;
    for (; ties.wanted() && i + block <= x.size() && has_room(); i += block)
        collect_block<T, Index, Steps>(at + i, first + i, bound, above, ties);
    for (; few_of_each && i + collected_at_once <= x.size() && has_room(); i += collected_at_once)
        collect_stretch<T, Index, Steps>(at + i, first + i, bound + 1, above);
    for (; i + block <= x.size() && has_room(); i += block)
        collect_block<T, Index, Steps>(at + i, first + i, bound, above, ties);
    if (!has_room()) return false;
    for (; i < x.size(); ++i) append(magnitude(x[i]), first + i, bound, above, ties);
    return has_room();
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#ifndef RILL_SINGLE_KERNEL_SCRATCH_HPP
#define RILL_SINGLE_KERNEL_SCRATCH_HPP

// ===== rill/kernel/scratch.hpp

namespace rill::inline RILL_ABI::kernel::detail {

/// Room for `count` uninitialised elements in a reusable buffer; what the buffer held before is lost.
template <class T>
T* room(buffer& memory, std::size_t count) {
    if (memory.size() / sizeof(T) < count) {
        memory.clear();  // growing must not copy what nobody will read
        memory.resize(count * sizeof(T));
    }
    return count == 0 ? nullptr : ::new (static_cast<void*>(memory.data())) T[count];
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_SCRATCH_HPP

// ===== rill/core/real.hpp

// The little that rill needs of <cmath>, which would be a tenth of what rill.hpp costs a translation unit.

#if !defined(__GNUC__)
#include <cmath>
#endif

namespace rill::inline RILL_ABI::detail {

constexpr bool is_finite(double x) { return x - x == 0; }

inline double square_root(double x) {
#if defined(__GNUC__)
    return __builtin_sqrt(x);
#else
    return std::sqrt(x);
#endif
}

inline double round_up(double x) {
#if defined(__GNUC__)
    return __builtin_ceil(x);
#else
    return std::ceil(x);
#endif
}

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/kernel/select_bounds.hpp

// What the selections of the k largest share: where to cut, and how a sample tells it beforehand.

namespace rill::inline RILL_ABI::kernel {

/// Working memory of the selections; its size depends on the lengths of the input and the output only.
struct select_scratch {
    buffer indices;
    buffer keys;
    buffer middle;
    buffer ties;
    buffer pages;
    std::vector<select_scratch> of_tasks;
};

namespace detail {

/// The selection as a cut: everything above `key`, and the first `ties` coordinates that equal it.
template <class Key>
struct cut {
    Key key = 0;
    std::size_t ties = 0;
};

/// The least and the largest of `count` keys, count > 0.
template <class Key>
std::pair<Key, Key> range_of(const Key* keys, std::size_t count) {
    Key low = keys[0], high = keys[0];
    std::size_t i = 0;
    for (; i + block <= count; i += block) {
        for (std::size_t j = 0; j < block; ++j) low = std::min(low, keys[i + j]);
        for (std::size_t j = 0; j < block; ++j) high = std::max(high, keys[i + j]);
    }
    for (; i < count; ++i) {
        low = std::min(low, keys[i]);
        high = std::max(high, keys[i]);
    }
    return {low, high};
}

/// Keeps those of `count` keys that share a digit with the k-th largest of them, of the 2048 into which their range is
/// divided, and takes those above from `k`. Returns how many are kept; all of them where all are equal.
template <class Key>
std::size_t keep_digit(Key* keys, std::size_t count, std::size_t& k) {
    constexpr int digit = 11;
    const auto [low, high] = range_of(keys, count);
    const int width = static_cast<int>(std::bit_width(static_cast<Key>(high - low)));
    const int shift = std::max(width - digit, 0);
    std::array<std::size_t, 1U << digit> histogram{};
    for (std::size_t i = 0; i < count; ++i) ++histogram[static_cast<std::size_t>((keys[i] - low) >> shift)];
    std::size_t d = histogram.size() - 1;
    for (; histogram[d] < k; --d) k -= histogram[d];
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
        keys[kept] = keys[i];
        kept += static_cast<std::size_t>((keys[i] - low) >> shift) == d ? 1U : 0U;
    }
    return kept;
}

/// The cut behind the `k` largest of `count` keys, 0 < k <= count. Overwrites them.
template <class Key>
cut<Key> cut_keys(Key* keys, std::size_t count, std::size_t k) {
    constexpr std::size_t few = 4096;  // where nth_element is no slower than three passes
    while (count > few) {
        const std::size_t kept = keep_digit(keys, count, k);
        if (kept == count) break;
        count = kept;
    }
    std::nth_element(keys, keys + (k - 1), keys + count, [](Key a, Key b) { return a > b; });
    const Key key = keys[k - 1];
    std::size_t above = 0;
    for (std::size_t i = 0; i < k; ++i) above += keys[i] > key ? 1U : 0U;
    return {key, k - above};
}

/// How many of `count` keys reach `bound`; `count` is a multiple of `block`.
template <class Key>
std::size_t count_at_least(const Key* keys, std::size_t count, Key bound) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < count; i += block) {
        std::uint32_t reached = 0;
        for (std::size_t j = 0; j < block; ++j) reached += keys[i + j] >= bound ? 1U : 0U;
        sum += reached;
    }
    return sum;
}

/// The cut behind the `k` largest keys by bisection over their values: as many counting passes as keys have bits at
/// most, but they vectorise and leave the keys where they are. All keys that count reach `low`, at least k of them, and
/// none is above `largest`. `count` is a multiple of `block`.
template <class Key>
cut<Key> cut_by_bisection(const Key* keys, std::size_t count, std::size_t k, Key low, Key largest) {
    Key high = largest + 1;  // at least k keys reach `low`, fewer reach `high`
    std::size_t above = 0;
    while (high - low > 1) {
        const Key middle = low + (high - low) / 2;
        const std::size_t reached = count_at_least(keys, count, middle);
        if (reached == k) return {middle - 1, 0};
        if (reached > k) {
            low = middle;
        } else {
            high = middle;
            above = reached;
        }
    }
    return {low, k - above};
}

/// A bound that at least `k` of the keys reach, of which no larger one is reached by as many unless exactly k do; the
/// rest as above.
template <class Key>
Key reached_by(const Key* keys, std::size_t count, std::size_t k, Key low, Key largest) {
    const auto at = cut_by_bisection(keys, count, k, low, largest);
    return at.ties == 0 ? at.key + 1 : at.key;
}

/// Bounds between which the k-th largest magnitude lies almost surely.
template <class Key>
struct bounds {
    Key low = 0;
    Key high = 0;
    std::size_t capacity = 0;  ///< more magnitudes above `low` than this are most unlikely
    std::size_t ties = 0;      ///< of those that equal `low`, this many are enough; none where few do
};

/// Bounds from a random sample; none when k is so close to n that they would exclude nothing.
template <Element T>
std::optional<bounds<magnitude_key<T>>> sample_bounds(std::span<const T> x, std::size_t k, select_scratch& scratch) {
    using key = magnitude_key<T>;
    const std::size_t n = x.size();
    const std::size_t count = std::min<std::size_t>(64 + n / 128, 16384);
    const double rank = static_cast<double>(k) * static_cast<double>(count) / static_cast<double>(n);
    const double spread = 4 * rill::detail::square_root(rank) + 4;
    const auto low = static_cast<std::size_t>(rank + spread);
    if (low >= count) return std::nullopt;

    const std::size_t padded = (count + block - 1) / block * block;
    key* sample = room<key>(scratch.middle, padded);
    std::fill(sample + count, sample + padded, key{0});
    random_sequence random(random_key{0x73656C656374U});
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t at = n >> 32 == 0 ? (random.bits() * std::uint64_t{n}) >> 32 : random.below(n);
        sample[i] = magnitude(x[static_cast<std::size_t>(at)]);
    }

    const auto [least, largest] = range_of(sample, count);
    bounds<key> result{.low = reached_by(sample, padded, low + 1, least, largest), .high = static_cast<key>(-1)};
    if (rank > spread)
        result.high = reached_by(sample, padded, static_cast<std::size_t>(rank - spread) + 1, result.low, largest);
    const double most = (static_cast<double>(low) + 4 * rill::detail::square_root(static_cast<double>(low)) + 8) /
                        static_cast<double>(count);
    if (result.low == 0 || std::count(sample, sample + count, result.low) > 1) {
        const auto above =
            static_cast<double>(std::count_if(sample, sample + count, [&](key m) { return m > result.low; }));
        const double fewest =
            (above - 4 * rill::detail::square_root(above)) / static_cast<double>(count) * static_cast<double>(n);
        result.ties = k - std::min(k, fewest > 0 ? static_cast<std::size_t>(fewest) : 0);
    }
    result.capacity = most < 1 ? static_cast<std::size_t>(most * static_cast<double>(n)) : n;
    return result;
}

}  // namespace detail

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/core/light_atomic.hpp

#if !defined(__GNUC__)
#include <atomic>
#endif

namespace rill::inline RILL_ABI {

/// An integer or a pointer that threads share, sequentially consistent: `std::atomic` without `<atomic>`, which would
/// be a fifteenth of what rill.hpp costs a translation unit.
template <class T>
class light_atomic {
  public:
    light_atomic() = default;
    light_atomic(const light_atomic&) = delete;
    light_atomic& operator=(const light_atomic&) = delete;

#if defined(__GNUC__)
    T load() const { return __atomic_load_n(&value_, __ATOMIC_SEQ_CST); }
    void store(T value) { __atomic_store_n(&value_, value, __ATOMIC_SEQ_CST); }
    /// Returns what it was before.
    T fetch_add(T by) { return __atomic_fetch_add(&value_, by, __ATOMIC_SEQ_CST); }
    /// Whether it was `expected` and is `wanted` now.
    bool replace(T expected, T wanted) {
        return __atomic_compare_exchange_n(&value_, &expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }

  private:
    T value_{};
#else
    T load() const { return value_.load(); }
    void store(T value) { value_.store(value); }
    T fetch_add(T by) { return value_.fetch_add(by); }
    bool replace(T expected, T wanted) { return value_.compare_exchange_strong(expected, wanted); }

  private:
    std::atomic<T> value_{};
#endif
};

}  // namespace rill::inline RILL_ABI

// ===== rill/kernel/select_pages.hpp

// Selection of the k largest magnitudes by several tasks at once.

namespace rill::inline RILL_ABI::kernel::detail {

/// What one task found, page by page. The large entries may all lie in one place, so that no task can know how much
/// room it needs: pages are taken from a common store.
template <Element T>
struct page {
    std::size_t task = 0;
    std::size_t number = 0;  ///< in the store: where its entries lie
    std::size_t count = 0;   ///< entries
    std::size_t middle = 0;  ///< of these, not above the upper bound
    std::size_t above = 0;   ///< the cut
    std::size_t ties = 0;    ///< with the cut, all of them; then those that are selected
    std::size_t place = 0;   ///< of its first selected entry
    magnitude_key<T> largest = 0;
};

/// The candidates of a selection in pages, which come in ascending order of coordinates.
template <Element T, IndexType Index>
class candidate_pages {
    using key = magnitude_key<T>;

  public:
    candidate_pages(select_scratch& scratch, std::size_t capacity, std::size_t takers)
        : most_(capacity / (entries - block) + takers + 1),
          pages_(room<page<T>>(scratch.pages, 2 * most_)),
          indices_(room<Index>(scratch.indices, most_ * entries)),
          keys_(room<key>(scratch.keys, most_ * entries)),
          middle_(room<key>(scratch.middle, most_ * entries)) {}

    /// Collects what is above `bound`, whose magnitudes are integers; false when there is no more room.
    template <Executor Exec>
    bool collect(std::span<const T> x, key bound, const Exec& executor) {
        light_atomic<std::size_t> taken;
        run_tasks(executor, tasks_for(executor, x.size(), block),
                  [&](segment part, std::size_t task) { collect_part(x, part, task, bound, taken); });
        if (taken.load() > most_) return false;
        count_ = taken.load();
        sort_by_task();
        return true;
    }

    /// The cut behind the `k` largest of them; nothing where `high` is too low to leave it below.
    template <Executor Exec>
    std::optional<cut<key>> find_cut(std::size_t k, key high, const Exec& executor) {
        for_each_page(executor, [&](std::size_t at, page<T>& p) { gather_middle(at, p, high); });
        std::size_t all = 0, middle = 0;
        for (std::size_t at = 0; at < count_; ++at) {
            const page<T>& p = sorted()[at];
            std::copy_n(middle_ + at * entries, p.middle, middle_ + middle);
            middle += p.middle;
            all += p.count;
        }
        if (all < k || all - middle >= k) return std::nullopt;
        return cut_keys(middle_, middle, k - (all - middle));
    }

    bool has_nan() const {
        return std::any_of(sorted(), sorted() + count_,
                           [](const page<T>& p) { return p.largest > largest_magnitude<T>; });
    }

    /// Writes the coordinates that the cut selects.
    template <Executor Exec>
    void emit(cut<key> at, Index* out, const Exec& executor) {
        for_each_page(executor, [&](std::size_t, page<T>& p) { count_page(p, at.key); });
        std::size_t place = 0;
        for (page<T>* p = sorted(); p != sorted() + count_; ++p) {
            p->place = place;
            p->ties = std::min(p->ties, at.ties);
            at.ties -= p->ties;
            place += p->above + p->ties;
        }
        for_each_page(executor, [&](std::size_t, const page<T>& p) { emit_page(p, at.key, out + p.place); });
    }

  private:
    static constexpr std::size_t entries = 1024;

    /// In the order of tasks; before they are sorted pages lie in the first half, in the order in which they were
    /// taken.
    page<T>* sorted() const { return pages_ + most_; }

    /// Stops where there is no page left.
    void collect_part(std::span<const T> x, segment part, std::size_t task, key bound,
                      light_atomic<std::size_t>& taken) {
        tied<Index> no_ties;
        candidates<T, Index> into;
        std::size_t number = most_;
        const auto close = [&] {
            if (number < most_) pages_[number] = {.task = task, .number = number, .count = into.count};
        };
        std::size_t i = part.begin;
        while (i < part.end) {
            if (number == most_ || into.count + block > entries) {
                close();
                number = taken.fetch_add(1);
                if (number >= most_) return;
                into = {.indices = indices_ + number * entries, .keys = keys_ + number * entries, .capacity = entries};
            }
            if (i + block <= part.end) {
                collect_block(x.data() + i, i, bound, into, no_ties);
                i += block;
            } else {
                for (; i < part.end; ++i) append(magnitude(x[i]), i, bound, into, no_ties);
            }
        }
        close();
    }

    /// A task takes its pages in ascending order of their numbers.
    void sort_by_task() {
        task_counts first{};
        for (std::size_t p = 0; p < count_; ++p)
            if (pages_[p].task + 1 < tasks::most) ++first[pages_[p].task + 1];
        for (std::size_t t = 1; t < tasks::most; ++t) first[t] += first[t - 1];
        for (std::size_t p = 0; p < count_; ++p) sorted()[first[pages_[p].task]++] = pages_[p];
    }

    template <Executor Exec, class Body>
    void for_each_page(const Exec& executor, Body&& body) {
        run_tasks(executor, tasks_for(executor, count_, 1, 8), [&](segment some) {
            for (std::size_t at = some.begin; at < some.end; ++at) body(at, sorted()[at]);
        });
    }

    const key* keys_of(const page<T>& p) const { return keys_ + p.number * entries; }

    void gather_middle(std::size_t at, page<T>& p, key high) {
        const key* const keys = keys_of(p);
        key* const to = middle_ + at * entries;
        key largest = 0;
        std::size_t count = 0;
        for (std::size_t i = 0; i < p.count; ++i) {
            to[count] = keys[i];
            count += keys[i] <= high ? 1U : 0U;
            largest = std::max(largest, keys[i]);
        }
        p.middle = count;
        p.largest = largest;
    }

    void count_page(page<T>& p, key at) const {
        const key* const keys = keys_of(p);
        p.above = p.ties = 0;
        for (std::size_t i = 0; i < p.count; ++i) {
            p.above += keys[i] > at ? 1U : 0U;
            p.ties += keys[i] == at ? 1U : 0U;
        }
    }

    /// The last entry may be written behind the page's own, where the next page's first goes: hence not without a
    /// branch.
    void emit_page(const page<T>& p, key at, Index* out) const {
        const key* const keys = keys_of(p);
        const Index* const indices = indices_ + p.number * entries;
        std::size_t ties = p.ties;
        for (std::size_t i = 0; i < p.count; ++i) {
            const bool tie = keys[i] == at && ties > 0;
            ties -= tie ? 1U : 0U;
            if (keys[i] > at || tie) *out++ = indices[i];
        }
    }

    std::size_t most_;
    page<T>* pages_;
    Index* indices_;
    key* keys_;
    key* middle_;
    std::size_t count_ = 0;
};

/// Selects the `k` largest magnitudes, 0 < k < n, in little more than one pass; false, and nothing written, when the
/// sample misled, when an entry is NaN, or when so many entries equal the bound that the first of them must be found in
/// turn.
template <Element T, IndexType Index, Executor Exec>
bool select_by_pages(std::span<const T> x, std::size_t k, Index* out, select_scratch& scratch, const Exec& executor) {
    const auto guess = sample_bounds(x, k, scratch);
    if (!guess || guess->low == guess->high || guess->low > largest_magnitude<T>) return false;
    candidate_pages<T, Index> found(scratch, guess->capacity, tasks_for(executor, x.size(), block).count());
    if (!found.collect(x, guess->low, executor)) return false;
    const auto at = found.find_cut(k, guess->high, executor);
    if (!at || found.has_nan()) return false;
    found.emit(*at, out, executor);
    return true;
}

}  // namespace rill::inline RILL_ABI::kernel::detail

// ===== rill/kernel/select.hpp

// Exact selection of the k largest magnitudes.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// The cut behind the `k` largest magnitudes, 0 < k <= n, digit by digit. No input is bad for it: a pass per 11 bits.
template <Element T>
cut<magnitude_key<T>> cut_by_digits(std::span<const T> x, std::size_t k) {
    using key = magnitude_key<T>;
    constexpr int digit = 11;
    constexpr int bits = sizeof(key) * 8;
    key prefix = 0;
    for (int high = bits; high > 0; high -= digit) {  // the bits from `high` upwards are known
        const int low = high > digit ? high - digit : 0;
        std::array<std::size_t, 1U << digit> histogram{};
        const key known = high == bits ? key{0} : static_cast<key>(~key{0} << high);
        for (const T value : x) {
            const key m = magnitude(value);
            if ((m & known) == prefix) ++histogram[static_cast<std::size_t>((m & ~known) >> low)];
        }
        std::size_t d = histogram.size() - 1;
        for (; histogram[d] < k; --d) k -= histogram[d];
        prefix |= static_cast<key>(d) << low;
    }
    return {prefix, k};
}

template <Element T, IndexType Index>
candidates<T, Index> room_for_candidates(select_scratch& scratch, std::size_t capacity) {
    return {.indices = room<Index>(scratch.indices, capacity + block),
            .keys = room<magnitude_key<T>>(scratch.keys, capacity + block),
            .capacity = capacity};
}

template <IndexType Index>
tied<Index> room_for_ties(select_scratch& scratch, std::size_t capacity) {
    return {.indices = room<Index>(scratch.ties, capacity + block), .capacity = capacity};
}

/// Keys among which the cut is, and the largest of those that were looked at.
template <class Key>
struct middle_keys {
    Key* keys = nullptr;
    std::size_t count = 0;
    Key largest = 0;
};

/// The keys of candidates that are at most `high`. The rest is above the cut, if the sample did not mislead.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
middle_keys<magnitude_key<T>> gather_middle(const candidates<T, Index>& above, magnitude_key<T> high,
                                            select_scratch& scratch) {
    middle_keys<magnitude_key<T>> middle{room<magnitude_key<T>>(scratch.middle, above.capacity + block)};
    std::size_t i = 0;
    for (; i + block <= above.count; i += block) {
        for (std::size_t j = 0; j < block; ++j) middle.largest = std::max(middle.largest, above.keys[i + j]);
        middle.count += Steps::keep_at_most(above.keys + i, high, middle.keys + middle.count);
    }
    for (; i < above.count; ++i) {
        middle.largest = std::max(middle.largest, above.keys[i]);
        if (above.keys[i] <= high) middle.keys[middle.count++] = above.keys[i];
    }
    return middle;
}

/// Writes the coordinates that a cut selects; they are known to be `k`.
template <Element T, IndexType Index>
void emit_cut(std::span<const T> x, std::size_t first, cut<magnitude_key<T>> at, std::size_t k, Index* out,
              select_scratch& scratch) {
    auto above = room_for_candidates<T, Index>(scratch, k);
    auto ties = room_for_ties<Index>(scratch, at.ties);
    collect(x, first, at.key, above, ties);
    const auto largest = above.count > 0 ? range_of(above.keys, above.count).second : at.key;
    if (largest > largest_magnitude<T>) refuse_nan(x, first);
    std::merge(above.indices, above.indices + above.count, ties.indices, ties.indices + ties.count, out);
}

/// The cut behind the `k` largest candidates.
template <Element T, IndexType Index>
cut<magnitude_key<T>> cut_candidates(const candidates<T, Index>& above, middle_keys<magnitude_key<T>> middle,
                                     std::size_t k) {
    const std::size_t sure = above.count - middle.count;
    if (sure < k) return cut_keys(middle.keys, middle.count, k - sure);
    std::copy_n(above.keys, above.count, middle.keys);
    return cut_keys(middle.keys, above.count, k);
}

/// How many candidates lie up to the last tie that the cut selects.
template <Element T, IndexType Index>
std::size_t end_of_ties(const candidates<T, Index>& above, cut<magnitude_key<T>> at) {
    std::size_t i = 0;
    for (; i + block <= above.count; i += block) {
        std::uint32_t equal = 0;
        for (std::size_t j = 0; j < block; ++j) equal += above.keys[i + j] == at.key ? 1U : 0U;
        if (equal >= at.ties) break;
        at.ties -= equal;
    }
    for (; at.ties > 0; ++i) at.ties -= above.keys[i] == at.key ? 1U : 0U;
    return i;
}

/// Writes the coordinates of the candidates that a cut selects; they are known to be `k`.
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
void emit_candidates(const candidates<T, Index>& above, cut<magnitude_key<T>> at, std::size_t k, Index* out) {
    const std::size_t turn = end_of_ties(above, at);
    std::size_t count = 0;
    const auto emit = [&](std::size_t i, std::size_t end, magnitude_key<T> bound) {
        for (; i + block <= end && count + block <= k; i += block)
            count += Steps::keep_at_least(above.indices + i, above.keys + i, bound, out + count);
        for (; i < end && count < k; ++i) {
            out[count] = above.indices[i];
            count += above.keys[i] >= bound ? 1U : 0U;
        }
    };
    emit(0, turn, at.key);
    emit(turn, above.count, at.key + 1);
}

/// Selects in little more than one pass; false, and nothing written, when the sample misled.
template <Element T, IndexType Index>
bool select_by_sample(std::span<const T> x, std::size_t first, std::size_t k, Index* out, select_scratch& scratch) {
    const auto guess = sample_bounds(x, k, scratch);
    if (!guess) return false;
    auto above = room_for_candidates<T, Index>(scratch, std::max(guess->capacity, k));
    auto ties = room_for_ties<Index>(scratch, k);
    ties.capacity = guess->ties;
    if (!collect(x, first, guess->ties > 0 ? guess->low : guess->low - 1, above, ties)) return false;
    const auto middle = gather_middle(above, guess->high, scratch);
    if (guess->low > largest_magnitude<T> || middle.largest > largest_magnitude<T>) refuse_nan(x, first);
    if (above.count >= k) {
        emit_candidates(above, cut_candidates(above, middle, k), k, out);
        return true;
    }
    if (above.count + ties.count < k) return false;
    std::merge(above.indices, above.indices + above.count, ties.indices, ties.indices + (k - above.count), out);
    return true;
}

/// The `k` largest magnitudes of `x`, whose first coordinate is `first`; min(k, n) indices are written.
template <Element T, IndexType Index>
std::size_t select_largest(std::span<const T> x, std::size_t first, std::size_t k, Index* out,
                           select_scratch& scratch) {
    constexpr std::size_t small = 2048;  // below, sampling costs more than it saves
    if (k == 0 || k >= x.size()) {
        refuse_nan(x, first);
        const std::size_t count = std::min(k, x.size());
        for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Index>(first + i);
        return count;
    }
    if (x.size() < small) {
        auto* keys = room<magnitude_key<T>>(scratch.middle, x.size());
        for (std::size_t i = 0; i < x.size(); ++i) keys[i] = magnitude(x[i]);
        emit_cut(x, first, cut_keys(keys, x.size(), k), k, out, scratch);
    } else if (!select_by_sample(x, first, k, out, scratch)) {
        emit_cut(x, first, cut_by_digits(x, k), k, out, scratch);
    }
    return k;
}

template <IndexType Index>
constexpr bool fits(std::size_t dimension) {
    return dimension == 0 || dimension - 1 <= static_cast<Index>(-1);
}

}  // namespace detail

/// Writes the coordinates of the k largest magnitudes in ascending order, ties by the lower coordinate, and returns
/// their number min(k, n).
///
/// `indices` holds at least min(k, n). Cost: one pass over `x` and about twice the output, whatever the distribution;
/// a few passes when a sample misleads or k is close to n. The result is exact and depends on `x` and `k` alone.
/// Throws `invalid_value` naming the lowest coordinate that is NaN; `indices` is then unspecified.
template <Element T, IndexType Index, Executor Exec = serial>
std::size_t top_k(std::span<const T> x, std::size_t k, std::span<Index> indices, select_scratch& scratch,
                  const Exec& executor = {}) {
    RILL_EXPECTS(detail::fits<Index>(x.size()), "top_k: the index type cannot number every coordinate");
    RILL_EXPECTS(indices.size() >= std::min(k, x.size()), "top_k: too few indices for the result");
    if (0 < k && k < x.size() && tasks_for(executor, x.size()).count() > 1)
        if (detail::select_by_pages(x, k, indices.data(), scratch, executor)) return k;
    return detail::select_largest(x, 0, k, indices.data(), scratch);
}

/// values[i] = x[indices[i]].
template <Element T, IndexType Index, Executor Exec = serial>
void gather(std::span<const T> x, std::span<const Index> indices, std::span<T> values, const Exec& executor = {}) {
    RILL_EXPECTS(values.size() >= indices.size(), "gather: too few values for the indices");
    RILL_EXPECTS_DEBUG(std::all_of(indices.begin(), indices.end(), [&](Index i) { return i < x.size(); }),
                       "gather: an index is outside of the vector");
    run_tasks(executor, tasks_for(executor, indices.size(), 1, 4096), [&](segment part) {
        for (std::size_t i = part.begin; i < part.end; ++i) values[i] = x[static_cast<std::size_t>(indices[i])];
    });
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/bucket_select.hpp

// Selection of the k largest magnitudes of every bucket.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// The largest magnitude of the entries j, j + 64, j + 128, … for each j < 64.
template <Element T>
class column_maxima {
    using key = magnitude_key<T>;

  public:
    explicit column_maxima(std::span<const T> x) {
        std::size_t i = 0;
        for (; i + block <= x.size(); i += block)
            for (std::size_t j = 0; j < block; ++j) keys_[j] = std::max(keys_[j], magnitude(x[i + j]));
        for (std::size_t j = 0; i + j < x.size(); ++j) keys_[j] = std::max(keys_[j], magnitude(x[i + j]));
        least_ = most_ = keys_[0];
        for (const auto each : keys_) most_ = std::max(most_, each);
        for (const auto each : keys_) least_ = std::min(least_, each);
    }

    key most() const { return most_; }

    /// A magnitude that at least `k` entries reach: few more, where the large ones lie in different columns.
    key reached_by(std::size_t k) const {
        if (k >= block) return k == block ? least_ : 0;
        return detail::reached_by(keys_, block, k, least_, most_);
    }

  private:
    alignas(64) key keys_[block] = {};
    key least_, most_;
};

/// As `select_largest`, for buckets that stay in cache, 0 < k < x.size().
template <Element T, IndexType Index, class Steps = selection_steps<T, Index>>
std::size_t select_in_bucket(std::span<const T> x, std::size_t first, std::size_t k, Index* out,
                             select_scratch& scratch) {
    const column_maxima<T> columns(x);
    if (columns.most() > largest_magnitude<T>) refuse_nan(x, first);
    const auto reach = columns.reached_by(k);
    auto found = room_for_candidates<T, Index>(scratch, x.size());
    std::size_t i = 0;
    for (; i + block <= x.size(); i += block) collect_reaching<T, Index, Steps>(x.data() + i, first + i, reach, found);
    for (; i < x.size(); ++i)
        if (magnitude(x[i]) >= reach) found.append(first + i, magnitude(x[i]));
    if (found.count == k) {
        std::copy_n(found.indices, k, out);
    } else {
        const std::size_t padded = (found.count + block - 1) / block * block;
        std::fill(found.keys + found.count, found.keys + padded, 0);  // counted by no bound above zero
        const auto at = cut_by_bisection(found.keys, padded, k, reach, columns.most());
        emit_candidates<T, Index, Steps>(found, at, k, out);
    }
    return k;
}

/// The buckets of `x`, whose first coordinate is `begin`; returns how many indices are written.
template <Element T, IndexType Index>
std::size_t select_in_buckets(std::span<const T> x, std::size_t begin, std::size_t bucket, std::size_t k, Index* out,
                              select_scratch& scratch) {
    constexpr std::size_t in_cache = 8192;
    std::size_t count = 0;
    for (std::size_t first = 0; first < x.size(); first += std::min(bucket, x.size() - first)) {
        const auto part = x.subspan(first, std::min(bucket, x.size() - first));
        const bool bisect = k > 0 && k < part.size() && part.size() <= in_cache;
        count += bisect ? select_in_bucket(part, begin + first, k, out + count, scratch)
                        : select_largest(part, begin + first, k, out + count, scratch);
    }
    return count;
}

}  // namespace detail

/// The number of entries that `bucket_top_k` selects of `n`.
constexpr std::size_t bucket_top_k_count(std::size_t n, std::size_t bucket, std::size_t k) {
    return n / bucket * std::min(k, bucket) + std::min(k, n % bucket);
}

/// Writes the coordinates of the k largest magnitudes of each `bucket` consecutive entries, in ascending order, ties by
/// the lower coordinate, and returns their number. Of a bucket of k entries or fewer (the last one may be shorter) all
/// are selected.
///
/// `indices` holds at least `bucket_top_k_count(n, bucket, k)`. Throws `invalid_value` naming the lowest coordinate
/// that is NaN; `indices` is then unspecified.
template <Element T, IndexType Index, Executor Exec = serial>
std::size_t bucket_top_k(std::span<const T> x, std::size_t bucket, std::size_t k, std::span<Index> indices,
                         select_scratch& scratch, const Exec& executor = {}) {
    RILL_EXPECTS(bucket > 0, "bucket_top_k: a bucket holds at least one entry");
    RILL_EXPECTS(detail::fits<Index>(x.size()), "bucket_top_k: the index type cannot number every coordinate");
    RILL_EXPECTS(indices.size() >= bucket_top_k_count(x.size(), bucket, k),
                 "bucket_top_k: too few indices for the result");
    const tasks all = tasks_for(executor, x.size(), bucket);
    if (all.count() <= 1) return detail::select_in_buckets(x, 0, bucket, k, indices.data(), scratch);
    scratch.of_tasks.resize(std::max(scratch.of_tasks.size(), all.count()));
    run_tasks(executor, all, [&](segment part, std::size_t task) {
        detail::select_in_buckets(x.subspan(part.begin, part.size()), part.begin, bucket, k,
                                  indices.data() + bucket_top_k_count(part.begin, bucket, k), scratch.of_tasks[task]);
    });
    return bucket_top_k_count(x.size(), bucket, k);
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/fold.hpp

// Folds of dense vectors.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// Entries folded at a time: few enough to stay in the first cache, enough to hide the change from input to input.
inline constexpr std::size_t fold_block = 256;

template <Element T, class Fold>
void fold_into(T* acc, const T* x, Fold& fold) {
    for (std::size_t i = 0; i < fold_block; i += block)
        for (std::size_t j = 0; j < block; ++j) acc[i + j] = fold(acc[i + j], x[i + j]);
}

/// The entries of `part`, which begins at a multiple of blocks.
template <Element T, class Fold>
void fold_part(std::span<const std::span<const T>> inputs, segment part, std::span<T> out, Fold& fold) {
    alignas(64) T acc[fold_block];  // a local array: no output can alias an input within a block
    std::size_t i = part.begin;
    for (; i + fold_block <= part.end; i += fold_block) {
        std::copy_n(inputs[0].data() + i, fold_block, acc);
        for (std::size_t k = 1; k < inputs.size(); ++k) fold_into(acc, inputs[k].data() + i, fold);
        std::copy_n(acc, fold_block, out.data() + i);
    }
    for (; i < part.end; ++i) {
        T value = inputs[0][i];
        for (std::size_t k = 1; k < inputs.size(); ++k) value = fold(value, inputs[k][i]);
        out[i] = value;
    }
}

}  // namespace detail

/// Sets every entry.
template <Element T>
void fill(std::span<T> x, T value) {
    using detail::block;
    std::size_t i = 0;
    for (; i + block <= x.size(); i += block)
        for (std::size_t j = 0; j < block; ++j) x[i + j] = value;
    for (; i < x.size(); ++i) x[i] = value;
}

/// out[i] = the left fold of the inputs' entries i, in the order of the inputs. One input is copied, none is refused.
///
/// All inputs are as long as `out`. `out` may be one of the inputs; it may not overlap one otherwise. Cost: one pass
/// over the inputs and the output.
template <Element T, class Fold, Executor Exec = serial>
void fold_dense_k(std::span<const std::span<const T>> inputs, std::span<T> out, Fold&& fold,
                  const Exec& executor = {}) {
    RILL_EXPECTS(!inputs.empty(), "fold_dense_k: there is nothing to fold");
    for ([[maybe_unused]] const auto& input : inputs)
        RILL_EXPECTS(input.size() == out.size(), "fold_dense_k: an input differs in length from the output");
    run_tasks(executor, tasks_for(executor, out.size(), detail::fold_block),
              [&](segment part) { detail::fold_part(inputs, part, out, fold); });
}

/// acc[i] = fold(acc[i], x[i]). The two are equally long and do not overlap, or are the same.
template <Element T, class Fold>
void fold_dense(std::span<T> acc, std::span<const T> x, Fold&& fold) {
    const std::span<const T> inputs[] = {acc, x};
    fold_dense_k<T>(inputs, acc, fold);
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/combine.hpp

// Linear combinations of dense vectors.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// acc += factor * x, the product rounded by itself: no build makes one rounding of the two.
template <std::floating_point T>
void add_multiple(T* acc, const T* x, T factor) {
    for (std::size_t i = 0; i < fold_block; i += block) {
        T product[block];
        for (std::size_t j = 0; j < block; ++j) product[j] = factor * x[i + j];
        round_here(product);
        for (std::size_t j = 0; j < block; ++j) acc[i + j] += product[j];
    }
}

/// The entries of `part`, which begins at a multiple of blocks.
template <std::floating_point T>
void combine_part(std::span<const std::span<const T>> inputs, std::span<const T> factors, segment part,
                  std::span<T> out) {
    alignas(64) T acc[fold_block];  // a local array: no output can alias an input within a block
    alignas(64) T rest[fold_block];
    for (std::size_t i = part.begin; i < part.end; i += fold_block) {
        const std::size_t count = std::min(fold_block, part.end - i);
        std::fill_n(acc, fold_block, T{0});
        for (std::size_t k = 0; k < inputs.size(); ++k) {
            const T* x = inputs[k].data() + i;
            if (count < fold_block)
                x = rest, std::fill(std::copy_n(inputs[k].data() + i, count, rest), rest + fold_block, T{0});
            add_multiple(acc, x, factors[k]);
        }
        std::copy_n(acc, count, out.data() + i);
    }
}

}  // namespace detail

/// out[i] = Σ factors[k] · inputs[k][i], in the order of the inputs, each product and each sum rounded. No inputs give
/// zeros.
///
/// All inputs are as long as `out`. `out` may be one of the inputs; it may not overlap one otherwise. Cost: one pass
/// over the inputs and the output.
template <std::floating_point T, Executor Exec = serial>
void combine_k(std::span<const std::span<const T>> inputs, std::span<const T> factors, std::span<T> out,
               const Exec& executor = {}) {
    RILL_EXPECTS(inputs.size() == factors.size(), "combine_k: a factor for each input");
    for ([[maybe_unused]] const auto& input : inputs)
        RILL_EXPECTS(input.size() == out.size(), "combine_k: an input differs in length from the output");
    run_tasks(executor, tasks_for(executor, out.size(), detail::fold_block),
              [&](segment part) { detail::combine_part(inputs, factors, part, out); });
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/copy.hpp

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// From this many bytes on a copy goes past the caches: a target that no cache holds would only be read to be
/// overwritten, and drive out what others still need.
inline constexpr std::size_t least_streamed_copy = std::size_t{1} << 19;

/// Copies one line to `target`, which lies on one, without reading it, where this machine can.
inline void stream_line(const unsigned char* source, unsigned char* target) {
#if defined(__SSE2__)
    const auto* const from = reinterpret_cast<const __m128i*>(source);
    auto* const to = reinterpret_cast<__m128i*>(target);
    const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
#else
    std::copy_n(source, 64, target);
#endif
}

/// What has been streamed is not ordered by what publishes it to other threads, but by this.
inline void end_streaming() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

}  // namespace detail

/// Copies `source` to `target`, which is as long and does not overlap it.
template <class T>
void copy(std::span<const T> source, std::span<T> target) {
    RILL_EXPECTS(source.size() == target.size(), "copy: source and target differ in length");
    std::size_t first = 0, last = 0;
#if defined(__SSE2__)
    constexpr std::size_t line = 64;
    if (target.size_bytes() >= detail::least_streamed_copy) {
        first = (line - reinterpret_cast<std::uintptr_t>(target.data()) % line) % line / sizeof(T);
        last = first + (target.size() - first) * sizeof(T) / line * line / sizeof(T);
        const auto* const from = reinterpret_cast<const unsigned char*>(source.data() + first);
        auto* const to = reinterpret_cast<unsigned char*>(target.data() + first);
        for (std::size_t i = 0; i < (last - first) * sizeof(T); i += line) detail::stream_line(from + i, to + i);
        detail::end_streaming();
    }
#endif
    std::copy_n(source.begin(), first, target.begin());
    std::copy(source.begin() + static_cast<std::ptrdiff_t>(last), source.end(),
              target.begin() + static_cast<std::ptrdiff_t>(last));
}

}  // namespace rill::inline RILL_ABI::kernel

#ifndef RILL_SINGLE_KERNEL_DETAIL_SET_BITS_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_SET_BITS_AVX512_HPP

// ===== rill/kernel/detail/set_bits_avx512.hpp

// The places of the set bits of a word, for x86-64-v4.

#if defined(RILL_DETAIL_AVX512)

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

// ===== rill/kernel/detail/avx512.hpp

// <immintrin.h>, and what surrounds the code that uses it.

#if defined(RILL_DETAIL_AVX512)

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own intrinsics, wherever they are inlined: they pass registers that hold nothing in particular.
#define RILL_DETAIL_AVX512_BEGIN                                                         \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
        _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define RILL_DETAIL_AVX512_END _Pragma("GCC diagnostic pop")
#else
#define RILL_DETAIL_AVX512_BEGIN
#define RILL_DETAIL_AVX512_END
#endif

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill::inline RILL_ABI::kernel::detail {

inline __m512i steps_avx512() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }

// Compressed in registers: compressing into memory is slow on Zen 4. Most stores cross a line, and cost the most: three
// take half the time of four.
#if defined(RILL_DETAIL_VBMI2)

/// As `place_bits`.
inline std::size_t place_bits_avx512(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
    alignas(64) static constexpr auto numbers = [] {
        std::array<std::uint8_t, 64> each{};
        for (std::uint8_t i = 0; i < 64; ++i) each[i] = i;
        return each;
    }();
    const __m512i first = _mm512_set1_epi32(static_cast<int>(base));
    const __m512i places = _mm512_maskz_compress_epi8(word, _mm512_load_si512(numbers.data()));
    const auto write = [first](__m128i sixteen, std::uint32_t* to) {
        _mm512_storeu_si512(to, _mm512_add_epi32(first, _mm512_cvtepu8_epi32(sixteen)));
    };
    const auto count = static_cast<std::size_t>(std::popcount(word));
    write(_mm512_castsi512_si128(places), out);
    write(_mm512_extracti32x4_epi32(places, 1), out + 16);
    write(_mm512_extracti32x4_epi32(places, 2), out + 32);
    if (count > 48) write(_mm512_extracti32x4_epi32(places, 3), out + 48);  // rare, except where nearly all are set
    return count;
}

#else

/// As `place_bits`, each sum shifted to the left by `up`.
inline std::size_t place_shifted_avx512(std::uint64_t word, std::uint32_t base, unsigned up, std::uint32_t* out) {
    const __m128i upwards = _mm_cvtsi32_si128(static_cast<int>(up));
    const __m512i stride = _mm512_sll_epi32(_mm512_set1_epi32(16), upwards);
    __m512i places =
        _mm512_add_epi32(_mm512_sll_epi32(steps_avx512(), upwards), _mm512_set1_epi32(static_cast<int>(base << up)));
    const auto write = [&](std::uint64_t some, int after) {
        _mm512_storeu_si512(out + after, _mm512_maskz_compress_epi32(static_cast<__mmask16>(some), places));
        places = _mm512_add_epi32(places, stride);
    };
    const auto ones_below = [word](unsigned bit) { return std::popcount(word << (64 - bit)); };  // no chain of sums
    write(word, 0);
    write(word >> 16, ones_below(16));
    write(word >> 32, ones_below(32));
    write(word >> 48, ones_below(48));
    return static_cast<std::size_t>(std::popcount(word));
}

/// As `place_bits`.
inline std::size_t place_bits_avx512(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
    return place_shifted_avx512(word, base, 0, out);
}

#endif

}  // namespace rill::inline RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_SET_BITS_AVX512_HPP

// ===== rill/kernel/detail/set_bits.hpp

// The places of the set bits of a word: the inner step of every coding that holds a bitmap.

namespace rill::inline RILL_ABI::kernel::detail {

/// Up to eight bytes from `at` on, as the lowest of a word.
inline std::uint64_t word_at(byte_view bytes, std::size_t at) {
    if (bytes.size() - at >= 8) return load_little<std::uint64_t>(bytes.data() + at);
    std::byte padded[8] = {};
    std::memcpy(padded, bytes.data() + at, bytes.size() - at);
    return load_little<std::uint64_t>(padded);
}

/// How many bits are set.
inline std::size_t count_ones(byte_view bytes) {
    std::size_t ones = 0;
    for (std::size_t i = 0; i < bytes.size(); i += 8)
        ones += static_cast<std::size_t>(std::popcount(word_at(bytes, i)));
    return ones;
}

/// Whether a bit is set in the last byte behind the first `bits` bits.
inline bool has_bits_behind(byte_view bytes, std::size_t bits) {
    return bits % 8 != 0 && (std::to_integer<unsigned>(bytes.back()) >> (bits % 8)) != 0;
}

constexpr std::size_t bytes_for_bits(std::size_t bits) { return bits / 8 + (bits % 8 != 0 ? 1U : 0U); }

/// What `place_bits` may write behind 64 places: whole vectors, so that appending needs no branch.
inline constexpr std::size_t place_slack = 16;

/// Of each byte the places of its set bits, the lowest first. As wide as most indices, 8 KiB: numbers that need no
/// widening are added as they are by every instruction set.
struct byte_places {
    std::uint32_t of[256][8] = {};

    constexpr byte_places() {
        for (unsigned byte = 0; byte < 256; ++byte)
            for (unsigned bit = 0, n = 0; byte >> bit != 0; ++bit)
                if ((byte >> bit & 1U) != 0) of[byte][n++] = bit;
    }
};
inline constexpr byte_places places_in_byte;

/// Places in a register. What takes two at once g++ 12 -O2 puts on the stack: Elias-Fano is read at 580 M indices/s,
/// not 700.
#if defined(__AVX2__)
inline constexpr std::size_t place_lanes = 8;
#else
inline constexpr std::size_t place_lanes = 4;
#endif

/// Writes `base` plus the place of each set bit of `word`, in ascending order; returns their number. `out` holds 64
/// entries and `place_slack`, of which any may be overwritten. Eight at a time by table: no branch depends on the bits.
template <class Place>
std::size_t place_bits(std::uint64_t word, Place base, Place* out) {
    std::size_t count = 0;
    for (unsigned at = 0; at < 64; at += 8) {
        const auto byte = static_cast<std::uint8_t>(word >> at);
        const std::uint32_t* const in_byte = places_in_byte.of[byte];
        for (std::size_t first = 0; first < 8; first += place_lanes) {
            Place places[place_lanes];  // a register, which does not overlap `out`
            for (std::size_t j = 0; j < place_lanes; ++j) places[j] = static_cast<Place>(base + in_byte[first + j]);
            for (std::size_t j = 0; j < place_lanes; ++j) out[count + first + j] = places[j];
        }
        base += 8;
        count += static_cast<std::size_t>(std::popcount(byte));
    }
    return count;
}

/// The same as fast as this machine can.
template <class Place>
std::size_t place_bits_native(std::uint64_t word, Place base, Place* out) {
#if defined(RILL_DETAIL_AVX512)
    if constexpr (sizeof(Place) == 4) return place_bits_avx512(word, base, out);
#endif
    return place_bits(word, base, out);
}

/// The first `room` of them, where `out` ends behind these.
template <class Place>
void place_some(std::uint64_t word, Place base, Place* out, std::size_t room) {
    if (word == 0) return;
    if (room >= 64 + place_slack) {
        place_bits_native(word, base, out);
        return;
    }
    for (std::size_t i = 0; word != 0 && i < room; word &= word - 1)
        out[i++] = static_cast<Place>(base + static_cast<Place>(std::countr_zero(word)));
}

}  // namespace rill::inline RILL_ABI::kernel::detail

// ===== rill/kernel/index_check.hpp

// What all index codings check alike.

namespace rill::inline RILL_ABI::kernel::detail {

[[noreturn]] inline void bad_indices(const char* coding, const std::string& what) {
    throw protocol_error(std::string(coding) + " indices: " + what);
}

[[noreturn]] inline void bad_index(const char* coding, std::size_t position, std::size_t index, std::size_t lowest,
                                   std::size_t end) {
    bad_indices(coding, "number " + std::to_string(position) + " is " + std::to_string(index) + ", expected one of [" +
                            std::to_string(lowest) + ", " + std::to_string(end) + ")");
}

inline void check_count_in_universe(std::size_t count, segment universe) {
    if (count > universe.size())
        throw protocol_error(std::to_string(count) + " indices are announced for " + std::to_string(universe.size()) +
                             " coordinates");
}

template <IndexType Index>
void expect_encodable([[maybe_unused]] std::span<const Index> indices, [[maybe_unused]] segment universe) {
    RILL_EXPECTS(indices.empty() || (universe.contains(static_cast<std::size_t>(indices.front())) &&
                                     universe.contains(static_cast<std::size_t>(indices.back()))),
                 "index coding: an index lies outside of the universe");
    RILL_EXPECTS_DEBUG(
        std::adjacent_find(indices.begin(), indices.end(), [](Index a, Index b) { return a >= b; }) == indices.end(),
        "index coding: the indices do not ascend");
}

/// The count is a stranger's, so that the check of the room is no contract that can be switched off.
template <IndexType Index>
void expect_decodable(std::size_t count, [[maybe_unused]] segment universe, std::size_t room) {
    RILL_EXPECTS(universe.empty() || universe.end - 1 <= static_cast<Index>(-1),
                 "index coding: the index type cannot number the universe");
    if (count > room)
        throw protocol_error(std::to_string(count) + " indices are announced, with room for " + std::to_string(room));
}

}  // namespace rill::inline RILL_ABI::kernel::detail

// ===== rill/kernel/index_bitmap.hpp

// Indices as a bitmap over their universe: bit j % 8 of byte j / 8 stands for the coordinate universe.begin + j.

namespace rill::inline RILL_ABI::kernel {

/// Indices as one bit for each coordinate of the universe, lowest first.
struct index_bitmap {
    template <IndexType Index>
    static std::size_t encoded_size(std::span<const Index>, segment universe) {
        return bytes_of(universe);
    }

    template <IndexType Index>
    static std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) {
        detail::expect_encodable(indices, universe);
        RILL_EXPECTS(out.size() >= bytes_of(universe), "index_bitmap: too little room for the bitmap");
        std::fill_n(out.begin(), bytes_of(universe), std::byte{0});
        for (const Index index : indices) {
            const std::size_t j = static_cast<std::size_t>(index) - universe.begin;
            out[j / 8] |= static_cast<std::byte>(1U << (j % 8));
        }
        return bytes_of(universe);
    }

    /// Throws `protocol_error` unless `bytes` hold `count` indices; to be called before room for them is made.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        if (bytes.size() != bytes_of(universe))
            detail::bad_indices(
                "bitmap", std::to_string(bytes.size()) + " bytes, expected " + std::to_string(bytes_of(universe)));
        if (detail::has_bits_behind(bytes, universe.size()))
            detail::bad_indices("bitmap", "a bit behind the last coordinate is set");
        if (const std::size_t ones = detail::count_ones(bytes); ones != count)
            detail::bad_indices("bitmap", std::to_string(ones) + " bits are set, expected " + std::to_string(count));
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        std::size_t done = 0;
        for (std::size_t i = 0; i < bytes.size(); i += 8) {
            const std::uint64_t word = detail::word_at(bytes, i);
            detail::place_some(word, static_cast<Index>(universe.begin + 8 * i), out.data() + done, count - done);
            done += static_cast<std::size_t>(std::popcount(word));
        }
    }

  private:
    static std::size_t bytes_of(segment universe) { return detail::bytes_for_bits(universe.size()); }
};

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/detail/elias_fano_avx512.hpp

// Elias-Fano's inner loop for x86-64-v4; the results are those of the portable one, bit for bit.

#if defined(RILL_DETAIL_AVX512)

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

// ===== rill/kernel/detail/avx512.hpp

// <immintrin.h>, and what surrounds the code that uses it.

#if defined(RILL_DETAIL_AVX512)

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own intrinsics, wherever they are inlined: they pass registers that hold nothing in particular.
#define RILL_DETAIL_AVX512_BEGIN                                                         \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
        _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define RILL_DETAIL_AVX512_END _Pragma("GCC diagnostic pop")
#else
#define RILL_DETAIL_AVX512_BEGIN
#define RILL_DETAIL_AVX512_END
#endif

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_SET_BITS_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_SET_BITS_AVX512_HPP

// ===== rill/kernel/detail/set_bits_avx512.hpp

// The places of the set bits of a word, for x86-64-v4.

#if defined(RILL_DETAIL_AVX512)

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

// ===== rill/kernel/detail/avx512.hpp

// <immintrin.h>, and what surrounds the code that uses it.

#if defined(RILL_DETAIL_AVX512)

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own intrinsics, wherever they are inlined: they pass registers that hold nothing in particular.
#define RILL_DETAIL_AVX512_BEGIN                                                         \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
        _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define RILL_DETAIL_AVX512_END _Pragma("GCC diagnostic pop")
#else
#define RILL_DETAIL_AVX512_BEGIN
#define RILL_DETAIL_AVX512_END
#endif

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill::inline RILL_ABI::kernel::detail {

inline __m512i steps_avx512() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }

// Compressed in registers: compressing into memory is slow on Zen 4. Most stores cross a line, and cost the most: three
// take half the time of four.
#if defined(RILL_DETAIL_VBMI2)

/// As `place_bits`.
inline std::size_t place_bits_avx512(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
    alignas(64) static constexpr auto numbers = [] {
        std::array<std::uint8_t, 64> each{};
        for (std::uint8_t i = 0; i < 64; ++i) each[i] = i;
        return each;
    }();
    const __m512i first = _mm512_set1_epi32(static_cast<int>(base));
    const __m512i places = _mm512_maskz_compress_epi8(word, _mm512_load_si512(numbers.data()));
    const auto write = [first](__m128i sixteen, std::uint32_t* to) {
        _mm512_storeu_si512(to, _mm512_add_epi32(first, _mm512_cvtepu8_epi32(sixteen)));
    };
    const auto count = static_cast<std::size_t>(std::popcount(word));
    write(_mm512_castsi512_si128(places), out);
    write(_mm512_extracti32x4_epi32(places, 1), out + 16);
    write(_mm512_extracti32x4_epi32(places, 2), out + 32);
    if (count > 48) write(_mm512_extracti32x4_epi32(places, 3), out + 48);  // rare, except where nearly all are set
    return count;
}

#else

/// As `place_bits`, each sum shifted to the left by `up`.
inline std::size_t place_shifted_avx512(std::uint64_t word, std::uint32_t base, unsigned up, std::uint32_t* out) {
    const __m128i upwards = _mm_cvtsi32_si128(static_cast<int>(up));
    const __m512i stride = _mm512_sll_epi32(_mm512_set1_epi32(16), upwards);
    __m512i places =
        _mm512_add_epi32(_mm512_sll_epi32(steps_avx512(), upwards), _mm512_set1_epi32(static_cast<int>(base << up)));
    const auto write = [&](std::uint64_t some, int after) {
        _mm512_storeu_si512(out + after, _mm512_maskz_compress_epi32(static_cast<__mmask16>(some), places));
        places = _mm512_add_epi32(places, stride);
    };
    const auto ones_below = [word](unsigned bit) { return std::popcount(word << (64 - bit)); };  // no chain of sums
    write(word, 0);
    write(word >> 16, ones_below(16));
    write(word >> 32, ones_below(32));
    write(word >> 48, ones_below(48));
    return static_cast<std::size_t>(std::popcount(word));
}

/// As `place_bits`.
inline std::size_t place_bits_avx512(std::uint64_t word, std::uint32_t base, std::uint32_t* out) {
    return place_shifted_avx512(word, base, 0, out);
}

#endif

}  // namespace rill::inline RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_SET_BITS_AVX512_HPP
#include <cstddef>

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_LOOP_HPP
#define RILL_SINGLE_KERNEL_LOOP_HPP

// ===== rill/kernel/loop.hpp

namespace rill::inline RILL_ABI::kernel::detail {

/// Trip count of inner loops: a constant, because compilers vectorise no other at -O2.
inline constexpr std::size_t block = 64;

/// Asks for the cache line of `address` ahead of its use: to the second cache, since the first has too few requests
/// under way at a time to keep the memory busy.
inline void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address, 0, 1);
#else
    static_cast<void>(address);
#endif
}

/// Whether a compiler can make a product and a sum one operation, which rounds once.
#if defined(__x86_64__) && !defined(__FMA__)
inline constexpr bool fuses_products = false;
#else
inline constexpr bool fuses_products = true;
#endif

/// Ends what the optimiser knows about the values: a product that passes through here is rounded, and never becomes
/// half of a fused multiply-add.
template <class T, std::size_t Count>
void round_here(T (&values)[Count]) {
#if defined(__GNUC__)
    asm volatile("" : "+m"(values));  // an operand, not a clobber: the array must not count as escaped
#else
    static_cast<void>(values);
#endif
}

/// Ends what the optimiser knows about a value: a loop whose loads pass through here does not become one of gathers,
/// which AVX2 makes slower than the loads one by one.
template <class T>
void load_alone(T& value) {
#if defined(__GNUC__)
    asm("" : "+r"(value));
#else
    static_cast<void>(value);
#endif
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_LOOP_HPP

#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill::inline RILL_ABI::kernel::detail {

/// As `elias_fano_join<std::uint32_t>`, 16 entries at a time: these begin at a whole byte, so that the words that hold
/// their low bits, and the shifts, are the same every time.
class elias_fano_join_avx512 {
  public:
    explicit elias_fano_join_avx512(unsigned width)
        : width_(width),
          steps_(_mm512_maskz_sllv_epi32(every, steps_avx512(), all(width))),
          stride_(all(std::uint32_t{16} << width)),
          fits_halves_(width <= 17) {
        const __m512i bits = _mm512_mullo_epi32(steps_avx512(), all(width));
        if (fits_halves_)  // 15 bits before the entry, and the entry
            word_ = _mm512_add_epi32(_mm512_mullo_epi32(_mm512_maskz_srli_epi32(every, bits, 4), all(0x10001)),
                                     all(0x10000));
        else
            word_ = _mm512_maskz_srli_epi32(every, bits, 5);
        next_ = _mm512_add_epi32(word_, all(1));
        shift_ = _mm512_and_si512(bits, all(fits_halves_ ? 15 : 31));
        back_ = _mm512_sub_epi32(all(32), shift_);  // by 32: nothing is left
        mask_ = all((std::uint32_t{1} << width) - 1);
        bytes_ = std::size_t{2} * width;
        loaded_ = (std::uint64_t{1} << bytes_) - 1;  // width < 32
    }

    /// As `place_bits`, or shifted to where the bits of a place belong in v, whichever is the faster: 1.2 times, with
    /// and without VBMI2.
    std::size_t place(std::uint64_t word, std::uint32_t first, std::uint32_t* places) const {
#if defined(RILL_DETAIL_VBMI2)
        return place_bits_avx512(word, first, places);
#else
        return place_shifted_avx512(word, first, width_, places);
#endif
    }

    void operator()(const std::uint32_t* places, const std::byte* low, std::uint32_t first, std::uint32_t base,
                    std::uint32_t* out, std::size_t count = block) {
        // base + i + v(i) is the shifted place, the low bits, and base + i less i shifted.
        __m512i rest =
            _mm512_sub_epi32(_mm512_add_epi32(steps_avx512(), all(base + first - (first << width_))), steps_);
        const __m512i stride = _mm512_sub_epi32(all(16), stride_);
        __m512i last = last_;  // copies: what is written could be a member, for all the compiler knows
        std::uint32_t descents = descents_;
        std::uint64_t compared = first == 0 ? ~std::uint64_t{1} : ~std::uint64_t{0};  // the first has none before it
        if (count < block) compared &= (std::uint64_t{1} << count) - 1;
        for (std::size_t j = 0; j < block; j += 16, rest = _mm512_add_epi32(rest, stride)) {
            const __m512i high = high_bits(places + j);
            const __m512i v = _mm512_ternarylogic_epi32(high, bits_at(low + j / 16 * bytes_), mask_, high_or_masked);
            const __m512i index = _mm512_add_epi32(v, rest);
            const __m512i before = _mm512_maskz_alignr_epi32(every, index, last, 15);
            // What exceeds 32 bits is below what is before it.
            descents |= _mm512_mask_cmple_epu32_mask(static_cast<__mmask16>(compared >> j), index, before);
            _mm512_storeu_si512(out + j, index);
            last = index;
        }
        if (first == 0 && out[0] < base) descents |= 1;
        last_ = last;
        descents_ = descents;
        end_ = out[count - 1] - base - first - static_cast<std::uint32_t>(count - 1);
    }

    bool descends() const { return descents_ != 0; }
    std::uint32_t last() const { return end_; }

  private:
    /// For the forms of intrinsics that mask: in those that do not, g++ 12 finds something uninitialised.
    static constexpr __mmask16 every = 0xFFFF;

    static __m512i all(std::uint32_t value) { return _mm512_set1_epi32(static_cast<int>(value)); }

    /// a | (b & c).
    static constexpr int high_or_masked = 0xF8;

    /// Of 16 entries of `places`.
    __m512i high_bits(const std::uint32_t* places) const {
        const __m512i each = _mm512_loadu_si512(places);
#if defined(RILL_DETAIL_VBMI2)
        return _mm512_maskz_sll_epi32(every, each, _mm_cvtsi32_si128(static_cast<int>(width_)));
#else
        return each;
#endif
    }

    /// The low bits of 16 entries, with those of later ones above them.
    __m512i bits_at(const std::byte* at) const {
        const __m512i packed = _mm512_maskz_loadu_epi8(loaded_, at);
        if (fits_halves_)  // two halves of a word from where the entry begins
            return _mm512_maskz_srlv_epi32(every, _mm512_maskz_permutexvar_epi16(~__mmask32{0}, word_, packed), shift_);
        const __m512i from =
            _mm512_maskz_srlv_epi32(every, _mm512_maskz_permutexvar_epi32(every, word_, packed), shift_);
        const __m512i more =
            _mm512_maskz_sllv_epi32(every, _mm512_maskz_permutexvar_epi32(every, next_, packed), back_);
        return _mm512_or_si512(from, more);
    }

    unsigned width_;
    __m512i steps_, stride_;  // of places that are shifted
    bool fits_halves_;
    __m512i word_, next_, shift_, back_, mask_;
    __m512i last_ = _mm512_setzero_si512();
    std::uint64_t loaded_;
    std::size_t bytes_;
    std::uint32_t descents_ = 0;
    std::uint32_t end_ = 0;
};

}  // namespace rill::inline RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif

// ===== rill/kernel/detail/elias_fano_join.hpp

// Elias-Fano's inner loop: what joins the two parts of an entry, a block at a time.

namespace rill::inline RILL_ABI::kernel::detail {

/// Entry number `i` of `width` bits, fewer than 64. Reads up to 8 bytes behind the entry.
template <class Word>
Word low_bits(const std::byte* packed, std::size_t i, unsigned width) {
    const std::size_t bit = i * width;
    const std::byte* at = packed + bit / 8;
    const unsigned shift = bit % 8;
    auto word = load_little<std::uint64_t>(at);
    load_alone(word);
    word >>= shift;
    if constexpr (sizeof(Word) == 8)
        if (width + shift > 64) word |= std::to_integer<std::uint64_t>(at[8]) << (64 - shift);
    return static_cast<Word>(word & ((std::uint64_t{1} << width) - 1));
}

/// For any machine. `Word` holds every coordinate, counted from the first of the universe.
template <class Word>
class elias_fano_join {
  public:
    explicit elias_fano_join(unsigned width) : width_(width) {}

    /// Notes where bits are set in a word of the upper part, whose first one is number `first`; as `place_bits`.
    static std::size_t place(std::uint64_t word, Word first, Word* places) { return place_bits(word, first, places); }

    /// Writes a block of `base + i + v(i)`, the first for i = `first`, and looks whether the first `count` of these v
    /// descend. `base` is the same in all calls. `places` are of their bits in the upper part; `low` can be read 8
    /// bytes beyond the block.
    void operator()(const Word* places, const std::byte* low, Word first, Word base, Word* out,
                    std::size_t count = block) {
        Word v[block + 1];
        v[0] = last_;
        for (std::size_t j = 0; j < block; ++j) v[j + 1] = low_bits<Word>(low, j, width_);
        for (std::size_t j = 0; j < block; ++j)
            v[j + 1] |= static_cast<Word>((places[j] - first - static_cast<Word>(j)) << width_);
        Word descents = 0;
        for (std::size_t j = 0; j < block; ++j) descents |= v[j + 1] < v[j] && j < count ? Word{1} : Word{0};
        for (std::size_t j = 0; j < block; ++j) out[j] = base + first + static_cast<Word>(j) + v[j + 1];
        descends_ = descends_ || descents != 0;
        last_ = v[count];
    }

    bool descends() const { return descends_; }
    /// The last v.
    Word last() const { return last_; }

  private:
    unsigned width_;
    Word last_ = 0;
    bool descends_ = false;
};

}  // namespace rill::inline RILL_ABI::kernel::detail

// ===== rill/kernel/detail/elias_fano_decoder.hpp

// Reading Elias-Fano's two parts.

namespace rill::inline RILL_ABI::kernel::detail {

/// The two parts of `count` indices in a universe of `size` coordinates, at least as many.
struct elias_fano_layout {
    std::size_t count, greatest;  ///< of the v; the most that one can be
    unsigned width = 0;           ///< of their low bits
    std::size_t low_bytes, upper_bits, upper_bytes;

    elias_fano_layout(std::size_t n, std::size_t size) : count(n), greatest(n == 0 ? 0 : size - n) {
        if (n != 0 && greatest / n != 0) width = static_cast<unsigned>(std::bit_width(greatest / n)) - 1;
        low_bytes = bytes_for_bits(n * width);  // n << width <= size: nothing overflows
        upper_bits = n + (greatest >> width);
        upper_bytes = bytes_for_bits(upper_bits);
    }
    std::size_t bytes() const { return low_bytes + upper_bytes; }
};

/// The inner loops for any machine.
struct portable_elias_fano {
    template <class Word>
    using join = elias_fano_join<Word>;
};

#if defined(RILL_DETAIL_AVX512)
/// Those for this one.
struct native_elias_fano {
    template <class Word>
    using join = std::conditional_t<sizeof(Word) == 4, elias_fano_join_avx512, elias_fano_join<Word>>;
};
#else
using native_elias_fano = portable_elias_fano;
#endif

/// Works in two alternating phases: set bits of the upper part are placed until some blocks are full, then these are
/// joined with their low bits. `Word` holds every coordinate, counted from the first of the universe.
template <class Loops, class Word, IndexType Index>
class elias_fano_decoder {
  public:
    elias_fano_decoder(const elias_fano_layout& layout, byte_view bytes, std::size_t begin, Index* out)
        : layout_(layout),
          low_(bytes.data()),
          upper_(bytes.subspan(layout.low_bytes)),
          begin_(begin),
          base_(is_direct ? static_cast<Word>(begin) : Word{0}),
          out_(out),
          join_(layout.width) {}

    /// False where an encoder does not write such bytes. Sizes and padding have been checked.
    bool run() {
        for (std::size_t at = 0; at < upper_.size();) {
            at = place_many(at);
            if (held_ < at_once) continue;
            if (layout_.count - done_ < held_) return false;
            join_blocks();
        }
        if (layout_.count - done_ != held_) return false;
        join_blocks();
        if (held_ > 0) join_rest();
        return !join_.descends() && join_.last() <= layout_.greatest;
    }

  private:
    static constexpr std::size_t at_once = 8 * block;
    static constexpr bool is_direct = sizeof(Index) == sizeof(Word);

    /// From byte `at` of the upper part on, until enough are held; returns how far it has come.
    std::size_t place_many(std::size_t at) {
        const byte_view upper = upper_;  // copies: what is written could be a member, for all the compiler knows
        std::size_t held = held_;
        for (; at < upper.size() && held < at_once; at += 8)
            held += join_.place(word_at(upper, at), static_cast<Word>(8 * at), places_ + held);
        held_ = held;
        return at;
    }

    void join_blocks() {
        std::size_t joined = 0;
        for (; held_ - joined >= block; joined += block) {
            if constexpr (is_direct) {
                join_(places_ + joined, low_, static_cast<Word>(done_), base_, out_ + done_);
            } else {
                Word offsets[block];
                join_(places_ + joined, low_, static_cast<Word>(done_), base_, offsets);
                for (std::size_t j = 0; j < block; ++j) out_[done_ + j] = begin_ + offsets[j];
            }
            low_ += block / 8 * layout_.width;
            done_ += block;
        }
        if (joined == 0) return;
        std::memcpy(places_, places_ + joined, block * sizeof(Word));
        held_ -= joined;
    }

    void join_rest() {
        std::byte padded[block * sizeof(Word) + 8] = {};
        std::memcpy(padded, low_, bytes_for_bits(held_ * layout_.width));
        Word offsets[block];
        join_(places_, padded, static_cast<Word>(done_), base_, offsets, held_);
        for (std::size_t j = 0; j < held_; ++j)
            out_[done_ + j] = is_direct ? static_cast<Index>(offsets[j]) : static_cast<Index>(begin_ + offsets[j]);
    }

    const elias_fano_layout& layout_;
    const std::byte* low_;  // of the next entry
    byte_view upper_;
    std::size_t begin_;
    Word base_;  // of what is joined: the first of the universe, if words hold it
    Index* out_;
    typename Loops::template join<Word> join_;
    std::size_t held_ = 0, done_ = 0;  // placed; joined before them
    Word places_[at_once + 64 + place_slack];
};

/// Decodes with the narrowest words that hold the universe.
template <class Loops, IndexType Index>
bool decode_elias_fano(const elias_fano_layout& layout, byte_view bytes, std::size_t begin, Index* out) {
    if constexpr (sizeof(Index) == 8)
        if (layout.greatest + layout.count - 1 > UINT32_MAX)
            return elias_fano_decoder<Loops, std::uint64_t, Index>(layout, bytes, begin, out).run();
    return elias_fano_decoder<Loops, std::uint32_t, Index>(layout, bytes, begin, out).run();
}

}  // namespace rill::inline RILL_ABI::kernel::detail

// ===== rill/kernel/index_gaps.hpp

// Indices as bit-packed gaps (frame of reference).
//
// The gap of an index is the number of coordinates skipped since the previous one, or since universe.begin. 128 gaps
// form a block: a byte with the width w that its largest gap needs, then the gaps with w bits each, low bits first,
// filled up with zero bits to a whole byte. The last block may be shorter.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

inline constexpr std::size_t gap_block = 128;
inline constexpr std::size_t gap_padding = 16;  // so that the words that hold the last gap can be read and written

constexpr std::size_t gap_bytes(std::size_t count, unsigned width) { return (count * width + 7) / 8; }

/// The gaps of up to 128 indices, and the bits that the widest of them needs.
template <IndexType Index>
unsigned make_gaps(std::span<const Index> indices, Index lowest, Index* gaps) {
    gaps[0] = static_cast<Index>(indices[0] - lowest);
    Index all = gaps[0];
    if (indices.size() == gap_block)
        for (std::size_t i = 1; i < gap_block; ++i)
            all |= gaps[i] = static_cast<Index>(indices[i] - indices[i - 1] - 1);
    else
        for (std::size_t i = 1; i < indices.size(); ++i)
            all |= gaps[i] = static_cast<Index>(indices[i] - indices[i - 1] - 1);
    return static_cast<unsigned>(std::bit_width(all));
}

/// Writes `count` gaps of `width` bits; `out` is padded.
template <IndexType Index>
void pack(const Index* gaps, std::size_t count, unsigned width, std::byte* out) {
    std::uint64_t word = 0;
    unsigned filled = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t gap = gaps[i];
        word |= gap << filled;
        filled += width;
        if (filled < 64) continue;
        store_little(out, word);
        out += 8;
        filled -= 64;
        word = filled == 0 ? 0 : gap >> (width - filled);
    }
    store_little(out, word);
}

/// The gap number `i` of `width` bits; `packed` is padded.
inline std::uint64_t unpack(const std::byte* packed, std::size_t i, unsigned width) {
    const std::size_t bit = i * width;
    const std::byte* at = packed + bit / 8;
    const unsigned shift = bit % 8;
    std::uint64_t word = load_little<std::uint64_t>(at) >> shift;
    if (width + shift > 64) word |= load_little<std::uint64_t>(at + 8) << (64 - shift);
    return width == 64 ? word : word & ((std::uint64_t{1} << width) - 1);
}

}  // namespace detail

/// Indices as the numbers of coordinates between them, bit-packed by blocks of 128.
struct packed_gaps {
    /// Exact; costs a pass over the indices.
    template <IndexType Index>
    static std::size_t encoded_size(std::span<const Index> indices, segment universe) {
        Index gaps[detail::gap_block];
        std::size_t size = 0;
        for_each_block(indices, universe, [&](auto part, Index lowest) {
            size += 1 + detail::gap_bytes(part.size(), detail::make_gaps(part, lowest, gaps));
        });
        return size;
    }

    template <IndexType Index>
    static std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) {
        detail::expect_encodable(indices, universe);
        Index gaps[detail::gap_block];
        std::byte packed[detail::gap_block * 8 + detail::gap_padding];
        std::size_t size = 0;
        for_each_block(indices, universe, [&](auto part, Index lowest) {
            const unsigned width = detail::make_gaps(part, lowest, gaps);
            const std::size_t bytes = detail::gap_bytes(part.size(), width);
            RILL_EXPECTS(out.size() - size > bytes, "packed_gaps: too little room for the indices");
            detail::pack(gaps, part.size(), width, packed);
            out[size] = static_cast<std::byte>(width);
            std::memcpy(out.data() + size + 1, packed, bytes);
            size += 1 + bytes;
        });
        return size;
    }

    /// Throws `protocol_error` unless `bytes` can hold `count` indices; to be called before room for them is made.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        const std::size_t blocks = count / detail::gap_block + (count % detail::gap_block != 0 ? 1U : 0U);
        if (bytes.size() < blocks)
            detail::bad_indices("packed-gap",
                                std::to_string(bytes.size()) + " bytes cannot hold " + std::to_string(count));
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        std::size_t lowest = universe.begin;
        for (std::size_t first = 0; first < count; first += detail::gap_block) {
            const std::size_t part = std::min(detail::gap_block, count - first);
            bytes = decode_block(bytes, first, out.subspan(first, part), lowest, universe.end);
        }
        if (!bytes.empty()) detail::bad_indices("packed-gap", std::to_string(bytes.size()) + " bytes too many");
    }

  private:
    /// Calls visit(up to 128 indices, the lowest value that the first of them could have).
    template <IndexType Index, class Visit>
    static void for_each_block(std::span<const Index> indices, segment universe, Visit visit) {
        Index lowest = static_cast<Index>(universe.begin);
        for (std::size_t first = 0; first < indices.size(); first += detail::gap_block) {
            const auto part = indices.subspan(first, std::min(detail::gap_block, indices.size() - first));
            visit(part, lowest);
            lowest = static_cast<Index>(part.back() + 1);
        }
    }

    /// Decodes one block; returns the bytes behind it and advances `lowest` past its last index.
    template <IndexType Index>
    static byte_view decode_block(byte_view bytes, std::size_t first, std::span<Index> out, std::size_t& lowest,
                                  std::size_t end) {
        if (bytes.empty()) detail::bad_indices("packed-gap", "no bytes left for number " + std::to_string(first));
        const unsigned width = std::to_integer<unsigned>(bytes[0]);
        if (width > sizeof(Index) * 8)
            detail::bad_indices("packed-gap",
                                "a width of " + std::to_string(width) + " bits at number " + std::to_string(first));
        const std::size_t size = detail::gap_bytes(out.size(), width);
        if (bytes.size() - 1 < size)
            detail::bad_indices("packed-gap", "the block at number " + std::to_string(first) + " is cut off");

        std::byte packed[detail::gap_block * 8 + detail::gap_padding];
        std::memcpy(packed, bytes.data() + 1, size);
        std::memset(packed + size, 0, detail::gap_padding);
        const std::size_t used = out.size() * width % 8;
        if (used != 0 && (std::to_integer<unsigned>(packed[size - 1]) >> used) != 0)
            detail::bad_indices("packed-gap", "a bit behind the block at number " + std::to_string(first) + " is set");
        std::size_t next = lowest;
        for (std::size_t i = 0; i < out.size(); ++i) {
            const std::uint64_t gap = detail::unpack(packed, i, width);
            if (gap >= end - next)
                detail::bad_indices("packed-gap", "number " + std::to_string(first + i) + " lies behind the universe");
            out[i] = static_cast<Index>(next + gap);
            next += static_cast<std::size_t>(gap) + 1;
        }
        lowest = next;
        return bytes.subspan(1 + size);
    }
};

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/index_elias_fano.hpp

// Indices by Elias and Fano: some low bits of each as they are, the rest in unary.
//
// n strictly ascending indices of a universe of u coordinates are n numbers v(i) = index(i) - universe.begin - i that
// do not descend and are at most u - n. First come the lowest w bits of each, w = floor(log2((u - n) / n)), or 0 if n >
// u - n, low bits first, filled up with zero bits to a whole byte; then n + ((u - n) >> w) bits, of which those at
// (v(i) >> w) + i are set, filled up likewise. So n and u tell the size. Where w is 0, and n not, it is the bitmap.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// Sets bits of zeroed memory in ascending order, without a branch or a load for each.
class upper_bits {
  public:
    explicit upper_bits(byte_span out) : out_(out) {}

    /// Sets the bits of a block, or of `count` entries.
    template <class Word>
    void set(const Word* places, std::size_t count) {
        if (places[count - 1] / 64 >= out_.size() / 8) return set_by_bytes(places, count);
        std::byte* const out = out_.data();
        std::uint64_t word = word_;  // copies: what is written could be a member, for all the compiler knows
        std::size_t before = at_;
        for (std::size_t j = 0; j < count; ++j) {
            const std::size_t at = static_cast<std::size_t>(places[j] / 64);
            word = (at == before ? word : 0) | std::uint64_t{1} << (places[j] % 64);
            before = at;
            store_little(out + 8 * at, word);
        }
        word_ = word;
        at_ = before;
    }

  private:
    /// Where the last word would reach behind the memory.
    template <class Word>
    void set_by_bytes(const Word* places, std::size_t count) {
        for (std::size_t j = 0; j < count; ++j)
            out_[static_cast<std::size_t>(places[j] / 8)] |= static_cast<std::byte>(1U << (places[j] % 8));
    }

    byte_span out_;
    std::uint64_t word_ = 0;  // as it stands at at_
    std::size_t at_ = 0;
};

}  // namespace detail

/// Indices by Elias and Fano (1971, 1974), less their own number each, because no two are equal: within 0.6 bits an
/// index of the entropy, of indices at random, at every density.
struct elias_fano {
    template <IndexType Index>
    static std::size_t encoded_size(std::span<const Index> indices, segment universe) {
        return size_of(indices.size(), universe);
    }

    /// The bytes of any `count` indices of the universe.
    static std::size_t size_of(std::size_t count, segment universe) {
        return detail::elias_fano_layout(count, universe.size()).bytes();
    }

    template <IndexType Index>
    static std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) {
        detail::expect_encodable(indices, universe);
        const detail::elias_fano_layout layout(indices.size(), universe.size());
        RILL_EXPECTS(out.size() >= layout.bytes(), "elias_fano: too little room for the indices");
        const byte_span upper = out.subspan(layout.low_bytes, layout.upper_bytes);
        std::fill(upper.begin(), upper.end(), std::byte{0});
        detail::upper_bits bits(upper);
        for (std::size_t first = 0; first < indices.size(); first += detail::block)
            encode_block(indices, first, static_cast<Index>(universe.begin), layout,
                         out.subspan(first / 8 * layout.width), bits);
        return layout.bytes();
    }

    /// Throws `protocol_error` unless `bytes` can hold `count` indices; to be called before room for them is made.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        if (const std::size_t due = size_of(count, universe); bytes.size() != due)
            detail::bad_indices("Elias-Fano", std::to_string(bytes.size()) + " bytes, expected " + std::to_string(due));
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        decode_by<detail::native_elias_fano>(bytes, count, universe, out);
    }

    /// The same with the given inner loops.
    template <class Loops, IndexType Index>
    static void decode_by(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        if (count == 0) return;
        const detail::elias_fano_layout layout(count, universe.size());
        if (detail::has_bits_behind(bytes.first(layout.low_bytes), count * layout.width))
            detail::bad_indices("Elias-Fano", "a bit behind the low bits is set");
        if (detail::has_bits_behind(bytes, layout.upper_bits))
            detail::bad_indices("Elias-Fano", "a bit behind the last is set");
        if (!detail::decode_elias_fano<Loops>(layout, bytes, universe.begin, out.data()))
            refuse(bytes, layout, universe);
    }

  private:
    template <IndexType Index>
    static void encode_block(std::span<const Index> indices, std::size_t first, Index begin,
                             const detail::elias_fano_layout& layout, byte_span low, detail::upper_bits& bits) {
        constexpr std::size_t block = detail::block;
        const std::size_t count = std::min(block, indices.size() - first);
        Index v[block], places[block];
        std::memcpy(v, indices.data() + first, count * sizeof(Index));
        std::fill(v + count, v + block, Index{0});
        const Index mask = static_cast<Index>((std::uint64_t{1} << layout.width) - 1);
        for (std::size_t j = 0; j < block; ++j) v[j] -= static_cast<Index>(begin + first + j);
        for (std::size_t j = 0; j < block; ++j)
            places[j] = static_cast<Index>((v[j] >> layout.width) + static_cast<Index>(first + j));
        for (auto& each : v) each &= mask;
        bits.set(places, count);
        if (layout.width == 0) return;
        std::byte packed[block * 8 + detail::gap_padding];
        detail::pack(v, count, layout.width, packed);
        std::memcpy(low.data(), packed, detail::gap_bytes(count, layout.width));
    }

    /// Says what is wrong.
    [[noreturn]] static void refuse(byte_view bytes, const detail::elias_fano_layout& layout, segment universe) {
        const byte_view upper = bytes.subspan(layout.low_bytes);
        if (const std::size_t ones = detail::count_ones(upper); ones != layout.count)
            detail::bad_indices("Elias-Fano", std::to_string(ones) + " bits are set in the upper part, expected " +
                                                  std::to_string(layout.count));
        std::size_t lowest = universe.begin, i = 0, place = 0;
        for (;; ++i, ++place) {  // to the first that is out of order: there is one
            while ((std::to_integer<unsigned>(upper[place / 8]) >> (place % 8) & 1U) == 0) ++place;
            std::uint64_t low = 0;
            for (unsigned b = layout.width; b-- > 0;) {
                const std::size_t bit = i * layout.width + b;
                low = 2 * low + (std::to_integer<unsigned>(bytes[bit / 8]) >> (bit % 8) & 1U);
            }
            const std::size_t v = ((place - i) << layout.width) + static_cast<std::size_t>(low);
            if (v > layout.greatest)
                detail::bad_indices("Elias-Fano", "number " + std::to_string(i) + " lies behind the universe");
            const std::size_t index = universe.begin + v + i;
            if (index < lowest) detail::bad_index("Elias-Fano", i, index, lowest, universe.end);
            lowest = index + 1;
        }
    }
};

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/detail/huffman_bytes.hpp

// A prefix code for the bytes of a bitmap, and how bits are written and read.

namespace rill::inline RILL_ABI::kernel::detail {

/// The bytes by the number of their set bits, then by value.
struct byte_ranks {
    std::uint8_t bytes[256] = {};

    constexpr byte_ranks() {
        std::uint8_t ones[256] = {};
        unsigned next[9] = {0, 1, 9, 37, 93, 163, 219, 247, 255};  // of each number of set bits
        for (unsigned byte = 0; byte < 256; ++byte) {
            ones[byte] = static_cast<std::uint8_t>(ones[byte / 2] + byte % 2);
            bytes[next[ones[byte]]++] = static_cast<std::uint8_t>(byte);
        }
    }
};
inline constexpr byte_ranks bytes_by_ones;

/// Huffman's code for the bytes of a bitmap of which `count` of `size` bits are set at random, with at most 12 bits a
/// byte. Made of integers alone, the same everywhere: it need not be sent. Some 2 us.
class byte_code {
  public:
    static constexpr unsigned longest = 12;

    byte_code(std::size_t count, std::size_t size) {
        const bool is_full = count > size - count;  // then clear bits are the rare ones
        std::uint16_t of_length[longest + 1] = {};
        count_lengths(is_full ? size - count : count, size, of_length);
        std::uint32_t next = 0;  // code, its first bit the highest
        std::size_t rank = 0;    // bytes with rarer bits have longer codes
        for (unsigned bits = 1; bits <= longest; ++bits, next <<= 1)
            for (unsigned n = of_length[bits]; n > 0; --n, ++rank, ++next) {
                const std::size_t byte = bytes_by_ones.bytes[rank] ^ (is_full ? 255U : 0U);
                lengths_[byte] = static_cast<std::uint8_t>(bits);
                codes_[byte] = reversed(next, bits);
            }
    }

    unsigned length(std::byte byte) const { return lengths_[std::to_integer<unsigned>(byte)]; }
    /// Its first bit is the lowest.
    std::uint16_t code(std::byte byte) const { return codes_[std::to_integer<unsigned>(byte)]; }

  private:
    static std::uint16_t reversed(std::uint32_t code, unsigned bits) {
        std::uint32_t out = 0;
        for (unsigned i = 0; i < bits; ++i) out |= (code >> i & 1U) << (bits - 1 - i);
        return static_cast<std::uint16_t>(out);
    }

    /// How many codes have each length: Huffman's, and then the long ones shortened.
    static void count_lengths(std::size_t rare, std::size_t size, std::uint16_t* of_length) {
        constexpr std::size_t leaves = 256, nodes = 2 * leaves - 1;
        std::uint64_t weights[nodes];
        std::uint16_t parents[nodes], depths[nodes];
        weigh(rare, size, weights);
        std::size_t leaf = 0, inner = leaves;  // both queues ascend
        for (std::size_t node = leaves; node < nodes; ++node) {
            weights[node] = 0;
            for (int child = 0; child < 2; ++child) {
                const bool is_leaf = leaf < leaves && (inner == node || weights[leaf] <= weights[inner]);
                const std::size_t least = is_leaf ? leaf++ : inner++;
                weights[node] += weights[least];
                parents[least] = static_cast<std::uint16_t>(node);
            }
        }
        depths[nodes - 1] = 0;
        std::size_t taken = 0;  // of 2^longest codes
        for (std::size_t node = nodes - 1; node-- > 0;) {
            depths[node] = static_cast<std::uint16_t>(depths[parents[node]] + 1);
            if (node >= leaves) continue;
            const unsigned bits = std::min<unsigned>(depths[node], longest);
            ++of_length[bits];
            taken += std::size_t{1} << (longest - bits);
        }
        for (; taken > std::size_t{1} << longest; --taken) {  // a longest code moves in beside the next shorter one
            unsigned bits = longest - 1;
            while (of_length[bits] == 0) --bits;
            --of_length[longest];
            --of_length[bits];
            of_length[bits + 1] = static_cast<std::uint16_t>(of_length[bits + 1] + 2);
        }
    }

    /// 2^31 times the chance of each byte, in ascending order. None is taken to be rarer than one of 2^12, which leaves
    /// few codes to shorten: at densities from 6 % on the bytes are then those of the best code of at most 12 bits.
    static void weigh(std::size_t rare, std::size_t size, std::uint64_t* weights) {
        const auto scale = std::max(static_cast<unsigned>(std::bit_width(size)), 32U) - 32;
        constexpr std::uint64_t one = 1U << 16, one_in_longest = std::uint64_t{1} << (31 - longest);
        const std::uint64_t p = std::max<std::uint64_t>((std::uint64_t{rare >> scale} << 16) / (size >> scale), 1);
        for (std::size_t ones = 0, rank = 0; ones <= 8; ++ones) {
            std::uint64_t weight = std::uint64_t{1} << 31;
            for (std::size_t bit = 0; bit < 8; ++bit) weight = weight * (bit < ones ? p : one - p) >> 16;
            for (; rank < 256 && static_cast<std::size_t>(std::popcount(bytes_by_ones.bytes[rank])) == ones; ++rank)
                weights[255 - rank] = std::max(weight, one_in_longest);
        }
    }

    std::uint8_t lengths_[256];
    std::uint16_t codes_[256];
};

/// Of every 12 bits that may come next, the byte that they begin with and its bits. 8 KiB.
class byte_table {
  public:
    explicit byte_table(const byte_code& code) {
        for (unsigned byte = 0; byte < 256; ++byte) {
            const unsigned bits = code.length(static_cast<std::byte>(byte));
            const auto entry = static_cast<std::uint16_t>(bits << 8 | byte);
            for (std::size_t next = code.code(static_cast<std::byte>(byte)); next < size;
                 next += std::size_t{1} << bits)
                entries_[next] = entry;
        }
    }
    unsigned operator[](std::uint64_t bits) const { return entries_[bits % size]; }

  private:
    static constexpr std::size_t size = std::size_t{1} << byte_code::longest;

    std::uint16_t entries_[size];
};

/// Writes bits, low ones first, into memory that ends with them.
class bit_writer {
  public:
    bit_writer() = default;
    explicit bit_writer(byte_span out) : out_(out) {}

    /// No more than 56 bits between two calls of `flush`.
    void put(std::uint64_t code, unsigned bits) {
        word_ |= code << held_;
        held_ += bits;
    }
    void flush() {
        if (out_.size() - at_ >= 8)
            store_little(out_.data() + at_, word_);
        else
            for (std::size_t i = 0; at_ + i < out_.size(); ++i) out_[at_ + i] = static_cast<std::byte>(word_ >> 8 * i);
        at_ += held_ / 8;
        word_ = word_ >> (held_ - held_ % 8);
        held_ %= 8;
    }

  private:
    byte_span out_;
    std::size_t at_ = 0;
    std::uint64_t word_ = 0;
    unsigned held_ = 0;  // at most 7 after a flush
};

/// Reads them. What it finds behind its part of the bytes, or zeros behind all, is told by `used`.
class bit_reader {
  public:
    bit_reader() = default;
    bit_reader(byte_view all, std::size_t begin) : all_(all), begin_(begin), at_(begin) {}

    /// Afterwards 56 bits can be read.
    void refill() {
        word_ |= next() << held_;
        at_ += (63 - held_) / 8;
        held_ |= 56;
    }
    std::uint64_t symbol(const byte_table& table) {
        unsigned entry = table[word_];
        load_alone(entry);
        word_ >>= entry >> 8;
        held_ -= entry >> 8;
        return entry & 255U;
    }
    /// Bits read so far.
    std::size_t used() const { return 8 * (at_ - begin_) - held_; }

  private:
    std::uint64_t next() const {
        if (all_.size() >= 8 && at_ <= all_.size() - 8) return load_little<std::uint64_t>(all_.data() + at_);
        std::byte padded[8] = {};
        if (at_ < all_.size()) std::memcpy(padded, all_.data() + at_, all_.size() - at_);
        return load_little<std::uint64_t>(padded);
    }

    byte_view all_;
    std::size_t begin_ = 0, at_ = 0;
    std::uint64_t word_ = 0;
    unsigned held_ = 0;
};

}  // namespace rill::inline RILL_ABI::kernel::detail

// ===== rill/kernel/index_huffman.hpp

// Indices as a bitmap whose bytes are coded by Huffman, in four streams.
//
// The bytes of the bitmap (index_bitmap.hpp) in the code that `byte_code` makes of their number and the universe's
// size: canonical, shorter codes for bytes with fewer set bits (with more, if more than half of all are set), then by
// value. Byte b goes to stream b % 4, its code from the first bit to the last into the lowest free bits; streams are
// filled up with zero bits. First come the lengths in bytes of the first three streams, 8 bytes each, then the streams.
// No index: no bytes.

namespace rill::inline RILL_ABI::kernel {

/// The bitmap, its bytes coded by Huffman: near the entropy of indices at random from a density of a tenth on.
struct huffman_bitmap {
    /// Exact; costs a pass over the parts of the bitmap in which something is set.
    template <IndexType Index>
    static std::size_t encoded_size(std::span<const Index> indices, segment universe) {
        if (indices.empty()) return 0;
        const detail::byte_code code(indices.size(), universe.size());
        const auto lengths = stream_lengths(indices, universe, code);
        return header_bytes + lengths[0] + lengths[1] + lengths[2] + lengths[3];
    }

    /// What no indices of that universe can stay below.
    static std::size_t least_size(std::size_t count, segment universe) {
        return count == 0 ? 0 : header_bytes + detail::bytes_for_bits(detail::bytes_for_bits(universe.size()));
    }

    /// What is to be expected of indices at random.
    static double expected_size(std::size_t count, segment universe) {
        if (count == 0) return 0;
        const detail::byte_code code(count, universe.size());
        const double p = static_cast<double>(count) / static_cast<double>(universe.size());
        double bits = 0;  // of a byte
        for (unsigned byte = 0; byte < 256; ++byte) {
            double chance = 1;
            for (unsigned bit = 0; bit < 8; ++bit) chance *= (byte >> bit & 1U) != 0 ? p : 1 - p;
            bits += chance * code.length(static_cast<std::byte>(byte));
        }
        const auto bytes = static_cast<double>(detail::bytes_for_bits(universe.size()));
        return header_bytes + bytes * bits / 8 + streams / 2.0;  // half of the last byte of each is filled up
    }

    template <IndexType Index>
    static std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) {
        detail::expect_encodable(indices, universe);
        if (indices.empty()) return 0;
        const detail::byte_code code(indices.size(), universe.size());
        const auto lengths = stream_lengths(indices, universe, code);
        std::array<detail::bit_writer, streams> to;
        std::size_t size = header_bytes;
        for (std::size_t s = 0; s < streams; ++s) {
            RILL_EXPECTS(out.size() - size >= lengths[s], "huffman_bitmap: too little room for the indices");
            if (s + 1 < streams) detail::store_little(out.data() + 8 * s, std::uint64_t{lengths[s]});
            to[s] = detail::bit_writer(out.subspan(size, lengths[s]));
            size += lengths[s];
        }
        const std::size_t all = detail::bytes_for_bits(universe.size());
        for (std::size_t first = 0, i = 0; first < all; first += part_bytes) {
            std::byte bytes[part_bytes];
            i = fill_part(indices, universe, first, i, bytes);
            write_part(code, bytes, std::min(part_bytes, all - first), to);
        }
        return size;
    }

    /// Throws `protocol_error` unless `bytes` can hold `count` indices; to be called before room for them is made.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        if (bytes.size() < least_size(count, universe) || (count == 0 && !bytes.empty()))
            detail::bad_indices("Huffman-coded", std::to_string(bytes.size()) + " bytes cannot hold " +
                                                     std::to_string(count) + " of " + std::to_string(universe.size()) +
                                                     " coordinates");
        if (count == 0) return;
        std::size_t left = bytes.size() - header_bytes;
        for (std::size_t s = 0; s + 1 < streams; ++s) {
            const auto length = detail::load_little<std::uint64_t>(bytes.data() + 8 * s);
            if (length > left)
                detail::bad_indices("Huffman-coded", "stream " + std::to_string(s) + " of " + std::to_string(length) +
                                                         " bytes, of which " + std::to_string(left) + " are left");
            left -= static_cast<std::size_t>(length);
        }
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        if (count == 0) return;
        const detail::byte_table table(detail::byte_code(count, universe.size()));
        std::array<detail::bit_reader, streams> from;
        for (std::size_t s = 0, begin = header_bytes; s < streams; ++s) {
            from[s] = detail::bit_reader(bytes, begin);
            begin += length_of(bytes, s);
        }
        const bitmap_end end = place_all(table, from, count, universe, out.data());
        check_ends(bytes, from);
        if (end.is_beyond) detail::bad_indices("Huffman-coded", "a bit behind the last coordinate is set");
        if (end.ones != count)
            detail::bad_indices("Huffman-coded",
                                std::to_string(end.ones) + " bits are set, expected " + std::to_string(count));
    }

  private:
    static constexpr std::size_t streams = 4;
    static constexpr std::size_t header_bytes = 8 * (streams - 1);
    static constexpr std::size_t at_once = 4 * streams;  // bytes whose codes fit into a word for each stream
    static constexpr std::size_t part_words = 64;
    static constexpr std::size_t part_bytes = 8 * part_words;

    /// The length of a stream of checked bytes.
    static std::size_t length_of(byte_view bytes, std::size_t stream) {
        std::size_t left = bytes.size() - header_bytes;
        for (std::size_t s = 0; s + 1 < streams; ++s) {
            const auto length = static_cast<std::size_t>(detail::load_little<std::uint64_t>(bytes.data() + 8 * s));
            if (s == stream) return length;
            left -= length;
        }
        return left;
    }

    /// Makes the part of the bitmap that begins with byte `first`, of the indices from number `i` on; returns the
    /// number of the first that lies behind it.
    template <IndexType Index>
    static std::size_t fill_part(std::span<const Index> indices, segment universe, std::size_t first, std::size_t i,
                                 std::byte* bytes) {
        std::fill_n(bytes, part_bytes, std::byte{0});
        for (; i < indices.size(); ++i) {
            const std::size_t j = static_cast<std::size_t>(indices[i]) - universe.begin - 8 * first;
            if (j >= 8 * part_bytes) break;
            bytes[j / 8] |= static_cast<std::byte>(1U << (j % 8));
        }
        return i;
    }

    /// Of `count` bytes, those of a stream.
    static std::size_t share(std::size_t count, std::size_t stream) { return (count + streams - 1 - stream) / streams; }

    /// Costs nothing for parts in which nothing is set.
    template <IndexType Index>
    static std::array<std::size_t, streams> stream_lengths(std::span<const Index> indices, segment universe,
                                                           const detail::byte_code& code) {
        const std::size_t all = detail::bytes_for_bits(universe.size()), zero = code.length(std::byte{0});
        std::array<std::size_t, streams> bits;
        for (std::size_t s = 0; s < streams; ++s) bits[s] = zero * share(all, s);
        for (std::size_t i = 0; i < indices.size();) {
            std::byte bytes[part_bytes];
            const std::size_t byte = (static_cast<std::size_t>(indices[i]) - universe.begin) / 8;
            const std::size_t first = byte / part_bytes * part_bytes, count = std::min(part_bytes, all - first);
            i = fill_part(indices, universe, first, i, bytes);
            unsigned part[streams] = {};
            std::size_t b = 0;
            for (; b + streams <= count; b += streams)
                for (std::size_t s = 0; s < streams; ++s) part[s] += code.length(bytes[b + s]);
            for (; b < count; ++b) part[b % streams] += code.length(bytes[b]);
            for (std::size_t s = 0; s < streams; ++s) bits[s] += part[s] - zero * share(count, s);
        }
        for (std::size_t& each : bits) each = detail::bytes_for_bits(each);
        return bits;
    }

    static void write_part(const detail::byte_code& code, const std::byte* bytes, std::size_t count,
                           std::array<detail::bit_writer, streams>& to) {
        for (std::size_t first = 0; first < count; first += at_once)
            for (std::size_t s = 0; s < streams; ++s) {
                for (std::size_t b = first + s; b < std::min(count, first + at_once); b += streams)
                    to[s].put(code.code(bytes[b]), code.length(bytes[b]));
                to[s].flush();
            }
    }

    /// The next byte of each stream.
    static std::uint64_t next_bytes(const detail::byte_table& table, std::array<detail::bit_reader, streams>& from) {
        const std::uint64_t a = from[0].symbol(table), b = from[1].symbol(table), c = from[2].symbol(table),
                            d = from[3].symbol(table);
        return a | b << 8 | c << 16 | d << 24;
    }

    /// What is known when the bitmap has been read: how many bits are set; one of them behind the last coordinate.
    struct bitmap_end {
        std::size_t ones;
        bool is_beyond;
    };

    /// Reads the bitmap and writes what is set in it, `count` at most.
    template <IndexType Index>
    static bitmap_end place_all(const detail::byte_table& table, std::array<detail::bit_reader, streams>& readers,
                                std::size_t count, segment universe, Index* out) {
        std::uint64_t words[part_words];
        std::size_t left = detail::bytes_for_bits(universe.size()), base = universe.begin, ones = 0, n = 0;
        const auto place = [&] {
            for (std::size_t w = 0; w < n; ++w, base += 64) {
                const std::size_t done = std::min(ones, count);
                detail::place_some(words[w], static_cast<Index>(base), out + done, count - done);
                ones += static_cast<std::size_t>(std::popcount(words[w]));
            }
        };
        std::array<detail::bit_reader, streams> from = readers;  // a copy without an address
        for (; left >= at_once; left -= 8 * n) {
            n = std::min(part_words, left / at_once * 2);
            for (std::size_t w = 0; w < n; w += 2) {
                from[0].refill(), from[1].refill(), from[2].refill(), from[3].refill();
                words[w] = next_bytes(table, from);
                words[w] |= next_bytes(table, from) << 32;
                words[w + 1] = next_bytes(table, from);
                words[w + 1] |= next_bytes(table, from) << 32;
            }
            place();
        }
        readers = from;
        if (left > 0) {
            words[0] = words[1] = 0;
            n = (left + 7) / 8;
            for (auto& each : readers) each.refill();
            for (std::size_t i = 0; i < left; ++i) words[i / 8] |= readers[i % streams].symbol(table) << (i % 8 * 8);
            place();
        }
        const std::size_t used = universe.size() % 64;
        return {ones, used != 0 && words[n - 1] >> used != 0};
    }

    static void check_ends(byte_view bytes, const std::array<detail::bit_reader, streams>& from) {
        for (std::size_t s = 0, end = header_bytes; s < streams; ++s) {
            const std::size_t length = length_of(bytes, s), used = from[s].used();
            end += length;
            if (detail::bytes_for_bits(used) != length)
                detail::bad_indices("Huffman-coded", "stream " + std::to_string(s) + " has " + std::to_string(length) +
                                                         " bytes, and " + std::to_string(used) + " bits are read");
            if (detail::has_bits_behind(bytes.first(end), used))
                detail::bad_indices("Huffman-coded", "a bit behind stream " + std::to_string(s) + " is set");
        }
    }
};

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/index_raw.hpp

// Indices as they are: little-endian, in the width of the index type.

namespace rill::inline RILL_ABI::kernel {

/// Indices as they are, little-endian, `sizeof(Index)` bytes each.
struct raw_indices {
    template <IndexType Index>
    static std::size_t encoded_size(std::span<const Index> indices, segment) {
        return indices.size() * sizeof(Index);
    }

    template <IndexType Index>
    static std::size_t encode(std::span<const Index> indices, segment universe, byte_span out) {
        detail::expect_encodable(indices, universe);
        RILL_EXPECTS(out.size() >= encoded_size(indices, universe), "raw_indices: too little room for the indices");
        for (std::size_t i = 0; i < indices.size(); ++i)
            detail::store_little(out.data() + i * sizeof(Index), indices[i]);
        return encoded_size(indices, universe);
    }

    /// Throws `protocol_error` unless `bytes` can hold `count` indices; to be called before room for them is made.
    template <IndexType Index>
    static void check_count(byte_view bytes, std::size_t count, segment universe) {
        detail::check_count_in_universe(count, universe);
        if (bytes.size() % sizeof(Index) != 0 || bytes.size() / sizeof(Index) != count)
            detail::bad_indices("raw", std::to_string(bytes.size()) + " bytes cannot hold " + std::to_string(count));
    }

    /// Writes `count` strictly ascending indices inside `universe`, or throws `protocol_error`.
    template <IndexType Index>
    static void decode(byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
        detail::expect_decodable<Index>(count, universe, out.size());
        check_count<Index>(bytes, count, universe);
        std::size_t lowest = universe.begin;  // that the next index may have
        for (std::size_t i = 0; i < count; ++i) {
            const Index index = detail::load_little<Index>(bytes.data() + i * sizeof(Index));
            if (index < lowest || index >= universe.end) detail::bad_index("raw", i, index, lowest, universe.end);
            out[i] = index;
            lowest = static_cast<std::size_t>(index) + 1;
        }
    }
};

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/index_coding.hpp

// The index codings by number, as a message names them.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// Calls visit with the coding as a type; throws `protocol_error` for one that writes no indices.
template <class Visit>
auto with_coding(index_coding coding, Visit visit) {
    switch (coding) {
        case index_coding::raw: return visit(raw_indices{});
        case index_coding::packed_gaps: return visit(kernel::packed_gaps{});
        case index_coding::bitmap: return visit(index_bitmap{});
        case index_coding::elias_fano: return visit(kernel::elias_fano{});
        case index_coding::huffman: return visit(huffman_bitmap{});
        case index_coding::dense:
        case index_coding::smallest: break;
    }
    throw protocol_error("number " + std::to_string(static_cast<unsigned>(coding)) + " is no coding of indices");
}

}  // namespace detail

/// The bytes that `encode_indices` writes. Packed gaps cost a pass over the indices, Huffman's coding one over the
/// bitmap.
template <IndexType Index>
std::size_t encoded_index_bytes(index_coding coding, std::span<const Index> indices, segment universe) {
    return detail::with_coding(coding, [&](auto c) { return c.encoded_size(indices, universe); });
}

/// Writes strictly ascending indices inside `universe`; returns the bytes written.
template <IndexType Index>
std::size_t encode_indices(index_coding coding, std::span<const Index> indices, segment universe, byte_span out) {
    return detail::with_coding(coding, [&](auto c) { return c.encode(indices, universe, out); });
}

/// Throws `protocol_error` when `bytes` cannot hold `count` indices. A receiver calls it before it makes room for them:
/// what passes needs no more than 128 indices for each byte.
template <IndexType Index>
void check_index_count(index_coding coding, byte_view bytes, std::size_t count, segment universe) {
    detail::with_coding(coding, [&](auto c) { c.template check_count<Index>(bytes, count, universe); });
}

/// Reads `count` indices into the front of `out`. All of `bytes` is validated: afterwards the indices ascend strictly
/// and lie inside `universe`, or `protocol_error` names what is wrong and `out` is unspecified. Allocates nothing.
template <IndexType Index>
void decode_indices(index_coding coding, byte_view bytes, std::size_t count, segment universe, std::span<Index> out) {
    detail::with_coding(coding, [&](auto c) { c.decode(bytes, count, universe, out); });
}

/// The coding that needs the fewest bytes; among equals the one that decodes fastest. Costs a pass over the indices,
/// and one over the bitmap that they would make where Huffman's coding could be the smallest: from a density of 2 % on.
template <IndexType Index>
index_coding smallest_index_coding(std::span<const Index> indices, segment universe) {
    index_coding best = index_coding::raw;
    std::size_t least = encoded_index_bytes(best, indices, universe);
    for (const auto coding : {index_coding::bitmap, index_coding::elias_fano, index_coding::packed_gaps}) {
        const std::size_t size = encoded_index_bytes(coding, indices, universe);
        if (size >= least) continue;
        best = coding;
        least = size;
    }
    if (huffman_bitmap::least_size(indices.size(), universe) < least &&
        encoded_index_bytes(index_coding::huffman, indices, universe) < least)
        best = index_coding::huffman;
    return best;
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/mask.hpp

// Random masks that need no indices on the wire: every rank derives the same one from a shared key.

namespace rill::inline RILL_ABI::kernel {

/// Draws how many coordinates to skip before the next selected one, when each is selected with the same chance.
///
/// The geometric distribution is inverted by table, in integers only: the same skips on every machine. Skips beyond the
/// table are drawn piece by piece, which the distribution permits: it has no memory. 12 KiB.
class geometric_skips {
  public:
    static constexpr std::size_t table = 1024;

    constexpr explicit geometric_skips(double density) : density_(density) {
        RILL_EXPECTS(density >= 0 && density <= 1, "geometric_skips: the density is a probability");
        if (density <= 0 || density >= 1) return;
        const std::uint64_t miss = ~static_cast<std::uint64_t>(density * 0x1p64) + 1;  // 2^64 (1 - density)
        std::uint64_t misses = miss;                                                   // 2^64 (1 - density)^(g + 1)
        for (std::size_t g = 0; g < table; ++g) {
            last_[g] = static_cast<std::uint32_t>((~misses + 1) >> 32) - 1;
            misses = multiply_high(misses, miss);
        }
        for (std::size_t g = table; g < last_.size(); ++g) last_[g] = ~std::uint32_t{0};
        std::size_t g = 0;
        for (std::size_t top = 0; top < guide_size; ++top) {
            while (g < table && last_[g] + 1 <= top << guide_shift) ++g;
            guide_[top] = static_cast<std::uint16_t>(g);
        }
    }

    constexpr double density() const { return density_; }

    /// The skip that belongs to 32 random bits; `table` means: skip as many, and draw again.
    constexpr std::size_t skip(std::uint32_t bits) const {
        std::size_t g = guide_[bits >> guide_shift];
        g += bits > last_[g] ? 1U : 0U;  // mostly one of the next two, and then no branch depends on it
        g += bits > last_[g] ? 1U : 0U;
        while (bits > last_[g]) ++g;
        return g;
    }

  private:
    static constexpr unsigned guide_shift = 20;
    static constexpr std::size_t guide_size = std::size_t{1} << (32 - guide_shift);

    double density_;
    /// The last bits that skip at most g: 2^32 times the chance of that, less one. All bits skip at most `table`. Where
    /// the chance is no more than none, `guide_` begins behind.
    std::array<std::uint32_t, table + 1> last_{};
    std::array<std::uint16_t, guide_size> guide_{};
};

namespace detail {

/// Coordinates that share a chain of skips. Chains start anew at fixed coordinates, so that the mask of a segment is
/// the mask of the whole, restricted.
inline constexpr std::size_t mask_block = std::size_t{1} << 16;

/// Writes what is selected of the part of a mask block that lies in `[begin, end)`; `out` has room for all of it.
template <IndexType Index>
std::size_t mask_in_block(random_key key, const geometric_skips& skips, std::size_t block_begin, segment part,
                          Index* out) {
    const random_key own = key.derive(block_begin / mask_block);
    const auto low = static_cast<std::uint32_t>(own.value), high = static_cast<std::uint32_t>(own.value >> 32);
    const std::size_t begin = part.begin - block_begin, end = part.end - block_begin;
    std::size_t count = 0, at = 0, selected = 0;
    for (std::uint32_t drawn = 0; at < end; drawn += block) {
        std::uint32_t draws[block];
        for (std::uint32_t j = 0; j < block; ++j) draws[j] = counter_bits(low, high, drawn + j);
        for (std::uint32_t& draw : draws) draw = static_cast<std::uint32_t>(skips.skip(draw));
        for (std::size_t j = 0; j < block && at < end; ++j) {
            at += draws[j];
            selected = draws[j] != geometric_skips::table ? 1 : 0;
            out[count] = static_cast<Index>(block_begin + at);
            count = at < begin ? 0 : count + selected;
            at += selected;
        }
    }
    return count - (at > end ? selected : 0);  // the last one may lie behind
}

}  // namespace detail

/// Appends to `indices` the coordinates of `universe` that the mask of this key selects, in ascending order, and
/// returns their number. Each coordinate is selected with the chance `skips.density()`, independently.
///
/// A function of key, density and coordinate alone: the mask of a segment is that of the whole, restricted. Costs a
/// draw for each selected coordinate, and one for every 1024 skipped.
template <IndexType Index>
std::size_t random_mask(random_key key, const geometric_skips& skips, segment universe,
                        aligned_vector<Index>& indices) {
    using detail::mask_block;
    RILL_EXPECTS(universe.empty() || universe.end - 1 <= static_cast<Index>(-1),
                 "random_mask: the index type cannot number the universe");
    const std::size_t before = indices.size();
    if (skips.density() <= 0) return 0;
    std::size_t count = before;
    for (std::size_t begin = universe.begin; begin < universe.end;) {
        const std::size_t block_begin = begin / mask_block * mask_block;
        const std::size_t end = universe.end - block_begin > mask_block ? block_begin + mask_block : universe.end;
        if (indices.size() - count < end - begin) indices.resize(std::max(2 * count, count + (end - begin)));
        if (skips.density() >= 1)
            for (std::size_t i = begin; i < end; ++i) indices[count++] = static_cast<Index>(i);
        else
            count += detail::mask_in_block(key, skips, block_begin, {begin, end}, indices.data() + count);
        begin = end;
    }
    indices.resize(count);
    return count - before;
}

}  // namespace rill::inline RILL_ABI::kernel

#ifndef RILL_SINGLE_KERNEL_DETAIL_ADD_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_ADD_AVX512_HPP

// ===== rill/kernel/detail/add_avx512.hpp

// The sum of two sparse vectors of floats by AVX-512: Inoue and others, "AA-Sort" (PACT 2007), section 4.2, with eight
// keys at a time.

#if defined(RILL_DETAIL_AVX512)

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_CORE_TYPES_HPP
#define RILL_SINGLE_CORE_TYPES_HPP

// ===== rill/core/types.hpp

namespace rill::inline RILL_ABI {

/// A position in a group of ranks, `0 … size-1`.
using rank_t = int;

/// Stands for no rank at all, or for one outside the group.
inline constexpr rank_t no_rank = -1;

/// The element types that travel; the numbers are part of the wire format.
enum class element_type : std::uint8_t { none = 0, float32 = 1, float64 = 2, int32 = 3, int64 = 4 };

/// The element type that stands for `T` in frames; `none` where `T` cannot travel.
template <class T>
inline constexpr element_type element_type_of = element_type::none;
/// Four bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<float> = element_type::float32;
/// Eight bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<double> = element_type::float64;
/// Four bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int32_t> = element_type::int32;
/// Eight bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int64_t> = element_type::int64;

/// As it stands in messages: "float32".
constexpr const char* name(element_type type) {
    switch (type) {
        case element_type::float32: return "float32";
        case element_type::float64: return "float64";
        case element_type::int32: return "int32";
        case element_type::int64: return "int64";
        case element_type::none: break;
    }
    return "none";
}

/// A type whose streams can be folded and sent.
template <class T>
concept Element = element_type_of<T> != element_type::none;

/// A type that numbers the coordinates of a sparse stream.
template <class I>
concept IndexType = std::same_as<I, std::uint32_t> || std::same_as<I, std::uint64_t>;

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_TYPES_HPP

#ifndef RILL_SINGLE_CORE_SPARSE_VIEW_HPP
#define RILL_SINGLE_CORE_SPARSE_VIEW_HPP

// ===== rill/core/sparse_view.hpp

namespace rill::inline RILL_ABI {

/// A read-only sparse vector: strictly ascending indices and, in the same order, their values.
template <Element T, IndexType Index>
struct sparse_view {
    std::span<const Index> indices{};
    std::span<const T> values{};

    constexpr std::size_t count() const { return indices.size(); }
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_SPARSE_VIEW_HPP
#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

// ===== rill/kernel/detail/avx512.hpp

// <immintrin.h>, and what surrounds the code that uses it.

#if defined(RILL_DETAIL_AVX512)

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own intrinsics, wherever they are inlined: they pass registers that hold nothing in particular.
#define RILL_DETAIL_AVX512_BEGIN                                                         \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
        _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define RILL_DETAIL_AVX512_END _Pragma("GCC diagnostic pop")
#else
#define RILL_DETAIL_AVX512_BEGIN
#define RILL_DETAIL_AVX512_END
#endif

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_CORE_TYPES_HPP
#define RILL_SINGLE_CORE_TYPES_HPP

// ===== rill/core/types.hpp

namespace rill::inline RILL_ABI {

/// A position in a group of ranks, `0 … size-1`.
using rank_t = int;

/// Stands for no rank at all, or for one outside the group.
inline constexpr rank_t no_rank = -1;

/// The element types that travel; the numbers are part of the wire format.
enum class element_type : std::uint8_t { none = 0, float32 = 1, float64 = 2, int32 = 3, int64 = 4 };

/// The element type that stands for `T` in frames; `none` where `T` cannot travel.
template <class T>
inline constexpr element_type element_type_of = element_type::none;
/// Four bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<float> = element_type::float32;
/// Eight bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<double> = element_type::float64;
/// Four bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int32_t> = element_type::int32;
/// Eight bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int64_t> = element_type::int64;

/// As it stands in messages: "float32".
constexpr const char* name(element_type type) {
    switch (type) {
        case element_type::float32: return "float32";
        case element_type::float64: return "float64";
        case element_type::int32: return "int32";
        case element_type::int64: return "int64";
        case element_type::none: break;
    }
    return "none";
}

/// A type whose streams can be folded and sent.
template <class T>
concept Element = element_type_of<T> != element_type::none;

/// A type that numbers the coordinates of a sparse stream.
template <class I>
concept IndexType = std::same_as<I, std::uint32_t> || std::same_as<I, std::uint64_t>;

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_TYPES_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_PICK_HPP
#define RILL_SINGLE_KERNEL_DETAIL_PICK_HPP

// ===== rill/kernel/detail/pick.hpp

// One of two without a branch: of a choice that is written as one compilers make a branch.

namespace rill::inline RILL_ABI::kernel::detail {

/// `one` or `other` as `which` is 1 or 0.
template <Element T>
T pick(std::size_t which, T one, T other) {
    using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto x = std::bit_cast<bits>(one), y = std::bit_cast<bits>(other);
    return std::bit_cast<T>(static_cast<bits>(y ^ ((x ^ y) & (bits{0} - static_cast<bits>(which)))));
}

/// The same of addresses.
template <class T>
const T* pick(std::size_t which, const T* one, const T* other) {
    const auto x = reinterpret_cast<std::uintptr_t>(one), y = reinterpret_cast<std::uintptr_t>(other);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): both are addresses
    return reinterpret_cast<const T*>(y ^ ((x ^ y) & (std::uintptr_t{0} - which)));
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_DETAIL_PICK_HPP

#include <bit>
#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill::inline RILL_ABI::kernel::detail {

using float_pairs = sparse_view<float, std::uint32_t>;

/// Of keys that rise and then fall, or fall and then rise.
inline __m512i sort_bitonic(__m512i x) {
    constexpr __mmask8 all = 0xFF;  // of what is not masked g++ 12 warns: it would be merged with nothing
    __m512i y = _mm512_maskz_shuffle_i64x2(all, x, x, 0x4E);
    x = _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xF0, x, y);
    y = _mm512_maskz_permutex_epi64(all, x, 0x4E);
    x = _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xCC, x, y);
    y = _mm512_maskz_shuffle_epi32(0xFFFF, x, _MM_PERM_BADC);
    return _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xAA, x, y);
}

/// Merges the entries of two sparse vectors, as keys: the index above the bits of the value. Of equal indices it is
/// those bits that decide which comes first: the sum shows it only where both are NaNs, of which compilers too keep
/// either.
class key_merge {
  public:
    static constexpr std::size_t lanes = 8;
    static constexpr __mmask8 all = 0xFF;  // of what is not masked g++ 12 warns: it would be merged with nothing

    key_merge(float_pairs a, float_pairs b)
        : a_(a.indices.data()),
          a_values_(a.values.data()),
          a_end_(a_ + a.count()),
          b_(b.indices.data()),
          b_values_(b.values.data()),
          b_end_(b_ + b.count()) {
        const __m512i turned = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        highest_ = _mm512_maskz_permutexvar_epi64(all, turned, load_turned(a_, a_values_));
        a_ += lanes;
        a_values_ += lanes;
    }

    bool has(std::ptrdiff_t entries) const { return a_end_ - a_ >= entries && b_end_ - b_ >= entries; }

    /// The next keys in ascending order. Loads where the lower index is next: so nothing lower can come behind the
    /// lowest half of what is loaded.
    [[gnu::always_inline]] __m512i next() {
        const std::size_t from_a = *a_ <= *b_ ? 1 : 0;
        const __m512i more = load_turned(pick(from_a, a_, b_), pick(from_a, a_values_, b_values_));
        const std::size_t of_a = lanes * from_a, of_b = lanes - of_a;
        a_ += of_a;
        a_values_ += of_a;
        b_ += of_b;
        b_values_ += of_b;
        const __m512i lowest = _mm512_maskz_min_epu64(all, highest_, more);
        highest_ = sort_bitonic(_mm512_maskz_max_epu64(all, highest_, more));
        return sort_bitonic(lowest);
    }

    /// Behind what is loaded.
    const std::uint32_t* a() const { return a_; }
    const std::uint32_t* b() const { return b_; }

  private:
    /// Keys in descending order.
    static __m512i load_turned(const std::uint32_t* indices, const float* values) {
        const __m512i order = _mm512_setr_epi32(7, 23, 6, 22, 5, 21, 4, 20, 3, 19, 2, 18, 1, 17, 0, 16);
        const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
        const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(indices));
        return _mm512_permutex2var_epi32(_mm512_castsi256_si512(low), order, _mm512_castsi256_si512(high));
    }

    const std::uint32_t* a_;
    const float* a_values_;
    const std::uint32_t* a_end_;
    const std::uint32_t* b_;
    const float* b_values_;
    const std::uint32_t* b_end_;
    __m512i highest_;
};

/// A sum as it grows. The last of its entries is always kept back: what comes may be added to it.
class avx512_sum {
  public:
    static constexpr std::ptrdiff_t least = 2 * key_merge::lanes;

    avx512_sum(float_pairs a, float_pairs b, std::uint32_t* indices, float* values)
        : keys_(a, b), indices_(indices), values_(values) {}

    bool has_next() const { return keys_.has(least); }

    /// Merges 16 entries more and writes those before the last one. Compresses to registers: to memory that is slow on
    /// some processors.
    [[gnu::always_inline]] void step() {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const __m512i low = keys_.next(), high = keys_.next();
        const __m512i index = _mm512_permutex2var_epi32(low, odd, high);
        __m512i value = _mm512_permutex2var_epi32(low, even, high);
        const __m512i before = _mm512_maskz_alignr_epi32(0xFFFF, index, last_index_, 15);
        const __mmask16 equal = _mm512_mask_cmpeq_epi32_mask(there_, before, index);
        const __m512 x = _mm512_castsi512_ps(_mm512_maskz_alignr_epi32(0xFFFF, value, last_value_, 15));
        const __m512 y = _mm512_castsi512_ps(value);
        value = _mm512_castps_si512(_mm512_mask_add_ps(y, equal, x, y));
        const auto whole = static_cast<__mmask16>(there_ & ~equal);
        _mm512_storeu_si512(indices_ + count_, _mm512_maskz_compress_epi32(whole, before));
        _mm512_storeu_si512(values_ + count_, _mm512_maskz_compress_epi32(
                                                  whole, _mm512_maskz_alignr_epi32(0xFFFF, value, last_value_, 15)));
        count_ += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(whole)));
        last_index_ = index;
        last_value_ = value;
        there_ = 0xFFFF;
    }

    /// How far either input is used up, and the sum complete: below the entry that is kept back.
    struct progress {
        std::size_t of_a = 0;
        std::size_t of_b = 0;
        std::size_t count = 0;
    };
    progress done(float_pairs a, float_pairs b) const {
        if (there_ != 0xFFFF) return {};
        const auto kept = static_cast<std::uint32_t>(_mm512_reduce_max_epu32(last_index_));
        return {used_below(kept, a, keys_.a()), used_below(kept, b, keys_.b()), count_};
    }

  private:
    static std::size_t used_below(std::uint32_t index, float_pairs x, const std::uint32_t* loaded) {
        while (loaded != x.indices.data() && loaded[-1] >= index) --loaded;
        return static_cast<std::size_t>(loaded - x.indices.data());
    }

    key_merge keys_;
    __m512i last_index_ = _mm512_setzero_si512(), last_value_ = _mm512_setzero_si512();
    __mmask16 there_ = 0xFFFE;  // before the first entry nothing is kept back
    std::uint32_t* indices_;
    float* values_;
    std::size_t count_ = 0;
};

/// Adds until one of the two has few entries left; the rest of both goes behind. On Zen 4, 16M coordinates, 2.6 to 3.4
/// times as fast as the portable merge of one stream.
inline avx512_sum::progress add_avx512(float_pairs a, float_pairs b, std::uint32_t* indices, float* values) {
    if (a.count() < 2 * key_merge::lanes || b.count() < 2 * key_merge::lanes) return {};
    avx512_sum sum(a, b, indices, values);
    while (sum.has_next()) sum.step();
    return sum.done(a, b);
}

}  // namespace rill::inline RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_ADD_AVX512_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_PICK_HPP
#define RILL_SINGLE_KERNEL_DETAIL_PICK_HPP

// ===== rill/kernel/detail/pick.hpp

// One of two without a branch: of a choice that is written as one compilers make a branch.

namespace rill::inline RILL_ABI::kernel::detail {

/// `one` or `other` as `which` is 1 or 0.
template <Element T>
T pick(std::size_t which, T one, T other) {
    using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto x = std::bit_cast<bits>(one), y = std::bit_cast<bits>(other);
    return std::bit_cast<T>(static_cast<bits>(y ^ ((x ^ y) & (bits{0} - static_cast<bits>(which)))));
}

/// The same of addresses.
template <class T>
const T* pick(std::size_t which, const T* one, const T* other) {
    const auto x = reinterpret_cast<std::uintptr_t>(one), y = reinterpret_cast<std::uintptr_t>(other);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): both are addresses
    return reinterpret_cast<const T*>(y ^ ((x ^ y) & (std::uintptr_t{0} - which)));
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_DETAIL_PICK_HPP

#ifndef RILL_SINGLE_KERNEL_MERGE_HPP
#define RILL_SINGLE_KERNEL_MERGE_HPP

// ===== rill/kernel/merge.hpp

// Merging two sparse vectors.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// Where a merge writes.
template <Element T, IndexType Index>
struct sparse_sink {
    Index* indices = nullptr;
    T* values = nullptr;
    std::size_t count = 0;

    void push(Index i, T value) {
        indices[count] = i;
        values[count++] = value;
    }
    void append(sparse_view<T, Index> x, std::size_t first, std::size_t last) {
        std::copy(x.indices.begin() + static_cast<std::ptrdiff_t>(first),
                  x.indices.begin() + static_cast<std::ptrdiff_t>(last), indices + count);
        std::copy(x.values.begin() + static_cast<std::ptrdiff_t>(first),
                  x.values.begin() + static_cast<std::ptrdiff_t>(last), values + count);
        count += last - first;
    }
};

/// The first position from `from` on whose index is not below `bound`: doubling steps, then bisection.
template <IndexType Index>
std::size_t gallop(std::span<const Index> indices, std::size_t from, Index bound) {
    std::size_t step = 1;
    while (from + step < indices.size() && indices[from + step] < bound) step *= 2;
    const auto first = indices.begin() + static_cast<std::ptrdiff_t>(from);
    const auto last = indices.begin() + static_cast<std::ptrdiff_t>(std::min(from + step, indices.size()));
    return static_cast<std::size_t>(std::lower_bound(first, last, bound) - indices.begin());
}

/// How many times as long as another a vector is that is copied in the stretches between the other's entries.
inline constexpr std::size_t much_longer = 32;

/// Merges a short vector into a much longer one by copying the stretches between its entries.
template <Element T, IndexType Index, class Pair>
void merge_into_long(sparse_view<T, Index> few, sparse_view<T, Index> many, sparse_sink<T, Index>& out, Pair pair) {
    std::size_t j = 0;
    for (std::size_t i = 0; i < few.count(); ++i) {
        const std::size_t next = gallop(many.indices, j, few.indices[i]);
        out.append(many, j, next);
        j = next;
        if (j < many.count() && many.indices[j] == few.indices[i]) {
            out.push(few.indices[i], pair(few.values[i], many.values[j]));
            ++j;
        } else {
            out.push(few.indices[i], few.values[i]);
        }
    }
    out.append(many, j, many.count());
}

/// Whether a sum that is not needed may be made, because nobody sees it.
template <Element T, class Fold>
inline constexpr bool adds_freely = std::floating_point<T> && std::same_as<std::remove_cvref_t<Fold>, addition>;

/// What is left of two vectors to merge, and where the result goes on.
struct merge_cursor {
    std::size_t i, i_end;
    std::size_t j, j_end;
    std::size_t to;

    bool has_both() const { return i < i_end && j < j_end; }
};

/// Moves the lower of the next entries to `out`, or the fold of both. Which of two different indices comes first is
/// unpredictable: no branch depends on it.
template <Element T, IndexType Index, class Fold>
[[gnu::always_inline]] inline void merge_one(sparse_view<T, Index> a, sparse_view<T, Index> b,
                                             sparse_sink<T, Index> out, merge_cursor& at, Fold& fold) {
    const Index left = a.indices[at.i], right = b.indices[at.j];
    const T x = a.values[at.i], y = b.values[at.j];
    const std::size_t take_left = left <= right, take_right = right <= left;
    out.indices[at.to] = std::min(left, right);
    if constexpr (adds_freely<T, Fold>)
        out.values[at.to] = pick(take_left, pick(take_right, fold(x, y), x), y);
    else
        out.values[at.to] = left == right ? fold(x, y) : pick(take_left, x, y);
    at.i += take_left;
    at.j += take_right;
    ++at.to;
}

/// Goes to the end, and gives where the result ends.
template <Element T, IndexType Index, class Fold>
std::size_t merge_rest(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index> out, merge_cursor at,
                       Fold& fold) {
    while (at.has_both()) merge_one(a, b, out, at, fold);
    out.count = at.to;
    out.append(a, at.i, at.i_end);
    out.append(b, at.j, at.j_end);
    return out.count;
}

/// Two merges at a time, below and above the middle of what is left of `a`: while one waits for an index the other goes
/// on. The upper one's result is moved to where the lower one's ends.
template <Element T, IndexType Index, class Fold>
void merge_halves(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, merge_cursor all,
                  Fold& fold) {
    if (!all.has_both()) {
        out.count = merge_rest(a, b, out, all, fold);
        return;
    }
    const std::size_t i = all.i + (all.i_end - all.i) / 2;
    const std::size_t j = gallop(b.indices.first(all.j_end), all.j, a.indices[i]);
    const std::size_t middle = all.to + (i - all.i) + (j - all.j);
    merge_cursor lower{all.i, i, all.j, j, all.to}, upper{i, all.i_end, j, all.j_end, middle};
    while (lower.has_both() && upper.has_both()) {
        merge_one(a, b, out, lower, fold);
        merge_one(a, b, out, upper, fold);
    }
    const std::size_t below = merge_rest(a, b, out, lower, fold), end = merge_rest(a, b, out, upper, fold);
    if (below != middle) {
        std::copy(out.indices + middle, out.indices + end, out.indices + below);
        std::copy(out.values + middle, out.values + end, out.values + below);
    }
    out.count = below + (end - middle);
}

/// Stretch by stretch, so that what is moved lies in the first cache.
template <Element T, IndexType Index, class Fold>
void merge_evenly(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold) {
    constexpr std::size_t stretch = 4096;
    merge_cursor part{0, 0, 0, 0, out.count};
    for (; part.i < a.count(); part.i = part.i_end, part.j = part.j_end, part.to = out.count) {
        const bool last = a.count() - part.i <= stretch;
        part.i_end = last ? a.count() : part.i + stretch;
        part.j_end = last ? b.count() : gallop(b.indices, part.j, a.indices[part.i_end]);
        merge_halves(a, b, out, part, fold);
    }
}

template <Element T, IndexType Index>
sparse_view<T, Index> entries_between(sparse_view<T, Index> x, std::size_t first, std::size_t last) {
    return {x.indices.subspan(first, last - first), x.values.subspan(first, last - first)};
}

/// `evenly(a, b, out)` merges what interleaves and is of similar length.
template <Element T, IndexType Index, class Fold, class Evenly>
void merge_by_shape(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold,
                    Evenly evenly) {
    if (a.count() == 0 || b.count() == 0 || a.indices.back() < b.indices.front()) {
        out.append(a, 0, a.count());
        out.append(b, 0, b.count());
    } else if (b.indices.back() < a.indices.front()) {
        out.append(b, 0, b.count());
        out.append(a, 0, a.count());
    } else if (a.count() < b.count() / much_longer) {
        merge_into_long(a, b, out, [&](T few, T many) { return fold(few, many); });
    } else if (b.count() < a.count() / much_longer) {
        merge_into_long(b, a, out, [&](T few, T many) { return fold(many, few); });
    } else {
        evenly(a, b, out);
    }
}

template <Element T, IndexType Index, class Fold>
void merge_portably(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold) {
    merge_by_shape(a, b, out, fold, [&](auto x, auto y, auto& to) { merge_evenly(x, y, to, fold); });
}

/// Whether there are intrinsics for this.
template <Element T, IndexType Index, class Fold>
inline constexpr bool adds_by_avx512 =
#if defined(RILL_DETAIL_AVX512)
    std::same_as<T, float> && std::same_as<Index, std::uint32_t> && adds_freely<T, Fold>;
#else
    false;
#endif

template <Element T, IndexType Index, class Fold>
std::size_t merge_to(sparse_view<T, Index> a, sparse_view<T, Index> b, Index* indices, T* values, Fold& fold) {
    sparse_sink<T, Index> out{.indices = indices, .values = values};
#if defined(RILL_DETAIL_AVX512)
    if constexpr (adds_by_avx512<T, Index, Fold>) {
        merge_by_shape(a, b, out, fold, [&](auto x, auto y, auto& to) {
            const auto begun = add_avx512(x, y, to.indices + to.count, to.values + to.count);
            to.count += begun.count;
            merge_portably(entries_between(x, begun.of_a, x.count()), entries_between(y, begun.of_b, y.count()), to,
                           fold);
        });
        return out.count;
    }
#endif
    merge_portably(a, b, out, fold);
    return out.count;
}

}  // namespace detail

/// Writes the union of two sparse vectors and returns its size. Where both have an entry it is fold(a's, b's); other
/// entries are copied, and `fold` is not called for them; but what is folded by `addition` may be added in vain.
///
/// `indices` and `values` hold at least a.count() + b.count() and overlap no input. Cost: one pass; disjoint ranges are
/// concatenated, very unequal lengths copied in stretches.
template <Element T, IndexType Index, class Fold>
std::size_t merge(sparse_view<T, Index> a, sparse_view<T, Index> b, std::span<Index> indices, std::span<T> values,
                  Fold&& fold) {
    RILL_EXPECTS(a.indices.size() == a.values.size() && b.indices.size() == b.values.size(),
                 "merge: each index has one value");
    RILL_EXPECTS(indices.size() >= a.count() + b.count() && values.size() >= a.count() + b.count(),
                 "merge: too little room for the result");
    return detail::merge_to(a, b, indices.data(), values.data(), fold);
}

}  // namespace rill::inline RILL_ABI::kernel

#endif  // RILL_SINGLE_KERNEL_MERGE_HPP

// ===== rill/kernel/detail/merge_tile.hpp

// A stretch of coordinates in which any number of sparse vectors are folded.

namespace rill::inline RILL_ABI::kernel::detail {

/// Coordinates that are folded together: their values and marks fit the second cache. On Zen 4, 8 vectors of 16M
/// coordinates, half and twice as many are up to 1.1 times as slow.
inline constexpr std::size_t merge_tile = 32768;

/// A stretch of coordinates as a dense array, and a mark for each coordinate that is present. Marks are bytes, not
/// bits: neighbours that are set one after the other would wait for each other.
template <Element T>
struct tile {
    enum class mark : std::uint8_t { absent, present };
    static constexpr std::size_t group = 64;

    T values[merge_tile];
    mark marks[merge_tile];

    /// Nothing is present among the first `extent` coordinates.
    void clear(std::size_t extent) { std::fill_n(marks, (extent + group - 1) / group * group, mark::absent); }

    /// Folds in those of the entries from `first` on that lie in the tile from `base` on; gives the first behind it.
    template <IndexType Index, class Fold>
    std::size_t put(sparse_view<T, Index> x, std::size_t first, Index base, Fold& fold) {
        const Index* const indices = x.indices.data();
        const T* const added = x.values.data();
        const std::size_t end = x.count();
        std::size_t j = first;
        for (; j < end; ++j) {
            const Index at = indices[j] - base;
            if (at >= merge_tile) break;
            const T value = added[j];
            const mark known = marks[at];
            marks[at] = mark::present;
            if constexpr (adds_freely<T, Fold>)
                values[at] = pick(static_cast<std::size_t>(known), fold(values[at], value), value);
            else
                values[at] = known == mark::present ? fold(values[at], value) : value;
        }
        return j;
    }

    /// Moves what is present among the first `extent` coordinates to `out`; nothing is present afterwards.
    template <IndexType Index>
    void drain(Index base, std::size_t extent, sparse_sink<T, Index>& out) {
        Index* indices = out.indices + out.count;
        T* sums = out.values + out.count;
        for (std::size_t i = 0; i < extent; i += group)
            for (std::uint64_t word = take_marks(marks + i); word != 0; word &= word - 1) {
                const std::size_t at = i + static_cast<std::size_t>(std::countr_zero(word));
                *indices++ = static_cast<Index>(base + at);
                *sums++ = values[at];
            }
        out.count = static_cast<std::size_t>(indices - out.indices);
    }

    /// The marks of a group as bits, the first the lowest; they are cleared.
    static std::uint64_t take_marks(mark* first) {
        std::uint64_t result = 0;
        for (std::size_t i = 0; i < group / 8; ++i) {
            const auto eight = load_little<std::uint64_t>(first + 8 * i);  // the lowest bit of each byte
            result |= (eight * 0x0102040810204080U >> 56) << (8 * i);      // all of them in the product's highest
        }
        std::fill_n(first, group, mark::absent);
        return result;
    }
};

}  // namespace rill::inline RILL_ABI::kernel::detail

#ifndef RILL_SINGLE_KERNEL_DETAIL_MERGE_TREE_HPP
#define RILL_SINGLE_KERNEL_DETAIL_MERGE_TREE_HPP

// ===== rill/kernel/detail/merge_tree.hpp

// Sparse vectors merged by pairs, the results by pairs, and so on. Entries at one coordinate stay side by side in the
// order of the inputs until they are folded at the end: the order of the folds is not the tree's.

namespace rill::inline RILL_ABI::kernel::detail {

/// The lowest index that no cursor has passed; `any` is false when all inputs are used up.
template <Element T, IndexType Index>
Index lowest_index(std::span<const sparse_view<T, Index>> inputs, const std::size_t* cursors, bool& any) {
    Index lowest = std::numeric_limits<Index>::max();
    any = false;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (cursors[k] == inputs[k].count()) continue;
        any = true;
        lowest = std::min(lowest, inputs[k].indices[cursors[k]]);
    }
    return lowest;
}

/// Two runs to merge, and where to.
template <class Entry>
struct run_pair {
    const Entry* a;
    std::size_t of_a;
    const Entry* b;
    std::size_t of_b;
    Entry* to;

    std::size_t count() const { return of_a + of_b; }
};

/// Sorted entries, and behind them one above all others: merging them asks for no end.
template <Element T, IndexType Index>
class plain_runs {
  public:
    struct entry {
        T value;
        Index key;  // from where a stretch of coordinates begins
    };

    explicit plain_runs(std::size_t) {}

    static constexpr std::size_t room_for(std::size_t count) { return count + 1; }
    static const entry* end_of(const entry* run, std::size_t count) { return run + count; }
    static constexpr Index widest() { return std::numeric_limits<Index>::max(); }

    static void load(sparse_view<T, Index> x, Index base, std::size_t, entry* to) {
        for (std::size_t i = 0; i < x.count(); ++i) to[i] = {x.values[i], static_cast<Index>(x.indices[i] - base)};
        to[x.count()].key = widest();
    }

    /// Two at a time: while one waits for a key the other goes on.
    static void merge(run_pair<entry> x, run_pair<entry> y) {
        const std::size_t both = std::min(x.count(), y.count());
        entry *const x_end = x.to + x.count(), *const y_end = y.to + y.count();
        for (std::size_t i = 0; i < both; ++i) {
            merge_one(x);
            merge_one(y);
        }
        while (x.to != x_end) merge_one(x);
        while (y.to != y_end) merge_one(y);
        x_end->key = y_end->key = widest();
    }

    template <class Fold>
    static void fold_to(const entry* run, std::size_t count, Index base, sparse_sink<T, Index>& out, Fold& fold) {
        for (const entry* const end = run + count; run != end;) {
            const Index key = run->key;
            T value = run++->value;
            for (; run->key == key; ++run) value = fold(value, run->value);
            out.push(static_cast<Index>(base + key), value);
        }
    }

  private:
    /// Of equal keys that of `a` comes first. Which is lower is unpredictable: no branch depends on it.
    [[gnu::always_inline]] static void merge_one(run_pair<entry>& x) {
        const std::size_t take_b = x.b->key < x.a->key;
        *x.to++ = *pick(take_b, x.b, x.a);
        x.b += take_b;
        x.a += 1 - take_b;
    }
};

/// Merges stretch by stretch, so that what is on its way lies in the second cache; two stretches at a time.
template <class Runs, Element T, IndexType Index>
class merge_tree {
  public:
    /// Entries of a stretch; half as many and four times as many are as fast (Zen 4, 8 inputs of 16M coordinates).
    static constexpr std::size_t stretch = 8192;

    merge_tree(std::span<const sparse_view<T, Index>> inputs, buffer& cursors, buffer& entries)
        : inputs_(inputs), runs_(inputs.size()) {
        const std::size_t ways = inputs.size();
        std::size_t longest = 0;
        for (const auto& input : inputs) longest = std::max(longest, input.count());
        share_ = std::min(longest, std::max<std::size_t>(stretch / ways, 64));
        cursors_ = room<std::size_t>(cursors, 3 * ways);
        std::fill_n(cursors_, ways, std::size_t{0});
        const std::size_t size = ways * Runs::room_for(share_);
        entry* first = room<entry>(entries, 4 * size);
        for (part& each : parts_) {
            each.counts = cursors_ + static_cast<std::size_t>(&each - parts_ + 1) * ways;
            for (entry*& runs : each.runs) runs = std::exchange(first, first + size);
        }
    }

    /// Merges the next two stretches behind what is in `out`, and gives how many entries they had.
    template <class Fold>
    std::size_t merge_next(sparse_sink<T, Index>& out, Fold& fold) {
        for (part& each : parts_) cut(each);
        const std::size_t last = merge_runs();
        std::size_t merged = 0;
        for (part& each : parts_) {
            runs_.fold_to(each.runs[last], each.counts[0], each.base, out, fold);
            merged += each.counts[0];
        }
        return merged;
    }

    /// Leaves as much as `times` stretches to the caller: a view of each input.
    void skip(std::size_t times, std::span<sparse_view<T, Index>> views) {
        take_stretch(times * share_, std::numeric_limits<Index>::max(),
                     [&](std::size_t k, Index, sparse_view<T, Index> x) { views[k] = x; });
    }

  private:
    using entry = typename Runs::entry;

    /// A stretch of coordinates: how many entries each run has; the runs, and room for the next ones.
    struct part {
        Index base = 0;
        std::size_t* counts = nullptr;
        entry* runs[2] = {};
    };

    void cut(part& to) {
        entry* run = to.runs[0];
        take_stretch(share_, runs_.widest(), [&](std::size_t k, Index base, sparse_view<T, Index> x) {
            to.base = base;
            to.counts[k] = x.count();
            runs_.load(x, base, k, run);
            run += Runs::room_for(x.count());
        });
    }

    /// Less than `extent` wide, and as wide as no input has more than `share` entries there: `take(k, base, entries)`
    /// for each input. Nothing is in it when nothing is left.
    template <class Take>
    void take_stretch(std::size_t share, Index extent, Take&& take) {
        bool any = false;
        const Index base = lowest_index(inputs_, cursors_, any);
        for (std::size_t k = 0; k < inputs_.size(); ++k)
            if (inputs_[k].count() - cursors_[k] > share)
                extent = std::min(extent, static_cast<Index>(inputs_[k].indices[cursors_[k] + share] - base));
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
            const std::size_t first = cursors_[k], most = std::min(first + share, inputs_[k].count());
            const auto end = std::partition_point(inputs_[k].indices.begin() + static_cast<std::ptrdiff_t>(first),
                                                  inputs_[k].indices.begin() + static_cast<std::ptrdiff_t>(most),
                                                  [&](Index i) { return i - base < extent; });
            cursors_[k] = static_cast<std::size_t>(end - inputs_[k].indices.begin());
            take(k, base, entries_between(inputs_[k], first, cursors_[k]));
        }
    }

    /// Until one run is left of each part; gives which of its two it is.
    std::size_t merge_runs() {
        std::size_t now = 0;
        for (std::size_t left = inputs_.size(); left > 1; left = (left + 1) / 2, now = 1 - now) {
            const entry* from[2] = {parts_[0].runs[now], parts_[1].runs[now]};
            entry* to[2] = {parts_[0].runs[1 - now], parts_[1].runs[1 - now]};
            for (std::size_t k = 0; k < left; k += 2)
                runs_.merge(next_pair(parts_[0].counts, k, left, from[0], to[0]),
                            next_pair(parts_[1].counts, k, left, from[1], to[1]));
        }
        return now;
    }

    /// Runs k and k + 1 of `left`. The last one may be alone: it is merged with an empty one.
    static run_pair<entry> next_pair(std::size_t* counts, std::size_t k, std::size_t left, const entry*& from,
                                     entry*& to) {
        run_pair<entry> pair{from, counts[k], Runs::end_of(from, counts[k]), 0, to};
        from += Runs::room_for(pair.of_a);
        if (k + 1 < left) {
            pair.b = from;
            pair.of_b = counts[k + 1];
            from += Runs::room_for(pair.of_b);
        }
        to += Runs::room_for(pair.count());
        counts[k / 2] = pair.count();
        return pair;
    }

    std::span<const sparse_view<T, Index>> inputs_;
    Runs runs_;
    std::size_t share_ = 0;
    std::size_t* cursors_ = nullptr;
    part parts_[2];
};

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_DETAIL_MERGE_TREE_HPP

// ===== rill/kernel/detail/merge_tree_avx512.hpp

// Runs of entries of a tree of merges by AVX-512.

#if defined(RILL_DETAIL_AVX512)

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_CORE_TYPES_HPP
#define RILL_SINGLE_CORE_TYPES_HPP

// ===== rill/core/types.hpp

namespace rill::inline RILL_ABI {

/// A position in a group of ranks, `0 … size-1`.
using rank_t = int;

/// Stands for no rank at all, or for one outside the group.
inline constexpr rank_t no_rank = -1;

/// The element types that travel; the numbers are part of the wire format.
enum class element_type : std::uint8_t { none = 0, float32 = 1, float64 = 2, int32 = 3, int64 = 4 };

/// The element type that stands for `T` in frames; `none` where `T` cannot travel.
template <class T>
inline constexpr element_type element_type_of = element_type::none;
/// Four bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<float> = element_type::float32;
/// Eight bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<double> = element_type::float64;
/// Four bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int32_t> = element_type::int32;
/// Eight bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int64_t> = element_type::int64;

/// As it stands in messages: "float32".
constexpr const char* name(element_type type) {
    switch (type) {
        case element_type::float32: return "float32";
        case element_type::float64: return "float64";
        case element_type::int32: return "int32";
        case element_type::int64: return "int64";
        case element_type::none: break;
    }
    return "none";
}

/// A type whose streams can be folded and sent.
template <class T>
concept Element = element_type_of<T> != element_type::none;

/// A type that numbers the coordinates of a sparse stream.
template <class I>
concept IndexType = std::same_as<I, std::uint32_t> || std::same_as<I, std::uint64_t>;

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_TYPES_HPP

#ifndef RILL_SINGLE_CORE_SPARSE_VIEW_HPP
#define RILL_SINGLE_CORE_SPARSE_VIEW_HPP

// ===== rill/core/sparse_view.hpp

namespace rill::inline RILL_ABI {

/// A read-only sparse vector: strictly ascending indices and, in the same order, their values.
template <Element T, IndexType Index>
struct sparse_view {
    std::span<const Index> indices{};
    std::span<const T> values{};

    constexpr std::size_t count() const { return indices.size(); }
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_SPARSE_VIEW_HPP
#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_ADD_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_ADD_AVX512_HPP

// ===== rill/kernel/detail/add_avx512.hpp

// The sum of two sparse vectors of floats by AVX-512: Inoue and others, "AA-Sort" (PACT 2007), section 4.2, with eight
// keys at a time.

#if defined(RILL_DETAIL_AVX512)

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_CORE_TYPES_HPP
#define RILL_SINGLE_CORE_TYPES_HPP

// ===== rill/core/types.hpp

namespace rill::inline RILL_ABI {

/// A position in a group of ranks, `0 … size-1`.
using rank_t = int;

/// Stands for no rank at all, or for one outside the group.
inline constexpr rank_t no_rank = -1;

/// The element types that travel; the numbers are part of the wire format.
enum class element_type : std::uint8_t { none = 0, float32 = 1, float64 = 2, int32 = 3, int64 = 4 };

/// The element type that stands for `T` in frames; `none` where `T` cannot travel.
template <class T>
inline constexpr element_type element_type_of = element_type::none;
/// Four bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<float> = element_type::float32;
/// Eight bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<double> = element_type::float64;
/// Four bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int32_t> = element_type::int32;
/// Eight bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int64_t> = element_type::int64;

/// As it stands in messages: "float32".
constexpr const char* name(element_type type) {
    switch (type) {
        case element_type::float32: return "float32";
        case element_type::float64: return "float64";
        case element_type::int32: return "int32";
        case element_type::int64: return "int64";
        case element_type::none: break;
    }
    return "none";
}

/// A type whose streams can be folded and sent.
template <class T>
concept Element = element_type_of<T> != element_type::none;

/// A type that numbers the coordinates of a sparse stream.
template <class I>
concept IndexType = std::same_as<I, std::uint32_t> || std::same_as<I, std::uint64_t>;

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_TYPES_HPP

#ifndef RILL_SINGLE_CORE_SPARSE_VIEW_HPP
#define RILL_SINGLE_CORE_SPARSE_VIEW_HPP

// ===== rill/core/sparse_view.hpp

namespace rill::inline RILL_ABI {

/// A read-only sparse vector: strictly ascending indices and, in the same order, their values.
template <Element T, IndexType Index>
struct sparse_view {
    std::span<const Index> indices{};
    std::span<const T> values{};

    constexpr std::size_t count() const { return indices.size(); }
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_SPARSE_VIEW_HPP
#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

// ===== rill/kernel/detail/avx512.hpp

// <immintrin.h>, and what surrounds the code that uses it.

#if defined(RILL_DETAIL_AVX512)

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own intrinsics, wherever they are inlined: they pass registers that hold nothing in particular.
#define RILL_DETAIL_AVX512_BEGIN                                                         \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
        _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define RILL_DETAIL_AVX512_END _Pragma("GCC diagnostic pop")
#else
#define RILL_DETAIL_AVX512_BEGIN
#define RILL_DETAIL_AVX512_END
#endif

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_CORE_TYPES_HPP
#define RILL_SINGLE_CORE_TYPES_HPP

// ===== rill/core/types.hpp

namespace rill::inline RILL_ABI {

/// A position in a group of ranks, `0 … size-1`.
using rank_t = int;

/// Stands for no rank at all, or for one outside the group.
inline constexpr rank_t no_rank = -1;

/// The element types that travel; the numbers are part of the wire format.
enum class element_type : std::uint8_t { none = 0, float32 = 1, float64 = 2, int32 = 3, int64 = 4 };

/// The element type that stands for `T` in frames; `none` where `T` cannot travel.
template <class T>
inline constexpr element_type element_type_of = element_type::none;
/// Four bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<float> = element_type::float32;
/// Eight bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<double> = element_type::float64;
/// Four bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int32_t> = element_type::int32;
/// Eight bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int64_t> = element_type::int64;

/// As it stands in messages: "float32".
constexpr const char* name(element_type type) {
    switch (type) {
        case element_type::float32: return "float32";
        case element_type::float64: return "float64";
        case element_type::int32: return "int32";
        case element_type::int64: return "int64";
        case element_type::none: break;
    }
    return "none";
}

/// A type whose streams can be folded and sent.
template <class T>
concept Element = element_type_of<T> != element_type::none;

/// A type that numbers the coordinates of a sparse stream.
template <class I>
concept IndexType = std::same_as<I, std::uint32_t> || std::same_as<I, std::uint64_t>;

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_TYPES_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_PICK_HPP
#define RILL_SINGLE_KERNEL_DETAIL_PICK_HPP

// ===== rill/kernel/detail/pick.hpp

// One of two without a branch: of a choice that is written as one compilers make a branch.

namespace rill::inline RILL_ABI::kernel::detail {

/// `one` or `other` as `which` is 1 or 0.
template <Element T>
T pick(std::size_t which, T one, T other) {
    using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto x = std::bit_cast<bits>(one), y = std::bit_cast<bits>(other);
    return std::bit_cast<T>(static_cast<bits>(y ^ ((x ^ y) & (bits{0} - static_cast<bits>(which)))));
}

/// The same of addresses.
template <class T>
const T* pick(std::size_t which, const T* one, const T* other) {
    const auto x = reinterpret_cast<std::uintptr_t>(one), y = reinterpret_cast<std::uintptr_t>(other);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): both are addresses
    return reinterpret_cast<const T*>(y ^ ((x ^ y) & (std::uintptr_t{0} - which)));
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_DETAIL_PICK_HPP

#include <bit>
#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill::inline RILL_ABI::kernel::detail {

using float_pairs = sparse_view<float, std::uint32_t>;

/// Of keys that rise and then fall, or fall and then rise.
inline __m512i sort_bitonic(__m512i x) {
    constexpr __mmask8 all = 0xFF;  // of what is not masked g++ 12 warns: it would be merged with nothing
    __m512i y = _mm512_maskz_shuffle_i64x2(all, x, x, 0x4E);
    x = _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xF0, x, y);
    y = _mm512_maskz_permutex_epi64(all, x, 0x4E);
    x = _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xCC, x, y);
    y = _mm512_maskz_shuffle_epi32(0xFFFF, x, _MM_PERM_BADC);
    return _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xAA, x, y);
}

/// Merges the entries of two sparse vectors, as keys: the index above the bits of the value. Of equal indices it is
/// those bits that decide which comes first: the sum shows it only where both are NaNs, of which compilers too keep
/// either.
class key_merge {
  public:
    static constexpr std::size_t lanes = 8;
    static constexpr __mmask8 all = 0xFF;  // of what is not masked g++ 12 warns: it would be merged with nothing

    key_merge(float_pairs a, float_pairs b)
        : a_(a.indices.data()),
          a_values_(a.values.data()),
          a_end_(a_ + a.count()),
          b_(b.indices.data()),
          b_values_(b.values.data()),
          b_end_(b_ + b.count()) {
        const __m512i turned = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        highest_ = _mm512_maskz_permutexvar_epi64(all, turned, load_turned(a_, a_values_));
        a_ += lanes;
        a_values_ += lanes;
    }

    bool has(std::ptrdiff_t entries) const { return a_end_ - a_ >= entries && b_end_ - b_ >= entries; }

    /// The next keys in ascending order. Loads where the lower index is next: so nothing lower can come behind the
    /// lowest half of what is loaded.
    [[gnu::always_inline]] __m512i next() {
        const std::size_t from_a = *a_ <= *b_ ? 1 : 0;
        const __m512i more = load_turned(pick(from_a, a_, b_), pick(from_a, a_values_, b_values_));
        const std::size_t of_a = lanes * from_a, of_b = lanes - of_a;
        a_ += of_a;
        a_values_ += of_a;
        b_ += of_b;
        b_values_ += of_b;
        const __m512i lowest = _mm512_maskz_min_epu64(all, highest_, more);
        highest_ = sort_bitonic(_mm512_maskz_max_epu64(all, highest_, more));
        return sort_bitonic(lowest);
    }

    /// Behind what is loaded.
    const std::uint32_t* a() const { return a_; }
    const std::uint32_t* b() const { return b_; }

  private:
    /// Keys in descending order.
    static __m512i load_turned(const std::uint32_t* indices, const float* values) {
        const __m512i order = _mm512_setr_epi32(7, 23, 6, 22, 5, 21, 4, 20, 3, 19, 2, 18, 1, 17, 0, 16);
        const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
        const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(indices));
        return _mm512_permutex2var_epi32(_mm512_castsi256_si512(low), order, _mm512_castsi256_si512(high));
    }

    const std::uint32_t* a_;
    const float* a_values_;
    const std::uint32_t* a_end_;
    const std::uint32_t* b_;
    const float* b_values_;
    const std::uint32_t* b_end_;
    __m512i highest_;
};

/// A sum as it grows. The last of its entries is always kept back: what comes may be added to it.
class avx512_sum {
  public:
    static constexpr std::ptrdiff_t least = 2 * key_merge::lanes;

    avx512_sum(float_pairs a, float_pairs b, std::uint32_t* indices, float* values)
        : keys_(a, b), indices_(indices), values_(values) {}

    bool has_next() const { return keys_.has(least); }

    /// Merges 16 entries more and writes those before the last one. Compresses to registers: to memory that is slow on
    /// some processors.
    [[gnu::always_inline]] void step() {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const __m512i low = keys_.next(), high = keys_.next();
        const __m512i index = _mm512_permutex2var_epi32(low, odd, high);
        __m512i value = _mm512_permutex2var_epi32(low, even, high);
        const __m512i before = _mm512_maskz_alignr_epi32(0xFFFF, index, last_index_, 15);
        const __mmask16 equal = _mm512_mask_cmpeq_epi32_mask(there_, before, index);
        const __m512 x = _mm512_castsi512_ps(_mm512_maskz_alignr_epi32(0xFFFF, value, last_value_, 15));
        const __m512 y = _mm512_castsi512_ps(value);
        value = _mm512_castps_si512(_mm512_mask_add_ps(y, equal, x, y));
        const auto whole = static_cast<__mmask16>(there_ & ~equal);
        _mm512_storeu_si512(indices_ + count_, _mm512_maskz_compress_epi32(whole, before));
        _mm512_storeu_si512(values_ + count_, _mm512_maskz_compress_epi32(
                                                  whole, _mm512_maskz_alignr_epi32(0xFFFF, value, last_value_, 15)));
        count_ += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(whole)));
        last_index_ = index;
        last_value_ = value;
        there_ = 0xFFFF;
    }

    /// How far either input is used up, and the sum complete: below the entry that is kept back.
    struct progress {
        std::size_t of_a = 0;
        std::size_t of_b = 0;
        std::size_t count = 0;
    };
    progress done(float_pairs a, float_pairs b) const {
        if (there_ != 0xFFFF) return {};
        const auto kept = static_cast<std::uint32_t>(_mm512_reduce_max_epu32(last_index_));
        return {used_below(kept, a, keys_.a()), used_below(kept, b, keys_.b()), count_};
    }

  private:
    static std::size_t used_below(std::uint32_t index, float_pairs x, const std::uint32_t* loaded) {
        while (loaded != x.indices.data() && loaded[-1] >= index) --loaded;
        return static_cast<std::size_t>(loaded - x.indices.data());
    }

    key_merge keys_;
    __m512i last_index_ = _mm512_setzero_si512(), last_value_ = _mm512_setzero_si512();
    __mmask16 there_ = 0xFFFE;  // before the first entry nothing is kept back
    std::uint32_t* indices_;
    float* values_;
    std::size_t count_ = 0;
};

/// Adds until one of the two has few entries left; the rest of both goes behind. On Zen 4, 16M coordinates, 2.6 to 3.4
/// times as fast as the portable merge of one stream.
inline avx512_sum::progress add_avx512(float_pairs a, float_pairs b, std::uint32_t* indices, float* values) {
    if (a.count() < 2 * key_merge::lanes || b.count() < 2 * key_merge::lanes) return {};
    avx512_sum sum(a, b, indices, values);
    while (sum.has_next()) sum.step();
    return sum.done(a, b);
}

}  // namespace rill::inline RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_ADD_AVX512_HPP
#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

// ===== rill/kernel/detail/avx512.hpp

// <immintrin.h>, and what surrounds the code that uses it.

#if defined(RILL_DETAIL_AVX512)

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own intrinsics, wherever they are inlined: they pass registers that hold nothing in particular.
#define RILL_DETAIL_AVX512_BEGIN                                                         \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
        _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define RILL_DETAIL_AVX512_END _Pragma("GCC diagnostic pop")
#else
#define RILL_DETAIL_AVX512_BEGIN
#define RILL_DETAIL_AVX512_END
#endif

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_CORE_BUFFER_SHELF_HPP
#define RILL_SINGLE_CORE_BUFFER_SHELF_HPP

// ===== rill/core/buffer_shelf.hpp

namespace rill::inline RILL_ABI {

/// Where a thread keeps the memory of large messages that it has done with, for those that it will send. The first
/// touch of fresh memory costs more than a copy; and whoever takes part in an exchange lets go of as much as it sends.
///
/// Memory comes in sizes of which there are eight between powers of two, from `least` bytes on; at most `places` pieces
/// and `most` bytes lie here, the rest goes back to the system. Never shared between threads; under the address
/// sanitizer nothing is kept, so that it sees what is used after it was freed.
class buffer_shelf {
  public:
    static constexpr std::size_t least = std::size_t{1} << 16;
    static constexpr std::size_t most = std::size_t{1} << 28;
    static constexpr std::size_t places = 64;
    static constexpr std::align_val_t alignment{64};
#if defined(__SANITIZE_ADDRESS__)
    static constexpr bool keeps = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    static constexpr bool keeps = false;
#else
    static constexpr bool keeps = true;
#endif
#else
    static constexpr bool keeps = true;
#endif

    /// The size of the memory in which `size` bytes lie.
    static constexpr std::size_t room_for(std::size_t size) {
        if (size < least) return size;
        const std::size_t step = std::bit_floor(size - 1) / 8;
        return (size + step - 1) / step * step;
    }

    static void* take(std::size_t size) {
        const std::size_t room = room_for(size);
        if (buffer_shelf* const own = of_this_thread(room))
            if (void* const kept = own->find(room)) return kept;
        return ::operator new(room, alignment);
    }
    /// Of as many bytes as were taken.
    static void give_back(void* memory, std::size_t size) noexcept {
        const std::size_t room = room_for(size);
        buffer_shelf* const own = of_this_thread(room);
        if (own == nullptr || !own->keep(memory, room)) ::operator delete(memory, alignment);
    }

    buffer_shelf() = default;
    buffer_shelf(const buffer_shelf&) = delete;
    buffer_shelf& operator=(const buffer_shelf&) = delete;
    ~buffer_shelf() {
        is_gone = true;
        for (std::size_t i = 0; i < count_; ++i) ::operator delete(kept_[i].memory, alignment);
    }

  private:
    struct piece {
        void* memory;
        std::size_t room;
    };

    /// None for what is small, and where the thread has ended but for what its last objects let go.
    static buffer_shelf* of_this_thread(std::size_t room) {
        if (!keeps || room < least || is_gone) return nullptr;
        thread_local buffer_shelf own;
        return &own;
    }

    void* find(std::size_t room) {
        for (std::size_t i = count_; i-- > 0;)
            if (kept_[i].room == room) {
                bytes_ -= room;
                return std::exchange(kept_[i], kept_[--count_]).memory;
            }
        return nullptr;
    }
    bool keep(void* memory, std::size_t room) {
        if (count_ == places || room > most - bytes_) return false;
        kept_[count_++] = {memory, room};
        bytes_ += room;
        return true;
    }

    static inline thread_local bool is_gone = false;

    std::array<piece, places> kept_{};
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_BUFFER_SHELF_HPP

#ifndef RILL_SINGLE_CORE_BYTES_HPP
#define RILL_SINGLE_CORE_BYTES_HPP

// ===== rill/core/bytes.hpp

namespace rill::inline RILL_ABI {

/// Bytes that are only read.
using byte_view = std::span<const std::byte>;
/// Bytes that are written.
using byte_span = std::span<std::byte>;

/// Allocates on cache lines and leaves new elements of trivial types uninitialised: growing a scratch buffer must not
/// touch its memory twice.
template <class T>
struct aligned_allocator {
    using value_type = T;
    static constexpr std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;

    aligned_allocator() = default;
    template <class U>
    aligned_allocator(const aligned_allocator<U>&) noexcept {}

    T* allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(alignment)));
    }
    void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, std::align_val_t(alignment)); }

    template <class U, class... Args>
    void construct(U* p, Args&&... args) {
        if constexpr (sizeof...(Args) == 0 && std::is_trivially_default_constructible_v<U>)
            ::new (static_cast<void*>(p)) U;
        else
            ::new (static_cast<void*>(p)) U(static_cast<Args&&>(args)...);
    }

    friend bool operator==(const aligned_allocator&, const aligned_allocator&) { return true; }
};

/// A vector whose memory begins on a cache line, and whose new elements are uninitialised where their type is trivial.
template <class T>
using aligned_vector = std::vector<T, aligned_allocator<T>>;

/// The same from the thread's `buffer_shelf`.
template <class T>
struct shelf_allocator : aligned_allocator<T> {
    static_assert(aligned_allocator<T>::alignment == static_cast<std::size_t>(buffer_shelf::alignment));

    shelf_allocator() = default;
    template <class U>
    shelf_allocator(const shelf_allocator<U>&) noexcept {}

    T* allocate(std::size_t n) {
        if (n > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(buffer_shelf::take(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t n) noexcept { buffer_shelf::give_back(p, n * sizeof(T)); }
};

/// An owned message.
using buffer = std::vector<std::byte, shelf_allocator<std::byte>>;

/// A message as its parts, in order. The parts of a frame (header, indices, values) are sent from where they lie.
class byte_pieces {
  public:
    static constexpr std::size_t most = 4;

    constexpr byte_pieces() = default;
    constexpr byte_pieces(byte_view only) { push(only); }  // NOLINT(google-explicit-constructor)

    constexpr void push(byte_view piece) { pieces_[count_++] = piece; }
    constexpr std::size_t count() const { return count_; }
    constexpr byte_view operator[](std::size_t i) const { return pieces_[i]; }
    constexpr const byte_view* begin() const { return pieces_; }
    constexpr const byte_view* end() const { return pieces_ + count_; }
    constexpr std::size_t size_bytes() const {
        std::size_t sum = 0;
        for (byte_view piece : *this) sum += piece.size();
        return sum;
    }

  private:
    byte_view pieces_[most]{};
    std::size_t count_ = 0;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_BYTES_HPP

#ifndef RILL_SINGLE_CORE_TYPES_HPP
#define RILL_SINGLE_CORE_TYPES_HPP

// ===== rill/core/types.hpp

namespace rill::inline RILL_ABI {

/// A position in a group of ranks, `0 … size-1`.
using rank_t = int;

/// Stands for no rank at all, or for one outside the group.
inline constexpr rank_t no_rank = -1;

/// The element types that travel; the numbers are part of the wire format.
enum class element_type : std::uint8_t { none = 0, float32 = 1, float64 = 2, int32 = 3, int64 = 4 };

/// The element type that stands for `T` in frames; `none` where `T` cannot travel.
template <class T>
inline constexpr element_type element_type_of = element_type::none;
/// Four bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<float> = element_type::float32;
/// Eight bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<double> = element_type::float64;
/// Four bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int32_t> = element_type::int32;
/// Eight bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int64_t> = element_type::int64;

/// As it stands in messages: "float32".
constexpr const char* name(element_type type) {
    switch (type) {
        case element_type::float32: return "float32";
        case element_type::float64: return "float64";
        case element_type::int32: return "int32";
        case element_type::int64: return "int64";
        case element_type::none: break;
    }
    return "none";
}

/// A type whose streams can be folded and sent.
template <class T>
concept Element = element_type_of<T> != element_type::none;

/// A type that numbers the coordinates of a sparse stream.
template <class I>
concept IndexType = std::same_as<I, std::uint32_t> || std::same_as<I, std::uint64_t>;

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_TYPES_HPP

#ifndef RILL_SINGLE_CORE_SPARSE_VIEW_HPP
#define RILL_SINGLE_CORE_SPARSE_VIEW_HPP

// ===== rill/core/sparse_view.hpp

namespace rill::inline RILL_ABI {

/// A read-only sparse vector: strictly ascending indices and, in the same order, their values.
template <Element T, IndexType Index>
struct sparse_view {
    std::span<const Index> indices{};
    std::span<const T> values{};

    constexpr std::size_t count() const { return indices.size(); }
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_SPARSE_VIEW_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_PICK_HPP
#define RILL_SINGLE_KERNEL_DETAIL_PICK_HPP

// ===== rill/kernel/detail/pick.hpp

// One of two without a branch: of a choice that is written as one compilers make a branch.

namespace rill::inline RILL_ABI::kernel::detail {

/// `one` or `other` as `which` is 1 or 0.
template <Element T>
T pick(std::size_t which, T one, T other) {
    using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto x = std::bit_cast<bits>(one), y = std::bit_cast<bits>(other);
    return std::bit_cast<T>(static_cast<bits>(y ^ ((x ^ y) & (bits{0} - static_cast<bits>(which)))));
}

/// The same of addresses.
template <class T>
const T* pick(std::size_t which, const T* one, const T* other) {
    const auto x = reinterpret_cast<std::uintptr_t>(one), y = reinterpret_cast<std::uintptr_t>(other);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): both are addresses
    return reinterpret_cast<const T*>(y ^ ((x ^ y) & (std::uintptr_t{0} - which)));
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_DETAIL_PICK_HPP

#ifndef RILL_SINGLE_CORE_ADDITION_HPP
#define RILL_SINGLE_CORE_ADDITION_HPP

// ===== rill/core/addition.hpp

namespace rill::inline RILL_ABI {

/// Folds by adding. Kernels know this type: they may add many values at once, and add what they then drop, which is not
/// permitted with a fold of which nothing is known. The bits are those of `a + b`.
struct addition {
    template <class T>
    constexpr T operator()(T a, T b) const {
        return static_cast<T>(a + b);
    }

    friend constexpr bool operator==(addition, addition) = default;
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_ADDITION_HPP

#ifndef RILL_SINGLE_CORE_CONTRACT_HPP
#define RILL_SINGLE_CORE_CONTRACT_HPP

// ===== rill/core/contract.hpp

namespace rill::inline RILL_ABI {

/// The caller broke a precondition. Nothing has been changed or sent.
class contract_violation : public std::logic_error {
  public:
    using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] inline void contract_failed(const char* condition, const char* message, const char* file, int line) {
    throw contract_violation(std::string("rill: ") + message + " (expected: " + condition + ") at " + file + ":" +
                             std::to_string(line));
}
}  // namespace detail
}  // namespace rill::inline RILL_ABI

#define RILL_DETAIL_CHECK(condition, message) \
    ((condition) ? static_cast<void>(0) : ::rill::detail::contract_failed(#condition, message, __FILE__, __LINE__))

/// A precondition of constant cost.
#if RILL_CONTRACTS >= RILL_CONTRACTS_FAST
#define RILL_EXPECTS(condition, message) RILL_DETAIL_CHECK(condition, message)
#else
#define RILL_EXPECTS(condition, message) static_cast<void>(0)
#endif

/// A precondition whose check reads whole inputs.
#if RILL_CONTRACTS >= RILL_CONTRACTS_DEBUG
#define RILL_EXPECTS_DEBUG(condition, message) RILL_DETAIL_CHECK(condition, message)
#else
#define RILL_EXPECTS_DEBUG(condition, message) static_cast<void>(0)
#endif

#endif  // RILL_SINGLE_CORE_CONTRACT_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_ADD_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_ADD_AVX512_HPP

// ===== rill/kernel/detail/add_avx512.hpp

// The sum of two sparse vectors of floats by AVX-512: Inoue and others, "AA-Sort" (PACT 2007), section 4.2, with eight
// keys at a time.

#if defined(RILL_DETAIL_AVX512)

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_CORE_TYPES_HPP
#define RILL_SINGLE_CORE_TYPES_HPP

// ===== rill/core/types.hpp

namespace rill::inline RILL_ABI {

/// A position in a group of ranks, `0 … size-1`.
using rank_t = int;

/// Stands for no rank at all, or for one outside the group.
inline constexpr rank_t no_rank = -1;

/// The element types that travel; the numbers are part of the wire format.
enum class element_type : std::uint8_t { none = 0, float32 = 1, float64 = 2, int32 = 3, int64 = 4 };

/// The element type that stands for `T` in frames; `none` where `T` cannot travel.
template <class T>
inline constexpr element_type element_type_of = element_type::none;
/// Four bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<float> = element_type::float32;
/// Eight bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<double> = element_type::float64;
/// Four bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int32_t> = element_type::int32;
/// Eight bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int64_t> = element_type::int64;

/// As it stands in messages: "float32".
constexpr const char* name(element_type type) {
    switch (type) {
        case element_type::float32: return "float32";
        case element_type::float64: return "float64";
        case element_type::int32: return "int32";
        case element_type::int64: return "int64";
        case element_type::none: break;
    }
    return "none";
}

/// A type whose streams can be folded and sent.
template <class T>
concept Element = element_type_of<T> != element_type::none;

/// A type that numbers the coordinates of a sparse stream.
template <class I>
concept IndexType = std::same_as<I, std::uint32_t> || std::same_as<I, std::uint64_t>;

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_TYPES_HPP

#ifndef RILL_SINGLE_CORE_SPARSE_VIEW_HPP
#define RILL_SINGLE_CORE_SPARSE_VIEW_HPP

// ===== rill/core/sparse_view.hpp

namespace rill::inline RILL_ABI {

/// A read-only sparse vector: strictly ascending indices and, in the same order, their values.
template <Element T, IndexType Index>
struct sparse_view {
    std::span<const Index> indices{};
    std::span<const T> values{};

    constexpr std::size_t count() const { return indices.size(); }
};

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_SPARSE_VIEW_HPP
#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#define RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP

// ===== rill/kernel/detail/avx512.hpp

// <immintrin.h>, and what surrounds the code that uses it.

#if defined(RILL_DETAIL_AVX512)

#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of its own intrinsics, wherever they are inlined: they pass registers that hold nothing in particular.
#define RILL_DETAIL_AVX512_BEGIN                                                         \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"") \
        _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define RILL_DETAIL_AVX512_END _Pragma("GCC diagnostic pop")
#else
#define RILL_DETAIL_AVX512_BEGIN
#define RILL_DETAIL_AVX512_END
#endif

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_AVX512_HPP
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#ifndef RILL_SINGLE_CORE_CONFIG_HPP
#define RILL_SINGLE_CORE_CONFIG_HPP

// ===== rill/core/config.hpp

// Version, contract levels and the inline namespace that keeps differently compiled translation units apart.

#ifdef RILL_SINGLE_HEADER
#error "rill: rill.hpp of single_include/ stands before a header of include/; use one of the two folders"
#endif

#define RILL_VERSION_MAJOR 0
#define RILL_VERSION_MINOR 1
#define RILL_VERSION_PATCH 0

/// Contract levels, chosen by `-DRILL_CONTRACTS=<level>` (default `RILL_CONTRACTS_FAST`). A broken precondition throws
/// `rill::contract_violation` before anything has been changed or sent.
#define RILL_CONTRACTS_OFF 0    // nothing is checked
#define RILL_CONTRACTS_FAST 1   // checks of constant cost
#define RILL_CONTRACTS_DEBUG 2  // also checks that read whole inputs

#ifndef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#endif

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512CD__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__)
#define RILL_DETAIL_AVX512  // x86-64-v4: what intrinsics may take for granted
#if defined(__AVX512VBMI2__)
#define RILL_DETAIL_VBMI2  // and bytes can be compressed
#define RILL_DETAIL_ISA v4_vbmi2
#else
#define RILL_DETAIL_ISA v4
#endif
#elif defined(__AVX2__)
#define RILL_DETAIL_ISA v3
#else
#define RILL_DETAIL_ISA v2
#endif

#define RILL_DETAIL_JOIN_(a, b, c) a##b##_##c
#define RILL_DETAIL_JOIN(a, b, c) RILL_DETAIL_JOIN_(a, b, c)

/// Everything lives in `namespace rill::inline RILL_ABI`: its name carries the contract level and the instruction set.
#define RILL_ABI RILL_DETAIL_JOIN(contracts_, RILL_CONTRACTS, RILL_DETAIL_ISA)

#endif  // RILL_SINGLE_CORE_CONFIG_HPP

#ifndef RILL_SINGLE_CORE_TYPES_HPP
#define RILL_SINGLE_CORE_TYPES_HPP

// ===== rill/core/types.hpp

namespace rill::inline RILL_ABI {

/// A position in a group of ranks, `0 … size-1`.
using rank_t = int;

/// Stands for no rank at all, or for one outside the group.
inline constexpr rank_t no_rank = -1;

/// The element types that travel; the numbers are part of the wire format.
enum class element_type : std::uint8_t { none = 0, float32 = 1, float64 = 2, int32 = 3, int64 = 4 };

/// The element type that stands for `T` in frames; `none` where `T` cannot travel.
template <class T>
inline constexpr element_type element_type_of = element_type::none;
/// Four bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<float> = element_type::float32;
/// Eight bytes, IEEE 754.
template <>
inline constexpr element_type element_type_of<double> = element_type::float64;
/// Four bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int32_t> = element_type::int32;
/// Eight bytes, two's complement.
template <>
inline constexpr element_type element_type_of<std::int64_t> = element_type::int64;

/// As it stands in messages: "float32".
constexpr const char* name(element_type type) {
    switch (type) {
        case element_type::float32: return "float32";
        case element_type::float64: return "float64";
        case element_type::int32: return "int32";
        case element_type::int64: return "int64";
        case element_type::none: break;
    }
    return "none";
}

/// A type whose streams can be folded and sent.
template <class T>
concept Element = element_type_of<T> != element_type::none;

/// A type that numbers the coordinates of a sparse stream.
template <class I>
concept IndexType = std::same_as<I, std::uint32_t> || std::same_as<I, std::uint64_t>;

}  // namespace rill::inline RILL_ABI

#endif  // RILL_SINGLE_CORE_TYPES_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_PICK_HPP
#define RILL_SINGLE_KERNEL_DETAIL_PICK_HPP

// ===== rill/kernel/detail/pick.hpp

// One of two without a branch: of a choice that is written as one compilers make a branch.

namespace rill::inline RILL_ABI::kernel::detail {

/// `one` or `other` as `which` is 1 or 0.
template <Element T>
T pick(std::size_t which, T one, T other) {
    using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto x = std::bit_cast<bits>(one), y = std::bit_cast<bits>(other);
    return std::bit_cast<T>(static_cast<bits>(y ^ ((x ^ y) & (bits{0} - static_cast<bits>(which)))));
}

/// The same of addresses.
template <class T>
const T* pick(std::size_t which, const T* one, const T* other) {
    const auto x = reinterpret_cast<std::uintptr_t>(one), y = reinterpret_cast<std::uintptr_t>(other);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): both are addresses
    return reinterpret_cast<const T*>(y ^ ((x ^ y) & (std::uintptr_t{0} - which)));
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_DETAIL_PICK_HPP

#include <bit>
#include <cstddef>
#include <cstdint>

RILL_DETAIL_AVX512_BEGIN
namespace rill::inline RILL_ABI::kernel::detail {

using float_pairs = sparse_view<float, std::uint32_t>;

/// Of keys that rise and then fall, or fall and then rise.
inline __m512i sort_bitonic(__m512i x) {
    constexpr __mmask8 all = 0xFF;  // of what is not masked g++ 12 warns: it would be merged with nothing
    __m512i y = _mm512_maskz_shuffle_i64x2(all, x, x, 0x4E);
    x = _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xF0, x, y);
    y = _mm512_maskz_permutex_epi64(all, x, 0x4E);
    x = _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xCC, x, y);
    y = _mm512_maskz_shuffle_epi32(0xFFFF, x, _MM_PERM_BADC);
    return _mm512_mask_max_epu64(_mm512_maskz_min_epu64(all, x, y), 0xAA, x, y);
}

/// Merges the entries of two sparse vectors, as keys: the index above the bits of the value. Of equal indices it is
/// those bits that decide which comes first: the sum shows it only where both are NaNs, of which compilers too keep
/// either.
class key_merge {
  public:
    static constexpr std::size_t lanes = 8;
    static constexpr __mmask8 all = 0xFF;  // of what is not masked g++ 12 warns: it would be merged with nothing

    key_merge(float_pairs a, float_pairs b)
        : a_(a.indices.data()),
          a_values_(a.values.data()),
          a_end_(a_ + a.count()),
          b_(b.indices.data()),
          b_values_(b.values.data()),
          b_end_(b_ + b.count()) {
        const __m512i turned = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        highest_ = _mm512_maskz_permutexvar_epi64(all, turned, load_turned(a_, a_values_));
        a_ += lanes;
        a_values_ += lanes;
    }

    bool has(std::ptrdiff_t entries) const { return a_end_ - a_ >= entries && b_end_ - b_ >= entries; }

    /// The next keys in ascending order. Loads where the lower index is next: so nothing lower can come behind the
    /// lowest half of what is loaded.
    [[gnu::always_inline]] __m512i next() {
        const std::size_t from_a = *a_ <= *b_ ? 1 : 0;
        const __m512i more = load_turned(pick(from_a, a_, b_), pick(from_a, a_values_, b_values_));
        const std::size_t of_a = lanes * from_a, of_b = lanes - of_a;
        a_ += of_a;
        a_values_ += of_a;
        b_ += of_b;
        b_values_ += of_b;
        const __m512i lowest = _mm512_maskz_min_epu64(all, highest_, more);
        highest_ = sort_bitonic(_mm512_maskz_max_epu64(all, highest_, more));
        return sort_bitonic(lowest);
    }

    /// Behind what is loaded.
    const std::uint32_t* a() const { return a_; }
    const std::uint32_t* b() const { return b_; }

  private:
    /// Keys in descending order.
    static __m512i load_turned(const std::uint32_t* indices, const float* values) {
        const __m512i order = _mm512_setr_epi32(7, 23, 6, 22, 5, 21, 4, 20, 3, 19, 2, 18, 1, 17, 0, 16);
        const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
        const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(indices));
        return _mm512_permutex2var_epi32(_mm512_castsi256_si512(low), order, _mm512_castsi256_si512(high));
    }

    const std::uint32_t* a_;
    const float* a_values_;
    const std::uint32_t* a_end_;
    const std::uint32_t* b_;
    const float* b_values_;
    const std::uint32_t* b_end_;
    __m512i highest_;
};

/// A sum as it grows. The last of its entries is always kept back: what comes may be added to it.
class avx512_sum {
  public:
    static constexpr std::ptrdiff_t least = 2 * key_merge::lanes;

    avx512_sum(float_pairs a, float_pairs b, std::uint32_t* indices, float* values)
        : keys_(a, b), indices_(indices), values_(values) {}

    bool has_next() const { return keys_.has(least); }

    /// Merges 16 entries more and writes those before the last one. Compresses to registers: to memory that is slow on
    /// some processors.
    [[gnu::always_inline]] void step() {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const __m512i low = keys_.next(), high = keys_.next();
        const __m512i index = _mm512_permutex2var_epi32(low, odd, high);
        __m512i value = _mm512_permutex2var_epi32(low, even, high);
        const __m512i before = _mm512_maskz_alignr_epi32(0xFFFF, index, last_index_, 15);
        const __mmask16 equal = _mm512_mask_cmpeq_epi32_mask(there_, before, index);
        const __m512 x = _mm512_castsi512_ps(_mm512_maskz_alignr_epi32(0xFFFF, value, last_value_, 15));
        const __m512 y = _mm512_castsi512_ps(value);
        value = _mm512_castps_si512(_mm512_mask_add_ps(y, equal, x, y));
        const auto whole = static_cast<__mmask16>(there_ & ~equal);
        _mm512_storeu_si512(indices_ + count_, _mm512_maskz_compress_epi32(whole, before));
        _mm512_storeu_si512(values_ + count_, _mm512_maskz_compress_epi32(
                                                  whole, _mm512_maskz_alignr_epi32(0xFFFF, value, last_value_, 15)));
        count_ += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(whole)));
        last_index_ = index;
        last_value_ = value;
        there_ = 0xFFFF;
    }

    /// How far either input is used up, and the sum complete: below the entry that is kept back.
    struct progress {
        std::size_t of_a = 0;
        std::size_t of_b = 0;
        std::size_t count = 0;
    };
    progress done(float_pairs a, float_pairs b) const {
        if (there_ != 0xFFFF) return {};
        const auto kept = static_cast<std::uint32_t>(_mm512_reduce_max_epu32(last_index_));
        return {used_below(kept, a, keys_.a()), used_below(kept, b, keys_.b()), count_};
    }

  private:
    static std::size_t used_below(std::uint32_t index, float_pairs x, const std::uint32_t* loaded) {
        while (loaded != x.indices.data() && loaded[-1] >= index) --loaded;
        return static_cast<std::size_t>(loaded - x.indices.data());
    }

    key_merge keys_;
    __m512i last_index_ = _mm512_setzero_si512(), last_value_ = _mm512_setzero_si512();
    __mmask16 there_ = 0xFFFE;  // before the first entry nothing is kept back
    std::uint32_t* indices_;
    float* values_;
    std::size_t count_ = 0;
};

/// Adds until one of the two has few entries left; the rest of both goes behind. On Zen 4, 16M coordinates, 2.6 to 3.4
/// times as fast as the portable merge of one stream.
inline avx512_sum::progress add_avx512(float_pairs a, float_pairs b, std::uint32_t* indices, float* values) {
    if (a.count() < 2 * key_merge::lanes || b.count() < 2 * key_merge::lanes) return {};
    avx512_sum sum(a, b, indices, values);
    while (sum.has_next()) sum.step();
    return sum.done(a, b);
}

}  // namespace rill::inline RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif

#endif  // RILL_SINGLE_KERNEL_DETAIL_ADD_AVX512_HPP

#ifndef RILL_SINGLE_KERNEL_MERGE_HPP
#define RILL_SINGLE_KERNEL_MERGE_HPP

// ===== rill/kernel/merge.hpp

// Merging two sparse vectors.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// Where a merge writes.
template <Element T, IndexType Index>
struct sparse_sink {
    Index* indices = nullptr;
    T* values = nullptr;
    std::size_t count = 0;

    void push(Index i, T value) {
        indices[count] = i;
        values[count++] = value;
    }
    void append(sparse_view<T, Index> x, std::size_t first, std::size_t last) {
        std::copy(x.indices.begin() + static_cast<std::ptrdiff_t>(first),
                  x.indices.begin() + static_cast<std::ptrdiff_t>(last), indices + count);
        std::copy(x.values.begin() + static_cast<std::ptrdiff_t>(first),
                  x.values.begin() + static_cast<std::ptrdiff_t>(last), values + count);
        count += last - first;
    }
};

/// The first position from `from` on whose index is not below `bound`: doubling steps, then bisection.
template <IndexType Index>
std::size_t gallop(std::span<const Index> indices, std::size_t from, Index bound) {
    std::size_t step = 1;
    while (from + step < indices.size() && indices[from + step] < bound) step *= 2;
    const auto first = indices.begin() + static_cast<std::ptrdiff_t>(from);
    const auto last = indices.begin() + static_cast<std::ptrdiff_t>(std::min(from + step, indices.size()));
    return static_cast<std::size_t>(std::lower_bound(first, last, bound) - indices.begin());
}

/// How many times as long as another a vector is that is copied in the stretches between the other's entries.
inline constexpr std::size_t much_longer = 32;

/// Merges a short vector into a much longer one by copying the stretches between its entries.
template <Element T, IndexType Index, class Pair>
void merge_into_long(sparse_view<T, Index> few, sparse_view<T, Index> many, sparse_sink<T, Index>& out, Pair pair) {
    std::size_t j = 0;
    for (std::size_t i = 0; i < few.count(); ++i) {
        const std::size_t next = gallop(many.indices, j, few.indices[i]);
        out.append(many, j, next);
        j = next;
        if (j < many.count() && many.indices[j] == few.indices[i]) {
            out.push(few.indices[i], pair(few.values[i], many.values[j]));
            ++j;
        } else {
            out.push(few.indices[i], few.values[i]);
        }
    }
    out.append(many, j, many.count());
}

/// Whether a sum that is not needed may be made, because nobody sees it.
template <Element T, class Fold>
inline constexpr bool adds_freely = std::floating_point<T> && std::same_as<std::remove_cvref_t<Fold>, addition>;

/// What is left of two vectors to merge, and where the result goes on.
struct merge_cursor {
    std::size_t i, i_end;
    std::size_t j, j_end;
    std::size_t to;

    bool has_both() const { return i < i_end && j < j_end; }
};

/// Moves the lower of the next entries to `out`, or the fold of both. Which of two different indices comes first is
/// unpredictable: no branch depends on it.
template <Element T, IndexType Index, class Fold>
[[gnu::always_inline]] inline void merge_one(sparse_view<T, Index> a, sparse_view<T, Index> b,
                                             sparse_sink<T, Index> out, merge_cursor& at, Fold& fold) {
    const Index left = a.indices[at.i], right = b.indices[at.j];
    const T x = a.values[at.i], y = b.values[at.j];
    const std::size_t take_left = left <= right, take_right = right <= left;
    out.indices[at.to] = std::min(left, right);
    if constexpr (adds_freely<T, Fold>)
        out.values[at.to] = pick(take_left, pick(take_right, fold(x, y), x), y);
    else
        out.values[at.to] = left == right ? fold(x, y) : pick(take_left, x, y);
    at.i += take_left;
    at.j += take_right;
    ++at.to;
}

/// Goes to the end, and gives where the result ends.
template <Element T, IndexType Index, class Fold>
std::size_t merge_rest(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index> out, merge_cursor at,
                       Fold& fold) {
    while (at.has_both()) merge_one(a, b, out, at, fold);
    out.count = at.to;
    out.append(a, at.i, at.i_end);
    out.append(b, at.j, at.j_end);
    return out.count;
}

/// Two merges at a time, below and above the middle of what is left of `a`: while one waits for an index the other goes
/// on. The upper one's result is moved to where the lower one's ends.
template <Element T, IndexType Index, class Fold>
void merge_halves(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, merge_cursor all,
                  Fold& fold) {
    if (!all.has_both()) {
        out.count = merge_rest(a, b, out, all, fold);
        return;
    }
    const std::size_t i = all.i + (all.i_end - all.i) / 2;
    const std::size_t j = gallop(b.indices.first(all.j_end), all.j, a.indices[i]);
    const std::size_t middle = all.to + (i - all.i) + (j - all.j);
    merge_cursor lower{all.i, i, all.j, j, all.to}, upper{i, all.i_end, j, all.j_end, middle};
    while (lower.has_both() && upper.has_both()) {
        merge_one(a, b, out, lower, fold);
        merge_one(a, b, out, upper, fold);
    }
    const std::size_t below = merge_rest(a, b, out, lower, fold), end = merge_rest(a, b, out, upper, fold);
    if (below != middle) {
        std::copy(out.indices + middle, out.indices + end, out.indices + below);
        std::copy(out.values + middle, out.values + end, out.values + below);
    }
    out.count = below + (end - middle);
}

/// Stretch by stretch, so that what is moved lies in the first cache.
template <Element T, IndexType Index, class Fold>
void merge_evenly(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold) {
    constexpr std::size_t stretch = 4096;
    merge_cursor part{0, 0, 0, 0, out.count};
    for (; part.i < a.count(); part.i = part.i_end, part.j = part.j_end, part.to = out.count) {
        const bool last = a.count() - part.i <= stretch;
        part.i_end = last ? a.count() : part.i + stretch;
        part.j_end = last ? b.count() : gallop(b.indices, part.j, a.indices[part.i_end]);
        merge_halves(a, b, out, part, fold);
    }
}

template <Element T, IndexType Index>
sparse_view<T, Index> entries_between(sparse_view<T, Index> x, std::size_t first, std::size_t last) {
    return {x.indices.subspan(first, last - first), x.values.subspan(first, last - first)};
}

/// `evenly(a, b, out)` merges what interleaves and is of similar length.
template <Element T, IndexType Index, class Fold, class Evenly>
void merge_by_shape(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold,
                    Evenly evenly) {
    if (a.count() == 0 || b.count() == 0 || a.indices.back() < b.indices.front()) {
        out.append(a, 0, a.count());
        out.append(b, 0, b.count());
    } else if (b.indices.back() < a.indices.front()) {
        out.append(b, 0, b.count());
        out.append(a, 0, a.count());
    } else if (a.count() < b.count() / much_longer) {
        merge_into_long(a, b, out, [&](T few, T many) { return fold(few, many); });
    } else if (b.count() < a.count() / much_longer) {
        merge_into_long(b, a, out, [&](T few, T many) { return fold(many, few); });
    } else {
        evenly(a, b, out);
    }
}

template <Element T, IndexType Index, class Fold>
void merge_portably(sparse_view<T, Index> a, sparse_view<T, Index> b, sparse_sink<T, Index>& out, Fold& fold) {
    merge_by_shape(a, b, out, fold, [&](auto x, auto y, auto& to) { merge_evenly(x, y, to, fold); });
}

/// Whether there are intrinsics for this.
template <Element T, IndexType Index, class Fold>
inline constexpr bool adds_by_avx512 =
#if defined(RILL_DETAIL_AVX512)
    std::same_as<T, float> && std::same_as<Index, std::uint32_t> && adds_freely<T, Fold>;
#else
    false;
#endif

template <Element T, IndexType Index, class Fold>
std::size_t merge_to(sparse_view<T, Index> a, sparse_view<T, Index> b, Index* indices, T* values, Fold& fold) {
    sparse_sink<T, Index> out{.indices = indices, .values = values};
#if defined(RILL_DETAIL_AVX512)
    if constexpr (adds_by_avx512<T, Index, Fold>) {
        merge_by_shape(a, b, out, fold, [&](auto x, auto y, auto& to) {
            const auto begun = add_avx512(x, y, to.indices + to.count, to.values + to.count);
            to.count += begun.count;
            merge_portably(entries_between(x, begun.of_a, x.count()), entries_between(y, begun.of_b, y.count()), to,
                           fold);
        });
        return out.count;
    }
#endif
    merge_portably(a, b, out, fold);
    return out.count;
}

}  // namespace detail

/// Writes the union of two sparse vectors and returns its size. Where both have an entry it is fold(a's, b's); other
/// entries are copied, and `fold` is not called for them; but what is folded by `addition` may be added in vain.
///
/// `indices` and `values` hold at least a.count() + b.count() and overlap no input. Cost: one pass; disjoint ranges are
/// concatenated, very unequal lengths copied in stretches.
template <Element T, IndexType Index, class Fold>
std::size_t merge(sparse_view<T, Index> a, sparse_view<T, Index> b, std::span<Index> indices, std::span<T> values,
                  Fold&& fold) {
    RILL_EXPECTS(a.indices.size() == a.values.size() && b.indices.size() == b.values.size(),
                 "merge: each index has one value");
    RILL_EXPECTS(indices.size() >= a.count() + b.count() && values.size() >= a.count() + b.count(),
                 "merge: too little room for the result");
    return detail::merge_to(a, b, indices.data(), values.data(), fold);
}

}  // namespace rill::inline RILL_ABI::kernel

#endif  // RILL_SINGLE_KERNEL_MERGE_HPP

#ifndef RILL_SINGLE_KERNEL_SCRATCH_HPP
#define RILL_SINGLE_KERNEL_SCRATCH_HPP

// ===== rill/kernel/scratch.hpp

namespace rill::inline RILL_ABI::kernel::detail {

/// Room for `count` uninitialised elements in a reusable buffer; what the buffer held before is lost.
template <class T>
T* room(buffer& memory, std::size_t count) {
    if (memory.size() / sizeof(T) < count) {
        memory.clear();  // growing must not copy what nobody will read
        memory.resize(count * sizeof(T));
    }
    return count == 0 ? nullptr : ::new (static_cast<void*>(memory.data())) T[count];
}

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_SCRATCH_HPP

#ifndef RILL_SINGLE_KERNEL_DETAIL_MERGE_TREE_HPP
#define RILL_SINGLE_KERNEL_DETAIL_MERGE_TREE_HPP

// ===== rill/kernel/detail/merge_tree.hpp

// Sparse vectors merged by pairs, the results by pairs, and so on. Entries at one coordinate stay side by side in the
// order of the inputs until they are folded at the end: the order of the folds is not the tree's.

namespace rill::inline RILL_ABI::kernel::detail {

/// The lowest index that no cursor has passed; `any` is false when all inputs are used up.
template <Element T, IndexType Index>
Index lowest_index(std::span<const sparse_view<T, Index>> inputs, const std::size_t* cursors, bool& any) {
    Index lowest = std::numeric_limits<Index>::max();
    any = false;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        if (cursors[k] == inputs[k].count()) continue;
        any = true;
        lowest = std::min(lowest, inputs[k].indices[cursors[k]]);
    }
    return lowest;
}

/// Two runs to merge, and where to.
template <class Entry>
struct run_pair {
    const Entry* a;
    std::size_t of_a;
    const Entry* b;
    std::size_t of_b;
    Entry* to;

    std::size_t count() const { return of_a + of_b; }
};

/// Sorted entries, and behind them one above all others: merging them asks for no end.
template <Element T, IndexType Index>
class plain_runs {
  public:
    struct entry {
        T value;
        Index key;  // from where a stretch of coordinates begins
    };

    explicit plain_runs(std::size_t) {}

    static constexpr std::size_t room_for(std::size_t count) { return count + 1; }
    static const entry* end_of(const entry* run, std::size_t count) { return run + count; }
    static constexpr Index widest() { return std::numeric_limits<Index>::max(); }

    static void load(sparse_view<T, Index> x, Index base, std::size_t, entry* to) {
        for (std::size_t i = 0; i < x.count(); ++i) to[i] = {x.values[i], static_cast<Index>(x.indices[i] - base)};
        to[x.count()].key = widest();
    }

    /// Two at a time: while one waits for a key the other goes on.
    static void merge(run_pair<entry> x, run_pair<entry> y) {
        const std::size_t both = std::min(x.count(), y.count());
        entry *const x_end = x.to + x.count(), *const y_end = y.to + y.count();
        for (std::size_t i = 0; i < both; ++i) {
            merge_one(x);
            merge_one(y);
        }
        while (x.to != x_end) merge_one(x);
        while (y.to != y_end) merge_one(y);
        x_end->key = y_end->key = widest();
    }

    template <class Fold>
    static void fold_to(const entry* run, std::size_t count, Index base, sparse_sink<T, Index>& out, Fold& fold) {
        for (const entry* const end = run + count; run != end;) {
            const Index key = run->key;
            T value = run++->value;
            for (; run->key == key; ++run) value = fold(value, run->value);
            out.push(static_cast<Index>(base + key), value);
        }
    }

  private:
    /// Of equal keys that of `a` comes first. Which is lower is unpredictable: no branch depends on it.
    [[gnu::always_inline]] static void merge_one(run_pair<entry>& x) {
        const std::size_t take_b = x.b->key < x.a->key;
        *x.to++ = *pick(take_b, x.b, x.a);
        x.b += take_b;
        x.a += 1 - take_b;
    }
};

/// Merges stretch by stretch, so that what is on its way lies in the second cache; two stretches at a time.
template <class Runs, Element T, IndexType Index>
class merge_tree {
  public:
    /// Entries of a stretch; half as many and four times as many are as fast (Zen 4, 8 inputs of 16M coordinates).
    static constexpr std::size_t stretch = 8192;

    merge_tree(std::span<const sparse_view<T, Index>> inputs, buffer& cursors, buffer& entries)
        : inputs_(inputs), runs_(inputs.size()) {
        const std::size_t ways = inputs.size();
        std::size_t longest = 0;
        for (const auto& input : inputs) longest = std::max(longest, input.count());
        share_ = std::min(longest, std::max<std::size_t>(stretch / ways, 64));
        cursors_ = room<std::size_t>(cursors, 3 * ways);
        std::fill_n(cursors_, ways, std::size_t{0});
        const std::size_t size = ways * Runs::room_for(share_);
        entry* first = room<entry>(entries, 4 * size);
        for (part& each : parts_) {
            each.counts = cursors_ + static_cast<std::size_t>(&each - parts_ + 1) * ways;
            for (entry*& runs : each.runs) runs = std::exchange(first, first + size);
        }
    }

    /// Merges the next two stretches behind what is in `out`, and gives how many entries they had.
    template <class Fold>
    std::size_t merge_next(sparse_sink<T, Index>& out, Fold& fold) {
        for (part& each : parts_) cut(each);
        const std::size_t last = merge_runs();
        std::size_t merged = 0;
        for (part& each : parts_) {
            runs_.fold_to(each.runs[last], each.counts[0], each.base, out, fold);
            merged += each.counts[0];
        }
        return merged;
    }

    /// Leaves as much as `times` stretches to the caller: a view of each input.
    void skip(std::size_t times, std::span<sparse_view<T, Index>> views) {
        take_stretch(times * share_, std::numeric_limits<Index>::max(),
                     [&](std::size_t k, Index, sparse_view<T, Index> x) { views[k] = x; });
    }

  private:
    using entry = typename Runs::entry;

    /// A stretch of coordinates: how many entries each run has; the runs, and room for the next ones.
    struct part {
        Index base = 0;
        std::size_t* counts = nullptr;
        entry* runs[2] = {};
    };

    void cut(part& to) {
        entry* run = to.runs[0];
        take_stretch(share_, runs_.widest(), [&](std::size_t k, Index base, sparse_view<T, Index> x) {
            to.base = base;
            to.counts[k] = x.count();
            runs_.load(x, base, k, run);
            run += Runs::room_for(x.count());
        });
    }

    /// Less than `extent` wide, and as wide as no input has more than `share` entries there: `take(k, base, entries)`
    /// for each input. Nothing is in it when nothing is left.
    template <class Take>
    void take_stretch(std::size_t share, Index extent, Take&& take) {
        bool any = false;
        const Index base = lowest_index(inputs_, cursors_, any);
        for (std::size_t k = 0; k < inputs_.size(); ++k)
            if (inputs_[k].count() - cursors_[k] > share)
                extent = std::min(extent, static_cast<Index>(inputs_[k].indices[cursors_[k] + share] - base));
        for (std::size_t k = 0; k < inputs_.size(); ++k) {
            const std::size_t first = cursors_[k], most = std::min(first + share, inputs_[k].count());
            const auto end = std::partition_point(inputs_[k].indices.begin() + static_cast<std::ptrdiff_t>(first),
                                                  inputs_[k].indices.begin() + static_cast<std::ptrdiff_t>(most),
                                                  [&](Index i) { return i - base < extent; });
            cursors_[k] = static_cast<std::size_t>(end - inputs_[k].indices.begin());
            take(k, base, entries_between(inputs_[k], first, cursors_[k]));
        }
    }

    /// Until one run is left of each part; gives which of its two it is.
    std::size_t merge_runs() {
        std::size_t now = 0;
        for (std::size_t left = inputs_.size(); left > 1; left = (left + 1) / 2, now = 1 - now) {
            const entry* from[2] = {parts_[0].runs[now], parts_[1].runs[now]};
            entry* to[2] = {parts_[0].runs[1 - now], parts_[1].runs[1 - now]};
            for (std::size_t k = 0; k < left; k += 2)
                runs_.merge(next_pair(parts_[0].counts, k, left, from[0], to[0]),
                            next_pair(parts_[1].counts, k, left, from[1], to[1]));
        }
        return now;
    }

    /// Runs k and k + 1 of `left`. The last one may be alone: it is merged with an empty one.
    static run_pair<entry> next_pair(std::size_t* counts, std::size_t k, std::size_t left, const entry*& from,
                                     entry*& to) {
        run_pair<entry> pair{from, counts[k], Runs::end_of(from, counts[k]), 0, to};
        from += Runs::room_for(pair.of_a);
        if (k + 1 < left) {
            pair.b = from;
            pair.of_b = counts[k + 1];
            from += Runs::room_for(pair.of_b);
        }
        to += Runs::room_for(pair.count());
        counts[k / 2] = pair.count();
        return pair;
    }

    std::span<const sparse_view<T, Index>> inputs_;
    Runs runs_;
    std::size_t share_ = 0;
    std::size_t* cursors_ = nullptr;
    part parts_[2];
};

}  // namespace rill::inline RILL_ABI::kernel::detail

#endif  // RILL_SINGLE_KERNEL_DETAIL_MERGE_TREE_HPP

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

RILL_DETAIL_AVX512_BEGIN
namespace rill::inline RILL_ABI::kernel::detail {

/// Runs of keys: the coordinate, below it the rank, below that the bits of the value. No two keys are equal but those
/// behind the end, of which there are up to a block and one: merging takes blocks of eight.
class key_runs {
  public:
    using entry = std::uint64_t;
    static constexpr std::size_t block = 8;

    explicit key_runs(std::size_t ways) : rank_bits_(static_cast<int>(std::bit_width(ways - 1))) {}

    static constexpr std::size_t room_for(std::size_t count) { return blocks_for(count) * block + 2 * block; }
    static const entry* end_of(const entry* run, std::size_t count) { return run + blocks_for(count) * block; }
    std::uint32_t widest() const { return std::numeric_limits<std::uint32_t>::max() >> rank_bits_; }

    void load(float_pairs x, std::uint32_t base, std::size_t rank, entry* to) const {
        const __m512i order = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        const __m256i first = _mm256_set1_epi32(static_cast<int>(base));
        const __m256i below = _mm256_set1_epi32(static_cast<int>(rank));
        const __m128i shift = _mm_cvtsi32_si128(rank_bits_);
        const std::size_t whole = x.count() / block * block;
        for (std::size_t i = 0; i < whole; i += block) {
            const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.values.data() + i));
            __m256i keys = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.indices.data() + i));
            keys = _mm256_or_si256(_mm256_sll_epi32(_mm256_sub_epi32(keys, first), shift), below);
            _mm512_storeu_si512(
                to + i, _mm512_permutex2var_epi32(_mm512_castsi256_si512(values), order, _mm512_castsi256_si512(keys)));
        }
        for (std::size_t i = whole; i < x.count(); ++i) {
            const std::uint32_t key = (x.indices[i] - base) << rank_bits_ | static_cast<std::uint32_t>(rank);
            to[i] = std::uint64_t{key} << 32 | std::bit_cast<std::uint32_t>(x.values[i]);
        }
        std::fill(to + x.count(), to + blocks_for(x.count()) * block + 1, none);
    }

    static void merge(run_pair<entry> x, run_pair<entry> y) {
        merging in_x(x), in_y(y);
        const std::size_t both = std::min(in_x.steps, in_y.steps);
        for (std::size_t i = 0; i < both; ++i) {
            in_x.step();
            in_y.step();
        }
        for (std::size_t i = both; i < in_x.steps; ++i) in_x.step();
        for (std::size_t i = both; i < in_y.steps; ++i) in_y.step();
        in_x.finish();
        in_y.finish();
    }

    /// 16 keys at a time. What follows the first of a coordinate is added to it, one after the other.
    void fold_to(const entry* run, std::size_t count, std::uint32_t base, sparse_sink<float, std::uint32_t>& out,
                 const addition&) const {
        const __m128i shift = _mm_cvtsi32_si128(rank_bits_);
        const __m512i first = _mm512_set1_epi32(static_cast<int>(base));
        unsigned begun = 0;  // before the group: then its first entry is added already
        for (std::size_t i = 0; i < count; i += group) {
            const auto there = static_cast<__mmask16>(0xFFFFU >> (group - std::min(count - i, group)));
            const __m512i key = coordinates(run + i, shift);
            const __mmask16 equal = _mm512_mask_cmpeq_epi32_mask(there, key, coordinates(run + i + 1, shift));
            __m512 sum = _mm512_mask_add_ps(values(run + i), equal, values(run + i), values(run + i + 1));
            __mmask16 more = equal & (equal >> 1 | 0x8000);
            for (std::size_t next = 2; more != 0; ++next) {
                more = _mm512_mask_cmpeq_epi32_mask(more, key, coordinates(run + i + next, shift));
                sum = _mm512_mask_add_ps(sum, more, sum, values(run + i + next));
            }
            const unsigned heads = there & ~(static_cast<unsigned>(equal) << 1 | begun);
            const auto made = static_cast<std::size_t>(std::popcount(heads));
            const auto stored = static_cast<__mmask16>((1U << made) - 1);
            const auto mask = static_cast<__mmask16>(heads);
            _mm512_mask_storeu_epi32(out.indices + out.count, stored,
                                     _mm512_maskz_compress_epi32(mask, _mm512_add_epi32(key, first)));
            _mm512_mask_storeu_ps(out.values + out.count, stored, _mm512_maskz_compress_ps(mask, sum));
            out.count += made;
            begun = static_cast<unsigned>(equal) >> 15;
        }
    }

  private:
    static constexpr std::size_t group = 16;
    static constexpr entry none = std::numeric_limits<entry>::max();

    static constexpr std::size_t blocks_for(std::size_t count) { return (count + block - 1) / block; }

    /// Two runs on their way into one: as key_merge does it, but to the end.
    struct merging {
        const entry* a;
        const entry* b;
        entry* to;
        std::size_t steps;
        __m512i highest;

        explicit merging(const run_pair<entry>& x)
            : a(x.a),
              b(x.b),
              to(x.to),
              steps(blocks_for(x.of_a) + blocks_for(x.of_b)),
              highest(_mm512_loadu_si512(next())) {  // where both are empty, what is behind them
            if (steps != 0) --steps;
        }
        [[gnu::always_inline]] void step() {
            const __m512i turned = _mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0);
            const __m512i more = _mm512_maskz_permutexvar_epi64(0xFF, turned, _mm512_loadu_si512(next()));
            _mm512_storeu_si512(to, sort_bitonic(_mm512_maskz_min_epu64(0xFF, highest, more)));
            highest = sort_bitonic(_mm512_maskz_max_epu64(0xFF, highest, more));
            to += block;
        }
        void finish() const {
            _mm512_storeu_si512(to, highest);
            to[block] = none;
        }
        [[gnu::always_inline]] const entry* next() {
            const std::size_t from_a = *a <= *b ? 1 : 0;
            const entry* const result = pick(from_a, a, b);
            a += block * from_a;
            b += block - block * from_a;
            return result;
        }
    };

    static __m512i coordinates(const entry* run, __m128i shift) {
        const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        const __m512i low = _mm512_loadu_si512(run), high = _mm512_loadu_si512(run + block);
        return _mm512_maskz_srl_epi32(0xFFFF, _mm512_permutex2var_epi32(low, odd, high), shift);
    }
    static __m512 values(const entry* run) {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        const __m512i low = _mm512_loadu_si512(run), high = _mm512_loadu_si512(run + block);
        return _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high));
    }

    int rank_bits_;
};

}  // namespace rill::inline RILL_ABI::kernel::detail
RILL_DETAIL_AVX512_END

#endif

// ===== rill/kernel/merge_k.hpp

// Merging any number of sparse vectors.

namespace rill::inline RILL_ABI::kernel {

/// Working memory of `merge_k`. It grows to what the inputs so far have needed, by their lengths and by how long the
/// stretches are where they are dense.
struct merge_scratch {
    buffer indices;
    buffer values;
    buffer cursors;
    buffer tile;
    buffer runs;
    buffer views;
    std::vector<merge_scratch> of_tasks;
};

namespace detail {

/// Scatters input after input into a tile of coordinates at a time.
template <Element T, IndexType Index, class Fold>
std::size_t merge_tiles(std::span<const sparse_view<T, Index>> inputs, Index* indices, T* values, Fold& fold,
                        merge_scratch& scratch) {
    sparse_sink<T, Index> out{.indices = indices, .values = values};
    if (scratch.tile.size() < sizeof(tile<T>))
        scratch.tile.assign(sizeof(tile<T>), std::byte{});  // sums read any of it
    tile<T>& dense = *reinterpret_cast<tile<T>*>(scratch.tile.data());
    std::size_t* cursors = room<std::size_t>(scratch.cursors, inputs.size());
    std::fill_n(cursors, inputs.size(), std::size_t{0});
    Index last = 0;
    for (const auto& input : inputs)
        if (input.count() != 0) last = std::max(last, input.indices.back());
    bool any = false, fresh = true;
    for (Index base = lowest_index(inputs, cursors, any); any; base = lowest_index(inputs, cursors, any)) {
        const std::size_t extent = last - base < merge_tile ? static_cast<std::size_t>(last - base) + 1 : merge_tile;
        if (std::exchange(fresh, false)) dense.clear(extent);
        for (std::size_t k = 0; k < inputs.size(); ++k) cursors[k] = dense.put(inputs[k], cursors[k], base, fold);
        dense.drain(base, extent, out);
    }
    return out.count;
}

/// Merges the first two inputs, the result with the third, and so on; results alternate between `out` and scratch, so
/// that the last one lands in `out`.
template <Element T, IndexType Index, class Fold>
std::size_t merge_in_turn(std::span<const sparse_view<T, Index>> inputs, Index* indices, T* values, Fold& fold,
                          merge_scratch& scratch) {
    std::size_t most = 0;
    for (const auto& input : inputs) most += input.count();
    Index* other_indices = room<Index>(scratch.indices, most);
    T* other_values = room<T>(scratch.values, most);
    sparse_view<T, Index> acc = inputs.empty() ? sparse_view<T, Index>{} : inputs[0];
    if (inputs.size() <= 1) return merge_to(acc, {}, indices, values, fold);
    for (std::size_t k = 1; k < inputs.size(); ++k) {
        const bool to_out = (inputs.size() - k) % 2 == 1;
        Index* i = to_out ? indices : other_indices;
        T* v = to_out ? values : other_values;
        const std::size_t count = merge_to(acc, inputs[k], i, v, fold);
        acc = {.indices = {i, count}, .values = {v, count}};
    }
    return acc.count();
}

/// Tiles cost a scan of the marks of the range, a tree moves entries once a level. With fewer coordinates per entry
/// than this the former is the faster one: measured with 3, 4, 8 and 16 inputs of 16M coordinates.
template <Element T, IndexType Index, class Fold>
constexpr std::size_t coordinates_per_entry(std::size_t inputs) {
    if (inputs < (adds_by_avx512<T, Index, Fold> ? 4 : 3)) return 0;
    const auto below_the_top = static_cast<std::size_t>(std::bit_width(inputs - 1)) - 1;  // levels of the tree
    return adds_by_avx512<T, Index, Fold> ? below_the_top * 7 / 2 : below_the_top * 10;
}

template <Element T, IndexType Index, class Fold>
bool tiles_pay(std::span<const sparse_view<T, Index>> inputs) {
    const std::size_t sparse = coordinates_per_entry<T, Index, Fold>(inputs.size());
    std::size_t entries = 0;
    Index first = static_cast<Index>(-1), last = 0;
    for (const auto& input : inputs) {
        if (input.count() == 0) continue;
        entries += input.count();
        first = std::min(first, input.indices.front());
        last = std::max(last, input.indices.back());
    }
    return sparse > 0 && entries > 0 && (last - first) / sparse < entries;
}

template <Element T, IndexType Index, class Fold>
struct runs_for {
    using type = plain_runs<T, Index>;
};
#if defined(RILL_DETAIL_AVX512)
template <Element T, IndexType Index, class Fold>
    requires adds_by_avx512<T, Index, Fold>
struct runs_for<T, Index, Fold> {
    using type = key_runs;
};
#endif

/// How many stretches are merged in turn before the tree is tried again: twice as many where it fails at once. With
/// half as many, dense vectors lose 3 % by the trials; with twice as many, most of the gain behind a small cluster is
/// lost.
inline constexpr std::size_t first_in_turn = 16;

/// By pairs and pairs of these, where most coordinates are in one input only. What is in many takes fewer steps in
/// turn, because sums stay short.
template <Element T, IndexType Index, class Fold, class Runs = typename runs_for<T, Index, Fold>::type>
std::size_t merge_by_tree(std::span<const sparse_view<T, Index>> inputs, Index* indices, T* values, Fold& fold,
                          merge_scratch& scratch) {
    sparse_sink<T, Index> out{.indices = indices, .values = values};
    merge_tree<Runs, T, Index> tree(inputs, scratch.cursors, scratch.runs);
    const std::span<sparse_view<T, Index>> views(room<sparse_view<T, Index>>(scratch.views, inputs.size()),
                                                 inputs.size());
    std::size_t in_turn = first_in_turn;
    for (std::size_t before = 0;; before = out.count) {
        const std::size_t merged = tree.merge_next(out, fold);
        if (merged == 0) return out.count;
        if (out.count - before >= merged / 2) {
            in_turn = first_in_turn;
            continue;
        }
        tree.skip(in_turn, views);
        in_turn *= 2;
        out.count += merge_in_turn<T, Index>(views, indices + out.count, values + out.count, fold, scratch);
    }
}

/// Whether one input is so much longer than all others together that it is copied in stretches.
template <Element T, IndexType Index>
bool one_outweighs(std::span<const sparse_view<T, Index>> inputs) {
    std::size_t longest = 0, entries = 0;
    for (const auto& input : inputs) {
        longest = std::max(longest, input.count());
        entries += input.count();
    }
    return entries - longest < longest / much_longer;
}

template <Element T, IndexType Index, class Fold>
std::size_t merge_any(std::span<const sparse_view<T, Index>> inputs, Index* indices, T* values, Fold& fold,
                      merge_scratch& scratch) {
    if (tiles_pay<T, Index, Fold>(inputs)) return merge_tiles(inputs, indices, values, fold, scratch);
    if (inputs.size() <= 3 || one_outweighs(inputs)) return merge_in_turn(inputs, indices, values, fold, scratch);
    return merge_by_tree(inputs, indices, values, fold, scratch);
}

/// Cuts the inputs at common coordinates: those of the longest one at the borders of its tasks. View k of task t is
/// result[t * inputs.size() + k].
template <Element T, IndexType Index>
std::span<const sparse_view<T, Index>> cut_inputs(std::span<const sparse_view<T, Index>> inputs, const tasks& all,
                                                  std::span<const Index> longest, merge_scratch& scratch) {
    auto* views = room<sparse_view<T, Index>>(scratch.views, all.count() * inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        const auto& in = inputs[k];
        std::size_t first = 0;
        for (std::size_t t = 0; t < all.count(); ++t) {
            const std::size_t border = std::min(split(longest.size(), all.count(), t).end, longest.size() - 1);
            const auto last = t + 1 == all.count() ? in.count() : gallop(in.indices, first, longest[border]);
            views[t * inputs.size() + k] = {in.indices.subspan(first, last - first),
                                            in.values.subspan(first, last - first)};
            first = last;
        }
    }
    return {views, all.count() * inputs.size()};
}

/// What tasks wrote with gaps between, each from `from[t]` on, closed up.
template <class Value>
void close_gaps(Value* values, const tasks& all, const task_counts& from, const task_counts& counts) {
    std::size_t to = counts[0];
    for (std::size_t t = 1; t < all.count(); ++t) {
        if (to != from[t]) std::copy_n(values + from[t], counts[t], values + to);
        to += counts[t];
    }
}

/// Each task merges a stretch of coordinates to where it ends up if no coordinate below is in two inputs; what is in
/// two leaves gaps.
template <Element T, IndexType Index, class Fold, Executor Exec>
std::size_t merge_by_tasks(std::span<const sparse_view<T, Index>> inputs, std::size_t entries, Index* indices,
                           T* values, Fold& fold, merge_scratch& scratch, const Exec& executor) {
    const tasks all(entries);
    const std::size_t ways = inputs.size();
    const auto longest = std::max_element(inputs.begin(), inputs.end(),
                                          [](const auto& a, const auto& b) { return a.count() < b.count(); });
    const auto views = cut_inputs(inputs, all, longest->indices, scratch);
    task_counts from{}, counts{};
    for (std::size_t t = 0; t + 1 < all.count(); ++t) {
        from[t + 1] = from[t];
        for (const auto& view : views.subspan(t * ways, ways)) from[t + 1] += view.count();
    }
    scratch.of_tasks.resize(std::max(scratch.of_tasks.size(), all.count()));
    executor.run(all.count(), [&](std::size_t t) {
        counts[t] =
            merge_any(views.subspan(t * ways, ways), indices + from[t], values + from[t], fold, scratch.of_tasks[t]);
    });
    executor.run(2, [&](std::size_t half) {
        if (half == 0)
            close_gaps(indices, all, from, counts);
        else
            close_gaps(values, all, from, counts);
    });
    return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(all.count()), std::size_t{0});
}

}  // namespace detail

/// Writes the union of sparse vectors and returns its size. An entry is the left fold of the values that are present at
/// its coordinate, in the order of the inputs: the bits do not depend on how the inputs are spread.
///
/// `indices` and `values` hold at least the sum of the inputs' counts and overlap no input. A single value is copied;
/// `fold` sees present values only.
template <Element T, IndexType Index, class Fold, Executor Exec = serial>
std::size_t merge_k(std::span<const sparse_view<T, Index>> inputs, std::span<Index> indices, std::span<T> values,
                    Fold&& fold, merge_scratch& scratch, const Exec& executor = {}) {
    std::size_t most = 0;
    for (const auto& input : inputs) {
        RILL_EXPECTS(input.indices.size() == input.values.size(), "merge_k: each index has one value");
        most += input.count();
    }
    RILL_EXPECTS(indices.size() >= most && values.size() >= most, "merge_k: too little room for the result");
    if (inputs.size() > 1 && tasks_for(executor, most).count() > 1)
        return detail::merge_by_tasks(inputs, most, indices.data(), values.data(), fold, scratch, executor);
    return detail::merge_any(inputs, indices.data(), values.data(), fold, scratch);
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/quantize.hpp

// QSGD: stochastic quantisation to 2, 4 or 8 bits (Alistarh et al., 2017), with the max norm of a bucket as its scale.
//
// A code is level + levels, level in [-levels, levels], levels = 2^(bits-1) - 1. The codes of a bucket of n entries
// fill b = ceil(n * bits / 8) bytes plane by plane: entry p * b + j is in bits [p * bits, (p + 1) * bits) of byte j,
// which packs whole blocks with the same shift. Bits behind the last entry are zero.

namespace rill::inline RILL_ABI::kernel {

/// Entries that share a scale where nothing else is asked for (SparCML, section 6).
inline constexpr std::size_t quantize_bucket = 1024;

/// Whether values can be quantised to this many bits.
constexpr bool is_quantize_width(unsigned bits) { return bits == 2 || bits == 4 || bits == 8; }

/// The levels on each side of zero.
constexpr std::uint32_t quantize_levels(unsigned bits) { return (1U << (bits - 1)) - 1; }

/// The number of buckets, and of scales, of `count` entries.
constexpr std::size_t quantize_buckets(std::size_t count, std::size_t bucket) {
    return count / bucket + (count % bucket != 0 ? 1U : 0U);
}

/// The bytes of the codes of `count` entries: each bucket is filled up to a whole byte.
constexpr std::size_t quantized_bytes(std::size_t count, unsigned bits, std::size_t bucket) {
    const std::size_t per_byte = 8 / bits;
    const auto bytes = [&](std::size_t n) { return n / per_byte + (n % per_byte != 0 ? 1U : 0U); };
    return count / bucket * bytes(bucket) + bytes(count % bucket);
}

namespace detail {

/// The code of `x`, |x| <= scale: the level in fixed point with 24 fractional bits, plus a random fraction, cut off. No
/// sum is in floating point, so that no compiler can contract it; x = ±scale and x = 0 give their levels exactly.
template <unsigned Bits, std::floating_point T>
std::uint32_t code_of(T x, T scale, std::uint32_t random) {
    constexpr std::uint32_t levels = quantize_levels(Bits);
    constexpr auto unit = static_cast<float>(levels << 24);
    const auto fixed = static_cast<std::int32_t>(static_cast<float>(x / scale) * unit);
    return (static_cast<std::uint32_t>(fixed) + (levels << 24) + (random >> 8)) >> 24;
}

/// The value of a code, at most `scale` in magnitude.
template <unsigned Bits, std::floating_point T>
T value_of(std::uint32_t code, T scale) {
    constexpr auto levels = static_cast<std::int32_t>(quantize_levels(Bits));
    constexpr T step = T{1} / static_cast<T>(levels);
    static_assert(step * static_cast<T>(levels) == T{1}, "the largest entry of a bucket would not be exact");
    const auto offset = static_cast<std::int32_t>(code);
    const std::int32_t level = (offset < 2 * levels ? offset : 2 * levels) - levels;
    return static_cast<T>(level) * step * scale;
}

template <std::floating_point T>
T max_norm(std::span<const T> x, std::size_t first) {
    const magnitude_key<T> largest = largest_of(x);
    if (largest >= largest_magnitude<T>)
        throw invalid_value("coordinate " + std::to_string(first + *find_non_finite(x)) +
                            " is not finite and cannot be quantised");
    return std::bit_cast<T>(largest);
}

/// 64 bytes of codes, whose entries are those from x[0], x[stride], x[2 * stride], …; `low`, `high` and `first` are the
/// words of the random numbers' key, and the index of x[0].
template <unsigned Bits, std::floating_point T>
void quantize_block(const T* x, std::size_t stride, T scale, std::uint32_t low, std::uint32_t high, std::uint32_t first,
                    std::byte* codes) {
    std::uint32_t packed[block];
    [&]<std::size_t... Plane>(std::index_sequence<Plane...>) {
        const std::uint32_t across = static_cast<std::uint32_t>(stride) * counter_step;
        std::uint32_t product = first * counter_step;
        for (std::size_t i = 0; i < block; ++i, product += counter_step) {
            const auto code = [&](std::uint32_t plane) {
                return code_of<Bits>(x[plane * stride + i], scale, counter_bits_of(low, high, product + plane * across))
                       << (plane * Bits);
            };
            packed[i] = (code(Plane) | ...);
        }
    }(std::make_index_sequence<8 / Bits>());
    for (std::size_t i = 0; i < block; ++i) codes[i] = static_cast<std::byte>(packed[i]);
}

/// One bucket; all of its codes are written.
template <unsigned Bits, std::floating_point T>
void quantize_one(std::span<const T> x, T scale, const counter_rng& random, std::uint64_t first, byte_span codes) {
    constexpr std::size_t planes = 8 / Bits;
    const T divisor = scale > T{0} ? scale : T{1};
    const std::size_t stride = codes.size();
    std::size_t j = 0;
    if ((first >> 32) == ((first + x.size()) >> 32)) {  // else the key changes within the bucket
        const std::uint64_t key = random.word(first);
        const auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
        for (; j + block <= stride && (planes - 1) * stride + j + block <= x.size(); j += block)
            quantize_block<Bits>(&x[j], stride, divisor, low, high, static_cast<std::uint32_t>(first + j), &codes[j]);
    }
    for (; j < stride; ++j) {
        std::uint32_t packed = 0;
        for (std::size_t p = 0, i = j; p < planes && i < x.size(); ++p, i += stride)
            packed |= code_of<Bits>(x[i], divisor, random.bits(first + i)) << (p * Bits);
        codes[j] = static_cast<std::byte>(packed);
    }
}

/// put(to[i], value of the code in bits [shift, shift + Bits) of byte i) for `Count` bytes.
template <unsigned Bits, std::size_t Count, std::floating_point T, class Put>
void dequantize_bytes(const std::byte* __restrict codes, std::size_t shift, T scale, T* __restrict to, Put& put) {
    constexpr std::uint32_t mask = (1U << Bits) - 1;
    const auto value = [shift, scale](std::byte code) {
        const auto byte = std::to_integer<std::uint32_t>(code);
        return value_of<Bits>(Bits == 8 ? byte : (byte >> shift) & mask, scale);
    };
    if constexpr (fuses_products) {
        T values[Count];
        for (std::size_t i = 0; i < Count; ++i) values[i] = value(codes[i]);
        round_here(values);
        for (std::size_t i = 0; i < Count; ++i) put(to[i], values[i]);
    } else {
        for (std::size_t i = 0; i < Count; ++i) put(to[i], value(codes[i]));
    }
}

/// One bucket: put(out[i], value of code i). Out of line: in some callers g++ -O2 takes the loops for rarely run, and
/// vectorises none of them.
template <unsigned Bits, std::floating_point T, class Put>
[[gnu::noinline]] void dequantize_one(byte_view codes, T scale, std::span<T> out, Put& put) {
    const std::size_t stride = codes.size();
    for (std::size_t p = 0; p * stride < out.size(); ++p) {
        const auto plane = out.subspan(p * stride, std::min(stride, out.size() - p * stride));
        std::size_t j = 0;
        for (; j + block <= plane.size(); j += block)
            dequantize_bytes<Bits, block>(&codes[j], p * Bits, scale, &plane[j], put);
        for (; j < plane.size(); ++j) dequantize_bytes<Bits, 1>(&codes[j], p * Bits, scale, &plane[j], put);
    }
}

/// Calls visit(bucket number, first entry, entries, first byte, bytes) for every bucket.
template <class Visit>
void for_each_bucket(std::size_t count, unsigned bits, std::size_t bucket, Visit visit) {
    std::size_t byte = 0;
    for (std::size_t b = 0, first = 0; first < count; ++b) {
        const std::size_t entries = std::min(bucket, count - first);
        const std::size_t bytes = quantized_bytes(entries, bits, entries);
        visit(b, first, entries, byte, bytes);
        byte += bytes;
        first += entries;
    }
}

/// Calls visit with the width as a constant.
template <class Visit>
void with_width(unsigned bits, Visit visit) {
    switch (bits) {
        case 2: return visit.template operator()<2>();
        case 4: return visit.template operator()<4>();
        default: return visit.template operator()<8>();
    }
}

/// Where the scales and codes of some entries lie, the first of which begins a bucket.
struct bucket_range {
    std::size_t first_scale, scales, first_byte, bytes;

    constexpr bucket_range(segment entries, unsigned bits, std::size_t bucket)
        : first_scale(entries.begin / bucket),
          scales(quantize_buckets(entries.size(), bucket)),
          first_byte(quantized_bytes(entries.begin, bits, bucket)),
          bytes(quantized_bytes(entries.size(), bits, bucket)) {}
};

/// All buckets, one after the other.
template <std::floating_point T>
void quantize_in_turn(std::span<const T> x, unsigned width, std::size_t bucket, random_key key,
                      std::uint64_t first_index, std::span<T> scales, byte_span codes) {
    const counter_rng random(key);
    with_width(width, [&]<unsigned Bits>() {
        for_each_bucket(x.size(), Bits, bucket, [&](auto b, auto first, auto entries, auto byte, auto bytes) {
            const auto part = x.subspan(first, entries);
            const std::uint64_t index = first_index + first;
            scales[b] = max_norm(part, static_cast<std::size_t>(index));
            quantize_one<Bits>(part, scales[b], random, index, codes.subspan(byte, bytes));
        });
    });
}

template <std::floating_point T, class Put>
void dequantize_in_turn(byte_view codes, std::span<const T> scales, unsigned width, std::size_t bucket,
                        std::span<T> out, Put& put) {
    with_width(width, [&]<unsigned Bits>() {
        for_each_bucket(out.size(), Bits, bucket, [&](auto b, auto first, auto entries, auto byte, auto bytes) {
            dequantize_one<Bits>(codes.subspan(byte, bytes), scales[b], out.subspan(first, entries), put);
        });
    });
}

template <std::floating_point T, Executor Exec, class Put>
void dequantize_each(byte_view codes, std::span<const T> scales, unsigned width, std::size_t bucket, std::span<T> out,
                     const Exec& executor, Put put) {
    RILL_EXPECTS(is_quantize_width(width) && bucket > 0, "dequantize: 2, 4 or 8 bits in buckets of at least one entry");
    RILL_EXPECTS(scales.size() == quantize_buckets(out.size(), bucket), "dequantize: one scale for each bucket");
    RILL_EXPECTS(codes.size() == quantized_bytes(out.size(), width, bucket), "dequantize: the codes have another size");
    run_tasks(executor, tasks_for(executor, out.size(), bucket), [&](segment part) {
        const bucket_range at(part, width, bucket);
        dequantize_in_turn(codes.subspan(at.first_byte, at.bytes), scales.subspan(at.first_scale, at.scales), width,
                           bucket, out.subspan(part.begin, part.size()), put);
    });
}

}  // namespace detail

/// Quantises `x` without bias: the expected value of what `dequantize` returns is `x` (up to 2^-24 of a level, the
/// resolution of the random numbers).
///
/// `scales` holds `quantize_buckets(n, bucket)`, `codes` `quantized_bytes(n, bits, bucket)`. An entry errs by less than
/// scale / levels; zero and the largest magnitude of each bucket are exact. `first_index` is the global index of x[0]:
/// entry j uses the random number (key, first_index + j), and the bytes are the same for every compiler and instruction
/// set. Throws `invalid_value` naming the coordinate (its global index) that is infinite or NaN; `scales` and `codes`
/// are then unspecified.
template <std::floating_point T, Executor Exec = serial>
void quantize(std::span<const T> x, unsigned bits, std::size_t bucket, random_key key, std::uint64_t first_index,
              std::span<T> scales, byte_span codes, const Exec& executor = {}) {
    RILL_EXPECTS(is_quantize_width(bits) && bucket > 0, "quantize: 2, 4 or 8 bits in buckets of at least one entry");
    RILL_EXPECTS(scales.size() == quantize_buckets(x.size(), bucket), "quantize: one scale for each bucket");
    RILL_EXPECTS(codes.size() == quantized_bytes(x.size(), bits, bucket), "quantize: the codes have another size");
    run_tasks(executor, tasks_for(executor, x.size(), bucket), [&](segment part) {
        const detail::bucket_range at(part, bits, bucket);
        detail::quantize_in_turn(x.subspan(part.begin, part.size()), bits, bucket, key, first_index + part.begin,
                                 scales.subspan(at.first_scale, at.scales), codes.subspan(at.first_byte, at.bytes));
    });
}

/// out[i] = fold(out[i], value of entry i). Any codes are valid: the unused one counts as the highest level. The bits
/// do not depend on the compiler: the value is rounded before it is folded.
template <std::floating_point T, class Fold, Executor Exec = serial>
void dequantize_fold(byte_view codes, std::span<const T> scales, unsigned bits, std::size_t bucket, std::span<T> out,
                     Fold&& fold, const Exec& executor = {}) {
    detail::dequantize_each(codes, scales, bits, bucket, out, executor, [&](T& to, T value) { to = fold(to, value); });
}

/// out[i] = the value of entry i.
template <std::floating_point T, Executor Exec = serial>
void dequantize(byte_view codes, std::span<const T> scales, unsigned bits, std::size_t bucket, std::span<T> out,
                const Exec& executor = {}) {
    detail::dequantize_each(codes, scales, bits, bucket, out, executor, [](T& to, T value) { to = value; });
}

/// Throws `protocol_error` naming the first bucket whose scale is no finite number of at least zero.
template <std::floating_point T>
void check_scales(std::span<const T> scales) {
    for (std::size_t b = 0; b < scales.size(); ++b)
        if (!(scales[b] >= T{0}) || magnitude(scales[b]) >= largest_magnitude<T>)
            throw protocol_error("the scale of bucket " + std::to_string(b) + " is negative or not finite");
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/scatter.hpp

// From a sparse vector into a dense one.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// Calls visit(dense element, value) for every entry. Prefetches where entries are so far apart that the hardware does
/// not foresee the next line, in vectors that do not fit the cache. 128 entries ahead, at a density of 1 % in 16M
/// floats that no cache holds, take a loop that does not prefetch to 0.45 of its time on Zen 4; 32 ahead to 0.6.
template <Element T, IndexType Index, Executor Exec, class Visit>
void scatter(sparse_view<T, Index> x, std::size_t offset, std::span<T> dense, const Exec& executor, Visit visit) {
    RILL_EXPECTS(x.indices.size() == x.values.size(), "scatter: each index has one value");
    RILL_EXPECTS(x.count() == 0 || (x.indices.front() >= offset && x.indices.back() - offset < dense.size()),
                 "scatter: an index lies outside of the dense vector");
    constexpr std::size_t ahead = 128, cache_bytes = std::size_t{1} << 20, line = 64;
    const bool far_apart = dense.size_bytes() > cache_bytes && dense.size_bytes() / line > x.count();
    const auto at = [&](std::size_t j) { return static_cast<std::size_t>(x.indices[j]) - offset; };
    run_tasks(executor, tasks_for(executor, x.count()), [&](segment part) {  // no two tasks have a coordinate in common
        std::size_t j = part.begin;
        if (far_apart) {
            for (; j + ahead < part.end; ++j) {
                prefetch(&dense[at(j + ahead)]);
                visit(dense[at(j)], x.values[j]);
            }
        }
        for (; j < part.end; ++j) visit(dense[at(j)], x.values[j]);
    });
}

}  // namespace detail

/// dense[i - offset] = v for every entry (i, v); the other elements keep their values. Every index lies within
/// `[offset, offset + dense.size())`.
template <Element T, IndexType Index, Executor Exec = serial>
void scatter_assign(sparse_view<T, Index> x, std::size_t offset, std::span<T> dense, const Exec& executor = {}) {
    detail::scatter(x, offset, dense, executor, [](T& element, T value) { element = value; });
}

/// dense[i - offset] = fold(dense[i - offset], v) for every entry (i, v). Every index lies within
/// `[offset, offset + dense.size())`.
template <Element T, IndexType Index, class Fold, Executor Exec = serial>
void scatter_fold(sparse_view<T, Index> x, std::size_t offset, std::span<T> dense, Fold&& fold,
                  const Exec& executor = {}) {
    detail::scatter(x, offset, dense, executor, [&](T& element, T value) { element = fold(element, value); });
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/kernel/threshold.hpp

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// Writes the coordinates of up to 64 entries that reach `bound`; returns their number.
template <Element T, IndexType Index>
std::size_t write_at_least(std::span<const T> x, std::size_t first, magnitude_key<T> bound, Index* out) {
    std::size_t count = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
        out[count] = static_cast<Index>(first + j);
        count += magnitude(x[j]) >= bound ? 1U : 0U;
    }
    return count;
}

}  // namespace detail

/// Fills `indices` with the coordinates whose magnitude is at least `limit`, in ascending order, and returns their
/// number.
///
/// One pass; `indices` grows as needed and keeps its capacity. Throws `invalid_value` naming the lowest coordinate that
/// is NaN; `indices` is then unspecified.
template <Element T, IndexType Index>
std::size_t threshold(std::span<const T> x, T limit, aligned_vector<Index>& indices) {
    using detail::block;
    RILL_EXPECTS(limit >= T{0}, "threshold: the limit is a magnitude");
    RILL_EXPECTS(detail::fits<Index>(x.size()), "threshold: the index type cannot number every coordinate");
    const auto bound = magnitude(limit);
    std::size_t count = 0;
    bool nan = false;
    for (std::size_t i = 0; i < x.size(); i += block) {
        const auto part = x.subspan(i, std::min(block, x.size() - i));
        if (part.size() == block && !detail::any_at_least<block>(part.data(), bound)) continue;
        if (indices.size() < count + block) indices.resize(std::max(2 * indices.size(), count + block));
        nan |= find_nan(part).has_value();
        count += detail::write_at_least(part, i, bound, indices.data() + count);
    }
    indices.resize(count);
    if (nan) refuse_nan(x);
    return count;
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/stream/dense_switch.hpp

namespace rill::inline RILL_ABI {

/// When a fold gives up sparsity: beyond δ = factor · N · sizeof(T) / (sizeof(Index) + sizeof(T)) entries the dense
/// form is the smaller one. Judged, as in SparCML (section 5.1), by the sum of the counts that go into a fold: an upper
/// bound of the union, known before the work is done. A factor of 0 always switches, a very large one never.
struct dense_switch {
    double factor = 1.0;

    template <class T, class Index>
    constexpr bool wants_dense(std::size_t count, std::size_t dimension) const {
        const double delta =
            factor * static_cast<double>(dimension) * static_cast<double>(sizeof(T)) / (sizeof(Index) + sizeof(T));
        return static_cast<double>(count) > delta;
    }
    friend constexpr bool operator==(dense_switch, dense_switch) = default;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/stream/stream_view.hpp

namespace rill::inline RILL_ABI {

/// A read-only stream over the coordinates `range`: dense (one value per coordinate) or sparse (absolute indices, all
/// in `range`). A slice of a view is a view; slicing a sparse one costs two binary searches.
template <Element T, IndexType Index = std::uint32_t>
class stream_view {
  public:
    constexpr stream_view() = default;
    /// Dense: `values.size() == range.size()`.
    constexpr stream_view(segment range, std::span<const T> values) : range_(range), values_(values), dense_(true) {}
    /// Sparse: strictly ascending indices in `range`.
    constexpr stream_view(segment range, sparse_view<T, Index> pairs)
        : range_(range), indices_(pairs.indices), values_(pairs.values) {}

    constexpr bool is_dense() const { return dense_; }
    constexpr segment range() const { return range_; }
    /// Entries present: `range().size()` when dense.
    constexpr std::size_t count() const { return values_.size(); }
    constexpr std::span<const T> values() const { return values_; }
    /// Empty when dense.
    constexpr std::span<const Index> indices() const { return indices_; }
    constexpr sparse_view<T, Index> pairs() const { return {indices_, values_}; }

    /// The part of this view in `part`, which must lie in `range()`.
    constexpr stream_view slice(segment part) const {
        RILL_EXPECTS(range_.contains(part), "a slice must lie in the range of its stream");
        if (part == range_) return *this;
        if (dense_) return {part, values_.subspan(part.begin - range_.begin, part.size())};
        const std::size_t first = position(part.begin);
        const std::size_t last = part.end == range_.end ? indices_.size() : position(part.end);
        return {part,
                sparse_view<T, Index>{indices_.subspan(first, last - first), values_.subspan(first, last - first)}};
    }

  private:
    constexpr std::size_t position(std::size_t coordinate) const {
        const auto found = std::lower_bound(indices_.begin(), indices_.end(), coordinate,
                                            [](Index index, std::size_t c) { return index < c; });
        return static_cast<std::size_t>(found - indices_.begin());
    }

    segment range_{};
    std::span<const Index> indices_{};
    std::span<const T> values_{};
    bool dense_ = false;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/stream/stream.hpp

namespace rill::inline RILL_ABI {

/// A vector over `range()`, held sparse (sorted unique indices and their values, structure of arrays) or dense. An
/// absent coordinate stands for the neutral element of whatever operation folds it. Memory only grows: a stream that is
/// reused allocates nothing once it has seen its largest content.
template <Element T, IndexType Index = std::uint32_t>
class stream {
  public:
    using value_type = T;
    using index_type = Index;

    stream() = default;
    /// Empty and sparse over `[0, dimension)`.
    explicit stream(std::size_t dimension) { clear({0, dimension}); }

    bool is_dense() const { return dense_; }
    segment range() const { return range_; }
    std::size_t dimension() const { return range_.size(); }
    std::size_t count() const { return values_.size(); }
    std::span<const T> values() const { return values_; }
    std::span<T> values() { return values_; }
    std::span<const Index> indices() const { return indices_; }

    stream_view<T, Index> view() const {
        if (dense_) return {range_, std::span<const T>(values_)};
        return {range_, sparse_view<T, Index>{indices_, values_}};
    }
    stream_view<T, Index> view(segment part) const { return view().slice(part); }

    /// Empty and sparse over `range`.
    void clear(segment range) {
        RILL_EXPECTS(range.end == 0 || range.end - 1 <= std::numeric_limits<Index>::max(),
                     "a stream's coordinates must fit its index type");
        range_ = range;
        dense_ = false;
        indices_.clear();
        values_.clear();
    }

    /// Copies `source`, range and form included.
    void assign(const stream_view<T, Index>& source) {
        clear(source.range());
        dense_ = source.is_dense();
        indices_.assign(source.indices().begin(), source.indices().end());
        values_.assign(source.values().begin(), source.values().end());
    }

    /// Adds an entry behind all others; sparse streams only.
    void push_back(std::size_t coordinate, T value) {
        RILL_EXPECTS(!dense_, "a dense stream has all its coordinates");
        RILL_EXPECTS(range_.contains(coordinate), "a coordinate must lie in the stream's range");
        RILL_EXPECTS(indices_.empty() || indices_.back() < coordinate, "coordinates must be pushed in ascending order");
        indices_.push_back(static_cast<Index>(coordinate));
        values_.push_back(value);
    }

    /// Makes room for sparse content of up to `count` entries, to be written through the spans; `shrink` ends it.
    struct sparse_room {
        std::span<Index> indices;
        std::span<T> values;
    };
    sparse_room make_sparse(segment range, std::size_t count) {
        clear(range);
        indices_.resize(count);
        values_.resize(count);
        return {indices_, values_};
    }
    void shrink(std::size_t count) {
        RILL_EXPECTS(!dense_ && count <= values_.size(), "shrink keeps the first entries of sparse content");
        indices_.resize(count);
        values_.resize(count);
    }

    /// Dense over `range`, values uninitialised.
    std::span<T> make_dense(segment range) {
        clear(range);
        dense_ = true;
        values_.resize(range.size());
        return values_;
    }

    friend bool operator==(const stream& a, const stream& b) {
        return a.range_ == b.range_ && a.dense_ == b.dense_ && a.indices_ == b.indices_ && a.values_ == b.values_;
    }

  private:
    segment range_{};
    aligned_vector<Index> indices_;
    aligned_vector<T> values_;
    bool dense_ = false;
};

/// Writes `source` into `target` (`target.size() == source.range().size()`), absent coordinates as `neutral`.
template <Element T, IndexType Index, Executor Exec = serial>
void copy_dense(const stream_view<T, Index>& source, std::span<T> target, T neutral, const Exec& executor = {}) {
    RILL_EXPECTS(target.size() == source.range().size(), "the target of copy_dense must have the size of the range");
    kernel::run_tasks(executor, kernel::tasks_for(executor, target.size()), [&](segment part) {
        const std::size_t first = source.range().begin;
        const auto piece = source.slice({first + part.begin, first + part.end});
        const auto to = target.subspan(part.begin, part.size());
        if (piece.is_dense()) {
            kernel::copy(piece.values(), to);
            return;
        }
        std::fill(to.begin(), to.end(), neutral);
        kernel::scatter_assign(piece.pairs(), piece.range().begin, to);
    });
}

}  // namespace rill::inline RILL_ABI

// ===== rill/stream/fold.hpp

namespace rill::inline RILL_ABI {

/// Scratch of `fold_streams`, reused between calls: it grows once.
template <Element T, IndexType Index>
struct fold_scratch {
    aligned_vector<sparse_view<T, Index>> sparse;
    aligned_vector<std::span<const T>> dense;
    kernel::merge_scratch merge;
};

namespace detail {
template <Element T, IndexType Index, class Fold>
void fold_one(std::span<T> target, const stream_view<T, Index>& operand, const Fold& fold) {
    if (operand.is_dense())
        kernel::fold_dense(target, operand.values(), fold);
    else
        kernel::scatter_fold(operand.pairs(), operand.range().begin, target, fold);
}

template <Element T, IndexType Index, class Fold, Executor Exec>
bool fold_all_dense(std::span<const stream_view<T, Index>> operands, std::span<T> target, const Fold& fold,
                    fold_scratch<T, Index>& scratch, const Exec& executor) {
    scratch.dense.clear();
    for (const auto& operand : operands) {
        if (!operand.is_dense()) return false;
        scratch.dense.push_back(operand.values());
    }
    kernel::fold_dense_k(std::span<const std::span<const T>>(scratch.dense), target, fold, executor);
    return true;
}
}  // namespace detail

/// Folds streams of one range into a dense `target` of its size: per coordinate the left fold of what is present, in
/// the order of `operands`, starting from `neutral` where the first operand is sparse.
template <Element T, IndexType Index, class Fold, Executor Exec = serial>
void fold_into_dense(std::span<const stream_view<T, Index>> operands, std::span<T> target, const Fold& fold, T neutral,
                     fold_scratch<T, Index>& scratch, const Exec& executor = {}) {
    RILL_EXPECTS(!operands.empty(), "a fold needs an operand");
    if (detail::fold_all_dense(operands, target, fold, scratch, executor)) return;
    // All operands on a stretch of coordinates before the next: the target stays in cache.
    kernel::run_tasks(executor, kernel::tasks(target.size()), [&](segment part) {
        const std::size_t first = operands.front().range().begin;
        const segment coordinates{first + part.begin, first + part.end};
        const auto to = target.subspan(part.begin, part.size());
        copy_dense(operands.front().slice(coordinates), to, neutral);
        for (const auto& operand : operands.subspan(1)) detail::fold_one(to, operand.slice(coordinates), fold);
    });
}

/// Folds streams of one range into `result`: per coordinate the left fold of the values that are present, in the order
/// of `operands`. The five cases of SparCML (section 5.1): sparse with sparse (overlapping, or disjoint:
/// concatenation), sparse with dense either way, dense with dense. The result is dense when an operand is, or when
/// `when` says that the sum of the counts has become too large; hence it depends on the operands alone. `neutral` must
/// be the fold's neutral element. `result` must not be the source of an operand.
template <Element T, IndexType Index, class Fold, Executor Exec = serial>
void fold_streams(std::span<const stream_view<T, Index>> operands, stream<T, Index>& result, const Fold& fold,
                  T neutral, dense_switch when, fold_scratch<T, Index>& scratch, const Exec& executor = {}) {
    RILL_EXPECTS(!operands.empty(), "a fold needs an operand");
    const segment range = operands.front().range();
    std::size_t total = 0;
    bool dense = false;
    scratch.sparse.clear();
    for (const auto& operand : operands) {
        RILL_EXPECTS(operand.range() == range, "the operands of a fold must have one range");
        total += operand.count();
        dense = dense || operand.is_dense();
        scratch.sparse.push_back(operand.pairs());
    }
    if (dense || when.wants_dense<T, Index>(total, range.size())) {
        fold_into_dense(operands, result.make_dense(range), fold, neutral, scratch, executor);
        return;
    }
    const auto room = result.make_sparse(range, total);
    result.shrink(kernel::merge_k(std::span<const sparse_view<T, Index>>(scratch.sparse), room.indices, room.values,
                                  fold, scratch.merge, executor));
}

}  // namespace rill::inline RILL_ABI

// ===== rill/stream/wire.hpp

// The bytes of a frame: the only place that knows them. All numbers are little-endian.

namespace rill::inline RILL_ABI::wire {

static_assert(std::endian::native == std::endian::little,
              "rill: frames are views of memory; big-endian hosts need swaps");

/// The first four bytes of every frame.
inline constexpr std::uint32_t magic = 0x6C6C6972U;  // "rill"
/// Of the layout; a frame of another version is refused.
inline constexpr std::uint8_t version = 1;
/// Before the content of every frame.
inline constexpr std::size_t header_bytes = 96;

/// What a frame says about itself: the entries of `range` that one rank, or a fold of several, contributes.
struct header {
    operation kind = operation::none;
    element_type element = element_type::none;
    std::uint8_t index_bytes = 0;  ///< width of the stream's index type, 4 or 8; also given when dense
    coding codes{};                ///< `indices` is `dense` for dense content
    std::uint32_t epoch = 0;
    std::uint64_t context = 0;
    std::uint64_t number = 0;  ///< of the operation within its context
    std::uint32_t call = 0;    ///< hash of the call's signature, plus what `range` does not say of the place
    std::uint32_t age = 0;     ///< of the oldest contribution, in steps
    std::uint64_t dimension = 0;
    segment range{};
    std::uint64_t count = 0;         ///< entries
    std::uint64_t index_length = 0;  ///< bytes of the coded indices
    double weight = 0;               ///< sum of the weights of the contributions
    std::uint32_t contributors = 0;  ///< how many there are

    friend bool operator==(const header&, const header&) = default;
};

/// Room for an encoded header.
using header_block = std::array<std::byte, header_bytes>;

namespace detail {
template <class N>
void put(std::byte* block, std::size_t at, N number) {
    std::memcpy(block + at, &number, sizeof(N));
}

template <class N>
N get(const std::byte* block, std::size_t at) {
    N number;
    std::memcpy(&number, block + at, sizeof(N));
    return number;
}
}  // namespace detail

/// Writes `header_bytes` to `block`. Validates nothing.
inline void encode(const header& h, std::byte* block) {
    using detail::put;
    put(block, 0, magic);
    put(block, 4, version);
    put(block, 5, static_cast<std::uint8_t>(h.kind));
    put(block, 6, static_cast<std::uint8_t>(h.element));
    put(block, 7, h.index_bytes);
    put(block, 8, static_cast<std::uint8_t>(h.codes.values));
    put(block, 9, static_cast<std::uint8_t>(h.codes.indices));
    put(block, 10, std::uint16_t{0});
    put(block, 12, h.epoch);
    put(block, 16, h.context);
    put(block, 24, h.number);
    put(block, 32, h.call);
    put(block, 36, h.age);
    put(block, 40, h.dimension);
    put(block, 48, std::uint64_t{h.range.begin});
    put(block, 56, std::uint64_t{h.range.end});
    put(block, 64, h.count);
    put(block, 72, h.index_length);
    put(block, 80, h.weight);
    put(block, 88, h.contributors);
    put(block, 92, h.codes.bucket);
}

namespace detail {
inline void require(bool holds, const char* what) {
    if (!holds) throw protocol_error(std::string("invalid frame: ") + what);
}

constexpr bool is_known(value_coding coding) { return coding <= value_coding::bf16 || is_qsgd(coding); }
constexpr bool is_known(index_coding coding) { return coding <= index_coding::huffman; }

inline std::size_t element_bytes(element_type type) {
    return type == element_type::float32 || type == element_type::int32 ? 4 : 8;
}

inline void validate(const header& h) {
    require(h.kind > operation::none && h.kind <= operation::round_over, "unknown operation");
    require(h.element > element_type::none && h.element <= element_type::int64, "unknown element type");
    require(h.index_bytes == 4 || h.index_bytes == 8, "unknown index width");
    require(is_known(h.codes.values), "unknown value coding");
    require(is_known(h.codes.indices), "unknown index coding");
    require(h.codes.bucket > 0, "empty quantiser buckets");
    const bool floating = h.element == element_type::float32 || h.element == element_type::float64;
    require(floating || h.codes.is_lossless(), "lossy coding of integers");
    require(h.range.begin <= h.range.end && h.range.end <= h.dimension, "range outside the dimension");
    require(h.index_bytes == 8 || h.dimension <= std::uint64_t{1} << 32, "dimension beyond the index type");
    if (h.codes.indices == index_coding::dense)
        require(h.count == h.range.size() && h.index_length == 0, "a dense frame has every coordinate and no index");
    else
        require(h.count <= h.range.size(), "more entries than coordinates");
    require(h.weight >= 0 && h.weight <= 1e300, "weight is not a finite non-negative number");
}
}  // namespace detail

/// Reads and validates a header; `block` has `header_bytes`.
inline header decode(const std::byte* block) {
    using detail::get;
    detail::require(get<std::uint32_t>(block, 0) == magic, "wrong magic number");
    detail::require(get<std::uint8_t>(block, 4) == version, "unknown version");
    detail::require(get<std::uint16_t>(block, 10) == 0, "reserved bytes are not zero");
    header h;
    h.kind = static_cast<operation>(get<std::uint8_t>(block, 5));
    h.element = static_cast<element_type>(get<std::uint8_t>(block, 6));
    h.index_bytes = get<std::uint8_t>(block, 7);
    h.codes.values = static_cast<value_coding>(get<std::uint8_t>(block, 8));
    h.codes.indices = static_cast<index_coding>(get<std::uint8_t>(block, 9));
    h.epoch = get<std::uint32_t>(block, 12);
    h.context = get<std::uint64_t>(block, 16);
    h.number = get<std::uint64_t>(block, 24);
    h.call = get<std::uint32_t>(block, 32);
    h.age = get<std::uint32_t>(block, 36);
    h.dimension = get<std::uint64_t>(block, 40);
    h.range = {get<std::uint64_t>(block, 48), get<std::uint64_t>(block, 56)};
    h.count = get<std::uint64_t>(block, 64);
    h.index_length = get<std::uint64_t>(block, 72);
    h.weight = get<double>(block, 80);
    h.contributors = get<std::uint32_t>(block, 88);
    h.codes.bucket = get<std::uint32_t>(block, 92);
    detail::validate(h);
    return h;
}

}  // namespace rill::inline RILL_ABI::wire

// ===== rill/stream/payload.hpp

// The payload of a frame: indices and values in their codings. Frames are written and read through stream/frame.hpp.

namespace rill::inline RILL_ABI::detail {

/// Fills in what a header says about a stream.
template <Element T, IndexType Index>
void describe(wire::header& head, const stream_view<T, Index>& view) {
    head.element = element_type_of<T>;
    head.index_bytes = sizeof(Index);
    head.range = view.range();
    head.count = view.count();
}

/// Whether the values precede the indices: always, but where both are raw and the indices wider, so that arrays that
/// are read in place are aligned.
template <Element T, IndexType Index>
constexpr bool values_first(const coding& codes) {
    return !(codes.values == value_coding::raw && codes.indices == index_coding::raw && sizeof(Index) > sizeof(T));
}

template <Element T, IndexType Index>
void require_types(const wire::header& head) {
    wire::detail::require(head.element == element_type_of<T>, "another element type than was due");
    wire::detail::require(head.index_bytes == sizeof(Index), "another index width than was due");
}

/// The coding as it appears in the header of a frame of `view`.
template <Element T, IndexType Index>
coding resolve(coding codes, const stream_view<T, Index>& view) {
    RILL_EXPECTS(std::floating_point<T> || codes.is_lossless(), "lossy codings need floating-point values");
    if (view.is_dense())
        codes.indices = index_coding::dense;
    else if (codes.indices == index_coding::smallest)
        codes.indices = kernel::smallest_index_coding(view.indices(), view.range());
    return codes;
}

template <IndexType Index>
std::size_t index_length(index_coding codes, std::span<const Index> indices, segment range) {
    if (codes == index_coding::dense) return 0;
    return kernel::encoded_index_bytes(codes, indices, range);
}

/// The bytes of `count` values.
template <Element T>
std::size_t value_length(const coding& codes, std::size_t count) {
    if (codes.values == value_coding::raw) return count * sizeof(T);
    if (codes.values == value_coding::bf16) return count * 2;
    return kernel::quantize_buckets(count, codes.bucket) * sizeof(T) +
           kernel::quantized_bytes(count, static_cast<unsigned>(qsgd_bits(codes.values)), codes.bucket);
}

template <Element T, IndexType Index>
std::string coordinate_of(const stream_view<T, Index>& view, std::size_t entry) {
    const std::size_t coordinate =
        view.is_dense() ? view.range().begin + entry : static_cast<std::size_t>(view.indices()[entry]);
    return "coordinate " + std::to_string(coordinate);
}

/// Throws `invalid_value` naming the coordinate of the first entry that a lossy coding cannot hold.
template <Element T, IndexType Index, Executor Exec>
void require_roundable(const stream_view<T, Index>& view, const coding& codes, const Exec& executor) {
    if (const auto bad = kernel::find_non_finite(view.values(), executor))
        throw invalid_value(coordinate_of(view, *bad) + " is not finite and cannot be rounded");
    if constexpr (std::floating_point<T>)
        if (codes.values == value_coding::bf16)
            if (const auto bad = kernel::find_beyond_bf16(view.values(), executor))
                throw invalid_value(coordinate_of(view, *bad) + " is too large for bfloat16");
}

/// Writes values, raw or rounded; `out` has their length and is aligned. `first` numbers the random bits.
template <Element T, Executor Exec>
void encode_values(std::span<const T> values, const coding& codes, random_key key, std::uint64_t first, byte_span out,
                   const Exec& executor) {
    if (codes.values == value_coding::raw) {
        if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
        return;
    }
    if constexpr (std::floating_point<T>) {
        if (codes.values == value_coding::bf16) return kernel::encode_bf16(values, out, executor);
        const std::size_t buckets = kernel::quantize_buckets(values.size(), codes.bucket);
        const std::span<T> scales(reinterpret_cast<T*>(out.data()), buckets);
        kernel::quantize(values, static_cast<unsigned>(qsgd_bits(codes.values)), codes.bucket, key, first, scales,
                         out.subspan(scales.size_bytes()), executor);
    }
}

/// The array in some bytes of a frame; a transport delivers frames aligned.
template <class T>
std::span<const T> elements_of(byte_view bytes) {
    wire::detail::require(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0, "misaligned");
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

template <IndexType Index>
void require_ascending(std::span<const Index> indices, segment range) {
    if (indices.empty()) return;
    wire::detail::require(range.begin <= indices.front() && indices.back() < range.end, "index outside the range");
    bool ascending = true;
    for (std::size_t i = 1; i < indices.size(); ++i) ascending = (indices[i - 1] < indices[i]) & ascending;
    wire::detail::require(ascending, "indices are not ascending");
}

/// The indices of a frame: its own bytes where all of it is raw, else decoded into `room`: behind coded values raw
/// indices may lie at any address. Validated.
template <IndexType Index>
std::span<const Index> decode_indices(const wire::header& head, byte_view bytes, aligned_vector<Index>& room) {
    const auto count = static_cast<std::size_t>(head.count);
    if (head.codes.is_view()) {
        wire::detail::require(bytes.size() / sizeof(Index) == count && bytes.size() % sizeof(Index) == 0,
                              "as many indices as entries are due");
        const std::span<const Index> indices = elements_of<Index>(bytes);
        require_ascending(indices, head.range);
        return indices;
    }
    kernel::check_index_count<Index>(head.codes.indices, bytes, count, head.range);
    room.resize(count);
    kernel::decode_indices(head.codes.indices, bytes, count, head.range, std::span<Index>(room));
    return room;
}

/// The values of a frame: its own bytes where they are raw, else decoded into `room`.
template <Element T, Executor Exec>
std::span<const T> decode_values(const wire::header& head, byte_view bytes, aligned_vector<T>& room,
                                 const Exec& executor) {
    if (head.codes.values == value_coding::raw) return elements_of<T>(bytes);
    if constexpr (std::floating_point<T>) {
        const auto count = static_cast<std::size_t>(head.count);
        const std::size_t buckets = kernel::quantize_buckets(count, head.codes.bucket);
        room.resize(count);
        if (head.codes.values == value_coding::bf16) {
            kernel::decode_bf16(bytes, std::span<T>(room), executor);
        } else {
            const std::span<const T> scales = elements_of<T>(bytes.first(buckets * sizeof(T)));
            kernel::check_scales(scales);
            kernel::dequantize(bytes.subspan(scales.size_bytes()), scales,
                               static_cast<unsigned>(qsgd_bits(head.codes.values)), head.codes.bucket,
                               std::span<T>(room), executor);
        }
    }
    return room;
}

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/stream/frame.hpp

namespace rill::inline RILL_ABI {

/// Frames begin at multiples of this in a message of several.
inline constexpr std::size_t frame_alignment = 8;

/// A frame of `view` without copying it: the header is written to `block` (`wire::header_bytes`), the rest are the
/// stream's own arrays. `head` supplies what a stream does not know (context, operation, weight, …).
template <Element T, IndexType Index>
byte_pieces view_frame(wire::header head, const stream_view<T, Index>& view, std::byte* block) {
    detail::describe(head, view);
    head.codes = {.indices = view.is_dense() ? index_coding::dense : index_coding::raw};
    const byte_view indices = std::as_bytes(view.indices());
    const byte_view values = std::as_bytes(view.values());
    head.index_length = indices.size();
    wire::encode(head, block);
    byte_pieces pieces{byte_view(block, wire::header_bytes)};
    const bool values_first = detail::values_first<T, Index>(head.codes);
    if (const byte_view first = values_first ? values : indices; !first.empty()) pieces.push(first);
    if (const byte_view second = values_first ? indices : values; !second.empty()) pieces.push(second);
    return pieces;
}

/// A frame of `view` in the given coding, written into `memory`; random rounding draws from `key`. Lossy codings throw
/// `invalid_value` naming the coordinate of an entry that is not finite, or too large for bfloat16.
template <Element T, IndexType Index, Executor Exec = serial>
byte_view coded_frame(wire::header head, const stream_view<T, Index>& view, const coding& codes, random_key key,
                      arena& memory, const Exec& executor = {}) {
    detail::describe(head, view);
    head.codes = detail::resolve(codes, view);
    if (!head.codes.is_lossless()) detail::require_roundable(view, head.codes, executor);
    const std::size_t index_length = detail::index_length(head.codes.indices, view.indices(), view.range());
    const std::size_t value_length = detail::value_length<T>(head.codes, view.count());
    head.index_length = index_length;
    const byte_span out = memory.take(wire::header_bytes + index_length + value_length);
    wire::encode(head, out.data());
    const byte_span payload = out.subspan(wire::header_bytes);
    const bool values_first = detail::values_first<T, Index>(head.codes);
    detail::encode_values(view.values(), head.codes, key, head.range.begin,
                          payload.subspan(values_first ? 0 : index_length, value_length), executor);
    if (!view.is_dense())
        kernel::encode_indices(head.codes.indices, view.indices(), view.range(),
                               payload.subspan(values_first ? value_length : 0, index_length));
    return out;
}

/// A received frame: a valid header, and the bytes of its payload, not yet looked at.
struct frame {
    wire::header head;
    byte_view indices;
    byte_view values;
    byte_pieces bytes;  ///< all of it, for forwarding verbatim
};

/// Reads the frames of a message one by one. Any bytes give valid frames or throw `protocol_error`.
class frame_reader {
  public:
    explicit frame_reader(const byte_pieces& message) : pieces_(message) { skip_empty(); }

    bool done() const { return piece_ == pieces_.count(); }

    /// The header of the next frame, which stays the next.
    wire::header peek() const { return wire::decode(frame_reader(*this).take(wire::header_bytes).data()); }

    template <Element T, IndexType Index>
    frame next() {
        const byte_view block = take(wire::header_bytes);
        frame f{wire::decode(block.data()), {}, {}, block};
        detail::require_types<T, Index>(f.head);
        wire::detail::require(f.head.count <= 4 * remaining(), "truncated");  // no value takes less than two bits
        const std::size_t value_length = detail::value_length<T>(f.head.codes, static_cast<std::size_t>(f.head.count));
        const bool values_first = detail::values_first<T, Index>(f.head.codes);
        if (values_first) f.bytes.push(f.values = take(value_length));
        f.bytes.push(f.indices = take(f.head.index_length));
        if (!values_first) f.bytes.push(f.values = take(value_length));
        skip_padding(f.bytes.size_bytes());
        return f;
    }

  private:
    std::size_t remaining() const {
        std::size_t sum = 0;
        for (std::size_t i = piece_; i < pieces_.count(); ++i) sum += pieces_[i].size();
        return sum - used_;
    }

    byte_view take(std::uint64_t size) {
        if (size == 0) return {};
        wire::detail::require(!done() && size <= pieces_[piece_].size() - used_, "truncated");
        const byte_view taken = pieces_[piece_].subspan(used_, static_cast<std::size_t>(size));
        used_ += static_cast<std::size_t>(size);
        skip_empty();
        return taken;
    }

    void skip_padding(std::size_t frame_size) {
        if (done()) return;
        for (std::byte b : take((frame_alignment - frame_size % frame_alignment) % frame_alignment))
            wire::detail::require(b == std::byte{0}, "padding is not zero");
        wire::detail::require(!done(), "bytes behind the last frame");
    }

    void skip_empty() {
        while (piece_ < pieces_.count() && used_ == pieces_[piece_].size()) {
            ++piece_;
            used_ = 0;
        }
    }

    byte_pieces pieces_;
    std::size_t piece_ = 0;
    std::size_t used_ = 0;
};

/// Where the content of coded frames is decoded; reused.
template <Element T, IndexType Index>
struct frame_scratch {
    aligned_vector<Index> indices;
    aligned_vector<T> values;
};

/// The content of a frame: a view of its own bytes where they are raw (they must outlive it), else decoded into `room`.
/// Validated completely: indices are strictly ascending and in range, scales are finite. Throws `protocol_error`.
template <Element T, IndexType Index, Executor Exec = serial>
stream_view<T, Index> content_of(const frame& f, frame_scratch<T, Index>& room, const Exec& executor = {}) {
    const std::span<const T> values = detail::decode_values(f.head, f.values, room.values, executor);
    if (f.head.codes.indices == index_coding::dense) return {f.head.range, values};
    return {f.head.range, sparse_view<T, Index>{detail::decode_indices(f.head, f.indices, room.indices), values}};
}

}  // namespace rill::inline RILL_ABI

// ===== rill/stream/stream_codings.hpp

namespace rill::inline RILL_ABI {

/// How the frames of a collective on streams are written. All ranks must have the same.
struct stream_codings {
    coding contribution{};  ///< once, at the source
    coding partial{};       ///< of partial sums; lossless
    coding copy{};          ///< once, by the owner of a folded part, then forwarded verbatim
    dense_switch when{};

    constexpr std::uint64_t fingerprint() const {
        return mix64(contribution.fingerprint(), partial.fingerprint(), copy.fingerprint(),
                     std::bit_cast<std::uint64_t>(when.factor));
    }
    friend constexpr bool operator==(const stream_codings&, const stream_codings&) = default;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/topology/pairing.hpp

namespace rill::inline RILL_ABI::topology {

/// Makes a power of two of any number of ranks: the first `size - 2^⌊log2 size⌋` adjacent pairs (2i, 2i+1) act as one
/// member, led by the even rank. Members are numbered in ascending order of their ranks, so ranges of members are
/// ranges of ranks.
class pairing {
  public:
    constexpr pairing() = default;
    constexpr explicit pairing(int size)
        : members_(static_cast<int>(std::bit_floor(static_cast<unsigned>(size)))), pairs_(size - members_) {}

    constexpr int members() const { return members_; }
    constexpr int levels() const { return std::countr_zero(static_cast<unsigned>(members_)); }
    constexpr int pairs() const { return pairs_; }

    constexpr bool is_paired(rank_t rank) const { return rank < 2 * pairs_; }
    constexpr bool leads(rank_t rank) const { return !is_paired(rank) || rank % 2 == 0; }
    constexpr int member(rank_t rank) const { return is_paired(rank) ? rank / 2 : rank - pairs_; }
    constexpr rank_t leader(int member) const { return member < pairs_ ? 2 * member : member + pairs_; }

    friend constexpr bool operator==(pairing, pairing) = default;

  private:
    int members_ = 1;
    int pairs_ = 0;
};

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/butterfly.hpp

namespace rill::inline RILL_ABI::topology {

/// What the ranks of a butterfly exchange at each level; the levels are the bits in which two members differ.
enum class butterfly_plan : unsigned char {
    exchange,           ///< the whole, lowest bit first
    halve_then_double,  ///< halves, top bit first, and back
    halve_far,          ///< halves, top bit first: member i ends with block i
    halve_near,         ///< halves, lowest bit first: member i ends with block reverse(i), which a last round delivers
    gather              ///< all they have, lowest bit first
};

/// One rank's rounds of recursive halving and doubling among 2^L members. A first round folds the second rank of each
/// pair in, a last one copies out to it.
class butterfly_schedule {
  public:
    constexpr butterfly_schedule() = default;
    constexpr butterfly_schedule(butterfly_plan plan, int size, rank_t rank)
        : plan_(plan), size_(size), rank_(rank), pairing_(size) {
        RILL_EXPECTS(0 <= rank && rank < size, "topology: the rank is outside the group");
    }

    constexpr int parts() const {
        if (plan_ == butterfly_plan::exchange) return 1;
        return plan_ == butterfly_plan::halve_then_double ? pairing_.members() : size_;
    }
    constexpr int rounds() const { return in_rounds() + level_rounds() + out_rounds(); }
    constexpr action kind(int round) const {
        const bool fold = plan_ != butterfly_plan::gather && !is_out(round) && !doubles(round);
        return fold ? action::fold : action::copy;
    }

    constexpr int sends(int round) const {
        if (is_in(round)) return pairing_.leads(rank_) ? 0 : 1;
        if (!pairing_.leads(rank_)) return 0;
        return is_out(round) ? out_sends() : 1;
    }
    constexpr transfer send(int round, int i) const {
        if (is_in(round)) return {rank_ - 1, brought_by(rank_)};
        if (is_out(round)) return out_send(i);
        const int peer = peer_member(round);
        return {pairing_.leader(peer), block(round, doubles(round) ? member() : peer)};
    }

    constexpr int receives(int round) const {
        if (is_in(round)) return pairing_.is_paired(rank_) && pairing_.leads(rank_) ? 1 : 0;
        if (is_out(round)) return out_receives();
        return pairing_.leads(rank_) ? 1 : 0;
    }
    constexpr transfer receive(int round, int i) const {
        if (is_in(round)) return {rank_ + 1, brought_by(rank_ + 1)};
        if (is_out(round)) return out_receive(i);
        const int peer = peer_member(round);
        return {pairing_.leader(peer), block(round, doubles(round) ? peer : member())};
    }

    friend constexpr bool operator==(const butterfly_schedule&, const butterfly_schedule&) = default;

  private:
    constexpr int member() const { return pairing_.member(rank_); }
    constexpr part_range all() const { return {0, parts()}; }

    constexpr int in_rounds() const { return pairing_.pairs() > 0 ? 1 : 0; }
    constexpr int level_rounds() const {
        return pairing_.levels() * (plan_ == butterfly_plan::halve_then_double ? 2 : 1);
    }
    constexpr int out_rounds() const {
        const bool misplaced = plan_ == butterfly_plan::halve_near && pairing_.levels() > 1;
        return pairing_.pairs() > 0 || misplaced ? 1 : 0;
    }
    constexpr bool is_in(int round) const { return round < in_rounds(); }
    constexpr bool is_out(int round) const { return round >= in_rounds() + level_rounds(); }

    /// Doubling sends what one has, halving what the peer is to have.
    constexpr bool doubles(int round) const {
        if (plan_ == butterfly_plan::halve_then_double) return round - in_rounds() >= pairing_.levels();
        return plan_ == butterfly_plan::gather;
    }
    constexpr bool far_first(int round) const {
        return plan_ == butterfly_plan::halve_far || (plan_ == butterfly_plan::halve_then_double && !doubles(round));
    }
    /// The bit in which the two members of a round differ.
    constexpr int bit(int round) const {
        const int step = (round - in_rounds()) % pairing_.levels();
        return far_first(round) ? pairing_.levels() - 1 - step : step;
    }
    constexpr int peer_member(int round) const { return member() ^ (1 << bit(round)); }

    /// The parts that belong to `m` in a round: the smaller ones of the two sizes that the round divides or joins.
    constexpr part_range block(int round, int m) const {
        if (plan_ == butterfly_plan::exchange) return all();
        const int b = bit(round);
        if (plan_ == butterfly_plan::halve_near) {
            const int count = pairing_.members() >> (b + 1);
            const int first = reversed(m) & ~(count - 1);
            return parts_of(first, first + count);
        }
        const int first = m & ~((1 << b) - 1);
        return parts_of(first, first + (1 << b));
    }
    constexpr part_range parts_of(int first_member, int last_member) const {
        if (plan_ == butterfly_plan::halve_then_double) return {first_member, last_member};
        return {pairing_.leader(first_member), pairing_.leader(last_member)};
    }
    constexpr int reversed(int m) const {
        int result = 0;
        for (int b = 0; b < pairing_.levels(); ++b) result |= ((m >> b) & 1) << (pairing_.levels() - 1 - b);
        return result;
    }

    constexpr part_range brought_by(rank_t rank) const {
        return plan_ == butterfly_plan::gather ? part_range{rank, rank + 1} : all();
    }

    constexpr int out_sends() const {
        if (plan_ == butterfly_plan::halve_near) return held().count() - (held().contains(rank_) ? 1 : 0);
        if (!pairing_.is_paired(rank_)) return 0;
        return plan_ == butterfly_plan::gather ? 2 : 1;
    }
    constexpr transfer out_send(int i) const {
        if (plan_ != butterfly_plan::halve_near) return {rank_ + 1, brought_to(rank_ + 1, i)};
        const int part = held().first + i + (held().contains(rank_) ? 1 : 0);
        return {part, {part, part + 1}};
    }
    constexpr int out_receives() const {
        if (plan_ == butterfly_plan::halve_near) return holder() == rank_ ? 0 : 1;
        if (pairing_.leads(rank_)) return 0;
        return plan_ == butterfly_plan::gather ? 2 : 1;
    }
    constexpr transfer out_receive(int i) const {
        if (plan_ == butterfly_plan::halve_near) return {holder(), {rank_, rank_ + 1}};
        return {rank_ - 1, brought_to(rank_, i)};
    }
    /// What the second rank of a pair still lacks at the end.
    constexpr part_range brought_to(rank_t rank, int i) const {
        if (plan_ == butterfly_plan::halve_far) return {rank, rank + 1};
        if (plan_ == butterfly_plan::gather) return i == 0 ? part_range{0, rank} : part_range{rank + 1, size_};
        return all();
    }
    /// After `halve_near`: the parts that this leader holds, and who holds the part of this rank.
    constexpr part_range held() const { return parts_of(reversed(member()), reversed(member()) + 1); }
    constexpr rank_t holder() const { return pairing_.leader(reversed(member())); }

    butterfly_plan plan_ = butterfly_plan::exchange;
    int size_ = 1;
    rank_t rank_ = 0;
    pairing pairing_{};
};

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/halving_doubling.hpp

namespace rill::inline RILL_ABI::topology {

/// Recursive halving leaves each rank one finished part, recursive doubling spreads the parts.
///
/// With L = ⌊log2 P⌋: where P is no power of two, the pairs (2i, 2i+1), i < P - 2^L, act as one, at the cost of one
/// round before and one after.
/// Cost: `all_reduce` takes 2L (+2) rounds over 2^L parts and sends 2N(2^L - 1)/2^L per rank; the first rank of a pair
/// sends N more, the second N alone. `reduce_scatter` takes L (+2) rounds and sends at most N per rank, `all_gather` L
/// (+2) rounds and less than 4N/3, the first rank of a pair less than N more.
/// Determinism: the farthest rank is folded first, so contributions are combined in bit-reversed order.
/// Source: Rabenseifner, Optimization of collective reduction operations, ICCS 2004.
struct halving_doubling {
    static constexpr const char* name = "halving_doubling";
    static constexpr bool preserves_rank_order = false;
    static constexpr bool has_copy_phase = true;

    constexpr butterfly_schedule all_reduce(int size, rank_t rank) const {
        return {butterfly_plan::halve_then_double, size, rank};
    }
    constexpr butterfly_schedule reduce_scatter(int size, rank_t rank) const {
        return {butterfly_plan::halve_far, size, rank};
    }
    constexpr butterfly_schedule all_gather(int size, rank_t rank) const {
        return {butterfly_plan::gather, size, rank};
    }

    friend constexpr bool operator==(halving_doubling, halving_doubling) = default;
};

static_assert(Topology<halving_doubling>);

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/rank_sets.hpp

namespace rill::inline RILL_ABI::topology {

/// A set of ranks as bits; a word holds 64.
using rank_set = std::span<std::uint64_t>;
/// A set that is only read. Sets that meet in an operation have equally many words.
using rank_set_view = std::span<const std::uint64_t>;

/// `rank` must be below 64 times the words, as in `contains`.
constexpr void insert(rank_set set, rank_t rank) {
    set[static_cast<std::size_t>(rank / 64)] |= std::uint64_t{1} << (rank % 64);
}

/// Whether `rank` is a member.
constexpr bool contains(rank_set_view set, rank_t rank) {
    return ((set[static_cast<std::size_t>(rank / 64)] >> (rank % 64)) & 1) != 0;
}

/// Whether no rank is in both.
constexpr bool are_disjoint(rank_set_view a, rank_set_view b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if ((a[i] & b[i]) != 0) return false;
    return true;
}

/// Whether `more` holds all of `less` and something besides.
constexpr bool is_larger(rank_set_view more, rank_set_view less) {
    bool grew = false;
    for (std::size_t i = 0; i < more.size(); ++i) {
        if ((less[i] & ~more[i]) != 0) return false;
        grew = grew || more[i] != less[i];
    }
    return grew;
}

/// Whether both have the same members.
constexpr bool are_equal(rank_set_view a, rank_set_view b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i] != b[i]) return false;
    return true;
}

/// Joins `b` into `a`; false when that adds nothing.
constexpr bool join(rank_set a, rank_set_view b) {
    bool grew = false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        grew = grew || (b[i] & ~a[i]) != 0;
        a[i] |= b[i];
    }
    return grew;
}

/// The smallest member of a set that is not empty.
constexpr rank_t smallest(rank_set_view set) {
    std::size_t i = 0;
    while (set[i] == 0) ++i;
    return static_cast<rank_t>(i) * 64 + std::countr_zero(set[i]);
}

/// The largest member of a set that is not empty.
constexpr rank_t largest(rank_set_view set) {
    std::size_t i = set.size() - 1;
    while (set[i] == 0) --i;
    return static_cast<rank_t>(i) * 64 + 63 - std::countl_zero(set[i]);
}

/// Many sets of ranks of a group of `size`, all empty at first.
class rank_sets {
  public:
    constexpr rank_sets() = default;
    constexpr rank_sets(std::size_t count, int size)
        : words_(static_cast<std::size_t>(size + 63) / 64), bits_(count * words_, std::uint64_t{0}) {}

    constexpr rank_set operator[](std::size_t i) { return rank_set(bits_).subspan(i * words_, words_); }
    constexpr rank_set_view operator[](std::size_t i) const { return rank_set_view(bits_).subspan(i * words_, words_); }

    constexpr std::size_t count() const { return bits_.size() / words_; }
    constexpr void clear() { bits_.clear(); }
    constexpr void push(rank_set_view set) {
        for (std::uint64_t word : set) bits_.push_back(word);
    }

  private:
    std::size_t words_ = 1;
    std::vector<std::uint64_t> bits_{};
};

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/follow.hpp

namespace rill::inline RILL_ABI::topology {

/// What a proof found: nothing, or the first defect.
struct verdict {
    bool ok = true;
    int round = -1;           ///< -1: before the first, or after the last
    rank_t rank = no_rank;    ///< the rank at which it shows
    const char* what = "ok";  ///< complete sentence

    constexpr explicit operator bool() const { return ok; }
};

/// What a topology promises besides the result.
struct promises {
    bool rank_order = false;  ///< `preserves_rank_order`
    bool copy_phase = false;  ///< `has_copy_phase`
};

/// What must come about: a collective among `size` ranks.
struct obligation {
    operation what = operation::all_reduce;
    int size = 1;
    rank_t root = 0;
    promises promised{};
};

/// Follows every contribution through the schedules of all ranks, in lockstep.
///
/// Keeps, for each rank and part, the set of ranks whose contribution is in it: O(P²·parts) bits and time proportional
/// to the parts that are sent.
template <Schedule S>
class follower {
  public:
    /// `schedule_of(rank)` gives the schedule of each rank.
    template <class ScheduleOf>
    constexpr follower(const obligation& aim, const ScheduleOf& schedule_of) : aim_(aim) {
        for (rank_t r = 0; r < aim.size; ++r) schedules_.push_back(schedule_of(r));
    }

    constexpr verdict run() {
        if (check_shape() && check_parts()) {
            start();
            bool sound = true;
            for (int round = 0; sound && round < schedules_[0].rounds(); ++round) sound = step(round);
            if (sound) check_end();
        }
        return verdict_;
    }

  private:
    /// A message on its way: what it carries is the sets `first_set …` of `payload_`, one for each part.
    struct message {
        transfer from{};
        std::size_t first_set = 0;
    };
    using messages = std::span<const message>;

    constexpr bool refuse(int round, rank_t rank, const char* what) {
        verdict_ = {false, round, rank, what};
        return false;
    }
    constexpr std::vector<message>& inbox(rank_t rank) { return inbox_[static_cast<std::size_t>(rank)]; }
    constexpr rank_set knows(rank_t rank) { return knows_[static_cast<std::size_t>(rank)]; }
    constexpr const S& schedule(rank_t rank) const { return schedules_[static_cast<std::size_t>(rank)]; }
    constexpr std::size_t cell(rank_t rank, int part) const {
        return static_cast<std::size_t>(rank) * static_cast<std::size_t>(parts_) + static_cast<std::size_t>(part);
    }
    constexpr bool is_rooted() const { return aim_.what == operation::reduce || aim_.what == operation::broadcast; }
    constexpr bool only_copies() const {
        return aim_.what == operation::all_gather || aim_.what == operation::broadcast;
    }

    // What each rank has at first and must have at last.

    constexpr bool starts_with(rank_t rank, int part) const {
        if (aim_.what == operation::all_gather) return rank == part;
        return aim_.what != operation::broadcast || rank == aim_.root;
    }
    constexpr bool must_have(rank_t rank, int part) const {
        if (aim_.what == operation::reduce_scatter) return rank == part;
        return aim_.what != operation::reduce || rank == aim_.root;
    }
    constexpr bool is_complete(rank_set_view set, int part) const {
        if (!only_copies()) return are_equal(set, everyone_[0]);
        return contains(set, aim_.what == operation::broadcast ? aim_.root : part);
    }

    constexpr bool check_shape() {
        if (aim_.size < 1) return refuse(-1, no_rank, "a group has at least one rank");
        if (aim_.root < 0 || aim_.root >= aim_.size) return refuse(-1, aim_.root, "the root is outside the group");
        return true;
    }
    constexpr bool check_parts() {
        parts_ = schedules_[0].parts();
        const bool by_rank = aim_.what == operation::reduce_scatter || aim_.what == operation::all_gather;
        if (by_rank && parts_ != aim_.size) return refuse(-1, 0, "there must be one part for each rank");
        if (parts_ < 1) return refuse(-1, 0, "there must be at least one part");
        for (rank_t r = 1; r < aim_.size; ++r) {
            if (schedule(r).parts() != parts_) return refuse(-1, r, "the ranks disagree on the number of parts");
            if (schedule(r).rounds() != schedules_[0].rounds())
                return refuse(-1, r, "the ranks disagree on the number of rounds");
        }
        return true;
    }

    constexpr void start() {
        const std::size_t cells = cell(aim_.size, 0);
        everyone_ = rank_sets(1, aim_.size);
        has_ = rank_sets(cells, aim_.size);
        knows_ = rank_sets(static_cast<std::size_t>(aim_.size), aim_.size);
        payload_ = rank_sets(0, aim_.size);
        inbox_ = std::vector<std::vector<message>>(static_cast<std::size_t>(aim_.size));
        received_in_ = std::vector<int>(cells, -1);
        was_copied_ = std::vector<char>(cells, char{0});
        is_unused_ = std::vector<char>(cells, char{0});
        finished_by_ = std::vector<rank_t>(static_cast<std::size_t>(parts_), no_rank);
        for (rank_t r = 0; r < aim_.size; ++r) {
            insert(everyone_[0], r);
            for (int part = 0; part < parts_; ++part)
                if (starts_with(r, part)) insert(has_[cell(r, part)], r);
        }
        for (rank_t r = 0; r < aim_.size; ++r) learn_own(r);
    }

    /// All sends are taken as they are before the round; then every rank applies what it receives.
    constexpr bool step(int round) {
        payload_.clear();
        for (auto& arrived : inbox_) arrived.clear();
        for (rank_t r = 0; r < aim_.size; ++r)
            if (!post(round, r)) return false;
        for (rank_t r = 0; r < aim_.size; ++r)
            if (!check_receives(round, r)) return false;
        for (rank_t r = 0; r < aim_.size; ++r)
            if (!apply(round, r)) return false;
        return true;
    }

    // The transfers of a round by themselves.

    constexpr bool check_transfer(int round, rank_t rank, transfer t) {
        if (t.peer < 0 || t.peer >= aim_.size) return refuse(round, rank, "a peer is outside the group");
        if (t.peer == rank) return refuse(round, rank, "a rank sends to itself");
        if (t.parts == part_range{}) {
            const bool notice = is_rooted() && schedule(rank).kind(round) == action::copy;
            return notice || refuse(round, rank, "a transfer carries no parts, and the operation needs no notice");
        }
        if (t.parts.first < 0 || t.parts.last > parts_ || t.parts.count() < 1)
            return refuse(round, rank, "a range of parts is not inside [0, parts())");
        if constexpr (requires { requires S::carries_one_part; })
            if (t.parts.count() > 1)
                return refuse(round, rank, "a transfer carries several parts, against its promise");
        return true;
    }
    /// Senders post in ascending order, so that every inbox is in the order in which receives must be listed.
    constexpr bool post(int round, rank_t rank) {
        for (int i = 0; i < schedule(rank).sends(round); ++i) {
            const transfer t = schedule(rank).send(round, i);
            if (!check_transfer(round, rank, t)) return false;
            inbox(t.peer).push_back({{rank, t.parts}, payload_.count()});
            payload_.push(knows(rank));
            for (int part = t.parts.first; part < t.parts.last; ++part) {
                payload_.push(has_[cell(rank, part)]);
                is_unused_[cell(rank, part)] = 0;
            }
        }
        return true;
    }
    constexpr bool check_receives(int round, rank_t rank) {
        const S& s = schedule(rank);
        const auto sent = static_cast<int>(inbox(rank).size());
        rank_t before = no_rank;
        for (int i = 0; i < s.receives(round); ++i) {
            const transfer t = s.receive(round, i);
            if (!check_transfer(round, rank, t)) return false;
            if (t.peer < before) return refuse(round, rank, "receives are not in ascending order of peers");
            before = t.peer;
            if (!check_pair(round, rank, t, i)) return false;
        }
        if (sent > s.receives(round)) return refuse(round, rank, "a send to this rank has no receive in its round");
        return arrives_whole(round, rank) || refuse(round, rank, "parts received in one round overlap");
    }
    /// Receive `i` must be of message `i` in the inbox.
    constexpr bool check_pair(int round, rank_t rank, transfer t, int i) {
        const auto at = static_cast<std::size_t>(i);
        if (at >= inbox(rank).size() || t.peer < inbox(rank)[at].from.peer)
            return refuse(round, rank, "a receive has no send in its round");
        const transfer sent = inbox(rank)[at].from;
        if (sent.peer < t.peer) return refuse(round, rank, "a send to this rank has no receive in its round");
        if (sent.parts != t.parts) return refuse(round, rank, "a receive expects other parts than are sent");
        if (schedule(sent.peer).kind(round) != schedule(rank).kind(round))
            return refuse(round, rank, "one end of a message folds, the other copies");
        return true;
    }
    /// What arrives in one round is the same range from all, to be folded, or disjoint.
    constexpr bool arrives_whole(int round, rank_t rank) {
        bool all_same = schedule(rank).kind(round) == action::fold;
        for (const message& m : inbox(rank)) all_same = all_same && m.from.parts == inbox(rank)[0].from.parts;
        if (all_same) return true;
        for (const message& m : inbox(rank))
            for (int part = m.from.parts.first; part < m.from.parts.last; ++part)
                if (std::exchange(received_in_[cell(rank, part)], round) == round) return false;
        return true;
    }

    // What a rank does with its inbox.

    constexpr rank_set_view carried(const message& m, int part) const {
        return payload_[m.first_set + 1 + static_cast<std::size_t>(part - m.from.parts.first)];
    }

    constexpr bool apply(int round, rank_t rank) {
        const messages all(inbox(rank));
        if (all.empty()) return true;
        const bool folds = schedule(rank).kind(round) == action::fold;
        if (folds && all.back().from.parts == all.front().from.parts) {
            if (!fold(round, rank, all)) return false;
        } else {
            for (std::size_t i = 0; i < all.size(); ++i)
                if (folds ? !fold(round, rank, all.subspan(i, 1)) : !copy(round, rank, all[i])) return false;
        }
        learn_own(rank);
        return true;
    }

    /// A k-way fold of the same parts; what is folded has content everywhere from the start.
    constexpr bool fold(int round, rank_t rank, messages all) {
        if (only_copies()) return refuse(round, rank, "the operation folds nothing");
        const part_range range = all.front().from.parts;
        for (int part = range.first; part < range.last; ++part) {
            const std::size_t here = cell(rank, part);
            if (was_copied_[here] != 0) return refuse(round, rank, "a part is folded after it was copied");
            if (aim_.promised.rank_order && !keeps_order(rank, part, all))
                return refuse(round, rank, "a fold does not keep the order of ranks");
            for (const message& m : all) {
                const rank_set_view more = carried(m, part);
                if (!are_disjoint(has_[here], more)) return refuse(round, rank, "a contribution is folded twice");
                join(has_[here], more);
            }
            is_unused_[here] = 1;
            if (!check_owner(round, rank, part)) return false;
        }
        return true;
    }
    /// All messages in ascending order of ranks, what the rank has itself at its own place.
    constexpr bool keeps_order(rank_t rank, int part, messages all) const {
        rank_t last = no_rank;
        const auto follows = [&](rank_set_view next) { return smallest(next) > std::exchange(last, largest(next)); };
        std::size_t i = 0;
        for (; i < all.size() && all[i].from.peer < rank; ++i)
            if (!follows(carried(all[i], part))) return false;
        if (!follows(has_[cell(rank, part)])) return false;
        for (; i < all.size(); ++i)
            if (!follows(carried(all[i], part))) return false;
        return true;
    }
    /// With a copy phase, one rank alone finishes a part.
    constexpr bool check_owner(int round, rank_t rank, int part) {
        if (!aim_.promised.copy_phase || !is_complete(has_[cell(rank, part)], part)) return true;
        rank_t& owner = finished_by_[static_cast<std::size_t>(part)];
        if (owner != no_rank) return refuse(round, rank, "two ranks finish a part: there is no copy phase");
        owner = rank;
        return true;
    }

    constexpr bool copy(int round, rank_t rank, const message& m) {
        if (aim_.what == operation::reduce && m.from.parts.count() > 0)
            return refuse(round, rank, "a reduction copies no parts");
        for (int part = m.from.parts.first; part < m.from.parts.last; ++part) {
            const std::size_t here = cell(rank, part);
            const rank_set_view more = carried(m, part);
            if (!is_larger(more, has_[here]))
                return refuse(round, rank, "a copy brings nothing new, or less than it replaces");
            if (aim_.promised.copy_phase && !is_complete(more, part))
                return refuse(round, rank, "a part is copied before it is finished");
            join(has_[here], more);
            was_copied_[here] = 1;
            is_unused_[here] = 1;
        }
        const bool news = join(knows(rank), payload_[m.first_set]);
        return news || m.from.parts.count() > 0 || refuse(round, rank, "a notice tells nothing new");
    }

    // Rooted operations. Reduction: who knows that the root has finished. Broadcast: who knows which ranks have
    // entered.

    constexpr void learn_own(rank_t rank) {
        if (!is_rooted()) return;
        if (aim_.what == operation::broadcast) {
            insert(knows(rank), rank);
            return;
        }
        for (int part = 0; part < parts_; ++part)
            if (!must_have(rank, part) || !is_complete(has_[cell(rank, part)], part)) return;
        insert(knows(rank), rank);
    }

    constexpr bool check_end() {
        for (rank_t r = 0; r < aim_.size; ++r) {
            for (int part = 0; part < parts_; ++part) {
                if (must_have(r, part)) {
                    if (!is_complete(has_[cell(r, part)], part)) return refuse(-1, r, "a contribution is missing");
                } else if (is_unused_[cell(r, part)] != 0) {
                    return refuse(-1, r, "a rank receives a part that it neither needs nor sends on");
                }
            }
            if (aim_.what == operation::reduce && !contains(knows(r), aim_.root))
                return refuse(-1, r, "a rank is not told that the root has finished");
            if (aim_.what == operation::broadcast && !are_equal(knows(r), everyone_[0]))
                return refuse(-1, r, "a rank does not learn that all ranks have entered");
        }
        return true;
    }

    obligation aim_;
    verdict verdict_{};
    std::vector<S> schedules_{};
    int parts_ = 0;

    rank_sets everyone_{};                       // one set: all ranks
    rank_sets has_{};                            // (rank, part): whose contributions are in it
    rank_sets knows_{};                          // rank: of whom it knows
    std::vector<int> received_in_{};             // (rank, part): the last round in which it came
    std::vector<char> was_copied_{};             // (rank, part)
    std::vector<char> is_unused_{};              // (rank, part): came and was not sent since
    std::vector<rank_t> finished_by_{};          // part: who folded the last contribution into it
    std::vector<std::vector<message>> inbox_{};  // rank: the messages of this round, by sender
    rank_sets payload_{};                        // of each message: what the sender knows, then a set for each part
};

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/proof.hpp

/// Proves schedules correct, at compile time for small groups: follows every contribution in lockstep. Works on any
/// model of `Topology`, and on any callable that gives each rank a `Schedule`.

namespace rill::inline RILL_ABI::topology {

/// The first defect of the schedules `schedule_of(0) … schedule_of(aim.size - 1)`, if they have one.
///
/// Refused are: a send without its receive in the same round with the same parts, or the reverse; a message to oneself;
/// receives out of order; ranges outside `[0, parts())` or overlapping in a round; ends that disagree on fold or copy;
/// a contribution that is folded twice, or is missing at the end; a fold after a copy; a copy that brings nothing new;
/// a part that is received in vain; a rank that never learns the outcome of a rooted operation; a broken promise. Cost:
/// memory O(P²·parts/8) bytes; time O(P/64) per part sent.
template <class ScheduleOf>
constexpr verdict verify(const obligation& aim, const ScheduleOf& schedule_of) {
    return follower<std::remove_cvref_t<decltype(schedule_of(rank_t{0}))>>(aim, schedule_of).run();
}

/// What the flags of a topology say.
template <Topology T>
constexpr promises promises_of(const T&) {
    return {.rank_order = T::preserves_rank_order, .copy_phase = T::has_copy_phase};
}

/// Whether every rank ends with every contribution exactly once, in every part.
template <Topology T>
constexpr verdict verify_all_reduce(const T& topology, int size) {
    return verify({operation::all_reduce, size, 0, promises_of(topology)},
                  [&](rank_t rank) { return topology.all_reduce(size, rank); });
}

/// Whether rank r ends with every contribution exactly once in part r.
template <Topology T>
constexpr verdict verify_reduce_scatter(const T& topology, int size) {
    return verify({operation::reduce_scatter, size, 0, {.rank_order = T::preserves_rank_order}},
                  [&](rank_t rank) { return topology.reduce_scatter(size, rank); });
}

/// Whether part r, which rank r alone has at first, reaches every rank.
template <Topology T>
constexpr verdict verify_all_gather(const T& topology, int size) {
    return verify({operation::all_gather, size}, [&](rank_t rank) { return topology.all_gather(size, rank); });
}

/// Whether the root ends with every contribution exactly once, and every rank learns that it did.
template <RootedTopology T>
constexpr verdict verify_reduce(const T& topology, int size, rank_t root) {
    return verify({operation::reduce, size, root, {.rank_order = T::preserves_rank_order}},
                  [&](rank_t rank) { return topology.reduce(size, rank, root); });
}

/// Whether every rank ends with what the root has, and the root learns that they do.
template <RootedTopology T>
constexpr verdict verify_broadcast(const T& topology, int size, rank_t root) {
    return verify({operation::broadcast, size, root},
                  [&](rank_t rank) { return topology.broadcast(size, rank, root); });
}

/// `verify_all_reduce` as a yes or no, for `static_assert`.
template <Topology T>
constexpr bool computes_all_reduce(const T& topology, int size) {
    return verify_all_reduce(topology, size).ok;
}
/// `verify_reduce_scatter` as a yes or no.
template <Topology T>
constexpr bool computes_reduce_scatter(const T& topology, int size) {
    return verify_reduce_scatter(topology, size).ok;
}
/// `verify_all_gather` as a yes or no.
template <Topology T>
constexpr bool computes_all_gather(const T& topology, int size) {
    return verify_all_gather(topology, size).ok;
}
/// `verify_reduce` as a yes or no.
template <RootedTopology T>
constexpr bool computes_reduce(const T& topology, int size, rank_t root) {
    return verify_reduce(topology, size, root).ok;
}
/// `verify_broadcast` as a yes or no.
template <RootedTopology T>
constexpr bool computes_broadcast(const T& topology, int size, rank_t root) {
    return verify_broadcast(topology, size, root).ok;
}

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/recursive_doubling.hpp

namespace rill::inline RILL_ABI::topology {

/// In round k every rank exchanges all that it has with the rank that differs in bit k.
///
/// With L = ⌊log2 P⌋: where P is no power of two, the pairs (2i, 2i+1), i < P - 2^L, act as one, at the cost of one
/// round before and one after.
/// Cost: `all_reduce` takes L (+2) rounds and sends at most N·(L+1) per rank: the fewest rounds, for small N.
/// `reduce_scatter` halves, nearest rank first, and then sends each part to its rank: L+1 (+1) rounds, at most N per
/// rank. `all_gather` doubles: L (+2) rounds, less than 4N/3 per rank and less than N more by the first rank of a pair.
/// Determinism: ascending order of ranks. Every rank folds for itself, so a result cannot be coded once by an owner:
/// there is no copy phase.
/// Source: Thakur, Rabenseifner and Gropp, Optimization of collective communication operations in MPICH, IJHPCA 2005,
/// section 4. `reduce_scatter` deviates: theirs starts with the farthest rank, which costs the order of ranks.
struct recursive_doubling {
    static constexpr const char* name = "recursive_doubling";
    static constexpr bool preserves_rank_order = true;
    static constexpr bool has_copy_phase = false;

    constexpr butterfly_schedule all_reduce(int size, rank_t rank) const {
        return {butterfly_plan::exchange, size, rank};
    }
    constexpr butterfly_schedule reduce_scatter(int size, rank_t rank) const {
        return {butterfly_plan::halve_near, size, rank};
    }
    constexpr butterfly_schedule all_gather(int size, rank_t rank) const {
        return {butterfly_plan::gather, size, rank};
    }

    friend constexpr bool operator==(recursive_doubling, recursive_doubling) = default;
};

static_assert(Topology<recursive_doubling>);

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/regular_tree.hpp

namespace rill::inline RILL_ABI::topology {

/// The (width, depth)-regular tree: a master, `width` children of each node but those of the last layer, `depth` layers
/// of workers below the master.
///
/// Ranks are breadth first: the master is 0, then come the layers one by one, children of one parent side by side. A
/// group that it is used for has `size()` ranks; any other size breaks a contract.
///
/// Source: CodedReduce, section III-A, where the node (l, i) is rank `first_of(l) + i - 1`.
struct regular_tree {
    int width = 2;
    int depth = 1;

    static constexpr const char* name = "regular_tree";

    /// The master and all workers: 1 + width + width² + … + width^depth.
    constexpr int size() const {
        check();
        return first_of(depth + 1);
    }
    constexpr int workers() const { return size() - 1; }

    /// The lowest rank of a layer; the master alone is layer 0. Layers up to `depth + 1`, which is empty.
    constexpr int first_of(int layer) const {
        long long first = 0;
        for (int l = 0; l < layer; ++l) {
            first = first * width + 1;
            RILL_EXPECTS(first <= most_ranks, "regular_tree: more than 2^30 ranks");
        }
        return static_cast<int>(first);
    }
    /// How many edges lie between a rank and the master.
    constexpr int layer(rank_t rank) const {
        int layers = 0;
        for (; rank > 0; rank = (rank - 1) / width) ++layers;
        return layers;
    }

    /// `no_rank` for the master.
    constexpr rank_t parent(int size, rank_t rank) const {
        check(size, rank);
        return rank == 0 ? no_rank : (rank - 1) / width;
    }
    /// How many children a rank has: `width`, or 0 in the last layer.
    constexpr int children(int size, rank_t rank) const {
        check(size, rank);
        return is_inner(size, rank) ? width : 0;
    }
    /// Child i, `0 … children-1`, in ascending order of ranks.
    constexpr rank_t child(int size, rank_t rank, int i) const {
        RILL_EXPECTS(0 <= i && i < children(size, rank), "regular_tree: no such child");
        return rank * width + 1 + i;
    }
    /// Edges down to the leaves below a rank.
    constexpr int height(int size, rank_t rank) const {
        check(size, rank);
        return depth - layer(rank);
    }

    /// Calls `visit(name, value)` for each option.
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("width", width);
        visit("depth", depth);
    }

    friend constexpr bool operator==(regular_tree, regular_tree) = default;

  private:
    static constexpr int most_ranks = 1 << 30;

    constexpr bool is_inner(int size, rank_t rank) const { return rank < (size - 1) / width; }
    constexpr void check() const {
        RILL_EXPECTS(width > 0 && depth > 0, "regular_tree: width and depth are at least 1");
    }
    constexpr void check([[maybe_unused]] int size, [[maybe_unused]] rank_t rank) const {
        RILL_EXPECTS(size == this->size(), "regular_tree: the group has not 1 + width + … + width^depth ranks");
        RILL_EXPECTS(0 <= rank && rank < size, "regular_tree: no such rank");
    }
};

static_assert(AggregationTree<regular_tree>);

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/ring.hpp

namespace rill::inline RILL_ABI::topology {

/// One rank's rounds around a ring: each sends one part to the next rank and receives one from the previous.
class ring_schedule {
  public:
    static constexpr bool carries_one_part = true;

    constexpr ring_schedule() = default;
    constexpr ring_schedule(operation what, int size, rank_t rank) : what_(what), size_(size), rank_(rank) {
        RILL_EXPECTS(0 <= rank && rank < size, "topology::ring: the rank is outside the group");
    }

    constexpr int parts() const { return size_; }
    constexpr int rounds() const { return (size_ - 1) * (what_ == operation::all_reduce ? 2 : 1); }
    constexpr action kind(int round) const { return round < fold_rounds() ? action::fold : action::copy; }
    constexpr int sends(int) const { return 1; }
    constexpr transfer send(int round, int) const { return {at(rank_ + 1), one(sent_by(rank_, round))}; }
    constexpr int receives(int) const { return 1; }
    constexpr transfer receive(int round, int) const { return {at(rank_ - 1), one(sent_by(rank_ - 1, round))}; }

    friend constexpr bool operator==(const ring_schedule&, const ring_schedule&) = default;

  private:
    constexpr int fold_rounds() const { return what_ == operation::all_gather ? 0 : size_ - 1; }
    constexpr int at(int i) const { return (i + 2 * size_) % size_; }
    static constexpr part_range one(int part) { return {part, part + 1}; }

    /// Part p starts at rank p+1, so that its last fold is on rank p, which is where its copies start.
    constexpr int sent_by(rank_t rank, int round) const {
        return kind(round) == action::fold ? at(rank - 1 - round) : at(rank - (round - fold_rounds()));
    }

    operation what_ = operation::all_reduce;
    int size_ = 1;
    rank_t rank_ = 0;
};

/// Part p of P travels once around the ring and is folded on the way; then it travels around once more as a copy.
///
/// Cost: `all_reduce` takes 2(P-1) rounds and sends 2N(P-1)/P per rank, `reduce_scatter` and `all_gather` half of each:
/// the least bytes possible, at the most rounds.
/// Determinism: part p is folded in the order p+1, …, P-1, 0, …, p.
/// Source: Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 2009.
struct ring {
    static constexpr const char* name = "ring";
    static constexpr bool preserves_rank_order = false;
    static constexpr bool has_copy_phase = true;

    constexpr ring_schedule all_reduce(int size, rank_t rank) const { return {operation::all_reduce, size, rank}; }
    constexpr ring_schedule reduce_scatter(int size, rank_t rank) const {
        return {operation::reduce_scatter, size, rank};
    }
    constexpr ring_schedule all_gather(int size, rank_t rank) const { return {operation::all_gather, size, rank}; }

    friend constexpr bool operator==(ring, ring) = default;
};

static_assert(Topology<ring>);

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/split_allgather.hpp

namespace rill::inline RILL_ABI::topology {

/// One rank's two rounds: part j to rank j, for all j; then the own part to all.
class split_schedule {
  public:
    static constexpr bool carries_one_part = true;

    constexpr split_schedule() = default;
    constexpr split_schedule(operation what, int size, rank_t rank) : what_(what), size_(size), rank_(rank) {
        RILL_EXPECTS(0 <= rank && rank < size, "topology::split_allgather: the rank is outside the group");
    }

    constexpr int parts() const { return size_; }
    constexpr int rounds() const {
        if (size_ == 1) return 0;
        return what_ == operation::all_reduce ? 2 : 1;
    }
    constexpr action kind(int round) const {
        return round == 0 && what_ != operation::all_gather ? action::fold : action::copy;
    }
    constexpr int sends(int) const { return size_ - 1; }
    constexpr transfer send(int round, int i) const {
        // Each rank begins with the next one, so that no receiver is everyone's first.
        const rank_t peer = (rank_ + 1 + i) % size_;
        return {peer, kind(round) == action::fold ? one(peer) : one(rank_)};
    }
    constexpr int receives(int) const { return size_ - 1; }
    constexpr transfer receive(int round, int i) const {
        const rank_t peer = i < rank_ ? i : i + 1;
        return {peer, kind(round) == action::fold ? one(rank_) : one(peer)};
    }

    friend constexpr bool operator==(const split_schedule&, const split_schedule&) = default;

  private:
    static constexpr part_range one(int part) { return {part, part + 1}; }

    operation what_ = operation::all_reduce;
    int size_ = 1;
    rank_t rank_ = 0;
};

/// Every rank owns one part: it receives that part from all others, folds all of them at once, and sends it to all.
///
/// Cost: `all_reduce` takes 2 rounds of P-1 messages and sends 2N(P-1)/P per rank, `reduce_scatter` and `all_gather`
/// one round and half the bytes each. A sparse stream is merged once, k-way, instead of log P times. Determinism:
/// ascending order of ranks. Source: Renggli et al., SparCML, SC 2019 (SSAR_Split_allgather).
struct split_allgather {
    static constexpr const char* name = "split_allgather";
    static constexpr bool preserves_rank_order = true;
    static constexpr bool has_copy_phase = true;
    static constexpr bool folds_at_owners = true;

    constexpr split_schedule all_reduce(int size, rank_t rank) const { return {operation::all_reduce, size, rank}; }
    constexpr split_schedule reduce_scatter(int size, rank_t rank) const {
        return {operation::reduce_scatter, size, rank};
    }
    constexpr split_schedule all_gather(int size, rank_t rank) const { return {operation::all_gather, size, rank}; }

    friend constexpr bool operator==(split_allgather, split_allgather) = default;
};

static_assert(Topology<split_allgather>);

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/subtree.hpp

namespace rill::inline RILL_ABI::topology {

/// A node of a preorder tree and the ranks below it: the consecutive ranks `[first, last)`, `root` among them.
///
/// The ranks on each side of the root are divided into nearly equal consecutive chunks, at most `arity` together (one
/// per side at least); the first rank of a chunk is a child and the root of its own chunk. So a node folds its children
/// in ascending order of ranks, with its own contribution at its place.
struct subtree {
    rank_t root = 0;
    rank_t first = 0;
    rank_t last = 1;

    constexpr int size() const { return last - first; }
    constexpr bool contains(rank_t rank) const { return first <= rank && rank < last; }

    constexpr int children(int arity) const { return chunks_before(arity) + chunks_after(arity); }

    /// Child `i` of `children(arity)`, in ascending order of ranks.
    constexpr subtree child(int arity, int i) const {
        const int before = chunks_before(arity);
        if (i < before) return chunk(first, root - first, before, i);
        return chunk(root + 1, last - root - 1, chunks_after(arity), i - before);
    }

    /// The child whose ranks include `rank`, which is not the root.
    constexpr subtree child_with(int arity, rank_t rank) const {
        const int before = chunks_before(arity);
        if (rank < root) return chunk(first, root - first, before, chunk_of(root - first, before, rank - first));
        const int n = last - root - 1;
        const int after = chunks_after(arity);
        return chunk(root + 1, n, after, chunk_of(n, after, rank - root - 1));
    }

    /// Edges from the root to the deepest rank.
    constexpr int depth(int arity) const {
        if (size() == 1) return 0;
        const int before = largest(root - first, chunks_before(arity));
        const int after = largest(last - root - 1, chunks_after(arity));
        int depth = 1;
        for (int n = before > after ? before : after; n > 1; n = largest(n - 1, arity)) ++depth;
        return depth;
    }

    friend constexpr bool operator==(subtree, subtree) = default;

  private:
    constexpr int chunks_before(int arity) const {
        const int before = root - first;
        if (before == 0 || size() - 1 == before) return smaller(arity, before);
        const int share = static_cast<int>((2LL * arity * before + size() - 1) / (2LL * (size() - 1)));
        const int most = arity > 1 ? arity - 1 : 1;
        return smaller(share < 1 ? 1 : smaller(share, most), before);
    }
    constexpr int chunks_after(int arity) const {
        const int rest = arity - chunks_before(arity);
        return smaller(rest < 1 ? 1 : rest, last - root - 1);
    }

    static constexpr int smaller(int a, int b) { return a < b ? a : b; }
    static constexpr int largest(int n, int chunks) { return n == 0 ? 0 : (n + chunks - 1) / chunks; }

    /// The first `n % chunks` chunks are one longer.
    static constexpr subtree chunk(rank_t begin, int n, int chunks, int i) {
        const int lo = begin + i * (n / chunks) + smaller(i, n % chunks);
        return {lo, lo, lo + n / chunks + (i < n % chunks ? 1 : 0)};
    }
    static constexpr int chunk_of(int n, int chunks, int position) {
        const int each = n / chunks;
        const int in_longer = (n % chunks) * (each + 1);
        if (position < in_longer) return position / (each + 1);
        return n % chunks + (position - in_longer) / each;
    }
};

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/tree_schedule.hpp

namespace rill::inline RILL_ABI::topology {

/// One rank's rounds up and down a preorder tree. Rounds are numbered by level, so that all children of a node arrive
/// in one round. Construction takes O(depth), every query O(1).
class tree_schedule {
  public:
    constexpr tree_schedule() = default;
    constexpr tree_schedule(operation what, int arity, int size, rank_t rank, rank_t root = 0)
        : what_(what), arity_(arity), size_(size) {
        RILL_EXPECTS(arity >= 1, "topology::tree: arity must be at least 1");
        RILL_EXPECTS(0 <= rank && rank < size, "topology::tree: the rank is outside the group");
        RILL_EXPECTS(0 <= root && root < size, "topology::tree: the root is outside the group");
        node_ = {root, 0, size};
        depth_ = node_.depth(arity);
        for (; node_.root != rank; ++level_) {
            parent_ = node_.root;
            node_ = node_.child_with(arity, rank);
        }
    }

    constexpr int parts() const { return by_parts() ? size_ : 1; }
    constexpr int rounds() const { return 2 * depth_; }
    constexpr action kind(int round) const {
        const bool folds = what_ != operation::all_gather && what_ != operation::broadcast;
        return folds && goes_up(round) ? action::fold : action::copy;
    }

    constexpr int sends(int round) const { return goes_up(round) ? to_parent(round) : to_children(round); }
    constexpr transfer send(int round, int i) const {
        return goes_up(round) ? transfer{parent_, up(node_)} : with_child(round, i);
    }
    constexpr int receives(int round) const { return goes_up(round) ? to_children(round) : to_parent(round); }
    constexpr transfer receive(int round, int i) const {
        return goes_up(round) ? with_child(round, i) : transfer{parent_, down(node_, i)};
    }

    constexpr rank_t parent() const { return parent_; }  ///< `no_rank` for the root
    constexpr int children() const { return node_.children(arity_); }
    constexpr rank_t child(int i) const { return node_.child(arity_, i).root; }
    constexpr int level() const { return level_; }
    constexpr int depth() const { return depth_; }
    constexpr int height() const { return node_.depth(arity_); }  ///< edges down to the deepest rank below

    friend constexpr bool operator==(const tree_schedule&, const tree_schedule&) = default;

  private:
    constexpr bool by_parts() const { return what_ == operation::reduce_scatter || what_ == operation::all_gather; }
    constexpr bool goes_up(int round) const { return round < depth_; }
    /// The level of the lower ends of a round.
    constexpr int lower_level(int round) const {
        const int step = round < depth_ ? round : round - depth_;
        return goes_up(round) ? depth_ - step : step + 1;
    }

    /// Transfers of a round between this rank and its parent; between it and its children.
    constexpr int to_parent(int round) const {
        if (level_ != lower_level(round)) return 0;
        return per_edge(round) - (per_edge(round) == 2 && node_.last == size_ ? 1 : 0);
    }
    constexpr int to_children(int round) const {
        if (level_ + 1 != lower_level(round) || children() == 0) return 0;
        const bool last_has_one = per_edge(round) == 2 && node_.last == size_;
        return per_edge(round) * children() - (last_has_one ? 1 : 0);
    }
    constexpr transfer with_child(int round, int i) const {
        const subtree below = node_.child(arity_, i / per_edge(round));
        return {below.root, goes_up(round) ? up(below) : down(below, i % per_edge(round))};
    }
    /// What a child lacks in an all-gather lies on both sides of its subtree; only the last one has nothing after it.
    constexpr int per_edge(int round) const { return what_ == operation::all_gather && !goes_up(round) ? 2 : 1; }

    /// What travels between the root of `below` and its parent.
    constexpr part_range up(subtree below) const {
        if (what_ == operation::broadcast) return {};
        if (what_ == operation::all_gather) return {below.first, below.last};
        return {0, parts()};
    }
    constexpr part_range down(subtree below, int i) const {
        if (what_ == operation::reduce) return {};
        if (what_ == operation::reduce_scatter) return {below.first, below.last};
        if (what_ == operation::all_gather) return i == 0 ? part_range{0, below.first} : part_range{below.last, size_};
        return {0, 1};
    }

    operation what_ = operation::all_reduce;
    int arity_ = 1;
    int size_ = 1;
    int depth_ = 0;
    int level_ = 0;
    rank_t parent_ = no_rank;
    subtree node_{};
};

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/star.hpp

namespace rill::inline RILL_ABI::topology {

/// All ranks send to one, which folds and answers: a tree of depth 1.
///
/// Cost: every collective takes 2 rounds. The root (rank 0 where there is no choice) sends `all_reduce` and `broadcast`
/// N(P-1), `reduce_scatter` N(P-1)/P, `all_gather` N(P-1)²/P; any other rank at most N.
/// Determinism: ascending order of ranks, for every root.
struct star {
    static constexpr const char* name = "star";
    static constexpr bool preserves_rank_order = true;
    static constexpr bool has_copy_phase = true;

    constexpr tree_schedule all_reduce(int size, rank_t rank) const {
        return {operation::all_reduce, arity(size), size, rank};
    }
    constexpr tree_schedule reduce_scatter(int size, rank_t rank) const {
        return {operation::reduce_scatter, arity(size), size, rank};
    }
    constexpr tree_schedule all_gather(int size, rank_t rank) const {
        return {operation::all_gather, arity(size), size, rank};
    }
    constexpr tree_schedule reduce(int size, rank_t rank, rank_t root) const {
        return {operation::reduce, arity(size), size, rank, root};
    }
    constexpr tree_schedule broadcast(int size, rank_t rank, rank_t root) const {
        return {operation::broadcast, arity(size), size, rank, root};
    }

    constexpr rank_t parent(int size, rank_t rank) const { return reduce(size, rank, 0).parent(); }
    constexpr int children(int size, rank_t rank) const { return reduce(size, rank, 0).children(); }
    constexpr rank_t child(int size, rank_t rank, int i) const { return reduce(size, rank, 0).child(i); }
    constexpr int height(int size, rank_t rank) const { return reduce(size, rank, 0).height(); }

    friend constexpr bool operator==(star, star) = default;

  private:
    static constexpr int arity(int size) { return size > 1 ? size - 1 : 1; }
};

static_assert(RootedTopology<star> && AggregationTree<star>);

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/topology/tree.hpp

namespace rill::inline RILL_ABI::topology {

/// Folds up and copies down a preorder tree whose nodes have at most `arity` children (see `subtree`); arity 1 is a
/// chain. A root between other ranks has at least one child on each side.
///
/// Cost, with depth D ≈ log_arity P: every collective takes 2D rounds. A rank sends at most: `all_reduce` N(1 + arity),
/// `reduce` N, `broadcast` N·arity, and frames without content for the way back; `reduce_scatter` less than 2N,
/// `all_gather` N(arity + 1/P).
/// Determinism: ascending order of ranks, for every root.
struct tree {
    int arity = 2;

    static constexpr const char* name = "tree";
    static constexpr bool preserves_rank_order = true;
    static constexpr bool has_copy_phase = true;

    constexpr tree_schedule all_reduce(int size, rank_t rank) const {
        return {operation::all_reduce, arity, size, rank};
    }
    constexpr tree_schedule reduce_scatter(int size, rank_t rank) const {
        return {operation::reduce_scatter, arity, size, rank};
    }
    constexpr tree_schedule all_gather(int size, rank_t rank) const {
        return {operation::all_gather, arity, size, rank};
    }
    constexpr tree_schedule reduce(int size, rank_t rank, rank_t root) const {
        return {operation::reduce, arity, size, rank, root};
    }
    constexpr tree_schedule broadcast(int size, rank_t rank, rank_t root) const {
        return {operation::broadcast, arity, size, rank, root};
    }

    constexpr rank_t parent(int size, rank_t rank) const { return reduce(size, rank, 0).parent(); }
    constexpr int children(int size, rank_t rank) const { return reduce(size, rank, 0).children(); }
    constexpr rank_t child(int size, rank_t rank, int i) const { return reduce(size, rank, 0).child(i); }
    constexpr int height(int size, rank_t rank) const { return reduce(size, rank, 0).height(); }

    /// Calls `visit(name, value)` for each option: printing and hashing need no more.
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("arity", arity);
    }

    friend constexpr bool operator==(tree, tree) = default;
};

static_assert(RootedTopology<tree> && AggregationTree<tree>);

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/compress/indices.hpp

namespace rill::inline RILL_ABI::compress {

/// Index codings: policies that say how the indices of a sparse frame are written. All are lossless.

/// Four or eight bytes an index; frames are views, nothing is written anew.
struct raw_indices {
    static constexpr const char* name = "raw_indices";
    static constexpr index_coding coding = index_coding::raw;
    friend constexpr bool operator==(raw_indices, raw_indices) = default;
};

/// Gaps between indices, bit-packed by blocks: about log2(1/density) + 3 bits an index.
struct packed_gaps {
    static constexpr const char* name = "packed_gaps";
    static constexpr index_coding coding = index_coding::packed_gaps;
    friend constexpr bool operator==(packed_gaps, packed_gaps) = default;
};

/// One bit a coordinate.
struct bitmap {
    static constexpr const char* name = "bitmap";
    static constexpr index_coding coding = index_coding::bitmap;
    friend constexpr bool operator==(bitmap, bitmap) = default;
};

/// By Elias and Fano: about log2(1/density) + 2 bits an index, one bit a coordinate from a density of a third on.
struct elias_fano {
    static constexpr const char* name = "elias_fano";
    static constexpr index_coding coding = index_coding::elias_fano;
    friend constexpr bool operator==(elias_fano, elias_fano) = default;
};

/// A bitmap whose bytes are coded by Huffman: near the entropy of indices at random from a density of a tenth on.
struct huffman_bitmap {
    static constexpr const char* name = "huffman_bitmap";
    static constexpr index_coding coding = index_coding::huffman;
    friend constexpr bool operator==(huffman_bitmap, huffman_bitmap) = default;
};

/// For each message the smallest of the others.
struct smallest {
    static constexpr const char* name = "smallest";
    static constexpr index_coding coding = index_coding::smallest;
    friend constexpr bool operator==(smallest, smallest) = default;
};

}  // namespace rill::inline RILL_ABI::compress

// ===== rill/compress/values.hpp

namespace rill::inline RILL_ABI::compress {

/// Value codings: policies that say how the values of a frame are written. Each gives a `coding()`.

/// Values as they are.
struct raw {
    static constexpr const char* name = "raw";
    static constexpr bool is_lossless = true;
    static constexpr bool is_unbiased = true;

    static constexpr rill::coding coding() { return {.values = value_coding::raw}; }
    friend constexpr bool operator==(raw, raw) = default;
};

/// The upper half of a float: 8 bits of exponent, 7 of mantissa, rounded to nearest even. Two bytes a value.
struct bf16 {
    static constexpr const char* name = "bf16";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;

    static constexpr rill::coding coding() { return {.values = value_coding::bf16}; }
    friend constexpr bool operator==(bf16, bf16) = default;
};

/// QSGD (Alistarh et al. 2017; SparCML, section 6): buckets of consecutive entries with one full-precision scale each,
/// and `bits` bits a value by stochastic rounding, unbiased.
struct qsgd {
    int bits = 4;                 ///< 2, 4 or 8
    std::uint32_t bucket = 1024;  ///< entries

    static constexpr const char* name = "qsgd";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = true;

    constexpr rill::coding coding() const {
        RILL_EXPECTS(bits == 2 || bits == 4 || bits == 8, "qsgd has 2, 4 or 8 bits");
        RILL_EXPECTS(bucket > 0, "qsgd needs buckets of at least one entry");
        return {.values = static_cast<value_coding>(bits), .bucket = bucket};
    }
    friend constexpr bool operator==(const qsgd&, const qsgd&) = default;
};

}  // namespace rill::inline RILL_ABI::compress

// ===== rill/compress/coded.hpp

namespace rill::inline RILL_ABI::compress {

/// A sparsifier with the codings of its values and indices, bound to a worker.
template <class Sparsifier, class Values, class Indices, class CopyValues, Element T, IndexType Index>
class codec {
  public:
    using index_type = Index;
    using selector = typename Sparsifier::template selector<T, Index>;

    static constexpr bool is_lossless = Sparsifier::is_lossless && Values::is_lossless;
    static constexpr bool is_unbiased = Sparsifier::is_unbiased && Values::is_unbiased;
    static constexpr bool is_contractive = Sparsifier::is_contractive;
    static constexpr bool has_lossless_copy = CopyValues::is_lossless;
    static constexpr bool is_coordinatewise = selector::is_coordinatewise;

    codec(const Sparsifier& sparsifier, std::size_t dimension, const stream_codings& codings)
        : selector_(sparsifier, dimension), codings_(codings) {}

    std::size_t dimension() const { return selector_.dimension(); }
    void begin(std::uint64_t number) { selector_.begin(number); }
    std::size_t coded_dimension() { return selector_.coded_dimension(); }
    const stream_codings& codings() const { return codings_; }

    template <Executor Exec = serial>
    stream_view<T, Index> encode(std::span<const T> input, const Exec& executor = {}) {
        RILL_EXPECTS(input.size() == dimension(),
                     "encode: the input must have the dimension that the codec is bound to");
        return selector_.select(input, executor);
    }
    void decode(std::span<const T> folded, std::span<T> output)
        requires(!is_coordinatewise)
    {
        selector_.expand(folded, output);
    }
    void erase_sent(std::span<T> values) const { selector_.erase_sent(values); }
    void commit() {}
    void rollback() {}

  private:
    selector selector_;
    stream_codings codings_;
};

/// What is sent, and how: a sparsifier, the coding of its values and indices at the source, and the coding of values in
/// the copy phase, applied once by the owner of a folded part. Indices are coded alike in all phases; partial sums
/// travel with their values as they are.
template <class Sparsifier, class Values = raw, class Indices = raw_indices, class CopyValues = raw>
struct coded {
    Sparsifier sparsifier{};
    Values values{};
    Indices indices{};
    CopyValues copy_values{};

    static constexpr const char* name = "coded";

    template <Element T = float, IndexType Index = std::uint32_t>
    codec<Sparsifier, Values, Indices, CopyValues, T, Index> bind(std::size_t dimension) const {
        static_assert(std::floating_point<T> || (Values::is_lossless && CopyValues::is_lossless),
                      "rill::compress::coded: lossy values need floating-point elements; use compress::raw, or float "
                      "or double");
        return {sparsifier, dimension, codings()};
    }

    constexpr stream_codings codings() const {
        return {.contribution = with_indices(values.coding()),
                .partial = with_indices(raw::coding()),
                .copy = with_indices(copy_values.coding())};
    }
    friend constexpr bool operator==(const coded&, const coded&) = default;

  private:
    static constexpr rill::coding with_indices(rill::coding codes) {
        codes.indices = Indices::coding;
        return codes;
    }
};

template <class S>
coded(S) -> coded<S>;
template <class S, class V>
coded(S, V) -> coded<S, V>;
template <class S, class V, class I>
coded(S, V, I) -> coded<S, V, I>;
template <class S, class V, class I, class C>
coded(S, V, I, C) -> coded<S, V, I, C>;

}  // namespace rill::inline RILL_ABI::compress

// ===== rill/compress/selection.hpp

namespace rill::inline RILL_ABI::compress {

/// The entries that a selector chose of its input. What selectors that choose by looking at the input have in common.
template <Element T, IndexType Index>
class selection {
  public:
    static constexpr bool is_coordinatewise = true;

    explicit selection(std::size_t dimension) : chosen_(dimension), dimension_(dimension) {}

    std::size_t dimension() const { return dimension_; }
    std::size_t coded_dimension() const { return dimension_; }
    void erase_sent(std::span<T> values) const {
        for (Index i : chosen_.indices()) values[i] = T{};
    }
    void begin(std::uint64_t) {}

  protected:
    std::span<Index> room(std::size_t most) { return chosen_.make_sparse({0, dimension_}, most).indices; }

    template <Executor Exec>
    stream_view<T, Index> take(std::size_t count, std::span<const T> input, const Exec& executor) {
        chosen_.shrink(count);
        const std::span<T> values = chosen_.values();
        const std::span<const Index> indices = chosen_.indices();
        kernel::gather(input, indices, values, executor);
        return chosen_.view();
    }

  private:
    stream<T, Index> chosen_;
    std::size_t dimension_;
};

}  // namespace rill::inline RILL_ABI::compress

// ===== rill/compress/bucket_top_k.hpp

namespace rill::inline RILL_ABI::compress {

/// The `count` entries of largest magnitude of each `bucket` consecutive ones, ties by the lower coordinate (SparCML,
/// section 8: 16 of 512). Every region of the model gets its share. A NaN is an error that names the coordinate.
struct bucket_top_k {
    std::size_t count = 0;
    std::size_t bucket = 512;  ///< entries

    static constexpr const char* name = "bucket_top_k";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;

    template <Element T, IndexType Index>
    class selector : public selection<T, Index> {
      public:
        selector(const bucket_top_k& policy, std::size_t dimension)
            : selection<T, Index>(dimension), count_(policy.count), bucket_(policy.bucket) {
            RILL_EXPECTS(policy.bucket > 0, "bucket_top_k needs buckets of at least one entry");
            RILL_EXPECTS(policy.count > 0, "bucket_top_k needs to choose at least one entry of a bucket");
        }
        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            const std::size_t most = kernel::bucket_top_k_count(input.size(), bucket_, count_);
            return this->take(kernel::bucket_top_k(input, bucket_, count_, this->room(most), scratch_, executor), input,
                              executor);
        }

      private:
        std::size_t count_;
        std::size_t bucket_;
        kernel::select_scratch scratch_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return coded<bucket_top_k>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(const bucket_top_k&, const bucket_top_k&) = default;
};

}  // namespace rill::inline RILL_ABI::compress

// ===== rill/kernel/add_scaled.hpp

// What a contribution adds to what is left of earlier ones.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// `Count` sums of a product each, both rounded.
template <std::size_t Count, Element T>
void scaled_sums(const T* base, const T* x, T scale, T (&sums)[Count]) {
    for (std::size_t j = 0; j < Count; ++j) sums[j] = static_cast<T>(scale * x[j]);
    round_here(sums);
    for (std::size_t j = 0; j < Count; ++j) sums[j] = static_cast<T>(base[j] + sums[j]);
}

/// Stores them, and returns the largest magnitude among them.
template <std::size_t Count, Element T>
magnitude_key<T> add_scaled_block(const T* base, const T* x, T scale, T* out) {
    T sums[Count];
    scaled_sums<Count>(base, x, scale, sums);
    for (std::size_t j = 0; j < Count; ++j) out[j] = sums[j];
    return largest_of<Count>(sums);
}

}  // namespace detail

/// out[i] = base[i] + scale · x[i], product and sum rounded; returns the largest magnitude of `out`, zero where it is
/// empty.
///
/// All are as long as `out`, which may be `base` or `x` and may not overlap them otherwise. Cost: one pass over the
/// three.
template <Element T, Executor Exec = serial>
magnitude_key<T> add_scaled(std::span<const T> base, std::span<const T> x, T scale, std::span<T> out,
                            const Exec& executor = {}) {
    using detail::block;
    RILL_EXPECTS(base.size() == out.size() && x.size() == out.size(), "add_scaled: the vectors differ in length");
    return detail::largest_of_tasks<magnitude_key<T>>(
        executor, tasks_for(executor, out.size(), block), [&](segment part) {
            magnitude_key<T> most = 0;
            const auto add = [&]<std::size_t Count>(std::size_t i) {
                most = std::max(most, detail::add_scaled_block<Count>(&base[i], &x[i], scale, &out[i]));
            };
            std::size_t i = part.begin;
            for (; i + block <= part.end; i += block) add.template operator()<block>(i);
            for (; i < part.end; ++i) add.template operator()<1>(i);
            return most;
        });
}

/// The first coordinate at which base[i] + scale · x[i], as above, is infinite or NaN. Cost: one pass over both, one
/// coordinate at a time.
template <std::floating_point T>
std::optional<std::size_t> find_non_finite_sum(std::span<const T> base, std::span<const T> x, T scale) {
    RILL_EXPECTS(base.size() == x.size(), "find_non_finite_sum: the vectors differ in length");
    for (std::size_t i = 0; i < x.size(); ++i) {
        T sum[1];
        detail::scaled_sums<1>(&base[i], &x[i], scale, sum);
        if (magnitude(sum[0]) >= largest_magnitude<T>) return i;
    }
    return std::nullopt;
}

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/compress/error_feedback.hpp

namespace rill::inline RILL_ABI::compress {

/// A codec that adds to every contribution what earlier ones left out.
template <class Codec, Element T>
class error_feedback_codec {
  public:
    using index_type = typename Codec::index_type;

    static constexpr bool is_lossless = Codec::is_lossless;
    static constexpr bool is_unbiased = Codec::is_unbiased;
    static constexpr bool is_contractive = Codec::is_contractive;
    static constexpr bool has_lossless_copy = Codec::has_lossless_copy;
    static constexpr bool is_coordinatewise = Codec::is_coordinatewise;

    explicit error_feedback_codec(Codec inner) : inner_(std::move(inner)), residual_(inner_.dimension(), T{}) {}

    std::size_t dimension() const { return inner_.dimension(); }
    void begin(std::uint64_t number) { inner_.begin(number); }
    std::size_t coded_dimension() { return inner_.coded_dimension(); }
    decltype(auto) codings() const { return inner_.codings(); }

    /// What has been left out so far, N elements; between `encode` and `commit`, what is being sent as well.
    std::span<const T> residual() const { return residual_; }

    /// From here on, inputs count `factor` times, a finite number: what a loop along scaled steps would else spend a
    /// pass on.
    void scale_inputs(T factor) {
        RILL_EXPECTS(is_finite(factor), "error_feedback: inputs count a finite number of times");
        scale_ = factor;
    }

    template <Executor Exec = serial>
    auto encode(std::span<const T> input, const Exec& executor = {}) {
        RILL_EXPECTS(input.size() == dimension(),
                     "encode: the input must have the dimension that the codec is bound to");
        require_finite_sums(input, executor);
        most_ = kernel::add_scaled<T>(residual_, input, scale_, residual_, executor);
        pending_ = false;  // where the inner codec throws, nothing is on its way
        const auto view = encode_with(inner_, std::span<const T>(residual_), executor);
        pending_ = true;
        return view;
    }

    void decode(std::span<const T> folded, std::span<T> output)
        requires(!is_coordinatewise)
    {
        inner_.decode(folded, output);
    }

    /// The contribution is in the result: the residual is what was not sent, before any rounding of values.
    void commit() {
        if (pending_) inner_.erase_sent(residual_);
        pending_ = false;
        inner_.commit();
    }

    /// The contribution is in no result: all of it stays in the residual.
    void rollback() {
        pending_ = false;
        inner_.rollback();
    }

    /// Stores `residual()` as a section of `to`, a `train::checkpoint_writer` or alike.
    template <class Writer>
    void save(Writer& to, const std::string& name) const {
        to.add(name + ".residual", std::span<const T>(residual_));
    }
    template <class Reader>
    void restore(const Reader& from, const std::string& name) {
        from.read(name + ".residual", std::span<T>(residual_));
        most_ = kernel::largest<T>(residual_);
        pending_ = false;
    }

  private:
    static bool is_finite(T value) {
        return !std::floating_point<T> || kernel::magnitude(value) < kernel::largest_magnitude<T>;
    }

    /// Looks before the residual changes, and no closer than it must: none of the sums can be larger than the largest
    /// magnitudes together.
    template <Executor Exec>
    void require_finite_sums([[maybe_unused]] std::span<const T> input, [[maybe_unused]] const Exec& executor) const {
        if constexpr (std::floating_point<T>) {
            const T most_of_input = std::bit_cast<T>(kernel::largest(input, executor));
            const T product = scale_ * most_of_input;
            if (is_finite(std::bit_cast<T>(kernel::magnitude(product)) + std::bit_cast<T>(most_))) return;
            if (const auto bad = kernel::find_non_finite_sum<T>(residual_, input, scale_))
                throw invalid_value("the gradient is not finite at coordinate " + std::to_string(*bad));
        }
    }

    Codec inner_;
    aligned_vector<T> residual_;
    kernel::magnitude_key<T> most_ = 0;  ///< no magnitude in the residual is larger
    T scale_{1};
    bool pending_ = false;
};

/// Error feedback (SparCML, Algorithm 1): each worker adds to its next contribution what the compressor left out, so
/// that no gradient mass is lost. Transactional: what is sent leaves the residual only when the contribution is in the
/// result; a failed, late or skipped contribution stays in it, and must not be given again. Sent plus residual equals
/// input plus residual before, bit for bit; what quantisation rounds off is not fed back. Memory: N elements.
template <class Policy>
struct error_feedback {
    Policy compressor{};

    static constexpr const char* name = "error_feedback";

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        using inner = decltype(compressor.template bind<T, Index>(dimension));
        static_assert(inner::is_contractive,
                      "rill::compress::error_feedback: the compressor is not contractive, so the residual would grow "
                      "without bound; use top_k, bucket_top_k, threshold or random_mask");
        return error_feedback_codec<inner, T>(compressor.template bind<T, Index>(dimension));
    }
    friend constexpr bool operator==(const error_feedback&, const error_feedback&) = default;
};

template <class Policy>
error_feedback(Policy) -> error_feedback<Policy>;

}  // namespace rill::inline RILL_ABI::compress

// ===== rill/compress/keep_all.hpp

namespace rill::inline RILL_ABI::compress {

/// Leaves nothing out: for dense contributions with lossy values (QSGD), or with a coding of the copy phase only.
struct keep_all {
    static constexpr const char* name = "keep_all";
    static constexpr bool is_lossless = true;
    static constexpr bool is_unbiased = true;
    static constexpr bool is_contractive = true;

    template <Element T, IndexType Index>
    class selector {
      public:
        static constexpr bool is_coordinatewise = true;

        selector(const keep_all&, std::size_t dimension) : dimension_(dimension) {}

        std::size_t dimension() const { return dimension_; }
        std::size_t coded_dimension() const { return dimension_; }
        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec&) {
            return {{0, input.size()}, input};
        }
        void erase_sent(std::span<T> values) const { std::fill(values.begin(), values.end(), T{}); }
        void begin(std::uint64_t) {}

      private:
        std::size_t dimension_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return coded<keep_all>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(keep_all, keep_all) = default;
};

}  // namespace rill::inline RILL_ABI::compress

// ===== rill/compress/random_mask.hpp

namespace rill::inline RILL_ABI::compress {

/// Each entry with probability `density`, the same on all ranks by a shared seed, a new choice for every operation of a
/// group (`group::resume_at` resumes them): only values travel, as a dense stream of the chosen entries (SAPS-PSGD,
/// section 3.2). Entries that are not chosen come out as zero.
struct random_mask {
    double density = 0.01;
    std::uint64_t seed = 0;

    static constexpr const char* name = "random_mask";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;  // what is sent is not scaled up
    static constexpr bool is_contractive = true;

    template <Element T, IndexType Index>
    class selector {
      public:
        static constexpr bool is_coordinatewise = false;

        selector(const random_mask& policy, std::size_t dimension)
            : skips_(policy.density), seed_(policy.seed), dimension_(dimension) {
            RILL_EXPECTS(policy.density > 0 && policy.density <= 1, "random_mask needs a density in (0, 1]");
            choose();
        }

        std::size_t dimension() const { return dimension_; }
        std::size_t coded_dimension() const { return mask_.size(); }
        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            values_.resize(mask_.size());
            kernel::gather(input, std::span<const Index>(mask_), std::span<T>(values_), executor);
            return {{0, values_.size()}, std::span<const T>(values_)};
        }
        void expand(std::span<const T> folded, std::span<T> output) const {
            std::fill(output.begin(), output.end(), T{});
            for (std::size_t i = 0; i < mask_.size(); ++i) output[mask_[i]] = folded[i];
        }
        void erase_sent(std::span<T> values) const {
            for (Index i : mask_) values[i] = T{};
        }
        void begin(std::uint64_t number) {
            if (number == number_) return;
            number_ = number;
            choose();
        }

      private:
        void choose() {
            mask_.clear();
            kernel::random_mask(random_key{seed_}.derive(number_), skips_, {0, dimension_}, mask_);
        }

        kernel::geometric_skips skips_;
        std::uint64_t seed_;
        std::size_t dimension_;
        std::uint64_t number_ = 0;
        aligned_vector<Index> mask_;
        aligned_vector<T> values_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return coded<random_mask>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(const random_mask&, const random_mask&) = default;
};

}  // namespace rill::inline RILL_ABI::compress

// ===== rill/compress/threshold.hpp

namespace rill::inline RILL_ABI::compress {

/// The entries whose magnitude is at least `limit`: as many as there are. One pass. A NaN is an error that names the
/// coordinate.
struct threshold {
    double limit = 0;

    static constexpr const char* name = "threshold";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;  // what stays behind is bounded by the limit

    template <Element T, IndexType Index>
    class selector : public selection<T, Index> {
      public:
        selector(const threshold& policy, std::size_t dimension)
            : selection<T, Index>(dimension), limit_(static_cast<T>(policy.limit)) {
            RILL_EXPECTS(rill::detail::is_finite(policy.limit) && policy.limit >= 0,
                         "threshold needs a finite limit, 0 or above");
        }
        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            const std::size_t count = kernel::threshold(input, limit_, found_);
            std::copy_n(found_.begin(), count, this->room(count).begin());
            return this->take(count, input, executor);
        }

      private:
        T limit_;
        aligned_vector<Index> found_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return coded<threshold>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(const threshold&, const threshold&) = default;
};

}  // namespace rill::inline RILL_ABI::compress

// ===== rill/compress/top_k.hpp

namespace rill::inline RILL_ABI::compress {

/// The k entries of largest magnitude, ties by the lower coordinate: k = `count`, or ⌈density · N⌉ where that is 0.
/// Exact and deterministic; one to three passes over the input. A NaN is an error that names the coordinate.
struct top_k {
    double density = 0;     ///< in (0, 1]
    std::size_t count = 0;  ///< entries

    static constexpr const char* name = "top_k";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;
    static constexpr bool is_contractive = true;

    std::size_t entries(std::size_t dimension) const {
        if (count != 0) return count;
        RILL_EXPECTS(density > 0 && density <= 1, "top_k needs a count, or a density in (0, 1]");
        return static_cast<std::size_t>(rill::detail::round_up(density * static_cast<double>(dimension)));
    }

    template <Element T, IndexType Index>
    class selector : public selection<T, Index> {
      public:
        selector(const top_k& policy, std::size_t dimension)
            : selection<T, Index>(dimension), count_(policy.entries(dimension)) {}
        template <Executor Exec>
        stream_view<T, Index> select(std::span<const T> input, const Exec& executor) {
            const std::size_t most = count_ < input.size() ? count_ : input.size();
            return this->take(kernel::top_k(input, count_, this->room(most), scratch_, executor), input, executor);
        }

      private:
        std::size_t count_;
        kernel::select_scratch scratch_;
    };

    template <Element T = float, IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return coded<top_k>{*this}.template bind<T, Index>(dimension);
    }
    friend constexpr bool operator==(const top_k&, const top_k&) = default;
};

}  // namespace rill::inline RILL_ABI::compress

// ===== rill/aggregate/max.hpp

namespace rill::inline RILL_ABI::aggregate {

/// The largest contribution. Of equal ones (+0 and −0) the lower rank's; a NaN never replaces what is there.
struct max {
    static constexpr const char* name = "max";
    static constexpr bool is_commutative = true;
    static constexpr bool finish_is_trivial = true;

    template <class T>
    static constexpr T identity() {
        if constexpr (std::numeric_limits<T>::has_infinity)
            return -std::numeric_limits<T>::infinity();
        else
            return std::numeric_limits<T>::lowest();
    }
    template <class T>
    static constexpr T fold(T a, T b) noexcept {
        return a < b ? b : a;
    }
    template <class T>
    static constexpr void finish(std::span<T>, double) noexcept {}

    friend constexpr bool operator==(max, max) = default;
};
static_assert(Aggregator<max, float>);

}  // namespace rill::inline RILL_ABI::aggregate

// ===== rill/aggregate/sum.hpp

namespace rill::inline RILL_ABI::aggregate {

/// The sum of the contributions. Of integers, every partial sum must stay within the type.
struct sum {
    static constexpr const char* name = "sum";
    static constexpr bool is_commutative = true;
    static constexpr bool is_addition = true;
    static constexpr bool finish_is_trivial = true;

    template <class T>
    static constexpr T identity() {
        return T{};
    }
    template <class T>
    static constexpr T fold(T a, T b) noexcept {
        return static_cast<T>(a + b);
    }
    template <class T>
    static constexpr void finish(std::span<T>, double) noexcept {}

    friend constexpr bool operator==(sum, sum) = default;
};
static_assert(Aggregator<sum, float>);

}  // namespace rill::inline RILL_ABI::aggregate

// ===== rill/aggregate/mean.hpp

namespace rill::inline RILL_ABI::aggregate {

/// The sum of the contributions over the sum of their weights; zero where nobody contributed. Floating-point elements
/// only: an integer mean would lose its remainder silently.
struct mean {
    static constexpr const char* name = "mean";
    static constexpr bool is_commutative = true;
    static constexpr bool is_addition = true;
    static constexpr bool finish_is_trivial = false;

    template <class T>
    static constexpr T identity() {
        return T{};
    }
    template <class T>
    static constexpr T fold(T a, T b) noexcept {
        return sum::fold(a, b);
    }
    template <std::floating_point T>
    static constexpr void finish(std::span<T> values, double weight) noexcept {
        if (weight == 0) return;
        const T divisor = static_cast<T>(weight);
        for (T& value : values) value /= divisor;
    }

    friend constexpr bool operator==(mean, mean) = default;
};
static_assert(Aggregator<mean, float>);

}  // namespace rill::inline RILL_ABI::aggregate

// ===== rill/aggregate/min.hpp

namespace rill::inline RILL_ABI::aggregate {

/// The smallest contribution; ties and NaN as in `max`.
struct min {
    static constexpr const char* name = "min";
    static constexpr bool is_commutative = true;
    static constexpr bool finish_is_trivial = true;

    template <class T>
    static constexpr T identity() {
        if constexpr (std::numeric_limits<T>::has_infinity)
            return std::numeric_limits<T>::infinity();
        else
            return std::numeric_limits<T>::max();
    }
    template <class T>
    static constexpr T fold(T a, T b) noexcept {
        return b < a ? b : a;
    }
    template <class T>
    static constexpr void finish(std::span<T>, double) noexcept {}

    friend constexpr bool operator==(min, min) = default;
};
static_assert(Aggregator<min, float>);

}  // namespace rill::inline RILL_ABI::aggregate

// ===== rill/straggler/all_ready.hpp

namespace rill::inline RILL_ABI::straggler {

/// A round starts when all ranks are ready.
struct all_ready {
    static constexpr const char* name = "all_ready";

    static bool starts(std::span<const rank_t> ready, int size, random_key) {
        return ready.size() == static_cast<std::size_t>(size);
    }
    friend constexpr bool operator==(all_ready, all_ready) = default;
};

static_assert(Trigger<all_ready>);

}  // namespace rill::inline RILL_ABI::straggler

// ===== rill/straggler/bounded.hpp

namespace rill::inline RILL_ABI::straggler {

/// What comes late goes into the round under way, up to `rounds` rounds late; who is faster than that waits, so that
/// nothing is ever dropped. 0: everybody waits for everybody. Stale synchronous parallel (Ho et al. 2013) has this.
///
/// That is between the root and its children. Deeper in a tree ranks with children may themselves have missed rounds:
/// what a rank h edges from the root sends reaches its parent at most h (rounds - 1) + 1 rounds late.
struct bounded {
    std::uint32_t rounds = 1;

    static constexpr const char* name = "bounded";

    constexpr bool accepts(std::uint32_t age) const { return age <= rounds; }
    constexpr bool may_lead(std::uint32_t lag) const { return lag < rounds; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("rounds", rounds);
    }
    friend constexpr bool operator==(bounded, bounded) = default;
};

static_assert(Staleness<bounded>);

}  // namespace rill::inline RILL_ABI::straggler

// ===== rill/straggler/fastest.hpp

namespace rill::inline RILL_ABI::straggler {

/// A gather takes the first `count` contributions, or all where there are fewer. What the gathering rank contributes
/// itself comes in addition.
struct fastest {
    int count = 1;

    static constexpr const char* name = "fastest";

    bool is_complete(const gathering& g) const { return g.missing() == 0 || static_cast<int>(g.in.size()) >= count; }
    static constexpr duration patience(int) { return endless_patience; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("count", count);
    }
    friend constexpr bool operator==(fastest, fastest) = default;
};

static_assert(Completion<fastest>);

}  // namespace rill::inline RILL_ABI::straggler

// ===== rill/straggler/fresh.hpp

namespace rill::inline RILL_ABI::straggler {

/// Only contributions to the present round count; what comes later is dropped, and nobody waits for it.
struct fresh {
    static constexpr const char* name = "fresh";

    static constexpr bool accepts(std::uint32_t age) { return age == 0; }
    static constexpr bool may_lead(std::uint32_t) { return true; }
    friend constexpr bool operator==(fresh, fresh) = default;
};

static_assert(Staleness<fresh>);

}  // namespace rill::inline RILL_ABI::straggler

// ===== rill/straggler/solo.hpp

namespace rill::inline RILL_ABI::straggler {

/// The first rank that is ready starts the round.
struct solo {
    static constexpr const char* name = "solo";

    static bool starts(std::span<const rank_t> ready, int, random_key) { return !ready.empty(); }
    friend constexpr bool operator==(solo, solo) = default;
};

static_assert(Trigger<solo>);

}  // namespace rill::inline RILL_ABI::straggler

// ===== rill/straggler/tolerate.hpp

namespace rill::inline RILL_ABI::straggler {

/// A gather does without `stragglers` contributions, whichever they are.
struct tolerate {
    int stragglers = 0;

    static constexpr const char* name = "tolerate";

    bool is_complete(const gathering& g) const { return g.missing() <= (stragglers > 0 ? stragglers : 0); }
    static constexpr duration patience(int) { return endless_patience; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("stragglers", stragglers);
    }
    friend constexpr bool operator==(tolerate, tolerate) = default;
};

static_assert(Completion<tolerate>);

}  // namespace rill::inline RILL_ABI::straggler

// ===== rill/straggler/unbounded.hpp

namespace rill::inline RILL_ABI::straggler {

/// What comes late goes into the round under way, however late; nobody waits.
struct unbounded {
    static constexpr const char* name = "unbounded";

    static constexpr bool accepts(std::uint32_t) { return true; }
    static constexpr bool may_lead(std::uint32_t) { return true; }
    friend constexpr bool operator==(unbounded, unbounded) = default;
};

static_assert(Staleness<unbounded>);

}  // namespace rill::inline RILL_ABI::straggler

// ===== rill/straggler/until.hpp

namespace rill::inline RILL_ABI::straggler {

/// A gather takes what has come by some time after its round began, and no fewer than `at_least`, for which it goes on
/// to wait. In a tree each level has that time for itself: a rank waits `after` for every edge between it and its
/// deepest leaf.
struct until {
    duration after{};
    int at_least = 0;

    static constexpr const char* name = "until";

    bool is_complete(const gathering& g) const {
        return g.missing() == 0 || (g.time_is_up && static_cast<int>(g.in.size()) >= at_least);
    }
    constexpr duration patience(int height) const { return after * height; }

    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("after", after.ns);
        visit("at_least", at_least);
    }
    friend constexpr bool operator==(const until&, const until&) = default;
};

static_assert(Completion<until>);

}  // namespace rill::inline RILL_ABI::straggler

// ===== rill/straggler/wait_all.hpp

namespace rill::inline RILL_ABI::straggler {

/// A gather waits for every contribution.
struct wait_all {
    static constexpr const char* name = "wait_all";

    bool is_complete(const gathering& g) const { return g.missing() == 0; }
    static constexpr duration patience(int) { return endless_patience; }
    friend constexpr bool operator==(wait_all, wait_all) = default;
};

static_assert(Completion<wait_all>);

}  // namespace rill::inline RILL_ABI::straggler

// ===== rill/collective/detail/frame_place.hpp

namespace rill::inline RILL_ABI::detail {

/// Which part, or whose contribution, a frame is of. It is added to `wire::header::call` where the range does not say
/// it: so a message is noticed that takes the place of another, because that was lost or one came twice.
class frame_place {
  public:
    /// Told by the range, unless that is empty.
    static constexpr frame_place of_part(int part) { return {part, when::empty}; }
    /// Told by nothing else: all frames cover the same range.
    static constexpr frame_place of_rank(rank_t rank) { return {rank, when::always}; }
    /// Of an empty frame behind others, which has no place of its own.
    static constexpr frame_place unknown() { return {0, when::never}; }

    /// Of the places of one call; further ones begin again.
    static constexpr std::uint32_t many = 1U << 16U;

    /// `call` of a frame over that range.
    constexpr std::uint32_t in(std::uint32_t call, segment range) const {
        return call + (counts_for(range) ? number_ % many : 0);
    }
    /// Whether a frame of `call` that has been received is of this place.
    constexpr bool is_place_of(const wire::header& head, std::uint32_t call) const {
        return in(call, head.range) == head.call || (when_ == when::never && head.range.empty());
    }
    constexpr std::uint32_t number() const { return number_; }

  private:
    enum class when : unsigned char { empty, always, never };

    constexpr frame_place(int number, when counts) : number_(static_cast<std::uint32_t>(number)), when_(counts) {}
    constexpr bool counts_for(segment range) const {
        return when_ == when::always || (when_ == when::empty && range.empty());
    }

    std::uint32_t number_;
    when when_;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/long_wait.hpp

namespace rill::inline RILL_ABI::detail {

/// What a rank says of a wait that has taken half of its patience, so that who runs out of it first can find where the
/// standstill begins. It travels as a call announced in a context of its own, under the operation's number.
struct long_wait {
    rank_t peer = no_rank;  ///< whom it waits for: nobody any more
    bool reading = false;   ///< that the peer reads a message of this rank's; else a message of the peer's
    int of_round = 0;       ///< of the message
    int in_round = 0;       ///< where the rank stands: it has sent what it sends up to this round

    constexpr call_signature announced_in(std::uint64_t operation_number) const {
        return {.number = operation_number,
                .dimension = static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)),
                .options = static_cast<std::uint64_t>(static_cast<std::uint32_t>(in_round)) << 32U |
                           static_cast<std::uint64_t>(of_round) << 1U | static_cast<std::uint64_t>(reading)};
    }
    static constexpr long_wait from(const call_signature& announced) {
        const auto low = static_cast<std::uint32_t>(announced.options);
        return {.peer = static_cast<rank_t>(static_cast<std::uint32_t>(announced.dimension)),
                .reading = (low & 1U) != 0,
                .of_round = static_cast<int>(low >> 1U),
                .in_round = static_cast<int>(announced.options >> 32U)};
    }

    /// Whether this wait of the peer's is why `other` lasts. A message is sent when its round is entered; it counts as
    /// read only when the peer needs it no more, which may be long after it has come.
    constexpr bool explains(const long_wait& other) const {
        return peer != no_rank && (other.reading || in_round < other.of_round);
    }

    friend constexpr bool operator==(const long_wait&, const long_wait&) = default;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/inquest.hpp

namespace rill::inline RILL_ABI::detail {

/// Finds who is to blame for a call that does not go on, and throws. Asks every rank what it has entered.
template <Transport Net>
class inquest {
  public:
    /// `waits`: the context of long waits; `patience`: of the call; `signature`: as this rank has made it.
    inquest(Net& net, std::uint64_t context, std::uint64_t waits, const call_signature& signature, duration patience)
        : net_(&net), context_(context), waits_(waits), signature_(&signature), patience_(patience) {}

    /// `source` sent a frame of another call.
    [[noreturn]] void disagree(rank_t source) const {
        blame_odd_one(entrants(false));
        fail(failure::mismatch, source, no_rank, "rank " + std::to_string(source) + " sent a frame of another call");
    }

    /// Time is up, and this rank still waits.
    [[noreturn]] void nothing_came(const long_wait& own) const {
        blame_odd_one(entrants(true));
        const auto [waiter, peer] = origin_of(own);
        fail(failure::timeout, peer, waiter,
             "rank " + std::to_string(waiter) + " waited " + std::to_string(patience_.seconds()) + " s for rank " +
                 std::to_string(peer) + ", which has entered the operation: slow, or the link between them is cut");
    }

    [[noreturn]] void fail(failure kind, rank_t culprit, rank_t other, const std::string& what) const {
        throw_error({.context = context_,
                     .operation = signature_->number,
                     .kind = kind,
                     .culprit = culprit,
                     .other = other,
                     .reason = describe() + ": " + what});
    }

    /// For messages: "all_reduce (operation 7)".
    std::string describe() const {
        return std::string(name(signature_->kind)) + " (operation " + std::to_string(signature_->number) + ")";
    }

  private:
    struct entrant {
        rank_t rank;
        call_signature call;
    };

    /// What the ranks have entered: this call as each of them made it, or a later one where it was left out. Where it
    /// matters, a rank that has not come is an error.
    std::vector<entrant> entrants(bool all_must_have_come) const {
        const time_point until = net_->now() + patience_ / 8;
        std::vector<entrant> come;
        for (rank_t r = 0; r < net_->size(); ++r) {
            const auto entered = net_->inquire(r, context_, signature_->number, until);
            if (entered)
                come.push_back({r, *entered});
            else if (all_must_have_come)
                fail(failure::timeout, r, no_rank,
                     "rank " + std::to_string(r) + " has not entered the operation within " +
                         std::to_string(patience_.seconds()) + " s");
        }
        return come;
    }

    struct standstill {
        rank_t waiter;
        rank_t peer;
    };

    /// Where the standstill begins: whoever is waited for may itself be waiting, for what was due earlier.
    standstill origin_of(long_wait last) const {
        const time_point until = net_->now() + patience_ / 8;
        rank_t waiter = net_->rank();
        for (int passed = 0; passed < net_->size(); ++passed) {
            const auto said = net_->inquire(last.peer, waits_, signature_->number, until);
            if (!said || said->number != signature_->number) break;
            const long_wait of_peer = long_wait::from(*said);
            if (!of_peer.explains(last)) break;
            waiter = std::exchange(last, of_peer).peer;
        }
        return {waiter, last.peer};
    }

    /// The odd one is the lowest rank outside the largest set of equal calls (of equally large sets: the one with the
    /// lowest rank).
    void blame_odd_one(const std::vector<entrant>& come) const {
        std::ptrdiff_t most = 0;
        call_signature usual{};
        for (const entrant& each : come) {
            const auto equal =
                std::count_if(come.begin(), come.end(), [&](const entrant& other) { return other.call == each.call; });
            if (equal <= most) continue;
            most = equal;
            usual = each.call;
        }
        for (const entrant& each : come)
            if (each.call != usual)
                fail(failure::mismatch, each.rank, no_rank,
                     "rank " + std::to_string(each.rank) + " " + difference(each.call, usual));
    }

    static std::string difference(const call_signature& odd, const call_signature& usual) {
        const auto differs = [](const char* what, const std::string& a, const std::string& b) {
            return std::string("calls with ") + what + " " + a + " where others have " + b;
        };
        if (odd.number != usual.number)
            return differs("operation number", std::to_string(odd.number), std::to_string(usual.number));
        if (odd.kind != usual.kind)
            return std::string("calls ") + name(odd.kind) + " where others call " + name(usual.kind);
        if (odd.kind == operation::handshake)
            return "calls with other options (version, topology, seed, timeout, buckets) than the others";
        if (odd.element != usual.element) return differs("element type", name(odd.element), name(usual.element));
        if (odd.index_bytes != usual.index_bytes)
            return differs("index width", std::to_string(odd.index_bytes), std::to_string(usual.index_bytes));
        if (odd.dimension != usual.dimension)
            return differs("dimension", std::to_string(odd.dimension), std::to_string(usual.dimension));
        return "calls with other options (topology, fold, coding, root) than the others";
    }

    Net* net_;
    std::uint64_t context_;
    std::uint64_t waits_;
    const call_signature* signature_;
    duration patience_;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/concept/shared_memory.hpp

namespace rill::inline RILL_ABI {

/// What a rank lets the others reach in one operation. How many elements lie there follows from the call.
struct exposure {
    call_signature call{};             ///< as this rank has made it
    std::array<std::byte, 16> note{};  ///< what the collective says to the others
    const std::byte* input = nullptr;  ///< they read it
    std::byte* output = nullptr;       ///< they write to it, unless the operation has none: then it may be anything
};

/// A transport whose ranks reach each other's memory: operations between them need no messages.
///
/// What the ranks of one context have in common is a *commons*; `share(context)` gives each rank a handle to it, and
/// copies of the handle are for the rank's other activities. Operations are told apart by their numbers. A rank
/// begins none before it has left its own of `places` numbers before it, by whichever handle: the caller sees to that.
///
/// Laws (testing/transport_laws.hpp runs them over every model):
/// - `has_room(peer, number, until)` waits until `peer` has left the earlier operations whose place and whose slot this
///   one takes: one at least `places` before it, and one that this handle has ended. False when `until` has passed.
///   Once all have, `expose(what)` publishes, once, what this rank exposes in operation `what.call.number`. It is an
///   `announce` of that call too, and never waits.
/// - `exposed(peer, call, until)` waits for what `peer` exposes in that operation. Null when `until` has passed, or
///   when the peer has announced another call of that number, which `inquire` then tells.
/// - `enter(number)`, once this rank has seen what all expose in an operation: from now on it may read and write that.
///   False when one of them has withdrawn. `leave(number)` tells that it will do so no more; `abandon(number)`, that it
///   has failed. Who has only read slots need not enter, and leaves by `pass(number)`.
/// - `has_left(peer, number, until)` waits for that; then what the peer wrote is visible. False when `until` has
///   passed.
/// - `withdraw(number)` returns when no other rank is inside that operation, or ever will be, whatever has ended.
/// - `claim(peer, number)` counts from 0, among all ranks, in each operation that `peer` has exposed: it hands out
///   work.
/// - `slot(number, bytes)`, once there is room: at most `slot_bytes` of the commons' own memory for a copy that this
///   rank exposes in an operation. It stays as it is until all have left that, whatever becomes of this rank. Each
///   handle has slots of its own, and allocates them on first use.
/// - `prepare(number)`, after an operation's slot has been exposed and before this rank waits: makes ready what the
///   next one takes, which is likely to have that number. Nobody else notices, and it never waits.
/// - `count(messages, bytes)` adds to what `counted` tells, as sent and as received.
/// - Waits watch the control channel like all others.
template <class N>
concept SharedMemoryTransport =
    Transport<N> && std::copyable<typename N::commons> &&
    requires(N& net, typename N::commons& shared, std::uint64_t context, const call_signature& call,
             const exposure& what, rank_t peer, std::uint64_t number, std::size_t bytes, deadline until) {
        { net.share(context) } -> std::same_as<typename N::commons>;
        { N::commons::places } -> std::convertible_to<std::uint64_t>;
        { N::commons::slot_bytes } -> std::convertible_to<std::size_t>;
        { shared.has_room(peer, number, until) } -> std::same_as<bool>;
        { shared.expose(what) };
        { shared.exposed(peer, call, until) } -> std::same_as<const exposure*>;
        { shared.enter(number) } -> std::same_as<bool>;
        { shared.leave(number) } noexcept;
        { shared.abandon(number) } noexcept;
        { shared.pass(number) } noexcept;
        { shared.has_left(peer, number, until) } -> std::same_as<bool>;
        { shared.withdraw(number) } noexcept;
        { shared.claim(peer, number) } -> std::same_as<std::uint64_t>;
        { shared.slot(number, bytes) } -> std::same_as<byte_span>;
        { shared.prepare(number) };
        { shared.count(number, number) };
    };

namespace detail {

/// Stands for a commons where there is none.
struct no_commons {};

template <class N, bool Wanted>
struct commons_of {
    using type = no_commons;
};
template <SharedMemoryTransport N>
struct commons_of<N, true> {
    using type = typename N::commons;
};

}  // namespace detail
}  // namespace rill::inline RILL_ABI

// ===== rill/collective/exchange.hpp

namespace rill::inline RILL_ABI {

/// A message with the transfer that announced it.
template <class Message>
struct arrival {
    transfer from;
    Message message;
};

/// One collective operation under way on one rank: it sends and receives on the operation's channel, remembers which
/// memory is still being read by others, and counts what passes.
template <Transport Net>
class exchange {
  public:
    using message = typename Net::message;
    using commons = typename detail::commons_of<Net, true>::type;

    /// `waits`: the context in which ranks say for whom they have been waiting for long.
    exchange(Net& net, std::uint64_t context, std::uint64_t waits) : net_(&net), on_{context, 0}, waits_(waits) {}
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    ~exchange() { settle(); }

    Net& net() const { return *net_; }
    const call_signature& signature() const { return signature_; }
    std::uint64_t context() const { return on_.context; }

    /// `is_exposed`: the call is announced by what the rank exposes, not here.
    void begin(const call_signature& signature, duration patience, bool is_exposed = false) {
        signature_ = signature;
        on_.tag = static_cast<std::uint32_t>(signature.number);
        start_ = net_->now();
        patience_ = patience;
        counted_ = {};
        if (!is_exposed) net_->announce(on_.context, signature);
    }

    /// Sends from where the pieces lie: they must not change until `await_readers` or `finish` says so.
    void send(rank_t peer, const byte_pieces& pieces) { send(round_, peer, pieces); }

    /// The same as a message of a round, the present one or a later one.
    void send(int round, rank_t peer, const byte_pieces& pieces) {
        ++counted_.messages_sent;
        counted_.bytes_sent += pieces.size_bytes();
        sent_.push_back({{}, peer, pieces, round});  // before the post: what a peer may read must be settled
        sent_.back().handle = net_->post(peer, on_, pieces);
    }

    /// Lets the next message of `peer` come that has not been let in yet, into `targets` where the transport can.
    void expect(rank_t peer, std::span<const byte_span> targets) {
        if constexpr (ExpectingTransport<Net>) {
            net_->expect(peer, on_, targets);
            ++expected_;
        }
    }

    message receive(rank_t peer) {
        std::optional<message> received;
        wait_for(peer, round_, [&](deadline until) {
            received = net_->receive(peer, on_, until);
            return received.has_value();
        });
        if (expected_ != 0) --expected_;
        ++counted_.messages_received;
        counted_.bytes_received += received->pieces().size_bytes();
        return std::move(*received);
    }

    /// Waits for what `peer` does in a round: `attempt(until)` says whether it has come to that. Of a wait that takes
    /// long the others learn, so that who is to blame can be found.
    template <class Attempt>
    void wait_for(rank_t peer, int round, Attempt&& attempt) {
        if (attempt(half_time())) return;
        wait_for_long({.peer = peer, .of_round = round, .in_round = round},
                      [&] { return attempt(start_ + patience_); });
    }

    /// Others reach into this rank's memory by `shared` until the operation is finished; who unwinds withdraws it.
    void lend(commons& shared) { lent_by_ = &shared; }
    /// Counts what has passed without messages, as much in either direction.
    void count(std::uint64_t messages, std::uint64_t bytes) { counted_ += {messages, bytes, messages, bytes}; }

    /// Begins a round. `looks`: whether this operation asks later what may be overwritten, so that it pays to find out
    /// now what has been read.
    void enter(int round, bool looks = true) {
        round_ = round;
        if (!looks || sent_.size() - oldest_ < many) return;
        // Looking in vain costs time in a simulated network: what the last round sent is seldom done.
        const auto looks_done = [&](sent& s) { return s.round + 1 < round_ && s.handle.done(); };
        while (oldest_ < sent_.size() && looks_done(sent_[oldest_])) ++oldest_;
    }

    /// Whether a message of the present round, or of a later one, is being sent from `memory`.
    bool sends_this_round(byte_view memory) const {
        for (std::size_t i = sent_.size(); i-- > oldest_ && sent_[i].round >= round_;)
            if (sent_[i].reads(memory)) return true;
        return false;
    }

    /// Whether a receiver may still read from `memory`.
    bool is_read(byte_view memory) {
        for (std::size_t i = oldest_; i < sent_.size(); ++i)
            if (sent_[i].reads(memory) && !sent_[i].handle.done()) return true;
        return false;
    }

    /// Waits until no receiver reads from `memory` any more, so that it may be overwritten.
    void await_readers(byte_view memory) {
        for (std::size_t i = oldest_; i < sent_.size(); ++i)
            if (sent_[i].reads(memory)) await(sent_[i]);
    }

    /// Holds a message until the end: this rank reads from it, or forwards what it holds from where it lies.
    void keep(message&& m) { kept_.push_back(std::move(m)); }

    /// The messages of the round under way, in ascending order of peers, each with the transfer that announced it.
    std::vector<arrival<message>>& arrivals() { return arrivals_; }

    /// Gives back what was kept and waits until everything sent has been received.
    ///
    /// A kept message can go back only when what this rank forwards of it has been read, while others wait for it:
    /// giving back the latest first cannot deadlock, because what came in one round is forwarded in later ones.
    void finish() {
        for (; !kept_.empty(); kept_.pop_back())
            for (byte_view piece : kept_.back().pieces()) await_readers(piece);
        for (std::size_t i = oldest_; i < sent_.size(); ++i) await(sent_[i]);
        forget();
    }

    /// The same for unwinding, after all ranks have been told: withdraws what nobody has begun to read.
    void settle() noexcept {
        arrivals_.clear();
        if constexpr (ExpectingTransport<Net>)
            if (std::exchange(expected_, 0) != 0) net_->forget(on_);
        for (; !kept_.empty(); kept_.pop_back())
            for (byte_view piece : kept_.back().pieces())
                for (auto& s : sent_)
                    if (s.reads(piece)) s.handle.settle();
        for (auto& s : sent_) s.handle.settle();
        if constexpr (SharedMemoryTransport<Net>)
            if (lent_by_ != nullptr) lent_by_->withdraw(signature_.number);
        forget();
    }

    const traffic& counted() const { return counted_; }
    duration elapsed() const { return net_->now() - start_; }

    /// A frame of another call arrived: finds the rank whose call differs from the others' and throws `mismatch`.
    [[noreturn]] void disagree(rank_t source) const { inquest().disagree(source); }

    [[noreturn]] void fail(failure kind, rank_t culprit, rank_t other, const std::string& what) const {
        inquest().fail(kind, culprit, other, what);
    }

    /// For messages: "all_reduce (operation 7)".
    std::string describe() const { return inquest().describe(); }

  private:
    static constexpr std::size_t many = 16;

    struct sent {
        typename Net::sending handle;
        rank_t peer;
        byte_pieces pieces;
        int round;

        bool reads(byte_view memory) const {
            for (byte_view piece : pieces)
                if (piece.data() < memory.data() + memory.size() && memory.data() < piece.data() + piece.size())
                    return true;
            return false;
        }
    };

    void await(sent& s) {
        if (s.handle.wait(half_time())) return;
        wait_for_long({.peer = s.peer, .reading = true, .of_round = s.round, .in_round = round_},
                      [&] { return s.handle.wait(start_ + patience_); });
    }

    time_point half_time() const { return start_ + patience_ / 2; }

    /// The rest of a wait, of which the others learn.
    template <class Rest>
    void wait_for_long(const detail::long_wait& what, Rest&& rest) {
        net_->announce(waits_, what.announced_in(signature_.number));
        if (!rest()) inquest().nothing_came(what);
        net_->announce(waits_, detail::long_wait{}.announced_in(signature_.number));
    }

    void forget() noexcept {
        sent_.clear();
        oldest_ = 0;
        round_ = 0;
        lent_by_ = nullptr;
    }

    detail::inquest<Net> inquest() const { return {*net_, on_.context, waits_, signature_, patience_}; }

    Net* net_;
    channel on_;
    std::uint64_t waits_;
    call_signature signature_{};
    time_point start_{};
    duration patience_{};
    traffic counted_{};
    std::vector<sent> sent_;
    std::size_t oldest_ = 0;  // all before it are done
    commons* lent_by_ = nullptr;
    std::vector<message> kept_;
    std::vector<arrival<message>> arrivals_;
    int round_ = 0;
    std::size_t expected_ = 0;  // messages that have been let in and not been received
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/executor.hpp

namespace rill::inline RILL_ABI {

namespace detail {

/// Calls `fold(arrivals)` once for each run of arrivals that bring the same parts: the operands of one k-way fold.
template <class Message, class Fold>
void fold_by_parts(std::span<arrival<Message>> arrivals, Fold&& fold) {
    for (std::size_t first = 0; first < arrivals.size();) {
        std::size_t last = first + 1;
        while (last < arrivals.size() && arrivals[last].from.parts == arrivals[first].from.parts) ++last;
        fold(arrivals.subspan(first, last - first));
        first = last;
    }
}

/// How many rounds ahead of its receives a rank may send.
template <Schedule Plan>
int lookahead(const Plan& plan) {
    if constexpr (requires { plan.lookahead(); }) return plan.lookahead();
    return 1;
}

/// Whether a state says that it leaves what it sends as it is until the end.
template <class State>
constexpr bool overwrites_nothing() {
    return requires { requires State::overwrites_nothing; };
}

template <class Net, Schedule Plan, class State>
void send_round(exchange<Net>& call, const Plan& plan, State& state, int round) {
    for (int i = 0; i < plan.sends(round); ++i) {
        const transfer to = plan.send(round, i);
        call.send(round, to.peer, state.outgoing(to.parts, plan.kind(round)));
    }
}

/// Lets in what a round brings, from its message `first` on, and returns the first that is not let in: where
/// `may_stop`, one whose place others still read. Let in now, it would come to other memory and be copied.
template <class Net, Schedule Plan, class State>
int expect_round(exchange<Net>& call, const Plan& plan, State& state, int round, int first, bool may_stop) {
    for (int i = first; i < plan.receives(round); ++i) {
        const transfer from = plan.receive(round, i);
        std::span<const byte_span> targets;
        if constexpr (requires { state.place_for(from.parts); })
            if (plan.kind(round) == action::copy) {
                if (state.has_free_place(from.parts))
                    targets = state.place_for(from.parts);
                else if (may_stop)
                    return i;
            }
        call.expect(from.peer, targets);
    }
    return plan.receives(round);
}

/// Goes on where `expect_round` has stopped. What others read there was sent in earlier rounds and is received in
/// those: none of them waits for the present one.
template <class Net, Schedule Plan, class State>
int expect_rest(exchange<Net>& call, const Plan& plan, State& state, int round, int first) {
    if constexpr (requires { state.await_place(part_range{}); }) state.await_place(plan.receive(round, first).parts);
    return expect_round(call, plan, state, round, first, true);
}

}  // namespace detail

/// Runs one rank's schedule: in each round posts what it sends, then receives, then folds or copies. Where the plan has
/// a `lookahead()`, sends are posted and arrivals expected that many rounds ahead. `State` holds the data:
/// `outgoing(parts, action)` gives the pieces of a message, whose memory stays valid until the exchange finishes;
/// `fold(arrivals)` takes arrivals that all bring the same parts, `copy(arrivals)` what a round brought, both in
/// ascending order of the peers. It may keep messages. A state that leaves what it sends as it is until the end says so
/// by a constant `overwrites_nothing`: then nobody looks on the way what has been read.
template <class Net, Schedule Plan, class State>
void execute(exchange<Net>& call, const Plan& plan, State& state) {
    auto& arrivals = call.arrivals();
    const int ahead = detail::lookahead(plan);
    for (int round = 0, begun = 0; round < plan.rounds(); ++round) {
        call.enter(round, !detail::overwrites_nothing<State>());
        int let_in = 0;
        for (; begun < plan.rounds() && begun < round + ahead; ++begun) {
            detail::send_round(call, plan, state, begun);
            if constexpr (ExpectingTransport<Net>)
                let_in = detail::expect_round(call, plan, state, begun, 0, ahead == 1);
        }
        for (int i = 0; i < plan.receives(round); ++i) {
            const transfer from = plan.receive(round, i);
            if constexpr (ExpectingTransport<Net>)
                if (ahead == 1 && i == let_in) let_in = detail::expect_rest(call, plan, state, round, i);
            arrivals.push_back({from, call.receive(from.peer)});
        }
        if (arrivals.empty()) continue;
        if (plan.kind(round) == action::fold)
            detail::fold_by_parts(std::span(arrivals), [&](auto same_parts) { state.fold(same_parts); });
        else
            state.copy(arrivals);
        arrivals.clear();
    }
}

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/frame_check.hpp

namespace rill::inline RILL_ABI {

/// Runs `read()`, which reads what `source` sent: what is wrong there is that rank's failure.
template <class Net, class Read>
auto read_from(const exchange<Net>& call, rank_t source, Read&& read) {
    try {
        return read();
    } catch (const protocol_error& e) {
        if (e.culprit() != no_rank) throw;
        call.fail(failure::protocol, source, call.net().rank(),
                  "rank " + std::to_string(source) + " sent bytes that are no valid frame: " + e.notice().reason);
    }
}

/// The next frame of a message from `source`, which must belong to the call under way; else every rank learns which
/// rank calls something else. `place`: what the frame must be of.
template <Element T, IndexType Index, class Net>
frame next_frame(exchange<Net>& call, rank_t source, frame_reader& reader,
                 detail::frame_place place = detail::frame_place::of_part(0)) {
    const frame f = read_from(call, source, [&] {
        const wire::header head = reader.peek();
        const std::uint32_t hash = call.signature().hash(), given = head.call - hash;
        if (head.context != call.context() || given >= detail::frame_place::many) call.disagree(source);
        if (!place.is_place_of(head, hash))
            call.fail(failure::protocol, source, call.net().rank(),
                      "rank " + std::to_string(source) + " sent part " + std::to_string(given) + " where part " +
                          std::to_string(place.number()) + " was due");
        return reader.next<T, Index>();
    });
    const auto ranks = static_cast<std::uint32_t>(call.net().size());
    if (f.head.contributors > ranks)
        call.fail(failure::protocol, source, call.net().rank(),
                  "rank " + std::to_string(source) + " speaks for " + std::to_string(f.head.contributors) +
                      " contributors among " + std::to_string(ranks) + " ranks");
    return f;
}

/// Ends the operation, with `source` as the culprit, unless a frame covers the range that is due. The notice has both
/// ends of the link, which may have lost or doubled a message.
template <class Net>
void expect_range(const exchange<Net>& call, rank_t source, segment given, segment due) {
    const auto text = [](segment s) { return "[" + std::to_string(s.begin) + ", " + std::to_string(s.end) + ")"; };
    if (given != due)
        call.fail(failure::protocol, source, call.net().rank(),
                  "rank " + std::to_string(source) + " sent " + text(given) + " where " + text(due) + " was due");
}

/// The same unless a message ends where the frames that are due end.
template <class Net>
void expect_end(const exchange<Net>& call, rank_t source, const frame_reader& reader) {
    if (!reader.done())
        call.fail(failure::protocol, source, call.net().rank(),
                  "rank " + std::to_string(source) + " sent more frames than were due");
}

/// The only frame of a message, which must cover `due`.
template <Element T, IndexType Index, class Net>
frame only_frame(exchange<Net>& call, rank_t source, const byte_pieces& message, segment due,
                 detail::frame_place place = detail::frame_place::of_part(0)) {
    frame_reader reader(message);
    const frame f = next_frame<T, Index>(call, source, reader, place);
    expect_range(call, source, f.head.range, due);
    expect_end(call, source, reader);
    return f;
}

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/tally.hpp

namespace rill::inline RILL_ABI {

/// What a rank says about what it contributes. The collective does not multiply by the weight: who wants Σ w·g / Σ w
/// passes w·g to a `mean`. A rank of weight 0 contributes nothing: its input is not read.
struct contribution {
    double weight = 1;
    std::uint32_t age = 0;  ///< in steps

    friend constexpr bool operator==(const contribution&, const contribution&) = default;
};

/// What stands behind a value: how many contributions, their weights, the age of the oldest. Folded with the payload.
struct tally {
    double weight = 1;
    std::uint32_t contributors = 1;
    std::uint32_t age = 0;

    static tally of(const contribution& own) { return own.weight > 0 ? tally{own.weight, 1, own.age} : tally{0, 0, 0}; }
    static tally of(const wire::header& head) { return {head.weight, head.contributors, head.age}; }

    void describe(wire::header& head) const {
        head.weight = weight;
        head.contributors = contributors;
        head.age = age;
    }
    void describe(receipt& result) const {
        result.weight = weight;
        result.contributors = static_cast<int>(contributors);
        result.age = age;
    }
    friend constexpr tally operator+(tally a, tally b) {
        return {a.weight + b.weight, a.contributors + b.contributors, a.age > b.age ? a.age : b.age};
    }
    friend constexpr bool operator==(tally, tally) = default;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/concept/named_span.hpp

namespace rill::inline RILL_ABI {

/// Names what a rank does until the result is destroyed, on a transport that records it (`traced`): a span of its
/// trace. Elsewhere it is nothing and costs nothing. `name` lives as long as the trace.
template <class Net>
[[nodiscard]] auto named_span([[maybe_unused]] const Net& net, [[maybe_unused]] const char* name) {
    if constexpr (requires { net.span(name); })
        return net.span(name);
    else
        return nullptr;
}

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/dense_state.hpp

namespace rill::inline RILL_ABI {

/// The data of a dense collective. A part lies in the input (until it is first folded), in the output, or, while the
/// output is being sent in the same round, in scratch. Nothing is copied but what a copy round brings.
template <Transport Net, Element T, class Fold, Executor Exec = serial>
class dense_state {
  public:
    using message = typename Net::message;

    void attach(exchange<Net>& call, const Exec& executor = {}) {
        call_ = &call;
        executor_ = executor;
    }

    /// `input` and `output` cover `[0, N)`; they are the same memory or do not overlap. A rank that contributes nothing
    /// takes part with the neutral element. `parts` counts chunks where each part is cut into `chunks` of them.
    void begin(const wire::header& head, int parts, std::span<const T> input, std::span<T> output, tally own,
               const Fold& fold, int chunks = 1) {
        head_ = head;
        chunks_ = static_cast<std::size_t>(chunks);
        fold_ = fold;
        input_ = input;
        output_ = output;
        places_.assign(static_cast<std::size_t>(parts), input.data() == output.data() ? place::output : place::input);
        tallies_.assign(static_cast<std::size_t>(parts), own);
        headers_.reset();
        if (own.contributors == 0) {
            std::fill(output.begin(), output.end(), fold.template identity<T>());
            set({0, parts}, place::output, own);
        }
    }

    byte_pieces outgoing(part_range parts, action) {
        unite(parts);
        head_.range = range(parts);
        head_.call = detail::frame_place::of_part(parts.first).in(call_->signature().hash(), head_.range);
        tally_of(parts).describe(head_);
        const std::span<const T> values = parts.count() == 0 ? std::span<const T>{} : at(place_of(parts), parts);
        return view_frame(head_, stream_view<T>(head_.range, values), headers_.take(wire::header_bytes).data());
    }

    /// One k-way fold: the operands in ascending order of ranks, this rank's own value among them.
    void fold(std::span<arrival<message>> arrivals) {
        const part_range parts = arrivals.front().from.parts;
        unite(parts);
        const place from = place_of(parts);
        const rank_t self = call_->net().rank();
        tally total{0, 0, 0};
        operands_.clear();
        const auto add = [&](std::span<const T> values, tally what) {
            operands_.push_back(values);
            total = total + what;
        };
        bool own_added = false;
        for (auto& a : arrivals) {
            if (!own_added && self < a.from.peer) {
                add(at(from, parts), tally_of(parts));
                own_added = true;
            }
            const values_from given = expect_dense(a);
            add(given.values, given.what);
        }
        if (!own_added) add(at(from, parts), tally_of(parts));
        const place to = target_of_fold(from, parts);
        const std::span<T> target = writable(to, parts);
        call_->await_readers(std::as_bytes(target));
        [[maybe_unused]] const auto folding = named_span(call_->net(), "fold");
        kernel::fold_dense_k(
            std::span<const std::span<const T>>(operands_), target, [this](T a, T b) { return fold_.fold(a, b); },
            executor_);
        set(parts, to, total);
    }

    void copy(std::span<arrival<message>> arrivals) {
        for (auto& a : arrivals) {
            const part_range parts = a.from.parts;
            const values_from given = expect_dense(a);
            if (parts.count() == 0) continue;
            if (const std::span<T> target = writable(place::output, parts); target.data() != given.values.data()) {
                call_->await_readers(std::as_bytes(target));
                [[maybe_unused]] const auto copying = named_span(call_->net(), "copy");
                kernel::copy<T>(given.values, target);
            }
            set(parts, place::output, given.what);
        }
    }

    /// Whether nobody reads where finished `parts` belong.
    bool has_free_place(part_range parts) {
        const byte_view target = bytes_of_place(parts);
        return target.empty() || !call_->is_read(target);
    }
    void await_place(part_range parts) { call_->await_readers(bytes_of_place(parts)); }

    /// Where a message that brings finished `parts` may be put right away, once the place is free: header and values.
    /// Until the next call.
    std::span<const byte_span> place_for(part_range parts) {
        const byte_span values = bytes_of_place(parts);
        if (values.empty()) return {};
        places_for_one_ = {headers_.take(wire::header_bytes), values};
        return places_for_one_;
    }

    /// Brings `parts` into the output, finishes the fold there, and returns that part of the output.
    std::span<T> finish(part_range parts) {
        for (int p = parts.first; p < parts.last; ++p) move_to_output({p, p + 1});
        const std::span<T> values = writable(place::output, parts);
        if constexpr (!Fold::finish_is_trivial) {
            call_->await_readers(std::as_bytes(values));
            [[maybe_unused]] const auto finishing = named_span(call_->net(), "fold");
            fold_.finish(values, total(parts.first).weight);
        }
        return values;
    }

    tally total(int part) const { return tallies_[static_cast<std::size_t>(part)]; }

  private:
    enum class place : unsigned char { input, output, scratch };

    segment range(part_range parts) const {
        if (parts == part_range{0, static_cast<int>(places_.size())}) return {0, output_.size()};  // needs no division
        const segment first = chunk(parts.first);
        return {first.begin, parts.count() == 0 ? first.begin : chunk(parts.last - 1).end};
    }
    segment chunk(int i) const {
        const auto at = static_cast<std::size_t>(i);
        const segment part = split(output_.size(), places_.size() / chunks_, at / chunks_);
        const segment inside = split(part.size(), chunks_, at % chunks_);
        return {part.begin + inside.begin, part.begin + inside.end};
    }
    place place_of(part_range parts) const { return places_[static_cast<std::size_t>(parts.first)]; }
    tally tally_of(part_range parts) const {
        return parts.count() == 0 ? tally{0, 0, 0} : tallies_[static_cast<std::size_t>(parts.first)];
    }
    void set(part_range parts, place where, tally what) {
        for (int p = parts.first; p < parts.last; ++p) {
            places_[static_cast<std::size_t>(p)] = where;
            tallies_[static_cast<std::size_t>(p)] = what;
        }
    }

    std::span<const T> at(place where, part_range parts) const {
        const segment s = range(parts);
        if (where == place::input) return input_.subspan(s.begin, s.size());
        if (where == place::output) return output_.subspan(s.begin, s.size());
        return std::span<const T>(scratch_).subspan(s.begin, s.size());
    }

    std::span<T> writable(place where, part_range parts) {
        const segment s = range(parts);
        if (where == place::output) return output_.subspan(s.begin, s.size());
        if (scratch_.size() != output_.size()) scratch_.resize(output_.size());
        return std::span<T>(scratch_).subspan(s.begin, s.size());
    }

    byte_span bytes_of_place(part_range parts) { return std::as_writable_bytes(writable(place::output, parts)); }

    void move_to_output(part_range parts) {
        if (place_of(parts) == place::output) return;
        const std::span<const T> source = at(place_of(parts), parts);
        const std::span<T> target = writable(place::output, parts);
        call_->await_readers(std::as_bytes(target));
        kernel::copy<T>(source, target);
        set(parts, place::output, tally_of(parts));
    }

    /// A message is one frame: all its parts must lie in one place.
    void unite(part_range parts) {
        const auto elsewhere = [&](int p) { return place_of({p, p + 1}) != place_of(parts); };
        for (int p = parts.first; p < parts.last; ++p)
            if (elsewhere(p)) {
                for (int q = parts.first; q < parts.last; ++q) move_to_output({q, q + 1});
                return;
            }
    }

    /// Where the fold of what lies in `from` may be written: in place, unless that is being sent in this round.
    place target_of_fold(place from, part_range parts) const {
        if (from == place::input) return place::output;
        if (!call_->sends_this_round(std::as_bytes(at(from, parts)))) return from;
        return from == place::output ? place::scratch : place::output;
    }

    struct values_from {
        std::span<const T> values;
        tally what;
    };

    values_from expect_dense(const arrival<message>& a) {
        const rank_t source = a.from.peer;
        const segment due = range(a.from.parts);
        const frame f = only_frame<T, std::uint32_t>(*call_, source, a.message.pieces(), due,
                                                     detail::frame_place::of_part(a.from.parts.first));
        if (!f.head.codes.is_lossless())  // operands of a fold are read in place: there is no room to decode several
            call_->fail(failure::protocol, source, call_->net().rank(),
                        "rank " + std::to_string(source) + " sent rounded values where exact ones were due");
        const auto content = read_from(*call_, source, [&] { return content_of(f, unused_); });
        if (!content.is_dense() && !due.empty())
            call_->fail(failure::protocol, source, call_->net().rank(),
                        "rank " + std::to_string(source) + " sent a sparse stream where a dense one was due");
        return {content.values(), tally::of(f.head)};
    }

    exchange<Net>* call_ = nullptr;
    [[no_unique_address]] Exec executor_{};
    wire::header head_{};
    Fold fold_{};
    std::span<const T> input_{};
    std::span<T> output_{};
    aligned_vector<T> scratch_;
    std::size_t chunks_ = 1;
    std::vector<place> places_;
    std::vector<tally> tallies_;
    std::array<byte_span, 2> places_for_one_{};
    std::vector<std::span<const T>> operands_;
    arena headers_;
    frame_scratch<T, std::uint32_t> unused_;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/head.hpp

namespace rill::inline RILL_ABI::detail {

/// What all frames of the call under way have in common. A call without data travels as empty frames of int32.
template <class Net>
wire::header head_of(const exchange<Net>& call) {
    const call_signature& signature = call.signature();
    return {.kind = signature.kind,
            .element = signature.element == element_type::none ? element_type::int32 : signature.element,
            .index_bytes = signature.index_bytes == 0 ? std::uint8_t{4} : signature.index_bytes,
            .context = call.context(),
            .number = signature.number,
            .call = signature.hash(),
            .dimension = signature.dimension};
}

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/synchronise.hpp

namespace rill::inline RILL_ABI::detail {

template <class Net>
using empty_state = dense_state<Net, std::int32_t, aggregate::sum>;

/// Runs a schedule on nothing: no rank gets through before all have come.
template <class Net, Schedule Plan>
receipt synchronise(exchange<Net>& call, const Plan& plan, empty_state<Net>& state) {
    state.attach(call);
    state.begin(head_of(call), plan.parts(), {}, {}, tally{}, aggregate::sum{});
    execute(call, plan, state);
    receipt result{.rounds = plan.rounds()};
    state.total(0).describe(result);
    return result;
}

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/agree.hpp

namespace rill::inline RILL_ABI {

/// Returns when all ranks have come with the same `fingerprint`, of what they have configured for themselves; throws
/// `mismatch` on all ranks, naming the odd one, when one of them has another. 2 log2 P rounds of frames without
/// content.
template <class Group>
receipt agree(Group& group, std::uint64_t fingerprint) {
    return group.run({.kind = operation::handshake, .options = fingerprint}, [&](auto& call) {
        auto& state = group.template workspace<detail::empty_state<typename Group::transport_type>>();
        return detail::synchronise(call, topology::tree{}.all_reduce(group.size(), group.rank()), state);
    });
}

}  // namespace rill::inline RILL_ABI

// ===== rill/topology/chunked.hpp

namespace rill::inline RILL_ABI::topology {

/// Whether no transfer carries more than one part, so that the parts can be cut into chunks; the same on all ranks. A
/// schedule of several parts says so by a constant `carries_one_part`, which the proofs check.
template <Schedule S>
constexpr bool can_be_cut(const S& schedule) {
    if constexpr (requires { requires S::carries_one_part; }) return true;
    return schedule.parts() == 1;
}

/// A schedule whose parts are cut into chunks: part p consists of the parts `p * chunks … (p + 1) * chunks - 1`. Each
/// round becomes one for each chunk, with the same peers.
///
/// What chunk c needs comes in rounds of chunk c: what is sent in a round depends only on what was received
/// `lookahead()` or more rounds before, so that it can be sent while other chunks are still on their way. As a schedule
/// it is proved like any other; executed round by round, or ahead, it moves the same messages between each pair of
/// ranks in the same order, and every coordinate is folded as without chunks.
template <Schedule S>
class chunked_schedule {
  public:
    static constexpr int most_ahead = 16;  // more would hold memory and gain nothing

    constexpr chunked_schedule() = default;
    constexpr chunked_schedule(const S& whole, int chunks) : whole_(whole), chunks_(chunks) {
        RILL_EXPECTS(chunks == 1 || (chunks > 1 && can_be_cut(whole)),
                     "topology::chunked_schedule: only parts that travel alone can be cut");
    }

    constexpr int chunks() const { return chunks_; }
    /// Of a part of the whole.
    constexpr part_range chunks_of(int part) const { return {part * chunks_, (part + 1) * chunks_}; }
    constexpr int lookahead() const { return chunks_ < most_ahead ? chunks_ : most_ahead; }

    constexpr int parts() const { return whole_.parts() * chunks_; }
    constexpr int rounds() const { return whole_.rounds() * chunks_; }
    constexpr action kind(int round) const { return whole_.kind(round / chunks_); }
    constexpr int sends(int round) const { return whole_.sends(round / chunks_); }
    constexpr transfer send(int round, int i) const { return cut(whole_.send(round / chunks_, i), round % chunks_); }
    constexpr int receives(int round) const { return whole_.receives(round / chunks_); }
    constexpr transfer receive(int round, int i) const {
        return cut(whole_.receive(round / chunks_, i), round % chunks_);
    }

    friend constexpr bool operator==(const chunked_schedule&, const chunked_schedule&) = default;

  private:
    constexpr transfer cut(transfer t, int chunk) const {
        if (chunks_ == 1 || t.parts.count() == 0) return t;
        const int first = t.parts.first * chunks_ + chunk;
        return {t.peer, {first, first + 1}};
    }

    S whole_{};
    int chunks_ = 1;
};

}  // namespace rill::inline RILL_ABI::topology

// ===== rill/collective/chunks.hpp

namespace rill::inline RILL_ABI::detail {

/// In how many chunks a part of a dense vector travels: such that none has more bytes than the transport asks for, by a
/// member `chunk_bytes()`. While one chunk is folded, and its next message announced, another is on the wire.
template <class Net, Schedule Plan>
int chunks_of(const Net& net, const Plan& plan, std::size_t bytes) {
    if constexpr (requires { net.chunk_bytes(); }) {
        constexpr std::size_t most = 1024;
        if (!topology::can_be_cut(plan)) return 1;
        const std::size_t part = bytes / static_cast<std::size_t>(plan.parts()), chunk = net.chunk_bytes();
        return static_cast<int>(std::clamp<std::size_t>(part / chunk + (part % chunk != 0 ? 1U : 0U), 1, most));
    }
    return 1;
}

/// `bytes`: of the whole vector.
template <class Net, Schedule Plan>
topology::chunked_schedule<Plan> in_chunks(const Net& net, const Plan& plan, std::size_t bytes) {
    return {plan, chunks_of(net, plan, bytes)};
}

/// Of the topology, however many chunks go through each.
template <Schedule Plan>
int rounds_of(const Plan& plan) {
    if constexpr (requires { plan.chunks(); }) return plan.rounds() / plan.chunks();
    return plan.rounds();
}

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/loans.hpp

namespace rill::inline RILL_ABI::detail {

/// The objects whose state an operation under way changes: none may serve two operations at a time.
///
/// Any activity may lend and give back. Two that lend the same object at once cannot both succeed: each enters it
/// before it looks for another entry.
class loans {
  public:
    class loan {
      public:
        loan(loan&& other) noexcept : place_(std::exchange(other.place_, nullptr)) {}
        loan& operator=(loan&&) = delete;
        ~loan() {
            if (place_ != nullptr) place_->store(nullptr);
        }

      private:
        friend loans;
        explicit loan(light_atomic<const void*>* place) : place_(place) {}

        light_atomic<const void*>* place_;
    };

    /// `message` tells whose contract is broken when `object` is lent already.
    loan lend(const void* object, [[maybe_unused]] const char* message) {
        for (auto& place : places_) {
            if (!place.replace(nullptr, object)) continue;
            loan entered(&place);
            RILL_EXPECTS(count(object) == 1, message);
            return entered;
        }
        return loan(nullptr);  // more than can be in flight: unchecked
    }

  private:
    std::size_t count(const void* object) const {
        std::size_t found = 0;
        for (const auto& place : places_) found += place.load() == object ? 1U : 0U;
        return found;
    }

    std::array<light_atomic<const void*>, calls_remembered> places_{};
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/kernel/fold_tiles.hpp

// Folds of many inputs into many outputs, in one pass over all of them.

namespace rill::inline RILL_ABI::kernel {

namespace detail {

/// Entries of a cache line: each line of each input and output is touched once, and in one go. Wider tiles are slower:
/// where all vectors begin at equal offsets in their pages, as large ones do, their lines drive each other out of the
/// first cache (8 vectors of 16M floats, 2 threads: 64 entries 1.3 and 256 entries 1.2 to 1.6 times as long).
template <Element T>
inline constexpr std::size_t line = 64 / sizeof(T);

/// Most inputs whose fold is straight-line code; of more, the result so far is one more operand.
inline constexpr std::size_t inputs_at_once = 8;

/// More streams than this need to be asked for ahead, by so many bytes (8 inputs: 0.65 to 0.8 of the time without).
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

/// acc = the left fold of acc (unless it is `Fresh`) and of the lines at i of as many inputs as there are `K`.
template <bool Fresh, Element T, class Fold, std::size_t... K>
inline void fold_lines(const T* const* inputs, std::size_t i, T* acc, Fold& fold, std::index_sequence<K...>) {
    const T* const x[] = {inputs[K] + i...};
    if constexpr (sizeof...(K) > streams_unasked) (ask_for(x[K]), ...);
    T made[line<T>];  // its address goes nowhere, so that no input can be it
    for (std::size_t j = 0; j < line<T>; ++j) {
        T value = Fresh ? x[0][j] : fold(acc[j], x[0][j]);
        ((value = K == 0 ? value : fold(value, x[K][j])), ...);
        made[j] = value;
    }
    std::copy_n(made, line<T>, acc);
}

/// Calls `run` with as many indices as the smaller of `count` and `inputs_at_once`.
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

/// Adds the inputs beyond `inputs_at_once`.
template <Element T, class Fold>
void fold_further_lines(std::span<const T* const> inputs, std::size_t i, T (&acc)[line<T>], Fold& fold) {
    for (std::size_t k = inputs_at_once; k < inputs.size(); k += inputs_at_once)
        with_indices(inputs.size() - k, [&](auto all) { fold_lines<false>(inputs.data() + k, i, acc, fold, all); });
}

template <Element T, class Fold>
T fold_entry(std::span<const T* const> inputs, std::size_t i, Fold& fold) {
    T value = inputs[0][i];
    for (std::size_t k = 1; k < inputs.size(); ++k) value = fold(value, inputs[k][i]);
    return value;
}

/// Entries before the first line of `x`, none where its entries lie across lines; at most `most`.
template <Element T>
std::size_t entries_before_line(const T* x, std::size_t most) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(x) % 64;
    return past % sizeof(T) != 0 ? 0 : std::min((64 - past) % 64 / sizeof(T), most);
}

/// How many of the first outputs lie on lines at i.
template <Element T>
std::size_t outputs_on_lines(std::span<T* const> outputs, std::size_t i) {
    std::size_t count = 0;
    while (count < outputs.size() && reinterpret_cast<std::uintptr_t>(outputs[count] + i) % 64 == 0) ++count;
    return count;
}

/// As many lines as the part has, from its begin; returns where they end. The first `streamed` outputs are written past
/// the caches. What the loop looks at has no address that an output could have, and one output is folded in place: 16
/// lines of 2 inputs take 100 ns less.
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
        if (inputs.size() > inputs_at_once) fold_further_lines(inputs, i, acc, fold);
        finish(std::span<T>(made, line<T>));
        if (is_single) continue;
        const auto* const bytes = reinterpret_cast<const unsigned char*>(acc);
        for (std::size_t k = 0; k < streamed; ++k) stream_line(bytes, reinterpret_cast<unsigned char*>(outputs[k] + i));
        for (std::size_t k = streamed; k < outputs.size(); ++k) std::copy_n(acc, line<T>, outputs[k] + i);
    }
    return i;
}

/// Fewer entries than a line has.
template <Element T, class Fold, class Finish>
void fold_rest(std::span<const T* const> inputs, std::span<T* const> outputs, segment part, Fold& fold,
               Finish& finish) {
    T rest[line<T>];
    for (std::size_t j = 0; j < part.size(); ++j) rest[j] = fold_entry(inputs, part.begin + j, fold);
    finish(std::span<T>(rest, part.size()));
    for (T* const out : outputs) std::copy_n(rest, part.size(), out + part.begin);
}

}  // namespace detail

/// For every output and every i of `part`: out[i] = the left fold of the inputs' entries i, in the order of the inputs,
/// as `finish(std::span<T>)` leaves it, which is called on pieces of the result.
///
/// Inputs and outputs begin where `part` counts from. An output may be one of the inputs; it may not overlap one
/// otherwise. The first `past_caches` outputs are written without being read: those that no cache holds. Cost: one pass
/// over each input and each output: memory moves no more than it must.
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

}  // namespace rill::inline RILL_ABI::kernel

// ===== rill/collective/fused_all_reduce.hpp

// A dense all_reduce by one-sided access: what a split schedule does in two rounds of messages, in one pass over
// memory.

namespace rill::inline RILL_ABI::detail {

/// Where dense all_reduces need no messages: the ranks reach each other's memory, and the topology folds every part at
/// once, at its owner, in ascending order of ranks.
template <class Net, class Shape>
constexpr bool is_fused = SharedMemoryTransport<Net> && requires { requires Shape::folds_at_owners; };

template <class Net, class Shape>
using fused_commons = typename commons_of<Net, is_fused<Net, Shape>>::type;

/// One dense all_reduce under way on one rank. The bits are those of the split schedule: every coordinate is the left
/// fold of all ranks' values in ascending order, finished once.
///
/// Small: every rank copies its input into a slot, waits until all have, and folds all of them. It returns when all
/// have entered; they may still read its slot, which is not its memory. Only where a fold may throw does it wait until
/// all have succeeded.
///
/// Large: every rank exposes where its input and its output lie and waits until all have. A tile is folded by whoever
/// claims it, from all inputs into all outputs: first those of the own part, then what others have not come to. The
/// first tile of each part is its owner's, so that every rank has folded something. Then it waits until all have left:
/// no rank returns while another still reads or writes its memory.
template <SharedMemoryTransport Net, Element T, class Fold, Executor Exec>
class fused_state {
  public:
    using commons = typename Net::commons;

    /// The input of a rank that contributes nothing is not read: it takes part with the neutral element.
    void begin(exchange<Net>& call, commons& shared, std::span<const T> input, std::span<T> output, const tally& own,
               const Fold& fold) {
        call_ = &call;
        shared_ = &shared;
        input_ = input;
        output_ = output;
        own_ = own;
        fold_ = fold;
        if (own.contributors == 0) {
            std::fill(output.begin(), output.end(), fold.template identity<T>());
            input_ = output;
        }
    }

    /// Returns what stands behind the result, which then lies in the output.
    tally run(const Exec& executor) { return output_.size_bytes() <= commons::slot_bytes ? small() : large(executor); }

    /// Counts what the split schedule would send and receive, headers included: an access is a message.
    void count() const {
        const std::size_t own = part_of(rank()).size(), peers = ranks() - 1;
        const std::size_t elements = output_.size() - own + own * peers;
        const std::size_t bytes = elements * sizeof(T) + 2 * peers * wire::header_bytes;
        shared_->count(2 * peers, bytes);
        call_->count(2 * peers, bytes);
    }

  private:
    using note = std::array<std::byte, sizeof(tally)>;

    /// Whether folding may end by an exception.
    static constexpr bool can_fail =
        !noexcept(std::declval<const Fold&>().fold(T{}, T{})) ||
        !(Fold::finish_is_trivial || noexcept(std::declval<const Fold&>().finish(std::span<T>(), 1.0)));
    /// Of all outputs together. Above it 0.5 to 0.7 of the time with 16M floats, below it up to 3 times as much with 1M
    /// floats and 2 ranks.
    static constexpr std::size_t least_past_caches = std::size_t{1} << 24;
    static constexpr std::size_t tile = (std::size_t{1} << 16) / sizeof(T);

    tally small() {
        await_room();
        const byte_span slot = shared_->slot(number(), output_.size_bytes());
        if (!slot.empty()) std::memcpy(slot.data(), input_.data(), slot.size());
        expose(slot.data(), nullptr);
        shared_->prepare(number() + 1);
        const tally total = gather([](const exposure&) {});
        T* const output[] = {output_.data()};
        past_caches_ = 0;
        fold_range({0, output_.size()}, output, total);
        if constexpr (can_fail) {
            shared_->leave(number());
            await_all();
        } else {
            shared_->pass(number());
        }
        return total;
    }

    tally large(const Exec& executor) {
        await_room();
        call_->lend(*shared_);
        expose(reinterpret_cast<const std::byte*>(input_.data()), reinterpret_cast<std::byte*>(output_.data()));
        const tally total = gather_outputs();
        // Where one has withdrawn there is nothing to do here: its failure ends the wait.
        if (shared_->enter(number())) fold_tiles(executor, total);
        await_all();
        return total;
    }

    /// Waits until all have entered. Outputs that are no inputs come first: where all of them together are large, no
    /// cache holds them, and they are written without being read.
    tally gather_outputs() {
        outputs_.clear();
        past_caches_ = 0;
        const bool are_large = ranks() * output_.size_bytes() >= least_past_caches;
        return gather([&](const exposure& of) {
            outputs_.push_back(reinterpret_cast<T*>(of.output));
            if (are_large && of.output != of.input) std::swap(outputs_[past_caches_++], outputs_.back());
        });
    }

    /// Waits until all have left the operation.
    void await_all() {
        for (rank_t peer = 0; peer < size(); ++peer)
            call_->wait_for(peer, 1, [&](deadline until) { return shared_->has_left(peer, number(), until); });
    }

    /// The time for which this rank is inside the others' memory.
    class access {
      public:
        access(commons& shared, std::uint64_t number) : shared_(shared), number_(number) {}
        access(const access&) = delete;
        access& operator=(const access&) = delete;
        ~access() { has_succeeded_ ? shared_.leave(number_) : shared_.abandon(number_); }
        void end() { has_succeeded_ = true; }

      private:
        commons& shared_;
        std::uint64_t number_;
        bool has_succeeded_ = false;
    };

    void fold_tiles(const Exec& executor, const tally& total) {
        access inside(*shared_, number());
        fold_tile(rank(), 0, total);
        executor.run(static_cast<std::size_t>(executor.concurrency()), [&](std::size_t) {
            for (int i = 0; i < size(); ++i) fold_what_is_left((rank() + i) % size(), total);
        });
        inside.end();
    }

    /// Of a rank's part, but for the first tile.
    void fold_what_is_left(rank_t owner, const tally& total) {
        const std::size_t tiles = (part_of(owner).size() + tile - 1) / tile;
        if (tiles < 2) return;
        for (std::uint64_t i = shared_->claim(owner, number()) + 1; i < tiles;
             i = shared_->claim(owner, number()) + 1) {
            if (const auto notice = call_->net().aborted(call_->context())) throw_error(*notice);
            fold_tile(owner, static_cast<std::size_t>(i), total);
        }
    }

    void fold_tile(rank_t owner, std::size_t i, const tally& total) {
        const segment part = part_of(owner);
        const std::size_t begin = part.begin + i * tile;
        fold_range({std::min(begin, part.end), std::min(begin + tile, part.end)}, outputs_, total);
    }

    void fold_range(segment range, std::span<T* const> outputs, const tally& total) {
        kernel::fold_tiles(
            std::span<const T* const>(inputs_), outputs, range, [fold = fold_](T a, T b) { return fold.fold(a, b); },
            [&](std::span<T> values) {
                if constexpr (!Fold::finish_is_trivial) fold_.finish(values, total.weight);
            },
            past_caches_);
    }

    void await_room() {
        for (rank_t peer = 0; peer < size(); ++peer)
            call_->wait_for(peer, 0, [&](deadline until) { return shared_->has_room(peer, number(), until); });
    }

    void expose(const std::byte* input, std::byte* output) {
        shared_->expose(
            {.call = call_->signature(), .note = std::bit_cast<note>(own_), .input = input, .output = output});
    }

    /// Waits until all have entered the call, and visits what they expose.
    template <class Visit>
    tally gather(Visit&& visit) {
        tally total{0, 0, 0};
        inputs_.clear();
        for (rank_t peer = 0; peer < size(); ++peer) {
            const exposure& given = exposed_by(peer);
            inputs_.push_back(reinterpret_cast<const T*>(given.input));
            total = total + std::bit_cast<tally>(given.note);
            visit(given);
        }
        return total;
    }

    const exposure& exposed_by(rank_t peer) {
        const exposure* found = nullptr;
        call_->wait_for(peer, 0, [&](deadline until) {
            found = shared_->exposed(peer, call_->signature(), until);
            if (found == nullptr) refuse_other_call(peer);
            return found != nullptr;
        });
        if (found->call != call_->signature()) call_->disagree(peer);
        return *found;
    }

    void refuse_other_call(rank_t peer) const {
        const auto made = call_->net().inquire(peer, call_->context(), number(), deadline::immediate);
        if (made && *made != call_->signature()) call_->disagree(peer);
    }

    std::uint64_t number() const { return call_->signature().number; }
    rank_t rank() const { return call_->net().rank(); }
    int size() const { return call_->net().size(); }
    std::size_t ranks() const { return static_cast<std::size_t>(size()); }
    segment part_of(rank_t owner) const { return split(output_.size(), ranks(), static_cast<std::size_t>(owner)); }

    exchange<Net>* call_ = nullptr;
    commons* shared_ = nullptr;
    std::span<const T> input_{};
    std::span<T> output_{};
    tally own_{};
    Fold fold_{};
    std::vector<const T*> inputs_;
    std::vector<T*> outputs_;
    std::size_t past_caches_ = 0;  ///< so many of them, the first ones
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/group_options.hpp

namespace rill::inline RILL_ABI {

/// How a group works; the same on all its ranks, which the handshake checks.
struct group_options {
    /// Of each operation, since the rank has entered it. Finding the culprit may take a quarter of it more.
    duration timeout = seconds(60);
    std::uint64_t seed = 0;  ///< of the random numbers that collectives use

    constexpr std::uint64_t fingerprint() const { return mix64(seed, static_cast<std::uint64_t>(timeout.ns)); }
    friend constexpr bool operator==(const group_options&, const group_options&) = default;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/detail/membership.hpp

namespace rill::inline RILL_ABI::detail {

/// A context from its making to its end, also when the handshake throws.
template <Transport Net>
struct open_context {
    explicit open_context(Net& of) : net(of), number(of.next_context(0)) {}
    open_context(const open_context&) = delete;
    open_context& operator=(const open_context&) = delete;
    ~open_context() { net.close(number); }

    Net& net;
    std::uint64_t number;
};

/// The two numbers of an operation: apart where a group has gone back to an earlier count.
struct operation_numbers {
    std::uint64_t in_context = 0;  ///< on the wire and in errors: rises for ever, so that no call is taken for another
    std::uint64_t counted = 0;     ///< in receipts and in the keys of random numbers

    constexpr operation_numbers next() const { return {in_context + 1, counted + 1}; }
    constexpr operation_numbers resumed_at(std::uint64_t number) const {
        return {std::max(in_context, number), number};
    }
};

template <class Commons, Transport Net>
Commons commons_in(open_context<Net>& context) {
    if constexpr (std::same_as<Commons, no_commons>)
        return {};
    else
        return context.net.share(context.number);
}

/// What the lanes of a group share.
template <Transport Net, Topology Shape, Executor Exec>
struct membership {
    open_context<Net> context;
    open_context<Net> waits;  ///< see `long_wait`
    Shape shape;
    group_options options;
    [[no_unique_address]] Exec executor;
    operation_numbers last{};  ///< of the operations called or started so far
    loans lent{};
    void* crew = nullptr;  ///< whose operations go on in the background, if any
    void (*wait_for_room)(void* crew, std::uint64_t) = nullptr;
    /// Shared before the handshake: so no rank can leave it before all have it.
    [[no_unique_address]] fused_commons<Net, Shape> commons = commons_in<fused_commons<Net, Shape>>(context);

    /// An operation begins when those of half as many numbers before it as are remembered are done. A rank that is
    /// ahead cannot have ended one that another rank has not entered: so the calls of all operations that anybody may
    /// ask for are remembered.
    void make_room(std::uint64_t number) {
        if (wait_for_room != nullptr) wait_for_room(crew, number);
    }
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/pending.hpp

namespace rill::inline RILL_ABI::detail {

/// An operation that has been started, as its request sees it.
class pending {
  public:
    pending() = default;
    pending(const pending&) = delete;
    pending& operator=(const pending&) = delete;
    virtual ~pending() = default;

    /// Whether it is done; waits until then or until `until`.
    virtual bool await(deadline until) noexcept = 0;
    virtual time_point now() const = 0;
    /// Aborts the group unless it is done. `why`: "rank r ...".
    virtual void cancel(const char* why) noexcept = 0;
    /// Once it is done: its receipt, or its failure as an exception.
    virtual receipt take() = 0;

  private:
    template <class Pending>
    friend class shared;

    int owners_ = 0;
};

/// One of the owners of a `pending`, all of one activity: the last one deletes it. No `std::shared_ptr`: `<memory>`
/// would add a tenth to what rill.hpp costs a translation unit, and one activity needs no atomic count.
template <class Pending>
class shared {
  public:
    shared() = default;
    explicit shared(Pending* of) : of_(of) { hold(); }
    template <class Other>
    shared(const shared<Other>& other) : of_(other.get()) {
        hold();
    }
    shared(const shared& other) : of_(other.of_) { hold(); }
    shared(shared&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
    shared& operator=(shared other) noexcept {
        std::swap(of_, other.of_);
        return *this;
    }
    ~shared() {
        if (of_ != nullptr && --owners() == 0) delete of_;
    }

    Pending* get() const { return of_; }
    Pending* operator->() const { return of_; }
    bool is_only_owner() const { return owners() == 1; }
    friend bool operator==(const shared& a, std::nullptr_t) { return a.of_ == nullptr; }

  private:
    int& owners() const { return static_cast<pending*>(of_)->owners_; }
    void hold() const {
        if (of_ != nullptr) ++owners();
    }

    Pending* of_ = nullptr;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/task.hpp

namespace rill::inline RILL_ABI::detail {

/// Any callable `receipt(Argument&)`, in memory that the next one uses again: allocates only for a larger one than ever
/// before.
template <class Argument>
class task {
  public:
    task() = default;
    task(const task&) = delete;
    task& operator=(const task&) = delete;
    ~task() { reset(); }

    template <class Body>
    void emplace(Body&& body) {
        using stored = std::decay_t<Body>;
        static_assert(alignof(stored) <= buffer::allocator_type::alignment);
        reset();
        if (memory_.size() < sizeof(stored)) memory_.resize(sizeof(stored));
        ::new (static_cast<void*>(memory_.data())) stored(std::forward<Body>(body));
        run_ = [](void* at, Argument& argument) -> receipt { return (*static_cast<stored*>(at))(argument); };
        destroy_ = [](void* at) { static_cast<stored*>(at)->~stored(); };
    }

    receipt operator()(Argument& argument) { return run_(memory_.data(), argument); }

    void reset() noexcept {
        if (auto* const destroy = std::exchange(destroy_, nullptr)) destroy(memory_.data());
    }

  private:
    buffer memory_;
    receipt (*run_)(void*, Argument&) = nullptr;
    void (*destroy_)(void*) = nullptr;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/lane.hpp

namespace rill::inline RILL_ABI {

namespace detail {
template <ConcurrentTransport Net, Topology Shape, Executor Exec>
class worker;
}  // namespace detail

/// Where the operations of a group run, one at a time: an exchange with scratch of its own. A group is the lane of its
/// blocking calls; each operation that is started has another one.
template <Transport Net, Topology Shape, Executor Exec = serial>
class lane {
  public:
    using transport_type = Net;
    using topology_type = Shape;
    using executor_type = Exec;
    using lane_type = lane;

    explicit lane(detail::membership<Net, Shape, Exec>& of)
        : of_(&of), commons_(of.commons), exchange_(of.context.net, of.context.number, of.waits.number) {}
    lane(const lane&) = delete;
    lane& operator=(const lane&) = delete;

    Net& net() const { return of_->context.net; }
    const Shape& shape() const { return of_->shape; }
    const group_options& options() const { return of_->options; }
    const Exec& executor() const { return of_->executor; }
    rank_t rank() const { return net().rank(); }
    int size() const { return net().size(); }
    std::uint64_t context() const { return of_->context.number; }
    /// What the ranks share where dense all_reduces are fused; nothing elsewhere.
    auto& commons() { return commons_; }

    /// The number that the next `run` gives to its operation.
    std::uint64_t next_number() const { return waits_to_run_ ? numbers_.counted : of_->last.next().counted; }

    /// The key of the random numbers that this rank draws in the operation at hand.
    random_key key() const { return random_key{options().seed}.derive(numbers_.counted, rank()); }

    /// Runs `body(exchange)` as the next operation. If it throws, all ranks of the group end with this rank as the
    /// culprit (or with the one whose failure came first), and this and every later call throws.
    /// `is_exposed`: `body` exposes memory, which announces the call.
    template <class Body>
    receipt run(call_signature signature, Body&& body, bool is_exposed = false) {
        RILL_EXPECTS(!started_ || waits_to_run_, "start: its body runs one operation; start another for the next");
        if (const auto notice = net().aborted(context())) throw_error(*notice);
        if (!started_) {
            numbers_ = of_->last.next();
            of_->make_room(numbers_.in_context);
            of_->last = numbers_;
        }
        waits_to_run_ = false;
        signature.number = numbers_.in_context;
        [[maybe_unused]] const auto recorded = named_span(net(), name(signature.kind));
        return guarded(signature, std::forward<Body>(body), is_exposed);
    }

    /// Scratch of one type, made on first use and kept: a steady-state operation allocates nothing.
    template <class State>
    State& workspace() {
        const void* const type = &type_tag<State>;
        for (auto& made : workspaces_)
            if (made.type == type) return *static_cast<State*>(made.object);
        workspaces_.reserve(workspaces_.size() + 1);
        workspaces_.emplace_back(type, new State(), [](void* object) { delete static_cast<State*>(object); });
        return *static_cast<State*>(workspaces_.back().object);
    }

    /// Reserves an object whose state the operation at hand changes, until the result is destroyed.
    auto lend(const void* object, const char* message) const { return of_->lent.lend(object, message); }

  protected:
    /// Runs `body(exchange)` as the call `signature`, and tells all ranks when it fails.
    template <class Body>
    receipt guarded(const call_signature& signature, Body&& body, bool is_exposed = false) {
        const settlement last{exchange_};
        try {
            exchange_.begin(signature, options().timeout, is_exposed);
            receipt result = body(exchange_);
            exchange_.finish();
            result.operation_number = numbers_.counted;
            result.wire = exchange_.counted();
            result.elapsed = exchange_.elapsed();
            return result;
        } catch (const error& e) {
            fail(signature, is_foreign(e.notice()) ? abort_notice{.reason = e.what()} : e.notice());
            throw;
        } catch (const std::exception& e) {
            fail(signature, {.reason = e.what()});
            throw;
        } catch (...) {
            fail(signature, {.reason = "an exception of unknown type"});
            throw;
        }
    }

  private:
    template <ConcurrentTransport, Topology, Executor>
    friend class detail::worker;

    /// An object of any type.
    struct slot {
        slot(const void* of_type, void* made, void (*end)(void*)) : type(of_type), object(made), destroy(end) {}
        slot(slot&& other) noexcept
            : type(other.type), object(std::exchange(other.object, nullptr)), destroy(other.destroy) {}
        slot& operator=(slot&&) = delete;
        ~slot() {
            if (object != nullptr) destroy(object);
        }
        const void* type;
        void* object;
        void (*destroy)(void*);
    };
    template <class State>
    static constexpr char type_tag = 0;

    /// Runs `body(*this)`, which calls `run` once, for the numbers that were given to it beforehand. Should it not come
    /// to that, this rank has failed in the operation that the others wait for.
    template <class Body>
    receipt run_started(const detail::operation_numbers& numbers, Body&& body) {
        numbers_ = numbers;
        started_ = waits_to_run_ = true;
        try {
            const receipt result = body(*this);
            RILL_EXPECTS(!waits_to_run_, "start: its body runs no operation");
            return result;
        } catch (const std::exception& e) {
            if (waits_to_run_) abandon(e.what());
            throw;
        } catch (...) {
            if (waits_to_run_) abandon("an exception of unknown type");
            throw;
        }
    }

    /// Leaves nothing behind that a peer reads: on an error after all ranks have been told, even if that fails too.
    struct settlement {
        exchange<Net>& call;
        ~settlement() { call.settle(); }
    };

    /// Whether it comes from another group, whose ranks are numbered otherwise.
    bool is_foreign(const abort_notice& notice) const {
        return notice.culprit != no_rank && notice.context != context() && notice.context != every_context;
    }

    /// Tells all ranks; returns only when this rank's own failure is the one that counts. Who has no culprit is it.
    void fail(const call_signature& signature, abort_notice notice) {
        notice.context = context();
        notice.operation = signature.number;
        if (notice.culprit == no_rank && notice.kind != failure::deadlock) {
            notice.culprit = rank();
            notice.reason = exchange_.describe() + ": rank " + std::to_string(rank()) + ": " + notice.reason;
        }
        const abort_notice first = net().abort(notice);
        if (first != notice || notice.kind != failure::exception) throw_error(first);
    }

    void abandon(const char* why) {
        net().abort({.context = context(),
                     .operation = numbers_.in_context,
                     .culprit = rank(),
                     .reason = "operation " + std::to_string(numbers_.in_context) + ": rank " + std::to_string(rank()) +
                               " has not come to it: " + why});
    }

    detail::membership<Net, Shape, Exec>* of_;
    [[no_unique_address]] detail::fused_commons<Net, Shape> commons_;
    exchange<Net> exchange_;
    std::vector<slot> workspaces_;
    detail::operation_numbers numbers_{};
    bool started_ = false;       ///< operations come numbered
    bool waits_to_run_ = false;  ///< a started operation has not been run yet
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/detail/worker.hpp

namespace rill::inline RILL_ABI::detail {

/// An activity with a lane of its own that runs one started operation after the other.
///
/// `task_`, `result_` and `failure_` belong to the worker between the job in `jobs_` and `done_`, and to the group's
/// activity otherwise. A request may keep it when its group has gone: after `end` nothing here refers to the group.
template <ConcurrentTransport Net, Topology Shape, Executor Exec>
class worker final : public pending {
  public:
    explicit worker(membership<Net, Shape, Exec>& of)
        : net_(&of.context.net), lane_(of), jobs_(*net_), done_(*net_), thread_(net_->spawn([this] { serve(); })) {}
    ~worker() override { end(); }

    /// Whether it can take another operation, once nobody holds this one's request.
    bool is_usable() const { return !has_ended_; }
    /// Of its operation, in errors and on the wire.
    std::uint64_t number() const { return numbers_.in_context; }

    template <class Body>
    void start(const operation_numbers& numbers, Body&& body) {
        task_.emplace(std::forward<Body>(body));
        done_.reset();
        failure_ = nullptr;
        is_performed_ = is_done_ = false;
        numbers_ = numbers;
        jobs_.push(numbers);
    }

    bool await(deadline until) noexcept override {
        if (is_done_) return true;
        try {
            if (!done_.wait(until)) return false;
        } catch (...) {
            // All contexts have ended, or this activity has: so has the operation, or does now.
            abort("abandoned it: an exception passed");
            end_thread();
            if (!is_performed_) failure_ = std::current_exception();
        }
        is_done_ = true;
        return true;
    }

    time_point now() const override { return std::as_const(*net_).now(); }

    void cancel(const char* why) noexcept override {
        if (!await(deadline::immediate)) abort(why);
    }

    receipt take() override {
        if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
        return result_;
    }

    /// Cancels what is unfinished and ends the activity.
    void end() noexcept {
        cancel("abandoned it: its group was destroyed");
        await(deadline::never);
        end_thread();
    }

  private:
    void serve() noexcept {
        try {
            while (const auto numbers = jobs_.pop(deadline::never)) {
                perform(*numbers);
                done_.set();
            }
        } catch (...) {  // all contexts have ended
        }
    }

    void perform(const operation_numbers& numbers) noexcept {
        try {
            result_ = lane_.run_started(numbers, task_);
        } catch (...) {
            failure_ = std::current_exception();
        }
        task_.reset();
        is_performed_ = true;
    }

    void abort(const char* why) noexcept {
        const std::string operation = "operation " + std::to_string(number()), rank = std::to_string(lane_.rank());
        net_->abort({.context = lane_.context(),
                     .operation = number(),
                     .culprit = lane_.rank(),
                     .reason = operation + ": rank " + rank + " " + why});
    }

    void end_thread() noexcept {
        if (has_ended_) return;
        has_ended_ = true;
        jobs_.close();
        thread_.join();
        task_.reset();  // it may never have begun, and holds what the group has lent
    }

    Net* net_;
    lane<Net, Shape, Exec> lane_;
    task<lane<Net, Shape, Exec>> task_;
    receipt result_{};
    std::exception_ptr failure_{};
    bool is_performed_ = true;
    bool is_done_ = true;  ///< and the group's activity knows it
    bool has_ended_ = false;
    operation_numbers numbers_{};
    typename Net::template queue<operation_numbers> jobs_;
    typename Net::event done_;
    typename Net::activity thread_;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/request.hpp

namespace rill::inline RILL_ABI {

/// An operation that goes on while its caller does something else. What it reads and writes must stay valid, what it
/// writes unread and what it reads unchanged, until it is done.
///
/// Requests may be waited for in any order, another one on each rank. A request belongs to the activity that uses its
/// group; it may outlive the group, but not the transport.
///
/// An unfinished operation whose request is destroyed or assigned to is cancelled, and what was lent to it is given
/// back before that returns: like an exception that leaves a blocking call, that ends the group with this rank as the
/// culprit, and never waits for a rank that does not come.
class [[nodiscard]] request {
  public:
    /// Of no operation.
    request() = default;
    explicit request(detail::shared<detail::pending> of) : of_(std::move(of)) {}
    request(request&&) noexcept = default;
    request& operator=(request&& other) noexcept {
        abandon();
        of_ = std::move(other.of_);
        return *this;
    }
    ~request() { abandon(); }

    /// Whether it stands for an operation: from the start until `get`.
    bool is_valid() const noexcept { return of_ != nullptr; }

    /// Whether the operation is done, well or not. In simulated time looking in vain costs what the network says.
    bool test() const { return wait_until(deadline::immediate); }

    /// Returns when the operation is done, well or not.
    void wait() const { wait_until(deadline::never); }

    /// Whether the operation is done, after at most `patience`.
    bool wait_for(duration patience) const {
        require_operation();
        return wait_until(of_->now() + patience);
    }

    /// Waits, and returns what the blocking call would have returned, or throws what it would have thrown. Afterwards
    /// the request is of no operation.
    receipt get() {
        wait();
        const detail::shared<detail::pending> done = std::move(of_);
        return done->take();
    }

    /// Ends the operation unless it is done. No rank can leave a collective alone: all ranks of the group end with this
    /// one as the culprit, and `get` throws the same. Does not wait for the operation; over a transport where it takes
    /// messages to know whose failure was the first, it waits for that (mpi: `options::abort_patience` at most).
    void cancel() const {
        require_operation();
        of_->cancel("has cancelled it");
    }

  private:
    void require_operation() const { RILL_EXPECTS(is_valid(), "request: of no operation, or got already"); }

    bool wait_until(deadline until) const {
        require_operation();
        return of_->await(until);
    }

    void abandon() noexcept {
        if (of_ == nullptr) return;
        of_->cancel("abandoned it: its request was destroyed");
        of_->await(deadline::never);
        of_ = {};
    }

    detail::shared<detail::pending> of_;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/detail/crew.hpp

namespace rill::inline RILL_ABI::detail {

/// The workers of a group: as many as operations have ever been in flight at once.
template <class Net, class Shape, class Exec>
class crew {
  public:
    explicit crew(membership<Net, Shape, Exec>&) {}
};

template <ConcurrentTransport Net, Topology Shape, Executor Exec>
class crew<Net, Shape, Exec> {
  public:
    explicit crew(membership<Net, Shape, Exec>& of) : of_(&of) {
        of.crew = this;
        of.wait_for_room = [](void* self, std::uint64_t number) { static_cast<crew*>(self)->make_room(number); };
    }
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;
    ~crew() {
        for (const auto& each : workers_) each->end();
    }

    template <class Body>
    request start(Body&& body) {
        const operation_numbers next = of_->last.next();
        of_->make_room(next.in_context);
        const shared<member>& chosen = idle_member();
        chosen->start(next, std::forward<Body>(body));
        of_->last = next;
        return request(chosen);
    }

  private:
    using member = worker<Net, Shape, Exec>;

    void make_room(std::uint64_t number) {
        for (const auto& each : workers_)
            if (each->number() + calls_remembered / 2 <= number) each->await(deadline::never);
    }

    /// The first one without a request: those in use have worked lately, and have scratch of the right size.
    const shared<member>& idle_member() {
        for (const auto& each : workers_)
            if (each.is_only_owner() && each->is_usable()) return each;
        return workers_.emplace_back(new member(*of_));
    }

    membership<Net, Shape, Exec>* of_;
    std::vector<shared<member>> workers_;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/group.hpp

namespace rill::inline RILL_ABI {

namespace detail {
/// Made before the lane that refers to it.
template <Transport Net, Topology Shape, Executor Exec>
struct group_base {
    membership<Net, Shape, Exec> members;
};
}  // namespace detail

/// All ranks of a transport, joined for collectives over one topology. Making one is itself collective: a handshake of
/// 2 log2 P rounds compares version, topology and options, so that ranks that were built or configured differently
/// learn it at once, with the odd rank's name. Collectives on one group must be called and started in the same order on
/// all its ranks. On one rank, one activity uses it at a time.
///
/// After a failed operation every further one fails on all ranks with the same culprit: make a new group, over a
/// `subgroup` of the survivors where ranks are lost. Operations that are in flight when it is destroyed are cancelled.
/// `net` must outlive the group.
///
/// `executor` spreads this rank's own work (selection, quantisation, folds) over threads; it changes no result, and may
/// be another one on each rank.
template <Transport Net, Topology Shape, Executor Exec = serial>
class group : detail::group_base<Net, Shape, Exec>, public lane<Net, Shape, Exec> {
  public:
    explicit group(Net& net, Shape shape = {}, group_options options = {}, Exec executor = {})
        : detail::group_base<Net, Shape, Exec>{{.context = detail::open_context<Net>(net),
                                                .waits = detail::open_context<Net>(net),
                                                .shape = shape,
                                                .options = options,
                                                .executor = std::move(executor)}},
          lane<Net, Shape, Exec>(this->members),
          crew_(this->members) {
        shake_hands();
    }

    /// How many operations have been called or started. Receipts carry it and random numbers are derived from it: to
    /// resume bit for bit, save it and set it on all ranks alike, between two operations. It may go back; the numbers
    /// in errors then do not, since a rank that has not come must not be taken for one that came the first time.
    std::uint64_t operation_number() const { return this->members.last.counted; }
    void resume_at(std::uint64_t number) { this->members.last = this->members.last.resumed_at(number); }

    /// See `rill::start`.
    template <class Body>
    request start(Body&& body)
        requires ConcurrentTransport<Net>
    {
        return crew_.start(std::forward<Body>(body));
    }

  private:
    void shake_hands() {
        this->guarded({.kind = operation::handshake,
                       .options = mix64(RILL_VERSION_MAJOR * 1000 + RILL_VERSION_MINOR,
                                        rill::fingerprint(this->shape()), this->options().fingerprint())},
                      [&](exchange<Net>& call) {
                          auto& state = this->template workspace<detail::empty_state<Net>>();
                          const auto plan = topology::tree{}.all_reduce(this->size(), this->rank());
                          return detail::synchronise(call, plan, state);
                      });
    }

    detail::crew<Net, Shape, Exec> crew_;
};

template <class Net, class Shape>
group(Net&, Shape) -> group<Net, Shape>;
template <class Net, class Shape>
group(Net&, Shape, group_options) -> group<Net, Shape>;
template <class Net, class Shape, class Exec>
group(Net&, Shape, group_options, Exec) -> group<Net, Shape, Exec>;

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/operand.hpp

// From the arguments of a collective to contiguous elements, and back.

namespace rill::inline RILL_ABI::detail {

/// An argument for as long as an operation goes on: a reference to a variable, or a view by value.
template <class Argument>
class held {
  public:
    explicit held(Argument& of) : of_(std::move(of)) {}
    Argument& get() const { return of_; }

  private:
    mutable std::remove_const_t<Argument> of_;  // a call is const, what it writes through a view is not
};
template <class Argument>
class held<Argument&> {
  public:
    explicit held(Argument& of) : of_(__builtin_addressof(of)) {}  // views of xtensor overload &
    Argument& get() const { return *of_; }

  private:
    Argument* of_;
};

/// The values of an input in the order of `X`.
template <Tensor X>
class evaluated {
  public:
    explicit evaluated(const X& of) : elements_(size_of(of)) { read_tensor(of, std::span(elements_)); }
    std::span<const tensor_element<X>> elements() const { return elements_; }

  private:
    aligned_vector<tensor_element<X>> elements_;
};

/// Whether an input of an operation in the background is evaluated by its start: what is a temporary and has no memory
/// of its own. An expression may refer to other temporaries, as `f() + x` does to what f returns.
template <class In>
constexpr bool is_evaluated_at_start = false;
template <class In>
    requires(!std::is_lvalue_reference_v<In> && Tensor<In>)
constexpr bool is_evaluated_at_start<In> =
    !ViewableAs<const std::remove_reference_t<In>, std::span<const tensor_element<In>>>;

/// An input as an operation in the background is to hold it.
template <class In>
decltype(auto) lasting_input(std::remove_reference_t<In>& input) {
    if constexpr (is_evaluated_at_start<In>)
        return evaluated<std::remove_cvref_t<In>>(input);
    else
        return static_cast<In&&>(input);
}

/// Where elements lie for the time of an operation that have no contiguous place of their own; kept by a lane.
template <class T>
struct staging {
    aligned_vector<T> elements;

    std::span<T> room(std::size_t size) {
        elements.resize(size);
        return elements;
    }
};

/// The elements of an input: its own memory where it has a view, else copied or evaluated into `stage`.
template <Tensor X>
std::span<const tensor_element<X>> elements_of_input(const X& x, staging<tensor_element<X>>& stage) {
    using elements = std::span<const tensor_element<X>>;
    if constexpr (ViewableAs<const X, elements>)
        if (has_view<elements>(x)) return traits_of<X>::view(x);
    const auto room = stage.room(size_of(x));
    read_tensor(x, room);
    return room;
}

/// Where the elements of an output are to be made: in its own memory where it has a view, else in `stage`, from which
/// `deliver` takes them. An input and an output that share a stage are one operation in place.
template <OutputTensor X>
std::span<tensor_element<X>> elements_of_output(X& x, staging<tensor_element<X>>& stage) {
    using elements = std::span<tensor_element<X>>;
    if constexpr (ViewableAs<X, elements>)
        if (has_view<elements>(x)) return traits_of<X>::view(x);
    return stage.room(size_of(x));
}

template <OutputTensor X>
void deliver(std::span<const tensor_element<X>> made, X& x) {
    if (!has_view<std::span<tensor_element<X>>>(x)) write_tensor(made, x);
}

}  // namespace rill::inline RILL_ABI::detail

namespace rill::inline RILL_ABI {

template <class X>
struct tensor_traits<detail::evaluated<X>> {
    using element_type = tensor_element<X>;
    static constexpr coordinate_order order = detail::order_of<X>;
    static std::size_t size(const detail::evaluated<X>& x) { return x.elements().size(); }
    static std::span<const element_type> view(const detail::evaluated<X>& x) { return x.elements(); }
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/requirements.hpp

// What the collectives require of their arguments, and the messages that say what is missing.

namespace rill::inline RILL_ABI::detail {

template <class X>
consteval bool require_input() {
    constexpr bool met = Tensor<X>;
    static_assert(
        met,
        "rill::collective: the input is not a tensor; pass a contiguous range, rill::tensors, or a tensor of a "
        "library whose adapter you include (rill/adapt/eigen.hpp, rill/adapt/xtensor.hpp), or specialise "
        "rill::tensor_traits for its type");
    return met;
}

template <class X>
consteval bool require_output() {
    constexpr bool known = Tensor<X>;
    static_assert(
        known,
        "rill::collective: the output is not a tensor; pass a contiguous range, rill::tensors, or a tensor of "
        "a library whose adapter you include (rill/adapt/eigen.hpp, rill/adapt/xtensor.hpp), or specialise "
        "rill::tensor_traits for its type");
    if constexpr (known) {
        static_assert(OutputTensor<X>,
                      "rill::collective: the output cannot be written to, because it is const or an expression; pass a "
                      "vector, matrix, map, block or view that is not const");
        return OutputTensor<X>;
    }
    return false;
}

/// What an operation asks of its input and its output.
template <class In, class Out>
consteval bool require_tensors() {
    constexpr bool are_tensors = require_input<In>() && require_output<Out>();
    if constexpr (are_tensors) {
        constexpr bool one_element = std::same_as<tensor_element<In>, tensor_element<Out>>;
        static_assert(one_element,
                      "rill::collective: input and output have different elements; convert one of them, nothing is "
                      "converted on the way");
        static_assert(same_order<In, Out>,
                      "rill::collective: input and output number their coordinates in different orders (row-major, "
                      "column-major); assign the input to a tensor of the output's order first");
        return one_element && same_order<In, Out>;
    }
    return false;
}

/// The ladder that every front door calls before anything else: names the first requirement that is not met, and says
/// whether all are. Evaluated where it is called, so that its message comes first.
template <class T, class Fold, class Shape>
consteval bool require_foldable() {
    static_assert(Element<T>,
                  "rill::collective: this element type cannot travel; use float, double, std::int32_t or std::int64_t");
    if constexpr (Element<T>) {
        static_assert(
            !requires(const Fold& fold) { fold.bind(std::size_t{}); },
            "rill::collective: a compressor is passed that is not bound to this worker; keep what its "
            "bind(dimension) returns, and pass that");
        static_assert(Aggregator<Fold, T>,
                      "rill::collective: the aggregator does not model Aggregator for this element type (a mean of "
                      "integers?); see rill/concept/aggregator.hpp");
        if constexpr (Aggregator<Fold, T> && Topology<Shape>)
            static_assert(Fold::is_commutative || Shape::preserves_rank_order,
                          "rill::collective: the aggregator does not commute and the topology reorders ranks; use "
                          "topology::recursive_doubling, topology::split_allgather, topology::tree or topology::star");
        return Aggregator<Fold, T>;
    }
    return false;
}

/// All of the above.
template <class In, class Out, class Fold, class Shape>
consteval bool require_operation() {
    if constexpr (require_tensors<In, Out>())
        return require_foldable<tensor_element<Out>, Fold, Shape>();
    else
        return false;
}

template <class X>
constexpr bool is_stream = false;
template <class T, class Index>
constexpr bool is_stream<stream<T, Index>> = true;

/// Operands of the overloads for tensors: a pair of streams has its own.
template <class In, class Out>
concept Tensors = !(is_stream<std::remove_cvref_t<In>> && is_stream<std::remove_cvref_t<Out>>);

template <class Codec, class Out>
concept CompressorFor = Tensor<Out> && Compressor<Codec, tensor_element<Out>>;

/// What `all_reduce` with a compressor asks besides.
template <class Codec, class Shape>
consteval bool require_copy_phase() {
    constexpr bool met = Codec::has_lossless_copy || Shape::has_copy_phase;
    static_assert(met,
                  "rill::all_reduce: the compressor has a lossy copy coding and the topology has no copy phase; use "
                  "topology::split_allgather, topology::ring, topology::tree or drop the copy coding");
    return met;
}

/// What `all_reduce` with a compressor into a stream asks besides.
template <class Codec, class Index>
consteval bool require_stream_of() {
    static_assert(Codec::is_coordinatewise,
                  "rill::all_reduce: the compressor does not send coordinates of its input, so no stream can hold the "
                  "result; pass a dense output");
    constexpr bool one_index = std::same_as<Index, typename Codec::index_type>;
    static_assert(one_index,
                  "rill::all_reduce: output and compressor have different index types; bind the compressor to the "
                  "stream's");
    return Codec::is_coordinatewise && one_index;
}

/// Stands for a call whose composition has been refused.
struct no_call {
    template <class Lane>
    receipt operator()(Lane&) const {
        return {};
    }
};

/// What every non-blocking form asks of what it writes to.
template <class Out>
consteval bool require_lasting() {
    static_assert(
        is_lasting<Out>,
        "rill::start: an argument is a temporary that owns its values, which are gone before the operation is "
        "done; pass a variable or a span");
    return true;
}
/// And of what it reads.
template <class In, class Out>
consteval bool require_lasting() {
    if constexpr (!is_evaluated_at_start<In>) require_lasting<In>();
    return require_lasting<Out>();
}

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/start.hpp

namespace rill::inline RILL_ABI {

namespace detail {
template <class Net>
consteval bool require_activities() {
    static_assert(
        ConcurrentTransport<Net>,
        "rill::start: the transport does not model ConcurrentTransport, so no operation can go on without its "
        "caller; give the transport spawn, event and queue, or call the blocking form");
    return ConcurrentTransport<Net>;
}
}  // namespace detail

/// Starts the group's next operation and returns at once. `body(lane)` runs in an activity of its own: it calls one
/// collective on `lane` as it would on the group, may compute before and after it, and returns its receipt:
///
///     request r = rill::start(workers, [&](auto& lane) { return rill::all_reduce(lane, gradient, gradient); });
///
/// All ranks start their operations, and make their blocking calls, in the same order; they may complete in any,
/// several at once. What `body` throws comes out of `get`; where it throws instead of calling a collective, that is
/// this rank's failure in it. After the failure of one operation all that are in flight fail alike, naming the same
/// culprit.
///
/// It goes on without its caller where the transport's activities run alone (`activities_run_alone`). Where they share
/// the caller's thread, as over MPI below MPI_THREAD_MULTIPLE, its first messages leave at the start; afterwards it
/// goes on whenever its rank waits for anything, or looks: `test()` between two pieces of computing lets all operations
/// go on.
///
/// Cost: an activity of the transport and scratch for each operation in flight, kept for later ones; a start allocates
/// nothing when as many operations, and as large ones, have been in flight before. A start, like a
/// blocking call, waits while an operation is under way that began 32 operations before it.
template <class Group, class Body>
request start(Group& group, Body&& body) {
    if constexpr (detail::require_activities<typename Group::transport_type>()) {
        static_assert(std::is_invocable_r_v<receipt, std::decay_t<Body>&, typename Group::lane_type&>,
                      "rill::start: the body must take a lane of the group by reference and return a receipt");
        return group.start(std::forward<Body>(body));
    } else {
        return {};
    }
}

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/join_frames.hpp

namespace rill::inline RILL_ABI {

/// Where the next frame of a message begins, behind `size` bytes of frames.
template <std::unsigned_integral Size>
constexpr Size next_frame_at(Size size) {
    return (size + frame_alignment - 1) / frame_alignment * frame_alignment;
}

/// Several frames as one message, copied into `memory`.
inline byte_view join_frames(std::span<const byte_pieces> frames, arena& memory) {
    std::size_t size = 0;
    for (const byte_pieces& frame : frames) size = next_frame_at(size) + frame.size_bytes();
    const byte_span whole = memory.take(size);
    std::byte* at = whole.data();
    for (const byte_pieces& frame : frames) {
        const auto written = static_cast<std::size_t>(at - whole.data());
        at = std::fill_n(at, next_frame_at(written) - written, std::byte{0});
        for (byte_view piece : frame) at = std::copy(piece.begin(), piece.end(), at);
    }
    return whole;
}

}  // namespace rill::inline RILL_ABI

// ===== rill/core/pool.hpp

namespace rill::inline RILL_ABI {

/// Objects that are used again, in the order in which they were first taken; their addresses stay. Allocates only where
/// more of them are in use than ever before.
template <class T>
class pool {
  public:
    pool() = default;
    pool(pool&& other) noexcept : objects_(std::exchange(other.objects_, {})), taken_(std::exchange(other.taken_, 0)) {}
    pool& operator=(pool other) noexcept {
        std::swap(objects_, other.objects_);
        std::swap(taken_, other.taken_);
        return *this;
    }
    ~pool() {
        for (T* each : objects_) delete each;
    }

    /// An object as its last user left it.
    T& take() {
        if (taken_ == objects_.size()) {
            objects_.reserve(taken_ + 1);
            objects_.push_back(new T());
        }
        return *objects_[taken_++];
    }
    /// Everything that has been taken may be taken again.
    void reset() { taken_ = 0; }

  private:
    std::vector<T*> objects_;
    std::size_t taken_ = 0;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/stream_state.hpp

namespace rill::inline RILL_ABI {

/// The data of a collective on sparse or adaptive streams: consecutive blocks of parts, each a view of the input, of a
/// folded stream, or of a message that is kept until the end. Blocks are not overwritten before the result is, so no
/// send is waited for before the last round.
///
/// A message is a sequence of frames, one for each block it touches; a lone frame in raw coding is sent from where it
/// lies. In copy rounds a frame is made once, by the owner, and forwarded verbatim; where a coding is lossy, each part
/// has a frame of its own, and the owner too goes on with what the others will decode.
template <Transport Net, Element T, IndexType Index, class Fold, Executor Exec = serial>
class stream_state {
  public:
    using message = typename Net::message;
    using view = stream_view<T, Index>;

    static constexpr bool overwrites_nothing = true;

    void attach(exchange<Net>& call, const Exec& executor = {}) {
        call_ = &call;
        executor_ = executor;
    }

    void begin(const wire::header& head, int parts, const view& input, tally own, const Fold& fold,
               const stream_codings& codings, random_key key) {
        head_ = head;
        fold_ = fold;
        codings_ = codings;
        key_ = key;
        dimension_ = input.range().size();
        blocks_.clear();
        block_of_.assign(static_cast<std::size_t>(parts), 0);
        streams_.reset();
        rooms_.reset();
        memory_.reset();
        add({.parts = {0, parts}, .content = input, .what = own, .from = source::contribution});
        if (!codings.contribution.is_lossless()) code_parts({0, parts}, codings.contribution);
    }

    byte_pieces outgoing(part_range parts, action kind) {
        if (parts.count() == 0) return empty_frame();
        if (kind == action::copy && !codings_.copy.is_lossless()) code_parts(parts, codings_.copy);
        if (block_at(parts.first).parts.last >= parts.last) return frame_of(parts, kind);
        return joined_frames(parts, kind);
    }

    /// A k-way fold: whole where all operands are one block each, else part by part.
    void fold(std::span<arrival<message>> arrivals) {
        const part_range parts = arrivals.front().from.parts;
        collect_operands(arrivals, parts);
        const bool whole =
            std::all_of(operands_.begin(), operands_.end(), [&](const block& b) { return b.parts == parts; });
        if (whole) return fold_operands(parts);
        for (int p = parts.first; p < parts.last; ++p) fold_operands({p, p + 1});
    }

    void copy(std::span<arrival<message>> arrivals) {
        for (auto& a : arrivals) {
            read_frames(a, [this](const block& b) { add(b); });
            call_->keep(std::move(a.message));
        }
    }

    tally total(int part) const { return block_at(part).what; }

    /// The content of `parts`, finished, as a dense vector. It may replace the input, once nobody reads that.
    void finish(part_range parts, std::span<T> output) {
        call_->await_readers(std::as_bytes(output));
        [[maybe_unused]] const auto unpacking = named_span(call_->net(), "unpack");
        const std::size_t first = range(parts).begin;
        for_each_piece(parts, [&](const view& piece) {
            copy_dense(piece, output.subspan(piece.range().begin - first, piece.range().size()),
                       fold_.template identity<T>(), executor_);
        });
        finish_values(parts, output);
    }

    /// The content of `parts`, finished, as a stream: dense if a block of it is.
    void finish(part_range parts, stream<T, Index>& output) {
        std::size_t count = 0;
        bool dense = false;
        for_each_piece(parts, [&](const view& piece) {
            count += piece.count();
            dense = dense || piece.is_dense();
        });
        if (dense) return finish(parts, output.make_dense(range(parts)));
        [[maybe_unused]] const auto unpacking = named_span(call_->net(), "unpack");
        const auto room = output.make_sparse(range(parts), count);
        std::size_t at = 0;
        for_each_piece(parts, [&](const view& piece) {
            kernel::copy(piece.indices(), room.indices.subspan(at, piece.count()));
            kernel::copy(piece.values(), room.values.subspan(at, piece.count()));
            at += piece.count();
        });
        finish_values(parts, room.values);
    }

  private:
    enum class source : unsigned char { contribution, fold };

    struct block {
        part_range parts{};
        view content{};
        tally what{};
        source from = source::fold;
        byte_pieces frame{};  // of the whole block, where it exists already
    };

    segment range(part_range parts) const {
        return split(dimension_, block_of_.size(), static_cast<std::size_t>(parts.first),
                     static_cast<std::size_t>(parts.last));
    }
    const block& block_at(int part) const { return blocks_[block_of_[static_cast<std::size_t>(part)]]; }
    block& block_at(int part) { return blocks_[block_of_[static_cast<std::size_t>(part)]]; }

    void add(const block& b) {
        for (int p = b.parts.first; p < b.parts.last; ++p) block_of_[static_cast<std::size_t>(p)] = blocks_.size();
        blocks_.push_back(b);
    }

    block clipped(block b, part_range parts) const {
        const part_range common{std::max(b.parts.first, parts.first), std::min(b.parts.last, parts.last)};
        if (common == b.parts) return b;
        b.content = b.content.slice(range(common));
        b.parts = common;
        b.frame = {};
        return b;
    }

    template <class Visit>
    void for_each_piece(part_range parts, Visit&& visit) const {
        for (int p = parts.first; p < parts.last;) {
            const block piece = clipped(block_at(p), {p, parts.last});
            visit(piece.content);
            p = piece.parts.last;
        }
    }

    void finish_values(part_range parts, std::span<T> values) const {
        if constexpr (!Fold::finish_is_trivial) fold_.finish(values, total(parts.first).weight);
    }

    view decode(const frame& f) {
        [[maybe_unused]] const auto decoding = named_span(call_->net(), "decode");
        return content_of(f, rooms_.take(), executor_);
    }

    byte_pieces empty_frame() {
        tally{0, 0, 0}.describe(head_);
        head_.call = call_->signature().hash();
        return view_frame(head_, view(segment{}, sparse_view<T, Index>{}), memory_.take(wire::header_bytes).data());
    }

    byte_pieces new_frame(const block& b, const coding& codes) {
        b.what.describe(head_);
        head_.call = detail::frame_place::of_part(b.parts.first).in(call_->signature().hash(), b.content.range());
        if (codes.is_view()) return view_frame(head_, b.content, memory_.take(wire::header_bytes).data());
        [[maybe_unused]] const auto encoding = named_span(call_->net(), "encode");
        const random_key key = key_.derive(static_cast<std::uint64_t>(b.from), b.parts.first);
        return coded_frame(head_, b.content, codes, key, memory_, executor_);
    }

    /// The frame of the block at `parts.first`, clipped to `parts`. In copy rounds it is made once.
    byte_pieces frame_of(part_range parts, action kind) {
        block& whole = block_at(parts.first);
        if (kind == action::copy && whole.frame.count() == 0) whole.frame = new_frame(whole, codings_.copy);
        const block b = clipped(whole, parts);
        if (b.frame.count() != 0) return b.frame;
        if (kind == action::copy) return new_frame(b, codings_.copy);
        return new_frame(b, b.from == source::contribution ? codings_.contribution : codings_.partial);
    }

    byte_pieces joined_frames(part_range parts, action kind) {
        frames_.clear();
        for (int p = parts.first; p < parts.last; p = block_at(p).parts.last)
            frames_.push_back(frame_of({p, parts.last}, kind));
        return join_frames(frames_, memory_);
    }

    /// Gives each of `parts` that has none a frame of its own in a lossy coding, and as content what it decodes to.
    void code_parts(part_range parts, const coding& codes) {
        for (int p = parts.first; p < parts.last; ++p) {
            if (block_at(p).frame.count() != 0) continue;
            block b = clipped(block_at(p), {p, p + 1});
            b.frame = new_frame(b, codes);
            frame_reader reader(b.frame);
            b.content = decode(reader.next<T, Index>());
            add(b);
        }
    }

    /// Calls `take(block)` for each frame of a message.
    template <class Take>
    void read_frames(const arrival<message>& a, Take&& take) {
        frame_reader reader(a.message.pieces());
        int p = a.from.parts.first;
        const int end = a.from.parts.last;
        do {
            const auto place =
                p == a.from.parts.first ? detail::frame_place::of_part(p) : detail::frame_place::unknown();
            const frame f = next_frame<T, Index>(*call_, a.from.peer, reader, place);
            const part_range parts = covered(f.head.range, reader.done(), {p, end});
            expect_range(*call_, a.from.peer, f.head.range, range(parts));
            if (p < end)
                take(block{.parts = parts,
                           .content = read_from(*call_, a.from.peer, [&] { return decode(f); }),
                           .what = tally::of(f.head),
                           .frame = f.bytes});
            p = parts.last;
        } while (p < end);
        expect_end(*call_, a.from.peer, reader);
    }

    /// The parts that a frame over `given` covers, of the `due` ones: as few as reach its end, or, of empty parts
    /// behind the last frame, all.
    part_range covered(segment given, bool last_frame, part_range due) const {
        if (last_frame || due.count() == 0) return due;
        int last = due.first + 1;
        while (last < due.last && range({due.first, last}).end < given.end) ++last;
        return {due.first, last};
    }

    /// The blocks to be folded in ascending order of ranks, this rank's own among them.
    void collect_operands(std::span<arrival<message>> arrivals, part_range parts) {
        operands_.clear();
        const auto add_operand = [this](const block& b) { operands_.push_back(b); };
        const auto add_own = [&] {
            for (int p = parts.first; p < parts.last; p = operands_.back().parts.last)
                add_operand(clipped(block_at(p), {p, parts.last}));
        };
        const rank_t self = call_->net().rank();
        auto a = arrivals.begin();
        for (; a != arrivals.end() && a->from.peer < self; ++a) read_frames(*a, add_operand);
        add_own();
        for (; a != arrivals.end(); ++a) read_frames(*a, add_operand);
    }

    void fold_operands(part_range parts) {
        views_.clear();
        tally total{0, 0, 0};
        for (const block& operand : operands_) {
            if (!operand.parts.contains(parts.first)) continue;
            views_.push_back(clipped(operand, parts).content);
            total = total + operand.what;
        }
        stream<T, Index>& result = streams_.take();
        [[maybe_unused]] const auto folding = named_span(call_->net(), "fold");
        fold_streams(std::span<const view>(views_), result, fold_of(fold_), fold_.template identity<T>(), codings_.when,
                     scratch_, executor_);
        add({.parts = parts, .content = result.view(), .what = total});
    }

    exchange<Net>* call_ = nullptr;
    [[no_unique_address]] Exec executor_{};
    wire::header head_{};
    Fold fold_{};
    stream_codings codings_{};
    random_key key_{};
    std::size_t dimension_ = 0;
    std::vector<block> blocks_;
    std::vector<std::size_t> block_of_;
    std::vector<block> operands_;
    std::vector<view> views_;
    pool<stream<T, Index>> streams_;
    pool<frame_scratch<T, Index>> rooms_;
    std::vector<byte_pieces> frames_;
    fold_scratch<T, Index> scratch_;
    arena memory_;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/tensors.hpp

namespace rill::inline RILL_ABI {

/// Several tensors as one: their coordinates one after the other, in the order given, which must be the same on all
/// ranks. Refers to what is an lvalue, and holds everything else (spans, maps, views) itself.
///
///     rill::all_reduce(workers, rill::tensors{weights, bias}, rill::tensors{weights, bias});
///
/// One operation, one set of messages. Tensors that lie one behind the other in memory are used where they are; others
/// are copied into memory of the group and back, a pass each way. A range of tensors (`std::vector<std::span<float>>`,
/// `std::vector<Eigen::MatrixXf>`) is one tensor in the same way.
template <class... Xs>
class tensors {
  public:
    static_assert(
        (Tensor<Xs> && ...),
        "rill::tensors: an argument is not a tensor; include the adapter of its library (rill/adapt/eigen.hpp, "
        "rill/adapt/xtensor.hpp) or specialise rill::tensor_traits");

    constexpr explicit tensors(Xs... each) : each_(static_cast<Xs&&>(each)...) {}

    /// Calls visit(tensor) for each of them, in order.
    template <class Visit>
    constexpr void for_each(Visit&& visit) {
        std::apply([&](auto&... each) { (static_cast<void>(visit(each)), ...); }, each_);
    }
    template <class Visit>
    constexpr void for_each(Visit&& visit) const {
        std::apply([&](auto&... each) { (static_cast<void>(visit(each)), ...); }, each_);
    }

  private:
    std::tuple<Xs...> each_;
};

template <class... Xs>
tensors(Xs&&...) -> tensors<Xs...>;

namespace detail {

/// A range of tensors, or `tensors`, element for element.
template <class Range, class Visit>
void for_each_tensor(Range& all, Visit&& visit) {
    for (auto&& x : all) visit(x);
}
template <class... Xs, class Visit>
void for_each_tensor(tensors<Xs...>& all, Visit&& visit) {
    all.for_each(visit);
}
template <class... Xs, class Visit>
void for_each_tensor(const tensors<Xs...>& all, Visit&& visit) {
    all.for_each(visit);
}

/// The tensors in a sequence of type `S` as types, `const` where `S` gives access to `const` ones.
template <class... Xs>
struct tensor_types {
    template <class To>
    static constexpr bool viewable_as = (ViewableAs<Xs, To> && ...);
    template <class T>
    static constexpr bool all_of = (std::same_as<tensor_element<Xs>, T> && ...);
    static constexpr bool writable = (OutputTensor<Xs> && ...);
    static constexpr bool lasting = (is_lasting<Xs> && ...);
};

/// What a type that holds tensors is as one: `Types<S>` are the `tensor_types` of `S`, a type or `const` type of it.
template <class T, template <class> class Types>
struct tensor_sequence {
    using element_type = T;

    template <class S>
    static std::size_t size(const S& all) {
        std::size_t sum = 0;
        for_each_tensor(all, [&](const auto& x) { sum += size_of(x); });
        return sum;
    }

    /// Whether each begins where the one before ends; empty ones may lie anywhere.
    template <class S>
        requires(Types<S>::template viewable_as<std::span<const T>>)
    static bool is_contiguous(S& all) {
        const T* end = nullptr;
        bool together = true;
        for_each_tensor(all, [&]<class X>(X& x) {
            if (size_of(x) == 0 || !together) return;
            together = has_view<std::span<const T>>(x);
            if (!together) return;
            const std::span<const T> elements = traits_of<X>::view(x);
            together = end == nullptr || end == elements.data();
            end = elements.data() + elements.size();
        });
        return together;
    }

    template <class S>
        requires(Types<S>::template viewable_as<std::span<const T>>)
    static auto view(S& all) {
        using element = std::conditional_t<Types<S>::template viewable_as<std::span<T>>, T, const T>;
        element* first = nullptr;
        for_each_tensor(all, [&]<class X>(X& x) {
            if (first != nullptr || size_of(x) == 0) return;
            const std::span<element> elements = traits_of<X>::view(x);
            first = elements.data();
        });
        return std::span<element>(first, size(all));
    }

    template <class S>
    static void read(const S& all, std::span<T> to) {
        for_each_tensor(all, [&](const auto& x) {
            read_tensor(x, to.first(size_of(x)));
            to = to.subspan(size_of(x));
        });
    }

    template <class S>
        requires(Types<S>::writable)
    static void write(std::span<const T> from, S& all) {
        for_each_tensor(all, [&](auto& x) {
            write_tensor(from.first(size_of(x)), x);
            from = from.subspan(size_of(x));
        });
    }
};

template <class S, class X>
using held_by = std::conditional_t<
    std::is_lvalue_reference_v<X>, std::remove_reference_t<X>,
    std::conditional_t<std::is_const_v<S>, const std::remove_reference_t<X>, std::remove_reference_t<X>>>;

template <class S>
struct types_of_pack;
template <class... Xs>
struct types_of_pack<tensors<Xs...>> : tensor_types<held_by<tensors<Xs...>, Xs>...> {};
template <class... Xs>
struct types_of_pack<const tensors<Xs...>> : tensor_types<held_by<const tensors<Xs...>, Xs>...> {};

template <class R>
using in_range = std::remove_reference_t<decltype(*std::begin(std::declval<R&>()))>;
template <class R>
using types_of_range = tensor_types<in_range<R>>;

template <class R>
concept TensorRange = requires(R& range) {
    std::end(range);
    requires !std::same_as<std::remove_cv_t<in_range<R>>, R>;
    requires Tensor<in_range<R>>;
};

}  // namespace detail

template <class X, class... Xs>
    requires(detail::tensor_types<X, Xs...>::template all_of<tensor_element<X>>)
struct tensor_traits<tensors<X, Xs...>> : detail::tensor_sequence<tensor_element<X>, detail::types_of_pack> {
    static constexpr bool is_view = detail::tensor_types<X, Xs...>::lasting;
};

template <detail::TensorRange R>
struct tensor_traits<R> : detail::tensor_sequence<tensor_element<detail::in_range<R>>, detail::types_of_range> {
    static constexpr bool is_view = detail::is_lasting<std::remove_cv_t<detail::in_range<R>>>;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/front.hpp

// What the front doors of the collectives share: arguments, signatures, the running of a schedule.
//
// Each overload has one `<collective>_call(group, arguments...)`: it checks the arguments and returns a callable that
// runs the collective on a lane. The blocking form calls it on the group, the non-blocking form starts it.

namespace rill::inline RILL_ABI::detail {

/// What stands behind a result to which every rank of the group contributes once.
template <class Group>
tally all_of(const Group& group) {
    return {static_cast<double>(group.size()), static_cast<std::uint32_t>(group.size()), 0};
}

/// The states of a lane's operations.
template <class Lane, class T, class Fold>
using dense_state_of = dense_state<typename Lane::transport_type, T, Fold, typename Lane::executor_type>;
template <class Lane, class T, class Index, class Fold>
using stream_state_of = stream_state<typename Lane::transport_type, T, Index, Fold, typename Lane::executor_type>;

/// The memory of a lane for elements that have no contiguous place of their own.
template <class T, class Lane>
staging<T>& stage_of(Lane& lane) {
    return lane.template workspace<staging<T>>();
}

/// What this rank holds of N elements that are split between the ranks.
template <class Group>
segment part_of(const Group& group, std::size_t count) {
    return split(count, static_cast<std::size_t>(group.size()), static_cast<std::size_t>(group.rank()));
}

inline void require_weight(const contribution& own) {
    RILL_EXPECTS(is_finite(own.weight) && own.weight >= 0, "a contribution's weight is finite and not negative");
}

template <class T, class Fold>
call_signature signature_of(operation kind, std::size_t dimension, const Fold& fold, std::uint8_t index_bytes = 0,
                            std::uint64_t more = 0) {
    return {.kind = kind,
            .element = element_type_of<T>,
            .index_bytes = index_bytes,
            .dimension = dimension,
            .options = mix64(fingerprint(fold), more)};
}

/// Runs a schedule on a state as the lane's next operation: `begin(call)` fills the state, `end(receipt)` takes the
/// result out of it.
template <class Lane, class State, class Plan, class Begin, class End>
receipt run_schedule(Lane& lane, const call_signature& signature, const Plan& plan, State& state, Begin&& begin,
                     End&& end) {
    return lane.run(signature, [&](auto& call) {
        if constexpr (requires { state.attach(call, lane.executor()); })
            state.attach(call, lane.executor());
        else
            state.attach(call);
        begin(head_of(call));
        execute(call, plan, state);
        receipt result{.rounds = rounds_of(plan)};
        end(result);
        return result;
    });
}

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/gather_state.hpp

namespace rill::inline RILL_ABI {

/// The data of a concatenating gather of sparse streams: one frame per rank, made once and forwarded verbatim.
template <Transport Net, Element T, IndexType Index>
class gather_state {
  public:
    using message = typename Net::message;
    using view = stream_view<T, Index>;

    static constexpr bool overwrites_nothing = true;

    void attach(exchange<Net>& call) { call_ = &call; }

    void begin(wire::header head, const view& own, const coding& codes, random_key key) {
        whole_ = own.range();
        memory_.reset();
        const auto ranks = static_cast<std::size_t>(call_->net().size());
        frames_.assign(ranks, byte_pieces{});
        contents_.assign(ranks, sparse_view<T, Index>{});
        decoded_.resize(std::max(decoded_.size(), ranks));
        tally{}.describe(head);
        const rank_t self = call_->net().rank();
        head.call = detail::frame_place::of_rank(self).in(head.call, own.range());
        frame_at(self) = codes.is_view() ? view_frame(head, own, memory_.take(wire::header_bytes).data())
                                         : byte_pieces(coded_frame(head, own, codes, key, memory_));
        frame_reader reader(frame_at(self));
        take(self, reader.next<T, Index>());
    }

    byte_pieces outgoing(part_range ranks, action) {
        if (ranks.count() == 1) return frame_at(ranks.first);
        return join_frames(std::span<const byte_pieces>(frames_).subspan(static_cast<std::size_t>(ranks.first),
                                                                         static_cast<std::size_t>(ranks.count())),
                           memory_);
    }

    void fold(std::span<arrival<message>>) {}

    void copy(std::span<arrival<message>> arrivals) {
        for (auto& a : arrivals) {
            frame_reader reader(a.message.pieces());
            for (rank_t r = a.from.parts.first; r < a.from.parts.last; ++r) {
                const frame f = next_frame<T, Index>(*call_, a.from.peer, reader, detail::frame_place::of_rank(r));
                expect_range(*call_, a.from.peer, f.head.range, whole_);
                take(r, f);
            }
            expect_end(*call_, a.from.peer, reader);
            call_->keep(std::move(a.message));
        }
    }

    /// The union of all contributions; throws `invalid_value` where two ranks gave the same coordinate.
    void finish(stream<T, Index>& output) {
        std::size_t total = 0;
        for (const auto& content : contents_) total += content.count();
        const auto room = output.make_sparse(whole_, total);
        const std::size_t count = kernel::merge_k(
            std::span<const sparse_view<T, Index>>(contents_), room.indices, room.values, [](T a, T) { return a; },
            scratch_);
        if (count != total) refuse_duplicate();
    }

  private:
    byte_pieces& frame_at(rank_t rank) { return frames_[static_cast<std::size_t>(rank)]; }

    void take(rank_t rank, const frame& f) {
        const view content =
            read_from(*call_, rank, [&] { return content_of(f, decoded_[static_cast<std::size_t>(rank)]); });
        if (content.is_dense())
            call_->fail(failure::protocol, rank, no_rank,
                        "rank " + std::to_string(rank) + " contributed a dense stream");
        contents_[static_cast<std::size_t>(rank)] = content.pairs();
        frame_at(rank) = f.bytes;
    }

    [[noreturn]] void refuse_duplicate() const {
        for (std::size_t a = 0; a < contents_.size(); ++a)
            for (std::size_t b = a + 1; b < contents_.size(); ++b)
                for (Index i : contents_[a].indices)
                    if (std::binary_search(contents_[b].indices.begin(), contents_[b].indices.end(), i))
                        call_->fail(failure::invalid_value, static_cast<rank_t>(b), static_cast<rank_t>(a),
                                    "coordinate " + std::to_string(i) + " is contributed by rank " + std::to_string(a) +
                                        " and by rank " + std::to_string(b));
        throw protocol_error("all_gather: inconsistent union");
    }

    exchange<Net>* call_ = nullptr;
    segment whole_{};
    std::vector<byte_pieces> frames_;
    std::vector<sparse_view<T, Index>> contents_;
    std::vector<frame_scratch<T, Index>> decoded_;
    kernel::merge_scratch scratch_;
    arena memory_;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/all_gather.hpp

namespace rill::inline RILL_ABI {

namespace detail {
/// Puts the input at its place in the output's elements.
template <class In, class Out, class T>
void place_input(const In& input, Out& output, std::span<T> at, staging<T>& stage) {
    if (!has_view<std::span<T>>(output)) return read_tensor(input, at);
    const std::span<const T> mine = elements_of_input(input, stage);  // an expression may read what lies at its place
    if (at.data() != mine.data()) std::copy(mine.begin(), mine.end(), at.begin());
}

template <class Lane, class In, class Out>
receipt all_gather_dense(Lane& lane, const In& input, Out& output) {
    using T = tensor_element<Out>;
    auto& stage = stage_of<T>(lane);
    auto& state = lane.template workspace<dense_state_of<Lane, T, aggregate::sum>>();
    const std::size_t size = size_of(output);
    const auto plan = in_chunks(lane.net(), lane.shape().all_gather(lane.size(), lane.rank()), size * sizeof(T));
    const auto chunks = static_cast<std::uint64_t>(plan.chunks());
    const segment place = part_of(lane, size);
    std::span<T> all;
    return run_schedule(
        lane, signature_of<T>(operation::all_gather, size, aggregate::sum{}, 0, chunks), plan, state,
        [&](const wire::header& head) {
            all = elements_of_output(output, stage);
            place_input(input, output, all.subspan(place.begin, place.size()), stage);
            state.begin(head, plan.parts(), std::span<const T>(all), all, tally{}, aggregate::sum{}, plan.chunks());
        },
        [&](receipt& result) {
            tally total{0, 0, 0};
            for (int part = 0; part < plan.parts(); part += plan.chunks()) total = total + state.total(part);
            total.describe(result);
            deliver(all, output);
        });
}

template <class Lane, class T, class Index>
receipt all_gather_stream(Lane& lane, const stream<T, Index>& input, stream<T, Index>& output, const coding& codes) {
    auto& state = lane.template workspace<gather_state<typename Lane::transport_type, T, Index>>();
    const auto plan = lane.shape().all_gather(lane.size(), lane.rank());
    const auto signature = signature_of<T>(operation::all_gather, input.dimension(), aggregate::sum{},
                                           std::uint8_t{sizeof(Index)}, codes.fingerprint());
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) { state.begin(head, input.view(), codes, lane.key()); },
        [&](receipt& result) {
            all_of(lane).describe(result);
            state.finish(output);
        });
}

template <class Group, class In, class Out>
    requires Tensors<In, Out>
auto all_gather_call(const Group& group, In&& in, Out&& out) {
    if constexpr (require_operation<In, Out, aggregate::sum, typename Group::topology_type>()) {
        RILL_EXPECTS(size_of(in) == part_of(group, size_of(out)).size(),
                     "all_gather: the input must have the size of this rank's part");
        return [input = held<In>(in), output = held<Out>(out)](typename Group::lane_type& lane) {
            return all_gather_dense(lane, input.get(), output.get());
        };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index>
auto all_gather_call(const Group&, const stream<T, Index>& input, stream<T, Index>& output, const coding& codes = {}) {
    RILL_EXPECTS(&input != &output, "all_gather: a stream cannot be its own output");
    RILL_EXPECTS(!input.is_dense(), "all_gather: a dense stream shares coordinates with every other");
    return
        [=, &input, &output](typename Group::lane_type& lane) { return all_gather_stream(lane, input, output, codes); };
}
}  // namespace detail

/// Gives every rank the parts of all ranks, in the order of ranks.
///
/// `input`: part `split(N, P, rank)` of the result, N = size of the output; it may lie at its place in the output.
/// Rounds and bytes are the topology's. Errors as in `all_reduce`.
template <class Group, class In, class Out>
    requires detail::Tensors<In, Out>
receipt all_gather(Group& group, const In& input, Out&& output) {
    return detail::all_gather_call(group, input, output)(group);
}

/// Concatenates sparse streams over one dimension whose coordinates are disjoint (SparCML's sparse allgather, as in
/// block coordinate descent): every rank gets their union. Two ranks that give the same coordinate are an
/// `invalid_value` on every rank, naming it. Each contribution is coded once.
template <class Group, Element T, IndexType Index>
receipt all_gather(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const coding& codes = {}) {
    return detail::all_gather_call(group, input, output, codes)(group);
}

/// Both in the background; see `start_all_reduce`.
template <class Group, class In, class Out>
    requires detail::Tensors<In, Out>
request start_all_gather(Group& group, In&& input, Out&& output) {
    static_assert(detail::require_lasting<In, Out>());
    return start(group, detail::all_gather_call(group, detail::lasting_input<In>(input), std::forward<Out>(output)));
}
template <class Group, Element T, IndexType Index>
request start_all_gather(Group& group, const stream<T, Index>& input, stream<T, Index>& output,
                         const coding& codes = {}) {
    return start(group, detail::all_gather_call(group, input, output, codes));
}

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/all_reduce.hpp

namespace rill::inline RILL_ABI {

/// Takes every result.
struct accept_any {
    constexpr bool operator()(const receipt&) const { return true; }
};

namespace detail {
template <class Lane, class In, class Out, class Plan, class Fold>
receipt all_reduce_fused(Lane& lane, const call_signature& signature, const Plan& plan, const In& input, Out& output,
                         const Fold& fold, const contribution& own) {
    using T = tensor_element<Out>;
    auto& stage = stage_of<T>(lane);
    using Net = typename Lane::transport_type;
    auto& state = lane.template workspace<fused_state<Net, T, Fold, typename Lane::executor_type>>();
    return lane.run(
        signature,
        [&](auto& call) {
            std::span<const T> contributed;
            if (own.weight != 0) contributed = elements_of_input(input, stage);
            const std::span<T> result = elements_of_output(output, stage);
            state.begin(call, lane.commons(), contributed, result, tally::of(own), fold);
            receipt done{.rounds = rounds_of(plan)};
            state.run(lane.executor()).describe(done);
            state.count();
            deliver(result, output);
            return done;
        },
        true);
}

template <class Lane, class In, class Out, class Fold>
receipt all_reduce_dense(Lane& lane, const In& input, Out& output, const Fold& fold, const contribution& own) {
    using T = tensor_element<Out>;
    const std::size_t size = size_of(output);
    const auto plan = in_chunks(lane.net(), lane.shape().all_reduce(lane.size(), lane.rank()), size * sizeof(T));
    const auto chunks = static_cast<std::uint64_t>(plan.chunks());
    const call_signature signature = signature_of<T>(operation::all_reduce, size, fold, 0, chunks);
    if constexpr (is_fused<typename Lane::transport_type, typename Lane::topology_type>)
        if (lane.size() > 1) return all_reduce_fused(lane, signature, plan, input, output, fold, own);
    auto& stage = stage_of<T>(lane);
    auto& state = lane.template workspace<dense_state_of<Lane, T, Fold>>();
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            std::span<const T> contributed;
            if (own.weight != 0) contributed = elements_of_input(input, stage);
            state.begin(head, plan.parts(), contributed, elements_of_output(output, stage), tally::of(own), fold,
                        plan.chunks());
        },
        [&](receipt& result) {
            state.total(0).describe(result);
            deliver(state.finish({0, plan.parts()}), output);
        });
}

/// Inside the operation, so that its failure is every rank's, `contribute()` gives the input as a view, and
/// `take(state, parts)` takes the result.
template <IndexType Index, class T, class Lane, class Contribute, class Take, class Fold>
receipt all_reduce_stream(Lane& lane, std::size_t dimension, Contribute&& contribute, Take&& take, const Fold& fold,
                          const stream_codings& codings, const contribution& own) {
    auto& state = lane.template workspace<stream_state_of<Lane, T, Index, Fold>>();
    const auto plan = lane.shape().all_reduce(lane.size(), lane.rank());
    const auto signature =
        signature_of<T>(operation::all_reduce, dimension, fold, std::uint8_t{sizeof(Index)}, codings.fingerprint());
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            const stream_view<T, Index> nothing({0, dimension}, sparse_view<T, Index>{});
            state.begin(head, plan.parts(), own.weight == 0 ? nothing : contribute(), tally::of(own), fold, codings,
                        lane.key());
        },
        [&](receipt& result) {
            state.total(0).describe(result);
            take(state, part_range{0, plan.parts()});
        });
}

/// Commits what a codec sent when the operation has succeeded, and gives it back when it has not.
template <class Codec>
class transaction {
  public:
    explicit transaction(Codec& codec) : codec_(codec) {}
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;
    ~transaction() {
        if (!committed_) codec_.rollback();
    }
    void commit() {
        codec_.commit();
        committed_ = true;
    }

  private:
    Codec& codec_;
    bool committed_ = false;
};

/// `take(state, parts)` takes the fold of what the codecs sent.
template <class T, class Lane, class In, class Take, class Codec, class Fold, class Accept>
receipt all_reduce_taken(Lane& lane, const In& input, Take&& take, Codec& codec, const Fold& fold,
                         const contribution& own, const Accept& accept) {
    transaction attempt(codec);
    codec.begin(lane.next_number());
    const auto contribute = [&] {
        [[maybe_unused]] const auto selecting = named_span(lane.net(), "select");
        return encode_with(codec, elements_of_input(input, stage_of<T>(lane)), lane.executor());
    };
    const receipt done = all_reduce_stream<typename Codec::index_type, T>(lane, codec.coded_dimension(), contribute,
                                                                          take, fold, codec.codings(), own);
    if (accept(done)) attempt.commit();
    return done;
}

template <class Lane, class In, class Out, class Codec, class Fold, class Accept>
receipt all_reduce_coded(Lane& lane, const In& input, Out& output, Codec& codec, const Fold& fold,
                         const contribution& own, const Accept& accept) {
    using T = tensor_element<Out>;
    auto& stage = stage_of<T>(lane);
    const auto take = [&](auto& state, part_range parts) {
        const std::span<T> result = elements_of_output(output, stage);
        if constexpr (Codec::is_coordinatewise) {
            state.finish(parts, result);
        } else {
            auto& folded = lane.template workspace<aligned_vector<T>>();
            folded.resize(codec.coded_dimension());
            state.finish(parts, std::span<T>(folded));
            codec.decode(std::span<const T>(folded), result);
        }
        deliver(result, output);
    };
    return all_reduce_taken<T>(lane, input, take, codec, fold, own, accept);
}

template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires(Tensors<In, Out> && !CompressorFor<Fold, Out>)
auto all_reduce_call(const Group&, In&& in, Out&& out, const Fold& fold = {}, const contribution& own = {}) {
    if constexpr (require_operation<In, Out, Fold, typename Group::topology_type>()) {
        require_weight(own);
        RILL_EXPECTS(size_of(in) == size_of(out) || own.weight == 0,
                     "all_reduce: input and output must be of one size");
        return [=, input = held<In>(in), output = held<Out>(out)](typename Group::lane_type& lane) {
            return all_reduce_dense(lane, input.get(), output.get(), fold, own);
        };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
auto all_reduce_call(const Group&, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                     const stream_codings& codings = {}, const contribution& own = {}) {
    if constexpr (require_foldable<T, Fold, typename Group::topology_type>()) {
        require_weight(own);
        RILL_EXPECTS(&input != &output, "all_reduce: a stream cannot be its own output");
        RILL_EXPECTS(Group::topology_type::has_copy_phase || codings.copy.is_lossless(),
                     "all_reduce: this topology has no copy phase, so nothing can be coded there");
        return [=, &input, &output](typename Group::lane_type& lane) {
            return all_reduce_stream<Index, T>(
                lane, input.dimension(), [&] { return input.view(); },
                [&](auto& state, part_range parts) { state.finish(parts, output); }, fold, codings, own);
        };
    } else {
        return no_call{};
    }
}

template <class Group, class In, class Out, class Codec, class Fold = aggregate::sum, class Accept = accept_any>
    requires CompressorFor<Codec, Out>
auto all_reduce_call(const Group& group, In&& in, Out&& out, Codec& codec, const Fold& fold = {},
                     const contribution& own = {}, const Accept& accept = {}) {
    using Shape = typename Group::topology_type;
    if constexpr (require_operation<In, Out, Fold, Shape>() && require_copy_phase<Codec, Shape>()) {
        require_weight(own);
        RILL_EXPECTS(size_of(in) == codec.dimension(), "all_reduce: the compressor is bound to another dimension");
        RILL_EXPECTS(size_of(out) == size_of(in), "all_reduce: input and output must be of one size");
        auto loan = group.lend(&codec, "all_reduce: the compressor is in another operation, which has not ended");
        return [=, input = held<In>(in), output = held<Out>(out), &codec,
                loan = std::move(loan)](typename Group::lane_type& lane) {
            return all_reduce_coded(lane, input.get(), output.get(), codec, fold, own, accept);
        };
    } else {
        return no_call{};
    }
}

template <class Group, class In, Element T, IndexType Index, class Codec, class Fold = aggregate::sum,
          class Accept = accept_any>
    requires CompressorFor<Codec, std::span<T>>
auto all_reduce_call(const Group& group, In&& in, stream<T, Index>& output, Codec& codec, const Fold& fold = {},
                     const contribution& own = {}, const Accept& accept = {}) {
    using Shape = typename Group::topology_type;
    if constexpr (require_operation<In, std::span<T>, Fold, Shape>() && require_copy_phase<Codec, Shape>() &&
                  require_stream_of<Codec, Index>()) {
        require_weight(own);
        RILL_EXPECTS(size_of(in) == codec.dimension(), "all_reduce: the compressor is bound to another dimension");
        auto loan = group.lend(&codec, "all_reduce: the compressor is in another operation, which has not ended");
        return [=, input = held<In>(in), &output, &codec, loan = std::move(loan)](typename Group::lane_type& lane) {
            return all_reduce_taken<T>(
                lane, input.get(), [&](auto& state, part_range parts) { state.finish(parts, output); }, codec, fold,
                own, accept);
        };
    } else {
        return no_call{};
    }
}
}  // namespace detail

/// Folds the contributions of all ranks, coordinate by coordinate, and gives every rank the result, bit for bit the
/// same.
///
/// `input`, `output`: tensors of N elements: contiguous ranges, what an adapter knows, `tensors`; the same memory or
/// none in common. An input without a view of its memory (an expression, a strided block) is evaluated into memory of
/// the group, an output without one is made there and then copied. Rounds, messages and bytes are the topology's. Where
/// ranks reach each other's memory (`SharedMemoryTransport`) and the topology `folds_at_owners`, nothing is sent: one
/// pass over all inputs and outputs gives the same bits, and each access counts as a message of the topology's.
/// Deterministic: on any transport the bits depend on topology, ranks and inputs alone. Errors: `mismatch`, `timeout`,
/// `peer_failure`, `invalid_value`, on every rank and naming the culprit; `input` is unchanged (lost where it is also
/// the output), `output` unspecified.
template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires(detail::Tensors<In, Out> && !detail::CompressorFor<Fold, Out>)
receipt all_reduce(Group& group, const In& input, Out&& output, const Fold& fold = {}, const contribution& own = {}) {
    return detail::all_reduce_call(group, input, output, fold, own)(group);
}

/// The same on streams: the result is sparse until a fold finds the dense form to be the smaller one (`codings.when`).
/// SSAR_Recursive_double, SSAR_Split_allgather and the sparse ring of SparCML (section 5.3) are this with
/// `recursive_doubling`, `split_allgather`, `ring`; DSAR_Split_allgather is `split_allgather` with a lossy
/// `codings.copy`.
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
receipt all_reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                   const stream_codings& codings = {}, const contribution& own = {}) {
    return detail::all_reduce_call(group, input, output, fold, codings, own)(group);
}

/// The same with a compressor bound to this worker: contributes what `codec` makes of `input`. Its state (the residual
/// of error feedback) advances only if the operation succeeds with this rank's contribution in it.
/// `accept(receipt)` may refuse the result as a whole, the same on all ranks: then the contribution returns to the
/// codec.
template <class Group, class In, class Out, class Codec, class Fold = aggregate::sum, class Accept = accept_any>
    requires detail::CompressorFor<Codec, Out>
receipt all_reduce(Group& group, const In& input, Out&& output, Codec& codec, const Fold& fold = {},
                   const contribution& own = {}, const Accept& accept = {}) {
    return detail::all_reduce_call(group, input, output, codec, fold, own, accept)(group);
}

/// The same into a stream, for who goes on with what is there and not with N coordinates: sparse until a fold has found
/// the dense form to be the smaller one, so that a result of few entries costs no pass over all of them. Needs a codec
/// whose coordinates are those of its input.
template <class Group, class In, Element T, IndexType Index, class Codec, class Fold = aggregate::sum,
          class Accept = accept_any>
    requires detail::CompressorFor<Codec, std::span<T>>
receipt all_reduce(Group& group, const In& input, stream<T, Index>& output, Codec& codec, const Fold& fold = {},
                   const contribution& own = {}, const Accept& accept = {}) {
    return detail::all_reduce_call(group, input, output, codec, fold, own, accept)(group);
}

/// All four in the background, with the same arguments. Policies are copied, and so are views that are temporaries
/// (spans, maps, blocks, `tensors`); what they refer to, streams and the compressor must stay until the operation is
/// done. An input that is a temporary without memory of its own (an expression) is evaluated by the start, into memory
/// that it allocates. A compressor serves one operation at a time (checked).
///
/// Broken contracts are thrown by the start itself, before anything is sent; all other errors by the request's `get`.
template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires(detail::Tensors<In, Out> && !detail::CompressorFor<Fold, Out>)
request start_all_reduce(Group& group, In&& input, Out&& output, const Fold& fold = {}, const contribution& own = {}) {
    static_assert(detail::require_lasting<In, Out>());
    return start(
        group, detail::all_reduce_call(group, detail::lasting_input<In>(input), std::forward<Out>(output), fold, own));
}
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
request start_all_reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                         const stream_codings& codings = {}, const contribution& own = {}) {
    return start(group, detail::all_reduce_call(group, input, output, fold, codings, own));
}
template <class Group, class In, class Out, class Codec, class Fold = aggregate::sum, class Accept = accept_any>
    requires detail::CompressorFor<Codec, Out>
request start_all_reduce(Group& group, In&& input, Out&& output, Codec& codec, const Fold& fold = {},
                         const contribution& own = {}, const Accept& accept = {}) {
    static_assert(detail::require_lasting<In, Out>());
    return start(group, detail::all_reduce_call(group, detail::lasting_input<In>(input), std::forward<Out>(output),
                                                codec, fold, own, accept));
}
template <class Group, class In, Element T, IndexType Index, class Codec, class Fold = aggregate::sum,
          class Accept = accept_any>
    requires detail::CompressorFor<Codec, std::span<T>>
request start_all_reduce(Group& group, In&& input, stream<T, Index>& output, Codec& codec, const Fold& fold = {},
                         const contribution& own = {}, const Accept& accept = {}) {
    static_assert(detail::require_lasting<In, stream<T, Index>&>());
    return start(group,
                 detail::all_reduce_call(group, detail::lasting_input<In>(input), output, codec, fold, own, accept));
}

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/barrier.hpp

namespace rill::inline RILL_ABI {

namespace detail {
template <class Group>
auto barrier_call(const Group&) {
    return [](typename Group::lane_type& lane) {
        const auto plan = lane.shape().all_reduce(lane.size(), lane.rank());
        auto& state = lane.template workspace<empty_state<typename Group::transport_type>>();
        return lane.run({.kind = operation::barrier}, [&](auto& call) { return synchronise(call, plan, state); });
    };
}
}  // namespace detail

/// Returns when all ranks have called it. Costs the rounds of the topology's `all_reduce`, with frames of headers only.
template <class Group>
receipt barrier(Group& group) {
    return detail::barrier_call(group)(group);
}

/// The same, in the background: done when all ranks have started it.
template <class Group>
request start_barrier(Group& group) {
    return start(group, detail::barrier_call(group));
}

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/rooted.hpp

namespace rill::inline RILL_ABI::detail {

/// The topology of rooted operations: the group's own where it has a root, else a binary tree.
template <class Shape>
constexpr auto rooted(const Shape& shape) {
    if constexpr (RootedTopology<Shape>)
        return shape;
    else
        return topology::tree{};
}

template <class Group>
void require_root(const Group& group, rank_t root) {
    RILL_EXPECTS(0 <= root && root < group.size(), "the root must be a rank of the group");
}

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/broadcast.hpp

namespace rill::inline RILL_ABI {

namespace detail {
template <class Lane, class Data>
receipt broadcast_dense(Lane& lane, Data& data, rank_t root) {
    using T = tensor_element<Data>;
    auto& stage = stage_of<T>(lane);
    auto& state = lane.template workspace<dense_state_of<Lane, T, aggregate::sum>>();
    const auto plan = rooted(lane.shape()).broadcast(lane.size(), lane.rank(), root);
    const auto signature =
        signature_of<T>(operation::broadcast, size_of(data), aggregate::sum{}, 0, static_cast<std::uint64_t>(root));
    const bool is_root = lane.rank() == root;
    std::span<T> values;
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            values = elements_of_output(data, stage);
            if (is_root && !has_view<std::span<T>>(data)) read_tensor(data, values);
            state.begin(head, plan.parts(), std::span<const T>(values), values, tally{}, aggregate::sum{});
        },
        [&](receipt& result) {
            tally{}.describe(result);
            if (!is_root) deliver(values, data);
        });
}

template <class Lane, class T, class Index>
receipt broadcast_stream(Lane& lane, stream<T, Index>& data, rank_t root, const coding& codes) {
    auto& state = lane.template workspace<stream_state_of<Lane, T, Index, aggregate::sum>>();
    const auto plan = rooted(lane.shape()).broadcast(lane.size(), lane.rank(), root);
    const stream_codings codings{.copy = codes};
    const auto signature =
        signature_of<T>(operation::broadcast, data.dimension(), aggregate::sum{}, std::uint8_t{sizeof(Index)},
                        mix64(codings.fingerprint(), static_cast<std::uint64_t>(root)));
    const stream_view<T, Index> nothing(data.range(), sparse_view<T, Index>{});
    const bool is_root = lane.rank() == root;
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), is_root ? data.view() : nothing, tally{}, aggregate::sum{}, codings,
                        lane.key());
        },
        [&](receipt& result) {
            tally{}.describe(result);
            if (is_root && codes.is_lossless()) return;
            auto& received = lane.template workspace<stream<T, Index>>();
            state.finish({0, plan.parts()}, received);
            data.assign(received.view());
        });
}

template <class Group, class Data>
auto broadcast_call(const Group& group, Data&& data, rank_t root) {
    if constexpr (require_operation<Data, Data, aggregate::sum, typename Group::topology_type>()) {
        require_root(group, root);
        return [root, data = held<Data>(data)](typename Group::lane_type& lane) {
            return broadcast_dense(lane, data.get(), root);
        };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index>
auto broadcast_call(const Group& group, stream<T, Index>& data, rank_t root, const coding& codes = {}) {
    require_root(group, root);
    return [=, &data](typename Group::lane_type& lane) { return broadcast_stream(lane, data, root, codes); };
}
}  // namespace detail

/// Copies `data` of `root` to all ranks. The root sends when all ranks have entered, so that a rank that calls
/// something else is an error on every rank. Runs on the group's topology where it has a root, else on a binary tree.
///
/// `data`: N elements; on other ranks than the root what it held is lost, also on failure. Errors as in `all_reduce`.
template <class Group, class Data>
receipt broadcast(Group& group, Data&& data, rank_t root) {
    return detail::broadcast_call(group, data, root)(group);
}

/// The same for a stream, sparse or dense; on other ranks `data` needs only the dimension.
template <class Group, Element T, IndexType Index>
receipt broadcast(Group& group, stream<T, Index>& data, rank_t root, const coding& codes = {}) {
    return detail::broadcast_call(group, data, root, codes)(group);
}

/// Both in the background; see `start_all_reduce`.
template <class Group, class Data>
request start_broadcast(Group& group, Data&& data, rank_t root) {
    static_assert(detail::require_lasting<Data>());
    return start(group, detail::broadcast_call(group, std::forward<Data>(data), root));
}
template <class Group, Element T, IndexType Index>
request start_broadcast(Group& group, stream<T, Index>& data, rank_t root, const coding& codes = {}) {
    return start(group, detail::broadcast_call(group, data, root, codes));
}

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/bucket_plan.hpp

namespace rill::inline RILL_ABI {

/// Neighbouring tensors that are exchanged together.
struct bucket {
    segment tensors{};   ///< by number
    segment elements{};  ///< of all tensors one behind the other

    friend bool operator==(const bucket&, const bucket&) = default;
};

/// Which tensors share a bucket: made by `fusion`, or by hand from the last tensor to the first.
class bucket_plan {
  public:
    bucket_plan() = default;
    /// A plan of tensors of these sizes that are in no bucket yet.
    explicit bucket_plan(std::span<const std::size_t> sizes) {
        begins_.reserve(sizes.size() + 1);
        for (const std::size_t size : sizes) begins_.push_back(begins_.back() + size);
    }

    void begin_bucket() { buckets_.push_back({{next(), next()}, {begins_[next()], begins_[next()]}}); }
    /// Adds a tensor to the last bucket; it must be the one before those that are in buckets.
    void put_before(std::size_t tensor) {
        RILL_EXPECTS(!buckets_.empty() && tensor + 1 == next(), "bucket_plan: from the last tensor to the first");
        buckets_.back().tensors.begin = tensor;
        buckets_.back().elements.begin = begins_[tensor];
        bucket_of_.push_back(buckets_.size() - 1);
    }

    /// In the order in which they are exchanged: that of the last tensors first.
    std::span<const bucket> buckets() const { return buckets_; }
    std::size_t tensors() const { return begins_.size() - 1; }
    /// Elements of all tensors.
    std::size_t dimension() const { return begins_.back(); }
    std::size_t bucket_of(std::size_t tensor) const { return bucket_of_[tensors() - 1 - tensor]; }

    /// By which ranks compare theirs.
    std::uint64_t fingerprint() const {
        std::uint64_t hash = mix64(tensors(), buckets_.size());
        for (const bucket& each : buckets_)
            hash = mix64(hash, each.tensors.begin, each.elements.begin, each.elements.end);
        return hash;
    }
    friend bool operator==(const bucket_plan&, const bucket_plan&) = default;

  private:
    /// One above the highest tensor that is in no bucket.
    std::size_t next() const { return tensors() - bucket_of_.size(); }

    std::vector<std::size_t> begins_{0};
    std::vector<bucket> buckets_;
    std::vector<std::size_t> bucket_of_;  ///< from the last tensor to the first
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/bucket_exchange.hpp

namespace rill::inline RILL_ABI {

namespace detail {

/// Kept by the group, so that an exchange like the last one allocates nothing.
struct bucket_scratch {
    std::vector<std::size_t> missing;  ///< tensors of each bucket that are not ready
    std::vector<request> requests;     ///< of the buckets that are under way
};

}  // namespace detail

/// Several tensors under way, bucket by bucket: each bucket's operation starts as soon as its tensors are ready, and
/// the exchange of one bucket goes on while the tensors of the next are computed.
///
/// `start(i)` starts the operation of bucket i and returns its request. Buckets start in their order, whatever the
/// order in which tensors become ready: so all ranks start the same operations. One exchange at a time on a group; no
/// other operation on it from the first `ready` to `finish`. Where it is destroyed before `finish`, what is under way
/// is cancelled.
///
/// Where activities do not run alone (`rill::mpi` below MPI_THREAD_MULTIPLE) each `ready` also lets those under way go
/// on: they overlap with what is computed as far as the library below sends and receives by itself meanwhile.
template <class Group, class Start>
class bucket_exchange {
  public:
    bucket_exchange(Group& group, const bucket_plan& plan, Start start)
        : group_(group),
          plan_(plan),
          start_(std::move(start)),
          scratch_(group.template workspace<detail::bucket_scratch>()) {
        scratch_.missing.clear();
        for (const bucket& each : plan.buckets()) scratch_.missing.push_back(each.tensors.size());
        scratch_.requests.reserve(plan.buckets().size());
    }
    bucket_exchange(const bucket_exchange&) = delete;
    bucket_exchange& operator=(const bucket_exchange&) = delete;
    ~bucket_exchange() { scratch_.requests.clear(); }

    /// Each tensor once.
    void ready(std::size_t tensor) {
        RILL_EXPECTS(tensor < plan_.tensors(), "bucket_exchange: a tensor of the plan");
        std::size_t& missing = scratch_.missing[plan_.bucket_of(tensor)];
        RILL_EXPECTS(missing > 0, "bucket_exchange: each tensor is called ready once");
        --missing;
        start_complete_ones();
        if (!activities_run_alone(group_.net())) let_go_on();
    }

    /// Waits for all buckets. The receipt tells of all: the fewest contributors, the least weight and the highest age
    /// of any bucket, the sum of rounds and traffic, and the time since the first bucket started. Throws what the first
    /// failed bucket throws.
    receipt finish() {
        RILL_EXPECTS(scratch_.requests.size() == plan_.buckets().size(), "bucket_exchange: every tensor becomes ready");
        receipt all{};
        for (std::size_t i = 0; i < scratch_.requests.size(); ++i) {
            const receipt one = scratch_.requests[i].get();
            all = i == 0 ? one : joined(all, one);
        }
        if (!scratch_.requests.empty()) all.elapsed = group_.net().now() - started_;
        scratch_.requests.clear();
        return all;
    }

  private:
    void start_complete_ones() {
        auto& requests = scratch_.requests;
        while (requests.size() < scratch_.missing.size() && scratch_.missing[requests.size()] == 0) {
            if (requests.empty()) started_ = group_.net().now();
            requests.push_back(start_(requests.size()));
        }
    }

    /// To look at one that is not done lets all go on.
    void let_go_on() const {
        for (const request& each : scratch_.requests)
            if (!each.test()) return;
    }

    static receipt joined(receipt all, const receipt& one) {
        all.contributors = std::min(all.contributors, one.contributors);
        all.weight = std::min(all.weight, one.weight);
        all.age = std::max(all.age, one.age);
        all.rounds += one.rounds;
        all.wire += one.wire;
        return all;
    }

    Group& group_;
    const bucket_plan& plan_;
    Start start_;
    detail::bucket_scratch& scratch_;
    time_point started_{};
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/fusion.hpp

namespace rill::inline RILL_ABI {

/// Joins small tensors into buckets, each of which is exchanged by one operation: a message has a cost of its own,
/// which several tensors share, and a bucket can travel while the tensors of the next one are computed.
///
/// Neighbours are joined, from the last to the first, while they take at most `bytes` together; a larger tensor is a
/// bucket of its own. Which tensors share a bucket depends on their sizes and order alone.
struct fusion {
    std::size_t bytes = std::size_t{4} << 20;

    static constexpr const char* name = "fusion";

    /// `sizes`: the elements of each tensor, in the order of declaration, the same on all ranks.
    bucket_plan bind(std::span<const std::size_t> sizes, std::size_t element_bytes) const {
        RILL_EXPECTS(element_bytes > 0, "fusion: elements of at least a byte");
        const std::size_t most = bytes / element_bytes;
        bucket_plan plan(sizes);
        std::size_t joined = 0;
        for (std::size_t tensor = sizes.size(); tensor-- > 0;) {
            const bool fits = sizes[tensor] == 0 || (joined <= most && sizes[tensor] <= most - joined);
            if (plan.buckets().empty() || !fits) {
                plan.begin_bucket();
                joined = 0;
            }
            plan.put_before(tensor);
            joined += sizes[tensor];
        }
        return plan;
    }

    /// Calls `visit(name, value)` for each option: printing and hashing need no more.
    template <class Visit>
    constexpr void visit_options(Visit&& visit) const {
        visit("bytes", bytes);
    }

    friend constexpr bool operator==(const fusion&, const fusion&) = default;
};

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/reduce.hpp

namespace rill::inline RILL_ABI {

namespace detail {
/// `output` is not used but at the root.
template <class Lane, class In, class Out, class Fold>
receipt reduce_dense(Lane& lane, const In& input, Out& output, rank_t root, const Fold& fold) {
    using T = tensor_element<Out>;
    auto& stage = stage_of<T>(lane);
    auto& state = lane.template workspace<dense_state_of<Lane, T, Fold>>();
    auto& accumulator = lane.template workspace<aligned_vector<T>>();
    const auto plan = rooted(lane.shape()).reduce(lane.size(), lane.rank(), root);
    const bool is_root = lane.rank() == root;
    const std::size_t size = size_of(input);
    return run_schedule(
        lane, signature_of<T>(operation::reduce, size, fold, 0, static_cast<std::uint64_t>(root)), plan, state,
        [&](const wire::header& head) {
            if (!is_root) accumulator.resize(size);
            const std::span<const T> mine = elements_of_input(input, stage);
            const std::span<T> target = is_root ? elements_of_output(output, stage) : std::span<T>(accumulator);
            state.begin(head, plan.parts(), mine, target, tally{}, fold);
        },
        [&](receipt& result) {
            all_of(lane).describe(result);
            if (is_root) deliver(state.finish({0, plan.parts()}), output);
        });
}

template <class Lane, class T, class Index, class Fold>
receipt reduce_stream(Lane& lane, const stream<T, Index>& input, stream<T, Index>& output, rank_t root,
                      const Fold& fold, const stream_codings& codings) {
    auto& state = lane.template workspace<stream_state_of<Lane, T, Index, Fold>>();
    const auto plan = rooted(lane.shape()).reduce(lane.size(), lane.rank(), root);
    const auto signature = signature_of<T>(operation::reduce, input.dimension(), fold, std::uint8_t{sizeof(Index)},
                                           mix64(codings.fingerprint(), static_cast<std::uint64_t>(root)));
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), input.view(), tally{}, fold, codings, lane.key());
        },
        [&](receipt& result) {
            all_of(lane).describe(result);
            if (lane.rank() == root)
                state.finish({0, plan.parts()}, output);
            else
                output.clear(input.range());
        });
}

template <class Group>
using rooted_shape = decltype(rooted(std::declval<const Group&>().shape()));

template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires Tensors<In, Out>
auto reduce_call(const Group& group, In&& in, Out&& out, rank_t root, const Fold& fold = {}) {
    if constexpr (require_operation<In, Out, Fold, rooted_shape<Group>>()) {
        require_root(group, root);
        RILL_EXPECTS(group.rank() != root || size_of(out) == size_of(in),
                     "reduce: at the root input and output must be of one size");
        return [=, input = held<In>(in), output = held<Out>(out)](typename Group::lane_type& lane) {
            return reduce_dense(lane, input.get(), output.get(), root, fold);
        };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
auto reduce_call(const Group& group, const stream<T, Index>& input, stream<T, Index>& output, rank_t root,
                 const Fold& fold = {}, const stream_codings& codings = {}) {
    if constexpr (require_foldable<T, Fold, rooted_shape<Group>>()) {
        require_root(group, root);
        RILL_EXPECTS(&input != &output, "reduce: a stream cannot be its own output");
        RILL_EXPECTS(codings.copy.is_lossless(), "reduce: nothing is copied, so nothing can be coded there");
        return [=, &input, &output](typename Group::lane_type& lane) {
            return reduce_stream(lane, input, output, root, fold, codings);
        };
    } else {
        return no_call{};
    }
}
}  // namespace detail

/// Folds the contributions of all ranks and leaves the result at `root`. No rank returns before the root has it, so
/// that every receipt is true of the result. Runs on the group's topology where it has a root, else on a binary tree.
///
/// `input`: N elements, unchanged. `output`: N elements at the root, apart from `input` or the same; not touched
/// elsewhere. Otherwise as `all_reduce`.
template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires detail::Tensors<In, Out>
receipt reduce(Group& group, const In& input, Out&& output, rank_t root, const Fold& fold = {}) {
    return detail::reduce_call(group, input, output, root, fold)(group);
}

/// The same on streams; `output` is empty but at the root.
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
receipt reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, rank_t root,
               const Fold& fold = {}, const stream_codings& codings = {}) {
    return detail::reduce_call(group, input, output, root, fold, codings)(group);
}

/// Both in the background; see `start_all_reduce`.
template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires detail::Tensors<In, Out>
request start_reduce(Group& group, In&& input, Out&& output, rank_t root, const Fold& fold = {}) {
    static_assert(detail::require_lasting<In, Out>());
    return start(group,
                 detail::reduce_call(group, detail::lasting_input<In>(input), std::forward<Out>(output), root, fold));
}
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
request start_reduce(Group& group, const stream<T, Index>& input, stream<T, Index>& output, rank_t root,
                     const Fold& fold = {}, const stream_codings& codings = {}) {
    return start(group, detail::reduce_call(group, input, output, root, fold, codings));
}

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/reduce_scatter.hpp

namespace rill::inline RILL_ABI {

namespace detail {
template <class Lane, class In, class Out, class Fold>
receipt reduce_scatter_dense(Lane& lane, const In& input, Out& output, const Fold& fold) {
    using T = tensor_element<Out>;
    auto& stage = stage_of<T>(lane);
    auto& state = lane.template workspace<dense_state_of<Lane, T, Fold>>();
    auto& accumulator = lane.template workspace<aligned_vector<T>>();
    const std::size_t size = size_of(input);
    const auto plan = in_chunks(lane.net(), lane.shape().reduce_scatter(lane.size(), lane.rank()), size * sizeof(T));
    const auto chunks = static_cast<std::uint64_t>(plan.chunks());
    const part_range own = plan.chunks_of(lane.rank());
    return run_schedule(
        lane, signature_of<T>(operation::reduce_scatter, size, fold, 0, chunks), plan, state,
        [&](const wire::header& head) {
            accumulator.resize(size);
            state.begin(head, plan.parts(), elements_of_input(input, stage), std::span<T>(accumulator), tally{}, fold,
                        plan.chunks());
        },
        [&](receipt& result) {
            state.total(own.first).describe(result);
            write_tensor(state.finish(own), output);
        });
}

template <class Lane, class T, class Index, class Fold>
receipt reduce_scatter_stream(Lane& lane, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold,
                              const stream_codings& codings) {
    auto& state = lane.template workspace<stream_state_of<Lane, T, Index, Fold>>();
    const auto plan = lane.shape().reduce_scatter(lane.size(), lane.rank());
    const auto signature = signature_of<T>(operation::reduce_scatter, input.dimension(), fold,
                                           std::uint8_t{sizeof(Index)}, codings.fingerprint());
    return run_schedule(
        lane, signature, plan, state,
        [&](const wire::header& head) {
            state.begin(head, plan.parts(), input.view(), tally{}, fold, codings, lane.key());
        },
        [&](receipt& result) {
            state.total(lane.rank()).describe(result);
            state.finish({lane.rank(), lane.rank() + 1}, output);
        });
}

template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires Tensors<In, Out>
auto reduce_scatter_call(const Group& group, In&& in, Out&& out, const Fold& fold = {}) {
    if constexpr (require_operation<In, Out, Fold, typename Group::topology_type>()) {
        RILL_EXPECTS(size_of(out) == part_of(group, size_of(in)).size(),
                     "reduce_scatter: the output must have the size of this rank's part");
        return [=, input = held<In>(in), output = held<Out>(out)](typename Group::lane_type& lane) {
            return reduce_scatter_dense(lane, input.get(), output.get(), fold);
        };
    } else {
        return no_call{};
    }
}

template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
auto reduce_scatter_call(const Group&, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                         const stream_codings& codings = {}) {
    if constexpr (require_foldable<T, Fold, typename Group::topology_type>()) {
        RILL_EXPECTS(codings.copy.is_lossless(), "reduce_scatter: nothing is copied, so nothing can be coded there");
        RILL_EXPECTS(&input != &output, "reduce_scatter: a stream cannot be its own output");
        return [=, &input, &output](typename Group::lane_type& lane) {
            return reduce_scatter_stream(lane, input, output, fold, codings);
        };
    } else {
        return no_call{};
    }
}
}  // namespace detail

/// Folds the contributions of all ranks and leaves each rank r with part r: `split(N, P, r)`.
///
/// `input`: N elements, unchanged. `output`: `split(N, P, rank).size()` elements, apart from `input`. Memory: up to N
/// elements of scratch. Otherwise as `all_reduce`.
template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires detail::Tensors<In, Out>
receipt reduce_scatter(Group& group, const In& input, Out&& output, const Fold& fold = {}) {
    return detail::reduce_scatter_call(group, input, output, fold)(group);
}

/// The same on streams; `output` covers `split(N, P, rank)`.
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
receipt reduce_scatter(Group& group, const stream<T, Index>& input, stream<T, Index>& output, const Fold& fold = {},
                       const stream_codings& codings = {}) {
    return detail::reduce_scatter_call(group, input, output, fold, codings)(group);
}

/// Both in the background; see `start_all_reduce`.
template <class Group, class In, class Out, class Fold = aggregate::sum>
    requires detail::Tensors<In, Out>
request start_reduce_scatter(Group& group, In&& input, Out&& output, const Fold& fold = {}) {
    static_assert(detail::require_lasting<In, Out>());
    return start(group,
                 detail::reduce_scatter_call(group, detail::lasting_input<In>(input), std::forward<Out>(output), fold));
}
template <class Group, Element T, IndexType Index, class Fold = aggregate::sum>
request start_reduce_scatter(Group& group, const stream<T, Index>& input, stream<T, Index>& output,
                             const Fold& fold = {}, const stream_codings& codings = {}) {
    return start(group, detail::reduce_scatter_call(group, input, output, fold, codings));
}

}  // namespace rill::inline RILL_ABI

// ===== rill/collective/detail/round_roll.hpp

namespace rill::inline RILL_ABI::detail {

/// Who stands behind a contribution, and who came late below: a second frame of numbers in its message. A template, so
/// that only programs that have rounds compile it.
template <class Rank>
struct basic_round_roll {
    std::vector<contributor> in;
    std::vector<latecomer> late;
    double error_bound = 0;
    double decoding_error = 0;

    double weight() const {
        double sum = 0;
        for (const contributor& each : in) sum += each.weight;
        return sum;
    }
    std::uint32_t age() const {
        std::uint32_t most = 0;
        for (const contributor& each : in) most = each.age > most ? each.age : most;
        return most;
    }

    /// Takes up what another one says, whose contributions are `rounds` older than they were.
    void add(const basic_round_roll& other, std::uint32_t rounds = 0) {
        decoding_error = std::max(decoding_error, other.decoding_error);
        for (contributor each : other.in) {
            each.age += rounds;
            in.push_back(each);
        }
        late.insert(late.end(), other.late.begin(), other.late.end());
    }

    std::vector<std::int64_t> numbers() const {
        std::vector<std::int64_t> out{std::bit_cast<std::int64_t>(error_bound),
                                      std::bit_cast<std::int64_t>(decoding_error),
                                      static_cast<std::int64_t>(in.size())};
        for (const contributor& each : in) put(out, each.rank, each.age, std::bit_cast<std::int64_t>(each.weight));
        for (const latecomer& each : late) put(out, each.rank, each.rounds, each.by.ns);
        return out;
    }

    /// Any numbers give a roll of ranks below `size`, or throw `protocol_error`.
    static basic_round_roll from(std::span<const std::int64_t> numbers, int size) {
        wire::detail::require(numbers.size() >= first && (numbers.size() - first) % 2 == 0,
                              "a roll has pairs of numbers");
        basic_round_roll read;
        read.error_bound = std::bit_cast<double>(numbers[0]);
        read.decoding_error = std::bit_cast<double>(numbers[1]);
        for (const double error : {read.error_bound, read.decoding_error})
            wire::detail::require(is_finite(error) && error >= 0, "an error bound is not finite");
        const std::size_t entries = (numbers.size() - first) / 2;
        wire::detail::require(numbers[2] >= 0 && static_cast<std::uint64_t>(numbers[2]) <= entries,
                              "a roll is shorter than it says");
        const auto contributors = static_cast<std::size_t>(numbers[2]);
        for (std::size_t i = 0; i < entries; ++i) {
            const auto both = static_cast<std::uint64_t>(numbers[first + 2 * i]);
            const auto rank = static_cast<std::uint32_t>(both), rounds = static_cast<std::uint32_t>(both >> 32U);
            wire::detail::require(rank < static_cast<std::uint32_t>(size), "a roll names a rank that is not there");
            const std::int64_t other = numbers[first + 2 * i + 1];
            if (i < contributors) {
                const auto weight = std::bit_cast<double>(other);
                wire::detail::require(weight > 0 && weight <= 1e300, "a weight is not finite and positive");
                read.in.push_back({static_cast<Rank>(rank), rounds, weight});
            } else {
                wire::detail::require(other >= 0, "nobody is late by less than nothing");
                read.late.push_back({static_cast<Rank>(rank), rounds, duration(other)});
            }
        }
        return read;
    }

  private:
    static constexpr std::size_t first = 3;  // of the pairs: two errors and a count come before

    static void put(std::vector<std::int64_t>& out, Rank rank, std::uint32_t rounds, std::int64_t other) {
        const std::uint64_t both = static_cast<std::uint64_t>(rounds) << 32U | static_cast<std::uint32_t>(rank);
        out.push_back(static_cast<std::int64_t>(both));
        out.push_back(other);
    }
};

using round_roll = basic_round_roll<rank_t>;

/// One message of a frame and, behind it, the roll.
template <class Rank>
buffer with_roll(const byte_pieces& content, const wire::header& head, const basic_round_roll<Rank>& roll) {
    const std::vector<std::int64_t> numbers = roll.numbers();
    wire::header of_roll{.kind = head.kind, .epoch = head.epoch, .context = head.context, .dimension = numbers.size()};
    wire::header_block block;
    const stream_view<std::int64_t, std::uint32_t> view({0, numbers.size()}, std::span<const std::int64_t>(numbers));
    const byte_pieces second = view_frame(of_roll, view, block.data());
    const std::size_t first_size = content.size_bytes();
    const std::size_t padded = (first_size + frame_alignment - 1) / frame_alignment * frame_alignment;
    buffer message(padded + second.size_bytes());
    auto to = message.begin();
    for (const byte_view piece : content) to = std::copy(piece.begin(), piece.end(), to);
    to = std::fill_n(to, padded - first_size, std::byte{0});
    for (const byte_view piece : second) to = std::copy(piece.begin(), piece.end(), to);
    return message;
}

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/round_fold.hpp

namespace rill::inline RILL_ABI::detail {

/// How far the values of two views of the same coordinates are apart, in the Euclidean norm.
template <Element T, IndexType Index>
double distance(const stream_view<T, Index>& a, const stream_view<T, Index>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.count(); ++i) {
        const double difference = static_cast<double>(a.values()[i]) - static_cast<double>(b.values()[i]);
        sum += difference * difference;
    }
    return square_root(sum);
}

/// The contributions that a rank has gathered, decoded; its own among them, as the others would decode it.
template <Element T, IndexType Index>
class round_operands {
  public:
    using view = stream_view<T, Index>;

    void clear() {
        operands_.clear();
        has_own_ = false;
        rooms_.reset();
        memory_.reset();
        roll = {};
    }

    std::span<const view> views() const { return operands_; }

    /// What this rank contributes, if its weight is not 0, comes before all that is added.
    template <Executor Exec>
    void add_own(wire::header head, const view& content, const coding& codes, random_key key, const contribution& own,
                 rank_t rank, const Exec& executor) {
        tally::of(own).describe(head);
        if (codes.is_view())
            own_frame_ = view_frame(head, content, memory_.take(wire::header_bytes).data());
        else
            own_frame_ = byte_pieces(coded_frame(head, content, codes, key, memory_, executor));
        if (own.weight == 0) return;
        has_own_ = true;
        roll.in.push_back({rank, own.age, own.weight});
        operands_.push_back(codes.is_lossless()
                                ? content
                                : content_of(frame_reader(own_frame_).next<T, Index>(), rooms_.take(), executor));
        if (!codes.is_lossless()) roll.error_bound = distance(content, operands_.back());
    }

    /// A message of a child: its content, which must stay, and its roll, `age` rounds older. Returns its error bound.
    template <Executor Exec>
    double add(const byte_pieces& message, std::size_t dimension, std::uint32_t age, int ranks, const Exec& executor) {
        frame_reader reader(message);
        const frame content = reader.next<T, Index>();
        wire::detail::require(content.head.range == segment{0, dimension}, "of another range than all");
        const frame numbers = reader.next<std::int64_t, std::uint32_t>();
        wire::detail::require(reader.done() && numbers.head.codes.indices == index_coding::dense, "no roll at its end");
        const auto of_child = round_roll::from(content_of(numbers, roll_room_).values(), ranks);
        roll.add(of_child, age);
        if (!of_child.in.empty()) operands_.push_back(content_of(content, rooms_.take(), executor));
        return of_child.error_bound;
    }

    /// Per coordinate the left fold of what there is, neutral elements where there is nothing. `target` may be what
    /// this rank itself contributes.
    template <class Fold, Executor Exec>
    void fold(std::span<T> target, const Fold& with, const Exec& executor) {
        const T neutral = with.template identity<T>();
        if (operands_.empty())
            std::fill(target.begin(), target.end(), neutral);
        else
            fold_into_dense(std::span<const view>(operands_), target, fold_of(with), neutral, scratch_, executor);
    }

    /// All of it as one contribution. What this rank alone contributes travels in its own coding, sums in that of sums.
    template <class Fold, Executor Exec>
    buffer message(wire::header head, const Fold& with, const stream_codings& codings, const Exec& executor) {
        if (operands_.empty() || (operands_.size() == 1 && has_own_)) return with_roll(own_frame_, head, roll);
        tally{roll.weight(), static_cast<std::uint32_t>(roll.in.size()), roll.age()}.describe(head);
        fold_streams(std::span<const view>(operands_), folded_, fold_of(with), with.template identity<T>(),
                     codings.when, scratch_, executor);
        if (codings.partial.is_view())
            return with_roll(view_frame(head, folded_.view(), memory_.take(wire::header_bytes).data()), head, roll);
        return with_roll(coded_frame(head, folded_.view(), codings.partial, {}, memory_, executor), head, roll);
    }

    round_roll roll;

  private:
    std::vector<view> operands_;
    bool has_own_ = false;
    byte_pieces own_frame_{};
    arena memory_;
    pool<frame_scratch<T, Index>> rooms_;
    frame_scratch<std::int64_t, std::uint32_t> roll_room_;
    stream<T, Index> folded_;
    fold_scratch<T, Index> scratch_;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/round_blame.hpp

namespace rill::inline RILL_ABI::detail {

/// Waits of rounds: what has lasted for half of the patience is told to the others, so that whoever gives up finds the
/// rank where the standstill begins.
template <Transport Net>
class round_blame {
  public:
    /// `waits`: the context of long waits.
    round_blame(Net& net, std::uint64_t context, std::uint64_t waits, duration patience)
        : net_(&net), context_(context), waits_(waits), patience_(patience) {}

    duration patience() const { return patience_; }

    void tell(rank_t waits_for) { net_->announce(waits_, long_wait{.peer = waits_for}.announced_in(only_call)); }
    void tell_nothing() { tell(no_rank); }

    /// Of a wait for `peer` in round `round`, which has taken all the patience. If that is where the standstill begins,
    /// the message says `of_peer` what it did not do; `of_all` ends it.
    abort_notice notice(std::uint64_t round, rank_t peer, const char* of_peer, const std::string& of_all = {}) const {
        rank_t waiter = net_->rank();
        const time_point until = net_->now() + patience_ / 8;
        for (int passed = 0; passed < net_->size(); ++passed) {
            const auto said = net_->inquire(peer, waits_, only_call, until);
            if (!said) break;
            const rank_t next = long_wait::from(*said).peer;
            if (next == no_rank) break;
            waiter = std::exchange(peer, next);
        }
        return {.context = context_,
                .operation = round,
                .kind = failure::timeout,
                .culprit = peer,
                .other = waiter,
                .reason = "round " + std::to_string(round) + ": rank " + std::to_string(waiter) + " waited " +
                          std::to_string(patience_.seconds()) + " s for rank " + std::to_string(peer) +
                          (waiter == net_->rank() ? of_peer : "") + of_all};
    }

  private:
    static constexpr std::uint64_t only_call = 1;

    Net* net_;
    std::uint64_t context_;
    std::uint64_t waits_;
    duration patience_;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/round_children.hpp

namespace rill::inline RILL_ABI::detail {

/// What becomes of a contribution: it is in no result, in what its parent hands up, or in a result.
enum class contribution_fate : unsigned char { out, with_mine, in };

/// What a rank knows of its children in a tree: which round each is at, and what has come of it.
class round_children {
  public:
    struct link {
        rank_t rank = no_rank;
        std::uint64_t given = 0;                            ///< the round of the latest state
        std::uint64_t answered = 0;                         ///< the round of the latest contribution
        contribution_fate latest = contribution_fate::out;  ///< of that contribution
        std::optional<time_point> missed_since{};

        /// Whether it has answered the latest state, and so can be given the next one.
        bool is_ready() const { return given == answered; }
    };

    void add(rank_t rank) {
        links_.push_back({.rank = rank});
        ranks_.push_back(rank);
    }

    bool empty() const { return links_.empty(); }
    int count() const { return static_cast<int>(links_.size()); }
    const std::vector<rank_t>& ranks() const { return ranks_; }
    auto begin() { return links_.begin(); }
    auto end() { return links_.end(); }

    link& of(rank_t rank) {
        return *std::find_if(links_.begin(), links_.end(), [&](const link& each) { return each.rank == rank; });
    }
    int number_of(const link& child) const { return static_cast<int>(&child - links_.data()); }

    /// Those whose contributions are in the round under way, by number.
    std::span<const int> in() const { return in_; }
    void begin_round() { in_.clear(); }
    void answers(link& child, std::uint64_t round, contribution_fate becomes) {
        child.answered = round;
        child.latest = becomes;
        if (becomes == contribution_fate::out) return;
        const int number = number_of(child);
        if (const auto at = std::lower_bound(in_.begin(), in_.end(), number); at == in_.end() || *at != number)
            in_.insert(at, number);
    }

    /// What is in this rank's contribution is where that is.
    void learn_fate(bool mine_was_in) {
        for (link& each : links_)
            if (each.latest == contribution_fate::with_mine)
                each.latest = mine_was_in ? contribution_fate::in : contribution_fate::out;
    }

    /// `parent`, and the children that are not at work.
    std::span<const rank_t> ready_with(rank_t parent) {
        ready_.assign(1, parent);
        for (const link& each : links_)
            if (each.is_ready()) ready_.push_back(each.rank);
        return ready_;
    }
    std::vector<rank_t> at_work() const {
        std::vector<rank_t> ranks;
        for (const link& each : links_)
            if (!each.is_ready()) ranks.push_back(each.rank);
        return ranks;
    }
    bool all_have(std::uint64_t round) const {
        return std::all_of(links_.begin(), links_.end(), [&](const link& each) { return each.given == round; });
    }
    /// The first one that is at work, or else one that has had no room for the state of this round.
    rank_t first_missing(std::uint64_t round) const {
        const auto first = [&](auto&& is_missing) {
            const auto found = std::find_if(links_.begin(), links_.end(), is_missing);
            return found == links_.end() ? no_rank : found->rank;
        };
        const rank_t at_work = first([](const link& each) { return !each.is_ready(); });
        return at_work != no_rank ? at_work : first([&](const link& each) { return each.given != round; });
    }

  private:
    std::vector<link> links_;
    std::vector<rank_t> ranks_;
    std::vector<rank_t> ready_;
    std::vector<int> in_;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/round_state.hpp

namespace rill::inline RILL_ABI::detail {

/// The state of the round under way, as it is given to children.
template <class Message>
class round_state {
  public:
    /// The caller's own, which may change once it is kept.
    void borrow(const wire::header& head, byte_view values) {
        head_ = head;
        values_ = byte_pieces(values);
    }
    void keep() {
        const byte_pieces borrowed = values_;
        kept_.resize(borrowed.size_bytes());
        copy(borrowed, kept_.begin());
        values_ = byte_pieces(kept_);
    }
    /// The parent's. It stays until the next one.
    const Message& hold(const wire::header& head, Message&& from) {
        message_ = std::move(from);
        head_ = head;
        values_ = content_behind_header(message_->pieces());
        return *message_;
    }

    /// What a child is told: with the values where that begins a round for it.
    buffer frame(operation kind, std::uint64_t context, std::uint64_t round, const round_children::link& child) const {
        const bool has_values = kind == operation::next_round;
        wire::header head = has_values ? head_ : empty_head();
        head.kind = kind;
        head.context = context;
        head.epoch = static_cast<std::uint32_t>(round);
        head.number = child.answered;
        head.contributors = child.latest == contribution_fate::out ? 0 : 1;
        const byte_pieces values = has_values ? values_ : byte_pieces{};
        buffer bytes(wire::header_bytes + values.size_bytes());
        wire::encode(head, bytes.data());
        copy(values, bytes.begin() + static_cast<std::ptrdiff_t>(wire::header_bytes));
        return bytes;
    }

  private:
    static wire::header empty_head() {
        return {.element = element_type::int32, .index_bytes = 4, .codes = {.indices = index_coding::dense}};
    }
    static byte_pieces content_behind_header(const byte_pieces& message) {
        byte_pieces content;
        std::size_t skip = wire::header_bytes;
        for (const byte_view piece : message) {
            const std::size_t skipped = std::min(skip, piece.size());
            skip -= skipped;
            if (skipped < piece.size()) content.push(piece.subspan(skipped));
        }
        return content;
    }
    static void copy(const byte_pieces& from, buffer::iterator to) {
        for (const byte_view piece : from) to = std::copy(piece.begin(), piece.end(), to);
    }

    wire::header head_{};
    byte_pieces values_;              ///< wherever they lie
    std::optional<Message> message_;  ///< from the parent, which holds them
    buffer kept_;                     ///< at the root, where a child may need them later
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/round_links.hpp

namespace rill::inline RILL_ABI::detail {

/// A contribution as a parent took it.
template <class Message>
struct round_arrival {
    rank_t rank = no_rank;
    int child = 0;
    std::uint64_t round = 0;
    std::uint32_t age = 0;  ///< rounds by which it came late
    Message message;
};

/// What a completion, a staleness and a trigger are of.
template <class Enough, class Age, class Start>
struct round_policies {
    [[no_unique_address]] Enough enough;
    [[no_unique_address]] Age age;
    [[no_unique_address]] Start start;
};

/// One rank's links to its parent and its children in a tree, over which states go down and contributions up, round by
/// round.
///
/// A child is given a state only when it has answered the one before, so that no link ever holds more than one message
/// each way: whoever is late meets the newest state, and whoever has died costs nothing. A frame says its round; what
/// comes twice, or to a round that has ended, is known by that. A child that has missed a round hears that it is over,
/// so that it need not send, nor gather, what nobody wants. A state also says of which round the parent has the child's
/// latest contribution, and whether that is in a result.
template <Transport Net, class Tree, class Policies>
class round_links {
  public:
    using message = typename Net::message;
    using arrival = round_arrival<message>;

    round_links(Net& net, const Tree& tree, Policies policies, random_key key, duration patience)
        : context_(net),
          waits_(net),
          policies_(std::move(policies)),
          key_(key),
          blame_(net, context_.number, waits_.number, patience),
          parent_(tree.parent(net.size(), net.rank())),
          height_(tree.height(net.size(), net.rank())) {
        for (int i = 0; i < tree.children(net.size(), net.rank()); ++i)
            children_.add(tree.child(net.size(), net.rank(), i));
        neighbours_ = children_.ranks();
        if (parent_ != no_rank) neighbours_.push_back(parent_);
    }

    Net& net() const { return context_.net; }
    std::uint64_t context() const { return context_.number; }
    bool is_root() const { return parent_ == no_rank; }
    rank_t parent() const { return parent_; }  ///< `no_rank` for the root
    bool is_leaf() const { return children_.empty(); }
    bool has_ended() const { return has_ended_; }
    std::uint64_t round() const { return round_; }
    /// Whether this rank's latest contribution is in a result of the root, as far as is known.
    bool was_in() const { return is_root() || was_in_; }
    time_point began() const { return began_; }
    const traffic& counted() const { return counted_; }

    /// At the root: begins the next round once enough children are ready.
    void begin(const wire::header& head, byte_view values) {
        begin_round(round_ + 1);
        state_.borrow(head, values);
        absorb();
        await_trigger();
        give_state();
        if (!children_.all_have(round_)) state_.keep();
    }

    /// Elsewhere: the newest state, or nothing when rounds have ended. Its frame is valid, its content not looked at.
    /// It stays until the next one.
    const message* take_newest() {
        const time_point entered = net().now(), half = entered + blame_.patience() / 2;
        while (true) {
            auto newest = receive_state(half);
            if (!newest) {
                blame_.tell(parent_);
                newest = receive_state(entered + blame_.patience());
                if (!newest) throw_error(blame_.notice(round_ + 1, parent_, ", which gives no state"));
                blame_.tell_nothing();
            }
            const wire::header head = state_of(*newest);
            if (head.kind != operation::end_rounds && head.epoch <= round_) continue;  // it came twice
            learn_fates(head);
            if (head.kind == operation::end_rounds) {
                end(blame_.patience());
                return nullptr;
            }
            begin_round(head.epoch);
            const message& held = state_.hold(head, std::move(*newest));
            absorb();
            give_state();
            return &held;
        }
    }

    /// Whether nobody waits for this rank's contribution to the round under way any more.
    bool is_over() {
        if (is_root()) return false;
        while (!end_) {
            auto got = net().receive(parent_, on_links(), deadline::immediate);
            if (!got) break;
            hear(std::move(*got));
        }
        return end_ || over_ >= round_;
    }

    /// Contributions until there are enough, or the round is over, by rank and round; late ones that still count among
    /// them.
    std::span<arrival> gather() {
        const time_point time_up = began_ + policies_.enough.patience(height_);
        take_until([&] { return end_ || over_ >= round_ || is_complete(time_up); }, time_up, true);
        for (child& each : children_) {
            if (each.is_ready() || each.missed_since) continue;
            each.missed_since = net().now();
            if (!policies_.age.accepts(1)) give(each, operation::round_over, deadline::immediate);
        }
        std::sort(arrivals_.begin(), arrivals_.end(), [](const arrival& a, const arrival& b) {
            return std::pair(a.rank, a.round) < std::pair(b.rank, b.round);
        });
        return arrivals_;
    }

    /// Children from which this round has nothing and which are still at work.
    std::vector<rank_t> missing() const { return children_.at_work(); }

    /// Who came late since this was asked last.
    std::vector<latecomer> latecomers() { return std::exchange(late_, {}); }

    /// Releases what was gathered.
    void forget_arrivals() { arrivals_.clear(); }

    /// Hands a contribution to the parent.
    void hand_up(buffer&& bytes) {
        const std::size_t size = bytes.size();
        answered_ = round_;
        was_in_ = false;
        if (!net().post(parent_, on_links(), std::move(bytes), net().now() + blame_.patience()))
            throw_error(blame_.notice(round_, parent_, ", whose mailbox is full"));
        count_sent(size);
    }

    /// Tells all ranks below that there are no more rounds. Waits `at_most` for room in their mailboxes.
    void end(duration at_most) {
        has_ended_ = true;
        give_each(operation::end_rounds, at_most, [](const child&) { return true; });
    }
    duration patience() const { return blame_.patience(); }

    /// A failure of this rank's, or of a child's, with which nobody can go on: all ranks learn of it.
    [[noreturn]] void fail(failure kind, rank_t culprit, const std::string& what) {
        throw_error(net().abort({.context = context(),
                                 .operation = round_,
                                 .kind = kind,
                                 .culprit = culprit,
                                 .reason = "round " + std::to_string(round_) + ": " + what}));
    }

    /// Runs `from()`, which reads what `source` sent: what is wrong there is that rank's failure.
    template <class Read>
    auto read(rank_t source, Read&& from) {
        try {
            return from();
        } catch (const protocol_error& e) {
            if (e.culprit() != no_rank) throw;
            fail(failure::protocol, source,
                 "rank " + std::to_string(source) + " sent bytes that are no valid frame: " + e.notice().reason);
        }
    }

  private:
    using child = round_children::link;
    using fate = contribution_fate;

    /// One for both ways: a rank that waits for its parent takes what its children send, too.
    channel on_links() const { return {context_.number, 0}; }

    void begin_round(std::uint64_t round) {
        round_ = round;
        began_ = net().now();
        counted_ = {};
        arrivals_.clear();
        children_.begin_round();
    }

    /// A state to every child that has answered the last one.
    void give_state() {
        give_each(operation::next_round, blame_.patience(), [](const child& each) { return each.is_ready(); });
    }

    /// First to those that have room for it: a full mailbox holds nobody else up.
    template <class Which>
    void give_each(operation kind, duration at_most, Which&& is_meant) {
        std::vector<child*> refused;
        for (child& each : children_)
            if (is_meant(each) && !give(each, kind, deadline::immediate)) refused.push_back(&each);
        const time_point until = net().now() + at_most;
        if (at_most.ns > 0)
            for (child* const each : refused) give(*each, kind, until);
    }

    /// Whether there was room for it.
    bool give(child& to, operation kind, deadline until) {
        buffer bytes = state_.frame(kind, context(), round_, to);
        const std::size_t size = bytes.size();
        if (!net().post(to.rank, on_links(), std::move(bytes), until)) return false;
        count_sent(size);
        if (kind != operation::next_round) return true;
        to.given = round_;
        to.missed_since.reset();
        return true;
    }

    /// What a parent says while this rank does not wait for a state.
    void hear(message&& got) {
        count_received(got);
        const wire::header head = state_of(got);
        if (head.kind == operation::end_rounds) end_ = std::move(got);
        if (head.kind == operation::round_over) over_ = std::max(over_, std::uint64_t{head.epoch});
    }

    /// What children send meanwhile is kept for later, so that it does not stop up the mailbox.
    std::optional<message> receive_state(deadline until) {
        if (end_) return std::exchange(end_, std::nullopt);
        while (auto got = net().receive(neighbours_, on_links(), until)) {
            if (got->source() != parent_) {
                early_.push_back(std::move(*got));
                continue;
            }
            count_received(*got);
            if (state_of(*got).kind != operation::round_over) return got;
        }
        return std::nullopt;
    }

    wire::header state_of(const message& newest) {
        return read(parent_, [&] {
            const wire::header head = frame_reader(newest.pieces()).peek();
            wire::detail::require(head.context == context(), "of another context");
            wire::detail::require(head.kind == operation::next_round || head.kind == operation::end_rounds ||
                                      head.kind == operation::round_over,
                                  "nothing that a parent says");
            return head;
        });
    }

    /// What became of this rank's latest contribution, and so of what its children had put into it.
    void learn_fates(const wire::header& head) {
        was_in_ = head.contributors != 0 && head.number == answered_ && answered_ != 0;
        children_.learn_fate(was_in_);
    }

    /// Takes what has come since the last round ended.
    void absorb() {
        if (is_leaf()) return;
        for (message& each : early_) take(std::move(each), false);
        early_.clear();
        while (auto got = net().receive(children_.ranks(), on_links(), deadline::immediate))
            take(std::move(*got), false);
    }

    void await_trigger() {
        const auto starts = [&] {
            return policies_.start.starts(children_.ready_with(net().rank()), children_.count() + 1,
                                          key_.derive(round_));
        };
        take_until(starts, deadline::never.at, false);
    }

    /// Takes what comes until `is_enough()`, which may also change at `when`; gives up when all patience has passed.
    template <class Enough>
    void take_until(Enough&& is_enough, time_point when, bool gives_state) {
        const time_point entered = net().now();
        const time_point half = entered + blame_.patience() / 2, last = entered + blame_.patience();
        rank_t told = no_rank;
        while (!is_enough()) {
            const time_point now = net().now();
            if (now >= last) give_up();
            if (const rank_t first = children_.first_missing(round_); now >= half && first != told)
                blame_.tell(told = first);
            auto got = net().receive(neighbours_, on_links(),
                                     std::min({now < when ? when : last, now < half ? half : last, last}));
            if (!got) continue;
            if (got->source() == parent_)
                hear(std::move(*got));
            else
                take(std::move(*got), gives_state);
        }
        if (told != no_rank) blame_.tell_nothing();
    }

    bool is_complete(time_point time_up) {
        for (const child& each : children_)
            if (!each.is_ready() && !policies_.age.may_lead(static_cast<std::uint32_t>(round_ - each.given)))
                return false;
        return policies_.enough.is_complete(
            {.expected = children_.count(), .in = children_.in(), .time_is_up = !is_leaf() && net().now() >= time_up});
    }

    void take(message&& got, bool gives_state) {
        count_received(got);
        const rank_t source = got.source();
        const wire::header head = read(source, [&] {
            const wire::header h = frame_reader(got.pieces()).peek();
            wire::detail::require(h.kind == operation::contribute && h.context == context(), "no contribution");
            return h;
        });
        child& from = children_.of(source);
        if (head.epoch <= from.answered) return;  // it came twice
        if (head.epoch != from.given)
            fail(failure::protocol, source,
                 "rank " + std::to_string(source) + " contributes to round " + std::to_string(head.epoch) +
                     ", which it has not been given");
        const auto age = static_cast<std::uint32_t>(round_ - head.epoch);
        const fate becomes = fate_of(age);
        children_.answers(from, head.epoch, becomes);
        if (age != 0) late_.push_back({source, age, from.missed_since ? net().now() - *from.missed_since : duration{}});
        if (becomes != fate::out)
            arrivals_.push_back({source, children_.number_of(from), head.epoch, age, std::move(got)});
        if (age != 0 && gives_state) give(from, operation::next_round, net().now() + blame_.patience());
    }
    fate fate_of(std::uint32_t age) const {
        if (age == 0) return is_root() ? fate::in : fate::with_mine;
        return policies_.age.accepts(age) || !policies_.age.may_lead(age) ? fate::in : fate::out;
    }

    /// Too few have come. Without its root nobody can go on; without another rank, the others may.
    [[noreturn]] void give_up() {
        std::string in;
        for (const int number : children_.in())
            in += (in.empty() ? "" : ", ") + std::to_string(children_.ranks()[static_cast<std::size_t>(number)]);
        const abort_notice notice =
            blame_.notice(round_, children_.first_missing(round_), "",
                          "; rank " + std::to_string(net().rank()) + " has contributions of " +
                              (in.empty() ? "no child" : "its children " + in) + ", which is not enough");
        throw_error(is_root() ? net().abort(notice) : notice);
    }

    void count_sent(std::size_t bytes) {
        ++counted_.messages_sent;
        counted_.bytes_sent += bytes;
    }
    void count_received(const message& m) {
        ++counted_.messages_received;
        counted_.bytes_received += m.pieces().size_bytes();
    }

    open_context<Net> context_;
    open_context<Net> waits_;
    Policies policies_;
    random_key key_;
    round_blame<Net> blame_;
    rank_t parent_;
    int height_;
    round_children children_;
    std::vector<rank_t> neighbours_;  // children and parent
    round_state<message> state_;
    std::uint64_t round_ = 0;
    std::uint64_t answered_ = 0;
    std::uint64_t over_ = 0;  // the latest round of which the parent has said so
    bool was_in_ = false;
    bool has_ended_ = false;
    time_point began_{};
    traffic counted_{};
    std::optional<message> end_;  // of the rounds, which came while this rank did not wait for it
    std::vector<message> early_;  // contributions that came while this rank waited for a state
    std::vector<arrival> arrivals_;
    std::vector<latecomer> late_;
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/round_loop.hpp

namespace rill::inline RILL_ABI::detail {

/// What all kinds of rounds do alike, whatever becomes of the contributions: states go down, rounds begin and end, a
/// failure reaches all ranks.
template <class Group, class Tree, class Policies>
class round_loop {
  public:
    round_loop(const round_loop&) = delete;
    round_loop& operator=(const round_loop&) = delete;
    /// At the root it ends the rounds, waiting for nobody; where an exception passes, for all ranks as a failure.
    ~round_loop() {
        if (!is_root() || links_.has_ended()) return;
        try {
            if (std::uncaught_exceptions() > unwinding_)
                abort("an exception has passed through its rounds");
            else
                links_.end({});
        } catch (...) {  // they have ended by a failure
        }
    }

    bool is_root() const { return links_.is_root(); }
    /// Of the round under way; from 1. Those that this rank has missed are counted.
    std::uint64_t number() const { return links_.round(); }
    /// Whether this rank's latest contribution is in a result, or bound to get into one. Known once `next` has
    /// returned; at the root always.
    bool was_in() const { return links_.was_in(); }

    /// The next round: at the root it begins, with `state` for all; elsewhere `state` becomes that of the newest. False
    /// when rounds have ended; `state` is unchanged then. Settles the codec of the latest `reduce`.
    template <class State>
    bool next(State&& state) {
        if constexpr (require_output<State>()) {
            using T = tensor_element<State>;
            if (links_.has_ended()) {
                settle();
                return false;
            }
            return guarded([&] {
                RILL_EXPECTS(number() == contributed_to_, "rounds: each round that next begins has its reduce");
                RILL_EXPECTS(number() < std::numeric_limits<std::uint32_t>::max(),
                             "rounds: frames number 2^32 of them");
                auto& stage = stage_of<T>(*group_);
                const bool goes_on =
                    is_root() ? begin<T>(elements_of_input(state, stage)) : take<T>(elements_of_output(state, stage));
                if (!is_root() && goes_on) deliver(std::span<const T>(elements_of_output(state, stage)), state);
                settle();
                return goes_on;
            });
        }
        return false;
    }

    /// No more rounds: `next` returns false on all ranks, on late ones once they call it. At the root; waits for
    /// nobody, but for room in a mailbox that is full.
    void end() {
        RILL_EXPECTS(is_root(), "rounds: only the root ends them");
        if (!links_.has_ended()) guarded([&] { links_.end(links_.patience()); });
    }

  protected:
    using links_type = round_links<typename Group::transport_type, Tree, Policies>;

    /// `options`: a hash of all that the ranks must have alike besides the tree.
    round_loop(Group& workers, const Tree& tree, const Policies& policies, std::uint64_t options)
        : group_(&agreed(workers, mix64(fingerprint(tree), options))),
          links_(workers.net(), tree, policies, random_key{workers.options().seed}, workers.options().timeout),
          unwinding_(std::uncaught_exceptions()) {}

    Group& workers() const { return *group_; }
    links_type& links() { return links_; }

    template <class T>
    wire::header head_of(operation kind, std::size_t dimension) const {
        return {.kind = kind,
                .element = element_type_of<T>,
                .epoch = static_cast<std::uint32_t>(number()),
                .context = links_.context(),
                .dimension = dimension};
    }

    template <class In, class Out>
    void check([[maybe_unused]] const In& input, [[maybe_unused]] const Out& output, const contribution& own) const {
        require_weight(own);
        RILL_EXPECTS(number() != 0 && !links_.has_ended(), "rounds: reduce belongs to a round that next has begun");
        RILL_EXPECTS(number() != contributed_to_, "rounds: reduce is called once in each round");
        RILL_EXPECTS(!is_root() || size_of(output) == size_of(input) || own.weight == 0,
                     "rounds: at the root input and output must be of one size");
    }

    /// Returns the bound of the rounding errors below.
    template <class Operands, class Arrival>
    double add_child(Operands& operands, const Arrival& from, const wire::header& own) {
        return links_.read(from.rank, [&] {
            const wire::header head = frame_reader(from.message.pieces()).peek();
            if (head.call != own.call || head.element != own.element || head.dimension != own.dimension)
                links_.fail(failure::mismatch, from.rank,
                            "rank " + std::to_string(from.rank) + " contributes " + std::to_string(head.dimension) +
                                " elements of " + name(head.element) + ", rank " + std::to_string(group_->rank()) +
                                " " + std::to_string(own.dimension) + " of " + name(own.element) +
                                (head.dimension == own.dimension && head.element == own.element
                                     ? ", with another fold, compressor or coding"
                                     : ""));
            return operands.add(from.message.pieces(), static_cast<std::size_t>(own.dimension), from.age,
                                group_->size(), group_->executor());
        });
    }

    /// An answer without a contribution, to a round that is over.
    template <Element T, IndexType Index>
    round_receipt contribute_nothing(wire::header head) {
        tally{0, 0, 0}.describe(head);
        const stream_view<T, Index> nothing({0, static_cast<std::size_t>(head.dimension)}, sparse_view<T, Index>{});
        wire::header_block block;
        links_.hand_up(with_roll(view_frame(head, nothing, block.data()), head, round_roll{}));
        links_.forget_arrivals();
        return describe({});
    }

    /// At the end of `reduce`.
    round_receipt describe(round_roll&& roll) {
        contributed_to_ = number();
        round_receipt result;
        result.operation_number = number();
        result.contributors = static_cast<int>(roll.in.size());
        result.weight = roll.weight();
        result.age = roll.age();
        result.rounds = 1;
        result.wire = links_.counted();
        result.elapsed = std::as_const(group_->net()).now() - links_.began();
        result.in = std::move(roll.in);
        result.late = std::move(roll.late);
        result.missing = links_.missing();
        result.error_bound = roll.error_bound;
        result.decoding_error = roll.decoding_error;
        return result;
    }

    random_key own_key() const {
        return random_key{group_->options().seed}.derive(fingerprint("rounds"), number(), group_->rank());
    }

    /// From now until it is settled a codec holds what this rank has contributed.
    template <class Codec>
    void hold(Codec& codec) {
        unsettled_ = {&codec, [](void* of, bool is_in) {
                          is_in ? static_cast<Codec*>(of)->commit() : static_cast<Codec*>(of)->rollback();
                      }};
    }

    /// Runs `body`. If this rank fails in it, all ranks learn that.
    template <class Body>
    auto guarded(Body&& body) {
        if (left_) throw_error(*left_);
        if (const auto notice = group_->net().aborted(links_.context())) throw_error(*notice);
        try {
            return body();
        } catch (const error& e) {
            const abort_notice& notice = e.notice();
            if (notice.context != links_.context() && notice.context != every_context)
                abort(notice.reason, notice.kind);
            if (!group_->net().aborted(links_.context())) left_ = notice;
            throw;
        } catch (const std::exception& e) {
            abort(e.what());
            throw;
        } catch (...) {
            abort("an exception of unknown type");
            throw;
        }
    }

  private:
    static Group& agreed(Group& workers, std::uint64_t options) {
        agree(workers, options);
        return workers;
    }

    template <class T>
    bool begin(std::span<const T> values) {
        wire::header head = head_of<T>(operation::next_round, values.size());
        head.index_bytes = 4;
        head.codes.indices = index_coding::dense;
        head.range = {0, values.size()};
        head.count = values.size();
        links_.begin(head, std::as_bytes(values));
        return true;
    }

    template <class T>
    bool take(std::span<T> state) {
        const auto* const newest = links_.take_newest();
        if (newest == nullptr) return false;
        const wire::header given = frame_reader(newest->pieces()).peek();
        if (given.element != element_type_of<T> || given.count != state.size())
            links_.fail(failure::mismatch, group_->rank(),
                        "rank " + std::to_string(group_->rank()) + " takes a state of " + std::to_string(state.size()) +
                            " elements of " + name(element_type_of<T>) + " where the root gives " +
                            std::to_string(given.count) + " of " + name(given.element));
        links_.read(links_.parent(), [&] {
            const frame values = frame_reader(newest->pieces()).template next<T, std::uint32_t>();
            frame_scratch<T, std::uint32_t> unused;
            copy_dense(content_of(values, unused), state, T{}, group_->executor());
        });
        return true;
    }

    /// The codec of the latest contribution learns what became of that.
    void settle() {
        if (unsettled_.codec != nullptr) unsettled_.settle(std::exchange(unsettled_.codec, nullptr), was_in());
    }

    /// Tells all ranks; returns when it is this rank's own exception that counts.
    void abort(const std::string& why, failure kind = failure::exception) {
        const rank_t rank = group_->rank();
        const abort_notice notice{
            .context = links_.context(),
            .operation = number(),
            .kind = kind,
            .culprit = rank,
            .reason = "round " + std::to_string(number()) + ": rank " + std::to_string(rank) + ": " + why};
        const abort_notice first = group_->net().abort(notice);
        if (first != notice || kind != failure::exception) throw_error(first);
    }

    struct unsettled_codec {
        void* codec = nullptr;
        void (*settle)(void*, bool) = nullptr;
    };

    Group* group_;
    links_type links_;
    int unwinding_;
    std::uint64_t contributed_to_ = 0;
    unsettled_codec unsettled_{};
    std::optional<abort_notice> left_{};  // this rank has left alone, for that reason
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/detail/round_requirements.hpp

namespace rill::inline RILL_ABI::detail {

/// The first base of `rounds`, so that its messages come before all others.
template <class Tree, class Enough, class Age, class Start>
struct round_requirements {
    static_assert(AggregationTree<Tree>,
                  "rill::rounds: the tree does not model AggregationTree; use topology::star, topology::tree or "
                  "topology::regular_tree (see rill/concept/aggregation_tree.hpp)");
    static_assert(
        Completion<Enough>,
        "rill::rounds: the policy after the tree does not model Completion, which says when a gather has enough; use "
        "straggler::wait_all, fastest, tolerate or until (see rill/concept/completion.hpp)");
    static_assert(Staleness<Age>,
                  "rill::rounds: the policy after the completion does not model Staleness, which says how old a "
                  "contribution may be; "
                  "use straggler::fresh, bounded or unbounded (see rill/concept/staleness.hpp)");
    static_assert(
        Trigger<Start>,
        "rill::rounds: the policy after the staleness does not model Trigger, which says who starts a round; use "
        "straggler::solo or all_ready (see rill/concept/trigger.hpp)");
};

}  // namespace rill::inline RILL_ABI::detail

// ===== rill/collective/rounds.hpp

namespace rill::inline RILL_ABI {

/// Rounds of a state that goes down a tree and contributions that come up, in which nobody need wait for the slow ones.
///
/// The same loop on all ranks; rank 0 is the root:
///
///     rill::rounds steps{workers, rill::topology::star{}, rill::straggler::tolerate{2}};
///     while (steps.next(model)) {
///         const auto own = gradient_of(model);
///         const rill::round_receipt r = steps.reduce(own, update, rill::aggregate::mean{});
///         if (!steps.is_root()) continue;
///         move(model, update);
///         if (is_good(model)) steps.end();
///     }
///
/// *Completion* says when a rank that has children has enough of their contributions: each asks it of its own.
/// *Staleness* says whether what comes after its round has ended is dropped (`fresh`) or goes into the round under way,
/// and how far the others may run ahead. *Trigger* says when the root begins a round.
///
/// - Each contribution is in one result or in none, and `was_in` says which: exactly, with `fresh`. Where late ones
///   still count, one that is said to be in may get into a later result, and into none only when, on its way, it is
///   with a rank between its own and the root that dies, fails or hears of the end of the rounds. What a result holds,
///   its receipt lists.
/// - A rank that is late meets the newest state and goes on from there: rounds that it has missed are not made up for.
///   What it sent to one that has ended is known as such, by its round; under `fresh` it learns that the round is over,
///   and sends nothing.
/// - Contributions and states are handed over: no rank waits for a slower one but for what the completion and the
///   staleness ask of it, and for room in a mailbox that is full (of messages that add up to more than the transport's
///   bound). A rank with children passes states on when it calls `next`.
/// - A rank that has died or is cut off is one whose contribution does not come. Who waits longer than the group's
///   timeout throws `timeout`, which names where the standstill begins: the root for all ranks, another for itself
///   alone, because the others may go on.
/// - A rank whose own call fails (a NaN, a user's fold that throws) ends the rounds on all ranks, as their culprit.
/// - Bits: per coordinate the left fold of the contributions by rank, each level of the tree for itself, own first; so
///   they depend on who was in, not on who came first.
///
/// Cost of a round: N elements down and N up on each edge, and 16 bytes for each rank below it; a rank that has
/// children holds the state, the root a copy of it where somebody is late, and contributions until they are folded.
/// Messages are handed over: each is a copy, made in memory of earlier ones (`buffer_shelf`).
///
/// Making one is collective, over a group whose own collectives can be called in between; it must not outlive that.
template <class Group, class Tree, class Enough = straggler::wait_all, class Age = straggler::fresh,
          class Start = straggler::solo>
class rounds : detail::round_requirements<Tree, Enough, Age, Start>,
               public detail::round_loop<Group, Tree, detail::round_policies<Enough, Age, Start>> {
    using loop = detail::round_loop<Group, Tree, detail::round_policies<Enough, Age, Start>>;

  public:
    explicit rounds(Group& workers, const Tree& tree, const Enough& enough = {}, const Age& age = {},
                    const Start& start = {})
        : loop(workers, tree, {enough, age, start}, mix64(fingerprint(enough), fingerprint(age), fingerprint(start))) {}

    /// Contributes to the round under way; called once in each. `input`: N elements, unchanged. `output`: N elements at
    /// the root, where the result goes; not touched elsewhere. A contribution of weight 0 is no contribution.
    template <class In, class Out, class Fold = aggregate::sum>
        requires(detail::Tensors<In, Out> && !detail::CompressorFor<Fold, Out>)
    round_receipt reduce(const In& input, Out&& output, const Fold& fold = {}, const contribution& own = {}) {
        if constexpr (detail::require_operation<In, Out, Fold, void>()) {
            using T = tensor_element<Out>;
            this->check(input, output, own);
            return this->guarded([&] {
                using view = stream_view<T, std::uint32_t>;
                const std::span<const T> mine = detail::elements_of_input(input, detail::stage_of<T>(this->workers()));
                const std::size_t dimension = this->is_root() ? detail::size_of(output) : mine.size();
                const view content = own.weight == 0 ? view({0, dimension}, sparse_view<T, std::uint32_t>{})
                                                     : view({0, dimension}, mine);
                return contribute(content, dimension, output, fold, own, stream_codings{});
            });
        } else {
            return {};
        }
    }

    /// The same through a codec that is bound to this worker. `next` commits what is in a result and gives back what is
    /// not, so that error feedback loses nothing; the codec must live that long.
    template <class In, class Out, class Codec, class Fold = aggregate::sum>
        requires(detail::Tensors<In, Out> && detail::CompressorFor<Codec, Out>)
    round_receipt reduce(const In& input, Out&& output, Codec& codec, const Fold& fold = {},
                         const contribution& own = {}) {
        static_assert(Codec::is_coordinatewise,
                      "rill::rounds: the compressor makes its output from the fold of all ranks on all of them "
                      "(random_mask, PowerSGD); use top_k, bucket_top_k, threshold or keep_all");
        if constexpr (detail::require_operation<In, Out, Fold, void>()) {
            using T = tensor_element<Out>;
            this->check(input, output, own);
            return this->guarded([&] {
                this->hold(codec);
                codec.begin(this->number());
                using Index = typename Codec::index_type;
                const std::size_t dimension = codec.coded_dimension();
                const auto view =
                    own.weight == 0
                        ? stream_view<T, Index>({0, dimension}, sparse_view<T, Index>{})
                        : encode_with(codec, detail::elements_of_input(input, detail::stage_of<T>(this->workers())),
                                      this->workers().executor());
                return contribute(view, dimension, output, fold, own, codec.codings());
            });
        } else {
            return {};
        }
    }

  private:
    template <class T, class Index, class Out, class Fold>
    round_receipt contribute(const stream_view<T, Index>& view, std::size_t dimension, Out& output, const Fold& fold,
                             const contribution& own, const stream_codings& codings) {
        auto& operands = this->workers().template workspace<detail::round_operands<T, Index>>();
        operands.clear();
        wire::header head = this->template head_of<T>(operation::contribute, dimension);
        head.call = static_cast<std::uint32_t>(mix64(fingerprint(fold), codings.fingerprint(), sizeof(Index)));
        const auto arrivals = this->links().gather();
        if (this->links().is_over()) return this->template contribute_nothing<T, Index>(head);
        operands.add_own(head, view, codings.contribution, this->own_key(), own, this->workers().rank(),
                         this->workers().executor());
        for (const auto& each : arrivals) operands.roll.error_bound += this->add_child(operands, each, head);
        const auto late = this->links().latecomers();
        operands.roll.late.insert(operands.roll.late.end(), late.begin(), late.end());
        if (this->is_root()) {
            auto& stage = detail::stage_of<T>(this->workers());
            const std::span<T> result = detail::elements_of_output(output, stage);
            operands.fold(result, fold, this->workers().executor());
            if constexpr (!Fold::finish_is_trivial)
                if (!operands.roll.in.empty()) fold.finish(result, operands.roll.weight());
            detail::deliver(std::span<const T>(result), output);
        } else {
            this->links().hand_up(operands.message(head, fold, codings, this->workers().executor()));
        }
        this->links().forget_arrivals();
        return this->describe(std::move(operands.roll));
    }
};

}  // namespace rill::inline RILL_ABI

// ===== rill/rill.hpp

/// All of rill that needs the standard library alone, but for the transports and the gradient codes: include those that
/// you use by their names (`transport/in_process.hpp`, …), and so what you need of `train/`, `adapt/` and `testing/`.

#define RILL_SINGLE_HEADER

#endif  // RILL_SINGLE_RILL_HPP
