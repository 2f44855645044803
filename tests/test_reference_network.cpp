/// \file
/// The reference implementation of the networks (reference_network.hpp), and checks that it is worth its name:
/// cases worked out by hand. What is compared with it: test_gradients_*.cpp and test_network.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "map_kind.hpp"
#include "reference_network.hpp"
#include "sheafnn/nn/dropout.hpp"

namespace reference {
namespace {

using sheafnn::Index;
using test::MapKind;

Real elu(Real x) { return x > 0 ? x : std::exp(x) - 1; }
Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }

Matrix times(const Matrix& a, const Matrix& b) { return a.lazyProduct(b); }
Matrix identity(Index n) { return Matrix::Identity(n, n); }

/// A⁻¹B by elimination with row exchanges; `determinant`, when asked for, gets det A.
Matrix solve(Matrix a, Matrix b, Real* determinant = nullptr) {
  Real product = 1;
  for (Index k = 0; k < a.rows(); ++k) {
    Index pivot = k;
    for (Index i = k + 1; i < a.rows(); ++i) {
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    }
    if (pivot != k) {
      a.row(k).swap(a.row(pivot));
      b.row(k).swap(b.row(pivot));
      product = -product;
    }
    product *= a(k, k);
    for (Index i = 0; i < a.rows(); ++i) {
      if (i == k) continue;
      const Real factor = a(i, k) / a(k, k);
      a.row(i) -= factor * a.row(k);
      b.row(i) -= factor * b.row(k);
    }
  }
  for (Index k = 0; k < a.rows(); ++k) b.row(k) /= a(k, k);
  if (determinant != nullptr) *determinant = product;
  return b;
}

/// P^{-1/2} of a positive definite P by the iteration of Denman and Beavers; 0 for P = 0.
Matrix inverse_square_root(const Matrix& p) {
  if (p.isZero(0)) return p;
  const Matrix one = identity(p.rows());
  Matrix y = p, z = one;  // → P^{1/2}, P^{-1/2}
  for (int k = 0; k < 24; ++k) {
    const Matrix next = (y + solve(z, one)) / 2;
    z = ((z + solve(y, one)) / 2).eval();
    y = next;
  }
  return z;
}

/// Everything that one forward pass needs, by name.
class Forward {
 public:
  explicit Forward(const Problem& problem)
      : p_(problem), o_(problem.options), n_(p_.graph->node_count()), f_(o_.channels) {
    d_ = p_.stalk_dimension + (o_.add_lp ? 1 : 0) + (o_.add_hp ? 1 : 0);
    h_ = d_ * f_;
  }

  Result run() {
    Result result;
    Real nll = 0, kl = 0;
    encode();
    const Index sheaves = o_.linear ? 1 : o_.layers;
    const Real share = Real(1) / static_cast<Real>(p_.samples);
    const bool closed_form = p_.kl_estimator == sheafnn::KlEstimator::closed_form;
    for (Index k = 0; k < p_.samples; ++k) {
      const Matrix first = embedding_;
      Matrix x = first;
      Matrix delta;
      for (Index l = 0; l < o_.layers; ++l) {
        if (l < sheaves) {
          delta = sheaf(x, l, k);
          if (!closed_form) kl += share * monte_carlo_kl_ / static_cast<Real>(sheaves);
        }
        x = layer(x, first, delta, l, k);
      }
      for (Index i = 0; i + 1 < o_.readout_layers; ++i) {
        x = linear(x, "head." + std::to_string(i)).unaryExpr([](Real v) {
          return v * std::erfc(-v / std::sqrt(Real(2))) / 2;
        });
      }
      Matrix logits = linear(x, "lin2");
      for (Index u = 0; u < n_; ++u) {
        const Real largest = logits.row(u).maxCoeff();
        logits.row(u).array() -= largest + std::log((logits.row(u).array() - largest).exp().sum());
      }
      for (const std::int32_t u : p_.nodes) {
        nll -= share * logits(u, p_.labels[static_cast<std::size_t>(u)]) / static_cast<Real>(p_.nodes.size());
      }
      result.log_probabilities = logits;
    }
    if (closed_form) kl = closed_form_kl_;
    result.nll = nll;
    result.kl = kl;
    result.loss = nll + p_.kl_weight * kl;
    return result;
  }

 private:
  const Matrix& parameter(const std::string& name) const { return p_.parameters.at(name); }

