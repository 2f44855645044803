/// \file
/// ParameterList: how weights declare themselves, once. A struct of weights has a view of each and names it with its shape
/// and initial value:
///
///     template <class T>
///     struct MyWeights {
///       WeightVector<T> gamma;
///       void declare(ParameterList<T>& list, Index d) { list.vector(gamma, "gamma", {d}, constant_values(1)); }
///     };
///
/// With T = ParameterSlot the list adds the parameters to a table, which files, optimisers and initial values follow. With
/// T = const S or S it points the views at their values, or at an array laid out like them, such as a gradient.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/nn/initial_values.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn {

/// In place of a view: the position of the parameter in its table, or −1 where the architecture has none.
struct ParameterSlot {
  ParameterId id = -1;
  operator ParameterId() const noexcept { return id; }  // NOLINT: that is all it is
};

namespace detail {

template <class T>
struct WeightViews {
  using Matrix = MatrixView<T>;
  using Vector = std::span<T>;
};
template <>
struct WeightViews<ParameterSlot> {
  using Matrix = ParameterSlot;
  using Vector = ParameterSlot;
};

}  // namespace detail

/// Members of a struct of weights. \tparam T  const S, S or ParameterSlot
template <class T>
using WeightMatrix = typename detail::WeightViews<T>::Matrix;
/// The same for a vector. \tparam T  const S, S or ParameterSlot
template <class T>
using WeightVector = typename detail::WeightViews<T>::Vector;

/// What weights are declared to. Declarations that follow each other have to be the same for every T.
template <class T>
class ParameterList {
  static constexpr bool adds = std::is_same_v<T, ParameterSlot>;
  using Table = std::conditional_t<adds, ParameterTable, const ParameterTable>;

 public:
  /// Adds to `table`, which must outlive the list.
  explicit ParameterList(ParameterTable& table) requires adds : table_(&table) {}
  /// Views of `array`, which is laid out like the parameters of `table`. Unchecked: it has as many numbers as they.
  ParameterList(const ParameterTable& table, T* array) requires(!adds) : table_(&table), array_(array) {}

  ParameterGroup group = ParameterGroup::network;  ///< of the declarations that follow
  std::string suffix;                              ///< after their names
  bool as_stored = false;  ///< are their initial values listed as they lie in memory, not as files have them?

  /// \param transposed  does the matrix lie in columns × rows?
  /// \throws std::invalid_argument  of a list that adds: no extent, or one outside 1 … 2147483647
  /// \throws std::logic_error       another declaration than that of the table
  void matrix(WeightMatrix<T>& weight, const std::string& name, Index rows, Index columns, InitialValues initial,
              bool transposed = false) {
    const ParameterId id = take(name, {rows, columns}, std::move(initial), transposed);
    if constexpr (adds) {
      weight.id = id;
    } else {
      weight = transposed ? WeightMatrix<T>(at(id), columns, rows) : WeightMatrix<T>(at(id), rows, columns);
    }
  }
  /// \param shape  as files have it; the view has all numbers in one row. \throws as matrix()
  void vector(WeightVector<T>& weight, const std::string& name, std::vector<Index> shape, InitialValues initial) {
    const ParameterId id = take(name, std::move(shape), std::move(initial), false);
    if constexpr (adds) {
      weight.id = id;
    } else {
      weight = {at(id), static_cast<std::size_t>(table_->info(id).size)};
    }
  }

 private:
  ParameterId take(const std::string& name, std::vector<Index> shape, InitialValues initial, bool transposed) {
    if constexpr (adds) {
      return table_->add(name + suffix, std::move(shape), group, transposed, std::move(initial), as_stored);
    } else {
      const bool there = static_cast<std::size_t>(next_) < table_->info().size();
      if (!there || table_->info(next_).name != name + suffix || table_->info(next_).shape != shape) {
        throw std::logic_error(detail::concat("the parameter ", name, suffix, there ? " is declared as " + table_->info(next_).name : " is not in the table"));
      }
      return next_++;
    }
  }
  [[nodiscard]] auto* at(ParameterId id) const { return array_ + table_->info(id).offset; }

  Table* table_;
  T* array_ = nullptr;
  ParameterId next_ = 0;
};

namespace detail {

/// Points views at the parameters in an array, unless they point there already.
///
/// \param bound    where they point; null: nowhere, also after declare() has thrown
/// \param declare  declare(list) declares all weights
template <class S, class T, class Declare>
void point_at(const ParameterTable& table, T* array, const S*& bound, const Declare& declare) {
  if (array == bound) return;
  bound = nullptr;
  ParameterList<T> list(table, array);
  declare(list);
  bound = array;
}

}  // namespace detail

}  // namespace sheafnn
