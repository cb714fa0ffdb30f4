plugins {
    id("com.android.application") version "8.7.3"
}

android {
    namespace = "ortrim.harness"
    compileSdk = 35

    defaultConfig {
        applicationId = "ortrim.harness"
        minSdk = 24
        targetSdk = 35
        versionCode = 1
        versionName = "1"
        testInstrumentationRunner = "androidx.test.runner.AndroidJUnitRunner"
        ndk {
            abiFilters += "arm64-v8a"
        }
    }

    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }

    packaging {
        jniLibs {
            // The installer then makes files of them, and only of files can a program be started.
            useLegacyPackaging = true
            // What is measured is what ships, byte for byte.
            keepDebugSymbols += "**/*.so"
        }
    }
}

dependencies {
    androidTestImplementation("androidx.test:runner:1.6.2")
    androidTestImplementation("androidx.test:monitor:1.7.2")
    androidTestImplementation("junit:junit:4.13.2")
}
