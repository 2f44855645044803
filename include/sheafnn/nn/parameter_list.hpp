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

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/views.hpp"
#include "sheafnn/nn/initial_values.hpp"
#include "sheafnn/nn/parameters.hpp"

namespace sheafnn::layers {

/// In place of a view: the position of the parameter in its table, or −1 if the architecture lacks the parameter.
struct ParameterSlot {
  ParameterId id = -1;
  operator ParameterId() const noexcept { return id; }  // NOLINT: that is all it is
};

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// How a struct of weights sees a matrix and a vector: as views, or as places among the parameters.
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

/// The name of a parameter in two parts: "lin1" and ".weight". Refers to them.
struct ParameterName {
  template <std::convertible_to<std::string_view> Text>
  ParameterName(const Text& name) : first(name) {}  // NOLINT(google-explicit-constructor): most names are a text
  ParameterName(std::string_view name, std::string_view end) : first(name), second(end) {}

  std::string_view first, second;
};

/// The part of a ParameterList that is the same for every T, compiled once.
class ParameterDeclarations {
 public:
  ParameterGroup group = ParameterGroup::network;  ///< of the declarations that follow
  std::string suffix;                              ///< after their names
  bool as_stored = false;  ///< are their initial values listed as they lie in memory, not as files have them?

  /// The next declaration is of this parameter of the table. Unchecked: its index.
  void go_to(ParameterId id) noexcept { next_ = id; }

 protected:
  explicit ParameterDeclarations(ParameterTable& table) : table_(&table), adds_to_(&table) {}
  explicit ParameterDeclarations(const ParameterTable& table) : table_(&table) {}

  /// The next parameter of the table, or a parameter that is added to it.
  ///
  /// \throws std::logic_error  the next parameter has another name or shape
  SHEAFNN_NOINLINE const ParameterInfo& take(const ParameterName& name, std::initializer_list<Index> shape,
                                             InitialValues initial, bool transposed) {
    std::string text(name.first);
    text += name.second;
    text += suffix;
    if (adds_to_ != nullptr) {
      next_ = adds_to_->add(std::move(text), shape, group, transposed, std::move(initial), as_stored);
    } else {
      const bool there = static_cast<std::size_t>(next_) < table_->info().size();
      if (!there || table_->info(next_).name != text ||
          !std::equal(shape.begin(), shape.end(), table_->info(next_).shape.begin(),
                      table_->info(next_).shape.end())) {
        throw std::logic_error(
            concat("the parameter ", text,
                   there ? " is declared as " + table_->info(next_).name : " is not in the table"));
      }
    }
    taken_ = next_++;
    return table_->info(taken_);
  }

  ParameterId taken_ = -1;  ///< what take() has returned

 private:
  const ParameterTable* table_;
  ParameterTable* adds_to_ = nullptr;
  ParameterId next_ = 0;
};

}  // namespace sheafnn::detail

namespace sheafnn::layers {

/// Members of a struct of weights. \tparam T  const S, S or ParameterSlot
template <class T>
using WeightMatrix = typename detail::WeightViews<T>::Matrix;
/// The same for a vector. \tparam T  const S, S or ParameterSlot
template <class T>
using WeightVector = typename detail::WeightViews<T>::Vector;

/// What weights are declared to. Declarations that follow each other have to be the same for every T.
template <class T>
class ParameterList : public detail::ParameterDeclarations {
  static constexpr bool adds = std::is_same_v<T, ParameterSlot>;
  using Name = detail::ParameterName;

 public:
  /// Adds to `table`, which must outlive the list.
  explicit ParameterList(ParameterTable& table) requires adds : ParameterDeclarations(table) {}
  /// Views of `array`, which is laid out like the parameters of `table`. Unchecked: it has as many values as they.
  ParameterList(const ParameterTable& table, T* array) requires(!adds)
      : ParameterDeclarations(table), array_(array) {}

  /// \param name        a text, or two parts of one in braces
  /// \param transposed  does the matrix lie in columns × rows?
  /// \throws std::invalid_argument  of a list that adds: no extent, or one outside 1 … 2147483647
  /// \throws std::logic_error       a declaration that differs from the table
  SHEAFNN_NOINLINE void matrix(WeightMatrix<T>& weight, const Name& name, Index rows, Index columns,
                               InitialValues initial, bool transposed = false) {
    const ParameterInfo& info = take(name, {rows, columns}, std::move(initial), transposed);
    if constexpr (adds) {
      weight.id = taken_;
    } else {
      T* const at = array_ + info.offset;
      weight = transposed ? WeightMatrix<T>(at, columns, rows) : WeightMatrix<T>(at, rows, columns);
    }
  }
  /// \param shape  as files have it; the view has all values in one row. \throws as matrix()
  SHEAFNN_NOINLINE void vector(WeightVector<T>& weight, const Name& name, std::initializer_list<Index> shape,
                               InitialValues initial) {
    const ParameterInfo& info = take(name, shape, std::move(initial), false);
    if constexpr (adds) {
      weight.id = taken_;
    } else {
      weight = {array_ + info.offset, static_cast<std::size_t>(info.size)};
    }
  }

 private:
  T* array_ = nullptr;
};

/// What the names of a loss's parameters begin with, in a model and in its files.
inline constexpr std::string_view loss_prefix = "loss.";

/// Adds the parameters that declare(list) declares, with initial values, after the parameters of a set, which keep
/// their values: weights of a loss, for example. Arrays with the layout of the parameters, such as a network's
/// gradient, must be made again.
///
/// \throws std::invalid_argument  as ParameterTable::add(), e.g. a parameter that exists already
template <class S, class Declare>
void extend_parameters(ParameterSet<S>& parameters, std::uint64_t seed, const Declare& declare) {
  ParameterSet<S> extended = parameters;
  ParameterList<ParameterSlot> list(extended);
  declare(list);
  extended.initialise(seed);
  std::copy(parameters.values().begin(), parameters.values().end(), extended.values().begin());
  parameters = std::move(extended);
}

}  // namespace sheafnn::layers

namespace sheafnn::detail {

/// The view of one parameter in an array that is laid out like the table. Unchecked: the slot is of the table.
template <class T>
[[nodiscard]] MatrixView<T> matrix_at(const ParameterTable& table, ParameterSlot slot, T* array) {
  const ParameterInfo& info = table.info(slot);
  const Index rows = info.shape.front(), columns = info.size / rows;
  return info.transposed ? MatrixView<T>(array + info.offset, columns, rows)
                         : MatrixView<T>(array + info.offset, rows, columns);
}
/// The view of one parameter as a vector, as matrix_at().
template <class T>
[[nodiscard]] std::span<T> vector_at(const ParameterTable& table, ParameterSlot slot, T* array) {
  const ParameterInfo& info = table.info(slot);
  return {array + info.offset, static_cast<std::size_t>(info.size)};
}

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

}  // namespace sheafnn::detail
