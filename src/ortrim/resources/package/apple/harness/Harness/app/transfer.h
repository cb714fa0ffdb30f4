/* Files from the app to the test that started it, over this phone's own loopback: neither may read the other's folders.
 *
 * What is sent: the nonce, then for each file the length of its name and its size, as decimal numbers in one line,
 * the name and the bytes. A line "end" comes last, by which a sender that is done is told from one that died. */
#ifndef ORTRIM_TRANSFER_H
#define ORTRIM_TRANSFER_H

/* Opens a port that nobody but this phone reaches; returns the listening socket and stores the port, or returns -1. */
int transfer_listen(int *port);
/* Sends these files, by their paths below `folder`. Returns 0, or -1 when not all was sent. */
int transfer_send(int port, const char *nonce, const char *folder, const char *const *names, int count);
/* Takes files of a sender that knows the nonce into `folder`, whose inner folders are made; waits at most so many
 * seconds for each thing that comes. Returns 0 when the sender said that all is there; -1 otherwise. */
int transfer_receive(int listening, const char *nonce, const char *folder, double seconds);

#endif
