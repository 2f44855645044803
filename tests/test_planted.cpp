// Planted tasks: seeds, sizes, the rule of the labels from features and truth, and that raw sums do not do.
#include "sheafnn/core/eigen.hpp"

#include <doctest/doctest.h>

#include <Eigen/Geometry>
#include <Eigen/QR>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sheafnn/rotation/cayley_kl.hpp"
#include "sheafnn/sheaf/planted.hpp"
#include "sheafnn/sheaf/planted_by_name.hpp"
#include "sheafnn/sheaf/planted_geometric.hpp"

namespace test_planted {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using namespace sheafnn::rotation;
using namespace sheafnn::sheaf;
using Dense = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic>;
constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// The features as a dense matrix, n × p.
Dense table(const Dataset& data) {
  Dense r = Dense::Zero(data.node_count(), data.feature_count());
  for (Index u = 0; u < r.rows(); ++u) {
    for (Index k = data.features.offsets()[static_cast<std::size_t>(u)];
         k < data.features.offsets()[static_cast<std::size_t>(u) + 1]; ++k) {
      r(u, data.features.column_of()[static_cast<std::size_t>(k)]) =
          data.features.values()[static_cast<std::size_t>(k)];
    }
  }
  return r;
}

/// exp of a matrix by its power series, after ten halvings.
Dense exponential(const Dense& a) {
  const Dense small = a / 1024;
  Dense term = Dense::Identity(a.rows(), a.rows()), sum = term;
  for (int k = 1; k < 20; ++k) {
    term = term * small / k;
    sum += term;
  }
  for (int k = 0; k < 10; ++k) sum = sum * sum;
  return sum;
}

/// R_u of frames whose parameters stand in the first columns of row u: w fills the lower triangle column by column.
template <int D>
Dense frame(const Dense& features, Index u) {
  Dense a = Dense::Zero(D, D);
  Index k = 0;
  for (int j = 0; j < D; ++j) {
    for (int i = j + 1; i < D; ++i, ++k) {
      a(i, j) = features(u, k);
      a(j, i) = -features(u, k);
    }
  }
  return exponential(a);
}

/// The arc u→v, or −1.
Index arc_of(const Graph& graph, Index u, Index v) {
  const auto targets = graph.targets();
  const auto begin = targets.begin() + graph.first_arc(u), end = targets.begin() + graph.first_arc(u + 1);
  const auto found = std::lower_bound(begin, end, static_cast<std::int32_t>(v));
  return found != end && *found == v ? found - targets.begin() : -1;
}

/// F_aᵀ F_b, b the reverse of arc a.
template <class Sheaf>
Dense transport_of(const Sheaf& sheaf, Index a) {
  return sheaf.restriction_map(a).transpose() * sheaf.restriction_map(sheaf.graph().reverse(a));
}

/// Checks every label against all ⟨c, s_u⟩ of dense sums.
///
/// \tparam D         numbers of a node's vector
/// \param transport  a function of u and v: F_uᵀ F_v, D × D
template <int D, class Transport>
void check_labels(const Dataset& data, const Transport& transport) {
  const Dense x = table(data).rightCols(D);
  const auto directions = planted_directions<D>(data.class_count);
  Index wrong = 0;
  for (Index u = 0; u < data.node_count(); ++u) {
    Eigen::VectorXd sum = Eigen::VectorXd::Zero(D);
    for (Index v = 0; v < data.node_count(); ++v) {
      if (arc_of(data.graph, u, v) >= 0) sum += transport(u, v) * x.row(v).transpose();
    }
    std::int32_t best = 0;
    for (std::size_t c = 1; c < directions.size(); ++c) {
      if (directions[c].dot(sum) > directions[static_cast<std::size_t>(best)].dot(sum))
        best = static_cast<std::int32_t>(c);
    }
    if (data.graph.degree(u) == 0) best = -1;
    wrong += best != data.labels[static_cast<std::size_t>(u)];
  }
  CHECK(wrong == 0);
}

/// Share of the second half of the nodes that a linear readout of `inputs` classifies, fitted to the first by least squares.
double readout(const Dense& inputs, const Dataset& data) {
  const Index half = inputs.rows() / 2;
  Dense x(inputs.rows(), inputs.cols() + 1);
  x << inputs, Dense::Ones(inputs.rows(), 1);
  Dense y = Dense::Zero(half, data.class_count);
  for (Index u = 0; u < half; ++u) {
    const std::int32_t label = data.labels[static_cast<std::size_t>(u)];
    if (label >= 0) y(u, label) = 1;  // nodes without neighbours have none
  }
  const Dense weights = x.topRows(half).colPivHouseholderQr().solve(y);
  Index right = 0;
  for (Index u = half; u < inputs.rows(); ++u) {
    Index best = 0;
    (x.row(u) * weights).maxCoeff(&best);
    right += best == data.labels[static_cast<std::size_t>(u)];
  }
  return static_cast<double>(right) / static_cast<double>(inputs.rows() - half);
}

/// Own features, and beside them the sums of the neighbours' features as they are, or of their vectors as the sheaf
/// transports them.
template <class Task>
Dense inputs_of(const Task& task, bool transported) {
  constexpr int D = decltype(task.sheaf)::stalk_dimension;
  const Dense own = table(task.data);
  Dense sums = Dense::Zero(own.rows(), own.cols());
  if (transported) {
    const int size = task.data.name == "planted-signed" ? signed_columns : D;
    sums = Dense::Zero(own.rows(), size);
    for (int first = 0; first < size; first += D) {
      std::vector<Column<double, D>> x;
      for (Index u = 0; u < own.rows(); ++u) x.emplace_back(own.row(u).tail(size).template segment<D>(first));
      const auto s = transported_sums(task.sheaf, x);
      for (std::size_t u = 0; u < s.size(); ++u) sums.row(static_cast<Index>(u)).template segment<D>(first) = s[u];
    }
  } else {
    const Graph& graph = task.data.graph;
    for (Index a = 0; a < graph.arc_count(); ++a) sums.row(graph.source(a)) += own.row(graph.target(a));
  }
  Dense r(own.rows(), own.cols() + sums.cols());
  r << own, sums;
  return r;
}

/// A linear readout does with the truth, and without it is near chance: 1000 test nodes have a standard error of 0.016.
template <class Task>
void check_needs_sheaf(const Task& task, double most_without) {
  CAPTURE(task.data.name);
  CHECK(readout(inputs_of(task, true), task.data) > 0.8);
  CHECK(readout(inputs_of(task, false), task.data) < most_without);
}

template <class Task>
void check_same(const Task& a, const Task& b, bool same) {
  CHECK(std::equal(a.data.features.values().begin(), a.data.features.values().end(),
                   b.data.features.values().begin(), b.data.features.values().end()) == same);
  CHECK((a.data.labels == b.data.labels) == same);
  CHECK(std::equal(a.data.graph.edges().begin(), a.data.graph.edges().end(), b.data.graph.edges().begin(),
                   b.data.graph.edges().end()) == same);
  CHECK((a.data.splits[0].train == b.data.splits[0].train) == same);
  if (!same) return;
  CHECK(a.concentration == b.concentration);
  for (Index arc = 0; arc < a.data.graph.arc_count(); ++arc) CHECK(a.sheaf.map(arc) == b.sheaf.map(arc));
}

TEST_CASE("planted: same seed, same bits; another seed, another task") {
  const PlantedOptions options{
      .nodes = 200, .degree = 5, .noise = 0.1, .hidden_columns = 7, .splits = 1, .seed = 3};
  PlantedOptions other = options;
  other.seed = 4;
  const auto check = [&](const auto& make) {
    const auto task = make(options);
    validate(task.data);
    check_same(task, make(options), true);
    check_same(task, make(other), false);
  };
  check([](const PlantedOptions& o) { return planted_frames<3>(o); });
  check([](const PlantedOptions& o) { return planted_unreliable<2>(o); });
  check([](const PlantedOptions& o) { return planted_diagonal<4>(o); });
  check([](const PlantedOptions& o) { return planted_general_linear<2>(o); });
  check([](const PlantedOptions& o) { return planted_signed(o); });
  check([](const PlantedOptions& o) { return planted_geometric(o); });
}

TEST_CASE("planted: random graphs have the edges and degrees asked for") {
  for (const double degree : {1.0, 2.5, 8.0, 50.0}) {
    for (const std::uint64_t seed : {0, 1, 2}) {
      const Graph graph = random_regular_graph(200, degree, seed);
      CHECK(graph.edge_count() == static_cast<Index>(std::llround(100 * degree)));
      CHECK(graph.merged_duplicates() == 0);
      CHECK(graph.dropped_self_loops() == 0);
    }
  }
  // 2m = 2000 ends: the pairs that were exchanged leave every node's number of ends as it was.
  const Graph graph = random_regular_graph(300, 20.0 / 3, 5);
  CHECK(graph.edge_count() == 1000);
  for (Index u = 0; u < 300; ++u) {
    CHECK(graph.degree(u) >= 6);
    CHECK(graph.degree(u) <= 7);
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(random_regular_graph(20, 6, 0)),
                       "degree: 6 is not allowed; must be between 0 and 5", std::invalid_argument);
}

TEST_CASE("planted: directions are unit vectors, all at the same angle") {
  const auto check = [](const auto& directions, double cosine) {
    for (std::size_t a = 0; a < directions.size(); ++a) {
      for (std::size_t b = 0; b < directions.size(); ++b) {
        CHECK(std::abs(directions[a].dot(directions[b]) - (a == b ? 1 : cosine)) < 16 * epsilon);
      }
    }
  };
  check(planted_directions<1>(), -1);
  check(planted_directions<2>(), -0.5);
  check(planted_directions<3>(), -1.0 / 3);
  check(planted_directions<3>(3), -0.5);
  check(planted_directions<5>(), -0.2);
  CHECK(std::abs(planted_directions<2>(100)[1](1) - std::sin(0.02 * 3.14159265358979324)) < 4 * epsilon);
}

template <int D>
void check_frames() {
  const auto task = planted_frames<D>({.nodes = 150, .degree = 6, .spread = 1.5, .splits = 1, .seed = 8});
  constexpr int P = D * (D - 1) / 2;
  CHECK(task.data.feature_count() == P + D);
  CHECK(task.data.class_count == D + 1);
  CHECK(task.concentration.empty());
  const Dense x = table(task.data);
  std::vector<Dense> frames;
  for (Index u = 0; u < 150; ++u) {
    frames.push_back(frame<D>(x, u));
    CHECK(std::abs(x.row(u).tail(D).norm() - 1) < 4 * epsilon);
  }
  const auto transport = [&](Index u, Index v) -> Dense {
    return frames[static_cast<std::size_t>(u)].transpose() * frames[static_cast<std::size_t>(v)];
  };
  check_labels<D>(task.data, transport);
  const Graph& graph = task.data.graph;
  double error = 0;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    error = std::max(error, (transport_of(task.sheaf, a) - transport(graph.source(a), graph.target(a))).norm());
  }
  CHECK(error < 1024 * 16 * epsilon);  // ten squarings each double the error of a rotation's factor
}