  /// Applies dropout to the entries of m in row-major order.
  void drop(Matrix& m, double rate, sheafnn::Purpose purpose, Index layer = 0, Index sample = 0) const {
    if (rate == 0) return;
    const sheafnn::layers::Dropout dropout{rate,
                                   {p_.seed, purpose, p_.epoch, static_cast<std::uint32_t>(layer),
                                    p_.first_sample + static_cast<std::uint32_t>(sample)}};
    for (Index i = 0; i < m.size(); ++i) {
      Real& value = m(i / m.cols(), i % m.cols());
      value = dropout.keeps(i) ? value * dropout.scale() : 0;
    }
  }

  Matrix activated(Matrix m) const { return o_.activation ? m.unaryExpr(&elu).eval() : m; }

  void encode() {
    Matrix x = p_.features;
    if (o_.feature_treatment == sheafnn::FeatureTreatment::rows) {
      for (Index u = 0; u < n_; ++u) {
        const Real sum = x.row(u).cwiseAbs().sum();
        if (sum > 0) x.row(u) /= sum;
      }
    }
    const Matrix clean = x;
    if (p_.input_dropout > 0) {
      // Only entries that are stored, the non-zero ones, are numbered.
      const sheafnn::layers::Dropout dropout{p_.input_dropout, {p_.seed, sheafnn::Purpose::input_dropout, p_.epoch}};
      Index entry = 0;
      for (Index i = 0; i < x.size(); ++i) {
        Real& value = x(i / x.cols(), i % x.cols());
        if (value != 0) value = dropout.keeps(entry++) ? value * dropout.scale() : 0;
      }
    }
    embedding_ = activated(linear(x, "lin1"));
    drop(embedding_, p_.dropout, sheafnn::Purpose::hidden_dropout);
    if (o_.second_linear) embedding_ = linear(embedding_, "lin12");
    if (!p_.bayesian) return;
    learner_input_ = embedding_;
    if (*o_.separate_encoder) {
      Matrix input = clean;
      if (o_.degree_input) {
        input.conservativeResize(n_, input.cols() + 1);
        for (Index u = 0; u < n_; ++u) input(u, input.cols() - 1) = static_cast<Real>(p_.graph->degree(u));
      }
      learner_input_ = activated(linear(input, "lin_maps"));
    }
    learn(learner_input_, "sheaf", "edge");
    if (p_.kind != MapKind::fixed) closed_form_kl_ = mean_kl();
  }
  Matrix linear(const Matrix& x, const std::string& name) const {
    Matrix r = times(x, parameter(name + ".weight").transpose());
    r.rowwise() += parameter(name + ".bias").col(0).transpose();
    return r;
  }

  /// Raw outputs of the sheaf learner, one row per arc, and edge weights.
  void learn(const Matrix& z, const std::string& sheaf, const std::string& edge) {
    const sheafnn::Graph& graph = *p_.graph;
    mean_.clear();
    spread_.clear();
    weight_.assign(static_cast<std::size_t>(graph.arc_count()), Real(1));
    for (Index a = 0; a < graph.arc_count(); ++a) {
      Vector pair(2 * h_);
      pair << z.row(graph.source(a)).transpose(), z.row(graph.target(a)).transpose();
      const auto learner_input = [&](Index arc) {
        using sheafnn::LearnerInput;
        const Index count = o_.edge_features, width = o_.learner == LearnerInput::concatenation ? 2 * h_ : 2 * f_;
        Vector r = Vector::Zero(width + count);
        if (o_.learner == LearnerInput::concatenation) r.head(width) = pair;
        for (Index i = 0; i < d_; ++i) {
          if (o_.learner == LearnerInput::summed) {
            r.head(f_) += pair.segment(i * f_, f_);
            r.segment(f_, f_) += pair.segment(h_ + i * f_, f_);
          } else if (o_.learner == LearnerInput::summed_published) {
            r.head(width) += pair.segment(i * width, width);
          }
        }
        for (Index j = 0; j < count; ++j) {
          r(width + j) = graph.arc_features()[static_cast<std::size_t>(arc * count + j)];
        }
        return r;
      };
      Vector reversed(2 * h_);
      reversed << pair.tail(h_), pair.head(h_);
      if (*o_.edge_weights) {
        const Vector omega = parameter(edge + ".weight").row(0).transpose();
        weight_[static_cast<std::size_t>(a)] = sigmoid(omega.dot(pair)) * sigmoid(omega.dot(reversed));
      }
      const bool learns = p_.parameters.count(sheaf + (p_.bayesian ? ".mean.weight" : ".weight")) > 0 ||
                          p_.parameters.count(sheaf + ".var.weight") > 0;
      Vector hidden = learner_input(a);
      for (Index k = 0; learns && k < o_.learner_layers; ++k) {
        hidden = times(parameter(sheaf + ".hidden." + std::to_string(k) + ".weight"), hidden).unaryExpr(&elu);
      }
      const auto output = [&](const std::string& name) {
        const auto found = p_.parameters.find(name);
        return found == p_.parameters.end() ? Vector(0) : Vector(times(found->second, hidden));
      };
      mean_.push_back(output(sheaf + (p_.bayesian ? ".mean.weight" : ".weight")));
      spread_.push_back(output(sheaf + ".var.weight"));
    }
  }

