#include "guarded_task.h"

#include <exception>
#include <utility>

namespace anyslot::server {

Task guarded(Task task, Logger log) {
  return [task = std::move(task), log = std::move(log)] {
    try {
      task();
    } catch (const std::exception& error) {
      log->error("a task failed: {}", error.what());
    }
  };
}

}  // namespace anyslot::server
