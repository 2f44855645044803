/// \file
/// Parts of networks by themselves: activations, dense products, sparse input, softmax and likelihood, dropout,
/// Adam, named parameters.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "sheafnn/bsnn/losses.hpp"
#include "sheafnn/graph/features.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/adam.hpp"
#include "sheafnn/nn/dense.hpp"
#include "sheafnn/nn/dropout.hpp"
#include "sheafnn/nn/dropout_mask.hpp"
#include "sheafnn/nn/parameters.hpp"
#include "sheafnn/nn/softmax.hpp"
#include "sheafnn/nn/sparse_input.hpp"
#include "worst.hpp"

namespace test_nn {
namespace {

using sheafnn::Buffer;
using sheafnn::Index;
using sheafnn::math::Pack;

template <class S>
constexpr double epsilon = static_cast<double>(std::numeric_limits<S>::epsilon());

/// Numbers in (−1, 1).
template <class S>
std::vector<S> numbers(std::mt19937& engine, Index count) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<S> r(static_cast<std::size_t>(count));
  for (S& x : r) x = static_cast<S>(uniform(engine));
  return r;
}

/// In front of and behind what a function may write.
template <class S>
constexpr S sentinel = S(-77.25);

template <class S>
S at(const std::vector<S>& v, Index i) {
  return v[static_cast<std::size_t>(i)];
}

/// The functions on one number, computed through every lane of a pack.
template <class P, class Function>
double worst_lane(const std::vector<double>& arguments, const Function& function, double (*exact)(double)) {
  using S = typename P::value_type;
  double worst = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    S lanes[P::width];
    for (int l = 0; l < P::width; ++l) {
      lanes[l] = static_cast<S>(arguments[(i + static_cast<std::size_t>(l)) % arguments.size()]);
    }
    const P result = function(P::load(lanes));
    for (int l = 0; l < P::width; ++l) {
      const double expected = exact(static_cast<double>(lanes[l]));
      const double scalar = static_cast<double>(function(lanes[l]));
      const double size = std::max(std::abs(expected), static_cast<double>(std::numeric_limits<S>::min()));
      worst = test::worse(worst, std::abs(static_cast<double>(result.lane(l)) - expected) / size);
      worst = test::worse(worst, std::abs(scalar - expected) / size);
    }
  }
  return worst / epsilon<S>;
}

/// A product and its reference, element by element.
template <class S>
void check_product(std::mt19937& engine, Index rows, Index columns, Index depth, bool transposed, bool accumulate,
                   Index padding) {
  CAPTURE(rows);
  CAPTURE(columns);
  CAPTURE(depth);
  CAPTURE(transposed);
  CAPTURE(accumulate);
  CAPTURE(padding);
  const Index a_stride = (transposed ? rows : depth) + padding, b_stride = columns + padding;
  const Index c_stride = columns + 2 * padding;
  const std::vector<S> a = numbers<S>(engine, (transposed ? depth : rows) * a_stride);
  const std::vector<S> b = numbers<S>(engine, std::max<Index>(depth, 1) * b_stride);
  std::vector<S> start(static_cast<std::size_t>(rows * c_stride), sentinel<S>);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) start[static_cast<std::size_t>(i * c_stride + j)] = S(0.5);
  }
  const Index row_stride = transposed ? 1 : a_stride, column_stride = transposed ? a_stride : 1;
  const sheafnn::detail::StridedMatrix<S> matrix(a.data(), rows, depth, row_stride, column_stride);
  std::vector<S> c = start;
  const auto multiply = [&](int threads, std::vector<S>& out) {
    sheafnn::detail::multiply_dense(threads, matrix, {b.data(), depth, columns, b_stride},
                                    sheafnn::MatrixView<S>(out.data(), rows, columns, c_stride), accumulate);
  };
  multiply(1, c);
  double worst = 0;
  bool untouched = true;
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < c_stride; ++j) {
      const S value = at(c, i * c_stride + j);
      if (j >= columns) {
        untouched = untouched && value == sentinel<S>;
        continue;
      }
      long double expected = accumulate ? 0.5L : 0.0L, size = expected;
      for (Index k = 0; k < depth; ++k) {
        const long double term = static_cast<long double>(at(a, i * row_stride + k * column_stride)) *
                                 static_cast<long double>(at(b, k * b_stride + j));
        expected += term;
        size += std::abs(term);
      }
      // A sum of `depth` products in any order: γ_{depth + 1} times the sum of their sizes.
      const double bound = static_cast<double>(depth + 2) * epsilon<S> * static_cast<double>(size);
      const double error = std::abs(static_cast<double>(static_cast<long double>(value) - expected));
      worst = test::worse(worst, bound > 0 ? error / bound : error);
    }
  }
  CHECK(worst <= 1);
  CHECK(untouched);
  std::vector<S> threaded = start;
  multiply(3, threaded);
  CHECK(threaded == c);
}

template <class S>
void check_products() {
  std::mt19937 engine(3);
  for (const Index rows : {1, 7, 8, 9, 21}) {
    for (const Index columns : {1, 3, 4, 7, 8, 12, 16, 17, 31, 45}) {
      for (const Index depth : {0, 1, 6, 33}) {
        for (const bool transposed : {false, true}) {
          check_product<S>(engine, rows, columns, depth, transposed, (rows + columns) % 2 == 0, columns % 3);
        }
      }
    }
  }
  for (const bool accumulate : {false, true}) {
    check_product<S>(engine, 5, 19, 1300, false, accumulate, 1);  // more than two strips of the inner loop
    check_product<S>(engine, 5, 19, 1300, true, accumulate, 0);
    check_product<S>(engine, 700, 20, 12, false, accumulate, 0);  // rows enough for several threads
  }
  check_product<S>(engine, 0, 5, 5, false, false, 0);
  check_product<S>(engine, 5, 0, 5, false, false, 0);
}

