/// \file
/// Distributions of rotations: draws from each family, fits them back, prints true and fitted parameters with
/// standard errors, and writes histograms of rotation angles against their densities as an SVG picture.
///
/// usage: rotations [FILE.svg]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <sheafnn/rotation.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using sheafnn::SquareMatrix;
using sheafnn::Stream;

constexpr std::size_t sample_count = 2000;
constexpr double pi = 3.14159265358979323846;

/// Angles of one family's samples, and the density they should follow.
struct Panel {
  std::string title;
  std::vector<double> angles;
  std::vector<double> density;  ///< at `curve_points` + 1 angles from 0 to π
};
constexpr int curve_points = 120;

template <int N>
SquareMatrix<double, N> some_rotation() {
  return sheafnn::haar_rotation<double, N>(Stream{.seed = 2024}, 0);
}

/// The angle between a fitted location and the true one: the length of the turn's coordinates, in standard errors
/// of each.
template <int N>
double turn(const SquareMatrix<double, N>& estimate, const SquareMatrix<double, N>& truth) {
  return sheafnn::skew_parameters<double, N>(sheafnn::multiply_nt(estimate, truth)).norm();
}

void print_row(const std::string& family, const char* parameter, double truth, double estimate, double error) {
  std::printf("%-26s  %-12s  %9.4f  %9.4f  %9.4f  %7.2f\n", family.c_str(), parameter, truth, estimate, error,
              (estimate - truth) / error);
}

/// Angles and density for N = 2 (both signs together) and 3.
template <class D>
Panel panel_of(const std::string& title, const D& distribution, const std::vector<typename D::Matrix>& samples) {
  constexpr int N = D::dimension;
  Panel panel{title, {}, {}};
  for (const auto& p : samples) {
    panel.angles.push_back(
        std::abs(sheafnn::rotation_angle<double, N>(sheafnn::multiply_nt(p, distribution.location()))));
  }
  for (int i = 0; i <= curve_points; ++i) {
    panel.density.push_back((N == 2 ? 2 : 1) * sheafnn::angle_pdf(distribution, pi * i / curve_points));
  }
  return panel;
}

/// Draws, fits both ways and prints a family with one location and one concentration.
template <class D>
void show(const std::string& family, const char* symbol, const D& truth, std::vector<Panel>& panels) {
  constexpr int N = D::dimension;
  std::vector<SquareMatrix<double, N>> samples(sample_count);
  sheafnn::sample_many(truth, Stream{.seed = 1}, 0, samples);
  const auto likelihood = sheafnn::fit<D>(samples);
  const auto moments = sheafnn::fit_moments<D>(samples);
  const double coordinates = std::sqrt(sheafnn::rotation_parameters<N>);
  print_row(family, "concentration", truth.concentration(), likelihood.distribution.concentration(),
            likelihood.concentration_error);
  print_row("", "  by moments", truth.concentration(), moments.distribution.concentration(),
            moments.concentration_error);
  print_row("", "turn of M", 0, turn<N>(likelihood.distribution.location(), truth.location()),
            coordinates * likelihood.location_error);
  if constexpr (N <= 3) {
    const auto test = sheafnn::goodness_of_fit(likelihood.distribution, samples);
    std::printf("%-26s  Kolmogorov-Smirnov D = %.4f, p = %.2f\n", "", test.statistic, test.p_value);
    std::ostringstream title;
    title << family << ", " << symbol << " = " << truth.concentration();
    panels.push_back(panel_of(title.str(), truth, samples));
  }
}

void show_matrix_fisher(std::vector<Panel>& panels) {
  using D = sheafnn::MatrixFisherDistribution<3>;
  const SquareMatrix<double, 3> m = some_rotation<3>();
  const D truth(SquareMatrix<double, 3>(sheafnn::Column<double, 3>(5, 3, 1).asDiagonal() * m));
  std::vector<SquareMatrix<double, 3>> samples(sample_count);
  sheafnn::sample_many(truth, Stream{.seed = 2}, 0, samples);
  const auto fit = sheafnn::fit<D>(samples);
  for (int j = 0; j < 3; ++j) {
    for (int i = 0; i < 3; ++i) {
      const std::string name = "F(" + std::to_string(i) + ", " + std::to_string(j) + ")";
      print_row(i + j == 0 ? "matrix Fisher, SO(3)" : "", name.c_str(), truth.parameter()(i, j),
                fit.distribution.parameter()(i, j), fit.parameter_error(i, j));
    }
  }
  panels.push_back(panel_of("matrix Fisher, SO(3), F = diag(5, 3, 1) M", truth, samples));
}

