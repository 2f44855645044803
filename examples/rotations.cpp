/// \file
/// Distributions of rotations. Draws from each family, fits it to its own samples, and prints true and fitted parameters
/// with standard errors and 95 % intervals. Compares all families on two data sets. Writes histograms of rotation angles
/// with true and fitted density as an SVG picture.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sheafnn/io/file.hpp>
#include <sheafnn/rotation.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "models/dark_scheme.hpp"
#include "models/program.hpp"

namespace {

using sheafnn::SquareMatrix;
using sheafnn::Stream;

constexpr double pi = 3.14159265358979323846;
constexpr int curve_points = 180;

/// Angles of one family's samples from the fitted location, and densities of angles from the location.
struct Panel {
  std::string title, subtitle;
  std::vector<double> angles;
  std::vector<double> truth, fitted;  ///< at `curve_points` + 1 angles from 0 to π
};

template <int N>
SquareMatrix<double, N> some_rotation() {
  return sheafnn::rotation::haar_rotation<double, N>(Stream{.seed = 2024}, 0);
}

/// The angle between a fitted location and the true one: the length of the turn's coordinates, in standard errors
/// of each.
template <int N>
double turn(const SquareMatrix<double, N>& estimate, const SquareMatrix<double, N>& truth) {
  return sheafnn::rotation::skew_parameters<double, N>(sheafnn::math::multiply_nt(estimate, truth)).norm();
}

void print_row(const std::string& family, const char* parameter, double truth, double estimate, double error) {
  std::printf("%-26s  %-13s  %9.4f  %9.4f  %9.4f  %7.2f\n", family.c_str(), parameter, truth, estimate, error,
              (estimate - truth) / error);
}

/// Three significant digits.
std::string number(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

template <class Fit>
std::string interval(const Fit& fit) {
  const auto ends = fit.concentration_interval();
  return "[" + number(ends.lower) + ", " + number(ends.upper) + "]";
}

/// Density of the rotation angle at the points of the curve; N = 2: both signs together.
template <class D>
std::vector<double> curve(const D& distribution) {
  std::vector<double> density;
  for (int i = 0; i <= curve_points; ++i) {
    density.push_back((D::dimension == 2 ? 2 : 1) *
                      sheafnn::rotation::angle_pdf(distribution, pi * i / curve_points));
  }
  return density;
}

template <class D>
Panel panel_of(const std::string& title, const std::string& subtitle, const D& truth, const D& fitted,
               const std::vector<typename D::Matrix>& samples) {
  constexpr int N = D::dimension;
  Panel panel{title, subtitle, {}, curve(truth), curve(fitted)};
  for (const auto& p : samples) {
    panel.angles.push_back(
        std::abs(sheafnn::rotation::rotation_angle<double, N>(sheafnn::math::multiply_nt(p, fitted.location()))));
  }
  return panel;
}

template <class D>
void print_goodness(const D& fitted, const std::vector<typename D::Matrix>& samples) {
  const auto test = sheafnn::rotation::goodness_of_fit(fitted, samples);
  std::printf("%-26s  Kolmogorov-Smirnov D = %.4f, p = %.2f\n", "", test.statistic, test.p_value);
}

/// Draws, fits both ways and prints a family with one location and one concentration.
template <class D>
void show(const std::string& family, const char* symbol, const D& truth, std::size_t count,
          std::vector<Panel>& panels) {
  constexpr int N = D::dimension;
  std::vector<SquareMatrix<double, N>> samples(count);
  sheafnn::rotation::sample_many(truth, Stream{.seed = 1}, 0, samples);
  const auto likelihood = sheafnn::rotation::fit<D>(samples);
  const auto moments = sheafnn::rotation::fit_moments<D>(samples);
  const double coordinates = std::sqrt(sheafnn::rotation::rotation_parameters<N>);
  print_row(family, "concentration", truth.concentration(), likelihood.distribution.concentration(),
            likelihood.concentration_error);
  std::printf("%-26s  95 %% interval %s, of M: angle %.3f\n", "", interval(likelihood).c_str(),
              likelihood.location_radius());
  print_row("", "  by moments", truth.concentration(), moments.distribution.concentration(),
            moments.concentration_error);
  print_row("", "turn of M", 0, turn<N>(likelihood.distribution.location(), truth.location()),
            coordinates * likelihood.location_error);
  if constexpr (N <= 3) {
    print_goodness(likelihood.distribution, samples);
    panels.push_back(panel_of(family,
                              std::string(symbol) + " = " + number(truth.concentration()) + ", fitted " +
                                  number(likelihood.distribution.concentration()) + " " + interval(likelihood),
                              truth, likelihood.distribution, samples));
  }
}

template <int N>
void show_matrix_fisher(const SquareMatrix<double, N>& parameter, std::size_t count, std::vector<Panel>& panels) {
  using D = sheafnn::rotation::MatrixFisherDistribution<N>;
  const D truth(parameter);
  std::vector<SquareMatrix<double, N>> samples(count);
  sheafnn::rotation::sample_many(truth, Stream{.seed = 2}, 0, samples);
  const auto fit = sheafnn::rotation::fit<D>(samples);
  const std::string family = "matrix Fisher, SO(" + std::to_string(N) + ")";
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) {
      const std::string name = "F(" + std::to_string(i) + ", " + std::to_string(j) + ")";
      print_row(i + j == 0 ? family : "", name.c_str(), truth.parameter()(i, j),
                fit.distribution.parameter()(i, j), fit.parameter_error(i, j));
    }
  }
  std::string values = "values ", fitted = "; fitted ";
  for (int i = 0; i < N; ++i) {
    values += (i > 0 ? ", " : "") + number(truth.singular_values()(i));
    fitted += (i > 0 ? ", " : "") + number(fit.distribution.singular_values()(i));
  }
  panels.push_back(panel_of(family, values + fitted, truth, fit.distribution, samples));
}

