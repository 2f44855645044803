#include "hypergraph/instantiate.hpp"

const hypergraph_program::Models hypergraph_program::diagonal[] = {models_of<sheafnn::Diagonal<2>>(),
                                                                   models_of<sheafnn::Diagonal<3>>(),
                                                                   models_of<sheafnn::Diagonal<4>>()};
