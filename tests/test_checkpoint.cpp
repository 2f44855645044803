/// \file
/// Checkpoints: what is saved is loaded, and everything that does not fit is refused with both sides named.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "shared_networks.hpp"
#include "sheafnn/bsnn/flow_model.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/posterior/tangent_normal.hpp"
#include "sheafnn/version.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"

namespace test_checkpoint {
namespace {

using sheafnn::Bsnn;
using sheafnn::Diagonal;
using sheafnn::GeneralLinear;
using sheafnn::Identity;
using sheafnn::Index;
using sheafnn::ModelOptions;
using sheafnn::Nsd;
using sheafnn::SpecialOrthogonal;
using sheafnn::io::load_checkpoint;
using sheafnn::io::load_checkpoint_into;
using sheafnn::io::save_checkpoint;

template <class Model>
bool same_parameters(const Model& a, const Model& b) {
  const auto& left = a.parameters();
  const auto& right = b.parameters();
  if (left.info().size() != right.info().size()) return false;
  for (std::size_t i = 0; i < left.info().size(); ++i) {
    if (left.info()[i].name != right.info()[i].name || left.info()[i].shape != right.info()[i].shape) return false;
  }
  return std::equal(left.values().begin(), left.values().end(), right.values().begin(), right.values().end());
}

template <class Model>
Model some_model(const typename Model::Options& options) {
  Model model(options, 9);
  tiny::disturb(model.parameters(), 3, 0.2);
  return model;
}

/// Every option as text, as the metadata holds it.
template <class Options>
std::map<std::string, std::string> texts(const Options& options) {
  return sheafnn::io::option_texts(options);
}

template <class Model>
void check_round_trip(const typename Model::Options& options) {
  CAPTURE(Model::Family::name);
  CAPTURE(Model::bayesian);
  const test::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const Model model = some_model<Model>(options);
  save_checkpoint(path, model, {{"dataset", "tiny"}, {"note", "Δ and \"quotes\""}});
  const Model loaded = load_checkpoint<Model>(path);
  CHECK(same_parameters(model, loaded));
  CHECK(texts(model.options()) == texts(loaded.options()));
  Model into(options, 1);
  CHECK_FALSE(same_parameters(model, into));
  load_checkpoint_into(path, into);
  CHECK(same_parameters(model, into));

  // The metadata say everything that is needed to choose the type.
  const sheafnn::io::CheckpointInfo info = sheafnn::io::read_checkpoint_info(path);
  CHECK(info.model == Model::kind);
  CHECK(info.maps == Model::Family::name);
  CHECK(info.posterior == Model::Posterior::name);
  CHECK(info.stalk_dimension == Model::stalk_dimension);
  CHECK(texts(info.options<typename Model::Options>()) == texts(model.options()));
  CHECK(info.metadata.at("dataset") == "tiny");
  CHECK(info.metadata.at("note") == "Δ and \"quotes\"");
  CHECK(info.metadata.at("format") == "sheafnn");
  CHECK(info.metadata.at("format_version") == std::to_string(sheafnn::io::checkpoint_version));
  CHECK(info.metadata.at("sheafnn_version") == SHEAFNN_VERSION_STRING);
  for (const auto& [key, text] : texts(model.options())) CHECK(info.metadata.at(key) == text);
  CHECK(info.metadata.size() == texts(model.options()).size() + 9);

  // One tensor per parameter, out × in, in the model's precision.
  const sheafnn::io::TensorFile file = sheafnn::io::read_safetensors(path);
  CHECK(file.tensors.size() == model.parameters().info().size());
  for (const sheafnn::io::Tensor& tensor : file.tensors) {
    CAPTURE(tensor.name);
    const auto id = model.parameters().find(tensor.name);
    CHECK(tensor.dtype == (std::is_same_v<typename Model::Scalar, float> ? "F32" : "F64"));
    CHECK(tensor.shape == model.parameters().info(id).shape);
    CHECK(tensor.values<typename Model::Scalar>() == model.parameters().get(id, model.parameters().values()));
  }
  // Nothing else is left in the folder.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

/// The message of a std::runtime_error, without the path in front.
std::string refusal(const std::filesystem::path& path, const std::function<void()>& body) {
  try {
    body();
  } catch (const std::runtime_error& error) {
    const std::string text = error.what(), start = path.string() + ": ";
    return text.starts_with(start) ? text.substr(start.size()) : "no path: " + text;
  }
  return "nothing was thrown";
}
template <class Model>
std::string load_refusal(const std::filesystem::path& path) {
  return refusal(path, [&] { static_cast<void>(load_checkpoint<Model>(path)); });
}

/// Writes a model's checkpoint after changing its content.
template <class Model>
void write_changed(const std::filesystem::path& path, const Model& model,
                   const std::function<void(sheafnn::io::TensorFile&)>& change) {
  sheafnn::io::TensorFile file = sheafnn::io::to_tensors(model);
  change(file);
  sheafnn::io::write_safetensors(path, file);
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("checkpoints: models of all kinds come back bit by bit") {
  ModelOptions options = tiny::options();
  check_round_trip<Bsnn<Diagonal<2>>>(options);
  check_round_trip<Bsnn<SpecialOrthogonal<1>>>(options);
  check_round_trip<Nsd<Identity<3>, double>>(options);
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  options.add_lp = options.add_hp = options.second_linear = options.linear = true;
  options.left_weights = options.right_weights = options.activation = false;
  options.normalisation = sheafnn::Normalisation::block;
  options.learner_layers = 2;
  options.filter = {sheafnn::PolynomialBasis::jacobi, 5};
  options.filter.coefficients = sheafnn::PolynomialCoefficients::free;
  options.filter.skip = sheafnn::HighPassSkip::mixed;
  options.filter.published = true;
  options.filter.jacobi_alpha = 0.1;
  options.filter.jacobi_beta = -1.0 / 3;
  options.filter.gegenbauer_lambda = 0.7;
  options.filter.largest_eigenvalue = 2.5;
  check_round_trip<Nsd<GeneralLinear<2>, double>>(options);
  options.filter = {};
  options.degree_input = true;
  options.learner_width = 5;
  options.normalisation = sheafnn::Normalisation::degree;
  options.parametrisation = sheafnn::rotation::RotationParametrisation::euler;
  options.learner = sheafnn::LearnerInput::summed_published;
  options.edge_features = 3;
  options.layer_norm = true;
  options.readout_layers = 2;
  options.sheaf_activation = sheafnn::SheafActivation::elu;
  options.residual = {.form = sheafnn::ResidualForm::initial, .alpha = 1.0 / 3, .theta = 0.7};
  check_round_trip<Bsnn<SpecialOrthogonal<3>>>(options);
}

TEST_CASE("a checkpoint holds no prior: it is given again, or stays that of the model that is loaded into") {
  using Maps = SpecialOrthogonal<3>;
  using Prior = sheafnn::CayleyPrior<3>;
  using Posterior = sheafnn::CayleyPosterior<Maps, Prior>;
  using Model = sheafnn::SheafModel<Maps, Posterior>;
  const tiny::Task task;
  const Posterior posterior{{}, Prior(sheafnn::SquareMatrix<double, 3>::Identity(), 0.5)};
  const Model model(tiny::options(), 1, posterior);
  const test::TemporaryFolder folder;
  sheafnn::io::save_checkpoint(folder / "model.safetensors", model);
  const auto kl = [&](const Model& of) {
    sheafnn::Network<Model> network(of, task.graph, task.sparse);
    network.begin({});
    return network.kl();
  };
  CHECK(kl(sheafnn::io::load_checkpoint<Model>(folder / "model.safetensors", posterior)) == kl(model));
  CHECK(kl(sheafnn::io::load_checkpoint<Model>(folder / "model.safetensors")) != kl(model));
  Model other(tiny::options(), 2, posterior);
  sheafnn::io::load_checkpoint_into(folder / "model.safetensors", other);
  CHECK(kl(other) == kl(model));
}

TEST_CASE("checkpoints: flows come back bit by bit, with time and tolerances") {
  using Model = sheafnn::BayesianSheafFlow<SpecialOrthogonal<2>>;
  sheafnn::FlowOptions options{.features = tiny::Task::features, .channels = 2, .classes = tiny::Task::classes};
  check_round_trip<sheafnn::SheafFlow<Diagonal<2>, double>>(options);
  options.time = 2.0 / 3;
  options.method = sheafnn::FlowMethod::runge_kutta;
  options.absolute_tolerance = 1e-7;
  options.relative_tolerance = 0.1 + 0.2;
  options.first_step = 1.0 / 7;
  options.max_steps = 77;
  options.fixed_steps = 5;
  options.negate_inside = options.add_lp = options.second_linear = options.degree_input = true;
  options.activation = options.left_weights = false;
  options.feature_treatment = sheafnn::FeatureTreatment::none;
  options.normalisation = sheafnn::Normalisation::block;
  options.learner = sheafnn::LearnerInput::summed;
  options.learner_layers = 1;
  options.edge_features = 2;
  options.readout_layers = 2;
  check_round_trip<Model>(options);

  const test::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const Model model = some_model<Model>(options);
  save_checkpoint(path, model);
  const Model loaded = load_checkpoint<Model>(path);
  CHECK(loaded.options() == model.options());
  CHECK(load_refusal<Bsnn<SpecialOrthogonal<2>>>(path) == "model is bflow in the file, but bsnn in the program");
  options.time = 1;
  Model other(options);
  CHECK(refusal(path, [&] { load_checkpoint_into(path, other); }) ==
        "time is 0.6666666666666666 in the file, but 1 in the model");
  const auto metadata = [&](const std::string& key, const std::string& value) {
    write_changed(path, model, [&](sheafnn::io::TensorFile& f) { f.metadata[key] = value; });
    return load_refusal<Model>(path);
  };
  CHECK(metadata("time", "0") == "time: 0 is not allowed; must be finite and above 0");
  CHECK(metadata("method", "verlet") ==
        "metadata: method: verlet is not allowed; choose dormand-prince, runge-kutta, euler");
  CHECK(metadata("channels", "1024") ==
        "tensor 'lin1.weight' has shape [6, 4] in the file, but [3072, 4] in the model");
  write_changed(path, model, [](sheafnn::io::TensorFile& f) { f.metadata.erase("max_steps"); });
  CHECK(load_refusal<Model>(path) == "metadata key 'max_steps' is missing; not a sheafnn checkpoint?");
}

TEST_CASE("checkpoints: the other precision is converted") {
  const test::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const auto in_double = some_model<Nsd<Diagonal<2>, double>>(tiny::options());
  save_checkpoint(path, in_double);
  const auto in_float = load_checkpoint<Nsd<Diagonal<2>>>(path);
  bool rounded = true;
  for (Index i = 0; i < in_double.parameters().size(); ++i) {
    rounded =
        rounded && in_float.parameters().values()[i] == static_cast<float>(in_double.parameters().values()[i]);
  }
  CHECK(rounded);
  save_checkpoint(path, in_float);
  const auto back = load_checkpoint<Nsd<Diagonal<2>, double>>(path);
  CHECK(back.parameters().values()[3] == static_cast<double>(in_float.parameters().values()[3]));
}

TEST_CASE("checkpoints: another kind of model, family, dimension or option is refused") {
  using Model = Bsnn<SpecialOrthogonal<2>>;
  const test::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const Model model = some_model<Model>(tiny::options());
  save_checkpoint(path, model);
  CHECK(load_refusal<Nsd<SpecialOrthogonal<2>>>(path) == "model is bsnn in the file, but nsd in the program");
  CHECK(load_refusal<Bsnn<GeneralLinear<2>, double>>(path) ==
        "maps is special-orthogonal in the file, but general-linear in the program");
  CHECK(load_refusal<Bsnn<SpecialOrthogonal<3>>>(path) ==
        "stalk_dimension is 2 in the file, but 3 in the program");
  using Tangent = sheafnn::TangentNormalPosterior<SpecialOrthogonal<2>>;
  CHECK(load_refusal<sheafnn::SheafModel<SpecialOrthogonal<2>, Tangent>>(path) ==
        "posterior is cayley in the file, but tangent-normal in the program");
  // Files of earlier versions do not name the posterior: it is the family's usual one.
  sheafnn::io::TensorFile earlier = sheafnn::io::read_safetensors(path);
  CHECK(earlier.metadata.erase("posterior") == 1);
  // They do not know the options of the sheaf learner either, which are at their defaults.
  for (const char* later : {"learner", "sheaf_activation", "edge_features", "layer_norm", "readout_layers",
                            "residual_form", "residual_alpha", "residual_theta"}) {
    CHECK(earlier.metadata.erase(later) == 1);
  }
  CHECK(same_parameters(model, sheafnn::io::from_tensors<Model>(path, earlier)));

  const auto into = [&](const std::function<void(ModelOptions&)>& change) {
    ModelOptions options = tiny::options();
    change(options);
    Model other(options, 4);
    const Model before = other;
    const std::string text = refusal(path, [&] { load_checkpoint_into(path, other); });
    CHECK(same_parameters(before, other));
    return text;
  };
  CHECK(into([](ModelOptions& o) { o.channels = 3; }) == "channels is 2 in the file, but 3 in the model");
  CHECK(into([](ModelOptions& o) { o.add_lp = true; }) == "add_lp is false in the file, but true in the model");
  CHECK(into([](ModelOptions& o) { o.edge_weights = false; }) ==
        "edge_weights is true in the file, but false in the model");
  CHECK(into([](ModelOptions& o) { o.activation = false; }) ==
        "activation is true in the file, but false in the model");
  CHECK(into([](ModelOptions& o) { o.normalisation = sheafnn::Normalisation::none; }) ==
        "normalisation is augmented in the file, but none in the model");
  CHECK(into([](ModelOptions& o) { o.parametrisation = sheafnn::rotation::RotationParametrisation::cayley; }) ==
        "parametrisation is exponential in the file, but cayley in the model");
  Nsd<SpecialOrthogonal<2>> other(tiny::options());
  CHECK(refusal(path, [&] { load_checkpoint_into(path, other); }) ==
        "model is bsnn in the file, but nsd in the program");
}

TEST_CASE("checkpoints: tensors and metadata that contradict each other are refused") {
  using Model = Nsd<Diagonal<2>>;
  const test::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const Model model = some_model<Model>(tiny::options());
  const auto changed = [&](const std::function<void(sheafnn::io::TensorFile&)>& change) {
    write_changed(path, model, change);
    Model other(tiny::options(), 4);
    const Model before = other;
    const std::string text = refusal(path, [&] { load_checkpoint_into(path, other); });
    CHECK(same_parameters(before, other) == (text != "nothing was thrown"));
    // Other tensors are refused the same way whether or not the model was there before.
    if (text.starts_with("tensor")) CHECK(load_refusal<Model>(path) == text);
    return text;
  };
  using sheafnn::io::TensorFile;
  const auto index_of = [&](const std::string& name) {
    return static_cast<std::ptrdiff_t>(model.parameters().find(name));
  };
  CHECK(changed([](TensorFile&) {}) == "nothing was thrown");
  CHECK(changed([&](TensorFile& f) { f.tensors.erase(f.tensors.begin() + index_of("left.1")); }) ==
        "tensor 'left.1' is missing; the model needs it");
  CHECK(changed([&](TensorFile& f) { f.tensors.erase(f.tensors.begin()); }) ==
        "tensor 'lin1.weight' is missing; the model needs it");
  CHECK(changed([](TensorFile& f) {
          f.tensors.push_back(sheafnn::io::make_tensor<float>("left.2", {1}, {{1.0F}}));
        }) == "tensor 'left.2' is in the file, but not in the model");
  CHECK(changed([&](TensorFile& f) {
          f.tensors[static_cast<std::size_t>(index_of("lin2.weight"))].shape = {4, 3};
        }) == "tensor 'lin2.weight' has shape [4, 3] in the file, but [3, 4] in the model");
  CHECK(changed([&](TensorFile& f) { f.tensors[static_cast<std::size_t>(index_of("eps.0"))].shape = {2}; }) ==
        "tensor 'eps.0' has shape [2] in the file, but [2, 1] in the model");
  for (const auto& [bad, name] : {std::pair(std::numeric_limits<float>::quiet_NaN(), "nan"),
                                  std::pair(std::numeric_limits<float>::infinity(), "inf")}) {
    CHECK(changed([&](TensorFile& f) {
            sheafnn::io::Tensor& tensor = f.tensors[static_cast<std::size_t>(index_of("lin2.bias"))];
            tensor = sheafnn::io::make_tensor<float>("lin2.bias", {3}, {{0.0F, bad, 0.0F}});
          }) == sheafnn::detail::concat("tensor 'lin2.bias': number 1 is ", name, "; it must be finite"));
  }

  const auto metadata = [&](const std::string& key, const std::string& value) {
    write_changed(path, model, [&](TensorFile& f) { f.metadata[key] = value; });
    return load_refusal<Model>(path);
  };
  CHECK(metadata("layers", "two") == "metadata: layers: two is not allowed; must be a whole number");
  CHECK(metadata("layers", "3") == "tensor 'sheaf.2.weight' is missing; the model needs it");
  CHECK(metadata("layers", "1") == "tensor 'sheaf.1.weight' is in the file, but not in the model");
  CHECK(metadata("layers", "65") == "layers: 65 is not allowed; must be between 1 and 64");
  CHECK(metadata("add_lp", "yes") == "metadata: add_lp: yes is not allowed; must be true or false");
  CHECK(metadata("add_lp", "true") ==
        "tensor 'lin1.weight' has shape [4, 4] in the file, but [6, 4] in the model");
  CHECK(metadata("normalisation", "best") ==
        "metadata: normalisation: best is not allowed; choose none, block, augmented, degree");
  CHECK(metadata("filter", "fourier").starts_with("metadata: filter: fourier is not allowed; choose none, chebyshev,"));
  CHECK(metadata("filter", "legendre") == "tensor 'poly.logits' is missing; the model needs it");
  CHECK(metadata("filter_jacobi_alpha", "1x") == "metadata: filter_jacobi_alpha: 1x is not allowed; must be a number");
  CHECK(metadata("residual_form", "none") == "metadata: residual_form: none is not allowed; choose gated, initial");
  CHECK(metadata("residual_form", "initial") == "tensor 'eps.0' is in the file, but not in the model");
  CHECK(metadata("residual_alpha", "2") == "residual.alpha: 2 is not allowed; must be between 0 and 1");
  CHECK(metadata("stalk_dimension", "9") ==
        "metadata: stalk_dimension: 9 is not allowed; must be between 1 and 8");
  CHECK(metadata("edge_weights", "true") ==
        "edge_weights: true is not allowed; diagonal maps have no edge weights");
  // Sizes that would fill the memory are refused before anything is allocated.
  CHECK(metadata("features", "268435456") ==
        "tensor 'lin1.weight' has shape [4, 4] in the file, but [4, 268435456] in the model");
  CHECK(metadata("channels", "1024") ==
        "tensor 'lin1.weight' has shape [4, 4] in the file, but [2048, 4] in the model");
  CHECK(metadata("classes", "1048576") ==
        "tensor 'lin2.weight' has shape [3, 4] in the file, but [1048576, 4] in the model");
  // 64 learners of eight hidden layers of 1024 × 1024 would be 2 GiB.
  write_changed(path, model, [&](TensorFile& f) {
    f.metadata["layers"] = "64";
    f.metadata["learner_layers"] = "8";
    f.metadata["learner_width"] = "1024";
  });
  const auto start = std::chrono::steady_clock::now();
  CHECK(load_refusal<Model>(path) == "tensor 'sheaf.0.hidden.0.weight' is missing; the model needs it");
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500));
  // What a file says is shown as one line, and a short one.
  CHECK(metadata("layers", "1\n2") == "metadata: layers: 1?2 is not allowed; must be a whole number");
  CHECK(metadata("activation", std::string(1000, 'x')) ==
        "metadata: activation: " + std::string(60, 'x') + "... is not allowed; must be true or false");
  CHECK(metadata("maps", "a\rb") == "maps is a?b in the file, but diagonal in the program");
  CHECK(changed([&](TensorFile& f) {
          f.tensors.push_back(sheafnn::io::make_tensor<float>("a\nb", {1}, {{1.0F}}));
        }) == "tensor 'a?b' is in the file, but not in the model");
  std::set<std::string> newer;
  const auto add_newer = [&](const sheafnn::Option& option, const auto&) {
    if (option.since != nullptr) newer.insert(option.key);
  };
  for_each_option(add_newer, model.options());
  for (const auto& entry : sheafnn::io::to_tensors(model).metadata) {
    if (entry.first.starts_with("format") || entry.first == "sheafnn_version" || entry.first == "posterior") continue;
    write_changed(path, model, [&](TensorFile& f) { f.metadata.erase(entry.first); });
    if (newer.contains(entry.first)) {  // has its default in files of earlier versions
      CHECK(same_parameters(model, load_checkpoint<Model>(path)));
      continue;
    }
    CHECK(load_refusal<Model>(path) == "metadata key '" + entry.first + "' is missing; not a sheafnn checkpoint?");
  }
}

TEST_CASE("checkpoints: damaged and missing files are refused") {
  using Model = Nsd<Diagonal<2>>;
  const test::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const Model model = some_model<Model>(tiny::options());
  save_checkpoint(path, model);
  const std::string whole = content_of(path);
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{100}, whole.size() - 1}) {
    CAPTURE(length);
    folder.write("model.safetensors", std::string_view(whole).substr(0, length));
    CHECK(load_refusal<Model>(path) != "nothing was thrown");
    CHECK_FALSE(load_refusal<Model>(path).starts_with("no path"));
    CHECK(refusal(path, [&] { static_cast<void>(sheafnn::io::read_checkpoint_info(path)); }) !=
          "nothing was thrown");
  }
  folder.write("model.safetensors", whole + "x");
  CHECK(load_refusal<Model>(path) != "nothing was thrown");
  folder.write("model.safetensors", whole);
  CHECK(load_refusal<Model>(path) == "nothing was thrown");
  CHECK(load_refusal<Model>(folder / "absent.safetensors") == "no such file");
  CHECK(load_refusal<Model>(folder.path()) == "is a folder, not a file");
}

