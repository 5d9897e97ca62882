package transcoding;

import static com.linecorp.armeria.server.grpc.HttpJsonTranscodingQueryParamMatchRule.JSON_NAME;
import static com.linecorp.armeria.server.grpc.HttpJsonTranscodingQueryParamMatchRule.LOWER_CAMEL_CASE;
import static com.linecorp.armeria.server.grpc.HttpJsonTranscodingQueryParamMatchRule.ORIGINAL_FIELD;

import com.google.protobuf.util.JsonFormat;
import com.linecorp.armeria.common.grpc.GrpcJsonMarshaller;
import com.linecorp.armeria.server.Server;
import com.linecorp.armeria.server.grpc.GrpcService;
import com.linecorp.armeria.server.grpc.HttpJsonTranscodingOptions;
import java.util.function.Function;

/** The echo contract of Armeria, over gRPC and as REST on one port: {@code java transcoding.Main PORT}. */
final class Main {
  public static void main(String[] args) {
    // The options that fail the fewest cases.
    var options = HttpJsonTranscodingOptions.builder()
        .queryParamMatchRules(ORIGINAL_FIELD, LOWER_CAMEL_CASE, JSON_NAME)
        .build();
    Function<JsonFormat.Parser, JsonFormat.Parser> reader = parser -> parser.usingTypeRegistry(Echo.TYPES);
    Function<JsonFormat.Printer, JsonFormat.Printer> writer = printer -> printer.usingTypeRegistry(Echo.TYPES);
    var json = GrpcJsonMarshaller.builderForGson().jsonParserCustomizer(reader).jsonPrinterCustomizer(writer).build();
    var service = GrpcService.builder()
        .addServiceDefinitions(Echo.services())
        .enableHttpJsonTranscoding(options)
        .jsonMarshallerFactory(descriptor -> json)
        .build();
    Server.builder().http(Integer.parseInt(args[0])).service(service).build().start().join();
  }
}
