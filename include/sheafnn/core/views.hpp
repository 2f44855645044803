/// \file
/// Views of numbers that somebody else owns: matrices, and features of a sheaf's nodes. They know their sizes.
///
/// T is a scalar, const where the view is for reading; a view for writing converts to one for reading.
#pragma once

#include <cassert>
#include <span>
#include <string_view>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/eigen.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// rows × columns, row-major; element (i, j) is data[i · stride + j].
template <class T>
class MatrixView {
 public:
  using Scalar = std::remove_const_t<T>;
  using EigenMap = Eigen::Map<std::conditional_t<std::is_const_v<T>, const Eigen::Matrix<Scalar, -1, -1, 1>,
                                                 Eigen::Matrix<Scalar, -1, -1, 1>>,
                              0, Eigen::OuterStride<>>;

  MatrixView() = default;
  MatrixView(T* data, Index rows, Index columns) noexcept : MatrixView(data, rows, columns, columns) {}
  MatrixView(T* data, Index rows, Index columns, Index stride) noexcept
      : data_(data), rows_(rows), columns_(columns), stride_(stride) {
    assert(rows >= 0 && columns >= 0 && stride >= columns);
  }
  /// A view for writing, read.
  template <class U>
    requires(std::is_const_v<T> && std::is_same_v<U, Scalar>)
  MatrixView(const MatrixView<U>& other) noexcept
      : MatrixView(other.data(), other.rows(), other.columns(), other.stride()) {}
  /// An Eigen matrix with contiguous rows, or a map of one.
  template <class Derived>
    requires(Derived::IsRowMajor && std::is_same_v<typename Derived::Scalar, Scalar>)
  explicit MatrixView(Eigen::PlainObjectBase<Derived>& matrix) noexcept
      : MatrixView(matrix.data(), matrix.rows(), matrix.cols()) {}
  template <class Derived>
    requires(std::is_const_v<T> && Derived::IsRowMajor && std::is_same_v<typename Derived::Scalar, Scalar>)
  explicit MatrixView(const Eigen::PlainObjectBase<Derived>& matrix) noexcept
      : MatrixView(matrix.data(), matrix.rows(), matrix.cols()) {}

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] Index rows() const noexcept { return rows_; }
  [[nodiscard]] Index columns() const noexcept { return columns_; }
  [[nodiscard]] Index stride() const noexcept { return stride_; }
  [[nodiscard]] bool empty() const noexcept { return data_ == nullptr; }
  [[nodiscard]] T& operator()(Index i, Index j) const noexcept {
    assert(0 <= i && i < rows_ && 0 <= j && j < columns_);
    return data_[i * stride_ + j];
  }
  [[nodiscard]] std::span<T> row(Index i) const noexcept {
    assert(0 <= i && i < rows_);
    return {data_ + i * stride_, static_cast<std::size_t>(columns_)};
  }
  /// As an Eigen matrix.
  [[nodiscard]] EigenMap eigen() const { return {data_, rows_, columns_, Eigen::OuterStride<>(stride_)}; }

 private:
  T* data_ = nullptr;
  Index rows_ = 0, columns_ = 0, stride_ = 0;
};

/// Features of n nodes, n × d' × f: d' stalk coordinates with f channels each, channels innermost, without gaps.
template <class T>
class FeatureView {
 public:
  using Scalar = std::remove_const_t<T>;

  FeatureView() = default;
  FeatureView(T* data, Index nodes, Index coordinates, Index channels) noexcept
      : data_(data), nodes_(nodes), coordinates_(coordinates), channels_(channels) {
    assert(nodes >= 0 && coordinates >= 0 && channels >= 0);
  }
  /// A view for writing, read.
  template <class U>
    requires(std::is_const_v<T> && std::is_same_v<U, Scalar>)
  FeatureView(const FeatureView<U>& other) noexcept
      : FeatureView(other.data(), other.nodes(), other.coordinates(), other.channels()) {}

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] Index nodes() const noexcept { return nodes_; }
  [[nodiscard]] Index coordinates() const noexcept { return coordinates_; }
  [[nodiscard]] Index channels() const noexcept { return channels_; }
  /// Numbers per node, d' · f.
  [[nodiscard]] Index row_size() const noexcept { return coordinates_ * channels_; }
  [[nodiscard]] Index size() const noexcept { return nodes_ * row_size(); }
  /// x_u as a d' × f matrix.
  [[nodiscard]] MatrixView<T> node(Index u) const noexcept {
    assert(0 <= u && u < nodes_);
    return {data_ + u * row_size(), coordinates_, channels_};
  }
  /// Those of the first nodes.
  [[nodiscard]] FeatureView first(Index nodes) const noexcept {
    assert(0 <= nodes && nodes <= nodes_);
    return {data_, nodes, coordinates_, channels_};
  }
  /// A row of d' · f numbers per node.
  [[nodiscard]] MatrixView<T> rows() const noexcept { return {data_, nodes_, row_size()}; }
  /// As a cochain: a row of f channels per stalk coordinate, (n d') × f.
  [[nodiscard]] MatrixView<T> cochain() const noexcept { return {data_, nodes_ * coordinates_, channels_}; }

 private:
  T* data_ = nullptr;
  Index nodes_ = 0, coordinates_ = 0, channels_ = 0;
};

/// \throws std::invalid_argument  unless the matrix has this shape; `name` is what messages call it
template <class T>
void require_shape(const MatrixView<T>& matrix, Index rows, Index columns, std::string_view name) {
  if (matrix.rows() != rows || matrix.columns() != columns) {
    throw_invalid_argument(concat("shape of ", name), concat(matrix.rows(), " x ", matrix.columns()),
                           concat("must be ", rows, " x ", columns));
  }
}
/// \throws std::invalid_argument  as above
template <class T>
void require_shape(const FeatureView<T>& features, Index nodes, Index coordinates, Index channels,
                   std::string_view name) {
  if (features.nodes() != nodes || features.coordinates() != coordinates || features.channels() != channels) {
    throw_invalid_argument(
        concat("shape of ", name),
        concat(features.nodes(), " x ", features.coordinates(), " x ", features.channels()),
        concat("must be ", nodes, " x ", coordinates, " x ", channels));
  }
}
/// \throws std::invalid_argument  unless the span has this size
template <class T>
void require_size(std::span<T> values, Index size, std::string_view name) {
  if (static_cast<Index>(values.size()) != size) {
    throw_invalid_argument(concat("size of ", name), values.size(), concat("must be ", size));
  }
}

}  // namespace sheafnn
