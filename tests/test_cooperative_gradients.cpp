// The gradient of cooperative networks against central differences along every coordinate, for every option alone and
// for all of them together, and the gradient of the layer alone in higher dimensions.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "model_gradient.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"

namespace cooperative_gradients_test {

using sheafnn::Index;

/// Architecture and pass of one check.
struct Setting : tiny::SettingOf<sheafnn::CooperativeOptions> {
  bool directed = false;
};

std::vector<Setting> settings(int dimension, bool bayesian) {
  using Change = std::function<void(Setting&)>;
  Setting plain;
  plain.name = "plain";
  plain.kl_estimator = sheafnn::KlEstimator::closed_form;
  plain.model.features = tiny::Task::features;
  plain.model.classes = tiny::Task::classes;
  plain.model.channels = 2;
  plain.model.layers = 2;
  plain.model.learner_width = 3;
  std::vector<Setting> r = {plain};
  const auto add = [&](const std::string& name, const Change& change) {
    r.push_back(plain);
    r.back().name = name;
    change(r.back());
  };
  add("features as they are", [](Setting& s) { s.model.feature_treatment = sheafnn::FeatureTreatment::none; });
  add("no left_weights", [](Setting& s) { s.model.left_weights = false; });
  add("no right_weights", [](Setting& s) { s.model.right_weights = false; });
  add("neither", [](Setting& s) { s.model.left_weights = s.model.right_weights = false; });
  add("no residual", [](Setting& s) { s.model.residual = false; });
  add("norm", [](Setting& s) { s.model.norm = sheafnn::FeatureNorm::layer; });
  add("batch norm", [](Setting& s) { s.model.norm = sheafnn::FeatureNorm::batch; });
  add("batch norm, some nodes", [](Setting& s) {
    s.model.norm = sheafnn::FeatureNorm::batch;
    s.only_nodes = true;
    s.dropout = 0.4;
  });
  add("3 readout layers", [](Setting& s) { s.model.readout_layers = 3; });
  add("17 channels", [](Setting& s) {
    s.model.channels = 17;
    s.model.layers = 1;
  });
  add("dropout", [](Setting& s) {
    s.input_dropout = 0.3;
    s.dropout = 0.4;
  });
  add("directed", [](Setting& s) { s.directed = true; });
  add("in_degree_diagonal", [](Setting& s) { s.model.directed = s.model.in_degree_diagonal = true; });
  if (dimension > 1) add("no scales", [](Setting& s) { s.model.conformal = false; });
  for (const auto activation : {sheafnn::Activation::elu, sheafnn::Activation::relu, sheafnn::Activation::tanh,
                                sheafnn::Activation::sigmoid, sheafnn::Activation::identity}) {
    if (dimension == 2)
      add(std::string(to_string(activation)), [=](Setting& s) { s.model.activation = activation; });
  }
  for (const auto learner : {sheafnn::NodeLearnerKind::sage, sheafnn::NodeLearnerKind::sage_projected}) {
    for (Index layers = 1; layers <= 3; ++layers) {
      add(sheafnn::detail::concat(to_string(learner), " ", layers), [=](Setting& s) {
        s.model.learner = learner;
        s.model.learner_layers = layers;
        s.directed = layers == 2;
      });
    }
  }
  if (bayesian) {
    add("separate_encoder", [](Setting& s) { s.model.separate_encoder = true; });
    add("Monte Carlo KL", [](Setting& s) { s.kl_estimator = sheafnn::KlEstimator::monte_carlo; });
    add("3 samples", [](Setting& s) { s.samples = 3; });
    add("layer_learners", [](Setting& s) { s.model.layer_learners = true; });
    add("layer_learners, sage", [](Setting& s) {
      s.model.layer_learners = true;
      s.model.learner = sheafnn::NodeLearnerKind::sage_projected;
      s.model.learner_layers = 2;
      s.model.norm = sheafnn::FeatureNorm::layer;
      s.input_dropout = s.dropout = 0.2;
      s.samples = 3;
    });
    add("layer_learners, Monte Carlo KL", [](Setting& s) {
      s.model.layer_learners = true;
      s.kl_estimator = sheafnn::KlEstimator::monte_carlo;
      s.samples = 2;
    });
  }
  add("everything", [=](Setting& s) {
    s.model.learner = sheafnn::NodeLearnerKind::sage;
    s.model.learner_layers = 2;
    s.model.norm = sheafnn::FeatureNorm::layer;
    s.model.readout_layers = 2;
    s.model.separate_encoder = bayesian;
    s.input_dropout = s.dropout = 0.2;
    s.samples = bayesian ? 2 : 1;
    s.only_nodes = true;
    if (bayesian) s.kl_estimator = sheafnn::KlEstimator::monte_carlo;
  });
  return r;
}

/// Node 0 is listened to and listens, 3 and 5 are entered by no arc, and 4 by two.
const sheafnn::Graph& listed() {
  static const std::vector<sheafnn::Edge> list = {{0, 1}, {2, 0}, {1, 2}, {2, 1}, {3, 1},
                                                  {3, 2}, {3, 4}, {4, 2}, {5, 4}};
  static const sheafnn::Graph r(tiny::Task::nodes, list);
  return r;
}
const sheafnn::DirectedArcs& arcs() {
  static const sheafnn::DirectedArcs r = sheafnn::listed_arcs(listed());
  return r;
}

template <class Model>
void check_model() {
  const tiny::Task task;
  for (const Setting& setting : settings(Model::stalk_dimension, Model::bayesian)) {
    CAPTURE(Model::kind);
    CAPTURE(Model::stalk_dimension);
    CAPTURE(setting.name);
    Model model(setting.model, 7);
    tiny::disturb(model.parameters(), 8, 0.3);
    using Network = sheafnn::Network<Model>;
    // By their own constructor, or by the model's option.
    Network network = setting.directed
                          ? Network(model, task.graph, arcs(), task.sparse)
                          : Network(model, setting.model.directed ? listed() : task.graph, task.sparse);
    model_gradient::check_gradient(model, network, setting.pass(task));
  }
}

/// The layer alone: derivatives of ⟨output, bar⟩ in features, weights, rotation parameters and log scales.
template <int D>
void check_layer() {
  CAPTURE(D);
  const tiny::Task task;
  constexpr Index n = tiny::Task::nodes, f = 3, q = sheafnn::rotation::rotation_parameters<D>, o = q + 1;
  const sheafnn::ArcLists lists = sheafnn::arc_lists(task.graph);
  const sheafnn::layers::NodeDegrees<double> degrees(lists);
  sheafnn::layers::NodeMaps<D, double> maps(degrees, true);
  sheafnn::layers::NodeMapsGradient<D, double> maps_gradient(n);
  sheafnn::detail::CooperativeWorkspace<double> work(n * D * f);
  sheafnn::layers::CooperativeLayer<D, double> layer(lists, f, {}, work);
  sheafnn::layers::ParameterSet<double> values;
  const auto group = sheafnn::layers::ParameterGroup::network;
  const int x = values.add("x", {n, D * f}, group), left = values.add("left", {D, D}, group),
            right = values.add("right", {f, f}, group), epsilon = values.add("epsilon", {D}, group),
            raw = values.add("raw", {n, 2 * o}, group);
  values.finish();
  tiny::disturb(values, 3, 1.0);
  sheafnn::Buffer<double> gradient(values.size()), bar(n * D * f);
  for (Index i = 0; i < bar.size(); ++i) bar[i] = tiny::number(4, i);
  const auto features = [](auto* data) { return sheafnn::FeatureView(data, n, D, f); };
  const auto raw_view = [](auto* data) { return sheafnn::MatrixView(data, n, 2 * o); };
  const auto at = [&](int id) { return gradient.data() + values.info(id).offset; };
  const auto weights = [&](auto* data, const auto& offset) {
    return sheafnn::layers::DiffusionWeights<std::remove_pointer_t<decltype(data)>>{{data + offset(left), D, D},
                                                                                    {data + offset(right), f, f},
                                                                                    {data + offset(epsilon), D}};
  };
  const auto offset = [&](int id) { return values.info(id).offset; };
  const auto value = [&] {
    const double* data = values.values().data();
    sheafnn::layers::predict_node_maps<D, double>(1, raw_view(data + offset(raw)), maps);
    layer.forward(1, weights(data, offset), maps, features(data + offset(x)), {}, sheafnn::NodeSelection(n));
    double r = 0;
    for (Index i = 0; i < bar.size(); ++i) r += layer.output().data()[i] * bar[i];
    return r;
  };
  value();
  const double* data = values.values().data();
  layer.backward(1, maps_gradient, features(static_cast<const double*>(bar.data())), features(at(x)),
                 weights(gradient.data(), offset));
  sheafnn::layers::predict_node_maps_backward<D, double>(1, raw_view(data + offset(raw)), maps, maps_gradient,
                                                         raw_view(at(raw)));
  model_gradient::check_gradient(values, gradient, value);
}

}  // namespace cooperative_gradients_test

TEST_CASE("gradients of cooperative networks") {
  using namespace cooperative_gradients_test;
  check_model<sheafnn::Csnn<1, double>>();
  check_model<sheafnn::Csnn<2, double>>();
  check_model<sheafnn::Csnn<3, double>>();
}
TEST_CASE("gradients of Bayesian cooperative networks") {
  using namespace cooperative_gradients_test;
  check_model<sheafnn::Bcsnn<1, double>>();
  check_model<sheafnn::Bcsnn<2, double>>();
  check_model<sheafnn::Bcsnn<3, double>>();
}
TEST_CASE("gradients of cooperative layers in higher dimensions") {
  using namespace cooperative_gradients_test;
  check_layer<4>();
  check_layer<5>();
}
