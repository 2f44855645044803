#include <cmath>
#include <cstdio>
#include <sheafnn/bsnn.hpp>
#include <sheafnn/sheaf/planted.hpp>

int main() {
  const auto task = sheafnn::planted_frames<2>({.nodes = 1000});
  const sheafnn::Dataset& data = task.data;
  sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>> model(
      {.features = data.feature_count(), .channels = 8, .layers = 1, .classes = data.class_count}, /*seed*/ 2);
  const auto result = sheafnn::train(model, data, data.splits[0], {.input_dropout = 0, .dropout = 0});
  const auto learned = sheafnn::learned_sheaf(model, data);
  std::printf("test accuracy %.0f%%\nedge       learned   true\n", 100 * result.test_accuracy);
  const auto degrees = [](const auto& sheaf, auto arc) {  // the angle of the transport of an arc
    const auto transport = (sheaf.map(arc).transpose() * sheaf.map(sheaf.graph().reverse(arc))).eval();
    return 180 / std::acos(-1.0) * std::atan2(transport(1, 0), transport(0, 0));
  };
  for (int arc = 0; arc < 4; ++arc)
    std::printf("%td - %-4td  %6.0f°  %4.0f°\n", data.graph.source(arc), data.graph.target(arc),
                degrees(learned, arc), degrees(task.sheaf, arc));
}
