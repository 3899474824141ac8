/* What holds the namespaces of a pod: sleeps, reaps what it inherits, and ends when it is told to. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  sigset_t all;
  int got;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  for (;;) {
    if (sigwait(&all, &got)) return EXIT_FAILURE;
    if (got == SIGTERM || got == SIGINT) return EXIT_SUCCESS;
    if (got == SIGCHLD)
      while (waitpid(-1, NULL, WNOHANG) > 0 || errno == EINTR) errno = 0;
  }
}
