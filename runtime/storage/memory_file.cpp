#include "runtime/storage/memory_file.hpp"
#include "runtime/base/archive.hpp"
#include "runtime/base/check.hpp"
#include <sqlite3.h>
#include <stdexcept>
namespace mneme {
namespace {

/// Devices of the map's tensors, in map order. They are stored because an archive loads tensors to the host.
std::vector<std::pair<at::DeviceType, at::DeviceIndex>> devices_of(const tensor_map& tensors) {
  std::vector<std::pair<at::DeviceType, at::DeviceIndex>> devices;
  for (const auto& [name, tensor] : tensors)
    devices.emplace_back(tensor.device().type(), tensor.device().index());
  return devices;
}

archive::buffer encoded(tensor_map tensors) {
  auto devices = devices_of(tensors);

  archive saved;
  saved(devices)(tensors);
  return saved.contents();
}

tensor_map decoded(const archive::buffer& bytes) {
  std::vector<std::pair<at::DeviceType, at::DeviceIndex>> devices;
  tensor_map tensors;
  archive loaded(bytes, 0, bytes->size());
  loaded(devices)(tensors).expect_end();

  tensor_map placed;
  auto device = devices.begin();
  for (const auto& [name, tensor] : tensors) {
    placed.put(name, tensor.to({device->first, device->second}));
    ++device;
  }
  return placed;
}

} // namespace

memory_file::memory_file() {
  if (sqlite3_open("", &database_) != SQLITE_OK) // "": a private file, deleted when closed
    fail();
  for (const char* setting : {"PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF",
                              "PRAGMA locking_mode = EXCLUSIVE", "PRAGMA cache_size = -8192" /* KiB */})
    run(setting);
  run("CREATE TABLE memories (client INTEGER PRIMARY KEY, content BLOB NOT NULL)");
  write_ = prepared("INSERT OR REPLACE INTO memories VALUES (?1, ?2)");
  read_ = prepared("SELECT content FROM memories WHERE client = ?1");
  erase_ = prepared("DELETE FROM memories WHERE client = ?1");
}

memory_file::~memory_file() {
  for (auto* statement : {write_, read_, erase_})
    sqlite3_finalize(statement);
  sqlite3_close(database_);
}

void memory_file::write(client_id client, const tensor_map& memory) {
  const auto bytes = encoded(memory);
  sqlite3_bind_int64(write_, 1, client.value);
  sqlite3_bind_blob64(write_, 2, bytes->data(), bytes->size(), SQLITE_STATIC);
  step(write_);
  sqlite3_reset(write_);
}

memory_ref memory_file::read(client_id client) {
  sqlite3_bind_int64(read_, 1, client.value);
  const bool has_row = step(read_);
  MNEME_CHECK(has_row, client.value);
  const auto* first = static_cast<const std::byte*>(sqlite3_column_blob(read_, 0));
  const auto bytes = std::make_shared<const std::vector<std::byte>>(first, first + sqlite3_column_bytes(read_, 0));
  sqlite3_reset(read_);
  return std::make_shared<const tensor_map>(decoded(bytes));
}

void memory_file::erase(client_id client) {
  sqlite3_bind_int64(erase_, 1, client.value);
  step(erase_);
  sqlite3_reset(erase_);
}

void memory_file::run(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    fail();
}

sqlite3_stmt* memory_file::prepared(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK)
    fail();
  return statement;
}

bool memory_file::step(sqlite3_stmt* statement) {
  const auto state = sqlite3_step(statement);
  if (state != SQLITE_ROW && state != SQLITE_DONE)
    fail();
  return state == SQLITE_ROW;
}

void memory_file::fail() const {
  throw std::runtime_error(std::string("the file of client memories (clients.memory_limit; below $TMPDIR): ") +
                           (database_ ? sqlite3_errmsg(database_) : "out of memory"));
}

} // namespace mneme
