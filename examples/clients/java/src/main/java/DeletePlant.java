import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.MetadataUtils;
import java.util.concurrent.TimeUnit;
import plantstore.v1.DeletePlantRequest;
import plantstore.v1.PlantServiceGrpc;

/**
 * Deletes a plant over gRPC. In the folder of pom.xml:
 *
 * <pre>
 *   mvn --quiet compile
 *   java -cp target/classes:$(cat target/classpath) DeletePlant 127.0.0.1:8080 TOKEN 42
 * </pre>
 */
public final class DeletePlant {
  public static void main(String[] arguments) {
    String address = arguments[0];
    String token = arguments[1];
    long id = Long.parseLong(arguments[2]);
    // The demo, on this machine, has no TLS.
    ChannelCredentials credentials =
        address.startsWith("127.0.0.1:") ? InsecureChannelCredentials.create() : TlsChannelCredentials.create();
    ManagedChannel channel = Grpc.newChannelBuilder(address, credentials).build();
    Metadata credential = new Metadata();
    credential.put(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + token);
    try {
      PlantServiceGrpc.newBlockingStub(channel)
          .withDeadlineAfter(5, TimeUnit.SECONDS)
          .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(credential))
          .deletePlant(DeletePlantRequest.newBuilder().setId(id).build());
      System.out.printf("plant %d is deleted%n", id);
    } catch (StatusRuntimeException error) {
      if (error.getStatus().getCode() != Status.Code.NOT_FOUND) throw error;
      System.out.printf("there is no plant %d%n", id);
    } finally {
      channel.shutdownNow();
    }
  }
}
