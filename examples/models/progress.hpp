/// \file
/// A progress bar on the terminal, and the summary of several runs.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <sheafnn/bsnn/trainer.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/number_text.hpp"

namespace programs {

/// What the score of an epoch's validation nodes is.
enum class Score : std::uint8_t { accuracy, r_squared };

/// The score of validation nodes as a bar shows it: "82.1%", or "R2 0.8210"; "-" without such nodes.
[[nodiscard]] inline std::string score_text(Score score, double value) {
  return score == Score::accuracy ? text_or("-", "%.1f%%", 100 * value) : "R2 " + text_or("-", "%.4f", value);
}

/// A bar that is drawn over and over on stderr; silent if stderr is not a terminal.
class ProgressBar {
 public:
  ProgressBar(sheafnn::Index epochs, std::size_t runs, Score score = Score::accuracy)
      : epochs_(epochs), runs_(runs), score_(score), visible_(isatty(STDERR_FILENO) != 0) {}

  /// Shows that `run` (0, 1, …) has finished an epoch; at most a dozen times a second.
  void show(std::string_view what, std::size_t run, const sheafnn::EpochReport& report) {
    const auto now = Clock::now();
    ++shown_;
    if (!visible_ || (now - last_ < std::chrono::milliseconds(80) && report.epoch + 1 < epochs_)) return;
    last_ = now;
    std::fprintf(stderr, "\r%.*s %zu/%zu [%s] epoch %td/%td  loss %.4f  validation %s  %s ",
                 static_cast<int>(what.size()), what.data(), run + 1, runs_,
                 bar(report.epoch + 1, epochs_).c_str(), report.epoch + 1, epochs_, report.loss,
                 score_text(score_, report.validation_accuracy).c_str(),
                 left(shown_, epochs_ * static_cast<sheafnn::Index>(runs_ - run) - report.epoch - 1).c_str());
  }
  /// Shows several runs at a time: the number of finished runs, and the number of completed epochs of all runs.
  void show_all(std::string_view what, std::size_t finished, sheafnn::Index epochs) const {
    if (!visible_) return;
    const sheafnn::Index all = epochs_ * static_cast<sheafnn::Index>(runs_);
    std::fprintf(stderr, "\r%.*s: %zu/%zu finished [%s] epoch %td/%td  %s ", static_cast<int>(what.size()),
                 what.data(), finished, runs_, bar(epochs, all).c_str(), epochs, all,
                 left(epochs, all - epochs).c_str());
  }
  /// Shows a text in place of a bar.
  void show_text(const std::string& text) const {
    if (visible_) std::fprintf(stderr, "\r%-110.110s", text.c_str());
  }
  /// Removes the bar.
  void clear() const {
    if (visible_) std::fprintf(stderr, "\r%130s\r", "");
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// The time that `todo` further epochs will take after `done`; fewer may do, where trainings stop early.
  [[nodiscard]] std::string left(sheafnn::Index done, sheafnn::Index todo) const {
    const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
    const long seconds =
        done > 0 ? std::lround(elapsed / static_cast<double>(done) * static_cast<double>(todo)) : 0;
    char text[48];
    std::snprintf(text, sizeof(text), "at most %ld:%02ld left", seconds / 60, seconds % 60);
    return text;
  }
  [[nodiscard]] static std::string bar(sheafnn::Index done, sheafnn::Index all) {
    constexpr sheafnn::Index width = 24;
    std::string text(static_cast<std::size_t>(width), '-');
    std::fill_n(text.begin(), width * done / all, '#');
    return text;
  }

  sheafnn::Index epochs_;
  std::size_t runs_;
  Score score_;
  bool visible_;
  Clock::time_point start_ = Clock::now(), last_{};
  sheafnn::Index shown_ = 0;  ///< epochs
};

/// Mean and standard deviation (divided by the number of values).
struct Summary {
  double mean = 0;
  double deviation = 0;
};
[[nodiscard]] inline Summary summarise(const std::vector<double>& values) {
  Summary s;
  const double n = static_cast<double>(values.size());
  for (const double v : values) s.mean += v / n;
  for (const double v : values) s.deviation += (v - s.mean) * (v - s.mean) / n;
  s.deviation = std::sqrt(s.deviation);
  return s;
}

/// The known values, which are not NaN.
[[nodiscard]] inline std::vector<double> known_values(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return values;
}

/// Reliability bins of several runs as one: counts added, confidence and accuracy weighted by them.
///
/// \param bins  as many as in `sum`, or empty
inline void add_bins(std::vector<sheafnn::uncertainty::ReliabilityBin>& sum,
                     const std::vector<sheafnn::uncertainty::ReliabilityBin>& bins) {
  if (bins.empty()) return;
  if (sum.empty()) {
    sum = bins;
    return;
  }
  for (std::size_t b = 0; b < sum.size(); ++b) {
    const double before = static_cast<double>(sum[b].count), now = static_cast<double>(bins[b].count);
    if (before + now == 0) continue;
    sum[b].confidence = (before * sum[b].confidence + now * bins[b].confidence) / (before + now);
    sum[b].accuracy = (before * sum[b].accuracy + now * bins[b].accuracy) / (before + now);
    sum[b].count += bins[b].count;
  }
}

}  // namespace programs
