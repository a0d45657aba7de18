/// client_view: context and result of a client half written in Python.
#pragma once
#include "strategies/shared/averaging.hpp"
#include "tools/python/engine/job_requests.hpp"
#include <optional>
namespace mneme {

/// Broadcast as passed to Python, shared by all clients of a round.
struct broadcast_view {
  broadcast sent{};
  tensors_ref weights{};       ///< All weights of the net [P]; null if none were sent.
  nb::object weights_object{}; ///< The weights as a torch tensor, or None.
  nb::object tensors_object{}; ///< A dict of the other tensors.
  [[nodiscard]] bool is_of(const broadcast& in) const;
};

/// Context of one client's round.
struct client_view {
  const method_setup* setup = nullptr;
  const client_context* context = nullptr; ///< Null after the round.
  const broadcast_view* in = nullptr;
  std::shared_ptr<const row_owner> owner{};
  nb::object memory{}; ///< A dict that is created on first access.

  [[nodiscard]] const client_context& live() const;
  [[nodiscard]] job_defaults world() const;
};

/// Upload that Python returned: `mneme.Upload(weights, tensors, rows=, memory=, counts=)`.
struct upload_object {
  nb::object weights{}, tensors{}, memory{}, counts{};
  std::optional<std::int64_t> rows{};
};

/// Random number stream of a client or server.
struct random_stream {
  rng_stream stream;
};

void bind_client_view(nb::module_& module);

} // namespace mneme
