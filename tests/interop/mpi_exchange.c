/* SPDX-License-Identifier: Apache-2.0
 * Two or more ranks exchange messages of many sizes, reduce, and write into each other's windows; all bytes are
 * compared. Built by mpi.sh with the MPI that is installed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char byte_of(int rank, size_t size, size_t at) {
  return (unsigned char)(rank * 131 + size * 31 + at * 7 + (at >> 8));
}

static void check(int ok, const char* what, size_t size) {
  if (ok) return;
  fprintf(stderr, "mpi_exchange: %s of %zu bytes: not what was sent\n", what, size);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void exchange(int rank, int ranks, size_t size) {
  const int next = (rank + 1) % ranks;
  const int before = (rank + ranks - 1) % ranks;
  unsigned char* const out = malloc(size + 1);
  unsigned char* const in = calloc(1, size + 1);
  for (size_t i = 0; i < size; ++i) out[i] = byte_of(rank, size, i);
  in[size] = 0x5a;
  MPI_Sendrecv(out, (int)size, MPI_BYTE, next, 7, in, (int)size, MPI_BYTE, before, 7, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  for (size_t i = 0; i < size; ++i) check(in[i] == byte_of(before, size, i), "a message", size);
  check(in[size] == 0x5a, "the byte behind a message", size);
  free(out);
  free(in);
}

/* Several at once, received in another order than they were sent. */
static void cross(int rank, int ranks, size_t size) {
  enum { kMany = 16 };
  const int next = (rank + 1) % ranks;
  const int before = (rank + ranks - 1) % ranks;
  MPI_Request requests[2 * kMany];
  unsigned char* const out = malloc(kMany * size);
  unsigned char* const in = calloc(kMany, size);
  for (int m = 0; m < kMany; ++m) {
    for (size_t i = 0; i < size; ++i) out[m * size + i] = byte_of(rank + m, size, i);
    MPI_Isend(out + m * size, (int)size, MPI_BYTE, next, m, MPI_COMM_WORLD, &requests[m]);
  }
  for (int m = kMany - 1; m >= 0; --m)
    MPI_Irecv(in + m * size, (int)size, MPI_BYTE, before, m, MPI_COMM_WORLD, &requests[kMany + m]);
  MPI_Waitall(2 * kMany, requests, MPI_STATUSES_IGNORE);
  for (int m = 0; m < kMany; ++m) {
    for (size_t i = 0; i < size; ++i)
      check(in[m * size + i] == byte_of(before + m, size, i), "one of several messages", size);
  }
  free(out);
  free(in);
}

static void reduce(int rank, int ranks) {
  enum { kNumbers = 10000 };
  static long mine[kNumbers], sum[kNumbers];
  for (long i = 0; i < kNumbers; ++i) mine[i] = i * (rank + 1);
  MPI_Allreduce(mine, sum, kNumbers, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (long i = 0; i < kNumbers; ++i) check(sum[i] == i * ranks * (ranks + 1) / 2, "a sum", sizeof sum);
}

/* Put, get, and a counter that all ranks increment. */
static void one_sided(int rank, int ranks) {
  enum { kBytes = 50000, kRounds = 20 };
  const int next = (rank + 1) % ranks;
  const int before = (rank + ranks - 1) % ranks;
  unsigned char* memory;
  MPI_Win window;
  MPI_Win_allocate(sizeof(long) + 2 * kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memset(memory, 0, sizeof(long) + 2 * kBytes);
  for (size_t i = 0; i < kBytes; ++i) memory[sizeof(long) + kBytes + i] = byte_of(rank, 1, i);
  unsigned char* const out = malloc(kBytes);
  unsigned char* const in = calloc(1, kBytes);
  for (size_t i = 0; i < kBytes; ++i) out[i] = byte_of(rank, kBytes, i);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  MPI_Put(out, kBytes, MPI_BYTE, next, sizeof(long), kBytes, MPI_BYTE, window);
  MPI_Get(in, kBytes, MPI_BYTE, next, sizeof(long) + kBytes, kBytes, MPI_BYTE, window);
  const long one = 1;
  long old;
  for (int i = 0; i < kRounds; ++i) {
    MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  long counted;
  memcpy(&counted, memory, sizeof counted);
  if (rank == 0) check(counted == (long)kRounds * ranks, "a counter", sizeof counted);
  for (size_t i = 0; i < kBytes; ++i) {
    check(memory[sizeof(long) + i] == byte_of(before, kBytes, i), "a put", kBytes);
    check(in[i] == byte_of(next, 1, i), "a get", kBytes);
  }
  MPI_Win_unlock(rank, window);
  free(out);
  free(in);
  MPI_Win_free(&window);
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  static const size_t kSizes[] = {0, 1, 8, 63, 64, 1023, 4096, 8191, 65536, 262145, 1 << 20};
  for (size_t i = 0; i < sizeof kSizes / sizeof kSizes[0]; ++i) exchange(rank, ranks, kSizes[i]);
  cross(rank, ranks, 100);
  cross(rank, ranks, 20000);
  reduce(rank, ranks);
  one_sided(rank, ranks);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("mpi_exchange: %d ranks, all bytes right\n", ranks);
  MPI_Finalize();
  return 0;
}
