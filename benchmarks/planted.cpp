/// \file
/// The table "planted sheaves": what learned sheaves recover of a planted one, and what it is worth.
///
///     planted_sheaves --task frames --nodes 5000 --spread 0.5 --seeds 0-9 --report frames.json
///
/// Every seed is a task of its own, and the seed of the training. All networks have the same options. The weight decay and
/// the sheaf decay with the smallest validation loss are kept, and so is a KL weight of the network predictive.
///
///     planted_sheaves --data frames.npz --networks given,nsd,bsnn,identity
///
/// reads the task and its true sheaf from a file (planted/file_task.hpp). All seeds then share its first split.
///
/// benchmarks/planted.py runs the program for many tasks and writes the table.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/npz_writer.hpp>
#include <sheafnn/sheaf/planted.hpp>
#include <sheafnn/sheaf/planted_geometric.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "models/side_by_side.hpp"
#include "planted/file_task.hpp"
#include "planted/networks.hpp"

namespace {

using planted::Figures;
using sheafnn::Index;

struct Settings {
  std::string task = "frames", data, seeds = "0-2", report, export_to;
  std::vector<std::string> networks = {"given", "nsd", "bsnn", "predictive", "identity", "csnn"};
  std::vector<double> decays = {1e-3, 1e-2}, sheaf_decays = {0}, predictive_kl = {0.005, 0.01};
  sheafnn::PlantedOptions options{.splits = 1};
  planted::Setting bsnn, predictive;
  std::string schedule = "cyclical", learner = "concatenation", normalisation = "augmented",
              rotation = "exponential", activation = "identity";
  int threads = 1;
};

std::vector<std::uint64_t> numbers_of(const std::string& text) {
  const std::size_t dash = text.find('-');
  std::vector<std::uint64_t> r(1, std::stoull(text));
  if (dash != std::string::npos) r.resize(std::stoull(text.substr(dash + 1)) - r[0] + 1);
  std::iota(r.begin(), r.end(), r[0]);
  return r;
}

template <class Family>
Figures train(const std::string& network, const sheafnn::PlantedTask<Family>& task,
              const sheafnn::PlantedOptions& options, const planted::Setting& setting) {
  const bool other = network == "identity" || network == "csnn" || network == "bcsnn";
  if (other) return planted::train_other<Family::stalk_dimension>(network, task.data, setting);
  if constexpr (std::is_same_v<Family, sheafnn::SpecialOrthogonal<3>>) {
    if (!task.concentration.empty()) {  // the same frames without what was drawn
      return planted::train_learned(network, task, sheafnn::planted_frames<3>(options).sheaf, setting);
    }
  }
  return planted::train_learned(network, task, task.sheaf, setting);
}

/// Calls use(task) for the task of a file, or for a generated one: maps of R³, tangent planes, or signs.
template <class Use>
auto with_task(const Settings& s, const sheafnn::PlantedOptions& options, const Use& use) {
  if (!s.data.empty()) return use(planted::task_of_file(s.data));
  const std::string& name = s.task;
  if (name == "geometric") return use(sheafnn::planted_geometric(options));
  if (name == "signed") return use(sheafnn::planted_signed(options));
  if (name == "frames") return use(sheafnn::planted_frames<3>(options));
  if (name == "unreliable") return use(sheafnn::planted_unreliable<3>(options));
  if (name == "diagonal") return use(sheafnn::planted_diagonal<3>(options));
  if (name == "general-linear") return use(sheafnn::planted_general_linear<3>(options));
  sheafnn::throw_invalid_argument("--task", name,
                                  "choose frames, geometric, unreliable, diagonal, general-linear or signed");
}

/// The best of the weight decays, of learned maps' sheaf decays, and of the KL weights of the network predictive.
Figures best_training(const Settings& s, const std::string& network, std::uint64_t seed) {
  sheafnn::PlantedOptions options = s.options;
  options.seed = seed;
  return with_task(s, options, [&](const auto& task) {
    Figures best;
    planted::Setting setting = network == "predictive" ? s.predictive : s.bsnn;
    setting.model.features = setting.cooperative.features = task.data.features.given_columns();
    setting.model.classes = setting.cooperative.classes = task.data.class_count;
    setting.cooperative.channels = setting.model.channels;
    setting.cooperative.layers = setting.model.layers;
    setting.train.seed = seed;
    const std::vector<double> kl_weights =
        network == "predictive" ? s.predictive_kl : std::vector<double>{setting.train.kl_maximum};
    const bool learned = network != "given" && network != "expected" && network != "identity";
    const std::vector<double> sheaf_decays = learned ? s.sheaf_decays : std::vector<double>{0};
    const auto try_one = [&](double decay, double sheaf_decay, double kl_weight) {
      setting.train.weight_decay = decay;
      setting.train.sheaf_decay = sheaf_decay;
      setting.train.kl_maximum = kl_weight;
      try {
        Figures figures = train(network, task, options, setting);
        figures.weight_decay = decay;
        if (learned) figures.sheaf_decay = sheaf_decay;
        if (network == "predictive") figures.kl_weight = kl_weight;
        if (!(figures.validation_loss >= best.validation_loss)) best = figures;
      } catch (const std::exception& e) {  // parameters so large that rotations are none in single precision
        std::fprintf(stderr, "planted_sheaves: %s with decays %g and %g and seed %llu is left out: %s\n",
                     network.c_str(), decay, sheaf_decay, static_cast<unsigned long long>(seed), e.what());
      }
    };
    for (const double decay : s.decays) {
      for (const double sheaf_decay : sheaf_decays) {
        for (const double kl_weight : kl_weights) try_one(decay, sheaf_decay, kl_weight);
      }
    }
    return best;
  });
}

/// Dataset and split as an .npz file. Nodes without a label, which no set contains, get label 0.
void write_task(const Settings& s, std::uint64_t seed) {
  sheafnn::PlantedOptions options = s.options;
  options.seed = seed;
  with_task(s, options, [&](const auto& task) {
    const sheafnn::Dataset& data = task.data;
    const sheafnn::NodeFeatures& table = data.features;
    const Index n = data.node_count(), p = table.given_columns();
    std::vector<double> features(static_cast<std::size_t>(n * p), 0.0);
    for (Index u = 0, i = 0; u < n; ++u) {
      for (; i < table.offsets()[static_cast<std::size_t>(u) + 1]; ++i) {
        const std::size_t entry = static_cast<std::size_t>(i);
        features[static_cast<std::size_t>(u * p + table.column_of()[entry])] = table.values()[entry];
      }
    }
    std::vector<std::int32_t> edges, labels;
    for (Index e = 0; e < data.graph.edge_count(); ++e) {
      edges.push_back(data.graph.edge(e).u);
      edges.push_back(data.graph.edge(e).v);
    }
    for (const std::int32_t label : data.labels) labels.push_back(std::max(label, 0));
    sheafnn::io::NpzWriter writer;
    writer.add<double>("node_features", {n, p}, features);
    writer.add<std::int32_t>("node_labels", {n}, labels);
    writer.add<std::int32_t>("edges", {data.graph.edge_count(), 2}, edges);
    const sheafnn::Split& split = data.splits.front();
    const auto add = [&](const char* key, const std::vector<std::int32_t>& nodes) {
      std::vector<std::int32_t> mask(static_cast<std::size_t>(n), 0);
      for (const std::int32_t u : nodes) mask[static_cast<std::size_t>(u)] = 1;
      writer.add<std::int32_t>(key, {1, n}, mask);
    };
    add("train_masks", split.train);
    add("val_masks", split.validation);
    add("test_masks", split.test);
    writer.write(s.export_to);
    return 0;
  });
}

nlohmann::ordered_json json_of(const Figures& f) {
  nlohmann::ordered_json r = {{"best_epoch", f.best_epoch}};
  planted::for_each_figure(f, [&](const char* name, double value) { r[name] = value; });
  return r;
}

/// Mean and standard deviation of the figures that are known.
std::string mean_text(const char* format, const std::vector<Figures>& runs, double Figures::*figure,
                      double factor = 1) {
  double sum = 0, squares = 0, count = 0;
  for (const Figures& f : runs) {
    if (std::isnan(f.*figure)) continue;
    const double x = factor * f.*figure;
    sum += x;
    squares += x * x;
    ++count;
  }
  if (count == 0) return "–";
  char text[2][40];
  std::snprintf(text[0], sizeof text[0], format, sum / count);
  if (count < 2) return text[0];
  std::snprintf(text[1], sizeof text[1], format,
                std::sqrt(std::max(0.0, squares - sum * sum / count) / (count - 1)));
  return std::string(text[0]) + " ± " + text[1];
}

int run(Settings& s) {
  const std::vector<std::uint64_t> seeds = numbers_of(s.seeds);
  if (!s.export_to.empty()) write_task(s, seeds.front());
  if (s.networks.size() == 1 && s.networks[0] == "none") return 0;
  nlohmann::ordered_json report;
  if (s.data.empty()) {
    report = {{"task", s.task}, {"nodes", s.options.nodes}, {"spread", s.options.spread}};
    std::printf("%s, %td nodes, spread %g, seeds %s\n\n", s.task.c_str(), s.options.nodes, s.options.spread,
                s.seeds.c_str());
  } else {
    report = {{"data", s.data}};
    std::printf("%s, seeds %s\n\n", s.data.c_str(), s.seeds.c_str());
  }
  std::printf(
      "| network | accuracy | of given | NLL | transport error | holonomy error | signs | spread 5/50/95 | rank "
      "corr. | coverage | permuted | epoch | seconds |\n|%s\n",
      [] {
        std::string r;
        for (int i = 0; i < 13; ++i) r += " --- |";
        return r;
      }()
          .c_str());
  programs::SideBySide<Figures> trainings(s.threads, s.networks.size() * seeds.size(), [&](std::size_t i) {
    return best_training(s, s.networks[i / seeds.size()], seeds[i % seeds.size()]);
  });
  std::vector<double> given;
  for (std::size_t k = 0; k < s.networks.size(); ++k) {
    std::vector<Figures> runs;
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      runs.push_back(trainings.take(k * seeds.size() + i, [] {}));
      if (s.networks[k] == "given") given.push_back(runs.back().accuracy);
      if (!given.empty()) runs.back().share = runs.back().accuracy / given[i];
      nlohmann::ordered_json row = {{"network", s.networks[k]}, {"seed", seeds[i]}};
      row.update(json_of(runs.back()));
      report["runs"].push_back(row);
    }
    double epochs = 0;
    for (const Figures& f : runs) epochs += static_cast<double>(f.best_epoch) / static_cast<double>(runs.size());
    const auto text = [&](const char* format, double Figures::*figure, double factor = 1) {
      return mean_text(format, runs, figure, factor);
    };
    std::printf("| %s | %s | %s | %s | %s | %s | %s | %s, %s, %s | %s | %s | %s | %.0f | %s |\n",
                s.networks[k].c_str(), text("%.1f", &Figures::accuracy, 100).c_str(),
                text("%.1f", &Figures::share, 100).c_str(), text("%.3f", &Figures::nll).c_str(),
                text("%.1f", &Figures::transport_error).c_str(), text("%.1f", &Figures::holonomy_error).c_str(),
                text("%.1f", &Figures::right_signs, 100).c_str(), text("%.3f", &Figures::kappa_low).c_str(),
                text("%.3f", &Figures::kappa).c_str(), text("%.3f", &Figures::kappa_high).c_str(),
                text("%.2f", &Figures::rank_correlation).c_str(), text("%.1f", &Figures::coverage, 100).c_str(),
                text("%.3f", &Figures::permuted_rise).c_str(), epochs, text("%.1f", &Figures::seconds).c_str());
    std::fflush(stdout);
  }
  if (!s.report.empty()) sheafnn::io::write_text(s.report, report.dump(1) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  sheafnn::ModelOptions& model = s.bsnn.model;
  sheafnn::TrainOptions& train = s.bsnn.train;
  model.layers = 1;
  model.edge_weights = false;
  train.epochs = 1500;
  train.patience = 300;
  train.input_dropout = train.dropout = 0;
  train.threads = 1;
  train.samples = 4;
  Index training_samples = 8;
  std::string predictive_schedule = "constant";
  CLI::App app("What do learned sheaves recover of a planted one?");
  app.option_defaults()->always_capture_default();
  CLI::Option* const data = app.add_option(
      "--data", s.data,
      "an .npz dataset with the true rotations of its nodes, frames, n x 3 x 3, in place of a task");
  const auto of_task = [&](const char* name, auto& value, const char* help = "") {
    app.add_option(name, value, help)->excludes(data);
  };
  of_task("--task", s.task, "frames, geometric, unreliable, diagonal, general-linear or signed");
  app.add_option("--networks", s.networks,
                 "given, expected, nsd, bsnn, predictive, identity, csnn, bcsnn; none: only --export")
      ->delimiter(',');
  app.add_option("--seeds", s.seeds, "A or A-B");
  app.add_option("--report", s.report, "write all figures as JSON");
  app.add_option("--export", s.export_to, "write the first seed's graph, features, labels and split as .npz");
  app.add_option("--threads", s.threads, "trainings side by side");
  of_task("--nodes", s.options.nodes);
  of_task("--degree", s.options.degree);
  of_task("--classes", s.options.classes);
  of_task("--spread", s.options.spread);
  of_task("--curvature", s.options.curvature);
  of_task("--neighbour-share", s.options.neighbour_share);
  of_task("--noise", s.options.noise);
  of_task("--hidden-columns", s.options.hidden_columns);
  of_task("--least-concentration", s.options.least_concentration);
  of_task("--most-concentration", s.options.most_concentration);
  app.add_option("--layers", model.layers);
  app.add_option("--channels", model.channels);
  app.add_option("--learner", s.learner, "concatenation, summed or summed-published");
  app.add_option("--learner-layers", model.learner_layers);
  app.add_option("--learner-width", model.learner_width);
  app.add_option("--normalisation", s.normalisation);
  app.add_option("--rotation", s.rotation, "householder, cayley, exponential, euler");
  app.add_option("--sheaf-activation", s.activation, "of the learner's outputs");
  app.add_flag("--second-linear", model.second_linear);
  app.add_flag("!--no-activation", model.activation);
  app.add_option("--readout-layers", model.readout_layers);
  app.add_option("--decays", s.decays, "weight decays to choose from")->delimiter(',');
  app.add_option("--sheaf-decays", s.sheaf_decays, "of the sheaf learner, to choose from")->delimiter(',');
  app.add_option("--lr", train.learning_rate);
  app.add_option("--sheaf-lr", train.sheaf_learning_rate);
  app.add_option("--epochs", train.epochs);
  app.add_option("--patience", train.patience);
  app.add_option("--kl-weight", train.kl_maximum, "of bsnn");
  app.add_option("--kl-schedule", s.schedule, "of bsnn: cyclical, constant or off");
  app.add_option("--predictive-samples", training_samples, "drawn per step, and per validation, of predictive");
  app.add_option("--predictive-kl-weights", s.predictive_kl, "to choose from")->delimiter(',');
  app.add_option("--predictive-kl-schedule", predictive_schedule);
  app.add_option("--samples", train.samples, "of the validation in every epoch; not of predictive");
  app.add_option("--test-samples", s.bsnn.test_samples);
  CLI11_PARSE(app, argc, argv);
  try {
    model.learner = sheafnn::parse_name<sheafnn::LearnerInput>("--learner", s.learner);
    model.normalisation = sheafnn::sheaf::parse_normalisation(s.normalisation);
    model.parametrisation = sheafnn::rotation::parse_rotation_parametrisation(s.rotation);
    model.sheaf_activation = sheafnn::parse_name<sheafnn::SheafActivation>("--sheaf-activation", s.activation);
    train.kl_schedule = sheafnn::parse_name<sheafnn::KlSchedule>("--kl-schedule", s.schedule);
    s.predictive = s.bsnn;
    s.predictive.train.sample_loss = sheafnn::SampleLoss::predictive;
    s.predictive.train.training_samples = s.predictive.train.samples = training_samples;
    s.predictive.train.kl_schedule =
        sheafnn::parse_name<sheafnn::KlSchedule>("--predictive-kl-schedule", predictive_schedule);
    return run(s);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "planted_sheaves: %s\n", e.what());
    return 1;
  }
}
