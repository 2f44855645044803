/// \file
/// Loops and tasks on several threads, and the choice of the fastest way to run them.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/fastest_variant.hpp"
#include "sheafnn/core/parallel.hpp"
#include "sheafnn/core/processor.hpp"
#include "sheafnn/core/subnormals.hpp"

#if defined(__unix__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace test_parallel {
namespace {

using sheafnn::Index;
using sheafnn::detail::FastestVariant;

/// How often every way is chosen in so many rounds, when time(way, round) is what they take.
std::map<int, int> chosen(FastestVariant& fastest, int first, int last, const std::function<double(int, int)>& time) {
  std::map<int, int> r;
  for (int round = first; round < last; ++round) {
    const int way = fastest.variant();
    ++r[way];
    fastest.record(time(way, round));
  }
  return r;
}

/// Lets that many threads take part, also where there are fewer processors.
void allow([[maybe_unused]] int threads) {
#if !(defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP))
  sheafnn::detail::ThreadTeam::instance().allow(threads);
#endif
}

/// Waits until another thread has set the flag, a few milliseconds at most.
void wait_for(const std::atomic<bool>& flag) {
  for (int i = 0; i < 20 && !flag; ++i) std::this_thread::sleep_for(std::chrono::microseconds(250));
}

/// Does round() become true within two minutes? On a busy machine a thread comes late now and then, and after it was
/// preempted it is offered nothing for a while.
bool comes_true(const std::function<bool()>& round) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (std::chrono::steady_clock::now() < deadline) {
    if (round()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("parallel_for: every index exactly once, ranges start at multiples of the grain") {
  allow(16);
  for (const int threads : {1, 2, 3, 4, 7, 16}) {
    for (const Index count : {0, 1, 2, 3, 5, 16, 17, 63, 64, 65, 1000}) {
      for (const Index grain : {1, 2, 7, 16, 64, 5000}) {
        std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
        std::atomic<int> ranges = 0, misplaced = 0;
        sheafnn::parallel_for(threads, count, grain, [&](Index begin, Index end) {
          ++ranges;
          const bool large_enough = end - begin >= grain || end == count;
          if (begin % grain != 0 || begin >= end || end > count || !large_enough) ++misplaced;
          for (Index i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
        });
        int wrong = 0;
        for (const std::atomic<int>& visit : visits) wrong += visit != 1;
        CAPTURE(threads);
        CAPTURE(count);
        CAPTURE(grain);
        CHECK(wrong == 0);
        CHECK(misplaced == 0);
        CHECK(ranges == std::min<Index>(threads, (count + grain - 1) / grain));
      }
    }
  }
}

TEST_CASE("parallel_for: counts beyond 32 bits, and loops inside loops") {
  const Index count = (Index{1} << 40) + 3;
  std::atomic<Index> covered = 0;
  sheafnn::parallel_for(5, count, 16, [&](Index begin, Index end) { covered += end - begin; });
  CHECK(covered == count);

  std::vector<std::atomic<int>> visits(12 * 50);
  sheafnn::parallel_for(3, 12, 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      sheafnn::parallel_for(4, 50, 1, [&](Index first, Index last) {
        for (Index j = first; j < last; ++j) ++visits[static_cast<std::size_t>(i * 50 + j)];
      });
    }
  });
  int wrong = 0;
  for (const std::atomic<int>& visit : visits) wrong += visit != 1;
  CHECK(wrong == 0);
  CHECK(sheafnn::hardware_threads() >= 1);
}

TEST_CASE("parallel_for: other threads take part, also after they slept or the caller did their work") {
  const std::thread::id caller = std::this_thread::get_id();
  for (const int threads : {2, 4}) {
    CAPTURE(threads);
    for (int time = 0; time < 10; ++time) {
      CHECK(comes_true([&] {
        // Loops that are over before another thread wakes, …
        for (int k = 0; k < 5; ++k) sheafnn::parallel_for(threads, 4, 1, [](Index, Index) {});
        // after which it is left alone for a moment; and one in which there is time for it.
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        std::atomic<bool> elsewhere = false;
        sheafnn::parallel_for(threads, 4, 1, [&](Index, Index) {
          if (std::this_thread::get_id() != caller) {
            elsewhere = true;
          } else {
            wait_for(elsewhere);
          }
        });
        return elsewhere.load();
      }));
    }
  }
}

TEST_CASE("parallel_for: several threads call it at a time, again and again") {
  constexpr Index count = 5000;
  std::vector<std::vector<int>> visits(4, std::vector<int>(static_cast<std::size_t>(count)));
  std::vector<std::thread> callers;
  for (std::vector<int>& mine : visits) {
    callers.emplace_back([&mine] {
      for (int round = 0; round < 200; ++round) {
        sheafnn::parallel_for(3, count, 10, [&](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) ++mine[static_cast<std::size_t>(i)];
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const std::vector<int>& mine : visits) {
    CHECK(std::all_of(mine.begin(), mine.end(), [](int n) { return n == 200; }));
  }
}

// OpenMP's threads are lost in a child, and the thread sanitizer allows none.
#if defined(__unix__) && !(defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP)) && !defined(__SANITIZE_THREAD__)
TEST_CASE("parallel_for: in the child of a process that has used threads, which ends like any other") {
  sheafnn::parallel_for(3, 3, 1, [](Index, Index) {});
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(120);
    const std::thread::id caller = std::this_thread::get_id();
    const bool takes_part = comes_true([&] {
      std::atomic<bool> elsewhere = false;
      sheafnn::parallel_for(2, 2, 1, [&](Index, Index) {
        if (std::this_thread::get_id() != caller) elsewhere = true;
        wait_for(elsewhere);
      });
      return elsewhere.load();
    });
    std::exit(takes_part ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("parallel_for: a process ends while another thread runs loops, which goes on alone") {
  for (int attempt = 0; attempt < 10; ++attempt) {
    std::fflush(nullptr);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::alarm(120);
      static std::atomic<bool> started = false;
      std::thread([] {
        for (;;) {
          sheafnn::detail::ThreadTeam::instance().run_beside(
              [] { sheafnn::parallel_for(2, 64, 1, [](Index, Index) {}); },
              [] { sheafnn::parallel_for(3, 3, 1, [](Index, Index) {}); });
          started = true;
        }
      }).detach();
      wait_for(started);
      std::exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}
#endif

#if defined(__SSE__)
TEST_CASE("parallel_for: loops know no subnormal numbers, the caller has its own mode before and after") {
  // Read at run time, so that the compiler computes nothing of it.
  volatile float smallest_float = std::numeric_limits<float>::min(), half_float = 0.5f;
  volatile double smallest = std::numeric_limits<double>::min(), half = 0.5;
  const volatile float subnormal = std::numeric_limits<float>::denorm_min();
  const volatile float million = 1e6f;
  const auto sum_of_what_vanishes = [&] {
    return static_cast<double>(smallest_float * half_float) + smallest * half +
           static_cast<double>(subnormal * million);
  };
  const double kept = sum_of_what_vanishes();
  REQUIRE(kept > 0);
  for (const int threads : {1, 2, 3, 4}) {
    allow(threads);
    std::vector<double> sums(64, 1.0), inner(64, 1.0);
    sheafnn::parallel_for(threads, 64, 1, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        sheafnn::parallel_for(threads, 1, 1,
                              [&](Index, Index) { inner[static_cast<std::size_t>(i)] = sum_of_what_vanishes(); });
        sums[static_cast<std::size_t>(i)] = sum_of_what_vanishes();  // after a loop inside the loop
      }
    });
    CHECK(sums == std::vector<double>(64, 0.0));
    CHECK(inner == std::vector<double>(64, 0.0));
    CHECK(sum_of_what_vanishes() == kept);
    double beside = 0;
    sheafnn::detail::run_beside(
        threads,
        [&] { sheafnn::parallel_for(1, 1, 1, [&](Index, Index) { beside = 1 + sum_of_what_vanishes(); }); },
        [] {});
    CHECK(beside == 1);
  }
  {
    const sheafnn::detail::FlushSubnormals flush;
    sheafnn::parallel_for(2, 4, 1, [](Index, Index) {});
    CHECK(sum_of_what_vanishes() == 0);
  }
  CHECK(sum_of_what_vanishes() == kept);
}
#endif

TEST_CASE("run_beside: task and body are done once, with their loops, also within a loop") {
  for (const int threads : {1, 2, 5}) {
    CAPTURE(threads);
    int wrong = 0;
    for (int round = 0; round < 300; ++round) {
      std::vector<std::atomic<int>> visits(2 * 100);
      const auto visit = [&](int who) {
        sheafnn::parallel_for(threads, 100, 3, [&](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(who * 100 + i)];
        });
      };
      sheafnn::detail::run_beside(threads, [&] { visit(0); }, [&] { visit(1); });
      for (const std::atomic<int>& one : visits) wrong += one != 1;
    }
    CHECK(wrong == 0);
  }
  std::atomic<int> done = 0;
  sheafnn::parallel_for(3, 3, 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) sheafnn::detail::run_beside(3, [&] { ++done; }, [&] { done += 10; });
  });
  CHECK(done == 33);
}

TEST_CASE("run_beside: another thread takes the task, and the loops of the body when it is through") {
#if defined(SHEAFNN_USE_OPENMP) && defined(_OPENMP)
  constexpr bool has_team = false;  // the task comes before the body, in the calling thread
#else
  constexpr bool has_team = true;
#endif
  const std::thread::id caller = std::this_thread::get_id();
  bool task_in_other_thread = false;
  for (int time = 0; time < 10; ++time) {
    CHECK(comes_true([&] {
      std::atomic<bool> task_elsewhere = false, loop_elsewhere = false;
      sheafnn::detail::run_beside(
          2, [&] { task_elsewhere = std::this_thread::get_id() != caller; },
          [&] {
            if (has_team) wait_for(task_elsewhere);
            sheafnn::parallel_for(2, 2, 1, [&](Index, Index) {
              if (std::this_thread::get_id() != caller) {
                loop_elsewhere = true;
              } else {
                wait_for(loop_elsewhere);
              }
            });
          });
      task_in_other_thread = task_in_other_thread || task_elsewhere;
      return task_elsewhere == has_team && loop_elsewhere;
    }));
  }
  CHECK(task_in_other_thread == has_team);
}

TEST_CASE("run_beside: what is thrown arrives when both are done, and the team goes on") {
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    for (int round = 0; round < 50; ++round) {
      bool body_done = false;
      const auto failing_task = [] { throw std::runtime_error("task"); };
      const auto body = [&] { body_done = true; };
      CHECK_THROWS_WITH_AS(sheafnn::detail::run_beside(threads, failing_task, body), "task", std::runtime_error);
      CHECK(body_done);
      std::atomic<int> begun = 0, ended = 0;
      const auto task = [&] {
        ++begun;
        ++ended;
      };
      const auto failing_body = [] { throw std::runtime_error("body"); };
      CHECK_THROWS_WITH_AS(sheafnn::detail::run_beside(threads, task, failing_body), "body", std::runtime_error);
      CHECK(begun == ended);
    }
  }
}

TEST_CASE("run_beside: several threads call it at a time, again and again") {
  std::vector<int> sums(4, 0);
  std::vector<std::thread> callers;
  for (int& mine : sums) {
    callers.emplace_back([&mine] {
      for (int round = 0; round < 500; ++round) {
        int task = 0;
        std::atomic<int> body = 0;
        sheafnn::detail::run_beside(
            2, [&] { task = 1; },
            [&] {
              sheafnn::parallel_for(2, 2, 1,
                                    [&](Index begin, Index end) { body += static_cast<int>(end - begin); });
            });
        mine += task + body;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(sums == std::vector<int>(4, 1500));
}

TEST_CASE("a thread leaves a processor for another one, and may return later") {
  std::thread([] {
    using sheafnn::detail::current_processor;
    const int before = current_processor();
    sheafnn::detail::leave_processor(-1);
    sheafnn::detail::leave_processor(1 << 20);
#if defined(__linux__)
    cpu_set_t allowed, later;
    REQUIRE(sched_getaffinity(0, sizeof(allowed), &allowed) == 0);
    REQUIRE(before >= 0);
    int moved = 0;
    for (int round = 0; round < 20; ++round) {
      const int from = current_processor();
      sheafnn::detail::leave_processor(from);
      moved += current_processor() != from;  // the system may bring it back at once, but hardly ever does
    }
    CHECK((moved > 0) == (CPU_COUNT(&allowed) > 1));
    REQUIRE(sched_getaffinity(0, sizeof(later), &later) == 0);
    CHECK(CPU_EQUAL(&allowed, &later));
#else
    CHECK(before == -1);
#endif
  }).join();
}

TEST_CASE("the fastest way is found, kept and found again when times change") {
  for (const int best : {0, 1, 2}) {
    CAPTURE(best);
    FastestVariant fastest(3);
    // The first rounds of a trial are slow, and so are all rounds now and then.
    const auto time = [&](int way, int round) {
      return (way == best ? 1.0 : 1.5) * (round % 6 < FastestVariant::warm_up || round % 5 == 0 ? 10 : 1);
    };
    chosen(fastest, 0, 3 * FastestVariant::trial, time);
    CHECK(fastest.variant() == best);
    std::map<int, int> often = chosen(fastest, 3 * FastestVariant::trial, 5000, time);
    CHECK(often[best] > 4500);
    CHECK(often[(best + 1) % 3] > 0);
    CHECK(often[(best + 2) % 3] > 0);
    // Another one becomes faster: that shows after the next trials.
    often = chosen(fastest, 5000, 10000, [&](int way, int) { return way == (best + 1) % 3 ? 0.5 : 1.0; });
    CHECK(often[(best + 1) % 3] > 4300);
  }
  FastestVariant only(1);
  CHECK(chosen(only, 0, 1000, [](int, int) { return 1.0; }) == std::map<int, int>{{0, 1000}});
}

}  // namespace test_parallel