  /// The prior's mean: the coordinates of the identity where raw outputs of 0 stand for it, otherwise 0.
  Vector origin() const {
    using sheafnn::SheafActivation;
    const int d = p_.stalk_dimension;
    const bool diagonal = p_.kind == MapKind::diagonal;
    if (o_.sheaf_activation != SheafActivation::residual && o_.sheaf_activation != SheafActivation::exponential) {
      return Vector::Zero(diagonal ? d : d * d);
    }
    if (diagonal) return Vector::Ones(d);
    return identity(d).reshaped<Eigen::RowMajor>();
  }
  /// Raw means after the sheaf activation.
  Vector mean_of(std::size_t a) const {
    using sheafnn::SheafActivation;
    const Vector& raw = mean_[a];
    if (o_.sheaf_activation == SheafActivation::identity) return raw;
    if (o_.sheaf_activation == SheafActivation::elu) return raw.unaryExpr(&elu);
    if (o_.sheaf_activation == SheafActivation::tanh) return raw.array().tanh();
    const int d = p_.stalk_dimension;
    if (o_.sheaf_activation == SheafActivation::residual) return raw + origin();
    if (o_.sheaf_activation == SheafActivation::exponential) {
      Matrix term = identity(d), sum = term;
      for (int k = 1; k < 60; ++k) {
        term = times(term, Matrix(raw.reshaped<Eigen::RowMajor>(d, d))) / static_cast<Real>(k);
        sum += term;
      }
      return sum.reshaped<Eigen::RowMajor>();
    }
    Vector r(d * d);
    for (int i = 0; i < d; ++i) {
      Real sum = 0;
      for (int j = 0; j < d; ++j) sum += std::exp(raw(i * d + j));
      for (int j = 0; j < d; ++j) r(i * d + j) = (i == j ? 1 : 0) - std::exp(raw(i * d + j)) / sum;
    }
    return r;
  }
  /// μ as a D × D matrix: on the diagonal, row by row, or a rotation.
  Matrix mean_map(std::size_t a) const {
    const int d = p_.stalk_dimension;
    if (p_.kind == MapKind::fixed) return identity(d);
    const Vector t = mean_of(a);
    if (p_.kind == MapKind::diagonal) return t.asDiagonal();
    if (p_.kind == MapKind::rotation) return rotation(t);
    return t.reshaped<Eigen::RowMajor>(d, d);
  }
  Matrix rotation(Vector phi) const {
    const int d = p_.stalk_dimension;
    Matrix q = identity(d);
    if (d == 1) return q;
    using sheafnn::rotation::RotationParametrisation;
    if (o_.parametrisation == RotationParametrisation::householder) {
      Index next = 0;
      Matrix lower = identity(d);
      for (int i = 1; i < d; ++i) {
        for (int j = 0; j < i; ++j) lower(i, j) = phi(next++);
      }
      for (int j = 0; j < d; ++j) {
        const Vector a = lower.col(j);
        q = times(q, identity(d) - 2 / a.squaredNorm() * times(a, a.transpose()));
      }
      return d % 2 == 0 ? q : Matrix(-q);
    }
    if (o_.parametrisation == RotationParametrisation::euler) {
      phi *= std::acos(Real(-1));
      const auto turn = [&](Real angle, int i, int j) {
        Matrix r = identity(d);
        r(i, i) = r(j, j) = std::cos(angle);
        r(j, i) = std::sin(angle);
        r(i, j) = -std::sin(angle);
        return r;
      };
      if (d == 2) return turn(phi(0), 0, 1);
      return times(turn(phi(0), 0, 1), times(turn(phi(1), 2, 0), turn(phi(2), 1, 2)));
    }
    Matrix skew = Matrix::Zero(d, d);
    Index next = 0;
    for (int j = 0; j < d; ++j) {
      for (int i = j + 1; i < d; ++i) {
        skew(i, j) = phi(next);
        skew(j, i) = -phi(next++);
      }
    }
    if (o_.parametrisation == RotationParametrisation::cayley) {
      return solve(identity(d) - skew, identity(d) + skew);
    }
    Matrix term = identity(d);
    for (int k = 1; k < 40; ++k) {
      term = times(term, skew) / k;
      q += term;
    }
    return q;
  }
  bool published_spread() const { return o_.spread == sheafnn::SpreadRange::published; }
  Real shift() const { return published_spread() ? 0 : 3; }
  /// σ of a normal posterior.
  Vector sigma(std::size_t a) const {
    return spread_[a].unaryExpr([&](Real raw) { return std::exp(-elu(-(raw - shift()))); });
  }
  /// κ of a Cayley posterior.
  Real kappa(std::size_t a) const {
    const Real least = published_spread() ? 0.025L : 0.0005L;
    const Real gamma = (1 - 2 * least) * sigmoid(spread_[a](0) - shift()) + least;
    return (1 - gamma) / (1 + gamma);
  }

