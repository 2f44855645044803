/// \file
/// Kernels that depend on the family of restriction maps.
#pragma once

#include <memory>
#include <sheafnn/bsnn/model.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/layers/diffusion.hpp>
#include <sheafnn/layers/edge_blocks.hpp>
#include <sheafnn/layers/sheaf_blocks.hpp>
#include <sheafnn/layers/sheaf_learner.hpp>
#include <sheafnn/layers/variational_sheaf.hpp>
#include <string>
#include <vector>

#include "kernel.hpp"

namespace benchmarks {

/// Operations of the formulas of a family, for D = 3 (a product of two 3 × 3 matrices is 54).
struct FamilyOperations {
  double activate;         ///< raw outputs → parameters, per map
  double sample;           ///< noise and map, per map
  double sample_backward;  ///< per map
  double build_edge;       ///< Gram matrices and transport, per edge
  double build_node;       ///< S_u, per node
  double backward_edge;    ///< per edge
  double backward_node;    ///< per node
};
template <class Family>
[[nodiscard]] constexpr FamilyOperations family_operations() {
  static_assert(Family::stalk_dimension == 3);
  constexpr double product = 54, root = 2;
  if constexpr (sheafnn::sheaf::is_orthogonal<Family>) {
    // Householder: two reflections; sampling: a quaternion, a 3 × 3 system with three right sides and a product.
    return {4 * elementary + 70,
            uniform_rotation + 105 + product,
            4 * product + 40,
            product + 11,
            2 * root + 1,
            3 * product + 40,
            5};
  } else if constexpr (sheafnn::sheaf::BlockSizes<Family>::dense_gram) {
    // Five sweeps of three Jacobi rotations, 45 operations each.
    return {9 * (2 * elementary + 4),
            3 * four_normals + 9 * (elementary + 2),
            9 * 6,
            3 * product,
            15 * 45 + product,
            4 * product + 60,
            4 * product + 60};
  } else {
    return {3 * (2 * elementary + 4),
            four_normals + 3 * (elementary + 2),
            3 * 6,
            3 * 3,
            3 * (2 * root + 1),
            3 * 11,
            3 * 5};
  }
}

/// Everything the kernels of a family read and write, on one graph.
template <class Family>
struct FamilyFixture {
  using Model = sheafnn::Bsnn<Family>;
  using Q = typename Model::Posterior;
  using Sheaf = sheafnn::layers::SheafBlocks<Family, float>;
  using Sizes = sheafnn::sheaf::BlockSizes<Family>;
  using Map = typename sheafnn::layers::VariationalSheaf<Q, float>::Map;

  FamilyFixture(const sheafnn::Dataset& data, const sheafnn::ModelOptions& options)
      : graph(data.graph),
        model(options),
        blocks(graph),
        shape(graph, Family::stalk_dimension, false, false, options.channels),
        learner(graph, blocks, model.layout().learner),
        posterior(blocks, model.posterior()),
        sheaf(graph, blocks, options.normalisation),
        gradient(graph, blocks),
        map_bar(blocks.block_count() * 2 * Sizes::map * Sheaf::W),
        weight_gradient(model.parameters().size()),
        embedding(random_numbers(graph.node_count() * shape.row())),
        embedding_bar(embedding.size()),
        scaled(embedding.size()),
        diffused(embedding.size()) {
    sheafnn::layers::ParameterList<const float> values(model.parameters(), model.parameters().values().data());
    sheafnn::LayerWeights<const float> layers;
    const auto declare = [&](auto& list, auto& of_layers) {
      of_layers.declare(list, model.layer_setting(), options.layers, options.layer_norm);
    };
    model.declare(values, weights, [&](auto& list) { declare(list, layers); });
    sheafnn::layers::ParameterList<float> gradients(model.parameters(), weight_gradient.data());
    sheafnn::LayerWeights<float> layer_gradients;
    model.declare(gradients, weights_bar, [&](auto& list) { declare(list, layer_gradients); });
    learner_forward(1);
    posterior.activate(1, learner);
    posterior.begin_backward(1, 1.0);
    sample(1);
    sheaf.build(1, learner.edge_weights());
    scale(1);
    diffuse(1);
    diffuse_backward(1);
    sheaf_backward(1);
    posterior.end_backward(1, learner);
  }

