// Compares the library with the cases of cases.py: outputs to 1e-10, relative to the largest of an array or 1;
// gradients to 1e-8, relative to the largest number of a tensor or, where that is larger, 1e-3 of the largest of all
// tensors, as some gradients are zero but for rounding; the same bits with 1 and 2 threads. Prints a line for every
// mismatch and for every case that the library refuses, and a summary. Exit status 1 when there is a mismatch.
// usage: check FOLDER|FILE...
#include "check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>

#include "sheafnn/io/npz_archive.hpp"
#include "worst.hpp"

namespace independent {

const std::vector<double>& Case::values(const std::string& key) const {
  const auto found = file.find(key);
  if (found == file.end()) throw std::runtime_error("the file has no " + key);
  return found->second.values;
}

std::map<std::string, Check>& checks() {
  static std::map<std::string, Check> r;
  return r;
}
std::string Worst::text() const {
  std::array<char, 16> number{};
  std::snprintf(number.data(), number.size(), "%.1e", error);
  return number.data() + (" (" + key + ")");
}

Outcome::Outcome(const Case& given) : given_(given) {
  for (const auto& [key, array] : given.file) {
    if (!key.starts_with("grad.")) continue;
    for (const double v : array.values) largest_gradient_ = std::max(largest_gradient_, std::abs(v));
  }
}
std::pair<double, double> Outcome::distance(const std::string& key, const std::vector<double>& own) {
  const std::vector<double>& exact = given_.values(key);
  require(own.size() == exact.size(), "size of " + key);
  double error = 0, largest = 0;
  for (std::size_t i = 0; i < std::min(own.size(), exact.size()); ++i) {
    error = test::worse(error, std::abs(own[i] - exact[i]));
    largest = std::max(largest, std::abs(exact[i]));
  }
  return {error, largest};
}
void Outcome::output(const std::string& key, const std::vector<double>& own) {
  const auto [error, largest] = distance(key, own);
  outputs.add(error / std::max(1., largest), key);
}
void Outcome::gradient(const std::string& name, const std::vector<double>& own) {
  const auto [error, largest] = distance("grad." + name, own);
  const double scale = std::max(largest, 1e-3 * largest_gradient_);
  gradients.add(scale > 0 ? error / scale : error, name);
}

namespace {

using namespace sheafnn;
using namespace sheafnn::layers;

ModelOptions sheaf_options(const Case& given, const std::vector<double>& config) {
  const auto flag = [&](std::size_t i) { return config.at(i) != 0; };
  ModelOptions r = {.spread = SpreadRange::published};
  r.channels = static_cast<Index>(config.at(1));
  r.layers = static_cast<Index>(config.at(2));
  r.add_lp = flag(3);
  r.add_hp = flag(4);
  r.separate_encoder = flag(6);
  r.edge_weights = flag(7);
  if (config.size() == 9) return r;
  using enum PolynomialBasis;
  constexpr PolynomialBasis bases[] = {
      chebyshev, chebyshev_second, chebyshev_third, chebyshev_fourth, chebyshev_interpolation,
      legendre,  gegenbauer,       jacobi};
  constexpr LearnerInput learners[] = {LearnerInput::concatenation, LearnerInput::summed,
                                       LearnerInput::summed_published, LearnerInput::concatenation};
  constexpr SheafActivation activations[] = {SheafActivation::tanh, SheafActivation::identity,
                                             SheafActivation::elu};
  const std::vector<double>& basis = given.values("basis_parameters");
  PolynomialOptions& filter = r.filter;
  filter.basis = bases[static_cast<std::size_t>(config.at(9))];
  filter.degree = static_cast<Index>(config.at(10));
  filter.skip = flag(12) ? HighPassSkip::mixed : HighPassSkip::input;
  filter.published = flag(13);
  filter.jacobi_alpha = basis.at(0);
  filter.jacobi_beta = basis.at(1);
  filter.gegenbauer_lambda = basis.at(2);
  filter.largest_eigenvalue = basis.at(3);
  r.left_weights = r.right_weights = flag(11);
  r.learner = learners[static_cast<std::size_t>(config.at(14))];
  r.sheaf_activation =
      config.at(14) == 3 ? SheafActivation::attention : activations[static_cast<std::size_t>(config.at(15))];
  r.linear = flag(16);
  r.edge_features = static_cast<Index>(config.at(17));
  return r;
}
CooperativeOptions cooperative_options(const Case& given, const std::vector<double>& config) {
  const auto flag = [&](std::size_t i) { return config.at(i) != 0; };
  CooperativeOptions r;
  r.channels = static_cast<Index>(config.at(1));
  r.layers = static_cast<Index>(config.at(2));
  r.learner = static_cast<NodeLearnerKind>(config.at(4));
  r.learner_layers = static_cast<Index>(config.at(5));
  r.learner_dropout = 0;
  const std::string learner = given.bayesian ? "param.out" : "param.out.0";
  for (const char* hidden : {".hidden.bias", ".0.neighbour.bias"}) {
    const auto found = given.file.find(learner + hidden);
    if (found != given.file.end()) r.learner_width = found->second.shape.at(0);
  }
  r.activation = static_cast<Activation>(config.at(6));
  r.conformal = flag(7);
  r.norm = static_cast<FeatureNorm>(config.at(8));
  r.left_weights = flag(9);
  r.right_weights = flag(10);
  r.residual = flag(11);
  r.separate_encoder = flag(12);
  r.readout_layers = static_cast<Index>(config.at(13));
  r.directed = flag(14);
  return r;
}

Case read(const std::string& path) {
  Case r;
  const io::NpzArchive archive(path);
  for (const std::string& key : archive.names()) {
    const io::NpyArray array = archive.array(key);
    r.file[key] = {array.shape(), array.values<double>()};
  }
  const std::vector<double>&config = r.values("config"), &ends = r.values("edges");
  const bool cooperative = config.size() == 15;
  constexpr const char* families[] = {"Diagonal", "SpecialOrthogonal", "GeneralLinear"};
  r.dimension = static_cast<int>(config.at(0));
  r.maps = cooperative ? "NodeMaps" : families[static_cast<std::size_t>(config.at(8))];
  r.maps += std::to_string(r.dimension);
  r.layers = static_cast<Index>(config.at(2));
  r.bayesian = config.at(cooperative ? 3 : 5) != 0;
  const Index n = static_cast<Index>(r.values("n_nodes").at(0));
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < ends.size(); i += 2) {
    edges.push_back({static_cast<std::int32_t>(ends[i]), static_cast<std::int32_t>(ends[i + 1])});
  }
  r.graph = Graph(n, edges);
  if (r.file.contains("edge_features")) {
    r.graph.set_arc_features(r.values("edge_features"), r.file.at("edge_features").shape.at(1));
  }
  const Array& x = r.file.at("features");
  r.features = NodeFeatures::from_dense(std::span<const double>(x.values), n, x.shape.at(1));
  for (const double label : r.values("labels")) r.labels.push_back(static_cast<std::int32_t>(label));
  for (Index u = 0; u < n; ++u) {
    const bool training = r.values("train_mask").at(static_cast<std::size_t>(u)) != 0;
    if (training) r.nodes.push_back(static_cast<std::int32_t>(u));
  }
  if (cooperative) {
    r.options = cooperative_options(r, config);
  } else {
    r.options = sheaf_options(r, config);
  }
  std::visit(
      [&](auto& options) {
        options.features = x.shape.at(1);
        options.classes = r.file.at("param.lin2.weight").shape.at(0);
        options.feature_treatment = sheafnn::FeatureTreatment::none;
      },
      r.options);
  return r;
}

}  // namespace
}  // namespace independent

