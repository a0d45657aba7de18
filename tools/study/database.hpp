/// database: SQLite with exceptions instead of status codes. Errors throw std::runtime_error with SQLite's message.
#pragma once
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
struct sqlite3;
struct sqlite3_stmt;
namespace mneme {

class database;

/// Error of a file that is not an SQLite database or is damaged.
class damaged_database : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Prepared statement. Parameters count from 1, columns from 0.
class database_statement {
public:
  database_statement(const database& in, const std::string& sql);
  database_statement(const database_statement&) = delete;
  database_statement& operator=(const database_statement&) = delete;
  ~database_statement();

  database_statement& bind(int parameter, std::string_view text);
  database_statement& bind(int parameter, std::int64_t number);
  database_statement& bind(int parameter, double number);
  database_statement& bind_null(int parameter);
  /// Advances to the next row. Returns false after the last one.
  [[nodiscard]] bool next();
  /// Runs to the end and resets the statement for other parameters.
  void run();
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double number(int column) const;
  [[nodiscard]] bool is_null(int column) const;

private:
  void expect_bound(int code) const;
  const database& database_;
  sqlite3_stmt* statement_ = nullptr;
};

class database {
public:
  /// Opens or creates the file. ":memory:" is a database that exists as long as this object.
  explicit database(const std::filesystem::path& file);
  database(const database&) = delete;
  database& operator=(const database&) = delete;
  ~database();
  /// Runs statements without parameters and results.
  void run(const std::string& sql) const;
  [[nodiscard]] std::int64_t last_row() const;
  [[nodiscard]] sqlite3* handle() const noexcept { return handle_; }
  [[noreturn]] void fail() const;

private:
  std::string name_;
  sqlite3* handle_ = nullptr;
};

} // namespace mneme
