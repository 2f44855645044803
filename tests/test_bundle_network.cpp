// Bundle networks in training: they learn, go on where they were interrupted, and give the same bits on any number of
// threads; prediction, checkpoints, rotations and figures of their use; graphs without edges; what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "refusal.hpp"
#include "sheafnn/bsnn/bundle_network.hpp"
#include "sheafnn/bsnn/bundle_settings.hpp"
#include "sheafnn/bsnn/bundle_sheaf_use.hpp"
#include "sheafnn/bsnn/learned_bundle.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/presets.hpp"
#include "sheafnn/graph/karate.hpp"
#include "sheafnn/io/bundle_file.hpp"
#include "sheafnn/io/model_tensors.hpp"
#include "tiny_task.hpp"
#include "training_check.hpp"

namespace bundle_network_test {

using sheafnn::Index;

sheafnn::BundleOptions options(const sheafnn::Dataset& data) {
  sheafnn::BundleOptions r;
  r.features = data.feature_count();
  r.classes = data.class_count;
  r.bundles = 4;
  r.channels = 2;
  r.layers = 2;
  r.learner_width = 16;
  return r;
}

template <class Model>
void check_training() {
  CAPTURE(Model::kind);
  const sheafnn::Dataset data = sheafnn::karate_club();
  const Model model = test::check_training<Model>(data, options(data));

  const sheafnn::io::TensorFile file = sheafnn::io::to_tensors(model);
  const Model read = sheafnn::io::from_tensors<Model>("file", file);
  CHECK(read.options() == model.options());
  CHECK(sheafnn::predict(read, data, {.samples = 3}).probabilities ==
        sheafnn::predict(model, data, {.samples = 3, .threads = 2}).probabilities);
  CHECK(sheafnn::io::checkpoint_info("file", file).options<sheafnn::BundleOptions>() == model.options());

  const sheafnn::LearnedBundle bundle = sheafnn::learned_bundle(model, data, {.layer = 1});
  constexpr int D = Model::stalk_dimension;
  REQUIRE(bundle.rotations.size() == static_cast<std::size_t>(34 * 4 * D * D));
  CHECK(bundle.concentrations.size() == (Model::bayesian ? 34 * 4 : 0));
  double worst = 0;
  for (std::size_t i = 0; i < 34 * 4; ++i) {
    const Eigen::Map<const Eigen::Matrix<double, D, D>> o(bundle.rotations.data() + i * D * D);
    worst = std::max(worst, (o.transpose() * o - Eigen::Matrix<double, D, D>::Identity()).cwiseAbs().maxCoeff());
  }
  CHECK(worst < 1e-5);
  sheafnn::io::NpzWriter writer;
  sheafnn::io::add_bundle(writer, bundle, data.graph);

  const sheafnn::SheafUse use = sheafnn::sheaf_use(model, data, data.splits[0].train, {.samples = 2});
  CHECK(use.nodes == static_cast<Index>(data.splits[0].train.size()));
  CHECK(std::isfinite(use.permuted.rise));
  CHECK(std::isfinite(use.turn.median));
  CHECK(std::isnan(use.kl) != Model::bayesian);
  const sheafnn::Prediction same = sheafnn::predict(model, data, {.samples = 2});
  double loss = 0;
  for (const std::int32_t u : data.splits[0].train) {
    loss -=
        std::log(same.probabilities[static_cast<std::size_t>(2 * u + data.labels[static_cast<std::size_t>(u)])]) /
        static_cast<double>(use.nodes);
  }
  CHECK(use.loss == doctest::Approx(loss));
}

std::string refused(const sheafnn::BundleOptions& options, int dimension = 2) {
  return test::message_of([&] { static_cast<void>(sheafnn::resolve(options, dimension)); });
}

}  // namespace bundle_network_test

TEST_CASE("bundle networks learn, resume, predict, and give the same bits on any number of threads") {
  bundle_network_test::check_training<sheafnn::Bunn<2>>();
  bundle_network_test::check_training<sheafnn::BayesianBunn<3>>();
}