  Real mean_kl() const {
    Real sum = 0;
    for (std::size_t a = 0; a < mean_.size(); ++a) {
      if (p_.kind == MapKind::rotation) {
        const int d = p_.stalk_dimension, half = d / 2;
        const Real k = kappa(a);
        Real series = 0;
        for (int l = 1; l < half + d % 2; ++l) {
          const int power = d % 2 == 0 ? 2 * l : 2 * l - 1;
          series += std::pow(k, power) / static_cast<Real>(power);
        }
        sum += d * (d - 1) / 2 * (std::log(1 + k) - std::log(1 - k)) -
               (d - 1) * (2 * half * std::log(1 + k) + series);
      } else {
        const Vector mu = mean_of(a) - origin(), s = sigma(a);
        sum -= 0.5 * (1 + 2 * s.array().log() - mu.array().square() - s.array().square()).sum();
      }
    }
    return sum / static_cast<Real>(mean_.size());
  }

  /// Δ of sheaf number s, drawn for sample k; sets monte_carlo_kl_.
  Matrix sheaf(const Matrix& x, Index s, Index k) {
    const int d = p_.stalk_dimension;
    const sheafnn::Graph& graph = *p_.graph;
    if (!p_.bayesian) {
      Matrix input = x;
      if (s > 0) drop(input, p_.dropout, sheafnn::Purpose::learner_dropout, s, k);
      learn(input, "sheaf." + std::to_string(s), "edge." + std::to_string(s));
    }
    std::vector<Matrix> maps;
    monte_carlo_kl_ = 0;
    for (std::size_t a = 0; a < static_cast<std::size_t>(graph.arc_count()); ++a) {
      Matrix map = mean_map(a);
      if (p_.bayesian && p_.kind != MapKind::fixed) {
        const Index sheaves = o_.linear ? 1 : o_.layers;
        const Vector noise = p_.noise[static_cast<std::size_t>(k * sheaves + s)].row(static_cast<Index>(a));
        if (p_.kind == MapKind::rotation) {
          const Matrix u = noise.reshaped<Eigen::RowMajor>(d, d), one = identity(d), mean = map;
          const Real c = kappa(a);
          map = times(solve(one + c * u, u + c * one), mean);
          Real determinant = 0;
          solve(times(map, mean.transpose()) - c * one, one, &determinant);
          monte_carlo_kl_ += d * (d - 1) / 2 * std::log(1 - c * c) + (1 - d) * std::log(determinant);
        } else {
          const Vector shift = sigma(a).cwiseProduct(noise), mu = mean_of(a), z = mu + shift;
          map = p_.kind == MapKind::diagonal ? Matrix(z.asDiagonal()) : Matrix(z.reshaped<Eigen::RowMajor>(d, d));
          monte_carlo_kl_ += 0.5 * ((z - origin()).squaredNorm() - noise.squaredNorm()) -
                             sigma(a).array().log().sum();  // log q(z) − log p(z)
        }
      }
      maps.push_back(weight_[a] * map);
    }
    monte_carlo_kl_ /= static_cast<Real>(std::max<Index>(1, graph.arc_count()));
    return laplacian(graph, d, p_.kind, o_.normalisation, maps);
  }

