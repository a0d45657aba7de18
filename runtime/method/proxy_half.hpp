/// proxy_half: the third party of a method. It receives messages of clients and sends them advice.
#pragma once
#include "runtime/method/server_half.hpp"
namespace mneme {

/// Calls come one at a time, in the order of virtual time.
class proxy_half {
public:
  virtual ~proxy_half() = default;
  /// Handles a client's message (client_result::to_proxy).
  virtual void receive(const delivery& in) = 0;
  /// Called after each server step. `model` is the server's model as the proxy receives it. Returns the advice that
  /// clients receive until the next call, or null for none. May request jobs.
  virtual task<tensors_ref> advise(server_context& ctx, const round_info& info, const tensors_ref& model) = 0;
  /// Metrics of the proxy for summary.json, by key; called at the end of the run.
  [[nodiscard]] virtual std::map<std::string, double> summary_metrics() const { return {}; }
  /// Saves or loads all state that calls have changed since construction; see server_half::persist.
  virtual void persist(archive& state) = 0;
};

} // namespace mneme
