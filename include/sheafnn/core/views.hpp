/// \file
/// Views of values that somebody else owns: matrices, and features of a sheaf's nodes. They know their sizes.
///
/// T is a scalar, const where the view is for reading; a view for writing converts to one for reading.
#pragma once

#include <cassert>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/eigen.hpp"
#include "sheafnn/core/errors.hpp"

namespace sheafnn {

/// A row-major Eigen matrix of these scalars, or a column.
template <class Derived, class Scalar>
concept RowMajor = (static_cast<bool>(Derived::IsRowMajor) || Derived::ColsAtCompileTime == 1) &&
                   std::is_same_v<typename Derived::Scalar, Scalar>;

/// rows × columns, row-major; element (i, j) is data[i · stride + j].
///
/// Unchecked: that the memory lives as long as the view, sizes of at least 0, stride ≥ columns, and indices of rows and
/// columns. Assertions check them.
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
    requires(std::is_const_v<T>&& std::is_same_v<U, Scalar>)
  // NOLINTNEXTLINE(google-explicit-constructor): as std::span, a view of T is one of const T
  MatrixView(const MatrixView<U>& other)
  noexcept : MatrixView(other.data(), other.rows(), other.columns(), other.stride()) {}
  /// A row-major Eigen matrix, or a column.
  template <class Derived>
    requires RowMajor<Derived, Scalar>
  explicit MatrixView(Eigen::PlainObjectBase<Derived>& matrix) noexcept
      : MatrixView(matrix.data(), matrix.rows(), matrix.cols()) {}
  template <class Derived>
    requires(std::is_const_v<T>&& RowMajor<Derived, Scalar>)
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
  /// `count` rows from row `first` on.
  [[nodiscard]] MatrixView middle_rows(Index first, Index count) const noexcept {
    assert(0 <= first && 0 <= count && first + count <= rows_);
    return {data_ + first * stride_, count, columns_, stride_};
  }
  /// As an Eigen matrix.
  [[nodiscard]] EigenMap eigen() const { return {data_, rows_, columns_, Eigen::OuterStride<>(stride_)}; }

 private:
  T* data_ = nullptr;
  Index rows_ = 0, columns_ = 0, stride_ = 0;
};

/// Features of n nodes, n × d' × f: d' stalk coordinates with f channels each, channels innermost, without gaps.
///
/// Unchecked: that the memory lives as long as the view, sizes of at least 0, and indices of nodes; assertions say
/// so.
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
    requires(std::is_const_v<T>&& std::is_same_v<U, Scalar>)
  // NOLINTNEXTLINE(google-explicit-constructor): as std::span, a view of T is one of const T
  FeatureView(const FeatureView<U>& other)
  noexcept : FeatureView(other.data(), other.nodes(), other.coordinates(), other.channels()) {}
  /// A cochain as a row-major Eigen matrix, (n d') × f: one row of channels per stalk coordinate.
  ///
  /// \throws std::invalid_argument  a number of rows that is not a multiple of the number of coordinates
  template <class Derived>
    requires RowMajor<Derived, Scalar> FeatureView(Eigen::PlainObjectBase<Derived>& cochain, Index coordinates)
        : FeatureView(cochain.data(), nodes_of(cochain.rows(), coordinates), coordinates, cochain.cols()) {}
    template <class Derived>
      requires(std::is_const_v<T>&& RowMajor<Derived, Scalar>)
    FeatureView(const Eigen::PlainObjectBase<Derived>& cochain, Index coordinates)
        : FeatureView(cochain.data(), nodes_of(cochain.rows(), coordinates), coordinates, cochain.cols()) {}

    [[nodiscard]] T* data() const noexcept { return data_; }
    [[nodiscard]] Index nodes() const noexcept { return nodes_; }
    [[nodiscard]] Index coordinates() const noexcept { return coordinates_; }
    [[nodiscard]] Index channels() const noexcept { return channels_; }
    /// Values per node, d' · f.
    [[nodiscard]] Index row_size() const noexcept { return coordinates_ * channels_; }
    [[nodiscard]] Index size() const noexcept { return nodes_ * row_size(); }
    /// x_u as a d' × f matrix.
    [[nodiscard]] MatrixView<T> node(Index u) const noexcept {
      assert(0 <= u && u < nodes_);
      return {data_ + u * row_size(), coordinates_, channels_};
    }
    /// The rows of the first nodes.
    [[nodiscard]] FeatureView first(Index nodes) const noexcept {
      assert(0 <= nodes && nodes <= nodes_);
      return {data_, nodes, coordinates_, channels_};
    }
    /// A row of d' · f values per node.
    [[nodiscard]] MatrixView<T> rows() const noexcept { return {data_, nodes_, row_size()}; }
    /// As a cochain: a row of f channels per stalk coordinate, (n d') × f.
    [[nodiscard]] MatrixView<T> cochain() const noexcept { return {data_, nodes_ * coordinates_, channels_}; }
    /// The cochain as an Eigen matrix.
    [[nodiscard]] auto eigen() const { return cochain().eigen(); }

   private:
    [[nodiscard]] static Index nodes_of(Index rows, Index coordinates) {
      if (coordinates < 1 || rows % coordinates != 0) {
        throw_invalid_argument("coordinates", coordinates,
                               detail::concat("must divide the number of rows, ", rows));
      }
      return rows / coordinates;
    }

    T* data_ = nullptr;
    Index nodes_ = 0, coordinates_ = 0, channels_ = 0;
};

