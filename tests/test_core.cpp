/// \file
/// The core module: packs, buffers, parallel loops, error messages. (Small matrices: test_small_matrix.cpp.)
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sheafnn/core/buffer.hpp"
#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/core/lane_rows.hpp"
#include "sheafnn/core/large_pages.hpp"
#include "sheafnn/core/mask_bits.hpp"
#include "sheafnn/core/multiply_add.hpp"
#include "sheafnn/core/pack.hpp"
#include "sheafnn/version.hpp"

namespace test_core {
namespace {

using sheafnn::Index;
using sheafnn::math::Pack;

template <class T>
constexpr T epsilon = std::numeric_limits<T>::epsilon();

/// The type one step more accurate than T, for reference values.
template <class T>
using Wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// Equal as numbers, or both NaN.
template <class T>
bool same(T a, T b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// Ordinary values of both signs and many magnitudes, then the special ones.
template <class T>
std::vector<T> operands() {
  std::mt19937 engine(1);
  std::uniform_real_distribution<double> mantissa(-2, 2);
  std::uniform_int_distribution<int> exponent(-20, 20);
  std::vector<T> r;
  for (int i = 0; i < 91; ++i) r.push_back(static_cast<T>(std::ldexp(mantissa(engine), exponent(engine))));
  using limits = std::numeric_limits<T>;
  for (const T special : {T(0), -T(0), T(1), -T(1), limits::infinity(), -limits::infinity(), limits::quiet_NaN(),
                          limits::max(), limits::lowest(), limits::min(), limits::denorm_min()}) {
    r.push_back(special);
  }
  return r;
}

/// Calls check(a, b) with packs whose lanes walk through pairs of operands.
template <class P, class Check>
void for_operand_packs(const Check& check) {
  using T = typename P::value_type;
  const std::vector<T> values = operands<T>();
  const std::size_t n = values.size();
  for (std::size_t shift = 0; shift < n; ++shift) {
    for (std::size_t start = 0; start < n; start += P::width) {
      P a(0), b(0);
      for (int l = 0; l < P::width; ++l) {
        a.set_lane(l, values[(start + static_cast<std::size_t>(l)) % n]);
        b.set_lane(l, values[(start + shift + static_cast<std::size_t>(l)) % n]);
      }
      check(a, b);
    }
  }
}

/// Number of lanes in which a pack differs from what a function says about the lane.
template <class P, class Expected>
int wrong_lanes(const P& pack, const Expected& expected) {
  int wrong = 0;
  for (int l = 0; l < P::width; ++l) wrong += same<typename P::value_type>(pack.lane(l), expected(l)) ? 0 : 1;
  return wrong;
}

}  // namespace

#define SHEAFNN_FLOAT_PACKS Pack<float, 4>, Pack<float, 8>, Pack<float, 16>, Pack<double, 4>, Pack<double, 8>

TEST_CASE_TEMPLATE("pack: lanes, loading and storing", P, SHEAFNN_FLOAT_PACKS) {
  using T = typename P::value_type;
  constexpr int W = P::width;
  std::vector<T> values(W + 1);
  for (int l = 0; l <= W; ++l) values[static_cast<std::size_t>(l)] = T(l) + T(0.5);
  const P a = P::load(values.data() + 1);  // an address no vector is aligned to
  for (int l = 0; l < W; ++l) CHECK(a.lane(l) == T(l) + T(1.5));
  std::vector<T> out(W + 2, T(-1));
  a.store(out.data() + 1);
  CHECK(out.front() == T(-1));
  CHECK(out.back() == T(-1));
  for (int l = 0; l < W; ++l) CHECK(out[static_cast<std::size_t>(l) + 1] == a.lane(l));

  for (int changed = 0; changed < W; ++changed) {
    P b = a;
    b.set_lane(changed, T(-7));
    CHECK(wrong_lanes(b, [&](int l) { return l == changed ? T(-7) : a.lane(l); }) == 0);
  }
  CHECK(wrong_lanes(P(T(3)), [](int) { return T(3); }) == 0);
  CHECK(wrong_lanes(P(3), [](int) { return T(3); }) == 0);
  CHECK(wrong_lanes(P(0.1), [](int) { return T(0.1); }) == 0);

  CHECK(wrong_lanes(sheafnn::detail::load<P>(values.data()), [](int l) { return T(l) + T(0.5); }) == 0);
  CHECK(sheafnn::detail::load<T>(values.data() + 1) == T(1.5));
  sheafnn::detail::store(out.data(), P(2));
  CHECK(out[W - 1] == T(2));
  CHECK(out[W] == a.lane(W - 1));
  sheafnn::detail::store(out.data(), T(9));
  CHECK(out[0] == T(9));
  CHECK(out[1] == T(2));
  static_assert(std::is_same_v<sheafnn::math::scalar_of_t<P>, T>);
  static_assert(std::is_same_v<sheafnn::math::scalar_of_t<T>, T>);
  static_assert(sheafnn::row_lanes<T> * sizeof(T) == 64);
  static_assert(sheafnn::lanes<T> * sizeof(T) == 32 || sheafnn::lanes<T> * sizeof(T) == 64);
}

TEST_CASE_TEMPLATE("multiply_add: one rounding where the target can, the same in lanes and scalars", P,
                   SHEAFNN_FLOAT_PACKS) {
  using T = typename P::value_type;
  // (1 + kε)(1 − kε) − 1 is −k²ε² with one rounding; with two it is 0 or a multiple of ε/2.
  P a(T(0)), b(T(0));
  const T epsilon = std::numeric_limits<T>::epsilon();
  for (int l = 0; l < P::width; ++l) {
    a.set_lane(l, 1 + T(l + 1) * epsilon);
    b.set_lane(l, 1 - T(l + 1) * epsilon);
  }
  const P result = sheafnn::detail::multiply_add(a, b, P(-1));
  CHECK(wrong_lanes(result, [&](int l) { return sheafnn::detail::multiply_add(a.lane(l), b.lane(l), T(-1)); }) ==
        0);
#if defined(FP_FAST_FMA) && defined(FP_FAST_FMAF)
  CHECK(wrong_lanes(result, [&](int l) { return -T(l + 1) * T(l + 1) * epsilon * epsilon; }) == 0);
#endif
}

TEST_CASE_TEMPLATE("pack: arithmetic is the scalar's in every lane, special values included", P,
                   SHEAFNN_FLOAT_PACKS) {
  int wrong = 0;
  for_operand_packs<P>([&](const P& a, const P& b) {
    wrong += wrong_lanes(a + b, [&](int l) { return a.lane(l) + b.lane(l); });
    wrong += wrong_lanes(a - b, [&](int l) { return a.lane(l) - b.lane(l); });
    wrong += wrong_lanes(a * b, [&](int l) { return a.lane(l) * b.lane(l); });
    wrong += wrong_lanes(a / b, [&](int l) { return a.lane(l) / b.lane(l); });
    wrong += wrong_lanes(-a, [&](int l) { return -a.lane(l); });
    P sum = a, difference = a, product = a, quotient = a;
    sum += b;
    difference -= b;
    product *= b;
    quotient /= b;
    wrong += wrong_lanes(sum, [&](int l) { return a.lane(l) + b.lane(l); });
    wrong += wrong_lanes(difference, [&](int l) { return a.lane(l) - b.lane(l); });
    wrong += wrong_lanes(product, [&](int l) { return a.lane(l) * b.lane(l); });
    wrong += wrong_lanes(quotient, [&](int l) { return a.lane(l) / b.lane(l); });
    wrong += wrong_lanes(a * 2 + 1.0, [&](int l) { return a.lane(l) * 2 + 1; });
    for (int l = 0; l < P::width; ++l) {
      wrong += std::signbit((-a).lane(l)) == std::signbit(a.lane(l)) && !std::isnan(a.lane(l)) ? 1 : 0;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("pack: comparisons, masks and select are the scalar's in every lane", P, SHEAFNN_FLOAT_PACKS) {
  using T = typename P::value_type;
  const P yes(1), no(2);
  int wrong = 0;
  for_operand_packs<P>([&](const P& a, const P& b) {
    wrong += wrong_lanes(select(a < b, yes, no), [&](int l) { return a.lane(l) < b.lane(l) ? T(1) : T(2); });
    wrong += wrong_lanes(select(a <= b, yes, no), [&](int l) { return a.lane(l) <= b.lane(l) ? T(1) : T(2); });
    wrong += wrong_lanes(select(a > b, yes, no), [&](int l) { return a.lane(l) > b.lane(l) ? T(1) : T(2); });
    wrong += wrong_lanes(select(a >= b, yes, no), [&](int l) { return a.lane(l) >= b.lane(l) ? T(1) : T(2); });
    wrong += wrong_lanes(select((a < b) & (b > P(0)), yes, no),
                         [&](int l) { return a.lane(l) < b.lane(l) && b.lane(l) > 0 ? T(1) : T(2); });
    wrong += wrong_lanes(select(a < b, a, b), [&](int l) {
      return sheafnn::math::select(a.lane(l) < b.lane(l), a.lane(l), b.lane(l));
    });
    wrong += wrong_lanes(abs(a), [&](int l) { return std::abs(a.lane(l)); });
    // As with std::max and std::min, an unordered pair gives the first operand.
    wrong += wrong_lanes(max(a, b), [&](int l) { return std::max(a.lane(l), b.lane(l)); });
    wrong += wrong_lanes(min(a, b), [&](int l) { return std::min(a.lane(l), b.lane(l)); });
  });
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("pack: unsigned words wrap, shift and combine", W, std::integral_constant<int, 4>,
                   std::integral_constant<int, 8>, std::integral_constant<int, 16>) {
  using P = Pack<std::uint32_t, W::value>;
  std::mt19937 engine(2);
  int wrong = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    P a(0), b(0);
    for (int l = 0; l < P::width; ++l) {
      a.set_lane(l, static_cast<std::uint32_t>(engine()));
      b.set_lane(l, static_cast<std::uint32_t>(engine()));
    }
    const int bits = trial % 32;
    for (int l = 0; l < P::width; ++l) {
      wrong += (a + b).lane(l) != a.lane(l) + b.lane(l);
      wrong += (a - b).lane(l) != a.lane(l) - b.lane(l);
      wrong += (a * b).lane(l) != a.lane(l) * b.lane(l);
      wrong += (a ^ b).lane(l) != (a.lane(l) ^ b.lane(l));
      wrong += (a >> bits).lane(l) != a.lane(l) >> bits;
      wrong += (a << bits).lane(l) != a.lane(l) << bits;
      wrong += select(a < b, a, b).lane(l) != std::min(a.lane(l), b.lane(l));
    }
  }
  CHECK(wrong == 0);
}

namespace {

/// Largest error of a pack function over [low, high] (and of its mirror image when `odd_range`), in units of
/// epsilon · |reference|, the reference being the standard function one precision up.
template <class P, class PackFunction, class Reference>
double worst_error(double low, double high, const PackFunction& function, const Reference& reference) {
  using T = typename P::value_type;
  constexpr int steps = 4000;
  double worst = 0;
  for (int i = 0; i < steps; i += P::width) {
    P x(0);
    for (int l = 0; l < P::width; ++l) x.set_lane(l, static_cast<T>(low + (high - low) * (i + l + 0.5) / steps));
    const P y = function(x);
    for (int l = 0; l < P::width; ++l) {
      const Wider<T> exact = reference(static_cast<Wider<T>>(x.lane(l)));
      const Wider<T> error = std::abs(static_cast<Wider<T>>(y.lane(l)) - exact);
      const double units = static_cast<double>(error / (std::abs(exact) * epsilon<T>));
      if (!(units <= worst)) worst = units;  // NaN must show
    }
  }
  return worst;
}

}  // namespace

TEST_CASE_TEMPLATE("pack: elementary functions", P, SHEAFNN_FLOAT_PACKS) {
  using T = typename P::value_type;
  using R = Wider<T>;
  constexpr double exponential_range =
      std::is_same_v<T, float> ? 87 : 708;  // before overflow and denormal numbers
  // Eigen states errors of a few units in the last place for its vectorised functions; one unit is up to epsilon ·
  // |y|.
  constexpr double function_bound = 4;
#define SHEAFNN_CHECK_FUNCTION(name, low, high)                                                         \
  CHECK_MESSAGE(worst_error<P>(                                                                         \
                    low, high, [](const P& x) { return name(x); }, [](R x) { return std::name(x); }) <= \
                    function_bound,                                                                     \
                #name " on [" #low ", " #high "]")
  SHEAFNN_CHECK_FUNCTION(sqrt, 0, 1e6);
  SHEAFNN_CHECK_FUNCTION(exp, -exponential_range, exponential_range);
  SHEAFNN_CHECK_FUNCTION(exp, -1, 1);
  SHEAFNN_CHECK_FUNCTION(expm1, -20, 20);
  SHEAFNN_CHECK_FUNCTION(expm1, -1e-3, 1e-3);
  SHEAFNN_CHECK_FUNCTION(log, 0, 4);
  SHEAFNN_CHECK_FUNCTION(log, 0, 1e30);
  SHEAFNN_CHECK_FUNCTION(log1p, -0.9, 10);
  SHEAFNN_CHECK_FUNCTION(log1p, -1e-3, 1e-3);
  SHEAFNN_CHECK_FUNCTION(sin, -100, 100);
  SHEAFNN_CHECK_FUNCTION(cos, -100, 100);
  SHEAFNN_CHECK_FUNCTION(sin, -1e-3, 1e-3);
  SHEAFNN_CHECK_FUNCTION(tanh, -10, 10);
  SHEAFNN_CHECK_FUNCTION(tanh, -1e-3, 1e-3);
#undef SHEAFNN_CHECK_FUNCTION
}

TEST_CASE_TEMPLATE("pack: elementary functions at their limits", P, SHEAFNN_FLOAT_PACKS) {
  using T = typename P::value_type;
  const T infinity = std::numeric_limits<T>::infinity();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const auto everywhere = [](const P& pack, T value) {
    return wrong_lanes(pack, [&](int) { return value; }) == 0;
  };
  CHECK(everywhere(sqrt(P(0)), T(0)));
  CHECK(everywhere(sqrt(P(-1)), nan));
  CHECK(everywhere(exp(P(0)), T(1)));
  CHECK(everywhere(exp(P(infinity)), infinity));
  CHECK(everywhere(exp(P(-infinity)), T(0)));
  CHECK(everywhere(exp(P(std::numeric_limits<T>::lowest())), T(0)));
  CHECK(everywhere(exp(P(nan)), nan));
  CHECK(everywhere(expm1(P(0)), T(0)));
  CHECK(everywhere(expm1(P(-infinity)), T(-1)));
  CHECK(everywhere(log(P(1)), T(0)));
  CHECK(everywhere(log(P(0)), -infinity));
  CHECK(everywhere(log(P(-1)), nan));
  CHECK(everywhere(log(P(infinity)), infinity));
  CHECK(everywhere(log1p(P(0)), T(0)));
  CHECK(everywhere(log1p(P(-1)), -infinity));
  CHECK(everywhere(sin(P(0)), T(0)));
  CHECK(everywhere(cos(P(0)), T(1)));
  CHECK(everywhere(tanh(P(0)), T(0)));
  CHECK(everywhere(tanh(P(50)), T(1)));
  CHECK(everywhere(tanh(P(-50)), T(-1)));
  CHECK(everywhere(sin(P(nan)), nan));
  CHECK(everywhere(tanh(P(nan)), nan));
}

// Every exponent of T, both signs, with mantissas from the least to the largest.
TEST_CASE_TEMPLATE("pack: exponentials and logarithms of every exponent", P, SHEAFNN_FLOAT_PACKS, Pack<float, 2>,
                   Pack<double, 2>) {
  using T = typename P::value_type;
  using R = Wider<T>;
  using limits = std::numeric_limits<T>;
  constexpr int W = P::width;
  std::vector<T> values;
  std::mt19937 engine(3);
  for (int e = limits::min_exponent - limits::digits; e < limits::max_exponent; ++e) {
    for (int k = 0; k < 16; ++k) {
      const T part = k == 0 ? T(0) : k == 1 ? T(1) - limits::epsilon() : static_cast<T>(engine() * 0x1p-32);
      const T value = std::ldexp(1 + part, e);
      values.push_back(value);
      values.push_back(-value);
    }
  }
  const double end = static_cast<double>(std::numeric_limits<T>::max_exponent) * std::log(2.0);
  for (int k = 0; k < 4096; ++k) values.push_back(static_cast<T>(1.2 * end * (engine() * 0x1p-31 - 1)));
  while (values.size() % W != 0) values.push_back(1);
  // Units in the last place, which subnormal results share with the least normal number.
  const auto error = [](T got, R want) {
    const T rounded = static_cast<T>(want);
    if (same(got, rounded)) return 0.0;
    if (!std::isfinite(got) || !std::isfinite(rounded)) return std::numeric_limits<double>::infinity();
    const R size = std::max(std::abs(want), static_cast<R>(limits::min()));
    const R unit = std::exp2(std::floor(std::log2(size))) * static_cast<R>(limits::epsilon());
    return static_cast<double>(std::abs(static_cast<R>(got) - want) / unit);
  };
  double worst_exp = 0, worst_log = 0;
  for (std::size_t i = 0; i < values.size(); i += W) {
    T exponentials[W], logarithms[W];
    exp(P::load(&values[i])).store(exponentials);
    log(P::load(&values[i])).store(logarithms);
    for (int k = 0; k < W; ++k) {
      const T x = values[i + static_cast<std::size_t>(k)];
      const R of_exp = std::exp(static_cast<R>(x));
      const bool flushed = of_exp < R(0.51) * static_cast<R>(limits::min());
      if (!flushed || exponentials[k] != 0) worst_exp = std::max(worst_exp, error(exponentials[k], of_exp));
      worst_log = std::max(worst_log, error(logarithms[k], std::log(static_cast<R>(x))));
    }
  }
  CHECK(worst_exp <= 2);
  CHECK(worst_log <= 2);
}

TEST_CASE_TEMPLATE("sums over lanes, written or added", P, SHEAFNN_FLOAT_PACKS) {
  using T = typename P::value_type;
  const auto check = [&]<int K>(std::integral_constant<int, K>) {
    CAPTURE(K);
    P packs[K];
    T expected[K];
    for (int k = 0; k < K; ++k) {
      T values[P::width];
      expected[k] = T(0);
      for (int l = 0; l < P::width; ++l) expected[k] += values[l] = static_cast<T>(k * k + 3 * l - 5);  // exact
      packs[k] = P::load(values);
    }
    std::vector<T> out(static_cast<std::size_t>(K + 2), std::numeric_limits<T>::quiet_NaN());
    out.front() = out.back() = T(-1);
    for (int times = 1; times <= 2; ++times) {
      sheafnn::detail::lane_sums<K>(packs, out.data() + 1, times == 2);
      for (int k = 0; k < K; ++k)
        CHECK(out[static_cast<std::size_t>(k + 1)] == static_cast<T>(times) * expected[k]);
    }
    CHECK(out.front() == T(-1));
    CHECK(out.back() == T(-1));
  };
  [&]<int... k>(std::integer_sequence<int, k...>) { (check(std::integral_constant<int, k + 1>{}), ...); }
  (std::make_integer_sequence<int, 10>{});
}

TEST_CASE_TEMPLATE("sums of four packs have the bits of each pack's own sum", P, SHEAFNN_FLOAT_PACKS) {
  using T = typename P::value_type;
  P packs[4];
  for (int k = 0; k < 4; ++k) {
    for (int l = 0; l < P::width; ++l) packs[k].set_lane(l, std::sin(static_cast<T>(1 + k + 7 * l)));
  }
  T sums[4];
  sheafnn::detail::four_sums(packs, sums);
  for (int k = 0; k < 4; ++k) CHECK(sums[k] == reduce_add(packs[k]));
}

TEST_CASE_TEMPLATE("lanes become rows, rows become lanes", P, SHEAFNN_FLOAT_PACKS) {
  using T = typename P::value_type;
  const auto number = [](int row, int k) { return static_cast<T>(1 + 1000 * k + row); };
  const auto check = [&]<int K>(std::integral_constant<int, K>) {
    CAPTURE(K);
    P packs[K];
    for (int k = 0; k < K; ++k) {
      T values[P::width];
      for (int l = 0; l < P::width; ++l) values[l] = number(l, k);
      packs[k] = P::load(values);
    }
    for (int count = 0; count <= P::width; ++count) {
      CAPTURE(count);
      // A guard before the rows, so that they are not aligned, and one behind them.
      std::vector<T> out(static_cast<std::size_t>(K * count + 2), T(-1));
      T* const rows = out.data() + 1;
      sheafnn::detail::store_rows<K>(packs, count, rows);
      int wrong = out.front() != T(-1) || out.back() != T(-1);
      for (int l = 0; l < count; ++l) {
        for (int k = 0; k < K; ++k) wrong += rows[l * K + k] != number(l, k);
      }
      P back[K];
      sheafnn::detail::load_rows<K>(rows, count, back);
      for (int l = 0; l < P::width; ++l) {
        for (int k = 0; k < K; ++k) wrong += back[k].lane(l) != (l < count ? number(l, k) : T(0));
      }
      CHECK(wrong == 0);
    }
    // Every second row, in turned order.
    std::int32_t places[P::width];
    for (int l = 0; l < P::width; ++l) places[l] = 2 * (P::width - 1 - l);
    std::vector<T> scattered(static_cast<std::size_t>(2 * K * P::width), T(-1));
    sheafnn::detail::scatter_rows<K>(packs, places, P::width, scattered.data());
    P gathered[K];
    sheafnn::detail::gather_rows<K>(scattered.data(), places, gathered);
    int wrong = 0;
    for (int l = 0; l < P::width; ++l) {
      for (int k = 0; k < K; ++k) {
        wrong += scattered[static_cast<std::size_t>(places[l] * K + k)] != number(l, k);
        wrong += scattered[static_cast<std::size_t>((places[l] + 1) * K + k)] != T(-1);
        wrong += gathered[k].lane(l) != number(l, k);
      }
    }
    CHECK(wrong == 0);
  };
  [&]<int... K>(std::integer_sequence<int, K...>) { (check(std::integral_constant<int, K + 1>{}), ...); }
  (std::make_integer_sequence<int, 17>{});
  check(std::integral_constant<int, 25>{});
}

TEST_CASE_TEMPLATE("pack: reduce_add sums pairwise in a fixed order", P, SHEAFNN_FLOAT_PACKS) {
  using T = typename P::value_type;
  std::mt19937 engine(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int trial = 0; trial < 100; ++trial) {
    P a(0);
    std::vector<T> v(P::width);
    for (std::size_t l = 0; l < v.size(); ++l) {
      v[l] = static_cast<T>(uniform(engine));
      a.set_lane(static_cast<int>(l), v[l]);
    }
    for (std::size_t half = v.size() / 2; half > 0; half /= 2) {
      for (std::size_t l = 0; l < half; ++l) v[l] += v[l + half];
    }
    CHECK(reduce_add(a) == v[0]);
  }
  CHECK(sheafnn::math::reduce_add(T(1.25)) == T(1.25));
}

/// Appends the positions at which a body's tile writes, and checks that it reads the same ones, and zeros elsewhere.
template <class T, class Tile>
void note_tile(const Tile& c, std::vector<Index>& written) {
  using S = sheafnn::math::scalar_of_t<T>;
  constexpr Index width = sizeof(T) / sizeof(S), room = 200;
  std::vector<S> in(room), out(room, S(-1));
  for (Index i = 0; i < room; ++i) in[static_cast<std::size_t>(i)] = static_cast<S>(i + 1);
  const T value = c.load(in.data() + c);
  c.store(out.data() + c, value);
  S lanes[width], kept[width];
  sheafnn::detail::store(lanes, value);
  sheafnn::detail::store(kept, c.only(T(S(1))));
  for (Index i = 0; i < room; ++i) {
    const S found = out[static_cast<std::size_t>(i)];
    if (found == S(-1)) continue;
    CHECK(found == static_cast<S>(i + 1));
    CHECK(lanes[i - c] == found);
    CHECK(kept[i - c] == S(1));
    lanes[i - c] = kept[i - c] = S(0);
    written.push_back(i);
  }
  for (Index lane = 0; lane < width; ++lane) {
    CHECK(lanes[lane] == S(0));
    CHECK(kept[lane] == S(0));
  }
}

TEST_CASE_TEMPLATE("tiles cover a range once, in order, and touch nothing else", T, float, double) {
  for (Index begin : {0, 3}) {
    for (Index end = begin; end <= begin + 70; ++end) {
      std::vector<Index> all(static_cast<std::size_t>(end - begin));
      std::iota(all.begin(), all.end(), begin);
      std::vector<Index> tiles, arc_tiles, wide_tiles, narrowing;
      Index walks = 0;
      sheafnn::detail::for_tiles<T>(begin, end, [&]<class Tile>(auto c) { note_tile<Tile>(c, tiles); });
      sheafnn::detail::for_arc_tiles<T, 3>(begin, end, [&]<class Tile>(auto c) {
        note_tile<Tile>(c, arc_tiles);
        ++walks;
      });
      sheafnn::detail::for_arc_tiles<T, 100>(begin, end,
                                             [&]<class Tile>(auto c) { note_tile<Tile>(c, wide_tiles); });
      sheafnn::detail::for_narrowing_tiles<T>(begin, end,
                                              [&]<class Tile>(auto c) { note_tile<Tile>(c, narrowing); });
      CHECK(tiles == all);
      CHECK(arc_tiles == all);
      CHECK(wide_tiles == all);
      CHECK(narrowing == all);
      CHECK(walks <= (end - begin + sheafnn::row_lanes<T> - 1) / sheafnn::row_lanes<T>);
    }
  }
}

TEST_CASE_TEMPLATE("a tile long before the end of a row has all of its lanes", T, float, double) {
  using Tile = sheafnn::math::Pack<T, sheafnn::row_lanes<T>>;
  std::vector<T> in(sheafnn::row_lanes<T>, T(3));
  for (const Index count : {-300, -1, 0, 1, 255, 256, 257, 260, 271, 300, 512}) {
    CAPTURE(count);
    std::vector<T> out(in.size(), T(0)), expected(in.size(), T(0));
    const sheafnn::detail::TileAt<Tile, false> at(0, count);
    at.store(out.data(), at.load(in.data()));
    for (Index k = 0; k < std::min<Index>(count, sheafnn::row_lanes<T>); ++k)
      expected[static_cast<std::size_t>(k)] = T(3);
    CHECK(out == expected);
  }
}

TEST_CASE_TEMPLATE("groups of tiles cover a row once, in order, and touch nothing else", T, float, double) {
  constexpr Index room = 200;
  for (Index width = 0; width <= 130; ++width) {
    std::vector<T> in(room), out(room, T(-1));
    for (Index i = 0; i < room; ++i) in[static_cast<std::size_t>(i)] = static_cast<T>(i + 1);
    Index next = 0;
    sheafnn::detail::for_tile_groups<T, 3>(width, [&]<class P, int Tiles>(auto c) {
      CHECK(c == next);
      next = std::min(width, c + Tiles * P::width);
      for (int t = 0; t < Tiles; ++t) c.store(t, out.data() + c, c.load(t, in.data() + c));
    });
    CHECK(next == width);
    for (Index i = 0; i < room; ++i) {
      CHECK(out[static_cast<std::size_t>(i)] == (i < width ? static_cast<T>(i + 1) : T(-1)));
    }
  }
}

TEST_CASE_TEMPLATE("sums over the lanes of a tile of two packs", T, float, double) {
  constexpr int W = sheafnn::row_lanes<T>, count = 5;
  sheafnn::math::Pack<T, 2 * W> in[count];
  T values[2 * W], sums[count], expected[count];
  for (int k = 0; k < count; ++k) {
    expected[k] = T(k);
    for (int c = 0; c < 2 * W; ++c) expected[k] += values[c] = static_cast<T>(7 * k + c);
    in[k] = sheafnn::math::Pack<T, 2 * W>::load(values);
    sums[k] = T(k);
  }
  sheafnn::detail::lane_sums<count>(in, sums, true);
  for (int k = 0; k < count; ++k) CHECK(sums[k] == expected[k]);
}

TEST_CASE_TEMPLATE("buffer: aligned, zeroed, a value", T, float, double, std::int32_t, char) {
  using sheafnn::Buffer;
  for (const Index size : {1, 3, 16, 1000}) {
    Buffer<T> a(size);
    CHECK(a.size() == size);
    CHECK(!a.empty());
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
    for (const T value : a) CHECK(value == T(0));
    for (Index i = 0; i < size; ++i) a[i] = static_cast<T>(i % 100 + 1);

    Buffer<T> copy = a;
    CHECK(copy.data() != a.data());
    CHECK(std::equal(copy.begin(), copy.end(), a.begin(), a.end()));
    copy[0] = T(77);
    CHECK(a[0] == T(1));

    const T* storage = a.data();
    Buffer<T> moved = std::move(a);
    CHECK(moved.data() == storage);
    CHECK(a.empty());  // NOLINT(bugprone-use-after-move): moved-from buffers are empty
    CHECK(a.data() == nullptr);
    a = moved;
    CHECK(a.data() != moved.data());
    CHECK(a[size - 1] == moved[size - 1]);
    const Buffer<T>& alias = a;
    a = alias;
    CHECK(a.size() == size);
    CHECK(a[size - 1] == moved[size - 1]);
    copy = std::move(moved);
    CHECK(copy.data() == storage);

    const Buffer<T>& view_of = copy;
    CHECK(view_of.view().size() == static_cast<std::size_t>(size));
    CHECK(view_of.view().data() == storage);
    copy.view()[0] = T(5);
    CHECK(view_of[0] == T(5));
    copy.fill(T(9));
    for (const T value : view_of) CHECK(value == T(9));

    copy.resize(size + 1);
    CHECK(copy.size() == size + 1);
    for (const T value : copy) CHECK(value == T(0));
    copy.resize(size, sheafnn::to_be_written);
    CHECK(copy.size() == size);
#if !defined(NDEBUG)
    for (const T value : copy) CHECK((value != value || value == static_cast<T>(-1)));
#endif
    copy.resize(0);
    CHECK(copy.empty());
    CHECK(copy.data() == nullptr);
  }
  const Buffer<T> none;
  CHECK(none.size() == 0);
  CHECK(none.begin() == none.end());
  const Buffer<T> copy_of_none = none;
  CHECK(copy_of_none.empty());
}

TEST_CASE("buffers as large as large pages: zeroed, what their neighbours hold stays, and so does errno") {
  using sheafnn::Buffer;
  constexpr Index page = Index{2} << 20;
  const Index sizes[] = {page / 3, page - 64, page + 1, 2 * page + 4096, 5 * page};
  std::vector<Buffer<std::uint8_t>> all;
  errno = ERANGE;
  for (const Index size : sizes) {
    all.emplace_back(size);
    CHECK(std::count(all.back().begin(), all.back().end(), std::uint8_t{0}) == size);
    all.back().fill(static_cast<std::uint8_t>(all.size()));
  }
  CHECK(errno == ERANGE);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto at = reinterpret_cast<std::uintptr_t>(all[i].data());
    CHECK(at % sheafnn::detail::place_of(static_cast<std::size_t>(sizes[i])).alignment == 0);
    CHECK(std::count(all[i].begin(), all[i].end(), static_cast<std::uint8_t>(i + 1)) == sizes[i]);
  }
}

TEST_CASE("an array that fills two thirds of its large pages has them to itself") {
  using sheafnn::detail::ArrayPlace, sheafnn::detail::place_of;
  constexpr std::size_t page = sheafnn::detail::large_page;
#if defined(MADV_HUGEPAGE)
  CHECK(place_of(page - 64) == ArrayPlace{page, page});
  CHECK(place_of(page / 3 * 2 + 2) == ArrayPlace{page, page});
  CHECK(place_of(page) == ArrayPlace{page, page});
  CHECK(place_of(2 * page - 1) == ArrayPlace{page, 2 * page});
  CHECK(place_of(2 * page) == ArrayPlace{64, 2 * page});
  CHECK(place_of(3 * page + 1) == ArrayPlace{64, 3 * page + 1});
#endif
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{64}, page / 3 * 2, page + page / 4}) {
    CHECK(place_of(bytes) == ArrayPlace{64, bytes});
  }
}

TEST_CASE("errors name the argument, its value and the limit") {
  CHECK_THROWS_WITH_AS(sheafnn::throw_invalid_argument("layers", 0, "must be between 1 and 64"),
                       "layers: 0 is not allowed; must be between 1 and 64", std::invalid_argument);
  CHECK_THROWS_WITH_AS(sheafnn::require(false, "dropout", 1.5, "must be below 1"),
                       "dropout: 1.5 is not allowed; must be below 1", std::invalid_argument);
  CHECK_NOTHROW(sheafnn::require(true, "dropout", 0.5, "must be below 1"));
  CHECK(sheafnn::detail::concat("labels[", 3, "] = ", -1, ' ', 0.25, std::string("!")) == "labels[3] = -1 0.25!");
  // Numbers that are just out of range look like it.
  CHECK(sheafnn::detail::concat(1.0000001, ' ', 1e30, ' ', -0.0, ' ', 0.1F, ' ', 1e-300, ' ', 1234567.0, ' ',
                                1e6) == "1.0000001 1e+30 -0 0.1 1e-300 1234567 1e+06");
  CHECK(sheafnn::detail::concat(0.5 + 0.2 + 0.2, ' ', std::nextafter(1.0, 2.0), ' ', 1 / 3.0F, ' ', 1 / 3.0) ==
        "0.9 1 0.333333 0.333333");
  CHECK(sheafnn::detail::concat(-std::numeric_limits<double>::quiet_NaN(), ' ', std::nanf("")) == "nan nan");
  CHECK(sheafnn::detail::concat(std::numeric_limits<double>::infinity(), ' ',
                                -std::numeric_limits<double>::infinity(), ' ',
                                std::numeric_limits<double>::quiet_NaN()) == "inf -inf nan");
}

TEST_CASE("the version's parts and its text agree") {
  CHECK(sheafnn::detail::concat(SHEAFNN_VERSION_MAJOR, '.', SHEAFNN_VERSION_MINOR, '.', SHEAFNN_VERSION_PATCH) ==
        SHEAFNN_VERSION_STRING);
}

}  // namespace test_core
