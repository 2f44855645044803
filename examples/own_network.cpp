// A network composed of the library's layers in a way of your own: the first layer is a polynomial filter, which sees four
// edges far, the second one diffuses along one edge. Each diffuses on its own draw of one posterior of
// rotations (`.linear = true`: on the same draw).
#include <cstdio>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/layers.hpp>
#include <sheafnn/sheaf/planted.hpp>

template <class Family, class S>
using Far = sheafnn::LayerWhere<sheafnn::layers::PolynomialDiffusionLayer<Family, S>,
                                [](const sheafnn::layers::LayerSetting& of) { return of.number == 0; }>;
// Without LayerWhere a DiffusionLayer suits no network with a filter.
template <class Family, class S>
using Near = sheafnn::LayerWhere<sheafnn::layers::DiffusionLayer<Family, S>,
                                 [](const sheafnn::layers::LayerSetting& of) { return of.number != 0; }>;

int main() {
  using Maps = sheafnn::SpecialOrthogonal<2>;
  using Model = sheafnn::SheafModel<Maps, sheafnn::DefaultPosterior<Maps>, float, sheafnn::LayerKinds<Far, Near>>;
  const sheafnn::Dataset data = sheafnn::planted_frames<2>({.nodes = 1000}).data;
  Model model({.features = data.feature_count(),
               .channels = 8,
               .layers = 2,
               .classes = data.class_count,
               .filter = {.basis = sheafnn::PolynomialBasis::chebyshev, .degree = 4}},
              /*seed*/ 2);
  const auto result = train(model, data, data.splits[0], {.input_dropout = 0, .dropout = 0});
  std::printf("best epoch %td\ntest accuracy %.0f%%\n", result.best_epoch, 100 * result.test_accuracy);
}