void show_wrapped_cauchy(std::size_t count) {
  const sheafnn::rotation::WrappedCauchy<> truth(1.0, 0.6);
  std::vector<double> angles(count);
  sheafnn::rotation::sample_many(truth, Stream{.seed = 3}, 0, angles);
  const auto fit = sheafnn::rotation::fit<sheafnn::rotation::WrappedCauchy<>>(angles);
  print_row("wrapped Cauchy", "location", 1.0, fit.distribution.location(), fit.location_error);
  print_row("", "concentration", 0.6, fit.distribution.concentration(), fit.concentration_error);
}

void show_angular_central_gaussian(std::size_t count) {
  using D = sheafnn::rotation::AngularCentralGaussian<3>;
  SquareMatrix<double, 3> covariance;
  covariance << 1.5, 0.4, 0.0, 0.4, 1.0, 0.2, 0.0, 0.2, 0.5;  // trace 3, as fits have it
  const D truth(covariance);
  std::vector<sheafnn::math::Column<double, 3>> samples(count);
  sheafnn::rotation::sample_many(truth, Stream{.seed = 4}, 0, samples);
  const auto fit = sheafnn::rotation::fit<D>(samples);
  for (int j = 0; j < 3; ++j) {
    for (int i = j; i < 3; ++i) {
      const std::string name = "L(" + std::to_string(i) + ", " + std::to_string(j) + ")";
      print_row(i + j == 0 ? "angular central Gaussian" : "", name.c_str(), covariance(i, j),
                fit.distribution.covariance()(i, j), fit.covariance_error(i, j));
    }
  }
}

/// Every family on the same samples, which come from `truth`.
template <class D>
void compare(const char* data, const D& truth, std::size_t count) {
  std::vector<SquareMatrix<double, 3>> samples(count);
  sheafnn::rotation::sample_many(truth, Stream{.seed = 5}, 0, samples);
  std::printf("\n%zu samples of %s:\n%s", count, data,
              sheafnn::rotation::to_string(sheafnn::rotation::compare_fits<3>(samples)).c_str());
}

/// Distance of the ticks of an axis up to `highest`: 1, 2 or 5 times a power of ten, which gives three to seven ticks.
double tick_distance(double highest) {
  const double power = std::pow(10.0, std::floor(std::log10(highest)));
  const double leading = highest / power;
  return leading < 1.5 ? 0.2 * power : leading < 3 ? 0.5 * power : leading < 7 ? power : 2 * power;
}

