/// \file
/// Training, trained models and what they predict. A trained model is the content of its checkpoint, with the numbers
/// that the programs train and predict save.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sheafnn/bsnn/any_target_loss.hpp>
#include <sheafnn/bsnn/epoch_report.hpp>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/presets.hpp>
#include <sheafnn/bsnn/search_settings.hpp>
#include <sheafnn/bsnn/search_training.hpp>
#include <sheafnn/bsnn/target_scaling.hpp>
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
#include "checkpoint_class.hpp"
#include "figures.hpp"
#include "interpreter.hpp"
#include "models/class_names.hpp"
#include "models/device_registry.hpp"
#include "models/kept_sheaf_use.hpp"
#include "models/model_search.hpp"
#include "models/outcome.hpp"
#include "models/registry.hpp"
#include "models/sheaf_figures.hpp"
#include "models/target_loss.hpp"
#include "module.hpp"
#include "options.hpp"
#include "prediction.hpp"
#include "settings.hpp"
#include "supervisor.hpp"
#include "trained_model.hpp"

namespace python {

nb::dict figures_of(const sheafnn::TrainResult& r, Index parameters, bool interrupted) {
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
  d["parameters"] = parameters;
  return d;
}

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

namespace {

/// \throws std::invalid_argument  data that do not fit together, or no split of that number
const sheafnn::Split& checked_split(const Dataset& data, std::size_t number) {
  validate(data);
  return split_of(data, number);
}

/// NaN as None.
nb::object from_json(const nlohmann::ordered_json& json) {
  return nb::module_::import_("json").attr("loads")(json.dump());
}

nb::dict result_of(const sheafnn::TrainResult& r, const programs::TrainOutcome& outcome, std::string_view preset,
                   bool interrupted) {
  nb::dict d = figures_of(r, outcome.parameters, interrupted);
  d["preset"] = std::string(preset);
  if (outcome.sheaf_use) d["sheaf"] = from_json(programs::sheaf_use_json(*outcome.sheaf_use));
  return d;
}

/// \return  the model, its figures, its epochs, and its prediction of all nodes in the best epoch
nb::tuple trained(const Dataset& data, const sheafnn::TrainResult& result, programs::TrainOutcome& outcome,
                  std::string_view preset, bool interrupted) {
  const nb::dict figures = result_of(result, outcome, preset, interrupted);
  return nb::make_tuple(Model("trained model", std::move(outcome.checkpoint)), figures, history_of(result.history),
                        prediction_of(outcome.prediction, static_cast<std::size_t>(data.class_count)));
}

constexpr programs::Keep kept = {.model = true, .prediction = true, .sheaf_use = true};

/// Trains on the CPU, without the interpreter's lock; Ctrl-C after the last epoch, e.g. during the prediction, counts as well.
///
/// \param loss  of targets; null: the classes of the data
programs::TrainOutcome train_on_cpu(const Dataset& data, const sheafnn::Split& split, const std::string& model,
                                    std::string_view maps, int stalk_dimension, Settings& settings,
                                    std::uint64_t seed, Supervisor& supervisor, const programs::Keep& keep,
                                    const programs::TargetLoss* loss, sheafnn::TrainResult& result) {
  const programs::ModelEntry& entry = programs::find_model(model, maps_of(model, maps), stalk_dimension);
  settings.training.seed = seed;
  settings.training.on_epoch = std::ref(supervisor);
  programs::TrainOutcome outcome = without_lock([&] {
    return entry.train({.data = data,
                        .split = split,
                        .model = settings.network,
                        .train = settings.training,
                        .bayesian = programs::is_bayesian(model),
                        .seed = seed,
                        .keep = keep,
                        .loss = loss},
                       result);
  });
  supervisor.check_signals();
  return outcome;
}

/// Trains on the CPU. \return  as trained()
nb::tuple train(const Dataset& data, std::size_t split_number, const std::string& model, const std::string& maps,
                int stalk_dimension, const std::string& preset, const Texts& network, const Texts& training,
                std::uint64_t seed, const nb::object& report, bool keep_interrupted) {
  const sheafnn::Split& split = checked_split(data, split_number);
  Settings settings = make_settings(data, split, model, maps, preset, network, training);
  Supervisor supervisor(report, settings.training.epochs, keep_interrupted);
  sheafnn::TrainResult result;
  programs::TrainOutcome outcome =
      train_on_cpu(data, split, model, maps, stalk_dimension, settings, seed, supervisor, kept, nullptr, result);
  return trained(data, result, outcome, settings.preset, supervisor.interrupted());
}

/// Number of a split and seed.
using Run = std::pair<std::size_t, std::uint64_t>;

/// Trains on a CUDA device, side by side what has the same options; the figures of the sheaves are computed on the CPU.
///
/// \param report  called after the epochs of all runs alike
/// \return        for each run as trained(), or a text that says why it diverged
nb::list train_on_device(const Dataset& data, const std::vector<Run>& runs, const std::string& model,
                         const std::string& maps, int stalk_dimension, const std::string& preset,
                         const Texts& network, const Texts& training, const nb::object& report,
                         bool keep_interrupted, int device) {
  const bool bayesian = programs::is_bayesian(model);
  const std::string_view kind_of_maps = maps_of(model, maps);
  const programs::ModelEntry& entry = programs::find_model(model, kind_of_maps, stalk_dimension);
  sheafnn::require(sheafnn::kind_of(model).batched, "device", "cuda",
                   sheafnn::detail::concat(model, " is trained on the CPU only"));
  const programs::DeviceModelEntry& on_device = programs::find_device_model(model, kind_of_maps, stalk_dimension);
  std::vector<Settings> settings;  // of every run
  std::vector<std::vector<std::size_t>> groups;
  for (const auto& [split, seed] : runs) {
    settings.push_back(make_settings(data, checked_split(data, split), model, maps, preset, network, training));
    // The split determines the preset.
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
      return settings[group.front()].preset == settings.back().preset;
    });
    std::vector<std::size_t>& group = same == groups.end() ? groups.emplace_back() : *same;
    group.push_back(settings.size() - 1);
  }
  Supervisor supervisor(report, settings.empty() ? 0 : settings.front().training.epochs, keep_interrupted);
  std::vector<programs::DeviceOutcome> outcomes(runs.size());
  {
    const GilRelease release;
    for (const std::vector<std::size_t>& group : groups) {
      Settings& own = settings[group.front()];
      own.training.on_epoch = std::ref(supervisor);
      std::vector<programs::DeviceJob::Run> jobs;
      for (const std::size_t i : group) jobs.push_back({&data.splits[runs[i].first], runs[i].second});
      std::vector<programs::DeviceOutcome> found =
          on_device.train({data, jobs, own.network, own.training, bayesian, kept, device});
      for (std::size_t k = 0; k < group.size(); ++k) {
        programs::DeviceOutcome& one = outcomes[group[k]] = std::move(found[k]);
        if (!one.error.empty()) continue;
        sheafnn::TrainOptions options = own.training;
        options.seed = jobs[k].seed;
        const auto best = programs::best_epoch_options(options, one.result.best_epoch);
        programs::keep_sheaf_use(one.outcome, entry.sheaf_use("trained model", one.outcome.checkpoint, bayesian,
                                                              data, jobs[k].split->validation, best));
      }
    }
  }
  supervisor.check_signals();
  nb::list r;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!outcomes[i].error.empty()) {
      r.append(outcomes[i].error);
    } else {
      r.append(
          trained(data, outcomes[i].result, outcomes[i].outcome, settings[i].preset, supervisor.interrupted()));
    }
  }
  return r;
}

