#include "actors/nodes/node_session.hpp"
#include "actors/run/load_run_context.hpp"
#include "runtime/scenario/named_paths.hpp"
#include "runtime/scenario/read.hpp"
#include "runtime/training/executor.hpp"
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
namespace mneme {
namespace {

void write(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush())
    throw std::runtime_error("'" + path.string() + "' cannot be written");
}

constexpr std::string_view folder_begin = "mneme-node-";
constexpr const char* lock_name = "lock";

/// Removes the folders of killed nodes. No process holds the locks of their lock files. A folder without a lock file is
/// new or empty.
void remove_leftovers(const std::filesystem::path& around) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(around, ignored), end; !ignored && at != end; at.increment(ignored)) {
    if (!at->path().filename().string().starts_with(folder_begin))
      continue;
    const owned_descriptor lock(::open((at->path() / lock_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    struct stat status {};
    if (lock.get() >= 0 && ::fstat(lock.get(), &status) == 0 && status.st_uid == ::geteuid() &&
        ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0)
      std::filesystem::remove_all(at->path(), ignored);
  }
}

} // namespace

// -- files ------------------------------------------------------------------------------------------------------------

node_files::node_files() {
  const auto around = std::filesystem::temp_directory_path();
  remove_leftovers(around);
  auto name = (around / (std::string(folder_begin) + "XXXXXX")).string();
  if (!::mkdtemp(name.data()))
    throw std::system_error(errno, std::generic_category(), "cannot create a folder below '" + name + "'");
  folder_ = name;
  lock_ = owned_descriptor(::open((folder_ / lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock_.get() < 0 || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    throw std::system_error(errno, std::generic_category(), "'" + name + "' cannot be locked");
}

node_files::~node_files() { remove(); }

void node_files::remove() noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::filesystem::path node_files::path_of(const offered_file& file) const {
  std::string extension; // file readers need the extension; the rest of the peer's file name is ignored
  for (const char letter : file.extension.substr(0, 16))
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0)
      extension += letter;
  return folder_ / (hex_text(file.content) + (extension.empty() ? "" : "." + extension));
}

std::filesystem::path node_files::find(const offered_file& file) const {
  auto path = path_of(file);
  return std::filesystem::exists(path) ? path : std::filesystem::path{};
}

void node_files::put(const offered_file& file, const std::vector<std::byte>& bytes) {
  if (digest_of(bytes) != file.content)
    throw archive_error("has content for " + file.key + " that differs from the offer");
  write(path_of(file), bytes);
}

// -- session ----------------------------------------------------------------------------------------------------------

expected<std::shared_ptr<run_context>> node_session::load(const node_files& files, bool native_code,
                                                          std::optional<std::int64_t> local_rank) const {
  overrides over;
  for (const auto& key : offer.emptied)
    over.emplace_back(key, "\"\"");
  for (const auto& file : offer.files)
    over.emplace_back(file.key, "\"" + files.find(file).string() + "\"");
  auto read = read_received_scenario(offer.scenario, over);
  if (!read)
    return tl::unexpected(read.error());
  for (const auto& [key, path] : named_paths(read->value)) // includes paths that a method derives from its keys
    if (path.parent_path() != files.folder())
      return failed(key, "names a file of another machine; expected its content");
  read->value.name = offer.name;
  if (local_rank)
    read->value.worker.device = device_of_rank(read->value.worker.device, *local_rank);
  if (!read->value.model.module.empty() && read->value.model.native_code && !native_code)
    return failed("model.native_code", "expected false: this node loads modules only after a trial in a sandbox; start "
                                       "it with --native-code if you trust everyone who can run scenarios on it");
  if (!read->value.model.backbone.empty()) // a backbone scenario would name files of its own
    return failed("model.backbone", "expected the trained weights instead of a scenario");
  return load_run_context(read->value, {});
}

void node_session::lay_out(const node_layout& layout, std::int64_t threads) {
  context->shards = std::clamp<std::int64_t>(layout.shards, 1, shards_of_nodes_max);
  context->node_workers = std::max<std::int64_t>(layout.node_workers, 1);
  context->batches_per_worker = std::max<std::int64_t>(layout.batches_per_worker, 1);
  context->workers = context->hosts = threads;
  context->control_computes = false;
  context->interrupts = &interrupts;
}

std::string device_of_rank(const std::string& setting, std::int64_t local_rank) {
  const auto resolved = resolve_device(setting);
  if (!resolved || !resolved->starts_with("cuda:"))
    return setting;
  const auto device = [](std::int64_t index) { return "cuda:" + std::to_string(index); };
  std::int64_t devices = 1; // cuda:0 exists, because a CUDA device was resolved
  while (resolve_device(device(devices)))
    ++devices;
  return device(local_rank % devices);
}

} // namespace mneme
