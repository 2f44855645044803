/// \file
/// Training, trained models and what they predict. A trained model is the content of its checkpoint: the numbers are
/// those that the programs train and predict save.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <sheafnn/bsnn/epoch_report.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/presets.hpp>
#include <sheafnn/bsnn/search_settings.hpp>
#include <sheafnn/bsnn/search_training.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/io/checkpoint.hpp>
#include <sheafnn/io/npz_writer.hpp>
#include <sheafnn/io/sheaf_use_text.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "models/class_names.hpp"
#include "models/model_search.hpp"
#include "models/registry.hpp"
#include "models/sheaf_figures.hpp"
#include "module.hpp"
#include "options.hpp"
#include "prediction.hpp"

namespace python {

namespace {

using sheafnn::Dataset;
using sheafnn::Index;

std::string_view maps_of(std::string_view model, std::string_view maps) {
  return programs::is_cooperative(model) ? programs::cooperative_maps : maps;
}

/// A trained model: a checkpoint, and the functions that know its type.
class Model {
 public:
  /// \param path  where the file comes from, for messages
  /// \throws std::runtime_error      it is no checkpoint
  /// \throws std::invalid_argument   a model that this build does not contain
  Model(std::filesystem::path path, sheafnn::io::TensorFile file)
      : path_(std::move(path)),
        file_(std::move(file)),
        info_(sheafnn::io::checkpoint_info(path_, file_)),
        entry_(&programs::find_model(info_.model, maps_of(info_.model, info_.maps), info_.stalk_dimension)) {}

  [[nodiscard]] const sheafnn::io::TensorFile& file() const { return file_; }
  [[nodiscard]] const sheafnn::io::CheckpointInfo& info() const { return info_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] bool bayesian() const { return programs::is_bayesian(info_.model); }
  [[nodiscard]] std::string_view maps() const { return maps_of(info_.model, info_.maps); }
  /// None where they are not known.
  [[nodiscard]] std::vector<std::string> feature_names() const {
    return programs::checkpoint_feature_names(path_.string(), file_.metadata);
  }
  /// What happens to features.
  [[nodiscard]] const sheafnn::FeaturePlan& plan() const {
    return programs::with_kind(
        info_.model, info_.options, info_.cooperative, info_.flow,
        [](const auto& options) -> const auto& { return options.feature_plan; });
  }

  /// \throws std::invalid_argument  data with other feature columns
  [[nodiscard]] sheafnn::Prediction predict(const Dataset& data, const sheafnn::PredictOptions& options) const {
    sheafnn::check_feature_names(data.feature_names, feature_names());
    return entry_->predict(path_, file_, bayesian(), data, options);
  }
  [[nodiscard]] sheafnn::io::NpzWriter learned(const Dataset& data, const sheafnn::PredictOptions& options,
                                               Index layer) const {
    sheafnn::check_feature_names(data.feature_names, feature_names());
    return entry_->learned(path_, file_, bayesian(), data, options, layer);
  }

 private:
  std::filesystem::path path_;
  sheafnn::io::TensorFile file_;
  sheafnn::io::CheckpointInfo info_;
  const programs::ModelEntry* entry_;
};

/// Calls Python between epochs: `report` with every epoch and the largest number of them, and the signal handlers
/// twenty times a second. Ctrl-C ends the training with KeyboardInterrupt, or with the best parameters so far.
class Supervisor {
 public:
  /// \param keep  Ctrl-C keeps the best parameters, see interrupted()
  Supervisor(nb::object report, Index epochs, bool keep = true)
      : report_(std::move(report)), epochs_(epochs), keep_(keep) {}

