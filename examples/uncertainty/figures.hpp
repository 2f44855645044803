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
  Index bins = sheafnn::uncertainty::default_bins;
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

/// Results of several trainings.
struct Mean {
  Numbers values;
  void add(double value) { values.push_back(value); }
  /// Mean of the values that are known; NaN where none is.
  [[nodiscard]] double mean() const {
    const Numbers known = programs::known_values(values);
    return known.empty() ? std::nan("") : programs::summarise(known).mean;
  }
  /// The median of temperatures, some of which may be at their bounds.
  [[nodiscard]] double median() const {
    Numbers sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t n = sorted.size();
    return n == 0 ? std::nan("") : (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  }
};

/// The halves of nodes in an order that depends on the seed.
inline std::array<Nodes, 2> halves(Nodes nodes, std::uint64_t seed) {
  const auto key = [&](std::int32_t u) {
    return sheafnn::Stream{.seed = seed}.words(static_cast<std::uint32_t>(u), 1).word[0];
  };
  std::stable_sort(nodes.begin(), nodes.end(), [&](std::int32_t u, std::int32_t v) { return key(u) < key(v); });
  const auto middle = nodes.begin() + std::ssize(nodes) / 2;
  return {Nodes(nodes.begin(), middle), Nodes(middle, nodes.end())};
}

/// Conformal sets of the test nodes by these scores.
inline sheafnn::uncertainty::SetFigures test_sets(const Task& task, const Settings& s, const Numbers& scores) {
  using namespace sheafnn;
  using namespace sheafnn::layers;
  using namespace sheafnn::math;
  using namespace sheafnn::rotation;
  using namespace sheafnn::uncertainty;
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
  const char* format;  ///< of the table, where shares are percentages
  const char* key;     ///< of the report
  double shown = 1;    ///< factor of the table
};
inline constexpr std::array<Column, 11> columns = {{{"accuracy", "%.1f%%", "accuracy", 100},
                                                    {"NLL", "%.3f", "nll"},
                                                    {"Brier", "%.3f", "brier"},
                                                    {"ECE", "%.3f", "ece"},
                                                    {"calibrated", "%.3f", "expected_ece"},
                                                    {"debiased", "%+.3f", "debiased_ece"},
                                                    {"adaptive", "%.3f", "adaptive_ece"},
                                                    {"class-wise", "%.3f", "class_wise_ece"},
                                                    {"rejection", "%.3f", "rejection"},
                                                    {"coverage", "%.1f%%", "coverage", 100},
                                                    {"set size", "%.2f", "set_size"}}};

/// Predictions made in one way: a row of the table, and the bins of the reliability diagram.
struct Variant {
  std::string name;
  const char* key;  ///< of the report
  std::array<Mean, columns.size()> figures{};
  std::vector<sheafnn::uncertainty::ReliabilityBin> bins{};

  /// The mean of a column as the table shows it.
  [[nodiscard]] std::string text(std::size_t column) const {
    return programs::text(columns[column].format, columns[column].shown * figures[column].mean());
  }
  void add(const Task& task, const Settings& s, const Numbers& p) {
    using namespace sheafnn;
    using namespace sheafnn::layers;
    using namespace sheafnn::math;
    using namespace sheafnn::rotation;
    using namespace sheafnn::uncertainty;
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
    const double values[] = {accuracy(p, classes, labels, test),
                             negative_log_likelihood(p, classes, labels, test),
                             brier_score(p, classes, labels, test),
                             ece.error,
                             ece.expected,
                             ece.debiased(),
                             calibration_error(p, classes, labels, test, s.bins, Binning::equal_mass).error,
                             class_wise_calibration_error(p, classes, labels, test, s.bins).error,
                             rejection_curve(entropy, labels, predicted, test).area,
                             sets.coverage,
                             sets.mean_size};
    for (std::size_t k = 0; k < columns.size(); ++k) figures[k].add(values[k]);
    programs::add_bins(bins, reliability_diagram(p, classes, labels, test, s.bins));
  }
};

/// One measure of uncertainty, and what it is good for.
struct Measure {
  const char* name;
  const char* key;  ///< of the report
  std::vector<double> sheafnn::uncertainty::SampledPrediction::*values;
  Mean right{}, wrong{}, error_auc{}, area{}, unseen{}, unseen_auc{};
  Numbers of_right{}, of_wrong{}, of_unseen{};      ///< of all test nodes, for histograms
  std::vector<Mean> curve = std::vector<Mean>(96);  ///< accuracy when 0, 1, …, 95 % of the test nodes are rejected
};

/// A way to make conformal sets.
struct SetMethod {
  std::string name;
  const char* key;  ///< of the report
  Mean coverage{}, size{};
  std::vector<Index> of_size{};
};

/// What samples say: of single models, or of an ensemble.
struct Samples {
  std::string name;
  const char* key;  ///< of the report
  std::array<Measure, 3> measures = {
      {{"entropy", "entropy", &sheafnn::uncertainty::SampledPrediction::entropy},
       {"variance", "epistemic_variance", &sheafnn::uncertainty::SampledPrediction::epistemic_variance},
       {"mutual information", "mutual_information", &sheafnn::uncertainty::SampledPrediction::mutual_information}}};
  std::array<SetMethod, 3> methods = {
      {{"whole classes", "whole_classes"}, {"randomised", "randomised"}, {"over neighbours", "over_neighbours"}}};

