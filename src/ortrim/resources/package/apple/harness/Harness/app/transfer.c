#if defined(__APPLE__)
#define _DARWIN_C_SOURCE
#else
#define _DEFAULT_SOURCE
#endif
#include "transfer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

enum { PATH_BYTES = 1024, LINE_BYTES = 256 };

static struct sockaddr_in loopback(int port) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((unsigned short)port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int transfer_listen(int *port) {
  struct sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  int listening = socket(AF_INET, SOCK_STREAM, 0);
  if (listening < 0) return -1;
  if (bind(listening, (struct sockaddr *)&address, size) || listen(listening, 1) ||
      getsockname(listening, (struct sockaddr *)&address, &size)) {
    close(listening);
    return -1;
  }
  *port = ntohs(address.sin_port);
  return listening;
}

static int copy(FILE *from, FILE *to, unsigned long long bytes) {
  char buffer[1 << 14];
  while (bytes > 0) {
    size_t wanted = bytes < sizeof buffer ? (size_t)bytes : sizeof buffer;
    size_t got = fread(buffer, 1, wanted, from);
    if (!got || fwrite(buffer, 1, got, to) != got) return -1;
    bytes -= got;
  }
  return 0;
}

static int send_file(FILE *stream, const char *folder, const char *name) {
  char path[PATH_BYTES];
  struct stat about;
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return -1;
  FILE *file = fopen(path, "rb");
  if (!file) return -1;
  int failed = fstat(fileno(file), &about) || fprintf(stream, "%zu %llu\n%s", strlen(name),
                                                      (unsigned long long)about.st_size, name) < 0;
  failed = failed || copy(file, stream, (unsigned long long)about.st_size);
  fclose(file);
  return failed ? -1 : 0;
}

int transfer_send(int port, const char *nonce, const char *folder, const char *const *names, int count) {
  struct sockaddr_in address = loopback(port);
  int connected = socket(AF_INET, SOCK_STREAM, 0);
  if (connected < 0) return -1;
  signal(SIGPIPE, SIG_IGN); /* a test that gave up is an error here, not the end of the app */
  FILE *stream = connect(connected, (struct sockaddr *)&address, sizeof address) ? NULL : fdopen(connected, "wb");
  if (!stream) {
    close(connected);
    return -1;
  }
  int failed = fprintf(stream, "%s\n", nonce) < 0;
  for (int n = 0; n < count && !failed; n++) failed = send_file(stream, folder, names[n]) != 0;
  if (!failed) failed = fprintf(stream, "end\n") < 0;
  if (fclose(stream)) failed = 1;
  return failed ? -1 : 0;
}

/* Whether a name stays below the folder that it is put behind. */
static int stays_below(const char *name) {
  size_t length = strlen(name);
  if (!length || *name == '/' || strstr(name, "//")) return 0;
  return strcmp(name, "..") && strncmp(name, "../", 3) && !strstr(name, "/../") &&
         (length < 3 || strcmp(name + length - 3, "/.."));
}

static int make_parents(char *path, size_t from) {
  for (size_t n = from; path[n]; n++) {
    if (path[n] != '/') continue;
    path[n] = '\0';
    mkdir(path, 0755); /* there already, or opening the file says what is wrong */
    path[n] = '/';
  }
  return 0;
}

static int receive_file(FILE *stream, const char *folder, size_t length, unsigned long long bytes) {
  char name[PATH_BYTES], path[2 * PATH_BYTES];
  if (length >= sizeof name || fread(name, 1, length, stream) != length) return -1;
  name[length] = '\0';
  if (strlen(name) != length || !stays_below(name)) return -1;
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return -1;
  make_parents(path, strlen(folder) + 1);
  FILE *file = fopen(path, "wb");
  if (!file) return -1;
  int failed = copy(stream, file, bytes);
  if (fclose(file)) failed = -1;
  return failed;
}

static int receive_all(FILE *stream, const char *nonce, const char *folder) {
  char line[LINE_BYTES];
  size_t length;
  unsigned long long bytes;
  if (!fgets(line, sizeof line, stream) || strncmp(line, nonce, strlen(nonce)) || strcmp(line + strlen(nonce), "\n"))
    return -1;
  while (fgets(line, sizeof line, stream)) {
    if (!strcmp(line, "end\n")) return 0;
    if (sscanf(line, "%zu %llu", &length, &bytes) != 2 || receive_file(stream, folder, length, bytes)) return -1;
  }
  return -1;
}

int transfer_receive(int listening, const char *nonce, const char *folder, double seconds) {
  struct timeval patience = {.tv_sec = (time_t)seconds};
  fd_set waiting;
  FD_ZERO(&waiting);
  FD_SET(listening, &waiting);
  if (select(listening + 1, &waiting, NULL, NULL, &patience) != 1) return -1;
  int connected = accept(listening, NULL, NULL);
  if (connected < 0) return -1;
  patience = (struct timeval){.tv_sec = (time_t)seconds};
  setsockopt(connected, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  FILE *stream = fdopen(connected, "rb");
  if (!stream) {
    close(connected);
    return -1;
  }
  int failed = receive_all(stream, nonce, folder);
  fclose(stream);
  return failed;
}
