/// \file
/// TargetKind: what a network learns of columns of numbers in place of classes. It comes from --target and --loss or from
/// the metadata of a checkpoint, which the Python package reads and writes as well.
///
/// | metadata                               | what                                                                       |
/// | -------------------------------------- | -------------------------------------------------------------------------- |
/// | targets                                | numbers, multilabel or ordinal                                             |
/// | target_loss                            | of numbers: squared, gaussian or poisson                                   |
/// | target_names                           | k names, a CSV record                                                      |
/// | target_mean, target_scale, base_rates  | TargetScaling, k doubles in hexadecimal bytes                              |
/// | class_kind, class_dtype, class_data    | values of ordered classes, K values in hexadecimal bytes of NumPy's type  |
/// | interval_coverage, interval_thresholds | conformal intervals from the validation nodes: coverage, and k thresholds  |
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <sheafnn/bsnn/any_target_loss.hpp>
#include <sheafnn/bsnn/target_scaling.hpp>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/io/csv.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/npy.hpp>
#include <sheafnn/uncertainty/intervals.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/class_names.hpp"
#include "models/node_data.hpp"

namespace programs {

using sheafnn::Index;

/// Is the score of a loss the accuracy of labels or classes? Otherwise it is R² of numbers, which have a mean.
[[nodiscard]] inline bool has_accuracy(sheafnn::TargetLoss loss) {
  return loss == sheafnn::TargetLoss::multilabel || loss == sheafnn::TargetLoss::ordinal;
}

/// What predictions of n nodes mean, in the units of the files.
struct TargetPrediction {
  std::vector<double> expectations;  ///< n × k; of ordered classes the probabilities, n × K
  std::vector<double> deviations;    ///< n × k; empty for losses without
};

/// The mean of K samples of some numbers each, one sample after the other.
[[nodiscard]] inline std::vector<double> mean_of_samples(const std::vector<double>& samples, std::size_t numbers) {
  std::vector<double> r(numbers, 0.0);
  for (std::size_t i = 0; i < samples.size(); ++i) r[i % numbers] += samples[i];
  for (double& sum : r) sum /= static_cast<double>(samples.size() / numbers);
  return r;
}

/// See the file comment.
class TargetKind {
 public:
  /// The kind of a training.
  ///
  /// \param data   with targets, whose names and ordered classes it takes
  /// \param train  training nodes, which determine the scaling
  /// \throws std::invalid_argument  several columns of ordered classes, fewer than two of them, a target that no training node
  ///         knows, or targets that the loss does not take
  TargetKind(sheafnn::TargetLoss loss, const NodeData& data, const std::vector<std::int32_t>& train)
      : loss_(loss), names_(data.target_names) {
    if (loss == sheafnn::TargetLoss::ordinal) {
      sheafnn::require(names_.size() == 1, "--target", names_.size(), "ordered classes are one column");
      for (const double y : data.targets) {
        if (!std::isnan(y)) classes_.push_back(y);
      }
      std::sort(classes_.begin(), classes_.end());
      classes_.erase(std::unique(classes_.begin(), classes_.end()), classes_.end());
      sheafnn::require(classes_.size() >= 2 && classes_.size() <= most_classes, "--target", names_.front(),
                       sheafnn::detail::concat("it has ", classes_.size(),
                                               " different values; ordered classes are 2 to ", most_classes));
    }
    try {
      scaling_ = sheafnn::TargetScaling::fit(loss, view(data.targets), train);
      of(data).validate(data.node_count(), outputs());
    } catch (const std::invalid_argument& error) {
      std::string columns;
      for (const std::string& name : names_) columns += (columns.empty() ? "" : ", ") + name;
      throw std::invalid_argument(sheafnn::detail::concat(data.name, ": targets ", columns, ": ", error.what()));
    }
  }
  /// The kind of a checkpoint. \throws std::runtime_error  naming the file: a part is missing or damaged
  TargetKind(const std::string& file, const std::map<std::string, std::string>& notes, Index outputs) {
    const std::string targets = note(file, notes, "targets");
    sheafnn::io::detail::naming_file(file, [&] {
      const auto found = notes.find("target_loss");
      const std::string kind = targets != "numbers" ? targets : found == notes.end() ? "squared" : found->second;
      loss_ = sheafnn::parse_name<sheafnn::TargetLoss>("target_loss", kind);
    });
    const Index k = loss_ == sheafnn::TargetLoss::gaussian  ? outputs / 2
                    : loss_ == sheafnn::TargetLoss::ordinal ? 1
                                                            : outputs;
    const std::size_t count = static_cast<std::size_t>(k);
    if (loss_ == sheafnn::TargetLoss::ordinal) {
      classes_ = classes_of(file, notes, static_cast<std::size_t>(outputs) + 1);
    }
    names_ = sheafnn::io::saved_names(file, notes, "target_names");
    if (names_.empty()) {
      for (std::size_t c = 0; c < count; ++c) names_.push_back("target_" + std::to_string(c));
    }
    const bool scaled = targets == "numbers";
    scaling_.mean = scaled ? numbers(file, notes, "target_mean") : std::vector<double>(count, 0.0);
    scaling_.scale = scaled ? numbers(file, notes, "target_scale") : std::vector<double>(count, 1.0);
    if (loss_ == sheafnn::TargetLoss::poisson) scaling_.base_rates = numbers(file, notes, "base_rates");
    if (notes.contains("interval_thresholds")) {
      coverage_ = numbers(file, notes, "interval_coverage").at(0);
      thresholds_ = numbers(file, notes, "interval_thresholds");
    }
    const auto check = [&](const char* name, std::size_t size, std::size_t wanted) {
      if (size != wanted) sheafnn::io::detail::fail(file, name, " has ", size, " entries; expected ", wanted);
    };
    check("target_names", names_.size(), count);
    check("target_mean", scaling_.mean.size(), count);
    check("target_scale", scaling_.scale.size(), count);
    check("base_rates", scaling_.base_rates.size(), loss_ == sheafnn::TargetLoss::poisson ? count : 0);
    if (!thresholds_.empty()) check("interval_thresholds", thresholds_.size(), count);
  }

