/// \file
/// What networks read of features: kinds of columns, missing values, plans of other graphs, texts, and that all networks
/// read the same.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/prediction.hpp"
#include "sheafnn/batch/trainer.hpp"
#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/bsnn/flow_network.hpp"
#include "sheafnn/bsnn/prediction.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "sheafnn/graph/feature_plan_text.hpp"
#include "sheafnn/graph/fit_features.hpp"
#include "sheafnn/graph/synthetic.hpp"
#include "sheafnn/io/csv_nodes.hpp"
#include "sheafnn/io/model_tensors.hpp"

namespace test_feature_treatment {
namespace {

using sheafnn::Dataset;
using sheafnn::FeatureColumn;
using sheafnn::FeaturePlan;
using sheafnn::FeatureTreatment;
using sheafnn::fit_features;
using sheafnn::Index;
using sheafnn::MissingValues;
using sheafnn::NodeFeatures;
using Kind = FeatureColumn::Kind;
using Column = std::vector<double>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr Index n = 400;

/// Number u of a sequence without order in (0, 1).
double uniform(Index u, Index stream) {
  const double x =
      std::fmod(0.5 + static_cast<double>(u + 1) * (0.6180339887498949 + 0.1 * static_cast<double>(stream)), 1);
  return std::clamp(x, 1e-6, 1 - 1e-6);
}
double normal(Index u, Index stream) {
  return std::sqrt(-2 * std::log(uniform(u, stream))) * std::cos(6.283185307179586 * uniform(u, stream + 3));
}
template <class F>
Column column(const F& of) {
  Column r;
  for (Index u = 0; u < n; ++u) r.push_back(of(u));
  return r;
}
NodeFeatures table(const std::vector<Column>& columns) {
  const Index rows = static_cast<Index>(columns.front().size()), p = static_cast<Index>(columns.size());
  std::vector<double> values;
  for (std::size_t u = 0; u < columns.front().size(); ++u) {
    for (const Column& c : columns) values.push_back(c[u]);
  }
  return NodeFeatures::from_dense(std::span<const double>(values), rows, p, MissingValues::mark);
}
/// Column j with its zeros.
Column dense(const NodeFeatures& features, Index j) {
  Column r(static_cast<std::size_t>(features.rows()));
  for (std::size_t u = 0; u < r.size(); ++u) {
    for (Index k = features.offsets()[u]; k < features.offsets()[u + 1]; ++k) {
      if (features.column_of()[static_cast<std::size_t>(k)] == j)
        r[u] = features.values()[static_cast<std::size_t>(k)];
    }
  }
  return r;
}
double mean(const Column& x) { return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size()); }
double deviation(const Column& x) {
  double sum = 0;
  for (const double value : x) sum += (value - mean(x)) * (value - mean(x));
  return std::sqrt(sum / static_cast<double>(x.size()));
}
std::vector<Kind> kinds(const FeaturePlan& plan) {
  std::vector<Kind> r;
  for (const FeaturePlan::Run& run : plan.runs())
    r.insert(r.end(), static_cast<std::size_t>(run.count), run.column.kind);
  return r;
}
/// Are both in the same order, but for ties?
bool same_order(const Column& a, const Column& b) {
  std::vector<std::size_t> by_a(a.size());
  std::iota(by_a.begin(), by_a.end(), std::size_t{0});
  std::sort(by_a.begin(), by_a.end(), [&](std::size_t i, std::size_t j) { return a[i] < a[j]; });
  return std::is_sorted(by_a.begin(), by_a.end(), [&](std::size_t i, std::size_t j) { return b[i] < b[j]; });
}

/// A table with a column of every kind.
std::vector<Column> mixed() {
  return {column([](Index u) { return 1990 + std::floor(30 * uniform(u, 0)); }),              // years
          column([](Index u) { return 1e9 + static_cast<double>(u); }),                       // identifiers
          column([](Index u) { return 1e-9 * normal(u, 1); }),                                // tiny
          column([](Index u) { return std::exp(10 + 2 * normal(u, 2)); }),                    // incomes
          column([](Index) { return 0.1 + 0.2; }),                                            // constant
          column([](Index) { return 0.0; }),                                                  // empty
          column([](Index u) { return u % 3 == 0 ? 1.0 : 0.0; }),                             // binary, few
          column([](Index u) { return u % 3 == 0 ? 0.0 : 1.0; }),                             // binary, many
          column([](Index u) { return u % 7 == 0 ? static_cast<double>(1 + u % 2) : 0.0; }),  // counts
          column([](Index u) { return u % 7 == 0 ? 1000 * uniform(u, 1) : 0.0; }),            // amounts, few
          column([](Index u) { return u % 5 == 0 ? std::exp(3 * normal(u, 2)) : 0.0; })};  // the same, heavy tails
}

TEST_CASE("every column is treated by what it holds") {
  const std::vector<Column> columns = mixed();
  const NodeFeatures features = table(columns);
  const FeaturePlan plan = fit_features(features, FeatureTreatment::automatic);
  CHECK(plan.treatment() == FeatureTreatment::columns);
  CHECK(kinds(plan) == std::vector{Kind::centred, Kind::centred, Kind::centred, Kind::ranked, Kind::left_out,
                                   Kind::left_out, Kind::binary, Kind::binary, Kind::counts, Kind::scaled,
                                   Kind::logarithm});
  CHECK(
      plan.describe() ==
      "11 columns: 3 centred and scaled, 1 with heavy tails by rank, 1 of few entries scaled, 1 of few entries by "
      "logarithm, 1 of few counts as they are, 2 binary as they are, 2 constant left out");
  const NodeFeatures treated = plan.apply(features);
  CHECK(treated.columns() == 11);
  constexpr double eps = std::numeric_limits<double>::epsilon();
  for (const Index j : {0, 1, 2}) {
    const Column x = dense(treated, j);
    // The offset of identifiers, 1e9, is 1e7 deviations.
    const double bound = j == 1 ? 1e7 * 16 * eps : 400 * 16 * eps;
    CHECK(std::abs(mean(x)) < bound);
    CHECK(std::abs(deviation(x) - 1) < bound);
    CHECK(same_order(columns[static_cast<std::size_t>(j)], x));
  }
  const Column income = dense(treated, 3);
  CHECK(same_order(columns[3], income));
  CHECK(std::abs(mean(income)) < 0.1);
  CHECK(std::abs(deviation(income) - 1) < 0.1);
  CHECK(*std::max_element(income.begin(), income.end()) <= 3.5);
  for (const Index j : {4, 5}) CHECK(dense(treated, j) == Column(n, 0.0));
  for (const Index j : {6, 7, 8}) CHECK(dense(treated, j) == columns[static_cast<std::size_t>(j)]);
  for (const Index j : {9, 10}) {
    const Column x = dense(treated, j), &given = columns[static_cast<std::size_t>(j)];
    CHECK(std::count(x.begin(), x.end(), 0.0) == std::count(given.begin(), given.end(), 0.0));
    CHECK(same_order(given, x));
    CHECK(*std::max_element(x.begin(), x.end()) < 20);
  }
}

TEST_CASE("rows without zeros are treated as the others") {
  std::vector<Column> columns = mixed();
  columns.resize(4);                        // years, identifiers, tiny numbers, incomes: no zeros
  for (Column& c : columns) c.front() = 0;  // but in the first row
  const NodeFeatures features = table(columns);
  REQUIRE(features.offsets()[1] == 0);
  REQUIRE(features.offsets()[2] == 4);
  const FeaturePlan plan = fit_features(features, FeatureTreatment::columns);
  const NodeFeatures treated = plan.apply(features);
  Index j = 0;
  for (const FeaturePlan::Run& run : plan.runs()) {
    for (Index k = 0; k < run.count; ++k, ++j) {
      Column expected = columns[static_cast<std::size_t>(j)];
      for (double& x : expected) x = run.column.treated(x);
      CHECK(dense(treated, j) == expected);
    }
  }
  CHECK(j == 4);
}

TEST_CASE("one outlier, or a number that stands for a missing one, spoils no column") {
  Column x = column([](Index u) { return 50 + 10 * normal(u, 1); });
  for (const double outlier : {1e9, -999.0, 1e300}) {
    x[17] = outlier;
    const NodeFeatures features = table({x});
    const FeaturePlan plan = fit_features(features, FeatureTreatment::automatic);
    CHECK(kinds(plan) == std::vector{Kind::ranked});
    const Column treated = dense(plan.apply(features), 0);
    CHECK(deviation(treated) > 0.9);
    CHECK(deviation(treated) < 1.1);
    CHECK(same_order(x, treated));
  }
}

TEST_CASE("values of any size are treated without overflow") {
  const double most = std::numeric_limits<double>::max();
  const NodeFeatures features = table({column([&](Index u) { return u % 2 == 0 ? most : -most; }),
                                       column([&](Index u) { return 5e-320 * static_cast<double>(u % 4); })});
  const NodeFeatures treated = fit_features(features, FeatureTreatment::columns).apply(features);
  for (const double value : treated.values()) CHECK(std::abs(value) < 4);
  // A column of entries apart by more than all powers of two, one without a deviation in doubles, and numbers at prediction
  // that are far beyond the training's.
  const NodeFeatures apart = table({column([&](Index u) { return u == 0       ? 1e200
                                                                 : u % 8 == 1 ? 1e-200
                                                                              : 0; }),
                                    column([&](Index u) { return 5e-324 * static_cast<double>(1 + u % 3); }),
                                    column([&](Index u) { return 1e-30 * static_cast<double>(u % 7); })});
  const FeaturePlan plan = fit_features(apart, FeatureTreatment::columns);
  for (const double value : plan.apply(apart).values()) CHECK(std::abs(value) < 2000);
  const NodeFeatures far = table({column([](Index) { return 1e300; }), column([](Index) { return 1.0; }),
                                  column([](Index u) { return u % 2 == 0 ? 1e10 : -1e10; })});
  for (const double value : plan.apply(far).values()) CHECK(std::isfinite(static_cast<float>(value)));
}

TEST_CASE("rows are scaled, and features left as they are, to the bit") {
  NodeFeatures features = table(mixed());
  const NodeFeatures none = fit_features(features, FeatureTreatment::none).apply(features);
  CHECK(std::vector(none.values().begin(), none.values().end()) ==
        std::vector(features.values().begin(), features.values().end()));
  const NodeFeatures rows = fit_features(features, FeatureTreatment::rows).apply(features);
  features.normalise_rows();
  CHECK(std::vector(rows.values().begin(), rows.values().end()) ==
        std::vector(features.values().begin(), features.values().end()));
}

TEST_CASE("bags of words are scaled by rows, and tables with a column of another kind are not") {
  const auto words = [](double more) {
    std::vector<Column> columns;
    for (Index j = 0; j < 100; ++j) {
      columns.push_back(
          column([&](Index u) { return (7 * u + 13 * j) % 31 == 0 ? 1.0 + static_cast<double>(u % 2) : 0.0; }));
    }
    if (more != 0) columns.push_back(column([&](Index u) { return more * uniform(u, 1); }));
    return table(columns);
  };
  CHECK(fit_features(words(0), FeatureTreatment::automatic).treatment() == FeatureTreatment::rows);
  CHECK(fit_features(words(0), FeatureTreatment::automatic).describe() == "100 columns, rows scaled to sum 1");
  // Amounts: what a row has in all is lost where rows are scaled.
  NodeFeatures amounts = words(0);
  std::vector<double> values(amounts.values().begin(), amounts.values().end());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::exp(3 * normal(static_cast<Index>(i), 1));
  amounts = NodeFeatures::from_csr({amounts.offsets().begin(), amounts.offsets().end()},
                                   {amounts.column_of().begin(), amounts.column_of().end()}, values, 100);
  CHECK(fit_features(amounts, FeatureTreatment::automatic).treatment() == FeatureTreatment::columns);
  CHECK(fit_features(words(100), FeatureTreatment::automatic).treatment() == FeatureTreatment::columns);
  CHECK(fit_features(words(-1), FeatureTreatment::automatic).treatment() == FeatureTreatment::columns);
  CHECK(fit_features(NodeFeatures::identity(40), FeatureTreatment::automatic).describe() ==
        "40 columns: 40 binary as they are");
}

TEST_CASE("missing values get an indicator and the column's mean") {
  Column x = column([](Index u) { return normal(u, 1); }),
         flag = column([](Index u) { return u % 4 == 0 ? 0.0 : 1.0; });
  x[3] = x[5] = flag[5] = nan;
  const NodeFeatures features = table({x, flag});
  CHECK(features.columns() == 4);
  CHECK(std::vector(features.indicators().begin(), features.indicators().end()) ==
        std::vector<std::int32_t>{0, 1});
  CHECK(dense(features, 3) == column([](Index u) { return u == 5 ? 1.0 : 0.0; }));
  Column known = x;
  std::erase_if(known, [](double value) { return std::isnan(value); });
  const FeaturePlan plan = fit_features(features, FeatureTreatment::automatic);
  CHECK(plan.describe() ==
        "2 columns: 1 centred and scaled, 1 binary as they are, 2 with missing values and an indicator of them");
  CHECK(std::abs(plan.runs()[0].column.centre - mean(known)) < 1e-15);
  CHECK(std::abs(plan.runs()[0].column.scale - deviation(known)) < 1e-14);
  const NodeFeatures treated = plan.apply(features);
  CHECK(dense(treated, 0)[3] == 0);
  CHECK(dense(treated, 1)[5] == doctest::Approx(300.0 / 399).epsilon(0.01));
  CHECK(dense(treated, 2)[3] == 1);
  CHECK(dense(treated, 2)[4] == 0);
  const FeaturePlan none = fit_features(features, FeatureTreatment::none);
  CHECK(std::abs(dense(none.apply(features), 0)[3] - mean(known)) < 1e-15);

  SUBCASE("data without missing values: their indicators are 0") {
    Column whole = x;
    whole[3] = whole[5] = 2;
    const NodeFeatures other = plan.apply(table({whole, column([](Index) { return 1.0; })}));
    CHECK(other.columns() == 4);
    CHECK(dense(other, 2) == Column(n, 0.0));
  }
  SUBCASE("missing values in a column without indicator: the mean") {
    const FeaturePlan of_whole = fit_features(table({known, Column(known.size(), 1.0)}), FeatureTreatment::none);
    const NodeFeatures other = of_whole.apply(features);
    CHECK(other.columns() == 2);
    CHECK(std::abs(dense(other, 0)[3] - mean(known)) < 1e-15);
  }
  SUBCASE("a column of missing values alone") {
    const NodeFeatures empty = table({x, Column(n, nan)});
    const FeaturePlan of_empty = fit_features(empty, FeatureTreatment::automatic);
    CHECK(kinds(of_empty) == std::vector{Kind::centred, Kind::left_out});
    CHECK(dense(of_empty.apply(empty), 3) == Column(n, 1.0));
  }
  SUBCASE("infinity is refused, and NaN unless missing values are marked") {
    const std::vector<double> values = {1, nan}, infinite = {1, std::numeric_limits<double>::infinity()};
    CHECK_THROWS_AS(NodeFeatures::from_dense(std::span<const double>(values), 2, 1), std::invalid_argument);
    CHECK_THROWS_AS(NodeFeatures::from_dense(std::span<const double>(infinite), 2, 1, MissingValues::mark),
                    std::invalid_argument);
  }
}

TEST_CASE("a plan is read from its text as it was") {
  std::vector<Column> columns = mixed();
  columns[2][1] = columns[8][3] = nan;
  const NodeFeatures features = table(columns);
  for (const FeatureTreatment treatment :
       {FeatureTreatment::rows, FeatureTreatment::columns, FeatureTreatment::none}) {
    const FeaturePlan plan = fit_features(features, treatment);
    CHECK(sheafnn::parse_feature_plan(to_text(plan)) == plan);
  }
  CHECK(to_text(FeaturePlan()).empty());
  CHECK(sheafnn::parse_feature_plan("") == FeaturePlan());
  for (const char* bad :
       {"automatic; as-is", "columns", "columns; odd", "columns; centred 1", "columns; centred 1 0",
        "columns; scaled -1", "columns; centred nan 1", "columns; binary*0", "columns; binary*x",
        "columns; binary*999999999999", "columns; ranked 1 2", "columns; binary; missing 1",
        "columns; binary*2; missing 1 0", "columns; left-out 3", "columns;\nbinary"}) {
    CHECK_THROWS_AS(static_cast<void>(sheafnn::parse_feature_plan(bad)), std::invalid_argument);
  }
}

/// A graph with the columns above as features.
Dataset task() {
  sheafnn::SyntheticOptions options;
  options.nodes = n;
  options.classes = 2;
  options.features = 10;
  Dataset r = sheafnn::synthetic(options);
  std::vector<Column> columns = mixed();
  columns[0][7] = columns[3][9] = nan;
  r.features = table(columns);
  return r;
}
/// The same with the features that a network reads.
Dataset treated_task() {
  Dataset r = task();
  NodeFeatures features = fit_features(r.features, FeatureTreatment::columns).apply(r.features);
  features.set_indicators({});
  r.features = features;
  return r;
}

template <class Model>
void check_network(const char* name) {
  CAPTURE(name);
  const Dataset data = task(), treated = treated_task();
  typename Model::Options options;
  options.features = data.feature_count();
  options.classes = 2;
  options.channels = 4;
  sheafnn::TrainOptions training;
  training.epochs = 3;
  training.input_dropout = 0.2;
  Model model(options, 1);
  options.feature_treatment = FeatureTreatment::none;
  Model plain(options, 1);
  // A network of a model without a plan makes one; a training leaves one behind.
  CHECK(sheafnn::predict(model, data).probabilities == sheafnn::predict(plain, treated).probabilities);
  CHECK(model.options().feature_plan.empty());
  sheafnn::train(model, data, data.splits[0], training);
  sheafnn::train(plain, treated, data.splits[0], training);
  CHECK(model.options().feature_plan == fit_features(data.features, FeatureTreatment::columns));
  CHECK(sheafnn::predict(model, data).probabilities == sheafnn::predict(plain, treated).probabilities);
  // It holds for other graphs, and is in the checkpoint.
  Dataset few = data;
  few.graph = sheafnn::Graph(2, {});
  few.features =
      table({{2000, nan}, {1e9, 1e9}, {0, 0}, {1e5, 1e4}, {5, 5}, {0, 0}, {1, 0}, {1, 1}, {0, 0}, {0, 0}, {0, 0}});
  Dataset few_treated = few;
  few_treated.features = model.options().feature_plan.apply(few.features);
  few_treated.features.set_indicators({});
  CHECK(sheafnn::predict(model, few).probabilities == sheafnn::predict(plain, few_treated).probabilities);
  const sheafnn::io::TensorFile file = sheafnn::io::to_tensors(model);
  const Model loaded = sheafnn::io::from_tensors<Model>("model", file);
  CHECK(loaded.options().feature_plan == model.options().feature_plan);
  CHECK(sheafnn::predict(loaded, few).probabilities == sheafnn::predict(model, few).probabilities);
  // A training that fails leaves none behind.
  Model failing(model.options(), 1);
  failing.set_feature_plan({});
  training.on_epoch = [](const sheafnn::EpochReport&) -> sheafnn::EpochAction {
    throw std::runtime_error("stop");
  };
  CHECK_THROWS_AS(sheafnn::train(failing, data, data.splits[0], training), std::runtime_error);
  CHECK(failing.options().feature_plan.empty());
}

TEST_CASE("all networks read the same, and keep what they do to features") {
  check_network<sheafnn::Nsd<sheafnn::Diagonal<2>>>("nsd");
  check_network<sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>>>("bsnn");
  check_network<sheafnn::Csnn<2>>("csnn");
  check_network<sheafnn::SheafFlow<sheafnn::Diagonal<2>>>("flow");
}

TEST_CASE("so does the batch engine") {
  const Dataset data = task(), treated = treated_task();
  using Model = sheafnn::Nsd<sheafnn::Diagonal<2>>;
  sheafnn::ModelOptions options{.features = data.feature_count(), .channels = 4, .layers = 2, .classes = 2};
  Model model(options, 1);
  options.feature_treatment = FeatureTreatment::none;
  Model plain(options, 1);
  sheafnn::batch::HostExecutor executor;
  sheafnn::TrainOptions training;
  training.epochs = 3;
  training.input_dropout = 0.2;
  sheafnn::batch::train(executor, model, data, data.splits[0], training);
  sheafnn::batch::train(executor, plain, treated, data.splits[0], training);
  CHECK(model.options().feature_plan == fit_features(data.features, FeatureTreatment::columns));
  CHECK(sheafnn::batch::predict(executor, model, data.graph, data.features).probabilities ==
        sheafnn::batch::predict(executor, plain, treated.graph, treated.features).probabilities);
}

TEST_CASE("features of another number of columns are refused") {
  const Dataset data = task();
  sheafnn::Nsd<sheafnn::Diagonal<2>> model(
      {.features = data.feature_count(), .channels = 4, .layers = 2, .classes = 2});
  Dataset other = data;
  other.features = table({column([](Index u) { return uniform(u, 1); })});
  CHECK_THROWS_WITH_AS(static_cast<void>(sheafnn::predict(model, other)),
                       "features.columns: 1 is not allowed; the model was built for 13", std::invalid_argument);
  model.set_feature_plan(fit_features(data.features, FeatureTreatment::columns));
  CHECK_THROWS_AS(static_cast<void>(sheafnn::predict(model, other)), std::invalid_argument);
  CHECK_THROWS_WITH_AS(model.set_feature_plan(fit_features(other.features, FeatureTreatment::columns)),
                       "feature_plan: 1 columns is not allowed; the model reads 13", std::invalid_argument);
}

TEST_CASE("checkpoints of older versions say whether rows are scaled") {
  using Model = sheafnn::Nsd<sheafnn::Diagonal<2>>;
  const Model model({.features = 5, .channels = 4, .layers = 2, .classes = 2});
  sheafnn::io::TensorFile file = sheafnn::io::to_tensors(model);
  file.metadata.erase("feature_treatment");
  file.metadata.erase("feature_plan");
  for (const bool rows : {true, false}) {
    file.metadata["normalise_features"] = rows ? "true" : "false";
    const Model loaded = sheafnn::io::from_tensors<Model>("model", file);
    CHECK(loaded.options().feature_treatment == (rows ? FeatureTreatment::rows : FeatureTreatment::none));
    CHECK(loaded.options().feature_plan.treatment() == loaded.options().feature_treatment);
    CHECK(loaded.options().feature_plan.columns() == 5);
  }
}

TEST_CASE("names of features are compared") {
  const std::vector<std::string> trained = {"age", "height"}, swapped = {"height", "age"},
                                 other = {"age", "weight"};
  sheafnn::check_feature_names(trained, trained);
  sheafnn::check_feature_names({}, trained);
  CHECK_THROWS_WITH_AS(
      sheafnn::check_feature_names(swapped, trained),
      "feature column 0: 'height' is not allowed; the model was trained with 'age' there; the same "
      "columns in another order",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(sheafnn::check_feature_names(other, trained),
                       "feature column 1: 'weight' is not allowed; the model was trained with 'height' there",
                       std::invalid_argument);
  // A name that is not known equals every name.
  const std::vector<std::string> partly = {"", "height"};
  sheafnn::check_feature_names(partly, trained);
  sheafnn::check_feature_names(trained, partly);
  CHECK_THROWS_WITH_AS(sheafnn::check_feature_names(other, partly, "edge feature column"),
                       "edge feature column 1: 'weight' is not allowed; the model was trained with 'height' there",
                       std::invalid_argument);
}

TEST_CASE("a node table has missing values where a field is empty or says so") {
  const std::string text = "name,label,age,height\na,x,3,\nb,y,NA,1.5\nc,x,nan,2\n";
  const sheafnn::io::NodeTable nodes =
      sheafnn::io::read_node_table(sheafnn::io::CsvReader("nodes.csv", {text.begin(), text.end()}, ','));
  CHECK(nodes.features.columns() == 4);
  CHECK(dense(nodes.features, 0) == Column{3, 0, 0});
  CHECK(dense(nodes.features, 2) == Column{0, 1, 1});
  CHECK(dense(nodes.features, 3) == Column{1, 0, 0});
}

}  // namespace
}  // namespace test_feature_treatment
