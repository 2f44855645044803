/// \file
/// Learned: the content of a file that train --sheaf and predict --sheaf write, whatever the family of maps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <sheafnn/bsnn/sheaf_use_figures.hpp>
#include <sheafnn/core/eigen.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/format_version.hpp>
#include <sheafnn/io/npz_archive.hpp>
#include <sheafnn/io/sheaf_use_text.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "explore/text.hpp"

namespace explore {

using sheafnn::Index;

/// The spread of the posterior, one number per arc.
struct Spread {
  std::string name;            ///< kappa or sigma; empty in deterministic models
  std::vector<double> values;  ///< 2m, the mean where an arc has several
};

struct Learned {
  std::string family, model;          ///< of the maps; bsnn, nsd, bcsnn, csnn, bflow or flow
  Index dimension = 0, classes = 0;   ///< D, C
  std::vector<Eigen::MatrixXd> maps;  ///< 2m times D × D, without edge weights; none where nodes have the maps
  std::vector<double> edge_weights;   ///< m
  Spread spread;
  std::vector<double> listening, speaking;          ///< scales τ and σ of nodes' maps, n each, or none
  std::vector<Eigen::MatrixXd> layers;              ///< L + 1 times n × h
  std::vector<double> entropy, mutual_information;  ///< n each, in nats
  std::vector<std::int32_t> labels, predicted;      ///< n each; −1 where unknown
  std::optional<sheafnn::SheafUse> use;             ///< figures of the training, where the file has them
  [[nodiscard]] bool rotations() const { return family == "special-orthogonal"; }
  [[nodiscard]] bool fixed() const { return family == "identity"; }
  [[nodiscard]] bool bayesian() const { return model.starts_with('b'); }
  /// Do nodes have maps, instead of incident pairs?
  [[nodiscard]] bool cooperative() const { return !listening.empty(); }
  /// Are these maps more than rotations?
  [[nodiscard]] bool scaled() const {
    const auto is_one = [](double scale) { return scale == 1; };
    return cooperative() && !(std::all_of(listening.begin(), listening.end(), is_one) &&
                              std::all_of(speaking.begin(), speaking.end(), is_one));
  }
};

namespace detail {

using Shape = std::vector<Index>;

[[noreturn]] inline void fail(const std::string& where, std::initializer_list<Text> what) {
  throw std::runtime_error(where + ": " + joined(what));
}

/// The elements of an array of this shape; −1 stands for any extent from 1 on.
///
/// \throws std::runtime_error  another shape, or a number that is not finite
inline std::vector<double> numbers(const sheafnn::io::NpyArray& array, const Shape& shape) {
  const Shape& is = array.shape();
  const bool fits = std::equal(is.begin(), is.end(), shape.begin(), shape.end(),
                               [](Index a, Index b) { return a == b || (b == -1 && a > 0); });
  if (!fits) {
    std::string expected;
    for (const Index extent : shape) {
      expected += (expected.empty() ? "" : ", ") + (extent < 0 ? "any" : std::to_string(extent));
    }
    fail(array.where(), {"has shape ", array.shape_text(), "; expected (", expected, ")"});
  }
  std::vector<double> r = array.values<double>();
  for (const double value : r) {
    if (!std::isfinite(value)) fail(array.where(), {"holds ", value, "; all numbers must be finite"});
  }
  return r;
}
/// rows × columns values from `from` on, row by row.
inline Eigen::MatrixXd matrix(const double* from, Index rows, Index columns) {
  Eigen::MatrixXd r(rows, columns);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) r(i, j) = *from++;
  }
  return r;
}

/// Refuses the sheaf of another graph.
inline void check_graph(const sheafnn::io::NpzArchive& file, const sheafnn::Dataset& data) {
  const double nodes = numbers(file.array("node_count"), {})[0];
  const Index n = data.graph.node_count(), m = data.graph.edge_count();
  if (nodes != static_cast<double>(n)) {
    fail(file.file(), {"belongs to a graph of ", nodes, " nodes; ", data.name, " has ", n});
  }
  const sheafnn::io::NpyArray array = file.array("edges");
  if (array.shape().empty() || array.shape()[0] != m) {
    fail(file.file(), {"belongs to a graph of ", array.shape().empty() ? 0 : array.shape()[0], " edges; ",
                       data.name, " has ", m});
  }
  const std::vector<double> edges = numbers(array, {m, 2});
  for (Index e = 0; e < m; ++e) {
    const auto [u, v] = data.graph.edge(e);
    const double* ends = edges.data() + 2 * e;
    if (ends[0] != u || ends[1] != v) {
      fail(file.file(), {"belongs to another graph than ", data.name, ": edge ", e, " joins ", ends[0], " and ",
                         ends[1], ", not ", u, " and ", v});
    }
  }
}

