#include "runtime/storage/checksummed_tensors.hpp"
#include "runtime/base/atomic_file.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/storage/parameters.hpp"
namespace mneme {
namespace {

constexpr const char* digest_key = "mneme_digest";

/// Digest of the tensors and of the file name, which identifies the inputs that they were computed from.
std::string digest_text(const std::filesystem::path& file, const tensor_map& tensors) {
  const auto name = file.filename().string();
  run_digest digest;
  digest.add(digest_of(std::as_bytes(std::span(name))));
  digest.add(digest_of(tensors));
  return hex_text(digest.value());
}

} // namespace

void write_checksummed_tensors(const std::filesystem::path& file, const tensor_map& tensors) {
  const auto bytes = safetensors_bytes(tensors, {{digest_key, digest_text(file, tensors)}});
  write_atomically(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

expected<tensor_map> read_checksummed_tensors(const std::filesystem::path& file) {
  safetensors_metadata texts;
  auto tensors = read_safetensors(file, &texts);
  if (!tensors)
    return tensors;
  const auto stated = texts.find(digest_key);
  if (stated == texts.end())
    return failed(file.string(), "the file has no digest of its content: it is damaged, or of an earlier version");
  if (const auto actual = digest_text(file, *tensors); stated->second != actual)
    return failed(file.string(), "the content of the file has the digest " + actual + ", but the file states " +
                                     stated->second + ": it is damaged, or was copied from another file");
  return tensors;
}

} // namespace mneme
