/// \file
/// NetworkKind: what checkpoints, programs and Python call the networks of one struct of options. Every such struct has one as
/// its static member `kind`; network_options.hpp lists the structs.
#pragma once

#include <string_view>

namespace sheafnn {

/// The names and properties of a kind of networks.
struct NetworkKind {
  std::string_view bayesian, deterministic;  ///< its two models: "bsnn", "nsd"
  std::string_view options;                  ///< the struct: "CooperativeOptions"
  std::string_view title;                    ///< "Cooperative networks"
  std::string_view maps;                     ///< what their maps belong to: "maps per node"
  /// The name for the maps of a kind that has its own type of maps: "cooperative". Empty: the user chooses the family
  /// of the maps.
  std::string_view own_maps = {};
  int least_stalk_dimension = 1, largest_stalk_dimension = 5;  ///< of the programs
  bool learned_maps = true;  ///< are the maps learned? Otherwise they are given, or computed before a training
  bool batched = true;      ///< does the batch engine train them, on the host and on CUDA devices?
  bool distributed = true;  ///< do the ranks of MPI train them?
  bool on_hypergraphs = false;                  ///< do they work on hypergraphs, and not on graphs?
  std::string_view program = "train";           ///< the program that trains them
  std::string_view python = "SheafClassifier";  ///< the class of the Python package
  std::string_view modules = {};                ///< their classes in sheafnn.torch, separated by commas and spaces

  /// Is a model one of the two models? Takes any name.
  [[nodiscard]] constexpr bool has(std::string_view model) const {
    return model == bayesian || model == deterministic;
  }
};

}  // namespace sheafnn
