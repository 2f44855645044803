/// \file
/// What the program uncertainty measures of the predictions on one split after another.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/random/stream.hpp>
#include <sheafnn/uncertainty.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/progress.hpp"

namespace uncertainty {

using sheafnn::Index;
using Numbers = std::vector<double>;
using Nodes = std::vector<std::int32_t>;

struct Settings {
  double alpha = 0.1;             ///< share of labels that conformal sets may miss
  double neighbour_weight = 0.5;  ///< λ of scores averaged over neighbours
  Index bins = sheafnn::default_bins;
  bool halve_test_nodes =
      false;  ///< conformal sets: a half of the test nodes calibrates the other, and the other way round
};

/// A split, its nodes with known labels.
struct Task {
  const sheafnn::Dataset& data;
  Nodes validation, test;
  Nodes unseen;            ///< test nodes of the class that was left out
  std::uint64_t seed = 0;  ///< of the shares of randomised scores and of the halves

  [[nodiscard]] Index classes() const { return data.class_count; }
};

/// Numbers of several trainings.
struct Mean {
  Numbers values;
  void add(double value) { values.push_back(value); }
  /// Of those that are known; NaN where none is.
  [[nodiscard]] double mean() const {
    const Numbers known = programs::known_values(values);
    return known.empty() ? std::nan("") : programs::summarise(known).mean;
  }
  /// Of temperatures, some of which may be at their bounds.
  [[nodiscard]] double median() const {
    Numbers sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t n = sorted.size();
    return n == 0 ? std::nan("") : (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  }
};

/// The halves of nodes in an order that the seed decides.
inline std::array<Nodes, 2> halves(Nodes nodes, std::uint64_t seed) {
  const auto key = [&](std::int32_t u) {
    return sheafnn::Stream{.seed = seed}.words(static_cast<std::uint32_t>(u), 1).word[0];
  };
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::int32_t u, std::int32_t v) { return key(u) < key(v); });
  const auto middle = nodes.begin() + std::ssize(nodes) / 2;
  return {Nodes(nodes.begin(), middle), Nodes(middle, nodes.end())};
}

/// Conformal sets of the test nodes by these scores.
inline sheafnn::SetFigures test_sets(const Task& task, const Settings& s, const Numbers& scores) {
  using namespace sheafnn;
  const auto evaluate = [&](const Nodes& calibration, const Nodes& evaluated) {
    const double threshold = conformal_threshold(scores, task.classes(), task.data.labels, calibration, s.alpha);
    return evaluate_sets(scores, task.classes(), task.data.labels, evaluated, threshold);
  };
  if (!s.halve_test_nodes || task.test.size() < 2) return evaluate(task.validation, task.test);
  const auto [first, second] = halves(task.test, task.seed);
  SetFigures r = evaluate(first, second);
  const SetFigures other = evaluate(second, first);
  const double share = static_cast<double>(first.size()) / static_cast<double>(task.test.size());
  r.coverage += share * (other.coverage - r.coverage);
  r.mean_size += share * (other.mean_size - r.mean_size);
  for (std::size_t k = 0; k < r.of_size.size(); ++k) r.of_size[k] += other.of_size[k];
  return r;
}

/// A column of the first table.
struct Column {
  const char* name;
  const char* format;
};
inline constexpr std::array<Column, 11> columns = {{{"accuracy", "%.1f%%"},
                                                    {"NLL", "%.3f"},
                                                    {"Brier", "%.3f"},
                                                    {"ECE", "%.3f"},
                                                    {"calibrated", "%.3f"},
                                                    {"debiased", "%+.3f"},
                                                    {"adaptive", "%.3f"},
                                                    {"class-wise", "%.3f"},
                                                    {"rejection", "%.3f"},
                                                    {"coverage", "%.1f%%"},
                                                    {"set size", "%.2f"}}};

/// Predictions made in one way: a row of the table, and the bins of the reliability diagram.
struct Variant {
  std::string name;
  std::array<Mean, columns.size()> figures{};
  std::vector<sheafnn::ReliabilityBin> bins{};

  void add(const Task& task, const Settings& s, const Numbers& p) {
    using namespace sheafnn;
    const Index classes = task.classes();
    const std::span<const std::int32_t> labels = task.data.labels, test = task.test;
    Nodes predicted;
    Numbers entropy;
    for (Index u = 0; u < task.data.node_count(); ++u) {
      predicted.push_back(static_cast<std::int32_t>(sheafnn::detail::most_probable(p, classes, u)));
      entropy.push_back(predictive_entropy(
          std::span(p).subspan(static_cast<std::size_t>(u * classes), static_cast<std::size_t>(classes))));
    }
    const CalibrationError ece = calibration_error(p, classes, labels, test, s.bins);
    const SetFigures sets = test_sets(task, s, adaptive_scores(p, classes, task.seed));
    const double values[] = {100 * accuracy(p, classes, labels, test),
                             negative_log_likelihood(p, classes, labels, test),
                             brier_score(p, classes, labels, test),
                             ece.error,
                             ece.expected,
                             ece.debiased(),
                             calibration_error(p, classes, labels, test, s.bins, Binning::equal_mass).error,
                             class_wise_calibration_error(p, classes, labels, test, s.bins).error,
                             rejection_curve(entropy, labels, predicted, test).area,
                             100 * sets.coverage,
                             sets.mean_size};
    for (std::size_t k = 0; k < columns.size(); ++k) figures[k].add(values[k]);
    programs::add_bins(bins, reliability_diagram(p, classes, labels, test, s.bins));
  }
};