  /// (I ⊗ A) X Bᵀ in the tall form, in which row u·d' + i holds coordinate i of node u; with A and B replaced by
  /// (1 − β) I + β A and (1 − β) I + β B.
  Matrix mixed(Matrix y, const std::string& number, Real beta) const {
    const auto weight = [&](const std::string& name) {
      const Matrix& m = parameter(name + number);
      return Matrix((1 - beta) * identity(m.rows()) + beta * m);
    };
    if (o_.right_weights) y = times(y, weight("right.").transpose());
    if (o_.left_weights) {
      const Matrix left = weight("left.");
      for (Index u = 0; u < n_; ++u) y.middleRows(u * d_, d_) = times(left, y.middleRows(u * d_, d_));
    }
    return y;
  }

  /// Δ Y in the tall form, with the fixed filters.
  Matrix diffused(const Matrix& y, const Matrix& delta) const {
    const Index d = p_.stalk_dimension;
    Matrix learned(n_ * d, f_);
    for (Index u = 0; u < n_; ++u) learned.middleRows(u * d, d) = y.middleRows(u * d_, d);
    learned = times(delta, learned);
    Matrix z(n_ * d_, f_);
    for (Index u = 0; u < n_; ++u) z.middleRows(u * d_, d) = learned.middleRows(u * d, d);
    Index next = d;
    for (const double sign : {1.0, -1.0}) {
      if (!(sign > 0 ? o_.add_lp : o_.add_hp)) continue;
      Matrix scalar(n_, f_);
      for (Index u = 0; u < n_; ++u) scalar.row(u) = y.row(u * d_ + next);
      const bool initial = o_.residual.form == sheafnn::ResidualForm::initial;
      const bool published = o_.normalisation == sheafnn::Normalisation::block && !o_.augmented_filters;
      scalar = times(fixed_filter(*p_.graph, initial ? -sign : sign, published ? 0 : 1), scalar);
      for (Index u = 0; u < n_; ++u) z.row(u * d_ + next) = scalar.row(u);
      ++next;
    }
    return z;
  }

  Matrix layer(const Matrix& x, const Matrix& first, const Matrix& delta, Index l, Index k) const {
    Matrix source = x;
    drop(source, p_.dropout, sheafnn::Purpose::layer_dropout, l, k);
    const auto tall = [&](const Matrix& m) { return Matrix(m.reshaped<Eigen::RowMajor>(n_ * d_, f_)); };
    const std::string number = std::to_string(l);
    Matrix r = tall(x);
    if (o_.residual.form == sheafnn::ResidualForm::initial) {
      const Real alpha = o_.residual.alpha, beta = std::log(1 + Real(o_.residual.theta) / static_cast<Real>(l + 1));
      const Matrix y = tall(source);
      r = activated(mixed((1 - alpha) * (y - diffused(y, delta)) + alpha * tall(first), number, beta));
    } else {
      const Matrix z = activated(diffused(mixed(tall(source), number, 1), delta));
      const Matrix& epsilon = parameter("eps." + number);
      for (Index row = 0; row < n_ * d_; ++row) {
        r.row(row) = (1 + std::tanh(epsilon(row % d_, 0))) * r.row(row) - z.row(row);
      }
    }
    Matrix rows = r.reshaped<Eigen::RowMajor>(n_, h_);
    if (!o_.layer_norm) return rows;
    for (Index u = 0; u < n_; ++u) {
      Vector v = rows.row(u).transpose();
      v.array() -= v.mean();
      v /= std::sqrt(v.squaredNorm() / static_cast<Real>(h_) + 1e-5L);
      rows.row(u) = (parameter("norm." + number + ".weight").col(0).cwiseProduct(v) +
                     parameter("norm." + number + ".bias").col(0)).transpose();
    }
    return rows;
  }

  const Problem& p_;
  const sheafnn::ModelOptions& o_;
  Index n_, f_, d_ = 0, h_ = 0;
  Matrix embedding_, learner_input_;
  std::vector<Vector> mean_, spread_;  ///< raw outputs by arc
  std::vector<Real> weight_;           ///< w_e by arc
  Real closed_form_kl_ = 0, monte_carlo_kl_ = 0;
};

}  // namespace

Result forward(const Problem& problem) { return Forward(problem).run(); }