TEST_CASE("planted frames: labels and transports follow from the features") {
  check_frames<2>();
  check_frames<3>();
  check_frames<4>();
  check_frames<5>();
}

TEST_CASE("planted frames: with curvature, transports follow from both ends and are not flat") {
  PlantedOptions options{.nodes = 150, .curvature = 0.5, .splits = 1, .seed = 3};
  const auto task = planted_frames<3>(options);
  const Dense x = table(task.data);
  const auto skew = [&](Index u) -> Dense {
    Dense a = Dense::Zero(3, 3);
    a << 0, -x(u, 0), -x(u, 1), x(u, 0), 0, -x(u, 2), x(u, 1), x(u, 2), 0;
    return a;
  };
  const auto transport = [&](Index u, Index v) -> Dense {
    const Dense turn = exponential(0.5 * (skew(u) * skew(v) - skew(v) * skew(u)));
    return frame<3>(x, u).transpose() * turn * frame<3>(x, v);
  };
  check_labels<3>(task.data, transport);
  const Graph& graph = task.data.graph;
  double error = 0;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    error = std::max(error, (transport_of(task.sheaf, a) - transport(graph.source(a), graph.target(a))).norm());
  }
  CHECK(error < 1024 * 16 * epsilon);
  // Sums through the flat transports of the frames alone do not do.
  options.nodes = 2000;
  auto curved = planted_frames<3>(options);
  CHECK(readout(inputs_of(curved, true), curved.data) > 0.8);
  options.curvature = 0;
  curved.sheaf = planted_frames<3>(options).sheaf;
  CHECK(readout(inputs_of(curved, true), curved.data) < 0.65);
  // Rotations of the plane commute.
  options.nodes = 150;
  const auto flat = planted_frames<2>(options);
  options.curvature = 2;
  CHECK(flat.data.labels == planted_frames<2>(options).data.labels);
}