/// One measure of uncertainty, and what it is good for.
struct Measure {
  const char* name;
  std::vector<double> sheafnn::SampledPrediction::*values;
  Mean right{}, wrong{}, error_auc{}, area{}, unseen{}, unseen_auc{};
  Numbers of_right{}, of_wrong{}, of_unseen{};      ///< of all test nodes, for histograms
  std::vector<Mean> curve = std::vector<Mean>(96);  ///< accuracy when 0, 1, …, 95 % of the test nodes are rejected
};

/// A way to make conformal sets.
struct SetMethod {
  std::string name;
  Mean coverage{}, size{};
  std::vector<Index> of_size{};
};

/// What samples say: of single models, or of an ensemble.
struct Samples {
  std::string name;
  std::array<Measure, 3> measures = {{{"entropy", &sheafnn::SampledPrediction::entropy},
                                      {"variance", &sheafnn::SampledPrediction::epistemic_variance},
                                      {"mutual information", &sheafnn::SampledPrediction::mutual_information}}};
  std::array<SetMethod, 3> methods = {{{"whole classes"}, {"randomised"}, {"over neighbours"}}};

  void add(const Task& task, const Settings& s, const sheafnn::SampledPrediction& p) {
    Nodes predicted, right, wrong;
    for (Index u = 0; u < task.data.node_count(); ++u) {
      predicted.push_back(
          static_cast<std::int32_t>(sheafnn::detail::most_probable(p.probabilities, task.classes(), u)));
    }
    for (const std::int32_t u : task.test) {
      const std::size_t at = static_cast<std::size_t>(u);
      (task.data.labels[at] == predicted[at] ? right : wrong).push_back(u);
    }
    for (Measure& m : measures) {
      const Numbers& values = p.*m.values;
      const auto take = [&](const Nodes& nodes, Mean& mean, Numbers& all) {
        Numbers of;
        for (const std::int32_t u : nodes) of.push_back(values[static_cast<std::size_t>(u)]);
        mean.add(of.empty() ? std::nan("") : programs::summarise(of).mean);
        all.insert(all.end(), of.begin(), of.end());
      };
      take(right, m.right, m.of_right);
      take(wrong, m.wrong, m.of_wrong);
      take(task.unseen, m.unseen, m.of_unseen);
      m.error_auc.add(sheafnn::detection_auc(values, wrong, right));
      m.unseen_auc.add(sheafnn::detection_auc(values, task.unseen, task.test));
      const sheafnn::RejectionCurve curve =
          sheafnn::rejection_curve(values, task.data.labels, predicted, task.test);
      m.area.add(curve.area);
      for (std::size_t percent = 0; percent < m.curve.size(); ++percent) {
        m.curve[percent].add(curve.accuracy[percent * curve.accuracy.size() / 100]);
      }
    }
    const Numbers random = sheafnn::adaptive_scores(p.probabilities, task.classes(), task.seed);
    const Numbers scores[] = {sheafnn::adaptive_scores(p.probabilities, task.classes()), random,
                              sheafnn::average_over_neighbours(task.data.graph, random, task.classes(),
                                                               s.neighbour_weight)};
    for (std::size_t k = 0; k < methods.size(); ++k) {
      const sheafnn::SetFigures sets = test_sets(task, s, scores[k]);
      methods[k].coverage.add(sets.coverage);
      methods[k].size.add(sets.mean_size);
      methods[k].of_size.resize(sets.of_size.size());
      for (std::size_t i = 0; i < sets.of_size.size(); ++i) methods[k].of_size[i] += sets.of_size[i];
    }
  }
};

/// Everything that is printed and drawn.
struct Figures {
  std::vector<Variant> variants = {
      {"single model"}, {"+ temperature"}, {"+ by neighbours"}, {"ensemble"}, {"+ temperature"}};
  std::vector<Samples> samples = {{"single model"}, {"ensemble"}};
  Mean temperature{}, disagreeing{}, agreeing{}, ensemble_temperature{};

  explicit Figures(bool ensembles) {
    if (ensembles) return;
    variants.resize(3);
    samples.resize(1);
  }

  /// \param members  of the split, one for each seed
  void add(const Task& task, const Settings& s, const std::vector<sheafnn::SampledPrediction>& members) {
    using namespace sheafnn;
    const Index classes = task.classes();
    const std::span<const std::int32_t> labels = task.data.labels;
    const auto logits = [](Numbers p) {
      for (double& x : p) x = std::log(std::max(x, std::numeric_limits<double>::min()));
      return p;
    };
    for (const SampledPrediction& member : members) {
      variants[0].add(task, s, member.probabilities);
      samples[0].add(task, s, member);
      const Numbers z = logits(member.probabilities);
      const double t = fit_temperature(z, classes, labels, task.validation);
      temperature.add(t);
      variants[1].add(task, s, apply_temperature(z, classes, t));
      const Numbers agreement = neighbour_agreement(task.data.graph, member.probabilities, classes);
      const GraphTemperature pair = fit_graph_temperature(z, classes, agreement, labels, task.validation);
      disagreeing.add(pair.disagreeing);
      agreeing.add(pair.agreeing);
      variants[2].add(task, s, apply_graph_temperature(z, classes, agreement, pair));
    }
    if (samples.size() < 2) return;
    const SampledPrediction ensemble = combine_members(members, classes);
    variants[3].add(task, s, ensemble.probabilities);
    samples[1].add(task, s, ensemble);
    const Numbers z = logits(ensemble.probabilities);
    const double t = fit_temperature(z, classes, labels, task.validation);
    ensemble_temperature.add(t);
    variants[4].add(task, s, apply_temperature(z, classes, t));
  }
};

}  // namespace uncertainty
