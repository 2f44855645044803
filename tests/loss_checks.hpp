/// \file
/// A loss by itself on seven nodes: values against a direct formula, derivatives against central differences along every
/// output, single precision, losses of nodes, predictions.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "sheafnn/bsnn/loss.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace loss_checks {

using sheafnn::Index;
using sheafnn::MatrixView;
using sheafnn::NodeSelection;
using sheafnn::Score;
using Real = long double;

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double nan_number = std::numeric_limits<double>::quiet_NaN();
constexpr Index n = 7;
constexpr double sentinel = -77.25;

/// Raw outputs of some nodes, in rows with a gap, between −2 and 2.
template <class S = double>
struct Outputs {
  Index rows, columns, stride = columns + 3;
  std::vector<S> values;

  Outputs(Index row_count, Index column_count) : rows(row_count), columns(column_count) {
    for (Index i = 0; i < rows * stride; ++i) values.push_back(static_cast<S>(2 * tiny::number(11, i)));
  }
  [[nodiscard]] MatrixView<S> view() { return {values.data(), rows, columns, stride}; }
  [[nodiscard]] Real at(Index i, Index j) const {
    return static_cast<Real>(values[static_cast<std::size_t>(i * stride + j)]);
  }
};

/// The rows that a pass computes and the nodes that a loss averages over.
struct Case {
  std::vector<std::int32_t> rows;  ///< empty: all
  std::vector<std::int32_t> nodes;

  [[nodiscard]] NodeSelection selection() const { return rows.empty() ? NodeSelection(n) : NodeSelection(rows); }
};
inline const std::vector<Case> cases = {{{}, {0, 1, 2, 3, 4, 5, 6}},
                                        {{}, {1, 2, 5}},
                                        {{1, 2, 4, 5}, {1, 2, 4, 5}},
                                        {{0, 1, 2, 4, 5}, {1, 5}},
                                        {{5}, {5}}};

/// The sum of a direct formula over the nodes with a target, and of its weights: mean = value / weight.
struct Sum {
  Real value = 0, weight = 0;
};
using Direct = std::function<Sum(Index u, Index row, const Outputs<>&)>;

/// Value and derivative of a loss in every case.
template <class L>
void check_loss_function(const L& loss, Index columns, const Direct& direct) {
  static_assert(sheafnn::NodewiseLoss<L, double> && sheafnn::NodewiseLoss<L, float>);
  constexpr double share = 0.7;
  const double step = std::cbrt(epsilon);
  for (const Case& c : cases) {
    CAPTURE(c.rows.size());
    CAPTURE(c.nodes.size());
    const NodeSelection rows = c.selection();
    sheafnn::check_loss(loss, n, columns, rows, c.nodes);
    const Outputs<> given(rows.count(), columns);
    const auto evaluate = [&](Outputs<> outputs, Outputs<>& bar) {
      return loss.value_and_derivative(2, outputs.view(), rows, c.nodes, share, bar.view());
    };
    Outputs<> bar(rows.count(), columns), unused = bar;
    bar.values.assign(bar.values.size(), sentinel);
    const double value = evaluate(given, bar);
    Sum sum;
    for (const std::int32_t u : c.nodes) {
      if (!loss.known(u)) continue;
      const Sum term = direct(u, rows.index_of(u), given);
      sum.value += term.value;
      sum.weight += term.weight;
    }
    // A dozen operations per output.
    const double size = std::max(1.0, std::abs(value));
    CHECK(std::abs(value - static_cast<double>(sum.value / sum.weight)) <= 64 * epsilon * size);
    // The losses of its nodes have this mean, and nodes without a target have none.
    Outputs<> outputs = given;
    std::vector<double> of_nodes(c.nodes.size(), sentinel);
    loss.node_losses(2, outputs.view(), rows, c.nodes, of_nodes);
    CHECK(std::abs(loss.mean_loss(rows, c.nodes, of_nodes) - value) <= 64 * epsilon * size);
    for (std::size_t i = 0; i < c.nodes.size(); ++i) CHECK((loss.known(c.nodes[i]) || of_nodes[i] == 0));

    double worst = 0;
    for (Index i = 0; i < rows.count(); ++i) {
      for (Index j = 0; j < columns; ++j) {
        Outputs<> above = given, below = given;
        above.view()(i, j) += step;
        below.view()(i, j) -= step;
        const double difference = (evaluate(above, unused) - evaluate(below, unused)) / (2 * step);
        const double error = std::abs(bar.view()(i, j) - share * difference);
        // Truncation h²/6 times the third derivative, rounding ε/h times the value: both ε^{2/3} times a size.
        worst = test::worse(worst, error / (64 * step * step * size));
      }
    }
    CHECK(worst <= 1);
    bool kept = true;  // what lies between the rows
    for (Index k = 0; k < rows.count() * bar.stride; ++k) {
      kept = kept && (k % bar.stride < columns || bar.values[static_cast<std::size_t>(k)] == sentinel);
    }
    CHECK(kept);

    // The same in single precision, from outputs rounded to it.
    Outputs<float> narrow(rows.count(), columns), narrow_bar = narrow;
    const double narrow_value =
        loss.value_and_derivative(1, narrow.view(), rows, c.nodes, share, narrow_bar.view());
    const double bound = 64 * static_cast<double>(std::numeric_limits<float>::epsilon()) * size;
    CHECK(std::abs(narrow_value - value) <= bound);
    for (Index i = 0; i < rows.count(); ++i) {
      for (Index j = 0; j < columns; ++j) {
        CHECK(std::abs(static_cast<double>(narrow_bar.view()(i, j)) - bar.view()(i, j)) <= bound);
      }
    }
  }
}

/// predict() adds to the rows of its nodes and to nothing else; `expected` is what it adds.
template <class L>
void check_predictions(const L& loss, Index columns,
                       const std::function<Real(Index row, Index c, const Outputs<>&)>& expected) {
  for (const Case& c : cases) {
    const NodeSelection rows = c.selection();
    const Outputs<> given(rows.count(), columns);
    std::vector<double> sums(static_cast<std::size_t>(n * columns), 0.25);
    for (int times = 0; times < 2; ++times) {
      Outputs<> outputs = given;
      loss.predict(2, outputs.view(), rows, MatrixView<double>(sums.data(), n, columns));
    }
    double worst = 0;
    for (Index u = 0; u < n; ++u) {
      for (Index j = 0; j < columns; ++j) {
        const Real added = rows.contains(u) ? 2 * expected(rows.index_of(u), j, given) : 0.0L;
        const double difference =
            sums[static_cast<std::size_t>(u * columns + j)] - static_cast<double>(0.25L + added);
        worst = test::worse(worst, std::abs(difference));
      }
    }
    CHECK(worst <= 64 * epsilon);
  }
}

inline void near(const Score& score, double loss, double value) {
  CHECK(std::abs(score.loss - loss) <= 16 * epsilon * std::max(1.0, std::abs(loss)));
  CHECK(std::abs(score.score - value) <= 16 * epsilon);
}

}  // namespace loss_checks
