#include "tests/runtime/federation/model_check/player.hpp"
#include "runtime/federation/shard_journal.hpp"
#include <algorithm>
namespace mneme::test {
namespace {

/// Checkpoint on disk: state of federation and server, and the number of recorded lines.
struct kept_checkpoint {
  archive::buffer bytes{};
  std::size_t events = 0, evaluations = 0;
};

archive::buffer written(const archive& state) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  state.each_piece([&](std::span<const std::byte> piece) { bytes->insert(bytes->end(), piece.begin(), piece.end()); });
  return bytes;
}

template <class Queue>
auto front_of(Queue& queue) {
  auto front = std::move(queue.front());
  queue.pop_front();
  return front;
}

class player {
public:
  player(const toy_federation& toy, const play_style& style)
      : toy_(toy), style_(style), stream_({.seed = style.seed, .purpose = first_method_purpose + 1}) {}
  run_outcome play();

private:
  using party_message = std::variant<open_task, open_round, deliveries, take_step, evaluate, save_state, restore_state>;
  using recorder_message = std::variant<evaluation_record, recorded_events, run_warning, progress_snapshot,
                                        save_task_model, save_checkpoint>;

  void begin();
  void cut_off();
  bool step();
  void carry_out();
  template <class Command>
  void route(Command& wanted);
  void step_shard(std::size_t s);
  void lose_or_find_host();
  void change_host(std::size_t s);
  void forward_pending(std::size_t s);

  void serve(open_task&) { federation_->handle(toy_.plans.at(server_task_++)); }
  void serve(open_round& in);
  void serve(evaluate& in);
  void serve(deliveries& in);
  void serve(take_step& in);
  void serve(save_state& in);
  void serve(restore_state& in);
  void keep(recorded_events& in) { out_.events.insert(out_.events.end(), in.events.begin(), in.events.end()); }
  void keep(evaluation_record& in) { out_.evaluations.push_back(std::move(in)); }
  void keep(save_checkpoint& in);
  void keep(run_warning&) {}
  void keep(progress_snapshot&) {}
  void keep(save_task_model&) {}
  void persist(party_id who, archive& state);

