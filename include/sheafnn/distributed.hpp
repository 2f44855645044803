/// \file
/// Training on several computers: METIS cuts the graph into parts, one for each rank of MPI. Link sheafnn::mpi; see
/// docs/distributed.md.
#pragma once

#include "sheafnn/bsnn.hpp"
#include "sheafnn/distributed/agreement.hpp"
#include "sheafnn/distributed/cluster_training.hpp"
#include "sheafnn/distributed/communicator.hpp"
#include "sheafnn/distributed/distributed_data.hpp"
#include "sheafnn/distributed/environment.hpp"
#include "sheafnn/distributed/folder_partition.hpp"
#include "sheafnn/distributed/folder_writer.hpp"
#include "sheafnn/distributed/graph_folder.hpp"
#include "sheafnn/distributed/hypergraph_partition.hpp"
#include "sheafnn/distributed/local_hypergraph.hpp"
#include "sheafnn/distributed/local_part.hpp"
#include "sheafnn/distributed/metis.hpp"
#include "sheafnn/distributed/npy_file.hpp"
#include "sheafnn/distributed/part_classification.hpp"
#include "sheafnn/distributed/partition.hpp"
#include "sheafnn/distributed/row_exchange.hpp"
#include "sheafnn/distributed/trainer.hpp"
