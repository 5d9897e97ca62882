import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.Descriptors.ServiceDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.util.JsonFormat;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Server;
import io.grpc.ServerCallHandler;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** Serves every RPC of a FileDescriptorSet with grpc-java, and prints its port: {@code java Echo definitions.binpb}. */
public final class Echo {
  private static JsonFormat.Printer printer = JsonFormat.printer();

  public static void main(String[] args) throws Exception {
    FileDescriptorSet set = FileDescriptorSet.parseFrom(Files.readAllBytes(Path.of(args[0])));
    int port = args.length > 1 ? Integer.parseInt(args[1]) : 0;
    Map<String, FileDescriptor> files = new HashMap<>();
    JsonFormat.TypeRegistry.Builder types = JsonFormat.TypeRegistry.newBuilder();
    NettyServerBuilder builder = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", port));
    // Each file comes after those that it imports.
    for (FileDescriptorProto proto : set.getFileList()) {
      FileDescriptor[] imports = proto.getDependencyList().stream().map(files::get).toArray(FileDescriptor[]::new);
      FileDescriptor file = FileDescriptor.buildFrom(proto, imports);
      files.put(proto.getName(), file);
      types.add(file.getMessageTypes());
      file.getServices().forEach(service -> builder.addService(define(service)));
    }
    printer = JsonFormat.printer().usingTypeRegistry(types.build());
    Server server = builder.build().start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(server)));
    System.out.println(server.getPort());
    server.awaitTermination();
  }

  /** Stops at SIGTERM, after the calls in flight. */
  private static void stop(Server server) {
    try {
      server.shutdown().awaitTermination();
    } catch (InterruptedException error) {
      throw new IllegalStateException(error);
    }
  }

  private static ServerServiceDefinition define(ServiceDescriptor service) {
    ServerServiceDefinition.Builder builder = ServerServiceDefinition.builder(service.getFullName());
    for (MethodDescriptor method : service.getMethods()) {
      builder.addMethod(
          io.grpc.MethodDescriptor.<DynamicMessage, DynamicMessage>newBuilder()
              .setType(typeOf(method))
              .setFullMethodName(service.getFullName() + "/" + method.getName())
              .setRequestMarshaller(ProtoUtils.marshaller(DynamicMessage.getDefaultInstance(method.getInputType())))
              .setResponseMarshaller(ProtoUtils.marshaller(DynamicMessage.getDefaultInstance(method.getOutputType())))
              .build(),
          handlerOf(method));
    }
    return builder.build();
  }

  private static MethodType typeOf(MethodDescriptor method) {
    if (method.isClientStreaming()) {
      return method.isServerStreaming() ? MethodType.BIDI_STREAMING : MethodType.CLIENT_STREAMING;
    }
    return method.isServerStreaming() ? MethodType.SERVER_STREAMING : MethodType.UNARY;
  }

  private static ServerCallHandler<DynamicMessage, DynamicMessage> handlerOf(MethodDescriptor method) {
    return switch (typeOf(method)) {
      case BIDI_STREAMING -> ServerCalls.asyncBidiStreamingCall(responses -> relay(responses));
      case CLIENT_STREAMING -> ServerCalls.asyncClientStreamingCall(responses -> collect(method, responses));
      case SERVER_STREAMING -> ServerCalls.asyncServerStreamingCall((request, responses) -> send(method, request, responses));
      default -> ServerCalls.asyncUnaryCall((request, responses) -> respond(method, request, responses));
    };
  }

  /** Responds to one message, as described in protoport/conformance/README.md and by the kitchen sink. */
  private static void respond(MethodDescriptor method, DynamicMessage request, StreamObserver<DynamicMessage> responses) {
    Descriptor output = method.getOutputType();
    DynamicMessage.Builder response = DynamicMessage.newBuilder(output);
    switch (method.getName()) {
      case "Fail" -> {
        responses.onError(failure(get(request, has(request, "code") ? "code" : "f_int32")));
        return;
      }
      case "GetFile" -> response = bodyOf(output, request, get(request, "data"));
      case "GetFileField" -> {
        Descriptor body = output.findFieldByName("file").getMessageType();
        response.setField(output.findFieldByName("file"), bodyOf(body, request, get(request, "data")).build());
      }
      default -> {
        if (output == method.getInputType()) {
          response = request.toBuilder();
        } else if (output.getName().equals("Echo")) {
          response.setField(output.findFieldByName("rpc"), method.getName());
          response.setField(output.findFieldByNumber(2), has(response.build(), "sink") ? request : toJson(request));
        }
      }
    }
    responses.onNext(response.build());
    responses.onCompleted();
  }

  private static void send(MethodDescriptor method, DynamicMessage request, StreamObserver<DynamicMessage> responses) {
    Descriptor output = method.getOutputType();
    if (method.getName().equals("GetPieces")) {
      ByteString data = get(request, "data");
      for (int at = 0; at < data.size(); at++) {
        responses.onNext(bodyOf(output, request, data.substring(at, at + 1)).build());
      }
      responses.onCompleted();
      return;
    }
    int count = get(request, "count");
    for (int index = 1; index <= count; index++) {
      DynamicMessage.Builder item = DynamicMessage.newBuilder(output);
      item.setField(output.findFieldByName("index"), index);
      responses.onNext(item.setField(output.findFieldByName("text"), "item").build());
    }
    int code = get(request, "fail_with");
    if (code == 0) {
      responses.onCompleted();
    } else {
      responses.onError(failure(code));
    }
  }

  private static StreamObserver<DynamicMessage> relay(StreamObserver<DynamicMessage> responses) {
    return new Requests(responses) {
      @Override
      public void onNext(DynamicMessage request) {
        responses.onNext(request);
      }
    };
  }

  private static StreamObserver<DynamicMessage> collect(MethodDescriptor method, StreamObserver<DynamicMessage> responses) {
    DynamicMessage.Builder all = DynamicMessage.newBuilder(method.getOutputType());
    return new Requests(responses) {
      @Override
      public void onNext(DynamicMessage request) {
        all.addRepeatedField(method.getOutputType().findFieldByNumber(1), request);
      }

      @Override
      public void onCompleted() {
        responses.onNext(all.build());
        responses.onCompleted();
      }
    };
  }

  /** The requests of a client, whose end completes the response. */
  private abstract static class Requests implements StreamObserver<DynamicMessage> {
    private final StreamObserver<DynamicMessage> responses;

    Requests(StreamObserver<DynamicMessage> responses) {
      this.responses = responses;
    }

    @Override
    public void onError(Throwable error) {}

    @Override
    public void onCompleted() {
      responses.onCompleted();
    }
  }

  private static DynamicMessage.Builder bodyOf(Descriptor type, DynamicMessage request, ByteString data) {
    return DynamicMessage.newBuilder(type)
        .setField(type.findFieldByName("content_type"), get(request, "content_type"))
        .setField(type.findFieldByName("data"), data);
  }

  private static boolean has(DynamicMessage message, String name) {
    return message.getDescriptorForType().findFieldByName(name) != null;
  }

  @SuppressWarnings("unchecked")
  private static <T> T get(DynamicMessage message, String name) {
    return (T) message.getField(message.getDescriptorForType().findFieldByName(name));
  }

  private static RuntimeException failure(int code) {
    return Status.fromCodeValue(code).withDescription("as asked").asRuntimeException();
  }

  private static String toJson(DynamicMessage message) {
    try {
      return printer.print(message);
    } catch (InvalidProtocolBufferException error) {
      throw new IllegalArgumentException(error);
    }
  }
}
