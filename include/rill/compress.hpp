/// All compressors: what is sent, and how it is coded.
#pragma once

#include <rill/compress/bucket_top_k.hpp>
#include <rill/compress/difference.hpp>
#include <rill/compress/encoded.hpp>
#include <rill/compress/error_feedback.hpp>
#include <rill/compress/indices.hpp>
#include <rill/compress/keep_all.hpp>
#include <rill/compress/momentum_correction.hpp>
#include <rill/compress/own_values.hpp>
#include <rill/compress/random_mask.hpp>
#include <rill/compress/row_top_k.hpp>
#include <rill/compress/selection.hpp>
#include <rill/compress/signs.hpp>
#include <rill/compress/threshold.hpp>
#include <rill/compress/top_k.hpp>
#include <rill/compress/values.hpp>
#include <rill/compress/warming_top_k.hpp>
#include <rill/compress/with_codings.hpp>