void show_wrapped_cauchy() {
  const sheafnn::WrappedCauchy<> truth(1.0, 0.6);
  std::vector<double> angles(sample_count);
  sheafnn::sample_many(truth, Stream{.seed = 3}, 0, angles);
  const auto fit = sheafnn::fit<sheafnn::WrappedCauchy<>>(angles);
  print_row("wrapped Cauchy", "location", 1.0, fit.distribution.location(), fit.location_error);
  print_row("", "concentration", 0.6, fit.distribution.concentration(), fit.concentration_error);
}

void show_angular_central_gaussian() {
  using D = sheafnn::AngularCentralGaussian<3>;
  SquareMatrix<double, 3> covariance;
  covariance << 1.5, 0.4, 0.0, 0.4, 1.0, 0.2, 0.0, 0.2, 0.5;  // trace 3, as fits have it
  const D truth(covariance);
  std::vector<sheafnn::Column<double, 3>> samples(sample_count);
  sheafnn::sample_many(truth, Stream{.seed = 4}, 0, samples);
  const auto fit = sheafnn::fit<D>(samples);
  for (int j = 0; j < 3; ++j) {
    for (int i = j; i < 3; ++i) {
      const std::string name = "L(" + std::to_string(i) + ", " + std::to_string(j) + ")";
      print_row(i + j == 0 ? "angular central Gaussian" : "", name.c_str(), covariance(i, j),
                fit.distribution.covariance()(i, j), fit.covariance_error(i, j));
    }
  }
}

/// Distance of the ticks of an axis up to `highest`: 1, 2 or 5 times a power of ten, for three to seven of them.
double tick_distance(double highest) {
  const double power = std::pow(10.0, std::floor(std::log10(highest)));
  const double leading = highest / power;
  return leading < 1.5 ? 0.2 * power : leading < 3 ? 0.5 * power : leading < 7 ? power : 2 * power;
}

/// One histogram with its density in a box of the picture.
void draw(std::ostream& svg, const Panel& panel, double left, double top, double width, double height) {
  constexpr int bins = 36;
  std::vector<double> counts(bins, 0.0);
  for (const double angle : panel.angles) {
    counts[static_cast<std::size_t>(std::min(bins - 1, static_cast<int>(angle / pi * bins)))] += 1;
  }
  double highest = 0;
  for (double& count : counts) {
    count *= bins / pi / static_cast<double>(panel.angles.size());
    highest = std::max(highest, count);
  }
  for (const double value : panel.density) highest = std::max(highest, value);
  const auto x = [&](double angle) { return left + angle / pi * width; };
  const auto y = [&](double density) { return top + height * (1 - density / (1.05 * highest)); };
  const double step = tick_distance(highest);
  for (int i = 0; i * step <= 1.05 * highest; ++i) {
    svg << "<path class='grid' d='M" << left << ' ' << y(i * step) << 'h' << width
        << "'/>\n<text class='tick end' x='" << left - 6 << "' y='" << y(i * step) + 4 << "'>" << i * step
        << "</text>\n";
  }
  for (int i = 0; i < bins; ++i) {
    const double value = counts[static_cast<std::size_t>(i)];
    svg << "<rect class='bar' x='" << x(pi * i / bins) << "' y='" << y(value) << "' width='" << width / bins - 0.5
        << "' height='" << top + height - y(value) << "'/>\n";
  }
  svg << "<polyline class='law' points='";
  for (int i = 0; i <= curve_points; ++i) {
    svg << x(pi * i / curve_points) << ',' << y(panel.density[static_cast<std::size_t>(i)]) << ' ';
  }
  svg << "'/>\n<path class='axis' d='M" << left << ' ' << top + height << 'h' << width << "'/>\n";
  const char* labels[] = {"0", "π/4", "π/2", "3π/4", "π"};
  for (int i = 0; i < 5; ++i) {
    svg << "<path class='axis' d='M" << x(pi * i / 4) << ' ' << top + height << "v4'/>\n<text class='tick' x='"
        << x(pi * i / 4) << "' y='" << top + height + 17 << "'>" << labels[i] << "</text>\n";
  }
  svg << "<text class='title' x='" << left << "' y='" << top - 10 << "'>" << panel.title << "</text>\n"
      << "<text class='label' x='" << left + width / 2 << "' y='" << top + height + 35
      << "'>angle of PMᵀ, radians</text>\n"
      << "<text class='label' transform='translate(" << left - 38 << ' ' << top + height / 2
      << ") rotate(-90)'>density per radian</text>\n";
}

