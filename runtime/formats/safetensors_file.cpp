#include "runtime/formats/safetensors_file.hpp"
#include "runtime/base/available_memory.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/base/mapped_file.hpp"
#include "runtime/base/new_tensor.hpp"
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
namespace mneme {
namespace {

// File layout: header length (8 bytes, little-endian), header (a JSON object), tensor data. Offsets in the header are
// relative to the end of the header.

// ordered_json would be slow, because it searches linearly: a header can have hundreds of thousands of names.
using json = nlohmann::json;
static_assert(std::endian::native == std::endian::little, "contents are written as they lie in memory");

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t header_bytes_max = 100'000'000; // limit of the reference implementation
constexpr const char* metadata = "__metadata__";

struct dtype_name {
  const char* name;
  at::ScalarType type;
};
constexpr std::array<dtype_name, 13> dtypes{{{"F64", at::kDouble},
                                             {"F32", at::kFloat},
                                             {"F16", at::kHalf},
                                             {"BF16", at::kBFloat16},
                                             {"I64", at::kLong},
                                             {"I32", at::kInt},
                                             {"I16", at::kShort},
                                             {"I8", at::kChar},
                                             {"U64", at::kUInt64},
                                             {"U32", at::kUInt32},
                                             {"U16", at::kUInt16},
                                             {"U8", at::kByte},
                                             {"BOOL", at::kBool}}};

const char* dtype_text(at::ScalarType type) {
  const auto* entry = std::find_if(dtypes.begin(), dtypes.end(), [&](const auto& dtype) { return dtype.type == type; });
  MNEME_CHECK(entry != dtypes.end(), c10::toString(type));
  return entry->name;
}

/// A validated entry of the header.
struct entry {
  std::string name{};
  at::ScalarType type{};
  std::vector<std::int64_t> shape{};
  std::uint64_t begin = 0, end = 0; ///< Offsets in the tensor data, in bytes.
};

/// Collects diagnostics of one file with byte offsets, up to a limit.
class diagnostic_list {
public:
  explicit diagnostic_list(std::string file) : file_(std::move(file)) {}
  void add(std::uint64_t byte, std::string text) {
    if (enough())
      return;
    diagnostics_.push_back({fmt::format("{}: byte {}", file_, byte), std::move(text)});
  }
  [[nodiscard]] bool empty() const noexcept { return diagnostics_.empty(); }
  [[nodiscard]] bool enough() const noexcept { return diagnostics_.size() >= diagnostics_max; }
  [[nodiscard]] tl::unexpected<diagnostics> failed() { return tl::unexpected<diagnostics>{std::move(diagnostics_)}; }

private:
  static constexpr std::size_t diagnostics_max = 20;
  std::string file_;
  diagnostics diagnostics_;
};

/// Byte offset of `name` in the file, for a diagnostic. Returns the start of the header if the name is escaped there.
std::uint64_t byte_of(const std::string& header, const std::string& name) {
  const auto at = header.find(json(name).dump(-1, ' ', false, json::error_handler_t::replace));
  return length_bytes + (at == std::string::npos ? 0 : at);
}

/// Finds errors that parsing into an object would hide: duplicate names, and nesting deeper than the format allows.
/// This class is a SAX handler, because the parser's callback would search the object for each member.
class header_watch final : public nlohmann::json_sax<json> {
public:
  header_watch(const std::string& header, diagnostic_list& errors) : header_(header), errors_(errors) {}
  [[nodiscard]] bool too_deep() const noexcept { return too_deep_; }
  /// Byte offset and text of a syntax error. Returns nullopt if there is none.
  [[nodiscard]] const std::optional<std::pair<std::uint64_t, std::string>>& flaw() const noexcept { return flaw_; }