TEST_CASE("checkpoints: a failed save leaves everything as it was") {
  using Model = Nsd<Diagonal<2>>;
  const test::TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  const Model model = some_model<Model>(tiny::options());
  save_checkpoint(path, model);
  const std::string before = content_of(path);
  const auto entries = [&] { return std::distance(std::filesystem::directory_iterator(folder.path()), {}); };
  CHECK_THROWS_WITH_AS(save_checkpoint(path, model, {{"layers", "7"}}),
                       "metadata key: layers is not allowed; is one of the model's own", std::invalid_argument);
  CHECK_THROWS_AS(save_checkpoint(path, model, {{"note", "\xff"}}), std::invalid_argument);  // not UTF-8
  // What could not be loaded again.
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Model broken = model;
    broken.parameters().values()[broken.parameters().info()[0].offset] = bad;
    const std::string message = broken.parameters().info()[0].name + "[0]: " + (bad > 0 ? "inf" : "nan") +
                                " is not allowed; must be finite";
    CHECK_THROWS_WITH_AS(save_checkpoint(path, broken), message.c_str(), std::invalid_argument);
  }
  CHECK(content_of(path) == before);
  CHECK(entries() == 1);
  // A folder that is not there, and a folder in the place of the file.
  const auto nowhere = folder / "absent/model.safetensors";
  CHECK(refusal(nowhere, [&] { save_checkpoint(nowhere, model); }).starts_with("cannot be written; "));
  CHECK_FALSE(std::filesystem::exists(folder / "absent"));
  std::filesystem::create_directory(folder / "taken");
  CHECK(refusal(folder / "taken", [&] {
          save_checkpoint(folder / "taken", model);
        }).starts_with("cannot be written; "));
  CHECK(std::filesystem::is_directory(folder / "taken"));
  CHECK(entries() == 2);

  // Where permissions count (not for root), a folder that may not be written to.
  namespace fs = std::filesystem;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const bool locked = !std::ofstream(folder / "probe").is_open();
  if (locked) {
    const Model other(tiny::options(), 77);
    CHECK(refusal(path, [&] { save_checkpoint(path, other); }).starts_with("cannot be written; "));
    CHECK(content_of(path) == before);
  }
  fs::permissions(folder.path(), fs::perms::owner_all);

  // And one that succeeds replaces the old file.
  const Model other(tiny::options(), 77);
  save_checkpoint(path, other);
  CHECK(content_of(path) != before);
  CHECK(same_parameters(load_checkpoint<Model>(path), other));
}

}  // namespace test_checkpoint
