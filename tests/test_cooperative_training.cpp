// Cooperative networks in training: training_check.hpp.
#include <doctest/doctest.h>

#include "sheafnn/bsnn/cooperative_network.hpp"
#include "sheafnn/graph/karate.hpp"
#include "training_check.hpp"

namespace cooperative_training_test {

sheafnn::CooperativeOptions options(const sheafnn::Dataset& data, bool layer_learners) {
  sheafnn::CooperativeOptions r;
  r.features = data.feature_count();
  r.classes = data.class_count;
  r.channels = 8;
  r.layers = 2;
  r.learner = sheafnn::NodeLearnerKind::sage;
  r.learner_layers = 2;
  r.learner_width = 16;
  r.layer_learners = layer_learners;
  return r;
}

template <class Model>
void check_training(bool layer_learners = false) {
  CAPTURE(Model::kind);
  const sheafnn::Dataset data = sheafnn::karate_club();
  test::check_training<Model>(data, options(data, layer_learners));
}

}  // namespace cooperative_training_test

TEST_CASE("cooperative networks learn, resume, and give the same bits on any number of threads") {
  cooperative_training_test::check_training<sheafnn::Csnn<3>>();
  cooperative_training_test::check_training<sheafnn::Bcsnn<2>>();
  cooperative_training_test::check_training<sheafnn::Bcsnn<2>>(true);
}
