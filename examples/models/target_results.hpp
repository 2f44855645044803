/// \file
/// Results of trainings on numbers in place of classes (train --target): losses and scores of the table. For every target,
/// the errors and the conformal intervals of the test nodes, in the units of the files.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/uncertainty/intervals.hpp>
#include <string>
#include <vector>

#include "models/target_figures.hpp"
#include "models/train_results.hpp"

namespace programs {

/// See the file comment.
class TargetResults final : public Results {
 public:
  /// \param data  with targets
  TargetResults(const TrainSettings& settings, std::optional<sheafnn::Preset> preset, const NodeData& data)
      : Results(settings, preset), data_(data), errors_(data.target_names.size()) {}

  void print_header() const override {
    std::printf("split  %sbest epoch  validation loss  %8s  test loss  %8s  s/epoch\n",
                show_seeds_ ? "  seed  " : "", score_name(), score_name());
  }
  void add(const Run& run, const Training& training) override {
    const sheafnn::TrainResult& r = training.result;
    print_run(run, r);
    print_figures(r.validation_loss, r.validation_accuracy, r.test_nll, r.test_accuracy, "-");
    print_end(r);
    validation_loss_.push_back(r.validation_loss);
    validation_score_.push_back(r.validation_accuracy);
    test_loss_.push_back(r.test_nll);
    test_score_.push_back(r.test_accuracy);
    nlohmann::ordered_json one = add_training(run, training);
    one["validation_loss"] = r.validation_loss;
    one["validation_score"] = r.validation_accuracy;
    one["test_loss"] = r.test_nll;
    one["test_score"] = r.test_accuracy;
    if (training.targets->numeric()) {
      const std::vector<TargetFigures> figures =
          target_figures(*training.targets, data_, training.target_prediction, intervals_of(training),
                         data_.splits[run.split].test);
      for (std::size_t c = 0; c < errors_.size(); ++c) {
        errors_[c].mean_error.push_back(figures[c].mean_error);
        errors_[c].root_square.push_back(figures[c].root_square);
        errors_[c].coverage.push_back(figures[c].coverage);
        errors_[c].width.push_back(figures[c].width);
      }
    }
    add_json(std::move(one), run, r);
  }
  void print_summary() const override {
    if (empty()) return;
    const Summary loss = summary_of(validation_loss_), score = summary_of(validation_score_),
                  test = summary_of(test_loss_), test_score = summary_of(test_score_);
    const char* gap = show_seeds_ ? "        " : "";
    std::printf(" mean              %s", gap);
    print_figures(loss.mean, score.mean, test.mean, test_score.mean, "-");
    std::printf("  %7.4f\n", mean_epoch_seconds());
    std::printf("  std              %s", gap);
    print_figures(loss.deviation, score.deviation, test.deviation, test_score.deviation, "");
    std::printf("\n");
    for (std::size_t c = 0; c < errors_.size(); ++c) print_target(c);
  }
  [[nodiscard]] nlohmann::ordered_json report(const NodeData& data, const std::vector<std::string>& arguments,
                                              int signal, const std::string& error = "") const override {
    nlohmann::ordered_json report = first_json(data, arguments, signal, error);
    report["loss"] = settings_.loss;
    report["targets"] = data.target_names;
    if (empty()) return report;
    report["test_loss"] = summary_json(test_loss_);
    report["test_score"] = summary_json(test_score_);
    report["validation_loss"] = summary_json(validation_loss_);
    report["validation_score"] = summary_json(validation_score_);
    for (std::size_t c = 0; c < errors_.size(); ++c) {
      if (errors_[c].mean_error.empty()) continue;
      report["errors"].push_back({{"target", data.target_names[c]},
                                  {"mean_absolute_error", summary_json(errors_[c].mean_error)},
                                  {"root_mean_square_error", summary_json(errors_[c].root_square)},
                                  {"wanted_coverage", settings_.coverage},
                                  {"coverage", summary_json(errors_[c].coverage)},
                                  {"width", summary_json(errors_[c].width)}});
    }
    add_last(report);
    report["splits"] = per_split();
    return report;
  }

 private:
  /// The errors of one target, one value for each training.
  struct Errors {
    Values mean_error, root_square, coverage, width;
  };
  /// Losses of numbers have R², losses of labels and classes the accuracy.
  [[nodiscard]] const char* score_name() const {
    return has_accuracy(sheafnn::parse_name<sheafnn::TargetLoss>("--loss", settings_.loss)) ? "accuracy" : "R2";
  }
  static void print_figures(double loss, double score, double test_loss, double test_score, const char* unknown) {
    std::printf("%15s  %8s  %9s  %8s", text_or(unknown, "%.4f", loss).c_str(),
                text_or(unknown, "%.4f", score).c_str(), text_or(unknown, "%.4f", test_loss).c_str(),
                text_or(unknown, "%.4f", test_score).c_str());
  }
  /// One line about the test nodes.
  void print_target(std::size_t c) const {
    const Summary error = summary_of(errors_[c].mean_error), square = summary_of(errors_[c].root_square),
                  coverage = summary_of(errors_[c].coverage), width = summary_of(errors_[c].width);
    if (std::isnan(error.mean)) return;
    print_target_figures(data_.target_names[c], {error.mean, square.mean, coverage.mean, width.mean},
                         settings_.coverage);
  }
  [[nodiscard]] static sheafnn::uncertainty::Intervals intervals_of(const Training& training) {
    if (!training.targets->has_intervals()) return {};
    return training.targets->intervals(training.target_prediction);
  }

  NodeData data_;
  Values validation_loss_, validation_score_, test_loss_, test_score_;
  std::vector<Errors> errors_;
};

}  // namespace programs
