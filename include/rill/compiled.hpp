/// The code that `rill::compiled` compiles once for a whole program: `all_reduce` among threads, dense and by streams,
/// of float and double.
///
/// The macro `RILL_COMPILED`, which the CMake target sets, makes `rill/rill.hpp` include this header: other translation
/// units then leave this code out, and compile all else as before. Without CMake, define the macro for all of them and
/// add one that holds `#define RILL_COMPILED_HERE` and `#include <rill/compiled.hpp>`. All need the same flags: what is
/// compiled for another contract level or instruction set has another name, and is missing when the program is linked.
///
/// It may be read twice in one unit: where a precompiled header, or another unit of a unity build, stands before the
/// component's own source, first as what is compiled elsewhere, then as what is compiled here.
#include <rill/aggregate/mean.hpp>
#include <rill/aggregate/sum.hpp>
#include <rill/collective/all_reduce.hpp>
#include <rill/kernel/bucket_select.hpp>
#include <rill/kernel/quantize.hpp>
#include <rill/kernel/select.hpp>
#include <rill/kernel/threshold.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/tree.hpp>
#include <rill/transport/in_process.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

#if defined(RILL_COMPILED_HERE) && !defined(RILL_DETAIL_COMPILED_MADE)
#define RILL_DETAIL_COMPILED_MADE
#define RILL_DETAIL_ONCE template
#elif defined(RILL_COMPILED) && !defined(RILL_COMPILED_HERE) && !defined(RILL_DETAIL_COMPILED_NAMED)
#define RILL_DETAIL_COMPILED_NAMED
#define RILL_DETAIL_ONCE extern template
#endif

#if defined(RILL_DETAIL_ONCE)

