/// \file
/// Many short trainings of random networks on random small graphs in one process.
///
///     trainings soak COUNT              one after the other, now and then with files: memory, descriptors, threads and
///                                       time must not grow, and the first thousand give the same bits at the end
///     trainings threads COUNT [FIRST]   random numbers of threads; concurrent trainings; in threads of low priority;
///                                       beside a busy neighbour; in forked children: the bits of one thread. FIRST
///                                       (0): the number of the first training
///     trainings oversubscription        64 threads against as many as there are processors
///
/// The exit code is 0 if everything held.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/flow.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "sheafnn/io/training_state.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace {

using sheafnn::Index;
using Clock = std::chrono::steady_clock;

constexpr bool open_mp =
#if defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP)
    true;
#else
    false;
#endif

/// Can a forked child start threads? Not with OpenMP, nor with the thread sanitizer.
constexpr bool threads_in_children =
#if defined(__SANITIZE_THREAD__)
    false;
#else
    !open_mp;
#endif

/// A fixed sequence of numbers for each seed (splitmix64).
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// A whole number from `least` to `most`.
  Index number(Index least, Index most) {
    return least + static_cast<Index>(next() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool coin() { return (next() >> 33) % 2 == 0; }

 private:
  std::uint64_t state_;
};

/// FNV-1a of bits: equal for equal results.
class Digest {
 public:
  template <class T>
  void add(T value) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto bits = std::bit_cast<Bits>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value_ = (value_ ^ (static_cast<std::uint64_t>(bits) >> (8 * i) & 255)) * 0x100000001B3u;
    }
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325u;
};

/// Options that fit the kind of model.
template <class Options>
void choose(Options& options, Numbers& random) {
  options.channels = random.number(1, 9);
  options.readout_layers = random.number(1, 2);
  options.left_weights = random.coin();
  options.right_weights = random.coin();
  if constexpr (requires { options.layers = 1; }) options.layers = random.number(1, 3);
  if constexpr (requires { options.add_lp = true; }) {
    options.add_lp = random.coin();
    options.add_hp = random.coin();
    options.second_linear = random.coin();
  }
  if constexpr (requires { options.layer_norm = true; }) {
    options.layer_norm = random.coin();
    if (random.number(0, 3) == 0) {
      options.filter = {.basis = sheafnn::PolynomialBasis::legendre, .degree = 2};
    } else if (random.number(0, 3) == 0) {
      options.residual.form = sheafnn::ResidualForm::initial;
    }
  }
  if constexpr (requires { options.max_steps; }) {
    options.method = random.coin() ? sheafnn::FlowMethod::runge_kutta : sheafnn::FlowMethod::dormand_prince;
    options.fixed_steps = 2;
  }
}

/// Where a training writes files, if it does.
struct Place {
  bool files = false;
  std::filesystem::path folder;
};

/// Training number `seed` of one kind of model. \returns a digest of the parameters, predictions and files' content
template <class Model>
std::uint64_t train_one(std::uint64_t seed, int threads, const Place& place) {
  Numbers random(seed);
  sheafnn::SyntheticOptions graph;
  graph.classes = random.number(2, 4);
  graph.nodes = random.number(3 * graph.classes, 60);
  graph.features = random.number(graph.classes, 20);
  graph.words = 2;
  graph.degree = graph.nodes < 20 ? 2 : 4;
  graph.splits = 1;
  graph.seed = seed;
  const sheafnn::Dataset data = sheafnn::synthetic(graph);
  typename Model::Options options;
  options.features = data.feature_count();
  options.classes = data.class_count;
  choose(options, random);
  Model model(options, seed);
  sheafnn::TrainOptions how;
  how.epochs = random.number(1, 5);
  how.samples = random.number(1, 2);
  how.training_samples = random.number(1, 2);
  how.seed = seed;
  how.threads = threads;
  sheafnn::TrainingState state;
  if (place.files) how.on_checkpoint = [&](const sheafnn::TrainingState& s) { state = s; };
  Digest digest;
  sheafnn::train(model, data, data.splits[0], how);
  if (place.files) {
    const std::filesystem::path file = place.folder / "model", state_file = place.folder / "state";
    sheafnn::io::save_checkpoint(file, model);
    sheafnn::io::write_training_state(state_file, state);
    sheafnn::io::load_checkpoint_into(file, model);
    for (const double x : sheafnn::io::read_training_state(state_file).state.best_parameters) digest.add(x);
    for (const double x : state.best_parameters) digest.add(x);
    try {
      static_cast<void>(sheafnn::io::read_checkpoint_info(state_file));  // an error, with the file open
    } catch (const std::runtime_error&) {
      digest.add(1.0);
    }
  }
  for (const auto x : model.parameters().values()) digest.add(x);
  const sheafnn::Prediction prediction = sheafnn::predict(model, data, {.samples = 2, .seed = seed, .threads = threads});
  for (const double p : prediction.probabilities) digest.add(p);
  return digest.value();
}

