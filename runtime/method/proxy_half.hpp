/// proxy_half: what the third party of a method remembers and does: it receives from clients and advises them.
#pragma once
#include "runtime/method/server_half.hpp"
namespace mneme {

/// Calls come one at a time, in virtual order.
class proxy_half {
public:
  virtual ~proxy_half() = default;
  /// What a client has sent (client_result::to_proxy) arrives.
  virtual void receive(const delivery& in) = 0;
  /// The server has stepped, and the proxy is given the model as it arrives: what is said to clients from now on, until
  /// the next call; null: nothing. May ask for jobs.
  virtual task<tensors_ref> advise(server_context& ctx, const round_place& place, const tensors_ref& model) = 0;
  /// The proxy's own figures for summary.json, by key, at the end of the run.
  [[nodiscard]] virtual std::map<std::string, double> figures() const { return {}; }
  /// All that calls have changed since the constructor, as server_half::persist has it.
  virtual void persist(archive& state) = 0;
};

} // namespace mneme
