import { setImmediate as nextTurn } from "node:timers/promises";
import { trace } from "@opentelemetry/api";
import { Code, ConnectError, type Interceptor, type ServiceImpl } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGateway, type GatewayOptions } from "../../../gateway/src/index.ts";
import { withOpenTelemetry } from "../../src/opentelemetry/index.ts";
import { collect } from "../../../testing/src/collect.ts";
import { callings, greenhouseClient } from "../../../testing/src/gateway/greenhouse.ts";
import { registerSdk } from "../../../testing/src/telemetry/register-sdk.ts";
import { caller, startTraced, traceparent } from "../../../testing/src/telemetry/traced-greenhouse.ts";

/** The spans that were active, by the places of the program where it looked. */
type Seen = Map<string, Set<string | undefined>>;

function spanIds(seen: Seen): Record<string, (string | undefined)[]> {
  return Object.fromEntries([...seen].map(([place, ids]) => [place, [...ids]]));
}

/** Options and handlers that look at the active span wherever the program's code runs, also after a wait. */
function watch(): {
  readonly seen: Seen;
  readonly options: Partial<GatewayOptions>;
  readonly implementation: Partial<ServiceImpl<typeof GreenhouseService>>;
} {
  const seen: Seen = new Map();
  const look = (place: string): void => {
    const active = trace.getActiveSpan()?.spanContext();
    const ids = seen.get(place) ?? new Set();
    seen.set(place, ids.add(active && `${active.traceId} ${active.spanId}`));
  };
  const watching: Interceptor = (next) => async (request) => {
    look("interceptor");
    await nextTurn();
    const response = await next(request);
    look("interceptor");
    return response;
  };
  return {
    seen,
    options: {
      onRequest: () => look("onRequest"),
      admit: async () => {
        look("admit");
        await nextTurn();
        look("admit");
      },
      interceptors: [watching],
      onError: () => look("onError"),
      onAnswer: () => look("onAnswer"),
      endpoints: [
        {
          path: "/place",
          open: false,
          answer: async () => {
            look("endpoint");
            await nextTurn();
            look("endpoint");
            return { httpStatus: 200, body: "" };
          },
        },
      ],
    },
    implementation: {
      waterBed: async () => {
        look("unary");
        await nextTurn();
        look("unary");
        throw new ConnectError("dry", Code.FailedPrecondition);
      },
      async *watchReadings({ sensor }) {
        look("server stream");
        yield {};
        look("server stream");
        await nextTurn();
        try {
          for (let left = sensor === "endless" ? Infinity : 1; left > 0; left -= 1) {
            yield {};
            await nextTurn();
          }
        } finally {
          look("end of server stream");
        }
      },
      recordReadings: async (messages) => {
        for await (const _ of messages) look("client stream");
        await nextTurn();
        look("client stream");
        return {};
      },
      async *controlClimate(messages) {
        for await (const _ of messages) {
          look("both streams");
          yield {};
          await nextTurn();
          look("both streams");
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

describe("the context of a request is active", () => {
  test.each(callings)("over $name, wherever code of the program runs, for every kind of RPC", async (calling) => {
    const { seen, options, implementation } = watch();
    using sdk = registerSdk();
    await using greenhouse = await startTraced(implementation, { options, listen: calling.listen });
    const client = greenhouseClient(calling, greenhouse.address);
    const headers = { [traceparent[0]]: traceparent[1] };
    const common = ["onRequest", "admit", "interceptor", "onAnswer"];
    const calls: Record<string, { kind: string; places?: string[]; call: () => Promise<unknown> }> = {
      WaterBed: {
        kind: "unary",
        places: ["onError"],
        call: () => client.waterBed({}, { headers }).catch(() => undefined),
      },
      "WatchReadings, left early": {
        kind: "server stream",
        places: ["end of server stream"],
        call: async () => {
          const leaving = new AbortController();
          const messages = client.watchReadings({ sensor: "endless" }, { headers, signal: leaving.signal });
          const read = async (): Promise<void> => {
            for await (const _ of messages) leaving.abort();
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
      seen.clear();
      await call();
      await expect.poll(() => sdk.spans.length).toBe(count + 1);
      const span = sdk.spans.at(-1);
      expect(span?.name).toBe(`greenhouse.v1.GreenhouseService/${name.split(",")[0]}`);
      expect(span?.parentSpanContext?.spanId).toBe(caller.spanId);
      const only = [`${caller.traceId} ${span?.spanContext().spanId}`];
      const all = [...common, kind, ...places].map((place) => [place, only]);
      expect(spanIds(seen)).toEqual(Object.fromEntries(all));
    }
    expect(trace.getActiveSpan()).toBe(undefined);
  });

  test("in an endpoint, and in what answers a request that matches nothing", async () => {
    const { seen, options } = watch();
    using sdk = registerSdk();
    const gateway = createGateway(withOpenTelemetry({ routes: () => {}, ...options }));
    const ask = async (path: string): Promise<readonly (string | undefined)[][]> => {
      seen.clear();
      await gateway.fetch(new Request(`http://orders.example${path}`, { headers: [[...traceparent]] }));
      return [
        sdk.spans.map((span) => `${caller.traceId} ${span.spanContext().spanId}`).slice(-1),
        ...Object.values(spanIds(seen)),
      ];
    };
    for (const [path, places] of Object.entries({ "/place": 4, "/nothing": 4 })) {
      const [own, ...others] = await ask(path);
      expect(others).toEqual(Array(places).fill(own));
    }
    expect(sdk.spans.map(({ name }) => name)).toEqual(["GET /place", "GET"]);
  });
});
