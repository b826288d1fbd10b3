/// The vocabulary that everything else uses: types, time, bytes, random numbers, errors, receipts.
#pragma once

#include <rill/core/addition.hpp>
#include <rill/core/arena.hpp>
#include <rill/core/buffer_shelf.hpp>
#include <rill/core/bytes.hpp>
#include <rill/core/call.hpp>
#include <rill/core/channel.hpp>
#include <rill/core/coding.hpp>
#include <rill/core/config.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/error.hpp>
#include <rill/core/fingerprint.hpp>
#include <rill/core/message_kind.hpp>
#include <rill/core/option_range.hpp>
#include <rill/core/pool.hpp>
#include <rill/core/random.hpp>
#include <rill/core/receipt.hpp>
#include <rill/core/round_receipt.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/serial.hpp>
#include <rill/core/sparse_view.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/core/view.hpp>
