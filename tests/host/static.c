/* SPDX-License-Identifier: Apache-2.0
 * A program that no library can be preloaded into. */
int main(void) {
  return 0;
}
