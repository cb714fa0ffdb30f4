#import <Foundation/Foundation.h>

/** Carries out the request that the environment names, in a thread of its own; nothing when it names none.
 *
 *  ORTRIM_RUN is the request's number, ORTRIM_NONCE names the folder that it leaves below Documents. With ORTRIM_PORT
 *  the folder's files are sent there afterwards, and the app stays until it is ended; without, it ends as the runner
 *  does. */
void ORTStartRun(void);