/// What a network learns of targets that are not the labels of the data, as Python names it.
struct TargetKind {
  sheafnn::TargetLoss loss;
  Index columns;                   ///< k
  std::vector<double> base_rates;  ///< of counts
  Index classes;                   ///< of ordered classes

  [[nodiscard]] sheafnn::AnyTargetLoss of(std::vector<double> values) const {
    return {loss, {std::move(values), columns, base_rates, classes}};
  }
  /// For predictions of n nodes.
  [[nodiscard]] sheafnn::AnyTargetLoss unknown(Index nodes) const {
    return {loss, {{}, columns, base_rates, classes}, nodes};
  }
};
/// The name of a loss, k, base rates and the number of classes.
using TargetTuple = std::tuple<std::string, Index, std::vector<double>, Index>;

[[nodiscard]] TargetKind kind_of(const TargetTuple& t) {
  return {sheafnn::parse_name<sheafnn::TargetLoss>("loss", std::get<0>(t)), std::get<1>(t), std::get<2>(t),
          std::get<3>(t)};
}

nb::object rows_of(std::vector<double> values, Index rows) {
  const auto n = static_cast<std::size_t>(rows);
  const std::size_t columns = values.size() / std::max<std::size_t>(n, 1);
  return nb::cast(to_numpy(std::move(values), {n, columns}));
}
/// Expected numbers or probabilities, and standard deviations or None.
nb::tuple predictions_of(const std::vector<double>& predictions, const sheafnn::AnyTargetLoss& loss, Index rows) {
  const sheafnn::MatrixView<const double> view(predictions.data(), rows, loss.outputs());
  std::vector<double> deviations = loss.deviations(view);
  return nb::make_tuple(rows_of(loss.expectations(view), rows),
                        deviations.empty() ? nb::none() : rows_of(std::move(deviations), rows));
}

