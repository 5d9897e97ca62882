import { type DescMethod, type DescService, fromBinary, toJsonString } from "@bufbuild/protobuf";
import type { GatewayOptions } from "../../../../../gateway/src/index.ts";
import * as grpc from "@grpc/grpc-js";
import { echoOptions } from "../../../../../testing/src/transcoding/echo-backend.ts";
import { kitchenSinkOptions } from "../../../../../testing/src/gateway/kitchen-sink.ts";
import * as echoServices from "../../../../../testing/src/gen/transcoding/v1/echo_pb.ts";
import { KitchenSink } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { LegacySink } from "../../../../../testing/src/gen/kitchensink/v1/legacy_pb.ts";
import { Shelves } from "../../../../../testing/src/gen/kitchensink/v1/shelves_pb.ts";
import { addGrpcJsService } from "../../../../src/grpc-js.ts";
import type { Message } from "../../../grpc-js-client.ts";
import type { Library } from "./libraries.ts";

// The backends for the transcoding suite and the corpus, as grpc-js handlers.

type Call = grpc.ServerDuplexStream<Message, Message> & { readonly request: Message };
type Handler = (call: Call, callback: grpc.sendUnaryData<Message>) => void;
const returnRequest: Handler = ({ request }, callback) => callback(null, request);
const fail = (code: unknown): { readonly code: grpc.status; readonly details: string } => {
  const number = Number(code ?? 0);
  return { code: number > 0 && number in grpc.status ? number : grpc.status.UNKNOWN, details: "as asked" };
};
const sendBack: Handler = (call) => {
  call.on("data", (message: Message) => call.write(message));
  call.on("end", () => call.end());
};

const handlers: Readonly<Record<string, Handler>> = {
  Return: returnRequest,
  GetField: returnRequest,
  ResponseNested: returnRequest,
  GetShelf: returnRequest,
  ChooseShelf: returnRequest,
  UpdateShelf: returnRequest,
  Keep: returnRequest,
  KeepAll: sendBack,
  Relay: sendBack,
  Remove: (_call, callback) => callback(null, {}),
  Fail: ({ request }, callback) => callback(fail(request["code"] ?? request["fInt32"])),
  Count(call) {
    const { count, failWith = 0 } = call.request;
    for (let index = 1; index <= Number(count ?? 0); index += 1) call.write({ index, text: "item" });
    if (failWith === 0) call.end();
    else call.emit("error", fail(failWith));
  },
  Collect(call, callback) {
    const items: Message[] = [];
    call.on("data", (item: Message) => items.push(item));
    call.on("end", () => callback(null, { items }));
  },
  GetFile: ({ request: { contentType, data } }, callback) => callback(null, httpBody(contentType, data)),
  GetFileField: ({ request: { contentType, data } }, callback) => callback(null, { file: httpBody(contentType, data) }),
  GetPieces(call) {
    const { contentType, data } = call.request;
    for (const byte of data instanceof Uint8Array ? data : []) call.write(httpBody(contentType, Buffer.of(byte)));
    call.end();
  },
};

function httpBody(contentType: unknown, data: unknown): Message {
  return { contentType: contentType ?? "", data: data ?? Buffer.of(), extensions: [] };
}

type Echo = (desc: DescMethod, definition: grpc.MethodDefinition<Message, Message>) => Handler;

const echoJson: Echo =
  ({ name: rpc, input }, { requestSerialize }) =>
  ({ request }, callback) => {
    const message = fromBinary(input, requestSerialize(request));
    callback(null, { rpc, message: toJsonString(input, message, echoOptions.jsonOptions) });
  };

const echoSink: Echo =
  ({ name: rpc }) =>
  ({ request }, callback) =>
    callback(null, { rpc, sink: request });

async function optionsOf(
  library: Library,
  services: readonly DescService[],
  echo: Echo,
  { jsonOptions = {} }: GatewayOptions,
): Promise<GatewayOptions> {
  const described = await Promise.all(
    services.map(async (service) => ({ service, ...(await library.describe(service)) })),
  );
  return {
    jsonOptions,
    routes: (router) => {
      for (const { service, definition, options } of described) {
        const implementation: grpc.UntypedServiceImplementation = {};
        for (const [key, method] of Object.entries(definition)) {
          const desc = service.methods.find(({ name }) => method.path.endsWith(`/${name}`));
          if (desc === undefined) throw new TypeError(`unknown method ${method.path}`);
          // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the types of grpc-js have no handler of any kind.
          implementation[key] = (handlers[desc.name] ?? echo(desc, method)) as grpc.handleUnaryCall<Message, Message>;
        }
        addGrpcJsService(router, definition, implementation, options);
      }
    },
  };
}

/** Returns options for a gateway that serves the echo contract, which the transcoding suite calls. */
export async function createEchoOptions(library: Library): Promise<GatewayOptions> {
  const { BodyFieldService, CustomKindService, EchoService, FileService, ResponseBodyService, StreamService } =
    echoServices;
  const services = [EchoService, BodyFieldService, ResponseBodyService, CustomKindService, StreamService, FileService];
  return await optionsOf(library, services, echoJson, echoOptions);
}

/** Returns options for a gateway that serves the kitchen sink, which the corpus calls. */
export const createSinkOptions = async (library: Library): Promise<GatewayOptions> =>
  await optionsOf(library, [KitchenSink, Shelves, LegacySink], echoSink, kitchenSinkOptions);
