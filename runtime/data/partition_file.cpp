#include "runtime/base/available_memory.hpp"
#include "runtime/base/check.hpp"
#include "runtime/base/column_names.hpp"
#include "runtime/base/csv_fields.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/base/printable.hpp"
#include "runtime/base/trim.hpp"
#include "runtime/data/partition_kinds.hpp"
#include <algorithm>
#include <optional>
#include <utility>
namespace mneme {
namespace {

/// One line of the file, with the numbers as written.
struct entry {
  std::int64_t client = -1, row = -1;
  std::int64_t task = 0;  ///< Numbered from 1; 0: every task that contains the row.
  std::int64_t mark = -1; ///< Value in the method's column.
};

/// The columns of the file, in header order.
struct header {
  std::vector<std::int64_t entry::*> columns{}; ///< Null for an ignored column.
  [[nodiscard]] bool has(std::int64_t entry::*checked) const {
    return std::find(columns.begin(), columns.end(), checked) != columns.end();
  }
};

class reader {
public:
  reader(const scenario& from, const task_stream& tasks, const partition_column_spec& marks)
      : path_(from.partition.file.string()), clients_(from.clients.count), tasks_(tasks), marks_(marks) {
    MNEME_CHECK(clients_ > 0, clients_);
    for (const auto& task : tasks.tasks) {
      parsed_.owned.emplace_back(task.train.size(), no_client);
      if (!marks_.name.empty())
        parsed_.marks.emplace_back(task.train.size(), 0);
    }
    number_rows();
  }

  expected<filed_split> read(std::string_view text) {
    csv::record_reader records(text);
    const bool has_header = records.next();
    line_ = has_header ? records.line() : 1;
    if (has_header && !records.error().empty())
      return failed(place(), records.error());
    const auto named = read_header(records.fields());
    if (!named)
      return tl::unexpected(named.error());
    while (errors_.size() < csv::diagnostics_max && records.next()) {
      line_ = records.line();
      if (!records.error().empty())
        add_error(records.error());
      else if (const auto row = parsed(records.fields(), *named))
        assign(*row);
    }
    if (errors_.empty() && !gives_rows_)
      return failed(path_, parsed_.drawn_rows == 0
                               ? "assigns no row to a client; expected a line for each row, as in client,row"
                               : "assigns only the " + std::to_string(parsed_.drawn_rows) +
                                     " rows that data.test_share selects as test rows; expected training rows, too");
    if (!errors_.empty())
      return tl::unexpected(std::move(errors_));
    return std::move(parsed_);
  }

private:
  [[nodiscard]] std::string place() const { return path_ + ":" + std::to_string(line_); }
  void add_error(std::string text) { errors_.push_back({place(), std::move(text)}); }

  /// Reports unknown column names that look like misspelled known ones. Other unknown columns are ignored.
  diagnostics validate_other_names(const std::vector<std::string_view>& fields) const {
    std::vector<std::string> known{"client", "row", "task"}, absent;
    if (!marks_.name.empty())
      known.push_back(marks_.name);
    for (const auto& name : known)
      if (std::find(fields.begin(), fields.end(), name) == fields.end())
        absent.push_back(name);
    diagnostics problems;
    for (const auto name : fields)
      if (const auto meant = csv::misspelt_name(name, known, absent);
          std::find(known.begin(), known.end(), name) == known.end() && !meant.empty() &&
          problems.size() < csv::diagnostics_max)
        problems.push_back({place(), "the header names a column '" + printable(name) +
                                         "', which is not used; did you mean '" + meant +
                                         "'? Rename it, also if it holds something else"});
    return problems;
  }

  expected<header> read_header(const std::vector<std::string_view>& fields) {
    const std::vector<std::pair<std::string, std::int64_t entry::*>> known{
        {"client", &entry::client}, {"row", &entry::row}, {"task", &entry::task}, {marks_.name, &entry::mark}};
    header columns;
    auto problems = validate_other_names(fields);
    std::string names;
    for (const auto name : fields) {
      const auto match = std::find_if(known.begin(), known.end(),
                                      [&](const auto& column) { return column.first == name && !name.empty(); });
      auto* const column = match == known.end() ? nullptr : &match->second;
      if (column && columns.has(*column))
        problems.push_back(
            {place(), "the header names the column '" + std::string(name) + "' twice; expected it once"});
      columns.columns.push_back(column ? *column : nullptr);
      names += (names.empty() ? "'" : ", '") + printable(name) + "'";
    }
    for (const auto& [name, column] : known) {
      const bool is_needed = column == &entry::client || column == &entry::row || !name.empty();
      if (column == &entry::task || !is_needed || columns.has(column))
        continue;
      problems.push_back(
          {place(), "the header names no column '" + name + "' but " + (names.empty() ? "nothing" : names) +
                        (column == &entry::mark ? "; expected one, since strategy keys ask for it"
                                                : "; expected a first line such as client,row or client,row,task")});
    }
    if (!problems.empty())
      return tl::unexpected(std::move(problems));
    return columns;
  }

