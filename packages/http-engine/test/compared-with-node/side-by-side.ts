import {
  Code,
  ConnectError,
  createContextKey,
  type ConnectRouter,
  type HandlerContext,
  type Interceptor,
  type ServiceImpl,
} from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { once } from "node:events";
import { createServer as createHttp1Server, type Server as Http1Server } from "node:http";
import { createServer as createHttp2Server, type Http2Server } from "node:http2";
import {
  GreenhouseService,
  ReadingSchema,
  WaterBedRequestSchema,
} from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway } from "../../../gateway/src/index.ts";
import type { Address, HttpVersion } from "../../../testing/src/carriers/exchange.ts";
import { isSince } from "../../../testing/src/peer-version.ts";

/** The same service on connect-node's own server and on the gateway. Dispose of them with `await using`. */
export interface SideBySide {
  /** Where connect-node listens, by HTTP version. */
  readonly connectNode: Readonly<Record<HttpVersion, Address>>;
  /** Where the gateway listens, for both. */
  readonly gateway: Address;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The most a message may have here, so that a row can go over it. */
export const readMaxBytes = 10_000;

/** Starts both with the same routes, interceptors and options. */
export async function startSideBySide(): Promise<SideBySide> {
  const options = sideBySideOptions;
  const handler = connectNodeAdapter(options);
  const servers = { "1.1": createHttp1Server(handler), "2": createHttp2Server(handler) };
  // A connection may be quiet for long where the machine is busy.
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

const callKey = createContextKey("nobody", { description: "what the interceptor said" });

const tellOfTheCall: Interceptor = (next) => async (request) => {
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

/** The options of both servers. */
export const sideBySideOptions: {
  readonly routes: (router: ConnectRouter) => void;
  readonly interceptors: Interceptor[];
  readonly readMaxBytes: number;
} = { routes, interceptors: [tellOfTheCall], readMaxBytes };

/** Does what the text of the request says, and reports in the header what it saw of the call. */
export const greenhouse: Partial<ServiceImpl<typeof GreenhouseService>> = {
  waterBed: async ({ bed, liters, note }, context) => {
    tell(context);
    await obey(note, context);
    return { bed, liters, note: note === "answer at length" ? "water ".repeat(1_000) : note };
  },
  getReading: async ({ sensor }, context) => {
    tell(context);
    await obey(sensor, context);
    return { sensor, degreesCelsius: 21.5 };
  },
};

// Everything that a handler can see of a call, but for what differs from call to call.
function tell(context: HandlerContext): void {
  const { requestHeader, responseHeader, service, method, url } = context;
  const seen = {
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
    names: [...requestHeader.keys()].filter((name) => !carriedByHttp.has(name) && !name.startsWith(":")).toSorted(),
  };
  responseHeader.set("x-seen", JSON.stringify(seen));
}

// What the HTTP version, or the client's library for it, adds.
const carriedByHttp: ReadonlySet<string> = new Set(["host", "connection", "content-length", "transfer-encoding"]);

/** Does what a text says: fails, waits for the end of the call, or sets header and trailer. */
export async function obey(text: string, context: HandlerContext): Promise<void> {
  const [order, ...words] = text.split(": ");
  if (order === "fail") throw failure(Number(words[0]), words[1] ?? "");
  if (order === "break") throw new Error("the pump is on fire at 10.0.0.7");
  if (order === "break with words") throw "words";
  if (order === "wait") await untilAborted(context.signal);
  if (order === "tell more") tellMore(context);
}

function failure(code: Code, message: string): ConnectError {
  const metadata = new Headers();
  // Before 2.0.2, connect-node forgets metadata over gRPC.
  if (isSince("@connectrpc/connect", "2.0.2")) {
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

function tellMore({ responseHeader, responseTrailer }: HandlerContext): void {
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
