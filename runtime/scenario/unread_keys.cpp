#include "runtime/method/strategy.hpp"
#include "runtime/models/model.hpp"
#include "runtime/scenario/checks.hpp"
#include <fmt/format.h>
namespace mneme {
namespace {

/// `key` is not read unless `wanted` holds; `fix` says which choice reads it.
struct condition {
  const char* key;
  bool wanted;
  const char* fix;
};

/// True of data sets in folders of pictures that come in all sizes.
bool is_brought_to_size(const std::string& data) {
  return data == "nico-common" || data == "nico-unique" || data == "open-image" || data == "imagenet-subset";
}

std::vector<condition> conditions(const scenario& s) {
  using enum partition_kind;
  const auto made = s.data.name == "synthetic";
  const auto folders = is_brought_to_size(s.data.name);
  const auto idx = !made && s.data.name != "cifar10" && s.data.name != "cifar100" && s.data.name != "pacs" &&
                   s.data.name != "tiny-imagenet" && s.data.name != "imagenet-r" && s.data.name != "mini-imagenet" &&
                   !folders;
  const auto split = s.partition.kind;
  const auto domains = s.tasks.kind == task_kind::domain_incremental;
  const auto comes_and_goes = s.enrolment.kind == enrolment_kind::random;
  const auto async = s.rounds.mode == round_mode::async;
  const auto needs = s.strategy.method ? s.strategy.method->needs() : method_needs{};
  const auto fedbuff = async && s.rounds.aggregation == aggregation_kind::fedbuff;
  return {
      {"data.root", !made, "only data sets in files"},
      {"data.shape", made, "only data.name = \"synthetic\""},
      {"data.classes", made, "only data.name = \"synthetic\""},
      {"data.rows", made, "only data.name = \"synthetic\""},
      {"data.tokens", made, "only data.name = \"synthetic\""},
      {"data.side", folders, "only data sets in folders of pictures"},
      {"data.transposed", idx, "only data sets in idx files"},
      {"tasks.first_classes", s.tasks.kind == task_kind::class_incremental, "only tasks.kind = \"class-incremental\""},
      {"tasks.transform", domains, "only tasks.kind = \"domain-incremental\""},
      {"tasks.classes_per_task", domains && s.tasks.transform == task_transform::class_blocks,
       "only tasks.transform = \"class-blocks\""},
      {"partition.beta", split == dirichlet || split == dirichlet_capped,
       "only partition.kind = \"dirichlet\" and \"dirichlet-capped\""},
      {"partition.class_share", split == class_share, "only partition.kind = \"class-share\""},
      {"partition.shards_per_client", split == shards, "only partition.kind = \"shards\""},
      {"partition.rows_per_client", split == sampled, "only partition.kind = \"sampled\""},
      {"partition.file", split == file, "only partition.kind = \"file\""},
      {"partition.seed", split != file, "only partitions that are drawn"},
      {"partition.over", split != file && split != class_share && split != sampled, "only rows with one owner"},
      {"enrolment.table", s.enrolment.kind == enrolment_kind::table, "only enrolment.kind = \"table\""},
      {"enrolment.initial", s.enrolment.kind == enrolment_kind::growing, "only enrolment.kind = \"growing\""},
      {"enrolment.added_per_task", s.enrolment.kind == enrolment_kind::growing, "only enrolment.kind = \"growing\""},
      {"tasks.transition_spread", s.tasks.transition == task_transition::staggered,
       "only tasks.transition = \"staggered\""},
      {"enrolment.arrival_mean", comes_and_goes, "only enrolment.kind = \"random\""},
      {"enrolment.lifetime_mean", comes_and_goes, "only enrolment.kind = \"random\""},
      {"enrolment.absence_mean", comes_and_goes, "only enrolment.kind = \"random\""},
      {"enrolment.rejoin", comes_and_goes && s.enrolment.absence_mean.count() > 0,
       "only enrolment.kind = \"random\" with an absence_mean"},
      {"rounds.cohort", !async, "only rounds.mode = \"sync\""},
      {"rounds.deadline", !async, "only rounds.mode = \"sync\""},
      {"rounds.late", !async && s.rounds.deadline.count() > 0, "only rounds with a deadline"},
      {"rounds.aggregation", async, "only rounds.mode = \"async\""},
      {"rounds.concurrency", async, "only rounds.mode = \"async\""},
      {"rounds.staleness", async, "only rounds.mode = \"async\""},
      {"rounds.staleness_exponent", async && s.rounds.staleness != staleness_kind::constant,
       "only rounds.staleness = \"polynomial\" and \"hinge\""},
      {"rounds.staleness_bound", async && s.rounds.staleness == staleness_kind::hinge,
       "only rounds.staleness = \"hinge\""},
      {"rounds.buffer", fedbuff, "only rounds.aggregation = \"fedbuff\" with rounds.mode = \"async\""},
      {"rounds.server_learning_rate", fedbuff, "only rounds.aggregation = \"fedbuff\" with rounds.mode = \"async\""},
      {"rounds.mixing", async && !fedbuff, "only rounds.aggregation = \"fedasync\" with rounds.mode = \"async\""},
      {"devices.proxy_uplink_mbit", needs.has_proxy, "only methods with a proxy"},
      {"devices.proxy_downlink_mbit", needs.has_proxy, "only methods with a proxy"},
      {"devices.availability_period", s.devices.availability == device_availability::diurnal,
       "only devices.availability = \"diurnal\""},
      {"devices.availability_file", s.devices.availability == device_availability::file,
       "only devices.availability = \"file\""},
      {"model.name", s.model.module.empty(), "only scenarios without model.module"},
      {"model.module_output", !s.model.module.empty(), "only scenarios with model.module"},
      {"model.native_code", !s.model.module.empty() || !needs.module_files.empty(), "only scenarios with modules"},
      {"training.milestones", s.training.schedule == schedule_kind::step, "only training.schedule = \"step\""},
      {"training.factor", s.training.schedule == schedule_kind::step, "only training.schedule = \"step\""},
      {"training.momentum", s.training.optimizer == optimizer_kind::sgd, "only training.optimizer = \"sgd\""},
  };
}

} // namespace

std::vector<remark> unread_keys(const scenario& settings) {
  std::vector<remark> out;
  for (const auto& condition : conditions(settings))
    if (!condition.wanted)
      out.push_back({{condition.key}, fmt::format("{} has no effect here: {} read it", condition.key, condition.fix)});
  key_table of_kind; // a net from a file has none of these
  if (settings.model.kind && !settings.model.module.empty())
    settings.model.kind->keys(of_kind);
  for (const auto& key : of_kind.all())
    out.push_back({{"model." + key.name},
                   fmt::format("model.{} has no effect here: only scenarios without model.module read it", key.name)});
  return out;
}

} // namespace mneme
