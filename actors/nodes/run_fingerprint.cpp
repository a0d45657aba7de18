#include "actors/nodes/run_fingerprint.hpp"
#include <algorithm>
namespace mneme {
namespace {

constexpr std::int64_t clients_compared_max = 1000;

template <class T>
void add(digest_stream& to, const std::vector<T>& values) {
  to.add(std::as_bytes(std::span(values)));
}
void add(digest_stream& to, std::int64_t number) { to.add(std::as_bytes(std::span(&number, 1))); }
void add(digest_stream& to, const at::Tensor& values) {
  if (values.defined())
    to.add({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
}

std::string data_digest(const task_stream& tasks) {
  digest_stream digest;
  for (const auto* split : {tasks.train.get(), tasks.test.get()}) {
    add(digest, split->images);
    add(digest, split->vectors);
    add(digest, split->scale);
    add(digest, split->shift);
  }
  return hex_text(digest.value());
}

std::string order_digest(const task_stream& tasks) {
  digest_stream digest;
  add(digest, tasks.train->labels);
  add(digest, tasks.test->labels);
  for (const auto& task : tasks.tasks) {
    add(digest, task.train);
    add(digest, task.test);
  }
  return hex_text(digest.value());
}

std::int64_t clients_compared(const run_context& run) {
  return std::min(run.scenario.clients.count, clients_compared_max);
}

std::string partition_digest(const run_context& run) {
  digest_stream digest;
  for (std::uint32_t t = 0; t < run.tasks->tasks.size(); ++t)
    for (std::uint32_t c = 0; c < clients_compared(run); ++c)
      add(digest, run.rows->held({c}, {t}));
  return hex_text(digest.value());
}

/// Digest of sampled durations. Because nodes order jobs by due times, this digest detects math libraries that differ
/// in the last bits.
std::string times_digest(const run_context& run) {
  digest_stream digest;
  for (std::uint32_t c = 0; c < clients_compared(run); ++c) {
    add(digest, run.population->devices().compute_time({c}, {.rows = 1'000, .begins_round = true}).count());
    add(digest, run.population->devices().upload_time({.client = {c}, .bytes = 1'000'000}).count());
  }
  return hex_text(digest.value());
}

} // namespace

fingerprint_fields run_fingerprint(const run_context& run) {
  const auto kind = run.device.substr(0, run.device.find(':'));
  return {{"device", kind},
          {"data set", data_digest(*run.tasks)},
          {"class order", order_digest(*run.tasks)},
          {"partition", partition_digest(run)},
          {"times of clients", times_digest(run)}};
}

} // namespace mneme
