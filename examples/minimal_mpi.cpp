// The karate club on several ranks: mpirun -n 2 minimal_mpi
#include <cstdio>
#include <sheafnn/distributed.hpp>

int main(int argc, char** argv) {
  namespace mpi = sheafnn::distributed;
  return mpi::run(argc, argv, [] {
    mpi::Communicator ranks;
    const sheafnn::Dataset data = sheafnn::karate_club();
    mpi::DistributedData part(ranks, data, mpi::metis_partition(ranks, data.graph));
    using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;
    Model model({.features = data.feature_count(), .channels = 8, .layers = 2, .classes = data.class_count},
                /*seed*/ 1);
    const sheafnn::TrainResult result = mpi::train(model, part, data.splits[0], {.epochs = 200});
    if (ranks.is_root()) std::printf("test accuracy %.0f%%\n", 100 * result.test_accuracy);
    return 0;
  });
}