/// Maps of any family as D × D matrices.
inline std::vector<Eigen::MatrixXd> read_maps(const sheafnn::io::NpzArchive& file, Index arcs, Index dimension) {
  const sheafnn::io::NpyArray array = file.array("maps");
  const Index d = dimension, each = arcs > 0 ? array.size() / arcs : 0;
  const bool dense = array.shape().size() == 3;
  const std::vector<double> values = numbers(array, dense ? Shape{arcs, d, d} : Shape{arcs, each > 0 ? d : 0});
  std::vector<Eigen::MatrixXd> r(static_cast<std::size_t>(arcs), Eigen::MatrixXd::Identity(d, d));
  for (Index a = 0; a < arcs && each > 0; ++a) {
    Eigen::MatrixXd& map = r[static_cast<std::size_t>(a)];
    const double* from = values.data() + a * each;
    if (dense) {
      map = matrix(from, d, d);
    } else {
      for (Index i = 0; i < d; ++i) map(i, i) = from[i];
    }
  }
  return r;
}

/// Scales of the maps of n nodes.
inline std::vector<double> read_scales(const sheafnn::io::NpyArray& array, Index n) {
  std::vector<double> r = numbers(array, {n});
  for (const double scale : r) {
    if (!(scale > 0)) fail(array.where(), {"holds ", scale, "; scales must be positive"});
  }
  return r;
}

inline Spread read_spread(const sheafnn::io::NpzArchive& file, Index arcs) {
  for (const char* name : {"kappa", "sigma"}) {
    if (!file.contains(name)) continue;
    const sheafnn::io::NpyArray array = file.array(name);
    const std::vector<double> values =
        numbers(array, array.shape().size() == 2 ? Shape{arcs, array.shape()[1]} : Shape{arcs});
    const Index columns = arcs > 0 ? array.size() / arcs : 1;
    Spread r{name, {}};
    for (Index a = 0; a < arcs; ++a) {
      const double* row = values.data() + a * columns;
      r.values.push_back(std::accumulate(row, row + columns, 0.0) / static_cast<double>(columns));
    }
    return r;
  }
  return {};
}

}  // namespace detail

/// Reads the file of a model on `data`. Labels come from the dataset.
///
/// \throws std::runtime_error  the file lacks an array, has one of another shape, is of another graph or of a later
///                             version
inline Learned read_learned(const sheafnn::io::NpzArchive& file, const sheafnn::Dataset& data) {
  using namespace detail;
  if (file.contains("format_version")) {
    const auto version = static_cast<Index>(numbers(file.array("format_version"), {})[0]);
    sheafnn::io::require_known_version(file.file(), version, sheafnn::io::sheaf_file_version);
  }
  check_graph(file, data);
  const Index n = data.graph.node_count(), arcs = data.graph.arc_count();
  Learned r;
  r.family = file.text("family");
  r.model = file.text("model");
  r.dimension = static_cast<Index>(numbers(file.array("stalk_dimension"), {})[0]);
  if (r.dimension < 1 || r.dimension > 100) {
    fail(file.file(), {"stalk_dimension ", r.dimension, " is not between 1 and 100"});
  }
  if (file.contains("out_scales")) {
    r.listening = read_scales(file.array("out_scales"), n);
    r.speaking = read_scales(file.array("in_scales"), n);
  } else {
    r.maps = read_maps(file, arcs, r.dimension);
    r.edge_weights = numbers(file.array("edge_weights"), {data.graph.edge_count()});
    r.spread = read_spread(file, arcs);
  }
  if (file.contains(sheafnn::io::sheaf_use_key)) {
    r.use = sheafnn::io::parse_sheaf_use(file.file(), file.text(sheafnn::io::sheaf_use_key));
  }
  const sheafnn::io::NpyArray layers = file.array("layer_embeddings");
  const std::vector<double> features = numbers(layers, {-1, n, -1});
  const Index width = layers.shape()[2];
  for (Index l = 0; l < layers.shape()[0]; ++l)
    r.layers.push_back(matrix(features.data() + l * n * width, n, width));
  const sheafnn::io::NpyArray probabilities = file.array("probabilities");
  const std::vector<double> p = numbers(probabilities, {n, -1});
  r.classes = probabilities.shape()[1];
  r.entropy = numbers(file.array("entropy"), {n});
  r.mutual_information = numbers(file.array("mutual_information"), {n});
  r.labels = data.labels;
  r.labels.resize(static_cast<std::size_t>(n), -1);
  for (Index u = 0; u < n; ++u) {
    const double* row = p.data() + u * r.classes;
    r.predicted.push_back(static_cast<std::int32_t>(std::max_element(row, row + r.classes) - row));
  }
  return r;
}

}  // namespace explore
