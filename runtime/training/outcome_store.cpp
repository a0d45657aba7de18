#include "runtime/training/outcome_store.hpp"
#include "runtime/storage/checksummed_tensors.hpp"
#include "runtime/training/feature_store.hpp"
#include "runtime/training/slice_store.hpp"
#include <ATen/Version.h>
namespace mneme {
namespace {

/// True if the file has exactly the tensors that the program declares.
bool is_outcome_of(const program_job& job, const tensor_map& kept) {
  const auto declared = job.body->outcome(job);
  if (declared.size() != kept.size())
    return false;
  for (const auto& tensor : declared) {
    const auto* const value = kept.find(tensor.name);
    if (!value || value->sizes() != at::IntArrayRef(tensor.shape) || value->scalar_type() != tensor.type)
      return false;
  }
  return true;
}

} // namespace

tensors_ref outcome_store::find(const program_job& job) {
  const auto file = file_of(job);
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    return nullptr;
  auto outcome = read_checksummed_tensors(file);
  if (outcome && !is_outcome_of(job, *outcome))
    outcome = failed(file.string(), "the file holds something other than the program's outcome");
  if (!outcome) {
    if (on_damage_)
      on_damage_(outcome.error());
    return nullptr;
  }
  return std::make_shared<const tensor_map>(std::move(*outcome));
}

void outcome_store::put(const program_job& job, const tensor_map& outcome) {
  std::filesystem::create_directories(folder_);
  write_checksummed_tensors(file_of(job), outcome);
}

std::filesystem::path outcome_store::file_of(const program_job& job) {
  run_digest name;
  name.add(slice_store::content_of(job));
  if (job.samples.source)
    name.add(content_of_rows(job.samples.source));
  const std::string processor = at::get_cpu_capability(); // part of the digest, because it selects the libraries'
                                                          // kernels and may thus change bits
  name.add(digest_of(std::as_bytes(std::span(processor))));
  return folder_ / (hex_text(name.value()) + ".safetensors");
}

digest128 outcome_store::content_of_rows(const std::shared_ptr<const dataset>& source) {
  const std::lock_guard lock(guard_);
  auto& [known, content] = contents_[source.get()];
  if (!known.expired())
    return content;
  run_digest digest;
  digest.add(content_of(*source));
  digest.add(digest_of(std::as_bytes(std::span(source->labels))));
  known = weak_handle(source);
  return content = digest.value();
}

} // namespace mneme