int main(int count, char** arguments) {
  using namespace independent;
  std::vector<std::filesystem::path> files;
  for (const char* argument : std::span(arguments + 1, arguments + count)) {
    if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::directory_iterator(argument)) files.push_back(entry.path());
    } else {
      files.emplace_back(argument);
    }
  }
  std::sort(files.begin(), files.end());
  int agree = 0, mismatches = 0, refused = 0;
  Worst outputs, gradients;
  for (const std::filesystem::path& file : files) {
    std::string name = file.stem().string();
    try {
      const Case given = read(file.string());
      name += " [";
      for (const double v : given.values("config")) {
        name += (name.back() == '[' ? "" : " ") + std::to_string(static_cast<int>(v));
      }
      name += "]";
      const Outcome outcome = checks().at(given.maps)(given);
      outputs.add(outcome.outputs.error, outcome.outputs.key + " of " + name);
      gradients.add(outcome.gradients.error, outcome.gradients.key + " of " + name);
      ++(outcome.agrees() ? agree : mismatches);
      if (outcome.agrees()) continue;
      std::printf("MISMATCH %s: outputs %s, gradients %s%s\n", name.c_str(), outcome.outputs.text().c_str(),
                  outcome.gradients.text().c_str(), outcome.problems.c_str());
    } catch (const Refused& error) {
      ++refused;
      std::printf("refused %s: %s\n", name.c_str(), error.what());
    } catch (const std::exception& error) {
      ++mismatches;
      std::printf("MISMATCH %s: %s\n", name.c_str(), error.what());
    }
  }
  std::printf("%zu cases: %d agree, %d mismatches, %d refused\n", files.size(), agree, mismatches, refused);
  std::printf("largest errors: outputs %s\n                gradients %s\n", outputs.text().c_str(),
              gradients.text().c_str());
  return mismatches > 0 ? 1 : 0;
}