/// Of drawn labels: every vector is the direction of the own class, or of a neighbour's class in the neighbour's frame.
template <int D>
void check_shown_classes(double curvature) {
  const PlantedOptions options{
      .nodes = 600, .degree = 5, .curvature = curvature, .neighbour_share = 0.7, .splits = 1, .seed = 4};
  const auto task = planted_frames<D>(options);
  const Graph& graph = task.data.graph;
  CHECK(task.data.class_count == D + 1);
  const auto directions = planted_directions<D>();
  const auto direction = [&](Index u) -> Eigen::VectorXd {
    return directions[static_cast<std::size_t>(task.data.labels[static_cast<std::size_t>(u)])];
  };
  const Dense x = table(task.data).rightCols(D);
  double own = 0, none = 0;
  std::vector<double> count(D + 1, 0.0), place(4, 0.0);
  for (Index u = 0; u < 600; ++u) {
    ++count[static_cast<std::size_t>(task.data.labels[static_cast<std::size_t>(u)])];
    const Eigen::VectorXd vector = x.row(u).transpose();
    if ((vector - direction(u)).norm() < 16 * epsilon) {
      ++own;
      continue;
    }
    double least = 2;
    Index nearest = 0;
    for (Index a = graph.first_arc(u); a < graph.first_arc(u + 1); ++a) {
      const double distance = (transport_of(task.sheaf, a) * direction(graph.target(a)) - vector).norm();
      if (distance < least) nearest = a - graph.first_arc(u);
      least = std::min(least, distance);
    }
    none += least > 64 * epsilon;
    if (nearest < 4) ++place[static_cast<std::size_t>(nearest)];
  }
  CHECK(none == 0);
  CHECK(std::abs(own - 180) < 4 * std::sqrt(600 * 0.3 * 0.7));
  // Every class is equally likely, and so is every one of the five neighbours.
  for (const double c : count) CHECK(std::abs(c - 600.0 / (D + 1)) < 4 * std::sqrt(600.0 / (D + 1)));
  for (const double c : place) CHECK(std::abs(c - 84) < 4 * std::sqrt(84));
}