  void learner_forward(int threads) {
    learner.forward(threads, weights.learners[0], {embedding.data(), graph.node_count(), shape.row()});
  }
  void learner_backward(int threads) {
    const sheafnn::Index n = graph.node_count(), h = shape.row();
    learner.set_edge_weights_bar(gradient.weight_bar);
    learner.backward(threads, weights.learners[0], {embedding.data(), n, h}, weights_bar.learners[0],
                     {embedding_bar.data(), n, h}, false);
  }
  void sample(int threads) {
    for_blocks(threads, [&](sheafnn::Index block) {
      Map map[2];
      posterior.sample_block({stream}, block, map);
      for (int side = 0; side < 2; ++side) Sheaf::store_map(map[side], sheaf.maps(block, side));
    });
  }
  void sample_backward(int threads) {
    for_blocks(threads, [&](sheafnn::Index block) {
      for (int side = 0; side < 2; ++side) {
        posterior.sample_backward({stream}, block, side, Sheaf::load_map(sheaf.maps(block, side)),
                                  Sheaf::load_map(map_bar_of(block, side)), 0.0f);
      }
    });
  }
  void sheaf_backward(int threads) {
    sheaf.backward(threads, learner.edge_weights(), gradient,
                   [&](sheafnn::Index block, int side, const Map&, const Map& bar) {
                     Sheaf::store_map(bar, map_bar_of(block, side));
                   });
  }
  void scale(int threads) {
    sheafnn::detail::scale_features<Family>(threads, graph, shape, sheaf, embedding.data(), scaled.data());
  }
  void diffuse(int threads) {
    float* out = diffused.data();
    sheafnn::detail::apply_laplacian<Family>(
        threads, graph, shape, sheaf, sheafnn::NodeSelection(graph.node_count()), scaled.data(),
        [=, row = shape.row(), f = shape.channels]<class T, int N>(sheafnn::Index u, sheafnn::Index i, auto c,
                                                                   const T*, const T* z) {
          for (int k = 0; k < N; ++k) c.store(out + u * row + (i + k) * f + c, z[k]);
        });
  }
  void diffuse_backward(int threads) {
    sheafnn::detail::apply_laplacian_backward<Family>(threads, graph, shape, sheaf, 0, graph.node_count(),
                                                      {embedding.data(), scaled.data(), diffused.data()},
                                                      embedding_bar.data(), gradient, false);
  }

  const sheafnn::Graph& graph;
  Model model;
  sheafnn::layers::EdgeBlocks<float> blocks;
  sheafnn::layers::DiffusionShape<float> shape;
  sheafnn::layers::SheafLearner<float> learner;
  sheafnn::layers::VariationalSheaf<Q, float> posterior;
  Sheaf sheaf;
  sheafnn::layers::SheafBlocksGradient<Family, float> gradient;
  sheafnn::Buffer<float> map_bar;  ///< laid out like the sheaf's maps
  sheafnn::Buffer<float> weight_gradient, embedding, embedding_bar, scaled, diffused;
  sheafnn::NetworkWeights<const float> weights;
  sheafnn::NetworkWeights<float> weights_bar;
  sheafnn::Stream stream{2, sheafnn::Purpose::sheaf_noise};

