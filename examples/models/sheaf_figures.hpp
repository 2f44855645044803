/// \file
/// Figures of a learned sheaf (SheafUse) as a line below the row of a training, and in its report.
#pragma once

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sheafnn/bsnn/sheaf_use_figures.hpp>
#include <string>

#include "models/progress.hpp"

namespace programs {

/// "low/median/high" of quantiles.
[[nodiscard]] inline std::string quantile_text(const char* format, const sheafnn::SheafQuantiles& q) {
  return text(format, q.low) + "/" + text(format, q.median) + "/" + text(format, q.high);
}

/// One line, and the warning where the sheaf is not used; nothing of models without a sheaf.
inline void print_sheaf_use(const sheafnn::SheafUse& use) {
  std::string line;
  const auto add = [&](const std::string& part) { line += (line.empty() ? "" : ", ") + part; };
  if (!std::isnan(use.kl)) add("KL " + text("%.3g", use.kl) + " per pair");
  for (const sheafnn::SheafSpread& spread : use.spread)
    add(spread.name + " " + quantile_text("%.3f", spread.values));
  if (!std::isnan(use.turn.median)) add("turns " + quantile_text("%.1f", use.turn) + " degrees");
  if (!std::isnan(use.negative)) add(text("%.0f%%", 100 * use.negative) + " negative");
  if (use.nodes > 0) {
    add("loss " + text("%.3f", use.loss));
    add(text("permuted %+.3f", use.permuted.rise));
    add(text("prior %+.3f", use.prior.rise));
    add(text("identity %+.3f", use.identity.rise));
  }
  if (line.empty()) return;
  std::printf("       sheaf: %s\n", line.c_str());
  if (const std::string said = warning(use); !said.empty()) std::printf("       %s\n", said.c_str());
}

[[nodiscard]] inline nlohmann::ordered_json quantile_json(const sheafnn::SheafQuantiles& q) {
  return {{"5%", q.low}, {"50%", q.median}, {"95%", q.high}, {"std", q.deviation}};
}
[[nodiscard]] inline nlohmann::ordered_json changed_json(const sheafnn::ChangedSheafLoss& changed) {
  return {{"loss", changed.loss}, {"rise", changed.rise}, {"standard_error", changed.standard_error}};
}
/// NaN becomes null when it is written.
[[nodiscard]] inline nlohmann::ordered_json sheaf_use_json(const sheafnn::SheafUse& use) {
  nlohmann::ordered_json r = {{"kl_per_pair", use.kl}};
  for (const sheafnn::SheafSpread& spread : use.spread) r["spread"][spread.name] = quantile_json(spread.values);
  r["turn_degrees"] = quantile_json(use.turn);
  r["negative_share"] = use.negative;
  r["nodes"] = use.nodes;
  r["loss"] = use.loss;
  r["permuted"] = changed_json(use.permuted);
  r["prior"] = changed_json(use.prior);
  r["identity"] = changed_json(use.identity);
  const std::string said = warning(use);
  r["warning"] = said.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(said);
  return r;
}

}  // namespace programs
