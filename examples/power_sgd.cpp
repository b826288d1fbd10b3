// A compressor of your own: PowerSGD (Vogels et al., NeurIPS 2019). In place of a matrix M it sends the product with a
// thin basis: P = M Q, then Q = M' P. All ranks make the fold orthonormal and use it as the next basis. Here, steps
// send P and Q by turns.
#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>

#include <Eigen/Dense>
#include <cstdio>

using Eigen::Index, Eigen::MatrixXf;

class power_codec {
    Index factor_rows() const { return left_ ? rows_ : columns_; }
    MatrixXf product(const MatrixXf& f) const { return left_ ? f * basis_.transpose() : basis_ * f.transpose(); }
    static MatrixXf orthonormal(const MatrixXf& m) {
        return m.householderQr().householderQ() * MatrixXf::Identity(m.rows(), m.cols());
    }
    Index rows_, columns_;
    MatrixXf basis_, sent_, next_;
    bool left_ = true;

  public:
    using index_type = std::uint32_t;
    static constexpr bool is_coordinatewise = false, is_lossless = false, is_unbiased = false;
    static constexpr bool is_contractive = true, has_lossless_copy = true;  // a projection never lengthens

    power_codec(Index rows, Index columns, Index rank)
        : rows_(rows), columns_(columns), basis_(MatrixXf::Identity(columns, rank)) {}
    std::size_t dimension() const { return static_cast<std::size_t>(rows_ * columns_); }
    std::size_t coded_dimension() const { return static_cast<std::size_t>(factor_rows() * basis_.cols()); }
    rill::stream_codings codings() const { return {}; }
    rill::stream_view<float> encode(std::span<const float> gradient) {
        const Eigen::Map<const MatrixXf> m(gradient.data(), rows_, columns_);
        sent_ = (left_ ? MatrixXf(m) : MatrixXf(m.transpose())) * basis_;
        return {{0, coded_dimension()}, std::span<const float>(sent_.data(), coded_dimension())};
    }
    void decode(std::span<const float> folded, std::span<float> result) {
        next_ = Eigen::Map<const MatrixXf>(folded.data(), factor_rows(), basis_.cols());
        Eigen::Map<MatrixXf>(result.data(), rows_, columns_) = product(next_);
    }
    void erase_sent(std::span<const float> received, std::span<float> sum) const {  // for error feedback: what was
        const Eigen::Map<const MatrixXf> factor(received.data(), factor_rows(), basis_.cols());  // sent leaves the sum
        Eigen::Map<MatrixXf>(sum.data(), rows_, columns_) -= product(factor);
    }
    void begin(std::uint64_t) {}
    void commit() { basis_ = orthonormal(next_), left_ = !left_; }
    void rollback() {}
};
static_assert(rill::Compressor<power_codec, float>);

struct power_sgd {  // the policy
    Index rows = 0, columns = 0, rank = 2;
    template <class, class>
    power_codec bind(std::size_t) const {
        return power_codec(rows, columns, rank);
    }
};

/// Four ranks minimise the mean of |W - A|^2 / 2, each with its own A.
void train(Index rank) {
    rill::in_process::run(4, [&](auto& net) {
        rill::group workers{net, rill::topology::split_allgather{}};
        MatrixXf a = MatrixXf::Zero(40, 30), best = a, w = a, step = a;
        rill::random_sequence random(rill::random_key{2}.derive(net.rank()));
        for (float& x : a.reshaped()) x = random.uniform();
        const auto flat = [](MatrixXf& m) { return std::span(m.data(), static_cast<std::size_t>(m.size())); };
        rill::all_reduce(workers, flat(a), flat(best), rill::aggregate::mean{});
        auto codec = rill::compress::error_feedback{power_sgd{40, 30, rank}}.bind(flat(w).size());
        for (int t = 0; t < 300; ++t, w -= step) {
            step = 0.02F * (w - a);
            rill::all_reduce(workers, flat(step), flat(step), codec, rill::aggregate::mean{});
        }
        const double left = (w - best).norm() / best.norm();
        if (net.rank() == 0) std::printf("%4td %10zu %14.4f\n", rank, codec.coded_dimension(), left);
    });
}

int main() {
    std::printf("rank  of 1200  distance left\n");
    for (const Index rank : {1, 2, 4}) train(rank);
}
