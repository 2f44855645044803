/// \file
/// NumPy arrays from and to vectors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace python {

namespace nb = nanobind;

/// Row-major, on the CPU. Callers in Python convert what they are given (numpy.ascontiguousarray).
template <class T>
using Input = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Output = nb::ndarray<nb::numpy, T>;

template <class T>
[[nodiscard]] std::span<const T> span_of(const Input<T>& array) {
  return {array.data(), array.size()};
}
template <class T>
[[nodiscard]] std::vector<T> vector_of(const Input<T>& array) {
  return {array.data(), array.data() + array.size()};
}

/// An array of that shape, row-major, that owns the values.
template <class T>
[[nodiscard]] Output<T> to_numpy(std::vector<T> values, std::span<const std::size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Output<T>(owned->data(), shape.size(), shape.data(), owner);
}
template <class T>
[[nodiscard]] Output<T> to_numpy(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  return to_numpy(std::move(values), std::span<const std::size_t>(shape.begin(), shape.size()));
}
template <class T>
[[nodiscard]] Output<T> to_numpy(std::span<const T> values, std::initializer_list<std::size_t> shape) {
  return to_numpy(std::vector<T>(values.begin(), values.end()), shape);
}

}  // namespace python
