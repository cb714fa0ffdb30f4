#import <CommonCrypto/CommonDigest.h>
#import <UIKit/UIKit.h>
#import <XCTest/XCTest.h>
#import <sys/sysctl.h>
#import <unistd.h>

#import "transfer.h"

/** A multiple of three, so that the parts join to one base64 text. */
static const NSUInteger PartBytes = 2250;
static const NSUInteger MostBytes = 32 << 20;
static const double StartSeconds = 60;

/** What a farm starts. Each request runs in an app of its own, begun anew; what the runs say, ortrim judges. */
@interface RequestsTests : XCTestCase
@end

@implementation RequestsTests {
  NSDictionary *_requests;
  NSData *_document;
  NSString *_results;
}

- (void)setUp {
  self.continueAfterFailure = YES;
  NSString *path = [[NSBundle bundleForClass:self.class] pathForResource:@"requests" ofType:@"json"];
  _document = [NSData dataWithContentsOfFile:path];
  _requests = [NSJSONSerialization JSONObjectWithData:_document options:0 error:NULL];
  _results = [NSTemporaryDirectory() stringByAppendingPathComponent:@"results"];
}

/** Carries out all requests, and leaves their results as an attachment and in what the test prints. */
- (void)testAllRequests {
  NSFileManager *files = NSFileManager.defaultManager;
  [files removeItemAtPath:_results error:NULL];
  NSMutableArray *runs = [NSMutableArray array];
  NSMutableDictionary *results = [@{
    @"schema" : @"ortrim-results/1",
    @"requests_sha256" : Sha256(_document),
    @"problem" : @"",
    @"complete" : @NO,
    @"facts" : [self facts],
    @"runs" : runs,
  } mutableCopy];
  NSTimeInterval begin = NSProcessInfo.processInfo.systemUptime;
  for (NSDictionary *request in _requests[@"runs"]) {
    double left = [_requests[@"seconds"] doubleValue] - (NSProcessInfo.processInfo.systemUptime - begin);
    if (left <= 0) {
      results[@"problem"] = [NSString stringWithFormat:@"after %tu runs their time was used up", runs.count];
      break;
    }
    [runs addObject:[self run:runs.count seconds:MIN(left, [request[@"seconds"] doubleValue])]];
  }
  results[@"facts_after"] = [self facts];
  results[@"complete"] = @YES;
  NSData *json = [NSJSONSerialization dataWithJSONObject:results options:0 error:NULL];
  [files createDirectoryAtPath:_results withIntermediateDirectories:YES attributes:nil error:NULL];
  [json writeToFile:[_results stringByAppendingPathComponent:@"results.json"] atomically:YES];
  [self hand:[self packed]];
  XCTAssertEqualObjects(results[@"problem"], @"");
}

/** What Xcode's own metrics say of the first request: the time with the app's start, and the memory that it gained. */
- (void)testMetricsOfTheFirstRequest {
  XCUIApplication *app = [[XCUIApplication alloc] init];
  XCTMeasureOptions *options = [XCTMeasureOptions defaultOptions];
  options.iterationCount = 3;
  NSArray *metrics = @[ [[XCTClockMetric alloc] init], [[XCTMemoryMetric alloc] initWithApplication:app] ];
  [self measureWithMetrics:metrics
                   options:options
                     block:^{
                       [self run:0 seconds:[self->_requests[@"runs"][0][@"seconds"] doubleValue] of:app into:nil];
                     }];
  [app terminate];
}

/** Runs one request in an app of its own and keeps what it left; returns how it ended. */
- (NSDictionary *)run:(NSUInteger)number seconds:(double)seconds {
  NSString *kept = [_results stringByAppendingFormat:@"/runs/%03tu", number];
  XCUIApplication *app = [[XCUIApplication alloc] init];
  NSTimeInterval begin = NSProcessInfo.processInfo.systemUptime;
  BOOL whole = [self run:number seconds:seconds of:app into:kept];
  BOOL dead = app.state == XCUIApplicationStateNotRunning;
  [app terminate];
  NSData *data = [NSData dataWithContentsOfFile:[kept stringByAppendingPathComponent:@"end.json"]];
  NSDictionary *end = whole && data ? [NSJSONSerialization JSONObjectWithData:data options:0 error:NULL] : nil;
  NSString *said = [NSString stringWithContentsOfFile:[kept stringByAppendingPathComponent:@"stderr.txt"]
                                             encoding:NSUTF8StringEncoding
                                                error:NULL];
  NSNumber *code = end[@"code"] ?: @(128 + SIGABRT); /* the app died: XCTest does not say of what */
  BOOL started = ![code isEqual:@(-1)];
  return @{
    @"how" : !started ? @"not-started" : (end || dead) ? @"exit" : @"timeout",
    @"code" : started ? code : @0,
    @"stdout" : @"",
    @"stderr" : started ? (said ?: @"") : end[@"problem"],
    @"seconds" : @(NSProcessInfo.processInfo.systemUptime - begin),
    @"thermal" : @(NSProcessInfo.processInfo.thermalState),
  };
}