  sheafnn::EpochAction operator()(const sheafnn::EpochReport& epoch) {
    if (before_end_ && interpreter_ends()) park_released();
    const auto now = std::chrono::steady_clock::now();
    const bool look = now - looked_ > std::chrono::milliseconds(50);
    if (!look && report_.is_none()) return sheafnn::EpochAction::go_on;
    const GilAcquire acquire;
    if (look) {
      looked_ = now;
      if (check_signals()) return sheafnn::EpochAction::stop;
    }
    if (report_.is_none()) return sheafnn::EpochAction::go_on;
    try {
      const nb::object answer = or_park([&]() -> nb::object { return report_(epoch, epochs_); });
      if (answer.is_none()) return sheafnn::EpochAction::go_on;
      const int truth = or_park([&] { return PyObject_IsTrue(answer.ptr()); });  // NumPy's False as well
      if (truth < 0) throw nb::python_error();
      return truth == 0 ? sheafnn::EpochAction::stop : sheafnn::EpochAction::go_on;
    } catch (const nb::python_error& error) {  // Python runs the signal handlers as well where a function begins
      if (!keep_ || !error.matches(PyExc_KeyboardInterrupt)) throw;
      interrupted_ = true;
      return sheafnn::EpochAction::stop;
    }
  }
  /// Runs the signal handlers. \returns whether there was a Ctrl-C that keeps the parameters
  bool check_signals() {
    if (or_park([] { return PyErr_CheckSignals(); }) == 0) return false;
    if (!keep_ || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) == 0) throw nb::python_error();
    PyErr_Clear();
    return interrupted_ = true;
  }
  [[nodiscard]] bool interrupted() const { return interrupted_; }

