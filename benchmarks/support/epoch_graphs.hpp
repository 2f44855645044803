/// \file
/// The graphs, models and families of maps whose epochs are measured.
#pragma once

#include <array>
#include <sheafnn/core/config.hpp>
#include <string_view>

namespace benchmarks {

/// A graph of the table: its size, and what one epoch of the authors' code took.
///
/// Provenance: median milliseconds of one training step and one evaluation of the authors' PyTorch code (PyTorch
/// 1.13, OpenBLAS, float32) on two cores of a Xeon with AVX-512, where sgemm reached 208 GFLOP/s on one core and a
/// copy 24 GB/s. Settings as in epochs.cpp. They were measured on that machine, not on the one this runs on.
struct EpochGraph {
  std::string_view name;
  sheafnn::Index nodes, edges, features, entries, classes, largest_degree;
  double reference[2][3];  ///< milliseconds; [NSD, BSNN][diagonal, special orthogonal, general linear]
};
inline constexpr std::array<EpochGraph, 3> epoch_graphs = {{
    {"texas", 183, 279, 1703, 15266, 5, 104, {{17.8, 22.6, 33.6}, {27.5, 130.4, 45.8}}},
    {"cora", 2708, 5278, 1433, 49216, 7, 168, {{196, 347, 343}, {250, 1077, 411}}},
    {"film", 7600, 26659, 932, 40977, 5, 1303, {{475, 1110, 1035}, {551, 3818, 1486}}},
}};
inline constexpr std::array<std::string_view, 2> epoch_models = {"nsd", "bsnn"};
inline constexpr std::array<std::string_view, 3> epoch_maps = {"diagonal", "special-orthogonal", "general-linear"};

}  // namespace benchmarks
