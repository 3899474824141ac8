/* Ping-pong between two MPI processes, with the output of Intel's MPI benchmarks (IMB-MPI1 PingPong).
 *
 *   scaletest-pingpong [-msglog M] [pingpong]
 *
 * Messages of 0, 1, 2, 4, ... 2^M bytes. Time is half of the mean round trip, bandwidth is bytes / time, with 10^6 bytes in a
 * megabyte, both as IMB defines them. As there: 1000 repetitions, fewer once they would move more than 40 MiB,
 * one at least, and a few that do not count before.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_REPETITIONS 1000
#define MOST_BYTES (40L * 1024 * 1024)
#define WARM_UPS 4

static double half_round_trip(char *out, char *in, long bytes, int repetitions, int rank) {
  int peer = 1 - rank;
  double began = MPI_Wtime();
  for (int i = 0; i < repetitions; i++) {
    if (rank == 0) {
      MPI_Send(out, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
      MPI_Recv(in, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(in, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out, (int)bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - began) / (2.0 * repetitions);
}

int main(int argc, char **argv) {
  int rank, size, log = 22;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "-msglog") && i + 1 < argc) log = atoi(argv[++i]);
  }
  if (size != 2 || log < 0 || log > 30) {
    if (rank == 0) fprintf(stderr, "scaletest-pingpong: two processes and -msglog 0 to 30 are needed\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  long largest = 1L << log;
  char *out = malloc(largest), *in = malloc(largest);
  if (!out || !in) {
    fprintf(stderr, "scaletest-pingpong: no memory for two messages of %ld bytes\n", largest);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  memset(out, 1, largest);
  memset(in, 0, largest);
  if (rank == 0) {
    printf("#---------------------------------------------------\n# scaletest-pingpong, as IMB-MPI1 PingPong\n");
    printf("#---------------------------------------------------\n# Benchmarking PingPong \n# #processes = 2 \n");
    printf("#---------------------------------------------------\n");
    printf("       #bytes #repetitions      t[usec]   Mbytes/sec\n");
  }
  for (int step = -1; step <= log; step++) {
    long bytes = step < 0 ? 0 : 1L << step;
    int repetitions = MOST_REPETITIONS;
    if (bytes > 0 && MOST_BYTES / bytes < repetitions) repetitions = (int)(MOST_BYTES / bytes);
    if (repetitions < 1) repetitions = 1;
    half_round_trip(out, in, bytes, WARM_UPS, rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = half_round_trip(out, in, bytes, repetitions, rank);
    if (rank == 0) {
      printf("%13ld %12d %12.2f %12.2f\n", bytes, repetitions, seconds * 1e6, bytes / seconds / 1e6);
      fflush(stdout);
    }
  }
  if (rank == 0) printf("\n# All processes entering MPI_Finalize\n");
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
