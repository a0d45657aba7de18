#include "tools/study/run_difference.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/results/run_directory.hpp"
#include "tools/study/differing_tensor.hpp"
#include "tools/study/stored_run.hpp"
#include <algorithm>
#include <fmt/format.h>
#include <map>
namespace mneme {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t lines_bytes_max = std::uint64_t{1} << 32;

/// A line of digests.csv or deliveries.csv: its round, and its other fields.
struct round_line {
  std::int64_t round = 0;
  std::vector<std::string> fields{};
  bool operator==(const round_line&) const = default;
};

enum step_field : std::size_t { step_time, step_deliveries, step_model, step_run, step_fields };
enum delivery_field : std::size_t { arrival_time, receiver, sender, tensor_name, tensor_content, delivery_fields };

/// Reads the lines of a file without its header; empty if the file does not exist.
expected<std::vector<round_line>> lines_of(const fs::path& file, std::size_t fields) {
  std::vector<round_line> lines;
  if (std::error_code none; !fs::exists(file, none))
    return lines;
  const auto text = text_of_file(file, lines_bytes_max);
  if (!text)
    return tl::unexpected(text.error());
  csv::record_reader records(*text);
  static_cast<void>(records.next()); // header
  while (records.next()) {
    const auto& words = records.fields();
    round_line read;
    if (!records.error().empty() || words.size() != fields + 1 || !csv::parse_number(words.front(), read.round))
      return failed(fmt::format("{}:{}", file.string(), records.line()),
                    fmt::format("is damaged: expected {} fields, the first of which is a round", fields + 1));
    read.fields.assign(words.begin() + 1, words.end());
    lines.push_back(std::move(read));
  }
  return lines;
}

/// All records in a run directory.
struct recorded_run {
  stored_run stored{};
  std::vector<round_line> steps{}, deliveries{};
  std::vector<evaluation_record> evaluations{};
};

expected<recorded_run> read_recorded(const fs::path& folder) {
  recorded_run read;
  auto stored = read_stored_run(folder);
  if (!stored)
    return tl::unexpected(stored.error());
  read.stored = std::move(*stored);
  auto steps = lines_of(folder / "digests.csv", step_fields);
  auto deliveries = lines_of(folder / "deliveries.csv", delivery_fields);
  if (!steps || !deliveries)
    return tl::unexpected(steps ? deliveries.error() : steps.error());
  read.steps = std::move(*steps);
  read.deliveries = std::move(*deliveries);
  if (std::error_code none; fs::exists(folder / "metrics.jsonl", none)) {
    auto evaluations = read_evaluations(folder);
    if (!evaluations)
      return tl::unexpected(evaluations.error());
    read.evaluations = std::move(*evaluations);
  }
  return read;
}

template <class Values>
std::vector<differing_value> differing_names(const Values& first, const Values& second) {
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [name, value] : first)
    both[name].first = value;
  for (const auto& [name, value] : second)
    both[name].second = value;
  std::vector<differing_value> difference;
  for (const auto& [name, values] : both)
    if (values.first != values.second)
      difference.push_back({name, values.first, values.second});
  return difference;
}

bool enters_no_result(const std::string& key) { return key == "title" || key.starts_with("checkpoint."); }

// -- first difference -------------------------------------------------------------------------------------------------

/// Finds the first round whose records differ; nullopt if all rounds that both runs recorded are equal.
template <class Line, class Equal>
std::optional<std::size_t> first_unlike(const std::vector<Line>& first, const std::vector<Line>& second,
                                        const Equal& equal) {
  const auto shared = std::min(first.size(), second.size());
  for (std::size_t i = 0; i < shared; ++i)
    if (!equal(first[i], second[i]))
      return i;
  return first.size() == second.size() ? std::nullopt : std::optional(shared);
}

bool are_alike(const evaluation_record& a, const evaluation_record& b) {
  return a.round == b.round && a.accuracy == b.accuracy && a.accuracy_per_task == b.accuracy_per_task &&
         a.loss == b.loss;
}

/// First differing evaluation before round `before`; nullopt if there is none.
std::optional<first_difference> unlike_evaluation(const recorded_run& a, const recorded_run& b, std::int64_t before) {
  const auto at = first_unlike(a.evaluations, b.evaluations, are_alike);
  if (!at || *at >= a.evaluations.size() || *at >= b.evaluations.size())
    return std::nullopt;
  const auto &left = a.evaluations[*at], &right = b.evaluations[*at];
  const auto round = std::int64_t{left.round.value} + 1;
  if (round >= before)
    return std::nullopt;
  return first_difference{.part = differing_part::evaluation,
                          .round = round,
                          .details = fmt::format("accuracy {} and {}, loss {} and {}", left.accuracy, right.accuracy,
                                                 left.loss, right.loss)};
}

/// Describes a traced delivery.
std::string delivery_text(const round_line& line) {
  return fmt::format("'{}' of client {} to the {} at {} s", line.fields[tensor_name], line.fields[sender],
                     line.fields[receiver], line.fields[arrival_time]);
}

