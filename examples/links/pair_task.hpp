/// \file
/// PairTask: what a network learns of pairs of nodes, and the targets of a training. It comes from an edge list and from the
/// metadata of a checkpoint, which the Python package reads and writes as well.
///
/// | metadata                  | what                                                           |
/// | ------------------------- | -------------------------------------------------------------- |
/// | targets                   | links, edge_classes or edge_numbers                            |
/// | edge_column               | the column of the edge list with the classes or numbers        |
/// | class_names               | names of the classes, a CSV record                             |
/// | target_mean, target_scale | of numbers: as models/target_kind.hpp has them                 |
/// | edge_split                | options of the split of the edges, NAME=VALUE with commas      |
/// | edge_data                 | fingerprint of the data that were split                        |
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <sheafnn/bsnn/edge_prediction.hpp>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/graph/edge_split.hpp>
#include <sheafnn/io/edge_values.hpp>
#include <sheafnn/io/lines.hpp>
#include <sheafnn/io/option_text.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/class_names.hpp"
#include "models/fingerprint.hpp"
#include "models/target_figures.hpp"
#include "models/target_kind.hpp"

namespace links_program {

/// Labels or numbers of edges, or neither: links.
struct PairTask {
  std::string column;                        ///< of the edge list; empty: links
  std::vector<std::string> class_names;      ///< of labels
  std::optional<programs::TargetKind> kind;  ///< of numbers

  [[nodiscard]] bool links() const noexcept { return column.empty(); }
  [[nodiscard]] bool numbers() const noexcept { return kind.has_value(); }
  /// Links have two classes: no link, a link.
  [[nodiscard]] sheafnn::Index class_count() const noexcept {
    return links() ? 2 : static_cast<sheafnn::Index>(class_names.size());
  }
  /// The score that a program takes where nobody chooses one. On most planted and public graphs its validation loss is the
  /// least (benchmarks/link_scores.py).
  static constexpr sheafnn::PairScore default_score = sheafnn::PairScore::bilinear;

  /// Targets in the files' units from what a loss predicts, and their deviations over the posterior samples.
  [[nodiscard]] programs::TargetPrediction unscaled(sheafnn::EdgeValues values) const {
    for (double& one : values.variance) one = std::sqrt(one);
    return {kind->scaling().unscaled(std::move(values.mean)),
            kind->scaling().unscaled_deviations(std::move(values.variance))};
  }

