/* The runner inside an app: its `main` and its ends carry other names (see the project's compiler flags). */
#ifndef ORTRIM_EMBEDDING_H
#define ORTRIM_EMBEDDING_H

/* The runner; never returns, whatever becomes of it. */
int ortrim_runner_main(int count, char **words);
/* What the runner calls instead of `exit` and `_exit`. */
_Noreturn void ortrim_runner_exit(int code);

#endif
