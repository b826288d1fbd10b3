// What a step along a sparse gradient costs.
#pragma once

#include "../support/allocations.hpp"
#include "samples.hpp"
#include "sparse_samples.hpp"

#include <rill/stream/stream.hpp>
#include <rill/train/sgd.hpp>
#include <rill/train/sparse_dataset.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

/// Zeros that take memory only where they are touched.
class virtual_zeros {
  public:
    explicit virtual_zeros(std::size_t count) : bytes_(count * sizeof(float)) {
        void* const got =
            ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(got != MAP_FAILED);
        ::madvise(got, bytes_, MADV_NOHUGEPAGE);
        values_ = {static_cast<float*>(got), count};
    }
    virtual_zeros(const virtual_zeros&) = delete;
    virtual_zeros& operator=(const virtual_zeros&) = delete;
    ~virtual_zeros() { ::munmap(values_.data(), bytes_); }

    std::span<float> values() const { return values_; }
    /// How many pages have been read or written.
    std::size_t touched_pages() const {
        const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        std::vector<unsigned char> touched((bytes_ + page - 1) / page);
        REQUIRE(::mincore(values_.data(), bytes_, touched.data()) == 0);
        return static_cast<std::size_t>(
            std::count_if(touched.begin(), touched.end(), [](int each) { return each & 1; }));
    }

  private:
    std::size_t bytes_;
    std::span<float> values_;
};

struct step_cost {
    std::size_t entries = 0, allocated = 0, later_allocations = 0, pages = 0;
};

/// What a step of 20 rows costs, each of up to 30 of the model's `columns` columns. Labels are 0 and 1.
template <class Model>
step_cost cost_of_step(Model model, std::size_t columns) {
    rill::train::sparse_dataset data = random_sparse(40, columns, 30);
    for (float& label : data.labels) label = label > 0 ? 1.0F : 0.0F;
    const virtual_zeros parameters(model.dimension());
    auto optimizer = rill::train::sgd{}.template bind<float>(model.dimension());
    rill::stream<float> gradient;
    const std::vector<std::uint32_t> rows = first_rows(20);
    step_cost cost;
    const auto step = [&] {
        model.gradient(parameters.values(), {data, rows}, gradient);
        optimizer.step(parameters.values(), gradient.view(), 0.1);
    };
    const auto before = allocated_bytes();
    step();
    cost.allocated = allocated_bytes() - before;
    const auto steady = allocations();
    step();
    cost.later_allocations = allocations() - steady;
    cost.pages = parameters.touched_pages();
    cost.entries = gradient.count();
    return cost;
}
