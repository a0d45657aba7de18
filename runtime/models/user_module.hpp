/// user_module: nets from files of other programs. The door of the optional part runtime/modules (CMake switch
/// MNEME_MODULES).
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/models/model.hpp"
#include <filesystem>
#include <span>
namespace mneme {

/// The shape and type in which forward() of a module takes rows.
enum class row_form : std::uint8_t {
  images,  ///< [B, C, H, W] float32
  numbers, ///< [B, F] float32: a table, or features
  tokens   ///< [B, T] int64, as torch.nn.Embedding reads them
};

/// @param shape C, H, W of a row
/// @param tokens exclusive upper bound of token ids; 0: rows hold pixels or numbers
[[nodiscard]] row_form form_of_rows(const std::array<std::int64_t, 3>& shape, std::int64_t tokens);

/// Protection against a module's file. Only tests turn one layer off, to test the other alone.
struct module_layers {
  bool checks = true;                 ///< TorchScript: code, pickles and graph are checked before any of it runs.
  bool cell = true;                   ///< A sandboxed process loads and probes the file first.
  std::int64_t cell_seconds = 0;      ///< Processor time of the sandbox; 0: in proportion to the file's size.
  std::int64_t cell_memory_bytes = 0; ///< As above.
};

/// Requirements of a run on a module.
struct module_demands {
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row; ignored if the module declares its own.
  row_form form = row_form::images;    ///< As forward() takes rows.
  std::int64_t tokens = 0;             ///< row_form::tokens: exclusive upper bound of tokens.
  bool own_rows = false;               ///< The module has a member `rows`, [B, C, H, W]: at most B rows in a call.
  std::int64_t classes = 0;            ///< Those of the run; 0: features are wanted, without a head.
  bool scores = false;                 ///< forward() returns scores of the classes, not features.
  head_kind head = head_kind::linear;
  bool trained = false;     ///< Its parameters are to be trained.
  bool training = false;    ///< Batch norms and dropout that are in training mode in the file stay so in training.
  bool native_code = false; ///< It may be loaded without a sandbox if the machine supports none.
  std::string device = "cpu";
  module_layers layers{};
};

/// A net from a file.
class user_module : public model {
public:
  /// C, H, W of a row.
  [[nodiscard]] virtual std::array<std::int64_t, 3> input() const noexcept = 0;
  /// Copies the values of the file into `flat` [P]; the head's values stay.
  virtual void put_own_values(at::Tensor& flat) const = 0;
  /// Sentences about the file for the user: layers that do not train, a deprecated format.
  [[nodiscard]] virtual std::vector<std::string> warnings() const = 0;
};

/// Reads a file of torch.export.save or torch.jit.save, and runs the module on synthetic rows of the run's shape: it
/// has to return [rows, D] float32 numbers, all finite, equal in two calls, and those of a row must not depend on the
/// other rows of the call. Every difference is a diagnostic with the file's name, and its byte if the archive is
/// damaged. Fails in builds without MNEME_MODULES.
[[nodiscard]] expected<std::shared_ptr<const user_module>> load_user_module(const std::filesystem::path& file,
                                                                            const module_demands& demands);

/// How a sandbox process starts.
enum class cell_begin : std::uint8_t {
  anew,         ///< The program is executed again: the sandbox has nothing of this process's memory.
  fork_if_alone ///< A fork while this process has one thread. Answers may contain bytes of this process's memory, so
                ///< only users that may read that memory may see them.
};

/// First word of the command line of a sandbox process.
constexpr const char* cell_word = "cell";

/// Sets the program that becomes a sandbox if its first word is `cell_word`: it calls become_cell(). Without one, there
/// are no sandboxes. Does nothing in builds without MNEME_MODULES. @pre no thread has started
void set_cell_program(const std::filesystem::path& program, cell_begin begin = cell_begin::anew);

/// Runs a whole sandbox process: reads a file from stdin, gives up all rights, probes the module, writes the answer to
/// stdout. @param words the command line, cell_word first
/// @return the exit code; 1 in builds without MNEME_MODULES
[[nodiscard]] int become_cell(std::span<const char* const> words);

/// Functions of runtime/modules behind the three above.
struct module_support {
  expected<std::shared_ptr<const user_module>> (*load)(const std::filesystem::path&, const module_demands&) = nullptr;
  void (*set_cell_program)(const std::filesystem::path&, cell_begin) = nullptr;
  int (*become_cell)(std::span<const char* const>) = nullptr;
};

/// `const module_registration line{{.load = ..., ...}};`
struct module_registration {
  explicit module_registration(const module_support& support) noexcept;
};

} // namespace mneme
