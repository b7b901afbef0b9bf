#include "input_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "text_file.h"

namespace anyslot::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string fault_of(std::string_view text) {
  const Expected<std::vector<InputRow>> rows = parse_input_rows(text, "in.jsonl");
  if (rows.ok()) return "";
  EXPECT_EQ(rows.status().code(), StatusCode::kInvalidArgument);
  return rows.status().message();
}

TEST(InputRows, ReadsDocumentsOfBothKinds) {
  const Expected<std::vector<InputRow>> rows = parse_input_rows(
      R"({"id": "x", "documents": ["plain\n", {"title": "T", "text": "body", "id": 7}], "question": "Q?",)"
      R"( "answers": ["a", "b"], "max_tokens": 5, "method": "mepic", "unknown": {"deep": []}})",
      "in");
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  const InputRow& row = rows->at(0);
  EXPECT_EQ(row.id, "x");
  ASSERT_EQ(row.documents.size(), 2);
  EXPECT_FALSE(row.documents[0].title.has_value());
  EXPECT_EQ(row.documents[0].text, "plain\n");
  EXPECT_EQ(row.documents[1].title, "T");
  EXPECT_EQ(row.documents[1].id, "7");
  EXPECT_EQ(row.question, "Q?");
  EXPECT_EQ(row.answers, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(row.max_tokens, 5);
  EXPECT_EQ(row.method, Method::kMepic);
}

TEST(InputRows, ReadsSegments) {
  const Expected<std::vector<InputRow>> rows = parse_input_rows(
      R"({"segments": [{"type": "document", "token_ids": [0, 4095], "id": "d"}, {"type": "text", "text": "Q"}]})",
      "in");
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  const std::vector<Segment>& segments = rows->at(0).segments;
  ASSERT_EQ(segments.size(), 2);
  EXPECT_EQ(segments[0].kind, SegmentKind::kDocument);
  EXPECT_EQ(segments[0].token_ids, (std::vector<int32_t>{0, 4095}));
  EXPECT_EQ(segments[0].id, "d");
  EXPECT_EQ(segments[1].kind, SegmentKind::kText);
  EXPECT_EQ(segments[1].text, "Q");
  EXPECT_TRUE(segments[1].markup.empty()) << "what a user wrote holds no special tokens";
}

TEST(InputRows, PassesOverBlankLinesAndCountsThem) {
  const Expected<std::vector<InputRow>> rows = parse_input_rows(
      "\xef\xbb\xbf{\"documents\": [\"d\"], \"question\": \"q\"}\r\n\n  \t\n"
      "{\"documents\": [\"d\"], \"question\": \"q\"}",
      "in");
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 2);
  EXPECT_EQ(rows->at(1).line, 4);
  EXPECT_EQ(rows->at(1).id, 4);
}

TEST(InputRows, LoadsBlockBenchAsItIs) {
  const Expected<std::vector<InputRow>> rows =
      load_input_rows(ANYSLOT_SOURCE_DIR "/tests/data/2wiki-20.jsonl");
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 20);
  EXPECT_EQ(rows->at(0).question, "Where does the founder of Les Films Du Losange work at?");
  EXPECT_EQ(rows->at(0).answers, std::vector<std::string>{"Cahiers du cinéma"});
  EXPECT_EQ(rows->at(0).documents.size(), 10);
  EXPECT_EQ(rows->at(0).documents[0].title, "Les films du losange");
}

TEST(InputRows, LoadsTheBundledQuestions) {
  const Expected<std::vector<InputRow>> rows =
      load_input_rows(ANYSLOT_SOURCE_DIR "/models/demo/questions.jsonl");
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  for (const InputRow& row : *rows) {
    EXPECT_GE(row.documents.size(), 16);
    EXPECT_EQ(row.documents.size(), rows->front().documents.size());
    bool answer_is_told = false;
    for (const Document& document : row.documents) {
      answer_is_told |= document.text.find(row.answers.at(0)) != std::string::npos;
    }
    EXPECT_TRUE(answer_is_told) << row.question;
  }
}

struct Fault {
  const char* row;
  const char* part;
};

class InputRowFault : public testing::TestWithParam<Fault> {};

TEST_P(InputRowFault, IsNamedWithFileAndLine) {
  const std::string fault = fault_of("{\"documents\": [\"d\"], \"question\": \"q\"}\n" +
                                     std::string(GetParam().row) + "\n");
  EXPECT_THAT(fault, StartsWith("in.jsonl:2: "));
  EXPECT_THAT(fault, HasSubstr(GetParam().part));
}

