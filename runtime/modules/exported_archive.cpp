#include "runtime/modules/exported_archive.hpp"
#include "runtime/base/exception_message.hpp"
#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <algorithm>
#include <c10/util/safe_numerics.h>
#include <cstring>
#include <fmt/format.h>
namespace mneme::exported {
namespace {

/// The name of an entry without the archive's top folder.
std::string_view inner_name(const zip_entry& entry) {
  return std::string_view(entry.name).substr(entry.name.find('/') + 1);
}

/// Finds the entries of an archive by name. The bytes of the file must outlive this object.
class archive_entries {
public:
  archive_entries(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries) : file_(file) {
    for (const auto& entry : entries)
      if (!by_name_.emplace(inner_name(entry), &entry).second)
        throw exported_error(fmt::format("the archive has two entries '{}'", inner_name(entry)));
  }
  [[nodiscard]] bool has(const std::string& name) const { return by_name_.contains(name); }
  [[nodiscard]] std::string content(const std::string& name) const {
    const auto place = by_name_.find(name);
    if (place == by_name_.end())
      throw exported_error(fmt::format("the archive has no entry '{}'", name));
    return zip_content(file_, *place->second);
  }
  /// The content of an entry of at most 64 bytes. Returns "" if the entry is missing or longer.
  [[nodiscard]] std::string short_content(const std::string& name) const {
    constexpr std::uint64_t bytes_max = 64;
    const auto place = by_name_.find(name);
    return place == by_name_.end() || place->second->bytes > bytes_max ? "" : zip_content(file_, *place->second);
  }
  /// The program's name, taken from the entry models/NAME.json.
  [[nodiscard]] std::string program_name() const {
    std::string found;
    for (const auto& [name, entry] : by_name_)
      if (name.starts_with("models/") && name.ends_with(".json")) {
        if (!found.empty())
          throw exported_error("the archive holds several programs; expected one, as torch.export.save writes it");
        found = name.substr(7, name.size() - 12);
      }
    return found;
  }

private:
  std::span<const std::uint8_t> file_;
  std::map<std::string_view, const zip_entry*> by_name_;
};

void check_versions(const archive_entries& entries, const json& program) {
  constexpr std::int64_t schema_major = 8;
  if (entries.short_content("archive_version") != "0" || entries.short_content("byteorder") != "little")
    throw exported_error("the archive has another version or byte order; expected archive_version 0, byteorder little, "
                         "as torch.export.save of PyTorch 2.9 and later writes it");
  if (const auto major = integer_of(field(field(program, "schema_version"), "major")); major != schema_major)
    throw exported_error(
        fmt::format("its schema has version {}; expected {}, which PyTorch 2.9 to 2.15 write", major, schema_major));
  const auto& verifiers = list_field(program, "verifiers", list_max);
  if (std::find(verifiers.begin(), verifiers.end(), "TRAINING") == verifiers.end())
    throw exported_error(fmt::format("the program was decomposed for inference (run_decompositions); expected the "
                                     "training IR that torch.export.export returns: {}",
                                     export_line));
}

/// Sizes, strides and offset of a tensor, in elements; checked against the bytes of its storage.
struct tensor_layout {
  at::ScalarType type{};
  std::vector<std::int64_t> sizes{}, strides{};
  std::int64_t offset = 0;
};

std::vector<std::int64_t> sizes_of(const json& meta, const char* name) {
  constexpr std::size_t axes_max = 16;
  std::vector<std::int64_t> sizes;
  for (const auto& size : list_field(meta, name, axes_max)) {
    const auto& [tag, value] = variant_of(size);
    if (tag != "as_int")
      throw exported_error(fmt::format("'{}' of a tensor are not numbers", name));
    sizes.push_back(integer_of(value));
    if (sizes.back() < 0)
      throw exported_error(fmt::format("'{}' of a tensor has {}", name, sizes.back()));
  }
  return sizes;
}

tensor_layout layout_of(const json& meta) {
  const auto type = scalar_type_of(integer_of(field(meta, "dtype")));
  if (!type)
    throw exported_error("it has a type that modules may not have; expected float32, integers or bool");
  const auto& [tag, offset] = variant_of(field(meta, "storage_offset"));
  tensor_layout layout{.type = *type,
                       .sizes = sizes_of(meta, "sizes"),
                       .strides = sizes_of(meta, "strides"),
                       .offset = tag == "as_int" ? integer_of(offset) : -1};
  if (layout.sizes.size() != layout.strides.size() || layout.offset < 0 ||
      integer_of(field(meta, "layout")) != strided_layout)
    throw exported_error("it is not a strided tensor");
  return layout;
}

/// True if the tensor has at most `held` elements, and all of them are within a storage of `held` elements.
bool lies_within(const tensor_layout& layout, std::uint64_t held) {
  std::uint64_t count = 1, last = static_cast<std::uint64_t>(layout.offset), step = 0;
  bool overflows = false;
  for (std::size_t i = 0; i < layout.sizes.size(); ++i) {
    const auto size = static_cast<std::uint64_t>(layout.sizes[i]);
    overflows |= c10::mul_overflows(count, size, &count);
    overflows |= c10::mul_overflows(size == 0 ? 0 : size - 1, static_cast<std::uint64_t>(layout.strides[i]), &step);
    overflows |= c10::add_overflows(last, step, &last);
  }
  return !overflows && count <= held && (count == 0 || last < held);
}

at::Tensor tensor_of(const json& meta, const std::string& bytes) {
  const auto layout = layout_of(meta);
  const auto item_bytes = c10::elementSize(layout.type);
  const auto held = bytes.size() / item_bytes;
  if (!lies_within(layout, held))
    throw exported_error(fmt::format("it lies outside of its {} bytes", bytes.size()));
  if (layout.type == at::kBool && std::any_of(bytes.begin(), bytes.end(), [](char c) { return c != 0 && c != 1; }))
    throw exported_error("a bool has another byte than 0 and 1");
  auto storage = at::empty({static_cast<std::int64_t>(held)}, at::TensorOptions(layout.type));
  if (held > 0)
    std::memcpy(storage.mutable_data_ptr(), bytes.data(), held * item_bytes);
  if (c10::multiply_integers(layout.sizes) == 0)
    return at::empty(layout.sizes, storage.options());
  return storage.as_strided(layout.sizes, layout.strides, layout.offset).clone(at::MemoryFormat::Contiguous);
}

/// Reads all tensors that one of the archive's tables describes.
class tensor_table {
public:
  tensor_table(const archive_entries& entries, std::string folder, std::size_t bytes_max)
      : entries_(entries), folder_(std::move(folder)), bytes_left_(bytes_max) {}

