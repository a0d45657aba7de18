#include "runtime/modules/pickle_check.hpp"
#include "runtime/modules/code_limits.hpp"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <stdexcept>
#include <vector>
namespace mneme {
namespace {

constexpr std::size_t depth_max = 1000, type_letters_max = 4096;
constexpr std::int64_t expanded_numbers_max = std::int64_t{1} << 20; // for tensors with stride 0

enum class pickled : std::uint8_t {
  nothing,
  flag,
  number,
  real,
  text,
  tuple,
  list,
  table,
  global,
  storage,
  tensor,
  object
};

/// A value that the pickle has built so far. Items are indices into the reader's table of values.
struct pickled_value {
  pickled kind = pickled::nothing;
  std::string_view text{}; ///< The content of a string, or the module of a global.
  std::string_view name{}; ///< The name of a global within its module.
  std::int64_t number = 0; ///< A number, or the element count of a storage.
  std::vector<std::size_t> items{};
  std::size_t depth = 1;
  bool held = false; ///< The value is part of another one and may not change any more.
  bool made = false; ///< A class whose object is created, but has no members yet.
};

/// Bytes per element of a storage class; 0 if the class is not supported.
std::uint64_t number_bytes(std::string_view storage_class) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 12> classes{{{"FloatStorage", 4},
                                                                                {"DoubleStorage", 8},
                                                                                {"HalfStorage", 2},
                                                                                {"BFloat16Storage", 2},
                                                                                {"LongStorage", 8},
                                                                                {"IntStorage", 4},
                                                                                {"ShortStorage", 2},
                                                                                {"CharStorage", 1},
                                                                                {"ByteStorage", 1},
                                                                                {"BoolStorage", 1},
                                                                                {"ComplexFloatStorage", 8},
                                                                                {"ComplexDoubleStorage", 16}}};
  for (const auto& [name, bytes] : classes)
    if (name == storage_class)
      return bytes;
  return 0;
}

/// Interprets a pickle instruction by instruction.
class pickle_reader {
public:
  pickle_reader(std::string_view pickle, const std::map<std::string, std::uint64_t, std::less<>>& storages)
      : pickle_(pickle), storages_(storages) {}

  /// Reads the whole pickle. Throws the first error.
  void read(pickle_root root) {
    if (number(1) != 0x80 || number(1) != 2)
      refuse("it does not begin as a pickle of protocol 2");
    while (!is_over_)
      step(static_cast<std::uint8_t>(number(1)));
    if (at_ != pickle_.size() || stack_.size() != 1 || !marks_.empty())
      refuse("it ends with parts left over");
    const auto& result = values_[stack_[0]];
    const auto is_tensor = [&](std::size_t item) { return values_[item].kind == pickled::tensor; };
    if (root == pickle_root::module && result.kind != pickled::object)
      refuse("it holds no module");
    if (root == pickle_root::constants &&
        (result.kind != pickled::tuple || !std::all_of(result.items.begin(), result.items.end(), is_tensor)))
      refuse("it holds no tuple of tensors");
  }

private:
  [[noreturn]] void refuse(const std::string& text) const {
    throw std::invalid_argument(fmt::format("byte {} of a pickle: {}", begun_, text));
  }
  [[noreturn]] void refuse_damaged(const std::string& text) const {
    throw std::invalid_argument(fmt::format("byte {} of a pickle {}; the file is damaged", at_, text));
  }

  /// Reads an unsigned little-endian number.
  std::uint64_t number(std::size_t bytes) {
    if (bytes > pickle_.size() - at_)
      refuse_damaged("is behind its end");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= std::uint64_t{static_cast<std::uint8_t>(pickle_[at_ + i])} << (8 * i);
    at_ += bytes;
    return value;
  }

  std::string_view text() {
    const auto place = at_;
    const auto length = number(4), left = pickle_.size() - at_;
    if (length > left) {
      at_ = place;
      refuse_damaged(fmt::format("says that a text of {} bytes follows, and {} do", length, left));
    }
    const auto read = pickle_.substr(at_, length);
    at_ += length;
    return read;
  }

