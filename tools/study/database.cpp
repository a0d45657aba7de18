#include "tools/study/database.hpp"
#include <sqlite3.h>
#include <stdexcept>
namespace mneme {

namespace {
constexpr int patience_ms = 10'000; // longest wait for another process that writes
}

database::database(const std::filesystem::path& file) : name_(file.string()) {
  if (sqlite3_open(name_.c_str(), &handle_) != SQLITE_OK) {
    const std::string reason = sqlite3_errmsg(handle_);
    sqlite3_close(handle_);
    throw std::runtime_error(name_ + ": " + reason);
  }
  sqlite3_busy_timeout(handle_, patience_ms);
}

database::~database() { sqlite3_close(handle_); }

void database::run(const std::string& sql) const {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    fail();
}

std::int64_t database::last_row() const { return sqlite3_last_insert_rowid(handle_); }

void database::fail() const {
  const int code = sqlite3_errcode(handle_) & 0xff; // masks SQLite's extended codes
  const auto text = name_ + ": " + sqlite3_errmsg(handle_);
  // An SQL error in mneme's statements means that the file has other tables.
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR || code == SQLITE_SCHEMA)
    throw damaged_database(text);
  throw std::runtime_error(text);
}

database_statement::database_statement(const database& in, const std::string& sql) : database_(in) {
  if (sqlite3_prepare_v2(in.handle(), sql.c_str(), -1, &statement_, nullptr) != SQLITE_OK)
    in.fail();
}

database_statement::~database_statement() { sqlite3_finalize(statement_); }

void database_statement::expect_bound(int code) const {
  if (code != SQLITE_OK)
    database_.fail();
}

database_statement& database_statement::bind(int parameter, std::string_view text) {
  expect_bound(sqlite3_bind_text64(statement_, parameter, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

database_statement& database_statement::bind(int parameter, std::int64_t number) {
  expect_bound(sqlite3_bind_int64(statement_, parameter, number));
  return *this;
}

database_statement& database_statement::bind(int parameter, double number) {
  expect_bound(sqlite3_bind_double(statement_, parameter, number));
  return *this;
}

database_statement& database_statement::bind_null(int parameter) {
  expect_bound(sqlite3_bind_null(statement_, parameter));
  return *this;
}

bool database_statement::next() {
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_ROW && code != SQLITE_DONE)
    database_.fail();
  return code == SQLITE_ROW;
}

void database_statement::run() {
  while (next()) {
  }
  sqlite3_reset(statement_);
}

std::string database_statement::text(int column) const {
  const auto* begin = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return begin ? std::string(begin, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))) : std::string();
}

std::int64_t database_statement::integer(int column) const { return sqlite3_column_int64(statement_, column); }

double database_statement::number(int column) const { return sqlite3_column_double(statement_, column); }

bool database_statement::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

} // namespace mneme
