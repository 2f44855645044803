/// \file
/// Figures of learned sheaves (SheafUse) as the programs print and report them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sheafnn/bsnn/sheaf_use_figures.hpp>
#include <sheafnn/io/sheaf_use_text.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/number_text.hpp"

namespace programs {

/// "low/median/high" of quantiles.
[[nodiscard]] inline std::string quantile_text(const char* format, const sheafnn::SheafQuantiles& q) {
  return text(format, q.low) + "/" + text(format, q.median) + "/" + text(format, q.high);
}

/// Names and values of the figures that a model has: of the maps, …
[[nodiscard]] inline std::vector<std::pair<std::string, std::string>> map_figures(const sheafnn::SheafUse& use) {
  std::vector<std::pair<std::string, std::string>> r;
  if (!std::isnan(use.kl)) r.emplace_back("KL per pair", text("%.3g", use.kl));
  for (const sheafnn::SheafSpread& spread : use.spread) {
    r.emplace_back(spread.name, quantile_text("%.3f", spread.values));
  }
  if (!std::isnan(use.turn.median)) r.emplace_back("angle", quantile_text("%.1f", use.turn) + " deg");
  if (!std::isnan(use.negative)) r.emplace_back("negative", text("%.0f%%", 100 * use.negative));
  return r;
}
/// … and of the loss with other maps in their place.
[[nodiscard]] inline std::vector<std::pair<std::string, std::string>> loss_figures(const sheafnn::SheafUse& use) {
  if (use.nodes == 0) return {};
  return {{"validation loss", text("%.3f", use.loss)},
          {"maps permuted", text_or("-", "%+.3f", use.permuted.rise)},
          {"drawn from the prior", text_or("-", "%+.3f", use.prior.rise)},
          {"identity", text_or("-", "%+.3f", use.identity.rise)}};
}

/// The pieces with blanks between them, in lines of at most 100 characters.
///
/// \param begin   of the first line
/// \param indent  blanks of the other lines
[[nodiscard]] inline std::string wrapped(const std::vector<std::string>& pieces, std::string begin = "",
                                         std::size_t indent = 0) {
  constexpr std::size_t width = 100;
  std::string r, line = std::move(begin);
  bool first = true;  // of its line
  for (const std::string& piece : pieces) {
    if (!first && line.size() + 1 + piece.size() > width) {
      r += line + "\n";
      line = std::string(indent, ' ');
      first = true;
    }
    line += (first ? "" : " ") + piece;
    first = false;
  }
  return r + line;
}
[[nodiscard]] inline std::vector<std::string> words_of(const std::string& sentence) {
  std::vector<std::string> r(1);
  for (const char c : sentence) {
    if (c == ' ') {
      r.emplace_back();
    } else {
      r.back() += c;
    }
  }
  return r;
}

/// Lines with the figures; empty of models without a sheaf.
///
/// \param whose  what follows "sheaf", as ", medians of 10 trainings"
[[nodiscard]] inline std::string figure_lines(const sheafnn::SheafUse& use, const std::string& whose = "") {
  std::string r;
  const auto add = [&](const auto& figures) {
    std::vector<std::string> pieces;
    bool quantiles = false;
    for (const auto& [name, value] : figures) {
      if (!pieces.empty()) pieces.back() += ",";
      pieces.push_back(name + " " + value);
      quantiles = quantiles || value.find('/') != std::string::npos;
    }
    if (quantiles) pieces.back() += " (at 5/50/95%)";
    if (!pieces.empty()) r += wrapped(pieces, r.empty() ? "sheaf" + whose + ": " : "  ", 2) + "\n";
  };
  add(map_figures(use));
  add(loss_figures(use));
  return r;
}

/// The median of each figure over the trainings that have it. \param trainings  of one network, at least one
[[nodiscard]] inline sheafnn::SheafUse median_of(const std::vector<sheafnn::SheafUse>& trainings) {
  using sheafnn::ChangedSheafLoss, sheafnn::SheafQuantiles, sheafnn::SheafUse;
  const auto median = [&](const auto& figure) {
    std::vector<double> values;
    for (const SheafUse& use : trainings) {
      if (const double value = figure(use); !std::isnan(value)) values.push_back(value);
    }
    return sheafnn::detail::sheaf_quantiles(values).median;
  };
  const auto quantiles = [&](const auto& of) {
    SheafQuantiles r;
    for (double SheafQuantiles::*one :
         {&SheafQuantiles::low, &SheafQuantiles::median, &SheafQuantiles::high, &SheafQuantiles::deviation}) {
      r.*one = median([&](const SheafUse& use) { return of(use).*one; });
    }
    return r;
  };
  SheafUse r = trainings.front();
  for (double SheafUse::*one : {&SheafUse::kl, &SheafUse::negative, &SheafUse::loss, &SheafUse::accuracy}) {
    r.*one = median([&](const SheafUse& use) { return use.*one; });
  }
  for (std::size_t i = 0; i < r.spread.size(); ++i) {
    r.spread[i].values = quantiles([&](const SheafUse& use) { return use.spread.at(i).values; });
  }
  r.turn = quantiles([](const SheafUse& use) { return use.turn; });
  for (ChangedSheafLoss SheafUse::*changed : {&SheafUse::permuted, &SheafUse::prior, &SheafUse::identity}) {
    for (double ChangedSheafLoss::*one : {&ChangedSheafLoss::loss, &ChangedSheafLoss::rise,
                                          &ChangedSheafLoss::standard_error, &ChangedSheafLoss::accuracy}) {
      (r.*changed).*one = median([&](const SheafUse& use) { return (use.*changed).*one; });
    }
  }
  return r;
}

/// Prints the figures, of several trainings their medians, and one warning where some do not use their sheaf.
///
/// \param whose  as figure_lines() has it
inline void print_sheaf_use(const std::vector<sheafnn::SheafUse>& trainings, const std::string& whose) {
  if (trainings.empty()) return;
  const std::string lines = figure_lines(median_of(trainings), whose);
  if (!lines.empty()) std::printf("%s", lines.c_str());
  const std::string said = sheafnn::warning(std::span(trainings));
  if (!said.empty()) std::printf("%s\n", wrapped(words_of(said)).c_str());
}

/// With a warning, or null. NaN becomes null when it is written.
[[nodiscard]] inline nlohmann::ordered_json sheaf_use_json(const sheafnn::SheafUse& use) {
  nlohmann::ordered_json r = sheafnn::io::sheaf_use_json(use);
  const std::string said = sheafnn::warning(use);
  r["warning"] = said.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(said);
  return r;
}

}  // namespace programs