template <class Derived>
MatrixView(Eigen::PlainObjectBase<Derived>&) -> MatrixView<typename Derived::Scalar>;
template <class Derived>
MatrixView(const Eigen::PlainObjectBase<Derived>&) -> MatrixView<const typename Derived::Scalar>;
template <class Derived>
FeatureView(Eigen::PlainObjectBase<Derived>&, Index) -> FeatureView<typename Derived::Scalar>;
template <class Derived>
FeatureView(const Eigen::PlainObjectBase<Derived>&, Index) -> FeatureView<const typename Derived::Scalar>;

/// A size, for the initialisers of what is made of it. \throws std::invalid_argument  outside least … 2147483647
[[nodiscard]] inline Index checked_extent(std::string_view name, Index extent, Index least = 1) {
  require_between(name, extent, least, std::numeric_limits<std::int32_t>::max());
  return extent;
}

/// \throws std::invalid_argument  unless the matrix has this shape; `name` is what messages call it
template <class T>
void require_shape(const MatrixView<T>& matrix, Index rows, Index columns, std::string_view name) {
  if (matrix.rows() == rows && matrix.columns() == columns) return;
  throw_invalid_argument(detail::concat("shape of ", name), detail::concat(matrix.rows(), " x ", matrix.columns()),
                         detail::concat("must be ", rows, " x ", columns));
}
/// \throws std::invalid_argument  as above
template <class T>
void require_shape(const FeatureView<T>& features, Index nodes, Index coordinates, Index channels,
                   std::string_view name) {
  if (features.nodes() == nodes && features.coordinates() == coordinates && features.channels() == channels)
    return;
  throw_invalid_argument(detail::concat("shape of ", name),
                         detail::concat(features.nodes(), " x ", features.coordinates(), " x ",
                                        features.channels()),
                         detail::concat("must be ", nodes, " x ", coordinates, " x ", channels));
}
/// The same for a matrix that is read as an array. \throws std::invalid_argument  also unless its rows follow each
/// other without gaps
template <class T>
void require_array(const MatrixView<T>& matrix, Index rows, Index columns, std::string_view name) {
  require_shape(matrix, rows, columns, name);
  if (rows <= 1 || matrix.stride() == columns) return;
  throw_invalid_argument(detail::concat("stride of ", name), matrix.stride(),
                         detail::concat("must be ", columns, ": rows without gaps"));
}
/// \throws std::invalid_argument  unless the span has this size
template <class T>
void require_size(std::span<T> values, Index size, std::string_view name) {
  if (static_cast<Index>(values.size()) == size) return;
  throw_invalid_argument(detail::concat("size of ", name), values.size(), detail::concat("must be ", size));
}

}  // namespace sheafnn