  void add(const Task& task, const Settings& s, const sheafnn::uncertainty::SampledPrediction& p) {
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
      m.error_auc.add(sheafnn::uncertainty::detection_auc(values, wrong, right));
      m.unseen_auc.add(sheafnn::uncertainty::detection_auc(values, task.unseen, task.test));
      const sheafnn::uncertainty::RejectionCurve curve =
          sheafnn::uncertainty::rejection_curve(values, task.data.labels, predicted, task.test);
      m.area.add(curve.area);
      for (std::size_t percent = 0; percent < m.curve.size(); ++percent) {
        m.curve[percent].add(curve.accuracy[percent * curve.accuracy.size() / 100]);
      }
    }
    const Numbers random = sheafnn::uncertainty::adaptive_scores(p.probabilities, task.classes(), task.seed);
    const Numbers scores[] = {sheafnn::uncertainty::adaptive_scores(p.probabilities, task.classes()), random,
                              sheafnn::uncertainty::average_over_neighbours(task.data.graph, random, task.classes(),
                                                               s.neighbour_weight)};
    for (std::size_t k = 0; k < methods.size(); ++k) {
      const sheafnn::uncertainty::SetFigures sets = test_sets(task, s, scores[k]);
      methods[k].coverage.add(sets.coverage);
      methods[k].size.add(sets.mean_size);
      methods[k].of_size.resize(sets.of_size.size());
      for (std::size_t i = 0; i < sets.of_size.size(); ++i) methods[k].of_size[i] += sets.of_size[i];
    }
  }
};

/// Everything that is printed, drawn and written.
struct Figures {
  std::vector<Variant> variants = {{"single model", "single_model"},
                                   {"+ temperature", "single_model_temperature"},
                                   {"+ by neighbours", "single_model_temperatures_by_neighbours"},
                                   {"ensemble", "ensemble"},
                                   {"+ temperature", "ensemble_temperature"}};
  std::vector<Samples> samples = {{"single model", "single_model"}, {"ensemble", "ensemble"}};
  Mean temperature{}, disagreeing{}, agreeing{}, ensemble_temperature{};

  explicit Figures(bool ensembles) {
    if (ensembles) return;
    variants.erase(variants.begin() + 3, variants.end());
    samples.pop_back();
  }

  /// \param members  of the split, one for each seed
  void add(const Task& task, const Settings& s, const std::vector<sheafnn::uncertainty::SampledPrediction>& members) {
    using namespace sheafnn;
    using namespace sheafnn::layers;
    using namespace sheafnn::math;
    using namespace sheafnn::rotation;
    using namespace sheafnn::uncertainty;
    const Index classes = task.classes();
    for (const SampledPrediction& member : members) {
      variants[0].add(task, s, member.probabilities);
      samples[0].add(task, s, member);
      const Numbers z = logits(member.probabilities);
      add_with_temperature(task, s, z, temperature, variants[1]);
      const Numbers agreement = neighbour_agreement(task.data.graph, member.probabilities, classes);
      const GraphTemperature pair =
          fit_graph_temperature(z, classes, agreement, task.data.labels, task.validation);
      disagreeing.add(pair.disagreeing);
      agreeing.add(pair.agreeing);
      variants[2].add(task, s, apply_graph_temperature(z, classes, agreement, pair));
    }
    if (samples.size() < 2) return;
    const SampledPrediction ensemble = combine_members(members, classes);
    variants[3].add(task, s, ensemble.probabilities);
    samples[1].add(task, s, ensemble);
    add_with_temperature(task, s, logits(ensemble.probabilities), ensemble_temperature, variants[4]);
  }

 private:
  [[nodiscard]] static Numbers logits(Numbers probabilities) {
    for (double& x : probabilities) x = std::log(std::max(x, std::numeric_limits<double>::min()));
    return probabilities;
  }
  /// Fits a temperature on the validation nodes, and adds it and the predictions with it.
  static void add_with_temperature(const Task& task, const Settings& s, const Numbers& z, Mean& temperature,
                                   Variant& variant) {
    const double t = sheafnn::uncertainty::fit_temperature(z, task.classes(), task.data.labels, task.validation);
    temperature.add(t);
    variant.add(task, s, sheafnn::uncertainty::apply_temperature(z, task.classes(), t));
  }
};

}  // namespace uncertainty
