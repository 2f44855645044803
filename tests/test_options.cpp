#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "sheafnn/bsnn/cooperative_options.hpp"
#include "sheafnn/bsnn/flow_model_options.hpp"
#include "sheafnn/bsnn/options.hpp"
#include "sheafnn/bsnn/train_options.hpp"
#include "sheafnn/core/names.hpp"
#include "sheafnn/core/option.hpp"
#include "sheafnn/io/option_text.hpp"

namespace test_options {
namespace {

using sheafnn::Index;
using sheafnn::Option;

/// With the sizes that data decide.
template <class Options>
Options valid() {
  Options options;
  if constexpr (requires { options.features; }) options.features = options.classes = 3;
  return options;
}

template <class Options>
std::string refusal(const Options& options) {
  try {
    check_ranges(options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

/// The next value of a type.
double next(double value, double direction) { return std::nextafter(value, direction * HUGE_VAL); }
Index next(Index value, double direction) { return value + static_cast<Index>(direction); }
int next(int value, double direction) { return value + static_cast<int>(direction); }

/// A range accepts its ends where they belong to it, and nothing beyond.
template <class Options, class Field>
void check_field(const Options& options, const Option& option, Field& field) {
  CAPTURE(option.key);
  const sheafnn::OptionRange& range = option.range;
  const auto refused = [&](Field value) {
    field = value;
    return refusal(options).starts_with(std::string(option.member()) + ": ");
  };
  const auto accepted = [&](Field value) {
    field = value;
    return refusal(options).empty();
  };
  CHECK(std::isfinite(range.least));  // numbers have a range
  const Field least = static_cast<Field>(range.least);
  CHECK(refused(next(least, -1)));
  CHECK((range.without_least ? refused(least) : accepted(least)));
  CHECK(accepted(next(least, 1)));
  if (std::isfinite(range.most)) {
    const Field most = static_cast<Field>(range.most);
    CHECK(refused(next(most, 1)));
    CHECK((range.without_most ? refused(most) : accepted(most)));
    CHECK(accepted(next(most, -1)));
  }
  if constexpr (std::is_floating_point_v<Field>) {
    CHECK(refused(std::numeric_limits<Field>::quiet_NaN()));
    CHECK(refused(std::numeric_limits<Field>::infinity()));
  }
}

template <class Options>
int check_struct() {
  std::set<std::string_view> keys, members;
  int numbers = 0;
  Options options = valid<Options>();
  CHECK(refusal(options) == "");
  const auto check = [&](const Option& option, auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    CAPTURE(option.key);
    CHECK(keys.insert(option.key).second);
    CHECK(members.insert(option.member()).second);
    const std::string_view summary = option.summary;
    CHECK_FALSE(summary.empty());
    CHECK_FALSE(summary.ends_with('.'));
    // What is not set is explained, and only that.
    constexpr bool optional = requires { field.has_value(); };
    CHECK((option.automatic != nullptr) == optional);
    const Field before = field;
    if constexpr (std::is_same_v<Field, double> || std::is_same_v<Field, Index> || std::is_same_v<Field, int>) {
      check_field(options, option, field);
      ++numbers;
    } else if constexpr (sheafnn::NamedEnum<Field>) {
      for (const std::string_view name : names_of(Field{})) {
        sheafnn::io::parse_option(option.key, name, field);
        CHECK(sheafnn::io::option_text(field) == name);
      }
      CHECK_THROWS_AS(sheafnn::io::parse_option(option.key, "unheard-of", field), std::invalid_argument);
    }
    field = before;
    // A text says the value, but of what is not set.
    if constexpr (!optional) {
      Field copy = field;
      sheafnn::io::parse_option(option.key, sheafnn::io::option_text(field), copy);
      CHECK(copy == field);
    }
  };
  for_each_option(check, options);
  CHECK(sheafnn::io::option_texts(options).size() == keys.size());
  return numbers;
}

}  // namespace

TEST_CASE("options: every declaration has a range that is checked, names that are read, and a text") {
  CHECK(check_struct<sheafnn::ModelOptions>() == 18);
  CHECK(check_struct<sheafnn::FlowOptions>() == 13);
  CHECK(check_struct<sheafnn::CooperativeOptions>() == 8);
  CHECK(check_struct<sheafnn::TrainOptions>() == 14);
}

TEST_CASE("options: texts of errors") {
  sheafnn::TrainOptions options;
  options.epochs = 0;
  CHECK(refusal(options) == "epochs: 0 is not allowed; must be between 1 and 1000000000");
  options = {};
  options.dropout = 1;
  CHECK(refusal(options) == "dropout: 1 is not allowed; must be at least 0 and below 1");
  options = {};
  options.weight_decay = -1;
  CHECK(refusal(options) == "weight_decay: -1 is not allowed; must be finite and at least 0");
  options = {};
  options.threads = -1;
  CHECK(refusal(options) == "threads: -1 is not allowed; must be at least 0 (0: as many as the graph is worth)");
  sheafnn::ResidualOptions residual;
  residual.theta = 2;
  CHECK(refusal(residual) ==
        "residual.theta: 2 is not allowed; must be between 0 and 1.7, where log(1 + theta) is at most 1");
  sheafnn::PolynomialOptions filter;
  filter.jacobi_alpha = -1;
  CHECK(refusal(filter) == "filter.jacobi_alpha: -1 is not allowed; must be finite and above -1");
  int value = 0;
  CHECK_THROWS_WITH_AS(sheafnn::io::parse_option("threads", "2x", value),
                       "threads: 2x is not allowed; must be a whole number", std::invalid_argument);
  std::optional<bool> flag;
  CHECK_THROWS_WITH_AS(sheafnn::io::parse_option("edge_weights", "yes", flag),
                       "edge_weights: yes is not allowed; must be true or false", std::invalid_argument);
}

TEST_CASE("options: several structs are visited together") {
  sheafnn::ModelOptions one, other;
  one.layers = 7;
  one.filter.degree = 9;
  one.residual.alpha = 0.25;
  for_each_option([](const Option&, const auto& from, auto& to) { to = from; },
                  static_cast<const sheafnn::ModelOptions&>(one), other);
  CHECK(other == one);
}

}  // namespace test_options
