#include "anyslot/config.h"
#include "anyslot/result.h"
#include "base/compute_type.h"

namespace anyslot {

std::string_view method_name(Method method) {
  switch (method) {
    case Method::kLazy:
      return "lazy";
    case Method::kBlock:
      return "block";
    case Method::kMepic:
      return "mepic";
    case Method::kPrefix:
      return "prefix";
    case Method::kFull:
      return "full";
  }
  return "?";
}

Expected<Method> parse_method(std::string_view name) {
  for (const Method method : kAllMethods) {
    if (name == method_name(method)) return method;
  }
  return invalid_argument("unknown method '" + std::string(name) +
                          "'; use lazy, block, mepic, prefix or full");
}

std::string_view compute_type_name(ComputeType type) { return dtype_name(dtype_of(type)); }

Expected<ComputeType> parse_compute_type(std::string_view name) {
  for (const ComputeType type :
       {ComputeType::kBFloat16, ComputeType::kFloat16, ComputeType::kFloat32}) {
    if (name == compute_type_name(type)) return type;
  }
  return invalid_argument("unknown dtype '" + std::string(name) +
                          "'; use bfloat16, float16 or float32");
}

std::string_view weight_type_name(WeightType type) {
  return type == WeightType::kInt8 ? "int8" : "dtype";
}

Expected<WeightType> parse_weight_type(std::string_view name) {
  if (name == "dtype") return WeightType::kComputeType;
  if (name == "int8") return WeightType::kInt8;
  return invalid_argument("unknown type of weights '" + std::string(name) + "'; use dtype or int8");
}

std::string_view kv_cache_type_name(KvCacheType type) {
  return type == KvCacheType::kFp8E4M3 ? dtype_name(DType::kFloat8E4M3) : "auto";
}

Expected<KvCacheType> parse_kv_cache_type(std::string_view name) {
  if (name == "auto") return KvCacheType::kComputeType;
  if (name == "fp8" || name == "fp8_e4m3") return KvCacheType::kFp8E4M3;
  return invalid_argument("unknown type of cached KV '" + std::string(name) +
                          "'; use auto, fp8 or fp8_e4m3");
}

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "?";
}

std::string_view document_source_name(DocumentSource source) {
  switch (source) {
    case DocumentSource::kPool:
      return "pool";
    case DocumentSource::kJoined:
      return "joined";
    case DocumentSource::kComputed:
      return "computed";
  }
  return "?";
}

}  // namespace anyslot
