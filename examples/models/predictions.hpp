/// \file
/// What the trainings of one call of the program train predict, as one .npz file: numpy.load("predictions.npz").
///
/// | key                | shape     | what                                                                        |
/// | ------------------ | --------- | --------------------------------------------------------------------------- |
/// | split, seed        | R         | of each of R trainings                                                      |
/// | best_epoch         | R         | the epoch that is predicted with                                            |
/// | probabilities      | R × n × C | class probabilities of every node, the mean over the posterior samples      |
/// | entropy            | R × n     | of these distributions, in nats                                             |
/// | epistemic_variance | R × n     | mean over the classes of the variance over the samples; 0 of deterministic models |
/// | mutual_information | R × n     | epistemic part of the entropy, in nats; 0 of deterministic models           |
/// | role               | R × n     | of a node in the split: 1 training, 2 validation, 3 test, 0 none of them    |
/// | labels             | n         | class, −1 where unknown                                                     |
/// | class_names        | any       | their names, a CSV record in UTF-8, as bytes; left out where there are none |
///
/// With targets (--target) the file has, in place of probabilities, entropy, epistemic_variance, mutual_information and labels:
///
/// | key                | shape     | what                                                                        |
/// | ------------------ | --------- | --------------------------------------------------------------------------- |
/// | expectations       | R × n × k | expected numbers, or probabilities: of labels, of K ordered classes (k = K) |
/// | deviations         | R × n × k | standard deviations; left out where the loss has none                       |
/// | lower, upper       | R × n × k | conformal intervals; NaN without validation nodes, left out without any     |
/// | targets            | n × k     | NaN where unknown                                                           |
/// | target_names       | any       | their names, a CSV record in UTF-8, as bytes                                |
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/learned_file.hpp>
#include <sheafnn/io/npz_writer.hpp>
#include <string>
#include <vector>

#include "models/train_results.hpp"

namespace programs {

/// See the file comment.
class Predictions {
 public:
  explicit Predictions(const NodeData& data) : data_(data) {}

  /// \param training  a training that kept its prediction
  void add(const Run& run, const Training& training) {
    split_.push_back(static_cast<std::int64_t>(run.split));
    seed_.push_back(run.seed);
    best_epoch_.push_back(training.result.best_epoch);
    if (training.targets) {
      const TargetPrediction& prediction = training.target_prediction;
      append(expectations_, prediction.expectations);
      append(deviations_, prediction.deviations);
      sheafnn::uncertainty::Intervals intervals;
      if (training.targets->has_intervals()) {
        intervals = training.targets->intervals(prediction);
        any_interval_ = true;
      } else {
        intervals.lower.assign(data_.targets.size(), std::numeric_limits<double>::quiet_NaN());
        intervals.upper = intervals.lower;
      }
      append(lower_, intervals.lower);
      append(upper_, intervals.upper);
    } else {
      const sheafnn::uncertainty::SampledPrediction& prediction = training.outcome.prediction;
      append(probabilities_, prediction.probabilities);
      append(entropy_, prediction.entropy);
      append(epistemic_variance_, prediction.epistemic_variance);
      append(mutual_information_, prediction.mutual_information);
    }
    const std::size_t first = role_.size();
    role_.resize(first + static_cast<std::size_t>(data_.node_count()), 0);
    const sheafnn::Split& split = data_.splits[run.split];
    std::int32_t role = 0;
    for (const auto* nodes : {&split.train, &split.validation, &split.test}) {
      ++role;
      for (const std::int32_t u : *nodes) role_[first + static_cast<std::size_t>(u)] = role;
    }
  }

  /// \throws std::invalid_argument  more than 4 GiB
  /// \throws std::runtime_error     the file cannot be written; an old one is left as it was
  void write(const std::filesystem::path& path) const {
    const auto runs = static_cast<sheafnn::Index>(split_.size());
    const sheafnn::Index n = data_.node_count();
    sheafnn::io::NpzWriter writer;
    writer.add<std::int64_t>("split", {runs}, split_);
    writer.add<std::uint64_t>("seed", {runs}, seed_);
    writer.add<std::int64_t>("best_epoch", {runs}, best_epoch_);
    writer.add<std::int32_t>("role", {runs, n}, role_);
    if (data_.target_names.empty()) {
      writer.add<double>("probabilities", {runs, n, data_.class_count}, probabilities_);
      writer.add<double>("entropy", {runs, n}, entropy_);
      writer.add<double>("epistemic_variance", {runs, n}, epistemic_variance_);
      writer.add<double>("mutual_information", {runs, n}, mutual_information_);
      sheafnn::io::add_labels(writer, data_);
    } else {
      add_targets(writer, runs);
    }
    writer.write(path);
  }

 private:
  void add_targets(sheafnn::io::NpzWriter& writer, sheafnn::Index runs) const {
    const sheafnn::Index n = data_.node_count();
    const auto add = [&](const char* key, const std::vector<double>& values) {
      const auto columns = static_cast<sheafnn::Index>(values.size()) / std::max<sheafnn::Index>(runs * n, 1);
      if (!values.empty()) writer.add<double>(key, {runs, n, columns}, values);
    };
    add("expectations", expectations_);
    add("deviations", deviations_);
    if (any_interval_) {
      add("lower", lower_);
      add("upper", upper_);
    }
    writer.add<double>("targets", {n, static_cast<sheafnn::Index>(data_.target_names.size())}, data_.targets);
    sheafnn::io::add_names(writer, "target_names", data_.target_names);
  }
  static void append(std::vector<double>& to, const std::vector<double>& values) {
    to.insert(to.end(), values.begin(), values.end());
  }

  NodeData data_;
  std::vector<std::int64_t> split_, best_epoch_;
  std::vector<std::uint64_t> seed_;
  std::vector<double> probabilities_, entropy_, epistemic_variance_, mutual_information_;
  std::vector<double> expectations_, deviations_, lower_, upper_;
  bool any_interval_ = false;
  std::vector<std::int32_t> role_;
};

}  // namespace programs
