import com.google.protobuf.Empty;
import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ClientCalls;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Calls with grpc-java until standard input ends: {@code java Restarts PORT [retry]}. Prints the number of calls, and a
 * line for each error.
 */
public final class Restarts {
  private static final int CALLERS = 8;
  private static volatile boolean isEnded;

  public static void main(String[] args) throws Exception {
    ManagedChannel channel = NettyChannelBuilder.forAddress("127.0.0.1", Integer.parseInt(args[0])).usePlaintext().build();
    // Fields of the response are unknown to Empty.
    MethodDescriptor<Empty, Empty> method = MethodDescriptor.<Empty, Empty>newBuilder()
        .setType(MethodDescriptor.MethodType.UNARY)
        .setFullMethodName("greenhouse.v1.GreenhouseService/GetReading")
        .setRequestMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance()))
        .setResponseMarshaller(ProtoUtils.marshaller(Empty.getDefaultInstance()))
        .build();
    CallOptions options = args.length > 1 ? CallOptions.DEFAULT.withWaitForReady() : CallOptions.DEFAULT;
    AtomicInteger calls = new AtomicInteger();
    Map<String, Integer> errors = new ConcurrentHashMap<>();
    Thread[] callers = new Thread[CALLERS];
    for (int at = 0; at < CALLERS; at++) {
      callers[at] = new Thread(() -> {
        while (!isEnded) {
          calls.incrementAndGet();
          CallOptions deadline = options.withDeadlineAfter(20, TimeUnit.SECONDS);
          try {
            ClientCalls.blockingUnaryCall(channel, method, deadline, Empty.getDefaultInstance());
          } catch (StatusRuntimeException error) {
            errors.merge(error.getStatus().getCode() + " " + error.getStatus().getDescription(), 1, Integer::sum);
          }
          pause();
        }
      });
      callers[at].start();
    }
    System.in.readAllBytes();
    isEnded = true;
    for (Thread caller : callers) {
      caller.join();
    }
    System.out.println(calls.get());
    errors.forEach((text, times) -> System.out.println(times + " " + text));
    System.exit(0);
  }

  private static void pause() {
    try {
      Thread.sleep(ThreadLocalRandom.current().nextInt(10));
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }
}
