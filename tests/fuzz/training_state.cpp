/// \file
/// Fuzz target: the checkpoint of a training. Every other input is a file; the others change one that was written.
#include "sheafnn/io/training_state.hpp"

#include <bit>

#include "memory_file.hpp"
#include "sheafnn/bsnn/trainer.hpp"
#include "tensor_input.hpp"

namespace {

using sheafnn::Index;
using sheafnn::TrainingState;
using sheafnn::io::TensorFile;

constexpr Index parameters = 4, predictions = 6;

TrainingState some_state() {
  TrainingState state;
  state.seed = 3;
  state.best_epoch = 1;
  state.stop_on = sheafnn::StopOn::loss;
  state.parameters = {1, -2, 0.5, 3};
  state.first_moment = {0.25, 0, -0.25, 1};
  state.second_moment = {0.5, 0, 0.5, 1};
  state.best_parameters = state.parameters;
  state.best_predictions = {0.5, 0.5, 0.25, 0.75, 1, 0};
  for (Index t = 0; t < 2; ++t) state.history.push_back({.epoch = t, .loss = 1.0 / static_cast<double>(1 + t)});
  return state;
}
TensorFile written() {
  const auto path = fuzz::folder().path() / "original.safetensors";
  sheafnn::io::write_training_state(path, some_state(), {{"data", "a"}});
  return sheafnn::io::read_safetensors(path);
}

void change_state(TensorFile& file, fuzz::Choices& choices) {
  static const char* const texts[] = {
      "0",    "1",        "2",  "-1",      "18446744073709551615", "9223372036854775807",
      "loss", "accuracy", "",   "roc-auc", "sheafnn training",     "1.5",
      " 1",   "macro-f1", "nan"};
  const int kind = choices.byte();
  if (kind < 80 && !file.metadata.empty()) {
    auto entry = file.metadata.begin();
    std::advance(entry, choices.below(static_cast<int>(file.metadata.size())));
    if (kind < 72) {
      entry->second = texts[choices.byte() % std::size(texts)];
    } else {
      file.metadata.erase(entry);
    }
    return;
  }
  if (file.tensors.empty()) return;
  sheafnn::io::Tensor& tensor = file.tensors[static_cast<std::size_t>(choices.byte()) % file.tensors.size()];
  std::vector<double> values = tensor.values<double>();
  if (kind < 160) {
    if (!values.empty()) values[choices.byte() % values.size()] = choices.number<double>();
  } else if (kind < 230) {
    for (Index& extent : tensor.shape) extent = choices.flag() ? extent : choices.below(12);
    values.assign(static_cast<std::size_t>(tensor.size()), 0.5);
  } else if (kind < 244) {
    tensor.shape.push_back(choices.below(3));
    values.assign(static_cast<std::size_t>(tensor.size()), 0.5);
  } else {
    file.tensors.erase(file.tensors.begin() + (&tensor - file.tensors.data()));
    return;
  }
  if (choices.flag()) {
    tensor = sheafnn::io::make_tensor<double>(tensor.name, tensor.shape, values);
  } else {
    const std::vector<float> narrow(values.begin(), values.end());
    tensor = sheafnn::io::make_tensor<float>(tensor.name, tensor.shape, narrow);
  }
}

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) {
           return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
         });
}

}  // namespace

SHEAFNN_FUZZ_TARGET(training_state, 512, 1 << 18) {
  if (input.empty()) return;
  static const TensorFile original = written();
  auto path = fuzz::folder().path() / "state.safetensors";
  if (input[0] % 2 == 0) {
    path = fuzz::folder().write("state.safetensors", fuzz::tensor_bytes(input.subspan(1)));
  } else {
    TensorFile file = original;
    fuzz::Choices choices(input.subspan(1));
    for (int left = 1 + choices.below(5); left > 0; --left) change_state(file, choices);
    path = fuzz::folder().path() / "changed.safetensors";
    try {
      sheafnn::io::write_safetensors(path, file);
    } catch (const std::invalid_argument&) {
      return;
    }
  }
  sheafnn::io::TrainingFile file;
  if (!fuzz::keeps_contract<std::runtime_error>([&] { file = sheafnn::io::read_training_state(path); })) return;
  const TrainingState& state = file.state;
  for (const auto* values : {&state.parameters, &state.first_moment, &state.second_moment, &state.best_parameters,
                             &state.best_predictions}) {
    for (const double value : *values)
      fuzz::expect(std::isfinite(value), "training state: a number is not finite");
  }
  // What train() asks of a state to go on from.
  sheafnn::TrainOptions options;
  options.seed = 3;
  for (const bool validated : {false, true}) {
    const bool fits = fuzz::keeps_contract<std::invalid_argument>(
        [&] { sheafnn::detail::check_state(state, options, parameters, predictions, validated); });
    if (!fits) continue;
    fuzz::expect(static_cast<Index>(state.history.size()) > state.best_epoch && state.best_epoch >= 0,
                 "training state: the best epoch is none of the history");
    for (const double moment : state.second_moment) {
      fuzz::expect(moment >= 0, "training state: a second moment below 0 is accepted");
    }
  }
  const auto copy = fuzz::folder().path() / "copy.safetensors";
  sheafnn::io::write_training_state(copy, state);
  const TrainingState again = sheafnn::io::read_training_state(copy).state;
  fuzz::expect(same(again.parameters, state.parameters) && same(again.second_moment, state.second_moment) &&
                   same(again.best_predictions, state.best_predictions) && again.seed == state.seed &&
                   again.best_epoch == state.best_epoch && again.history.size() == state.history.size(),
               "training state: the copy");
}