void write_picture(const std::string& path, const std::vector<Panel>& panels) {
  constexpr double width = 280, height = 170, margin = 62, step_x = width + 72, step_y = height + 84, top = 78;
  constexpr std::size_t columns = 3;
  const double rows = static_cast<double>((panels.size() + columns - 1) / columns);
  const double full_width = margin + columns * step_x - 48, full_height = top + rows * step_y - 30;
  std::ostringstream svg;
  svg << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " << full_width << ' ' << full_height << "' width='"
      << full_width << "' height='" << full_height << "' font-family='sans-serif'>\n"
      << "<style>.bar{fill:#a6c8e4}.law{fill:none;stroke:#c0392b;stroke-width:2}.axis{stroke:#444}.grid{stroke:#"
         "e4e4e4}"
      << "text{font-size:11px;fill:#444;text-anchor:middle}.end{text-anchor:end}.label{font-size:12px}"
      << ".title{font-size:14px;fill:#000;text-anchor:start}.key{font-size:12px;text-anchor:start}</style>\n"
      << "<rect width='100%' height='100%' fill='white'/>\n"
      << "<rect class='bar' x='" << margin << "' y='15' width='22' height='12'/><text class='key' x='"
      << margin + 30 << "' y='25'>" << sample_count << " samples P</text>\n"
      << "<path class='law' d='M" << margin + 150 << " 21h22'/><text class='key' x='" << margin + 180
      << "' y='25'>density of the distribution they were drawn from, location M</text>\n";
  for (std::size_t i = 0; i < panels.size(); ++i) {
    draw(svg, panels[i], margin + static_cast<double>(i % columns) * step_x,
         top + static_cast<double>(i / columns) * step_y, width, height);
  }
  svg << "</svg>\n";
  std::ofstream file(path, std::ios::binary);
  file << svg.str();
  file.close();
  if (!file) throw std::runtime_error(path + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) {
    std::fprintf(stderr, "usage: rotations [FILE.svg]\n");
    return 2;
  }
  try {
    const std::string path = argc == 2 ? argv[1] : "rotations.svg";
    std::vector<Panel> panels;
    std::printf("%zu samples of each; standard errors and (fitted - true)/error\n\n", sample_count);
    std::printf("%-26s  %-12s  %9s  %9s  %9s  %7s\n", "family", "parameter", "true", "fitted", "error", "ratio");
    {
      std::vector<SquareMatrix<double, 3>> samples(sample_count);
      const sheafnn::HaarDistribution<3> uniform;
      sheafnn::sample_many(uniform, Stream{.seed = 5}, 0, samples);
      const auto test = sheafnn::goodness_of_fit(uniform, samples);
      std::printf("%-26s  Kolmogorov-Smirnov D = %.4f, p = %.2f\n", "uniform, SO(3)", test.statistic,
                  test.p_value);
      panels.push_back(panel_of("uniform, SO(3)", uniform, samples));
    }
    show("Cayley, SO(2)", "κ", sheafnn::CayleyDistribution<2>(some_rotation<2>(), 0.5), panels);
    show("Cayley, SO(3)", "κ", sheafnn::CayleyDistribution<3>(some_rotation<3>(), 0.6), panels);
    show("Cayley, SO(4)", "κ", sheafnn::CayleyDistribution<4>(some_rotation<4>(), 0.7), panels);
    show("Cayley, SO(8)", "κ", sheafnn::CayleyDistribution<8>(some_rotation<8>(), 0.8), panels);
    show("Leon's Cayley, SO(2)", "k", sheafnn::LeonCayleyDistribution<2>(some_rotation<2>(), 2.0), panels);
    show("Leon's Cayley, SO(3)", "k", sheafnn::LeonCayleyDistribution<3>(some_rotation<3>(), 4.0), panels);
    show("Leon's Cayley, SO(5)", "k", sheafnn::LeonCayleyDistribution<5>(some_rotation<5>(), 6.0), panels);
    show_matrix_fisher(panels);
    show_wrapped_cauchy();
    show_angular_central_gaussian();
    write_picture(path, panels);
    std::printf("\nhistograms of rotation angles against their densities: %s\n", path.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rotations: %s\n", error.what());
    return 2;
  }
}