INSTANTIATE_TEST_SUITE_P(
    All, InputRowFault,
    testing::Values(
        Fault{R"({"documents": ["d"]})", "no question"},
        Fault{R"({"documents": ["d"], "question": "  "})", "no question"},
        Fault{R"({"documents": ["d"], "question": null})", "no question"},
        Fault{R"({"documents": ["d"], "question": 3})", "\"question\" must be a string"},
        Fault{R"({"question": "q"})", "no \"documents\""},
        Fault{R"({"documents": [], "question": "q"})", "\"documents\" is empty"},
        Fault{R"({"documents": "d", "question": "q"})", "\"documents\" must be an array"},
        Fault{R"({"documents": ["d", " \n"], "question": "q"})", "document 1 is empty"},
        Fault{R"({"documents": [{"title": "t", "text": ""}], "question": "q"})",
              "document 0 is empty"},
        Fault{R"({"documents": [{"text": "x"}], "question": "q"})", "document 0 has no \"title\""},
        Fault{R"({"documents": [{"title": "t"}], "question": "q"})", "document 0 has no \"text\""},
        Fault{R"({"documents": [{"title": 1, "text": "x"}], "question": "q"})",
              "\"title\" of document 0"},
        Fault{R"({"documents": [7], "question": "q"})", "document 0 must be a string"},
        Fault{R"({"id": "lonely"})", "neither"},
        Fault{R"({"documents": ["d"], "question": "q", "answers": "a"})",
              "\"answers\" must be an array"},
        Fault{R"({"documents": ["d"], "question": "q", "answers": [1]})", "\"answers\""},
        Fault{R"({"documents": ["d"], "question": "q", "max_tokens": 0})", "\"max_tokens\""},
        Fault{R"({"documents": ["d"], "question": "q", "max_tokens": 1.5})", "\"max_tokens\""},
        Fault{R"({"documents": ["d"], "question": "q", "max_tokens": 99999999999})",
              "\"max_tokens\""},
        Fault{R"({"documents": ["d"], "question": "q", "method": "magic"})", "magic"},
        Fault{R"({"documents": ["d"], "question": "q", "temperature": 1})",
              "\"temperature\" cannot"},
        Fault{R"({"documents": ["d"], "question": "q", "id": [1]})", "\"id\""},
        Fault{R"({"documents": ["d"], "segments": []})", "give one form"},
        Fault{R"({"segments": []})", "\"segments\" is empty"},
        Fault{R"({"segments": [{"type": "document", "text": "d"}]})", "last segment is a document"},
        Fault{R"({"segments": [{"type": "image", "text": "d"}]})", "image"},
        Fault{R"({"segments": [{"text": "d"}]})", "segment 0 has no \"type\""},
        Fault{R"({"segments": [{"type": "text"}]})", "either \"text\" or \"token_ids\""},
        Fault{R"({"segments": [{"type": "text", "text": "a", "token_ids": [1]}]})", "either"},
        Fault{R"({"segments": [{"type": "text", "token_ids": []}]})", "segment 0 is empty"},
        Fault{R"({"segments": [{"type": "text", "token_ids": [-1]}]})", "-1 is no token id"},
        Fault{R"({"segments": [{"type": "text", "token_ids": [4294967296]}]})", "no token id"},
        Fault{R"({"segments": [{"type": "text", "token_ids": [1.5]}]})", "must hold integers"},
        Fault{R"({"segments": ["text"]})", "segment 0 must be an object"},
        Fault{R"({"documents": ["d"], "question": "q")", "invalid JSON"},
        Fault{R"({"documents": ["d"], "question": "q"} x)", "column 39: invalid JSON"},
        Fault{R"(["d"])", "found array"}, Fault{"nonsense", "column 2: invalid JSON"},
        Fault{"{\"documents\": [\"d\"], \"question\": \"\xff\"}", "column 35: invalid UTF-8"},
        Fault{"{\"documents\": [\"\xed\xa0\x80\"], \"question\": \"q\"}", "invalid UTF-8"},
        Fault{R"({"documents": ["\ud800"], "question": "q"})", "invalid JSON"}));

TEST(InputRows, RefusesAFileWithoutRows) {
  EXPECT_EQ(fault_of(" \n\n"), "in.jsonl holds no rows");
  EXPECT_EQ(fault_of(""), "in.jsonl holds no rows");
}

TEST(InputRows, NamesAFileThatCannotBeRead) {
  const Expected<std::vector<InputRow>> missing = load_input_rows("/nowhere/rows.jsonl");
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.status().message(), HasSubstr("/nowhere/rows.jsonl: No such file"));
  const Expected<std::vector<InputRow>> folder = load_input_rows(ANYSLOT_SOURCE_DIR);
  ASSERT_FALSE(folder.ok());
  EXPECT_THAT(folder.status().message(), HasSubstr("Is a directory"));
}

TEST(InputRows, RefusesWhatTheJsonLibraryWouldChokeOn) {
  const std::string deep(200000, '[');
  const std::string row = R"({"documents": ["a"], "question": "q", "x": )";
  const auto fault = [](const std::string& line) {
    return parse_input_rows(line, "in").status().message();
  };
  EXPECT_THAT(fault(row + deep), HasSubstr("nests more than 64 levels"));
  EXPECT_THAT(fault(row + "1e999}"), HasSubstr("a number is out of range"));
  EXPECT_THAT(fault(row + "1}" + std::string(1, '\0') + "garbage"), HasSubstr("NUL byte"));
}

TEST(Segments, NamesTheLineOfInvalidJson) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.write(
      "segments.json", "{\"segments\": [\n  {\"type\": \"text\",\n   \"token_ids\": [1, }]}\n");
  const Expected<std::vector<Segment>> segments = load_segments(path);
  ASSERT_FALSE(segments.ok());
  EXPECT_THAT(segments.status().message(), StartsWith(path + ":3: column 21: invalid JSON"));
}

TEST(TextFile, FindsInvalidUtf8) {
  EXPECT_EQ(find_invalid_utf8("Éric \xf0\x9f\x8e\xac"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("ab\xc3"), 2) << "cut in the middle of a character";
  EXPECT_EQ(find_invalid_utf8("a\xc0\x80"), 1) << "overlong";
}

}  // namespace
}  // namespace anyslot::cli
