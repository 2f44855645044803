/// \file
/// A kernel with a second sum, and what it must give, for tests of executors.
#pragma once

#include <vector>

#include "sheafnn/batch/array.hpp"
#include "sheafnn/batch/execution.hpp"

namespace bundles {

using sheafnn::Index;

inline constexpr Index count = 40, groups = 3;  ///< of bundles

/// First sums: over 21 numbers. Then, of what the teams of a bundle have found: the sum, and one with weights that
/// differ from team to team. All numbers are whole.
struct ExchangingSums {
  using Scalar = double;
  static constexpr int outputs = 2;
  struct Place {
    Index item = 0, group = 0;
  };
  Index items;
  int lanes, teams;
  double* out;

  [[nodiscard]] SHEAFNN_HD Place place(Index item, Index group) const { return {item, group}; }
  SHEAFNN_HD void part(const Place& at, int lane, double* sums) const {
    for (int k = lane; k < 21; k += lanes) {
      sums[0] += static_cast<double>((at.item * 7 + at.group * 3 + k) % 101);
      sums[1] += 1;
    }
  }
  SHEAFNN_HD void finish(const Place& at, double* sums) const { sums[1] += static_cast<double>(at.item); }
  SHEAFNN_HD void part_of(const Place& at, int team, const double* numbers, double* sums) const {
    sums[0] += numbers[0];
    sums[1] += numbers[1] * static_cast<double>(at.item % 5 + team);
  }
  SHEAFNN_HD void end(const Place& at, const double* sums) const {
    for (int k = 0; k < outputs; ++k) out[(at.group * items + at.item) * outputs + k] = sums[k];
  }
};

template <class Executor>
std::vector<double> sums(Executor& executor, int teams, int lanes) {
  const Index items = count * teams;
  sheafnn::batch::Array<Executor, double> out(executor, "test", items * groups * 2);
  executor.launch_teams(items, groups, lanes, ExchangingSums{items, lanes, teams, out.data()});
  return out.download();
}

inline std::vector<double> expected(int teams) {
  std::vector<double> r;
  for (Index group = 0; group < groups; ++group) {
    for (Index item = 0; item < count * teams; ++item) {
      double sum = 0, weighted = 0;
      for (int team = 0; team < teams; ++team) {
        const Index other = item / teams * teams + team;
        for (Index k = 0; k < 21; ++k) sum += static_cast<double>((other * 7 + group * 3 + k) % 101);
        weighted += static_cast<double>((21 + other) * (item % 5 + team));
      }
      r.insert(r.end(), {sum, weighted});
    }
  }
  return r;
}

}  // namespace bundles
