import { ConnectError } from "@connectrpc/connect";
import { GreenhouseService } from "../../protoport/examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createProxy } from "@protoport/proxy";
import { createGateway, errorCodeOf, type Gateway, type GatewayOptions } from "@protoport/gateway";
import { createHttpEngine } from "@protoport/gateway/engine";
import { corpusGroups, toRequest } from "../../protoport/gateway/test/wire/corpus/corpus.ts";
import { sideBySideOptions } from "../../protoport/gateway/test/suites/long/engine/compared-with-node/side-by-side.ts";
import { unaryCallTable } from "../../protoport/gateway/test/suites/long/engine/compared-with-node/unary-calls.ts";
import { descriptorSetOf } from "../../protoport/testing/src/gateway/descriptor-set.ts";
import { kitchenSinkOptions } from "../../protoport/testing/src/gateway/kitchen-sink.ts";
import { wires, wireFormats } from "../../protoport/testing/src/gateway/wire-format.ts";
import { allCases } from "../../protoport/testing/src/transcoding/all-cases.ts";
import { echoOptions } from "../../protoport/testing/src/transcoding/echo-backend.ts";
import { bodyOf, headerOf } from "../../protoport/conformance/runner/response.ts";
import { contractOptions, contractRequests } from "./contract.ts";
import { malformedCalls } from "../../protoport/tools/record-responses/malformed-calls.ts";
import type { NamedRequest } from "../../protoport/tools/record-responses/named-request.ts";
import { streamingOptions, streamRequests } from "../../protoport/tools/record-responses/streams.ts";

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

/** All request sets, by the names of the files in which their responses are recorded. */
export const requestSets: readonly { readonly name: string; readonly open: () => Promise<OpenRequestSet> }[] = [
  { name: "corpus", open: () => openSet(kitchenSinkOptions, corpus) },
  { name: "transcoding", open: () => openSet(echoOptions, transcoding) },
  { name: "contract", open: () => openSet(contractOptions(), contractRequests) },
  { name: "unary-calls", open: () => openSet(sideBySideOptions, unaryCalls) },
  { name: "streams", open: () => openSet(streamingOptions, streamRequests) },
  { name: "malformed-calls", open: () => openSet(streamingOptions, malformedCalls) },
  { name: "proxy", open: () => openProxied([...unaryCalls, ...streamRequests, ...malformedCalls]) },
];

async function openSet(options: GatewayOptions, requests: readonly NamedRequest[]): Promise<OpenRequestSet> {
  const { hooks, takeEvents } = recordHooks();
  const gateway = createGateway({ engine: createHttpEngine(), ...options, ...hooks });
  return { gateway, requests, takeEvents, [Symbol.asyncDispose]: () => gateway.close() };
}

async function openProxied(requests: readonly NamedRequest[]): Promise<OpenRequestSet> {
  const backend = createGateway({ engine: createHttpEngine(), ...streamingOptions, onFault: () => {} });
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
