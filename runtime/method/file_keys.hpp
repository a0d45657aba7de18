/// file_keys: interface of methods in which one key names a file that sets other keys.
#pragma once
namespace mneme {

/// A method implements this interface in addition to strategy. The resolved scenario then contains the values from the
/// file.
class file_keys {
public:
  virtual ~file_keys() = default;
  /// Sets keys to values from files. Called after all keys have been parsed. An unreadable file changes nothing: its
  /// error is reported when the run is loaded.
  virtual void read_file_keys() = 0;
};

} // namespace mneme