template <class S>
void check_column_sums() {
  std::mt19937 engine(4);
  for (const Index rows : {0, 1, 5, 255, 256, 257, 1000}) {
    for (const Index columns : {1, 3, 8, 16, 29}) {
      CAPTURE(rows);
      CAPTURE(columns);
      const Index stride = columns + 3;
      const std::vector<S> m = numbers<S>(engine, rows * stride);
      std::vector<S> sums(static_cast<std::size_t>(columns + 1), S(0.25));
      sums.back() = sentinel<S>;
      sheafnn::detail::add_column_sums<S>(rows, columns, m.data(), stride, sums.data());
      double worst = 0;
      for (Index j = 0; j < columns; ++j) {
        long double expected = 0.25L;
        for (Index i = 0; i < rows; ++i) expected += static_cast<long double>(at(m, i * stride + j));
        // Blocks of 256, then their sums: γ_{256 + rows/256 + 1} times at most rows + 1 in sum.
        const double bound = static_cast<double>((std::min<Index>(rows, 256) + rows / 256 + 2) * (rows + 1));
        worst =
            test::worse(worst,
                        std::abs(static_cast<double>(static_cast<long double>(at(sums, j)) - expected)) / bound);
      }
      CHECK(worst <= epsilon<S>);
      CHECK(sums.back() == sentinel<S>);
    }
  }
}

/// Features with empty rows, an empty column and a dense row.
sheafnn::NodeFeatures some_features(std::vector<double>& dense, Index rows, Index columns) {
  std::mt19937 engine(5);
  dense = numbers<double>(engine, rows * columns);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      double& x = dense[static_cast<std::size_t>(i * columns + j)];
      x = static_cast<double>(static_cast<float>(x));
      if (j == 2 || i % 7 == 3 || (i != 5 && x > -0.3)) x = 0;
    }
  }
  return sheafnn::NodeFeatures::from_dense(std::span<const double>(dense), rows, columns);
}

/// A forward pass of the layer; `out` has the place of the result.
template <class S, class... Finish>
void forward(const sheafnn::layers::SparseInput<S>& input, int threads, const std::vector<S>& weight,
             const std::vector<S>& bias, std::vector<S>& out, const Finish&... finish) {
  const Index width = static_cast<Index>(bias.size());
  Buffer<S> work(input.work_size(width, 1));
  input.forward(threads, weight.data(), bias.data(), width, out.data(), work.data(), finish...);
}

template <class S>
void check_sparse_input(Index rows) {
  CAPTURE(rows);
  constexpr Index columns = 140;
  std::vector<double> dense;
  const sheafnn::layers::SparseInput<S> input(some_features(dense, rows, columns));
  CHECK(input.rows() == rows);
  CHECK(input.columns() == columns);
  std::mt19937 engine(6);
  for (const Index width : {1, 3, 8, 20, 33}) {
    CAPTURE(width);
    const std::vector<S> weight = numbers<S>(engine, columns * width), bias = numbers<S>(engine, width);
    std::vector<S> out(static_cast<std::size_t>(rows * width + 1), sentinel<S>);
    forward(input, 1, weight, bias, out);
    double worst = 0;
    for (Index i = 0; i < rows; ++i) {
      for (Index c = 0; c < width; ++c) {
        long double expected = static_cast<long double>(at(bias, c));
        for (Index j = 0; j < columns; ++j) {
          expected += static_cast<long double>(at(dense, i * columns + j)) *
                      static_cast<long double>(at(weight, j * width + c));
        }
        worst = test::worse(worst, std::abs(static_cast<double>(static_cast<long double>(at(out, i * width + c)) -
                                                                expected)));
      }
    }
    CHECK(worst <= (columns + 2) * epsilon<S> * columns);
    CHECK(out.back() == sentinel<S>);

    // The weight's derivative replaces what is there, also where a column has no entries.
    const std::vector<S> out_bar = numbers<S>(engine, rows * width);
    std::vector<S> weight_bar(weight.size() + 1, S(0.5));
    weight_bar.back() = sentinel<S>;
    input.backward(1, input.values(), out_bar.data(), width, weight_bar.data());
    worst = 0;
    for (Index j = 0; j < columns; ++j) {
      for (Index c = 0; c < width; ++c) {
        long double expected = 0;
        for (Index i = 0; i < rows; ++i) {
          expected += static_cast<long double>(at(dense, i * columns + j)) *
                      static_cast<long double>(at(out_bar, i * width + c));
        }
        worst = test::worse(worst, std::abs(static_cast<double>(
                                       static_cast<long double>(at(weight_bar, j * width + c)) - expected)));
      }
    }
    CHECK(worst <= static_cast<double>((rows + 2) * rows) * epsilon<S>);
    CHECK(weight_bar.back() == sentinel<S>);

    std::vector<S> threaded = out;
    std::vector<std::atomic<int>> finished(static_cast<std::size_t>(rows));
    forward(input, 3, weight, bias, threaded, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) ++finished[static_cast<std::size_t>(i)];
    });
    CHECK(threaded == out);
    CHECK(std::all_of(finished.begin(), finished.end(), [](int times) { return times == 1; }));
    std::vector<S> threaded_bar(weight_bar.size(), S(0.5));
    threaded_bar.back() = sentinel<S>;
    input.backward(3, input.values(), out_bar.data(), width, threaded_bar.data());
    CHECK(threaded_bar == weight_bar);
  }
}

