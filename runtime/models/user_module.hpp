/// user_module: nets from files of other programs. This is the interface of the optional part runtime/modules (CMake
/// switch MNEME_MODULES).
#pragma once
#include "runtime/base/diagnostic.hpp"
#include "runtime/models/model.hpp"
#include <filesystem>
#include <span>
namespace mneme {

/// Shape and type in which forward() of a module receives rows.
enum class row_form : std::uint8_t {
  images,  ///< [B, C, H, W] float32
  numbers, ///< [B, F] float32: table rows or features
  tokens   ///< [B, T] int64 token ids, for torch.nn.Embedding
};

/// @param shape C, H, W of a row
/// @param tokens exclusive upper bound of token ids; 0: rows hold pixels or numbers
[[nodiscard]] row_form form_of_rows(const std::array<std::int64_t, 3>& shape, std::int64_t tokens);

/// Limits of the process that probes a module file. Only tests disable the sandbox.
struct module_guards {
  bool sandbox = true;                   ///< Probes the file in a sandbox process before this process loads it.
  std::int64_t sandbox_seconds = 0;      ///< Processor time of the sandbox in seconds; 0: derived from the file size.
  std::int64_t sandbox_memory_bytes = 0; ///< Memory of the sandbox in bytes; 0: derived from the file size.
};

/// Requirements of a run on a module.
struct module_requirements {
  std::array<std::int64_t, 3> input{}; ///< C, H, W of a row; unused if the module declares its own.
  row_form form = row_form::images;    ///< Shape and type in which forward() receives rows.
  std::int64_t tokens = 0;             ///< row_form::tokens: exclusive upper bound of token ids.
  bool own_rows = false;    ///< True: the module declares its rows in a buffer `rows`, [B, C, H, W]; B is the batch
                            ///< limit.
  std::int64_t classes = 0; ///< Number of classes of the run; 0: the net returns features, without a head.
  bool scores = false;      ///< True: forward() returns class scores instead of features.
  head_kind head = head_kind::linear;
  bool trained = false;     ///< True: the parameters are trained.
  bool training = false;    ///< True: batch norms and dropout are trained in the mode that the file stores.
  bool fused = false;       ///< True: translate the module to mneme's layers if it has an equivalent.
  bool native_code = false; ///< True: the module may be loaded without a sandbox if the machine supports none.
  std::string device = "cpu";
  module_guards guards{};
};

/// A net from a file.
class user_module : public model {
public:
  /// C, H, W of a row.
  [[nodiscard]] virtual std::array<std::int64_t, 3> input() const noexcept = 0;
  /// Copies the values of the file into `flat` [P]. The values of the head stay unchanged.
  virtual void put_own_values(at::Tensor& flat) const = 0;
  /// The same net built of mneme's layers, which are fused over clients; null if it was not requested or has no
  /// equivalent.
  [[nodiscard]] virtual std::shared_ptr<const model> native() const { return nullptr; }
  /// Sentences for the user about layers of the file that are not trained.
  [[nodiscard]] virtual std::vector<std::string> warnings() const = 0;
};

/// Loads a file of torch.export.save and probes it on synthetic rows of the run's shape. The result
/// must be [rows, D] float32, finite, and equal in repeated calls. A row's result must not depend on the other rows of
/// the call. Returns one diagnostic with the file's name per violation, and the byte offset for a damaged archive.
/// Fails in builds without MNEME_MODULES.
[[nodiscard]] expected<std::shared_ptr<const user_module>> load_user_module(const std::filesystem::path& file,
                                                                            const module_requirements& requirements);

/// A module file, translated to layers of a scenario.
struct module_layers {
  std::vector<std::string> layers{}; ///< Texts of model.layers; empty if the module has no equivalent.
  /// All parameters and running statistics of the layers: {name in the file, name in mneme}.
  std::vector<std::pair<std::string, std::string>> names{};
  std::vector<std::string> frozen{}; ///< Entries of model.frozen, by their names in mneme.
  std::string unfused{};             ///< If there is no equivalent: the reason, as a sentence.
};

/// Translates a file of torch.export.save that returns class scores, for rows of the shape that it was exported with.
/// The file is not probed in a sandbox, so it must come from the user. Fails like load_user_module().
[[nodiscard]] expected<module_layers> layers_of_module(const std::filesystem::path& file);

/// Ways to start a sandbox process.
enum class sandbox_start : std::uint8_t {
  exec_program,           ///< Starts the program again as a separate process, so that the sandbox shares no memory with
                          ///< this process.
  fork_if_single_threaded ///< Forks if this process has one thread. The answer may then contain parts of this process's
                          ///< memory.
};

/// First argument on the command line of a sandbox process.
constexpr const char* sandbox_argument = "sandbox";

/// Sets the program that is started as a sandbox process. The program calls sandbox_main() if its first argument is
/// `sandbox_argument`. If no program is set, there are no sandboxes. Does nothing in builds without MNEME_MODULES. @pre
/// no thread has started
void set_sandbox_program(const std::filesystem::path& program, sandbox_start begin = sandbox_start::exec_program);

/// Runs a whole sandbox process: reads a file from stdin, restricts the process, probes the module, and writes the
/// answer to stdout. @param words the command line, sandbox_argument first
/// @return the exit code; 1 in builds without MNEME_MODULES
[[nodiscard]] int sandbox_main(std::span<const char* const> words);

/// Functions of runtime/modules that the functions above call.
struct module_support {
  expected<std::shared_ptr<const user_module>> (*load)(const std::filesystem::path&,
                                                       const module_requirements&) = nullptr;
  expected<module_layers> (*layers)(const std::filesystem::path&) = nullptr;
  void (*set_sandbox_program)(const std::filesystem::path&, sandbox_start) = nullptr;
  int (*sandbox_main)(std::span<const char* const>) = nullptr;
};

/// `const module_registration line{{.load = ..., ...}};`
struct module_registration {
  explicit module_registration(const module_support& support) noexcept;
};

} // namespace mneme