  [[nodiscard]] sheafnn::TargetLoss loss() const noexcept { return loss_; }
  [[nodiscard]] const sheafnn::TargetScaling& scaling() const noexcept { return scaling_; }
  /// Are they numbers that have a mean, and not labels or classes?
  [[nodiscard]] bool numeric() const noexcept { return !has_accuracy(loss_); }
  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  /// Values of ordered classes, increasing; otherwise empty.
  [[nodiscard]] const std::vector<double>& classes() const noexcept { return classes_; }
  /// Outputs per node of the network.
  [[nodiscard]] Index outputs() const { return unknown(0).outputs(); }

  /// The loss with the targets of a dataset. Values that are not ordered classes of a checkpoint are unknown.
  [[nodiscard]] sheafnn::AnyTargetLoss of(const NodeData& data) const {
    std::vector<double> values = scaling_.scaled(data.targets);
    for (double& y : values) {
      if (classes_.empty() || std::isnan(y)) continue;
      const auto found = std::lower_bound(classes_.begin(), classes_.end(), y);
      y = found != classes_.end() && *found == y ? static_cast<double>(found - classes_.begin())
                                                 : std::numeric_limits<double>::quiet_NaN();
    }
    return {loss_, like(std::move(values))};
  }
  /// The loss of n nodes with unknown targets, for predictions.
  [[nodiscard]] sheafnn::AnyTargetLoss unknown(Index nodes) const { return {loss_, like({}), nodes}; }