 private:
  nb::object report_;
  Index epochs_;
  bool keep_;
  bool before_end_ = !interpreter_ends();
  std::chrono::steady_clock::time_point looked_ = std::chrono::steady_clock::now();
  bool interrupted_ = false;
};

/// What begins the name of a setting of a search in the place of a preset's.
constexpr std::string_view searched = "search: ";

/// The options of a network and of its training: a preset's, and over these the ones that are said.
struct Settings {
  programs::NetworkOptions network;
  sheafnn::TrainOptions training;
  std::string preset;
};

/// Sets what `said` has of the options of one kind of network. Learned maps read the features of arcs where there are some.
template <class Options>
void set_network(Options& options, const Dataset& data, Texts said, std::string_view model,
                 std::string_view maps) {
  for (const auto& [key, text] : said) sheafnn::require(!is_decided(key), "network", key, "the data decide it");
  if constexpr (requires { options.edge_features; }) {
    if (maps != "identity") options.edge_features = data.graph.arc_feature_count();
  }
  if (const auto rows = said.find("normalise_features"); rows != said.end()) {  // an older spelling
    const bool given = said.contains("feature_treatment");
    sheafnn::require(!given, "network['normalise_features']", rows->second, "feature_treatment says the same");
    sheafnn::require(rows->second == "true" || rows->second == "false", "network['normalise_features']",
                     rows->second, "must be true or false");
    said["feature_treatment"] = rows->second == "true" ? "rows" : "none";
    said.erase("normalise_features");
  }
  set_options(said, options, "network", model);
}

/// What a name of search_settings() stands for.
///
/// \throws std::invalid_argument  there is none of that name
const sheafnn::SearchSetting& find_setting(std::string_view name) {
  for (const sheafnn::SearchSetting& setting : sheafnn::search_settings()) {
    if (setting.name == name) return setting;
  }
  sheafnn::throw_invalid_argument("setting", name, "no setting of a search has that name");
}

/// \throws std::invalid_argument  data that do not fit together, or no split of that number
const sheafnn::Split& checked_split(const Dataset& data, std::size_t number) {
  validate(data);
  sheafnn::require(number < data.splits.size(), "split", number,
                   sheafnn::detail::concat("the dataset has ", data.splits.size(), " splits"));
  return data.splits[number];
}

/// \param preset  a name, "none", or "auto": the one for data and split; or "search: NAME", a setting of a search
/// \throws std::invalid_argument  no such preset or option, or no value of it
Settings make_settings(const Dataset& data, const sheafnn::Split& split, std::string_view model,
                       std::string_view maps, const std::string& preset, Texts network, Texts training) {
  Settings s;
  s.preset = preset;
  std::optional<sheafnn::Preset> chosen;
  const sheafnn::SearchSetting* setting = nullptr;
  if (preset.starts_with(searched)) {
    setting = &find_setting(std::string_view(preset).substr(searched.size()));
  } else if (preset != "none") {
    chosen = preset == "auto" ? sheafnn::choose_preset(data, split)
                              : sheafnn::parse_name<sheafnn::Preset>("preset", preset);
    s.training.stop_on = sheafnn::choose_stop_on(data, *chosen);
    s.preset = to_string(*chosen);
  }
  auto& [pairs, cooperative, flow] = s.network;
  programs::with_kind(model, pairs, cooperative, flow, [&](auto& options) {
    options.features = data.feature_count();
    options.classes = data.class_count;
    if (setting != nullptr) {
      if constexpr (requires { sheafnn::apply(*setting, options, s.training); }) {
        sheafnn::apply(*setting, options, s.training);
      }
      s.training.stop_on = sheafnn::search_stop_on(data);
    } else if (chosen) {
      sheafnn::apply(*chosen, options, programs::is_bayesian(model), s.training);
    }
    set_network(options, data, std::move(network), model, maps);
  });
  set_options(std::move(training), s.training, "training", "a training");
  return s;
}

/// NaN as None.
nb::object from_json(const nlohmann::ordered_json& json) {
  return nb::module_::import_("json").attr("loads")(json.dump());
}

nb::dict result_of(const sheafnn::TrainResult& r, const programs::TrainOutcome& outcome, std::string_view preset,
                   bool interrupted) {
  nb::dict d;
  d["best_epoch"] = r.best_epoch;
  d["epochs"] = r.history.size();
  d["stop_reason"] = interrupted ? std::string("interrupted") : std::string(to_string(r.stop_reason));
  d["validation_loss"] = r.validation_loss;
  d["validation_accuracy"] = r.validation_accuracy;
  d["validation_metric"] = r.validation_metric;
  d["test_accuracy"] = r.test_accuracy;
  d["test_nll"] = r.test_nll;
  d["test_ece"] = r.test_ece;
  d["test_metric"] = r.test_metric;
  d["test_roc_auc"] = r.test_roc_auc;
  d["test_average_precision"] = r.test_average_precision;
  d["test_macro_f1"] = r.test_macro_f1;
  d["test_brier"] = r.test_brier;
  d["epoch_seconds"] = r.epoch_seconds;
  d["parameters"] = outcome.parameters;
  d["preset"] = std::string(preset);
  if (outcome.sheaf_use) d["sheaf"] = from_json(programs::sheaf_use_json(*outcome.sheaf_use));
  return d;
}

/// One array for each quantity of the epochs.
nb::dict history_of(const std::vector<sheafnn::EpochReport>& history) {
  nb::dict d;
  const auto column = [&](const char* name, const auto& field) {
    std::vector<double> values;
    for (const sheafnn::EpochReport& epoch : history) values.push_back(epoch.*field);
    d[name] = to_numpy(std::move(values), {history.size()});
  };
  using Report = sheafnn::EpochReport;
  column("loss", &Report::loss);
  column("nll", &Report::nll);
  column("kl", &Report::kl);
  column("kl_weight", &Report::kl_weight);
  column("validation_loss", &Report::validation_loss);
  column("validation_accuracy", &Report::validation_accuracy);
  column("validation_metric", &Report::validation_metric);
  return d;
}

/// \return  the model, its figures, its epochs, and its prediction of all nodes in the best epoch
nb::tuple train(const Dataset& data, std::size_t split_number, const std::string& model, const std::string& maps,
                int stalk_dimension, const std::string& preset, const Texts& network, const Texts& training,
                std::uint64_t seed, const nb::object& report, bool keep_interrupted) {
  const sheafnn::Split& split = checked_split(data, split_number);
  const programs::ModelEntry& entry = programs::find_model(model, maps_of(model, maps), stalk_dimension);
  Settings settings = make_settings(data, split, model, maps, preset, network, training);
  settings.training.seed = seed;
  Supervisor supervisor(report, settings.training.epochs, keep_interrupted);
  settings.training.on_epoch = std::ref(supervisor);
  sheafnn::TrainResult result;
  programs::TrainOutcome outcome;
  {
    const GilRelease release;
    outcome = entry.train({.data = data,
                           .split = split,
                           .model = settings.network,
                           .train = settings.training,
                           .bayesian = programs::is_bayesian(model),
                           .seed = seed,
                           .keep = {.model = true, .prediction = true, .sheaf_use = true}},
                          result);
  }
  supervisor.check_signals();  // Ctrl-C after the last epoch, e.g. during the prediction, counts as well
  const auto classes = static_cast<std::size_t>(data.class_count);
  return nb::make_tuple(Model("trained model", std::move(outcome.checkpoint)),
                        result_of(result, outcome, settings.preset, supervisor.interrupted()),
                        history_of(result.history), prediction_of(outcome.prediction, classes));
}

nb::dict row_of(const sheafnn::SearchRow& row) {
  const sheafnn::SearchSetting& setting = find_setting(row.name);
  nb::dict d;
  d["name"] = row.name;
  d["model"] = std::string(setting.model);
  d["maps"] = std::string(setting.maps);
  d["stalk_dim"] = setting.stalk_dimension;
  d["round"] = row.round;
  d["splits"] = row.splits;
  d["epochs"] = row.epochs;
  d["validation_score"] = row.score;
  d["validation_std"] = row.deviation;
  d["validation_loss"] = row.loss;
  d["seconds"] = row.seconds;
  d["error"] = row.error;
  return d;
}

/// Tries the settings of search_settings() on the training and validation nodes of a split.
///
/// \param model, maps, stalk_dimension  those alone are tried that have them; empty or 0: any
/// \return  a row for each setting, the best first, with settings that are left out at the end
/// \throws std::invalid_argument  no setting is left, with the reason of the first
nb::list search(const Dataset& data, std::size_t split_number, const std::string& model, const std::string& maps,
                int stalk_dimension, const Texts& network, const Texts& training, std::uint64_t seed,
                double seconds) {
  const sheafnn::Split& split = checked_split(data, split_number);
  const std::vector<sheafnn::Split> splits = sheafnn::search_splits(data, {&split, 1}, seed);
  Supervisor supervisor(nb::none(), 0, /*keep=*/false);  // Ctrl-C leaves the search
  std::vector<programs::SearchedModel> models;
  const auto add = [&](const sheafnn::SearchSetting& setting) {
    if (!programs::other_part(setting, model, maps, stalk_dimension).empty()) {
      throw std::invalid_argument("another model, maps or stalk_dim");
    }
    const std::string name(setting.name), own(setting.model);
    const programs::ModelEntry& entry = programs::find_model(own, setting.maps, setting.stalk_dimension);
    Settings s =
        make_settings(data, splits.front(), own, setting.maps, std::string(searched) + name, network, training);
    s.training.seed = seed;
    s.training.on_epoch = std::ref(supervisor);
    entry.check(s.network, programs::is_bayesian(own));
    models.push_back({name, &entry, programs::is_bayesian(own), s.network, s.training});
  };
  const std::vector<programs::LeftOut> left_out = programs::for_settings("search", seconds, add);
  sheafnn::SearchResult result;
  {
    const GilRelease release;
    result = programs::search_models(models, data, splits, {.seconds = seconds});
  }
  supervisor.check_signals();
  nb::list rows;
  for (const std::size_t i : result.ranking) rows.append(row_of(result.rows[i]));
  for (const programs::LeftOut& one : left_out) {
    rows.append(row_of({.name = std::string(one.name), .error = one.why}));
  }
  return rows;
}

/// Names of values of an option, as a tuple of Python.
template <std::size_t N>
nb::tuple names_of(const std::array<std::string_view, N>& names) {
  nb::list r;
  for (const std::string_view name : names) r.append(std::string(name));
  return nb::tuple(r);
}

template <class Scalar>
nb::object tensor_array(const sheafnn::io::Tensor& tensor) {
  const std::vector<std::size_t> shape(tensor.shape.begin(), tensor.shape.end());
  return nb::cast(to_numpy(tensor.values<Scalar>(), shape));
}
nb::dict tensors_of(const Model& model) {
  nb::dict d;
  for (const sheafnn::io::Tensor& tensor : model.file().tensors) {
    d[tensor.name.c_str()] = tensor.dtype == "F64" ? tensor_array<double>(tensor) : tensor_array<float>(tensor);
  }
  return d;
}

/// What pickle keeps: metadata, and name, dtype, shape and bytes of every tensor.
using State = std::pair<Texts, std::vector<std::tuple<std::string, std::string, std::vector<Index>, nb::bytes>>>;

State state_of(const Model& model) {
  State state;
  state.first = model.file().metadata;
  for (const sheafnn::io::Tensor& tensor : model.file().tensors) {
    state.second.emplace_back(tensor.name, tensor.dtype, tensor.shape,
                              nb::bytes(tensor.data.data(), tensor.data.size()));
  }
  return state;
}
Model model_of(const State& state) {
  sheafnn::io::TensorFile file;
  file.metadata = state.first;
  for (const auto& [name, dtype, shape, bytes] : state.second) {
    const auto* data = static_cast<const unsigned char*>(bytes.data());
    file.tensors.push_back({name, dtype, shape, {data, data + bytes.size()}});
    const std::size_t item = dtype == "F64" ? 8 : 4;
    sheafnn::require(bytes.size() == item * static_cast<std::size_t>(file.tensors.back().size()), name,
                     bytes.size(), "is not the number of bytes that its shape needs");
  }
  return Model("pickled model", std::move(file));
}

/// The names of the model's classes; none where they are numbers.
std::vector<std::string> class_names_of(const Model& model) {
  const auto& info = model.info();
  const Index classes = programs::with_kind(info.model, info.options, info.cooperative, info.flow,
                                            [](const auto& options) { return options.classes; });
  return programs::checkpoint_class_names(model.path().string(), info.metadata, classes);
}

}  // namespace

