/// \file
/// What the reports of the programs have in common: facts of the run, the data, means and standard deviations.
#pragma once

#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <sheafnn/version.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/data_options.hpp"
#include "models/machine.hpp"
#include "models/progress.hpp"

namespace programs {

/// Mean and standard deviation of the known values; the mean of no values and the deviation of fewer than two values
/// are NaN.
[[nodiscard]] inline Summary summary_of(const std::vector<double>& values) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> known = known_values(values);
  Summary r = known.empty() ? Summary{nan, nan} : summarise(known);
  if (known.size() < 2) r.deviation = nan;
  return r;
}

/// The same and the values. NaN becomes null when it is written.
[[nodiscard]] inline nlohmann::ordered_json summary_json(const std::vector<double>& values) {
  const Summary s = summary_of(values);
  return {{"mean", s.mean}, {"std", s.deviation}, {"per_split", values}};
}

[[nodiscard]] inline nlohmann::ordered_json bin_json(const sheafnn::uncertainty::ReliabilityBin& bin) {
  return {{"lower", bin.lower},
          {"upper", bin.upper},
          {"count", bin.count},
          {"confidence", bin.confidence},
          {"accuracy", bin.accuracy}};
}

/// Adds the figures of a training on classes, in its best epoch.
inline void add_class_figures(nlohmann::ordered_json& one, const sheafnn::TrainResult& result) {
  one["validation_accuracy"] = result.validation_accuracy;
  one["validation_loss"] = result.validation_loss;
  one["test_accuracy"] = result.test_accuracy;
  one["nll"] = result.test_nll;
  one["ece"] = result.test_ece;
  one["roc_auc"] = result.test_roc_auc;
  one["average_precision"] = result.test_average_precision;
  one["macro_f1"] = result.test_macro_f1;
  one["brier"] = result.test_brier;
}

/// The text of a report. Names of files may hold what is not UTF-8; U+FFFD stands for it.
[[nodiscard]] inline std::string report_text(const nlohmann::ordered_json& report) {
  return report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

/// A command line as a shell reads it.
[[nodiscard]] inline std::string command_line(const std::string& program,
                                              const std::vector<std::string>& arguments) {
  std::string r = program;
  for (const std::string& argument : arguments) {
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:+";
    const bool quote = argument.empty() || argument.find_first_not_of(plain) != std::string::npos;
    r += " ";
    if (!quote) {
      r += argument;
      continue;
    }
    r += "'";
    for (const char c : argument) r += c == '\'' ? "'\\''" : std::string(1, c);
    r += "'";
  }
  return r;
}

/// Where, when and with what a program runs.
class RunFacts {
 public:
  explicit RunFacts(std::string program) : program_(std::move(program)) {}
  /// \param arguments  of the program
  [[nodiscard]] nlohmann::ordered_json json(const std::vector<std::string>& arguments) const {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
    return {{"version", SHEAFNN_VERSION_STRING},
            {"commit", build_commit()},
            {"command", command_line(program_, arguments)},
            {"machine", machine()},
            {"started", started_},
            {"seconds", seconds.count()}};
  }

 private:
  std::string program_, started_ = utc_time();
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The first entries of a report: the dataset, and what was done to its splits.
[[nodiscard]] inline nlohmann::ordered_json data_json(const NodeData& data, const DataOptions& options) {
  nlohmann::ordered_json r = {{"dataset", data.name}};
  if (!options.make_splits.empty()) {
    r["made_splits"] = {{"percentages", options.make_splits},
                        {"stratified", options.splits.stratified},
                        {"count", options.splits.count},
                        {"seed", options.splits.seed}};
  }
  if (options.exchange_masks) r["exchanged_masks"] = true;
  return r;
}

}  // namespace programs
