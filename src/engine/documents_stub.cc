#include "anyslot/engine.h"
namespace anyslot {
namespace { Status none() { return internal_error("not yet"); } }
Expected<CachedDocument> Engine::register_document(const Segment&, const DocumentOptions&) { return none(); }
void Engine::register_document(const Segment&, const DocumentOptions&, std::function<void(Expected<CachedDocument>)> done) { done(none()); }
std::vector<CachedDocument> Engine::documents(const std::string&) const { return {}; }
Status Engine::pin_document(const std::string&, const std::string&) { return none(); }
Status Engine::unpin_document(const std::string&, const std::string&) { return none(); }
Status Engine::remove_document(const std::string&, const std::string&) { return none(); }
}
