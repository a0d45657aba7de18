#include "runtime/scenario/checks.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/data/data_sources.hpp"
#include "runtime/data/task_sizes.hpp"
#include "runtime/method/strategy.hpp"
#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/named_paths.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overread" // false positive of g++ 12 when a string is moved into a vector
#endif
namespace mneme {
namespace {

using remarks = std::vector<scenario_finding>;

bool is_synthetic(const scenario& s) { return data_source_named(s.data.name).from_seed; }

/// Number of classes of the run, if the scenario alone determines it. Returns 0 if it depends on the data.
std::int64_t known_classes(const scenario& s) {
  if (s.tasks.classes > 0)
    return s.tasks.classes;
  return is_synthetic(s) ? s.data.classes : 0;
}

void check_data(const scenario& s, remarks& out) {
  if (const auto axes = s.data.shape.size(); is_synthetic(s) && axes != 1 && axes != 3)
    out.push_back({{"data.shape"},
                   fmt::format("data.shape: expected [features] or [channels, height, width], found {} "
                               "numbers",
                               axes)});
  if (const bool any = s.data.name == "folder"; s.data.side < 8 && !(any && s.data.side == 0))
    out.push_back({{"data.side", "data.name"},
                   fmt::format("data.side = {}: expected 8 to 1024{}", s.data.side,
                               any ? ", or 0 to keep the common size of all images" : "")});
  if (s.data.channels == 2)
    out.push_back({{"data.channels"}, "data.channels = 2: expected 1 (gray), 3 (color) or 0 (as in the images)"});
  const bool makes_tokens = is_synthetic(s) && s.data.tokens > 0;
  if (!makes_tokens && !data_source_named(s.data.name).holds_tokens)
    return;
  const std::string source_key = makes_tokens ? "data.vocabulary_size" : "data.name";
  const auto because = makes_tokens ? std::string("data.vocabulary_size makes token rows")
                                    : fmt::format("the rows of \"{}\" are tokens", s.data.name);
  if (makes_tokens && s.data.shape.size() > 1)
    out.push_back(
        {{"data.shape", "data.vocabulary_size"},
         fmt::format("data.shape: expected [tokens of a row], because data.vocabulary_size = {}; found {} numbers",
                     s.data.tokens, s.data.shape.size())});
  const bool moves = s.tasks.transform == task_transform::permute || s.tasks.transform == task_transform::affine;
  if (moves && s.tasks.kind == task_kind::domain_incremental)
    out.push_back(
        {{"tasks.transform", source_key},
         fmt::format("tasks.transform: expected \"class-blocks\", because {}, but other transforms move pixels",
                     because)});
  if (s.training.augment != augmentation_kind::none)
    out.push_back(
        {{"training.augment", source_key},
         fmt::format("training.augment: expected \"none\", because {}, but augmentation moves pixels", because)});
}

/// Rejects resize and crop together with a task transform that moves pixels; their combination is undefined.
void check_sizes(const scenario& s, remarks& out) {
  const bool moves = s.tasks.kind == task_kind::domain_incremental &&
                     (s.tasks.transform == task_transform::permute || s.tasks.transform == task_transform::affine);
  if (!moves)
    return;
  const auto refuse = [&](const char* key, const char* expected) {
    out.push_back({{key, "tasks.transform"},
                   fmt::format("{}: expected {}, because tasks.transform moves pixels of images in their original size",
                               key, expected)});
  };
  if (s.data.resize > 0)
    refuse("data.resize", "0");
  if (s.data.crop > 0)
    refuse("data.crop", "0");
  if (s.training.augment == augmentation_kind::resized_crop_flip)
    refuse("training.augment", "a value other than \"resized-crop-flip\"");
}

void check_class_order(const scenario& s, remarks& out) {
  const auto* word = std::get_if<std::string>(&s.tasks.class_order);
  const auto source = data_source_named(s.data.name);
  const bool hundred = (source.from_seed ? s.data.classes : source.classes) == 100;
  if (word && *word == "icarl87" && !hundred)
    out.push_back({{"tasks.class_order", "data.name", "data.classes"},
                   fmt::format("tasks.class_order = \"icarl87\": an order of 100 classes, but data.name = \"{}\" has "
                               "another number; expected \"natural\", \"seeded\", \"np1993\" or a list",
                               s.data.name)});
  if (word)
    return;
  const auto& order = std::get<1>(s.tasks.class_order);
  auto sorted = order;
  std::sort(sorted.begin(), sorted.end());
  const auto lead = fmt::format("tasks.class_order: expected each of the classes 0 to {} once", std::ssize(order) - 1);
  if (order.empty())
    out.push_back({{"tasks.class_order"}, "tasks.class_order = []: expected every class once, found none"});
  else if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    out.push_back({{"tasks.class_order"}, fmt::format("{}, found {} twice", lead, *twice)});
  else if (sorted.back() != std::ssize(order) - 1)
    out.push_back({{"tasks.class_order"}, fmt::format("{}, found {}", lead, sorted.back())});
  else if (is_synthetic(s) && std::ssize(order) != s.data.classes)
    out.push_back({{"tasks.class_order", "data.classes"},
                   fmt::format("tasks.class_order: expected all {} classes (data.classes), found {}", s.data.classes,
                               order.size())});
}

void check_class_incremental(const scenario& s, remarks& out) {
  const auto& tasks = s.tasks;
  const auto total = known_classes(s);
  if (tasks.transform != task_transform::none)
    out.push_back({{"tasks.transform", "tasks.kind"},
                   "tasks.transform: class-incremental tasks have none; expected \"none\", or tasks.kind = "
                   "\"domain-incremental\""});
  if (is_synthetic(s) && tasks.classes > s.data.classes)
    out.push_back({{"tasks.classes", "data.classes"},
                   fmt::format("tasks.classes = {}: expected at most the {} classes of the data (data.classes)",
                               tasks.classes, s.data.classes)});
  if (total == 0)
    return;
  if (const auto sizes = task_sizes(tasks, total); !sizes) {
    scenario_finding impossible{{sizes.error().key}, sizes.error().text};
    for (const char* key : {"tasks.count", "tasks.sizes", "tasks.first_classes", "tasks.classes", "data.classes"})
      if (key != sizes.error().key)
        impossible.keys.emplace_back(key);
    out.push_back(std::move(impossible));
  }
}

void check_domains(const scenario& s, remarks& out) {
  const auto source = data_source_named(s.data.name);
  if (s.tasks.transform != task_transform::domains || s.tasks.count == 1 || source.has_domains || source.name.empty())
    return;
  std::vector<std::string> names;
  for (const auto& other : data_sources())
    if (other.has_domains)
      names.push_back(other.name);
  out.push_back({{"tasks.transform", "data.name"},
                 fmt::format("tasks.transform = \"domains\": \"{}\" has no domains; expected another transform, or a "
                             "data set with domains: {}",
                             s.data.name, fmt::join(names, ", "))});
}

void check_tasks(const scenario& s, remarks& out) {
  const auto& tasks = s.tasks;
  check_sizes(s, out);
  check_class_order(s, out);
  if (tasks.kind == task_kind::class_incremental)
    check_class_incremental(s, out);
  if (tasks.kind != task_kind::domain_incremental)
    return;
  if (tasks.transform == task_transform::none)
    out.push_back({{"tasks.kind", "tasks.transform"},
                   "tasks.kind = \"domain-incremental\": needs tasks.transform; set it to \"permute\", \"affine\", "
                   "\"domains\" or \"class-blocks\""});
  check_domains(s, out);
  if (tasks.transform != task_transform::class_blocks)
    return;
  if (tasks.classes_per_task == 0)
    out.push_back({{"tasks.transform", "tasks.classes_per_task"},
                   "tasks.transform = \"class-blocks\": needs tasks.classes_per_task >= 1"});
  else if (is_synthetic(s) && tasks.count > s.data.classes / tasks.classes_per_task)
    out.push_back(
        {{"tasks.classes_per_task", "tasks.count", "data.classes"},
         fmt::format(
             "tasks.classes_per_task = {}: {} tasks of {} classes exceed the {} classes of the data (data.classes)",
             tasks.classes_per_task, tasks.count, tasks.classes_per_task, s.data.classes)});
}

/// Describes every invalid change in a row of the enrollment table. @pre the row has legal letters
std::vector<std::string> row_complaints(const std::string& row, std::int64_t tasks) {
  if (std::ssize(row) != tasks)
    return {fmt::format("expected a letter for each of {} tasks, found {}", tasks, row.size())};
  if (const auto bad = row.find_first_not_of("AOX"); bad != std::string::npos)
    return {fmt::format("expected the letters A (active), O (left) and X (not yet) only; see letter {}", bad + 1)};
  std::vector<std::string> names;
  if (row.front() == 'O')
    names.emplace_back("a client cannot have left before the first task; expected A or X first");
  for (std::size_t t = 1; t < row.size(); ++t)
    if (const auto step = row.substr(t - 1, 2); step[0] != step[1] && step != "XA" && step != "AO")
      names.push_back(
          fmt::format("task {} changes {} to {}; possible changes are X to A and A to O", t + 1, step[0], step[1]));
  return names;
}

void check_table(const scenario& s, remarks& out) {
  const auto& table = s.enrolment.table;
  const std::string name = "enrolment.table";
  if (table.empty())
    return out.push_back(
        {{"enrolment.kind", name}, "enrolment.kind = \"table\": needs enrolment.table, as in [\"AAA\", \"XAA\"]"});
  if (s.clients.count % std::ssize(table) != 0)
    out.push_back({{name, "clients.count"},
                   fmt::format("{}: {} rows do not divide clients.count = {} into equal blocks", name, table.size(),
                               s.clients.count)});
  for (std::size_t i = 0; i < table.size(); ++i)
    for (const auto& complaint : row_complaints(table[i], s.tasks.count))
      out.push_back({{name, "tasks.count"},
                     fmt::format("{}[{}] = {}: client group {}: {}", name, i, quote_text(table[i]), i + 1, complaint)});
}

void check_enrolment(const scenario& s, remarks& out) {
  const auto kind = s.enrolment.kind;
  const auto initial = s.enrolment.initial, added = s.enrolment.added_per_task;
  if (kind == enrolment_kind::table)
    check_table(s, out);
  if (kind == enrolment_kind::random && s.enrolment.lifetime_mean.count() == 0)
    out.push_back(
        {{"enrolment.lifetime_mean"},
         "enrolment.lifetime_mean = \"0 s\": every client would leave immediately; expected more than \"0 s\""});
  if (kind != enrolment_kind::growing)
    return;
  const auto further = s.tasks.count - 1, room = s.clients.count - initial;
  if (room < 0)
    out.push_back(
        {{"enrolment.initial", "clients.count"},
         fmt::format("enrolment.initial = {}: expected at most clients.count = {}", initial, s.clients.count)});
  else if (further > 0 && added > room / further) // avoids overflow of the product
    out.push_back({{"enrolment.added_per_task", "enrolment.initial", "clients.count", "tasks.count"},
                   fmt::format("enrolment.added_per_task = {}: {} clients initially and {} with each of {} later tasks "
                               "exceed clients.count = {}",
                               added, initial, added, further, s.clients.count)});
}

void check_async(const scenario& s, remarks& out) {
  if (s.rounds.concurrency > s.clients.count)
    out.push_back({{"rounds.concurrency", "clients.count"},
                   fmt::format("rounds.concurrency = {}: expected at most clients.count = {}", s.rounds.concurrency,
                               s.clients.count)});
  if (s.devices.dropout == 1.0)
    out.push_back({{"devices.dropout", "rounds.mode"},
                   fmt::format("devices.dropout = {:.1f}: with rounds.mode = \"async\" no upload would ever arrive; "
                               "expected a smaller value",
                               s.devices.dropout)});
  if (s.strategy.method && s.strategy.method->needs().round_barrier)
    out.push_back({{"rounds.mode", "strategy.name"},
                   fmt::format("rounds.mode = \"async\": strategy.name = {} needs all uploads of a round together; "
                               "expected rounds.mode = \"sync\"",
                               quote_text(s.strategy.name))});
}

void check_rounds(const scenario& s, remarks& out) {
  if (s.rounds.mode == round_mode::sync && s.rounds.cohort > s.clients.count)
    out.push_back({{"rounds.cohort", "clients.count"},
                   fmt::format("rounds.cohort = {}: expected at most clients.count = {}, or 0 for all", s.rounds.cohort,
                               s.clients.count)});
  if (s.rounds.mode == round_mode::async)
    check_async(s, out);
}

void check_devices(const scenario& s, remarks& out) {
  if (s.devices.availability == device_availability::diurnal && s.devices.availability_period < std::chrono::seconds(1))
    out.push_back({{"devices.availability_period"},
                   fmt::format("devices.availability_period = {}: expected at least \"1 s\"",
                               quote_text(duration_text(s.devices.availability_period)))});
  const std::pair<std::string, const device_value&> lists[] = {
      {"devices.rows_per_second", s.devices.rows_per_second},
      {"devices.uplink_mbit", s.devices.uplink_mbit},
      {"devices.downlink_mbit", s.devices.downlink_mbit},
      {"devices.proxy_uplink_mbit", s.devices.proxy_uplink_mbit},
      {"devices.proxy_downlink_mbit", s.devices.proxy_downlink_mbit}};
  for (const auto& [name, value] : lists)
    if (const auto* list = std::get_if<std::vector<double>>(&value); list && std::ssize(*list) != s.clients.count)
      out.push_back({{name, "clients.count"},
                     fmt::format("{}: expected {} numbers, one per client (clients.count), found {}", name,
                                 s.clients.count, list->size())});
}

/// Limits the number of shards, since every task stores a list of them.
void check_partition(const scenario& s, remarks& out) {
  constexpr std::int64_t shards_max = 100'000'000;
  const auto each = s.partition.shards_per_client;
  if (s.partition.kind == partition_kind::shards && each > shards_max / s.clients.count) // avoids an overflow
    out.push_back({{"partition.shards_per_client", "clients.count"},
                   fmt::format("partition.shards_per_client = {}: {} clients (clients.count) with {} shards each "
                               "exceed {} shards; expected at most {}",
                               each, s.clients.count, each, shards_max,
                               std::max<std::int64_t>(shards_max / s.clients.count, 1))});
}

void check_training(const scenario& s, remarks& out) {
  const auto& [schedule, milestones] = std::tie(s.training.schedule, s.training.milestones);
  if (schedule != schedule_kind::step)
    return;
  if (milestones.empty())
    out.push_back({{"training.schedule", "training.milestones"},
                   "training.schedule = \"step\": needs training.milestones, as in [5, 8]"});
  for (std::size_t i = 1; i < milestones.size(); ++i)
    if (milestones[i] <= milestones[i - 1])
      return out.push_back({{"training.milestones"},
                            fmt::format("training.milestones: expected ascending rounds, found {} after {}",
                                        milestones[i], milestones[i - 1])});
}

void check_worker(const scenario& s, remarks& out) {
  const auto& device = s.worker.device;
  const bool cuda = device.starts_with("cuda:") && device.size() > 5 && device.size() < 9 &&
                    device.find_first_not_of("0123456789", 5) == std::string::npos;
  if (device != "auto" && device != "cpu" && !cuda)
    out.push_back({{"worker.device"},
                   fmt::format("worker.device = {}: expected \"auto\", \"cpu\" or \"cuda:0\"", quote_text(device))});
}

/// Checks that a path is "" (unused), a folder, or a regular file.
void check_path(const std::string& name, const std::filesystem::path& path, bool folder, remarks& out) {
  std::error_code failed;
  const auto status = std::filesystem::status(path, failed);
  const bool is_folder = std::filesystem::is_directory(status), is_file = std::filesystem::is_regular_file(status);
  if (path.empty() || (folder ? is_folder : is_file))
    return;
  const auto there = is_folder                         ? std::string("a folder")
                     : is_file                         ? std::string("a file")
                     : std::filesystem::exists(status) ? special_kind(path)
                     : status.type() == std::filesystem::file_type::not_found
                         ? std::string("nothing")
                         : "an inaccessible path (" + failed.message() + ")";
  out.push_back(
      {{name},
       fmt::format(
           "{} = {}: expected a {}, found {}; a relative path starts at the folder of the file that contains it", name,
           quote_text(path.string()), folder ? "folder" : "file", there)});
}

void check_availability_file(const scenario& s, remarks& out) {
  if (s.devices.availability != device_availability::file)
    return;
  check_path("devices.availability_file", s.devices.availability_file, false, out);
  if (s.devices.availability_file.empty())
    out.push_back({{"devices.availability", "devices.availability_file"},
                   "devices.availability = \"file\": needs devices.availability_file, a CSV with columns `client`, "
                   "`from` and `to`"});
}

void check_paths(const scenario& s, remarks& out) {
  check_availability_file(s, out);
  check_path("devices.capacity_file", s.devices.capacity_file, false, out);
  check_path("devices.link_file", s.devices.link_file, false, out);
  check_path("data.root", s.data.root, true, out);
  check_path("model.module", s.model.module, false, out);
  if (s.model.weights != weights_as_drawn)
    check_path("model.weights", s.model.weights, false, out);
  check_path("model.seed_weights", s.model.seed_weights, false, out);
  check_path("model.backbone", s.model.backbone, false, out);
  if (!s.model.backbone.empty() && !s.model.weights.empty())
    out.push_back({{"model.backbone", "model.weights"},
                   "model.backbone: model.weights is set, too; expected only one of them, since a net starts either "
                   "from a scenario's weights or from a file"});
  if (s.partition.kind != partition_kind::file)
    return;
  check_path("partition.file", s.partition.file, false, out);
  if (s.partition.public_share > 0.0)
    out.push_back({{"partition.public_share", "partition.kind"},
                   "partition.public_share: expected 0, because partition.kind = \"file\" assigns each row itself"});
  if (s.partition.file.empty())
    out.push_back({{"partition.kind", "partition.file"},
                   "partition.kind = \"file\": needs partition.file, a CSV with columns `client` and `row`"});
}

/// Warns about milestones beyond the last round of a task.
void find_idle_milestones(const scenario& s, remarks& out) {
  const bool own_rounds = s.strategy.method && s.strategy.method->needs().own_rounds;
  if (s.training.schedule != schedule_kind::step || own_rounds)
    return;
  std::vector<std::int64_t> idle;
  for (const auto milestone : s.training.milestones)
    if (milestone >= s.rounds.per_task)
      idle.push_back(milestone);
  if (!idle.empty())
    out.push_back({{"training.milestones", "rounds.per_task"},
                   fmt::format("training.milestones: {} {} no effect, because the rate changes after a milestone's "
                               "round and a task has {} round{} (rounds.per_task); expected milestones below {}",
                               fmt::join(idle, ", "), idle.size() == 1 ? "has" : "have", s.rounds.per_task,
                               s.rounds.per_task == 1 ? "" : "s", s.rounds.per_task)});
}

} // namespace

std::vector<scenario_finding> check_combinations(const scenario& settings) {
  remarks out;
  for (const auto check : {check_data, check_tasks, check_partition, check_enrolment, check_rounds, check_devices,
                           check_training, check_worker, check_paths})
    check(settings, out);
  for (auto& finding : check_uploads(settings))
    out.push_back(std::move(finding));
  return out;
}

std::vector<scenario_finding> find_suspicious(const scenario& settings) {
  remarks out;
  if (settings.devices.dropout == 1.0)
    out.push_back(
        {{"devices.dropout"}, "devices.dropout = 1.0: no upload will ever arrive, so the model never changes"});
  find_idle_milestones(settings, out);
  return out;
}

} // namespace mneme
