// A posterior of your own: diagonal maps with entries z = μ + s·ℓ, where ℓ is Laplace noise, whose heavy tails let
// single entries go far. The prior is Laplace with scale 1; log q − log p of the drawn maps takes the place of KL.
#include <cstdio>
#include <sheafnn/bsnn.hpp>
using std::abs, std::exp;  // for float and double; packs have their own functions

template <int D>
struct Laplace {
  using family = sheafnn::Diagonal<D>;
  static constexpr std::string_view name = "laplace";
  static constexpr int mean_size = D, spread_size = D, noise_size = D;  // the sheaf learner's raw outputs; ℓ
  static constexpr int parameter_size = 2 * D, sample_size = 2 * D, gradient_size = 2 * D;  // μ, log s
  static constexpr bool closed_form_kl = false, needs_noise = true;

  template <class T>
  SHEAFNN_HD void activate(const T* raw, T* p) const {
    for (int k = 0; k < 2 * D; ++k) p[k] = raw[k] - T(k < D ? 0 : 1);
  }
  template <class T>
  SHEAFNN_HD void activate_backward(const T*, const T*, const T* p_bar, T* raw_bar) const {
    for (int k = 0; k < 2 * D; ++k) raw_bar[k] = p_bar[k];
  }
  template <class T>  // the determinant of a 2 × 2 matrix of normal numbers has the Laplace distribution
  SHEAFNN_HD void draw_noise(const sheafnn::Stream& stream, const sheafnn::random::word_of_t<T>& arc, T* noise) const {
    T e[4 * D];
    sheafnn::fill_normals<4 * D>(e, stream, arc);
    for (int k = 0; k < D; ++k) noise[k] = e[4 * k] * e[4 * k + 1] - e[4 * k + 2] * e[4 * k + 3];
  }
  template <class T>
  SHEAFNN_HD void sample(const T* p, const T* noise, Eigen::Matrix<T, D, 1>& z) const {
    for (int k = 0; k < D; ++k) z(k) = p[k] + exp(p[D + k]) * noise[k];
  }
  template <class T>  // adds the derivative of ⟨z_bar, z⟩ + weight · log_ratio
  SHEAFNN_HD void sample_backward(const T* p, const T*, const Eigen::Matrix<T, D, 1>& z,
                                  const Eigen::Matrix<T, D, 1>& z_bar, const T& weight, T* p_bar) const {
    for (int k = 0; k < D; ++k) {
      const T total = z_bar(k) + weight * sheafnn::math::select(z(k) < T(0), T(-1), T(1));
      p_bar[k] += total;
      p_bar[D + k] += total * (z(k) - p[k]) - weight;
    }
  }
  template <class T>  // Σ |z| − |ℓ| − log s
  SHEAFNN_HD T log_ratio(const T* p, const T* noise, const Eigen::Matrix<T, D, 1>& z) const {
    T sum = T(0);
    for (int k = 0; k < D; ++k) sum += abs(z(k)) - abs(noise[k]) - p[D + k];
    return sum;
  }
  template <class T>
  SHEAFNN_HD void mean(const T* p, Eigen::Matrix<T, D, 1>& z) const {
    for (int k = 0; k < D; ++k) z(k) = p[k];
  }
};

int main() {
  const sheafnn::Dataset data = sheafnn::karate_club();
  sheafnn::SheafModel<sheafnn::Diagonal<3>, Laplace<3>> model(
      {.features = data.feature_count(), .channels = 8, .layers = 2, .classes = data.class_count});
  const auto result = train(model, data, data.splits[0], {.epochs = 500, .kl_maximum = 0.01, .samples = 10});
  std::printf("test accuracy %.0f%%\n", 100 * result.test_accuracy);
}
