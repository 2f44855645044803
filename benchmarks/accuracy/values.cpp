/// \file
/// Evaluates functions of the library at points from the standard input, for accuracy.py.
///
/// A line names a function, a type (float, double, float-pack, double-pack) and its arguments as hexadecimal numbers; the
/// answer is a line of hexadecimal numbers, or "! " and what was thrown. A pack has the point in all of its lanes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/layers/layer_norm.hpp"
#include "sheafnn/nn/activation.hpp"
#include "sheafnn/nn/softmax.hpp"
#include "sheafnn/posterior/normal.hpp"
#include "sheafnn/rotation.hpp"
#include "sheafnn/rotation/inverse_cayley_transform.hpp"
#include "sheafnn/sheaf/families/diagonal.hpp"
#include "sheafnn/sheaf/families/general_linear.hpp"
#include "sheafnn/sheaf/normalisation.hpp"

namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using namespace sheafnn::math;
using namespace sheafnn::random;
using namespace sheafnn::rotation;
using namespace sheafnn::sheaf;
using Numbers = std::vector<double>;

/// Arguments in the order they are taken, and results.
template <class T>
class Call {
 public:
  explicit Call(const Numbers& arguments) : arguments_(arguments) {}

  T number() { return T(static_cast<scalar_of_t<T>>(raw())); }
  double raw() { return next_ < arguments_.size() ? arguments_[next_++] : throw std::runtime_error("too few numbers"); }
  std::size_t left() const { return arguments_.size() - next_; }
  template <int R, int C>
  Eigen::Matrix<T, R, C> matrix() {  // row by row
    Eigen::Matrix<T, R, C> m;
    for (int i = 0; i < R; ++i) {
      for (int j = 0; j < C; ++j) m(i, j) = number();
    }
    return m;
  }
  void give(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      results.push_back(static_cast<double>(value));
    } else {
      results.push_back(static_cast<double>(value.lane(T::width - 1)));
    }
  }
  template <int R, int C>
  void give(const Eigen::Matrix<T, R, C>& m) {
    for (int i = 0; i < R; ++i) {
      for (int j = 0; j < C; ++j) give(m(i, j));
    }
  }

  Numbers results;

 private:
  const Numbers& arguments_;
  std::size_t next_ = 0;
};

std::map<std::string, std::function<Numbers(const Numbers&)>> functions;

template <class T, class F>
void add_one(const std::string& name, const char* type, const F& f) {
  functions[name + " " + type] = [f](const Numbers& arguments) {
    Call<T> call(arguments);
    f(call);
    return call.results;
  };
}
template <class F>
void add_scalars(const std::string& name, const F& f) {
  add_one<float>(name, "float", f);
  add_one<double>(name, "double", f);
}
template <class F>
void add_packs(const std::string& name, const F& f) {
  add_one<Pack<float, lanes<float>>>(name, "float-pack", f);
  add_one<Pack<double, lanes<double>>>(name, "double-pack", f);
}
template <class F>
void add(const std::string& name, const F& f) {
  add_scalars(name, f);
  add_packs(name, f);
}

#define ELEMENTARY(name)                              \
  add_packs(#name, []<class T>(Call<T>& call) {       \
    using std::name;                                  \
    call.give(T(name(call.number())));                \
  })
#define OF_ONE_NUMBER(name) add(#name, []<class T>(Call<T>& call) { call.give(T(name(call.number()))); })

