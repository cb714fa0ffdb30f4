#import "Run.h"

#import <pthread.h>
#import <unistd.h>

#import "embedding.h"
#import "transfer.h"

/** As much as a program's first thread has; others get half a megabyte, too little for loading large models. */
static const size_t StackBytes = 8 << 20;

static NSString *folder;
static NSTimeInterval begin;

static NSString *Variable(NSString *name) {
  return NSProcessInfo.processInfo.environment[name];
}

static void WriteEnd(int code, NSString *problem) {
  NSProcessInfo *process = NSProcessInfo.processInfo;
  NSDictionary *end = @{
    @"schema" : @"ortrim-end/1",
    @"code" : @(code),
    @"problem" : problem,
    @"seconds" : @(process.systemUptime - begin),
    @"thermal" : @(process.thermalState),
    @"cores" : @(process.processorCount),
    @"memory_bytes" : @(process.physicalMemory),
    @"page_bytes" : @(getpagesize()),
  };
  NSData *data = [NSJSONSerialization dataWithJSONObject:end options:0 error:NULL];
  [data writeToFile:[folder stringByAppendingPathComponent:@"end.json"] atomically:YES];
}

static void Send(int port) {
  NSMutableArray<NSString *> *names = [NSMutableArray array];
  NSFileManager *files = NSFileManager.defaultManager;
  for (NSString *name in [files enumeratorAtPath:folder]) {
    BOOL isFolder = NO;
    [files fileExistsAtPath:[folder stringByAppendingPathComponent:name] isDirectory:&isFolder];
    if (!isFolder) [names addObject:name];
  }
  const char **words = calloc(names.count + 1, sizeof *words);
  for (NSUInteger n = 0; n < names.count; n++) words[n] = names[n].fileSystemRepresentation;
  transfer_send(port, Variable(@"ORTRIM_NONCE").UTF8String, folder.fileSystemRepresentation, words, (int)names.count);
  free(words);
}

static _Noreturn void Finish(int code, NSString *problem) {
  @autoreleasepool {
    fflush(stderr);
    WriteEnd(code, problem);
    int port = Variable(@"ORTRIM_PORT").intValue;
    if (!port) _exit(code);
    Send(port);
  }
  for (;;) pause(); /* XCTest measures an app that is still there */
}

void ortrim_runner_exit(int code) { Finish(code, @""); }

/** Makes an empty folder for the run, the only one there is, and sends to a file in it what the runner says. */
static void PrepareFolder(void) {
  NSFileManager *files = NSFileManager.defaultManager;
  NSString *documents = NSSearchPathForDirectoriesInDomains(NSDocumentDirectory, NSUserDomainMask, YES).firstObject;
  for (NSString *name in [files contentsOfDirectoryAtPath:documents error:NULL])
    if ([name hasPrefix:@"ortrim-"])
      [files removeItemAtPath:[documents stringByAppendingPathComponent:name] error:NULL];
  folder = [documents stringByAppendingPathComponent:[@"ortrim-" stringByAppendingString:Variable(@"ORTRIM_NONCE")]];
  [files createDirectoryAtPath:[folder stringByAppendingPathComponent:@"outputs"]
      withIntermediateDirectories:YES
                       attributes:nil
                            error:NULL];
  freopen([folder stringByAppendingPathComponent:@"stderr.txt"].fileSystemRepresentation, "w", stderr);
  setvbuf(stderr, NULL, _IOLBF, 0);
}

/** Gives the app's files the names that the requests want, by links: they lie in the app under their digests. */
static NSString *LinkFiles(NSArray<NSDictionary *> *contents) {
  NSFileManager *files = NSFileManager.defaultManager;
  NSString *place = [NSTemporaryDirectory() stringByAppendingPathComponent:@"files"];
  [files removeItemAtPath:place error:NULL];
  for (NSDictionary *each in contents) {
    NSString *link = [place stringByAppendingPathComponent:each[@"path"]];
    NSString *file = [NSBundle.mainBundle.bundlePath stringByAppendingPathComponent:each[@"asset"]];
    [files createDirectoryAtPath:link.stringByDeletingLastPathComponent
        withIntermediateDirectories:YES
                         attributes:nil
                              error:NULL];
    NSError *error = nil;
    if (![files createSymbolicLinkAtPath:link withDestinationPath:file error:&error])
      Finish(-1, [NSString stringWithFormat:@"%@: %@", each[@"path"], error.localizedDescription]);
  }
  return place;
}

static NSArray<NSString *> *Words(void) {
  NSString *path = [NSBundle.mainBundle pathForResource:@"requests" ofType:@"json" inDirectory:@"ortrim"];
  NSData *data = path ? [NSData dataWithContentsOfFile:path] : nil;
  NSDictionary *requests = data ? [NSJSONSerialization JSONObjectWithData:data options:0 error:NULL] : nil;
  NSUInteger number = (NSUInteger)Variable(@"ORTRIM_RUN").integerValue;
  NSArray<NSDictionary *> *runs = requests[@"runs"];
  if (![requests[@"schema"] isEqual:@"ortrim-requests/1"] || number >= runs.count)
    Finish(-1, @"the app has no such request");
  NSString *files = LinkFiles(requests[@"contents"]);
  NSMutableArray<NSString *> *words = [NSMutableArray array];
  for (NSString *word in runs[number][@"words"]) {
    NSString *known = [word stringByReplacingOccurrencesOfString:@"/@native"
                                                      withString:NSBundle.mainBundle.privateFrameworksPath];
    known = [known stringByReplacingOccurrencesOfString:@"/@files" withString:files];
    [words addObject:[known stringByReplacingOccurrencesOfString:@"/@run" withString:folder]];
  }
  return words;
}

static void *CarryOut(void *unused) {
  (void)unused;
  @autoreleasepool {
    begin = NSProcessInfo.processInfo.systemUptime;
    PrepareFolder();
    NSArray<NSString *> *words = Words();
    char **arguments = calloc(words.count + 1, sizeof *arguments);
    for (NSUInteger n = 0; n < words.count; n++) arguments[n] = strdup(words[n].fileSystemRepresentation);
    ortrim_runner_main((int)words.count, arguments);
  }
  return NULL;
}

void ORTStartRun(void) {
  if (!Variable(@"ORTRIM_RUN") || !Variable(@"ORTRIM_NONCE")) return;
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, StackBytes);
  pthread_attr_set_qos_class_np(&attributes, QOS_CLASS_USER_INTERACTIVE, 0); /* on the fast cores, as in the front */
  pthread_create(&thread, &attributes, CarryOut, NULL);
}
