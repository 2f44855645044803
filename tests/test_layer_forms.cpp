/// \file
/// Convolutions, waves, attention and copresheaves: gradients along every coordinate for each of their options, threads, the
/// known networks that they contain, and what they refuse.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model_gradient.hpp"
#include "sheafnn/every_layer.hpp"
#include "tiny_task.hpp"
#include "worst.hpp"

namespace test_layer_forms {
namespace {

using namespace sheafnn;

using Setting = tiny::SettingOf<ModelOptions>;

ModelOptions options_of(LayerForm form) {
  ModelOptions r = tiny::options();
  r.layer = form;
  r.edge_weights = false;
  r.separate_encoder = false;
  r.attention.width = 2;
  return r;
}

/// What all forms have, then what one of them has.
std::vector<Setting> settings(LayerForm form, bool rotations, bool bayesian) {
  const ModelOptions plain = options_of(form);
  std::vector<Setting> r = {{"alone", plain}};
  const auto add = [&](const std::string& name, const auto& change) {
    r.push_back({name, plain});
    change(r.back());
  };
  add("three layers, dropout, training nodes alone", [](Setting& s) {
    s.model.layers = 3;
    s.dropout = 0.4;
    s.only_nodes = true;
  });
  add("one sheaf, norm, no weights", [](Setting& s) {
    s.model.linear = s.model.layer_norm = true;
    s.model.layers = 3;
    s.model.left_weights = s.model.right_weights = false;
  });
  add("no activation", [](Setting& s) { s.model.activation = false; });
  if (bayesian) {
    add("own encoder, two samples", [](Setting& s) {
      s.model.separate_encoder = true;
      s.samples = 2;
    });
  }
  if (rotations && form != LayerForm::copresheaf) {
    add("edge weights", [](Setting& s) { s.model.edge_weights = true; });
  }
  if (form == LayerForm::convolution || form == LayerForm::wave) {
    add("fixed filters", [](Setting& s) { s.model.add_lp = s.model.add_hp = true; });
    add("block", [](Setting& s) { s.model.normalisation = Normalisation::block; });
  }
  if (form == LayerForm::attention) {
    for (int choice = 0; choice < 16; choice += bayesian ? 3 : 1) {
      AttentionOptions of = {.heads = 2, .width = 2};
      of.transported = (choice & 1) != 0;
      of.residual = (choice & 2) != 0;
      of.normalised = (choice & 4) != 0;
      of.random = (choice & 8) != 0;
      add("attention " + std::to_string(choice), [&](Setting& s) {
        s.model.attention = of;
        s.dropout = 0.3;
        s.only_nodes = choice % 3 == 0;
        s.samples = of.random ? 2 : 1;
        s.model.linear = choice % 5 == 0;
      });
    }
  }
  return r;
}

template <class Model>
void check_gradients(LayerForm form) {
  const tiny::Task task;
  for (const Setting& setting :
       settings(form, sheaf::is_orthogonal<typename Model::Family> && sheaf::is_learned<typename Model::Family>,
                Model::bayesian && sheaf::is_learned<typename Model::Family>)) {
    CAPTURE(Model::Family::name);
    CAPTURE(to_string(form));
    model_gradient::check_setting<Model>(setting, task, task.graph, 2);
  }
}
constexpr LayerForm others[] = {LayerForm::convolution, LayerForm::wave, LayerForm::attention,
                                LayerForm::copresheaf};

template <class Family>
void check_deterministic() {
  for (const LayerForm form : others) {
    check_gradients<SheafModel<Family, PointMass<Family>, double, EveryLayer>>(form);
  }
}
template <class Family>
void check_bayesian() {
  for (const LayerForm form : others) {
    check_gradients<SheafModel<Family, DefaultPosterior<Family>, double, EveryLayer>>(form);
  }
}

}  // namespace

TEST_CASE("layer forms: gradients of deterministic networks") {
  check_deterministic<Identity<2>>();
  check_deterministic<Diagonal<1>>();
  check_deterministic<Diagonal<3>>();
  check_deterministic<SpecialOrthogonal<2>>();
  check_deterministic<SpecialOrthogonal<3>>();
  check_deterministic<GeneralLinear<2>>();
}
TEST_CASE("layer forms: gradients of Bayesian networks") {
  check_bayesian<Diagonal<2>>();
  check_bayesian<SpecialOrthogonal<3>>();
  check_bayesian<GeneralLinear<2>>();
}

}  // namespace test_layer_forms
