/// \file
/// What became of the trainings of one call of the program train: the rows of its table, and its report. Of classes here, of
/// numbers in target_results.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sheafnn/bsnn/presets.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <span>
#include <string>
#include <vector>

#include "models/progress.hpp"
#include "models/registry.hpp"
#include "models/report.hpp"
#include "models/sheaf_figures.hpp"
#include "models/target_kind.hpp"
#include "models/train_settings.hpp"

namespace programs {

/// One training: a split and a seed.
struct Run {
  std::size_t split;
  std::uint64_t seed;
};

/// A training that is over.
struct Training {
  sheafnn::TrainResult result;
  TrainOutcome outcome;
  bool begun = true;                       ///< false: an interruption came first
  std::optional<TargetKind> targets = {};  ///< of a training on targets
  TargetPrediction target_prediction = {};
};

/// What the results of all trainings have in common.
class Results {
 public:
  Results(const TrainSettings& settings, std::optional<sheafnn::Preset> preset)
      : settings_(settings), preset_(preset), show_seeds_(!settings.seeds.empty()) {}
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  virtual ~Results() = default;

  virtual void print_header() const = 0;
  /// Adds a row and prints it.
  virtual void add(const Run& run, const Training& training) = 0;
  /// Prints means and standard deviations.
  virtual void print_summary() const = 0;
  /// \param arguments  of the program
  /// \param signal     that interrupted it, or 0
  /// \param error      why a training failed, after which no training follows; empty: no training failed
  [[nodiscard]] virtual nlohmann::ordered_json report(const NodeData& data,
                                                      const std::vector<std::string>& arguments, int signal,
                                                      const std::string& error = "") const = 0;
  /// Is there no row yet?
  [[nodiscard]] bool empty() const noexcept { return epoch_seconds_.empty(); }

 protected:
  using Values = std::vector<double>;
  /// Prints the first columns of a row.
  void print_run(const Run& run, const sheafnn::TrainResult& result) const {
    std::printf("%5zu  ", run.split);
    if (show_seeds_) std::printf("%6llu  ", static_cast<unsigned long long>(run.seed));
    std::printf("%10td  ", result.best_epoch);
  }
  /// Prints the last column of a row.
  static void print_end(const sheafnn::TrainResult& result) {
    std::printf("  %7.4f%s\n", result.epoch_seconds, is_interrupted(result) ? "  interrupted" : "");
  }
  /// Keeps the times and sizes of a training. \returns  what a report says of it first
  [[nodiscard]] nlohmann::ordered_json add_training(const Run& run, const Training& training) {
    const sheafnn::TrainResult& result = training.result;
    epoch_seconds_.push_back(result.epoch_seconds);
    train_seconds_.push_back(result.train_seconds);
    evaluate_seconds_.push_back(result.evaluate_seconds);
    parameters_ = training.outcome.parameters;
    resolved_ = training.outcome.resolved;
    nlohmann::ordered_json one = {{"split", run.split},
                                  {"best_epoch", result.best_epoch},
                                  {"epochs", result.history.size()},
                                  {"stopped_by",
                                   is_interrupted(result) ? "interruption" : to_string(result.stop_reason)}};
    return one;
  }
  /// Keeps what a report says of a training.
  void add_json(nlohmann::ordered_json one, const Run& run, const sheafnn::TrainResult& result) {
    if (show_seeds_) one["seed"] = run.seed;
    if (settings_.history) one["history"] = history_json(result.history, settings_.train.stop_on);
    per_split_.push_back(std::move(one));
  }
  /// The beginning of a report: data, model and options.
  [[nodiscard]] nlohmann::ordered_json first_json(const NodeData& data, const std::vector<std::string>& arguments,
                                                  int signal, const std::string& error) const;
  /// Its times and its number of parameters.
  void add_last(nlohmann::ordered_json& report) const {
    report["seconds_per_epoch"] = {{"all", summarise(epoch_seconds_).mean},
                                   {"train", summarise(train_seconds_).mean},
                                   {"evaluate", summarise(evaluate_seconds_).mean}};
    report["parameters"] = parameters_;
  }
  [[nodiscard]] const nlohmann::ordered_json& per_split() const noexcept { return per_split_; }
  [[nodiscard]] double mean_epoch_seconds() const { return summarise(epoch_seconds_).mean; }