/// \param targets  n × k, NaN where unknown
/// \return         means and scales, and base rates of counts
nb::tuple target_scaling(const std::string& loss, const Input<double>& targets, const Input<std::int32_t>& nodes) {
  const std::vector<double> values = vector_of(targets);
  const sheafnn::TargetScaling r =
      sheafnn::TargetScaling::fit(sheafnn::parse_name<sheafnn::TargetLoss>("loss", loss),
                                  {values.data(), static_cast<Index>(targets.shape(0)),
                                   static_cast<Index>(targets.shape(1))},
                                  span_of(nodes));
  const auto array = [](const std::vector<double>& v) {
    return nb::cast(to_numpy(std::vector<double>(v), {v.size()}));
  };
  return nb::make_tuple(array(r.mean), array(r.scale), array(r.base_rates));
}

/// Trains on targets instead of the data's labels.
///
/// \param targets  n × k; NaN where unknown
/// \return         the model, its figures, its epochs, and its predictions of all nodes in the best epoch
nb::tuple train_targets(const Dataset& data, std::size_t split_number, const Input<double>& targets,
                        const TargetTuple& kind, const std::string& model, const std::string& maps,
                        int stalk_dimension, const std::string& preset, const Texts& network,
                        const Texts& training, std::uint64_t seed, const nb::object& report,
                        bool keep_interrupted) {
  const sheafnn::Split& split = split_of(data, split_number);
  const sheafnn::AnyTargetLoss loss = kind_of(kind).of(vector_of(targets));
  const programs::TargetLoss own(loss);
  Settings settings = make_settings(data, split, model, maps, preset, network, training, loss.outputs());
  Supervisor supervisor(report, settings.training.epochs, keep_interrupted);
  sheafnn::TrainResult result;
  programs::TrainOutcome outcome = train_on_cpu(data, split, model, maps, stalk_dimension, settings, seed,
                                                supervisor, {.model = true}, &own, result);
  const nb::dict figures = result_of(result, outcome, settings.preset, supervisor.interrupted());
  return nb::make_tuple(Model("trained model", std::move(outcome.checkpoint)), figures, history_of(result.history),
                        predictions_of(outcome.targets, loss, data.node_count()));
}