void add_numbers() {
  ELEMENTARY(exp);
  ELEMENTARY(log);
  ELEMENTARY(expm1);
  ELEMENTARY(log1p);
  ELEMENTARY(tanh);
  ELEMENTARY(sin);
  ELEMENTARY(cos);
  ELEMENTARY(sqrt);
  OF_ONE_NUMBER(unit_log);
  OF_ONE_NUMBER(exp_of_negative);
  OF_ONE_NUMBER(error_function);
  OF_ONE_NUMBER(normal_cdf);
  OF_ONE_NUMBER(gelu);
  OF_ONE_NUMBER(gelu_derivative);
  OF_ONE_NUMBER(elu);
  OF_ONE_NUMBER(sigmoid);
  add("sin_cos_of_word", []<class T>(Call<T>& call) {
    T sine, cosine;
    sin_cos_of_word<T>(word_of_t<T>(static_cast<std::uint32_t>(call.raw())), sine, cosine);
    call.give(sine);
    call.give(cosine);
  });
  for (const Index padding : {Index{1}, Index{4}}) {  // row by row, and rows side by side
    add_scalars(padding == 1 ? "log_softmax" : "log_softmax_block", [padding]<class S>(Call<S>& call) {
      const Index classes = static_cast<Index>(call.left());
      const Index stride = padding == 1 ? classes + (classes % 4 == 0) : (classes + 3) / 4 * 4;
      std::vector<S> row(static_cast<std::size_t>(stride) + 16);
      for (Index c = 0; c < classes; ++c) row[static_cast<std::size_t>(c)] = call.number();
      log_softmax_rows<S>(1, 1, classes, row.data(), stride);
      for (Index c = 0; c < classes; ++c) call.give(row[static_cast<std::size_t>(c)]);
    });
  }
  add_scalars("layer_norm", []<class S>(Call<S>& call) {
    std::vector<S> x;
    while (call.left() > 0) x.push_back(call.number());
    const std::vector<S> scale(x.size(), S(1)), shift(x.size(), S(0));
    const Index width = static_cast<Index>(x.size());
    LayerNorm<S> norm(1, width);
    norm.forward(1, {scale, shift}, MatrixView<const S>(x.data(), 1, width));
    for (Index c = 0; c < width; ++c) call.give(norm.output().data()[c]);
  });
  add("normal_posterior", []<class T>(Call<T>& call) {
    const NormalPosterior<Diagonal<1>> posterior;
    const T raw[2] = {call.number(), call.number()}, noise[1] = {call.number()};
    T parameters[3];
    posterior.activate(raw, parameters);
    typename Diagonal<1>::template Map<T> map;
    posterior.sample(parameters, noise, map);
    call.give(parameters[1]);
    call.give(posterior.kl(parameters));
    call.give(posterior.log_ratio(parameters, noise, map));
  });
}

template <int D>
void add_scaling() {
  for (const Normalisation normalisation : {Normalisation::block, Normalisation::augmented}) {
    const std::string name = std::string(to_string(normalisation)) + "_scaling_";
    add(name + std::to_string(D), [normalisation]<class T>(Call<T>& call) {
      using Family = GeneralLinear<D>;
      const Gram<Family, T> gram = call.template matrix<D, D>();
      call.give(Eigen::Matrix<T, D, D>(node_scaling<Family, T>(normalisation, gram, T(1)).scale));
    });
    if (D != 2) continue;
    add(name + "diagonal", [normalisation]<class T>(Call<T>& call) {
      using Family = Diagonal<1>;
      Gram<Family, T> gram;
      gram(0, 0) = call.number();
      call.give(node_scaling<Family, T>(normalisation, gram, T(1)).scale(0, 0));
    });
  }
}

template <int N>
void add_parametrisations() {
  const std::string n = std::to_string(N);
  add("cayley_rotation_" + n, []<class T>(Call<T>& call) {
    call.give(cayley_rotation<T, N>(RotationParameters<T, N>(call.template matrix<rotation_parameters<N>, 1>())));
  });
  add("exponential_rotation_" + n, []<class T>(Call<T>& call) {
    call.give(exponential_rotation<T, N>(RotationParameters<T, N>(call.template matrix<rotation_parameters<N>, 1>())));
  });
  add("householder_rotation_" + n, []<class T>(Call<T>& call) {
    call.give(householder_rotation<T, N>(RotationParameters<T, N>(call.template matrix<rotation_parameters<N>, 1>())));
  });
  add("exponential_log_jacobian_" + n, []<class T>(Call<T>& call) {
    call.give(exponential_log_jacobian<T, N>(RotationParameters<T, N>(call.template matrix<rotation_parameters<N>, 1>())));
  });
  add_scalars("inverse_cayley_transform_" + n, []<class T>(Call<T>& call) {
    call.give(inverse_cayley_transform<T, N>(SquareMatrix<T, N>(call.template matrix<N, N>())));
  });
  add_scalars("nearest_rotation_" + n, []<class T>(Call<T>& call) {
    call.give(nearest_rotation<T, N>(SquareMatrix<T, N>(call.template matrix<N, N>())));
  });
  if constexpr (N <= 5) {
    add_scalars("rotation_log_" + n, []<class T>(Call<T>& call) {
      call.give(rotation_log<T, N>(SquareMatrix<T, N>(call.template matrix<N, N>())));
    });
  }
}

