#pragma once

#include <string>

#include "anyslot/status.h"

namespace anyslot::cli {

/// What ships with the program.
struct BundledData {
  std::string model;  // folder of rag-demo-14m
  std::string
      questions;  // questions with answers over 20 documents, rows as `anyslot run` reads them
};

/// Looks in ../share/anyslot beside the program's folder, then in the tree it was built from. Fails
/// with kNotFound, naming the places and the cure.
Expected<BundledData> find_bundled_data();

}  // namespace anyslot::cli