  bool key(string_t& name) override {
    if (depth_ == 1 && !names_.insert(name).second && !errors_.enough())
      errors_.add(byte_of(header_, name), fmt::format("'{}' is named twice in the header; names must differ", name));
    return true;
  }
  bool start_object(std::size_t) override { return opened(); }
  bool start_array(std::size_t) override { return opened(); }
  bool end_object() override { return closed(); }
  bool end_array() override { return closed(); }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t position, const std::string&, const json::exception& problem) override {
    if (dynamic_cast<const json::parse_error*>(&problem))
      flaw_.emplace(length_bytes + (position > 0 ? position - 1 : 0),
                    "the header is not valid JSON; is this a complete safetensors file?");
    else // the number is outside of the range of double
      flaw_.emplace(length_bytes, "the header has a number that is out of range; the file is damaged");
    return false;
  }

private:
  static constexpr int depth_max = 3; // { name: { "shape": [ ... ] } }
  bool opened() {
    too_deep_ = too_deep_ || depth_ >= depth_max;
    ++depth_;
    return true;
  }
  bool closed() {
    --depth_;
    return true;
  }

  const std::string& header_;
  diagnostic_list& errors_;
  std::set<std::string> names_;
  std::optional<std::pair<std::uint64_t, std::string>> flaw_;
  int depth_ = 0;
  bool too_deep_ = false;
};

/// Parses the header as JSON. Duplicate names and excessive nesting are errors. Returns nullopt on failure.
std::optional<json> parse_header(const std::string& header, diagnostic_list& errors) {
  header_watch watch(header, errors);
  if (!json::sax_parse(header, &watch)) {
    errors.add(watch.flaw()->first, watch.flaw()->second);
    return std::nullopt;
  }
  if (watch.too_deep()) {
    errors.add(length_bytes, "the header nests deeper than a safetensors header does; the file is damaged");
    return std::nullopt;
  }
  auto parsed = json::parse(header);
  if (!parsed.is_object())
    errors.add(length_bytes, "the header is not a JSON object; is this a safetensors file?");
  return parsed;
}

/// Parses a list of at most `count_max` integers >= 0. Returns nullopt for other values.
std::optional<std::vector<std::uint64_t>> whole_numbers(const json& from, const char* key, std::size_t count_max) {
  const auto member = from.find(key);
  if (member == from.end() || !member->is_array() || member->size() > count_max)
    return std::nullopt;
  std::vector<std::uint64_t> result;
  for (const auto& number : *member) {
    if (!number.is_number_unsigned())
      return std::nullopt;
    result.push_back(number.get<std::uint64_t>());
  }
  return result;
}

/// Size of a tensor in bytes. Returns nullopt if its strides overflow int64, also for empty tensors.
std::optional<std::uint64_t> bytes_of(const std::vector<std::uint64_t>& shape, at::ScalarType type) {
  std::int64_t reach = static_cast<std::int64_t>(c10::elementSize(type));
  bool empty = false;
  for (auto extent : shape) {
    empty = empty || extent == 0;
    if (__builtin_mul_overflow(reach, std::max<std::uint64_t>(extent, 1), &reach))
      return std::nullopt;
  }
  return empty ? 0 : static_cast<std::uint64_t>(reach);
}

bool is_wide_unsigned(at::ScalarType type) { return type == at::kUInt16 || type == at::kUInt32 || type == at::kUInt64; }

/// Validates one entry of the header. Returns the entry or an error text.
tl::expected<entry, std::string> checked_entry(const std::string& name, const json& from, std::uint64_t content_bytes,
                                               safetensors_types types) {
  constexpr std::size_t dimensions_max = 64; // LibTorch's limit
  if (!from.is_object() || !from.contains("dtype") || !from["dtype"].is_string())
    return tl::unexpected(fmt::format("'{}' has no dtype; expected {{\"dtype\", \"shape\", \"data_offsets\"}}", name));
  const auto type_name = from["dtype"].get<std::string>();
  const auto* type =
      std::find_if(dtypes.begin(), dtypes.end(), [&](const auto& dtype) { return dtype.name == type_name; });
  const bool all = types == safetensors_types::all;
  if (type == dtypes.end() || (is_wide_unsigned(type->type) && !all))
    return tl::unexpected(
        fmt::format("'{}' has dtype '{}'; expected F64, F32, F16, BF16, I64, I32, I16, I8, {}U8 or BOOL", name,
                    type_name, all ? "U64, U32, U16, " : ""));
  const auto shape = whole_numbers(from, "shape", dimensions_max);
  if (!shape)
    return tl::unexpected(fmt::format("the shape of '{}' is not a list of at most {} integers", name, dimensions_max));
  const auto offsets = whole_numbers(from, "data_offsets", 2);
  if (!offsets || offsets->size() != 2)
    return tl::unexpected(fmt::format("the data_offsets of '{}' are not two integers", name));
  const auto begin = (*offsets)[0], end = (*offsets)[1];
  if (begin > end || end > content_bytes)
    return tl::unexpected(
        fmt::format("'{}' is at bytes {} to {} of the contents, which have {} bytes; the file is damaged or truncated",
                    name, begin, end, content_bytes));
  const auto bytes = bytes_of(*shape, type->type);
  if (!bytes || *bytes != end - begin)
    return tl::unexpected(fmt::format("'{}' takes {} bytes by its shape and dtype, but {} by its offsets", name,
                                      bytes ? std::to_string(*bytes) : "more than 2^63", end - begin));
  return entry{name, type->type, {shape->begin(), shape->end()}, begin, end};
}

/// Validates all entries and returns them in file order. The entries must cover the tensor data without overlaps and
/// gaps.
std::vector<entry> checked_entries(const std::string& header, const json& object, std::uint64_t content_bytes,
                                   safetensors_types types, diagnostic_list& errors) {
  std::vector<entry> entries;
  for (const auto& [name, line] : object.items()) {
    if (name == metadata)
      continue;
    if (errors.enough()) // to find an offset for a diagnostic, the whole header is searched
      return {};
    if (auto checked = checked_entry(name, line, content_bytes, types))
      entries.push_back(std::move(*checked));
    else
      errors.add(byte_of(header, name), checked.error());
  }
  if (!errors.empty())
    return {};
  std::stable_sort(entries.begin(), entries.end(),
                   [](const entry& a, const entry& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  std::uint64_t expected_begin = 0;
  for (const auto& checked : entries) {
    if (checked.begin != expected_begin && !errors.enough())
      errors.add(byte_of(header, checked.name),
                 fmt::format("'{}' begins at byte {} of the contents where {} was expected: tensors {}", checked.name,
                             checked.begin, expected_begin,
                             checked.begin < expected_begin ? "overlap" : "leave a gap"));
    expected_begin = checked.end;
  }
  if (expected_begin != content_bytes && errors.empty())
    errors.add(length_bytes + header.size() + expected_begin,
               fmt::format("{} bytes at the end belong to no tensor", content_bytes - expected_begin));
  return entries;
}

/// Reads the values of one tensor. A BOOL byte other than 0 and 1 is an error.
at::Tensor contents(std::ifstream& in, const entry& from, std::uint64_t contents_begin, diagnostic_list& errors) {
  auto value = new_tensor(from.shape, from.type);
  MNEME_CHECK(value.nbytes() == from.end - from.begin, from.name);
  auto* bytes = static_cast<char*>(value.mutable_data_ptr());
  in.seekg(static_cast<std::streamoff>(contents_begin + from.begin));
  if (!in.read(bytes, static_cast<std::streamsize>(value.nbytes())))
    errors.add(contents_begin + from.begin,
               fmt::format("'{}' cannot be read; the file shrank, or the disk has errors", from.name));
  else if (from.type == at::kBool)
    if (const auto* odd = std::find_if(bytes, bytes + value.nbytes(), [](char byte) { return byte != 0 && byte != 1; });
        odd != bytes + value.nbytes())
      errors.add(contents_begin + from.begin + static_cast<std::uint64_t>(odd - bytes),
                 fmt::format("'{}' is BOOL, but a byte is {}; expected 0 or 1", from.name,
                             static_cast<unsigned>(static_cast<unsigned char>(*odd))));
  return value;
}

/// Reads the header text after checking its length against the file size. Returns nullopt on failure.
std::optional<std::string> header_text(std::ifstream& in, std::uint64_t file_bytes, diagnostic_list& errors) {
  std::uint64_t header_bytes = 0;
  if (file_bytes < length_bytes || !in.read(reinterpret_cast<char*>(&header_bytes), length_bytes)) {
    errors.add(0, fmt::format("the file has {} bytes; a safetensors file has at least 10", file_bytes));
    return std::nullopt;
  }
  if (header_bytes > file_bytes - length_bytes || header_bytes > header_bytes_max) {
    errors.add(0, fmt::format("the header should have {} bytes, but {} follow; at most {} are accepted. Is this a "
                              "complete safetensors file?",
                              header_bytes, file_bytes - length_bytes, header_bytes_max));
    return std::nullopt;
  }
  std::string header(header_bytes, '\0');
  in.read(header.data(), static_cast<std::streamsize>(header_bytes));
  if (header.empty() || header.front() != '{') {
    errors.add(length_bytes, "the header does not begin with '{'; is this a safetensors file?");
    return std::nullopt;
  }
  return header;
}

safetensors_metadata texts_of(const json& object) {
  safetensors_metadata texts;
  if (const auto entries = object.find(metadata); entries != object.end() && entries->is_object())
    for (const auto& [name, value] : entries->items())
      if (value.is_string())
        texts[name] = value.get<std::string>();
  return texts;
}

/// Makes the header for these tensors, padded with spaces so that the data start at a multiple of 8 bytes.
std::string header_of(const tensor_map& tensors, const safetensors_metadata& texts) {
  auto header = nlohmann::ordered_json::object();
  if (!texts.empty())
    header[metadata] = texts;
  std::uint64_t begin = 0;
  for (const auto& [name, value] : tensors) {
    MNEME_CHECK(name != metadata, name);
    header[name] = {{"dtype", dtype_text(value.scalar_type())},
                    {"shape", value.sizes().vec()},
                    {"data_offsets", {begin, begin + value.nbytes()}}};
    begin += value.nbytes();
  }
  auto text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

} // namespace

std::vector<std::byte> safetensors_bytes(const tensor_map& tensors, const safetensors_metadata& texts) {
  const auto header = header_of(tensors, texts);
  std::vector<std::byte> bytes(length_bytes + header.size() + static_cast<std::size_t>(tensors.bytes()));
  const std::uint64_t header_bytes = header.size();
  std::memcpy(bytes.data(), &header_bytes, length_bytes);
  std::memcpy(bytes.data() + length_bytes, header.data(), header.size());
  auto* to = bytes.data() + length_bytes + header.size();
  for (const auto& [name, value] : tensors) {
    if (value.nbytes() == 0)
      continue;
    const auto host = value.cpu();
    std::memcpy(to, host.const_data_ptr(), host.nbytes());
    to += host.nbytes();
  }
  return bytes;
}

expected<tensor_map> read_safetensors(const std::filesystem::path& file, safetensors_metadata* texts,
                                      const safetensors_options& options) {
  std::error_code error;
  auto opened = open_stream(file);
  const auto file_bytes = std::filesystem::file_size(file, error);
  if (!opened || error)
    return failed(file.string(),
                  (opened ? "cannot be read: " + error.message() : opened.error()) + "; expected a safetensors file");
  auto& in = *opened;
  diagnostic_list errors(file.string());
  const auto header = header_text(in, file_bytes, errors);
  const auto object = header ? parse_header(*header, errors) : std::nullopt;
  if (!errors.empty())
    return errors.failed();
  const auto contents_begin = length_bytes + header->size();
  const auto entries = checked_entries(*header, *object, file_bytes - contents_begin, options.types, errors);
  if (!errors.empty())
    return errors.failed();
  const auto stays_in_file = [&](const entry& of) {
    return of.end - of.begin >= options.mapped_bytes_min && of.type != at::kBool &&
           (contents_begin + of.begin) % c10::elementSize(of.type) == 0;
  };
  std::uint64_t copied_bytes = 0;
  for (const auto& entry : entries)
    copied_bytes += stays_in_file(entry) ? 0 : entry.end - entry.begin;
  if (const auto room = available_memory();
      copied_bytes > static_cast<std::uint64_t>(std::max<std::int64_t>(room.bytes, 0)))
    return failed(file.string(),
                  fmt::format("takes {} bytes of memory, and {} are {}", copied_bytes, room.bytes, room.source));
  tensor_map result;
  for (const auto& entry : entries) {
    if (!stays_in_file(entry)) {
      result.put(entry.name, contents(in, entry, contents_begin, errors));
      continue;
    }
    if (auto mapped = map_tensor(file, contents_begin + entry.begin, entry.shape, entry.type))
      result.put(entry.name, std::move(*mapped));
    else
      return failed(file.string(), fmt::format("'{}' {}", entry.name, mapped.error()));
  }
  if (!errors.empty())
    return errors.failed();
  if (texts)
    *texts = texts_of(*object);
  return result;
}

} // namespace mneme
