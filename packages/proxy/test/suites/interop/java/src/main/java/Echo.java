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

/** Serves every RPC of a FileDescriptorSet by grpc-java, and prints its port: {@code java Echo definitions.binpb}. */
public final class Echo {
  private static JsonFormat.Printer printer = JsonFormat.printer();

  public static void main(String[] args) throws Exception {
    FileDescriptorSet set = FileDescriptorSet.parseFrom(Files.readAllBytes(Path.of(args[0])));
    Map<String, FileDescriptor> files = new HashMap<>();
    JsonFormat.TypeRegistry.Builder types = JsonFormat.TypeRegistry.newBuilder();
    NettyServerBuilder builder = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0));
    // Each file stands behind those that it imports.
    for (FileDescriptorProto proto : set.getFileList()) {
      FileDescriptor[] imports = proto.getDependencyList().stream().map(files::get).toArray(FileDescriptor[]::new);
      FileDescriptor file = FileDescriptor.buildFrom(proto, imports);
      files.put(proto.getName(), file);
      types.add(file.getMessageTypes());
      file.getServices().forEach(service -> builder.addService(define(service)));
    }
    printer = JsonFormat.printer().usingTypeRegistry(types.build());
    Server server = builder.build().start();
    System.out.println(server.getPort());
    server.awaitTermination();
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
      case BIDI_STREAMING -> ServerCalls.asyncBidiStreamingCall(answers -> relay(answers));
      case CLIENT_STREAMING -> ServerCalls.asyncClientStreamingCall(answers -> collect(method, answers));
      case SERVER_STREAMING -> ServerCalls.asyncServerStreamingCall((request, answers) -> send(method, request, answers));
      default -> ServerCalls.asyncUnaryCall((request, answers) -> answer(method, request, answers));
    };
  }

  /** Answers one message, as packages/conformance/README.md and the kitchen sink say. */
  private static void answer(MethodDescriptor method, DynamicMessage request, StreamObserver<DynamicMessage> answers) {
    Descriptor output = method.getOutputType();
    DynamicMessage.Builder answer = DynamicMessage.newBuilder(output);
    switch (method.getName()) {
      case "Fail" -> {
        answers.onError(failure(get(request, has(request, "code") ? "code" : "f_int32")));
        return;
      }
      case "GetFile" -> answer = bodyOf(output, request, get(request, "data"));
      case "GetFileField" -> {
        Descriptor body = output.findFieldByName("file").getMessageType();
        answer.setField(output.findFieldByName("file"), bodyOf(body, request, get(request, "data")).build());
      }
      default -> {
        if (output == method.getInputType()) {
          answer = request.toBuilder();
        } else if (output.getName().equals("Echo")) {
          answer.setField(output.findFieldByName("rpc"), method.getName());
          answer.setField(output.findFieldByNumber(2), has(answer.build(), "sink") ? request : toJson(request));
        }
      }
    }
    answers.onNext(answer.build());
    answers.onCompleted();
  }

  private static void send(MethodDescriptor method, DynamicMessage request, StreamObserver<DynamicMessage> answers) {
    Descriptor output = method.getOutputType();
    if (method.getName().equals("GetPieces")) {
      ByteString data = get(request, "data");
      for (int at = 0; at < data.size(); at++) {
        answers.onNext(bodyOf(output, request, data.substring(at, at + 1)).build());
      }
      answers.onCompleted();
      return;
    }
    int count = get(request, "count");
    for (int index = 1; index <= count; index++) {
      DynamicMessage.Builder item = DynamicMessage.newBuilder(output);
      item.setField(output.findFieldByName("index"), index);
      answers.onNext(item.setField(output.findFieldByName("text"), "item").build());
    }
    int code = get(request, "fail_with");
    if (code == 0) {
      answers.onCompleted();
    } else {
      answers.onError(failure(code));
    }
  }

  private static StreamObserver<DynamicMessage> relay(StreamObserver<DynamicMessage> answers) {
    return new Requests(answers) {
      @Override
      public void onNext(DynamicMessage request) {
        answers.onNext(request);
      }
    };
  }

  private static StreamObserver<DynamicMessage> collect(MethodDescriptor method, StreamObserver<DynamicMessage> answers) {
    DynamicMessage.Builder all = DynamicMessage.newBuilder(method.getOutputType());
    return new Requests(answers) {
      @Override
      public void onNext(DynamicMessage request) {
        all.addRepeatedField(method.getOutputType().findFieldByNumber(1), request);
      }

      @Override
      public void onCompleted() {
        answers.onNext(all.build());
        answers.onCompleted();
      }
    };
  }

  /** What a client sends, whose end ends the answer. */
  private abstract static class Requests implements StreamObserver<DynamicMessage> {
    private final StreamObserver<DynamicMessage> answers;

    Requests(StreamObserver<DynamicMessage> answers) {
      this.answers = answers;
    }

    @Override
    public void onError(Throwable error) {}

    @Override
    public void onCompleted() {
      answers.onCompleted();
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
