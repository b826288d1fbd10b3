#pragma once

#include "arguments.hpp"
#include "images.hpp"
#include "outcome.hpp"

namespace demo {

/// The gradients in full.
outcome train_dense(const arguments& chosen, const images& data);

/// SparCML's quantised top-k SGD.
outcome train_sparse(const arguments& chosen, const images& data);

}  // namespace demo
