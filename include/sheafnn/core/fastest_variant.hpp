/// \file
/// FastestVariant: which of several variants of a computation takes least time, found by trying.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace sheafnn::detail {

/// Chooses a variant for every round of a repeated task. Each is tried for a few rounds, then the fastest one stays.
/// The other variants are tried again after intervals that grow each time, because the first rounds are slow, and the
/// load of the machine changes.
class FastestVariant {
 public:
  static constexpr int max_variants = 4;
  static constexpr int trial = 6;           ///< rounds of a trial …
  static constexpr int warm_up = 2;         ///< … of which the first do not count: caches and threads are cold
  static constexpr int longest_stay = 512;  ///< rounds without trials

  /// Unchecked: `variants` is 1 … max_variants.
  explicit FastestVariant(int variants) noexcept : variants_(variants) {}

  /// The variant of the next round, in [0, variants).
  [[nodiscard]] int variant() const noexcept { return variant_; }

  /// Takes how long the round took, in seconds.
  void record(double seconds) noexcept {
    if (variants_ == 1) return;
    // The last rounds of a variant are compared with the next trials.
    const int rounds = trials_left_ > 0 ? trial : stay_;
    const int counted = round_ - (rounds - trial) - warm_up;
    double& time = seconds_[static_cast<std::size_t>(variant_)];
    if (counted == 0) time = seconds;
    if (counted > 0) time = std::min(time, seconds);
    if (++round_ < rounds) return;
    round_ = 0;
    if (trials_left_ == 0) {
      stay_ = std::min(2 * stay_, longest_stay);
      trials_left_ = variants_;
    }
    if (--trials_left_ > 0) {
      variant_ = (variant_ + 1) % variants_;
    } else {
      variant_ =
          static_cast<int>(std::min_element(seconds_.begin(), seconds_.begin() + variants_) - seconds_.begin());
    }
  }

 private:
  int variants_;
  int variant_ = 0;
  int round_ = 0;                               ///< of the current variant, since it was chosen
  int stay_ = 16;                               ///< rounds that the fastest variant stays
  int trials_left_ = variants_;                 ///< 0: the fastest one stays
  std::array<double, max_variants> seconds_{};  ///< fastest counted round of each
};

}  // namespace sheafnn::detail
