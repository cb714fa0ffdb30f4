public class OrtLoraAdapter { public static void create(String path) { load(path); } }
