#include "actors/nodes/replayed_rounds.hpp"
#include "actors/compute/run_batch.hpp"
#include "actors/compute/shard.hpp"
#include "runtime/base/intra_op_threads.hpp"
#include "runtime/training/executor.hpp"
namespace mneme {
namespace {

/// Runs the only client of a shard on the calling thread.
class lone_client final : public client_host {
public:
  explicit lone_client(const run_context& run) : run_(run) {}
  /// @param owner receives the answers of the client
  void answers_to(shard& owner) { owner_ = &owner; }

  [[nodiscard]] std::unique_ptr<client_handle> start(assignment assigned) override {
    id_ = assigned.id;
    round_ = std::make_unique<client_round_runner>(*run_.method, std::move(assigned), run_.generated_rows.get());
    next_ = [this] { return round_->start(); };
    return std::make_unique<hosted>(*this);
  }
  void run_turns() override {
    while (auto turn = std::exchange(next_, nullptr))
      owner_->on_round_progress(id_, turn());
  }

private:
  class hosted final : public client_handle {
  public:
    explicit hosted(lone_client& host) : host_(host) {}
    void resume(outcomes results) override {
      auto known = std::make_shared<outcomes>(std::move(results));
      host_.next_ = [&round = *host_.round_, known] { return round.resume(std::move(*known)); };
    }
    void abandon() override { host_.next_ = nullptr; }

  private:
    lone_client& host_;
  };

  const run_context& run_;
  shard* owner_ = nullptr;
  assignment_id id_{};
  std::unique_ptr<client_round_runner> round_;
  std::function<round_step()> next_;
};

/// Ends programs once the run ends.
class stop_watch final : public slice_monitor {
public:
  stop_watch(const run_context& run, const std::stop_token& stop) : run_(run), stop_(stop) {}
  [[nodiscard]] bool should_continue(const std::string& /*name*/, double /*progress*/) override {
    return !should_stop();
  }
  [[nodiscard]] bool should_stop() override {
    return stop_.stop_requested() || (run_.interrupts && run_.interrupts->load() > 0);
  }

private:
  const run_context& run_;
  const std::stop_token& stop_;
};

} // namespace

replayed_rounds::replayed_rounds(run_context_ref run, std::function<void(replay_report)> report)
    : run_(std::move(run)), report_(std::move(report)) {}

replayed_rounds::~replayed_rounds() {
  thread_.request_stop();
  changed_.notify_all();
}

void replayed_rounds::compute(assignment given) {
  const std::lock_guard hold(mutex_);
  waiting_.push_back(std::move(given));
  if (!thread_.joinable())
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  changed_.notify_all();
}

void replayed_rounds::run(const std::stop_token& stop) {
  disable_intra_op_threads();
  const auto on = make_executor(run_->device, run_->features);
  std::unique_lock hold(mutex_);
  while (changed_.wait(hold, stop, [this] { return !waiting_.empty(); })) {
    auto next = std::move(waiting_.front());
    waiting_.pop_front();
    hold.unlock();
    compute(std::move(next), *on, stop);
    hold.lock();
  }
}

/// Runs each job as a separate batch, which does not change results on a CPU.
void replayed_rounds::compute(assignment given, executor& on, const std::stop_token& stop) {
  std::atomic<std::int64_t> busy_ns = 0; // run_batch() requires it; the value is unused
  stop_watch watch(*run_, stop);
  lone_client client(*run_);
  shard rounds({}, *run_, client);
  client.answers_to(rounds);
  start_rounds wave;
  wave.assignments.push_back(std::move(given));
  wave.ready.emplace_back();
  rounds.start(std::move(wave));
  while (rounds.has_news() && !stop.stop_requested()) {
    for (auto& report : rounds.take_reports()) {
      std::vector<composition> alone;
      for (const auto& job : report.issued)
        alone.push_back({job.id});
      for (auto& finished : report.finished)
        report_({.id = finished.id, .result = std::move(finished.result)});
      for (auto& failure : report.failed)
        report_({.id = failure.last_job.assignment, .failure = std::move(failure.reason)});
      if (!alone.empty())
        rounds.release(std::move(alone));
    }
    for (auto& batch : rounds.take_batches())
      rounds.on_batch_done(batch.ids, run_batch(batch.jobs, on, busy_ns, &watch));
  }
}

} // namespace mneme