  const TrainSettings& settings_;
  std::optional<sheafnn::Preset> preset_;
  bool show_seeds_;

 private:
  [[nodiscard]] static bool is_interrupted(const sheafnn::TrainResult& result) {
    return result.stop_reason == sheafnn::StopReason::callback;
  }
  /// \param stop_on  its metric, where it is one, belongs to the history
  [[nodiscard]] static nlohmann::ordered_json history_json(const std::vector<sheafnn::EpochReport>& history,
                                                           sheafnn::StopOn stop_on);

  RunFacts facts_{"train"};
  Values epoch_seconds_, train_seconds_, evaluate_seconds_;
  nlohmann::ordered_json per_split_ = nlohmann::ordered_json::array();
  sheafnn::Index parameters_ = 0;
  NetworkOptions resolved_;
};

/// The results of classifications; see the file comment.
class TrainResults final : public Results {
 public:
  TrainResults(const TrainSettings& settings, std::optional<sheafnn::Preset> preset)
      : Results(settings, preset), show_permuted_(has_learned_sheaf(settings)) {}

  void print_header() const override {
    std::printf("split  %sbest epoch  ", show_seeds_ ? "  seed  " : "");
    if (is_metric(settings_.train.stop_on)) {
      std::printf("%s: validation    test  ", shown(settings_.train.stop_on).c_str());
    }
    std::printf("validation     test     NLL     ECE  %ss/epoch\n", show_permuted_ ? "permuted  " : "");
  }
  void add(const Run& run, const Training& training) override;
  /// Prints means and standard deviations, and what became of the sheaves.
  void print_summary() const override;
  [[nodiscard]] nlohmann::ordered_json report(const NodeData& data, const std::vector<std::string>& arguments,
                                              int signal, const std::string& error = "") const override;

 private:
  /// The two columns of the metric of --stop-on, if there is one, of validation and test nodes.
  void print_metric(double validation, double test, const char* unknown = "-") const {
    if (!is_metric(settings_.train.stop_on)) return;
    std::printf("%*s  %6s  ", static_cast<int>(to_string(settings_.train.stop_on).size()) + 12,
                text_or(unknown, "%.3f", validation).c_str(), text_or(unknown, "%.3f", test).c_str());
  }
  /// Four columns of the table. \param unknown  what stands for a number that is unknown
  static void print_figures(double validation, double test, double nll, double ece, const char* unknown = "-") {
    std::printf("%10s  %7s  %6s  %6s", text_or(unknown, "%.1f%%", 100 * validation).c_str(),
                text_or(unknown, "%.1f%%", 100 * test).c_str(), text_or(unknown, "%.3f", nll).c_str(),
                text_or(unknown, "%.3f", ece).c_str());
  }
  /// The column with what permuting the maps adds to the loss of the validation nodes, if there is one.
  void print_permuted(double rise, const char* format = "%+.3f", const char* unknown = "-") const {
    if (show_permuted_) std::printf("  %8s", text_or(unknown, format, rise).c_str());
  }
  /// What is added to the loss of each training by other maps.
  [[nodiscard]] Values rises(sheafnn::ChangedSheafLoss sheafnn::SheafUse::*changed) const {
    Values r;
    for (const sheafnn::SheafUse& use : sheaf_use_) r.push_back((use.*changed).rise);
    return r;
  }
  /// What other maps add to the loss in all trainings, and how many trainings do not use their sheaf.
  [[nodiscard]] nlohmann::ordered_json sheaf_json() const;
  void add_classes(nlohmann::ordered_json& report, const NodeData& data, sheafnn::Index classes) const;