Matrix laplacian(const sheafnn::Graph& graph, int dimension, MapKind kind,
                                       sheafnn::Normalisation normalisation, const std::vector<Matrix>& maps) {
  const Index d = dimension, n = graph.node_count();
  // L = δᵀδ, summed over the edges: δ has rows −F_{u⊴e} and F_{v⊴e} at the ends of e.
  Matrix l = Matrix::Zero(n * d, n * d);
  for (Index e = 0; e < graph.edge_count(); ++e) {
    const Index a = graph.forward_arc(e);
    const Index ends[] = {graph.edge(e).u, graph.edge(e).v};
    const Matrix row[] = {-maps[static_cast<std::size_t>(a)], maps[static_cast<std::size_t>(graph.reverse(a))]};
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) l.block(ends[i] * d, ends[j] * d, d, d) += times(row[i].transpose(), row[j]);
    }
  }
  std::vector<Matrix> scale;
  for (Index u = 0; u < n; ++u) {
    Matrix& s = scale.emplace_back(identity(d));
    if (normalisation == sheafnn::Normalisation::degree) {
      s /= std::sqrt(static_cast<Real>((kind == MapKind::dense ? d : 1) * graph.degree(u) + 1));
    } else if (normalisation != sheafnn::Normalisation::none) {
      Matrix degree = l.block(u * d, u * d, d, d);
      if (normalisation == sheafnn::Normalisation::augmented) degree += identity(d);
      s = inverse_square_root(degree);
    }
  }
  for (Index u = 0; u < n; ++u) {
    for (Index v = 0; v < n; ++v) {
      if (l.block(u * d, v * d, d, d).isZero(0)) continue;
      l.block(u * d, v * d, d, d) = times(scale[static_cast<std::size_t>(u)],
                                          times(l.block(u * d, v * d, d, d), scale[static_cast<std::size_t>(v)]));
    }
  }
  return l;
}

Matrix fixed_filter(const sheafnn::Graph& graph, Real sign, Real shift) {
  const Index n = graph.node_count();
  Matrix r = Matrix::Zero(n, n);
  for (Index u = 0; u < n; ++u) r(u, u) = static_cast<Real>(graph.degree(u));
  for (Index a = 0; a < graph.arc_count(); ++a) r(graph.source(a), graph.target(a)) = sign;
  for (Index u = 0; u < n; ++u) {
    const Real degree = static_cast<Real>(graph.degree(u)) + shift, scale = degree > 0 ? 1 / std::sqrt(degree) : 0;
    r.row(u) *= scale;
    r.col(u) *= scale;
  }
  return r;
}

TEST_CASE("reference: Laplacians of a path worked out by hand") {
  // 0 – 1 – 2 with F = 2 at both ends of the first edge, 3 and −1 at the ends of the second.
  const sheafnn::Edge edges[] = {{0, 1}, {1, 2}};
  const sheafnn::Graph path(3, edges);
  const auto one = [](Real value) { return Matrix::Constant(1, 1, value).eval(); };
  const std::vector<Matrix> maps = {one(2), one(2), one(3), one(-1)};  // arcs 0→1, 1→0, 1→2, 2→1
  const auto delta = [&](sheafnn::Normalisation n) {
    return laplacian(path, 1, MapKind::dense, n, maps);
  };
  Matrix expected(3, 3);
  expected << 4, -4, 0, -4, 13, 3, 0, 3, 1;
  constexpr Real bound = 8 * std::numeric_limits<Real>::epsilon() * 13;
  CHECK((delta(sheafnn::Normalisation::none) - expected).norm() <= bound);
  const auto scaled = [&](Real a, Real b, Real c) {
    const Eigen::Matrix<Real, 3, 1> s(1 / std::sqrt(a), 1 / std::sqrt(b), 1 / std::sqrt(c));
    return Matrix(s.asDiagonal() * expected * s.asDiagonal());
  };
  CHECK((delta(sheafnn::Normalisation::block) - scaled(4, 13, 1)).norm() <= bound);
  CHECK((delta(sheafnn::Normalisation::augmented) - scaled(5, 14, 2)).norm() <= bound);
  CHECK((delta(sheafnn::Normalisation::degree) - scaled(2, 3, 2)).norm() <= bound);
  const Real r = 1 / std::sqrt(Real(6));
  Matrix filter(3, 3);
  filter << 0.5, r, 0, r, 2.0L / 3, r, 0, r, 0.5;
  CHECK((fixed_filter(path, 1) - filter).norm() <= bound);
  const Real p = 1 / std::sqrt(Real(2));
  filter << 1, -p, 0, -p, 1, -p, 0, -p, 1;
  CHECK((fixed_filter(path, -1, 0) - filter).norm() <= bound);
}

}  // namespace reference
