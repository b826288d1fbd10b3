/// Streams of gradients, dense and sparse, and the frames in which they travel.
#pragma once

#include <rill/stream/dense_switch.hpp>
#include <rill/stream/fold.hpp>
#include <rill/stream/frame.hpp>
#include <rill/stream/stream.hpp>
#include <rill/stream/stream_codings.hpp>
#include <rill/stream/stream_view.hpp>
#include <rill/stream/wire.hpp>
