// Hypergraphs: the class, their Laplacian against explicit matrices and identities, generated ones, and readers.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "dense_algebra.hpp"
#include "refusal.hpp"
#include "sheafnn/graph/hypergraph.hpp"
#include "sheafnn/graph/synthetic_hypergraph.hpp"
#include "sheafnn/io/hypergraph.hpp"
#include "sheafnn/io/npz_writer.hpp"
#include "sheafnn/sheaf/hypergraph_sheaf.hpp"
#include "sheafnn/sheaf/laplacian.hpp"
#include "sheafnn/sheaf/random_sheaf.hpp"
#include "temporary_folder.hpp"

namespace hypergraph_test {

using sheafnn::Hypergraph;
using sheafnn::HypergraphSheaf;
using sheafnn::HypergraphSheafLaplacian;
using sheafnn::Index;
using sheafnn::Normalisation;
using Matrix = sheafnn::Cochain<double>;
using Members = std::vector<std::vector<std::int32_t>>;

constexpr double epsilon = std::numeric_limits<double>::epsilon();

/// Hyperedges of one to five of seven nodes and an empty one; node 6 is in none.
Hypergraph example() {
  return sheafnn::hypergraph_of_members(7, Members{{1, 4, 0}, {2}, {5, 3}, {}, {0, 2, 3, 5}, {0, 1, 2, 4, 5}});
}
template <class Family>
HypergraphSheaf<Family> random_maps(Hypergraph hypergraph, std::uint64_t seed) {
  HypergraphSheaf<Family> sheaf(std::move(hypergraph));
  const sheafnn::Stream stream{seed, sheafnn::Purpose::user};
  for (Index i = 0; i < sheaf.hypergraph().pair_count(); ++i) {
    typename Family::template Map<double> map;
    double z[Family::coordinate_count > 0 ? Family::coordinate_count : 1];
    sheafnn::fill_normals<std::max(1, Family::coordinate_count)>(z, stream, static_cast<std::uint32_t>(i));
    Family::from_coordinates(z, map);
    sheaf.set_map(i, map);
  }
  return sheaf;
}
double difference(const Matrix& a, const Matrix& b) { return (a - b).cwiseAbs().maxCoeff(); }
bool says(const auto& body, const std::string& part) {
  const std::string text = test::message_of<std::exception>(body);
  CAPTURE(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

/// L = δᵀδ = D − H B⁻¹ Hᵀ, by explicit matrices, and S L S against the operator.
template <class Family>
void check_laplacian() {
  constexpr int D = Family::stalk_dimension;
  const HypergraphSheaf<Family> sheaf = random_maps<Family>(example(), 3);
  const Hypergraph& hypergraph = sheaf.hypergraph();
  const Index n = sheaf.node_dimension();
  Matrix delta = coboundary(sheaf, Matrix::Identity(n, n));
  CHECK(delta.rows() == hypergraph.pair_count() * D);
  Matrix degrees = Matrix::Zero(n, n), incidence = Matrix::Zero(n, hypergraph.hyperedge_count() * D),
         inverse = Matrix::Zero(incidence.cols(), incidence.cols());
  for (Index i = 0; i < hypergraph.pair_count(); ++i) {
    const auto map = sheaf.restriction_map(i);
    const Index v = hypergraph.node(i) * D, e = hypergraph.hyperedge(i) * D;
    degrees.block<D, D>(v, v) += map.transpose() * map;
    incidence.block<D, D>(v, e) = map.transpose();
    inverse.block<D, D>(e, e).setIdentity();
    inverse.block<D, D>(e, e) /= static_cast<double>(hypergraph.size(hypergraph.hyperedge(i)));
  }
  const Matrix laplacian = degrees - incidence * inverse * incidence.transpose();
  const double bound = 64 * epsilon * (1 + laplacian.cwiseAbs().maxCoeff());
  CHECK(difference(delta.transpose() * delta, laplacian) <= bound);
  CHECK(difference(HypergraphSheafLaplacian<Family>(sheaf).dense(), laplacian) <= bound);

  const HypergraphSheafLaplacian<Family> normalised(sheaf, Normalisation::augmented);
  const Matrix shifted = degrees + Matrix::Identity(n, n);
  const Matrix root = dense_algebra::inverse_root(shifted);
  const Matrix expected = root * laplacian * root;
  CHECK(difference(normalised.dense(), expected) <= 256 * epsilon);
  CHECK(difference(normalised.apply(Matrix::Identity(n, n), 3), normalised.dense()) == 0);
  const Eigen::VectorXd spectrum = dense_algebra::spectrum(expected);
  CHECK(spectrum.minCoeff() >= -64 * epsilon);
  CHECK(spectrum.maxCoeff() < 1);
  // A node of no hyperedge has nothing.
  CHECK(laplacian.template middleRows<D>(6 * D).isZero(0));
}

}  // namespace hypergraph_test

TEST_CASE("hypergraphs: pairs, members and sizes") {
  using namespace hypergraph_test;
  const Hypergraph hypergraph = example();
  CHECK(hypergraph.node_count() == 7);
  CHECK(hypergraph.hyperedge_count() == 6);
  CHECK(hypergraph.pair_count() == 15);
  CHECK(hypergraph.largest_size() == 5);
  CHECK(hypergraph.size(3) == 0);
  CHECK(hypergraph.degree(6) == 0);
  CHECK(hypergraph.degree(0) == 3);
  for (Index i = 1; i < hypergraph.pair_count(); ++i) {
    CHECK(std::pair(hypergraph.node(i - 1), hypergraph.hyperedge(i - 1)) <
          std::pair(hypergraph.node(i), hypergraph.hyperedge(i)));
  }
  std::vector<Index> members;
  for (Index m = hypergraph.first_member(4); m < hypergraph.first_member(5); ++m) {
    CHECK(hypergraph.hyperedge(hypergraph.member(m)) == 4);
    members.push_back(hypergraph.node(hypergraph.member(m)));
  }
  CHECK(members == std::vector<Index>{0, 2, 3, 5});

  const Hypergraph empty(3, 0, {});
  CHECK(empty.pair_count() == 0);
  CHECK(HypergraphSheafLaplacian<sheafnn::Diagonal<2>>(HypergraphSheaf<sheafnn::Diagonal<2>>(empty))
            .dense()
            .isZero(0));
}

TEST_CASE("hypergraphs: what is refused") {
  using namespace hypergraph_test;
  using sheafnn::Incidence;
  const auto build = [](Index n, Index e, std::vector<Incidence> pairs) {
    return [=] { static_cast<void>(Hypergraph(n, e, pairs)); };
  };
  says(build(3, 2, {{0, 0}, {1, 1}, {0, 0}}), "node 0 twice in hyperedge 0");
  says(build(3, 2, {{0, 0}, {3, 1}}), "incidence[1].node: 3 is not allowed; must be between 0 and 2");
  says(build(3, 2, {{0, 2}}), "incidence[0].hyperedge: 2 is not allowed; must be between 0 and 1");
  says(build(3, 0, {{0, 0}}), "there is no hyperedge");
  const std::vector<Incidence> twice = {{0, 0}, {0, 0}};
  says([&] { static_cast<void>(Hypergraph(1, 1, twice, "pairs")); }, "pairs: node 0 twice in hyperedge 0");
  says(build(-1, 0, {}), "node_count: -1");
  says([] { HypergraphSheaf<sheafnn::Diagonal<2>>(example()).set_map(15, {}); }, "pair: 15");
  const std::vector<double> few(3);
  says([&] { HypergraphSheaf<sheafnn::Diagonal<2>>(example(), few); }, "expected 15 incident pairs * 2 numbers");
}

TEST_CASE("hypergraphs: Laplacian") {
  using namespace hypergraph_test;
  check_laplacian<sheafnn::Diagonal<1>>();
  check_laplacian<sheafnn::Diagonal<3>>();
  check_laplacian<sheafnn::SpecialOrthogonal<3>>();
  check_laplacian<sheafnn::GeneralLinear<2>>();
  check_laplacian<sheafnn::Conformal<2>>();
}

TEST_CASE("hypergraphs: edges count half, hyperedges of one node nothing") {
  using namespace hypergraph_test;
  using Family = sheafnn::GeneralLinear<2>;
  const sheafnn::Edge edges[] = {{0, 1}, {0, 2}, {1, 2}, {2, 3}};
  const sheafnn::Graph graph(5, edges);
  const sheafnn::CellularSheaf<Family> of_graph =
      sheafnn::sheaf::random_sheaf<Family>(graph, {5, sheafnn::Purpose::user});
  HypergraphSheaf<Family> sheaf(sheafnn::hypergraph_of_edges(graph));
  for (Index i = 0; i < sheaf.hypergraph().pair_count(); ++i) {
    sheaf.set_map(i, of_graph.map(sheaf.hypergraph().node(i), sheaf.hypergraph().hyperedge(i)));
  }
  const Matrix half = 0.5 * Matrix(sheafnn::SheafLaplacian<Family>(of_graph).matrix());
  CHECK(difference(HypergraphSheafLaplacian<Family>(sheaf).dense(), half) <= 64 * epsilon);
  CHECK(difference(published_laplacian(sheaf), half) <= 64 * epsilon);

  const Hypergraph alone = sheafnn::hypergraph_of_members(3, Members{{0}, {1}, {0}});
  const HypergraphSheaf<Family> single = random_maps<Family>(alone, 2);
  CHECK(HypergraphSheafLaplacian<Family>(single).dense().isZero(8 * epsilon));
}

TEST_CASE("hypergraphs: one hyperedge of three, against the matrix formula") {
  using namespace hypergraph_test;
  const HypergraphSheaf<sheafnn::Diagonal<1>> sheaf(sheafnn::hypergraph_of_members(3, Members{{0, 1, 2}}));
  const auto eigenvalues = [](const Matrix& m) { return dense_algebra::spectrum(m); };
  const auto own = eigenvalues(HypergraphSheafLaplacian<sheafnn::Diagonal<1>>(sheaf).dense());
  const auto published = eigenvalues(published_laplacian(sheaf));
  const double expected[2][3] = {{0, 1, 1}, {-1.0 / 3, 2.0 / 3, 2.0 / 3}};
  for (int k = 0; k < 3; ++k) {
    CHECK(std::abs(own(k) - expected[0][k]) <= 16 * epsilon);
    CHECK(std::abs(published(k) - expected[1][k]) <= 16 * epsilon);
  }
}

TEST_CASE("hypergraphs: with F = I and d = 1, I − Δ is the convolution of HGNN with self-loops") {
  using namespace hypergraph_test;
  const Hypergraph hypergraph = example();
  Members with_loops;
  for (Index e = 0; e < hypergraph.hyperedge_count(); ++e) {
    with_loops.emplace_back();
    for (Index m = hypergraph.first_member(e); m < hypergraph.first_member(e + 1); ++m) {
      with_loops.back().push_back(static_cast<std::int32_t>(hypergraph.node(hypergraph.member(m))));
    }
  }
  for (std::int32_t v = 0; v < 7; ++v) with_loops.push_back({v});
  // D_v^{-1/2} H B⁻¹ Hᵀ D_v^{-1/2} of a 0-1 incidence matrix
  Matrix incidence = Matrix::Zero(7, static_cast<Index>(with_loops.size()));
  for (std::size_t e = 0; e < with_loops.size(); ++e) {
    for (const std::int32_t v : with_loops[e]) incidence(v, static_cast<Index>(e)) = 1;
  }
  const Eigen::VectorXd degree = incidence.rowwise().sum();
  const Eigen::VectorXd size = incidence.colwise().sum().transpose().cwiseMax(1);
  const Matrix root = degree.cwiseSqrt().cwiseInverse().asDiagonal();
  const Matrix shares = size.cwiseInverse().asDiagonal();
  const Matrix hgnn = root * incidence * shares * incidence.transpose() * root;
  const HypergraphSheafLaplacian<sheafnn::Diagonal<1>> laplacian(HypergraphSheaf<sheafnn::Diagonal<1>>(hypergraph),
                                                                 Normalisation::augmented);
  CHECK(difference(Matrix::Identity(7, 7) - laplacian.dense(), hgnn) <= 16 * epsilon);
}

TEST_CASE("hypergraphs: synthetic ones") {
  using namespace hypergraph_test;
  const auto data =
      sheafnn::synthetic_hypergraph({.nodes = 200, .classes = 4, .hyperedges = 300, .largest_size = 7});
  sheafnn::validate(data);
  CHECK(data.node_count() == 200);
  CHECK(data.splits.size() == 10);
  Index same = 0, smallest = 100;
  for (Index e = 0; e < data.graph.hyperedge_count(); ++e) {
    smallest = std::min(smallest, data.graph.size(e));
    std::vector<Index> count(4);
    for (Index m = data.graph.first_member(e); m < data.graph.first_member(e + 1); ++m) {
      const Index v = data.graph.node(data.graph.member(m));
      ++count[static_cast<std::size_t>(data.labels[static_cast<std::size_t>(v)])];
    }
    same += *std::max_element(count.begin(), count.end());
  }
  CHECK(smallest == 2);
  CHECK(data.graph.largest_size() == 7);
  // Members of the hyperedge's class: 0.7 + 0.3/4 = 0.775 of all pairs; others may be the largest class of a hyperedge.
  CHECK(static_cast<double>(same) / static_cast<double>(data.graph.pair_count()) > 0.75);
  const auto again =
      sheafnn::synthetic_hypergraph({.nodes = 200, .classes = 4, .hyperedges = 300, .largest_size = 7});
  CHECK(std::ranges::equal(data.graph.nodes(), again.graph.nodes()));
  CHECK(std::ranges::equal(data.graph.hyperedges(), again.graph.hyperedges()));
  says([] { static_cast<void>(sheafnn::synthetic_hypergraph({.nodes = 50, .largest_size = 6})); },
       "largest_size: 6");
  says([] { static_cast<void>(sheafnn::synthetic_hypergraph({.homophily = 2})); }, "homophily: 2");
}

TEST_CASE("hypergraphs: text files") {
  using namespace hypergraph_test;
  const test::TemporaryFolder folder;
  folder.write("nodes.csv", "node,label,split,a,b\nx,cat,train,1,0\ny,dog,train,0,2\nz,cat,test,0,0.5\nw,,,3,1\n");
  folder.write("hyperedges.csv", "# teams\nx,y,z\ny,w,\nz\n");
  const auto data = sheafnn::io::load_hypergraph(folder.path().string());
  CHECK(data.graph.node_count() == 4);
  CHECK(data.graph.hyperedge_count() == 3);
  CHECK(std::ranges::equal(data.graph.nodes(), std::vector<std::int32_t>{0, 1, 1, 2, 2, 3}));
  CHECK(std::ranges::equal(data.graph.hyperedges(), std::vector<std::int32_t>{0, 0, 1, 0, 2, 1}));
  CHECK(data.class_names == std::vector<std::string>{"cat", "dog"});
  CHECK(data.labels == std::vector<std::int32_t>{0, 1, 0, -1});
  CHECK(data.splits.front().train == std::vector<std::int32_t>{0, 1});
  CHECK(data.feature_count() == 2);

  const auto load = [&] { static_cast<void>(sheafnn::io::load_hypergraph(folder.path().string())); };
  folder.write("hyperedges.csv", "x,y,z\ny,q\n");
  says(load, "hyperedges.csv:2: node 'q' is not in");
  folder.write("hyperedges.csv", "x,y,x\n");
  says(load, "hyperedges.csv:1: lists node 'x' twice");
  for (const char* none : {"", "# nobody\n", ",,\n"}) {
    folder.write("hyperedges.csv", none);
    says(load, "hyperedges.csv: lists no hyperedge; at least one with a member is needed");
  }
  CHECK(sheafnn::io::joined_by(folder.path()).hyperedges);
  CHECK_FALSE(sheafnn::io::joined_by(folder.path()).edges);
  folder.write("edges.csv", "x,y\n");
  CHECK(sheafnn::io::joined_by(folder.path()).edges);
  CHECK_FALSE(sheafnn::io::joined_by("nothing").hyperedges);
  says([] { static_cast<void>(sheafnn::io::load_hypergraph("nothing")); }, "no such hypergraph");
}

TEST_CASE("hypergraphs: .npz files") {
  using namespace hypergraph_test;
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "h.npz";
  const auto write = [&](const std::vector<std::int64_t>& pairs, Index rows, Index columns) {
    using Numbers = std::vector<std::int64_t>;
    const std::vector<double> features = {1, 0, 0, 1, 1, 1};
    const Numbers labels = {0, 1, 1}, train = {1, 1, 0}, validation = {0, 0, 1};
    sheafnn::io::NpzWriter writer;
    writer.add<std::int64_t>("incidence", {rows, columns}, pairs);
    writer.add<double>("features", {3, 2}, features);
    writer.add<std::int64_t>("labels", {3}, labels);
    writer.add<std::int64_t>("train_mask", {3}, train);
    writer.add<std::int64_t>("val_mask", {3}, validation);
    writer.write(path);
  };
  const auto load = [&] { return sheafnn::io::load_hypergraph(path.string()); };
  write({0, 0, 1, 0, 2, 1}, 3, 2);
  const auto data = load();
  CHECK(std::ranges::equal(data.graph.nodes(), std::vector<std::int32_t>{0, 1, 2}));
  CHECK(std::ranges::equal(data.graph.hyperedges(), std::vector<std::int32_t>{0, 0, 1}));
  CHECK(data.class_count == 2);
  CHECK(data.splits.front().validation == std::vector<std::int32_t>{2});
  write({0, 1, 2, 2, 0, 0, 1, 0}, 2, 4);
  CHECK(std::ranges::equal(load().graph.hyperedges(), std::vector<std::int32_t>{0, 0, 0, 1}));
  write({0, 0, 3, 0}, 2, 2);
  says(load, "pair 1 has node 3; node numbers must be between 0 and 2");
  write({0, 0, 1, -1}, 2, 2);
  says(load, "pair 1 has hyperedge -1");
  write({0, 0, 1, 0, 0, 0}, 3, 2);
  says(load, "node 0 twice in hyperedge 0");
  write({0, 0, 1}, 3, 1);
  says(load, "expected incident pairs x 2");
  CHECK(sheafnn::io::joined_by(path).hyperedges);
  CHECK_FALSE(sheafnn::io::joined_by(path).edges);
  const std::vector<std::string> targets = {"labels"};
  write({0, 0, 1, 0, 2, 1}, 3, 2);
  const auto numbers =
      sheafnn::io::load_hypergraph_npz(path, sheafnn::DatasetUse::training, sheafnn::MissingLabels(), targets);
  CHECK(numbers.targets == std::vector<double>{0, 1, 1});
  CHECK(numbers.labels.empty());
  write({}, 0, 2);
  says(load, "incidence: has shape (0, 2); at least one pair is needed");
}