  std::optional<entry> parsed(const std::vector<std::string_view>& fields, const header& named) {
    const auto refuse = [&](std::string text) {
      add_error(std::move(text));
      return std::nullopt;
    };
    if (fields.size() != named.columns.size())
      return refuse("the line has " + std::to_string(fields.size()) + " of " + std::to_string(named.columns.size()) +
                    " fields; expected one for each column of the header");
    entry row;
    for (std::size_t column = 0; column < named.columns.size(); ++column) {
      if (!named.columns[column])
        continue;
      const auto field = trim(fields[column]); // removes white space inside quotes
      if (!csv::parse_number(field, row.*named.columns[column]))
        return refuse("found '" + printable(field.substr(0, 100)) + "' as " + name_of(named.columns[column]) +
                      "; expected an integer");
    }
    if (named.has(&entry::task) && (row.task < 1 || row.task > std::ssize(tasks_.tasks)))
      return refuse("task " + std::to_string(row.task) + " does not exist; expected 1.." +
                    std::to_string(tasks_.tasks.size()) + " (tasks count from 1)");
    if (!marks_.name.empty() && (row.mark < 0 || row.mark >= marks_.below))
      return refuse(marks_.name + " " + std::to_string(row.mark) + " does not exist; expected 0.." +
                    std::to_string(marks_.below - 1));
    return row;
  }

  std::string name_of(std::int64_t entry::*column) const {
    if (column == &entry::mark)
      return marks_.name;
    return column == &entry::client ? "client" : column == &entry::row ? "row" : "task";
  }

  /// Assigns the row to the client in the given task, or in every task that contains the row.
  void assign(const entry& given) {
    if (given.client < 0 || given.client >= clients_)
      return add_error("client " + std::to_string(given.client) + " does not exist; expected 0.." +
                       std::to_string(clients_ - 1) + " (clients.count = " + std::to_string(clients_) + ")");
    const auto row = numbered(given.row);
    if (row < 0 && is_drawn(given.row)) {
      ++parsed_.drawn_rows;
      return;
    }
    if (row < 0)
      return add_error(
          "row " + std::to_string(given.row) + " does not exist among the " +
          std::to_string(tasks_.train->files_rows()) + " training rows of the run" +
          "; expected a row of the original training file that data.train_rows and data.train_per_class keep");
    const auto& tasks = tasks_.tasks;
    const auto wrong_before = errors_.size();
    bool held = false;
    for (std::size_t t = 0; t < tasks.size() && errors_.size() == wrong_before; ++t)
      if (given.task == 0 || given.task == static_cast<std::int64_t>(t) + 1)
        held |= own(t, row, given);
    gives_rows_ |= held;
    if (!held && given.task > 0)
      add_error("row " + std::to_string(given.row) + " is not a row of task " + std::to_string(given.task) +
                "; expected a row of its classes or domain, or no task column");
  }

  /// Assigns a row of one task. Returns false if the task does not contain the row.
  bool own(std::size_t task, std::int64_t row, const entry& line) {
    const auto position = position_[task * per_task() + static_cast<std::size_t>(row)];
    if (position == no_client)
      return false;
    auto& owner = parsed_.owned[task][position];
    if (owner != no_client)
      add_error("row " + std::to_string(line.row) + " is given to client " + std::to_string(line.client) +
                " and, in an earlier line, to client " + std::to_string(owner) + " (task " + std::to_string(task + 1) +
                "); expected each row once per task");
    owner = static_cast<std::uint32_t>(line.client);
    if (!marks_.name.empty())
      parsed_.marks[task][position] = static_cast<std::int32_t>(line.mark);
    return true;
  }

  /// Returns the run's row number for a row of the original file, or -1 if the run does not have the row.
  [[nodiscard]] std::int64_t numbered(std::int64_t file_row) const {
    const auto& kept = tasks_.train->file_rows;
    if (kept.empty())
      return file_row >= 0 && file_row < tasks_.train->files_rows() ? file_row : -1;
    const auto place = std::lower_bound(kept.begin(), kept.end(), file_row);
    return place != kept.end() && *place == file_row ? place - kept.begin() : -1;
  }

  /// True if data.test_share moved the row to the test split.
  [[nodiscard]] bool is_drawn(std::int64_t file_row) const {
    return std::binary_search(tasks_.drawn_rows.begin(), tasks_.drawn_rows.end(), file_row);
  }

  [[nodiscard]] std::size_t per_task() const { return static_cast<std::size_t>(tasks_.train->files_rows()); }

  /// Fills position_ for all rows of all tasks.
  void number_rows() {
    position_.assign(tasks_.tasks.size() * per_task(), no_client);
    for (std::size_t t = 0; t < tasks_.tasks.size(); ++t)
      for (row_position at = 0; at < tasks_.tasks[t].train.size(); ++at)
        position_[t * per_task() + static_cast<std::size_t>(tasks_.tasks[t].train[at]) % per_task()] = at;
  }

  std::string path_;
  std::int64_t clients_;
  const task_stream& tasks_;
  std::vector<row_position> position_; // indexed by task and file row
  partition_column_spec marks_;        // the method's column
  filed_split parsed_;
  std::size_t line_ = 1;
  bool gives_rows_ = false;
  diagnostics errors_;
};

} // namespace

expected<filed_split> read_partition_file(const scenario& from, const task_stream& tasks,
                                          const partition_column_spec& marks) {
  const auto where = from.where("partition.file");
  if (from.partition.file.empty())
    return failed(where,
                  "partition.kind = \"file\" needs a file and found \"\"; expected partition.file = \"rows.csv\", "
                  "a CSV file with the columns client and row");
  const auto text = text_of_file(from.partition.file,
                                 static_cast<std::uint64_t>(std::max<std::int64_t>(available_memory().bytes, 0)));
  if (!text)
    return failed(where, "cannot read '" + from.partition.file.string() + "' (" + text.error().front().text +
                             "); expected a CSV file with the columns client and row");
  return reader(from, tasks, marks).read(*text);
}

} // namespace mneme
