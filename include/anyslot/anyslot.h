#pragma once

#include "anyslot/config.h"
#include "anyslot/engine.h"
#include "anyslot/inspect.h"
#include "anyslot/request.h"
#include "anyslot/result.h"
#include "anyslot/status.h"
