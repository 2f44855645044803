/// \file
/// Three networks on a generated heterophilic graph, where most edges join a class and the next one: a Bayesian
/// sheaf neural network, neural sheaf diffusion and diffusion over the identity sheaf. Prints one table and writes
/// the numbers behind quickstart.svg.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/io/file.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "models/program.hpp"
#include "models/progress.hpp"

namespace {

constexpr std::size_t split_count = 5;

struct Comparison {
  std::string name;
  std::vector<double> accuracy, nll, ece, seconds;
  std::vector<sheafnn::EpochReport> history;  ///< of the first split
  std::vector<sheafnn::uncertainty::ReliabilityBin> reliability;
};

template <class Model>
Comparison compare(const std::string& name, const sheafnn::Dataset& data) {
  Comparison r{name, {}, {}, {}, {}, {}, {}};
  sheafnn::TrainOptions options{.epochs = 120,
                                .patience = 120,
                                .learning_rate = 0.02,
                                .weight_decay = 5e-3,
                                .sheaf_decay = 5e-3,
                                .input_dropout = 0.0,
                                .dropout = 0.6,
                                .samples = 5};
  programs::ProgressBar bar(options.epochs, split_count);
  for (std::size_t i = 0; i < split_count; ++i) {
    options.on_epoch = [&](const sheafnn::EpochReport& report) { bar.show(name, i, report); };
    Model model({.features = data.feature_count(),
                 .channels = 16,
                 .layers = 3,
                 .classes = data.class_count,
                 .add_hp = true},
                i);
    const sheafnn::TrainResult result = sheafnn::train(model, data, data.splits[i], options);
    const sheafnn::Prediction prediction =
        sheafnn::predict(model, data,
                         {.samples = options.samples, .epoch = static_cast<std::uint32_t>(result.best_epoch)});
    r.accuracy.push_back(100 * result.test_accuracy);
    r.nll.push_back(result.test_nll);
    r.ece.push_back(result.test_ece);
    r.seconds.push_back(result.epoch_seconds);
    if (i == 0) r.history = result.history;
    programs::add_bins(r.reliability,
                       sheafnn::uncertainty::reliability_diagram(prediction.probabilities, data.class_count,
                                                                 data.labels, data.splits[i].test));
  }
  bar.clear();
  const programs::Summary accuracy = programs::summarise(r.accuracy);
  std::printf("%-34s  %5.1f ± %3.1f  %6.3f  %6.3f  %8.2f\n", name.c_str(), accuracy.mean, accuracy.deviation,
              programs::summarise(r.nll).mean, programs::summarise(r.ece).mean,
              1000 * programs::summarise(r.seconds).mean);
  std::fflush(stdout);
  return r;
}

/// Columns for gnuplot, one block for each network.
void write_data(const std::filesystem::path& folder, const std::vector<Comparison>& all) {
  std::ostringstream curves, reliability;
  for (const Comparison& one : all) {
    curves << '"' << one.name << "\"\n";
    for (const sheafnn::EpochReport& e : one.history) {
      curves << e.epoch << ' ' << e.nll << ' ' << e.validation_loss << ' ' << 100 * e.validation_accuracy << '\n';
    }
    curves << "\n\n";
    reliability << '"' << one.name << "\"\n";
    for (const sheafnn::uncertainty::ReliabilityBin& bin : one.reliability) {
      if (bin.count > 0) reliability << bin.confidence << ' ' << bin.accuracy << ' ' << bin.count << '\n';
    }
    reliability << "\n\n";
  }
  sheafnn::io::write_text(folder / "curves.dat", curves.str());
  sheafnn::io::write_text(folder / "reliability.dat", reliability.str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Trains three networks on a generated graph whose edges mostly join different classes; quickstart.sh draws "
      "them.",
      "quickstart");
  std::string folder;
  app.add_option("FOLDER", folder, "where the data of the pictures go")->required()->check(CLI::ExistingDirectory);
  return programs::run_program(app, argc, argv, [&] {
    const sheafnn::Dataset data = sheafnn::synthetic({.nodes = 400,
                                                      .classes = 4,
                                                      .features = 400,
                                                      .words = 20,
                                                      .degree = 5,
                                                      .homophily = 0.1,
                                                      .class_cycle = 0.9,
                                                      .feature_noise = 0.75,
                                                      .degree_noise = 1,
                                                      .splits = split_count});
    std::printf(
        "A generated graph: %td nodes, %td edges, a cycle of %td classes, edge homophily %.2f; %zu splits\n\n",
        data.node_count(), data.graph.edge_count(), data.class_count,
        sheafnn::edge_homophily(data.graph, data.labels), split_count);
    std::printf("%-34s  accuracy %%   NLL     ECE     ms/epoch\n", "network");
    using Rotations = sheafnn::SpecialOrthogonal<3>;
    std::vector<Comparison> all;
    all.push_back(compare<sheafnn::Bsnn<Rotations>>("Bayesian sheaf network, SO(3)", data));
    all.push_back(compare<sheafnn::Nsd<Rotations>>("neural sheaf diffusion, SO(3)", data));
    all.push_back(compare<sheafnn::Nsd<sheafnn::Identity<3>>>("identity sheaf (no sheaf learned)", data));
    write_data(folder, all);
  });
}