TEST_CASE("planted frames: with a neighbour share, labels are drawn and vectors show classes of neighbours") {
  check_shown_classes<2>(0);
  check_shown_classes<3>(0);
  check_shown_classes<3>(1);
  check_shown_classes<4>(0);
  check_shown_classes<5>(0);
  // Pairs of nodes show each other's class: with transports nothing is unknown, without them nothing is known.
  PlantedOptions options{.nodes = 2000, .degree = 1, .neighbour_share = 1, .splits = 1, .seed = 1};
  const auto pairs = planted_frames<3>(options);
  check_needs_sheaf(pairs, 0.25 + 0.1);
  check_labels<3>(pairs.data,
                  [&](Index u, Index v) { return transport_of(pairs.sheaf, arc_of(pairs.data.graph, u, v)); });
  check_same(pairs, planted_frames<3>(options), true);
  // Of nodes that show a neighbour the own features do not tell the class; of the others they do.
  options.neighbour_share = 0.5;
  const auto half = planted_frames<3>(options);
  CHECK(pairs.data.labels == half.data.labels);
  CHECK(std::abs(readout(table(half.data), half.data) - (0.5 + 0.5 / 4)) < 0.1);
  options.seed = 2;
  check_same(half, planted_frames<3>(options), false);
}

TEST_CASE("planted unreliable: concentrations follow from the features, and draws from the concentrations") {
  const PlantedOptions options{.nodes = 3000, .least_concentration = 0.4, .most_concentration = 0.95, .splits = 1};
  const auto task = planted_unreliable<3>(options);
  const Graph& graph = task.data.graph;
  const Dense x = table(task.data);
  CHECK(x.cols() == 3 + 1 + 3);
  CHECK(static_cast<Index>(task.concentration.size()) == graph.edge_count());
  // tr N of C_3(I, κ) has the mean 3 r(κ): standardised sums over edges of similar κ. A trace lies in [−1, 3].
  std::array<double, 4> excess{}, count{};
  double least = 1, most = 0;
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const auto [u, v] = graph.edge(e);
    const double kappa = task.concentration[static_cast<std::size_t>(e)];
    CHECK(std::abs(kappa - (0.4 + 0.55 / (1 + std::exp(8 - 8 * (x(u, 3) + x(v, 3)))))) < 64 * epsilon);
    least = std::min(least, kappa);
    most = std::max(most, kappa);
    const Dense transport = transport_of(task.sheaf, graph.forward_arc(e));
    const Dense mean = frame<3>(x, u).transpose() * frame<3>(x, v);
    const double trace = (transport * mean.transpose()).trace();
    const std::size_t bin = std::min<std::size_t>(3, static_cast<std::size_t>((kappa - 0.4) / 0.55 * 4));
    excess[bin] += trace - 3 * cayley_resultant<3>(kappa);
    ++count[bin];
  }
  CHECK(least < 0.45);
  CHECK(most > 0.93);
  for (std::size_t bin = 0; bin < 4; ++bin) {
    CHECK(count[bin] > 500);
    CHECK(std::abs(excess[bin]) < 4 * 2 * std::sqrt(count[bin]));  // four standard errors, of at most 2 each
  }
  // The sheaf holds what was drawn: labels follow from its maps.
  const auto few = planted_unreliable<3>({.nodes = 120, .splits = 1, .seed = 2});
  check_labels<3>(few.data,
                  [&](Index u, Index v) { return transport_of(few.sheaf, arc_of(few.data.graph, u, v)); });
}

