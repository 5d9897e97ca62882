package plantstore.client;

import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.MetadataUtils;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import plantstore.v1.DeletePlantRequest;
import plantstore.v1.PlantServiceGrpc;
import plantstore.v1.PlantServiceGrpc.PlantServiceBlockingStub;

/** Deletes plants with grpc-java's stub. */
public final class Main {
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  public static void main(String[] arguments) throws Exception {
    ManagedChannel channel = Grpc.newChannelBuilder(arguments[0], credentials(arguments)).build();
    PlantServiceBlockingStub stub = PlantServiceGrpc.newBlockingStub(channel);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.split(" ");
      switch (words[0]) {
        case "load" -> callFor(stub, words[1], Integer.parseInt(words[2]));
        case "echo" -> Load.echo(channel, Integer.parseInt(words[2]));
        case "count" -> Load.count(channel, Integer.parseInt(words[2]));
        default -> System.out.println(delete(configure(stub, words[1], words[2]), Long.parseLong(words[0])));
      }
    }
    channel.shutdownNow();
  }

  private static void callFor(PlantServiceBlockingStub stub, String token, int seconds) throws Exception {
    PlantServiceBlockingStub configured = configure(stub, token, "-");
    Load.callFor(seconds, id -> delete(configured, id));
  }

  private static ChannelCredentials credentials(String[] arguments) throws IOException {
    if (arguments.length < 2) {
      return InsecureChannelCredentials.create();
    }
    return TlsChannelCredentials.newBuilder().trustManager(new File(arguments[1])).build();
  }

  private static PlantServiceBlockingStub configure(PlantServiceBlockingStub stub, String token, String deadlineMs) {
    PlantServiceBlockingStub configured = stub;
    if (!token.equals("-")) {
      Metadata metadata = new Metadata();
      metadata.put(AUTHORIZATION, "Bearer " + token);
      configured = configured.withInterceptors(MetadataUtils.newAttachHeadersInterceptor(metadata));
    }
    if (!deadlineMs.equals("-")) {
      configured = configured.withDeadlineAfter(Long.parseLong(deadlineMs), TimeUnit.MILLISECONDS);
    }
    return configured;
  }

  private static String delete(PlantServiceBlockingStub stub, long id) {
    try {
      stub.deletePlant(DeletePlantRequest.newBuilder().setId(id).build());
      return "0";
    } catch (StatusRuntimeException failure) {
      return outcomeOf(failure);
    }
  }

  /** Returns a failed call's gRPC code and message. */
  static String outcomeOf(Throwable failure) {
    Status status = Status.fromThrowable(failure);
    return status.getCode().value() + " " + status.getDescription();
  }
}