  /// \param predictions  n × outputs, as predict_targets() returns them
  [[nodiscard]] TargetPrediction read(const std::vector<double>& predictions) const {
    const Index n = static_cast<Index>(predictions.size()) / outputs();
    const sheafnn::AnyTargetLoss loss = unknown(0);
    const sheafnn::MatrixView<const double> rows(predictions.data(), n, loss.outputs());
    TargetPrediction r{loss.expectations(rows), loss.deviations(rows)};
    if (!numeric()) return r;
    r.expectations = scaling_.unscaled(std::move(r.expectations));
    r.deviations = scaling_.unscaled_deviations(std::move(r.deviations));
    return r;
  }
  /// Learns the thresholds of conformal intervals. math: "Intervals of numbers" (6.14).
  ///
  /// \param nodes  validation nodes; where there are none, or targets are not numbers, there are no intervals
  void fit_intervals(const NodeData& data, const TargetPrediction& prediction,
                     const std::vector<std::int32_t>& nodes, double coverage) {
    coverage_ = coverage;
    thresholds_.clear();
    if (!numeric() || nodes.empty()) return;
    thresholds_ =
        sheafnn::uncertainty::residual_thresholds(data.targets, prediction.expectations, prediction.deviations,
                                                  static_cast<Index>(names_.size()), nodes, coverage);
  }
  [[nodiscard]] bool has_intervals() const noexcept { return !thresholds_.empty(); }
  /// γ of these intervals.
  [[nodiscard]] double coverage() const noexcept { return coverage_; }
  /// Conformal intervals of all nodes, n × k; infinite where there were too few validation nodes.
  [[nodiscard]] sheafnn::uncertainty::Intervals intervals(const TargetPrediction& prediction) const {
    sheafnn::uncertainty::Intervals r =
        sheafnn::uncertainty::residual_intervals(prediction.expectations, prediction.deviations, thresholds_);
    if (loss_ == sheafnn::TargetLoss::poisson) {  // bounds of counts belong to the interval
      for (double& bound : r.lower) bound = std::max(std::ceil(bound), 0.0) + 0.0;  // + 0.0: −0 becomes 0
      for (double& bound : r.upper) bound = std::floor(bound);
    }
    return r;
  }
  /// Central intervals of the posterior's mixture, n × k. math: "Intervals of numbers" (6.13).
  ///
  /// \param samples  K × n × outputs, as sample_targets() returns them
  [[nodiscard]] sheafnn::uncertainty::Intervals posterior_intervals(const std::vector<double>& samples,
                                                                    Index nodes, double coverage) const {
    const Index one = std::max<Index>(nodes * outputs(), 1);
    sheafnn::uncertainty::Intervals r =
        unknown(nodes).intervals(samples, static_cast<Index>(samples.size()) / one, coverage);
    r.lower = scaling_.unscaled(std::move(r.lower));
    r.upper = scaling_.unscaled(std::move(r.upper));
    return r;
  }

  /// Adds what checkpoints store.
  void add_to(std::map<std::string, std::string>& notes) const {
    notes["targets"] = numeric() ? "numbers" : std::string(to_string(loss_));
    notes["target_names"] = sheafnn::io::csv_record(names_);
    notes["trained_with_edges"] = "1";
    if (numeric()) {
      notes["target_axes"] = names_.size() == 1 ? "1" : "2";
      notes["target_loss"] = to_string(loss_);
      notes["target_mean"] = hexadecimal(scaling_.mean);
      notes["target_scale"] = hexadecimal(scaling_.scale);
      notes["base_rates"] = hexadecimal(scaling_.base_rates);
    }
    if (!classes_.empty()) {
      notes["class_kind"] = "f";
      notes["class_dtype"] = "<f8";
      notes["class_data"] = hexadecimal(classes_);
    }
    if (thresholds_.empty()) return;
    notes["interval_coverage"] = hexadecimal({coverage_});
    notes["interval_thresholds"] = hexadecimal(thresholds_);
  }

 private:
  static constexpr std::size_t most_classes = 100;

