// The smallest eigenvalues of a sheaf Laplacian, with an installed copy, of whatever package.
#include <cmath>
#include <cstdio>
#include <sheafnn/graph/karate.hpp>
#include <sheafnn/sheaf/cellular_sheaf.hpp>
#include <sheafnn/sheaf/families/diagonal.hpp>
#include <sheafnn/sheaf/laplacian.hpp>

int main() {
  const sheafnn::CellularSheaf<sheafnn::Diagonal<2>> trivial(sheafnn::karate_club().graph);
  const Eigen::MatrixXd constant = Eigen::MatrixXd::Ones(trivial.node_dimension(), 1);
  const sheafnn::SheafLaplacian laplacian(trivial, sheafnn::Normalisation::none);
  const double norm = laplacian.apply(constant).norm();
  std::printf("sheafnn: the Laplacian of constants has norm %g\n", norm);
  return norm < 1e-12 ? 0 : 1;
}
