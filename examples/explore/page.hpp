/// \file
/// One HTML page with all pictures, which are in the same folder.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "explore/pictures.hpp"
#include "explore/subject.hpp"
#include "models/program.hpp"

namespace explore {

/// Checks that no other file of the call has the place of the page or of one of its pictures.
///
/// \param folder  of the page, which need not exist
/// \throws std::runtime_error  naming the option and the file
inline void require_apart_from_page(const std::filesystem::path& folder,
                                    const std::vector<programs::NamedFile>& files) {
  const std::filesystem::path place = programs::resolved(folder / "index.html").parent_path();
  for (const auto& [option, file] : files) {
    if (std::filesystem::is_directory(file) && programs::resolved(file / "index.html").parent_path() == place) {
      throw std::runtime_error("--output: " + folder.string() + " is the folder of " + option +
                               "; the page needs a folder of its own");
    }
    const bool of_page = file.filename() == "index.html" || file.extension() == ".svg";
    if (!of_page || programs::resolved(file).parent_path() != place) continue;
    throw std::runtime_error(std::string(option) + ": " + file.string() + " is a file that --output writes");
  }
}

/// Text for HTML.
inline std::string escaped(const std::string& text) {
  std::string r;
  for (const char c : text) {
    switch (c) {
      case '&':
        r += "&amp;";
        break;
      case '<':
        r += "&lt;";
        break;
      case '>':
        r += "&gt;";
        break;
      case '"':
        r += "&quot;";
        break;
      default:
        r += c;
    }
  }
  return r;
}

/// Names and values side by side.
inline std::string list(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string r = "<dl>\n";
  for (const auto& [name, value] : facts) {
    r += "<div><dt>" + escaped(name) + "</dt><dd>" + escaped(value) + "</dd></div>\n";
  }
  return r + "</dl>\n";
}

/// The page of an exploration.
inline std::string page(const std::string& title, const Exploration& shown) {
  std::string r =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      escaped(title) +
      "</title>\n<style>\n"
      "body { font: 16px/1.5 Helvetica, Arial, sans-serif; color: #222; max-width: 1140px; margin: 2em auto; "
      "padding: 0 1em; }\n"
      "h1 { font-size: 1.6em; margin-bottom: 0.4em; }\nh2 { font-size: 1.2em; margin: 0 0 0.2em; }\n"
      "dl { display: flex; flex-wrap: wrap; gap: 0.6em 2.2em; margin: 0 0 2em; }\n"
      "dt { color: #666; font-size: 0.85em; }\ndd { margin: 0; font-weight: bold; }\n"
      "figure { margin: 0 0 2.5em; }\nfigcaption { margin-bottom: 0.6em; max-width: 50em; }\n"
      "img { max-width: 100%; height: auto; }\n.note { color: #666; }\n"
      ":root { color-scheme: light dark; }\n"
      "@media (prefers-color-scheme: dark) { body { color: #ddd; background: #171717; } dt, .note { color: #aaa; "
      "} }\n"
      ".warning { border-left: 4px solid #d55e00; padding-left: 0.8em; max-width: 50em; }\n"
      "</style>\n</head>\n<body>\n<h1>" +
      escaped(title) + "</h1>\n" + list(shown.facts);
  if (!shown.use.empty()) {
    r += "<h2>Is the sheaf used?</h2>\n<p>Figures of the training: of the maps, with quantiles at 5, 50 and 95 %, "
         "and "
         "the loss of its validation nodes. Behind the loss stands what other maps add to it.</p>\n" +
         list(shown.use);
  }
  if (!shown.warning.empty()) r += "<p class=\"warning\">" + escaped(shown.warning) + "</p>\n";
  for (const Picture& picture : shown.pictures) {
    r += "<figure>\n<figcaption><h2>" + escaped(picture.title) + "</h2>" + escaped(picture.caption) +
         "</figcaption>\n<img src=\"" + picture.file + "\" alt=\"" + escaped(picture.caption) + "\">\n</figure>\n";
  }
  for (const std::string& note : shown.notes) r += "<p class=\"note\">" + escaped(note) + "</p>\n";
  return r + "</body>\n</html>\n";
}

}  // namespace explore