/// Training number `seed`: its kind, graph, options and number of epochs are functions of that number.
std::uint64_t train(std::uint64_t seed, int threads, const Place& place = {}) {
  constexpr std::uint64_t (*kinds[])(std::uint64_t, int, const Place&) = {
      train_one<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>>, train_one<sheafnn::Bsnn<sheafnn::Diagonal<2>>>,
      train_one<sheafnn::Nsd<sheafnn::GeneralLinear<2>>>, train_one<sheafnn::Bcsnn<2>>,
      train_one<sheafnn::BayesianSheafFlow<sheafnn::Diagonal<2>>>};
  return kinds[seed % std::size(kinds)](seed, threads, place);
}

/// Kilobytes of the line "KEY: …" of /proc/self/status, or a plain number.
long status(std::string_view key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) return std::atol(line.c_str() + key.size() + 1);
  }
  return -1;
}
long descriptors() {
  return static_cast<long>(sheafnn::io::list_folder("/proc/self/fd").size());
}
/// Seconds of processor time of all threads.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int soak(std::uint64_t count) {
  const std::uint64_t block = std::min<std::uint64_t>(1000, std::max<std::uint64_t>(1, count / 10));
  Place place;
  place.folder = std::filesystem::temp_directory_path() / ("sheafnn_soak_" + std::to_string(getpid()));
  std::filesystem::create_directory(place.folder);
  std::vector<std::uint64_t> first;
  long first_memory = 0, first_descriptors = 0, first_threads = 0, memory = 0;
  double first_seconds = 0, seconds = 0;
  bool good = true;
  std::printf("%10s %12s %12s %12s %16s\n", "trainings", "resident kB", "descriptors", "threads", "ms per training");
  for (std::uint64_t done = 0; done < count; done += block) {
    const bool last = done + block >= count;
    const double before = processor_seconds();
    for (std::uint64_t i = 0; i < block; ++i) {
      const std::uint64_t seed = last ? i : done + i;  // the last block is the first one again
      place.files = seed % 10 == 0;
      const std::uint64_t digest = train(seed, 1 + static_cast<int>(i % 3), place);
      if (done == 0) first.push_back(digest);
      if (last && digest != first[i]) {
        std::printf("training %llu ends with other bits\n", static_cast<unsigned long long>(i));
        good = false;
      }
    }
    seconds = processor_seconds() - before;
    memory = status("VmRSS");
    if (done == 0) first_seconds = seconds;
    if (done == 0 || done / block == count / block / 10) {  // memory: from a tenth of the way on
      first_memory = memory;
      first_descriptors = descriptors();
      first_threads = status("Threads");
    }
    if (done / block % std::max<std::uint64_t>(1, count / block / 20) == 0 || last) {
      std::printf("%10llu %12ld %12ld %12ld %16.3f\n", static_cast<unsigned long long>(done + block), memory,
                  descriptors(), status("Threads"), 1000 * seconds / static_cast<double>(block));
      std::fflush(stdout);
    }
  }
  std::filesystem::remove_all(place.folder);
  const auto check = [&](bool held, const char* what, double then, double now) {
    std::printf("%s: %s, %.6g then and %.6g now\n", held ? "held" : "FAILED", what, then, now);
    good = good && held;
  };
  check(memory <= first_memory + first_memory / 20, "resident kB grow by less than 5%",
        static_cast<double>(first_memory), static_cast<double>(memory));
  check(descriptors() == first_descriptors, "descriptors", static_cast<double>(first_descriptors),
        static_cast<double>(descriptors()));
  check(status("Threads") == first_threads, "threads", static_cast<double>(first_threads),
        static_cast<double>(status("Threads")));
  check(seconds <= 1.25 * first_seconds, "processor seconds of the first and the last block", first_seconds, seconds);
  return good ? 0 : 1;
}

/// Trains in a forked child, which starts threads of its own and ends like any program.
/// \returns whether it found the same bits
bool same_in_child(std::uint64_t seed, int threads, std::uint64_t expected) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
    int code = 1;
    try {
      if (train(seed, threads) == expected) code = 0;
    } catch (const std::exception&) {
      code = 2;
    }
    std::exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  std::printf("a child ended with status %d\n", status);
  return false;
}

