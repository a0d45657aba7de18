#include "runtime/modules/load_module.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/base/exception_message.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/modules/exported_archive.hpp"
#include "runtime/modules/module_file.hpp"
#include "runtime/modules/module_memory.hpp"
#include "runtime/modules/module_probe.hpp"
#include "runtime/modules/module_sandbox.hpp"
#include "runtime/modules/native_net.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
namespace mneme {
namespace {

expected<std::vector<std::uint8_t>> content_of(const std::filesystem::path& path) {
  auto file = disk_file::open(path);
  if (!file)
    return tl::unexpected(file.error());
  std::vector<std::uint8_t> bytes(file->size_bytes());
  const auto filled = file->read(bytes);
  if (!filled)
    return tl::unexpected(filled.error());
  if (*filled < bytes.size())
    return failed(path.string(), "the file shrank while it was read");
  return bytes;
}

/// Replaces bytes that a terminal cannot print; names in a damaged file may contain any byte.
std::string plain_text(std::string text) {
  for (auto& letter : text)
    if (static_cast<unsigned char>(letter) >= 0x80)
      letter = '?';
  return printable(text);
}

/// The entries of the archive, or a diagnostic if the file is no valid archive.
expected<std::vector<zip_entry>> entries_of(const std::string& name, std::span<const std::uint8_t> bytes) {
  constexpr std::array<std::uint8_t, 2> zip_start{'P', 'K'};
  constexpr std::uint8_t pickle_start = 0x80;
  if (!bytes.empty() && bytes[0] == pickle_start)
    return failed(name,
                  fmt::format("the file is one of torch.save, a state_dict or a pickled net; expected an exported "
                              "program (.pt2): {}. Weights alone are model.weights, as safetensors",
                              exported::export_advice));
  if (bytes.size() < zip_start.size() || !std::equal(zip_start.begin(), zip_start.end(), bytes.begin()))
    return failed(name, fmt::format("the file is no zip archive; expected an exported program (.pt2): {}",
                                    exported::export_advice));
  const auto entries = zip_entries(bytes, inflated_bytes_max);
  if (!entries)
    return failed(fmt::format("{}: byte {}", name, entries.error().byte), plain_text(entries.error().text));
  return *entries;
}

tl::unexpected<diagnostics> all_failed(const std::string& name, const std::vector<std::string>& texts) {
  diagnostics problems;
  for (const auto& text : texts)
    problems.push_back({name, plain_text(text)});
  return tl::unexpected(std::move(problems));
}

/// A module, and the result of its probe if a sandbox process has run it.
struct graph_and_trial {
  std::shared_ptr<const module_graph> graph{};
  std::optional<probe_result> tried{};
};
using read_graph = tl::expected<graph_and_trial, std::vector<std::string>>;

/// Probes the module in a sandbox process. Returns nullopt if no sandbox was requested or available.
tl::expected<std::optional<probe_result>, std::vector<std::string>>
probe_in_sandbox(std::span<const std::uint8_t> bytes, const module_requirements& requirements) {
  if (!requirements.guards.sandbox)
    return std::nullopt;
  auto answer = run_in_sandbox(bytes, {.input = requirements.input,
                                       .form = requirements.form,
                                       .tokens = requirements.tokens,
                                       .own_rows = requirements.own_rows,
                                       .trained = requirements.trained,
                                       .training = requirements.training,
                                       .seconds = requirements.guards.sandbox_seconds,
                                       .memory_bytes = requirements.guards.sandbox_memory_bytes});
  if (answer.verdict == sandbox_status::accepted)
    return answer.found;
  if (answer.verdict == sandbox_status::refused)
    return tl::unexpected(std::move(answer.reasons));
  if (requirements.native_code)
    return std::nullopt;
  return tl::unexpected(
      std::vector{fmt::format("a module is first tried in a sandbox, which this machine does not support ({}). If you "
                              "trust the module's author, set model.native_code = true; the checks of the file remain",
                              fmt::join(answer.reasons, "; "))});
}

read_graph read_checked(std::span<const std::uint8_t> bytes, const std::vector<zip_entry>& entries,
                        const module_requirements& requirements) {
  auto tried = probe_in_sandbox(bytes, requirements);
  if (!tried)
    return tl::unexpected(std::move(tried.error()));
  if (requirements.device != "cpu") // on other devices, the bits of results differ
    tried->reset();
  auto graph = read_module_graph(bytes, entries, at::Device(requirements.device));
  if (!graph)
    return tl::unexpected(std::vector{std::move(graph.error())});
  return graph_and_trial{std::move(*graph), *tried};
}

/// Calls act(). Converts a lack of memory to an error.
template <class Act>
auto with_memory_error(const Act& act) -> decltype(act()) {
  try {
    return act();
  } catch (const std::bad_alloc&) {
    return tl::unexpected(std::vector<std::string>{"the module needs more memory than there is"});
  }
}

/// Memory limit of a probe in bytes. It is the same in this process and in a sandbox process.
std::int64_t trial_bytes_max(std::size_t file_bytes, const module_guards& guards) {
  return guards.sandbox_memory_bytes > 0 ? guards.sandbox_memory_bytes
                                         : (std::int64_t{4} << 30) + 8 * static_cast<std::int64_t>(file_bytes);
}

/// Diagnostics for a module that could not be read or probed.
tl::unexpected<diagnostics> load_failure(const std::string& name, const std::vector<std::string>& texts,
                                         const module_memory& memory) {
  return memory.is_exceeded()
             ? failed(name, fmt::format("forward needs more than the {} bytes of memory that its trial may take (up to "
                                        "16 rows a call)",
                                        memory.bytes_max()))
             : all_failed(name, texts);
}

/// Adds the net of mneme's layers, or the reasons why there is none.
void add_native_net(const std::shared_ptr<const module_graph>& graph, const module_rows& rows, module_shape& shape) {
  const auto* const exported = dynamic_cast<const exported_graph*>(graph.get());
  if (exported == nullptr)
    return;
  auto native = make_native_net(*exported, module_net(graph, shape), shape, rows);
  if (native.net)
    shape.native = std::move(native.net);
  else
    shape.unfused = unfused_text(native);
}

} // namespace

expected<std::shared_ptr<const module_net>> load_module(const std::filesystem::path& file,
                                                        const module_requirements& requirements) try {
  disable_intra_op_threads(); // as training jobs do
  const auto name = file.string();
  const auto bytes = content_of(file);
  if (!bytes)
    return tl::unexpected(bytes.error());
  const auto entries = entries_of(name, *bytes);
  if (!entries)
    return tl::unexpected(entries.error());
  const at::Device device(requirements.device);
  const module_memory memory(trial_bytes_max(bytes->size(), requirements.guards));
  auto read = with_memory_error([&] { return read_checked(*bytes, *entries, requirements); });
  if (!read)
    return load_failure(name, read.error(), memory);
  const auto rows = rows_of_trial(
      *read->graph, {.input = requirements.input, .form = requirements.form, .tokens = requirements.tokens},
      requirements.own_rows);
  if (!rows)
    return failed(name, rows.error());
  const probe_requirements asked{
      .trained = requirements.trained, .training = requirements.training, .rows_max = rows->most};
  const auto tried = read->tried
                         ? tl::expected<probe_result, std::vector<std::string>>(*read->tried)
                         : with_memory_error([&] { return probe_module(*read->graph, rows->rows, device, asked); });
  if (!tried)
    return load_failure(name, tried.error(), memory);
  const auto classes = requirements.head == head_kind::none ? 0 : requirements.classes;
  if (requirements.scores && classes > 0 && tried->width != classes)
    return failed(name, fmt::format("forward returns {} numbers for a row, but the run has {} classes; with "
                                    "model.module_output = \"features\" the run adds a head",
                                    tried->width, classes));
  const bool in_training = requirements.trained && requirements.training && read->graph->has_training_mode();
  module_shape shape{.file = name,
                     .digest = hex_text(digest_of(std::as_bytes(std::span(*bytes)))),
                     .input = rows->rows.input,
                     .form = rows->rows.form,
                     .width = tried->width,
                     .classes = classes,
                     .scores = requirements.scores,
                     .head = requirements.head,
                     .trained = requirements.trained,
                     .training = in_training,
                     .rows_at_once = tried->rows_at_once,
                     .row_bytes = tried->row_bytes};
  if (requirements.fused)
    add_native_net(read->graph, rows->rows, shape);
  return std::make_shared<const module_net>(std::move(read->graph), std::move(shape));
} catch (const std::bad_alloc&) {
  return failed(file.string(), "the module needs more memory than is available");
}

namespace {

/// Form of the rows that the program was exported with. Throws std::runtime_error if a size other than the number of
/// rows is not fixed.
module_rows rows_of_export(const exported_program& program) {
  auto sizes = program.row_sizes;
  if (sizes.size() < 2 || sizes.size() > 4 || sizes.size() == 3 ||
      std::any_of(sizes.begin() + 1, sizes.end(), [](std::int64_t size) { return size <= 0; }))
    throw std::runtime_error("its rows are neither images [B, C, H, W] nor numbers or tokens [B, F] of fixed size");
  module_rows rows{.input = {1, 1, sizes[1]}, .form = row_form::numbers};
  if (sizes.size() == 4)
    rows = {.input = {sizes[1], sizes[2], sizes[3]}, .form = row_form::images};
  for (const auto& call : program.calls)
    if (call.name == "embedding" && rows.form == row_form::numbers)
      for (const auto& operand : call.operands)
        for (const auto& held : program.held)
          if (operand.place == 0 && held.slot == operand.items[0].slot) {
            rows.form = row_form::tokens;
            rows.tokens = program.tensors[held.tensor].value.size(0);
          }
  return rows;
}

expected<module_layers> layers_of_file(const std::filesystem::path& file) {
  const auto name = file.string();
  const auto bytes = content_of(file);
  if (!bytes)
    return tl::unexpected(bytes.error());
  const auto entries = entries_of(name, *bytes);
  if (!entries)
    return tl::unexpected(entries.error());
  auto read = exported_graph::read(*bytes, *entries, at::kCPU);
  if (!read)
    return failed(name, plain_text(read.error()));
  module_layers made;
  const auto error = exception_message_of([&] {
    const auto graph = std::make_shared<const exported_graph>(std::move(*read));
    const auto rows = rows_of_export(graph->program());
    const auto tried = probe_module(*graph, rows, at::kCPU, {});
    if (!tried)
      throw std::runtime_error(fmt::format("{}", fmt::join(tried.error(), "; ")));
    const module_shape shape{.file = name,
                             .input = rows.input,
                             .form = rows.form,
                             .width = tried->width,
                             .classes = tried->width,
                             .scores = true,
                             .trained = true,
                             .training = true,
                             .rows_at_once = tried->rows_at_once,
                             .row_bytes = tried->row_bytes};
    auto native = make_native_net(*graph, module_net(graph, shape), shape, rows);
    if (!native.net || !native.note.empty()) {
      made.unfused = native.net ? native.note : unfused_text(native);
      return;
    }
    const auto ours = [&](const std::string& theirs) {
      const auto renamed = native.described.renamed.find(theirs);
      return renamed == native.described.renamed.end() ? theirs : renamed->second;
    };
    made.layers = native.described.layers;
    for (const auto& entry : native.net->layout())
      made.names.emplace_back(entry.name, ours(entry.name));
    for (const auto& frozen : native.described.frozen)
      made.frozen.push_back(ours(frozen));
  });
  if (!error.empty())
    return failed(name, plain_text(error));
  return made;
}

} // namespace

const module_registration module_line{
    {.load = [](const std::filesystem::path& file, const module_requirements& requirements)
         -> expected<std::shared_ptr<const user_module>> { return load_module(file, requirements); },
     .layers = layers_of_file,
     .set_sandbox_program = set_probe_program,
     .sandbox_main = run_probe_process}};

} // namespace mneme
