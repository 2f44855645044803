// Layers on dense features: activations, DenseLayer, LayerNorm and ReadoutHead, with derivatives by central differences.
#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "sheafnn/layers/batch_norm.hpp"
#include "sheafnn/layers/dense_layer.hpp"
#include "sheafnn/layers/global_norm.hpp"
#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/layers/readout_head.hpp"
#include "sheafnn/random/stream.hpp"

namespace dense_layers_test {

using sheafnn::Activation;
using sheafnn::Index;
using sheafnn::layers::LinearWeights;
using sheafnn::MatrixView;
using sheafnn::layers::NormWeights;
using Numbers = std::vector<double>;

Numbers random_numbers(Index count, std::uint32_t layer) {
  Numbers r(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) {
    sheafnn::fill_normals<1>(r.data() + i, sheafnn::Stream{.seed = 5, .layer = layer}, static_cast<std::uint32_t>(i));
  }
  return r;
}
MatrixView<double> matrix(Numbers& m, Index columns) {
  return {m.data(), static_cast<Index>(m.size()) / columns, columns};
}
MatrixView<const double> matrix(const Numbers& m, Index columns) {
  return {m.data(), static_cast<Index>(m.size()) / columns, columns};
}
double product(const MatrixView<const double>& a, const Numbers& b) {
  double r = 0;
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index j = 0; j < a.columns(); ++j) r += a(i, j) * b[static_cast<std::size_t>(i * a.columns() + j)];
  }
  return r;
}
/// Compares d value / d numbers with central differences along every coordinate.
template <class Value>
void compare(const Numbers& gradient, Numbers& numbers, const Value& value) {
  REQUIRE(gradient.size() == numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    constexpr double step = 1e-5;
    const double middle = numbers[i];
    numbers[i] = middle + step;
    const double right = value();
    numbers[i] = middle - step;
    const double left = value();
    numbers[i] = middle;
    CHECK(gradient[i] == doctest::Approx((right - left) / (2 * step)).epsilon(1e-7).scale(1));
  }
}

// Rounding of a mean of equal numbers x is about x ε, which for large x is more than √(var + 10⁻⁵) of it.
template <class S>
void check_equal_numbers() {
  constexpr Index rows = 300, width = 19;
  const std::vector<S> scale(width, S(1)), shift(width, S(0));
  for (const double size : {0.1, 1e6 / 3, 1e15 / 7, 1e30 / 7}) {
    const std::vector<S> x(static_cast<std::size_t>(rows * width), static_cast<S>(size));
    sheafnn::layers::LayerNorm<S> by_row(rows, width);
    by_row.forward(1, {scale, shift}, {x.data(), rows, width});
    sheafnn::layers::BatchNorm<S> by_column(rows, width);
    by_column.forward({}, {scale, shift}, {x.data(), rows, width}, sheafnn::NodeSelection(rows));
    sheafnn::layers::GlobalNorm<S> of_all(rows, width, width, 1);
    of_all.bind({scale, shift});
    std::vector<S> y(x.size());
    sheafnn::detail::for_row_groups(0, rows, [&](Index first, Index count) {
      of_all.add_rows(first, count, x.data() + first * width);
    });
    of_all.finish_statistics();
    of_all.forward_rows(rows, x.data(), y.data());
    int others = 0;
    for (Index k = 0; k < rows * width; ++k) {
      others += by_row.output().data()[k] != S(0) || by_column.output().data()[k] != S(0) ||
                y[static_cast<std::size_t>(k)] != S(0);
    }
    CHECK(others == 0);
  }
}

TEST_CASE("norms of equal numbers are 0, however large they are") {
  check_equal_numbers<float>();
  check_equal_numbers<double>();
}