TEST_CASE("planted geometric: transports are rotations that turn a triangle's vectors by its area") {
  const auto task = planted_geometric({.nodes = 300, .degree = 12, .splits = 1, .seed = 2});
  const Graph& graph = task.data.graph;
  const Dense x = table(task.data);
  CHECK(x.cols() == 3 + 3 + 2);
  CHECK(task.data.class_count == 3);
  const auto point = [&](Index u) -> Eigen::Vector3d { return x.row(u).head(3); };
  const auto arc = [&](Index u, Index v) { return arc_of(graph, u, v); };
  const auto transport = [&](Index u, Index v) { return transport_of(task.sheaf, arc(u, v)); };
  check_labels<2>(task.data, transport);
  // Every pair within the chord 2 √(degree/(n − 1)), and no other.
  Index wrong = 0;
  for (Index u = 0; u < 300; ++u) {
    CHECK(std::abs(point(u).norm() - 1) < 4 * epsilon);
    for (Index v = 0; v < 300; ++v) {
      if (u != v) wrong += (arc(u, v) >= 0) != ((point(u) - point(v)).squaredNorm() <= 4.0 * 12 / 299);
    }
  }
  CHECK(wrong == 0);
  // The mean degree has a standard error of about √(2 · 12 / 300).
  CHECK(std::abs(2.0 * static_cast<double>(graph.edge_count()) / 300 - 12) < 4 * 0.28);
  Index triangles = 0;
  double error = 0, most = 0;
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const auto [u, v] = graph.edge(e);
    for (Index a = graph.first_arc(v); a < graph.first_arc(v + 1); ++a) {
      const Index w = graph.target(a);
      if (w <= v || arc(u, w) < 0) continue;
      ++triangles;
      // The signed area of a spherical triangle, by the formula of Van Oosterom and Strackee (1983).
      const Eigen::Vector3d p = point(u), q = point(v), r = point(w);
      const double area = 2 * std::atan2(p.dot(q.cross(r)), 1 + p.dot(q) + q.dot(r) + r.dot(p));
      const Dense turn = transport(u, w) * transport(w, v) * transport(v, u);
      error = std::max(error, std::abs(std::atan2(turn(1, 0), turn(0, 0)) - area));
      most = std::max(most, std::abs(area));
    }
  }
  CHECK(triangles > 300);
  CHECK(most > 0.05);
  CHECK(error < 64 * epsilon);
  // An octant has an eighth of the area 4π, and its three frames here lie along the great circles.
  const Column<double, 3> ex(1, 0, 0), ey(0, 1, 0), ez(0, 0, 1);
  const SquareMatrix<double, 2> octant =
      sphere_transport(ex, ey, ez, ex) * sphere_transport(ez, ex, ey, ez) * sphere_transport(ey, ez, ex, ey);
  CHECK(std::abs(octant(1, 0) - 1) < 8 * epsilon);
}

