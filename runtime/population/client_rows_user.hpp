/// client_rows_user: a method that checks which training rows its clients name.
#pragma once
#include "runtime/population/client_rows.hpp"
namespace mneme {

/// For methods whose client half is foreign code (tools/python/engine), which names rows by number.
class client_rows_user {
public:
  virtual ~client_rows_user() = default;
  /// Called once for each run, after strategy::prepare().
  virtual void set_client_rows(const std::shared_ptr<const client_rows>& rows) = 0;
};

} // namespace mneme
