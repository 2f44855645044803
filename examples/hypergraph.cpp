/// \file
/// Trains a sheaf hypergraph network, point estimate or Bayesian, on the splits of a dataset, or predicts with a trained one.
///
///     hypergraph --hypergraph cora.npz --model bshgnn --maps diagonal --stalk-dim 4 --split 0 --save model.safetensors
///     hypergraph --hypergraph cora.npz --maps identity --report report.json
///     hypergraph --hypergraph cora.npz --load model.safetensors --output predictions.csv
///
/// Under mpirun, on several ranks, it becomes the hypergraph_mpi beside it.
#include <cstdio>
#include <numeric>
#include <sheafnn/bsnn/prediction.hpp>
#include <sheafnn/io/file.hpp>
#include <sheafnn/io/model_tensors.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <string>
#include <vector>

#include "hypergraph/program.hpp"
#include "models/class_names.hpp"
#include "models/prediction_csv.hpp"
#include "models/started_on_ranks.hpp"

namespace {

using namespace hypergraph_program;

struct OneProcess {
  void take(const sheafnn::HypergraphDataset&) const {}
  [[nodiscard]] Outcome train(const Models& models, const Job& job) const { return models.train(job); }
  [[nodiscard]] bool prints() const { return true; }
};

void predict(const Settings& s) {
  programs::require_writable("--output", s.output);
  programs::require_apart({{"--output", s.output}}, {{"--hypergraph", s.hypergraph}, {"--load", s.load}});
  const sheafnn::io::TensorFile checkpoint = sheafnn::io::read_safetensors(s.load);
  const sheafnn::io::CheckpointInfo info = sheafnn::io::checkpoint_info(s.load, checkpoint);
  sheafnn::require(kind.has(info.model), "--load", s.load,
                   sheafnn::detail::concat("holds the model ", info.model,
                                           ", which works on graphs: use predict"));
  sheafnn::HypergraphDataset data =
      sheafnn::io::load_hypergraph(s.hypergraph, s.synthetic, sheafnn::DatasetUse::prediction, s.text);
  const Index classes = info.options<sheafnn::HypergraphOptions>().classes;
  const std::vector<std::string> class_names =
      programs::checkpoint_class_names(s.load, checkpoint.metadata, classes);
  programs::take_class_names(data, class_names, classes);
  programs::check_columns(data, s.load, checkpoint.metadata);
  const sheafnn::Prediction p =
      find_models(info.maps, info.stalk_dimension)
          .predict({s.load, checkpoint, info.model == kind.bayesian}, data,
                   {.samples = s.train.samples, .seed = s.train.seed, .threads = s.train.threads});
  if (!s.output.empty()) {
    sheafnn::io::write_text(s.output, programs::prediction_csv(p, data.node_names, class_names));
  }
  print_data(data);
  const double n = static_cast<double>(data.node_count());
  std::printf("mean entropy %.4f, mean mutual information %.4f\n",
              std::accumulate(p.entropy.begin(), p.entropy.end(), 0.0) / n,
              std::accumulate(p.mutual_information.begin(), p.mutual_information.end(), 0.0) / n);
  if (data.labels.empty() || data.class_count > p.class_count) return;
  std::vector<std::int32_t> all(static_cast<std::size_t>(data.node_count()));
  std::iota(all.begin(), all.end(), 0);
  const std::vector<std::int32_t> labelled = sheafnn::labelled_nodes(data.labels, all);
  if (labelled.empty()) return;
  std::printf("%.1f%% of the labelled nodes have the class of their label\n",
              100 * sheafnn::uncertainty::accuracy(p.probabilities, p.class_count, data.labels, labelled));
}

}  // namespace

int main(int argc, char** argv) {
  Settings s;
  CLI::App app("Trains a sheaf hypergraph network on the splits of a dataset, or predicts with a trained network.",
               "hypergraph");
  const OptionGroups groups = add_options(app, s);
  auto* files = app.add_option_group("Files");
  auto* load = files->add_option("--load", s.load, "predict with the model of this .safetensors file");
  files->add_option("--save", s.save, "write the trained model to this .safetensors file")->excludes(load);
  files->add_option("--report", s.report, "write the figures of each training to this JSON file")->excludes(load);
  files->add_option("--output", s.output, "write the predictions of all nodes to this CSV file")->needs(load);
  return programs::run_program_with(
      app,
      [&] {
        programs::become_on_ranks(argv, "hypergraph_mpi");
        return programs::arguments(argc, argv);
      },
      [&] {
        if (!s.load.empty()) programs::refuse_beside_load({groups.model, groups.training}, {groups.split});
        check_split(groups, s);
        OneProcess place;
        s.load.empty() ? train(s, place, "hypergraph", programs::arguments(argc, argv)) : predict(s);
      });
}
