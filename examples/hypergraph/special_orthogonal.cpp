#include "hypergraph/instantiate.hpp"

const hypergraph_program::Models hypergraph_program::special_orthogonal[] = {
    models_of<sheafnn::SpecialOrthogonal<2>>(), models_of<sheafnn::SpecialOrthogonal<3>>(),
    models_of<sheafnn::SpecialOrthogonal<4>>()};
