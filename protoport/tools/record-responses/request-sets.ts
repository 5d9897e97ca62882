import { ConnectError } from "@connectrpc/connect";
import { GreenhouseService } from "../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createProxy } from "../../proxy/src/create-proxy.ts";
import { createGateway, errorCodeOf, type Gateway, type GatewayOptions } from "../../gateway/src/index.ts";
import { corpusGroups, toRequest } from "../../gateway/test/wire/corpus/corpus.ts";
import { sideBySideOptions } from "../../gateway/test/suites/long/engine/compared-with-node/side-by-side.ts";
import { unaryCallTable } from "../../gateway/test/suites/long/engine/compared-with-node/unary-calls.ts";
import { descriptorSetOf } from "../../testing/src/gateway/descriptor-set.ts";
import { kitchenSinkOptions } from "../../testing/src/gateway/kitchen-sink.ts";
import { wires, wireFormats } from "../../testing/src/gateway/wire-format.ts";
import { allCases } from "../../testing/src/transcoding/all-cases.ts";
import { echoOptions } from "../../testing/src/transcoding/echo-backend.ts";
import { bodyOf, headerOf } from "../../conformance/runner/response.ts";
import { malformedCalls } from "./malformed-calls.ts";
import type { NamedRequest } from "./named-request.ts";
import { streamingOptions, streamRequests } from "./streams.ts";

/** A gateway and the requests to send to it. Dispose of the gateway after its servers. */
export interface OpenRequestSet extends AsyncDisposable {
  readonly gateway: Gateway;
  readonly requests: readonly NamedRequest[];
  /** Returns the arguments of all hook calls since this method was last called, as text. */
  takeEvents(): Promise<string>;
}

const corpus: readonly NamedRequest[] = corpusGroups.flatMap(({ name, cases }) =>
  cases.map((row) => ({ ...toRequest(row), name: `${name}: ${row.rule}: ${row.request}` })),
);

const transcoding: readonly NamedRequest[] = allCases.map(({ id, request }) => {
  const body = bodyOf(request);
  const { method: httpMethod, target: path } = request;
  return { name: id, httpMethod, path, header: headerOf(request), ...(body && { body }) };
});

const unaryCalls: readonly NamedRequest[] = Object.values(wireFormats).flatMap((format) => {
  const wire = wires.find((each) => each.format === format);
  if (wire === undefined || format.protocol === "rest") return [];
  const rows = unaryCallTable.filter(({ only }) => only?.({ ...wire, httpVersion: "2" }) ?? true);
  return rows.map((row) => ({ ...row.request(format), name: `${row.name} by ${format.name}` }));
});

/** A request set, with the name of the files in which its responses are recorded. */
export interface RequestSet {
  readonly name: string;
  readonly open: () => Promise<OpenRequestSet>;
}

/** The request sets of Protoport's test services. */
export const requestSets: readonly RequestSet[] = [
  { name: "corpus", open: () => openSet(kitchenSinkOptions, corpus) },
  { name: "transcoding", open: () => openSet(echoOptions, transcoding) },
  { name: "unary-calls", open: () => openSet(sideBySideOptions, unaryCalls) },
  { name: "streams", open: () => openSet(streamingOptions, streamRequests) },
  { name: "malformed-calls", open: () => openSet(streamingOptions, malformedCalls) },
  { name: "proxy", open: () => openProxied([...unaryCalls, ...streamRequests, ...malformedCalls]) },
];

/** Opens a gateway with an HTTP engine for a request set. */
export async function openSet(options: GatewayOptions, requests: readonly NamedRequest[]): Promise<OpenRequestSet> {
  const { hooks, takeEvents } = recordHooks();
  const gateway = createGateway({ ...options, ...hooks });
  return { gateway, requests, takeEvents, [Symbol.asyncDispose]: () => gateway.close() };
}

async function openProxied(requests: readonly NamedRequest[]): Promise<OpenRequestSet> {
  const backend = createGateway({ ...streamingOptions, onFault: () => {} });
  const { address, port } = await backend.listen({ host: "127.0.0.1" });
  const { hooks, takeEvents } = recordHooks();
  const upstream = `http://${address}:${port}`;
  const descriptors = descriptorSetOf(GreenhouseService.file);
  const gateway = await createProxy({ upstreams: [{ upstream, descriptors }], ...hooks });
  return {
    gateway,
    requests,
    takeEvents,
    [Symbol.asyncDispose]: async () => {
      await gateway.close();
      await backend.close();
    },
  };
}

function recordHooks(): {
  readonly hooks: Pick<GatewayOptions, "onResponse" | "onError" | "onFault">;
  readonly takeEvents: OpenRequestSet["takeEvents"];
} {
  const events: string[] = [];
  const note = (...parts: readonly unknown[]): void => void events.push(`> ${parts.join(" ")}\n`);
  return {
    hooks: {
      onResponse: ({ protocol, procedure, httpMethod, path, httpRoute, httpStatus, error }) =>
        note("onResponse", protocol, procedure, httpMethod, path, httpRoute, httpStatus, describeError(error)),
      onError: ({ protocol, procedure, stream }, error) =>
        note("onError", protocol, procedure, stream, describeError(error)),
      onFault: (error, what, request, errorCode) =>
        note("onFault", what, request?.procedure, errorCode, error instanceof Error ? error.message : error),
    },
    takeEvents: async () => {
      // A turn is awaited, because a response may arrive before its request's hooks have run.
      await new Promise(setImmediate);
      return events.splice(0).join("");
    },
  };
}

function describeError(error: unknown): string {
  return error instanceof ConnectError ? `${error.code} ${errorCodeOf(error)} ${error.rawMessage}` : String(error);
}
