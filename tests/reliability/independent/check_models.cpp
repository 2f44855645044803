// The networks with one kind of maps against a case: passes with 1 and 2 threads. Compiled once for each kind, with
// -DFAMILY=Diagonal (SpecialOrthogonal, GeneralLinear, or NodeMaps for cooperative networks) -DDIMENSION=2.
#include <cstring>

#include "check.hpp"
#include "network_passes.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/network.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace independent {
namespace {

using sheafnn::Diagonal, sheafnn::SpecialOrthogonal, sheafnn::GeneralLinear;
template <int D>
struct NodeMaps {};

template <class Maps>
struct Models {
  using Deterministic = sheafnn::Nsd<Maps, double>;
  using Bayesian = sheafnn::Bsnn<Maps, double>;
};
template <int D>
struct Models<NodeMaps<D>> {
  using Deterministic = sheafnn::Csnn<D, double>;
  using Bayesian = sheafnn::Bcsnn<D, double>;
};

/// The noise of every sheaf as ForwardPass takes it.
std::vector<std::vector<double>> noise_of(const Case& given, Index sheaves) {
  std::vector<std::vector<double>> r;
  for (Index l = 0; given.bayesian && l < sheaves; ++l) {
    const std::string key = "noise." + std::to_string(l);
    std::vector<double>& noise = r.emplace_back();
    if (given.file.contains(key)) {
      noise = given.values(key);
      continue;
    }
    const std::ptrdiff_t size = given.dimension * given.dimension;
    for (const char* side : {".out", ".in"}) {  // of every node d x d numbers and one
      const auto& rotations = given.values(key + side + ".rotation");
      auto rotation = rotations.begin();
      for (const double scale : given.values(key + side + ".scale")) {
        noise.insert(noise.end(), rotation, rotation + size);
        noise.push_back(scale);
        rotation += size;
      }
    }
  }
  return r;
}

template <class Model>
Outcome compare(const Case& given) {
  Outcome outcome(given);
  Model model = [&] {
    try {
      return Model(std::get<typename Model::Options>(given.options));
    } catch (const std::invalid_argument& error) {
      throw Refused(error.what());
    }
  }();
  auto& parameters = model.parameters();
  std::size_t in_file = 0;
  for (const auto& entry : given.file) in_file += entry.first.starts_with("param.") ? 1 : 0;
  outcome.require(in_file == parameters.info().size(), "other parameters");
  for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
    const std::string key = "param." + info.name;
    parameters.set(parameters.find(info.name), given.values(key));
    const std::vector<Index>& shape = given.file.at(key).shape;
    outcome.require(shape == info.shape || (shape.empty() && info.size == 1), "shape of " + info.name);
  }
  const std::vector<std::vector<double>> noise = noise_of(given, model.sheaf_count());
  test::TrainingPass<double> pass;
  pass.noise.assign(noise.begin(), noise.end());
  pass.labels = given.labels;
  pass.nodes = given.nodes;
  pass.kl_weight = given.values("kl_weight").at(0);

  std::vector<double> of_one_thread;
  for (const int threads : {1, 2}) {
    std::vector<double> numbers;
    const auto output = [&](const std::string& key, const std::vector<double>& own) {
      outcome.output(key, own);
      numbers.insert(numbers.end(), own.begin(), own.end());
    };
    for (const bool only_nodes : {false, true}) {  // outputs of all nodes, and of the training nodes alone
      pass.only_nodes = only_nodes;
      sheafnn::Network<Model> network(model, given.graph, given.features, threads);
      const test::PassResult result = test::train_pass(network, pass);
      output("kl", {result.kl});
      output("loss", {result.loss});
      if (!only_nodes) output("log_probabilities", test::last_outputs(network));
      for (const sheafnn::layers::ParameterInfo& info : parameters.info()) {
        outcome.gradient(info.name, parameters.get(parameters.find(info.name), network.gradient()));
      }
      numbers.insert(numbers.end(), network.gradient().begin(), network.gradient().end());
    }
    sheafnn::Network<Model> network(model, given.graph, given.features, threads);
    test::evaluate(network, 0, 0, 1, [](Index) {}, {noise.begin(), noise.end()});
    output("log_probabilities", test::last_outputs(network));
    for (Index l = 0; l <= given.layers && given.file.contains("hidden.0"); ++l) {
      const auto x = network.features_after(l);
      output("hidden." + std::to_string(l), {x.data(), x.data() + x.size()});
    }
    if (threads == 1) of_one_thread = numbers;
    outcome.require(numbers.size() == of_one_thread.size() &&
                        std::memcmp(numbers.data(), of_one_thread.data(), numbers.size() * sizeof(double)) == 0,
                    "1 and 2 threads differ");
  }
  return outcome;
}

Outcome check(const Case& given) {
  using Networks = Models<FAMILY<DIMENSION>>;
  return given.bayesian ? compare<Networks::Bayesian>(given) : compare<Networks::Deterministic>(given);
}
#define TEXT(x) #x
#define NAME(family, dimension) TEXT(family) TEXT(dimension)
const bool added = checks().emplace(NAME(FAMILY, DIMENSION), check).second;

}  // namespace
}  // namespace independent