namespace rill { inline namespace RILL_ABI {

namespace detail {
using once_net = in_process::endpoint;
template <class Shape>
using once_lane = lane<once_net, Shape, serial>;
template <class T>
using once_streams = stream_state<once_net, T, std::uint32_t, aggregate::sum, serial>;
template <class T>
using once_call = stream_call<T, std::uint32_t, once_streams<T>, serial>;
}  // namespace detail

// Whatever is sent.
RILL_DETAIL_ONCE void in_process::detail::run_ranks(int, function_ref<void(in_process::endpoint&)>,
                                                    const in_process::options&);
RILL_DETAIL_ONCE class session<in_process::endpoint>;
RILL_DETAIL_ONCE class exchange<in_process::endpoint>;
RILL_DETAIL_ONCE class detail::empty_state<in_process::endpoint>;
RILL_DETAIL_ONCE void detail::run_rounds(exchange<in_process::endpoint>&, exchange<in_process::endpoint>&,
                                         const detail::schedule_view&, const detail::state_view<in_process::endpoint>&);

// For each element type.
#define RILL_DETAIL_ONCE_OF(T)                                                                                \
    RILL_DETAIL_ONCE class dense_state<in_process::endpoint, T, aggregate::sum, serial>;                      \
    RILL_DETAIL_ONCE class dense_state<in_process::endpoint, T, aggregate::mean, serial>;                     \
    RILL_DETAIL_ONCE class detail::fused_state<in_process::endpoint, T, aggregate::sum, serial>;              \
    RILL_DETAIL_ONCE class detail::fused_state<in_process::endpoint, T, aggregate::mean, serial>;             \
    RILL_DETAIL_ONCE class stream_state<in_process::endpoint, T, std::uint32_t, aggregate::sum, serial>;      \
    RILL_DETAIL_ONCE void detail::take_finished(detail::once_streams<T>&, part_range, const std::span<T>&,    \
                                                const aggregate::sum&);                                       \
    RILL_DETAIL_ONCE void detail::take_finished(detail::once_streams<T>&, part_range, const std::span<T>&,    \
                                                const aggregate::mean&);                                      \
    RILL_DETAIL_ONCE std::size_t kernel::detail::select_largest(std::span<const T>, std::size_t, std::size_t, \
                                                                std::uint32_t*, kernel::select_scratch&);     \
    RILL_DETAIL_ONCE std::size_t kernel::detail::select_in_buckets(                                           \
        std::span<const T>, std::size_t, std::size_t, std::size_t, std::uint32_t*, kernel::select_scratch&);  \
    RILL_DETAIL_ONCE std::size_t kernel::threshold(std::span<const T>, T, aligned_vector<std::uint32_t>&);
RILL_DETAIL_ONCE_OF(float)
RILL_DETAIL_ONCE_OF(double)

// For each way of coding the frames of a stream.
#define RILL_DETAIL_ONCE_FRAMES(T, rounds, indices)                                                              \
    RILL_DETAIL_ONCE byte_view detail::encode_frame<coding_set{rounds, indices}, T, std::uint32_t, serial>(      \
        const wire::header&, const stream_view<T>&, const coding&, random_key, arena&, const serial&);           \
    RILL_DETAIL_ONCE void detail::require_input<coding_set{rounds, indices}, T, std::uint32_t, serial>(          \
        const stream_view<T>&, const stream_codings&, const serial&);                                            \
    RILL_DETAIL_ONCE stream_view<T> detail::decode_frame<coding_set{rounds, indices}, T, std::uint32_t, serial>( \
        const frame&, const stream_room<T, std::uint32_t>&, const serial&);
#define RILL_DETAIL_ONCE_CODED(rounds, indices)     \
    RILL_DETAIL_ONCE_FRAMES(float, rounds, indices) \
    RILL_DETAIL_ONCE_FRAMES(double, rounds, indices)
RILL_DETAIL_ONCE_CODED(false, index_coding::raw)
RILL_DETAIL_ONCE_CODED(true, index_coding::raw)
RILL_DETAIL_ONCE_CODED(false, index_coding::packed_gaps)
RILL_DETAIL_ONCE_CODED(true, index_coding::packed_gaps)
RILL_DETAIL_ONCE_CODED(true, index_coding::smallest)

// For each topology.
#define RILL_DETAIL_ONCE_FOLD(Shape, T, Fold)                                                                      \
    RILL_DETAIL_ONCE receipt detail::all_reduce_dense(detail::once_lane<Shape>&, const Fold&, const contribution&, \
                                                      const detail::dense_call<T>&);
#define RILL_DETAIL_ONCE_CALLS(Shape, T)                                                                  \
    RILL_DETAIL_ONCE_FOLD(Shape, T, aggregate::sum)                                                       \
    RILL_DETAIL_ONCE_FOLD(Shape, T, aggregate::mean)                                                      \
    RILL_DETAIL_ONCE receipt detail::all_reduce_streams(detail::once_lane<Shape>&, const call_signature&, \
                                                        const aggregate::sum&, const contribution&,       \
                                                        const detail::once_call<T>&);
#define RILL_DETAIL_ONCE_ON(Shape)                                     \
    RILL_DETAIL_ONCE class lane<in_process::endpoint, Shape, serial>;  \
    RILL_DETAIL_ONCE class group<in_process::endpoint, Shape, serial>; \
    RILL_DETAIL_ONCE_CALLS(Shape, float)                               \
    RILL_DETAIL_ONCE_CALLS(Shape, double)
RILL_DETAIL_ONCE_ON(topology::ring)
RILL_DETAIL_ONCE_ON(topology::recursive_doubling)
RILL_DETAIL_ONCE_ON(topology::halving_doubling)
RILL_DETAIL_ONCE_ON(topology::split_allgather)
RILL_DETAIL_ONCE_ON(topology::tree)

}}  // namespace rill::RILL_ABI

#undef RILL_DETAIL_ONCE
#undef RILL_DETAIL_ONCE_OF
#undef RILL_DETAIL_ONCE_FRAMES
#undef RILL_DETAIL_ONCE_CODED
#undef RILL_DETAIL_ONCE_FOLD
#undef RILL_DETAIL_ONCE_CALLS
#undef RILL_DETAIL_ONCE_ON

#endif  // defined(RILL_DETAIL_ONCE)