/// Features without zeros, which are multiplied as a dense matrix, against the same rows before one with a zero: bit by bit.
template <class S>
void check_full_input(Index rows) {
  CAPTURE(rows);
  constexpr Index columns = 37;
  std::mt19937 engine(26);
  std::vector<double> dense = numbers<double>(engine, (rows + 1) * columns);
  for (double& x : dense) x += x < 0 ? -1 : 1;
  dense.back() = 0;
  const std::span<const double> all = dense;
  const sheafnn::layers::SparseInput<S> sparse(sheafnn::NodeFeatures::from_dense(all, rows + 1, columns)),
      full(sheafnn::NodeFeatures::from_dense(all.first(static_cast<std::size_t>(rows * columns)), rows, columns));
  const sheafnn::layers::Dropout dropout{0.3, {8, sheafnn::Purpose::input_dropout}};
  for (const Index width : {1, 7, 20, 48, 70}) {
    CAPTURE(width);
    const std::vector<S> weight = numbers<S>(engine, columns * width), bias = numbers<S>(engine, width);
    std::vector<S> out_bar = numbers<S>(engine, (rows + 1) * width);
    std::fill(out_bar.end() - width, out_bar.end(), S(0));
    const auto results = [&](const sheafnn::layers::SparseInput<S>& input, int threads) {
      std::vector<S> r;
      const auto keep = [&](const auto& values, Index size) {
        r.insert(r.end(), values.begin(), values.begin() + size);
      };
      sheafnn::layers::EntryDropout<S> entries(input.entries());
      entries.draw(threads, dropout);
      std::vector<S> out(static_cast<std::size_t>(input.rows() * width), sentinel<S>), clean = out;
      std::vector<S> weight_bar(weight.size(), sentinel<S>);
      Buffer<S> work(input.work_size(width, 2));
      input.forward(threads, weight.data(), bias.data(), width, out.data(), work.data());
      keep(out, rows * width);
      input.forward(threads, entries, weight.data(), bias.data(), width, out.data(), work.data());
      keep(out, rows * width);
      input.forward_both(threads, entries, weight.data(), bias.data(), width, out.data(), clean.data(),
                         work.data());
      keep(out, rows * width);
      keep(clean, rows * width);
      for (const S* values : {input.values(), static_cast<const S*>(entries.values.data())}) {
        input.backward(threads, values, out_bar.data(), width, weight_bar.data());
        keep(weight_bar, columns * width);
      }
      return r;
    };
    const std::vector<S> expected = results(sparse, 1);
    CHECK(results(full, 1) == expected);
    CHECK(results(full, 3) == expected);
  }
}

/// Dropout of entries against features that lack what it drops, bit by bit, alone and in one walk with the product
/// without dropout.
template <class S>
void check_sparse_dropout(Index columns) {
  CAPTURE(columns);
  constexpr Index rows = 60;
  std::mt19937 engine(16);
  std::vector<double> dense = numbers<double>(engine, rows * columns);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      double& x = dense[static_cast<std::size_t>(i * columns + j)];
      if (i % 7 == 3 || (i % 5 != 0 && x > -1 + 0.02 * static_cast<double>(i % 11))) x = 0;
    }
  }
  const auto features_of = [&](const std::vector<double>& given) {
    return sheafnn::NodeFeatures::from_dense(std::span<const double>(given), rows, columns);
  };
  const sheafnn::layers::SparseInput<S> input(features_of(dense));
  for (const double rate : {0.1, 0.5, 0.97}) {
    CAPTURE(rate);
    const sheafnn::layers::Dropout dropout{rate, {8, sheafnn::Purpose::input_dropout}};
    sheafnn::layers::EntryDropout<S> entries(input.entries());
    entries.draw(2, dropout);
    CHECK(entries.factor == static_cast<S>(dropout.scale()));
    std::vector<double> kept = dense;
    Index entry = 0;
    for (double& x : kept) {
      if (x == 0) continue;
      x = dropout.keeps(entry++) ? static_cast<double>(static_cast<S>(x) * entries.factor) : 0.0;
    }
    const sheafnn::layers::SparseInput<S> lacking(features_of(kept));
    for (const Index width : {1, 7, 48, 70}) {
      CAPTURE(width);
      const std::vector<S> weight = numbers<S>(engine, columns * width), bias = numbers<S>(engine, width);
      std::vector<S> expected(static_cast<std::size_t>(rows * width)), out = expected, whole = expected;
      forward(lacking, 1, weight, bias, expected);
      forward(input, 1, weight, bias, whole);
      Buffer<S> work(input.work_size(width, 2));
      for (const int threads : {1, 3}) {
        CAPTURE(threads);
        std::fill(entries.values.begin(), entries.values.end(), sentinel<S>);
        input.forward(threads, entries, weight.data(), bias.data(), width, out.data(), work.data());
        CHECK(out == expected);
        bool values_agree = true;
        for (Index k = 0; k < input.entries(); ++k) {
          const S value = dropout.keeps(k) ? input.values()[k] * entries.factor : S(0);
          values_agree = values_agree && entries.values[k] == value;
        }
        CHECK(values_agree);

        std::fill(entries.values.begin(), entries.values.end(), sentinel<S>);
        std::vector<S> dropped_out(out.size(), sentinel<S>), both(out.size(), sentinel<S>);
        std::vector<std::atomic<int>> finished(rows);
        input.forward_both(threads, entries, weight.data(), bias.data(), width, dropped_out.data(), both.data(),
                           work.data(), [&](Index begin, Index end) {
                             for (Index i = begin; i < end; ++i) ++finished[static_cast<std::size_t>(i)];
                           });
        CHECK(dropped_out == expected);
        CHECK(both == whole);
        CHECK(std::all_of(finished.begin(), finished.end(), [](int times) { return times == 1; }));
      }
    }
  }
}

