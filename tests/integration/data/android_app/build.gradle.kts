plugins {
    id("com.android.application") version "9.4.1"
}

android {
    namespace = "ortrim.app"
    compileSdk = 36

    defaultConfig {
        minSdk = 24
        targetSdk = 36
        ndk { abiFilters += "x86_64" }
    }

    buildTypes {
        release {
            isMinifyEnabled = true
            proguardFiles(getDefaultProguardFile("proguard-android-optimize.txt"))
            signingConfig = signingConfigs.getByName("debug")
        }
    }

    androidResources { noCompress += "ort" }
    buildFeatures { prefab = true }
    externalNativeBuild { cmake { path = file("src/main/cpp/CMakeLists.txt") } }
    lint { checkReleaseBuilds = false }
}

dependencies {
    implementation(providers.gradleProperty("ortrim.coordinates").get())
}