/// What the network of a model predicts, n × outputs.
///
/// \param samples  where the predictions of every posterior sample are written instead, or null
std::vector<double> raw_predictions(const Model& model, const Dataset& data, const sheafnn::AnyTargetLoss& loss,
                                    const sheafnn::PredictOptions& options,
                                    std::vector<double>* samples = nullptr) {
  const GilRelease release;
  const auto& info = model.info();
  const programs::ModelEntry& entry = programs::find_model(info.model, model.maps(), info.stalk_dimension);
  return model.with_own_names(data, [&](const Dataset& own) {
    return entry.predict_targets(model.path(), model.file(), model.bayesian(), own,
                                 programs::TargetLoss(loss, samples), options);
  });
}
/// \return  as predictions_of()
nb::tuple predict_targets(const Model& model, const Dataset& data, const TargetTuple& kind, Index samples,
                          std::uint64_t seed, std::uint32_t epoch, int threads) {
  const sheafnn::AnyTargetLoss loss = kind_of(kind).unknown(data.node_count());
  return predictions_of(raw_predictions(model, data, loss, {samples, seed, epoch, threads}), loss,
                        data.node_count());
}
nb::tuple bounds_of(sheafnn::uncertainty::Intervals intervals, Index rows) {
  return nb::make_tuple(rows_of(std::move(intervals.lower), rows), rows_of(std::move(intervals.upper), rows));
}
/// \return  lower and upper bounds of the predictive mixture, n × k
nb::tuple target_intervals(const Model& model, const Dataset& data, const TargetTuple& kind, double coverage,
                           Index samples, std::uint64_t seed, std::uint32_t epoch, int threads) {
  const sheafnn::AnyTargetLoss loss = kind_of(kind).unknown(data.node_count());
  std::vector<double> all;
  raw_predictions(model, data, loss, {samples, seed, epoch, threads}, &all);
  const auto one = static_cast<std::size_t>(std::max<Index>(data.node_count() * loss.outputs(), 1));
  return bounds_of(loss.intervals(all, static_cast<Index>(std::max<std::size_t>(all.size() / one, 1)), coverage),
                   data.node_count());
}
/// Conformal intervals of all rows, with thresholds from the targets of some.
///
/// \param deviations  rows × k, or empty: absolute residuals
/// \return            lower and upper bounds, rows × k
nb::tuple residual_intervals(const Input<double>& predictions, const Input<double>& deviations,
                             const Input<double>& targets, const Input<std::int32_t>& nodes, double coverage) {
  namespace uncertainty = sheafnn::uncertainty;
  const std::vector<double> thresholds =
      uncertainty::residual_thresholds(span_of(targets), span_of(predictions), span_of(deviations),
                                       static_cast<Index>(predictions.shape(1)), span_of(nodes), coverage);
  return bounds_of(uncertainty::residual_intervals(span_of(predictions), span_of(deviations), thresholds),
                   static_cast<Index>(predictions.shape(0)));
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
  const sheafnn::SearchResult result =
      without_lock([&] { return programs::search_models(models, data, splits, {.seconds = seconds}); });
  supervisor.check_signals();
  nb::list rows;
  for (const std::size_t i : result.ranking) rows.append(row_of(result.rows[i]));
  for (const programs::LeftOut& one : left_out) {
    rows.append(row_of({.name = std::string(one.name), .error = one.why}));
  }
  return rows;
}

/// Names of values of an option, as a tuple of Python.
template <class Names>
nb::tuple names_of(const Names& names) {
  nb::list r;
  for (const std::string_view name : names) r.append(std::string(name));
  return nb::tuple(r);
}

/// The names of the model's classes; empty if they are numbers.
std::vector<std::string> class_names_of(const Model& model) {
  const auto& info = model.info();
  const Index classes =
      programs::with_options_of(info.model, info.networks, [](const auto& options) { return options.classes; });
  return model.class_names_of(classes);
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
  bind_checkpoint<Model>(module, "Model")
      .def_prop_ro("maps", [](const Model& model) { return std::string(model.maps()); })
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
      .def("predict",
           [](const Model& model, const Dataset& data, Index samples, std::uint64_t seed, std::uint32_t epoch,
              int threads) {
             const sheafnn::Prediction p =
                 without_lock([&] { return model.predict(data, {samples, seed, epoch, threads}); });
             return prediction_of(p, static_cast<std::size_t>(p.class_count));
           })
      .def("predict_targets", &predict_targets)
      .def("target_intervals", &target_intervals)
      .def("learned", [](const Model& model, const Dataset& data, Index samples, std::uint64_t seed,
                         std::uint32_t epoch, int threads, Index layer) {
        const sheafnn::io::Bytes bytes =
            without_lock([&] { return model.learned(data, {samples, seed, epoch, threads}, layer).bytes(); });
        return nb::bytes(bytes.data(), bytes.size());
      });
  std::vector<std::string_view> on_graphs(programs::model_names.begin(), programs::model_names.end());
  std::erase_if(on_graphs, sheafnn::is_on_hypergraphs);
  module.attr("model_names") = names_of(on_graphs);
  module.def("least_stalk_dim",
             [](std::string_view model) { return sheafnn::kind_of(model).least_stalk_dimension; });
  module.def("own_maps", [](std::string_view model) { return std::string(sheafnn::kind_of(model).own_maps); });
  module.attr("maps_names") = names_of(programs::maps_names);
  module.attr("preset_names") = names_of(names_of(sheafnn::Preset()));
  module.attr("feature_treatment_names") = names_of(names_of(sheafnn::FeatureTreatment()));
  module.attr("searched") = std::string(searched);
  module.def("search", &search);
  module.def("train", &train, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  module.def("train_on_device", &train_on_device, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg());
  module.def("train_targets", &train_targets, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg());
  module.def("target_scaling", &target_scaling);
  module.def("residual_intervals", &residual_intervals);
  module.attr("has_device_models") = programs::has_device_models();
}

}  // namespace python
