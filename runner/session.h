/* The settings that go with a model, as a package's session.json has them. */
#ifndef ORTRIM_SESSION_H
#define ORTRIM_SESSION_H

#include "options.h"

/* Replaces the settings among the options by those of the model with the file name of --model, or fails with
 * EXIT_USAGE: a file that cannot be read, is no session.json of this schema, or does not have the model. */
void session_read(struct options *options);

#endif
