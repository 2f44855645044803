/// \file
/// Memory that runs out: every single request of reading, training, predicting and writing fails once, and once that
/// one and all after it. Each time there is an exception or the right result, no block stays behind, a model is as it
/// was before, a file is whole or absent, and the threads go on working.
///
/// With SHEAFNN_TEST_MORE_MODELS (tests/reliability/faults.sh) also further models, batches and files of learned maps.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "counted_memory.hpp"
#include "shared_networks.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/distributed/cluster_training.hpp"
#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/io/datasets.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "sheafnn/io/training_state.hpp"
#include "temporary_folder.hpp"
#if defined(SHEAFNN_TEST_MORE_MODELS)
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/flow.hpp"
#include "sheafnn/io/learned_file.hpp"
#endif

namespace test_allocation_failures {
namespace {

using heap::Failing;
using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;
using sheafnn::Index;

/// What became of an operation whose requests failed one after the other.
struct Outcome {
  long requests = 0;  ///< of the operation without failures
  long exceptions = 0;
  long leaks = 0;  ///< failures after which blocks were left
  long wrong = 0;  ///< failures after which something had changed, or wrong results
};

/// Lets request 1, 2, … of operation() fail until it asks for less.
///
/// \param operation  \returns whether its result is right
/// \param unchanged  \returns whether an operation that threw has left everything as it was
template <class Operation, class Unchanged>
Outcome fail_every_request(Failing which, const Operation& operation, const Unchanged& unchanged) {
  Outcome r;
  for (long n = 1;; ++n) {
    const long before = heap::live_blocks();
    bool threw = false, right = false;
    heap::begin_failing(n, which);
    try {
      right = operation();
    } catch (const std::exception&) {
      threw = true;
    }
    const long requests = heap::end_failing();
    r.leaks += heap::live_blocks() != before;
    r.exceptions += threw;
    r.wrong += threw ? !unchanged() : !right;
    if (requests < n) {
      r.requests = requests;
      r.wrong += threw;
      return r;
    }
  }
}

/// After it went well once: what a process keeps for ever is there then.
template <class Operation, class Unchanged>
void check_operation(const std::string& name, Failing which, const Operation& operation,
                     const Unchanged& unchanged) {
  CAPTURE(name);
  CAPTURE(static_cast<int>(which));
  REQUIRE(operation());
  const Outcome outcome = fail_every_request(which, operation, unchanged);
  MESSAGE(name << ": " << outcome.requests << " requests, " << outcome.exceptions << " exceptions");
  CHECK(outcome.requests > 0);
  CHECK(outcome.exceptions + 8 >= outcome.requests);  // what is asked for without need may fail
  CHECK(outcome.leaks == 0);
  CHECK(outcome.wrong == 0);
}
/// Both ways of failing.
template <class Operation, class Unchanged>
void check_operation(const std::string& name, const Operation& operation, const Unchanged& unchanged) {
  for (const Failing which : {Failing::once, Failing::from_then_on})
    check_operation(name, which, operation, unchanged);
}

const sheafnn::Dataset& task() {
  static const sheafnn::Dataset data =
      sheafnn::synthetic({.nodes = 50, .classes = 3, .features = 10, .splits = 1});
  return data;
}
template <class M = Model>
M new_model(std::uint64_t seed = 1) {
  typename M::Options options;
  options.features = 10;
  options.classes = 3;
  options.channels = 4;
  if constexpr (requires { options.layers = 2; }) options.layers = 2;
  if constexpr (requires { options.add_lp = true; }) options.add_lp = true;
  return M(options, seed);
}
template <class M>
bool same(const M& a, const M& b) {
  const auto &left = a.parameters().values(), &right = b.parameters().values();
  return std::equal(left.begin(), left.end(), right.begin(), right.end());
}
/// model = from, without memory.
template <class M>
void assign(M& model, const M& from) {
  const auto& values = from.parameters().values();
  std::copy(values.begin(), values.end(), model.parameters().values().begin());
}
sheafnn::TrainOptions train_options(int threads) {
  sheafnn::TrainOptions options;
  options.epochs = 3;
  options.samples = 2;
  options.dropout = 0.2;
  options.threads = threads;
  options.checkpoint_every = 2;
  return options;
}
/// Training with one thread, and with two.
template <class M>
void check_training() {
  const M fresh = new_model<M>();
#if defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP)
  constexpr int most_threads = 1;  // OpenMP's own requests end the process
#else
  constexpr int most_threads = 2;
#endif
  for (int threads = 1; threads <= most_threads; ++threads) {
    CAPTURE(threads);
    M reference = fresh, model = fresh;
    sheafnn::train(reference, task(), task().splits[0], train_options(threads));
    const auto training = [&] {
      assign(model, fresh);
      sheafnn::TrainOptions options = train_options(threads);
      std::size_t states = 0;
      options.on_checkpoint = [&](const sheafnn::TrainingState& state) { states += state.history.size(); };
      const sheafnn::TrainResult result = sheafnn::train(model, task(), task().splits[0], options);
      return result.history.size() == 3 && states == 5 && same(model, reference);
    };
    check_operation("train", threads == 1 ? Failing::from_then_on : Failing::once, training,
                    [&] { return same(model, fresh); });
  }
}

/// Does a second thread take part in a loop?
[[maybe_unused]] bool second_thread_works() {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> elsewhere = false;
  // On a busy machine a thread comes late now and then, and is offered nothing for a while after that.
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!elsewhere && std::chrono::steady_clock::now() < end) {
    sheafnn::parallel_for(2, 2, 1, [&](Index, Index) {
      if (std::this_thread::get_id() != caller) elsewhere = true;
      for (int i = 0; i < 20 && !elsewhere; ++i) std::this_thread::sleep_for(std::chrono::microseconds(250));
    });
  }
  return elsewhere;
}

}  // namespace

