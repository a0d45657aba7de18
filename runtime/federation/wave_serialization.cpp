#include "runtime/federation/wave_serialization.hpp"
#include "runtime/federation/persisted_values.hpp"
namespace mneme {

// Structured bindings name every member, so that adding one fails to compile until this file handles it.

namespace {

void persist(archive& state, job_id& id) {
  auto& [assignment, stage, step] = id;
  state(assignment)(stage)(step);
}

void persist(archive& state, assignment& given) {
  auto& [id, client, in, memory, samples, seed, visit, task, observes] = given;
  state(id)(client)(in)(memory)(seed)(visit)(task)(observes);
  if (state.loading() && !in)
    throw archive_error("has an assignment without a broadcast");
}

void persist(archive& state, issued_job& issued) {
  auto& [id, key, rows, bytes, width, compute_duration] = issued;
  persist(state, id);
  state(key.kind)(key.options)(rows)(bytes)(width);
  if (state.loading() && (rows < 0 || bytes < 0 || width < 1))
    throw archive_error("has a job with a negative number of rows, or without a width");
}

void persist(archive& state, round_failure& failure) {
  auto& [last_job, client, round, reason] = failure;
  persist(state, last_job);
  state(client)(round)(reason);
}

void persist(archive& state, composition& ids);

/// Saves or loads a vector whose elements have a serialize_wave() function in this file.
template <class T>
void persist_each(archive& state, std::vector<T>& values) {
  std::uint64_t count = values.size();
  state(count);
  if (state.loading())
    values.clear(); // memory grows with the bytes actually read, so a forged count allocates nothing
  for (std::uint64_t i = 0; i < count; ++i)
    persist(state, state.loading() ? values.emplace_back() : values[i]);
}

void persist(archive& state, composition& ids) { persist_each(state, ids); }

/// The client memory is exchanged first: it may share tensors with the upload, and later messages send it again.
void serialize_wave(archive& state, client_result& result, tensor_exchange& shared) {
  auto& [upload, memory, rows, to_proxy, counts, losses] = result;
  state.exchanging (&shared)(memory);
  state.exchanging(nullptr)(upload)(rows)(to_proxy)(counts)(losses);
}

void serialize_wave(archive& state, finished_round& finished, tensor_exchange& shared) {
  auto& [id, result, bytes] = finished;
  state(id);
  serialize_wave(state, result, shared);
  for (auto& part : bytes) {
    state(part);
    if (state.loading() && part < 0)
      throw archive_error("has an upload of negative size");
  }
}

} // namespace

void serialize_wave(archive& state, start_rounds& wave, tensor_exchange& shared) {
  auto& [to, assignments, ready, at_once] = wave;
  state(to);
  state.exchanging(&shared);
  persist_each(state, assignments);
  state.exchanging(nullptr)(ready)(at_once);
  if (ready.size() != assignments.size())
    throw archive_error("has a number of times that differs from its assignments");
}

void serialize_wave(archive& state, release& command) {
  auto& [to, batches] = command;
  state(to);
  persist_each(state, batches);
}

void serialize_wave(archive& state, abandon& rounds) {
  auto& [to, assignments] = rounds;
  state(to)(assignments);
}

void serialize_wave(archive& state, wave_report& report, tensor_exchange& shared) {
  auto& [from, issued, released, finished, failed, last] = report;
  bool lists = released.has_value();
  state(from)(lists);
  persist_each(state, issued);
  if (lists)
    persist_each(state, released ? *released : released.emplace());
  std::uint64_t count = finished.size();
  state(count);
  for (std::uint64_t i = 0; i < count; ++i)
    serialize_wave(state, state.loading() ? finished.emplace_back() : finished[i], shared);
  persist_each(state, failed);
  state(last);
}

} // namespace mneme
