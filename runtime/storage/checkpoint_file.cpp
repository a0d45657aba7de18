#include "runtime/storage/checkpoint_file.hpp"
#include "runtime/base/atomic_file.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/base/disk_file.hpp"
#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <system_error>
namespace mneme {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "MNEMECKP", extension = ".checkpoint";
constexpr std::size_t head_bytes = magic.size() + sizeof checkpoint_format, digest_bytes = 16;
constexpr std::size_t sections_max = 64;

/// The checkpoint files of the folder with their numbers, newest first. Other files are ignored.
std::vector<std::pair<std::uint64_t, fs::path>> checkpoints_in(const fs::path& folder) {
  std::vector<std::pair<std::uint64_t, fs::path>> files;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const auto name = at->path().stem().string();
    const bool numbered = !name.empty() && name.size() <= 18 && name.find_first_not_of("0123456789") == name.npos;
    if (at->path().extension() == extension && numbered)
      files.emplace_back(std::stoull(name), at->path());
  }
  std::sort(files.rbegin(), files.rend());
  return files;
}

expected<archive::buffer> bytes_of(const fs::path& path) {
  std::error_code unknown;
  if (fs::file_size(path, unknown) == 0 && !unknown)
    return std::make_shared<std::vector<std::byte>>();
  auto file = disk_file::open(path);
  if (!file)
    return tl::unexpected{file.error()};
  auto bytes = std::make_shared<std::vector<std::byte>>(file->size_bytes());
  const auto read = file->read({reinterpret_cast<std::uint8_t*>(bytes->data()), bytes->size()});
  if (!read)
    return tl::unexpected{read.error()};
  bytes->resize(*read);
  return bytes;
}

/// Describes the defect of an incomplete or damaged file; "" if the bytes are complete.
std::string defect_of(std::span<const std::byte> bytes) {
  if (bytes.size() < head_bytes + digest_bytes)
    return "it ends after " + std::to_string(bytes.size()) + " bytes";
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return "it does not start like a checkpoint";
  digest128 stated;
  static_assert(sizeof stated == digest_bytes);
  std::memcpy(&stated, bytes.data() + bytes.size() - digest_bytes, digest_bytes);
  return digest_of(bytes.first(bytes.size() - digest_bytes)) == stated ? "" : "its checksum is wrong";
}

std::string complaint(const checkpoint_label& found, const checkpoint_label& expected_label) {
  if (found.scenario_digest != expected_label.scenario_digest)
    return "it belongs to another scenario: its digest is " + found.scenario_digest + ", that of scenario.toml is " +
           expected_label.scenario_digest + "; a run can be resumed only with the scenario it was started with";
  if (found.program != expected_label.program)
    return "it was written by mneme " + found.program + ", and this is mneme " + expected_label.program +
           ", which may compute other results; resume with the former, or run the scenario again";
  return {};
}

/// Parses a checkpoint. Fails if it belongs to another run or format. @pre defect_of(bytes) is ""
expected<checkpoint> parsed(const fs::path& path, const archive::buffer& bytes, const checkpoint_label& own_label) {
  std::uint32_t format = 0;
  std::memcpy(&format, bytes->data() + magic.size(), sizeof format);
  if (format != checkpoint_format)
    return failed(path.string(), fmt::format("this checkpoint has format {}, and this program reads format {}; resume "
                                             "with the version of mneme that wrote it, or run the scenario again",
                                             format, checkpoint_format));
  archive head(bytes, head_bytes, bytes->size() - head_bytes - digest_bytes);
  checkpoint_label label;
  std::vector<std::uint64_t> lengths;
  head(label)(lengths);
  if (const auto reason = complaint(label, own_label); !reason.empty())
    return failed(path.string(), "this checkpoint cannot be used: " + reason);
  checkpoint out{.path = path};
  auto from = bytes->size() - digest_bytes - head.size();
  for (const auto length : lengths) {
    if (out.sections.size() == sections_max || length > bytes->size() - digest_bytes - from)
      throw archive_error("its sections are longer than the file");
    out.sections.emplace_back(bytes, from, length);
    from += length;
  }
  return out;
}

} // namespace

expected<checkpoint_search> find_checkpoint(const fs::path& folder, const checkpoint_label& label,
                                            const std::function<std::string(const checkpoint&)>& accepts) {
  checkpoint_search out;
  for (const auto& [number, path] : checkpoints_in(folder)) {
    const auto bytes = bytes_of(path);
    if (!bytes) // the unreadable file may be complete, so an older one must not replace it
      return tl::unexpected{bytes.error()};
    if (const auto flaw = defect_of(**bytes); !flaw.empty()) {
      out.broken.push_back({path.string(), "this checkpoint is incomplete: " + flaw});
      continue;
    }
    expected<checkpoint> read;
    std::string reason;
    const auto damage = archive_error_of([&] {
      read = parsed(path, *bytes, label);
      if (read)
        reason = accepts(*read);
    });
    if (!read)
      return tl::unexpected{read.error()};
    if (damage.empty() && reason.empty()) {
      out.newest = std::move(*read);
      return out;
    }
    out.broken.push_back({path.string(), damage.empty() ? reason : "this checkpoint cannot be read: it " + damage});
  }
  return out;
}

checkpoint_folder::checkpoint_folder(fs::path path, checkpoint_label label, std::int64_t keep)
    : path_(std::move(path)), label_(std::move(label)), keep_(keep) {
  MNEME_CHECK(keep >= 1, keep);
}

void checkpoint_folder::forget_after(const fs::path& last) {
  std::error_code none;
  for (fs::directory_iterator at(path_, none), end; !none && at != end; at.increment(none))
    if (at->path().extension() == ".part")
      fs::remove(at->path());
  for (const auto& [number, path] : checkpoints_in(path_)) {
    if (path == last)
      return;
    fs::remove(path);
  }
}

void checkpoint_folder::write(std::span<const archive> sections) {
  if (std::error_code none; !fs::is_directory(path_.parent_path(), none)) // if the run folder was moved, it is not
                                                                          // created again
    throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                            "cannot write into '" + path_.string() + "'");
  fs::create_directory(path_);
  const auto there = checkpoints_in(path_);
  const auto number = there.empty() ? 1 : there.front().first + 1;
  atomic_file file(path_ / fmt::format("{:010}{}", number, extension));
  digest_stream digest;
  const auto put = [&](std::span<const std::byte> bytes) {
    digest.add(bytes);
    file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  put(std::as_bytes(std::span(magic)));
  put(std::as_bytes(std::span(&checkpoint_format, 1)));
  archive head;
  std::vector<std::uint64_t> lengths;
  for (const auto& part : sections)
    lengths.push_back(part.size());
  head(label_)(lengths);
  head.each_piece(put);
  for (const auto& part : sections)
    part.each_piece(put);
  const auto sum = digest.value();
  file.write({reinterpret_cast<const char*>(&sum), digest_bytes});
  file.commit();
  std::error_code ignored; // a file that remains does no harm
  for (std::size_t i = static_cast<std::size_t>(keep_) - 1; i < there.size(); ++i)
    fs::remove(there[i].second, ignored);
}

} // namespace mneme
