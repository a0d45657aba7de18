#include "runtime/storage/memory_file.hpp"
#include "runtime/base/check.hpp"
#include <ATen/ops/empty.h>
#include <cstring>
#include <sqlite3.h>
#include <stdexcept>
namespace mneme {
namespace {

// A map as bytes: for each tensor its name, dtype, device, axes and content, whole numbers as 8 bytes of this machine.

void put(std::string& to, std::int64_t number) { to.append(reinterpret_cast<const char*>(&number), sizeof number); }

std::string encoded(const tensor_map& what) {
  std::string bytes;
  bytes.reserve(static_cast<std::size_t>(what.bytes()) + 128 * what.size());
  for (const auto& [name, tensor] : what) {
    const auto host = tensor.cpu();
    put(bytes, std::ssize(name));
    bytes += name;
    put(bytes, static_cast<std::int64_t>(tensor.scalar_type()));
    put(bytes, static_cast<std::int64_t>(tensor.device().type()));
    put(bytes, tensor.device().index());
    put(bytes, host.dim());
    for (const auto size : host.sizes())
      put(bytes, size);
    bytes.append(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  }
  return bytes;
}

class decoder {
public:
  explicit decoder(std::string_view bytes) : rest_(bytes) {}

  tensor_map all() {
    tensor_map made;
    while (!rest_.empty()) {
      std::string name(next(static_cast<std::size_t>(number())));
      made.put(std::move(name), tensor());
    }
    return made;
  }

private:
  std::string_view next(std::size_t bytes) {
    MNEME_CHECK(bytes <= rest_.size(), bytes, rest_.size());
    const auto part = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return part;
  }
  std::int64_t number() {
    std::int64_t value = 0;
    std::memcpy(&value, next(sizeof value).data(), sizeof value);
    return value;
  }
  at::Tensor tensor() {
    const auto type = static_cast<at::ScalarType>(number());
    const auto device = static_cast<at::DeviceType>(number());
    const at::Device where(device, static_cast<at::DeviceIndex>(number()));
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(number()));
    for (auto& size : sizes)
      size = number();
    auto made = at::empty(sizes, at::TensorOptions().dtype(type));
    const auto content = next(made.nbytes());
    std::memcpy(made.mutable_data_ptr(), content.data(), content.size());
    return made.to(where);
  }

  std::string_view rest_;
};

} // namespace

memory_file::memory_file() {
  if (sqlite3_open("", &database_) != SQLITE_OK) // "": a private file, deleted on closing
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
  for (auto* one : {write_, read_, erase_})
    sqlite3_finalize(one);
  sqlite3_close(database_);
}

void memory_file::write(client_id who, const tensor_map& what) {
  const auto bytes = encoded(what);
  sqlite3_bind_int64(write_, 1, who.value);
  sqlite3_bind_blob64(write_, 2, bytes.data(), bytes.size(), SQLITE_STATIC);
  step(write_);
  sqlite3_reset(write_);
}

memory_ref memory_file::read(client_id who) {
  sqlite3_bind_int64(read_, 1, who.value);
  const bool found = step(read_);
  MNEME_CHECK(found, who.value);
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(read_, 0));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(read_, 0));
  auto made = std::make_shared<const tensor_map>(decoder({bytes, size}).all());
  sqlite3_reset(read_);
  return made;
}

void memory_file::erase(client_id who) {
  sqlite3_bind_int64(erase_, 1, who.value);
  step(erase_);
  sqlite3_reset(erase_);
}

void memory_file::run(const char* sql) {
  if (sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    fail();
}

sqlite3_stmt* memory_file::prepared(const char* sql) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(database_, sql, -1, &made, nullptr) != SQLITE_OK)
    fail();
  return made;
}

bool memory_file::step(sqlite3_stmt* what) {
  const auto state = sqlite3_step(what);
  if (state != SQLITE_ROW && state != SQLITE_DONE)
    fail();
  return state == SQLITE_ROW;
}

void memory_file::fail() const {
  throw std::runtime_error(std::string("the file of client memories (clients.memory_limit; below $TMPDIR): ") +
                           (database_ ? sqlite3_errmsg(database_) : "out of memory"));
}

} // namespace mneme
