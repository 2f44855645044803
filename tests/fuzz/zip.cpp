/// \file
/// Fuzz target: a zip archive and its first entries.
#include "sheafnn/io/zip.hpp"

#include "contract.hpp"

// Deflate makes at most 1032 bytes of one; the buffer that they go to is doubled, so that two generations of it exist.
SHEAFNN_FUZZ_TARGET(zip, 3 * 1032, 1 << 18) {
  fuzz::keeps_contract<std::runtime_error>([&] {
    const sheafnn::io::ZipArchive archive("a.zip", sheafnn::io::Bytes(input.begin(), input.end()));
    std::size_t left = 8;
    for (const sheafnn::io::ZipEntry& entry : archive.entries()) {
      if (left-- == 0) break;
      fuzz::expect(archive.find(entry.name) != nullptr, "zip: an entry that is not found");
      fuzz::keeps_contract<std::runtime_error>(
          [&] { fuzz::expect(archive.read(entry).size() == entry.size, "zip: size of an entry"); });
    }
  });
}
