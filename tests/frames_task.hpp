/// \file
/// A node classification task that needs a sheaf.
#pragma once

#include <span>
#include <vector>

#include "sheafnn/graph/dataset.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "tiny_task.hpp"

namespace test {

/// Every node has a vector in a frame of its own. Its class is the sign of the first coordinate, in its frame, of its
/// neighbours' sum: a linear function of what one layer computes with the true sheaf. Without it, neighbours'
/// coordinates say nothing.
struct FramesTask {
  using Family = sheafnn::SpecialOrthogonal<3>;
  static constexpr sheafnn::Index degree = 6;
  sheafnn::Dataset data;
  sheafnn::CellularSheaf<Family> truth{sheafnn::Graph()};

  explicit FramesTask(sheafnn::Index nodes) {
    using sheafnn::Index;
    std::vector<sheafnn::Edge> edges;
    for (Index i = 0; i < nodes * degree / 2; ++i) {
      const auto node = [&](Index k) {
        return static_cast<std::int32_t>((tiny::number(11, 2 * i + k) + 1) / 2 * static_cast<double>(nodes));
      };
      edges.push_back({node(0), node(1)});
    }
    data.graph = sheafnn::Graph(nodes, edges);
    truth = sheafnn::CellularSheaf<Family>(data.graph);
    std::vector<Eigen::Matrix3d> frame;
    std::vector<double> x;
    for (Index u = 0; u < nodes; ++u) {
      frame.push_back(sheafnn::sheaf::random_map<Family>(sheafnn::Stream{.seed = 12}, static_cast<std::uint32_t>(u)));
      for (Index k = 0; k < 3; ++k) x.push_back(tiny::number(13, 3 * u + k));
    }
    for (Index u = 0; u < nodes; ++u) {
      const Eigen::Matrix3d& own = frame[static_cast<std::size_t>(u)];
      Eigen::Vector3d sum = Eigen::Vector3d::Zero();
      for (Index a = data.graph.first_arc(u); a < data.graph.first_arc(u + 1); ++a) {
        const Index v = data.graph.target(a);
        sum += frame[static_cast<std::size_t>(v)] * Eigen::Map<const Eigen::Vector3d>(x.data() + 3 * v);
        truth.set_map(a, own);
      }
      data.labels.push_back((own.transpose() * sum)(0) > 0 ? 1 : 0);
    }
    data.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(x), nodes, 3);
    data.class_count = 2;
    sheafnn::Split& split = data.splits.emplace_back();
    for (std::int32_t u = 0; u < nodes; ++u) {
      (u % 3 == 0 ? split.test : u % 3 == 1 ? split.validation : split.train).push_back(u);
    }
  }

  /// One linear layer.
  [[nodiscard]] static sheafnn::ModelOptions options() {
    sheafnn::ModelOptions r;
    r.features = 3;
    r.classes = 2;
    r.channels = 4;
    r.layers = 1;
    r.activation = false;
    r.feature_treatment = sheafnn::FeatureTreatment::none;
    return r;
  }
};

}  // namespace test
