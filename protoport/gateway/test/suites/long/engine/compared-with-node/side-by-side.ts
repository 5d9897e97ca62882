// oxfmt-ignore
import { Code, ConnectError, createContextKey, type ConnectRouter, type HandlerContext, type Interceptor,
  type ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { once } from "node:events";
import { createServer as createHttp1Server, type Server as Http1Server } from "node:http";
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
// oxfmt-ignore
import { GreenhouseService, ReadingSchema, WaterBedRequestSchema
} from "../../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../../../../../src/index.ts";
import type { Address, HttpVersion } from "../../../../../../testing/src/http/exchange.ts";
import { isPeerAtLeast } from "../../../../../../testing/src/peer-version.ts";

/** One service on connect-node's own server and on the gateway. Dispose of them with `await using`. */
export interface SideBySide {
  readonly connectNode: Readonly<Record<HttpVersion, Address>>;
  readonly gateway: Address;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The message limit, so that a test case can exceed it. */
export const readMaxBytes = 10_000;

/** Starts both with the same routes, interceptors and options. */
export async function startSideBySide(): Promise<SideBySide> {
  const options = sideBySideOptions;
  const handler = connectNodeAdapter(options);
  const servers = { "1.1": createHttp1Server(handler), "2": createHttp2Server(handler) };
  // On a busy machine, a connection may be idle for a long time.
  servers["1.1"].keepAliveTimeout = 0;
  const gateway = createGateway({ ...options, onFault: () => {} });
  const [http1, http2, own] = await Promise.all([listen(servers["1.1"]), listen(servers["2"]), gateway.listen()]);
  return {
    connectNode: { "1.1": http1, "2": http2 },
    gateway: own,
    [Symbol.asyncDispose]: async () => {
      await Promise.all([gateway.close(), close(servers["1.1"]), close(servers["2"])]);
    },
  };
}

const callKey = createContextKey("nobody", { description: "set by the interceptor" });

const recordCall: Interceptor = (next) => async (request) => {
  request.contextValues.set(callKey, `${request.method.name}, streaming: ${String(request.stream)}`);
  request.header.set("x-set-by-interceptor", "yes");
  const response = await next(request);
  response.header.set("x-intercepted", request.method.name);
  response.trailer.set("x-intercepted-trailer", request.method.name);
  return response;
};

function routes(router: ConnectRouter): void {
  router.service(GreenhouseService, greenhouse);
}

/** The options that both servers have. */
export const sideBySideOptions: {
  readonly routes: (router: ConnectRouter) => void;
  readonly interceptors: Interceptor[];
  readonly readMaxBytes: number;
} = { routes, interceptors: [recordCall], readMaxBytes };

/** Performs the instruction in the request, and reports the call's properties in a response header. */
export const greenhouse: Partial<ServiceImpl<typeof GreenhouseService>> = {
  waterBed: async ({ bed, liters, note }, context) => {
    reportCall(context);
    await perform(note, context);
    return { bed, liters, note: note === "answer at length" ? "water ".repeat(1_000) : note };
  },
  getReading: async ({ sensor }, context) => {
    reportCall(context);
    await perform(sensor, context);
    return { sensor, degreesCelsius: 21.5 };
  },
};

// Reports everything that a handler learns about a call, except for what differs from call to call.
function reportCall(context: HandlerContext): void {
  const { requestHeader, responseHeader, service, method, url } = context;
  const properties = {
    rpc: `${service.typeName}/${method.name}`,
    protocol: context.protocolName,
    httpMethod: context.requestMethod,
    path: new URL(url).pathname,
    deadlineIsWhole: Number.isInteger(context.timeoutMs()),
    aborted: context.signal.aborted,
    value: context.values.get(callKey),
    byInterceptor: requestHeader.get("x-set-by-interceptor"),
    custom: requestHeader.get("x-custom"),
    binary: requestHeader.get("x-custom-bin"),
    contentType: requestHeader.get("content-type"),
    names: [...requestHeader.keys()].filter((name) => !addedByHttp.has(name) && !name.startsWith(":")).toSorted(),
  };
  responseHeader.set("x-seen", JSON.stringify(properties));
}

// Fields that the HTTP version or its client library adds.
const addedByHttp: ReadonlySet<string> = new Set(["host", "connection", "content-length", "transfer-encoding"]);

/** Performs an instruction. Fails, waits until the call is aborted, or sets header and trailer. */
export async function perform(text: string, context: HandlerContext): Promise<void> {
  const [instruction, ...words] = text.split(": ");
  if (instruction === "fail") throw failure(Number(words[0]), words[1] ?? "");
  if (instruction === "break") throw new Error("the pump is on fire at 10.0.0.7");
  if (instruction === "break with words") throw "words";
  if (instruction === "wait") await untilAborted(context.signal);
  if (instruction === "tell more") setMetadata(context);
}

function failure(code: Code, message: string): ConnectError {
  const metadata = new Headers();
  // Before 2.0.2, connect-node forgets metadata over gRPC.
  if (isPeerAtLeast("@connectrpc/connect", "2.0.2")) {
    for (const value of ["one", "two"]) metadata.append("x-failure", value);
    metadata.append("x-failure-bin", "AAECAw==");
  }
  const details = [
    { desc: ReadingSchema, value: { sensor: "roof", degreesCelsius: 1.5 } },
    { desc: WaterBedRequestSchema, value: { bed: 9_007_199_254_740_993n, liters: 3 } },
  ];
  return new ConnectError(message, code, metadata, details, new Error("the pump is on fire"));
}

async function untilAborted(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  throw signal.reason;
}

function setMetadata({ responseHeader, responseTrailer }: HandlerContext): void {
  for (const headers of [responseHeader, responseTrailer]) {
    const name = headers === responseHeader ? "x-more" : "x-more-trailer";
    headers.append(name, "one");
    headers.append(name, "two");
    headers.set(`${name}-bin`, "AAECAw==");
  }
}

async function listen(server: Http1Server | Http2Server): Promise<Address> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server does not listen on TCP");
  return address;
}

async function close(server: Http1Server | Http2Server): Promise<void> {
  await new Promise((resolve) => server.close(resolve));
}