template <class S>
void check_softmax() {
  constexpr Index rows = 5, classes = 4, stride = 16;
  std::vector<S> logits(rows * stride, sentinel<S>);
  const double given[rows][classes] = {
      {0, 0, 0, 0}, {1, -2, 0.5, 3}, {1e4, -1e4, 0, 1}, {-1e4, -1e4, -1e4, -1e4}, {88.5, 88.5, -700, 90}};
  for (Index u = 0; u < rows; ++u) {
    for (Index c = 0; c < classes; ++c)
      logits[static_cast<std::size_t>(u * stride + c)] = static_cast<S>(given[u][c]);
  }
  sheafnn::layers::log_softmax_rows<S>(2, rows, classes, logits.data(), stride);
  for (Index u = 0; u < rows; ++u) {
    CAPTURE(u);
    long double largest = given[u][0], sum = 0;
    for (const double x : given[u]) largest = std::max(largest, static_cast<long double>(x));
    for (const double x : given[u]) sum += std::exp(static_cast<long double>(static_cast<S>(x)) - largest);
    double probability = 0;
    for (Index c = 0; c < classes; ++c) {
      const double value = static_cast<double>(at(logits, u * stride + c));
      const double expected =
          static_cast<double>(static_cast<long double>(static_cast<S>(given[u][c])) - largest - std::log(sum));
      // One subtraction of numbers up to |largest| + log 4.
      CHECK(std::abs(value - expected) <=
            4 * epsilon<S> * (1 + std::abs(expected) + static_cast<double>(std::abs(largest))));
      probability += std::exp(value);
    }
    CHECK(std::abs(probability - 1) <= 8 * epsilon<S> * (1 + static_cast<double>(std::abs(largest))));
    CHECK(at(logits, u * stride + classes) == sentinel<S>);
  }

  // Mean over the nodes, each counted once; the derivative is weight / |nodes| (softmax − one-hot), 0 elsewhere.
  const std::vector<std::int32_t> labels = {3, 0, 0, 2, 1}, nodes = {0, 1, 4};
  std::vector<S> bar(rows * stride, sentinel<S>);
  const double nll =
      sheafnn::Classification(labels).value_and_derivative<S>(1, {logits.data(), rows, classes, stride},
                                                              sheafnn::NodeSelection(rows), nodes, 0.5,
                                                              {bar.data(), rows, classes, stride});
  double expected = 0;
  for (const std::int32_t u : nodes) {
    expected -= static_cast<double>(at(logits, u * stride + labels[static_cast<std::size_t>(u)])) / 3;
  }
  CHECK(std::abs(nll - expected) <= 4 * epsilon<double> * expected);
  CHECK(std::abs(std::exp(static_cast<double>(logits[0])) - 0.25) <= 4 * epsilon<S>);
  for (Index u = 0; u < rows; ++u) {
    const bool counts = u == 0 || u == 1 || u == 4;
    for (Index c = 0; c < classes; ++c) {
      CAPTURE(u);
      CAPTURE(c);
      double derivative = 0;
      if (counts) {
        derivative = std::exp(static_cast<double>(at(logits, u * stride + c)));
        if (c == labels[static_cast<std::size_t>(u)]) derivative -= 1;
        derivative *= 0.5 / 3;
      }
      CHECK(std::abs(static_cast<double>(at(bar, u * stride + c)) - derivative) <= 4 * epsilon<S>);
    }
  }
}

/// Adam in extended precision, one parameter at a time.
struct ReferenceAdam {
  long double m = 0, v = 0;
  void step(int t, long double gradient, long double decay, long double rate, long double& value) {
    const long double g = gradient + decay * value;
    m = 0.9L * m + 0.1L * g;
    v = 0.999L * v + 0.001L * g * g;
    const long double mean = m / (1 - std::pow(0.9L, t)), square = v / (1 - std::pow(0.999L, t));
    value -= rate * mean / (std::sqrt(square) + 1e-8L);
  }
};

