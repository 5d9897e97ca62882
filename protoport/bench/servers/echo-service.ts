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
import {
  file_google_api_httpbody,
  type HttpBody,
  HttpBodySchema,
} from "../../gateway/src/protobuf/gen/google/api/httpbody_pb.ts";
import type { ExternalHttpRule } from "../../gateway/src/index.ts";

// A service that does nothing with its messages, to measure the cost of the messages themselves.

/** The value's size in each stream message, in bytes. */
export const streamedBytes = 16;

const number = `.${UInt32ValueSchema.typeName}`;
const bytesValue = `.${BytesValueSchema.typeName}`;
const definition = create(FileDescriptorProtoSchema, {
  name: "bench/echo.proto",
  package: "bench",
  syntax: "proto3",
  dependency: [file_google_protobuf_wrappers.proto.name, file_google_api_httpbody.proto.name],
  service: [
    {
      name: "EchoService",
      method: [
        { name: "Echo", inputType: bytesValue, outputType: bytesValue },
        { name: "Count", inputType: number, outputType: bytesValue, serverStreaming: true },
        { name: "Collect", inputType: bytesValue, outputType: number, clientStreaming: true },
        { name: "Upload", inputType: `.${HttpBodySchema.typeName}`, outputType: number, clientStreaming: true },
      ],
    },
  ],
});

/**
 * The echo service, whose RPCs return the request message, a stream with the requested number of messages, or the
 * number of received messages or bytes.
 */
export const EchoService: GenService<{
  echo: { methodKind: "unary"; input: typeof BytesValueSchema; output: typeof BytesValueSchema };
  count: { methodKind: "server_streaming"; input: typeof UInt32ValueSchema; output: typeof BytesValueSchema };
  collect: { methodKind: "client_streaming"; input: typeof BytesValueSchema; output: typeof UInt32ValueSchema };
  upload: { methodKind: "client_streaming"; input: typeof HttpBodySchema; output: typeof UInt32ValueSchema };
}> = serviceDesc(
  fileDesc(base64Encode(toBinary(FileDescriptorProtoSchema, definition), "std_raw"), [
    file_google_protobuf_wrappers,
    file_google_api_httpbody,
  ]),
  0,
);

/** The path for the call that returns its request message. */
export const echoPath: string = `/${EchoService.typeName}/${EchoService.method.echo.name}`;

/** The path for the call that returns a stream with the requested number of messages. */
export const countPath: string = `/${EchoService.typeName}/${EchoService.method.count.name}`;

/** The path for the call that returns the number of messages in its request stream. */
export const collectPath: string = `/${EchoService.typeName}/${EchoService.method.collect.name}`;

/** The REST path that returns the number of bytes in the request body. */
export const uploadPath = "/upload";

/** The rules that bind the streams to REST. */
export const restRules: readonly ExternalHttpRule[] = [
  { selector: `${EchoService.typeName}.Count`, pattern: { case: "get", value: "/count/{value}" } },
  { selector: `${EchoService.typeName}.Collect`, pattern: { case: "post", value: "/collect" }, body: "*" },
  { selector: `${EchoService.typeName}.Upload`, pattern: { case: "post", value: uploadPath }, body: "*" },
];

/** Registers the echo service. */
export function routes(router: ConnectRouter): void {
  router.service(EchoService, { echo: (request) => request, count: ({ value }) => count(value), collect, upload });
}

async function collect(messages: AsyncIterable<BytesValue>): Promise<{ value: number }> {
  let value = 0;
  for await (const _ of messages) value += 1;
  return { value };
}

async function upload(pieces: AsyncIterable<HttpBody>): Promise<{ value: number }> {
  let value = 0;
  for await (const { data } of pieces) value += data.byteLength;
  return { value };
}

async function* count(messages: number): AsyncIterable<BytesValue> {
  const message = create(BytesValueSchema, { value: Buffer.alloc(streamedBytes, "x") });
  for (let sent = 0; sent < messages; sent += 1) yield message;
}
