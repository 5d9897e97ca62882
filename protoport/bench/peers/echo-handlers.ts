import { create, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { BytesValueSchema, UInt32ValueSchema } from "@bufbuild/protobuf/wkt";
import type { handleServerStreamingCall, MethodDefinition, ServiceDefinition } from "@grpc/grpc-js";
import { countPath, streamedBytes } from "../servers/echo-service.ts";

// The echo service's streams for grpc-js. The messages are protobuf-es messages, as in the other servers.

type Count = MessageShape<typeof UInt32ValueSchema>;
type Bytes = MessageShape<typeof BytesValueSchema>;

const countMethod: MethodDefinition<Count, Bytes> = {
  path: countPath,
  requestStream: false,
  responseStream: true,
  requestSerialize: (count) => Buffer.from(toBinary(UInt32ValueSchema, count)),
  requestDeserialize: (bytes) => fromBinary(UInt32ValueSchema, bytes),
  responseSerialize: (message) => Buffer.from(toBinary(BytesValueSchema, message)),
  responseDeserialize: (bytes) => fromBinary(BytesValueSchema, bytes),
};

/** The service definition. */
export const echoDefinition: ServiceDefinition = { count: countMethod };

const count: handleServerStreamingCall<Count, Bytes> = (call) => {
  const message = create(BytesValueSchema, { value: Buffer.alloc(streamedBytes, "x") });
  for (let sent = 0; sent < call.request.value; sent += 1) call.write(message);
  call.end();
};

/** The service handlers. */
export const echoHandlers = { count };
