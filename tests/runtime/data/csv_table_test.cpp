#include "runtime/data/csv_table.hpp"
#include "runtime/data/data_content.hpp"
#include "runtime/data/data_sources.hpp"
#include <ATen/ATen.h> // before Catch2, whose CHECK must be the last definition

#include "tests/support/array_files.hpp"
#include "tests/support/data_files.hpp"
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;

namespace {

using words = std::vector<std::string>;
using labels = std::vector<std::int32_t>;

/// A table of this text, read as data.name = "csv".
expected<csv_table> parse_table(const std::string& text, data_section data = {}) {
  const scratch_folder folder;
  write_file(folder.path() / "t.csv", text);
  data.file = folder.path() / "t.csv";
  auto table = read_csv_table(data);
  if (!table)
    for (auto& problem : table.error())
      problem.where = problem.where.substr(problem.where.find("t.csv"));
  return table;
}

std::string errors_of(const std::string& text, const data_section& data = {}) {
  return error_text(parse_table(text, data));
}

/// Errors of load_data(), which also selects test rows.
std::string loading_errors_of(const std::string& text, data_section data = {}) {
  const scratch_folder folder;
  write_file(folder.path() / "t.csv", text);
  data.name = "csv";
  data.file = folder.path() / "t.csv";
  return error_text(load_data(data, 1));
}

/// The numbers of the training rows, concatenated.
std::vector<float> numbers_of(const csv_table& table) {
  const auto flat = table.train.images.flatten().contiguous();
  const auto* const first = flat.const_data_ptr<float>();
  return {first, first + flat.numel()};
}

const data_section test_share{.test_share = 0.5};

} // namespace

TEST_CASE("a table is read by its header and gives the rows of equal arrays", "[csv]") {
  const scratch_folder folder;
  write_file(folder.path() / "a.npz",
             zip_of({{"train_x.npy", npy_of<float>("<f4", "(4, 2)", {1, 10, 2, 20, 3, 30, 4, 60})},
                     {"train_y.npy", npy_of<std::int64_t>("<i8", "(4,)", {0, 1, 0, 1})},
                     {"test_x.npy", npy_of<float>("<f4", "(2, 2)", {5, 50, 6, 0})},
                     {"test_y.npy", npy_of<std::int64_t>("<i8", "(2,)", {0, 1})}}));
  write_file(folder.path() / "t.CSV", "split,a,label,b\r\ntrain,1,ox,10\ntrain,2,yak,20\ntest,5,ox,+50\n"
                                      "train,3e0,\"ox\",30\n\ntest,6,yak,0\ntrain,4,yak,60\n\r\n\n");
  const auto table = load_data({.name = "csv", .file = folder.path() / "t.CSV"}, 1);
  const auto arrays = load_data({.name = "arrays", .file = folder.path() / "a.npz"}, 1);
  REQUIRE(error_text(table) + error_text(arrays) == "");
  CHECK(data_content(*table) == data_content(*arrays));
  CHECK(table->class_names == words{"ox", "yak"});
}

// pandas 3.1.1: read_csv(path) gives these columns and values, and label.unique() these texts.
TEST_CASE("quotes, line endings, a byte order mark and other delimiters do not change values", "[csv]") {
  const std::string rows = "1.5,\"5\"\" disc\"\n-2,\"a, b\"\n";
  const auto expected = parse_table("x,label\n" + rows);
  REQUIRE(error_text(expected) == "");
  CHECK(expected->classes.names == words{"5\" disc", "a, b"});
  CHECK(numbers_of(*expected) == std::vector<float>{1.5F, -2.0F});
  for (const auto* text :
       {"\xEF\xBB\xBFx,label\r\n1.5,\"5\"\" disc\"\r\n-2,\"a, b\"\r\n\r\n",
        "x,label\r1.5,\"5\"\" disc\"\r-2,\"a, b\"\r", "x;label\n1.5;\"5\"\" disc\"\n-2;a, b\n",
        "x\tlabel\n1.5\t5\" disc\n-2\ta, b\n", " x , \"label\" \n \"1.5\" , \"5\"\" disc\" \n-2,\"a, b\""}) {
    CAPTURE(text);
    const auto table = parse_table(text);
    REQUIRE(error_text(table) == "");
    CHECK(table->classes.names == expected->classes.names);
    CHECK(numbers_of(*table) == numbers_of(*expected));
    CHECK(table->train.labels == labels{0, 1});
  }
  CHECK(errors_of("x,label\n1,\"two\nlines\"\n").find("t.csv: error: the name 'two") == 0); // a control character
}

