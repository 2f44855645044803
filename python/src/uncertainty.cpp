/// \file
/// Quality, calibration and uncertainty of predicted probabilities, on arrays of anyone's. Every function is one of
/// sheafnn/uncertainty.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <sheafnn/core/names.hpp>
#include <sheafnn/graph/dataset.hpp>
#include <sheafnn/uncertainty/calibration.hpp>
#include <sheafnn/uncertainty/conformal.hpp>
#include <sheafnn/uncertainty/graph_temperature.hpp>
#include <sheafnn/uncertainty/metrics.hpp>
#include <sheafnn/uncertainty/ranking_metrics.hpp>
#include <sheafnn/uncertainty/rejection.hpp>
#include <sheafnn/uncertainty/sampling.hpp>
#include <sheafnn/uncertainty/temperature.hpp>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "interpreter.hpp"
#include "module.hpp"
#include "prediction.hpp"

namespace python {

namespace {

using sheafnn::Dataset;
using sheafnn::Index;
using Rows = Input<double>;         ///< n × C
using Numbers = Input<double>;      ///< n
using Nodes = Input<std::int32_t>;  ///< labels, or indices of nodes

/// Callers in Python give n × C arrays.
[[nodiscard]] Index classes_of(const Rows& rows) { return static_cast<Index>(rows.shape(1)); }
[[nodiscard]] Output<double> like(const Rows& rows, std::vector<double> values) {
  return to_numpy(std::move(values), {rows.shape(0), rows.shape(1)});
}

/// What measure(values, C, labels, nodes) returns, without the lock.
template <class Measure>
[[nodiscard]] auto measured(const Rows& values, const Nodes& labels, const Nodes& nodes, const Measure& measure) {
  const GilRelease release;
  return measure(span_of(values), classes_of(values), span_of(labels), span_of(nodes));
}

/// Binds a metric of probabilities that is one number.
template <auto metric>
void bind_metric(nb::module_& module, const char* name) {
  module.def(name, [](const Rows& probabilities, const Nodes& labels, const Nodes& nodes) {
    return measured(probabilities, labels, nodes, metric);
  });
}

[[nodiscard]] sheafnn::uncertainty::Binning binning_of(bool equal_mass) {
  return equal_mass ? sheafnn::uncertainty::Binning::equal_mass : sheafnn::uncertainty::Binning::equal_width;
}

[[nodiscard]] nb::dict calibration(const Rows& probabilities, const Nodes& labels, const Nodes& nodes, Index bins,
                                   bool equal_mass, bool class_wise) {
  const sheafnn::uncertainty::CalibrationError r =
      measured(probabilities, labels, nodes, [&](auto p, Index classes, auto y, auto rows) {
        return class_wise
                   ? sheafnn::uncertainty::class_wise_calibration_error(p, classes, y, rows, bins,
                                                                        binning_of(equal_mass))
                   : sheafnn::uncertainty::calibration_error(p, classes, y, rows, bins, binning_of(equal_mass));
      });
  nb::dict d;
  d["error"] = r.error;
  d["expected"] = r.expected;
  d["deviation"] = r.deviation;
  d["squared"] = r.squared;
  d["debiased"] = r.debiased();
  return d;
}

[[nodiscard]] nb::dict reliability(const Rows& probabilities, const Nodes& labels, const Nodes& nodes, Index bins,
                                   bool equal_mass) {
  const std::vector<sheafnn::uncertainty::ReliabilityBin> diagram =
      measured(probabilities, labels, nodes, [&](auto p, Index classes, auto y, auto rows) {
        return equal_mass ? sheafnn::uncertainty::adaptive_reliability_diagram(p, classes, y, rows, bins)
                          : sheafnn::uncertainty::reliability_diagram(p, classes, y, rows, bins);
      });
  nb::dict d;
  const auto column = [&](const char* name, const auto& field) {
    std::vector<std::remove_cvref_t<decltype(diagram.front().*field)>> values;
    for (const sheafnn::uncertainty::ReliabilityBin& bin : diagram) values.push_back(bin.*field);
    d[name] = to_numpy(std::move(values), {diagram.size()});
  };
  using Bin = sheafnn::uncertainty::ReliabilityBin;
  column("lower", &Bin::lower);
  column("upper", &Bin::upper);
  column("count", &Bin::count);
  column("confidence", &Bin::confidence);
  column("accuracy", &Bin::accuracy);
  return d;
}

[[nodiscard]] nb::dict evaluated_sets(const Rows& scores, const Nodes& labels, const Nodes& nodes,
                                      double threshold) {
  sheafnn::uncertainty::SetFigures r = measured(scores, labels, nodes, [&](auto s, Index classes, auto y, auto rows) {
    return sheafnn::uncertainty::evaluate_sets(s, classes, y, rows, threshold);
  });
  nb::dict d;
  d["coverage"] = r.coverage;
  d["mean_size"] = r.mean_size;
  const std::size_t sizes = r.of_size.size();
  d["of_size"] = to_numpy(std::move(r.of_size), {sizes});
  return d;
}

/// \param samples  K × n × C
[[nodiscard]] nb::dict combined_samples(const Input<double>& samples) {
  sheafnn::uncertainty::SampledPrediction r;
  {
    const GilRelease release;
    r = sheafnn::uncertainty::combine_samples(span_of(samples), static_cast<Index>(samples.shape(0)),
                                 static_cast<Index>(samples.shape(1)), static_cast<Index>(samples.shape(2)));
  }
  return prediction_of(r, samples.shape(2));
}

/// \param rows  of each member: K × (n × C), K × n, …
[[nodiscard]] nb::dict combined_members(const std::vector<Rows>& probabilities,
                                        const std::vector<Numbers>& entropy, const std::vector<Numbers>& variance,
                                        const std::vector<Numbers>& information) {
  std::vector<sheafnn::uncertainty::SampledPrediction> members;
  for (std::size_t k = 0; k < probabilities.size(); ++k) {
    members.push_back(
        {vector_of(probabilities[k]), vector_of(entropy[k]), vector_of(variance[k]), vector_of(information[k])});
  }
  const std::size_t classes = members.empty() ? 1 : probabilities.front().shape(1);
  return prediction_of(sheafnn::uncertainty::combine_members(members, static_cast<Index>(classes)), classes);
}

[[nodiscard]] nb::dict rejection(const Numbers& uncertainty, const Nodes& labels, const Nodes& predicted,
                                 const Nodes& nodes) {
  sheafnn::uncertainty::RejectionCurve r;
  double best = 0;
  {
    const GilRelease release;
    r = sheafnn::uncertainty::rejection_curve(span_of(uncertainty), span_of(labels), span_of(predicted),
                                              span_of(nodes));
    const sheafnn::uncertainty::Errors errors =
        sheafnn::uncertainty::find_errors(span_of(labels), span_of(predicted), span_of(nodes));
    best = sheafnn::uncertainty::best_rejection_area(static_cast<Index>(errors.right.size()),
                                                     static_cast<Index>(nodes.size()));
  }
  nb::dict d;
  const std::size_t count = r.accuracy.size();
  d["accuracy"] = to_numpy(std::move(r.accuracy), {count});
  d["area"] = r.area;
  d["best_area"] = best;
  return d;
}

[[nodiscard]] nb::dict detection(const Numbers& measure, const Nodes& positives, const Nodes& negatives) {
  sheafnn::uncertainty::DetectionCurve r;
  {
    const GilRelease release;
    r = sheafnn::uncertainty::detection_curve(span_of(measure), span_of(positives), span_of(negatives));
  }
  nb::dict d;
  const std::size_t count = r.threshold.size();
  d["threshold"] = to_numpy(std::move(r.threshold), {count});
  d["true_positive_rate"] = to_numpy(std::move(r.true_positive_rate), {count});
  d["false_positive_rate"] = to_numpy(std::move(r.false_positive_rate), {count});
  d["precision"] = to_numpy(std::move(r.precision), {count});
  d["roc_auc"] = r.roc_auc;
  d["average_precision"] = r.average_precision;
  return d;
}

[[nodiscard]] nb::tuple errors(const Nodes& labels, const Nodes& predicted, const Nodes& nodes) {
  sheafnn::uncertainty::Errors r =
      sheafnn::uncertainty::find_errors(span_of(labels), span_of(predicted), span_of(nodes));
  const std::size_t wrong = r.wrong.size(), right = r.right.size();
  return nb::make_tuple(to_numpy(std::move(r.wrong), {wrong}), to_numpy(std::move(r.right), {right}));
}

[[nodiscard]] Output<double> entropies(const Rows& probabilities) {
  std::vector<double> r;
  const std::size_t classes = probabilities.shape(1);
  sheafnn::detail::check_all_rows("probabilities", span_of(probabilities), classes_of(probabilities), true);
  for (std::size_t u = 0; u < probabilities.shape(0); ++u) {
    r.push_back(sheafnn::uncertainty::predictive_entropy(span_of(probabilities).subspan(u * classes, classes)));
  }
  return to_numpy(std::move(r), {probabilities.shape(0)});
}

void bind_calibration(nb::module_& module) {
  bind_metric<sheafnn::uncertainty::accuracy>(module, "accuracy");
  bind_metric<sheafnn::uncertainty::negative_log_likelihood>(module, "negative_log_likelihood");
  bind_metric<static_cast<double (*)(std::span<const double>, Index, std::span<const std::int32_t>,
                                     std::span<const std::int32_t>)>(sheafnn::uncertainty::brier_score)>(
      module, "brier_score");
  bind_metric<sheafnn::uncertainty::roc_auc>(module, "roc_auc");
  bind_metric<sheafnn::uncertainty::average_precision>(module, "average_precision");
  bind_metric<sheafnn::uncertainty::macro_f1>(module, "macro_f1");
  module.def("confusion_matrix", [](const Rows& probabilities, const Nodes& labels, const Nodes& nodes) {
    const std::size_t classes = probabilities.shape(1);
    return to_numpy(measured(probabilities, labels, nodes, sheafnn::uncertainty::confusion_matrix), {classes, classes});
  });
  module.def("calibration_error", &calibration);
  module.def("reliability_diagram", &reliability);
  module.attr("default_bins") = sheafnn::uncertainty::default_bins;
}

void bind_temperatures(nb::module_& module) {
  module.def("fit_temperature", [](const Rows& logits, const Nodes& labels, const Nodes& nodes) {
    return measured(logits, labels, nodes, sheafnn::uncertainty::fit_temperature);
  });
  module.def("apply_temperature", [](const Rows& logits, double temperature) {
    return like(logits, sheafnn::uncertainty::apply_temperature(span_of(logits), classes_of(logits), temperature));
  });
  module.def("neighbour_agreement", [](const Dataset& data, const Rows& probabilities) {
    return to_numpy(sheafnn::uncertainty::neighbour_agreement(data.graph, span_of(probabilities),
                                                              classes_of(probabilities)),
                    {probabilities.shape(0)});
  });
  module.def("fit_graph_temperature",
             [](const Rows& logits, const Numbers& agreement, const Nodes& labels, const Nodes& nodes) {
               const auto fit = [&](auto z, Index classes, auto y, auto rows) {
                 return sheafnn::uncertainty::fit_graph_temperature(z, classes, span_of(agreement), y, rows);
               };
               const sheafnn::uncertainty::GraphTemperature r = measured(logits, labels, nodes, fit);
               return nb::make_tuple(r.disagreeing, r.agreeing);
             });
  module.def("apply_graph_temperature",
             [](const Rows& logits, const Numbers& agreement, double disagreeing, double agreeing) {
               return like(logits, sheafnn::uncertainty::apply_graph_temperature(span_of(logits), classes_of(logits),
                                                                    span_of(agreement), {disagreeing, agreeing}));
             });
}

void bind_conformal(nb::module_& module) {
  module.def(
      "adaptive_scores",
      [](const Rows& probabilities, std::optional<std::uint64_t> seed) {
        return like(probabilities,
                    sheafnn::uncertainty::adaptive_scores(span_of(probabilities), classes_of(probabilities), seed));
      },
      nb::arg(), nb::arg().none());
  module.def("average_over_neighbours", [](const Dataset& data, const Rows& scores, double weight) {
    return like(scores, sheafnn::uncertainty::average_over_neighbours(data.graph, span_of(scores),
                                                                      classes_of(scores), weight));
  });
  module.def("conformal_threshold", [](const Rows& scores, const Nodes& labels, const Nodes& nodes, double alpha) {
    return measured(scores, labels, nodes, [&](auto s, Index classes, auto y, auto rows) {
      return sheafnn::uncertainty::conformal_threshold(s, classes, y, rows, alpha);
    });
  });
  module.def("conformal_sets", [](const Rows& scores, double threshold) {
    return to_numpy(sheafnn::uncertainty::conformal_sets(span_of(scores), threshold),
                    {scores.shape(0), scores.shape(1)});
  });
  module.def("evaluate_sets", &evaluated_sets);
}

}  // namespace

nb::dict prediction_of(const sheafnn::uncertainty::SampledPrediction& p, std::size_t classes) {
  const std::size_t n = p.entropy.size();
  nb::dict d;
  d["probabilities"] = to_numpy(p.probabilities, {n, classes});
  d["entropy"] = to_numpy(p.entropy, {n});
  d["epistemic_variance"] = to_numpy(p.epistemic_variance, {n});
  d["mutual_information"] = to_numpy(p.mutual_information, {n});
  return d;
}

void bind_uncertainty(nb::module_& module) {
  bind_calibration(module);
  bind_temperatures(module);
  bind_conformal(module);
  module.def("combine_samples", &combined_samples);
  module.def("combine_members", &combined_members);
  module.def("entropy", &entropies);
  module.def("rejection_curve", &rejection);
  module.def("detection_curve", &detection);
  module.def("find_errors", &errors);
}

}  // namespace python
