# SPDX-License-Identifier: Apache-2.0
# fmt::fmt as a static library of our own (see fmt.cpp for why), under the name that everybody links.
find_path(STRAIT_FMT_INCLUDE fmt/format-inl.h REQUIRED)
add_library(strait_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt.cpp)
target_include_directories(strait_fmt SYSTEM PUBLIC ${STRAIT_FMT_INCLUDE})
if(STRAIT_SANITIZE)
  target_compile_options(strait_fmt PRIVATE -fsanitize=${STRAIT_SANITIZE})
endif()
add_library(fmt::fmt ALIAS strait_fmt)