/// Histogram of angles in `bins` parts of [0, π], as a density.
std::vector<double> histogram(const std::vector<double>& angles, int bins) {
  std::vector<double> density(static_cast<std::size_t>(bins), 0.0);
  const double unit = bins / pi / static_cast<double>(angles.size());
  for (const double angle : angles) {
    density[static_cast<std::size_t>(std::min(bins - 1, static_cast<int>(angle / pi * bins)))] += unit;
  }
  return density;
}

/// A box of the picture: where it is, and its scale.
struct Box {
  double left, top, width, height, highest;
  [[nodiscard]] double x(double angle) const { return left + angle / pi * width; }
  [[nodiscard]] double y(double density) const { return top + height * (1 - density / (1.08 * highest)); }
};

void draw_axes(std::ostream& svg, const Box& box) {
  const double step = tick_distance(box.highest), bottom = box.top + box.height;
  for (int i = 0; i * step <= 1.08 * box.highest; ++i) {
    svg << "<path class='grid' d='M" << box.left << ' ' << box.y(i * step) << 'h' << box.width
        << "'/>\n<text class='tick end' x='" << box.left - 6 << "' y='" << box.y(i * step) + 6 << "'>" << i * step
        << "</text>\n";
  }
  svg << "<path class='axis' d='M" << box.left << ' ' << bottom << 'h' << box.width << "'/>\n";
  const char* labels[] = {"0", "π/2", "π"};
  for (int i = 0; i < 3; ++i) {
    svg << "<path class='axis' d='M" << box.x(pi * i / 2) << ' ' << bottom << "v4'/>\n<text class='tick' x='"
        << box.x(pi * i / 2) << "' y='" << bottom + 21 << "'>" << labels[i] << "</text>\n";
  }
}

void draw_curve(std::ostream& svg, const Box& box, const char* kind, const std::vector<double>& density) {
  svg << "<polyline class='" << kind << "' points='";
  for (int i = 0; i <= curve_points; ++i) {
    svg << box.x(pi * i / curve_points) << ',' << box.y(density[static_cast<std::size_t>(i)]) << ' ';
  }
  svg << "'/>\n";
}

/// One histogram with both densities.
void draw(std::ostream& svg, const Panel& panel, Box box) {
  constexpr int bins = 30;
  const std::vector<double> bars = histogram(panel.angles, bins);
  for (const auto* values : {&bars, &panel.truth, &panel.fitted}) {
    box.highest = std::max(box.highest, *std::max_element(values->begin(), values->end()));
  }
  draw_axes(svg, box);
  for (int i = 0; i < bins; ++i) {
    const double top = box.y(bars[static_cast<std::size_t>(i)]);
    svg << "<rect class='bar' x='" << box.x(pi * i / bins) + 0.5 << "' y='" << top << "' width='"
        << box.width / bins - 1 << "' height='" << box.top + box.height - top << "'/>\n";
  }
  draw_curve(svg, box, "truth", panel.truth);
  draw_curve(svg, box, "fitted", panel.fitted);
  svg << "<text class='title' x='" << box.left << "' y='" << box.top - 31 << "'>" << panel.title << "</text>\n"
      << "<text class='subtitle' x='" << box.left << "' y='" << box.top - 11 << "'>" << panel.subtitle
      << "</text>\n";
}