/// ∂/∂concentration of a log density, and its derivatives along SO(N) in P and in the location I.
template <class T, int N>
void give_gradient(Call<T>& call, const CayleyLogpdfGradient<T, N>& gradient, const SquareMatrix<T, N>& p) {
  call.give(gradient.concentration);
  call.give(tangent_gradient<T, N>(gradient.argument, p));
  call.give(tangent_gradient<T, N>(gradient.location, identity_matrix<T, N>()));
}

template <int N>
void add_cayley() {
  const std::string n = std::to_string(N);
  add("cayley_kl_" + n, []<class T>(Call<T>& call) { call.give(T(cayley_kl<N>(call.number()))); });
  add("cayley_kl_derivative_" + n, []<class T>(Call<T>& call) { call.give(T(cayley_kl_derivative<N>(call.number()))); });
  add("cayley_resultant_" + n, []<class T>(Call<T>& call) { call.give(T(cayley_resultant<N>(call.number()))); });
  add("cayley_logpdf_" + n, []<class T>(Call<T>& call) {
    const SquareMatrix<T, N> y = call.template matrix<N, N>();
    call.give(T(cayley_logpdf<T, N>(y, call.number())));
  });
  add("cayley_logpdf_gradient_" + n, []<class T>(Call<T>& call) {
    const SquareMatrix<T, N> y = call.template matrix<N, N>();
    give_gradient<T, N>(call, cayley_logpdf_gradient<T, N>(y, identity_matrix<T, N>(), call.number()), y);
  });
  if constexpr (N <= 3) {
    add("cayley_prior_kl_" + n, []<class T>(Call<T>& call) {
      const T kappa = call.number(), prior = call.number(), chord = call.number();
      call.give(cayley_prior_kl<N>(kappa, prior, chord).value);
    });
    add_one<double>("cayley_angle_" + n, "double", [](Call<double>& call) {
      const CayleyDistribution<N> law(identity_matrix<double, N>(), call.raw());
      const double r = call.raw(), p = call.raw();
      call.give(angle_cdf(law, r));
      call.give(angle_quantile(law, p));
    });
  }
}

template <int N>
void add_leon() {
  const std::string n = std::to_string(N);
  add_one<double>("leon_normaliser_" + n, "double", [](Call<double>& call) {
    const detail::LeonNormaliser z = detail::leon_normaliser<N>(call.raw());
    call.give(z.log);
    call.give(z.slope);
    call.give(z.curvature);
  });
  add_one<double>("leon_kl_" + n, "double", [](Call<double>& call) {
    call.give(kl_to_uniform(LeonCayleyDistribution<N>(identity_matrix<double, N>(), call.raw())));
  });
  add_scalars("leon_logpdf_" + n, []<class T>(Call<T>& call) {
    const SquareMatrix<T, N> p = call.template matrix<N, N>();
    const LeonCayleyDistribution<N, T> law(identity_matrix<T, N>(), call.number());
    call.give(logpdf(law, p));
    give_gradient<T, N>(call, logpdf_gradient(law, p), p);
  });
}

