// Without a filter the short forms run; scripts/soak.sh asks for the long ones.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

/// Prints, after all tests, what each of them recorded.
class Summary : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& info) override {
    std::string line = std::string(info.result()->Passed() ? "ok      " : "FAILED  ") +
                       info.test_suite_name() + "." + info.name();
    for (int i = 0; i < info.result()->test_property_count(); ++i) {
      const testing::TestProperty& figure = info.result()->GetTestProperty(i);
      line += std::string("\n          ") + figure.key() + " = " + figure.value();
    }
    lines_.push_back(line);
  }
  void OnTestProgramEnd(const testing::UnitTest& /*all*/) override {
    std::printf("\nSummary\n");
    for (const std::string& line : lines_) std::printf("%s\n", line.c_str());
  }

  std::vector<std::string> lines_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(filter) == "*") GTEST_FLAG_SET(filter, "Short/*");
  testing::UnitTest::GetInstance()->listeners().Append(new Summary);
  return RUN_ALL_TESTS();
}
