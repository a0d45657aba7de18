/// memory_file: tensor maps by client, in an unnamed file that is deleted when closed.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/tensor_map.hpp"
struct sqlite3;
struct sqlite3_stmt;
namespace mneme {

/// A private temporary SQLite database without a journal, in $SQLITE_TMPDIR, $TMPDIR or /var/tmp. Errors throw
/// std::runtime_error.
class memory_file {
public:
  memory_file();
  memory_file(const memory_file&) = delete;
  memory_file& operator=(const memory_file&) = delete;
  ~memory_file();

  /// Starts a transaction.
  void begin() { run("BEGIN"); }
  /// Ends the transaction.
  void commit() { run("COMMIT"); }

  /// Inserts or replaces a client's memory.
  void write(client_id client, const tensor_map& memory);
  /// Reads a client's memory. @pre it was written and not erased
  [[nodiscard]] memory_ref read(client_id client);
  void erase(client_id client);

private:
  void run(const char* sql);
  [[nodiscard]] sqlite3_stmt* prepared(const char* sql);
  /// Runs a statement to its first row or to its end. Returns whether there is a row.
  bool step(sqlite3_stmt* statement);
  [[noreturn]] void fail() const;

  sqlite3* database_ = nullptr;
  sqlite3_stmt *write_ = nullptr, *read_ = nullptr, *erase_ = nullptr;
};

} // namespace mneme
