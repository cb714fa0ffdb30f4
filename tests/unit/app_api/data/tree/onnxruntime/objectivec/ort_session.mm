@implementation ORTSession {
  std::optional<Ort::Session> _session;
}
- (nullable instancetype)initWithEnv:(ORTEnv*)env error:(NSError**)error {
  _session = Ort::Session{[env CXXAPIOrtEnv]};
  return self;
}
- (BOOL)runWithInputs:(NSDictionary<NSString*, ORTValue*>*)inputs error:(NSError**)error {
  _session->Run();
}
- (BOOL)enableProfilingWithPath:(NSString*)path error:(NSError**)error {
  Ort::ThrowOnError(Ort::GetApi().EnableProfiling(path.UTF8String));
}
@end
