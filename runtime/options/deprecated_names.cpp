#include "runtime/options/deprecated_names.hpp"
#include <algorithm>
namespace mneme {

std::span<const renamed_key> renamed_keys() {
  static const std::vector<renamed_key> keys{
      {"data", "vocabulary_size", "tokens"},
      {"tasks", "keep_task_share", "staying_share"},
      {"devices", "observers_cost_time", "observing_costs"},
      {"devices", "transfer_dtype", "wire"},
      {"worker", "fused_clients_max", "models_max"},
      {"worker", "lookahead_memory", "ahead_max"},
      {"worker", "no_nodes", "without_nodes", {}, {{"local", "here"}}},
      {"worker", "node_timeout", "node_silence"},
      {"strategy", "old_model_share", "keep_share"},
      {"strategy", "corrected_tasks", "corrects", {"bic"}},
      {"strategy", "correction_model", "tuned_on", {"bic"}},
      {"strategy", "encoder_holdout_share", "held_out", {"central-rehearsal"}},
      {"strategy",
       "noise_scope",
       "noise_reading",
       {"central-rehearsal", "fil-ver"},
       {{"rehearsal", "a"}, {"all", "b"}}},
      {"strategy", "replay_rows", "replayed", {"er"}},
      {"strategy", "variant", "reading", {"fed-et"}},
      {"strategy", "fisher_updates_batch_norm", "fisher_moves_statistics", {"fed-ewc"}},
      {"strategy", "sample_once", "one_z_per_sample", {"fil-ver"}},
      {"strategy", "new_class_head", "new_rows", {"lander"}},
      {"strategy", "rates", "rates", {"glfc", "lga"}, {{"official", "code-quirk"}}},
      {"strategy", "batch_norm_updates_twice", "moves_twice", {"mfcl"}},
      {"strategy", "retained_per_class", "p", {"osi-fl"}},
      {"strategy", "scoring_model", "moment", {"osi-fl"}},
      {"strategy", "lagged_schedule", "late_schedule", {"pilora"}},
      {"strategy", "rate_divided_by_task", "divides_rate", {"ss-il"}},
      {"strategy", "secure_aggregation", "secure_sum", {"stsa"}},
  };
  return keys;
}

std::span<const renamed_option> renamed_options() {
  static const std::vector<renamed_option> options{
      {"run", "--dump-round", "--round"},
      {"verify", "--dump-round", "--round"},
  };
  return options;
}

bool renamed_key::is_read_by(std::string_view method) const {
  return methods.empty() || std::find(methods.begin(), methods.end(), method) != methods.end();
}

std::string_view renamed_key::new_word(std::string_view word) const {
  const auto entry = std::find_if(words.begin(), words.end(), [&](const auto& pair) { return pair.old_name == word; });
  return entry == words.end() ? word : entry->name;
}

std::string_view renamed_key::old_word(std::string_view word) const {
  const auto entry = std::find_if(words.begin(), words.end(), [&](const auto& pair) { return pair.name == word; });
  return entry == words.end() ? word : entry->old_name;
}

const renamed_key* find_renamed(std::string_view section, std::string_view name, std::string_view method) {
  for (const auto& entry : renamed_keys())
    if (entry.section == section && entry.name == name && entry.is_read_by(method))
      return &entry;
  return nullptr;
}

const renamed_key* entry_of_old_name(std::string_view name, std::string_view method) {
  for (const auto& entry : renamed_keys())
    if (entry.old_name != entry.name && full_old_name(entry) == name && entry.is_read_by(method))
      return &entry;
  return nullptr;
}

std::string current_name(std::string_view name) {
  for (const auto& entry : renamed_keys())
    if (full_old_name(entry) == name)
      return full_new_name(entry);
  return std::string(name);
}

std::string full_new_name(const renamed_key& entry) {
  return std::string(entry.section) + "." + std::string(entry.name);
}

std::string full_old_name(const renamed_key& entry) {
  return std::string(entry.section) + "." + std::string(entry.old_name);
}

std::string deprecation_text(std::string_view old_name, std::string_view name) {
  return std::string(old_name) + " is deprecated; use " + std::string(name);
}

} // namespace mneme
