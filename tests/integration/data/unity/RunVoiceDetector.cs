using System;
using System.Globalization;
using System.IO;

static class RunVoiceDetector
{
    /// <summary>Prints the probability of each frame in a file of samples.</summary>
    static void Main(string[] words)
    {
        var bytes = File.ReadAllBytes(words[1]);
        var frame = new float[int.Parse(words[2])];
        using (var detector = new VoiceDetector(File.ReadAllBytes(words[0])))
        {
            for (int start = 0; start < bytes.Length; start += 4 * frame.Length)
            {
                Buffer.BlockCopy(bytes, start, frame, 0, 4 * frame.Length);
                Console.WriteLine(detector.Probability(frame).ToString("R", CultureInfo.InvariantCulture));
            }
        }
    }
}