/// A and B diagonal, with gaps of their eigenvalues.
template <class T, int N>
MatrixBinghamDistribution<N, T> matrix_bingham_with_gaps(Call<T>& call) {
  SquareMatrix<T, N> parameter[2];
  for (SquareMatrix<T, N>& of : parameter) {
    of.setZero();
    for (int i = 0; i + 1 < N; ++i) of.diagonal().head(i + 1).array() += call.number();
  }
  return {parameter[0], parameter[1]};
}

/// A law's log density and score at P.
template <class T, class Law>
void give_density(Call<T>& call, const Law& law, const typename Law::Matrix& p) {
  call.give(logpdf(law, p));
  call.give(score(law, p));
}

template <int N>
void add_matrix_laws() {
  const std::string n = std::to_string(N);
  add_scalars("matrix_fisher_density_" + n, []<class T>(Call<T>& call) {
    const MatrixFisherDistribution<N, T> law(call.template matrix<N, N>());
    const SquareMatrix<T, N> p = call.template matrix<N, N>();
    give_density(call, law, p);
    call.give(logpdf_gradient(law, p).parameter);
  });
  add_scalars("matrix_bingham_density_" + n, []<class T>(Call<T>& call) {
    const auto law = matrix_bingham_with_gaps<T, N>(call);
    const SquareMatrix<T, N> p = call.template matrix<N, N>();
    give_density(call, law, p);
    const auto gradient = logpdf_gradient(law, p);
    call.give(gradient.outer);
    call.give(gradient.inner);
  });
  add_one<double>("matrix_bingham_" + n, "double", [](Call<double>& call) {
    const auto law = matrix_bingham_with_gaps<double, N>(call);
    call.give(law.normaliser().log_scaled);
    call.give(kl_to_uniform(law));
  });
}

/// A mixture of two laws, each of a weight, a concentration or scale, and a location.
template <template <int, class> class Law>
void add_mixture(const std::string& name) {
  add_scalars(name, []<class T>(Call<T>& call) {
    std::vector<Law<3, T>> components;
    std::vector<double> weights;
    for (int k = 0; k < 2; ++k) {
      weights.push_back(call.raw());
      const T parameter = call.number();
      components.emplace_back(SquareMatrix<T, 3>(call.template matrix<3, 3>()), parameter);
    }
    const Mixture<Law<3, T>> law(components, weights);
    const SquareMatrix<T, 3> p = call.template matrix<3, 3>();
    give_density(call, law, p);
    for (const double r : responsibilities(law, p)) call.give(static_cast<T>(r));
  });
}

