/// \file
/// Which options have no effect without others: the rule of the program train and of Python.
#pragma once

#include <initializer_list>
#include <sheafnn/bsnn/network_options.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <string_view>
#include <tuple>

#include "models/registry.hpp"

namespace programs {

/// Are the layers of the network of this form?
[[nodiscard]] inline bool has_layers(std::string_view model, const sheafnn::ModelOptions& pairs,
                                     sheafnn::LayerForm form) {
  return !is_cooperative(model) && !is_flow(model) && pairs.layer == form;
}

/// Calls belongs(flags, is_used, to) for options that have an effect only together with others.
///
/// \param networks  options of every kind
/// \param belongs   takes names on the command line, whether these options have an effect, and what they belong to
template <class Belongs>
void for_each_dependence(std::string_view model, std::string_view maps, const NetworkOptions& networks,
                         const sheafnn::TrainOptions& train, const Belongs& belongs) {
  using Basis = sheafnn::PolynomialBasis;
  const auto& pairs = std::get<sheafnn::ModelOptions>(networks);
  const Basis basis = pairs.filter.basis;
  belongs({"--degree", "--coefficients", "--skip", "--published-filter", "--largest-eigenvalue"},
          basis != Basis::none, "--filter");
  belongs({"--coefficients"}, basis != Basis::chebyshev_interpolation,
          "filters other than chebyshev-interpolation, which has no coefficients");
  belongs({"--jacobi-alpha", "--jacobi-beta"}, basis == Basis::jacobi, "--filter jacobi");
  belongs({"--residual-alpha", "--residual-theta"}, pairs.residual.initial(), "--residual initial");
  const bool attention = has_layers(model, pairs, sheafnn::LayerForm::attention);
  const bool directed = has_layers(model, pairs, sheafnn::LayerForm::directed);
  const bool draws = (attention && pairs.attention.random) || (directed && pairs.directed.random);
  belongs({"--attention-heads", "--attention-width", "--attention-transported", "--attention-residual",
           "--attention-normalised", "--random-attention"},
          attention, "--layer attention");
  belongs({"--charge", "--complex-activation", "--imaginary-weights", "--imaginary-start", "--random-phases"},
          directed, "--layer directed");
  belongs({"--gegenbauer-lambda"}, basis == Basis::gegenbauer, "--filter gegenbauer");
  const bool chooses_steps =
      std::get<sheafnn::FlowOptions>(networks).method == sheafnn::FlowMethod::dormand_prince;
  belongs({"--absolute-tolerance", "--relative-tolerance", "--first-step", "--max-steps"}, chooses_steps,
          "--flow-method dormand-prince");
  belongs({"--fixed-steps"}, !chooses_steps, "--flow-method runge-kutta and euler");
  belongs({"--node-learner-dropout"},
          std::get<sheafnn::CooperativeOptions>(networks).learner == sheafnn::NodeLearnerKind::sage_projected,
          "--node-learner sage-projected");
  belongs({"--parametrisation"}, maps == "special-orthogonal", "--maps special-orthogonal");
  const bool given = sheafnn::has_given_sheaf(model) && !is_bayesian(model);
  belongs({"--learner-layers", "--learner-width", "--linear", "--kl-schedule", "--kl-weight", "--kl-estimator",
           "--training-samples", "--sample-loss"},
          (maps != "identity" && !given) || !has_family(model) || draws, "maps that are learned");
  belongs({"--learner-width"}, !has_family(model) || pairs.learner_layers > 0, "--learner-layers");
  belongs({"--kl-schedule", "--kl-weight", "--kl-estimator", "--training-samples", "--sample-loss"},
          is_bayesian(model) || draws,
          "--model bsnn, bcsnn, bflow and bbunn, --random-attention and --random-phases");
  belongs({"--spread"}, is_bayesian(model) && has_family(model), "--model bsnn and bflow");
  belongs({"--kl-weight"}, train.kl_schedule != sheafnn::KlSchedule::off, "--kl-schedule cyclical and constant");
}

}  // namespace programs
