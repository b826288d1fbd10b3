/// All kernels: they select, merge, fold and quantise values and code indices, on spans.
#pragma once

#include <rill/kernel/add_scaled.hpp>
#include <rill/kernel/bf16.hpp>
#include <rill/kernel/bucket_select.hpp>
#include <rill/kernel/combine.hpp>
#include <rill/kernel/copy.hpp>
#include <rill/kernel/fold.hpp>
#include <rill/kernel/fold_tiles.hpp>
#include <rill/kernel/index_bitmap.hpp>
#include <rill/kernel/index_coding.hpp>
#include <rill/kernel/index_elias_fano.hpp>
#include <rill/kernel/index_gaps.hpp>
#include <rill/kernel/index_huffman.hpp>
#include <rill/kernel/index_raw.hpp>
#include <rill/kernel/magnitude.hpp>
#include <rill/kernel/mask.hpp>
#include <rill/kernel/merge.hpp>
#include <rill/kernel/merge_k.hpp>
#include <rill/kernel/quantize.hpp>
#include <rill/kernel/scatter.hpp>
#include <rill/kernel/select.hpp>
#include <rill/kernel/select_bounds.hpp>
#include <rill/kernel/sort_by_index.hpp>
#include <rill/kernel/sum_by_index.hpp>
#include <rill/kernel/tasks.hpp>
#include <rill/kernel/threshold.hpp>
