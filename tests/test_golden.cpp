/// \file
/// Reading the golden files and comparing with them, for test_golden_*.cpp (golden_case.hpp).
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <set>
#include <span>

#include "golden_case.hpp"
#include "map_kind.hpp"
#include "sheafnn/io/npz_archive.hpp"
#include "worst.hpp"

namespace golden {

Case read_inputs(const std::string& folder, const std::string& name) {
  const sheafnn::io::NpzArchive archive(std::string(SHEAFNN_TEST_DATA) + "/" + folder + "/" + name + ".npz");
  Case r;
  r.name = name;
  r.has_features = folder != "golden";
  for (const std::string& key : archive.names()) {
    const sheafnn::io::NpyArray array = archive.array(key);
    r.file[key] = {array.shape(), array.values<double>()};
  }
  const auto values = [&](const std::string& key) -> const std::vector<double>& { return r.file.at(key).values; };
  const Index n = static_cast<Index>(values("n_nodes").at(0));
  if (r.file.contains("edges")) {
    const std::vector<double>& ends = values("edges");
    std::vector<sheafnn::Edge> edges;
    for (std::size_t i = 0; i < ends.size(); i += 2) {
      edges.push_back({static_cast<std::int32_t>(ends[i]), static_cast<std::int32_t>(ends[i + 1])});
    }
    r.graph = sheafnn::Graph(n, edges);
  }
  const Array& x = r.file.at("features");
  r.features = sheafnn::NodeFeatures::from_dense(std::span<const double>(x.values), n, x.shape.at(1));
  for (const double label : values("labels")) r.labels.push_back(static_cast<std::int32_t>(label));
  for (Index u = 0; u < n; ++u) {
    if (values("train_mask").at(static_cast<std::size_t>(u)) != 0) r.nodes.push_back(static_cast<std::int32_t>(u));
  }

  r.options.features = x.shape.at(1);
  r.options.classes = r.file.at("log_probabilities").shape.at(1);
  r.options.feature_treatment = sheafnn::FeatureTreatment::none;
  return r;
}

Case read(const std::string& name, test::MapKind kind, int dimension, bool bayesian) {
  CAPTURE(name);
  Case r = read_inputs("golden", name);
  const std::vector<double>& config = r.file.at("config").values;
  REQUIRE(config.size() == 9);
  constexpr test::MapKind kinds[] = {test::MapKind::diagonal, test::MapKind::rotation, test::MapKind::dense};
  REQUIRE(kinds[static_cast<std::size_t>(config[8])] == kind);
  REQUIRE(config[0] == dimension);
  REQUIRE((config[5] != 0) == bayesian);

  r.options.channels = static_cast<Index>(config[1]);
  r.options.layers = static_cast<Index>(config[2]);
  r.options.add_lp = config[3] != 0;
  r.options.add_hp = config[4] != 0;
  r.options.separate_encoder = config[6] != 0;
  r.options.edge_weights = config[7] != 0;
  return r;
}

void compare(const Case& expected, const Outcome& outcome, const Bounds& bounds) {
  CAPTURE(expected.name);
  const auto values = [&](const std::string& key) -> const std::vector<double>& {
    return expected.file.at(key).values;
  };
  // The model has the file's parameters, with its shapes, and no others.
  std::size_t in_file = 0;
  for (const auto& entry : expected.file) in_file += entry.first.starts_with("param.") ? 1 : 0;
  CHECK(in_file == outcome.parameters.size());
  for (const sheafnn::layers::ParameterInfo& info : outcome.parameters) {
    CAPTURE(info.name);
    CHECK(expected.file.at("param." + info.name).shape == info.shape);
  }

  const auto error = [](double value, double exact, double least = 0) {
    return value == exact ? 0 : std::abs(value - exact) / std::max(least, std::abs(exact));
  };
  CHECK(error(outcome.result.kl, values("kl").at(0)) <= bounds.output);
  CHECK(error(outcome.result.loss, values("loss").at(0)) <= bounds.output);
  const std::vector<double>& outputs = values("log_probabilities");
  REQUIRE(outcome.log_probabilities.size() == outputs.size());
  double worst = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    worst = test::worse(worst, error(outcome.log_probabilities[i], outputs[i], bounds.least));
  }
  CHECK(worst <= bounds.output);

  // A tensor that changes nothing has derivatives of rounding alone.
  double rounding = 0;
  for (const auto& entry : outcome.gradient) {
    for (const double value : values("grad." + entry.first)) rounding = std::max(rounding, std::abs(value));
  }
  rounding *= 16 * std::numeric_limits<double>::epsilon();
  for (const auto& entry : outcome.gradient) {
    const std::string& name = entry.first;
    const std::vector<double>& gradient = entry.second;
    CAPTURE(name);
    const std::vector<double>& exact = values("grad." + name);
    REQUIRE(gradient.size() == exact.size());
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      largest = std::max(largest, std::abs(exact[i]));
      difference = test::worse(difference, std::abs(gradient[i] - exact[i]));
    }
    CHECK((largest > 0) != expected.without_effect.contains(name));
    CHECK(difference <= std::max(bounds.gradient * largest, rounding));
  }
}

double distance(const std::vector<double>& values, const std::vector<double>& expected) {
  REQUIRE(values.size() == expected.size());
  double largest = 1, worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    worst = test::worse(worst, std::abs(values[i] - expected[i]));
  }
  return worst / largest;
}

void compare(const Case& expected, const std::string& key, const std::vector<double>& values, double bound) {
  CAPTURE(expected.name);
  CAPTURE(key);
  CHECK(distance(values, expected.file.at(key).values) <= bound);
}

void check_same(bool same, const std::string& name) {
  CAPTURE(name);
  CHECK_MESSAGE(same, "2 threads give other numbers than 1");
}

}  // namespace golden

TEST_CASE("golden: the files are those that the tests name") {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(SHEAFNN_TEST_DATA) + "/golden")) {
    if (entry.path().extension() == ".npz") names.insert(entry.path().stem().string());
  }
  const std::set<std::string> tested = {"nsd_diag2",   "nsd_diag3_lp", "nsd_so2",    "nsd_so3_hp",    "nsd_so4",
                                        "nsd_gen2",    "nsd_gen3",     "bsnn_diag2", "bsnn_diag3_lp", "bsnn_so2",
                                        "bsnn_so3_hp", "bsnn_so4",     "bsnn_gen2",  "bsnn_gen3"};
  CHECK(names == tested);
}