  std::string_view line() {
    const auto end = pickle_.find('\n', at_);
    if (end == std::string_view::npos)
      refuse_damaged("begins a name that does not end");
    const auto read = pickle_.substr(at_, end - at_);
    at_ = end + 1;
    return read;
  }

  void push(pickled_value value) {
    values_.push_back(std::move(value));
    stack_.push_back(values_.size() - 1);
  }
  void push_number(std::int64_t value) { push({.kind = pickled::number, .number = value}); }

  /// Pops the top value, which must be of this kind, and returns its index.
  std::size_t pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back()))
      refuse("it takes a value where none is");
    const auto place = stack_.back();
    stack_.pop_back();
    return place;
  }
  std::size_t pop(pickled kind, const char* expected) {
    const auto place = pop();
    if (values_[place].kind != kind)
      refuse(fmt::format("{} is missing", expected));
    return place;
  }

  /// Pops all values above the last mark.
  std::vector<std::size_t> pop_marked() {
    if (marks_.empty())
      refuse("it takes values where no mark is");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<std::size_t> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }

  /// Adds items to a container. A container that is already part of another one may not change, so cycles cannot occur.
  void hold(std::size_t owner, const std::vector<std::size_t>& items) {
    if (values_[owner].held)
      refuse("it changes a list or table that is part of another one");
    for (const auto item : items) {
      values_[item].held = true;
      if (values_[item].kind == pickled::global || values_[owner].held)
        refuse("a class or a value itself is put where its parts belong");
      values_[owner].depth = std::max(values_[owner].depth, values_[item].depth + 1);
    }
    if (values_[owner].depth > depth_max)
      refuse(fmt::format("its values nest deeper than {}", depth_max));
    auto& into = values_[owner].items;
    into.insert(into.end(), items.begin(), items.end());
  }

  void push_tuple(const std::vector<std::size_t>& items) {
    // A class inside of a tuple is valid only in a reference to a storage.
    values_.push_back({.kind = pickled::tuple});
    const auto owner = values_.size() - 1;
    if (items.size() == 5 && values_[items[1]].kind == pickled::global) {
      take_storage(items);
      return;
    }
    hold(owner, items);
    stack_.push_back(owner);
  }

  void push_last(std::size_t count) {
    std::vector<std::size_t> items(count);
    for (auto item = items.rbegin(); item != items.rend(); ++item)
      *item = pop();
    push_tuple(items);
  }

  /// Checks a storage reference: ("storage", class, key, device, element count). The next instruction must load it.
  void take_storage(const std::vector<std::size_t>& items) {
    const auto& kind = values_[items[1]];
    const auto bytes = kind.text == "torch" ? number_bytes(kind.name) : 0;
    const auto& key = values_[items[2]];
    const auto& count = values_[items[4]];
    if (values_[items[0]].kind != pickled::text || values_[items[0]].text != "storage" || bytes == 0 ||
        key.kind != pickled::text || values_[items[3]].kind != pickled::text || values_[items[3]].text.size() > 32 ||
        count.kind != pickled::number)
      refuse("its reference to a storage is none of torch.jit.save");
    const auto entry = storages_.find(key.text);
    const auto in_file = entry == storages_.end() ? 0 : entry->second;
    if (count.number < 0 || static_cast<std::uint64_t>(count.number) > in_file / bytes)
      refuse(fmt::format("storage '{}' shall have {} numbers of {} bytes, and the archive has {} bytes of it",
                         key.text.substr(0, 20), count.number, bytes, in_file));
    // The device name has no effect: LibTorch is given the target device when it loads the module.
    if (number(1) != 'Q')
      refuse("its reference to a storage is not taken");
    push({.kind = pickled::storage, .number = count.number});
  }

  void call() {
    const auto arguments = pop(pickled::tuple, "a tuple of arguments");
    const auto called = pop(pickled::global, "what is called");
    const auto module = values_[called].text, name = values_[called].name;
    const auto items = values_[arguments].items;
    const auto has = [&](std::size_t i, pickled kind) { return i < items.size() && values_[items[i]].kind == kind; };
    if (module == "torch._utils" && name == "_rebuild_tensor_v2")
      return make_tensor(items);
    if (module == "collections" && name == "OrderedDict" && items.empty())
      return push({});
    if (module == "torch" && name == "device" && items.size() == 1 && has(0, pickled::text))
      return push({.kind = pickled::object});
    const bool is_list =
        name == "build_intlist" || name == "build_tensorlist" || name == "build_doublelist" || name == "build_boollist";
    if (module == "torch.jit._pickle" && is_list && items.size() == 1 && has(0, pickled::list))
      return stack_.push_back(items[0]);
    if (module == "torch.jit._pickle" && name == "restore_type_tag" && items.size() == 2 && has(1, pickled::text))
      return restore_type(items);
    refuse(fmt::format("it calls '{}.{}' with arguments that torch.jit.save does not write", module, name));
  }

  /// Checks a list or dictionary with a type annotation. LibTorch passes the annotation to its parser.
  void restore_type(const std::vector<std::size_t>& items) {
    const auto& type = values_[items[1]].text;
    const auto kind = values_[items[0]].kind;
    const bool fits =
        (kind == pickled::list && type.starts_with("List[")) || (kind == pickled::table && type.starts_with("Dict["));
    if (!fits || type.size() > type_letters_max || !code_limit_error(type).empty() ||
        type.find("torch.classes") != std::string_view::npos)
      refuse("a type of a list is none that torch.jit.save writes");
    stack_.push_back(items[0]);
  }

  std::vector<std::int64_t> numbers_of(std::size_t place) const {
    std::vector<std::int64_t> numbers;
    for (const auto item : values_[place].items)
      if (values_[item].kind == pickled::number)
        numbers.push_back(values_[item].number);
    return numbers;
  }

  /// Checks a tensor: (storage, offset, sizes, strides, requires_grad, hooks).
  void make_tensor(const std::vector<std::size_t>& items) {
    constexpr std::array kinds{pickled::storage, pickled::number, pickled::tuple,
                               pickled::tuple,   pickled::flag,   pickled::nothing};
    bool fits = items.size() == kinds.size();
    for (std::size_t i = 0; i < kinds.size() && fits; ++i)
      fits = values_[items[i]].kind == kinds[i];
    if (!fits)
      refuse("a tensor's description is none of torch.jit.save");
    const auto count = values_[items[0]].number, offset = values_[items[1]].number;
    const auto sizes = numbers_of(items[2]), strides = numbers_of(items[3]);
    if (sizes.size() != values_[items[2]].items.size() || strides.size() != values_[items[3]].items.size() ||
        sizes.size() != strides.size() || !lies_within(count, offset, sizes, strides))
      refuse(fmt::format("a tensor reaches beyond its storage of {} numbers", count));
    push({.kind = pickled::tensor});
  }

  /// True if all elements are within a storage of `count` elements, and the tensor has few more elements than the
  /// storage.
  static bool lies_within(std::int64_t count, std::int64_t offset, const std::vector<std::int64_t>& sizes,
                          const std::vector<std::int64_t>& strides) {
    constexpr std::int64_t each_max = std::int64_t{1} << 40, dimensions_max = 64;
    if (offset < 0 || offset > count || std::ssize(sizes) > dimensions_max)
      return false;
    __extension__ using wide = __int128; // products of two numbers below 2^40 do not overflow
    wide numbers = 1, last = offset;
    bool empty = false;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] < 0 || sizes[i] > each_max || strides[i] < 0 || strides[i] > each_max)
        return false;
      empty |= sizes[i] == 0;
      last += static_cast<wide>(std::max<std::int64_t>(sizes[i] - 1, 0)) * strides[i];
      numbers =
          std::min<wide>(numbers * std::max<std::int64_t>(sizes[i], 1), static_cast<wide>(each_max) * each_max / 2);
    }
    return empty ? numbers <= each_max : last < count && numbers <= std::max(count, expanded_numbers_max);
  }

  /// Checks the creation of an object of an archive's class. Its members follow.
  void make_object() {
    if (!values_[pop(pickled::tuple, "an empty tuple")].items.empty() || stack_.empty())
      refuse("an object is made with arguments");
    auto& type = values_[stack_.back()];
    if (type.kind != pickled::global || !(type.text == "__torch__" || type.text.starts_with("__torch__.")) ||
        type.text.starts_with("__torch__.torch.classes"))
      refuse("an object of a class that is not the archive's own");
    type.made = true;
  }

  void set_members() {
    const auto members = pop(pickled::table, "a table of members");
    const auto type = pop(pickled::global, "a class");
    if (!values_[type].made)
      refuse("members of an object that was not made");
    values_.push_back({.kind = pickled::object});
    hold(values_.size() - 1, {members});
    stack_.push_back(values_.size() - 1);
  }

  void set_items(pickled kind, std::size_t group) {
    const auto items = pop_marked();
    if (stack_.empty() || values_[stack_.back()].kind != kind || items.size() % group != 0)
      refuse("items of no list or table");
    for (std::size_t i = 0; i < items.size() && group == 2; i += 2)
      if (values_[items[i]].kind != pickled::text && values_[items[i]].kind != pickled::number)
        refuse("a table's key is neither a text nor a number");
    hold(stack_.back(), items);
  }

  void keep(std::size_t bytes) {
    const auto place = at_;
    const auto value = number(bytes);
    if (value > pickle_.size()) {
      at_ = place;
      refuse_damaged(
          fmt::format("keeps a value at place {}, and there are no more values than bytes, {}", value, pickle_.size()));
    }
    if (stack_.empty())
      refuse("it keeps a value where none is");
    kept_.resize(std::max<std::size_t>(kept_.size(), value + 1));
    kept_[value] = stack_.back();
  }

  void take_kept(std::size_t bytes) {
    const auto value = number(bytes);
    if (value >= kept_.size() || !kept_[value])
      refuse("it takes a value that was not kept");
    stack_.push_back(*kept_[value]);
  }

  void step(std::uint8_t instruction) {
    begun_ = at_ - 1;
    switch (instruction) {
    case 'N':
      return push({});
    case 0x88:
    case 0x89:
      return push({.kind = pickled::flag});
    case 'K':
      return push_number(static_cast<std::int64_t>(number(1)));
    case 'M':
      return push_number(static_cast<std::int64_t>(number(2)));
    case 'J':
      return push_number(static_cast<std::int32_t>(number(4)));
    case 0x8a: // LibTorch reads and writes 8-byte integers only
      if (number(1) != 8)
        refuse("a number has another length than 8 bytes");
      return push_number(static_cast<std::int64_t>(number(8)));
    case 'G':
      static_cast<void>(number(8));
      return push({.kind = pickled::real});
    case 'X':
      return push({.kind = pickled::text, .text = text()});
    default:
      return build(instruction);
    }
  }

  void build(std::uint8_t instruction) {
    switch (instruction) {
    case '(':
      return marks_.push_back(stack_.size());
    case ')':
      return push({.kind = pickled::tuple});
    case ']':
      return push({.kind = pickled::list});
    case '}':
      return push({.kind = pickled::table});
    case 't':
      return push_tuple(pop_marked());
    case 0x85:
    case 0x86:
    case 0x87:
      return push_last(instruction - 0x84);
    case 'e':
      return set_items(pickled::list, 1);
    case 'u':
      return set_items(pickled::table, 2);
    case 'q':
      return keep(1);
    case 'r':
      return keep(4);
    case 'h':
      return take_kept(1);
    case 'j':
      return take_kept(4);
    case 'c': {
      const auto module = line(), name = line();
      return push({.kind = pickled::global, .text = module, .name = name});
    }
    case 'R':
      return call();
    case 0x81:
      return make_object();
    case 'b':
      return set_members();
    case '.':
      return void(is_over_ = true);
    default:
      refuse(fmt::format("instruction {} is none that torch.jit.save writes", instruction));
    }
  }

  std::string_view pickle_;
  const std::map<std::string, std::uint64_t, std::less<>>& storages_;
  std::size_t at_ = 0, begun_ = 0; // begun_: offset of the current instruction
  bool is_over_ = false;
  std::vector<pickled_value> values_;
  std::vector<std::size_t> stack_, marks_;
  std::vector<std::optional<std::size_t>> kept_;
};

} // namespace

std::string pickle_error(std::string_view pickle, pickle_root root,
                         const std::map<std::string, std::uint64_t, std::less<>>& storages) {
  try {
    pickle_reader(pickle, storages).read(root);
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

} // namespace mneme
