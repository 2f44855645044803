/// \file
/// FeaturePlan as a text that checkpoints hold, and back:
///
///     columns; centred 38.2 14.7; binary*3; left-out; missing 0
///
/// The treatment; what happens to each column, with its centre, scale or quantiles and the number of columns alike. The
/// columns with an indicator of missing values follow.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sheafnn/core/config.hpp"
#include "sheafnn/core/errors.hpp"
#include "sheafnn/graph/feature_treatment.hpp"

namespace sheafnn {

namespace detail {

/// The names of FeatureColumn::Kind, in its order.
inline constexpr std::array<std::string_view, 8> column_kind_names = {"as-is",   "binary", "counts", "left-out",
                                                                      "centred", "ranked", "scaled", "logarithm"};

/// The position of a name in a list of names; the length of the list if it lacks the name.
template <class Names>
[[nodiscard]] std::size_t place_of(std::string_view name, const Names& names) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// With as many digits as it takes to read the same number back.
[[nodiscard]] inline std::string shortest_text(double value) {
  std::array<char, 64> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

/// The values of a column that its text has, in order. The value of an untreated column may be missing if it is 0.
///
/// \param column  with all of its quantiles
template <class Column>
[[nodiscard]] auto numbers_of(Column& column) {
  using Kind = FeatureColumn::Kind;
  std::vector<decltype(&column.scale)> numbers;
  const Kind kind = column.kind;
  if (kind == Kind::as_is || kind == Kind::binary || kind == Kind::centred) numbers.push_back(&column.centre);
  if (kind == Kind::centred || kind == Kind::scaled || kind == Kind::logarithm) numbers.push_back(&column.scale);
  for (auto& quantile : column.quantiles) numbers.push_back(&quantile);
  return numbers;
}
/// Whether the text may lack the values of such a column, because 0 replaces its missing values.
[[nodiscard]] constexpr bool may_lack_numbers(FeatureColumn::Kind kind) noexcept {
  return kind == FeatureColumn::Kind::as_is || kind == FeatureColumn::Kind::binary;
}

/// What is before the next separator, without blanks around it; it and the separator are taken from the text.
[[nodiscard]] inline std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
  while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
  return part;
}

/// \throws std::invalid_argument  a text that is not a number of type T
template <class T>
[[nodiscard]] T number_in_plan(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), "feature_plan", text, "expected a number");
  return value;
}

}  // namespace detail

/// See the file comment; empty for an empty plan. Takes any plan.
[[nodiscard]] inline std::string to_text(const FeaturePlan& plan) {
  if (plan.empty()) return "";
  std::string text(to_string(plan.treatment()));
  for (const FeaturePlan::Run& run : plan.runs()) {
    text += detail::concat("; ", detail::column_kind_names[static_cast<std::size_t>(run.column.kind)]);
    if (run.column.centre != 0 || !detail::may_lack_numbers(run.column.kind)) {
      for (const double* number : detail::numbers_of(run.column)) text += " " + detail::shortest_text(*number);
    }
    if (run.count > 1) text += detail::concat("*", run.count);
  }
  if (plan.indicators().empty()) return text;
  text += "; missing";
  for (const std::int32_t column : plan.indicators()) text += detail::concat(" ", column);
  return text;
}

/// The plan of a text.
///
/// \throws std::invalid_argument  naming the text that is not part of a plan
[[nodiscard]] inline FeaturePlan parse_feature_plan(std::string_view text) {
  using Kind = FeatureColumn::Kind;
  if (text.empty()) return {};
  require(std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }), "feature_plan",
          "a text that is not printable", "expected the text of a plan");
  const std::string_view name = detail::next_part(text, ';');
  const std::size_t treatment = detail::place_of(name, names_of(FeatureTreatment()));
  require(treatment < names_of(FeatureTreatment()).size(), "feature_plan", name,
          "must begin with rows, columns or none");
  std::vector<FeaturePlan::Run> runs;
  std::vector<std::int32_t> indicators;
  while (!text.empty()) {
    std::string_view part = detail::next_part(text, ';');
    if (part.starts_with("missing ")) {
      static_cast<void>(detail::next_part(part, ' '));
      while (!part.empty())
        indicators.push_back(detail::number_in_plan<std::int32_t>(detail::next_part(part, ' ')));
      continue;
    }
    FeaturePlan::Run run;
    std::string_view column = detail::next_part(part, '*');
    if (!part.empty()) run.count = detail::number_in_plan<Index>(part);
    const std::string_view kind_name = detail::next_part(column, ' ');
    const std::size_t kind = detail::place_of(kind_name, detail::column_kind_names);
    require(kind < detail::column_kind_names.size(), "feature_plan", kind_name, "is not a treatment of a column");
    run.column.kind = static_cast<Kind>(kind);
    std::vector<double> numbers;
    while (!column.empty()) numbers.push_back(detail::number_in_plan<double>(detail::next_part(column, ' ')));
    if (run.column.kind == Kind::ranked) run.column.quantiles.resize(FeatureColumn::levels.size());
    const std::vector<double*> own = detail::numbers_of(run.column);
    require(numbers.size() == own.size() || (numbers.empty() && detail::may_lack_numbers(run.column.kind)),
            "feature_plan", kind_name, detail::concat("has ", numbers.size(), " numbers"));
    for (std::size_t i = 0; i < numbers.size(); ++i) *own[i] = numbers[i];
    runs.push_back(std::move(run));
  }
  return {static_cast<FeatureTreatment>(treatment), runs, std::move(indicators)};
}

}  // namespace sheafnn
