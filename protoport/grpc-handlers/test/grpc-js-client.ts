import { Client, credentials, Metadata, Server, ServerCredentials } from "@grpc/grpc-js";
import type {
  CallOptions,
  MetadataValue,
  MethodDefinition,
  ServiceError,
  StatusObject,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { loadGarden, startGarden } from "./garden.ts";

/** A garden message, as proto-loader returns it. */
export type Message = Readonly<Record<string, unknown>>;

export interface CallOutcome {
  readonly code: number;
  readonly details: string;
  readonly messages: readonly Message[];
  /** The header and the trailer, without HTTP's fields. */
  readonly header: Readonly<Record<string, readonly MetadataValue[]>>;
  readonly trailer: Readonly<Record<string, readonly MetadataValue[]>>;
}

export interface GardenServer extends AsyncDisposable {
  readonly port: number;
}

type StartGarden = (implementation: UntypedServiceImplementation) => Promise<GardenServer>;

/** The servers that run the same handlers: grpc-js's own, and a gateway. */
export const servers: Readonly<Record<"grpc-js" | "gateway", StartGarden>> = {
  "grpc-js": startGrpcJs,
  gateway: async (implementation) => {
    const garden = await startGarden(implementation);
    return { port: garden.address.port, [Symbol.asyncDispose]: () => garden[Symbol.asyncDispose]() };
  },
};

async function startGrpcJs(implementation: UntypedServiceImplementation): Promise<GardenServer> {
  const server = new Server();
  server.addService(loadGarden(), implementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { port, [Symbol.asyncDispose]: async () => server.forceShutdown() };
}

export type RpcDefinition = MethodDefinition<Message, Message>;

function missing(method: string): never {
  throw new TypeError(`the definition has no ${method}`);
}

export interface ClientCall extends RpcCall {
  readonly method: "GetTree" | "AddTrees" | "ListTrees" | "TradeTrees";
}

export interface RpcCall {
  readonly requests?: readonly Message[];
  readonly metadata?: readonly (readonly [string, MetadataValue])[];
  readonly options?: CallOptions;
  /** Whether the client keeps its side open until the response has ended. */
  readonly keepsOpen?: boolean;
  readonly onStart?: (cancel: () => void) => void;
  /** Whether the client ends its side once it has the header. */
  readonly endsAtHeader?: boolean;
  readonly onMessage?: (message: Message) => void;
}

export async function callGarden(port: number, { method, ...call }: ClientCall): Promise<CallOutcome> {
  const definition: Readonly<Record<string, RpcDefinition>> = loadGarden();
  return await callRpc(port, definition[method] ?? missing(method), call);
}

export async function callRpc(
  port: number,
  { path, requestSerialize, responseDeserialize, requestStream }: RpcDefinition,
  {
    requests = [{}],
    metadata = [],
    options = {},
    keepsOpen = false,
    endsAtHeader = false,
    onStart,
    onMessage,
  }: RpcCall,
): Promise<CallOutcome> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const sent = new Metadata();
  for (const [key, value] of metadata) sent.add(key, value);
  try {
    // A bidirectional call shows messages for every kind.
    const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, sent, options);
    const messages: Message[] = [];
    let header: Metadata | undefined;
    call.on("metadata", (received: Metadata) => {
      header = received;
      if (endsAtHeader) call.end();
    });
    call.on("data", (message: Message) => {
      messages.push(message);
      onMessage?.(message);
    });
    call.on("error", (_error: ServiceError) => {});
    for (const request of requests) call.write(request);
    if (!requestStream || !(keepsOpen || endsAtHeader)) call.end();
    onStart?.(() => call.cancel());
    // Not `events.once`, which rejects for a call that fails.
    const { code, details, metadata: trailer } = await new Promise<StatusObject>((end) => call.on("status", end));
    return { code, details, messages, header: fieldsOf(header), trailer: fieldsOf(trailer) };
  } finally {
    client.close();
  }
}

/** The fields that HTTP and the implementations add. */
const added = new Set(["content-type", "date", "grpc-accept-encoding", "accept-encoding", "grpc-encoding", "vary"]);

function fieldsOf(metadata: Metadata | undefined): CallOutcome["header"] {
  const names = Object.keys(metadata?.getMap() ?? {}).filter((name) => !added.has(name));
  return Object.fromEntries(names.map((name) => [name, metadata?.get(name) ?? []]));
}