// Rows side by side and rows alone, with the derivatives of scale and shift, which are sums over the rows.
template <class S>
void check_rows_alone(Index width) {
  CAPTURE(width);
  constexpr Index rows = 11;
  const auto numbers = [](Index count, std::uint32_t seed) {
    const Numbers exact = random_numbers(count, seed);
    return std::vector<S>(exact.begin(), exact.end());
  };
  const std::vector<S> x = numbers(rows * width, 1), bar = numbers(rows * width, 2), scale = numbers(width, 3),
                       shift = numbers(width, 4);
  const sheafnn::layers::LayerNorm<S> norm(rows, width);
  using Moments = sheafnn::detail::RowMoments<S>;
  std::vector<S> y[2], x_bar[2], partial[2];
  for (const Index at_once : {rows, Index{1}}) {
    const std::size_t i = at_once == 1 ? 1 : 0;
    y[i].resize(x.size());
    x_bar[i].resize(x.size());
    partial[i].resize(static_cast<std::size_t>(2 * width));
    std::vector<Moments> moments(rows);
    for (Index u = 0; u < rows; u += at_once) {
      norm.forward_rows({scale, shift}, at_once, x.data() + u * width, y[i].data() + u * width,
                        moments.data() + u);
      norm.backward_rows({scale, shift}, at_once, x.data() + u * width, moments.data() + u, bar.data() + u * width,
                         x_bar[i].data() + u * width, partial[i].data());
    }
  }
  CHECK(y[0] == y[1]);
  CHECK(x_bar[0] == x_bar[1]);
  CHECK(partial[0] == partial[1]);
}

TEST_CASE("layer norm: a row has the same bits beside others") {
  for (const Index width : {5, 16, 24, 32, 48, 64}) {
    check_rows_alone<float>(width);
    check_rows_alone<double>(width);
  }
}

}  // namespace dense_layers_test

using namespace dense_layers_test;

TEST_CASE("error function: within 2 epsilon, in packs as in numbers") {
  for (double x = -8; x < 8; x += 0.00731) {
    CAPTURE(x);
    const float narrow = static_cast<float>(x);
    CHECK(std::abs(sheafnn::layers::error_function(x) - std::erf(x)) <= 4.5e-16);
    CHECK(std::abs(sheafnn::layers::error_function(sheafnn::math::Pack<double, 8>(x)).lane(5) - std::erf(x)) <=
          4.5e-16);
    CHECK(std::abs(sheafnn::layers::error_function(narrow) - std::erf(narrow)) <= 2.4e-7f);
    CHECK(std::abs(sheafnn::layers::error_function(sheafnn::math::Pack<float, 16>(narrow)).lane(9) -
                   std::erf(narrow)) <= 2.4e-7f);
  }
  for (const double x : {100.0, 1e20, 1e300, HUGE_VAL}) {
    CHECK(sheafnn::layers::error_function(x) == 1);
    CHECK(sheafnn::layers::error_function(-x) == -1);
    CHECK(sheafnn::layers::error_function(sheafnn::math::Pack<double, 8>(-x)).lane(0) == -1);
  }
  CHECK(sheafnn::layers::error_function(1e-300) ==
        doctest::Approx(2e-300 / std::sqrt(std::numbers::pi)).epsilon(1e-15));
  CHECK(std::isnan(sheafnn::layers::error_function(std::nan(""))));
}

TEST_CASE("GELU is x times the normal distribution function, in packs as in numbers") {
  CHECK(sheafnn::layers::gelu(0.0) == 0);
  CHECK(sheafnn::layers::gelu(1.0) == doctest::Approx(0.8413447460685429).epsilon(1e-15));
  CHECK(sheafnn::layers::gelu(-40.0) == 0);
  CHECK(sheafnn::layers::gelu(40.0) == 40);
  for (double x = -7; x < 7; x += 0.0137) {
    CAPTURE(x);
    const double exact = 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    CHECK(std::abs(sheafnn::layers::gelu(x) - exact) <= 4e-16 * (1 + std::abs(x)));
    CHECK(std::abs(sheafnn::layers::gelu(static_cast<float>(x)) - exact) <= 4e-7 * (1 + std::abs(x)));
    const auto pack = sheafnn::layers::gelu(sheafnn::math::Pack<double, 8>(x));
    CHECK(std::abs(pack.lane(3) - exact) <= 4e-16 * (1 + std::abs(x)));
    const auto floats = sheafnn::layers::gelu(sheafnn::math::Pack<float, 16>(static_cast<float>(x)));
    CHECK(std::abs(floats.lane(3) - exact) <= 4e-7 * (1 + std::abs(x)));
  }
}

