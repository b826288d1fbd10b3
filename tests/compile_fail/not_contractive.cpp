// expect: rill::compress::error_feedback: the compressor is not contractive, so the residual would grow
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/top_k.hpp>

/// Chooses entries at random and scales them up: unbiased, but what is left out can be larger than the input.
struct scaled_up : rill::compress::top_k {
    static constexpr bool is_contractive = false;
    template <rill::Element T = float, rill::IndexType Index = std::uint32_t>
    auto bind(std::size_t dimension) const {
        return rill::compress::encoded<scaled_up>{*this}.template bind<T, Index>(dimension);
    }
};

#ifdef RILL_FIXED
using policy = rill::compress::top_k;
#else
using policy = scaled_up;
#endif

const auto codec = rill::compress::error_feedback<policy>{}.bind(100);
