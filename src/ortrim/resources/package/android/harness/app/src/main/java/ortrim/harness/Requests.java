package ortrim.harness;

import java.util.ArrayList;
import java.util.List;
import org.json.JSONArray;
import org.json.JSONException;
import org.json.JSONObject;

/** What is to be run: the content of `requests.json`, which ortrim wrote. */
final class Requests {
    static final String ASSET = "ortrim/requests.json";
    private static final String SCHEMA = "ortrim-requests/1";

    /** A file that lies in the assets under one name and is wanted below the folder of files under another. */
    static final class Content {
        final String asset;
        final String path;
        final String sha256;

        Content(JSONObject json) throws JSONException {
            asset = json.getString("asset");
            path = json.getString("path");
            sha256 = json.getString("sha256");
        }
    }

    /** A library, or the runner, that the installer has put into the folder of libraries. */
    static final class Library {
        final String name;
        final String sha256;

        Library(JSONObject json) throws JSONException {
            name = json.getString("name");
            sha256 = json.getString("sha256");
        }
    }

    /** One process of the runner. Its words name folders by what begins with {@code /@}. */
    static final class Run {
        final List<String> words = new ArrayList<>();
        final double seconds;

        Run(JSONObject json) throws JSONException {
            JSONArray given = json.getJSONArray("words");
            for (int n = 0; n < given.length(); n++) {
                words.add(given.getString(n));
            }
            seconds = json.getDouble("seconds");
        }
    }

    final List<Content> contents = new ArrayList<>();
    final List<Library> libraries = new ArrayList<>();
    final List<Run> runs = new ArrayList<>();

    /** How long all runs together may take. */
    final double seconds;

    Requests(String text) throws JSONException {
        JSONObject json = new JSONObject(text);
        if (!SCHEMA.equals(json.getString("schema"))) {
            throw new JSONException("not " + SCHEMA + " but " + json.getString("schema"));
        }
        for (JSONObject each : objects(json, "contents")) {
            contents.add(new Content(each));
        }
        for (JSONObject each : objects(json, "libraries")) {
            libraries.add(new Library(each));
        }
        for (JSONObject each : objects(json, "runs")) {
            runs.add(new Run(each));
        }
        seconds = json.getDouble("seconds");
    }

    private static List<JSONObject> objects(JSONObject json, String key) throws JSONException {
        JSONArray array = json.getJSONArray(key);
        List<JSONObject> objects = new ArrayList<>();
        for (int n = 0; n < array.length(); n++) {
            objects.add(array.getJSONObject(n));
        }
        return objects;
    }
}
