// A picture of a learned distribution of sheaves: sixteen edges on a ring, from the least to the most reliable relation. Each dial
// shows the angle by which the transport of its edge rotates: forty draws, the sector that holds four fifths of them, and the true
// angle. The text in the middle says how many true angles of all edges lie in their sectors.
//
//     ring > ring.svg      (docs/pictures/ring.svg)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/sheaf/planted.hpp>
#include <vector>

using Maps = sheafnn::SpecialOrthogonal<2>;
constexpr double pi = std::numbers::pi;

// The angle of F_{u⊴e}ᵀ F_{v⊴e}.
double angle_of(const sheafnn::CellularSheaf<Maps>& sheaf, sheafnn::Index arc) {
  const auto transport = (sheaf.map(arc).transpose() * sheaf.map(sheaf.graph().reverse(arc))).eval();
  return std::atan2(transport(1, 0), transport(0, 0));
}

int main() {
  const auto task = sheafnn::planted_unreliable<2>({.nodes = 5000, .spread = 0.5});
  const sheafnn::Dataset& data = task.data;
  sheafnn::Bsnn<Maps> model(
      {.features = data.feature_count(), .channels = 16, .layers = 1, .classes = data.class_count}, /*seed*/ 2);
  train(model, data, data.splits[0],
        {.epochs = 600,
         .patience = 100,
         .weight_decay = 1e-3,
         .sheaf_decay = 0.01,
         .input_dropout = 0,
         .dropout = 0,
         .kl_schedule = sheafnn::KlSchedule::constant,
         .kl_maximum = 0.05,
         .training_samples = 8,
         .sample_loss = sheafnn::SampleLoss::predictive});

  constexpr int dials = 16, draws = 40;
  std::vector<sheafnn::CellularSheaf<Maps>> sheaves;
  for (int k = 0; k < draws; ++k) sheaves.push_back(draw_sheaf(model, data, {.sample = k}));
  const auto mean = learned_sheaf(model, data);
  std::vector<sheafnn::Index> arcs;  // one of each edge, by the reliability of the edge
  for (sheafnn::Index a = 0; a < data.graph.arc_count(); ++a) {
    if (data.graph.source(a) < data.graph.target(a)) arcs.push_back(a);
  }
  const auto reliability = [&](sheafnn::Index a) {
    return task.concentration[static_cast<std::size_t>(data.graph.edge_of(a))];
  };
  std::stable_sort(arcs.begin(), arcs.end(), [&](auto a, auto b) { return reliability(a) < reliability(b); });
  // Draws say nothing of the plane's orientation: the sign that more edges agree with.
  double agreement = 0;
  for (sheafnn::Index a = 0; a < data.graph.arc_count(); ++a)
    agreement += std::sin(angle_of(mean, a)) * std::sin(angle_of(task.sheaf, a));
  const double sign = agreement < 0 ? -1 : 1;
  const auto angles_of_draws = [&](sheafnn::Index arc) {  // besides the mean, sorted
    std::vector<double> r;
    for (const auto& sheaf : sheaves) r.push_back(std::remainder(angle_of(sheaf, arc) - angle_of(mean, arc), 2 * pi));
    std::sort(r.begin(), r.end());
    return r;
  };
  constexpr int first = draws / 10, last = draws - 1 - draws / 10;  // the draws at the ends of the sector
  const auto covered = std::count_if(arcs.begin(), arcs.end(), [&](sheafnn::Index arc) {
    const std::vector<double> angles = angles_of_draws(arc);
    const double truth = std::remainder(sign * angle_of(task.sheaf, arc) - angle_of(mean, arc), 2 * pi);
    return angles[first] <= truth && truth <= angles[last];
  });

  std::printf(
      "<svg xmlns='http://www.w3.org/2000/svg' width='480' height='480' viewBox='0 0 640 640' "
      "font-family='sans-serif' font-size='17' "
      "text-anchor='middle'>\n"
      "<style>.page{fill:#fff}text{fill:#333}.dial{fill:none;stroke:#bbb}.sector{fill:#2f7fd1;opacity:.28}.draw{"
      "stroke:#2f7fd1}."
      "true{fill:#d9480f}\n"
      "@media "
      "(prefers-color-scheme:dark){.page{fill:#171717}text{fill:#ddd}.dial{stroke:#555}.draw{stroke:#74b3f0}."
      "sector{fill:#74b3f0}."
      "true{fill:#ff9a5c}}</style>\n<rect class='page' width='640' height='640'/>\n");
  for (int i = 0; i < dials; ++i) {
    const sheafnn::Index arc = arcs[static_cast<std::size_t>(2 * i + 1) * arcs.size() / (2 * dials)];
    const double at = pi * (0.5 + (2 * i + 1.0) / dials), r = 46;
    const auto point = [&](double angle, double radius) {
      return std::pair(320 + 258 * std::cos(at) + radius * std::cos(angle),
                       320 + 258 * std::sin(at) - radius * std::sin(angle));
    };
    const double centre = angle_of(mean, arc);
    const std::vector<double> angles = angles_of_draws(arc);
    const double low = angles[first], high = angles[last];
    const auto [ox, oy] = point(0, 0);
    const auto [ax, ay] = point(sign * (centre + low), r);
    const auto [bx, by] = point(sign * (centre + high), r);
    std::printf("<circle class='dial' cx='%.1f' cy='%.1f' r='%.0f'/>\n", ox, oy, r);
    std::printf("<path class='sector' d='M%.1f %.1fL%.1f %.1fA%.0f %.0f 0 %d %d %.1f %.1fZ'/>\n", ox, oy, ax, ay,
                r, r, high - low > pi ? 1 : 0, sign > 0 ? 0 : 1, bx, by);
    for (const double angle : angles) {
      const auto [x, y] = point(sign * (centre + angle), r);
      std::printf("<line class='draw' stroke-width='.7' x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f'/>\n", ox, oy, x,
                  y);
    }
    const auto [tx, ty] = point(angle_of(task.sheaf, arc), r);
    std::printf("<circle class='true' cx='%.1f' cy='%.1f' r='4.5'/>\n", tx, ty);
  }
  std::printf(
      "<text x='320' y='268' font-size='22'>a distribution of sheaves</text>\n"
      "<text x='320' y='302'>angles of the maps of sixteen edges:</text>\n"
      "<text x='320' y='326'>draws, their central 80 %%, the true angle</text>\n"
      "<text x='320' y='360'>clockwise from below:</text>\n"
      "<text x='320' y='384'>random relations to reliable ones</text>\n"
      "<text x='320' y='418'>%.0f %% of all true angles lie within</text>\n</svg>\n",
      100.0 * static_cast<double>(covered) / static_cast<double>(arcs.size()));
}
