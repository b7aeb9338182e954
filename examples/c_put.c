/* SPDX-License-Identifier: Apache-2.0
 * The same as put.cpp, in C.
 *
 *   c_put               owns a buffer, prints its address, waits for somebody to write to it
 *   c_put HOST:PORT     writes to it
 */
#include <inttypes.h>
#include <stdio.h>
#include <strait/c.h>

static const int64_t kSecond = 1000000000;

static int own(strait_node* node, strait_region* region, strait_error* error) {
  strait_published* published = NULL;
  uint64_t seen = 0;
  int32_t code = strait_publish(node, "kv/0", region, &published, error);
  if (code != STRAIT_OK) return code;
  printf("%s\n", strait_node_address(node));
  fflush(stdout);
  code = strait_signal_wait(region, 0, 1, 30 * kSecond, &seen, error); /* the data is here when this returns */
  strait_withdraw(published);
  return code != STRAIT_OK ? code : strait_region_revoke(region, kSecond, error);
}

static int put_all(strait_peer* peer, strait_region* region, strait_error* error) {
  strait_target target = {.struct_size = sizeof target};
  strait_op_options options = {.struct_size = sizeof options, .signal = 0, .signal_add = 1};
  strait_slice all = {region, 0, strait_region_length(region)};
  strait_op op = {0};
  strait_done done = {.struct_size = sizeof done};
  options.flags = STRAIT_WITH_SIGNAL | STRAIT_REQUIRE_ZERO_COPY;
  int32_t code = strait_lookup(peer, "kv/0", 5 * kSecond, &target, error);
  if (code == STRAIT_OK) code = strait_put(strait_peer_lane(peer), &all, &target, 0, &options, &op, error);
  if (code == STRAIT_OK) code = strait_wait(&op, 5 * kSecond, &done, error);
  if (code == STRAIT_OK) printf("%" PRIu64 " bytes via %s\n", done.bytes, strait_lane_path(strait_peer_lane(peer)));
  return code;
}

static int send_to(strait_node* node, const char* address, strait_region* region, strait_error* error) {
  strait_peer* peer = NULL;
  int32_t code = strait_connect(node, address, 5 * kSecond, &peer, error);
  if (code != STRAIT_OK) return code;
  code = put_all(peer, region, error);
  strait_peer_close(peer);
  return code;
}

int main(int argc, char** argv) {
  strait_error error = {.struct_size = sizeof error};
  strait_node* node = NULL;
  strait_memory* memory = NULL;
  strait_region* region = NULL;
  int32_t code = strait_node_open(NULL, &node, &error);
  if (code == STRAIT_OK) code = strait_allocate(node, 16u << 20, "soft:0", &memory, &error);
  if (code == STRAIT_OK) {
    code = strait_share(node, strait_memory_address(memory), strait_memory_length(memory), STRAIT_REMOTE_WRITE, &region,
                        &error);
  }
  if (code == STRAIT_OK) code = argc == 1 ? own(node, region, &error) : send_to(node, argv[1], region, &error);
  if (code != STRAIT_OK) fprintf(stderr, "c_put: %s\n  %s\n", error.text, error.remedy);
  if (region != NULL) strait_region_drop(region);
  if (memory != NULL) strait_memory_free(memory, NULL);
  if (node != NULL) strait_node_close(node);
  return code == STRAIT_OK ? 0 : 1;
}
