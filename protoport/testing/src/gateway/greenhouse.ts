import { subscribe } from "node:diagnostics_channel";
import { EventEmitter, once } from "node:events";
import { Socket } from "node:net";
import { type Client, createClient, type Interceptor, type ServiceImpl, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { CompletedRequest, Gateway, GatewayOptions } from "../../../gateway/src/index.ts";
import { within } from "../deadline.ts";
import type { Address } from "../http/exchange.ts";
import { withServer } from "../http/listen-on-loopback.ts";
import { listenForTests, type TestListenOptions } from "./listen-for-tests.ts";
import { createTestGateway } from "./test-gateway.ts";

/** Procedures that tests call without a client. */
export const waterBedProcedure = "/greenhouse.v1.GreenhouseService/WaterBed";
export const getReadingProcedure = "/greenhouse.v1.GreenhouseService/GetReading";

/** A gateway with a greenhouse, on a free loopback port. Dispose of the gateway with `await using`. */
export interface TestGreenhouse {
  readonly gateway: Gateway;
  readonly address: Address;
  openRequests(): number;
  /** The requests passed to `onResponse`, in order. */
  readonly completedRequests: readonly CompletedRequest[];
  /** Waits until `count` requests have completed, and returns the last request. */
  completed(count: number): Promise<CompletedRequest>;
  [Symbol.asyncDispose](): Promise<void>;
}

let accepted: Socket | undefined;
subscribe("net.server.socket", (message) => {
  if (typeof message === "object" && message !== null && "socket" in message && message.socket instanceof Socket)
    accepted = message.socket;
});

/** Returns the last connection's server socket. Call `acceptedSocket` in `admit`. */
export function acceptedSocket(): Socket {
  if (accepted === undefined) throw new TypeError("no connection was accepted");
  return accepted;
}

/** Waits for an event on the last connection's server socket. Call `nextEvent` in `admit`. */
export function nextEvent(event: "close" | "end" | "pause"): Promise<unknown> {
  // `events.once` is not used, because it rejects when the client resets the connection first.
  return new Promise((resolve) => acceptedSocket().once(event, resolve));
}

/** Starts a gateway. RPCs without an implementation are unimplemented. @param create - creates the gateway */
export async function startGreenhouse(
  implementation: Partial<ServiceImpl<typeof GreenhouseService>>,
  options: Partial<GatewayOptions> = {},
  listenOptions: TestListenOptions = {},
  create: (options: GatewayOptions) => Gateway = createTestGateway,
): Promise<TestGreenhouse> {
  const completedRequests: CompletedRequest[] = [];
  const events = new EventEmitter();
  const gateway = create({
    routes: (router) => router.service(GreenhouseService, implementation),
    onResponse: (request) => {
      completedRequests.push(request);
      events.emit("completed");
    },
    // Handlers in these tests fail on purpose. printed-faults.test.ts covers the printed faults.
    onFault: () => {},
    ...options,
  });
  const listening = await listenForTests(gateway, listenOptions);
  const enough = async (count: number): Promise<CompletedRequest> => {
    for (;;) {
      const request = completedRequests[count - 1];
      if (request !== undefined) return request;
      await once(events, "completed");
    }
  };
  // oxfmt-ignore
  return {
    gateway, address: listening.address, openRequests: () => listening.openRequests(), completedRequests,
    completed: (count) => within(enough(count), `${String(count)} completed requests`),
    [Symbol.asyncDispose]: () => listening[Symbol.asyncDispose](),
  };
}

/** Starts a gateway and connects to it with `open`. Dispose of both with `await using`. */
export async function openGreenhouse<Connection extends Disposable>(
  open: (address: Address) => Promise<Connection>,
  ...started: Parameters<typeof startGreenhouse>
): Promise<Connection & AsyncDisposable & { readonly greenhouse: TestGreenhouse }> {
  const greenhouse = await startGreenhouse(...started);
  return await withServer({ greenhouse }, () => open(greenhouse.address));
}

/** A protocol that Connect's client supports, and the server's listen options for the protocol. */
export interface Calling {
  readonly name: string;
  readonly listen: TestListenOptions;
  readonly transport: (address: Address) => Transport;
}

const baseUrl = (address: Address): string => `http://${address.address}:${String(address.port)}`;

/** Covers every protocol, HTTP version and HTTP/2 server with Connect's client. */
// oxfmt-ignore
export const callings: readonly Calling[] = [
  { name: "Connect over HTTP/1.1", listen: {},
    transport: (address) => createConnectTransport({ baseUrl: baseUrl(address), httpVersion: "1.1" }) },
  { name: "gRPC-Web over HTTP/2", listen: {},
    transport: (address) => createGrpcWebTransport({ baseUrl: baseUrl(address), httpVersion: "2" }) },
  { name: "gRPC to a mounted handler", listen: { http2: "mounted" },
    transport: (address) => createGrpcTransport({ baseUrl: baseUrl(address) }) },
  { name: "gRPC", listen: {}, transport: (address) => createGrpcTransport({ baseUrl: baseUrl(address) }) },
];

export const greenhouseClient = (calling: Calling, address: Address): Client<typeof GreenhouseService> =>
  createClient(GreenhouseService, calling.transport(address));

/** Returns a function that starts a greenhouse with the server of a calling, and with a client. */
export function starterFor(calling: Calling) {
  return async (
    implementation: Parameters<typeof startGreenhouse>[0],
    options?: Partial<GatewayOptions>,
  ): Promise<TestGreenhouse & { readonly client: Client<typeof GreenhouseService> }> => {
    const greenhouse = await startGreenhouse(implementation, options, calling.listen);
    return Object.assign(greenhouse, { client: greenhouseClient(calling, greenhouse.address) });
  };
}

/** Starts a greenhouse whose `ran` lists the calls of an interceptor and of the handler of WaterBed. */
export async function startWatched(
  options: Partial<GatewayOptions>,
  listenOptions?: Parameters<typeof startGreenhouse>[2],
): Promise<TestGreenhouse & { readonly ran: readonly string[] }> {
  const ran: string[] = [];
  const noting: Interceptor = (next) => (request) => {
    ran.push("interceptor");
    return next(request);
  };
  const waterBed = (): Record<string, never> => {
    ran.push("handler");
    return {};
  };
  const interceptors = [noting, ...(options.interceptors ?? [])];
  return Object.assign(await startGreenhouse({ waterBed }, { ...options, interceptors }, listenOptions), { ran });
}