template <class S>
void check_adam() {
  constexpr Index count = 45, split = 19;  // neither a multiple of a pack's lanes
  constexpr double rate = 0.01, decays[2] = {5e-4, 0.3};
  constexpr int steps = 30;
  std::mt19937 engine(8);
  const std::vector<S> start = numbers<S>(engine, count);
  const auto run = [&](int threads, std::vector<std::vector<S>>* gradients) {
    std::mt19937 gradient_engine(9);
    sheafnn::layers::Adam<S> adam(count + 1, rate);
    std::vector<S> value = start;
    value.push_back(sentinel<S>);
    for (int t = 1; t <= steps; ++t) {
      std::vector<S> gradient = numbers<S>(gradient_engine, count + 1);
      for (Index i = 0; i < count; i += 5) gradient[static_cast<std::size_t>(i)] *= S(1e-4);
      adam.begin_step();
      adam.update(threads, 0, split, decays[0], gradient.data(), value.data());
      adam.update(threads, split, count, decays[1], gradient.data(), value.data());
      if (gradients != nullptr) gradients->push_back(gradient);
    }
    return value;
  };
  std::vector<std::vector<S>> gradients;
  const std::vector<S> value = run(1, &gradients);
  CHECK(value.back() == sentinel<S>);
  CHECK(run(2, nullptr) == value);
  double worst = 0;
  for (Index i = 0; i < count; ++i) {
    ReferenceAdam reference;
    long double x = static_cast<long double>(at(start, i));
    for (int t = 1; t <= steps; ++t) {
      reference.step(t, static_cast<long double>(at(gradients[static_cast<std::size_t>(t - 1)], i)),
                     i < split ? 5e-4L : 0.3L, 0.01L, x);
    }
    worst = test::worse(worst, std::abs(static_cast<double>(static_cast<long double>(at(value, i)) - x)));
  }
  // Per step half an ε of the value, below 2, and 64 ε of the step, the rate: cancellation in the moments
  // included.
  CHECK(worst <= steps * (1 + 64 * rate) * epsilon<S>);

  // The first step is the rate times the sign of the gradient, however large or small that is.
  sheafnn::layers::Adam<S> adam(4, rate);
  const S gradient[4] = {S(1e-3), S(-1e-3), S(1e4), S(-1e4)};
  S moved[4] = {0, 0, 0, 0};
  adam.begin_step();
  adam.update(1, 0, 4, 0.0, gradient, moved);
  for (int i = 0; i < 4; ++i) {
    CHECK(std::abs(static_cast<double>(moved[i]) - (i % 2 == 0 ? -rate : rate)) <=
          rate * (16 * epsilon<S> + 1e-5));
  }
}

/// Decoupled decay: each step first shrinks the value by rate · decay of it, and the gradient has no decay in it.
/// Rates and decays of the network's weights, and of the sheaf learner's, which may have its own.
template <class S>
void check_decoupled_decay(double sheaf_rate) {
  constexpr Index count = 21;
  constexpr double rate = 0.05, decays[2] = {0.4, 1.5};
  constexpr int steps = 25;
  std::mt19937 engine(10);
  sheafnn::layers::ParameterSet<S> parameters;
  const sheafnn::layers::ParameterId ids[2] = {parameters.add("network", {count},
                                                              sheafnn::layers::ParameterGroup::network),
                                               parameters.add("learner", {count},
                                                              sheafnn::layers::ParameterGroup::sheaf_learner)};
  parameters.finish();
  std::vector<S> start[2];
  for (int k = 0; k < 2; ++k) parameters.set(ids[k], start[k] = numbers<S>(engine, count));
  sheafnn::layers::Adam<S> adam(parameters.size(), rate);
  adam.sheaf_learning_rate = sheaf_rate;
  sheafnn::Buffer<S> gradient(parameters.size());
  std::vector<std::vector<long double>> gradients;
  for (int t = 1; t <= steps; ++t) {
    const std::vector<S> values = numbers<S>(engine, parameters.size());
    std::copy(values.begin(), values.end(), gradient.begin());
    gradients.emplace_back(values.begin(), values.end());
    CHECK(adam.step(1, parameters, gradient, decays[0], decays[1], sheafnn::WeightDecay::decoupled));
  }
  double worst = 0;
  for (int k = 0; k < 2; ++k) {
    const Index offset = parameters.info(ids[k]).offset;
    const double own = k == 1 && sheaf_rate > 0 ? sheaf_rate : rate;
    for (Index i = 0; i < count; ++i) {
      ReferenceAdam reference;
      long double x = static_cast<long double>(at(start[k], i));
      for (int t = 1; t <= steps; ++t) {
        x -= static_cast<long double>(own) * static_cast<long double>(decays[k]) * x;
        reference.step(t, gradients[static_cast<std::size_t>(t - 1)][static_cast<std::size_t>(offset + i)], 0, own,
                       x);
      }
      const long double value = static_cast<long double>(parameters.values()[offset + i]);
      worst = test::worse(worst, std::abs(static_cast<double>(value - x)));
    }
  }
  // Per step an ε of the value, below 2, for the factor and the sum, and 64 ε of the step, the rate.
  CHECK(worst <= steps * (2 + 64 * rate) * epsilon<S>);
}

/// Several threads update what one would, in ranges that begin anywhere.
template <class S>
void check_adam_threads() {
  constexpr Index count = 3 * sheafnn::detail::adam_grain + 7, first = 5;
  std::mt19937 engine(12);
  const std::vector<S> gradient = numbers<S>(engine, count), start = numbers<S>(engine, count);
  const auto run = [&](int threads) {
    sheafnn::layers::Adam<S> adam(count, 0.01);
    std::vector<S> value = start;
    for (int t = 0; t < 3; ++t) {
      adam.begin_step();
      CHECK(adam.update(threads, first, count, 5e-4, gradient.data(), value.data()));
    }
    return value;
  };
  const std::vector<S> value = run(1);
  CHECK(std::equal(value.begin(), value.begin() + first, start.begin()));
  CHECK(run(2) == value);
  CHECK(run(3) == value);
}