TEST_CASE("numeric labels are ordered by value, other labels by their letters", "[csv]") {
  const auto names = [](const std::string& column) {
    std::string text = "x,label\n";
    for (std::size_t at = 0, end = 0; at < column.size(); at = end + 1) {
      end = std::min(column.find(' ', at), column.size());
      text += "1," + column.substr(at, end - at) + "\n";
    }
    const auto table = parse_table(text);
    CHECK(error_text(table) == "");
    return table ? table->classes.names : words{};
  };
  CHECK(names("10 9 10") == words{"9", "10"});
  CHECK(names("+1 -1 +1") == words{"-1", "+1"});
  CHECK(names("2.0 10.0 1e0 -0.5") == words{"-0.5", "1e0", "2.0", "10.0"});
  CHECK(names("9007199254740993 9007199254740992") == words{"9007199254740992", "9007199254740993"});
  CHECK(names("b 10 9 a") == words{"10", "9", "a", "b"});
  CHECK(names("1 1.0 one") == words{"1", "1.0", "one"}); // words, as in pandas
}

TEST_CASE("one number in two notations, and missing labels, are refused with their lines", "[csv]") {
  CHECK(errors_of("x,label\n1,1\n2,2\n3,1.0\n4,+2\n") ==
        "t.csv:4: error: the label '1.0' is the same number as '1' on line 2; write each label in one way\n"
        "t.csv:5: error: the label '+2' is the same number as '2' on line 3; write each label in one way\n");
  CHECK_THAT(errors_of("x,label\n1,1\n2,NA\n3,nan\n4,inf\n"),
             ContainsSubstring("t.csv:3: error: the label is 'NA', a missing value or no finite number") &&
                 ContainsSubstring("t.csv:4: error: the label is 'nan'") &&
                 ContainsSubstring("t.csv:5: error: the label is 'inf'"));
  CHECK_THAT(errors_of("x,label\n1,cat\n2,nan\n"), ContainsSubstring("t.csv:3: error: the label is 'nan'"));
  CHECK(errors_of("x,label\n1,cat\n2,NA\n3,None\n").empty()); // ordinary words
  CHECK_THAT(errors_of("x,label,domain\n1,a,1\n2,a,01\n"),
             ContainsSubstring("t.csv:3: error: the domain '01' is the same number as '1' on line 2"));
}

TEST_CASE("the columns of domains and labels are those that keys name", "[csv]") {
  const scratch_folder folder;
  const auto file = folder.path() / "t.csv";
  const data_section data{
      .name = "csv", .file = file, .test_share = 0.5, .label_column = "y", .domain_column = "place"};
  write_file(file, "x,y,place\n1,10,b\n2,10,b\n3,9,a\n4,9,a\n");
  const auto table = load_data(data, 1);
  REQUIRE(error_text(table) == "");
  CHECK(table->class_names == words{"9", "10"});
  CHECK(table->domain_names == words{"a", "b"});
  CHECK(table->train.labels == labels{1, 0});
  CHECK(table->train.domains == labels{1, 0});
  CHECK(table->test.size() == 2);
  CHECK(table->drawn_rows == table->test.file_rows);
  auto limited = data; // limits apply per domain
  limited.domain_column = "";
  limited.ignore_columns = {"place"};
  limited.test_rows = 1;
  const auto few = load_data(limited, 1);
  REQUIRE(error_text(few) == "");
  CHECK(few->test.size() == 1);
  CHECK(few->drawn_rows.size() == 2);
}