  const toy_federation& toy_;
  play_style style_;
  rng_stream stream_;
  std::int64_t interruptions_left_ = 6; // bounded, so that runs end
  std::optional<federation> federation_;
  std::vector<federation_command> commands_;
  std::vector<toy_shard> shards_;
  std::vector<std::deque<toy_shard::message>> to_shards_;
  std::vector<shard_journal> journals_; // empty if hosts are never lost
  std::vector<bool> is_hosted_;
  std::array<std::deque<party_message>, parties.size()> to_parties_;
  std::deque<recorder_message> to_recorder_;
  toy_server server_;
  toy_proxy proxy_;
  std::size_t server_task_ = 0; // index of the next one to open
  std::optional<kept_checkpoint> checkpoint_;
  run_outcome out_;
  std::optional<run_report> report_;
  bool stop_asked_ = false, is_paused_ = false;
};

run_outcome player::play() {
  begin();
  for (;;) {
    if (interruptions_left_ > 0 && stream_.uniform() < style_.cut_off)
      cut_off();
    if (interruptions_left_ > 0 && stream_.uniform() < style_.stop) {
      --interruptions_left_;
      stop_asked_ = true;
      federation_->stop();
    }
    if (!journals_.empty() && stream_.uniform() < style_.lose_host)
      lose_or_find_host();
    if (step())
      continue;
    if (std::find(is_hosted_.begin(), is_hosted_.end(), false) != is_hosted_.end()) {
      lose_or_find_host();
      continue;
    }
    require(report_.has_value(), "a run that is not over asks for something");
    if (report_->status == run_status::done)
      break;
    if (report_->status == run_status::failed && toy_.fails_one_of > 0) {
      out_.report = *report_; // shards need not receive abandoned assignments in this case
      return std::move(out_);
    }
    require(report_->status == run_status::interrupted, report_->error.c_str());
    require(std::exchange(stop_asked_, false), "a run ends");
    begin();
  }
  for (const auto& shard : shards_)
    require(shard.is_empty(), "a shard is told of all that is abandoned");
  out_.report = *report_;
  if (checkpoint_)
    out_.checkpoint = checkpoint_->bytes;
  return std::move(out_);
}

/// Starts from the newest checkpoint, if there is one, and drops later records.
void player::begin() {
  report_.reset();
  shards_.clear();
  for (std::uint32_t s = 0; s < toy_.settings.shards; ++s) {
    shards_.emplace_back(toy_, shard_id{s});
    shards_.back().split_by(style_.in_order ? nullptr : &stream_);
  }
  to_shards_.assign(shards_.size(), {});
  journals_.clear();
  for (std::uint32_t s = 0; s < shards_.size() && style_.lose_host > 0.0; ++s) {
    journals_.emplace_back(shard_id{s}, *toy_.settings.clients);
    journals_.back().host_found();
  }
  is_hosted_.assign(journals_.size(), true);
  to_parties_ = {};
  to_recorder_.clear();
  server_ = {};
  proxy_ = {};
  server_task_ = 0;
  is_paused_ = false;
  federation_.emplace(toy_.settings);
  out_.events.resize(checkpoint_ ? checkpoint_->events : 0);
  out_.evaluations.resize(checkpoint_ ? checkpoint_->evaluations : 0);
  if (checkpoint_)
    federation_->resume(archive(checkpoint_->bytes, 0, checkpoint_->bytes->size()));
  else {
    out_.models.clear();
    federation_->begin();
  }
  carry_out();
}

void player::cut_off() {
  --interruptions_left_;
  begin();
}

/// Lets one peer make one step. Returns false if no peer had a step to make.
bool player::step() {
  std::vector<std::function<void()>> possible;
  for (auto& messages : to_parties_)
    if (!messages.empty())
      possible.push_back([this, &messages] {
        auto next = front_of(messages);
        std::visit([this](auto& in) { serve(in); }, next);
      });
  if (!to_recorder_.empty())
    possible.push_back([this] {
      auto next = front_of(to_recorder_);
      std::visit([this](auto& in) { keep(in); }, next);
    });
  for (std::size_t s = 0; s < shards_.size(); ++s)
    if (!to_shards_[s].empty() || shards_[s].has_report())
      possible.push_back([this, s] { step_shard(s); });
  if (is_paused_)
    possible.push_back([this] {
      is_paused_ = false;
      federation_->continue_events();
    });
  if (possible.empty())
    return false;
  federation_->allow_checkpoints(stream_.uniform() < 0.5);
  possible[style_.in_order ? 0 : stream_.below(possible.size())]();
  carry_out();
  return true;
}

void player::carry_out() {
  federation_->take_commands(commands_);
  for (auto& wanted : commands_) {
    require(!report_, "a run that is over asks for nothing");
    std::visit([this](auto& command) { route(command); }, wanted);
  }
}

template <class Command>
void player::route(Command& wanted) {
  if constexpr (std::is_same_v<Command, run_report>)
    report_ = std::move(wanted);
  else if constexpr (std::is_same_v<Command, pause>)
    is_paused_ = true;
  else if constexpr (requires { wanted.to.value; }) {
    const auto s = wanted.to.value;
    if (journals_.empty())
      return to_shards_.at(s).push_back(std::move(wanted));
    journals_.at(s).record(std::move(wanted));
    forward_pending(s);
  } else if constexpr (requires { wanted.to; })
    to_parties_.at(index_of(wanted.to)).push_back(std::move(wanted));
  else if constexpr (std::is_constructible_v<party_message, Command&&>)
    to_parties_.front().push_back(std::move(wanted));
  else
    to_recorder_.push_back(std::move(wanted));
}

/// Delivers a message to a shard, or a report of the shard to the federation.
void player::step_shard(std::size_t s) {
  auto& messages = to_shards_[s];
  const bool hears = !messages.empty() && (!shards_[s].has_report() || (!style_.in_order && stream_.below(2) == 0));
  if (hears) {
    shards_[s].handle(front_of(messages));
    return;
  }
  auto report = shards_[s].take_report();
  if (journals_.empty())
    return federation_->handle(report);
  for (auto& issued : report.issued)
    issued.compute_duration = {}; // not sent over the network
  const auto wrong = journals_[s].record(std::move(report));
  require(wrong.empty(), wrong.c_str(), s);
  forward_pending(s);
}

void player::forward_pending(std::size_t s) {
  for (auto& wanted : journals_[s].take_commands())
    to_shards_[s].push_back(std::move(wanted));
  for (auto& report : journals_[s].take_reports())
    federation_->handle(report);
}

/// Loses the host with all messages in transit to and from it.
void player::lose_or_find_host() {
  const auto s = stream_.below(journals_.size());
  if (is_hosted_[s] && journals_[s].is_quiet() && stream_.below(2) == 0)
    return change_host(s);
  if (is_hosted_[s]) {
    journals_[s].host_lost();
    to_shards_[s].clear();
    shards_[s] = toy_shard(toy_, shard_id{static_cast<std::uint32_t>(s)});
    shards_[s].split_by(style_.in_order ? nullptr : &stream_);
  } else {
    journals_[s].host_found();
    forward_pending(s);
    carry_out();
  }
  is_hosted_[s] = !is_hosted_[s];
}

/// Moves the shard to another host. The old host receives the messages in transit, and then its end.
void player::change_host(std::size_t s) {
  const auto left = journals_[s].change_host();
  for (const auto& wanted : to_shards_[s])
    shards_[s].handle(wanted);
  to_shards_[s].clear();
  shards_[s].handle(left);
  require(shards_[s].is_empty() && !shards_[s].has_report(), "an old host has nothing left to do", s);
  forward_pending(s);
  carry_out();
}

// -- server -----------------------------------------------------------------------------------------------------------

void player::serve(open_round& in) {
  broadcast made{.info = in.where, .weights = as_tensors(server_.model, toy_.broadcast_bytes)};
  opened_round answer{.in = std::make_shared<const broadcast>(std::move(made)),
                      .bytes = toy_.broadcast_bytes,
                      .initial_payload_bytes = toy_.once_bytes};
  federation_->handle(answer);
}

void player::serve(evaluate& in) {
  const task_id last{static_cast<std::uint32_t>(in.masks.size() - 1)};
  federation_->handle(server_.evaluate(last, in.masks.back()));
}

// -- all parties ------------------------------------------------------------------------------------------------------

void player::serve(deliveries& in) {
  require(!in.uploads.empty(), "a bundle holds uploads");
  for (const auto& sent : in.uploads)
    if (in.to == party_id::server)
      server_.fold(sent, as_number(sent.upload));
    else
      proxy_.receive(sent, as_number(sent.upload));
  if (in.ack_when_folded)
    federation_->on_uploads_folded();
}

void player::serve(take_step& in) {
  if (in.to == party_id::proxy) {
    const auto digest = proxy_.advise(as_number(in.model));
    return federation_->handle(step_taken{.digest = digest,
                                          .advice = as_tensors(proxy_.advice),
                                          .advice_bytes = toy_proxy::advice_bytes,
                                          .model_bytes = toy_proxy::model_bytes});
  }
  const auto digest = server_.step();
  out_.models.push_back(server_.model);
  federation_->handle(step_taken{.digest = digest, .advice = as_tensors(server_.model)});
}

void player::persist(party_id who, archive& state) {
  if (who == party_id::proxy) {
    state.section("proxy")(proxy_.sum)(proxy_.advice);
    return;
  }
  std::uint64_t models = out_.models.size(), task = server_task_;
  state.section("server")(server_.model)(server_.sum)(models)(task);
  out_.models.resize(models);
  server_task_ = task;
}

void player::serve(save_state& in) {
  persist(in.to, in.so_far);
  saved_state answer{.state = std::move(in.so_far)};
  federation_->handle(answer);
}

void player::serve(restore_state& in) {
  persist(in.to, in.sections);
  restored_state answer{.sections = std::move(in.sections)};
  federation_->handle(answer);
}

// -- recorder ---------------------------------------------------------------------------------------------------------

void player::keep(save_checkpoint& in) {
  checkpoint_ = {.bytes = written(in.run), .events = out_.events.size(), .evaluations = out_.evaluations.size()};
  federation_->on_checkpoint_written();
}

} // namespace

run_outcome played(const toy_federation& toy, const play_style& style) { return player(toy, style).play(); }

} // namespace mneme::test
