package plantstore.client;

import com.google.protobuf.ByteString;
import io.grpc.Channel;
import io.grpc.stub.StreamObserver;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongFunction;
import java.util.stream.IntStream;
import streams.v1.CountRequest;
import streams.v1.Piece;
import streams.v1.StreamServiceGrpc;

/** Puts load on a server, and prints how often each outcome occurred, followed by an empty line. */
final class Load {
  /** Concurrent calls. */
  private static final int CALLERS = 64;

  /** The content that each sent piece has. */
  private static final ByteString CONTENT = ByteString.copyFrom(new byte[64 * 1024]);

  private final Map<String, Integer> counts = new ConcurrentHashMap<>();

  /** Deletes plants 1, 2, 3 … for some seconds. In outcomes, "#" stands for the plant. */
  static void callFor(int seconds, LongFunction<String> delete) throws Exception {
    Load load = new Load();
    AtomicLong ids = new AtomicLong();
    Runnable call = () -> {
      long id = ids.incrementAndGet();
      load.add(delete.apply(id).replace(" " + id + " ", " # "));
    };
    // Without an open connection, some clients would open one for each call.
    call.run();
    Instant until = Instant.now().plusSeconds(seconds);
    Runnable caller = () -> {
      while (Instant.now().isBefore(until)) {
        call.run();
      }
    };
    ExecutorService callers = Executors.newFixedThreadPool(CALLERS);
    for (Future<?> running : IntStream.range(0, CALLERS).mapToObj(i -> callers.submit(caller)).toList()) {
      running.get();
    }
    callers.shutdown();
    load.print();
  }

  /** Sends pieces, and reads the echoes meanwhile. */
  static void echo(Channel channel, int pieces) throws InterruptedException {
    Reader reader = new Reader();
    StreamObserver<Piece> sender = StreamServiceGrpc.newStub(channel).echo(reader);
    for (int number = 0; number < pieces; number++) {
      sender.onNext(Piece.newBuilder().setNumber(number).setContent(CONTENT).build());
    }
    sender.onCompleted();
    reader.print();
  }

  /** Requests pieces. */
  static void count(Channel channel, int pieces) throws InterruptedException {
    Reader reader = new Reader();
    StreamServiceGrpc.newStub(channel).count(CountRequest.newBuilder().setPieces(pieces).build(), reader);
    reader.print();
  }

  private void add(String seen) {
    counts.merge(seen, 1, Integer::sum);
  }

  private void print() {
    counts.forEach((seen, times) -> System.out.println(times + " " + seen));
    System.out.println();
  }

  /** Counts a stream's pieces by size, and its outcome. */
  private static final class Reader implements StreamObserver<Piece> {
    private final Load load = new Load();
    private final CountDownLatch ended = new CountDownLatch(1);
    private int wanted;

    @Override
    public void onNext(Piece piece) {
      boolean inOrder = piece.getNumber() == wanted;
      load.add(inOrder ? piece.getContent().size() + " bytes" : "number " + piece.getNumber() + " for " + wanted);
      wanted++;
    }

    @Override
    public void onError(Throwable failure) {
      end(Main.outcomeOf(failure));
    }

    @Override
    public void onCompleted() {
      end("0");
    }

    private void end(String outcome) {
      load.add(outcome);
      ended.countDown();
    }

    void print() throws InterruptedException {
      ended.await();
      load.print();
    }
  }
}
