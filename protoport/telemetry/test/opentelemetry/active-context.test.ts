import { setImmediate as nextTurn } from "node:timers/promises";
import { trace } from "@opentelemetry/api";
import { Code, ConnectError, type Interceptor, type ServiceImpl } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type GatewayOptions } from "../../../gateway/src/index.ts";
import { withOpenTelemetry } from "../../src/opentelemetry/index.ts";
import { callings, collect, greenhouseClient } from "@protoport/testing";
import { registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";
import { caller, startTraced, traceparent } from "../../../testing/src/telemetry/traced-greenhouse.ts";

/** The ids of the active spans, by the callback that recorded them. */
type ActiveSpans = Map<string, Set<string | undefined>>;

const spanIds = (activeSpans: ActiveSpans): Record<string, (string | undefined)[]> =>
  Object.fromEntries([...activeSpans].map(([place, ids]) => [place, [...ids]]));

/** Creates options and handlers that record the active span in every callback, also after an await. */
function recordActiveSpans(): {
  readonly activeSpans: ActiveSpans;
  readonly options: Partial<GatewayOptions>;
  readonly implementation: Partial<ServiceImpl<typeof GreenhouseService>>;
} {
  const activeSpans: ActiveSpans = new Map();
  const record = (place: string): void => {
    const active = trace.getActiveSpan()?.spanContext();
    activeSpans.set(place, (activeSpans.get(place) ?? new Set()).add(active && `${active.traceId} ${active.spanId}`));
  };
  const recording: Interceptor = (next) => async (request) => {
    record("interceptor");
    await nextTurn();
    const response = await next(request);
    record("interceptor");
    return response;
  };
  return {
    activeSpans,
    options: {
      onRequest: () => record("onRequest"),
      admit: async () => {
        record("admit");
        await nextTurn();
        record("admit");
        return async () => {
          record("procedure");
          await nextTurn();
          record("procedure");
        };
      },
      interceptors: [recording],
      onError: () => record("onError"),
      onResponse: () => record("onResponse"),
      endpoints: [
        {
          path: "/place",
          open: false,
          handle: async () => {
            record("endpoint");
            await nextTurn();
            record("endpoint");
            return { httpStatus: 200, body: "" };
          },
        },
      ],
    },
    implementation: {
      waterBed: async () => {
        record("unary");
        await nextTurn();
        record("unary");
        throw new ConnectError("dry", Code.FailedPrecondition);
      },
      async *watchReadings({ sensor }) {
        record("server stream");
        yield {};
        record("server stream");
        await nextTurn();
        try {
          for (let remaining = sensor === "endless" ? Infinity : 1; remaining > 0; remaining -= 1) {
            yield {};
            await nextTurn();
          }
        } finally {
          record("end of server stream");
        }
      },
      recordReadings: async (messages) => {
        for await (const _ of messages) record("client stream");
        await nextTurn();
        record("client stream");
        return {};
      },
      async *controlClimate(messages) {
        for await (const _ of messages) {
          record("both streams");
          yield {};
          await nextTurn();
          record("both streams");
        }
      },
    },
  };
}

async function* readings(): AsyncGenerator<object> {
  yield {};
  await nextTurn();
  yield {};
}

test.each(callings)("the active context is the request's in every callback during a $name call", async (calling) => {
  const { activeSpans, options, implementation } = recordActiveSpans();
  using sdk = registerSdk();
  await using greenhouse = await startTraced(implementation, { options, listen: calling.listen });
  const client = greenhouseClient(calling, greenhouse.address);
  const headers = { [traceparent[0]]: traceparent[1] };
  const common = ["onRequest", "admit", "procedure", "interceptor", "onResponse"];
  const calls: Record<string, { kind: string; places?: string[]; call: () => Promise<unknown> }> = {
    WaterBed: {
      kind: "unary",
      places: ["onError"],
      call: () => client.waterBed({}, { headers }).catch(() => undefined),
    },
    "WatchReadings, cancelled": {
      kind: "server stream",
      places: ["end of server stream"],
      call: async () => {
        const cancellation = new AbortController();
        const messages = client.watchReadings({ sensor: "endless" }, { headers, signal: cancellation.signal });
        const read = async (): Promise<void> => {
          for await (const _ of messages) cancellation.abort();
        };
        await expect(read()).rejects.toMatchObject({ code: Code.Canceled });
      },
    },
    WatchReadings: {
      kind: "server stream",
      places: ["end of server stream"],
      call: () => collect(client.watchReadings({}, { headers })),
    },
    RecordReadings: { kind: "client stream", call: () => client.recordReadings(readings(), { headers }) },
    ...(calling.name.startsWith("gRPC") &&
      !calling.name.startsWith("gRPC-Web") && {
        ControlClimate: { kind: "both streams", call: () => collect(client.controlClimate(readings(), { headers })) },
      }),
  };
  for (const [name, { kind, places = [], call }] of Object.entries(calls)) {
    const count = sdk.spans.length;
    activeSpans.clear();
    await call();
    await expect.poll(() => sdk.spans.length).toBe(count + 1);
    const span = sdk.spans.at(-1);
    expect(span?.name).toBe(`greenhouse.v1.GreenhouseService/${name.split(",")[0]}`);
    expect(span?.parentSpanContext?.spanId).toBe(caller.spanId);
    const only = [`${caller.traceId} ${span?.spanContext().spanId}`];
    const all = [...common, kind, ...places].map((place) => [place, only]);
    expect(spanIds(activeSpans)).toEqual(Object.fromEntries(all));
  }
  expect(trace.getActiveSpan()).toBe(undefined);
});

test("the active context is the request's in endpoints and in hooks of unmatched requests", async () => {
  const { activeSpans, options } = recordActiveSpans();
  using sdk = registerSdk();
  const gateway = createGateway(withOpenTelemetry({ routes: () => {}, ...options }));
  const ask = async (path: string): Promise<readonly (string | undefined)[][]> => {
    activeSpans.clear();
    await gateway.fetch(new Request(`http://orders.example${path}`, { headers: [[...traceparent]] }));
    return [
      sdk.spans.map((span) => `${caller.traceId} ${span.spanContext().spanId}`).slice(-1),
      ...Object.values(spanIds(activeSpans)),
    ];
  };
  for (const [path, places] of Object.entries({ "/place": 4, "/nothing": 4 })) {
    const [own, ...others] = await ask(path);
    expect(others).toEqual(Array(places).fill(own));
  }
  expect(sdk.spans.map(({ name }) => name)).toEqual(["GET /place", "GET"]);
});

test("the function that admit returns gets the RPC's descriptor", async () => {
  const descriptors: unknown[] = [];
  const admit: GatewayOptions["admit"] = () => (_, descriptor) => void descriptors.push(descriptor);
  const gateway = createGateway(
    withOpenTelemetry({ routes: (router) => void router.service(GreenhouseService, {}), admit }),
  );
  await gateway.fetch(new Request("http://orders.example/sensors/7/reading"));
  expect(descriptors).toEqual([GreenhouseService.method.getReading]);
});
