/// \file
/// The options of the program train that belong to continuous-time networks, and which of the others these share.
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <nlohmann/json.hpp>
#include <sheafnn/bsnn/flow_model_options.hpp>
#include <sheafnn/bsnn/options.hpp>
#include <sheafnn/core/errors.hpp>
#include <string>

#include "models/option_groups.hpp"
#include "models/registry.hpp"

namespace programs {

/// Names that options have on the command line.
struct FlowSettings {
  sheafnn::FlowOptions options;
  std::string method = "dormand-prince";
};

inline constexpr const char* flow_group = "Continuous time";

inline void add_flow_options(CLI::App& app, FlowSettings& s) {
  auto* group =
      app.add_option_group(flow_group, "flow and bflow: one sheaf, and a flow along it; see docs/networks.md");
  group->add_option("--time", s.options.time, "where the flow ends, above 0")->capture_default_str();
  group->add_option("--flow-method", s.method, "its integration: steps by tolerances, or --fixed-steps equal ones")
      ->capture_default_str()
      ->check(one_of_names(sheafnn::flow_method_names));
  group
      ->add_option("--absolute-tolerance", s.options.absolute_tolerance, "of a step of dormand-prince, at least 0")
      ->capture_default_str();
  group->add_option("--relative-tolerance", s.options.relative_tolerance, "the same, relative to the features")
      ->capture_default_str();
  group->add_option("--first-step", s.options.first_step, "the first step that it tries, above 0")
      ->capture_default_str();
  group->add_option("--max-steps", s.options.max_steps, "most steps that it tries, at least 1")
      ->capture_default_str();
  group->add_option("--fixed-steps", s.options.fixed_steps, "steps of runge-kutta and euler, at least 1")
      ->capture_default_str();
  group->add_flag("--negate-inside", s.options.negate_inside, "ELU(-x) instead of -ELU(x) (default: off)");
}

/// Checks that options were given for the model that is trained, and takes those that both kinds of network have.
///
/// \param app      after parsing
/// \param pairs    what the group Model of the command line has set
/// \throws std::invalid_argument  an option of the other kind, or a value out of range
inline void resolve_flow(const CLI::App& app, const std::string& model, const sheafnn::ModelOptions& pairs,
                         FlowSettings& s) {
  constexpr std::array shared = {"--model",
                                 "--maps",
                                 "--stalk-dim",
                                 "--channels",
                                 "--add-lp",
                                 "--add-hp",
                                 "--edge-weights",
                                 "--separate-encoder",
                                 "--degree-input",
                                 "--learner-layers",
                                 "--learner-width",
                                 "--learner",
                                 "--sheaf-activation",
                                 "--spread",
                                 "--second-linear",
                                 "--readout-layers",
                                 "--left-weights",
                                 "--no-right-weights",
                                 "--no-activation",
                                 "--normalise-features",
                                 "--feature-treatment",
                                 "--normalisation",
                                 "--parametrisation"};
  if (!is_flow(model)) {
    refuse_options(app, flow_group, model);
    return;
  }
  refuse_options(app, model_group, model, shared);
  sheafnn::FlowOptions& o = s.options;
  sheafnn::detail::copy_shared_options(pairs, o);
  o.method = sheafnn::parse_name<sheafnn::FlowMethod>("--flow-method", s.method, sheafnn::flow_method_names);
  sheafnn::validate(o.integration());
}

/// What reports and checkpoints of trainings say beside the options that it shares with a network of layers.
[[nodiscard]] inline nlohmann::ordered_json flow_json(const sheafnn::FlowOptions& o) {
  return {{"time", o.time},
          {"flow_method", to_string(o.method)},
          {"absolute_tolerance", o.absolute_tolerance},
          {"relative_tolerance", o.relative_tolerance},
          {"first_step", o.first_step},
          {"max_steps", o.max_steps},
          {"fixed_steps", o.fixed_steps},
          {"negate_inside", o.negate_inside}};
}

}  // namespace programs