/// An update tells whether the gradient is finite, wherever it is not, and however large it is.
template <class S>
void check_adam_finiteness() {
  constexpr Index count = 2 * sheafnn::lanes<S> + sheafnn::lanes<S> / 2 + 5;
  const S root = std::sqrt(std::numeric_limits<S>::max());
  const auto finite = [&](Index place, S number) {
    std::vector<S> gradient(static_cast<std::size_t>(count), root), value(gradient.size());
    if (place < count) gradient[static_cast<std::size_t>(place)] = number;
    sheafnn::layers::Adam<S> adam(count, 0.01);
    adam.begin_step();
    return adam.update(1, 0, count, 0.0, gradient.data(), value.data());
  };
  CHECK(finite(count, S(0)));
  for (Index place = 0; place < count; ++place) {
    CAPTURE(place);
    CHECK_FALSE(finite(place, std::numeric_limits<S>::infinity()));
    CHECK_FALSE(finite(place, std::numeric_limits<S>::quiet_NaN()));
    CHECK_FALSE(finite(place, 100 * root));  // its square, and so the second moment
  }
}

}  // namespace

TEST_CASE("ELU, its slope and the sigmoid: float, double and packs") {
  const std::vector<double> arguments = {-100, -30, -3, -1, -0.5, -1e-3, 0,   1e-3,
                                         0.5,  1,   3,  30, 100,  -0.0,  700, -700};
  // exp(x) − 1 loses digits near 0: its absolute error is the error of numbers near 1.
  const auto exact_elu = [](double x) { return x > 0 ? x : std::expm1(x); };
  const auto check_elu = [&]<class S>(S, auto pack) {
    using P = decltype(pack);
    for (const double argument : arguments) {
      CAPTURE(argument);
      const S x = static_cast<S>(argument);
      const double expected = exact_elu(static_cast<double>(x));
      CHECK(std::abs(static_cast<double>(sheafnn::layers::elu(x)) - expected) <=
            2 * epsilon<S> * std::max(1.0, std::abs(expected)));
      const P y = sheafnn::layers::elu(P(x));
      for (int l = 0; l < P::width; ++l) {
        CHECK(std::abs(static_cast<double>(y.lane(l)) - expected) <=
              4 * epsilon<S> * std::max(1.0, std::abs(expected)));
      }
      // The slope from the value: 1 or e^x.
      const double slope = argument > 0 ? 1 : std::exp(static_cast<double>(x));
      CHECK(std::abs(static_cast<double>(sheafnn::layers::elu_slope(sheafnn::layers::elu(x))) - slope) <=
            4 * epsilon<S>);
      CHECK(std::abs(static_cast<double>(sheafnn::layers::elu_slope(y).lane(1)) - slope) <= 4 * epsilon<S>);
    }
    CHECK(sheafnn::layers::elu(S(0)) == S(0));
    CHECK(sheafnn::layers::elu_slope(S(0)) == S(1));
  };
  check_elu(0.0F, Pack<float, 16>());
  check_elu(0.0F, Pack<float, 4>());
  check_elu(0.0, Pack<double, 8>());

  const auto sigmoid = [](const auto& x) { return sheafnn::layers::sigmoid(x); };
  const auto exact = [](double x) {
    return static_cast<double>(1 / (1 + std::exp(-static_cast<long double>(x))));
  };
  CHECK(worst_lane<Pack<float, 16>>({-80, -30, -3, -1, -0.1, 0, 0.1, 1, 3, 30, 100, 17, 2}, sigmoid, exact) <= 8);
  CHECK(worst_lane<Pack<double, 8>>({-700, -30, -3, -1, -0.1, 0, 0.1, 1, 3, 30, 100, 700, 2}, sigmoid, exact) <=
        8);
  for (const double extreme : {100.0, 1e4, 1e30, std::numeric_limits<double>::infinity()}) {
    const float f = static_cast<float>(extreme);
    CHECK(sheafnn::layers::sigmoid(extreme) == 1);
    CHECK(sheafnn::layers::sigmoid(f) == 1);
    CHECK(sheafnn::layers::sigmoid(-extreme) <= 1e-43);
    CHECK(sheafnn::layers::sigmoid(-f) <= 1e-37F);
    CHECK(sheafnn::layers::sigmoid(Pack<float, 16>(-f)).lane(3) <= 1e-37F);
    CHECK(sheafnn::layers::sigmoid(Pack<float, 16>(f)).lane(3) == 1);
    CHECK(sheafnn::layers::elu(-f) == -1);
    CHECK(sheafnn::layers::elu(Pack<float, 16>(-f)).lane(5) == -1);
    CHECK(sheafnn::layers::elu(Pack<float, 16>(f)).lane(5) == f);
  }
}

TEST_CASE_TEMPLATE("dense products for all shapes, strides and tiles", S, float, double) { check_products<S>(); }

TEST_CASE_TEMPLATE("column sums", S, float, double) { check_column_sums<S>(); }

TEST_CASE("transposition") {
  const double m[] = {1, 2, 3, 4, 5, 6};
  double t[] = {0, 0, -1, 0, 0, -1, 0, 0, -1};
  sheafnn::detail::transpose_into<double>(2, 3, m, t, 3);
  const double expected[] = {1, 4, -1, 2, 5, -1, 3, 6, -1};
  CHECK(std::equal(std::begin(t), std::end(t), expected));
}