TEST_CASE("a column without a name is refused unless ignore_columns excludes it", "[csv]") {
  CHECK(errors_of(",a,b,label\n0,1,2,x\n") ==
        "t.csv:1: error: column 1 of the header has no name; if it is an index, write the table without it (pandas: "
        "index=False, R: row.names = FALSE); else give it a name, or leave it out with data.ignore_columns = [\"\"]\n");
  CHECK_THAT(errors_of("\"\",a,label\n\"1\",1,x\n"), ContainsSubstring("column 1 of the header has no name")); // R
  CHECK_THAT(errors_of("Unnamed: 0,a,label\n0,1,x\n"),
             ContainsSubstring("the column 'Unnamed: 0' had no name when it was read before") &&
                 ContainsSubstring("data.ignore_columns = [\"Unnamed: 0\"]"));
  CHECK_THAT(errors_of("a,b,label,\n1,2,x,\n"),
             ContainsSubstring("column 4 of the header has no name; remove the delimiter at the end of each line"));
  CHECK_THAT(errors_of("a,label\n1,x,\n"), ContainsSubstring("t.csv:2: error: the line has 3 fields; expected 2, one "
                                                             "for each column of the header: remove the delimiter"));
  const auto plain = parse_table("a,b,label\n1,2,x\n3,4,y\n");
  const auto left_out = parse_table(",id,a,name,b,label\n0,7,1,red,2,x\n1,8,3,\"blue, \"\"dark\"\"\",4,y\n",
                                    {.ignore_columns = {"", "id", "name"}});
  REQUIRE(error_text(left_out) == "");
  CHECK(numbers_of(*left_out) == numbers_of(*plain));
  CHECK(left_out->classes.names == plain->classes.names);
  CHECK_THAT(errors_of("a,colour,label\n1,2,x\n", {.ignore_columns = {"Colour"}}),
             ContainsSubstring("names no column 'Colour' (data.ignore_columns) but a, colour, label; did you mean "
                               "'colour'?"));
  CHECK_THAT(errors_of("a,b,label\n1,2,x\n", {.ignore_columns = {"label"}}),
             ContainsSubstring("data.ignore_columns leaves out 'label', which is data.label_column"));
  CHECK(errors_of("a,split,label\n1,2,x\n", {.ignore_columns = {"split"}}).empty());
}

TEST_CASE("a header with repeated, differently spelled or missing names is refused", "[csv]") {
  CHECK(errors_of("a,b,Label\n1,2,x\n") ==
        "t.csv:1: error: the header names no column 'label' (data.label_column) but a, b, Label; did you mean "
        "'Label'? Set data.label_column to the column of the classes, as in data.label_column = \"Label\" or --set "
        "data.label_column=Label\n");
  CHECK_THAT(errors_of("a,b,species\n1,2,x\n"), ContainsSubstring("b, species; set data.label_column to "));
  CHECK_THAT(errors_of("a,a,label\n1,2,x\n"), ContainsSubstring("names the column 'a' twice"));
  CHECK_THAT(errors_of("a,Domain,label\n1,2,x\n"),
             ContainsSubstring("the header names a column 'Domain', and data.domain_column is \"domain\"; set "
                               "data.domain_column = \"Domain\""));
  CHECK(errors_of("a,Domain,label\n1,2,x\n", {.domain_column = ""}).empty());
  CHECK_THAT(errors_of("a,label\n1,x\n", {.split_column = "part"}),
             ContainsSubstring("names no column 'part' (data.split_column)"));
  CHECK_THAT(errors_of("a,b\n1,x\n", {.label_column = "b", .split_column = "b"}),
             ContainsSubstring("'b' is named by data.split_column and by another key"));
  CHECK_THAT(errors_of("label\nx\n"), ContainsSubstring("no column of numbers besides the label"));
  CHECK_THAT(errors_of("a,\"label\n1,x\n"), ContainsSubstring("t.csv:1: error: a quote that opens on line 1"));
  CHECK_THAT(errors_of(" \n\n"), ContainsSubstring("holds only blanks"));
  CHECK_THAT(errors_of("\xFF\xFE" + std::string("a\0,\0", 4)), ContainsSubstring("is UTF-16; expected UTF-8"));
  CHECK_THAT(errors_of(""), ContainsSubstring("the file is empty"));
}