  exported_tensor read(const json& description) {
    if (flag_of(field(description, "use_pickle")))
      throw exported_error("it is pickled; expected raw bytes, as torch.export.save writes plain tensors");
    const auto& meta = field(description, "tensor_meta");
    const auto path = folder_ + string_of(field(description, "path_name"));
    auto plain = meta;
    plain.erase("requires_grad");
    const auto key = path + plain.dump();
    auto& tensor = by_key_[key];
    if (!tensor.defined())
      tensor = counted(tensor_of(meta, entries_.content(path)));
    return {.value = tensor, .requires_grad = flag_of(field(meta, "requires_grad")), .key = key};
  }

private:
  at::Tensor counted(at::Tensor tensor) {
    if (tensor.nbytes() > bytes_left_)
      throw exported_error("the tensors take more bytes than the file has");
    bytes_left_ -= tensor.nbytes();
    return tensor;
  }

  const archive_entries& entries_;
  std::string folder_;
  std::size_t bytes_left_;
  std::map<std::string, at::Tensor> by_key_;
};

/// Reads the tensors of one folder into the archive.
/// @param folder such as "data/weights/" @param config entry of the folder that describes the tensors
void add_tensors(const archive_entries& entries, const std::string& folder, const std::string& config,
                 std::size_t bytes_max, exported_archive& to) {
  tensor_table table(entries, folder, bytes_max);
  const auto described = parse_json(entries.content(folder + config), folder + config);
  for (const auto& [name, description] : field(described, "config").items())
    if (auto error = torch_error_of([&, &name = name, &of = description] { to.tensors[name] = table.read(of); });
        !error.empty())
      throw exported_error(fmt::format("tensor '{}': {}", name, error));
}

} // namespace

std::optional<at::ScalarType> scalar_type_of(std::int64_t number) {
  switch (number) {
  case 1:
    return at::kByte;
  case 2:
    return at::kChar;
  case 4:
    return at::kInt;
  case 5:
    return at::kLong;
  case 6:
    return at::kHalf;
  case 7:
    return at::kFloat;
  case 8:
    return at::kDouble;
  case 12:
    return at::kBool;
  case 13:
    return at::kBFloat16;
  default:
    return std::nullopt;
  }
}

} // namespace mneme::exported

namespace mneme {

bool is_exported_program(const std::vector<zip_entry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const zip_entry& entry) {
    return exported::inner_name(entry).starts_with("models/") && entry.name.ends_with(".json");
  });
}

exported_archive read_exported_archive(std::span<const std::uint8_t> file, const std::vector<zip_entry>& entries) {
  const exported::archive_entries by_name(file, entries);
  const auto name = by_name.program_name();
  exported_archive archive{.program = exported::parse_json(by_name.content("models/" + name + ".json"), "its program")};
  exported::check_versions(by_name, archive.program);
  if (by_name.has("data/weights/" + name + ".pt"))
    throw exported_error(
        "its weights are pickled, as PyTorch 2.8 and earlier versions write them; export it with PyTorch "
        "2.9 or later");
  exported::add_tensors(by_name, "data/weights/", name + "_weights_config.json", file.size(), archive);
  exported::add_tensors(by_name, "data/constants/", name + "_constants_config.json", file.size(), archive);
  return archive;
}

} // namespace mneme
