/// \file
/// Predictions as a CSV file, one line per node.
#pragma once

#include <cstddef>
#include <limits>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/io/csv.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace programs {

/// node,name,class,p_0,…,entropy,mutual_information; the column `name` is left out if nodes have no names. Where the
/// model knows the names of classes, it stands for the number, and columns are p_NAME.
[[nodiscard]] inline std::string prediction_csv(const sheafnn::Prediction& p,
                                                const std::vector<std::string>& node_names,
                                                const std::vector<std::string>& class_names) {
  const auto class_text = [&](std::size_t c) { return class_names.empty() ? std::to_string(c) : class_names[c]; };
  const std::size_t classes = static_cast<std::size_t>(p.class_count);
  std::ostringstream out;
  out.precision(std::numeric_limits<double>::max_digits10);
  out << (node_names.empty() ? "node,class" : "node,name,class");
  for (std::size_t c = 0; c < classes; ++c) out << ',' << sheafnn::io::csv_field("p_" + class_text(c));
  out << ",entropy,mutual_information\n";
  for (std::size_t u = 0; u < p.label.size(); ++u) {
    out << u << ',';
    if (!node_names.empty()) out << sheafnn::io::csv_field(node_names[u]) << ',';
    out << sheafnn::io::csv_field(class_text(static_cast<std::size_t>(p.label[u])));
    for (std::size_t c = 0; c < classes; ++c) out << ',' << p.probabilities[u * classes + c];
    out << ',' << p.entropy[u] << ',' << p.mutual_information[u] << '\n';
  }
  return out.str();
}

}  // namespace programs
