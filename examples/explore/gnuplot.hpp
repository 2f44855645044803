/// \file
/// Pictures by gnuplot: scripts with their data inside, run once each, the SVG handed back as a text.
#pragma once

#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sheafnn/core/eigen.hpp>
#include <sheafnn/io/file.hpp>
#include <stdexcept>
#include <string>

#include "explore/text.hpp"
#include "models/dark_scheme.hpp"
#include "models/interruption.hpp"

namespace explore {

/// Okabe and Ito's colours, which colour-blind readers tell apart, without yellow and black.
inline constexpr const char* class_colours[] = {"#0072b2", "#d55e00", "#009e73", "#e69f00",
                                                "#cc79a7", "#56b4e9", "#7f7f7f"};
inline constexpr int colour_count = 7;
/// Filled circles, squares, triangles, diamonds: the shape changes where the colours start again.
inline constexpr int class_shapes[] = {7, 5, 9, 13};

inline constexpr const char* gnuplot_missing = "gnuplot: not found; install it (Debian: gnuplot-nox)";

/// Checks, before anything costly is done, that there will be pictures.
///
/// \throws std::runtime_error  no gnuplot
inline void require_gnuplot() {
  if (std::system("gnuplot --version > /dev/null 2>&1") != 0) throw std::runtime_error(gnuplot_missing);
}

/// Widths of pictures with one panel and with several, in pixels. Their texts can be read where the picture is half as wide.
inline constexpr int one_panel = 480, several_panels = 720;

/// A gnuplot script of one picture, which is dark where the reader's colour scheme is.
class Script {
 public:
  /// Sizes in pixels.
  Script(int width, int height) {
    line({"set terminal svg size ", width, ",", height, " noenhanced font 'Helvetica,17' background 'white'"});
    line(
        {"set encoding utf8\nset border 3 lc rgb '#444444'\nset tics nomirror out\nset grid ytics lc rgb "
         "'#e6e6e6'\nset key font ',14'"});
    // Viridis from light to dark, without its lightest end; from dark to light in the dark scheme, which inverts it.
    line({"set palette defined (0 '#c8e020', 1 '#90d743', 2 '#5ec962', 3 '#35b779', 4 '#20a486', 5 '#21918c', ",
          "6 '#287c8e', 7 '#31688e', 8 '#3b528b', 9 '#443983', 10 '#481f70', 11 '#440154')"});
  }

  /// Appends a line of gnuplot's language.
  void line(std::initializer_list<Text> parts) { text_ += joined(parts) + "\n"; }
  /// Adds a block of data, to be plotted as $name. NaN interrupts lines.
  void data(const std::string& name, const Eigen::MatrixXd& rows) {
    text_ += joined({"$", name, " << EOD\n"});
    char number[32];
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      for (Eigen::Index j = 0; j < rows.cols(); ++j) {
        std::snprintf(number, sizeof number, "%.6g ", rows(i, j));
        text_ += std::isfinite(rows(i, j)) ? number : "NaN ";
      }
      text_ += '\n';
    }
    text_ += "EOD\n";
  }

  /// Runs gnuplot. \returns the picture
  /// \throws std::runtime_error    no gnuplot, or its first complaint
  /// \throws programs::Interrupted  SIGINT or SIGTERM came to this program or to gnuplot
  [[nodiscard]] std::string draw() const {
    namespace fs = std::filesystem;
    const fs::path folder = fs::temp_directory_path() / joined({"sheafnn-explore-", std::random_device{}()});
    struct Remover {
      const fs::path& folder;
      ~Remover() {
        std::error_code ignored;
        fs::remove_all(folder, ignored);
      }
    } const remover{folder};
    fs::create_directory(folder);
    std::ofstream(folder / "script.gp") << text_;
    const std::string at = "'" + folder.string() + "/";
    const std::string command = "gnuplot " + at + "script.gp' > " + at + "picture.svg' 2> " + at + "errors.txt'";
    const int status = std::system(command.c_str());
    require_no_signal(status);
    std::string picture = content(folder / "picture.svg");
    if (status != 0 || picture.find("</svg>") == std::string::npos) {
      const std::string errors = content(folder / "errors.txt");
      const std::size_t begin = std::min(errors.find_first_not_of(" \n"), errors.size());
      if (errors.find("not found") != std::string::npos) throw std::runtime_error(gnuplot_missing);
      throw std::runtime_error("gnuplot: " + errors.substr(begin, errors.find('\n', begin) - begin));
    }
    return programs::with_dark_scheme(picture);
  }

 private:
  /// std::system() ignores SIGINT; gnuplot's exit status shows that both programs received it. Some shells return 128 + its
  /// number.
  static void require_no_signal(int status) {
    for (const int signal : {SIGINT, SIGTERM}) {
      const bool ended = (WIFSIGNALED(status) && WTERMSIG(status) == signal) ||
                         (WIFEXITED(status) && WEXITSTATUS(status) == 128 + signal);
      if (ended || programs::Interruption::signal() == signal) {
        throw programs::Interrupted(signal, "; pictures are missing");
      }
    }
  }
  static std::string content(const std::filesystem::path& path) {
    const sheafnn::io::Bytes bytes = sheafnn::io::read_file(path);
    return {bytes.begin(), bytes.end()};
  }

  std::string text_;
};

}  // namespace explore
