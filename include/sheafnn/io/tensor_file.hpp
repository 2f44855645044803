/// \file
/// TensorFile: named tensors of floating-point numbers and a map of texts, the content of a safetensors file.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/io/file.hpp"

namespace sheafnn::io {

/// A named array of floats or doubles, row-major, kept as the bytes of the file (lowest byte first).
struct Tensor {
  std::string name;
  std::string dtype = "F32";  ///< "F32" or "F64"
  std::vector<Index> shape;   ///< empty for a single number
  Bytes data;

  /// Number of elements.
  [[nodiscard]] Index size() const noexcept {
    Index r = 1;
    for (const Index extent : shape) r *= extent;
    return r;
  }
  /// Elements as S = float or double; converted where the dtype differs.
  template <class S>
  [[nodiscard]] std::vector<S> values() const {
    std::vector<S> r(static_cast<std::size_t>(size()));
    for (std::size_t i = 0; i < r.size(); ++i) {
      if (dtype == "F64") {
        r[i] = static_cast<S>(std::bit_cast<double>(detail::load_little<std::uint64_t>(data.data() + 8 * i)));
      } else {
        r[i] = static_cast<S>(std::bit_cast<float>(detail::load_little<std::uint32_t>(data.data() + 4 * i)));
      }
    }
    return r;
  }
};

/// Makes a tensor of S = float ("F32") or double ("F64") from row-major values.
///
/// \throws std::invalid_argument  a negative extent, too many elements for readers, or a number of values that does not
///                                match the shape
template <class S>
[[nodiscard]] Tensor make_tensor(std::string name, std::vector<Index> shape,
                                 std::type_identity_t<std::span<const S>> values) {
  static_assert(std::is_same_v<S, float> || std::is_same_v<S, double>);
  using Bits = std::conditional_t<sizeof(S) == 4, std::uint32_t, std::uint64_t>;
  Tensor tensor{std::move(name), sizeof(S) == 4 ? "F32" : "F64", std::move(shape), {}};
  const Index size = detail::element_count(tensor.name, tensor.shape);
  require(size == static_cast<Index>(values.size()), tensor.name, values.size(),
          sheafnn::detail::concat("its shape needs ", size, " values"));
  tensor.data.reserve(values.size() * sizeof(S));
  for (const S value : values) detail::append_little(tensor.data, std::bit_cast<Bits>(value));
  return tensor;
}

namespace detail {

/// Refuses values that readers refuse. \throws std::invalid_argument  one that is not finite
template <class S>
void require_finite(std::string_view name, const std::vector<S>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    require(std::isfinite(values[i]), ArgumentName({}, name, i), values[i], "must be finite");
  }
}

}  // namespace detail

/// Content of a safetensors file.
struct TensorFile {
  std::map<std::string, std::string> metadata;
  std::vector<Tensor> tensors;  ///< in the order of the file

  /// The tensor of that name, or nullptr. Takes any name.
  [[nodiscard]] const Tensor* find(std::string_view name) const noexcept {
    for (const Tensor& tensor : tensors) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
};

}  // namespace sheafnn::io