  [[nodiscard]] sheafnn::MatrixView<const double> view(const std::vector<double>& values) const {
    const Index k = static_cast<Index>(names_.size());
    return {values.data(), static_cast<Index>(values.size()) / k, k};
  }
  [[nodiscard]] sheafnn::TargetNumbers like(std::vector<double> values) const {
    return {std::move(values), static_cast<Index>(names_.size()), scaling_.base_rates,
            static_cast<Index>(std::max<std::size_t>(classes_.size(), 2))};
  }
  [[nodiscard]] static std::string note(const std::string& file, const std::map<std::string, std::string>& notes,
                                        const char* key) {
    const auto found = notes.find(key);
    if (found == notes.end()) sheafnn::io::detail::fail(file, "has no entry '", key, "' in its metadata");
    return found->second;
  }
  /// Little-endian numbers as hexadecimal digits of their bytes.
  [[nodiscard]] static std::string hexadecimal(const std::vector<double>& values) {
    static_assert(std::endian::native == std::endian::little);
    constexpr char digits[] = "0123456789abcdef";
    std::string r;
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (std::size_t i = 0; i < values.size() * sizeof(double); ++i) {
      r += digits[bytes[i] / 16];
      r += digits[bytes[i] % 16];
    }
    return r;
  }
  /// Finite values of an entry. Thresholds are infinite where there are too few nodes.
  [[nodiscard]] static std::vector<double> numbers(const std::string& file,
                                                   const std::map<std::string, std::string>& notes,
                                                   const char* key, std::string dtype = "<f8") {
    const sheafnn::io::NpyArray array =
        sheafnn::io::NpyArray::of_elements(sheafnn::detail::concat(file, ": ", key), std::move(dtype),
                                           bytes_of(file, notes, key));
    if (array.whole_numbers()) check_doubles(array);
    std::vector<double> r = array.values<double>();
    const bool threshold = std::string_view(key) == "interval_thresholds";
    if (!threshold && !std::all_of(r.begin(), r.end(), [](double value) { return std::isfinite(value); })) {
      sheafnn::io::detail::fail(file, key, " has a number that is not finite");
    }
    return r;
  }
  /// The bytes that an entry has as hexadecimal digits.
  [[nodiscard]] static sheafnn::io::Bytes bytes_of(const std::string& file,
                                                   const std::map<std::string, std::string>& notes,
                                                   const char* key) {
    const std::string text = note(file, notes, key);
    const std::string_view digits = "0123456789abcdef";
    if (text.size() % 2 != 0 || text.find_first_not_of(digits) != std::string::npos) {
      sheafnn::io::detail::fail(file, key, " is damaged; expected hexadecimal bytes of numbers");
    }
    sheafnn::io::Bytes r;
    for (std::size_t i = 0; i < text.size(); i += 2) {
      r.push_back(static_cast<unsigned char>(16 * digits.find(text[i]) + digits.find(text[i + 1])));
    }
    return r;
  }
  /// \throws std::runtime_error  an integer that a double cannot represent
  static void check_doubles(const sheafnn::io::NpyArray& array) {
    constexpr std::int64_t most = std::int64_t{1} << std::numeric_limits<double>::digits;
    for (const std::int64_t value : array.values<std::int64_t>()) {
      if (value >= -most && value <= most) continue;
      sheafnn::io::detail::fail(array.where(), "has the number ", value, "; at most ", most,
                                " in size is supported");
    }
  }
  /// Values of ordered classes, or 0 … K − 1 where a file has none.
  [[nodiscard]] static std::vector<double> classes_of(const std::string& file,
                                                      const std::map<std::string, std::string>& notes,
                                                      std::size_t count) {
    std::vector<double> r;
    if (!notes.contains("class_data")) {
      for (std::size_t c = 0; c < count; ++c) r.push_back(static_cast<double>(c));
      return r;
    }
    r = numbers(file, notes, "class_data", note(file, notes, "class_dtype"));
    if (r.size() != count || std::adjacent_find(r.begin(), r.end(), std::greater_equal<>()) != r.end()) {
      sheafnn::io::detail::fail(file, "class_data has ", r.size(), " classes; expected ", count,
                                " in increasing order");
    }
    return r;
  }

  sheafnn::TargetLoss loss_ = sheafnn::TargetLoss::squared;
  std::vector<std::string> names_;
  sheafnn::TargetScaling scaling_;
  std::vector<double> classes_, thresholds_;
  double coverage_ = 0.9;
};

}  // namespace programs
