/// \file
/// Pictures that follow the reader's colour scheme.
#pragma once

#include <stdexcept>
#include <string>

namespace programs {

/// A style sheet for an SVG on a white background: the dark scheme exchanges light and dark, and keeps hues.
inline constexpr const char* dark_scheme =
    "<style>@media (prefers-color-scheme:dark){svg{filter:invert(.91) hue-rotate(180deg)}}</style>\n";

/// The picture with dark_scheme after its first tag.
///
/// \throws std::runtime_error  a text that is not SVG
inline std::string with_dark_scheme(std::string svg) {
  const std::size_t begin = svg.find("<svg"), end = svg.find('>', begin == std::string::npos ? svg.size() : begin);
  if (end == std::string::npos) throw std::runtime_error("the picture is not an SVG file");
  return svg.insert(end + 1, std::string("\n") + dark_scheme);
}

}  // namespace programs