/// First differing traced delivery up to `round`; nullopt if there is none.
std::optional<first_difference> unlike_delivery(const recorded_run& a, const recorded_run& b, std::int64_t round) {
  const auto at = first_unlike(a.deliveries, b.deliveries, std::equal_to<>());
  if (!at)
    return std::nullopt;
  const auto* left = *at < a.deliveries.size() ? &a.deliveries[*at] : nullptr;
  const auto* right = *at < b.deliveries.size() ? &b.deliveries[*at] : nullptr;
  const auto& shown = left ? *left : *right;
  if (shown.round > round && (!right || right->round > round))
    return std::nullopt;
  first_difference difference{.round = shown.round, .party = shown.fields[receiver], .client = shown.fields[sender]};
  if (left && right && left->round == right->round &&
      std::equal(left->fields.begin(), left->fields.begin() + tensor_content, right->fields.begin())) {
    difference.part = differing_part::upload;
    difference.tensor = shown.fields[tensor_name];
    return difference;
  }
  difference.part = differing_part::delivery;
  difference.details = fmt::format("{} in the first run, {} in the second", left ? delivery_text(*left) : "nothing",
                                   right ? delivery_text(*right) : "nothing");
  return difference;
}

/// First difference according to the digests of server steps.
first_difference unlike_step(const recorded_run& a, const recorded_run& b, std::size_t at) {
  if (at >= a.steps.size() || at >= b.steps.size()) {
    const auto& longer = at < a.steps.size() ? a : b;
    return {.part = differing_part::length,
            .round = longer.steps[at].round,
            .details = fmt::format("the {} run does not have this round", at < a.steps.size() ? "second" : "first")};
  }
  const auto &left = a.steps[at], &right = b.steps[at];
  const bool same_model = left.fields[step_model] == right.fields[step_model];
  const bool same_course = left.fields[step_time] == right.fields[step_time] &&
                           left.fields[step_deliveries] == right.fields[step_deliveries];
  if (same_model || !same_course)
    return {.part = differing_part::delivery,
            .round = left.round,
            .details = fmt::format("{} uploads by {} s in the first run, {} by {} s in the second",
                                   left.fields[step_deliveries], left.fields[step_time], right.fields[step_deliveries],
                                   right.fields[step_time])};
  return {.part = differing_part::model, .round = left.round};
}

std::optional<first_difference> first_difference_of(const recorded_run& a, const recorded_run& b, bool both_traced) {
  const auto at = first_unlike(a.steps, b.steps, std::equal_to<>());
  constexpr auto never = std::numeric_limits<std::int64_t>::max();
  const auto round = !at ? never : *at < a.steps.size() ? a.steps[*at].round : b.steps[*at].round;
  if (auto evaluation = unlike_evaluation(a, b, round))
    return evaluation;
  if (both_traced)
    if (auto delivery = unlike_delivery(a, b, round))
      return delivery;
  if (at)
    return unlike_step(a, b, *at);
  return std::nullopt;
}

/// Adds tensor and element to the difference if both folders have the values of its round.
expected<void> find_value_difference(first_difference& difference, const fs::path& first, const fs::path& second) {
  const auto file = run_directory::values_file(difference.round);
  std::error_code none;
  if (difference.part == differing_part::evaluation || !fs::exists(first / file, none) ||
      !fs::exists(second / file, none))
    return {};
  const auto tensor = differing_tensor_of(first / file, second / file);
  if (!tensor)
    return tl::unexpected(tensor.error());
  if (!*tensor)
    return {};
  const auto& place = **tensor;
  difference.tensor = place.name;
  difference.element = place.element;
  difference.elements = place.elements;
  if (difference.part == differing_part::model && !place.client.empty())
    difference.part = differing_part::upload;
  if (!place.client.empty()) {
    difference.client = place.client;
    difference.party = place.party;
  }
  return {};
}

} // namespace

expected<run_difference> difference_of(const fs::path& first, const fs::path& second) {
  const auto a = read_recorded(first), b = read_recorded(second);
  diagnostics errors;
  for (const auto* read : {&a, &b})
    if (!*read)
      append(errors, read->error());
  for (const auto& [read, folder] : {std::pair{&a, &first}, std::pair{&b, &second}})
    if (*read && (*read)->steps.empty())
      errors.push_back({folder->string(), "has no digests.csv, or an empty one: an earlier version of mneme ran it, or "
                                          "no round was completed; run its scenario.toml again"});
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  run_difference difference{.first_digest = a->stored.run_digest,
                            .second_digest = b->stored.run_digest,
                            .settings = differing_names(a->stored.keys, b->stored.keys),
                            .machines = differing_names(a->stored.machine, b->stored.machine),
                            .both_traced = !a->deliveries.empty() && !b->deliveries.empty()};
  std::erase_if(difference.settings, [](const differing_value& key) { return enters_no_result(key.name); });
  difference.where = first_difference_of(*a, *b, difference.both_traced);
  if (difference.where)
    if (const auto looked = find_value_difference(*difference.where, first, second); !looked)
      return tl::unexpected(looked.error());
  return difference;
}

} // namespace mneme
