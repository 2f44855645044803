/// \file
/// The random module: Philox against its authors' implementation, addresses of streams, uniform and normal numbers.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <type_traits>
#include <vector>

#if __has_include(<Random123/philox.h>)
#include <Random123/philox.h>
#define SHEAFNN_TEST_RANDOM123 1
#endif

#include "sheafnn/core/pack.hpp"
#include "sheafnn/random/philox.hpp"
#include "sheafnn/random/stream.hpp"
#include "sheafnn/random/turns.hpp"
#include "sheafnn/random/unit_log.hpp"
#include "sheafnn/random/words.hpp"

namespace test_random {
namespace {

using sheafnn::math::Pack;
using sheafnn::random::PhiloxBlock;
using sheafnn::Purpose;
using sheafnn::Stream;
using Word = std::uint32_t;
using Words = std::array<Word, 4>;

Words philox(const Words& counter, Word key0, Word key1) {
  const PhiloxBlock<Word> block =
      sheafnn::random::philox(PhiloxBlock<Word>{{counter[0], counter[1], counter[2], counter[3]}}, key0, key1);
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

Words words_of(const Stream& stream, Word id, Word draw, Word id_high = 0) {
  const PhiloxBlock<Word> block = stream.words(id, draw, id_high);
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

/// A statistic of random numbers lies within this many standard errors of its expectation; seeds are fixed.
constexpr double standard_errors = 4;

}  // namespace

TEST_CASE("philox: the known answers of its authors") {
  CHECK(philox({0, 0, 0, 0}, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffff, 0xffffffff) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

#if defined(SHEAFNN_TEST_RANDOM123)
TEST_CASE("philox: Random123 on many counters and keys") {
  std::mt19937 engine(1);
  const auto word = [&] { return static_cast<Word>(engine()); };
  r123::Philox4x32 reference;
  int wrong = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const Words counter = {word(), word(), word(), word()};
    const Word key0 = word(), key1 = word();
    const r123::Philox4x32::ctr_type expected =
        reference({{counter[0], counter[1], counter[2], counter[3]}}, {{key0, key1}});
    wrong += philox(counter, key0, key1) != Words{expected[0], expected[1], expected[2], expected[3]};
  }
  CHECK(wrong == 0);
}
#endif

TEST_CASE_TEMPLATE("philox: lanes of packs are the scalar's words", P, Pack<Word, 4>, Pack<Word, 8>,
                   Pack<Word, 16>) {
  std::mt19937 engine(2);
  int wrong = 0;
  for (int trial = 0; trial < 200; ++trial) {
    PhiloxBlock<P> counter = {{P(0), P(0), P(0), P(0)}};
    for (P& word : counter.word) {
      for (int l = 0; l < P::width; ++l) word.set_lane(l, static_cast<Word>(engine()));
    }
    const Word key0 = static_cast<Word>(engine()), key1 = static_cast<Word>(engine());
    const PhiloxBlock<P> block = sheafnn::random::philox(counter, key0, key1);
    for (int l = 0; l < P::width; ++l) {
      const Words expected = philox({counter.word[0].lane(l), counter.word[1].lane(l), counter.word[2].lane(l),
                                     counter.word[3].lane(l)},
                                    key0, key1);
      for (int i = 0; i < 4; ++i) wrong += block.word[i].lane(l) != expected[static_cast<std::size_t>(i)];
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("stream: the documented layout of counter and key") {
  const Stream stream{.seed = 0x0123456789abcdef,
                      .purpose = Purpose::sheaf_noise,
                      .epoch = 0xfedcba98,
                      .layer = 0x2a5,
                      .sample = 0xbeef};
  const Word draw = 0xabc, id = 0x13579bdf, id_high = 0x54321;
  const Words counter = {id, draw << 20 | id_high, 0xfedcba98, 6u << 26 | 0x2a5u << 16 | 0xbeefu};
  CHECK(words_of(stream, id, draw, id_high) == philox(counter, 0x89abcdef, 0x01234567));
  CHECK(words_of(stream, id, draw) == philox({id, draw << 20, counter[2], counter[3]}, 0x89abcdef, 0x01234567));
}

TEST_CASE("stream: every combination of the fields' least and greatest values has words of its own") {
  // For one key Philox is a bijection: equal blocks would be equal counters, that is, fields that overlap.
  std::set<Words> seen;
  for (int bits = 0; bits < 256; ++bits) {
    const auto pick = [&](int bit, Word greatest) { return (bits >> bit & 1) != 0 ? greatest : Word{0}; };
    const Stream stream{.seed = (bits & 1) != 0 ? ~std::uint64_t{0} : 0,
                        .purpose = static_cast<Purpose>(pick(1, 63)),
                        .epoch = pick(2, 0xffffffff),
                        .layer = pick(3, 1023),
                        .sample = pick(4, 65535)};
    seen.insert(words_of(stream, pick(5, 0xffffffff), pick(6, 4095), pick(7, 0xfffff)));
  }
  CHECK(seen.size() == 256);

  // And neighbours differ: a step in any field, and either half of the seed.
  const Stream start{.seed = 7, .purpose = Purpose::weights, .epoch = 3, .layer = 2, .sample = 1};
  std::vector<Stream> neighbours(7, start);
  neighbours[1].seed = 8;
  neighbours[2].seed += std::uint64_t{1} << 32;
  neighbours[3].purpose = Purpose::input_dropout;
  neighbours[4].epoch = 4;
  neighbours[5].layer = 3;
  neighbours[6].sample = 2;
  seen.clear();
  for (const Stream& stream : neighbours) seen.insert(words_of(stream, 5, 6));
  seen.insert(words_of(start, 6, 6));
  seen.insert(words_of(start, 5, 7));
  seen.insert(words_of(start, 5, 6, 1));
  CHECK(seen.size() == 10);
}

TEST_CASE_TEMPLATE("uniforms: inside the open interval, whatever the word", T, float, double) {
  // float keeps 23 bits of a word, double all 32; the results are the cells' midpoints, exactly.
  constexpr int bits = std::is_same_v<T, float> ? 23 : 32;
  const T half_cell = std::ldexp(T(1), -bits - 1);
  CHECK(sheafnn::random::uniform_from_word<T>(0) == half_cell);
  CHECK(sheafnn::random::uniform_from_word<T>(0xffffffff) == T(1) - half_cell);
  CHECK(sheafnn::random::uniform_from_word<T>(0xffffffff) < T(1));
  CHECK(sheafnn::random::uniform_from_word<T>(0x80000000) == T(0.5) + half_cell);
  CHECK(sheafnn::random::uniform_from_word<T>(0x7fffffff) == T(0.5) - half_cell);
  std::mt19937 engine(3);
  int wrong = 0;
  for (int trial = 0; trial < 100000; ++trial) {
    const Word word = static_cast<Word>(engine());
    const T u = sheafnn::random::uniform_from_word<T>(word);
    const double cell = std::ldexp(1.0, -bits);
    wrong += !(u > 0 && u < 1);
    wrong += static_cast<double>(u) != (static_cast<double>(word >> (32 - bits)) + 0.5) * cell;
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("words as signed numbers and as truth values", P, Pack<float, 4>, Pack<float, 8>,
                   Pack<float, 16>, Pack<double, 4>, Pack<double, 8>) {
  using T = typename P::value_type;
  std::mt19937 engine(4);
  int wrong = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    Pack<Word, P::width> word(0);
    for (int l = 0; l < P::width; ++l) {
      const Word ends[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
      word.set_lane(l, trial < 5 ? ends[(trial + l) % 5] : static_cast<Word>(engine()));
    }
    const P number = sheafnn::random::signed_number<P>(word);
    const P chosen = select(sheafnn::random::highest_bit<P>(word), P(1), P(2));
    for (int l = 0; l < P::width; ++l) {
      const Word w = word.lane(l);
      const double exact = w < 0x80000000 ? w : w - 4294967296.0;
      wrong += number.lane(l) != static_cast<T>(exact) || sheafnn::random::signed_number<T>(w) != static_cast<T>(exact);
      wrong += chosen.lane(l) != (exact < 0 ? T(1) : T(2)) || sheafnn::random::highest_bit<T>(w) != (exact < 0);
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("sine and cosine of a word's angle", P, Pack<float, 8>, Pack<float, 16>, Pack<double, 4>,
                   Pack<double, 8>) {
  using T = typename P::value_type;
  constexpr long double turn = 6.283185307179586476925286766559L / 4294967296.0L;
  // Every octant, its ends and their neighbours.
  std::vector<Word> words;
  for (Word octant = 0; octant < 8; ++octant) {
    for (const Word step : {0u, 1u, 2u, 0xffffffffu, 0xfffffffeu}) words.push_back(octant * 0x20000000u + step);
  }
  for (Word i = 0; i < 20000; ++i) words.push_back(i * 214748u + 37u);
  double worst = 0, worst_lane = 0;
  for (std::size_t i = 0; i + P::width <= words.size(); i += P::width) {
    P sines, cosines;
    sheafnn::random::sin_cos_of_word<P>(Pack<Word, P::width>::load(words.data() + i), sines, cosines);
    for (int lane = 0; lane < P::width; ++lane) {
      const Word word = words[i + static_cast<std::size_t>(lane)];
      T sine, cosine;
      sheafnn::random::sin_cos_of_word<T>(word, sine, cosine);
      const long double angle = turn * static_cast<long double>(word);
      worst = std::max({worst, std::abs(static_cast<double>(static_cast<long double>(sine) - std::sin(angle))),
                        std::abs(static_cast<double>(static_cast<long double>(cosine) - std::cos(angle)))});
      worst_lane = std::max({worst_lane, static_cast<double>(std::abs(sines.lane(lane) - sine)),
                             static_cast<double>(std::abs(cosines.lane(lane) - cosine))});
    }
  }
  constexpr double eps = std::numeric_limits<T>::epsilon();
  CHECK(worst <= eps);
  CHECK(worst_lane <= eps);
}

TEST_CASE_TEMPLATE("logarithm of numbers below 1", P, Pack<float, 8>, Pack<float, 16>, Pack<double, 4>,
                   Pack<double, 8>) {
  using T = typename P::value_type;
  std::mt19937 engine(5);
  double worst = 0;
  for (int trial = 0; trial < 6000; ++trial) {
    T values[P::width];
    for (T& value : values) {
      // Anywhere, next to 0, and next to 1.
      const Word word = static_cast<Word>(engine());
      const Word moved = word >> (word % 31);
      value = sheafnn::random::uniform_from_word<T>(trial % 3 == 0 ? word : trial % 3 == 1 ? moved : ~moved);
    }
    if (trial == 0) values[0] = T(1);
    const P logarithms = sheafnn::random::unit_log(P::load(values));
    for (int l = 0; l < P::width; ++l) {
      const long double exact = std::log(static_cast<long double>(values[l]));
      const long double error = std::abs(static_cast<long double>(logarithms.lane(l)) - exact);
      worst = std::max(worst, static_cast<double>(exact == 0 ? error : error / -exact));
    }
  }
  CHECK(worst <= std::numeric_limits<T>::epsilon());
}

TEST_CASE_TEMPLATE("normals: extreme words stay finite", T, float, double) {
  for (const Word a : {0u, 0xffffffffu}) {
    for (const Word b : {0u, 0x40000000u, 0x80000000u, 0xc0000000u, 0xffffffffu}) {
      const auto block = sheafnn::normals_from_words<T>(PhiloxBlock<Word>{{a, b, b, a}});
      for (const T value : block.value) {
        CHECK(std::isfinite(value));
        CHECK(std::abs(value) < T(7));  // √(2 · 33 log 2)
      }
    }
  }
}

TEST_CASE_TEMPLATE("uniforms and normals: lanes of packs are the scalar's", P, Pack<float, 8>, Pack<float, 16>,
                   Pack<double, 8>) {
  using T = typename P::value_type;
  const Stream stream{.seed = 11, .purpose = Purpose::sheaf_noise, .epoch = 5};
  // The radius is below 7, and its logarithm and root, the angle, sine and cosine are off by a few ε each.
  const T bound = 7 * 8 * std::numeric_limits<T>::epsilon();
  int wrong_uniforms = 0;
  T worst = 0;
  for (Word first = 0; first < 4096; first += P::width) {
    Pack<Word, P::width> id(0);
    for (int l = 0; l < P::width; ++l) id.set_lane(l, first * 977 + static_cast<Word>(l));
    const auto words = stream.words(id, 3);
    const P uniform = sheafnn::random::uniform_from_word<P>(words.word[1]);
    const sheafnn::NormalBlock<P> normals = sheafnn::normals_from_words<P>(words);
    for (int l = 0; l < P::width; ++l) {
      const auto scalar_words = stream.words(id.lane(l), 3);
      wrong_uniforms += uniform.lane(l) != sheafnn::random::uniform_from_word<T>(scalar_words.word[1]);
      const sheafnn::NormalBlock<T> expected = sheafnn::normals_from_words<T>(scalar_words);
      for (int i = 0; i < 4; ++i) worst = std::max(worst, std::abs(normals.value[i].lane(l) - expected.value[i]));
    }
  }
  CHECK(wrong_uniforms == 0);
  CHECK(worst <= bound);
}

TEST_CASE_TEMPLATE("fill_normals: four numbers per draw, any count", T, float, double) {
  // Known at run time only: compilers round logarithms of constants in their own way.
  const volatile std::uint64_t seed = 12;
  const Stream stream{.seed = seed};
  T twelve[12], ten[11], later[8], other[4];
  ten[10] = T(-99);
  sheafnn::fill_normals<12>(twelve, stream, 42u);
  sheafnn::fill_normals<10>(ten, stream, 42u);
  sheafnn::fill_normals<8>(later, stream, 42u, 1);
  sheafnn::fill_normals<4>(other, stream, 43u);
  CHECK(std::equal(ten, ten + 10, twelve));
  CHECK(ten[10] == T(-99));
  CHECK(std::equal(later, later + 8, twelve + 4));
  CHECK(!std::equal(other, other + 4, twelve));
  for (Word draw = 0; draw < 3; ++draw) {
    const auto block = sheafnn::normals_from_words<T>(stream.words(42u, draw));
    CHECK(std::equal(block.value, block.value + 4, twelve + 4 * draw));
  }
}

TEST_CASE_TEMPLATE("normals: moments and law", T, float, double) {
  constexpr int blocks = 1 << 16;
  constexpr double n = 4.0 * blocks;
  const Stream stream{.seed = 2024, .purpose = Purpose::sheaf_noise, .epoch = 1};
  std::vector<double> x;
  x.reserve(static_cast<std::size_t>(n));
  for (Word id = 0; id < blocks; ++id) {
    T values[4];
    sheafnn::fill_normals<4>(values, stream, id);
    for (const T value : values) x.push_back(static_cast<double>(value));
  }
  double power[5] = {};
  for (const double value : x) {
    double p = 1;
    for (double& sum : power) {
      sum += p / n;
      p *= value;
    }
  }
  // Raw moments of N(0, 1): 0, 1, 0, 3; the mean of xᵏ has variance (E x²ᵏ − (E xᵏ)²)/n.
  CHECK(std::abs(power[1]) < standard_errors * std::sqrt(1 / n));
  CHECK(std::abs(power[2] - 1) < standard_errors * std::sqrt(2 / n));
  CHECK(std::abs(power[3]) < standard_errors * std::sqrt(15 / n));
  CHECK(std::abs(power[4] - 3) < standard_errors * std::sqrt(96 / n));
  // Standardised skewness and excess kurtosis have standard errors √(6/n) and √(24/n).
  const double mean = power[1];
  const double variance = power[2] - mean * mean;
  const double third = power[3] - 3 * mean * power[2] + 2 * mean * mean * mean;
  const double fourth = power[4] - 4 * mean * power[3] + 6 * mean * mean * power[2] - 3 * std::pow(mean, 4);
  CHECK(std::abs(third / std::pow(variance, 1.5)) < standard_errors * std::sqrt(6 / n));
  CHECK(std::abs(fourth / (variance * variance) - 3) < standard_errors * std::sqrt(24 / n));

  // Kolmogorov–Smirnov: √n D exceeds 2.23 with probability 2 exp(−2 · 2.23²) < 10⁻⁴.
  std::sort(x.begin(), x.end());
  double distance = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double cdf = 0.5 * std::erfc(-x[i] / std::sqrt(2.0));
    const double below = static_cast<double>(i) / n;
    distance = std::max({distance, cdf - below, below + 1 / n - cdf});
  }
  CHECK(std::sqrt(n) * distance < 2.23);
}

TEST_CASE_TEMPLATE("normals: independent within a block, between ids, draws, samples and layers", T, float,
                   double) {
  constexpr int count = 1 << 16;
  const Stream stream{.seed = 99, .purpose = Purpose::sheaf_noise};
  const auto column = [&](const Stream& from, Word first_id, Word draw, int position) {
    std::vector<double> r(count);
    for (int i = 0; i < count; ++i) {
      const auto block = sheafnn::normals_from_words<T>(from.words(first_id + static_cast<Word>(i), draw));
      r[static_cast<std::size_t>(i)] = static_cast<double>(block.value[position]);
    }
    return r;
  };
  const auto check_independent = [&](const char* what, const std::vector<double>& a,
                                     const std::vector<double>& b) {
    double ab = 0, squares = 0;
    int cells[8][8] = {};
    const auto octile = [](double x) {  // which eighth of the law x falls into
      return std::min(7, static_cast<int>(8 * 0.5 * std::erfc(-x / std::sqrt(2.0))));
    };
    for (std::size_t i = 0; i < a.size(); ++i) {
      ab += a[i] * b[i] / count;
      squares += (a[i] * a[i] - 1) * (b[i] * b[i] - 1) / count;
      ++cells[octile(a[i])][octile(b[i])];
    }
    double chi_squared = 0;
    for (const auto& row : cells) {
      for (const int cell : row) chi_squared += std::pow(cell - count / 64.0, 2) / (count / 64.0);
    }
    CAPTURE(what);
    CHECK(std::abs(ab) < standard_errors / std::sqrt(count));           // Var(ab) = 1
    CHECK(std::abs(squares) < standard_errors * 2 / std::sqrt(count));  // Var((a² − 1)(b² − 1)) = 4
    CHECK(std::abs(chi_squared - 63) < standard_errors * std::sqrt(2 * 63));
  };
  const std::vector<double> first = column(stream, 0, 0, 0);
  check_independent("cosine and sine of a pair", first, column(stream, 0, 0, 1));
  check_independent("the first numbers of both pairs", first, column(stream, 0, 0, 2));
  check_independent("the second numbers of both pairs", column(stream, 0, 0, 1), column(stream, 0, 0, 3));
  check_independent("neighbouring ids", first, column(stream, 1, 0, 0));
  check_independent("neighbouring draws", first, column(stream, 0, 1, 0));
  const auto changed = [&](auto change) {
    Stream r = stream;
    change(r);
    return column(r, 0, 0, 0);
  };
  check_independent("neighbouring seeds", first, changed([](Stream& s) { s.seed += 1; }));
  check_independent("neighbouring epochs", first, changed([](Stream& s) { s.epoch += 1; }));
  check_independent("neighbouring layers", first, changed([](Stream& s) { s.layer += 1; }));
  check_independent("neighbouring samples", first, changed([](Stream& s) { s.sample += 1; }));
}

}  // namespace test_random
