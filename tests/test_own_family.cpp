/// \file
/// A family of maps and a posterior written from outside the library: the checks that the library's own pass, and
/// trainings of models with them by both engines.
#include <doctest/doctest.h>

#include <cmath>

#include "family_checks.hpp"
#include "posterior_checks.hpp"
#include "training_comparison.hpp"

namespace test_own_family {
namespace {

/// Symmetric matrices; the coordinates are the lower triangle, column by column.
template <int D>
struct Symmetric : sheafnn::sheaf::DenseMaps<D> {
  static constexpr std::string_view name = "symmetric";
  static constexpr int coordinate_count = D * (D + 1) / 2;

  template <class T>
  SHEAFNN_HD static void from_coordinates(const T* z, Eigen::Matrix<T, D, D>& map) {
    for (int j = 0; j < D; ++j) {
      for (int i = j; i < D; ++i) map(i, j) = map(j, i) = *z++;
    }
  }
  template <class T>
  SHEAFNN_HD static void from_coordinates_backward(const T*, const Eigen::Matrix<T, D, D>& map_bar, T* z_bar) {
    for (int j = 0; j < D; ++j) {
      *z_bar++ = map_bar(j, j);
      for (int i = j + 1; i < D; ++i) *z_bar++ = map_bar(i, j) + map_bar(j, i);
    }
  }
};

/// Uniform on a box: z = μ + w ∘ u, u uniform on (−1, 1); prior N(0, I).
template <class Family>
struct Box {
  using family = Family;
  static constexpr std::string_view name = "box";
  static constexpr int size = Family::coordinate_count;
  static constexpr int mean_size = size, spread_size = size, noise_size = size;
  static constexpr int parameter_size = 2 * size, sample_size = 2 * size, gradient_size = 2 * size;  // μ, log w
  static constexpr bool closed_form_kl = true, needs_noise = true;
  static constexpr double half_log_half_pi = 0.22579135264472738;  // ½ log 2π − log 2
  template <class T>
  using Map = typename Family::template Map<T>;

  template <class T>
  SHEAFNN_HD void activate(const T* raw, T* p) const {
    for (int k = 0; k < 2 * size; ++k) p[k] = raw[k];
  }
  template <class T>
  SHEAFNN_HD void activate_backward(const T*, const T*, const T* p_bar, T* raw_bar) const {
    for (int k = 0; k < 2 * size; ++k) raw_bar[k] = p_bar[k];
  }
  template <class T>
  SHEAFNN_HD void draw_noise(const sheafnn::Stream& stream, const sheafnn::random::word_of_t<T>& arc, T* noise) const {
    for (int k = 0; k < size; ++k) {
      const auto words = stream.words(arc, static_cast<std::uint32_t>(k / 4));
      noise[k] = T(2) * sheafnn::random::uniform_from_word<T>(words.word[k % 4]) - T(1);
    }
  }
  template <class T>
  SHEAFNN_HD void sample(const T* p, const T* noise, Map<T>& map) const {
    T z[size];
    coordinates(p, noise, z);
    Family::from_coordinates(static_cast<const T*>(z), map);
  }
  template <class T>
  SHEAFNN_HD void sample_backward(const T* p, const T* noise, const Map<T>&, const Map<T>& map_bar,
                                  const T& weight, T* p_bar) const {
    T z[size], z_bar[size];
    coordinates(p, noise, z);
    Family::from_coordinates_backward(static_cast<const T*>(z), map_bar, z_bar);
    for (int k = 0; k < size; ++k) {
      const T total = z_bar[k] + weight * z[k];
      p_bar[k] += total;
      p_bar[size + k] += total * (z[k] - p[k]) - weight;
    }
  }
  /// −log 2w + ½ log 2π + ½ z².
  template <class T>
  SHEAFNN_HD T log_ratio(const T* p, const T* noise, const Map<T>&) const {
    T z[size], sum = T(0);
    coordinates(p, noise, z);
    for (int k = 0; k < size; ++k) sum += T(0.5) * z[k] * z[k] - p[size + k] + T(half_log_half_pi);
    return sum;
  }
  /// The mean of z² is μ² + w²/3.
  template <class T>
  SHEAFNN_HD T kl(const T* p) const {
    using std::exp;
    T sum = T(0);
    for (int k = 0; k < size; ++k) {
      const T w = exp(p[size + k]);
      sum += T(0.5) * (p[k] * p[k] + w * w * T(1.0 / 3)) - p[size + k] + T(half_log_half_pi);
    }
    return sum;
  }
  template <class T>
  SHEAFNN_HD void kl_backward(const T* p, const T& weight, T* p_bar) const {
    using std::exp;
    for (int k = 0; k < size; ++k) {
      const T w = exp(p[size + k]);
      p_bar[k] += weight * p[k];
      p_bar[size + k] += weight * (w * w * T(1.0 / 3) - T(1));
    }
  }
  template <class T>
  SHEAFNN_HD void mean(const T* p, Map<T>& map) const {
    Family::from_coordinates(p, map);
  }

 private:
  template <class T>
  SHEAFNN_HD static void coordinates(const T* p, const T* noise, T* z) {
    using std::exp;
    for (int k = 0; k < size; ++k) z[k] = p[k] + exp(p[size + k]) * noise[k];
  }
};

template <class Posterior>
using Model = sheafnn::SheafModel<typename Posterior::family, Posterior, double>;

}  // namespace

TEST_CASE("a family of one's own passes the checks of families") {
  family_checks::check_family<Symmetric<1>>();
  family_checks::check_family<Symmetric<3>>();
}

TEST_CASE("a posterior of one's own passes the checks of posteriors") {
  using namespace posterior_checks;
  check_packs(Box<Symmetric<2>>());
  check_packs(sheafnn::NormalPosterior<Symmetric<2>>());
  for (const double scale : {0.3, 2.5}) {
    check_derivatives(Box<Symmetric<2>>(), scale);
    check_derivatives(sheafnn::NormalPosterior<Symmetric<2>>(), scale);
  }
  check_monte_carlo(Box<sheafnn::Diagonal<2>>());
  check_monte_carlo(sheafnn::NormalPosterior<Symmetric<2>>());
  check_extremes<float>(Box<Symmetric<2>>());
  check_extremes<Pack<double, 8>>(sheafnn::NormalPosterior<Symmetric<2>>());
}

// The batch engine sums in another order; differences grow with the steps of Adam, which divide by small gradients.
TEST_CASE("both engines train models with them") {
  sheafnn::TrainOptions options;
  options.epochs = 20;
  options.seed = 9;
  options.kl_schedule = sheafnn::KlSchedule::constant;
  options.kl_maximum = 0.1;
  options.training_samples = 2;
  training_comparison::compare_training<sheafnn::Nsd<Symmetric<2>, double>>(options, 1e-11);
  training_comparison::compare_training<Model<sheafnn::NormalPosterior<Symmetric<2>>>>(options, 1e-11);
  training_comparison::compare_training<Model<Box<Symmetric<2>>>>(options, 1e-11);
  options.kl_estimator = sheafnn::KlEstimator::monte_carlo;
  training_comparison::compare_training<Model<Box<Symmetric<2>>>>(options, 1e-11);
}

}  // namespace test_own_family
