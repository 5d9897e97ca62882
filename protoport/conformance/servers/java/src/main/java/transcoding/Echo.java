package transcoding;

import com.google.api.HttpBody;
import com.google.protobuf.ByteString;
import com.google.protobuf.DurationProto;
import com.google.protobuf.Empty;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.TimestampProto;
import com.google.protobuf.TypeRegistry;
import com.google.protobuf.WrappersProto;
import com.google.protobuf.util.JsonFormat;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCallHandler;
import io.grpc.ServerServiceDefinition;
import io.grpc.ServiceDescriptor;
import io.grpc.Status;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.stream.Stream;
import transcoding.v1.BodyFieldServiceGrpc;
import transcoding.v1.CountRequest;
import transcoding.v1.CustomKindServiceGrpc;
import transcoding.v1.EchoServiceGrpc;
import transcoding.v1.Everything;
import transcoding.v1.FailRequest;
import transcoding.v1.File;
import transcoding.v1.FileServiceGrpc;
import transcoding.v1.GetFileRequest;
import transcoding.v1.Item;
import transcoding.v1.Items;
import transcoding.v1.ResponseBodyServiceGrpc;
import transcoding.v1.StreamServiceGrpc;

/** The services of the echo contract, for any server of grpc-java. */
final class Echo {
  /** The types that a google.protobuf.Any may hold. */
  static final TypeRegistry TYPES = TypeRegistry.newBuilder()
      .add(Everything.getDescriptor().getFile().getMessageTypes())
      .add(TimestampProto.getDescriptor().getMessageTypes())
      .add(DurationProto.getDescriptor().getMessageTypes())
      .add(WrappersProto.getDescriptor().getMessageTypes())
      .build();

  private static final JsonFormat.Printer PRINTER = JsonFormat.printer().usingTypeRegistry(TYPES);

  static List<ServerServiceDefinition> services() {
    return Stream.of(
            EchoServiceGrpc.getServiceDescriptor(),
            BodyFieldServiceGrpc.getServiceDescriptor(),
            ResponseBodyServiceGrpc.getServiceDescriptor(),
            CustomKindServiceGrpc.getServiceDescriptor(),
            StreamServiceGrpc.getServiceDescriptor(),
            FileServiceGrpc.getServiceDescriptor())
        .map(Echo::serve)
        .toList();
  }

  private static ServerServiceDefinition serve(ServiceDescriptor service) {
    var definition = ServerServiceDefinition.builder(service);
    for (var method : service.getMethods()) add(definition, method);
    return definition.build();
  }

  @SuppressWarnings("unchecked")
  private static void add(ServerServiceDefinition.Builder definition, MethodDescriptor<?, ?> method) {
    var rpc = method.getBareMethodName();
    definition.addMethod((MethodDescriptor<Message, Message>) method, handlerOf(rpc, method.getType()));
  }

  private static ServerCallHandler<Message, Message> handlerOf(String rpc, MethodDescriptor.MethodType type) {
    return switch (type) {
      case UNARY -> ServerCalls.asyncUnaryCall((request, answers) -> answer(rpc, request, answers));
      case SERVER_STREAMING -> ServerCalls.asyncServerStreamingCall(Echo::send);
      case CLIENT_STREAMING -> ServerCalls.asyncClientStreamingCall(Collector::new);
      default -> ServerCalls.asyncBidiStreamingCall(answers -> answers);
    };
  }

  private static void answer(String rpc, Message request, StreamObserver<Message> answers) {
    if (request instanceof FailRequest asked) {
      answers.onError(failure(asked.getCode()));
      return;
    }
    answers.onNext(answerTo(rpc, request));
    answers.onCompleted();
  }

  private static Message answerTo(String rpc, Message request) {
    return switch (rpc) {
      case "Return", "GetField" -> request;
      case "Remove" -> Empty.getDefaultInstance();
      case "GetFile" -> bodyOf((GetFileRequest) request, ((GetFileRequest) request).getData());
      case "GetFileField" ->
          File.newBuilder().setFile(bodyOf((GetFileRequest) request, ((GetFileRequest) request).getData())).build();
      default -> transcoding.v1.Echo.newBuilder().setRpc(rpc).setMessage(jsonOf(request)).build();
    };
  }

  private static String jsonOf(Message message) {
    try {
      return PRINTER.print(message);
    } catch (InvalidProtocolBufferException e) {
      throw Status.INTERNAL.withCause(e).asRuntimeException();
    }
  }

  private static HttpBody bodyOf(GetFileRequest request, ByteString data) {
    return HttpBody.newBuilder().setContentType(request.getContentType()).setData(data).build();
  }

  private static RuntimeException failure(int code) {
    return Status.fromCodeValue(code).withDescription("as asked").asRuntimeException();
  }

  private static void send(Message request, StreamObserver<Message> answers) {
    if (request instanceof GetFileRequest file) {
      var data = file.getData();
      for (int at = 0; at < data.size(); at++) answers.onNext(bodyOf(file, data.substring(at, at + 1)));
      answers.onCompleted();
      return;
    }
    var count = (CountRequest) request;
    for (int index = 1; index <= count.getCount(); index++)
      answers.onNext(Item.newBuilder().setIndex(index).setText("item").build());
    if (count.getFailWith() == 0) answers.onCompleted();
    else answers.onError(failure(count.getFailWith()));
  }

  /** Answers with all items that it was sent. */
  private static final class Collector implements StreamObserver<Message> {
    private final Items.Builder items = Items.newBuilder();
    private final StreamObserver<Message> answers;

    Collector(StreamObserver<Message> answers) {
      this.answers = answers;
    }

    @Override
    public void onNext(Message item) {
      items.addItems((Item) item);
    }

    @Override
    public void onError(Throwable reason) {}

    @Override
    public void onCompleted() {
      answers.onNext(items.build());
      answers.onCompleted();
    }
  }
}