TEST_CASE("planted diagonal and general-linear: labels follow from the features") {
  const auto diagonal = planted_diagonal<3>({.nodes = 150, .splits = 1});
  const Dense a = table(diagonal.data);
  check_labels<3>(diagonal.data, [&](Index u, Index v) -> Dense {
    return a.row(u).head(3).cwiseProduct(a.row(v).head(3)).asDiagonal();
  });
  const auto general = planted_general_linear<3>({.nodes = 150, .splits = 1});
  const Dense g = table(general.data);
  const auto map = [&](Index u) -> Dense {
    return frame<3>(g, u) * g.row(u).segment(3, 3).unaryExpr([](double z) { return std::exp2(z); }).asDiagonal();
  };
  check_labels<3>(general.data, [&](Index u, Index v) -> Dense { return map(u).transpose() * map(v); });
}

TEST_CASE("planted signed: signs follow from both ends' groups, and no signs of nodes explain them") {
  const auto task = planted_signed({.nodes = 300, .degree = 20, .splits = 1});
  const Graph& graph = task.data.graph;
  const Dense s = table(task.data);
  CHECK(s.cols() == 3 + signed_columns);
  CHECK(task.data.class_count == signed_columns + 1);
  CHECK(s.leftCols(3).rowwise().sum() == Eigen::VectorXd::Ones(300));
  CHECK(s.leftCols(3).rowwise().maxCoeff() == Eigen::VectorXd::Ones(300));
  // Every group has 100 ± √(300 · 2/9) nodes.
  for (int k = 0; k < 3; ++k) CHECK(std::abs(s.col(k).sum() - 100) < 4 * std::sqrt(300 * 2.0 / 9));
  const auto sign = [&](Index u, Index v) { return 2 * s.row(u).head(3).dot(s.row(v).head(3)) - 1; };
  check_labels<signed_columns>(task.data, [&](Index u, Index v) -> Dense {
    return sign(u, v) * Dense::Identity(signed_columns, signed_columns);
  });
  Index triangles = 0, negative = 0;
  for (Index a = 0; a < graph.arc_count(); ++a) {
    const Index u = graph.source(a), v = graph.target(a);
    CHECK(transport_of(task.sheaf, a)(0, 0) == sign(u, v));
    for (Index b = graph.first_arc(v); b < graph.first_arc(v + 1); ++b) {
      const Index w = graph.target(b);
      if (arc_of(graph, w, u) < 0) continue;
      ++triangles;
      negative += sign(u, v) * sign(v, w) * sign(w, u) < 0;
    }
  }
  // Three groups in a triangle have a probability of 2/9; six directed triangles are one.
  const double count = static_cast<double>(triangles) / 6;
  CHECK(count > 300);
  CHECK(std::abs(static_cast<double>(negative) / 6 / count - 2.0 / 9) < 0.1);
  CHECK(planted_signed({.nodes = 60, .classes = 2, .splits = 1}).data.class_count == 2);
  CHECK_THROWS_WITH_AS(static_cast<void>(planted_signed({.classes = 7})),
                       "classes: 7 is not allowed; must be between 2 and 6", std::invalid_argument);
}

TEST_CASE("planted: neighbours' features as they are do not tell the class") {
  const PlantedOptions options{.nodes = 2000, .splits = 1, .seed = 1};
  check_needs_sheaf(planted_frames<3>(options), 0.25 + 0.1);
  check_needs_sheaf(planted_unreliable<3>(options), 0.25 + 0.1);
  check_needs_sheaf(planted_diagonal<3>(options), 0.25 + 0.1);
  check_needs_sheaf(planted_general_linear<3>(options), 0.25 + 0.1);
  check_needs_sheaf(planted_signed(options), 1.0 / 6 + 0.2);  // on average, a neighbour's sign is −1/3
  check_needs_sheaf(planted_geometric(options), 1.0 / 3 + 0.1);
}