void bind_model(nb::module_& module) {
  nb::class_<sheafnn::EpochReport>(module, "EpochReport", "What one epoch of a training showed.")
      .def_ro("epoch", &sheafnn::EpochReport::epoch)
      .def_ro("loss", &sheafnn::EpochReport::loss)
      .def_ro("nll", &sheafnn::EpochReport::nll)
      .def_ro("kl", &sheafnn::EpochReport::kl)
      .def_ro("validation_loss", &sheafnn::EpochReport::validation_loss)
      .def_ro("validation_accuracy", &sheafnn::EpochReport::validation_accuracy);
  nb::class_<Model>(module, "Model")
      .def_static("load",
                  [](const std::filesystem::path& path) {
                    return Model(path, sheafnn::io::read_safetensors(path));
                  })
      .def("save",
           [](const Model& model, const std::filesystem::path& path, const Texts& more) {
             sheafnn::io::TensorFile file = model.file();
             for (const auto& [key, value] : more) file.metadata[key] = value;
             sheafnn::io::write_safetensors(path, file);
           })
      .def_prop_ro("kind", [](const Model& model) { return model.info().model; })
      .def_prop_ro("maps", [](const Model& model) { return std::string(model.maps()); })
      .def_prop_ro("stalk_dimension", [](const Model& model) { return model.info().stalk_dimension; })
      .def_prop_ro("bayesian", &Model::bayesian)
      .def_prop_ro("class_names", &class_names_of)
      .def_prop_ro("feature_names", &Model::feature_names)
      .def_prop_ro("feature_treatment", [](const Model& model) { return model.plan().describe(); })
      .def_prop_ro("given_columns", [](const Model& model) { return model.plan().given_columns(); })
      .def_prop_ro("sheaf_use",
                   [](const Model& model) -> nb::object {
                     const auto use = sheafnn::io::saved_sheaf_use(model.path().string(), model.file().metadata);
                     return use ? from_json(programs::sheaf_use_json(*use)) : nb::none();
                   })
      .def_prop_ro("metadata", [](const Model& model) { return model.file().metadata; })
      .def("tensors", &tensors_of)
      .def("__getstate__", &state_of)
      .def("__setstate__", [](Model& model, const State& state) { new (&model) Model(model_of(state)); })
      .def("predict",
           [](const Model& model, const Dataset& data, Index samples, std::uint64_t seed, std::uint32_t epoch,
              int threads) {
             sheafnn::Prediction p;
             {
               const GilRelease release;
               p = model.predict(data, {samples, seed, epoch, threads});
             }
             return prediction_of(p, static_cast<std::size_t>(p.class_count));
           })
      .def("learned", [](const Model& model, const Dataset& data, Index samples, std::uint64_t seed,
                         std::uint32_t epoch, int threads, Index layer) {
        sheafnn::io::Bytes bytes;
        {
          const GilRelease release;
          bytes = model.learned(data, {samples, seed, epoch, threads}, layer).bytes();
        }
        return nb::bytes(bytes.data(), bytes.size());
      });
  module.attr("model_names") = names_of(programs::model_names);
  module.attr("maps_names") = names_of(programs::maps_names);
  module.attr("preset_names") = names_of(sheafnn::preset_names);
  module.attr("feature_treatment_names") = names_of(sheafnn::feature_treatment_names);
  module.attr("searched") = std::string(searched);
  module.def("search", &search);
  module.def("train", &train, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
}

}  // namespace python
