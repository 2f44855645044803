// Every function of blocks.hpp and normalisation.hpp that has a backward pass, as a map between flat arrays.
#pragma once

#include <cstdint>
#include <vector>

#include "sheafnn/random/stream.hpp"
#include "sheafnn/sheaf/families.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace sheaf_checks {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::sheaf;

using Values = std::vector<double>;

inline Values normals(int count, std::uint32_t id) {
  Values r(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < r.size(); ++i) {
    fill_normals<1>(&r[i], Stream{.seed = 5}, id, static_cast<std::uint32_t>(i));
  }
  return r;
}

template <class M, class T>
M take(const T*& p) {
  M r;
  for (Index i = 0; i < r.size(); ++i) r.data()[i] = *p++;
  return r;
}
template <class M, class T>
void give(const M& m, T*& p) {
  for (Index i = 0; i < m.size(); ++i) *p++ = m.data()[i];
}
template <class M>
M zero() {
  M r;
  for (Index i = 0; i < r.size(); ++i) r.data()[i] = typename M::Scalar(0);
  return r;
}
// Gram matrices are symmetric: averages a dense one with its transpose.
template <class M>
M symmetrised(const M& m) {
  M r = m;
  if constexpr (M::ColsAtCompileTime > 1) {
    for (Index i = 0; i < m.rows(); ++i) {
      for (Index j = 0; j < m.cols(); ++j) r(i, j) = typename M::Scalar(0.5) * (m(i, j) + m(j, i));
    }
  }
  return r;
}

// Every function under test as a map between flat arrays, with its backward pass: in_bar = (∂out/∂in)ᵀ out_bar.
template <class F>
struct GramOp {
  template <class T>
  using Map = typename F::template Map<T>;
  static constexpr int inputs = Map<double>::SizeAtCompileTime;
  static constexpr int outputs = sheafnn::sheaf::BlockSizes<F>::gram;
  static constexpr bool polynomial = true;
  // Rotations: derivatives are taken as if a rotation's Gram were constant, which it is on SO(D).
  template <class T>
  static void forward(const T* in, T* out) {
    give(gram<F, T>(take<Map<T>>(in)), out);
  }
  template <class T>
  static void backward(const T* in, const T* out_bar, T* in_bar) {
    Map<T> bar = zero<Map<T>>();
    gram_backward<F, T>(take<Map<T>>(in), take<Gram<F, T>>(out_bar), bar);
    give(bar, in_bar);
  }
};

template <class F>
struct TransportOp {
  template <class T>
  using Map = typename F::template Map<T>;
  static constexpr int inputs = 2 * Map<double>::SizeAtCompileTime;
  static constexpr int outputs = sheafnn::sheaf::BlockSizes<F>::transport;
  static constexpr bool polynomial = true;
  template <class T>
  static void forward(const T* in, T* out) {
    const auto a = take<Map<T>>(in);
    const auto b = take<Map<T>>(in);
    give(transport<F, T>(a, b), out);
  }
  template <class T>
  static void backward(const T* in, const T* out_bar, T* in_bar) {
    const auto a = take<Map<T>>(in);
    const auto b = take<Map<T>>(in);
    Map<T> a_bar = zero<Map<T>>(), b_bar = zero<Map<T>>();
    transport_backward<F, T>(a, b, take<Transport<F, T>>(out_bar), a_bar, b_bar);
    give(a_bar, in_bar);
    give(b_bar, in_bar);
  }
};

// S of the degree block AᵀA + I (dense) or a² + 1: free inputs, and eigenvalues of at least 1.
template <class F, Normalisation normalisation>
struct ScalingOp {
  static constexpr int outputs = sheafnn::sheaf::BlockSizes<F>::gram;
  static constexpr int inputs = outputs;
  static constexpr bool polynomial = false;
  template <class T>
  static Gram<F, T> degree_block(const Gram<F, T>& a) {
    Gram<F, T> r = block_product(block_transpose(a), a);
    for (int i = 0; i < sheafnn::sheaf::BlockSizes<F>::gram_rows; ++i)
      r(i, sheafnn::sheaf::BlockSizes<F>::gram_columns == 1 ? 0 : i) += T(1);
    return r;
  }
  template <class T>
  static void forward(const T* in, T* out) {
    give(node_scaling<F, T>(normalisation, degree_block<T>(take<Gram<F, T>>(in)), T(3)).scale, out);
  }
  template <class T>
  static void backward(const T* in, const T* out_bar, T* in_bar) {
    const auto a = take<Gram<F, T>>(in);
    Gram<F, T> d_bar = zero<Gram<F, T>>();
    const auto scaling = node_scaling<F, T>(normalisation, degree_block<T>(a), T(3));
    node_scaling_backward<F, T>(normalisation, scaling, take<Gram<F, T>>(out_bar), d_bar);
    const Gram<F, T> sum = d_bar + block_transpose(d_bar);
    give(block_product(a, sum), in_bar);
  }
};

}  // namespace sheaf_checks
