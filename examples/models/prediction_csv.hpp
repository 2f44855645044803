/// \file
/// Predictions as a CSV file, one line per node: of classes, or of targets in their place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/io/csv.hpp>
#include <sheafnn/uncertainty/intervals.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "models/target_kind.hpp"

namespace programs {

/// node,name,class,p_0,…,entropy,mutual_information; the column `name` is left out if nodes have no names. Where the
/// model knows the names of classes, it stands for the number, and columns are p_NAME.
class PredictionCsv {
 public:
  PredictionCsv(const std::vector<std::string>& node_names, const std::vector<std::string>& class_names)
      : node_names_(&node_names), class_names_(&class_names) {}

  [[nodiscard]] std::string header(sheafnn::Index classes) const {
    std::string r = node_names_->empty() ? "node,class" : "node,name,class";
    for (std::size_t c = 0; c < static_cast<std::size_t>(classes); ++c) {
      r += ',' + sheafnn::io::csv_field("p_" + class_text(c));
    }
    return r + ",entropy,mutual_information\n";
  }
  /// A line for each row. \param node  node(row): its index
  template <class Node>
  [[nodiscard]] std::string lines(const sheafnn::Prediction& p, const Node& node) const {
    const std::size_t classes = static_cast<std::size_t>(p.class_count);
    std::ostringstream out;
    out.precision(std::numeric_limits<double>::max_digits10);
    for (std::size_t row = 0; row < p.label.size(); ++row) {
      const std::size_t u = static_cast<std::size_t>(node(row));
      out << u << ',';
      if (!node_names_->empty()) out << sheafnn::io::csv_field((*node_names_)[u]) << ',';
      out << sheafnn::io::csv_field(class_text(static_cast<std::size_t>(p.label[row])));
      for (std::size_t c = 0; c < classes; ++c) out << ',' << p.probabilities[row * classes + c];
      out << ',' << p.entropy[row] << ',' << p.mutual_information[row] << '\n';
    }
    return out.str();
  }

 private:
  [[nodiscard]] std::string class_text(std::size_t c) const {
    return class_names_->empty() ? std::to_string(c) : (*class_names_)[c];
  }

  const std::vector<std::string>* node_names_;
  const std::vector<std::string>* class_names_;
};

/// The file of all nodes.
[[nodiscard]] inline std::string prediction_csv(const sheafnn::Prediction& p,
                                                const std::vector<std::string>& node_names,
                                                const std::vector<std::string>& class_names) {
  const PredictionCsv csv(node_names, class_names);
  return csv.header(p.class_count) + csv.lines(p, [](std::size_t row) { return row; });
}

/// node,name,TARGET,TARGET_std,TARGET_lower,TARGET_upper,… of numbers, without what a loss does not have. Of several labels
/// there are their probabilities, of ordered classes TARGET, the most probable one, and p_CLASS,….
///
/// \param intervals  n × k, or empty
[[nodiscard]] inline std::string target_csv(const TargetKind& kind, const TargetPrediction& p,
                                            const sheafnn::uncertainty::Intervals& intervals,
                                            const std::vector<std::string>& node_names) {
  const std::vector<std::string>& names = kind.names();
  const std::vector<double>& classes = kind.classes();
  const std::size_t width = classes.empty() ? names.size() : classes.size(), n = p.expectations.size() / width;
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::max_digits10);
  const auto field = [&](const std::string& text) { out << ',' << sheafnn::io::csv_field(text); };
  out << (node_names.empty() ? "node" : "node,name");
  for (const std::string& name : names) {
    field(name);
    if (!p.deviations.empty()) field(name + "_std");
    if (intervals.lower.empty()) continue;
    field(name + "_lower");
    field(name + "_upper");
  }
  for (const double value : classes) field(sheafnn::detail::concat("p_", value));
  out << '\n';
  for (std::size_t u = 0; u < n; ++u) {
    out << u;
    if (!node_names.empty()) field(node_names[u]);
    if (!classes.empty()) {
      const auto first = p.expectations.begin() + static_cast<std::ptrdiff_t>(u * width);
      const auto most = std::max_element(first, first + static_cast<std::ptrdiff_t>(width));
      out << ',' << classes[static_cast<std::size_t>(most - first)];
    }
    for (std::size_t i = u * width; i < (u + 1) * width; ++i) {
      out << ',' << p.expectations[i];
      if (!p.deviations.empty()) out << ',' << p.deviations[i];
      if (!intervals.lower.empty()) out << ',' << intervals.lower[i] << ',' << intervals.upper[i];
    }
    out << '\n';
  }
  return out.str();
}

}  // namespace programs