TEST_CASE("bundle networks on graphs without edges and of one node") {
  using namespace bundle_network_test;
  for (const Index n : {1, 5}) {
    const sheafnn::Graph graph(n, {});
    std::vector<double> x(static_cast<std::size_t>(n * 3));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = tiny::number(1, static_cast<Index>(i));
    const auto features = sheafnn::NodeFeatures::from_dense(std::span<const double>(x), n, 3);
    for (const auto expansion :
         {sheafnn::HeatExpansion::taylor, sheafnn::HeatExpansion::shifted, sheafnn::HeatExpansion::spectral,
          sheafnn::HeatExpansion::limit, sheafnn::HeatExpansion::hops}) {
      sheafnn::BundleOptions o{.features = 3, .bundles = 2, .layers = 2, .classes = 2};
      o.expansion = expansion;
      o.learner = sheafnn::BundleLearnerKind::sage_residual;
      const sheafnn::BayesianBunn<2> model(o, 1);
      sheafnn::Network<sheafnn::BayesianBunn<2>> network(model, graph, features);
      const auto outputs = network.forward({.training = true});
      double sum = 0;
      for (Index u = 0; u < n; ++u) sum += std::abs(static_cast<double>(outputs(u, 0)));
      CHECK(std::isfinite(sum));
      const auto bar = network.output_bar();
      for (Index u = 0; u < n; ++u) std::fill_n(bar.row(u).data(), 2, 1.0F);
      network.backward(bar, {.kl_weight = 1});
      CHECK(std::all_of(network.gradient().begin(), network.gradient().end(),
                        [](float g) { return std::isfinite(g); }));
    }
  }
}

TEST_CASE("bundle networks refuse") {
  using namespace bundle_network_test;
  const auto with = [](auto change) {
    sheafnn::BundleOptions o{.features = 4, .classes = 3};
    change(o);
    return refused(o);
  };
  const auto says = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  CHECK(with([](auto&) {}) == "nothing was thrown");
  CHECK(says(with([](auto& o) { o.bundles = 0; }), "bundles"));
  CHECK(says(with([](auto& o) { o.bundles = 1024, o.channels = 1024; }), "at most 65536"));
  CHECK(says(with([](auto& o) { o.terms = 65; }), "a series has at most 64"));
  CHECK(says(with([](auto& o) { o.terms = 0, o.expansion = sheafnn::HeatExpansion::spectral; }), "eigenpair"));
  CHECK(with([](auto& o) { o.terms = 500, o.expansion = sheafnn::HeatExpansion::spectral; }) ==
        "nothing was thrown");
  CHECK(says(with([](auto& o) { o.time = -1; }), "time"));
  CHECK(says(with([](auto& o) { o.learner = sheafnn::BundleLearnerKind::mlp, o.learner_layers = 2; }),
             "learner_layers"));
  sheafnn::BundleOptions euler{.features = 4, .classes = 3};
  euler.parametrisation = sheafnn::rotation::RotationParametrisation::euler;
  CHECK(says(refused(euler, 4), "parametrisation"));

  tiny::Task task;
  const sheafnn::Bunn<2> model({.features = 4, .layers = 1, .classes = 3}, 1);
  sheafnn::Network<sheafnn::Bunn<2>> network(model, task.graph, task.sparse);
  CHECK_THROWS_AS(static_cast<void>(network.features_after(2)), const std::logic_error&);
  CHECK_THROWS_AS(static_cast<void>(network.bundle_maps(0)), const std::logic_error&);
  CHECK_THROWS_WITH_AS(network.give_maps(std::vector<sheafnn::Buffer<float>>(2)),
                       "maps: 2 is not allowed; must be 0, or one for each of 1 layers",
                       const std::invalid_argument&);
  const std::vector<float> noise(4);
  CHECK_THROWS_AS(network.begin({.noise = {noise}}), const std::invalid_argument&);
}

TEST_CASE("bundle networks: published settings and presets") {
  for (std::size_t i = 0; i < names_of(sheafnn::BundleSetting()).size(); ++i) {
    sheafnn::BundleOptions model{.features = 7, .classes = 3};
    sheafnn::TrainOptions training;
    sheafnn::apply(static_cast<sheafnn::BundleSetting>(i), model, training);
    CHECK_NOTHROW(static_cast<void>(sheafnn::resolve(model, 2)));
    CHECK(model.features == 7);
    CHECK(model.bundles == (i == 4 ? 128 : 256));
    CHECK((model.learner == sheafnn::BundleLearnerKind::mlp) == (i == 1));
    CHECK(training.learning_rate == 3e-5);
  }
  for (std::size_t i = 0; i < names_of(sheafnn::Preset()).size(); ++i) {
    sheafnn::BundleOptions model{.features = 7, .classes = 3};
    sheafnn::TrainOptions training;
    sheafnn::apply(static_cast<sheafnn::Preset>(i), model, false, training);
    CHECK_NOTHROW(static_cast<void>(sheafnn::resolve(model, 3)));
    CHECK_NOTHROW(sheafnn::validate(training));
  }
}