- (BOOL)run:(NSUInteger)number seconds:(double)seconds of:(XCUIApplication *)app into:(NSString *)kept {
  NSString *nonce = NSUUID.UUID.UUIDString;
  NSString *folder = kept ?: [NSTemporaryDirectory() stringByAppendingPathComponent:nonce];
  [NSFileManager.defaultManager createDirectoryAtPath:folder
                          withIntermediateDirectories:YES
                                           attributes:nil
                                                error:NULL];
  int port = 0, listening = transfer_listen(&port);
  XCTAssertGreaterThanOrEqual(listening, 0);
  app.launchEnvironment = @{
    @"ORTRIM_RUN" : @(number).stringValue,
    @"ORTRIM_NONCE" : nonce,
    @"ORTRIM_PORT" : @(port).stringValue,
  };
  [app launch];
  int failed = transfer_receive(listening, nonce.UTF8String, folder.fileSystemRepresentation, StartSeconds + seconds);
  close(listening);
  return failed == 0;
}

- (NSDictionary<NSString *, NSString *> *)facts {
  NSProcessInfo *process = NSProcessInfo.processInfo;
  char machine[64] = "";
  size_t size = sizeof machine;
  sysctlbyname("hw.machine", machine, &size, NULL, 0);
  NSString *simulated = process.environment[@"SIMULATOR_MODEL_IDENTIFIER"];
  UIDevice *device = UIDevice.currentDevice;
  return @{
    @"apple" : simulated ? @"simulator" : @"physical",
    @"product" : simulated ?: @(machine),
    @"system" : [NSString stringWithFormat:@"%@ %@", device.systemName, device.systemVersion],
    @"cores" : @(process.processorCount).stringValue,
    @"memory_bytes" : @(process.physicalMemory).stringValue,
    @"page_bytes" : @(getpagesize()).stringValue,
    @"thermal" : @(process.thermalState).stringValue,
  };
}

/** Returns the results as a zip archive, which the system makes of a folder that is to be uploaded. */
- (NSData *)packed {
  __block NSData *archive = nil;
  NSError *error = nil;
  [[[NSFileCoordinator alloc] init] coordinateReadingItemAtURL:[NSURL fileURLWithPath:_results isDirectory:YES]
                                                       options:NSFileCoordinatorReadingForUploading
                                                         error:&error
                                                    byAccessor:^(NSURL *zip) {
                                                      archive = [NSData dataWithContentsOfURL:zip];
                                                    }];
  XCTAssertNotNil(archive, @"%@", error);
  return archive ?: [NSData data];
}

/** Attaches the archive, and prints it in parts for farms that bring back nothing but what a test prints. */
- (void)hand:(NSData *)archive {
  XCTAttachment *attachment = [XCTAttachment attachmentWithData:archive uniformTypeIdentifier:@"public.zip-archive"];
  attachment.name = @"ortrim-results.zip";
  attachment.lifetime = XCTAttachmentLifetimeKeepAlways;
  [self addAttachment:attachment];
  if (archive.length > MostBytes) {
    printf("ortrim-result-too-large %tu\n", archive.length);
    return;
  }
  NSUInteger total = (archive.length + PartBytes - 1) / PartBytes;
  for (NSUInteger part = 0; part < total; part++) {
    NSRange range = NSMakeRange(part * PartBytes, MIN(PartBytes, archive.length - part * PartBytes));
    NSString *text = [[archive subdataWithRange:range] base64EncodedStringWithOptions:0];
    printf("ortrim-result %tu/%tu %s\n", part + 1, total, text.UTF8String);
  }
  printf("ortrim-result-end %s %tu\n", Sha256(archive).UTF8String, archive.length);
  fflush(stdout);
}

static NSString *Sha256(NSData *data) {
  unsigned char digest[CC_SHA256_DIGEST_LENGTH];
  CC_SHA256(data.bytes, (CC_LONG)data.length, digest);
  NSMutableString *text = [NSMutableString string];
  for (size_t n = 0; n < sizeof digest; n++) [text appendFormat:@"%02x", digest[n]];
  return text;
}

@end
