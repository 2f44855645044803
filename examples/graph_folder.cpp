/// \file
/// Writes folders of .npy arrays: synthetic graphs of any size, the arcs of a list of edges, and the tasks of the Open Graph
/// Benchmark. large_graph reads the rows that it needs, and the ranks of train_mpi read the rows of their own nodes. In
/// `generate`, `convert` and `partition` all ranks write, and each needs memory for one range of nodes.
///
///     mpirun -n 4 build/mpi/examples/graph_folder generate --folder big --nodes 10000000
///     mpirun -n 4 build/mpi/examples/graph_folder convert --folder own --edges edges.txt --nodes 50000
///     build/mpi/examples/graph_folder ogb --from ogbn_products --folder products
#include <CLI/CLI.hpp>
#include <cstdio>
#include <sheafnn/distributed.hpp>
#include <sheafnn/io/ogb_folder.hpp>
#include <string>

#include "models/interruption.hpp"
#include "models/program.hpp"

int main(int argc, char** argv) {
  namespace mpi = sheafnn::distributed;
  return mpi::run(argc, argv, [&] {
    mpi::Communicator ranks;
    mpi::FolderOptions options;
    sheafnn::io::OgbConversion conversion;
    std::string folder, edges, output, from;
    int parts = 1;
    CLI::App app("Writes a folder of .npy arrays for large_graph and train_mpi.", "graph_folder");
    app.require_subcommand(1);
    auto* generate = app.add_subcommand("generate", "writes a synthetic graph with features, labels and masks");
    auto* convert =
        app.add_subcommand("convert",
                           "writes indptr.npy and indices.npy from a text file with two node numbers per edge");
    auto* partition = app.add_subcommand(
        "partition",
        "writes a copy of a folder with its nodes sorted by the parts of METIS, one part for each rank");
    auto* ogb =
        app.add_subcommand("ogb",
                           "writes the task of an unpacked folder of the Open Graph Benchmark; one rank does all");
    for (auto* command : {generate, convert}) {
      command->add_option("--folder", folder, "folder to write")->required();
      command->add_option("--nodes", options.nodes, "number of nodes")->required();
    }
    for (auto* command : {generate, convert, partition}) {
      command->add_option("--range", options.range, "number of nodes that a rank holds at a time")
          ->capture_default_str();
    }
    partition->add_option("--folder", folder, "folder to read")->required();
    partition->add_option("--output", output, "folder to write")->required();
    partition->add_option("--parts", parts, "number of parts")->required();
    ogb->add_option("--from", from, "folder to read, with raw and split in it")->required();
    ogb->add_option("--folder", folder, "new folder to write")->required();
    ogb->add_option("--split", conversion.split, "name of the split; not needed where there is only one");
    ogb->add_option("--arcs", conversion.arcs, "number of arcs that are sorted at a time, 8 bytes each")
        ->capture_default_str();
    convert->add_option("--edges", edges, "text file with two node numbers per edge")->required();
    generate->add_option("--reach", options.reach, "half of the largest number of neighbours")
        ->capture_default_str();
    generate->add_option("--density", options.density, "share of the possible neighbours that a node has")
        ->capture_default_str();
    generate->add_flag("--far,!--no-far", options.far,
                       "every third neighbour is far away, so that every cut is large");
    generate->add_option("--features", options.features, "number of features per node")->capture_default_str();
    generate->add_option("--classes", options.classes, "number of classes")->capture_default_str();
    generate->add_option("--signal", options.signal, "strength of a node's class in its features")
        ->capture_default_str();
    generate->add_option("--seed", options.seed, "seed of the graph")->capture_default_str();
    programs::refuse_misread_numbers(app);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {  // the same on all ranks
      if (error.get_exit_code() == 0) return ranks.is_root() ? app.exit(error) : 0;
      if (ranks.is_root()) std::fprintf(stderr, "graph_folder: %s\n", programs::parse_message(app, error).c_str());
      return programs::exit_bad_input;
    }
    if (partition->parsed()) {
      const mpi::FolderPartition made = mpi::partition_folder(ranks, folder, output, parts, options.range);
      if (ranks.is_root()) {
        std::printf("%s: %td nodes in %d parts, %td of %td edges cut\n", output.c_str(), made.nodes, parts,
                    made.cut, made.edges);
      }
      return 0;
    }
    if (ogb->parsed()) {
      if (!ranks.is_root()) return 0;
      const programs::Interruption interruption;
      conversion.between_pieces = [] {
        if (const int signal = programs::Interruption::signal()) throw programs::Interrupted(signal);
      };
      sheafnn::io::OgbConverted made;
      try {
        made = sheafnn::io::convert_ogb(from, folder, conversion);
      } catch (const programs::Interrupted& interrupted) {
        std::fprintf(stderr, "graph_folder: %s; nothing was written\n", interrupted.what());
        return interrupted.exit_code();
      }
      std::printf("%s: %td nodes, %td edges, %td features\n", folder.c_str(), made.nodes, made.edges,
                  made.features);
      if (made.self_loops + made.duplicates > 0) {
        std::printf("left out: %td self-loops, %td repeated edges\n", made.self_loops, made.duplicates);
      }
      for (std::size_t c = 0; c < made.class_names.size(); ++c) {
        std::printf("class %zu: label %s\n", c, made.class_names[c].c_str());
      }
      return 0;
    }
    if (generate->parsed()) {
      mpi::write_synthetic_folder(ranks, folder, options);
    } else {
      mpi::convert_edges(ranks, edges, folder, options.nodes, options.range);
    }
    if (ranks.is_root()) {
      std::printf("%s: %td nodes, %td edges\n", folder.c_str(), options.nodes,
                  mpi::NpyFile(folder + "/indices.npy").rows() / 2);
    }
    return 0;
  });
}
