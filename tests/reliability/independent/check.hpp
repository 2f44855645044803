/// \file
/// A case of cases.py, and how far the library is from it.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/graph.hpp"

namespace independent {

using sheafnn::Index;

struct Array {
  std::vector<Index> shape;
  std::vector<double> values;
};
struct Case {
  std::map<std::string, Array> file;
  std::string maps;  ///< FAMILY and DIMENSION of check_models.cpp, "Diagonal2"
  int dimension = 0;
  bool bayesian = false;
  Index layers = 0;
  std::variant<sheafnn::ModelOptions, sheafnn::CooperativeOptions> options;
  sheafnn::Graph graph;
  sheafnn::NodeFeatures features;
  std::vector<std::int32_t> labels, nodes;

  [[nodiscard]] const std::vector<double>& values(const std::string& key) const;
};
/// The library refused the options.
struct Refused : std::runtime_error {
  using runtime_error::runtime_error;
};

/// The largest error, and where.
struct Worst {
  double error = 0;
  std::string key;
  void add(double candidate, const std::string& where) {
    if (candidate > error || std::isnan(candidate)) *this = {candidate, where};
  }
  [[nodiscard]] std::string text() const;
};
class Outcome {
 public:
  explicit Outcome(const Case& given);
  /// Relative to the largest number of the file's array, or 1.
  void output(const std::string& key, const std::vector<double>& own);
  /// Relative to the largest number of the tensor or, where that is larger, 1e-3 of the largest of all tensors.
  void gradient(const std::string& name, const std::vector<double>& own);
  void require(bool holds, const std::string& problem) {
    if (!holds) problems += "; " + problem;
  }
  [[nodiscard]] bool agrees() const {
    return outputs.error <= 1e-10 && gradients.error <= 1e-8 && problems.empty();
  }

  Worst outputs, gradients;
  std::string problems;

 private:
  /// Largest error, and largest number of the file.
  std::pair<double, double> distance(const std::string& key, const std::vector<double>& own);

  const Case& given_;
  double largest_gradient_ = 0;
};

using Check = Outcome (*)(const Case&);
/// By Case::maps; every check_models.cpp adds its own.
std::map<std::string, Check>& checks();

}  // namespace independent