  bool show_permuted_;
  Values validation_, test_, nll_, ece_;
  Values validation_metric_, test_metric_, roc_auc_, average_precision_, macro_f1_, brier_;
  std::vector<sheafnn::SheafUse> sheaf_use_;  ///< of the trainings that have it
  std::vector<sheafnn::uncertainty::ReliabilityBin> reliability_;
  std::vector<sheafnn::Index> confusion_;  ///< C × C, of all rows; empty without test nodes
};

inline void TrainResults::add(const Run& run, const Training& training) {
  const sheafnn::TrainResult& result = training.result;
  const TrainOutcome& outcome = training.outcome;
  print_run(run, result);
  print_metric(result.validation_metric, result.test_metric);
  print_figures(result.validation_accuracy, result.test_accuracy, result.test_nll, result.test_ece);
  print_permuted(outcome.sheaf_use ? outcome.sheaf_use->permuted.rise : sheafnn::SheafUse::unknown);
  print_end(result);
  validation_.push_back(result.validation_accuracy);
  test_.push_back(result.test_accuracy);
  nll_.push_back(result.test_nll);
  ece_.push_back(result.test_ece);
  validation_metric_.push_back(result.validation_metric);
  test_metric_.push_back(result.test_metric);
  roc_auc_.push_back(result.test_roc_auc);
  average_precision_.push_back(result.test_average_precision);
  macro_f1_.push_back(result.test_macro_f1);
  brier_.push_back(result.test_brier);
  add_bins(reliability_, outcome.reliability);
  if (confusion_.empty()) confusion_.resize(outcome.confusion.size());
  for (std::size_t i = 0; i < outcome.confusion.size(); ++i) confusion_[i] += outcome.confusion[i];
  nlohmann::ordered_json one = add_training(run, training);
  add_class_figures(one, result);
  if (is_metric(settings_.train.stop_on)) one["validation_metric"] = result.validation_metric;
  if (outcome.sheaf_use) {
    one["sheaf"] = sheaf_use_json(*outcome.sheaf_use);
    sheaf_use_.push_back(*outcome.sheaf_use);
  }
  add_json(std::move(one), run, result);
}

inline void TrainResults::print_summary() const {
  if (test_.empty()) return;
  const char* gap = show_seeds_ ? "        " : "";
  const Summary validation = summary_of(validation_), test = summary_of(test_), nll = summary_of(nll_),
                ece = summary_of(ece_), metric = summary_of(validation_metric_),
                test_metric = summary_of(test_metric_), permuted = summary_of(rises(&sheafnn::SheafUse::permuted));
  std::printf(" mean              %s", gap);
  print_metric(metric.mean, test_metric.mean);
  print_figures(validation.mean, test.mean, nll.mean, ece.mean);
  print_permuted(permuted.mean);
  std::printf("  %7.4f\n", mean_epoch_seconds());
  std::printf("  std              %s", gap);
  print_metric(metric.deviation, test_metric.deviation, "");
  print_figures(validation.deviation, test.deviation, nll.deviation, ece.deviation, "");
  print_permuted(permuted.deviation, "%.3f", "");
  std::printf("\n");
  const std::size_t trainings = sheaf_use_.size();
  if (trainings > 0 && sheafnn::has_figures(sheaf_use_.front())) std::printf("\n");
  print_sheaf_use(sheaf_use_,
                  trainings > 1 ? sheafnn::detail::concat(", medians of ", trainings, " trainings") : "");
}

inline nlohmann::ordered_json TrainResults::sheaf_json() const {
  const std::string said = sheafnn::warning(std::span(sheaf_use_));
  return {{"unused", std::count_if(sheaf_use_.begin(), sheaf_use_.end(), sheafnn::is_unused)},
          {"permuted", summary_json(rises(&sheafnn::SheafUse::permuted))},
          {"prior", summary_json(rises(&sheafnn::SheafUse::prior))},
          {"identity", summary_json(rises(&sheafnn::SheafUse::identity))},
          {"warning", said.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(said)}};
}

inline nlohmann::ordered_json Results::history_json(const std::vector<sheafnn::EpochReport>& history,
                                                    sheafnn::StopOn stop_on) {
  nlohmann::ordered_json r;
  for (const sheafnn::EpochReport& e : history) {
    r["loss"].push_back(e.loss);
    r["nll"].push_back(e.nll);
    r["kl"].push_back(e.kl);
    r["validation_loss"].push_back(e.validation_loss);
    r["validation_accuracy"].push_back(e.validation_accuracy);
    r["test_accuracy"].push_back(e.test_accuracy);
    if (!is_metric(stop_on)) continue;
    r["validation_metric"].push_back(e.validation_metric);
    r["test_metric"].push_back(e.test_metric);
  }
  return r;
}

/// Names of the classes; of the test nodes confusion matrix (rows: labels, columns: predictions) and F1.
inline void TrainResults::add_classes(nlohmann::ordered_json& report, const NodeData& data,
                                      sheafnn::Index classes) const {
  if (!data.class_names.empty()) report["classes"] = data.class_names;
  if (confusion_.empty()) return;
  const std::vector<double> f1 = sheafnn::uncertainty::f1_scores(confusion_, classes);
  report["f1"] = {{"macro", sheafnn::uncertainty::mean_f1(confusion_, classes)}, {"per_class", f1}};
  for (sheafnn::Index c = 0; c < classes; ++c) {
    const auto row = confusion_.begin() + c * classes;
    report["confusion_matrix"].push_back(std::vector<sheafnn::Index>(row, row + classes));
  }
}

inline nlohmann::ordered_json Results::first_json(const NodeData& data, const std::vector<std::string>& arguments,
                                                  int signal, const std::string& error) const {
  nlohmann::ordered_json report = data_json(data, settings_.data);
  report["model"] = settings_.model;
  report["maps"] = settings_.maps;
  report["preset"] = preset_ ? nlohmann::ordered_json(to_string(*preset_)) : nlohmann::ordered_json();
  report["interrupted"] = signal != 0;
  if (!error.empty()) report["error"] = as_utf8(error);
  report["run"] = facts_.json(arguments);
  if (empty()) return report;
  report["options"] = option_json(settings_, resolved_);
  report["features_treated"] = with_options_of(settings_.model, resolved_, [](const auto& options) {
    return options.feature_plan.describe();
  });
  if (show_seeds_) report["options"].erase("seed");  // each training says its own
  return report;
}

inline nlohmann::ordered_json TrainResults::report(const NodeData& data, const std::vector<std::string>& arguments,
                                                   int signal, const std::string& error) const {
  nlohmann::ordered_json report = first_json(data, arguments, signal, error);
  if (empty()) return report;
  report["test_accuracy"] = summary_json(test_);
  report["validation_accuracy"] = summary_json(validation_);
  report["ece"] = summary_of(ece_).mean;
  report["nll"] = summary_of(nll_).mean;
  report["roc_auc"] = summary_json(roc_auc_);
  report["average_precision"] = summary_json(average_precision_);
  report["macro_f1"] = summary_json(macro_f1_);
  report["brier"] = summary_json(brier_);
  if (is_metric(settings_.train.stop_on)) report["validation_metric"] = summary_json(validation_metric_);
  add_classes(report, data, data.class_count);
  add_last(report);
  if (!sheaf_use_.empty()) report["sheaf"] = sheaf_json();
  report["splits"] = per_split();
  for (const sheafnn::uncertainty::ReliabilityBin& bin : reliability_) {
    report["reliability"].push_back(bin_json(bin));
  }
  return report;
}

}  // namespace programs
