#pragma once

#include "arguments.hpp"
#include "images.hpp"
#include "outcome.hpp"

namespace demo {

/// Trains with dense gradients.
outcome train_dense(const arguments& chosen, const images& data);

/// Trains with SparCML's quantised top-k SGD.
outcome train_sparse(const arguments& chosen, const images& data);

}  // namespace demo
