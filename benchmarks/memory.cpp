/// \file
/// What the memory of a training step holds, in bytes per edge, for NSD and BSNN with diagonal maps, rotations and general maps
/// of stalk dimension 3: every array of the network, counted from the sizes of the model, and beside their sum what the heap has
/// after a step. The graph is as in scaling.cpp.
///
///     memory [--edges E] [--layers L] [--recompute-layers K | --compress-layers 1]
///
/// E (default 10⁵) is the number of edges, L (default 2) the number of layers. The backward pass computes K layers at a time again
/// (default 0: none). With --compress-layers 1 layers keep 16 bits, and only the last row of the table counts.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iterator>
#include <sheafnn/bsnn/trainer.hpp>
#include <sheafnn/graph/synthetic.hpp>
#include <string>
#include <vector>

#include "support/heap.hpp"
#include "support/markdown.hpp"
#include "support/measurement.hpp"

namespace {

using sheafnn::Index;

/// One column of the table.
struct Column {
  std::string name;
  std::vector<double> bytes;
  double measured = 0;
};

constexpr const char* rows_of_table[] = {
    "features of the graph, by nodes and by words",
    "numbers of edges",
    "embeddings after dropout",
    "learner: raw outputs",
    "learner: edge weights",
    "parameters of the posterior",
    "their derivatives, where layers are computed again",
    "derivatives of transports, and what is in their place",
    "Gram matrices, then derivatives of raw outputs, elsewhere",
    "transports and node scalings of all layers",
    "outputs of layers, and R = L W",
    "W, Y, and derivatives of features",
    "learner: inputs of layers after dropout",
    "masks of dropout",
    "outputs of the network",
};

template <class Model>
Column column(const char* name, const sheafnn::Dataset& data, Index layers, Index recompute, bool compress) {
  using Family = typename Model::Family;
  using Sizes = sheafnn::detail::BlockSizes<Family>;
  constexpr bool bayesian = Model::bayesian;
  sheafnn::ModelOptions options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  options.layers = layers;
  const Model model(options);
  const auto& learner = model.layout().learner;
  const double edges = static_cast<double>(data.graph.edge_count()), arcs = 2,
               node = static_cast<double>(data.node_count()) / edges,
               entries = static_cast<double>(data.features.entries()) / edges,
               row = static_cast<double>(model.hidden_width()) * node, number = 4;
  const sheafnn::layers::LayerSegments segments(layers, recompute);
  const bool whole = segments.whole();
  const double sheaves = static_cast<double>(segments.length), learners = bayesian ? 1 : sheaves,
               inputs = std::ceil(static_cast<double>(layers) / sheaves),  // of segments
      dropped = whole ? sheaves - 1 : sheaves;  // inputs of learners; the first layer's has no dropout
  const double outputs = static_cast<double>(learner.outputs()), weights = learner.edge_weights ? 1 : 0;
  double parameters = 0, parameters_bar = 0;
  if constexpr (bayesian) {
    parameters = Model::Posterior::parameter_size;
    parameters_bar = whole ? 0 : Model::Posterior::gradient_size;
  }
  const double transport = Sizes::transport,
               raw_bar = static_cast<double>(sheafnn::layers::LearnerRows<float>(learner).numbers()),
               grams = arcs * sheafnn::layers::SheafBlocks<Family, float>::arc_stride;
  const auto elsewhere = [&](double numbers) { return numbers > transport ? numbers : 0; };
  Column r{name, {}, 0};
  r.bytes = {
      (4 + number + 4 + 8 + number) * entries + 8 * node,
      16,
      number * row,
      number * learners * arcs * outputs,
      number * weights * (learners * (arcs + 1) + 1 + (bayesian ? arcs : 0)),
      number * arcs * parameters,
      number * arcs * parameters_bar,
      number * transport,
      number * std::max(elsewhere(grams), elsewhere(raw_bar)),
      number * (sheaves * (transport + (2 * Sizes::gram + Sizes::eigen) * node) + 2 * Sizes::gram * node +
                (weights > 0 ? 0 : 1)),
      number * (2 * sheaves - 1 + inputs) * row,
      number * 3 * row,
      bayesian ? 0 : number * dropped * row,
      (entries + static_cast<double>(bayesian ? layers + 1 : 2 * layers) * row) / 8,
      number * 2 * 8 * node,
  };
  const double before = benchmarks::heap_bytes();
  sheafnn::Network<Model> network(model, data.graph, data.features, 1);
  const std::vector<std::int32_t>& nodes = data.splits[0].train;
  static_cast<void>(sheafnn::elbo(network,
                                  {.training = true,
                                   .overwrites = true,
                                   .recompute_layers = recompute,
                                   .compress_layers = compress,
                                   .input_dropout = 0.5,
                                   .dropout = 0.3,
                                   .nodes = nodes},
                                  sheafnn::Classification(data.labels), nodes, {.kl_weight = 0.5}));
  r.measured = (benchmarks::heap_bytes() - before) / edges;
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    sheafnn::SyntheticOptions graph;
    const Index edges = static_cast<Index>(benchmarks::take_option(argc, argv, "--edges", 1e5, 1e3, 1e8));
    const Index layers = static_cast<Index>(benchmarks::take_option(argc, argv, "--layers", 2, 1, 64));
    const Index again = static_cast<Index>(benchmarks::take_option(argc, argv, "--recompute-layers", 0, 0, 64));
    const bool compress = benchmarks::take_option(argc, argv, "--compress-layers", 0, 0, 1) != 0;
    graph.nodes = edges / 5;
    graph.degree = 10;
    graph.splits = 1;
    const sheafnn::Dataset data = sheafnn::synthetic(graph);
    using sheafnn::Bsnn, sheafnn::Nsd;
    const std::vector<Column> columns = {
        column<Nsd<sheafnn::Diagonal<3>>>("NSD, diagonal", data, layers, again, compress),
        column<Nsd<sheafnn::SpecialOrthogonal<3>>>("NSD, rotations", data, layers, again, compress),
        column<Nsd<sheafnn::GeneralLinear<3>>>("NSD, general", data, layers, again, compress),
        column<Bsnn<sheafnn::Diagonal<3>>>("BSNN, diagonal", data, layers, again, compress),
        column<Bsnn<sheafnn::SpecialOrthogonal<3>>>("BSNN, rotations", data, layers, again, compress),
        column<Bsnn<sheafnn::GeneralLinear<3>>>("BSNN, general", data, layers, again, compress),
    };
    std::vector<std::string> names = {"bytes per edge"}, sums = {"sum"}, measured = {"on the heap"};
    for (const Column& c : columns) {
      names.push_back(c.name);
      double sum = 0;
      for (const double bytes : c.bytes) sum += bytes;
      sums.push_back(benchmarks::format("%.0f", sum));
      measured.push_back(benchmarks::format("%.0f", c.measured));
    }
    std::string text = benchmarks::head(names);
    for (std::size_t i = 0; i < std::size(rows_of_table); ++i) {
      std::vector<std::string> cells = {rows_of_table[i]};
      for (const Column& c : columns) {
        cells.push_back(c.bytes[i] == 0 ? "–" : benchmarks::format("%.1f", c.bytes[i]));
      }
      text += benchmarks::row(cells);
    }
    std::printf("%s%s%s", text.c_str(), benchmarks::row(sums).c_str(), benchmarks::row(measured).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "memory: %s\n", error.what());
    return 2;
  }
}
