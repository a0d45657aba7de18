// What placement does with reports of nodes: nothing of one is passed on before all of it was looked at.
#include "actors/nodes/placement.hpp"
#include "runtime/base/failure_of.hpp"
#include "runtime/federation/carry.hpp"
#include <algorithm>
#include <caf/typed_event_based_actor.hpp>
#include <fmt/format.h>
namespace mneme {

void placement_state::take(const node_frame& in) {
  if (!map_.is_there(in.node))
    return;
  const auto why = failure_of([&] {
    auto content = reader_of(in.content);
    content.onto(c10::Device(context_->device));
    auto kind = node_message::report;
    content(kind);
    take_report(content, in.node, in.content->size());
    stay_awake();
  });
  if (!why.empty())
    refuse(in.node, "sends a report that " + why);
}

void placement_state::take_report(archive& content, node_number number, std::size_t bytes) {
  auto& node = nodes_.at(number);
  node_figures figures;
  held_report held{.bytes = bytes};
  content(figures);
  if (!node.tensors->heard(figures.heard))
    throw archive_error("confirms messages that it was not sent");
  if (figures.busy_ns < node.busy_ns)
    throw archive_error("takes back time that it has computed");
  carry(content, held.report, *node.tensors);
  content.expect_end();
  held.busy_ns = figures.busy_ns - std::exchange(node.busy_ns, figures.busy_ns);
  const auto shard = held.report.from;
  if (shard.value >= journals_.size() ||
      map_.place_of(shard) != shard_place{.where = shard_place::kind::node, .node = number})
    throw archive_error("is of a shard that it does not host");
  node.silent = {};
  held_[shard.value].push_back(std::move(held));
  go_on_with_reports(shard);
}

/// Takes reports of a shard in their order, up to one that has to wait.
void placement_state::go_on_with_reports(shard_id shard) {
  const auto place = map_.place_of(shard);
  while (!held_[shard.value].empty() && map_.place_of(shard) == place)
    if (!take_next_report(shard, place.node))
      return;
}

/// False: it waits, or its node is lost.
bool placement_state::take_next_report(shard_id shard, node_number number) {
  auto& held = held_[shard.value];
  const auto& journal = journals_[shard.value];
  if (const auto wrong = journal.wrong_with(held.front().report); !wrong.empty()) {
    refuse(number, "sends a report that " + wrong);
    return false;
  }
  const auto verdict = checks_.judge(held.front().report, journal);
  if (!verdict.wrong.empty()) {
    refuse(number, verdict.wrong, verdict.is_other_result);
    return false;
  }
  for (const auto id : verdict.awaited)
    if (!checks_.has_begun(id))
      compute_here(*journal.given(id), shard);
  if (!verdict.awaited.empty())
    return false;
  nodes_.at(number).is_unchecked = nodes_.at(number).is_unchecked || verdict.has_unchecked;
  auto next = std::move(held.front());
  held.pop_front();
  accept(std::move(next), shard, number);
  return true;
}

void placement_state::accept(held_report held, shard_id shard, node_number number) {
  auto& report = held.report;
  const auto rounds = std::ssize(report.finished);
  for (const auto& finished : report.finished)
    checks_.forget(finished.id);
  for (auto& failure : report.failed) {
    const auto id = failure.last_job.assignment;
    if (const auto* const own = checks_.failure_of(id))
      failure = *own;
    checks_.forget(id);
  }
  journals_[shard.value].accept(std::move(report));
  pool_->consumed(number, held.bytes);
  *context_->busy_ns += held.busy_ns;
  records_->change(number, [&](node_record& record) {
    record.client_rounds += rounds;
    record.busy_seconds += 1e-9 * static_cast<double>(held.busy_ns);
  });
  pass_on(shard);
}

// -- rounds that this process computes as well ------------------------------------------------------------------------

void placement_state::compute_here(const assignment& given, shard_id shard) {
  if (checks_.has_begun(given.id))
    return;
  checks_.begin(given, shard);
  peers_.compute_here(given);
}

void placement_state::take(const home_report& told) {
  const auto shards = checks_.take(told.report);
  for (auto& node : nodes_)
    if (node.measured && !node.measured_seconds && checks_.is_over(*node.measured))
      node.measured_seconds = told.seconds;
  for (const auto shard : shards)
    go_on_with_reports(shard);
}

// -- nodes whose answers are wrong, or do not come --------------------------------------------------------------------

/// The node is lost and not asked again. Where results of it that nobody has looked at are part of the run, other
/// results of its give the lie to them, and the run ends.
void placement_state::refuse(node_number number, const std::string& why, bool has_other_results) {
  const auto address = pool_->view(number).address;
  pool_->drop(number, why);
  if (!has_other_results || !nodes_.at(number).is_unchecked)
    return lose(number, why);
  records_->change(number, [&](node_record& record) { record.wrong = why; });
  records_->distrust();
  self_->quit(caf::make_error(
      run_errc::round_failed,
      fmt::format("node {} {}. It has given results before that were not compared, so this run's checkpoints are not "
                  "kept: resume the run without that node",
                  address, why)));
}

void placement_state::look_for_owed_answers() {
  struct debt {
    bool is_due = false; // and nothing of it waits here
    std::size_t rounds = 0;
    const assignment* first = nullptr;
    shard_id at{};
  };
  std::vector<debt> debts(nodes_.size());
  std::vector<bool> waits_here(nodes_.size());
  for (std::uint32_t s = 0; s < journals_.size(); ++s) {
    const auto place = map_.place_of({s});
    if (place.where != shard_place::kind::node || !journals_[s].awaits_host())
      continue;
    auto& owed = debts[place.node];
    waits_here[place.node] = waits_here[place.node] || !held_[s].empty();
    owed.is_due = true;
    owed.rounds += journals_[s].rounds_owed();
    if (!owed.first && (owed.first = journals_[s].first_owed()))
      owed.at = {s};
  }
  for (node_number n = 0; n < nodes_.size(); ++n)
    if (map_.is_there(n) && debts[n].is_due && !waits_here[n])
      look_at_silence(n, debts[n].rounds, debts[n].first, debts[n].at);
    else
      nodes_[n].silent = {};
}

/// What a node may take follows from its work: this process computes the first round that it owes.
void placement_state::look_at_silence(node_number number, std::size_t rounds_owed, const assignment* first,
                                      shard_id at) {
  constexpr double patience = 10.0;
  constexpr std::uint64_t bytes_of_look = 32'768; // in half a second: less is no link, but signs of life
  auto& node = nodes_.at(number);
  const auto traffic = pool_->view(number).traffic;
  const auto bytes = traffic.bytes_sent + traffic.bytes_received;
  if (bytes - std::exchange(node.bytes_before, bytes) > bytes_of_look) { // long messages are on their way
    node.silent = {};
    return;
  }
  const auto limit_s = std::max(0.1, 1e-9 * static_cast<double>(context_->scenario.worker.node_answer.count()));
  const auto silent_s = node.silent.seconds();
  if (silent_s < limit_s) {
    node.measured.reset();
    return;
  }
  if (first && !node.measured) {
    node.measured = first->id;
    node.measured_seconds.reset();
    checks_.forget(first->id); // it may have been computed before
    compute_here(*first, at);
  }
  if (first && !node.measured_seconds)
    return;
  const auto work_s = first ? *node.measured_seconds * static_cast<double>(rounds_owed) : 0.0;
  if (silent_s < limit_s + patience * work_s)
    return;
  refuse(number, fmt::format("has owed {} rounds for {:.0f} s, of which one takes {:.2g} s here", rounds_owed, silent_s,
                             first ? *node.measured_seconds : 0.0));
}

/// The run waits for nodes, and would wait for ever.
bool placement_state::is_left_alone() const {
  if (context_->scenario.worker.without_nodes != lonely_run::wait)
    return false;
  bool any_dropped = false;
  for (node_number n = 0; n < nodes_.size(); ++n) {
    const auto view = pool_->view(n);
    if (view.is_named && !view.is_dropped)
      return false;
    any_dropped = any_dropped || view.is_dropped;
  }
  return any_dropped;
}

} // namespace mneme
