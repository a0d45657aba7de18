#include "runtime/method/strategy.hpp"
#include "runtime/options/unit_text.hpp"
#include "runtime/scenario/checks.hpp"
#include <cmath>
#include <fmt/format.h>
namespace mneme {
namespace {

using upload_findings = std::vector<scenario_finding>;

/// A feature that this file checks and a scenario requests, and the key that requests it.
struct upload_request {
  std::string key{};           ///< "uploads.top_k".
  std::string value{};         ///< Value as TOML; empty: errors do not state it.
  bool weights_only = false;   ///< Needs upload_content::weights.
  bool synchronous = false;    ///< Needs rounds.mode = "sync".
  bool float_transfer = false; ///< Needs devices.transfer_dtype = "fp32".
  const char* reason = "";     ///< Reason why the feature needs uploads of weights and synchronous rounds.
};

std::string rule_word(aggregation_rule rule) {
  switch (rule) {
  case aggregation_rule::mean:
    return "\"mean\"";
  case aggregation_rule::median:
    return "\"median\"";
  case aggregation_rule::trimmed_mean:
    return "\"trimmed-mean\"";
  case aggregation_rule::krum:
    return "\"krum\"";
  case aggregation_rule::multi_krum:
    return "\"multi-krum\"";
  }
  return {};
}

std::vector<upload_request> requests_of(const scenario& s) {
  std::vector<upload_request> list;
  const auto& u = s.uploads;
  if (u.clip_norm > 0.0)
    list.push_back({.key = "uploads.clip_norm", .value = fmt::format("{}", u.clip_norm), .float_transfer = true});
  if (u.noise_multiplier > 0.0)
    list.push_back({.key = "uploads.noise_multiplier",
                    .value = fmt::format("{}", u.noise_multiplier),
                    .weights_only = true,
                    .synchronous = true,
                    .float_transfer = true,
                    .reason = "noise must cover everything that a client sends"});
  if (u.top_k < 1.0)
    list.push_back({.key = "uploads.top_k", .value = fmt::format("{}", u.top_k), .float_transfer = true});
  if (u.quantise > 0)
    list.push_back({.key = "uploads.quantise", .value = fmt::format("{}", u.quantise), .float_transfer = true});
  if (u.is_masked())
    list.push_back({.key = "uploads.secure_aggregation",
                    .value = "\"masked\"",
                    .synchronous = true,
                    .float_transfer = true,
                    .reason = "masks cancel in the sum of a whole cohort only"});
  if (s.aggregation.rule != aggregation_rule::mean)
    list.push_back({.key = "aggregation.rule",
                    .value = rule_word(s.aggregation.rule),
                    .weights_only = true,
                    .synchronous = true,
                    .reason = "the rule compares the weights of one cohort"});
  if (s.clients.attack != attack_kind::none)
    list.push_back({.key = "clients.attack"});
  return list;
}

std::string request_text(const upload_request& request) {
  return request.value.empty() ? request.key : request.key + " = " + request.value;
}

/// Checks the requests against the method, the rounds and the transfer format.
void check_requests(const scenario& s, upload_findings& out) {
  for (const auto& request : requests_of(s)) {
    const auto lead = request_text(request);
    const auto add = [&](const char* key, const std::string& text) {
      out.push_back({{request.key, key}, lead + ": " + text});
    };
    if (s.strategy.method) {
      const auto content = s.strategy.method->uploads();
      const auto rows = s.strategy.method->needs().rows;
      if (rows == row_visibility::centralized || rows == row_visibility::offline)
        add("strategy.name", fmt::format("'{}' trains one client with all rows, so there is nothing to aggregate; "
                                         "expected a federated method, such as \"fedavg\"",
                                         s.strategy.name));
      else if (content == upload_content::other)
        add("strategy.name",
            fmt::format("the server of '{}' does not average the weights that clients upload; expected "
                        "a method that does, such as \"fedavg\"",
                        s.strategy.name));
      else if (request.weights_only && content != upload_content::weights)
        add("strategy.name",
            fmt::format("the server of '{}' uses more of an upload than its weights, and {}; expected a "
                        "method that only averages weights, such as \"fedavg\"",
                        s.strategy.name, request.reason));
    }
    if (request.synchronous && s.rounds.mode == round_mode::async)
      add("rounds.mode", fmt::format("expected rounds.mode = \"sync\", because {}", request.reason));
    if (request.float_transfer && s.devices.transfer_dtype != wire_format::fp32)
      add("devices.transfer_dtype",
          "expected devices.transfer_dtype = \"fp32\", because a second conversion would change the update");
  }
}

void check_noise(const scenario& s, upload_findings& out) {
  const auto& u = s.uploads;
  if (u.noise_multiplier == 0.0)
    return;
  const auto lead = fmt::format("uploads.noise_multiplier = {}", u.noise_multiplier);
  if (u.clip_norm == 0.0)
    out.push_back({{"uploads.noise_multiplier", "uploads.clip_norm"},
                   lead + ": needs uploads.clip_norm > 0, which bounds the part of one client; found 0"});
  if (!u.has_server_noise())
    return;
  if (s.strategy.weighting != upload_weighting::uniform)
    out.push_back({{"strategy.weighting", "uploads.noise_multiplier"},
                   lead +
                       ": expected strategy.weighting = \"uniform\", because weights by rows would change the part of "
                       "one client in the mean"});
  if (s.rounds.deadline.count() > 0 && s.rounds.late == late_policy::keep)
    out.push_back({{"rounds.late", "uploads.noise_multiplier"},
                   lead + ": expected rounds.late = \"drop\", because a late update is relative to older weights"});
  if (u.quantise > 0)
    out.push_back({{"uploads.quantise", "uploads.noise_multiplier"},
                   lead + ": expected uploads.quantise = 0, because rounding after clipping can exceed clip_norm; or "
                          "noise = \"client\", which adds noise before rounding"});
  if (u.error_feedback && u.compresses())
    out.push_back({{"uploads.error_feedback", "uploads.noise_multiplier"},
                   lead +
                       ": expected uploads.error_feedback = false, because the kept error is added after clipping; or "
                       "noise = \"client\", which adds noise before compression"});
  if (s.aggregation.rule != aggregation_rule::mean)
    out.push_back(
        {{"aggregation.rule", "uploads.noise_multiplier"},
         fmt::format("{}: expected aggregation.rule = \"mean\", because clip_norm bounds the part of one client "
                     "in a sum; or noise = \"client\"",
                     lead)});
}

void check_masks(const scenario& s, upload_findings& out) {
  if (!s.uploads.is_masked())
    return;
  const std::string lead = "uploads.secure_aggregation = \"masked\"";
  if (s.aggregation.rule != aggregation_rule::mean)
    out.push_back({{"aggregation.rule", "uploads.secure_aggregation"},
                   fmt::format("aggregation.rule = {}: {} reveals the sum of uploads only, and this rule reads single "
                               "uploads; expected one of the two",
                               rule_word(s.aggregation.rule), lead)});
  if (s.uploads.top_k < 1.0)
    out.push_back(
        {{"uploads.top_k", "uploads.secure_aggregation"},
         fmt::format("uploads.top_k = {}: with {} all clients mask the same entries, and top_k chooses others "
                     "for each client; expected top_k = 1",
                     s.uploads.top_k, lead)});
  if (s.rounds.deadline.count() > 0 && s.rounds.late == late_policy::keep)
    out.push_back({{"rounds.late", "uploads.secure_aggregation"},
                   lead + ": expected rounds.late = \"drop\", because masks cancel in the sum of one cohort only"});
}

void check_krum(const scenario& s, upload_findings& out) {
  const auto& a = s.aggregation;
  if (a.rule != aggregation_rule::krum && a.rule != aggregation_rule::multi_krum)
    return;
  const auto cohort = s.rounds.cohort > 0 ? s.rounds.cohort : s.clients.count;
  if (cohort < 2 * a.byzantine + 3)
    out.push_back({{"aggregation.byzantine", "rounds.cohort"},
                   fmt::format("aggregation.byzantine = {}: a cohort of {} clients has a majority for at most {}; Krum "
                               "needs 2 * byzantine + 3 clients",
                               a.byzantine, cohort, cohort < 3 ? 0 : (cohort - 3) / 2)});
  if (a.rule == aggregation_rule::multi_krum && a.selected > cohort)
    out.push_back(
        {{"aggregation.selected", "rounds.cohort"},
         fmt::format("aggregation.selected = {}: expected at most the {} clients of a cohort", a.selected, cohort)});
}

void check_trim(const scenario& s, upload_findings& out) {
  const auto& a = s.aggregation;
  const auto cohort = s.rounds.cohort > 0 ? s.rounds.cohort : s.clients.count;
  if (a.rule == aggregation_rule::trimmed_mean && a.trim > 0.0 &&
      a.trim * static_cast<double>(cohort) * (1.0 + 1e-12) < 1.0)
    out.push_back(
        {{"aggregation.trim", "rounds.cohort"},
         fmt::format("aggregation.trim = {}: this share of a cohort of {} clients is less than one client, so no "
                     "value is removed; expected 0, or rounds.cohort of at least {:.0f}",
                     a.trim, cohort, std::ceil(1.0 / a.trim))});
}

} // namespace

std::vector<scenario_finding> check_uploads(const scenario& s) {
  upload_findings out;
  check_requests(s, out);
  check_noise(s, out);
  check_masks(s, out);
  check_krum(s, out);
  check_trim(s, out);
  if (s.uploads.quantise == 1)
    out.push_back(
        {{"uploads.quantise"}, "uploads.quantise = 1: one bit leaves no level but 0; expected 2 to 16, or 0"});
  if (s.clients.attack != attack_kind::none && s.clients.attackers == 0.0)
    out.push_back({{"clients.attack", "clients.attackers"},
                   "clients.attack: needs clients.attackers, the share of the clients that attack; found 0"});
  else if (s.clients.attack != attack_kind::none && s.clients.attackers * static_cast<double>(s.clients.count) < 0.5)
    out.push_back(
        {{"clients.attackers"},
         fmt::format("clients.attackers = {}: this share of {} clients is less than half a client, so no client "
                     "attacks; expected a larger share",
                     s.clients.attackers, s.clients.count)});
  return out;
}

} // namespace mneme
