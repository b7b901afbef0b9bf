#include "model/gguf/gguf_file.h"

#include <algorithm>
#include <utility>

#include "model/json_file.h"
#include "model/weight_digest.h"

namespace anyslot {

namespace {

Status check_kind(const GgufFile& file) {
  Status status;
  const GgufFields fields(file, status);
  const int64_t parts = fields.integer("split.count").value_or(1);
  if (parts > 1) {
    fields.fail("split.count", "is " + std::to_string(parts) +
                                   ": the model is split into that many files; join them first: "
                                   "llama-gguf-split --merge FIRST-PART OUTPUT");
  }
  const std::string_view kind = fields.text("general.type").value_or("model");
  if (kind != "model") {
    fields.fail("general.type",
                "is " + quote_name(kind) + "; only files of whole models can be loaded");
  }
  // Blocks are laid out anew with each version.
  constexpr int64_t kQuantization = 2;
  const int64_t quantization =
      fields.integer("general.quantization_version").value_or(kQuantization);
  if (quantization != kQuantization && std::ranges::any_of(file.tensors(), [](const auto& entry) {
        return !entry.second.type->dtype.has_value();
      })) {
    fields.fail("general.quantization_version",
                "is " + std::to_string(quantization) + "; only 2 can be read");
  }
  return status;
}

}  // namespace

GgufFile::GgufFile(MappedFile file, GgufHeader header)
    : file_(std::move(file)), header_(std::move(header)) {}

Expected<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path) {
  Expected<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) return mapped.status();
  Expected<GgufHeader> header = parse_gguf_header(path, mapped->bytes());
  if (!header) return header.status();
  std::shared_ptr<const GgufFile> file(new GgufFile(std::move(*mapped), std::move(*header)));
  if (Status status = check_kind(*file); !status) return status;
  return file;
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
  const auto tensor = header_.tensors.find(name);
  return tensor == header_.tensors.end() ? nullptr : &tensor->second;
}

std::span<const std::byte> GgufFile::data(const GgufTensor& tensor) const {
  return file_.bytes().subspan(tensor.begin, tensor.end - tensor.begin);
}

Digest GgufFile::fingerprint() const {
  size_t total = 0;
  for (const auto& [name, tensor] : header_.tensors) total += tensor.end - tensor.begin;
  WeightDigest digest(total);
  for (const auto& [name, tensor] : header_.tensors) {
    digest.add(name, std::string("GGUF ") + tensor.type->name, tensor.shape, data(tensor));
  }
  return digest.finish();
}

bool GgufFields::has(std::string_view key) const { return find(key) != nullptr; }

const GgufValue* GgufFields::find(std::string_view key) const {
  const auto entry = file_->metadata().find(key);
  return entry == file_->metadata().end() ? nullptr : &entry->second;
}

template <typename T>
const T* GgufFields::find_as(std::string_view key, std::string_view wanted) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return nullptr;
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) fail(key, "must be " + std::string(wanted));
  return typed;
}

std::optional<bool> GgufFields::boolean(std::string_view key) const {
  const bool* value = find_as<bool>(key, "true or false");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<int64_t> GgufFields::integer(std::string_view key) const {
  const auto* value = find_as<int64_t>(key, "a whole number");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<double> GgufFields::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* whole = std::get_if<int64_t>(value)) return static_cast<double>(*whole);
  const auto* number = find_as<double>(key, "a number");
  return number == nullptr ? std::nullopt : std::optional(*number);
}

std::optional<std::string_view> GgufFields::text(std::string_view key) const {
  const auto* value = find_as<std::string_view>(key, "a string");
  return value == nullptr ? std::nullopt : std::optional(*value);
}

template <typename T, typename Convert>
std::vector<T> GgufFields::list(std::string_view key, std::string_view wanted,
                                const Convert& convert) const {
  const auto* list = find_as<GgufArray>(key, "a list");
  std::vector<T> values;
  if (list == nullptr) return values;
  values.reserve(list->numbers.empty() ? 0 : list->count);
  for (size_t i = 0; i < list->count; ++i) {
    const std::optional<T> value = convert(list->numbers.empty() ? false : list->number(i));
    if (!value) {
      fail(key, "must be a list of " + std::string(wanted));
      return {};
    }
    values.push_back(*value);
  }
  return values;
}

std::vector<int64_t> GgufFields::integers(std::string_view key) const {
  return list<int64_t>(key, "whole numbers", [](const GgufNumber& number) {
    const auto* whole = std::get_if<int64_t>(&number);
    return whole == nullptr ? std::nullopt : std::optional(*whole);
  });
}

std::vector<double> GgufFields::numbers(std::string_view key) const {
  return list<double>(key, "numbers", [](const GgufNumber& number) -> std::optional<double> {
    if (const auto* whole = std::get_if<int64_t>(&number)) return static_cast<double>(*whole);
    const auto* other = std::get_if<double>(&number);
    return other == nullptr ? std::nullopt : std::optional(*other);
  });
}

std::span<const std::string_view> GgufFields::texts(std::string_view key) const {
  const auto* list = find_as<GgufArray>(key, "a list");
  if (list == nullptr) return {};
  if (list->strings.size() != list->count) fail(key, "must be a list of strings");
  return list->strings;
}

void GgufFields::fail(std::string_view key, const std::string& what) const {
  fail(failed_precondition(file_->path() + ": " + std::string(key) + " " + what));
}

void GgufFields::fail(const Status& status) const {
  if (status_->ok()) *status_ = status;
}

}  // namespace anyslot
