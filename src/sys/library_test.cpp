// SPDX-License-Identifier: Apache-2.0
// Libraries loaded at run time: found, not found, without the symbol, moved.
#include "sys/library.hpp"

#include <gtest/gtest.h>

namespace strait::sys {
namespace {

using Cosine = double (*)(double);

TEST(Library, FindsAFunctionAndCallsIt) {
  const Library library = Library::open("libm.so.6").value();
  const auto cosine = library.symbol<Cosine>("cos");
  ASSERT_TRUE(cosine) << cosine.error().text;
  EXPECT_DOUBLE_EQ((*cosine)(0.0), 1.0);
}

TEST(Library, AMissingLibraryIsNamed) {
  const auto library = Library::open("libnobody-has-this.so.9");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, Code::unsupported);
  EXPECT_NE(library.error().text.find("libnobody-has-this.so.9"), std::string::npos);
}

TEST(Library, AMissingSymbolNamesBoth) {
  const Library library = Library::open("libm.so.6").value();
  const auto nothing = library.symbol<Cosine>("strait_has_no_such_symbol");
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Code::unsupported);
  EXPECT_EQ(nothing.error().text, "libm.so.6 has no symbol strait_has_no_such_symbol");
}

TEST(Library, AnEmptyNameIsNotTheProgramItself) {
  EXPECT_EQ(Library::open("").error().code, Code::invalid);
}

TEST(Library, AFileThatIsNoLibraryIsRefused) {
  EXPECT_EQ(Library::open("/etc/passwd").error().code, Code::unsupported);
}

TEST(Library, AMovedFromLibraryFindsNothing) {
  Library first = Library::open("libm.so.6").value();
  Library second = std::move(first);
  EXPECT_EQ(first.symbol<Cosine>("cos").error().code, Code::invalid);  // NOLINT: moved-from on purpose
  first = std::move(second);
  EXPECT_TRUE(first.symbol<Cosine>("cos"));
}

}  // namespace
}  // namespace strait::sys
