package ortrim.app;

import ai.onnxruntime.OnnxJavaType;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OnnxValue;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import ai.onnxruntime.OrtSession.SessionOptions;
import ai.onnxruntime.TensorInfo;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** Runs the cases of a request through the Java API, with the model mapped from where it lies in a file. */
final class JavaApi {
    private final ByteBuffer request;
    private final ByteArrayOutputStream results = new ByteArrayOutputStream();

    /** Kept as long as the session, which reads it in place. */
    private ByteBuffer model;

    JavaApi(byte[] request) {
        this.request = ByteBuffer.wrap(request);
    }

    byte[] run(FileDescriptor file, long offset, long length) throws IOException, OrtException {
        model = new FileInputStream(file).getChannel().map(FileChannel.MapMode.READ_ONLY, offset, length);
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        try (SessionOptions options = options();
                OrtSession session = environment.createSession(model, options)) {
            for (int cases = number(); cases > 0; cases--) {
                runCase(environment, session);
            }
        }
        return results.toByteArray();
    }

    private SessionOptions options() throws OrtException {
        SessionOptions options = new SessionOptions();
        options.setOptimizationLevel(number() == 0 ? SessionOptions.OptLevel.NO_OPT : SessionOptions.OptLevel.ALL_OPT);
        options.setExecutionMode(SessionOptions.ExecutionMode.values()[number()]);
        options.setIntraOpNumThreads(number());
        options.setInterOpNumThreads(number());
        options.setCPUArenaAllocator(number() != 0);
        options.setMemoryPatternOptimization(number() != 0);
        for (int entries = number(); entries > 0; entries--) {
            options.addConfigEntry(word(), word());
        }
        return options;
    }

    private void runCase(OrtEnvironment environment, OrtSession session) throws OrtException {
        Map<String, OnnxTensor> inputs = new LinkedHashMap<>();
        for (String name : session.getInputNames()) {
            OnnxJavaType type = ((TensorInfo) session.getInputInfo().get(name).getInfo()).type;
            inputs.put(name, tensor(environment, type));
        }
        try (OrtSession.Result found = session.run(inputs)) {
            for (Map.Entry<String, OnnxValue> output : found) {
                write((OnnxTensor) output.getValue());
            }
        }
        for (OnnxTensor input : inputs.values()) {
            input.close();
        }
    }

    private OnnxTensor tensor(OrtEnvironment environment, OnnxJavaType type) throws OrtException {
        long[] shape = new long[number()];
        for (int n = 0; n < shape.length; n++) {
            shape[n] = number();
        }
        byte[] content = new byte[number()];
        request.get(content);
        ByteBuffer bytes = ByteBuffer.allocateDirect(content.length).order(ByteOrder.nativeOrder());
        bytes.put(content);
        bytes.rewind();
        return OnnxTensor.createTensor(environment, bytes, shape, type);
    }

    private void write(OnnxTensor output) {
        long[] shape = output.getInfo().getShape();
        ByteBuffer content = output.getByteBuffer();
        byte[] bytes = new byte[content.remaining()];
        content.get(bytes);
        StringBuilder line = new StringBuilder().append(shape.length);
        for (long size : shape) {
            line.append(' ').append(size);
        }
        line.append(' ').append(bytes.length).append('\n');
        results.write(line.toString().getBytes(StandardCharsets.US_ASCII), 0, line.length());
        results.write(bytes, 0, bytes.length);
    }

    private int number() {
        return Integer.parseInt(word());
    }

    /** Returns what comes before the next white space, which is passed as well. */
    private String word() {
        StringBuilder word = new StringBuilder();
        for (char letter = (char) request.get(); letter > ' '; letter = (char) request.get()) {
            word.append(letter);
        }
        return word.toString();
    }
}
