/// file_keys: methods of which a key follows from a file that another key names.
#pragma once
namespace mneme {

/// A method is this, too, where a file of its sets a key: the resolved scenario then says what the run has.
class file_keys {
public:
  virtual ~file_keys() = default;
  /// Sets the keys that follow from files, once all keys were read. A file that cannot be read changes nothing here:
  /// what is wrong with it is said when the run is loaded.
  virtual void read_file_keys() = 0;
};

} // namespace mneme