// numpy 2.4.6: numpy.float32(text)
TEST_CASE("a number that underflows is 0, and one that overflows is refused", "[csv]") {
  const auto table = parse_table("a,b,label\n3.2e-50,-1e-400,x\n1e-40,3.4028235e38,y\n");
  REQUIRE(error_text(table) == "");
  const auto numbers = numbers_of(*table);
  CHECK(numbers == std::vector<float>{0.0F, -0.0F, 9.99995e-41F, 3.4028235e38F});
  CHECK(std::signbit(numbers[1]));
  CHECK(errors_of("a,label\n1e39,x\n") == "t.csv:2: error: the column 'a' holds '1e39', which float32 cannot hold; "
                                          "expected a number of at most 3.4e38 in size: scale the column\n");
}

TEST_CASE("errors of a table name line and column", "[csv]") {
  CHECK(errors_of("a,b,label\n1,2,x\n1,nan,x\n1,2\n,2,y\n1,2,\n1,2,y,4\n1,big,y\n-,1,y\n1,inf,y\n") ==
        "t.csv:3: error: the column 'b' holds 'nan'; expected a finite number: fill it in, or leave the row out\n"
        "t.csv:4: error: the line has 2 fields; expected 3, one for each column of the header\n"
        "t.csv:5: error: the column 'a' is empty; expected a finite number: fill it in, or leave the row out\n"
        "t.csv:6: error: the column 'label' is empty; expected a label, a word or a number\n"
        "t.csv:7: error: the line has 4 fields; expected 3, one for each column of the header\n"
        "t.csv:8: error: the column 'b' holds 'big'; expected a finite number: write categories as numbers, or leave "
        "the column out with data.ignore_columns = [\"b\"]\n"
        "t.csv:9: error: the column 'a' holds '-'; expected a finite number: write categories as numbers, or leave the "
        "column out with data.ignore_columns = [\"a\"]\n"
        "t.csv:10: error: the column 'b' holds 'inf'; expected a finite number: fill it in, or leave the row out "
        "(other lines of this column are not listed)\n");
  CHECK(errors_of("a,b,label\n1,2,x\n,,\n") == "t.csv:3: error: the line has delimiters and no value; remove it\n");
  CHECK_THAT(errors_of("a;label\n0,5;x\n"), ContainsSubstring("holds '0,5'; expected a decimal point, as in 0.5"));
  CHECK_THAT(errors_of("a,label\n+-1,x\n"), ContainsSubstring("the column 'a' holds '+-1'"));
  CHECK_THAT(errors_of("a,label\n1,\"x\"y\n"), ContainsSubstring("t.csv:2: error: text follows the closing quote"));
  CHECK_THAT(errors_of("a,label,split\n1,x,valid\n"), ContainsSubstring("holds 'valid'; expected train or test"));
  CHECK_THAT(errors_of("a,label\n"), ContainsSubstring("has no line after its header"));
  CHECK_THAT(loading_errors_of("a,label\n1,x\n", test_share),
             ContainsSubstring("class 'x' has fewer than two rows in every domain"));
  CHECK_THAT(loading_errors_of("a,label,split\n1,x,train\n1,y,test\n"),
             ContainsSubstring("class 'x' of 2 classes has no test row") &&
                 ContainsSubstring("class 'y' of 2 classes has no training row"));
}
