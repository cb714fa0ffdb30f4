#import <UIKit/UIKit.h>

#import "Run.h"

/** An app in front that does nothing but the run: the system ends apps that do not get this far soon. */
@interface ORTScene : UIResponder <UIWindowSceneDelegate>
@property(nonatomic) UIWindow *window;
@end

@implementation ORTScene

- (void)scene:(UIScene *)scene
    willConnectToSession:(UISceneSession *)session
                 options:(UISceneConnectionOptions *)options {
  self.window = [[UIWindow alloc] initWithWindowScene:(UIWindowScene *)scene];
  self.window.rootViewController = [[UIViewController alloc] init];
  [self.window makeKeyAndVisible];
}

@end

@interface ORTApplication : UIResponder <UIApplicationDelegate>
@end

@implementation ORTApplication

- (BOOL)application:(UIApplication *)application didFinishLaunchingWithOptions:(NSDictionary *)options {
  application.idleTimerDisabled = YES;
  ORTStartRun();
  return YES;
}

- (UISceneConfiguration *)application:(UIApplication *)application
    configurationForConnectingSceneSession:(UISceneSession *)session
                                   options:(UISceneConnectionOptions *)options {
  UISceneConfiguration *configuration = [[UISceneConfiguration alloc] initWithName:nil sessionRole:session.role];
  configuration.delegateClass = ORTScene.class;
  return configuration;
}

@end

int main(int count, char **words) {
  @autoreleasepool {
    return UIApplicationMain(count, words, nil, NSStringFromClass(ORTApplication.class));
  }
}