TEST_CASE("planted: noise and the hidden map change the features alone") {
  PlantedOptions options{.nodes = 400, .splits = 1, .seed = 6};
  const auto plain = planted_frames<3>(options);
  options.noise = 0.5;
  options.hidden_columns = 9;
  const auto hidden = planted_frames<3>(options);
  CHECK(plain.data.labels == hidden.data.labels);
  CHECK(plain.sheaf.map(7) == hidden.sheaf.map(7));
  const Dense a = table(plain.data), b = table(hidden.data);
  CHECK(b.cols() == 9 + 3);
  CHECK(b.leftCols(9).cwiseAbs().maxCoeff() < 1);
  // 1200 numbers N(0, 0.25): their mean square has a relative standard error of √(2/1200).
  const double variance = (b.rightCols(3) - a.rightCols(3)).squaredNorm() / 1200;
  CHECK(std::abs(variance / 0.25 - 1) < 4 * std::sqrt(2.0 / 1200));
}

TEST_CASE("planted: tasks by their names") {
  const PlantedOptions options{.nodes = 60, .splits = 1, .seed = 9};
  for (const std::string_view name : planted_names) {
    const Dataset data = with_planted_task(name, 3, options, [](const auto& task) { return task.data; });
    CHECK(data.name == name);
    CHECK(is_planted(name));
  }
  CHECK_FALSE(is_planted("planted-"));
  const auto dimension = [&](std::string_view name, Index d) {
    return with_planted_task(name, d, options,
                             [](const auto& task) -> Index { return task.sheaf.stalk_dimension; });
  };
  for (Index d = 2; d <= 5; ++d) {
    CHECK(dimension("planted-frames", d) == d);
    CHECK(dimension("planted-unreliable", d) == d);
    CHECK(dimension("planted-diagonal", d) == d);
    CHECK(dimension("planted-general-linear", d) == d);
  }
  CHECK(dimension("planted-diagonal", 1) == 1);
  CHECK(dimension("planted-geometric", 5) == 2);
  CHECK(dimension("planted-signed", 5) == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(dimension("planted-frames", 6)),
                       "stalk_dimension: 6 is not allowed; must be between 2 and 5", std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(dimension("planted-trees", 3)),
                       "planted task: planted-trees is not allowed; choose planted-frames, planted-geometric, "
                       "planted-unreliable, planted-diagonal, planted-general-linear or planted-signed",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(dimension("planted-trees", 9)),
                       doctest::Contains("planted task: planted-trees is not allowed"), std::invalid_argument);
  CHECK_NOTHROW(sheafnn::require_planted("planted-signed"));
}

TEST_CASE("planted: an option out of its range is named, with its value and the limit") {
  const auto message = [](const PlantedOptions& o) -> std::string {
    try {
      static_cast<void>(planted_unreliable<3>(o));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  CHECK(message({.nodes = 11}) == "nodes: 11 is not allowed; must be between 12 and 2147483647");
  CHECK_THROWS_WITH_AS(static_cast<void>(planted_frames<2>({.nodes = 100, .classes = 40})),
                       "nodes: 100 is not allowed; must be at least three per class, 120", std::invalid_argument);
  CHECK(message({.classes = 5}) == "classes: 5 is not allowed; must be between 2 and 4");
  CHECK(message({.degree = 0.5}) ==
        "degree: 0.5 is not allowed; must be between 1 and a quarter of the nodes, 500");
  CHECK(message({.nodes = 2147483647, .degree = 2}) ==
        "degree: 2 is not allowed; a graph must have less than 2^30 edges");
  CHECK(message({.spread = -1}) == "spread: -1 is not allowed; must be between 0 and 4");
  CHECK(message({.curvature = 5}) == "curvature: 5 is not allowed; must be between 0 and 4");
  CHECK(message({.neighbour_share = 1.5}) == "neighbour_share: 1.5 is not allowed; must be between 0 and 1");
  CHECK(message({.noise = 11}) == "noise: 11 is not allowed; must be between 0 and 10");
  CHECK(message({.hidden_columns = 1001}) == "hidden_columns: 1001 is not allowed; must be between 0 and 1000");
  CHECK(message({.least_concentration = 0.7, .most_concentration = 0.6}) ==
        "least_concentration: 0.7 is not allowed; must be between 0 and 0.6");
  CHECK(message({.most_concentration = 1}) == "most_concentration: 1 is not allowed; must be in [0, 1)");
  CHECK(message({.splits = 1001}) == "splits: 1001 is not allowed; must be between 0 and 1000");
  CHECK(message({.nodes = 2147483647, .degree = 1, .hidden_columns = 1000})
            .starts_with("nodes: 2147483647 is not allowed; needs "));
}

}  // namespace test_planted