TEST_CASE_TEMPLATE("sparse input layer without rows, with one, without entries and without columns", S, float,
                   double) {
  constexpr Index width = 20;
  std::mt19937 engine(3);
  const std::vector<S> weight = numbers<S>(engine, 200 * width), bias = numbers<S>(engine, width);
  for (const Index rows : {0, 1, 3}) {
    for (const Index columns : {0, 5, 70, 200}) {
      CAPTURE(rows);
      CAPTURE(columns);
      for (const bool empty : {true, false}) {
        std::vector<double> dense(static_cast<std::size_t>(rows * columns), 0.0);
        if (!empty && !dense.empty()) dense.back() = 2;
        const sheafnn::layers::SparseInput<S> input(
            sheafnn::NodeFeatures::from_dense(std::span<const double>(dense), rows, columns));
        for (const int threads : {1, 2}) {
          std::vector<S> out(static_cast<std::size_t>(rows * width), sentinel<S>);
          forward(input, threads, weight, bias, out);
          int wrong = 0;
          for (Index i = 0; i < rows * width; ++i) {
            S expected = at(bias, i % width);
            if (!empty && columns > 0 && i / width == rows - 1) {
              expected = S(2) * at(weight, (columns - 1) * width + i % width) + expected;
            }
            wrong += std::abs(at(out, i) - expected) <= 4 * static_cast<S>(epsilon<S>) ? 0 : 1;
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}
TEST_CASE_TEMPLATE("sparse input layer against dense matrices", S, float, double) {
  check_sparse_input<S>(150);
  check_sparse_input<S>(30);  // so few that the columns are cut
}
TEST_CASE_TEMPLATE("sparse input layer: features without zeros", S, float, double) {
  for (const Index rows : {1, 2, 60, 700}) check_full_input<S>(rows);
}
TEST_CASE_TEMPLATE("sparse input layer: dropout of entries", S, float, double) {
  check_sparse_dropout<S>(200);
  check_sparse_dropout<S>(600);
}

TEST_CASE_TEMPLATE("log-softmax, likelihood and its derivative", S, float, double) { check_softmax<S>(); }

TEST_CASE("dropout masks drawn ahead") {
  using sheafnn::layers::Dropout;
  constexpr Index count = 3000;
  const auto dropout_of = [](std::uint32_t epoch) {
    return Dropout{0.4, {7, sheafnn::Purpose::layer_dropout, epoch}};
  };
  sheafnn::layers::DropoutMask mask(count);
  const auto holds = [&](const Dropout& dropout) {
    std::vector<std::uint8_t> bits(static_cast<std::size_t>(Dropout::mask_size(count)));
    dropout.fill_mask(1, count, bits.data());
    return std::equal(bits.begin(), bits.end(), mask.bits());
  };
  mask.take_ahead();  // nothing is there
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    mask.draw(threads, dropout_of(1));
    CHECK(holds(dropout_of(1)));
    mask.draw_ahead(dropout_of(2));
    CHECK(holds(dropout_of(1)));
    mask.draw(threads, dropout_of(3));
    CHECK(holds(dropout_of(3)));
    mask.take_ahead();
    CHECK(holds(dropout_of(2)));
    mask.draw(threads, dropout_of(2));
    CHECK(holds(dropout_of(2)));
    mask.take_ahead();  // there are no more
    CHECK(holds(dropout_of(2)));
    mask.draw_ahead(dropout_of(5));
    mask.take_ahead();
    mask.draw(threads, dropout_of(4));  // another than was foreseen
    CHECK(holds(dropout_of(4)));
    mask.draw(threads, {0.5, dropout_of(4).stream});
    CHECK(holds({0.5, dropout_of(4).stream}));
  }
}

TEST_CASE("dropout masks") {
  using sheafnn::Purpose;
  using sheafnn::Stream;
  using sheafnn::layers::Dropout;
  constexpr Index count = 20011;
  const auto bits_of = [](const Dropout& dropout, int threads, Index size) {
    std::vector<std::uint8_t> bits(static_cast<std::size_t>(Dropout::mask_size(size)));
    dropout.fill_mask(threads, size, bits.data());
    return bits;
  };
  // One number, 0 or 1, per element.
  const auto mask_of = [&](const Dropout& dropout, int threads, Index size) {
    const std::vector<std::uint8_t> bits = bits_of(dropout, threads, size);
    std::vector<std::uint8_t> mask;
    for (Index e = 0; e < size; ++e) mask.push_back(at(bits, e / 8) >> (e % 8) & 1);
    return mask;
  };
  for (const double rate : {0.05, 0.5, 0.9}) {
    CAPTURE(rate);
    const Dropout dropout{rate, Stream{5, Purpose::layer_dropout, 7, 3, 2}};
    const std::vector<std::uint8_t> mask = mask_of(dropout, 1, count);
    bool equal = true;
    Index kept = 0;
    for (Index e = 0; e < count; ++e) {
      equal = equal && (at(mask, e) != 0) == dropout.keeps(e);
      kept += at(mask, e);
    }
    CHECK(equal);
    const double error = std::sqrt(rate * (1 - rate) * count);
    CHECK(std::abs(static_cast<double>(kept) - (1 - rate) * count) <= 5 * error);
    CHECK(mask_of(dropout, 3, count) == mask);
    // A shorter array has the same beginning.
    CHECK(std::equal(mask.begin(), mask.begin() + 77, mask_of(dropout, 1, 77).begin()));
    // Any other address has another mask: agreement as of independent ones, (1 − p)² + p².
    for (const Stream& stream :
         {Stream{6, Purpose::layer_dropout, 7, 3, 2}, Stream{5, Purpose::hidden_dropout, 7, 3, 2},
          Stream{5, Purpose::layer_dropout, 8, 3, 2}, Stream{5, Purpose::layer_dropout, 7, 4, 2},
          Stream{5, Purpose::layer_dropout, 7, 3, 1}}) {
      const std::vector<std::uint8_t> other = mask_of({rate, stream}, 1, count);
      Index agree = 0;
      for (Index e = 0; e < count; ++e) agree += at(mask, e) == at(other, e) ? 1 : 0;
      const double p = (1 - rate) * (1 - rate) + rate * rate;
      CHECK(std::abs(static_cast<double>(agree) - p * count) <= 5 * std::sqrt(p * (1 - p) * count));
    }
  }
  // Blocks far behind: ids beyond 32 bits.
  const Dropout far{0.5, Stream{5, Purpose::layer_dropout}};
  Index kept = 0;
  for (Index e = 0; e < 4000; ++e) kept += far.keeps((Index{1} << 36) + e) ? 1 : 0;
  CHECK(std::abs(static_cast<double>(kept) - 2000) <= 5 * std::sqrt(1000.0));
  CHECK_FALSE(Dropout{}.active());
  CHECK(Dropout{0.2, {}}.active());
  CHECK(Dropout{}.scale() == 1);
  // Rates are rounded to 16 bits, and what is kept is scaled by the inverse of the rounded probability.
  CHECK(Dropout{0.5, {}}.scale() == 2);
  for (const double rate : {1e-9, 0.2, 0.7, 0.999999}) {
    CAPTURE(rate);
    const Dropout dropout{rate, {}};
    const double kept = dropout.threshold() / 65536.0;
    CHECK(dropout.scale() == 1 / kept);
    CHECK(std::abs(kept - (1 - rate)) <= 1 / 65536.0);
  }

  std::mt19937 engine(11);
  const std::vector<float> in = numbers<float>(engine, count);
  const Dropout dropout{0.3, Stream{1, Purpose::hidden_dropout}};
  const std::vector<std::uint8_t> mask = mask_of(dropout, 1, count), bits = bits_of(dropout, 1, count);
  for (Index e = 0; e < 200; ++e) {
    const std::uint32_t window = sheafnn::detail::kept_bits(bits.data(), e);
    for (int i = 0; i < 32; ++i) CHECK((window >> i & 1U) == at(mask, e + i));
  }
  std::vector<float> out(in.size()), sum(in.size(), 1.0F), in_place = in;
  sheafnn::detail::apply_dropout(2, count, in.data(), bits.data(), dropout.scale(), out.data());
  sheafnn::detail::apply_dropout(1, count, in.data(), bits.data(), dropout.scale(), in_place.data());
  sheafnn::detail::apply_dropout<true>(2, count, in.data(), bits.data(), dropout.scale(), sum.data());
  bool scaled = true, added = true;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const float expected = mask[i] != 0 ? in[i] * static_cast<float>(dropout.scale()) : 0.0F;
    scaled = scaled && out[i] == expected;
    added = added && std::abs(sum[i] - 1 - expected) <= 2 * epsilon<float> * (1 + std::abs(expected));
  }
  CHECK(scaled);
  CHECK(added);
  CHECK(in_place == out);
}

TEST_CASE_TEMPLATE("Adam tells whether the gradient is finite", S, float, double) { check_adam_finiteness<S>(); }
TEST_CASE_TEMPLATE("Adam: the same for any number of threads", S, float, double) { check_adam_threads<S>(); }
TEST_CASE_TEMPLATE("Adam against its definition in extended precision", S, float, double) { check_adam<S>(); }
TEST_CASE_TEMPLATE("Adam: decoupled weight decay (AdamW)", S, float, double) {
  check_decoupled_decay<S>(0);
  check_decoupled_decay<S>(0.02);
}

TEST_CASE("named parameters: offsets, visible and stored order, errors") {
  sheafnn::layers::ParameterSet<double> set;
  const int a = set.add("a", {2, 3}, sheafnn::layers::ParameterGroup::network, true);
  const int b = set.add("b", {2, 2}, sheafnn::layers::ParameterGroup::sheaf_learner);
  const int c = set.add("c", {3}, sheafnn::layers::ParameterGroup::network);
  set.finish();
  CHECK(set.size() == 13);
  CHECK(set.find("b") == b);
  CHECK(set.info(b).offset == 6);
  CHECK(set.info(c).size == 3);
  CHECK(set.info(b).group == sheafnn::layers::ParameterGroup::sheaf_learner);
  CHECK(std::all_of(set.values().begin(), set.values().end(), [](double x) { return x == 0; }));
  set.set(a, std::vector<double>{1, 2, 3, 4, 5, 6});
  set.set(b, std::vector<double>{7, 8, 9, 10});
  set.set(c, std::vector<double>{11, 12, 13});
  const double stored[] = {1, 4, 2, 5, 3, 6, 7, 8, 9, 10, 11, 12, 13};
  CHECK(std::equal(set.values().begin(), set.values().end(), stored));
  CHECK(set.get(a, set.values()) == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(set.get(c, set.values()) == std::vector<double>{11, 12, 13});
  CHECK(set.data(b)[3] == 10);
  CHECK_THROWS_WITH_AS(set.set(b, std::vector<double>{1, 2, 3}), "b: 3 is not allowed; expected 4 values",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(set.find("d")),
                       "parameter: d is not allowed; the model has no parameter of that name",
                       std::invalid_argument);
}

}  // namespace test_nn
