#include "hypergraph/instantiate.hpp"

const hypergraph_program::Models hypergraph_program::general_linear[] = {models_of<sheafnn::GeneralLinear<2>>(),
                                                                         models_of<sheafnn::GeneralLinear<3>>(),
                                                                         models_of<sheafnn::GeneralLinear<4>>()};
