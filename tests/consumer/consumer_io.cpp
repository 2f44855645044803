// A program that uses the folder io/ of the library: a tensor written to a file and read back.
#include <filesystem>
#include <iostream>
#include <sheafnn/io/safetensors.hpp>
#include <string>
#include <vector>

int main(int, char** arguments) {
  const std::filesystem::path path = std::string(arguments[0]) + ".safetensors";
  const std::vector<float> weights = {1, 2, 3, 4.5f};
  sheafnn::io::TensorFile written;
  written.tensors.push_back(sheafnn::io::make_tensor<float>("weights", {2, 2}, weights));
  sheafnn::io::write_safetensors(path, written);
  const sheafnn::io::TensorFile read = sheafnn::io::read_safetensors(path);
  std::filesystem::remove(path);
  std::cout << read.tensors.at(0).name << ':';
  for (const double value : read.tensors.at(0).values<double>()) std::cout << ' ' << value;
  std::cout << '\n';
}
