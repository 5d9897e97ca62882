import { create, toBinary } from "@bufbuild/protobuf";
import { fileDesc, serviceDesc, type GenService } from "@bufbuild/protobuf/codegenv2";
import {
  BytesValueSchema,
  FileDescriptorProtoSchema,
  UInt32ValueSchema,
  file_google_protobuf_wrappers,
  type BytesValue,
} from "@bufbuild/protobuf/wkt";
import { base64Encode } from "@bufbuild/protobuf/wire";
import type { ConnectRouter } from "@connectrpc/connect";

// A service that does nothing with its messages, for what the messages themselves cost.

/** The bytes that a message of a stream holds. */
export const streamedBytes = 16;

const bytesValue = `.${BytesValueSchema.typeName}`;
const definition = create(FileDescriptorProtoSchema, {
  name: "bench/echo.proto",
  package: "bench",
  syntax: "proto3",
  dependency: [file_google_protobuf_wrappers.proto.name],
  service: [
    {
      name: "EchoService",
      method: [
        { name: "Echo", inputType: bytesValue, outputType: bytesValue },
        { name: "Count", inputType: `.${UInt32ValueSchema.typeName}`, outputType: bytesValue, serverStreaming: true },
      ],
    },
  ],
});

/** Sends back a message, or as many as it is told. */
export const EchoService: GenService<{
  echo: { methodKind: "unary"; input: typeof BytesValueSchema; output: typeof BytesValueSchema };
  count: { methodKind: "server_streaming"; input: typeof UInt32ValueSchema; output: typeof BytesValueSchema };
}> = serviceDesc(
  fileDesc(base64Encode(toBinary(FileDescriptorProtoSchema, definition), "std_raw"), [file_google_protobuf_wrappers]),
  0,
);

/** The path of the call that answers a message of bytes with itself. */
export const echoPath: string = `/${EchoService.typeName}/${EchoService.method.echo.name}`;

/** The path of the call that answers a number with a stream of so many messages. */
export const countPath: string = `/${EchoService.typeName}/${EchoService.method.count.name}`;

/** Registers the service. */
export function routes(router: ConnectRouter): void {
  router.service(EchoService, { echo: (request) => request, count: ({ value }) => count(value) });
}

async function* count(messages: number): AsyncIterable<BytesValue> {
  const message = create(BytesValueSchema, { value: Buffer.alloc(streamedBytes, "x") });
  for (let sent = 0; sent < messages; sent += 1) yield message;
}
