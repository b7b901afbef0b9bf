#pragma once

#include <span>
#include <string_view>

namespace anyslot::server {

/// A file of www/, as the build embedded it (cmake/EmbedFiles.cmake).
struct PageFile {
  std::string_view name;    // its path in www/: "page/main.mjs"
  std::string_view digest;  // hexadecimal, of its bytes
  std::string_view bytes;
};

std::span<const PageFile> page_files();

}  // namespace anyslot::server
