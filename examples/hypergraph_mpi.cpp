/// \file
/// hypergraph on several ranks of MPI: the same options and table, for trainings. Rank 0 prints.
///
///     mpirun -n 4 build/mpi/examples/hypergraph_mpi --hypergraph cora.npz --partition metis
#include <cstdio>
#include <optional>
#include <sheafnn/distributed.hpp>
#include <string>

#include "hypergraph/program.hpp"
#include "models/mpi_program.hpp"

namespace {

using namespace hypergraph_program;
namespace mpi = sheafnn::distributed;

/// This rank, and its part of the data.
class Rank {
 public:
  explicit Rank(const std::string& partition) : partition_(partition) {}

  [[nodiscard]] bool prints() const { return ranks_.is_root(); }
  void take(const sheafnn::HypergraphDataset& data) {
    mpi::require_agreement(ranks_, data);
    const mpi::Partition partition = programs::partition_of(ranks_, partition_, data.graph);
    if (prints()) {
      std::printf("%s",
                  mpi::to_string(mpi::describe(data.graph, partition), data.graph.hyperedge_count()).c_str());
    }
    part_.emplace(ranks_, data, partition);
  }
  [[nodiscard]] Outcome train(const Models& models, Job job) {
    job.part = &*part_;
    return models.train(job);
  }

 private:
  mpi::Communicator ranks_;
  std::string partition_;
  std::optional<mpi::DistributedHypergraph> part_;
};

}  // namespace

int main(int argc, char** argv) {
  return mpi::run(argc, argv, [&] {
    Settings s;
    std::string partition = "metis";
    CLI::App app("Trains a sheaf hypergraph network on a hypergraph cut into one part for each rank of MPI.",
                 "hypergraph_mpi");
    const OptionGroups groups = add_options(app, s);
    app.add_option("--partition", partition, programs::partition_help)->capture_default_str();
    app.add_option("--save", s.save, "write the trained model to this .safetensors file");
    app.add_option("--report", s.report, "write the figures of each training to this JSON file");
    return programs::run_on_rank(app, programs::arguments(argc, argv), [&] {
      check_split(groups, s);
      Rank rank(partition);
      train(s, rank, "hypergraph_mpi", programs::arguments(argc, argv));
      programs::flush_output();
      return 0;
    });
  });
}
