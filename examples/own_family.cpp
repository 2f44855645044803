// A family of restriction maps of your own: symmetric 3 × 3 matrices. Storage, F_aᵀF_b and their derivatives come from
// DenseMaps; what is left to say is how many numbers describe a map, which map they describe, and the derivative.
#include <cstdio>
#include <sheafnn/bsnn.hpp>

// The coordinates are the lower triangle, column by column.
template <int D>
struct Symmetric : sheafnn::sheaf::DenseMaps<D> {
  static constexpr std::string_view name = "symmetric";
  static constexpr int coordinate_count = D * (D + 1) / 2;

  template <class T>  // float, double, or a pack, which holds several edges at a time
  SHEAFNN_HD static void from_coordinates(const T* z, Eigen::Matrix<T, D, D>& map) {
    for (int j = 0; j < D; ++j) {
      for (int i = j; i < D; ++i) map(i, j) = map(j, i) = *z++;
    }
  }
  template <class T>  // from ∂loss/∂map to ∂loss/∂z
  SHEAFNN_HD static void from_coordinates_backward(const T*, const Eigen::Matrix<T, D, D>& map_bar, T* z_bar) {
    for (int j = 0; j < D; ++j) {
      *z_bar++ = map_bar(j, j);
      for (int i = j + 1; i < D; ++i) *z_bar++ = map_bar(i, j) + map_bar(j, i);
    }
  }
};

template <class Model>
void compare(const char* what, const sheafnn::Dataset& data) {
  double accuracy = 0;
  for (const sheafnn::Split& split : data.splits) {
    Model model({.features = data.feature_count(), .channels = 8, .layers = 2, .classes = data.class_count});
    accuracy += train(model, data, split, {.epochs = 200, .kl_maximum = 0.01, .samples = 10}).test_accuracy;
  }
  std::printf("%-40s test accuracy %.0f%%\n", what, 100 * accuracy / static_cast<double>(data.splits.size()));
}

int main() {
  using Maps = Symmetric<3>;
  const sheafnn::Dataset data = sheafnn::karate_club();
  compare<sheafnn::Nsd<Maps>>("symmetric maps, learned", data);
  compare<sheafnn::SheafModel<Maps, sheafnn::NormalPosterior<Maps>>>("symmetric maps, normal posterior", data);
  compare<sheafnn::Nsd<sheafnn::Identity<3>>>("no maps: the identity everywhere", data);
}
