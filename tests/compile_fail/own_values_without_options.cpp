// expect: the coding has members, by which ranks may differ, and does not name them
#include <rill/compress/encoded.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/own_values.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

struct bytes_each {
    int bytes = 1;

    static constexpr const char* name = "bytes_each";
    static constexpr bool is_lossless = false;
    static constexpr bool is_unbiased = false;

    std::size_t size(std::size_t count, std::size_t) const { return count * static_cast<std::size_t>(bytes); }
    template <class T>
    void encode(std::span<const T>, rill::random_key, std::uint64_t, rill::byte_span) const {}
    template <class T>
    void decode(rill::byte_view, std::span<T>) const {}
#ifdef RILL_FIXED
    template <class Visit>
    void visit_options(Visit&& visit) const {
        visit("bytes", bytes);
    }
#endif
    friend bool operator==(const bytes_each&, const bytes_each&) = default;
};

auto bound() {
    return rill::compress::encoded{rill::compress::keep_all{}, rill::compress::own_values{bytes_each{}}}.bind(8);
}