#if !(defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP))
TEST_CASE("memory runs out: threads that cannot be started") {
  // The first loop of the process starts them.
  const auto loop = [] {
    std::atomic<Index> sum = 0;
    sheafnn::parallel_for(2, 100, 1, [&](Index begin, Index end) { sum += end - begin; });
    return sum == 100;
  };
  for (const Failing which : {Failing::from_then_on, Failing::once}) {
    for (long n = 1; n < 8; ++n) {
      CAPTURE(n);
      bool done = false, threw = false;
      heap::begin_failing(n, which);
      try {
        done = loop();
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      heap::end_failing();
      CHECK(done != threw);
    }
  }
  CHECK(second_thread_works());
}
#endif

TEST_CASE("memory runs out: training") {
  check_training<Model>();
#if !(defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP))
  CHECK(second_thread_works());
#endif
#if defined(SHEAFNN_TEST_MORE_MODELS)
  check_training<sheafnn::Nsd<sheafnn::GeneralLinear<3>>>();
  check_training<sheafnn::Bcsnn<3>>();
  check_training<sheafnn::BayesianSheafFlow<sheafnn::Diagonal<3>>>();
#endif
}

TEST_CASE("memory runs out: training in clusters") {
  using Small = sheafnn::Nsd<sheafnn::Diagonal<2>>;
  const Small fresh = new_model<Small>();
  Small reference = fresh, model = fresh;
  const sheafnn::distributed::Partition parts = sheafnn::distributed::contiguous_partition(task().graph, 2);
  sheafnn::TrainOptions options = train_options(1);
  options.epochs = 2;
  const auto train = [&](Small& of, const sheafnn::TrainOptions& with) {
    return sheafnn::distributed::train_in_clusters(of, task(), parts, 2, task().splits[0], with).history.size();
  };
  train(reference, options);
  const auto training = [&] {
    assign(model, fresh);
    return train(model, options) == 2 && same(model, reference);
  };
  check_operation("train_in_clusters", Failing::from_then_on, training, [&] { return same(model, fresh); });

  // An error while there is no memory is the one that is reported.
  const std::runtime_error error("of the callback");
  options.on_epoch = [&](const sheafnn::EpochReport& report) {
    if (report.epoch == 0) return;
    heap::begin_failing(1, Failing::from_then_on);
    throw error;
  };
  assign(model, fresh);
  std::string message = "nothing is thrown";
  try {
    train(model, options);
  } catch (const std::exception& thrown) {
    heap::end_failing();
    message = thrown.what();
  }
  CHECK(message == "of the callback");
  CHECK(same(model, fresh));
}

TEST_CASE("memory runs out: predicting") {
  const Model model = new_model();
  const sheafnn::Prediction reference = sheafnn::predict(model, task(), {.threads = 1});
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    check_operation(
        "predict", threads == 1 ? Failing::from_then_on : Failing::once,
        [&] {
          const sheafnn::Prediction r = sheafnn::predict(model, task(), {.threads = threads});
          return r.probabilities == reference.probabilities && r.entropy == reference.entropy;
        },
        [] { return true; });
  }
}

