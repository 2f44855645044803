/// \file
/// The report of the program uncertainty: every number of its tables, of each split.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <vector>

#include "models/report.hpp"
#include "uncertainty/figures.hpp"

namespace uncertainty {

/// Rows of the first table, sets and measures. Every figure is its mean, its standard deviation and the values
/// per_split. Of an ensemble there is one for each split. Of single models there is one for each split and seed, split by
/// split, as `trainings` lists them. Shares are shares of 1.
[[nodiscard]] inline nlohmann::ordered_json report(const Figures& figures, const std::vector<std::size_t>& splits,
                                                   const std::vector<std::size_t>& seeds) {
  nlohmann::ordered_json r;
  for (const std::size_t split : splits) {
    for (const std::size_t seed : seeds) r["trainings"].push_back({{"split", split}, {"seed", seed}});
  }
  const auto json = [](const Mean& mean) { return programs::summary_json(mean.values); };
  for (const Variant& variant : figures.variants) {
    nlohmann::ordered_json& row = r["predictions"][variant.key];
    for (std::size_t k = 0; k < columns.size(); ++k) row[columns[k].key] = json(variant.figures[k]);
    for (const sheafnn::uncertainty::ReliabilityBin& bin : variant.bins)
      row["reliability"].push_back(programs::bin_json(bin));
  }
  r["temperatures"] = {{"single_model", json(figures.temperature)},
                       {"single_model_disagreeing", json(figures.disagreeing)},
                       {"single_model_agreeing", json(figures.agreeing)}};
  if (figures.samples.size() > 1) r["temperatures"]["ensemble"] = json(figures.ensemble_temperature);
  for (const Samples& samples : figures.samples) {
    for (const SetMethod& method : samples.methods) {
      r["sets"][samples.key][method.key] = {{"coverage", json(method.coverage)},
                                            {"size", json(method.size)},
                                            {"sets_of_size", method.of_size}};
    }
    for (const Measure& m : samples.measures) {
      nlohmann::ordered_json& row = r["measures"][samples.key][m.key];
      row = {{"right", json(m.right)},
             {"wrong", json(m.wrong)},
             {"error_auroc", json(m.error_auc)},
             {"rejection", json(m.area)}};
      if (m.of_unseen.empty()) continue;
      row["unseen"] = json(m.unseen);
      row["unseen_auroc"] = json(m.unseen_auc);
    }
  }
  return r;
}

}  // namespace uncertainty
