#include "actors/protocol/checkpoint_state.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/federation/run_log.hpp"
#include "runtime/results/run_directory.hpp"
#include "runtime/storage/checkpoint_file.hpp"
#include "runtime/storage/parameters.hpp"
#include "tools/fuzz/decoders/decoder.hpp"
#include "tools/study/stored_run.hpp"
#include <algorithm>
namespace mneme::fuzz {
namespace {

constexpr std::size_t digest_bytes = 16;

/// Label with the scenario and program that the bytes state, so that the checkpoint matches the label.
checkpoint_label label_in(const std::vector<std::byte>& file) {
  constexpr std::size_t head_bytes = 12;
  checkpoint_label label;
  if (file.size() < head_bytes + digest_bytes)
    return label;
  try {
    archive head(std::make_shared<const std::vector<std::byte>>(file), head_bytes,
                 file.size() - head_bytes - digest_bytes);
    head(label);
  } catch (const archive_error&) {
  }
  return label;
}

/// Reads the recorder's section to its end, and the run's section up to the values of the method.
std::string refusal_of(const checkpoint& found) {
  if (found.sections.size() != checkpoint_parts)
    return "it has other parts";
  auto recorder = found.sections[recorder_part], run = found.sections[run_part];
  recorder_snapshot recorded;
  recorder(recorded);
  recorder.expect_end();
  run_log log(false);
  log.persist(run);
  return "";
}

/// Reads a checkpoint that has a valid checksum and otherwise any content.
void read_checkpoint(bytes in) {
  const auto all = std::as_bytes(in);
  std::vector<std::byte> file(all.begin(), all.end());
  if (file.size() >= digest_bytes) {
    const auto sum = digest_of(std::span(file).first(file.size() - digest_bytes));
    std::copy_n(reinterpret_cast<const std::byte*>(&sum), digest_bytes, file.end() - digest_bytes);
  }
  const auto path =
      file_of({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, "checkpoints/0000000001.checkpoint");
  (void)find_checkpoint(path.parent_path(), label_in(file), refusal_of);
}

/// Reads tensor maps as checkpoints and messages contain them.
void read_tensors(bytes in) {
  const auto all = std::as_bytes(in);
  const auto buffer = std::make_shared<const std::vector<std::byte>>(all.begin(), all.end());
  try {
    archive content(buffer, 0, buffer->size());
    std::vector<tensors_ref> several;
    std::map<std::uint32_t, tensor_map> named;
    content(named)(several);
    content.expect_end();
  } catch (const archive_error&) {
  }
}

void read_safetensors_file(bytes in) { (void)read_safetensors(file_of(in, "w.safetensors")); }

void read_run_json(bytes in) {
  const auto file = file_of(in, "run.json");
  (void)parse_origin(file);
  (void)status_in(file);
}

/// Reads a run directory in which one file has fuzzed content; the first byte selects the file. The others are valid.
void read_run_folder(bytes in) {
  if (in.empty())
    return;
  struct content {
    const char *name, *text;
  };
  static constexpr std::array<content, 4> files{
      {{"summary.json", "{\"status\": \"done\", \"run_digest\": \"0\", \"version\": \"0.1.0\"}\n"},
       {"metrics.jsonl", "{\"task\": 1, \"round\": 1, \"virtual_time\": 1.5, \"accuracy\": 50.0}\n"},
       {"timeline.jsonl", ""},
       {"scenario.toml", "seed = 1\n[rounds]\ncohort = 2\n"}}};
  std::filesystem::path folder;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string_view text = files[i].text;
    const bytes honest(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    folder = file_of(i == in.front() % files.size() ? in.subspan(1) : honest, std::string("run/") + files[i].name)
                 .parent_path();
  }
  (void)read_stored_run(folder);
  (void)read_evaluations(folder);
  (void)read_timeline(folder);
}

} // namespace

std::vector<decoder> state_decoders() {
  return {{"state", "checkpoint", read_checkpoint},
          {"state", "tensors", read_tensors},
          {"state", "safetensors", read_safetensors_file},
          {"state", "run_json", read_run_json},
          {"state", "run_folder", read_run_folder}};
}

} // namespace mneme::fuzz