TEST_CASE("derivatives of activations") {
  for (std::size_t k = 0; k < names_of(sheafnn::layers::Activation()).size(); ++k) {
    sheafnn::layers::with_activation(static_cast<Activation>(k), [&]<Activation A>() {
      CAPTURE(sheafnn::to_string(A));
      for (double x = -4.05; x < 4; x += 0.1) {
        CAPTURE(x);
        const double step = 1e-5;
        const double difference =
            (sheafnn::layers::activate<A>(x + step) - sheafnn::layers::activate<A>(x - step)) / (2 * step);
        CHECK(sheafnn::layers::activation_derivative<A>(x) == doctest::Approx(difference).epsilon(1e-8).scale(1));
        const sheafnn::math::Pack<double, 8> pack(x);
        CHECK(sheafnn::layers::activate<A>(pack).lane(7) ==
              doctest::Approx(sheafnn::layers::activate<A>(x)).epsilon(1e-14).scale(1));
        CHECK(sheafnn::layers::activation_derivative<A>(pack).lane(7) ==
              doctest::Approx(sheafnn::layers::activation_derivative<A>(x)).epsilon(1e-14).scale(1));
      }
    });
  }
}

TEST_CASE("layer norm: rows have mean 0 and variance 1, and its derivatives are right") {
  for (const Index width : {1, 3, 21, 16, 24, 32}) {  // the last three: as many packs as have a loop of their own
    CAPTURE(width);
    constexpr Index rows = 130;
    Numbers x = random_numbers(rows * width, 1), scale = random_numbers(width, 2), shift = random_numbers(width, 3);
    const Numbers bar = random_numbers(rows * width, 4);
    sheafnn::layers::LayerNorm<double> norm(rows + 5, width);
    {
      const Numbers one(scale.size(), 1.0), none(scale.size(), 0.0);
      norm.forward(1, {one, none}, matrix(std::as_const(x), width));
      for (Index u = 0; u < rows && width > 1; ++u) {
        double mean = 0, square = 0, own_mean = 0, own_square = 0;
        const double share = 1 / static_cast<double>(width);
        for (const double y : norm.output().row(u)) mean += share * y;
        for (const double y : norm.output().row(u)) square += share * y * y;
        for (const double y : matrix(x, width).row(u)) own_mean += share * y;
        for (const double y : matrix(x, width).row(u)) own_square += share * (y - own_mean) * (y - own_mean);
        CHECK(std::abs(mean) < 1e-13);
        CHECK(std::abs(square - own_square / (own_square + 1e-5)) < 1e-13);
      }
    }
    const auto value = [&] {
      norm.forward(2, {scale, shift}, matrix(std::as_const(x), width));
      return product(norm.output(), bar);
    };
    value();
    Numbers x_bar = bar, scale_bar(scale.size()), shift_bar(shift.size());
    norm.backward(3, {scale, shift}, matrix(std::as_const(x), width), matrix(std::as_const(x_bar), width),
                  matrix(x_bar, width), {scale_bar, shift_bar});
    compare(x_bar, x, value);
    compare(scale_bar, scale, value);
    compare(shift_bar, shift, value);
    CHECK_THROWS_AS(norm.forward(1, {scale, Numbers(3 + scale.size())}, matrix(std::as_const(x), width)),
                    std::invalid_argument);
  }
}

