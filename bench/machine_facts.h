#pragma once

#include "report.h"

namespace anyslot::bench {

/// What every report says of its run: version, processor.
Report::Facts machine_facts();

}  // namespace anyslot::bench
