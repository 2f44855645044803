// A graph with a planted sheaf on several ranks: mpirun -n 2 minimal_mpi
#include <cstdio>
#include <sheafnn/distributed.hpp>
#include <sheafnn/sheaf/planted.hpp>

int main(int argc, char** argv) {
  namespace mpi = sheafnn::distributed;
  return mpi::run(argc, argv, [] {
    mpi::Communicator ranks;
    const auto task = sheafnn::planted_frames<2>({.nodes = 1000});
    const sheafnn::Dataset& data = task.data;
    mpi::DistributedData part(ranks, data, mpi::metis_partition(ranks, data.graph));
    using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>>;
    Model model({.features = data.feature_count(), .channels = 8, .layers = 1, .classes = data.class_count},
                /*seed*/ 2);
    const auto result = mpi::train(model, part, data.splits[0], {.input_dropout = 0, .dropout = 0});
    if (ranks.is_root()) std::printf("test accuracy %.0f%%\n", 100 * result.test_accuracy);
    return 0;
  });
}
