package plantstore.client;

import io.grpc.Grpc;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.MetadataUtils;
import java.util.concurrent.TimeUnit;
import plantstore.v1.DeletePlantRequest;
import plantstore.v1.PlantServiceGrpc;

/** Runs what docs/clients.md shows. */
public final class Documented {
  public static void main(String[] arguments) {
    String token = System.getenv("TOKEN");
    // The lines of docs/clients.md stand here.
    channel.shutdownNow();
  }
}
