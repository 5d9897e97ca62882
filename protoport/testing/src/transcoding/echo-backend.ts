import { createRegistry, toJsonString, type DescMessage, type Message } from "@bufbuild/protobuf";
import { DurationSchema, Int64ValueSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import type { GatewayOptions } from "../../../gateway/src/index.ts";
// oxfmt-ignore
import { BodyFieldService, CustomKindService, EchoService, file_transcoding_v1_echo, FileService, type Item,
  ResponseBodyService, StreamService } from "../gen/transcoding/v1/echo_pb.ts";

// The types that a google.protobuf.Any may hold.
const echoRegistry: ReturnType<typeof createRegistry> = createRegistry(
  file_transcoding_v1_echo,
  DurationSchema,
  TimestampSchema,
  Int64ValueSchema,
);

function echoRoutes(router: ConnectRouter): void {
  // oxfmt-ignore
  router.service(EchoService, {
    getScalar: echo, query: echo, getNested: echo, getSegments: echo, getWild: echo, matchRest: echo, matchOne: echo,
    matchLiteral: echo, getAct: echo, act: echo, create: echo, replace: echo, update: echo, delete: echo, unbound: echo,
    return: (message) => message, remove: () => ({}),
    fail: ({ code }) => {
      throw requestedError(code);
    },
  });
  router.service(BodyFieldService, { setField: echo });
  router.service(ResponseBodyService, { getField: (message) => message });
  router.service(CustomKindService, { custom: echo, anyKind: echo });
  router.service(StreamService, {
    async *count({ count, failWith }) {
      for (let index = 1; index <= count; index++) yield { index, text: "item" };
      if (failWith !== 0) throw requestedError(failWith);
    },
    async collect(stream) {
      const items: Item[] = [];
      for await (const item of stream) items.push(item);
      return { items };
    },
    relay: (stream) => stream,
  });
  router.service(FileService, {
    upload: echo,
    putFile: echo,
    getFile: ({ contentType, data }) => ({ contentType, data }),
    getFileField: ({ contentType, data }) => ({ file: { contentType, data } }),
    async *getPieces({ contentType, data }) {
      for (const byte of data) yield { contentType, data: Uint8Array.of(byte) };
    },
  });
}

/** Options for a gateway that serves the echo contract. */
export const echoOptions: GatewayOptions = { routes: echoRoutes, jsonOptions: { registry: echoRegistry } };

function echo(message: Message, context: HandlerContext): { readonly rpc: string; readonly message: string } {
  const schema: DescMessage = context.method.input;
  return { rpc: context.method.name, message: toJsonString(schema, message, { registry: echoRegistry }) };
}

// Connect's `Code` has the same numbers as google.rpc.Code.
const codeByNumber = new Map<number, Code>(
  Object.values(Code).flatMap((code) => (typeof code === "number" ? [[code, code]] : [])),
);

const requestedError = (code: number): ConnectError =>
  new ConnectError("as asked", codeByNumber.get(code) ?? Code.Unknown);
