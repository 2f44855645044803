/// \file
/// FastestWay: which of several ways to the same result takes least time, found by trying.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace sheafnn::detail {

/// Chooses a way for every round of a repeated task. Each way is tried for a few rounds, then the fastest one
/// stays. After a while, longer every time, the others are tried again: the first rounds of all are slow, and
/// machines change as other programs come and go.
class FastestWay {
 public:
  static constexpr int most_ways = 4;
  static constexpr int trial = 6;           ///< rounds of a trial …
  static constexpr int warm_up = 2;         ///< … of which the first do not count: caches and threads are cold
  static constexpr int longest_stay = 512;  ///< rounds without trials

  /// \param ways  1 … most_ways
  explicit FastestWay(int ways) noexcept : ways_(ways) {}

  /// The way of the next round, in [0, ways).
  [[nodiscard]] int way() const noexcept { return way_; }

  /// Tells how long the round took, in seconds.
  void record(double seconds) noexcept {
    if (ways_ == 1) return;
    // The last rounds of a stay are held against the trials to come.
    const int rounds = trials_left_ > 0 ? trial : stay_;
    const int counted = round_ - (rounds - trial) - warm_up;
    double& time = seconds_[static_cast<std::size_t>(way_)];
    if (counted == 0) time = seconds;
    if (counted > 0) time = std::min(time, seconds);
    if (++round_ < rounds) return;
    round_ = 0;
    if (trials_left_ == 0) {
      stay_ = std::min(2 * stay_, longest_stay);
      trials_left_ = ways_;
    }
    if (--trials_left_ > 0) {
      way_ = (way_ + 1) % ways_;
    } else {
      way_ = static_cast<int>(std::min_element(seconds_.begin(), seconds_.begin() + ways_) - seconds_.begin());
    }
  }

 private:
  int ways_;
  int way_ = 0;
  int round_ = 0;                            ///< of the present way, since it was chosen
  int stay_ = 16;                            ///< rounds that the fastest way stays
  int trials_left_ = ways_;                  ///< 0: the fastest one stays
  std::array<double, most_ways> seconds_{};  ///< fastest counted round of each way
};

}  // namespace sheafnn::detail
