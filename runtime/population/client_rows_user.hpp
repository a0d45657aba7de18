/// client_rows_user: interface of methods that check which training rows their clients request.
#pragma once
#include "runtime/population/client_rows.hpp"
namespace mneme {

/// Implemented by methods whose client half is user code (tools/python/engine) that requests rows by number.
class client_rows_user {
public:
  virtual ~client_rows_user() = default;
  /// Called once per run, after strategy::prepare().
  virtual void set_client_rows(const std::shared_ptr<const client_rows>& rows) = 0;
};

} // namespace mneme
