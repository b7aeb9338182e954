// SPDX-License-Identifier: Apache-2.0
#include "plot/svg.hpp"

#include <gtest/gtest.h>

#include "plot/page.hpp"
#include "plot/units.hpp"
#include "plot/well_formed_test.hpp"

namespace strait::plot {
namespace {

TEST(WellFormed, TheCheckFindsWhatIsWrong) {
  EXPECT_EQ(why_not_well_formed("<a><b x=\"1\"/>t</a>\n"), "");
  for (const char* bad : {"", "<a>", "<a></b>", "<a/><b/>", "<a>&</a>", "<a>&nbsp;</a>", "<a x=\"1></a>", "text", "<a",
                          "<a><b></a></b>"}) {
    EXPECT_NE(why_not_well_formed(bad), "") << bad;
  }
}

TEST(Svg, EscapesWhatXmlWouldMisread) {
  EXPECT_EQ(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_EQ(escaped("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  // Not UTF-8, too long a form of '/', half of a pair, a control character: none of them may reach the file.
  EXPECT_EQ(escaped("\xff"), "?");
  EXPECT_EQ(escaped("\xc0\xaf"), "??");
  EXPECT_EQ(escaped("\xed\xa0\x80"), "???");
  EXPECT_EQ(escaped("a\x01z\xe2\x82"), "a?z??");
}

TEST(Svg, IsWellFormedAndNeedsNothingFromOutside) {
  Svg svg(100, 50, "a < b", "c & d");
  svg.text(1, 2, "start", "<script>");
  svg.text_up(1, 2, "up");
  svg.line(0, 0, 1, 1, "grid");
  svg.path("M0 0L1 1", "hue0");
  for (int i = 0; i < 9; ++i) svg.marker(i, i, i);
  const std::string out = std::move(svg).finish();
  EXPECT_EQ(why_not_well_formed(out), "");
  EXPECT_EQ(out.find("<script"), std::string::npos);
  EXPECT_EQ(out.find("href"), std::string::npos);
  EXPECT_NE(out.find("prefers-color-scheme:dark"), std::string::npos);
}

TEST(Page, IsWellFormedAndHoldsWhatItWasGiven) {
  const Page page{.title = "A & B",
                  .paragraphs = {"first <b>", "second"},
                  .pictures = {"<svg xmlns=\"http://www.w3.org/2000/svg\"/>\n"},
                  .tables = {{"table", {"size", "figure"}, {{"8 B", "0.25"}, {"64 B", "-"}}}},
                  .facts = {{"machine", "x \"y\""}}};
  const std::string out = page_html(page);
  EXPECT_EQ(why_not_well_formed(out), "");
  for (const char* words :
       {"A &amp; B", "first &lt;b&gt;", "<svg ", "<td class=\"figure\">0.25</td>", "<dt>machine</dt>"})
    EXPECT_NE(out.find(words), std::string::npos) << words;
  // Opens from disk without a network: nothing is linked or loaded.
  for (const char* words : {"src=", "href=", "@import", "url(", "<script"})
    EXPECT_EQ(out.find(words), std::string::npos) << words;
}

TEST(Units, FiguresHaveThreeDigitsAndNoExponent) {
  EXPECT_EQ(figure_text(0.25149), "0.251");
  EXPECT_EQ(figure_text(1.006e-2), "0.0101");
  EXPECT_EQ(figure_text(9.996), "10.0");
  EXPECT_EQ(figure_text(12.34), "12.3");
  EXPECT_EQ(figure_text(41704.2), "41704");
  EXPECT_EQ(figure_text(0.0001), "<0.001");
  EXPECT_EQ(figure_text(0), "0");
  EXPECT_EQ(figure_text(1.0 / 0.0), "-");
}

TEST(Units, SizesAreBinary) {
  EXPECT_EQ(size_text(8), "8 B");
  EXPECT_EQ(size_text(65536), "64 KiB");
  EXPECT_EQ(size_text(16u << 20), "16 MiB");
  EXPECT_EQ(size_text(1000), "1000 B");
}

}  // namespace
}  // namespace strait::plot
