/* What `Run.m` does with the runner, without Apple's libraries: a thread with room, and ends that are the app's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "embedding.h"
#include "transfer.h"

static int given_count;
static char **given;

void ortrim_runner_exit(int code) {
  fprintf(stderr, "app: the runner ended with %d\n", code);
  _exit(code + 40);
}

static void *carry_out(void *unused) {
  (void)unused;
  ortrim_runner_main(given_count, given);
  return NULL;
}

static int receive(const char *nonce, const char *folder) {
  int port = 0, listening = transfer_listen(&port);
  if (listening < 0) return 3;
  printf("%d\n", port);
  fflush(stdout);
  return transfer_receive(listening, nonce, folder, 5) ? 4 : 0;
}

int main(int count, char **words) {
  pthread_t thread;
  pthread_attr_t attributes;
  if (count == 4 && words[1][0] == 'r') return receive(words[2], words[3]);
  if (count > 5 && words[1][0] == 's')
    return transfer_send(atoi(words[2]), words[3], words[4], (const char *const *)words + 5, count - 5) ? 5 : 0;
  given_count = count;
  given = words;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 8 << 20);
  pthread_create(&thread, &attributes, carry_out, NULL);
  pthread_join(thread, NULL);
  return 6;
}
