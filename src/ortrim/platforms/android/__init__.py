"""All that is Android's own: build arguments, AAR, gates, and devices behind adb."""
