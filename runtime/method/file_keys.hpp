/// file_keys: interface of methods that read the value of a key from a file named by another key.
#pragma once
namespace mneme {

/// Implemented in addition to strategy, so that the resolved scenario contains the values from the file.
class file_keys {
public:
  virtual ~file_keys() = default;
  /// Sets the keys with values from files. Called after all keys were parsed. An unreadable file changes nothing; its
  /// error is reported when the run is loaded.
  virtual void read_file_keys() = 0;
};

} // namespace mneme