  /// What a checkpoint stores.
  [[nodiscard]] std::map<std::string, std::string> notes() const {
    std::map<std::string, std::string> r;
    if (kind) kind->add_to(r);
    r["targets"] = links() ? "links" : numbers() ? "edge_numbers" : "edge_classes";
    if (!links()) r["edge_column"] = column;
    if (!class_names.empty()) r["class_names"] = sheafnn::io::csv_record(class_names);
    return r;
  }
  /// The task of a checkpoint; nothing where it holds a network of nodes or graphs.
  ///
  /// \throws std::runtime_error  naming the file: a part is missing or damaged
  [[nodiscard]] static std::optional<PairTask> of(const std::string& file,
                                                  std::map<std::string, std::string> notes) {
    const std::string targets = notes["targets"];
    PairTask r;
    if (targets == "links") return r;
    if (targets != "edge_classes" && targets != "edge_numbers") return std::nullopt;
    r.column = notes["edge_column"];
    if (r.column.empty()) sheafnn::io::detail::fail(file, "has no entry 'edge_column' in its metadata");
    if (targets == "edge_numbers") {
      notes["targets"] = "numbers";
      r.kind.emplace(file, notes, 1);
      return r;
    }
    r.class_names = sheafnn::io::saved_names(file, notes, "class_names");
    if (r.class_names.size() < 2) sheafnn::io::detail::fail(file, "class_names has fewer than 2 names");
    return r;
  }
};

/// The targets of a training.
struct PairTargets {
  sheafnn::EdgeTargets edges;
  sheafnn::Dataset numbers;    ///< of a task with numbers: its targets are T numbers, of targets in place of nodes
  std::vector<double> scaled;  ///< the same, as the loss takes them
};

/// Splits the edges of data for a task.
///
/// \param task  has the column and class names; gets the scaling of numbers
/// \param name  what messages call the labels or numbers
/// \param numeric  whether numbers are learned, not labels
/// \throws std::invalid_argument  labels or numbers that are not there, or too few; as split_links() and split_edges()
[[nodiscard]] inline PairTargets split_pairs(const sheafnn::Dataset& data, PairTask& task, const std::string& name,
                                             bool numeric, const sheafnn::EdgeSplitOptions& options) {
  PairTargets r;
  if (task.links()) {
    r.edges = sheafnn::split_links(data.graph, options);
    return r;
  }
  if (!numeric) {
    sheafnn::io::detail::require_edge_values(name, task.column, data.edge_labels);
    sheafnn::require(task.class_count() >= 2, name, task.column, "at least two different labels are needed");
    r.edges = sheafnn::split_edges(data.graph, data.edge_labels, task.class_count(), options);
    return r;
  }
  sheafnn::io::detail::require_edge_values(name, task.column, data.edge_targets);
  r.edges =
      sheafnn::split_edges(data.graph, sheafnn::detail::known_rows(data.edge_targets, data.graph.edge_count()), 1,
                           options);
  r.numbers.name = data.name;
  r.numbers.features = sheafnn::NodeFeatures::identity(r.edges.count());
  r.numbers.target_names = {task.column};
  for (const std::int32_t e : r.edges.edges) {
    r.numbers.targets.push_back(data.edge_targets[static_cast<std::size_t>(e)]);
  }
  task.kind.emplace(sheafnn::TargetLoss::squared, r.numbers, r.edges.split.train);
  r.scaled = task.kind->scaling().scaled(r.numbers.targets);
  return r;
}

/// The fingerprint of what a split of edges and the networks on it depend on.
[[nodiscard]] inline std::string edge_fingerprint(const sheafnn::Dataset& data) {
  programs::Fingerprint r;
  r.add_graph(data);
  r.add(data.edge_labels);
  r.add(data.edge_targets);
  return r.text();
}
/// What a checkpoint stores of a task and the split of a training. \param data  with the labels or targets of the task
[[nodiscard]] inline std::map<std::string, std::string> checkpoint_notes(const PairTask& task,
                                                                         const sheafnn::Dataset& data,
                                                                         const sheafnn::EdgeSplitOptions& split) {
  std::map<std::string, std::string> r = task.notes();
  std::string text = sheafnn::detail::concat("seed=", split.seed);
  for (const auto& [key, value] : sheafnn::io::option_texts(split)) text += ',' + key + '=' + value;
  r["edge_split"] = text;
  r["edge_data"] = edge_fingerprint(data);
  return r;
}
/// The split options of a checkpoint's training on these data: split_pairs() makes the same split with them.
///
/// \param name  what messages call the checkpoint's option
/// \throws std::invalid_argument  a checkpoint without them, or of other data, whose test pairs its network may have seen
/// \throws std::runtime_error     naming the file: options that are none
[[nodiscard]] inline sheafnn::EdgeSplitOptions checkpoint_split(const std::string& name, const std::string& file,
                                                                const std::map<std::string, std::string>& notes,
                                                                const sheafnn::Dataset& data) {
  constexpr const char* instead = "; --candidates names the pairs to predict";
  const auto split = notes.find("edge_split"), of_data = notes.find("edge_data");
  sheafnn::require(split != notes.end() && of_data != notes.end(), name, file,
                   sheafnn::detail::concat("it does not tell the split of its training", instead));
  sheafnn::require(of_data->second == edge_fingerprint(data), name, file,
                   sheafnn::detail::concat("it was trained on other edges, or labels or numbers of edges, than ",
                                           data.name, " has, and may have seen the test pairs", instead));
  return sheafnn::io::detail::naming_file(file, [&] {
    std::map<std::string, std::string> texts;
    for (const std::string_view field : sheafnn::io::detail::split_fields(split->second, ',')) {
      const std::size_t at = std::min(field.find('='), field.size());
      texts[std::string(field.substr(0, at))] = field.substr(std::min(at + 1, field.size()));
    }
    sheafnn::EdgeSplitOptions r;
    sheafnn::io::parse_option("edge_split.seed", texts["seed"], r.seed);
    sheafnn::for_each_option(
        [&](const sheafnn::Option& option, auto& value) {
          sheafnn::io::parse_option("edge_split." + std::string(option.key), texts[std::string(option.key)],
                                    value);
        },
        r);
    return r;
  });
}

/// Errors of numbers that were predicted for the test targets.
///
/// \param means  one for each test target
[[nodiscard]] inline programs::TargetFigures test_errors(const PairTask& task, const PairTargets& targets,
                                                         const std::vector<double>& means) {
  const std::vector<std::int32_t>& test = targets.edges.split.test;
  programs::TargetPrediction all;
  all.expectations.assign(targets.numbers.targets.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < test.size(); ++i) all.expectations[static_cast<std::size_t>(test[i])] = means[i];
  return programs::target_figures(*task.kind, targets.numbers, all, {}, test).front();
}

/// The share of the most frequent label among the test targets: the accuracy of a guess.
[[nodiscard]] inline double largest_test_share(const sheafnn::EdgeTargets& edges, sheafnn::Index class_count) {
  std::vector<double> counts(static_cast<std::size_t>(class_count));
  for (const std::int32_t t : edges.split.test) {
    ++counts[static_cast<std::size_t>(edges.labels[static_cast<std::size_t>(t)])];
  }
  return *std::max_element(counts.begin(), counts.end()) / static_cast<double>(edges.split.test.size());
}

}  // namespace links_program
