/// actor_metrics_exporter: metrics of an actor system in a live view.
#pragma once
#include "actors/protocol/process_state.hpp"
#include "runtime/results/live_view.hpp"
#include <caf/actor_system.hpp>
namespace mneme {

/// Exposes the system's metrics until this object is destroyed. @pre the system outlives this object
class actor_metrics_exporter {
public:
  /// @param live may be null
  actor_metrics_exporter(const caf::actor_system& system, live_view* live) : source_(std::make_shared<source>()) {
    source_->metrics = &system.metrics();
    if (live)
      live->has_actors([source = source_] {
        const std::lock_guard hold(source->mutex);
        return source->metrics ? prometheus_text(*source->metrics) : std::string();
      });
  }
  actor_metrics_exporter(const actor_metrics_exporter&) = delete;
  actor_metrics_exporter& operator=(const actor_metrics_exporter&) = delete;
  ~actor_metrics_exporter() {
    const std::lock_guard hold(source_->mutex);
    source_->metrics = nullptr;
  }

private:
  struct source {
    std::mutex mutex;
    const metric_registry* metrics = nullptr; // null: the system has ended
  };
  std::shared_ptr<source> source_;
};

} // namespace mneme