TEST_CASE("memory runs out: writing and reading models and training states") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "model", other = folder / "other", states = folder / "states";
  const Model model = new_model(3), before = new_model(4);
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      names.insert(entry.path().filename());
    return names;
  };
  sheafnn::io::save_checkpoint(path, model);
  sheafnn::io::save_checkpoint(other, before);
  const sheafnn::io::Bytes new_content = sheafnn::io::read_file(path), old_content = sheafnn::io::read_file(other);
  const auto whole = [&](const sheafnn::io::Bytes& content) {
    return content == new_content || content == old_content;
  };
  // Each time an old file is there.
  check_operation(
      "save_checkpoint",
      [&] {
        std::filesystem::remove(path);
        std::filesystem::create_hard_link(other, path);
        sheafnn::io::save_checkpoint(path, model);
        return sheafnn::io::read_file(path) == new_content;
      },
      [&] {
        return sheafnn::io::read_file(other) == old_content &&
               files() == std::set<std::string>{"model", "other"} && whole(sheafnn::io::read_file(path));
      });
  sheafnn::io::save_checkpoint(path, model);
  check_operation(
      "load_checkpoint", [&] { return same(sheafnn::io::load_checkpoint<Model>(path), model); },
      [] { return true; });
  Model into = before;
  check_operation(
      "load_checkpoint_into",
      [&] {
        assign(into, before);
        sheafnn::io::load_checkpoint_into(path, into);
        return same(into, model);
      },
      [&] { return same(into, before); });

  sheafnn::TrainingState state;
  sheafnn::TrainOptions options = train_options(1);
  options.on_checkpoint = [&](const sheafnn::TrainingState& s) { state = s; };
  Model trained = new_model();
  sheafnn::train(trained, task(), task().splits[0], options);
  check_operation(
      "write_training_state",
      [&] {
        sheafnn::io::write_training_state(states, state);
        return true;
      },
      [&] {
        return files() == std::set<std::string>{"model", "other", "states"};
      });
  check_operation(
      "read_training_state",
      [&] { return sheafnn::io::read_training_state(states).state.parameters == state.parameters; },
      [] { return true; });
}

TEST_CASE("memory runs out: reading datasets") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "csv");
  folder.write("csv/nodes.csv", "node,label,x,y\na,red,0.5,1\nb,blue,0,2\nc,red,1,0\nd,,3,\"4\"\n");
  folder.write("csv/edges.csv", "source,target\na,b\nb,c\nc,d\n");
  std::filesystem::create_directory(folder / "geom");
  folder.write("geom/out1_node_feature_label.txt",
               "node_id\tfeature\tlabel\n0\t1,0,1\t0\n1\t0,1,1\t1\n2\t1,1,0\t0\n");
  folder.write("geom/out1_graph_edges.txt", "node_id\tnode_id\n0\t1\n1\t2\n");
  std::filesystem::create_directory(folder / "mtx");
  folder.write("mtx/edges.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n");
  folder.write("mtx/features.mtx", "%%MatrixMarket matrix array real general\n3 2\n1\n2\n3\n4\n5\n6\n");
  folder.write("mtx/nodes.csv", "node,label\na,red\nb,blue\nc,red\n");
  const auto write_npz = [&] {
    sheafnn::io::NpzWriter writer;
    writer.add<double>("node_features", {3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6});
    writer.add<std::int32_t>("node_labels", {3}, std::vector<std::int32_t>{0, 1, 0});
    writer.add<std::int32_t>("edges", {2, 2}, std::vector<std::int32_t>{0, 1, 1, 2});
    writer.write(folder / "data.npz");
    return true;
  };
  const auto files = [&] { return sheafnn::io::list_folder(folder.path()).size(); };
  write_npz();
  check_operation("NpzWriter", write_npz, [&, before = files()] { return files() == before; });
  for (const char* name : {"csv", "geom", "mtx", "data.npz"}) {
    CAPTURE(name);
    const std::string path = (folder / name).string();
    const sheafnn::Dataset reference = sheafnn::io::load_dataset(path);
    check_operation(
        name,
        [&] {
          const sheafnn::Dataset data = sheafnn::io::load_dataset(path);
          return data.graph.edge_count() == reference.graph.edge_count() && data.labels == reference.labels &&
                 data.class_names == reference.class_names && data.feature_count() == reference.feature_count();
        },
        [] { return true; });
  }
}

#if defined(SHEAFNN_TEST_MORE_MODELS)
TEST_CASE("memory runs out: batches, and files of learned maps") {
  const Model fresh = new_model();
  Model first = fresh, second = fresh, reference = fresh;
  sheafnn::train(reference, task(), task().splits[0], train_options(1));
  sheafnn::TrainOptions options = train_options(0);
  options.checkpoint_every = sheafnn::TrainOptions{}.checkpoint_every;
  const sheafnn::batch::Training<Model> trainings[] = {{&first, &task().splits[0], options},
                                                       {&second, &task().splits[0], options}};
  check_operation(
      "train_batch",
      [&] {
        assign(first, fresh);
        assign(second, fresh);
        sheafnn::batch::HostExecutor executor;
        const auto outcomes =
            sheafnn::batch::train_batch<sheafnn::batch::HostExecutor, Model>(executor, task(), trainings);
        return outcomes.size() == 2 && outcomes[0].error.empty() && !same(first, fresh) && same(first, second);
      },
      [&] { return same(first, fresh) && same(second, fresh); });
  const test::TemporaryFolder folder;
  const auto files = [&] { return sheafnn::io::list_folder(folder.path()).size(); };
  check_operation(
      "write_learned",
      [&] {
        sheafnn::io::write_learned(folder / "learned.npz", reference, task(), {.threads = 1});
        return files() == 1;
      },
      [&] { return files() == 1; });
}
#endif

}  // namespace test_allocation_failures