/// The panels in rows of two, under the key.
std::string picture(const std::vector<Panel>& panels, std::size_t count) {
  constexpr double width = 286, height = 170, margin = 70, step_x = width + 64, step_y = height + 110, top = 164;
  constexpr std::size_t columns = 2;
  const double rows = static_cast<double>((panels.size() + columns - 1) / columns);
  const double full_width = margin + columns * step_x - 50, full_height = top + rows * step_y - 24;
  std::ostringstream svg;
  svg << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << full_width << ' ' << full_height << "' width='"
      << full_width << "' height='" << full_height << "' font-family='Helvetica, Arial, sans-serif'>\n"
      << "<style>.bar{fill:#d5dde6}.truth{fill:none;stroke:#1b6ca8;stroke-width:2.5}"
      << ".fitted{fill:none;stroke:#d1495b;stroke-width:2.5;stroke-dasharray:6 4}"
      << ".axis{stroke:#444}.grid{stroke:#ececec}text{font-size:16px;fill:#444;text-anchor:middle}"
      << ".end{text-anchor:end}.label{font-size:17px}.subtitle{font-size:16px;text-anchor:start}"
      << ".title{font-size:18px;font-weight:bold;fill:#000;text-anchor:start}"
      << ".key{font-size:17px;text-anchor:start}</style>\n"
      << "<rect width='100%' height='100%' fill='white'/>\n"
      << "<rect class='bar' x='" << margin << "' y='14' width='28' height='14'/><text class='key' x='"
      << margin + 38 << "' y='27'>" << count << " samples, angle from the fitted location</text>\n"
      << "<path class='truth' d='M" << margin << " 49h28'/><text class='key' x='" << margin + 38
      << "' y='54'>density they were drawn from</text>\n"
      << "<path class='fitted' d='M" << margin << " 76h28'/><text class='key' x='" << margin + 38
      << "' y='81'>density fitted to them, with 95 % interval</text>\n";
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const double left = margin + static_cast<double>(i % columns) * step_x;
    draw(svg, panels[i], {left, top + static_cast<double>(i / columns) * step_y, width, height, 0});
  }
  const double bottom = full_height - 12, middle = top + (rows * step_y - 110) / 2;
  svg << "<text class='label' x='" << full_width / 2 << "' y='" << bottom << "'>rotation angle, radians</text>\n"
      << "<text class='label' transform='translate(20 " << middle << ") rotate(-90)'>density per radian</text>\n"
      << "</svg>\n";
  return svg.str();
}

void show_all(const std::string& path, std::size_t count) {
  using sheafnn::rotation::CayleyDistribution, sheafnn::rotation::LeonCayleyDistribution;
  programs::require_writable("FILE", path);
  std::vector<Panel> panels;
  std::printf("%zu samples of each; standard errors and (fitted - true)/error\n\n", count);
  std::printf("%-26s  %-13s  %9s  %9s  %9s  %7s\n", "family", "parameter", "true", "fitted", "error", "ratio");
  show("Cayley, SO(2)", "κ", CayleyDistribution<2>(some_rotation<2>(), 0.5), count, panels);
  show("Leon's Cayley, SO(2)", "k", LeonCayleyDistribution<2>(some_rotation<2>(), 2.0), count, panels);
  show_matrix_fisher<2>(2 * some_rotation<2>(), count, panels);
  show("Cayley, SO(3)", "κ", CayleyDistribution<3>(some_rotation<3>(), 0.6), count, panels);
  show("Leon's Cayley, SO(3)", "k", LeonCayleyDistribution<3>(some_rotation<3>(), 4.0), count, panels);
  const SquareMatrix<double, 3> f = sheafnn::math::Column<double, 3>(5, 3, 1).asDiagonal() * some_rotation<3>();
  show_matrix_fisher<3>(f, count, panels);
  show("Cayley, SO(4)", "κ", CayleyDistribution<4>(some_rotation<4>(), 0.7), count, panels);
  show("Cayley, SO(8)", "κ", CayleyDistribution<8>(some_rotation<8>(), 0.8), count, panels);
  show("Leon's Cayley, SO(5)", "k", LeonCayleyDistribution<5>(some_rotation<5>(), 6.0), count, panels);
  show_wrapped_cauchy(count);
  show_angular_central_gaussian(count);
  compare("a Cayley distribution, kappa = 0.6", CayleyDistribution<3>(some_rotation<3>(), 0.6), count);
  compare("a matrix Fisher distribution, singular values 5, 3, 1",
          sheafnn::rotation::MatrixFisherDistribution<3>(f), count);
  const std::string svg = programs::with_dark_scheme(picture(panels, count));
  sheafnn::io::write_text(path, svg);
  std::printf("\nhistograms of rotation angles with true and fitted densities: %s\n", path.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Draws rotations from each family of distributions, fits the families to them and compares the fits.",
      "rotations");
  std::string path = "rotations.svg";
  std::size_t count = 500;
  app.add_option("FILE", path, "picture to write, an .svg file: angles with true and fitted densities")
      ->capture_default_str();
  app.add_option("--samples", count, "number of samples of each distribution, 20 to 1000000")
      ->capture_default_str()
      ->check(programs::between<sheafnn::Index>(20, 1000000));
  return programs::run_program(app, argc, argv, [&] { show_all(path, count); });
}