void add_distributions() {
  add("heat_kernel", []<class T>(Call<T>& call) {
    const T sine = call.number(), cosine = call.number();
    const auto kernel = detail::heat_kernel(detail::HalfAngle<T>{sine, cosine}, call.number());
    call.give(kernel.log);
    call.give(kernel.slope);
    call.give(kernel.time_slope);
  });
  add_one<double>("heat_averages", "double", [](Call<double>& call) {
    call.give(detail::heat_averages(call.raw()).divergence);
  });
  add_one<double>("scaled_bessel", "double", [](Call<double>& call) {
    const double x = call.raw();
    const detail::ScaledBessel bessel(x);
    call.give(bessel.i0);
    call.give(bessel.ratio_rest);
    call.give(bessel.ratio_slope);
  });
  add_one<double>("matrix_fisher_normaliser", "double", [](Call<double>& call) {
    const auto z = detail::matrix_fisher_normaliser(Column<double, 3>(call.matrix<3, 1>()));
    call.give(z.log_scaled);
    call.give(z.rest);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j <= i; ++j) call.give(z.hessian(i, j));
    }
  });
  add_one<double>("matrix_fisher_kl_2", "double", [](Call<double>& call) {
    call.give(kl_to_uniform(MatrixFisherDistribution<2>(identity_matrix<double, 2>(), call.raw())));
  });
  add_one<double>("matrix_fisher_kl_3", "double", [](Call<double>& call) {
    const Column<double, 3> s = call.matrix<3, 1>();
    call.give(kl_to_uniform(MatrixFisherDistribution<3>(SquareMatrix<double, 3>(s.asDiagonal()))));
  });
  add_scalars("matrix_fisher_logpdf_3", []<class T>(Call<T>& call) {
    const SquareMatrix<T, 3> p = call.template matrix<3, 3>();
    const MatrixFisherDistribution<3, T> law(identity_matrix<T, 3>(), call.number());
    call.give(T(logpdf(law, p)));
  });
  add_one<double>("matrix_fisher_angle_3", "double", [](Call<double>& call) {
    const MatrixFisherDistribution<3> law(identity_matrix<double, 3>(), call.raw());
    call.give(angle_cdf(law, call.raw()));
  });
  add_one<double>("leon_angle_3", "double", [](Call<double>& call) {
    const LeonCayleyDistribution<3> law(identity_matrix<double, 3>(), call.raw());
    call.give(angle_cdf(law, call.raw()));
  });
  add_one<double>("haar_angle_3", "double", [](Call<double>& call) {
    const HaarDistribution<3> law;
    const double r = call.raw(), p = call.raw();
    call.give(angle_cdf(law, r));
    call.give(angle_quantile(law, p));
  });
  add("wrapped_cauchy_logpdf", []<class T>(Call<T>& call) {
    const T centred = call.number();
    call.give(T(wrapped_cauchy_logpdf(centred, call.number())));
  });
  add_scalars("wrapped_cauchy_gradient", []<class T>(Call<T>& call) {
    const T angle = call.number();
    const auto gradient = logpdf_gradient(WrappedCauchy<T>(T(0), call.number()), angle);
    call.give(gradient.concentration);
    call.give(gradient.argument);
  });
  add("angular_central_gaussian_logpdf", []<class T>(Call<T>& call) {
    const Column<T, 4> x = call.template matrix<4, 1>();
    call.give(T(angular_central_gaussian_logpdf<T, 4>(x, SquareMatrix<T, 4>(call.template matrix<4, 4>()))));
  });
  add_scalars("angular_central_gaussian_gradient", []<class T>(Call<T>& call) {
    const Column<T, 4> x = call.template matrix<4, 1>();
    const auto gradient = logpdf_gradient(AngularCentralGaussian<4, T>(call.template matrix<4, 4>()), x);
    call.give(gradient.argument);
    call.give(gradient.covariance);
  });
  add_scalars("bingham_density", []<class T>(Call<T>& call) {
    const BinghamDistribution<3, T> law(call.template matrix<4, 4>());
    const SquareMatrix<T, 3> p = call.template matrix<3, 3>();
    give_density(call, law, p);
    call.give(logpdf_gradient(law, p).parameter);
  });
  add_mixture<CayleyDistribution>("cayley_mixture");
  add_mixture<IsotropicGaussian>("isotropic_gaussian_mixture");
}

}  // namespace

int main() {
  add_numbers();
  add_scaling<2>();
  add_scaling<3>();
  add_parametrisations<2>();
  add_parametrisations<3>();
  add_parametrisations<4>();
  add_parametrisations<5>();
  add_cayley<2>();
  add_cayley<3>();
  add_cayley<4>();
  add_cayley<8>();
  add_leon<2>();
  add_leon<3>();
  add_leon<8>();
  add_matrix_laws<2>();
  add_matrix_laws<3>();
  add_distributions();
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string name, type, word;
    words >> name >> type;
    Numbers arguments;
    while (words >> word) arguments.push_back(std::strtod(word.c_str(), nullptr));
    try {
      const auto found = functions.find(name + " " + type);
      if (found == functions.end()) throw std::runtime_error("no such function: " + name + " " + type);
      for (const double result : found->second(arguments)) std::printf("%a ", result);
      std::printf("\n");
    } catch (const std::exception& error) {
      std::string message = error.what();
      std::replace(message.begin(), message.end(), '\n', ' ');
      std::printf("! %s\n", message.c_str());
    }
  }
}
