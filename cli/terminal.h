#pragma once

namespace anyslot::cli {

/// What standard output can show.
struct Terminal {
  bool moves_cursor = false;  // it is a terminal, and not a dumb one
  bool colours = false;       // and NO_COLOR (no-color.org) is not set
  int columns = 80;
  int rows = 24;
};

Terminal standard_output();

}  // namespace anyslot::cli
