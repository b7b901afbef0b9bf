#include "anyslot/engine.h"

namespace anyslot {

// Readers stand in one file with what puts a request together for the engine. No fuzzer does that,
// and no engine is linked.

Expected<std::vector<Segment>> Engine::render_chat(
    const std::vector<ChatMessage>& /*messages*/,
    const std::vector<Document>& /*documents*/) const {
  __builtin_trap();
}

const ModelInfo& Engine::model() const { __builtin_trap(); }

}  // namespace anyslot
