#include "runtime/training/slice_store.hpp"
namespace mneme {
namespace {

void add(run_digest& digest, const std::string& text) { digest.add(digest_of(std::as_bytes(std::span(text)))); }

void add(run_digest& digest, const at::Tensor& value) {
  tensor_map single;
  single.put("rows", value);
  digest.add(digest_of(single));
}

/// Adds the numbers of the rows, which identify rows of a permanent data set. Adds the content of a temporary data set.
void add(run_digest& digest, const sample_view& samples) {
  digest.add(samples.size());
  if (!samples.source)
    return;
  digest.add(samples.source->files_rows());
  if (samples.rows)
    digest.add(digest_of(std::as_bytes(std::span(*samples.rows))));
  if (!samples.source->is_temporary)
    return;
  add(digest, samples.source->vectors.defined() ? samples.source->vectors : samples.source->images);
  digest.add(digest_of(std::as_bytes(std::span(samples.source->labels))));
}

void add(run_digest& digest, const rng_key& key) {
  digest.add(key.seed);
  digest.add(key.purpose);
  digest.add(key.client.value);
  digest.add(key.task.value);
  digest.add(key.visit);
  digest.add(key.index);
}

void persist(archive& to, digest128& job) { to(job.high)(job.low); }

} // namespace

slice_store::slice_store(std::filesystem::path folder, checkpoint_label label)
    : folder_(std::move(folder)), label_(std::move(label)) {}

void slice_store::load() {
  std::map<digest128, slice_state> loaded;
  const auto read = [&](const checkpoint& kept) -> std::string {
    loaded.clear();
    for (auto states : kept.sections) {
      std::uint64_t count = 0;
      states(count);
      for (std::uint64_t i = 0; i < count; ++i) {
        digest128 job;
        persist(states, job);
        states(loaded[job]);
      }
      states.expect_end();
    }
    return {};
  };
  const auto search = find_checkpoint(folder_, label_, read);
  if (!search || !search->newest)
    return;
  const std::lock_guard lock(guard_);
  states_ = std::move(loaded);
}

digest128 slice_store::content_of(const program_job& job) {
  run_digest digest;
  add(digest, job.body->name());
  add(digest, job.body->identity());
  if (job.in)
    digest.add(digest_of(*job.in));
  add(digest, job.samples);
  add(digest, job.stream);
  return digest.value();
}

bool slice_store::holds_any() const {
  const std::lock_guard lock(guard_);
  return !states_.empty();
}

std::optional<slice_state> slice_store::find(const digest128& job) const {
  const std::lock_guard lock(guard_);
  const auto entry = states_.find(job);
  return entry == states_.end() ? std::nullopt : std::optional(entry->second);
}

void slice_store::put(const digest128& job, slice_state now) {
  const std::lock_guard lock(guard_);
  states_[job] = std::move(now);
}

void slice_store::erase(const digest128& job) {
  const std::lock_guard lock(guard_);
  states_.erase(job);
}

std::vector<std::pair<digest128, slice_state>> slice_store::states() const {
  const std::lock_guard lock(guard_);
  return {states_.begin(), states_.end()};
}

void slice_store::save() {
  if (folder_.empty())
    return;
  const std::lock_guard lock(writing_);
  auto known = states();
  if (known.empty()) {
    std::filesystem::remove_all(folder_);
    return;
  }
  archive saved;
  std::uint64_t count = known.size();
  saved(count);
  for (auto& [job, now] : known) {
    persist(saved, job);
    saved(now);
  }
  checkpoint_folder(folder_, label_, 1).write(std::span(&saved, 1));
}

} // namespace mneme
