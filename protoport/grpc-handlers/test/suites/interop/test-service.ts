import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  Metadata,
  type MethodDefinition,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type StatusObject,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { projectFolder } from "../../../../testing/src/process/child-program.ts";

// The service that gRPC's interop tests call, with grpc-js handlers.

const folder = join(projectFolder, "protoport/grpc-handlers/test/proto");
const loaded = loadSync("grpc/testing/test.proto", { includeDirs: [folder] });
/** Messages from which the tests read some fields. */
export type Payload = { readonly body?: Uint8Array };
type EchoStatus = { readonly code?: number; readonly message?: string };
export type UnaryRequest = { responseSize?: number; payload?: Payload; responseStatus?: EchoStatus };
export interface StreamRequest extends Omit<UnaryRequest, "responseSize"> {
  readonly responseParameters?: readonly { readonly size?: number; readonly intervalUs?: number }[];
}
export type Response = { readonly payload?: Payload | null };
export type Sum = { readonly aggregatedPayloadSize?: number };

type Rpcs = ServiceDefinition & {
  readonly EmptyCall: MethodDefinition<object, object>;
  readonly UnaryCall: MethodDefinition<UnaryRequest, Response>;
  readonly StreamingOutputCall: MethodDefinition<StreamRequest, Response>;
  readonly StreamingInputCall: MethodDefinition<{ readonly payload?: Payload }, Sum>;
  readonly FullDuplexCall: MethodDefinition<StreamRequest, Response>;
  readonly UnimplementedCall: MethodDefinition<object, object>;
};

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of proto-loader have no messages of services.
export const testService = loaded["grpc.testing.TestService"] as unknown as Rpcs;

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above.
export const unimplementedService = loaded["grpc.testing.UnimplementedService"] as unknown as Pick<
  Rpcs,
  "UnimplementedCall"
>;

const initialKey = "x-grpc-test-echo-initial";
const trailingKey = "x-grpc-test-echo-trailing-bin";
const zeros = (size: number | undefined): Response => ({ payload: { body: Buffer.alloc(size ?? 0) } });

/** Sends the metadata that the client asks for, and returns the trailer's. */
function echoMetadata(call: { readonly metadata: Metadata; sendMetadata(metadata: Metadata): void }): Metadata {
  const header = new Metadata();
  for (const value of call.metadata.get(initialKey)) header.add(initialKey, value);
  call.sendMetadata(header);
  const trailer = new Metadata();
  for (const value of call.metadata.get(trailingKey)) trailer.add(trailingKey, value);
  return trailer;
}

function failureOf({ responseStatus }: StreamRequest, metadata: Metadata): StatusObject | undefined {
  const { code = 0, message = "" } = responseStatus ?? {};
  return code === 0 ? undefined : { code, details: message, metadata };
}

async function writeTo(
  call: { write(message: Response): boolean },
  { responseParameters = [] }: StreamRequest,
): Promise<void> {
  for (const { size, intervalUs = 0 } of responseParameters) {
    if (intervalUs > 0) await delay(intervalUs / 1000);
    call.write(zeros(size));
  }
}

export const testHandlers: UntypedServiceImplementation = {
  emptyCall(_call: ServerUnaryCall<object, object>, callback: sendUnaryData<object>) {
    callback(null, {});
  },

  unaryCall(call: ServerUnaryCall<UnaryRequest, Response>, callback: sendUnaryData<Response>) {
    const trailer = echoMetadata(call);
    const failure = failureOf(call.request, trailer);
    if (failure === undefined) callback(null, zeros(call.request.responseSize), trailer);
    else callback(failure);
  },

  streamingOutputCall(call: ServerWritableStream<StreamRequest, Response>) {
    const trailer = echoMetadata(call);
    void writeTo(call, call.request).then(() => call.end(trailer));
  },

  streamingInputCall(call: ServerReadableStream<{ readonly payload?: Payload }, Sum>, callback: sendUnaryData<Sum>) {
    let aggregatedPayloadSize = 0;
    call.on("data", ({ payload }: { readonly payload?: Payload }) => {
      aggregatedPayloadSize += payload?.body?.byteLength ?? 0;
    });
    call.on("end", () => callback(null, { aggregatedPayloadSize }));
  },

  fullDuplexCall(call: ServerDuplexStream<StreamRequest, Response>) {
    const trailer = echoMetadata(call);
    let written = Promise.resolve();
    call.on("data", (request: StreamRequest) => {
      const failure = failureOf(request, trailer);
      if (failure !== undefined) return void call.emit("error", failure);
      written = written.then(() => writeTo(call, request));
    });
    call.on("end", () => void written.then(() => call.end(trailer)));
  },
};
