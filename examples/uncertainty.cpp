/// \file
/// What a network's uncertainty is worth. Trains a model on splits × seeds of a dataset and prints calibration errors next to
/// what a calibrated model would score. It does so for single models and for the ensemble of the seeds, and with temperatures
/// fitted on validation nodes. Also prints conformal prediction sets, and the rejection of wrong predictions. With --leave-out,
/// detection of a class that was never seen.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/bsnn/presets.hpp>
#include <sheafnn/bsnn/train_options.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/lines.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explore/gnuplot.hpp"
#include "explore/page.hpp"
#include "models/program.hpp"
#include "models/progress.hpp"
#include "models/registry.hpp"
#include "models/report.hpp"
#include "models/side_by_side.hpp"
#include "models/split_checks.hpp"
#include "models/train_settings.hpp"
#include "uncertainty/figures.hpp"
#include "uncertainty/pictures.hpp"
#include "uncertainty/report.hpp"

namespace {

using sheafnn::Index;
using uncertainty::Figures;
using uncertainty::Mean;
using uncertainty::Nodes;

struct ProgramSettings {
  programs::TrainSettings train;
  uncertainty::Settings figures;
  std::string splits, seeds = "0-4", calibrate_on = "validation", leave_out, output, report;
  Index draws = 20;
  int at_a_time = 0;
};

/// The class that --leave-out names or numbers.
std::int32_t left_out_class(const sheafnn::Dataset& data, const std::string& text) {
  const auto named = std::find(data.class_names.begin(), data.class_names.end(), text);
  if (named != data.class_names.end()) return static_cast<std::int32_t>(named - data.class_names.begin());
  std::string names;
  for (const std::string& name : data.class_names) names += (names.empty() ? "" : ", ") + name;
  double number = -1;
  const bool good = sheafnn::io::detail::parse_number(std::string_view(text), number) && number >= 0 &&
                    number < static_cast<double>(data.class_count) && number == std::floor(number);
  sheafnn::require(good, "--leave-out", text,
                   sheafnn::detail::concat("must be a class of ", data.name, ", 0 to ", data.class_count - 1,
                                           names.empty() ? "" : ", or one of " + names));
  return static_cast<std::int32_t>(number);
}

/// Makes the labels of a class unknown, and renumbers the classes above. The nodes stay in the graph and leave the splits.
///
/// \returns  its test nodes, of every split
std::vector<Nodes> leave_out(sheafnn::Dataset& data, std::int32_t left_out) {
  sheafnn::require(data.class_count > 2, "--leave-out", left_out,
                   sheafnn::detail::concat(data.name, " has ", data.class_count,
                                           " classes; two other classes are needed"));
  std::vector<Nodes> unseen;
  for (sheafnn::Split& split : data.splits) {
    const auto is_left_out = [&](std::int32_t u) { return data.labels[static_cast<std::size_t>(u)] == left_out; };
    unseen.emplace_back();
    std::copy_if(split.test.begin(), split.test.end(), std::back_inserter(unseen.back()), is_left_out);
    for (Nodes* nodes : {&split.train, &split.validation, &split.test}) std::erase_if(*nodes, is_left_out);
  }
  for (std::int32_t& label : data.labels) label = label == left_out ? -1 : label - (label > left_out ? 1 : 0);
  --data.class_count;
  if (!data.class_names.empty()) data.class_names.erase(data.class_names.begin() + left_out);
  return unseen;
}

/// What is left of a training.
struct Trained {
  sheafnn::uncertainty::SampledPrediction prediction;  ///< of every node
  programs::NetworkOptions resolved;
};

Trained train_and_predict(const ProgramSettings& s, const sheafnn::Dataset& data, const sheafnn::Split& split,
                          sheafnn::TrainOptions options) {
  const programs::TrainSettings& t = s.train;
  const bool bayesian = programs::is_bayesian(t.model);
  const programs::ModelEntry& entry = programs::find_model(t.model, t.maps, t.stalk_dimension);
  sheafnn::TrainResult result;
  const programs::TrainOutcome outcome =
      entry.train({data, split, t.networks, options, bayesian, options.seed, {.model = true}}, result);
  return {entry.predict("model", outcome.checkpoint, bayesian, data,
                        {.samples = s.draws,
                         .seed = options.seed,
                         .epoch = static_cast<std::uint32_t>(result.best_epoch),
                         .threads = options.threads}),
          outcome.resolved};
}

void print_figures(const Figures& figures, const ProgramSettings& s) {
  std::printf("%-16s", "");
  for (const auto& column : uncertainty::columns) std::printf("  %10s", column.name);
  std::printf("\n");
  for (const uncertainty::Variant& variant : figures.variants) {
    std::printf("%-16s", variant.name.c_str());
    for (std::size_t k = 0; k < uncertainty::columns.size(); ++k) {
      std::printf("  %10s", variant.text(k).c_str());
    }
    std::printf("\n");
  }
  std::printf("\nmedian temperature %.2f; by neighbours %.2f (they disagree) to %.2f (they agree)",
              figures.temperature.median(), figures.disagreeing.median(), figures.agreeing.median());
  if (figures.samples.size() > 1) std::printf("; of the ensemble %.2f", figures.ensemble_temperature.median());
  std::printf("\n\nconformal sets for %g%% of the labels, calibrated on %s", 100 * (1 - s.figures.alpha),
              s.figures.halve_test_nodes ? "halves of the test nodes" : "the validation nodes");
  for (const uncertainty::Samples& samples : figures.samples) {
    std::printf("\n%-16s", samples.name.c_str());
    for (const uncertainty::SetMethod& method : samples.methods) {
      std::printf("  %s: coverage %.1f%%, size %.2f", method.name.c_str(), 100 * method.coverage.mean(),
                  method.size.mean());
    }
  }
  std::printf("\n\n%-16s  %-18s  %8s  %8s  %11s  %9s%s\n", "", "", "right", "wrong", "error AUROC", "rejection",
              s.leave_out.empty() ? "" : "    unseen  unseen AUROC");
  for (const uncertainty::Samples& samples : figures.samples) {
    for (const uncertainty::Measure& m : samples.measures) {
      const auto figure = [](const char* format, const Mean& mean) {
        return programs::text_or("-", format, mean.mean());
      };
      std::printf("%-16s  %-18s  %8s  %8s  %11s  %9s", samples.name.c_str(), m.name,
                  figure("%.3g", m.right).c_str(), figure("%.3g", m.wrong).c_str(),
                  figure("%.3f", m.error_auc).c_str(), figure("%.3f", m.area).c_str());
      if (!s.leave_out.empty()) {
        std::printf("  %8s  %12s", figure("%.3g", m.unseen).c_str(), figure("%.3f", m.unseen_auc).c_str());
      }
      std::printf("\n");
    }
  }
}

/// Writes the pictures and a page into the folder.
void draw(const Figures& figures, const ProgramSettings& s, const std::string& dataset) {
  const std::vector<explore::Picture> pictures = {uncertainty::draw_reliability(figures),
                                                  uncertainty::draw_rejection(figures),
                                                  uncertainty::draw_sets(figures, s.figures.alpha),
                                                  uncertainty::draw_histograms(figures)};
  std::vector<std::pair<std::string, std::string>> facts = {
      {"model", s.train.model + ", " + s.train.maps + " maps"}};
  const uncertainty::Variant& shown = figures.variants[figures.samples.size() > 1 ? 3 : 0];
  for (std::size_t k = 0; k < uncertainty::columns.size(); ++k) {
    facts.emplace_back(shown.name + ": " + uncertainty::columns[k].name, shown.text(k));
  }
  const std::filesystem::path folder = s.output;
  std::filesystem::create_directory(folder);
  for (const explore::Picture& picture : pictures) sheafnn::io::write_text(folder / picture.file, picture.svg);
  sheafnn::io::write_text(folder / "index.html",
                          explore::page("Uncertainty on " + dataset, {.facts = facts, .pictures = pictures}));
  std::printf("\n%zu pictures: %s\n", pictures.size(), (folder / "index.html").string().c_str());
}

/// The report: what was trained and how, and all figures.
nlohmann::ordered_json report(const ProgramSettings& s, const sheafnn::Dataset& data,
                              const std::optional<sheafnn::Preset>& preset,
                              const programs::NetworkOptions& resolved, nlohmann::ordered_json facts,
                              const nlohmann::ordered_json& figures) {
  nlohmann::ordered_json r = programs::data_json(data, s.train.data);
  if (!s.leave_out.empty()) r["left_out"] = s.leave_out;
  r["model"] = s.train.model;
  r["maps"] = s.train.maps;
  r["preset"] = preset ? nlohmann::ordered_json(to_string(*preset)) : nlohmann::ordered_json();
  r["run"] = std::move(facts);
  r["options"] = programs::option_json(s.train, resolved);
  for (const char* other : {"seed", "threads", "device"}) r["options"].erase(other);  // seeds: see trainings
  r["options"].update({{"draws", s.draws},
                       {"bins", s.figures.bins},
                       {"alpha", s.figures.alpha},
                       {"neighbour_weight", s.figures.neighbour_weight},
                       {"calibrate_on", s.calibrate_on}});
  r.update(figures);
  return r;
}

/// \param arguments  of the program
void run(const CLI::App& app, ProgramSettings& s, const std::vector<std::string>& arguments) {
  const programs::RunFacts facts("uncertainty");
  programs::TrainSettings& t = s.train;
  const std::filesystem::path folder = s.output;
  if (!s.output.empty()) {
    const bool exists = std::filesystem::exists(folder);
    sheafnn::require(!exists || std::filesystem::is_directory(folder), "--output", s.output, "is not a folder");
    const std::filesystem::path unslashed = folder.filename().empty() ? folder.parent_path() : folder;
    programs::require_writable("--output", exists ? folder / "index.html" : unslashed);
    explore::require_apart_from_page(folder, {{"--report", s.report}, {"--dataset", t.dataset}});
    explore::require_gnuplot();
  }
  programs::require_apart({{"--report", s.report}}, {{"--dataset", t.dataset}});
  programs::require_writable("--report", s.report);
  programs::resolve_options(app, t);
  sheafnn::require(s.figures.alpha > 0 && s.figures.alpha < 1, "--alpha", s.figures.alpha,
                   "must be above 0 and below 1");
  sheafnn::require_between("--neighbour-weight", s.figures.neighbour_weight, 0.0, 1.0);
  sheafnn::require_between("--bins", s.figures.bins, 1, 1000);
  sheafnn::require_between("--draws", s.draws, 1, 32768);
  sheafnn::require(s.at_a_time >= 0, "--threads", s.at_a_time, "must be at least 0 (0: one for each processor)");
  s.figures.halve_test_nodes = s.calibrate_on == "test";
  sheafnn::require(!sheafnn::is_on_hypergraphs(t.model), "--model", t.model,
                   "the program works on graphs; train and predict take hypergraphs");
  sheafnn::Dataset data = programs::load_training_data(t.dataset, t.synthetic, t.data);
  std::vector<Nodes> unseen(data.splits.size());
  if (!s.leave_out.empty()) unseen = leave_out(data, left_out_class(data, s.leave_out));
  const std::optional<sheafnn::Preset> preset = programs::apply_preset(app, t, data);
  programs::set_sizes(t, data.feature_count(), data.class_count);

  std::vector<std::size_t> all(data.splits.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::size_t> splits = programs::parse_numbers("--splits", s.splits, data.splits.size(), all);
  const std::vector<std::size_t> seeds = programs::parse_numbers("--seeds", s.seeds, 1'000'000, {t.train.seed});
  std::vector<uncertainty::Task> tasks;
  for (const std::size_t i : splits) {
    const sheafnn::Split& split = data.splits[i];
    tasks.push_back({data, sheafnn::labelled_nodes(data.labels, split.validation),
                     sheafnn::labelled_nodes(data.labels, split.test), unseen[i], i});
    const std::string name = sheafnn::detail::concat(data.name, ": splits[", i, "]");
    sheafnn::require(!split.train.empty(), name + ".train", 0, "training needs nodes of the other classes");
    sheafnn::require(!tasks.back().validation.empty(), name + ".validation", 0,
                     "temperatures and conformal sets need nodes with known labels");
    sheafnn::require(!tasks.back().test.empty(), name + ".test", 0, "nodes with known labels are needed");
    programs::require_trainable(data, i, t.train.stop_on);
  }
  static_cast<void>(programs::find_model(t.model, t.maps, t.stalk_dimension));

  std::printf(
      "%s: %td nodes, %td classes%s; %s, %s maps, stalk dimension %d%s; %zu splits, %zu seeds, %td draws\n\n",
      data.name.c_str(), data.node_count(), data.class_count,
      s.leave_out.empty() ? "" : (", without class " + s.leave_out).c_str(), t.model.c_str(), t.maps.c_str(),
      t.stalk_dimension, preset ? (", preset " + std::string(to_string(*preset))).c_str() : "", splits.size(),
      seeds.size(), s.draws);
  std::fflush(stdout);
  sheafnn::TrainOptions options = t.train;
  options.threads = 1;
  const programs::Interruption interruption;
  const std::size_t count = splits.size() * seeds.size();
  const programs::ProgressBar bar(options.epochs, count);
  std::atomic<Index> epochs = 0;
  std::atomic<std::size_t> finished = 0;
  programs::SideBySide<Trained> trainings(s.at_a_time > 0 ? s.at_a_time : sheafnn::hardware_threads(), count,
                                          [&](std::size_t i) {
                                            sheafnn::TrainOptions own = options;
                                            own.seed = seeds[i % seeds.size()];
                                            Index behind = 0;
                                            own.on_epoch = [&](const sheafnn::EpochReport&) {
                                              ++epochs;
                                              ++behind;
                                              trainings.check_wanted(i);
                                              if (const int signal = programs::Interruption::signal(); signal != 0)
                                                throw programs::Interrupted(signal);
                                              return sheafnn::EpochAction::keep_training;
                                            };
                                            Trained trained =
                                                train_and_predict(s, data, data.splits[splits[i / seeds.size()]],
                                                                  own);
                                            epochs += own.epochs - behind;
                                            ++finished;
                                            return trained;
                                          });
  Figures figures(seeds.size() > 1);
  programs::NetworkOptions resolved;
  std::size_t done = 0;
  programs::Attempts attempts;
  attempts.make([&] {
    for (; done < splits.size(); ++done) {
      std::vector<sheafnn::uncertainty::SampledPrediction> members;
      for (std::size_t k = 0; k < seeds.size(); ++k) {
        Trained trained =
            trainings.take(done * seeds.size() + k, [&] { bar.show_all("trainings", finished, epochs); });
        members.push_back(std::move(trained.prediction));
        resolved = trained.resolved;
      }
      figures.add(tasks[done], s.figures, members);
    }
  });
  bar.clear();
  if (done == 0) attempts.rethrow();
  const std::string error = attempts.message();
  if (done < splits.size()) {
    std::printf("only %zu of %zu splits: %s\n\n", done, splits.size(), error.c_str());
    splits.resize(done);
  }
  print_figures(figures, s);
  if (!s.report.empty()) {
    attempts.make([&] {
      nlohmann::ordered_json json =
          report(s, data, preset, resolved, facts.json(arguments), uncertainty::report(figures, splits, seeds));
      json["interrupted"] = programs::Interruption::signal() != 0;
      if (!error.empty()) json["error"] = programs::as_utf8(error);
      sheafnn::io::write_text(s.report, programs::report_text(json));
    });
  }
  if (!s.output.empty()) attempts.make([&] { draw(figures, s, data.name); });
  attempts.rethrow();
}

}  // namespace

int main(int argc, char** argv) {
  ProgramSettings s;
  CLI::App app("Measures what the uncertainty of a network's predictions is worth.", "uncertainty");
  programs::add_training_options(app, s.train);
  for (const char* option : {"--threads", "--seed"}) {  // see below
    CLI::App* const training = app.get_option_group("Training");
    training->remove_option(training->get_option(option));
  }
  auto* group = app.add_option_group("Uncertainty", "ensembles, and measures of their predictions");
  group->add_option("--splits", s.splits, "splits to train on, e.g. 0-9 or 0,3,7 (default: all)");
  group->add_option("--seeds", s.seeds, "seeds of the models that make an ensemble, on every split")
      ->capture_default_str();
  group->add_option("--draws", s.draws, "number of posterior samples in each model's predictions, 1 to 32768")
      ->capture_default_str();
  group->add_option("--threads", s.at_a_time, "number of trainings side by side; 0: one for each processor")
      ->capture_default_str();
  group
      ->add_option("--bins", s.figures.bins,
                   "number of bins of reliability diagrams and calibration errors, 1 to 1000")
      ->capture_default_str();
  group
      ->add_option("--alpha", s.figures.alpha,
                   "share of the labels that conformal sets may miss, above 0 and below 1")
      ->capture_default_str();
  group
      ->add_option("--neighbour-weight", s.figures.neighbour_weight,
                   "weight of the neighbours in their averaged scores, 0 to 1")
      ->capture_default_str();
  group
      ->add_option("--calibrate-on", s.calibrate_on,
                   "nodes that calibrate conformal sets: the validation nodes, or test, where each half of the "
                   "test nodes calibrates the other")
      ->capture_default_str()
      ->check(CLI::IsMember({"validation", "test"}));
  group->add_option(
      "--leave-out", s.leave_out,
      "train without this class, given by number or name, and detect its nodes among the test nodes");
  group->add_option("--report", s.report, "write all figures of each split to this JSON file");
  group->add_option("--output", s.output,
                    "folder for index.html and its pictures, created if it does not exist; needs gnuplot");
  return programs::run_program(app, argc, argv, [&] { run(app, s, programs::arguments(argc, argv)); });
}
