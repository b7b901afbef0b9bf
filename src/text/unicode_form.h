#pragma once

#include "text/normalizer.h"

namespace anyslot {

/// The text in a normalization form. Time grows as n log n.
MarkedText in_unicode_form(UnicodeForm form, const MarkedText& source);

}  // namespace anyslot
