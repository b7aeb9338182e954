// SPDX-License-Identifier: Apache-2.0
// What a command line program asks of its terminal: is it one, and did the user press Ctrl-C.
#pragma once

namespace strait::sys {

// True when the descriptor is a terminal whose user did not ask for plain text (NO_COLOR, TERM=dumb).
[[nodiscard]] bool wants_colour(int fd);
[[nodiscard]] bool is_terminal(int fd);

// From now on SIGINT and SIGTERM only raise a flag; the second one ends the process as usual. Per process by nature.
void catch_interrupts();
[[nodiscard]] bool interrupted();

}  // namespace strait::sys