 private:
  template <class Body>
  void for_blocks(int threads, const Body& body) const {
    sheafnn::parallel_for(threads, blocks.block_count(), 2, [&](sheafnn::Index begin, sheafnn::Index end) {
      for (sheafnn::Index block = begin; block < end; ++block) body(block);
    });
  }
  [[nodiscard]] float* map_bar_of(sheafnn::Index block, int side) {
    return map_bar.data() + (block * 2 + side) * Sizes::map * Sheaf::W;
  }
};

/// Registers the kernels of a Bayesian network with these maps; they share one fixture.
template <class Family>
void add_family_kernels(const std::vector<int>& threads, const sheafnn::Dataset& data,
                        const sheafnn::ModelOptions& options) {
  using Fixture = FamilyFixture<Family>;
  using Sizes = sheafnn::sheaf::BlockSizes<Family>;
  using Q = typename Fixture::Q;
  const auto x = std::make_shared<Fixture>(data, options);
  const std::string name(Family::name);
  constexpr FamilyOperations cost = family_operations<Family>();
  const double n = static_cast<double>(data.node_count()), m = static_cast<double>(data.graph.edge_count());
  const double h = static_cast<double>(x->shape.row()), f = static_cast<double>(options.channels);
  const double features = 4 * n * h;  // bytes of one array of node features
  const auto& learner = x->model.layout().learner;
  const double columns = static_cast<double>(learner.first_outputs());
  const double raw = 2 * m * columns;
  const double parameters = Q::parameter_size, maps = 2 * m * Sizes::map;
  const double blocks = m * Sizes::transport + 2 * n * Sizes::gram;
  constexpr double terms = Sizes::transport == 9 ? 9 : 3, own_terms = Sizes::gram == 9 ? 9 : 3;

  // Two projections per node, one addition per arc and output.
  add_kernel(threads, "learner forward", name, {4 * n * h * columns + raw, features + 4 * raw + 8 * 2 * m},
             [x](int t) { x->learner_forward(t); });
  add_kernel(threads, "learner backward", name,
             {8 * n * h * columns + 2 * raw, 2 * features + 4 * raw + 8 * 2 * m},
             [x](int t) { x->learner_backward(t); });
  add_kernel(threads, "activate posterior", name,
             {2 * m * cost.activate, 4 * 2 * m * (Q::mean_size + Q::spread_size + parameters)},
             [x](int t) { x->posterior.activate(t, x->learner); });
  add_kernel(threads, "sample maps", name, {2 * m * cost.sample, 4 * (2 * m * (parameters + 1) + maps)},
             [x](int t) { x->sample(t); });
  add_kernel(threads, "sample maps backward", name,
             {2 * m * cost.sample_backward, 4 * (2 * m * (parameters + 2 * Q::gradient_size) + 2 * maps)},
             [x](int t) { x->sample_backward(t); });
  add_kernel(threads, "transport and scaling", name,
             {m * cost.build_edge + n * cost.build_node, 4 * (maps + m + blocks + 2 * m)},
             [x](int t) { x->sheaf.build(t, x->learner.edge_weights()); });
  add_kernel(threads, "transport and scaling backward", name,
             {m * cost.backward_edge + n * cost.backward_node,
              4 * (2 * maps + 2 * m + m * Sizes::transport + 2 * n * Sizes::gram)},
             [x](int t) { x->sheaf_backward(t); });
  add_kernel(threads, "scaling of features", name, {2 * f * n * own_terms, 2 * features + 4 * n * Sizes::gram},
             [x](int t) { x->scale(t); });
  add_kernel(threads, "diffusion", name,
             {2 * f * (2 * m * terms + 2 * n * own_terms), 2 * features + 4 * (blocks + 2 * 2 * m)},
             [x](int t) { x->diffuse(t); });
  add_kernel(threads, "diffusion backward", name,
             {2 * f * (4 * m * terms + 4 * n * own_terms),
              4 * features + 4 * (blocks + 2 * 2 * m) + 4 * 2 * m * Sizes::transport + 8 * m},
             [x](int t) { x->diffuse_backward(t); });
}

/// S_u alone, for every node.
template <class Family>
void add_normalisation_kernel(const std::vector<int>& threads, sheafnn::Index nodes) {
  using sheafnn::Index;
  constexpr int W = sheafnn::lanes<float>, size = sheafnn::sheaf::BlockSizes<Family>::gram;
  using P = sheafnn::math::Pack<float, W>;
  using Block = sheafnn::sheaf::Gram<Family, P>;
  struct Fixture {
    sheafnn::Buffer<float> degree, out;
  };
  const Index packs = (nodes + W - 1) / W;
  const auto x = std::make_shared<Fixture>(Fixture{random_numbers(packs * size * W), {}});
  x->out.resize(x->degree.size());
  // A diagonal that dominates makes every block positive definite; the others are symmetric.
  for (Index i = 0; i < packs; ++i) {
    for (int lane = 0; lane < W; ++lane) {
      float* block = x->degree.data() + i * size * W + lane;
      constexpr int rows = sheafnn::sheaf::BlockSizes<Family>::gram_rows,
                    step = sheafnn::sheaf::BlockSizes<Family>::gram_columns == 1 ? 1 : rows + 1;
      for (int k = 0; k < size; ++k) block[k * W] = block[(size == 9 ? k % 3 * 3 + k / 3 : k) * W];
      for (int k = 0; k < rows; ++k) block[k * step * W] = 4 + block[k * step * W];
    }
  }
  add_kernel(threads, "normalisation", std::string(Family::name),
             {static_cast<double>(nodes) * family_operations<Family>().build_node,
              4 * 2 * static_cast<double>(nodes) * size},
             [x, packs](int t) {
               sheafnn::parallel_for(t, packs, 8, [&](Index begin, Index end) {
                 for (Index i = begin; i < end; ++i) {
                   Block degree;
                   sheafnn::detail::load_lanes<size>(x->degree.data() + i * size * W, degree.data());
                   const auto scaling =
                       sheafnn::sheaf::node_scaling<Family, P>(sheafnn::Normalisation::augmented, degree, P(1));
                   sheafnn::detail::store_lanes<size>(scaling.scale.data(), x->out.data() + i * size * W);
                 }
               });
             });
}

}  // namespace benchmarks