int threads(std::uint64_t count, std::uint64_t first) {
#if !(defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP))
  sheafnn::detail::ThreadTeam::instance().allow(8);
#endif
  std::atomic<std::uint64_t> trainings = 0, wrong = 0;
  std::array<std::uint64_t, 5> ways{};
  Numbers random(1 + first);
  const auto check = [&](std::uint64_t seed, int team, std::uint64_t expected) {
    ++trainings;
    if (train(seed, team) == expected) return;
    ++wrong;
    std::printf("training %llu with %d threads ends with other bits\n", static_cast<unsigned long long>(seed), team);
  };
  const auto team = [&] { return static_cast<int>(random.number(1, 8)); };
  for (std::uint64_t seed = first; trainings < count; seed += 8) {
    if ((seed - first) % 800 == 0 && seed > first) {
      std::printf("%llu trainings, %llu with other bits\n", static_cast<unsigned long long>(trainings),
                  static_cast<unsigned long long>(wrong));
      std::fflush(stdout);
    }
    std::array<std::uint64_t, 8> expected{};
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = train(seed + i, 1);
      ++trainings;
    }
    const std::size_t way = static_cast<std::size_t>(random.number(0, threads_in_children ? 4 : 3));
    ++ways[way];
    std::vector<std::thread> others;
    std::atomic<bool> stop = false;
    if (way == 0) {  // one after the other
      for (std::size_t i = 0; i < expected.size(); ++i) check(seed + i, team(), expected[i]);
    } else if (way == 1 || way == 2) {  // at a time; every second one at the lowest priority
      for (std::size_t i = 0; i < 4; ++i) {
        others.emplace_back([&, i, a = team(), b = team()] {
          const sched_param none{};
          if (way == 2 && i % 2 == 1) pthread_setschedparam(pthread_self(), SCHED_IDLE, &none);
          check(seed + i, a, expected[i]);
          check(seed + i + 4, b, expected[i + 4]);
        });
      }
    } else if (way == 3) {  // beside neighbours that keep all processors busy
      for (int i = 0; i < sheafnn::hardware_threads(); ++i) {
        others.emplace_back([&] {
          while (!stop) {
          }
        });
      }
      for (std::size_t i = 0; i < expected.size(); ++i) check(seed + i, team(), expected[i]);
    } else {  // in children of a process that has used its threads
      for (std::size_t i = 0; i < 2; ++i) {
        ++trainings;
        const int size = team();
        if (same_in_child(seed + i, size, expected[i])) continue;
        ++wrong;
        std::printf("training %llu with %d threads fails in a child\n", static_cast<unsigned long long>(seed + i), size);
      }
      check(seed, team(), expected[0]);
    }
    stop = true;
    for (std::thread& other : others) other.join();
  }
  std::printf("%llu trainings: %llu batches with random numbers of threads, %llu concurrent, %llu concurrent with two "
              "priorities, %llu beside busy neighbours, %llu in children; %llu with other bits\n",
              static_cast<unsigned long long>(trainings), static_cast<unsigned long long>(ways[0]),
              static_cast<unsigned long long>(ways[1]), static_cast<unsigned long long>(ways[2]),
              static_cast<unsigned long long>(ways[3]), static_cast<unsigned long long>(ways[4]),
              static_cast<unsigned long long>(wrong));
  return wrong == 0 ? 0 : 1;
}

int oversubscription() {
  using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<3>>;
  const int processors = std::max(2, sheafnn::hardware_threads());
  double worst = 0;
  for (const Index nodes : {Index{200}, Index{2000}, Index{10000}}) {
    const sheafnn::Dataset data =
        sheafnn::synthetic({.nodes = nodes, .classes = 4, .features = 100, .degree = 6, .splits = 1});
    const auto seconds = [&](int team) {
      sheafnn::ModelOptions options{.features = 100, .channels = 8, .layers = 2, .classes = 4};
      Model model(options, 1);
      sheafnn::TrainOptions how;
      how.epochs = how.patience = std::max<Index>(8, 60'000 / nodes);
      how.threads = team;
      const auto begin = Clock::now();
      sheafnn::train(model, data, data.splits[0], how);
      return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    double few = 1e9, many = 1e9;
    for (int repeat = 0; repeat < 5; ++repeat) {  // in turn: a neighbour slows both down
      few = std::min(few, seconds(processors));
      many = std::min(many, seconds(64));
    }
    worst = std::max(worst, many / few);
    std::printf("%6ld nodes: %d threads %.3f s, 64 threads %.3f s, %.2f times\n", static_cast<long>(nodes), processors,
                few, many, many / few);
  }
  std::printf("%s: 64 threads take at most twice the time\n", worst <= 2 ? "held" : "FAILED");
  return worst <= 2 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const std::uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (what == "soak" && count > 0) return soak(count);
  if (what == "threads" && count > 0) return threads(count, argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0);
  if (what == "oversubscription") return oversubscription();
  std::fputs("usage: trainings soak COUNT | threads COUNT [FIRST] | oversubscription\n", stderr);
  return 2;
}
