# SPDX-License-Identifier: Apache-2.0
# cmake -DPTX=file -P whole_stores.cmake: fails if the kernel stores single bytes, or does not store whole segments.
file(READ ${PTX} text)
string(REGEX MATCHALL "[ \t]st[a-z0-9._]*\\.[bus](8|16)[ \t]" narrow "${text}")
string(REGEX MATCHALL "[ \t]st\\.v2\\.u64[ \t]" whole "${text}")
list(LENGTH narrow narrow_count)
list(LENGTH whole whole_count)
if(narrow_count GREATER 0)
  message(FATAL_ERROR "${PTX}: ${narrow_count} stores narrower than a word; over PCIe each is a transaction")
endif()
if(whole_count LESS 3)
  message(FATAL_ERROR "${PTX}: ${whole_count} 16-byte stores, a write from one piece has three segments")
endif()
