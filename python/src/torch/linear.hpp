/// \file
/// The linear layer of features of few columns, which are not mostly 0: y = x Wᵀ + 1 bᵀ and its backward pass.
#pragma once

#include "pass.hpp"

namespace python {

/// Arrays of a linear layer, without gaps.
template <class T>
struct LinearArrays {
  T* x;       ///< rows × inputs
  T* weight;  ///< W, outputs × inputs
  T* bias;    ///< b, outputs
};

/// \param y  rows × outputs
template <class S>
void linear_layer(int threads, Index rows, Index inputs, Index outputs, const LinearArrays<const S>& of, S* y);
/// \param x, weight, y_bar  y_bar is rows × outputs
/// \param bars              of x, W and b, overwritten; x null: not wanted
template <class S>
void linear_layer_backward(int threads, Index rows, Index inputs, Index outputs, const S* x, const S* weight,
                           const S* y_bar, const LinearArrays<S>& bars);

}  // namespace python