TEST_CASE("a refused backward pass has added nothing") {
  Numbers x = random_numbers(6, 1), bar = random_numbers(6, 2), small(4), weight = random_numbers(4, 3), bias(2);
  Numbers weight_bar(4), bias_bar(2), short_bias(1);
  const auto square = [](Numbers& from) { return MatrixView<double>(from.data(), 2, 2); };
  const LinearWeights<const double> weights{MatrixView<const double>(weight.data(), 2, 2), bias};
  const LinearWeights<double> derivatives{square(weight_bar), bias_bar};
  const auto rows = [](auto& from) { return MatrixView<double>(from.data(), 3, 2); };
  sheafnn::layers::DenseLayer<double> layer(3, 2, 2, Activation::gelu);
  layer.forward(1, weights, MatrixView<const double>(x.data(), 3, 2));
  const Numbers before = bar;
  CHECK_THROWS_AS(layer.backward(1, weights, MatrixView<const double>(x.data(), 3, 2), rows(bar), square(small),
                                 false, derivatives),
                  std::invalid_argument);
  CHECK(bar == before);
  CHECK(weight_bar == Numbers(4));
  CHECK(bias_bar == Numbers(2));

  sheafnn::layers::ReadoutHead<double> head(3, 2, 2, 1);
  const std::vector<LinearWeights<const double>> hidden{weights};
  head.forward(1, hidden, weights, MatrixView<const double>(x.data(), 3, 2));
  Numbers hidden_bar(4), x_bar(6);
  const std::vector<LinearWeights<double>> wrong{{square(hidden_bar), short_bias}};
  CHECK_THROWS_AS(head.backward(1, hidden, weights, MatrixView<const double>(x.data(), 3, 2),
                                MatrixView<const double>(bar.data(), 3, 2), rows(x_bar), wrong, derivatives),
                  std::invalid_argument);
  CHECK(weight_bar == Numbers(4));
  CHECK(bias_bar == Numbers(2));
}

TEST_CASE("readout heads: derivatives, and the same bits on any number of threads") {
  constexpr Index rows = 150, width = 6, outputs = 3;
  for (const Index hidden : {0, 1, 2}) {
    CAPTURE(hidden);
    Numbers x = random_numbers(rows * width, 1);
    const Numbers bar = random_numbers(rows * outputs, 2);
    std::vector<Numbers> weights, weights_bar;
    for (Index i = 0; i < hidden; ++i) {
      weights.push_back(random_numbers(width * width, static_cast<std::uint32_t>(10 + i)));
      weights.push_back(random_numbers(width, static_cast<std::uint32_t>(20 + i)));
    }
    weights.push_back(random_numbers(width * outputs, 30));
    weights.push_back(random_numbers(outputs, 31));
    sheafnn::layers::ReadoutHead<double> head(rows, width, outputs, hidden);
    const auto views = [&]<class T>(std::vector<Numbers>& from, std::vector<LinearWeights<T>>& out) {
      for (std::size_t i = 0; i < from.size(); i += 2) {
        out.push_back({MatrixView<T>(matrix(from[i], i + 2 < from.size() ? width : outputs)), from[i + 1]});
      }
      return out.back();
    };
    const auto forward = [&](int threads) {
      std::vector<LinearWeights<const double>> all;
      const auto last = views(weights, all);
      all.pop_back();
      head.forward(threads, all, last, matrix(std::as_const(x), width));
      return product(head.output(), bar);
    };
    std::vector<Numbers> first;
    for (int threads = 1; threads <= 3; ++threads) {
      forward(threads);
      weights_bar.clear();
      for (const Numbers& w : weights) weights_bar.emplace_back(w.size());
      Numbers x_bar(x.size());
      std::vector<LinearWeights<const double>> all;
      std::vector<LinearWeights<double>> all_bar;
      const auto last = views(weights, all);
      const auto last_bar = views(weights_bar, all_bar);
      all.pop_back();
      all_bar.pop_back();
      head.backward(threads, all, last, matrix(std::as_const(x), width), matrix(bar, outputs), matrix(x_bar, width),
                    all_bar, last_bar);
      weights_bar.push_back(x_bar);
      if (threads == 1) first = weights_bar;
      CHECK(weights_bar == first);
    }
    const auto value = [&] { return forward(2); };
    compare(first.back(), x, value);
    for (std::size_t i = 0; i < weights.size(); ++i) compare(first[i], weights[i], value);
  }
}
