#include "terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace anyslot::cli {

namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Terminal standard_output() {
  Terminal terminal;
  if (::isatty(STDOUT_FILENO) != 1) return terminal;
  terminal.moves_cursor = variable("TERM") != "dumb" && !variable("TERM").empty();
  terminal.colours = terminal.moves_cursor && variable("NO_COLOR").empty();
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    terminal.columns = size.ws_col;
    terminal.rows = size.ws_row;
  }
  return terminal;
}

}  // namespace anyslot::cli
