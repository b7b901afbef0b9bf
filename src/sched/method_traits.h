#pragma once

#include "anyslot/config.h"
#include "plan/step_plan.h"

namespace anyslot {

/// What makes a method (docs/design.md, section 3). Read by expand_prompt alone.
struct MethodTraits {
  bool documents_alone;  // documents are encoded alone and shared, else in place
  KeyForm key_form;      // of document spans
  bool turned_copies;    // each request copies documents to private blocks, keys re-turned to their
                         // slot
  bool prefix_index;     // full text blocks are indexed and reused
  bool recompute_first_block;  // the first block of each document is recomputed in place
};

constexpr MethodTraits method_traits(Method method, bool mepic_recompute_first_block) {
  switch (method) {
    case Method::kLazy:
      return {true, KeyForm::kTurned, false, true, false};
    case Method::kBlock:
      return {true, KeyForm::kTurned, true, true, false};
    case Method::kMepic:
      return {true, KeyForm::kRaw, false, true, mepic_recompute_first_block};
    case Method::kPrefix:
      return {false, KeyForm::kTurned, false, true, false};
    case Method::kFull:
      return {false, KeyForm::kTurned, false, false, false};
  }
  return {};
}

}  // namespace anyslot
